"""Error messages of the command line: they name options instead of Python parameters, and say what to type instead."""

from __future__ import annotations

import re
import sys

import click

from lenience.core.errors import InputError
from lenience.files.vocabulary import how_to_write

BELIEF = ("n", "s")  # the two fields that --prior gives as one value


def usage_message(error: click.ClickException) -> str:
    """Return click's message about invalid arguments, with a suggestion."""
    message = " ".join(error.format_message().split())
    invalid = re.search(r"'([^']*)' is not a valid (float|integer)", message)
    if invalid and (instead := how_to_write(invalid[1], invalid[2] == "integer")):
        return f"{message.rstrip('.')}. {instead}"
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    command = error.ctx.command
    if isinstance(command, click.Group) and message.startswith("No such command"):
        return f"{message} The commands are {', '.join(command.list_commands(error.ctx))}."
    if isinstance(error, click.NoSuchOption) and re.fullmatch("-[^-]", error.option_name):
        known = {option for parameter in command.params for option in parameter.opts}
        typed = (f"-{word.partition('=')[0]}" for word in sys.argv if word.startswith(error.option_name))
        if intended := next((option for option in typed if option in known), None):
            return f"{message} Did you mean {intended}?"
    return message


def with_option_names(error: InputError, command: click.Command) -> InputError:
    """Return an error of the library that names the options of a command instead of Python's parameters."""
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    options = [option for each in commands for parameter in each.params for option in parameter.opts]
    known = {option.lstrip("-"): option for option in reversed(options) if option.startswith("-")}
    names = {field: known.get(field.replace("_", "-")) or known.get(_singular(field)) for field in error.fields}
    if error.field in BELIEF and names[error.field] is None and error.place is None and "prior" in known:
        return error.at(known["prior"])
    return error.with_fields({field: option for field, option in names.items() if option is not None})


def _singular(field: str) -> str:
    """Return a field in the singular: a parameter may hold all values of an option that is given several times."""
    return field.replace("_", "-").removesuffix("s")
