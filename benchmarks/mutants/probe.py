"""A pytest plugin for one run of the tests against a fault."""

from __future__ import annotations

import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SLOWER = 10.0  # a test that takes this many times as long as without the fault is taken to run for ever
COMPILING = 60.0  # seconds more, because a fault in a kernel makes a test compile it


class Probe:
    """Run the most promising tests first, stop a test that runs for ever, and note which test fails.

    Parameters
    ----------
    seconds
        The tests to run, and how long each takes without the fault. None runs all tests and allows them any time.
    noticed
        How many faults of the same file each test has noticed: those that noticed many come first, then the fastest.
    path
        A file to write the name of the running test to, so that it is known when the process is ended.
    most
        Seconds that a test may take whose time without the fault is not known. None allows any time.

    Notes
    -----
    A test that takes longer than it may ends the process by a signal, because a kernel that runs for ever cannot be
    interrupted in any other way.
    """

    def __init__(
        self, seconds: dict[str, float] | None, noticed: dict[str, int], path: Path, most: int | None = None
    ) -> None:
        self.seconds = seconds
        self.most = most
        self.noticed = noticed
        self.path = path
        self.failed = ""
        self.seconds_taken: dict[str, float] = {}
        self._failures: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the tests that are wanted, the most promising ones first."""
        wanted = self.seconds
        if wanted is not None:
            items[:] = [item for item in items if item.nodeid in wanted]
            items.sort(key=lambda item: (-self.noticed.get(item.nodeid, 0), wanted[item.nodeid]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Allow a test so many times the time that it takes without the fault."""
        self.path.write_text(item.nodeid)
        if self.seconds is not None:
            signal.alarm(int(SLOWER * self.seconds[item.nodeid] + COMPILING))
        elif self.most is not None:
            signal.alarm(self.most)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time of a test, and whether it failed."""
        self.seconds_taken[report.nodeid] = self.seconds_taken.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed = report.nodeid
            self._failures.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.failed = f"{report.nodeid} (import)"

    @property
    def measured(self) -> dict[str, float]:
        """How long each test took that did not fail."""
        return {test: seconds for test, seconds in self.seconds_taken.items() if test not in self._failures}
