"""Options that say what each row of a file may gain and lose, instead of one break-even for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lenience.core.errors import InputError
from lenience.files.economics import Economics

Command = TypeVar("Command", bound=Callable[..., Any])
INSTEAD = "--gain and --loss, or --amount, --rate and --term"


def economics_options(command: Command) -> Command:
    """Add the options; :func:`read_economics` reads them. Each takes a column or one value for all rows."""
    for option in (
        click.option("--currency", default="", help="The currency to print amounts with, such as $ or EUR."),
        click.option(
            "--funding-rate", help="The rate a year at which loans are funded, such as 4% (a column or a value)."
        ),
        click.option(
            "--loss-given-default", help="The share of the amount that a default loses, such as 60%; by default all."
        ),
        click.option(
            "--term", help='The term of loans in years or with a unit, such as "36 months" (column or value).'
        ),
        click.option("--rate", help="The interest rate of loans a year, such as 12% or 0.12 (a column or a value)."),
        click.option("--amount", help="The amount lent, with --rate and --term (a column or a value)."),
        click.option("--loss", help="What a failure loses, with --gain (a column or a value)."),
        click.option("--gain", help="What a success earns, with --loss, instead of --cost (a column or a value)."),
    ):
        command = option(command)
    return command


def read_economics(
    cost: float | None,
    gain: str | None,
    loss: str | None,
    amount: str | None,
    rate: str | None,
    term: str | None,
    loss_given_default: str | None,
    funding_rate: str | None,
) -> Economics | None:
    """Return where to find gains and losses, or None if there is one cost for all rows. One of both is needed."""
    economics = Economics.from_options(
        gain=gain,
        loss=loss,
        amount=amount,
        rate=rate,
        term=term,
        loss_given_default=loss_given_default,
        funding_rate=funding_rate,
    )
    if (cost is None) == (economics is None):
        raise InputError.because(
            f"Give either --cost, or {INSTEAD}{', not both' if economics else ''}",
            ("--cost", "--gain", "--loss", "--amount", "--rate", "--term"),
            label="",
            code="conflicting_fields" if economics else "missing",
        )
    return economics
