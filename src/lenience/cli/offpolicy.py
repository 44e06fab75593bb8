"""lenience offpolicy: estimate what a proposed policy would have earned, from a log of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from lenience.cli.economics import economics_options, unit_of_rows
from lenience.cli.file_options import outcome_words, sheet_option
from lenience.cli.monitored import check_protected, decide_by_protected_option, monitor_option, print_decisions
from lenience.cli.options import FILE, console, json_option, print_json, table, unit_of
from lenience.core.formatting import describe_unit
from lenience.core.money import Money

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.core.offer_rows import OfferRows
    from lenience.files.economics import Economics


@click.command(short_help="Estimate what a proposed policy would have earned, from a log with propensities.")
@click.argument("log", type=FILE)
@economics_options(required=True)
@click.option(
    "--accepted", default="accepted", show_default=True, help="The column that says who was accepted (1 or 0)."
)
@click.option("--propensity", default="propensity", show_default=True, help="The column of acceptance probabilities.")
@click.option("--outcome", default="outcome", show_default=True, help="The column of outcomes; empty for the rejected.")
@outcome_words
@sheet_option
@click.option("--proposed", help="The column of the proposed policy's acceptance probabilities (or 0 and 1).")
@click.option("--score", help="Instead of --proposed: a column of scores, with --at-least.")
@click.option("--at-least", type=float, help="The proposal accepts everyone with at least this score.")
@click.option(
    "--without-score",
    type=click.Choice(["reject", "accept", "leave-out"]),
    help="What the proposal does with rows that have no score; leave-out uses only the other rows.",
)
@click.option(
    "--offer-propensity",
    "offer_propensities",
    multiple=True,
    help="For logs that offered a choice: SHARE=COLUMN, the probability of accepting with this share of the row's own "
    "amount, such as 1=p_full and 0.1=p_tenth; repeat it for every share. Instead of --propensity.",
)
@click.option("--made", help="With --offer-propensity: the column of the share that was offered.")
@click.option(
    "--proposed-offer", help="With --offer-propensity: the share that the proposal offers: a column or a number."
)
@click.option("--features", help="Columns for the doubly robust estimate, separated by commas.")
@monitor_option("by which fairness is measured")
@decide_by_protected_option
@json_option
def offpolicy(
    log: str,
    cost: float | None,
    economics: Economics | None,
    money: Money,
    accepted: str,
    propensity: str,
    outcome: str,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    pending: tuple[str, ...],
    sheet: str | None,
    proposed: str | None,
    score: str | None,
    at_least: float | None,
    without_score: str | None,
    offer_propensities: tuple[str, ...],
    made: str | None,
    proposed_offer: str | None,
    features: str | None,
    monitor: tuple[str, ...],
    decide_by_protected: bool,
    as_json: bool,
) -> None:
    """Estimate what a proposal would have earned per arrival, from LOG, a CSV, Excel or Parquet file of
    decisions. An accepted row whose outcome is not known yet is no failure: name such values with --pending.

    With columns of gains and losses, or with the terms of loans, every row has its own amount at stake and break-even.

    \b
    Example:
      lenience offpolicy decisions.csv --cost 0.8 --score score --at-least 0.7 --features amount --monitor sex
      lenience offpolicy decisions.csv --gain gain --loss loss --currency $ --score score --at-least 0.7
      lenience offpolicy decisions.csv --gain gain --loss loss --score score --at-least 0.7 \
        --offer-propensity 1=p_full --offer-propensity 0.1=p_tenth --made share --proposed-offer 0.1
    """
    import numpy as np

    from lenience.analysis.monitored_replay import monitor_log
    from lenience.analysis.off_policy import off_policy
    from lenience.core.errors import InputError
    from lenience.core.validation import real
    from lenience.files.columns import read_columns
    from lenience.files.outcome_words import OutcomeWords, known_or_pending
    from lenience.files.table import coded, column_of, numbers_of

    if (proposed is None) == (score is None or at_least is None):
        raise InputError.because(
            "Give either --proposed, or --score with --at-least", ("--proposed", "--score"), label="", code="missing"
        )
    if without_score is not None and score is None:
        raise InputError.because(
            "needs --score", ("--without-score", "--score"), label="--without-score", code="missing"
        )
    check_protected("--score", [] if score is None else [score], monitor, decide_by_protected)
    notes: list[str] = []
    columns = read_columns(log, notes, sheet)
    for message in notes:
        click.echo(message, err=True)
    if score is not None and at_least is not None:
        at_least = real("at_least", at_least)
        scores = numbers_of(columns, score)
        unscored = np.isnan(scores)
        chances = np.where(unscored, float(without_score == "accept"), scores >= at_least)
        note = _describe_unscored(score, int(unscored.sum()), len(scores), without_score)
        if not unscored.all() and not (scores >= at_least).any():
            note += f" No {score} is {at_least:g} or more: they go from {np.nanmin(scores):g} to {np.nanmax(scores):g}."
    else:
        chances, unscored, note = numbers_of(columns, str(proposed)), None, ""
    X = None if features is None else coded(columns, [name.strip() for name in features.split(",")])
    used = ~unscored if unscored is not None and without_score == "leave-out" else np.ones(len(chances), dtype=np.bool_)
    unit_notes: list[str] = []
    stakes = None if economics is None else economics.read(columns, used, unit_notes)
    for message in unit_notes:
        click.echo(message, err=True)
    choice = _choice(columns, offer_propensities, made, proposed_offer)
    if choice is not None and stakes is None:
        raise InputError.because(
            "needs --gain and --loss, or the terms of loans",
            "--offer-propensity",
            hint="Shares are of what each row has at stake.",
            code="missing",
        )
    result = off_policy(
        chances[used],
        numbers_of(columns, accepted)[used],
        numbers_of(columns, propensity)[used] if choice is None else choice.propensity[used],
        np.array(column_of(columns, outcome), dtype=object)[used],
        cost,
        None if X is None else X[used],
        offers=None
        if stakes is None
        else (stakes.amount[used], stakes.cost[used])
        if choice is None
        else choice.menus(stakes.amount[used], stakes.cost[used]),
        made=None if choice is None else choice.made[used],
        chosen=None if choice is None else choice.proposed[used],
        success=success,
        failure=failure,
        pending=pending,
    )
    by_group = []
    if monitor:
        taken = numbers_of(columns, accepted)[used] > 0
        labels = np.array(column_of(columns, outcome), dtype=object)[used]
        known = np.full(len(labels), np.nan)
        words = OutcomeWords.of(success, failure, pending)
        known[taken] = known_or_pending(labels[taken], int(taken.sum()), words)
        by_group = monitor_log(
            chances[used],
            taken,
            numbers_of(columns, propensity)[used] if choice is None else choice.propensity[used].sum(axis=1),
            list(known),
            {name: list(np.array(column_of(columns, name), dtype=object)[used]) for name in monitor},
        )
    if as_json:
        without = None if unscored is None else int(unscored.sum())
        print_json(
            {
                **msgspec.to_builtins(result),
                "unit": unit_of(cost, money) if stakes is None else unit_of_rows(money),
                "without_score": without,
                "monitored": msgspec.to_builtins(by_group),
                "statement": f"{result.describe(money)} {note}".strip(),
            }
        )
        return
    at_stake = "" if stakes is None else f"{money.format(float(stakes.amount[used].mean()))} at stake on average"
    about = at_stake if cost is None else f"c = {cost:g}"
    grid = table(f"Reward per arrival, {result.arrivals:,} arrivals, {about}")
    grid.add_column("")
    grid.add_column("estimate", justify="right")
    grid.add_column("95% interval", justify="right")
    for name, estimate in (
        ("the policy that was used", result.logged),
        ("the proposal, inverse propensity", result.inverse_propensity),
        ("the proposal, doubly robust", result.doubly_robust),
        ("the proposal's gain", result.gain),
    ):
        if estimate is not None:
            grid.add_row(
                name,
                result.format_reward(estimate.value, money),
                f"{result.format_reward(estimate.lower, money)} … {result.format_reward(estimate.upper, money)}",
            )
    out = console()
    out.print(grid)
    print_decisions(by_group)
    out.print(result.describe(money))
    if cost is not None:
        out.print(describe_unit(cost, money))
    if note:
        out.print(note.strip())


class _Choice(NamedTuple):
    """The shares of a row's amount that could be offered, their probabilities, and the positions of two of them."""

    shares: list[float]
    propensity: NDArray[np.float64]
    made: NDArray[np.float64]
    proposed: NDArray[np.float64]

    def menus(self, amount: NDArray[np.float64], cost: NDArray[np.float64]) -> OfferRows:
        """Return the offers of each row."""
        import numpy as np

        from lenience.core.offer_rows import OfferRows

        count = len(self.shares)
        return OfferRows(
            np.outer(amount, self.shares).ravel(), np.repeat(cost, count), np.arange(len(amount) + 1) * count
        )


