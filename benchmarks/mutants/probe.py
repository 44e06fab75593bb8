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
        How long each test takes without the fault, by its name. A test that is not in it may take any time.
    noticed
        How many faults of the same file each test has noticed: those that noticed many come first, then the fastest.
    path
        A file to write the name of the running test to, so that it is known when the process is ended.

    Notes
    -----
    A test that takes longer than it may ends the process by a signal, because a kernel that runs for ever cannot be
    interrupted in any other way.
    """

    def __init__(self, seconds: dict[str, float], noticed: dict[str, int], path: Path) -> None:
        self.seconds = seconds
        self.noticed = noticed
        self.path = path
        self.failed = ""
        self.measured: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the most promising tests first."""
        items.sort(key=lambda item: (-self.noticed.get(item.nodeid, 0), self.seconds.get(item.nodeid, 0.0)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Allow a test so many times the time that it takes without the fault."""
        self.path.write_text(item.nodeid)
        usual = self.seconds.get(item.nodeid)
        if usual is not None:
            signal.alarm(int(SLOWER * usual + COMPILING))
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time of a test, and whether it failed."""
        self.measured[report.nodeid] = self.measured.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.failed = f"{report.nodeid} (import)"
