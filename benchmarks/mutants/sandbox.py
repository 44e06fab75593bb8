"""A copy of the project in which faults are made, with its own cache of compiled kernels."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numba
import pytest
from numba.core.caching import _CacheLocator

from benchmarks.mutants.probe import Probe
from benchmarks.mutants.trials import Tests, Trial

PARTS = ("src", "tests", "research", "benchmarks", "pyproject.toml")
KERNEL_CONSTANTS = ("src/lenience/core/lattice.py",)  # files without kernels whose constants kernels use
COLLECTING = 300  # seconds that a run may take before its first test


class Run(NamedTuple):
    """How a run of the tests ended: "passed", "failed" or "endless", the test that decided it, and all times."""

    result: str
    test: str
    seconds: dict[str, float]


class Sandbox:
    """A copy of the project, and how long its tests take without a fault.

    Every run of tests is a child process that starts from this one with pytest, NumPy, SciPy and Numba already
    imported: that saves seconds a run.

    Parameters
    ----------
    root
        The project to copy.
    folder
        Where to put the copy. If it has one already, only files that changed are copied, and compiled kernels and times
        are used again.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.copy = folder / "copy"
        self.cache = folder / "cache"
        self.cache.mkdir(exist_ok=True)
        self.times_file = folder / "seconds.json"
        self.seconds: dict[str, dict[str, float]] = {}
        if self.times_file.exists():
            self.seconds = json.loads(self.times_file.read_text())
        self.noticed: dict[str, dict[str, int]] = {}  # by file, how many of its faults each test has noticed
        changed = _mirror(root, self.copy)
        self._importers = _importers(self.copy / "src")
        for path in changed:
            place = str(path.relative_to(self.copy))
            if place.startswith("tests"):
                self.seconds = {key: value for key, value in self.seconds.items() if not place.startswith(_path(key))}
            elif place.startswith("src"):
                self.seconds = {}
                self._forget_kernels(self.cache, path)
        self._faults = 0

    def try_fault(self, trial: Trial) -> Run:
        """Run the tests with a fault in place, up to the first test that notices it."""
        self._faults += 1
        run = Run("passed", "", {})
        for tests in trial.tests:
            self.prepare(tests)
            with self._fault(trial) as cache:
                run = self._run(tests, cache, self.seconds[_key(tests)], self.noticed.get(trial.path))
            if run.result != "passed":
                by_test = self.noticed.setdefault(trial.path, {})
                by_test[run.test] = by_test.get(run.test, 0) + 1
                break
        shutil.rmtree(self.cache.with_name(f"cache_of_fault_{self._faults}"), ignore_errors=True)
        return run

    @contextmanager
    def _fault(self, trial: Trial) -> Iterator[Path]:
        """Put a fault in place, and yield the folder of compiled kernels to use with it."""
        path = self.copy / trial.path
        original, stat = path.read_text(), path.stat()
        cache = self.cache
        # A fault in a kernel needs a cache of its own: Numba does not compile a caller again when a function or
        # constant in another file has changed.
        if "compiled\ndef " in trial.source or trial.path in KERNEL_CONSTANTS:
            cache = self.cache.with_name(f"cache_of_fault_{self._faults}")
            if not cache.exists():
                shutil.copytree(self.cache, cache, copy_function=os.link)
                self._forget_kernels(cache, path)
        try:
            path.write_text(trial.source)
            # Python and Numba take a file with the same time and size for the same file.
            os.utime(path, (stat.st_atime, int(stat.st_mtime) + self._faults))
            yield cache
        finally:
            path.write_text(original)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def prepare(self, tests: Tests) -> None:
        """Run tests without a fault, to compile the kernels and to measure the times."""
        key = _key(tests)
        if key in self.seconds:
            return
        run = self._run(tests, self.cache, {}, None)
        if run.result != "passed":
            raise SystemExit(f"{run.test} fails without a fault")
        self.seconds[key] = run.seconds
        self.times_file.write_text(json.dumps(self.seconds))

    def _run(self, tests: Tests, cache: Path, seconds: dict[str, float], noticed: dict[str, int] | None) -> Run:
        """Run tests in a child process."""
        report = self.copy.with_name("report.json")
        report.unlink(missing_ok=True)
        output = self.copy.with_name("output.txt")
        child = os.fork()
        if child == 0:
            probe = Probe(seconds, noticed or {}, report.with_suffix(".current"))
            self._run_here(tests, cache, probe, report, output)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            return Run("endless", report.with_suffix(".current").read_text(), {})
        if os.WIFSIGNALED(status):  # a fault may make a kernel write where it must not
            return Run("failed", f"signal {os.WTERMSIG(status)}", {})
        code = os.waitstatus_to_exitcode(status)
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:  # a file without examples
            return Run("passed", "", {})
        if code not in (0, 1, 2):
            raise SystemExit(f"{tests.arguments}: pytest ended with {code}\n{output.read_text()[-3000:]}")
        failed, measured = json.loads(report.read_text())
        return Run("failed" if code else "passed", failed, measured)

    def _run_here(self, tests: Tests, cache: Path, probe: Probe, report: Path, output: Path) -> None:
        """Run tests in this process, and end it."""
        code = 3
        try:
            signal.alarm(COLLECTING)
            stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
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
            arguments = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *shlex.split(tests.arguments)]
            code = int(pytest.main(arguments, plugins=[probe]))
            report.write_text(json.dumps([probe.failed, probe.measured]))
        finally:
            os._exit(code)

    def _forget_kernels(self, cache: Path, path: Path) -> None:
        """Remove the compiled kernels of a file and of all files that import it."""
        for file in self._importers.get(path, {path}):
            folder = cache / _CacheLocator.get_suitable_cache_subpath(str(file))  # type: ignore[no-untyped-call]
            for compiled in folder.glob(f"{file.stem}.*"):
                compiled.unlink()


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


def _importers(source: Path) -> dict[Path, set[Path]]:
    """Return, for each module under ``source``, itself and every module that imports it, directly or not."""
    modules = {}
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] != "__init__":
            modules[".".join(parts)] = path
    imported_by: dict[Path, set[Path]] = {path: set() for path in modules.values()}
    for path in modules.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name in modules:
                    imported_by[modules[name]].add(path)
    result = {}
    for path in modules.values():
        reached, new = {path}, [path]
        while new:
            fresh = imported_by[new.pop()] - reached
            reached |= fresh
            new.extend(fresh)
        result[path] = reached
    return result