def _choice(
    columns: Mapping[str, Any], given: tuple[str, ...], made: str | None, proposed: str | None
) -> _Choice | None:
    """Read what could be offered, what was, and what the proposal would offer; None if the log offered no choice."""
    import numpy as np

    from lenience.core.errors import InputError
    from lenience.core.validation import real
    from lenience.files.table import numbers_of

    if not given:
        for option, value in (("--made", made), ("--proposed-offer", proposed)):
            if value is not None:
                raise InputError.because(
                    "needs --offer-propensity", (option, "--offer-propensity"), label=option, code="missing"
                )
        return None
    if made is None or proposed is None:
        missing = "--made" if made is None else "--proposed-offer"
        raise InputError.because("must be given with --offer-propensity", missing, code="missing")
    shares: dict[float, str] = {}
    for text in given:
        share, equals, column = text.partition("=")
        try:
            shares[real("--offer-propensity", float(share), above=0)] = column.strip()
        except ValueError:
            equals = ""
        if not equals or not column.strip():
            raise InputError("--offer-propensity", text, "a share and a column, such as 0.1=p_tenth")
    listed = list(shares)

    def positions(option: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        place = np.full(len(values), np.nan)
        for position, share in enumerate(listed):
            place[np.isclose(values, share, rtol=1e-9)] = position
        wrong = np.flatnonzero(np.isnan(place) & ~np.isnan(values))
        if wrong.size:
            known = ", ".join(f"{share:g}" for share in listed)
            raise InputError(option, float(values[wrong[0]]), f"one of {known}", place=f"row {int(wrong[0]) + 1:,}")
        return place

    try:
        offered = np.full(len(next(iter(columns.values()))), float(proposed))
    except ValueError:
        offered = numbers_of(columns, proposed)
    propensity = np.column_stack([numbers_of(columns, column) for column in shares.values()])
    return _Choice(
        listed, propensity, positions("--made", numbers_of(columns, made)), positions("--proposed-offer", offered)
    )


def _describe_unscored(score: str, missing: int, rows: int, meaning: str | None) -> str:
    """Describe what is done with rows that have no score; raise InputError if the user did not choose."""
    from lenience.core.errors import InputError
    from lenience.core.formatting import percent

    if not missing:
        return ""
    rows_without = f"{missing:,} of {rows:,} rows ({percent(missing / rows)})"
    if meaning is None:
        raise InputError.because(
            f"must be known in every row; it is missing in {rows_without}",
            "--score",
            label=f"score {score!r}",
            value=missing,
            hint=(
                "Choose what the proposal does with these rows: --without-score reject, accept, or leave-out to use "
                "only the other rows."
            ),
            code="missing",
        )
    if meaning == "leave-out":
        return f"Without {score} and left out: {rows_without}. The estimate is for arrivals that have it."
    return f"Without {score} and {meaning}ed by the proposal: {rows_without}."
