"""What is wrong, in the words of the command line: its options instead of Python's names, and what to write instead."""

from __future__ import annotations

import re
import sys

import click

from lenience.core.errors import InputError
from lenience.files.vocabulary import how_to_write

BELIEF = ("n", "s")  # what --prior gives in one word


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


def in_options(error: InputError, command: click.Command) -> InputError:
    """Return an error of the library that names the options of a command instead of Python's parameters."""
    several = command.commands.values() if isinstance(command, click.Group) else [command]
    options = [option for one in several for parameter in one.params for option in parameter.opts]
    known = {option.lstrip("-"): option for option in reversed(options) if option.startswith("-")}
    names = {field: known.get(field.replace("_", "-")) or known.get(_singular(field)) for field in error.fields}
    if error.field in BELIEF and names[error.field] is None and error.place is None and "prior" in known:
        return error.at(known["prior"])
    return error.with_fields({field: option for field, option in names.items() if option is not None})


def _singular(field: str) -> str:
    """A parameter may be named after all the values that an option gives one by one."""
    return field.replace("_", "-").removesuffix("s")
