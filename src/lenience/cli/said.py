"""What is wrong, in the words of the command line: its options instead of Python's names, and what to write instead."""

from __future__ import annotations

import re
import sys

import click

THOUSANDS = r"[-+]?[1-9]\d{0,2}(,\d{3})+"  # 50,000: a number with its thousands apart, or one with a decimal comma


def of_usage(error: click.ClickException) -> str:
    """What click says of the words it was given, with what could be meant."""
    said = " ".join(error.format_message().split())
    wrong = re.search(r"'([^']*)' is not a valid (float|integer)", said)
    if wrong and (instead := written(wrong[1], wrong[2] == "integer")):
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


def written(text: str, whole: bool = False) -> str:
    """How to write a number that has commas, spaces or a per cent sign; empty where it is none.

    >>> written("0,8"), written("80%"), written("1.234,5")
    ('Write 0.8.', 'Write 0.8.', 'Write 1234.5.')
    >>> written("50,000")
    'Leave the comma out (50000), or write a point if it is a decimal comma (50.000).'
    >>> written("1,250,000"), written("50,000", whole=True), written("much")
    ('Leave the commas out (1250000).', 'Leave the comma out (50000).', '')
    """
    if percents := re.fullmatch(r"([-+]?\d*[.,]?\d+) ?%", text):
        return f"Write {float(percents[1].replace(',', '.')) / 100:.12g}."
    if re.fullmatch(THOUSANDS, text):
        commas = text.count(",")
        said = f"Leave the comma{'s' if commas > 1 else ''} out ({text.replace(',', '')})"
        decimal = "" if whole or commas > 1 else f", or write a point if it is a decimal comma ({_point(text)})"
        return f"{said}{decimal}."
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}( \d{3})+", text):
        return f"Write {text.replace(' ', '')}."
    if re.fullmatch(r"[-+]?\d+(\.\d{3})*,\d+", text) and not whole:
        return f"Write {_point(text)}."
    if re.fullmatch(r"[-+]?\d+(,\d{3})+\.\d+", text):
        return f"Write {text.replace(',', '')}."
    return ""


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


def _point(text: str) -> str:
    return text.replace(".", "").replace(",", ".")
