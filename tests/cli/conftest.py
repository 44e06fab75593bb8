"""The command line, called as from a shell."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from lenience.cli import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Calls a command: its exit code, what it printed, and what it said on stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lenience", *words])
        monkeypatch.setenv("COLUMNS", "160")
        with pytest.raises(SystemExit) as exit_:
            main()
        output = capsys.readouterr()
        return int(exit_.value.code or 0), output.out, output.err

    return call
