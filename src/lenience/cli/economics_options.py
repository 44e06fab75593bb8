"""Options that say what each row of a file may gain and lose, or one break-even for all rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from lenience.cli.options import break_even, objective_options
from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.files.economics import Economics

Command = TypeVar("Command", bound=Callable[..., Any])
OPTIONS = (
    click.option(
        "--currency", default="", help="The currency to show amounts in, such as $ or EUR; with --gain or --amount."
    ),
    click.option("--funding-rate", help="The rate a year at which loans are funded, such as 4% (a column or a value)."),
    click.option(
        "--loss-given-default", help="The share of the amount that a default loses, such as 60%; by default all."
    ),
    click.option(
        "--term", help='The term of loans in years or with a unit, such as "36 months" (a column or a value).'
    ),
    click.option("--rate", help="The interest rate of loans a year, such as 12% or 0.12 (a column or a value)."),
    click.option("--amount", help="The amount lent, with --rate and --term (a column or a value)."),
    click.option("--loss", help="What a failure loses, in money; with --gain (a column or a value)."),
    click.option(
        "--gain", help="What a success gains, in money; with --loss, instead of --cost (a column or a value)."
    ),
    click.option("--cost", type=float, help="The break-even success rate, between 0 and 1, if it is the same for all."),
)


def economics_options(command: Command) -> Command:
    """Add the options for the break-even, of all rows or of each.

    The command gets three parameters: ``cost``, the break-even of all rows, or None; ``economics``, where to find what
    each row may gain and lose, or None; and ``money``, how to show values. Of the first two, one is None.
    """

    @functools.wraps(command)
    def run(*values: Any, gain: str | None, loss: str | None, currency: str, **options: Any) -> Any:
        cost = options.pop("cost")
        loan = {name: options.pop(name) for name in ("amount", "rate", "term", "loss_given_default", "funding_rate")}
        economics, money = None, Money()
        gained, lost = _number(gain), _number(loss)
        if all(value is None for value in loan.values()) and (gain, loss).count(None) == (gained, lost).count(None):
            cost, money = break_even(cost, gained, lost, currency, required=True)
        elif cost is not None:
            raise InputError.because(
                "Give either --cost, or --gain and --loss, or --amount, --rate and --term",
                ("--cost", "--gain", "--amount"),
                label="",
                code="conflicting_fields",
            )
        else:
            economics, money = Economics(gain=gain, loss=loss, **loan), Money(1.0, currency)
        return command(*values, cost=cost, economics=economics, money=money, **options)

    for option in OPTIONS:
        run = option(run)
    return cast("Command", run)


def objective_or_economics_options(command: Command) -> Command:
    """Add the options that describe the objective, with the break-even of all rows or of each."""
    return objective_options(command, economics_options)


def unit_of_rows(money: Money) -> dict[str, object]:
    """Return the unit of values for JSON if rows have their own gains and losses: values are in money already.

    Examples
    --------
    >>> unit_of_rows(Money(1, "$"))
    {'gain': None, 'loss': None, 'amount': 1.0, 'currency': '$'}
    """
    return {"gain": None, "loss": None, "amount": money.unit, "currency": money.currency}


def _number(text: str | None) -> float | None:
    """Return a plain number; None if the text is the name of a column or is missing."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
