"""The Merkle tree of the log: how long sealing, proofs and the check of the tree take, and what decisions pay for it.

The first table is about a million events, the second about the events of one second, in processor time, which other
programs disturb less. The third puts the same load on two servers in turn, one that seals its log every second and one
that never does. It also has the processor time of the servers, with that of the sealing which ends after the load.
"""

from __future__ import annotations

import os
import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from litestar.types import ASGIApp
from sqlalchemy import insert, select, update

from benchmarks.load import run
from benchmarks.measure import compare, cpu, report, seconds
from benchmarks.service import CONNECTIONS, Server, requests, serving
from lenience.core.settings import DATABASE
from lenience.service.storage import schema

if TYPE_CHECKING:
    from engines import Engine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

EVENTS = 1_000_000
PAIRS = int(os.environ.get("LENIENCE_BENCH_PAIRS", "8"))
SECONDS = 4.0  # of load on one server at a time
REST = 1.6  # seconds after which the last events are sealed
PATH = "/v1/policies/bench/decisions"


def unsealed_application() -> ASGIApp:
    """The service without sealing."""
    from lenience.dashboard.app import create_app
    from lenience.service.http import service

    service.SEAL_EVERY = 1e9
    return create_app(os.environ[DATABASE])


def main() -> None:
    """Measure and print."""
    million_events()
    events_of_a_second()
    cost_of_sealing()


def cost_of_sealing() -> None:
    """Compare a server that seals with one that does not, under the same load in turn."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"{folder}/sealed.db") as (sealed,),
        serving(f"{folder}/unsealed.db", application="benchmarks.transparency:unsealed_application") as (unsealed,),
    ):
        for server in (sealed, unsealed):
            under_load(server)  # warm
        pairs = []
        for number in range(PAIRS):
            order = (sealed, unsealed) if number % 2 else (unsealed, sealed)
            measured = {server.port: under_load(server) for server in order}
            pairs.append((measured[sealed.port], measured[unsealed.port]))
    rows = []
    for place, name in enumerate(("decisions a second", "processor time of a decision")):
        ratios = sorted(with_[place] / without[place] for with_, without in pairs)
        medians = [statistics.median(pair[column][place] for pair in pairs) for column in (0, 1)]
        shown = [f"{value:,.0f}" if place == 0 else seconds(value) for value in medians]
        low, _, high = statistics.quantiles(ratios, n=4)
        rows.append([name, *shown, f"{statistics.median(ratios):.3f}", f"{low:.3f} to {high:.3f}"])
        goal = "at least 0.95" if place == 0 else ""
        compare(f"{name}, with a sealed log", shown[0], f"not sealed: {shown[1]}", statistics.median(ratios), goal)
    report(
        f"Sealing the log every second: {PAIRS} pairs of {SECONDS:g} s, {CONNECTIONS} connections, SQLite",
        ["", "sealed", "not sealed", "ratio", "middle half"],
        rows,
    )


def under_load(server: Server) -> tuple[float, float]:
    """Return decisions a second, and processor seconds of the server for each."""
    before = server.processor_seconds
    load = run([server.port], CONNECTIONS, SECONDS, requests(PATH))
    assert set(load.statuses) == {201}, load.statuses
    time.sleep(REST)
    return load.rate, (server.processor_seconds - before) / len(load.times)


def events_of_a_second() -> None:
    """Measure the sealing of what a service writes in a second, in 16 segments."""
    from engines import Engine
    from lenience.service.commands.seal import SealLog
    from lenience.service.domain.signed_note import SigningKey
    from serving import sqlite_file

    command, rows = SealLog(SigningKey.create("benchmark")), []
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(sqlite_file(Path(folder)))
        engine.create(segments=[f"segment {i}" for i in range(16)])
        engine.writer.call(command)
        for each in (10, 60, 300):
            times = []
            for _ in range(15):
                add_events(engine, each)
                begun = time.process_time()
                engine.writer.call(command)
                times.append(time.process_time() - begun)
            middle = statistics.median(times)
            rows.append([f"{16 * each:,} events", seconds(middle), seconds(middle / (16 * each)), f"{middle:.1%}"])
        engine.close()
    report("Sealing the events of one second, 16 segments", ["", "processor time", "of an event", "of a core"], rows)


def add_events(engine: Engine, each: int) -> None:
    """Write events with random hashes into every segment: the tree reads only hashes, and deciding would take long."""
    chains, has_segment = schema.chain, schema.chain.c.segment.is_not(None)
    with engine.store.write() as connection:
        for chain, length in connection.execute(select(chains.c.id, chains.c.length).where(has_segment)).all():
            for start in range(length, length + each, 10_000):
                rows = [
                    {"chain_id": chain, "seq": seq, "body": "{}", "hash": secrets.token_hex(32), "about": None}
                    for seq in range(start + 1, min(start + 10_000, length + each) + 1)
                ]
                connection.execute(insert(schema.event), rows)
            connection.execute(update(chains).where(chains.c.id == chain).values(length=length + each))


def million_events() -> None:
    """Measure the tree itself."""
    from engines import Engine
    from lenience.service.commands.seal import SealLog
    from lenience.service.domain.decision_proof import verify_decision
    from lenience.service.domain.signed_note import SigningKey
    from lenience.service.queries.log_proofs import LogProofs
    from lenience.service.queries.log_tree_check import check_log_tree
    from serving import sqlite_file

    key = SigningKey.create("benchmark")
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(sqlite_file(Path(folder)))
        engine.create()
        decision = engine.decide()
        add_events(engine, EVENTS // 2)  # in each of two segments
        begun = time.process_time()
        command = SealLog(key)
        while command.more:
            engine.writer.call(command)
        sealing = time.process_time() - begun
        proofs = LogProofs(engine.store, engine.registry)
        proof = proofs.decision(decision["id"])
        begun = time.process_time()
        with engine.store.read() as connection:
            check_log_tree(connection, lambda where, what: sys.exit(f"{where}: {what}"))
        checking = time.process_time() - begun
        proving, size = cpu(lambda: proofs.decision(decision["id"]), 20), len(msgspec.json.encode(proof))
        verifying = cpu(lambda: verify_decision(proof, key.public), 20)
        consistency = cpu(lambda: proofs.consistency(EVENTS // 3, EVENTS), 20)
        table = [
            ["seal all events", seconds(sealing), f"{EVENTS / sealing:,.0f} events/s"],
            ["prove a decision", seconds(proving), f"{len(proof.path)} hashes, {size:,} bytes"],
            ["verify it", seconds(verifying), ""],
            ["prove consistency", seconds(consistency), ""],
            ["check the tree", seconds(checking), f"{EVENTS / checking:,.0f} events/s"],
        ]
        engine.close()
    report(f"Merkle tree of {EVENTS:,} events", ["", "processor time", ""], table)


if __name__ == "__main__":
    main()
