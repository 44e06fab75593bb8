"""Run schedules until one fails: ``python -m tests.faults --minutes 5``."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the modules of the tests import each other by their short names

from faults import sabotage
from faults.runs import Job, run_all
from faults.schedule import ScheduleResult


def main() -> int:
    """Run the command, and return its exit code: 1 if a schedule failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=main.__doc__)
    parser.add_argument("--seed", type=int, default=None, help="the first seed (by default a new one each time)")
    parser.add_argument("--schedules", type=int, default=None, help="how many schedules; by default 1 with --seed")
    parser.add_argument("--minutes", type=float, default=None, help="stop after this time")
    parser.add_argument("--processes", type=int, default=1, help="how many processes run schedules")
    parser.add_argument("--every-step", action="store_true", help="kill the first process at each of its steps")
    parser.add_argument("--sabotage", choices=[each.__name__ for each in sabotage.ALL], help="break the engine first")
    parser.add_argument("--postgresql", action="store_true", help="cut connections to a PostgreSQL server instead")
    options = parser.parse_args()
    limited = options.schedules is not None or options.minutes is not None
    most = options.schedules if limited else 1 if options.seed is not None else 500
    first = time.time_ns() // 1000 % 10**9 if options.seed is None else options.seed
    until = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    if options.postgresql:
        return cut_connections(first, most, until)
    began, totals, failed = time.monotonic(), Counter[str](), 0
    if options.processes > 1:
        context = multiprocessing.get_context("spawn")
        with context.Pool(options.processes) as pool:
            jobs = [
                Job(first + i, most, until, options.every_step, options.processes, options.sabotage)
                for i in range(options.processes)
            ]
            for counts, results in pool.imap_unordered(run_all, jobs):
                totals.update(counts)
                failed += sum(report(result) for result in results)
    else:
        counts, results = run_all(Job(first, most, until, options.every_step, 1, options.sabotage))
        totals.update(counts)
        failed = sum(report(result) for result in results)
    seconds, cpu = time.monotonic() - began, totals.pop("cpu_ms", 0) / 1000
    count = max(totals["schedules"], 1)
    print(f"{', '.join(f'{number:,} {name}' for name, number in totals.items())}; first seed {first}")
    print(f"{60 * count / seconds:,.0f} schedules a minute, {1000 * cpu / count:.0f} ms of CPU each")
    return 1 if failed else 0


def cut_connections(first: int, most: int | None, until: float | None) -> int:
    """Run schedules on a PostgreSQL server, each on an empty database, and return 1 if one failed."""
    from faults.dropped_connections import run_dropping
    from serving import Postgres

    logging.disable()  # lost connections are logged with their tracebacks
    server, failed, seed, cuts = Postgres(), 0, first, Counter[str]()
    try:
        while (most is None or seed < first + most) and (until is None or time.monotonic() < until):
            violations, line = run_dropping(server.emptied(), seed, 40)
            cuts.update(line.cuts)
            failed += report(ScheduleResult(seed, violations=violations), " --postgresql") if violations else 0
            seed += 1
    finally:
        server.remove()
    print(f"{seed - first:,} schedules, cuts: {dict(cuts)}; first seed {first}")
    return 1 if failed else 0


def report(result: ScheduleResult, options: str = "") -> int:
    """Print what failed, and how to run it again."""
    killed = "" if result.kill_at is None else f" with its first process killed at step {result.kill_at}"
    print(f"\nseed {result.seed}{killed}: {len(result.violations)} violations")
    for violation in list(dict.fromkeys(result.violations))[:10]:
        print(f"  {violation[:400]}")
    print(f"  again: python -m tests.faults --seed {result.seed}{' --every-step' if killed else options}")
    return 1


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets decides the order of some statements
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults", *sys.argv[1:]])
    sys.exit(main())
