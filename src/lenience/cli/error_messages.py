"""What is wrong, in the words of the command line: its options instead of Python's names, and what to write instead."""

from __future__ import annotations

import re
import sys

import click

from lenience.files.vocabulary import how_to_write


def of_usage(error: click.ClickException) -> str:
    """What click says of the words it was given, with what could be meant."""
    said = " ".join(error.format_message().split())
    wrong = re.search(r"'([^']*)' is not a valid (float|integer)", said)
    if wrong and (instead := how_to_write(wrong[1], wrong[2] == "integer")):
        return f"{said.rstrip('.')}. {instead}"
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return said
    command = error.ctx.command
    if isinstance(command, click.Group) and said.startswith("No such command"):
        return f"{said} There are {', '.join(command.list_commands(error.ctx))}."
    if isinstance(error, click.NoSuchOption) and re.fullmatch("-[^-]", error.option_name):
        known = {option for parameter in command.params for option in parameter.opts}
        typed = (f"-{word.partition('=')[0]}" for word in sys.argv if word.startswith(error.option_name))
        if meant := next((option for option in typed if option in known), None):
            return f"{said} Did you mean {meant}?"
    return said


def in_options(sentence: str, command: click.Command) -> str:
    """A sentence of the library that begins with a field, with the option of the command that the field is."""
    field = re.match(r"(\w+) must ", sentence)
    if field is None:
        return sentence
    several = command.commands.values() if isinstance(command, click.Group) else [command]
    options = [option for one in several for parameter in one.params for option in parameter.opts]
    name = field[1].replace("_", "-")
    option = next((option for option in options if option.startswith("-") and option.lstrip("-") in _forms(name)), None)
    return sentence if option is None else f"{option}{sentence[field.end(1) :]}"


def _forms(name: str) -> tuple[str, str]:
    """A field may be named after all the values that an option gives one by one."""
    return name, name.removesuffix("s")
