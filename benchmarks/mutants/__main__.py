"""Run the tests against faults made on purpose: ``python -m benchmarks.mutants [--seed 1] [--sample 100]``.

First come the faults of :mod:`benchmarks.mutants.faults`, each against the tests named there. Then a sample, drawn with
a seed, of all single changes of operators, comparisons, constants and terms in the files of
:mod:`benchmarks.mutants.targets`. Every fault is made in a temporary copy of the sources. A fault that no test notices
survives. One that makes the tests run too long is counted apart. Mutants that change nothing are named in
``equivalent.txt`` with the reason, and do not count. The command fails if more than a tenth survive.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutants.faults import FAULTS
from benchmarks.mutants.sites import mutants_of
from benchmarks.mutants.targets import TARGETS

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
MOST_SURVIVORS = 0.1
KERNEL_CONSTANTS = ("src/lenience/core/lattice.py",)  # files without kernels whose constants kernels use


class Trial(NamedTuple):
    """A fault to try: the file with the fault in it, and the tests that should notice."""

    name: str
    path: str
    source: str
    tests: tuple[str, ...]
    compiled: bool


def listed() -> list[Trial]:
    """Return the faults written by hand."""
    trials = []
    for fault in FAULTS:
        source = (ROOT / fault.path).read_text()
        if fault.before not in source:
            raise SystemExit(f"{fault.path} no longer contains {fault.before!r}: update the fault {fault.name!r}")
        faulty = source.replace(fault.before, fault.after)
        trials.append(Trial(f"{fault.path}: {fault.name}", fault.path, faulty, fault.tests, fault.compiled))
    return trials


def sampled(size: int, seed: int, only: str) -> list[Trial]:
    """Return a sample of the single changes of all target files whose path contains ``only``."""
    chosen = [target for target in TARGETS if only in target.path]
    sources = {target.path: (ROOT / target.path).read_text() for target in chosen}
    sites = [
        (target, one) for target in chosen for one in mutants_of(target.path, sources[target.path], target.skipped)
    ]
    random.Random(seed).shuffle(sites)
    trials: list[Trial] = []
    for target, mutant in sites:
        if len(trials) == size:
            break
        source = sources[target.path]
        faulty = source[: mutant.start] + mutant.text + source[mutant.end :]
        try:
            compile(faulty, mutant.path, "exec")
        except SyntaxError:
            continue
        name = f"{mutant.path}:{mutant.line} {mutant.name}"
        trials.append(Trial(name, mutant.path, faulty, target.tests, target.compiled))
    return trials


def result_of(trial: Trial, copy: Path, seconds: float) -> str:
    """Return "noticed" if a test fails with the fault in place, "timed out" if one takes too long, or "SURVIVED"."""
    path = copy / trial.path
    original = path.read_text()
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    # A fault in a kernel needs a cache of its own: Numba does not compile a caller again when a function or constant in
    # another file has changed.
    in_kernel = "compiled\ndef " in trial.source or trial.path in KERNEL_CONSTANTS
    with tempfile.TemporaryDirectory() as fresh:
        environment["NUMBA_CACHE_DIR"] = fresh if in_kernel else str(copy / "cache")
        if not trial.compiled:
            environment["NUMBA_DISABLE_JIT"] = "1"
        try:
            path.write_text(trial.source)
            for tests in trial.tests:
                command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(tests)]
                done = subprocess.run(
                    command, cwd=copy, env=environment, capture_output=True, text=True, timeout=seconds, check=False
                )
                if done.returncode in (1, 2):  # a test failed, or the faulty file could not be imported
                    return "noticed"
                if done.returncode != 0:
                    raise SystemExit(f"{trial.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            path.write_text(original)
    return "SURVIVED"


def reasons() -> dict[str, str]:
    """Return why each named survivor changes nothing, by its name without the line number."""
    found = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" | ")
            found[name.strip()] = reason.strip()
    return found


def without_line(name: str) -> str:
    """Return the name of a mutant without its line number, which moves.

    >>> without_line("src/a.py:12 f: + becomes -")
    'src/a.py f: + becomes -'
    """
    path, _, rest = name.partition(" ")
    return f"{path.split(':')[0]} {rest}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults and print the score; the exit status is 1 if too many survive."""
    parser = argparse.ArgumentParser(prog="benchmarks.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="how many generated mutants to try (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default 1)")
    parser.add_argument("--only", default="", help="only files whose path contains this text")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="stop starting mutants after this long (default 60)"
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="a test run may take this long (default 300)")
    parser.add_argument("--no-listed", action="store_true", help="leave out the faults written by hand")
    options = parser.parse_args(arguments)
    trials = [] if options.no_listed else [trial for trial in listed() if options.only in trial.path]
    trials += sampled(options.sample, options.seed, options.only)
    known, tried = reasons(), 0
    results: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        for part in ("src", "tests", "research", "benchmarks"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for trial in trials:
            if time.monotonic() > end:
                print(f"stopped after {options.minutes:g} minutes, {len(trials) - tried} mutants not tried")
                break
            tried += 1
            named = without_line(trial.name) in known
            result = "equivalent" if named else result_of(trial, copy, options.seconds)
            results[result] += 1
            print(f"{result:<11} {trial.name}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in results.items()), f"of {tried} tried")
    return int(results["SURVIVED"] > MOST_SURVIVORS * max(tried - results["equivalent"], 1))


if __name__ == "__main__":
    sys.exit(main())
