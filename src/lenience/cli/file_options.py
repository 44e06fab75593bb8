"""Options of the commands that read files: what outcomes mean, how dates are written, which sheet to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lenience.files.date_formats import ORDERS

Command = TypeVar("Command", bound=Callable[..., Any])

dates_option = click.option(
    "--dates",
    type=click.Choice(ORDERS),
    help="The order of the parts in dates such as 06/01/2011; needed if no value of the column shows it.",
)
sheet_option = click.option("--sheet", help="The sheet of an Excel file; by default the first that is not empty.")


def outcome_words(command: Command) -> Command:
    """Add --success, --failure and --pending: values of the outcome, in addition to the usual words."""
    for option in (
        click.option(
            "--pending", multiple=True, help="A value of the outcome that means not known yet; may be repeated."
        ),
        click.option("--failure", multiple=True, help="A value of the outcome that means failure; may be repeated."),
        click.option("--success", multiple=True, help="A value of the outcome that means success; may be repeated."),
    ):
        command = option(command)
    return command
