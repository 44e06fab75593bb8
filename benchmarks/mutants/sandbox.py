"""A copy of the project in which faults are made, with its own cache of compiled kernels."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numba
import pytest

from benchmarks.mutants.calls import CallRecorder
from benchmarks.mutants.kernel_graph import KernelGraph, forget
from benchmarks.mutants.overlay import overlay
from benchmarks.mutants.probe import Probe
from benchmarks.mutants.trials import Tests, Trial

PARTS = ("src", "tests", "research", "benchmarks", "pyproject.toml")
# What tests import besides the project: imported once, instead of in every child process.
LIBRARIES = (
    "alembic.command", "click", "httpx", "hypothesis.strategies", "joblib", "litestar", "mpmath", "msgspec", "pandas",
    "psutil", "psycopg", "scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline",
    "sklearn.utils.estimator_checks", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite",
)  # fmt: skip
COLLECTING = 300  # seconds that a run may take before its first test
UNMEASURED = 300  # seconds that a test may take with a fault, if its time without one is not known


class Run(NamedTuple):
    """How a run of the tests ended ("passed", "failed" or "endless"), the test that decided it, times and calls."""

    result: str
    test: str
    seconds: dict[str, float]
    calls: dict[str, list[str]]


class Sandbox:
    """A copy of the project, how long its tests take without a fault, and which functions they call.

    Every run of tests is a child process that starts from this one with pytest and all libraries already imported:
    that saves seconds a run. Only the tests that call the faulty function run, in one process.

    Parameters
    ----------
    root
        The project to copy.
    folder
        Where to put the copy. If it has one already, only files that changed are copied, and compiled kernels, times
        and calls are used again.
    measure
        Whether to run all tests of a file without a fault first. Otherwise, those that were not measured before run in
        their order, and :meth:`failing` must be asked at the end.
    """

    def __init__(self, root: Path, folder: Path, measure: bool = True) -> None:
        self.measure = measure
        for library in LIBRARIES:
            import_module(library)
        self.copy = folder / "copy"
        self.cache = folder / "cache"
        self.cache.mkdir(exist_ok=True)
        self.measured_file = folder / "measured.json"
        self.seconds: dict[str, dict[str, float]] = {}
        self.calls: dict[str, dict[str, list[str]]] = {}
        if self.measured_file.exists():
            self.seconds, self.calls = json.loads(self.measured_file.read_text())
        self.noticed: dict[str, dict[str, int]] = {}  # by file, how many of its faults each test has noticed
        changed = _mirror(root, self.copy)
        self._graph = KernelGraph(self.copy / "src")
        for path in changed:
            place = str(path.relative_to(self.copy))
            if place.startswith("src"):
                forget(self.cache, self._graph.concerned(path))
            for key in list(self.seconds):
                if place.startswith(_path(key)) or any(
                    call.startswith(f"{place} ") for calls in self.calls[key].values() for call in calls
                ):
                    del self.seconds[key], self.calls[key]
        self._numbers = itertools.count()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def try_fault(self, trial: Trial) -> Run:
        """Run the tests with a fault in place, first without compiling, up to the first test that notices it."""
        run = Run("passed", "", {}, {})
        with self._cache_for(trial) as cache:
            for tests, seconds in self._steps(trial):
                run = self._run(tests, cache, seconds, trial)
                if run.result != "passed":
                    by_test = self.noticed.setdefault(trial.path, {})
                    by_test[run.test] = by_test.get(run.test, 0) + 1
                    break
        return run

    def _steps(self, trial: Trial) -> Iterator[tuple[Tests, dict[str, float] | None]]:
        """Yield the runs for a fault, first without compiling: the measured tests together, then each other list."""
        for compiled in (False, True):
            seconds: dict[str, float] = {}
            others = []
            for tests in trial.tests:
                if tests.compiled != compiled:
                    continue
                if self.measure or _key(tests) in self.seconds:
                    seconds |= self._concerned(tests, trial)
                else:
                    others.append(tests)
            if seconds:
                files = " ".join(sorted({shlex.quote(test.split("::")[0]) for test in seconds}))
                yield Tests(files, compiled), seconds
            for tests in others:
                yield tests, None

    def failing(self) -> list[str]:
        """Return which of the tests that have noticed a fault fail without one, too."""
        names = sorted({test for by_test in self.noticed.values() for test in by_test if "::" in test})
        if not names:
            return []
        measured = self._run(Tests(" ".join(map(shlex.quote, names)), True), self.cache, None, None).seconds
        return [name for name in names if name not in measured]

    def _concerned(self, tests: Tests, trial: Trial) -> dict[str, float]:
        """Return the tests that call the faulty function, or all if it is not known, and how long each takes."""
        self.prepare(tests)
        key, function = _key(tests), f"{trial.path} {trial.function}"
        return {
            test: seconds
            for test, seconds in self.seconds[key].items()
            if not trial.function or function in self.calls[key].get(test, ())
        }

    @contextmanager
    def _cache_for(self, trial: Trial) -> Iterator[Path]:
        """Yield the folder of compiled kernels to use with a fault: a copy without those that the fault concerns."""
        kernels = self._graph.concerned(self.copy / trial.path, trial.where)
        if not kernels:
            yield self.cache
            return
        with tempfile.TemporaryDirectory(dir=self.cache.parent) as folder:
            cache = Path(folder) / "cache"
            shutil.copytree(self.cache, cache, copy_function=_link)
            forget(cache, kernels)
            yield cache

    def prepare(self, tests: Tests) -> None:
        """Run tests without a fault, to compile the kernels, and to measure the times and the calls."""
        key = _key(tests)
        with self._locks[key]:
            if key in self.seconds:
                return
            run = self._run(tests, self.cache, None, None, record=True)
            if not run.seconds and run.result != "passed":
                raise SystemExit(f"{run.test} fails without a fault")
            if run.result != "passed":
                print(f"left out, because it fails without a fault: {run.test}", flush=True)
            self.calls[key], self.seconds[key] = run.calls, run.seconds
        with self._locks["file"]:
            self.measured_file.write_text(json.dumps([self.seconds, self.calls]))

    def _run(
        self,
        tests: Tests,
        cache: Path,
        seconds: dict[str, float] | None,
        trial: Trial | None,
        record: bool = False,
    ) -> Run:
        """Run tests in a child process, all or those in ``seconds``, and note what they call if that is wanted."""
        report = self.copy.with_name(f"report_{next(self._numbers)}.json")
        current, output = report.with_suffix(".current"), report.with_suffix(".txt")
        noticed = self.noticed.get(trial.path, {}) if trial else {}
        child = os.fork()
        if child == 0:
            probe = Probe(seconds, noticed, current, None if trial is None else UNMEASURED)
            recorder = CallRecorder(self.copy) if record else None
            self._run_here(tests, cache, probe, recorder, trial, report)
        status = os.waitpid(child, 0)[1]
        try:
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
                return Run("endless", current.read_text(), {}, {})
            if os.WIFSIGNALED(status):  # a fault may make a kernel write where it must not
                return Run("failed", f"signal {os.WTERMSIG(status)}", {}, {})
            code = os.waitstatus_to_exitcode(status)
            if code == pytest.ExitCode.NO_TESTS_COLLECTED:  # a file without examples
                return Run("passed", "", {}, {})
            if code not in (0, 1, 2):
                raise SystemExit(f"{tests.arguments}: pytest ended with {code}\n{output.read_text()[-3000:]}")
            failed, measured, calls = json.loads(report.read_text())
            return Run("failed" if code else "passed", failed, measured, calls)
        finally:
            for file in (report, current, output):
                file.unlink(missing_ok=True)

    def _run_here(
        self, tests: Tests, cache: Path, probe: Probe, recorder: CallRecorder | None, trial: Trial | None, report: Path
    ) -> None:
        """Run tests in this process, and end it."""
        code = 3
        try:
            signal.alarm(COLLECTING)
            stream = os.open(report.with_suffix(".txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            os.chdir(self.copy)
            sys.dont_write_bytecode = False
            sys.path[:] = [str(self.copy / "src"), str(self.copy), *sys.path]
            os.environ["PYTHONPATH"] = f"{self.copy / 'src'}{os.pathsep}{self.copy}"
            # For this process and for those that tests start.
            os.environ["NUMBA_CACHE_DIR"] = str(cache)
            os.environ["NUMBA_DISABLE_JIT"] = str(int(not tests.compiled))
            numba.config.reload_config()  # type: ignore[no-untyped-call]
            if trial is not None:
                overlay(str(self.copy / trial.path), trial.source)
            # Libraries that are imported already cannot have their assertions rewritten, and need not.
            options = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning", *(["-x"] if trial else [])]
            arguments = [*options, "-p", "no:cacheprovider", "-p", "no:xdist", *shlex.split(tests.arguments)]
            code = int(pytest.main(arguments, plugins=[probe, recorder] if recorder else [probe]))
            report.write_text(json.dumps([probe.failed, probe.measured, recorder.calls if recorder else {}]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


def _key(tests: Tests) -> str:
    return f"{tests.arguments} ({'compiled' if tests.compiled else 'interpreted'})"


def _path(key: str) -> str:
    """Return the file or folder of tests."""
    return key.split(" ")[0].split("::")[0]


def _mirror(root: Path, copy: Path) -> list[Path]:
    """Make a copy the same as the project, touching only what differs, and return the copied files that changed."""
    wanted = {}
    for part in PARTS:
        for path in [root / part] if (root / part).is_file() else sorted((root / part).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                wanted[copy / path.relative_to(root)] = path
    changed = []
    for old in copy.rglob("*"):
        if old.is_file() and "__pycache__" not in old.parts and old not in wanted:
            old.unlink()
    for target, path in wanted.items():
        if not target.exists() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
            changed.append(target)
    return changed


def _link(file: str, copy: str) -> None:
    """Link a file of a cache, unless another run has just replaced it."""
    with suppress(FileNotFoundError):
        os.link(file, copy)
