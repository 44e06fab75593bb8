"""What the commands that start from past decisions share: their options, and the segments they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from lenience.belief import Belief
from lenience.cli.options import objective, prior_option
from lenience.errors import InputError

if TYPE_CHECKING:
    from lenience.history import History
    from lenience.model.protocol import Shrinkage
    from lenience.segments.segment import Segments

Command = TypeVar("Command", bound=Callable[..., Any])


def history_options(command: Command) -> Command:
    """The options that say where past decisions are and what their columns mean."""
    for option in (
        click.option("--model", type=click.Choice(("independent", "shared")), default="independent", show_default=True,
                     help="Where beliefs come from: a segment's own labels, or one prior fitted across segments too."),
        prior_option,
        click.option("--discount-rate", type=float, help="The yearly interest rate, with --arrivals."),
        click.option("--arrivals", type=float, help="Individuals a year in all; with --discount-rate."),
        click.option("--discount", type=float, help="The discount γ from one individual to the next, in [0, 1)."),
        click.option("--cost", type=float, help="The break-even success rate; with it, segments are decided too."),
        click.option("--strict", is_flag=True, help="Refuse to go on if any row cannot be used."),
        click.option("--failure", multiple=True, help="A value of the outcome that means failure; may be repeated."),
        click.option("--success", multiple=True, help="A value of the outcome that means success; may be repeated."),
        click.option("--half-life", type=float, help="Days after which a label counts half; needs --time."),
        click.option("--maturity", type=float, help="Days until an outcome is certain; younger ones are pending."),
        click.option("--as-of", help="The date of the count; by default the last date there is."),
        click.option("--connection", help="The URL of a database whose table SOURCE names."),
        click.option("--time", "time_column", help="The column of the decision's date."),
        click.option("--outcome", "outcome_column", required=True, help="The column of the outcome; missing: pending."),
        click.option("--accepted", "accepted_column", required=True, help="The column that says who was accepted."),
        click.option("--segment", "segment_columns", multiple=True, required=True, help="A column; may be repeated."),
        click.argument("source"),
    ):  # fmt: skip
        command = option(command)
    return command


class Past(NamedTuple):
    """Past decisions, the beliefs a model makes of them and, where a cost is given, the segments to decide."""

    history: History
    shrinkage: list[Shrinkage]
    segments: Segments | None


def read_past(
    source: str,
    segment_columns: tuple[str, ...],
    accepted_column: str,
    outcome_column: str,
    time_column: str | None,
    connection: str | None,
    as_of: str | None,
    maturity: float | None,
    half_life: float | None,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    strict: bool,
    cost: float | None,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    prior: Belief,
    model: str,
) -> Past:
    """Read past decisions as the options say."""
    from lenience.history import fit_history
    from lenience.model.independent import Independent
    from lenience.model.protocol import shrinkage
    from lenience.model.shared import Shared
    from lenience.segments.segment import Segments

    history = fit_history(
        source,
        list(segment_columns) if len(segment_columns) > 1 else segment_columns[0],
        accepted_column,
        outcome_column,
        time_column,
        connection=connection,
        as_of=as_of,
        maturity=maturity,
        half_life=half_life,
        success=success or None,
        failure=failure or None,
        strict=strict,
    )
    rows = history.segments
    if not rows:
        raise InputError(f"source must have rows that can be used, and {source!r} has none: {history.describe()}")
    cells = Shared(len(rows)) if model == "shared" else Independent(len(rows), prior)
    shrunk = shrinkage(cells, [row.n for row in rows], [row.s for row in rows], [row.segment for row in rows])
    segments = None
    if cost is not None:
        problem = objective(cost, discount, arrivals, discount_rate, None)
        beliefs = {row.cell: row.belief for row in shrunk}
        shares = history.shares()
        segments = Segments.of(shares, problem, {name: beliefs[name] for name in shares})  # type: ignore[arg-type]
    elif discount is not None or arrivals is not None or discount_rate is not None:
        raise InputError("--discount, --arrivals and --discount-rate go with --cost")
    return Past(history, shrunk, segments)
