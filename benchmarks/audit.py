"""The audit of 100,000 decisions: before and now, in one process and in all, and only what is new."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.earlier import COMMIT, ROOT, earlier_source, importing, write_past
from benchmarks.measure import compare, report, seconds
from lenience.service.commands.seal import SealLog
from lenience.service.domain.signed_note import SigningKey
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store
from lenience.service.storage.writer import Writer

TIMES = float(os.environ.get("LENIENCE_BENCH_TIMES", "32"))  # the demonstration's applicants: 100,000 decisions
ROUNDS = 2


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        source, past, now = earlier_source(Path(folder)), Path(folder) / "past.db", Path(folder) / "now.db"
        write_past(past, TIMES, source)
        shutil.copy(past, now)
        _upgrade(now)
        clean = Path(folder) / "clean.json"
        with importing(ROOT / "src"):
            clean.write_bytes(_audit(now).stdout)
        ways = {
            f"commit {COMMIT}": (source, past, ()),
            "one process": (ROOT / "src", now, ("--workers", "1")),
            "all cores": (ROOT / "src", now, ()),
            "since the last audit": (ROOT / "src", now, ("--since", str(clean))),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):  # one after the other, so that the load of the machine affects all of them
            for name, (code, database, options) in ways.items():
                with importing(code):
                    times[name].append(_measure(database, *options))
    cpu = {name: min(one[0] for one in some) for name, some in times.items()}
    wall = {name: min(one[1] for one in some) for name, some in times.items()}
    report(
        "Audit", ["", "processor time", "elapsed"], [[name, seconds(cpu[name]), seconds(wall[name])] for name in ways]
    )
    before = next(iter(ways))
    for name, goal in (("one process", "at most 0.67"), ("since the last audit", "at most 0.1")):
        compare(
            f"audit, {name}, processor time", seconds(cpu[name]), seconds(cpu[before]), cpu[name] / cpu[before], goal
        )
    cores = len(os.sched_getaffinity(0))
    ratio = wall["all cores"] / wall[before]
    compare(f"audit, {cores} cores, elapsed", seconds(wall["all cores"]), seconds(wall[before]), ratio, "at most 0.33")


def _upgrade(database: Path) -> None:
    """Migrate a database, and put its events into the tree of the log."""
    store = Store(str(database), serving=True)
    store.upgrade()
    writer = Writer(store, PolicyCache())
    command = SealLog(SigningKey.create("benchmark"))
    while command.more:
        writer.call(command)
    writer.close()
    store.close()


def _audit(database: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-m", "lenience", "audit", "--database", str(database), "--json", *options]
    return subprocess.run(words, check=True, capture_output=True)


def _measure(database: Path, *options: str) -> tuple[float, float]:
    """Return processor time and elapsed time of an audit, which must find nothing."""
    used, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    _audit(database, *options)
    elapsed = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, elapsed


if __name__ == "__main__":
    main()
