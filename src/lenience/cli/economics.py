"""Options for what each past applicant may gain and lose: one break-even for all, or columns of the file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import click

from lenience.cli.options import Command, break_even
from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.history.economics import Economics, parse_number

LOAN = ("amount", "rate", "term", "loss_given_default", "funding_rate")
UNITS = ("term_unit", "rate_unit")


def economics_options(required: bool) -> Callable[[Command], Command]:
    """Return a decorator that adds the options for the break-even, or for the gain and the loss of each row.

    The command gets three parameters: ``cost``, the break-even of all rows, ``economics``, what each row may gain and
    lose, of which one at most is given, and ``money``, how to show values.
    """

    def add_options(command: Command) -> Command:
        @functools.wraps(command)
        def run(*values: Any, cost: float | None, currency: str, **options: Any) -> Any:
            gain, loss = options.pop("gain"), options.pop("loss")
            loan = {name: options.pop(name) for name in (*LOAN, *UNITS)}
            cost, money, economics = _economics(cost, gain, loss, currency, loan, required)
            return command(*values, cost=cost, money=money, economics=economics, **options)

        for option in (
            click.option("--currency", default="", help="The currency to show amounts in, such as $ or EUR."),
            click.option(
                "--rate-unit",
                type=click.Choice(["fraction", "percent"]),
                help="What numbers without a percent sign are in the columns of rates: 0.12, or 12 for 12%.",
            ),
            click.option(
                "--term-unit", type=click.Choice(["years", "months"]), help="The unit of terms without a unit."
            ),
            click.option("--funding-rate", help="The yearly rate at which loans are funded: a column, 0.03 or 3%."),
            click.option(
                "--loss-given-default",
                help="The share of the amount that a default loses: a column, 0.6 or 60%; by default all.",
            ),
            click.option("--term", help="The term: a column, years such as 3, or a text such as '36 months'."),
            click.option("--rate", help="The yearly interest rate of each loan: a column, 0.12 or 12%."),
            click.option(
                "--amount", help="The amount lent: a column or a number. With --rate and --term, instead of --gain."
            ),
            click.option("--loss", help="What a failure loses: a number, or the column that holds it; with --gain."),
            click.option(
                "--gain",
                help="What a success gains: a number, or the column that holds it. With --loss, instead of --cost.",
            ),
            click.option(
                "--cost", type=float, help="The break-even success rate, between 0 and 1; or --gain and --loss."
            ),
        ):
            run = option(run)
        return cast("Command", run)

    return add_options


def _economics(
    cost: float | None, gain: str | None, loss: str | None, currency: str, loan: dict[str, Any], required: bool
) -> tuple[float | None, Money, Economics | None]:
    """Return the break-even of all rows, how to show values, and what each row may gain and lose."""
    numbers = [None if text is None else parse_number("gain", text) for text in (gain, loss)]
    per_row = any(loan[name] is not None for name in LOAN) or any(
        text is not None and number is None for text, number in zip((gain, loss), numbers, strict=True)
    )
    if not per_row:
        for option in UNITS:
            if loan[option] is not None:
                raise InputError.because("needs --amount, --rate and --term", option, code="missing")
        return *break_even(cost, numbers[0], numbers[1], currency, required), None
    if cost is not None:
        raise InputError.because(
            "Give either --cost, or what each row may gain and lose",
            ("--cost", *(f"--{name.replace('_', '-')}" for name in LOAN if loan[name] is not None)),
            label="",
            code="conflicting_fields",
        )
    economics = Economics(gain, loss, **loan, currency=currency)
    economics.check()
    return None, Money(1.0, currency), economics
