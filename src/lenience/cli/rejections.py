"""lenience rejections: estimate how many of the rejected would have succeeded, and whether rejecting them was right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.economics import economics_options, unit_of_rows
from lenience.cli.file_options import outcome_words, sheet_option
from lenience.cli.options import FILE, console, json_option, print_json, prior_option, table, unit_of
from lenience.core.belief import Belief
from lenience.core.formatting import describe_unit, percent
from lenience.core.money import Money

if TYPE_CHECKING:
    from lenience.analysis.rejection_results import RejectedSegment
    from lenience.files.economics import Economics

VERDICTS = {"right": "right", "wrong": "wrong", "open": "not clear", "unknown": "no evidence"}


@click.command(
    short_help="Estimate how many of the rejected would have succeeded, and whether rejecting them was right."
)
@click.argument("log", type=FILE)
@economics_options(required=True)
@click.option(
    "--accepted", default="accepted", show_default=True, help="The column that says who was accepted (1 or 0)."
)
@click.option("--outcome", default="outcome", show_default=True, help="The column of outcomes; empty for the rejected.")
@click.option("--propensity", help="The column of acceptance probabilities. Those between 0 and 1 are random.")
@click.option("--segment", help="The column of segments.")
@click.option(
    "--alike",
    is_flag=True,
    help="Assume that applicants of a segment are alike, so that all its outcomes count; otherwise only random "
    "acceptances do.",
)
@prior_option
@click.option("--by-people", help="The column that says whether a person decided (1 or 0).")
@click.option("--days", type=float, help="The length of the log in days, to say how long random acceptance takes.")
@click.option("--confidence", type=float, default=0.9, show_default=True, help="The probability of each interval.")
@outcome_words
@sheet_option
@json_option
def rejections(
    log: str,
    cost: float | None,
    economics: Economics | None,
    money: Money,
    accepted: str,
    outcome: str,
    propensity: str | None,
    segment: str | None,
    alike: bool,
    prior: Belief,
    by_people: str | None,
    days: float | None,
    confidence: float,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    pending: tuple[str, ...],
    sheet: str | None,
    as_json: bool,
) -> None:
    """Estimate from LOG, a CSV, Excel or Parquet file of decisions, how many of the rejected would have succeeded,
    with an interval, and whether rejecting them was right.

    Outcomes of rejected applicants are never seen. The log tells about them if some were accepted at random with a
    known probability (--propensity), or if the applicants of a segment are alike (--alike).

    \b
    Example:
      lenience rejections decisions.csv --cost 0.75 --propensity propensity --segment band --days 365
      lenience rejections decisions.csv --gain gain --loss loss --currency $ --segment band --alike
    """
    import numpy as np

    from lenience.analysis.rejection_totals import compare_with_random, rejected_outcomes
    from lenience.core.errors import InputError
    from lenience.files.columns import read_columns
    from lenience.files.table import column_of, numbers_of

    if propensity is None and not alike:
        raise InputError.because(
            "Give --propensity, or --alike if accepted and rejected applicants of a segment differ only by chance",
            ("--propensity", "--alike"),
            label="",
            code="missing",
        )
    notes: list[str] = []
    columns = read_columns(log, notes, sheet)
    taken = numbers_of(columns, accepted)
    stakes = None if economics is None else economics.read(columns, np.ones(len(taken), dtype=np.bool_), notes)
    for message in notes:
        click.echo(message, err=True)
    result = rejected_outcomes(
        taken,
        np.array(column_of(columns, outcome), dtype=object),
        cost,
        propensity=None if propensity is None else numbers_of(columns, propensity),
        segments=None if segment is None else [str(name) for name in column_of(columns, segment)],
        offers=None if stakes is None else (stakes.amount, stakes.cost),
        alike=alike,
        prior=prior,
        by_people=None if by_people is None else numbers_of(columns, by_people),
        days=days,
        confidence=confidence,
        success=success,
        failure=failure,
        pending=pending,
    )
    if as_json:
        unit = unit_of(cost, money) if stakes is None else unit_of_rows(money)
        print_json({**msgspec.to_builtins(result), "unit": unit, "statement": result.summary(money)})
        return
    out = console()
    grid = table("How good are the rejections?")
    for heading in ("segment", "rejected", "would have succeeded", "break-even", "rejecting them", "saved"):
        grid.add_column(heading, justify="left" if heading in ("segment", "rejecting them") else "right")
    for one in result.segments:
        if one.break_even is not None:
            grid.add_row(*_cells(one, one.break_even, money))
    out.print(grid)
    out.print(result.summary(money))
    for caution in result.cautions:
        out.print(caution)
    if result.total is not None:
        out.print(compare_with_random(result, money))
    out.print(f"Intervals hold with probability {percent(result.confidence)}.")
    if cost is not None:
        out.print(describe_unit(cost, money))


def _cells(one: RejectedSegment, break_even: float, money: Money) -> list[str]:
    """Return a row of the table."""
    from lenience.analysis.rejection_results import of_hundred

    known = one.verdict != "unknown"
    ends = one.profit_interval
    return [
        one.segment,
        f"{one.rejected:,}",
        f"{of_hundred(one.interval)} of 100" if known else "?",
        percent(break_even),
        VERDICTS[one.verdict],
        f"{money.format(-ends.upper)} … {money.format(-ends.lower)}" if known else "?",
    ]
