"""The Merkle tree of the log at a million events: how long sealing, proofs and the check of the tree take."""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from sqlalchemy import insert, select, update

from benchmarks.measure import best, report, seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

EVENTS = 1_000_000


def main() -> None:
    """Measure and print."""
    from engines import Engine
    from lenience.service.commands.seal import SealLog
    from lenience.service.domain.decision_proof import verify_decision
    from lenience.service.domain.signed_note import SigningKey
    from lenience.service.queries.log_proofs import LogProofs
    from lenience.service.queries.log_tree_check import check_log_tree
    from lenience.service.storage import schema
    from serving import sqlite_file

    key = SigningKey.create("benchmark")
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(sqlite_file(Path(folder)))
        engine.create()
        decision = engine.decide()
        with engine.store.write() as connection:
            # Events with random hashes: the tree reads only hashes, and deciding a million times would take long.
            chain = connection.execute(select(schema.chain).where(schema.chain.c.segment == "old")).one().id
            for start in range(0, EVENTS, 10_000):
                rows = [
                    {"chain_id": chain, "seq": seq, "body": "{}", "hash": secrets.token_hex(32), "about": None}
                    for seq in range(start + 1, start + 10_001)
                ]
                connection.execute(insert(schema.event), rows)
            connection.execute(update(schema.chain).where(schema.chain.c.id == chain).values(length=EVENTS))
        begun = time.perf_counter()
        command = SealLog(key)
        while command.more:
            engine.writer.call(command)
        sealing = time.perf_counter() - begun
        proofs = LogProofs(engine.store, engine.registry)
        proof = proofs.decision(decision["id"])
        begun = time.perf_counter()
        with engine.store.read() as connection:
            check_log_tree(connection, lambda where, what: sys.exit(f"{where}: {what}"))
        checking = time.perf_counter() - begun
        proving, size = best(lambda: proofs.decision(decision["id"]), 20), len(msgspec.json.encode(proof))
        verifying = best(lambda: verify_decision(proof, key.public), 20)
        consistency = best(lambda: proofs.consistency(EVENTS // 3, EVENTS), 20)
        table = [
            ["seal all events", seconds(sealing), f"{EVENTS / sealing:,.0f} events/s"],
            ["prove a decision", seconds(proving), f"{len(proof.path)} hashes, {size:,} bytes"],
            ["verify it", seconds(verifying), ""],
            ["prove consistency", seconds(consistency), ""],
            ["check the tree", seconds(checking), f"{EVENTS / checking:,.0f} events/s"],
        ]
        engine.close()
    report(f"Merkle tree of {EVENTS:,} events", ["", "time", ""], table)


if __name__ == "__main__":
    main()
