"""Run the tests against faults made on purpose: ``python -m benchmarks.mutants [--seed 1] [--sample 100]``.

First come the faults of :mod:`benchmarks.mutants.faults`, each against the tests named there. Then a sample, drawn with
a seed, of all single changes of operators, comparisons, constants and terms in the files of
:mod:`benchmarks.mutants.targets`, with an equal share for each package. Every fault is made in a copy of the sources.

noticed
    A test fails, or the changed file cannot be imported.
endless
    A test takes more than ten times as long as without the fault, and a minute more. The test would never end or be
    given up, so this counts as noticed. A mutant that only makes the tests slower survives.
equivalent
    The mutant is named in ``equivalent.txt`` with the reason why it changes nothing. It does not count.
SURVIVED
    No test fails. The command fails if more than a tenth of those that count survive.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.mutants.sandbox import Sandbox
from benchmarks.mutants.targets import PACKAGES
from benchmarks.mutants.trials import ROOT, Trial, listed, package_of, reasons, sampled

MOST_SURVIVORS = 0.1
RESULTS = {"failed": "noticed", "endless": "endless", "passed": "SURVIVED"}
COLUMNS = ("noticed", "endless", "SURVIVED", "equivalent")


def try_all(trials: Sequence[Trial], sandbox: Sandbox, minutes: float, jobs: int = 1) -> Counter[tuple[str, str]]:
    """Try faults until the time is over, print each, and return the number of each result by package."""
    known = reasons()
    end = time.monotonic() + 60 * minutes

    def try_one(trial: Trial) -> tuple[str, str] | None:
        start, test = time.monotonic(), ""
        if start > end:
            return None
        if f"{trial.path} {trial.name}" in known:
            result = "equivalent"
        else:
            run = sandbox.try_fault(trial)
            result, test = RESULTS[run.result], run.test
        by = f" by {test}" if test else ""
        print(f"{result:<11} {trial.place}{by} ({time.monotonic() - start:.0f} s)", flush=True)
        return package_of(trial.path), result

    with ThreadPoolExecutor(jobs) as pool:  # a thread only waits for its child process
        results = [result for result in pool.map(try_one, trials) if result is not None]
    if len(results) < len(trials):
        print(f"stopped after {minutes:g} minutes, {len(trials) - len(results)} mutants not tried")
    return Counter(results)


def survivors_of(counts: Counter[tuple[str, str]]) -> int:
    """Return how many faults no test noticed."""
    return sum(count for (_, result), count in counts.items() if result == "SURVIVED")


def table(counts: Counter[tuple[str, str]]) -> str:
    """Return the counts as a table, one line for each package.

    >>> print(table(Counter({("models", "noticed"): 19, ("models", "SURVIVED"): 1})))
    package          noticed    endless   SURVIVED equivalent
    models                19          0          1          0
    all                   19          0          1          0
    """
    lines = [f"{'package':<14}" + "".join(f"{column:>11}" for column in COLUMNS)]
    for package in (*PACKAGES, "all"):
        numbers = [
            sum(count for (name, result), count in counts.items() if package in (name, "all") and result == column)
            for column in COLUMNS
        ]
        if any(numbers):
            lines.append(f"{package:<14}" + "".join(f"{number:>11}" for number in numbers))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults and print the score; the exit status is 1 if too many survive."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=100, help="how many generated mutants to try (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default 1)")
    parser.add_argument("--only", nargs="+", default=(), help="only files whose path contains one of these texts")
    parser.add_argument("--by-file", action="store_true", help="an equal share for each file, not for each package")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="stop starting mutants after this long (default 60)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants to try at a time (default 2)")
    parser.add_argument(
        "--unmeasured",
        action="store_true",
        help="do not measure the tests first; on a busy machine this saves most of the time",
    )
    parser.add_argument("--no-listed", action="store_true", help="leave out the faults written by hand")
    parser.add_argument(
        "--folder", type=Path, help="keep the copy, the compiled kernels and the times here for the next run"
    )
    options = parser.parse_args(arguments)
    by_hand = [] if options.no_listed else listed(options.only)
    sample = sampled(options.sample, options.seed, options.only, options.by_file)
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sandbox = Sandbox(ROOT, folder.resolve(), measure=not options.unmeasured)
        if by_hand:
            print(f"{len(by_hand)} faults written by hand")
            missed = sum(
                n
                for (_, result), n in try_all(by_hand, sandbox, options.minutes, options.jobs).items()
                if result == "SURVIVED"
            )
        else:
            missed = 0
        print(f"{len(sample)} mutants drawn with seed {options.seed}", flush=True)
        counts = try_all(sample, sandbox, options.minutes, options.jobs)
        if options.unmeasured:
            for test in sandbox.failing():
                print(f"fails without a fault, so it notices nothing: {test}")
    print(table(counts))
    survivors = survivors_of(counts)
    tried = sum(count for (_, result), count in counts.items() if result != "equivalent")
    print(f"{survivors} of {tried} survived with seed {options.seed}; {missed} of {len(by_hand)} by hand")
    return int(missed > 0 or survivors > MOST_SURVIVORS * max(tried, 1))


if __name__ == "__main__":
    sys.exit(main())
