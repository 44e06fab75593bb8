"""Which functions of the library each test calls: only a test that calls a faulty function can notice its fault."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher


class CallRecorder:
    """A pytest plugin that notes the functions that each test calls, as "path function".

    Parameters
    ----------
    root
        The folder of the project. Only functions in its ``src`` are noted.

    Notes
    -----
    A compiled kernel cannot be traced. So the call of a kernel counts as a call of every kernel that it names, directly
    or not. What a fixture calls counts for every test that uses it. Results that functions remember are forgotten
    before each test, because a test that gets a remembered result depends on the function as well.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = str(root / "src")
        self.calls: dict[str, list[str]] = {}
        self._by_fixture: dict[object, set[str]] = {}
        self._current: set[str] = set()
        self._seen: set[int] = set()
        self._kernels: dict[int, set[str]] = {}

    def pytest_sessionstart(self) -> None:
        """Begin to note calls."""
        recorder, call_kernel = self, CPUDispatcher.__call__

        def call(kernel: Dispatcher, *arguments: object, **options: object) -> object:
            if id(kernel) not in recorder._kernels:
                recorder._kernels[id(kernel)] = {recorder._name(k.py_func.__code__) for k in _reached(kernel)}
            recorder._current |= recorder._kernels[id(kernel)]
            return call_kernel(kernel, *arguments, **options)

        setattr(CPUDispatcher, "__call__", call)  # noqa: B010  (a method)
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Keep the calls of a fixture that several tests share."""
        if fixturedef.scope == "function":
            return (yield)
        with self._recording() as calls:
            try:
                return (yield)
            finally:
                self._by_fixture[fixturedef] = calls

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note the calls of a test."""
        _forget_results(self.root)
        sys.settrace(self._trace)
        with self._recording() as calls:
            try:
                return (yield)
            finally:
                used = getattr(item, "_fixtureinfo", None)
                for definitions in used.name2fixturedefs.values() if used else ():
                    for definition in definitions:
                        calls |= self._by_fixture.get(definition, set())
                self.calls[item.nodeid] = sorted(calls)

    @contextmanager
    def _recording(self) -> Iterator[set[str]]:
        before, seen = self._current, self._seen
        self._current, self._seen = set(), set()
        try:
            yield self._current
        finally:
            before |= self._current
            self._current, self._seen = before, seen

    def _trace(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if id(code) not in self._seen:
            self._seen.add(id(code))
            if code.co_filename.startswith(self.source):
                self._current.add(self._name(code))

    def _name(self, code: CodeType) -> str:
        path = Path(code.co_filename)
        place = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        return f"{place} {code.co_qualname.replace('<locals>.', '')}"


def _reached(kernel: Dispatcher) -> list[Dispatcher]:
    """Return a kernel and all kernels that it names, directly or not."""
    reached = [kernel]
    for one in reached:
        variables = one.py_func.__globals__
        for name in one.py_func.__code__.co_names:
            other = variables.get(name)
            if isinstance(other, Dispatcher) and not any(other is known for known in reached):
                reached.append(other)
    return reached


def _forget_results(root: Path) -> None:
    """Empty the caches of all functions of the project and of its tests."""
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", "") or "").startswith(str(root)):
            for value in list(vars(module).values()):
                forget = getattr(value, "cache_clear", None)
                if callable(forget):
                    forget()
