"""Every command and option is in the documentation."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from lenience.cli import COMMANDS, cli

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command_and_options_are_documented(name: str) -> None:
    assert f"\n## lenience {name}\n" in PAGE
    section = PAGE.split(f"\n## lenience {name}\n")[1].split("\n## ")[0]
    shared = PAGE.split("\n## ")[0]
    with click.Context(cli) as context:
        command = cli.get_command(context, name)
    assert command is not None
    for parameter in command.params:
        for option in parameter.opts:
            if option.startswith("--"):
                assert option in section or option in shared, f"{name} {option}"
