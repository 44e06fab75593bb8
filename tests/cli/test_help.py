"""What every command has, and what is loaded to say so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lenience.cli import COMMANDS

Run = Any
PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_an_example_and_json(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Example:" in out
    assert f"lenience {command}" in out
    assert "--json" in out


def test_help_lists_every_command(run: Run) -> None:
    _, out, _ = run("--help")
    listed = dict(re.findall(r"^  ([a-z-]+) {2,}(\S.*)$", out.split("Start here:")[1], re.MULTILINE))
    documented = re.findall(r"^## lenience ([a-z-]+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(documented)
    for command, about in listed.items():
        assert COMMANDS[command].startswith(about.rstrip(".").rstrip()), command


@pytest.mark.parametrize("code", ["import lenience", "import lenience.cli"])
def test_starting_loads_nothing_heavy(code: str) -> None:
    script = f"{code}; import sys; print([m for m in ('numba', 'scipy', 'matplotlib') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_loads_nothing_heavy_and_python_m_works() -> None:
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lenience", "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage:" in found.stdout
    for heavy in ("numba", "scipy", "matplotlib", "numpy"):
        assert f" {heavy}\n" not in found.stderr


def test_piped_tables_are_not_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from lenience.cli.options import console

    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width == 120
    monkeypatch.setenv("COLUMNS", "90")
    assert console().width == 90
