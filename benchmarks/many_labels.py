"""A start of the service after many labels of a policy with 20 features: how long it takes, and how much memory.

Learning a million labels takes half an hour, so only the last ones are learnt. The others are generated: events with
correct hashes, rows of decisions and personal data, stored states and sealed tree are as the service writes them, but
the states before the last labels are copies. A start does not read them: it reads the last stored state and learns the
labels after it.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from sqlalchemy import select, update

from benchmarks.feature_service import people, repaid, specification
from benchmarks.service import Server, free_port
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, solve_version
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.commands.seal import SealLog
from lenience.service.domain.answers import DecisionsAnswer
from lenience.service.domain.chain import commitment, link
from lenience.service.domain.events import Decided, Learned, Observed, read, write
from lenience.service.domain.identity import new_id_and_salt
from lenience.service.domain.receipts import Sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage import schema
from lenience.service.storage.log_key import read_log_key
from lenience.service.storage.model_states import SNAPSHOT_EVERY
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store
from lenience.service.storage.writer import Writer

LABELS = int(os.environ.get("LENIENCE_BENCH_LABELS", "100000"))
LEARNT = 1_500  # the last labels
AT_A_TIME = 20_000
SENDER = Sender("benchmark")
FIGURES = ("seconds until it is ready", "seconds of the first decision", "CPU seconds until then", "memory MB")


class Built:
    """A database, and what writes to it."""

    def __init__(self, path: str) -> None:
        self.store = Store(path, serving=True)
        self.store.upgrade()
        self.writer = Writer(self.store, PolicyCache())

    def close(self) -> None:
        """Seal the log and close the database."""
        seal = SealLog(read_log_key(self.store.url, create=True))
        while seal.more:
            self.writer.call(seal)
        self.writer.close()
        self.store.close()

    def learn(self, labels: int, seed: int) -> None:
        """Decide applicants and learn so many of their outcomes."""
        rng, learnt = random.Random(seed), 0
        while learnt < labels:
            some = people(500, seed=seed + learnt)
            asked = [DecisionRequest(features=dict(one)) for one in some]
            answer = self.writer.call(Decide(SENDER, "features", asked, False))
            made = msgspec.json.decode(answer.body, type=DecisionsAnswer).decisions
            outcomes = [
                OutcomeItem(id=one.id, outcome="success" if repaid(person, rng) else "failure")
                for one, person in zip(made, some, strict=True)
                if one.decision == "accept"
            ]
            self.writer.call(RecordOutcomes(SENDER, outcomes))
            learnt += len(outcomes)

    def generate(self, labels: int) -> None:
        """Write labels as copies of one that was learnt."""
        events, chains, states = schema.event, schema.chain, schema.model_state
        with self.store.read() as connection:
            bodies = [read(body) for body in connection.scalars(select(events.c.body).order_by(events.c.seq.desc()))]
            decided = next(event for event in bodies if isinstance(event, Decided) and event.decision == "accept")
            learned = next(event for event in bodies if isinstance(event, Learned))
            state = connection.execute(select(states).order_by(states.c.seq.desc()).limit(1)).one()
            own = connection.execute(select(chains).where(chains.c.segment.is_not(None))).one()
            policy = connection.execute(
                select(chains).where(chains.c.segment.is_(None), chains.c.policy_id == own.policy_id)
            ).one()
        details = [msgspec.json.encode(one).decode() for one in people(64, seed=7)]
        heads = {own.id: (own.head, own.length), policy.id: (policy.head, policy.length)}
        counts = [own.arrivals, own.accepted, own.successes]
        for first in range(0, labels, AT_A_TIME):
            names = ("event", "decision", "personal", "state")
            rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in names}
            for i in range(first, min(first + AT_A_TIME, labels)):
                at = decided.at + i
                identity, salt = new_id_and_salt(at)
                reference, text = f"application {i}", details[i % 64]
                one = msgspec.structs.replace(
                    decided, at=at, id=identity, arrivals=counts[0], accepted=counts[1], successes=counts[2],
                    personal=commitment(salt, reference, text),
                )  # fmt: skip
                seq = self._append(rows["event"], heads, own.id, write(one), None)
                rows["decision"].append(
                    (identity, own.id, seq, one.version, at, 1, schema.SUCCESS, None, None, None, None, None)
                )
                rows["personal"].append((own.id, seq, salt, reference, text))
                outcome = Observed(at=at, actor=SENDER.actor, decision=identity, outcome="success")
                self._append(rows["event"], heads, own.id, write(outcome), identity)
                label = msgspec.structs.replace(learned, at=at, decision=identity, successes=1, failures=0)
                place = self._append(rows["event"], heads, policy.id, write(label), identity)
                counts = [count + 1 for count in counts]
                if place % SNAPSHOT_EVERY == 0:
                    rows["state"].append((*state[:2], place, 1, state.body, None))
            with self.store.write() as connection:
                for table, name in (
                    (schema.event, "event"), (schema.decision, "decision"), (schema.personal, "personal"),
                    (schema.model_state, "state"),
                ):  # fmt: skip
                    self.store.insert(connection, table, rows[name])
                arrivals, accepted, successes = counts
                for chain, (head, length) in heads.items():
                    values: dict[str, object] = {"head": head, "length": length}
                    if chain == own.id:
                        values |= {"arrivals": arrivals, "accepted": accepted, "successes": successes}
                    connection.execute(update(chains).where(chains.c.id == chain).values(**values))

    @staticmethod
    def _append(
        rows: list[tuple[object, ...]], heads: dict[int, tuple[str, int]], chain: int, text: str, about: str | None
    ) -> int:
        head, length = heads[chain]
        heads[chain] = link(head, text), length + 1
        rows.append((chain, length + 1, text, heads[chain][0], about))
        return length + 1


def build(path: str) -> None:
    """Write a database with :data:`LABELS` labels, of which the last are learnt."""
    solved = solve_version(msgspec.convert(specification(), PolicySpecification))
    built = Built(path)
    built.writer.call(CreateVersion(SENDER, solved))
    built.writer.call(ChangeState(SENDER, "features", "active", None))
    built.learn(100, seed=1)
    built.writer.close()
    built.generate(LABELS - LEARNT)
    built.writer = Writer(built.store, PolicyCache())
    built.learn(LEARNT, seed=10_000)
    built.close()


def starts(path: str) -> Iterator[tuple[float, float, float, float]]:
    """Start the service again and again: seconds until it is ready and of the first decision, CPU seconds, and MB."""
    while True:
        began = time.perf_counter()
        server = Server(path, free_port())
        try:
            ready = time.perf_counter() - began
            server.call("/v1/policies/features/decisions", {"features": people(1)[0]})
            first = time.perf_counter() - began - ready
            yield ready, first, server.processor_seconds, server.memory
        finally:
            server.stop()


def main() -> dict[str, float]:
    """Measure, print, and return the figures."""
    folder = tempfile.mkdtemp(prefix="lenience-bench-")
    path = f"{folder}/labels.db"
    try:
        began = time.perf_counter()
        build(path)
        results = {"labels": float(LABELS), "seconds to build": time.perf_counter() - began}
        results["size of the database, MB"] = Path(path).stat().st_size / 1e6
        for which, figures in zip(("first", "second"), starts(path), strict=False):
            results |= {f"{which} start: {name}": value for name, value in zip(FIGURES, figures, strict=True)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in results.items():
        print(f"  {name:<52} {value:>12,.3g}" if value < 100 else f"  {name:<52} {value:>12,.0f}")
    return results


if __name__ == "__main__":
    main()
