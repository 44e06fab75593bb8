"""The faults to try: those written by hand, and a sample of all small changes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutants.faults import FAULTS
from benchmarks.mutants.sites import Mutant, mutants_of
from benchmarks.mutants.targets import NUMBERS, PACKAGES, TARGETS, Target

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


class Tests(NamedTuple):
    """Arguments of pytest, and whether kernels are compiled."""

    arguments: str
    compiled: bool


class Trial(NamedTuple):
    """A fault to try: the file with the fault in it, and the tests that should notice."""

    name: str
    path: str
    source: str
    tests: tuple[Tests, ...]
    line: int = 0
    function: str = ""  # the function that the fault is in, if the fault is in one

    @property
    def where(self) -> str:
        """Return the function or constant with the fault, or nothing if that is not known."""
        return self.name.split(":")[0].removeprefix("module") if self.line else ""

    @property
    def place(self) -> str:
        """Return the file, the line if it is known, and the change."""
        return f"{self.path}:{self.line} {self.name}" if self.line else f"{self.path} {self.name}"


def package_of(path: str) -> str:
    """Return the part of the library that a file is in.

    >>> package_of("src/lenience/models/shared.py")
    'models'
    """
    return next(package for package in PACKAGES if path.startswith(f"src/lenience/{package}/"))


def listed(only: Sequence[str] = ()) -> list[Trial]:
    """Return the faults written by hand, of the files whose path contains one of the texts in ``only``."""
    trials = []
    for fault in FAULTS:
        if not _wanted(fault.path, only):
            continue
        source = (ROOT / fault.path).read_text()
        if fault.before not in source:
            raise SystemExit(f"{fault.path} no longer contains {fault.before!r}: update the fault {fault.name!r}")
        faulty = source.replace(fault.before, fault.after)
        tests = tuple(Tests(arguments, fault.compiled) for arguments in fault.tests)
        trials.append(Trial(fault.name, fault.path, faulty, tests))
    return trials


def _wanted(path: str, only: Sequence[str]) -> bool:
    return not only or any(text in path for text in only)


def sampled(size: int, seed: int, only: Sequence[str] = (), by_file: bool = False) -> list[Trial]:
    """Return a sample of the small changes of all target files whose path contains one of the texts in ``only``.

    Every package gets the same share of the sample as long as it has changes left: the solvers alone have more of them
    than all the others. With ``by_file``, every file does.
    """
    generator = random.Random(seed)
    queues: dict[str, list[tuple[Target, Mutant]]] = {} if by_file else {package: [] for package in PACKAGES}
    sources = {target.path: (ROOT / target.path).read_text() for target in TARGETS if _wanted(target.path, only)}
    for target in TARGETS:
        if target.path in sources:
            mutants = mutants_of(target.path, sources[target.path], target.skipped)
            share = target.path if by_file else package_of(target.path)
            queues.setdefault(share, []).extend((target, mutant) for mutant in mutants)
    for queue in queues.values():
        generator.shuffle(queue)
    trials: list[Trial] = []
    while len(trials) < size and any(queues.values()):
        for queue in queues.values():
            if not queue or len(trials) == size:
                continue
            target, mutant = queue.pop()
            source = sources[target.path]
            faulty = source[: mutant.start] + mutant.text + source[mutant.end :]
            try:
                compile(faulty, mutant.path, "exec")
            except SyntaxError:
                continue
            small = [Tests(arguments, False) for arguments in target.small]
            # The file's own examples come before other tests.
            numbers = [NUMBERS[package_of(target.path)]] if package_of(target.path) in NUMBERS else []
            full = [Tests(arguments, True) for arguments in (target.path, *numbers, *target.tests)]
            trials.append(Trial(mutant.name, mutant.path, faulty, (*small, *full), mutant.line, mutant.function))
    return trials


def reasons() -> dict[str, str]:
    """Return why each named mutant changes nothing, by its file and name."""
    result = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.rpartition(" | ")
            result[name.strip()] = reason.strip()
    return result
