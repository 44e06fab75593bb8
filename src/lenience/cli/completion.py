"""lenience completion: print the shell code that completes commands, options, their values and file names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from lenience.cli.options import json_option, print_json

SHELLS = ("bash", "zsh", "fish")
INSTRUCTION = "_LENIENCE_COMPLETE"  # the variable by which click's code asks for completions


@click.command(short_help="Print the shell code that completes commands and options.")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print the code with which a shell completes commands, options, known values (models, policies, worlds, roles) and
    file names. Bash must be version 4.4 or later.

    \b
    Example:
      lenience completion bash >> ~/.bashrc
      lenience completion zsh >> ~/.zshrc
      lenience completion fish > ~/.config/fish/completions/lenience.fish
    """
    from lenience.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    code = kind(cli, {}, "lenience", INSTRUCTION).source()
    if as_json:
        print_json({"shell": shell, "code": code})
    else:
        click.echo(code)
