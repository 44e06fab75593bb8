"""lenience offpolicy: what a proposed policy would have earned, from a log of decisions."""

from __future__ import annotations

import click
import msgspec

from lenience.cli.options import FILE, console, cost_option, json_option, print_json, table


@click.command(short_help="Estimate what a proposed policy would have earned, from a log with propensities.")
@click.argument("log", type=FILE)
@cost_option
@click.option(
    "--accepted", default="accepted", show_default=True, help="The column that says who was accepted (1 or 0)."
)
@click.option("--propensity", default="propensity", show_default=True, help="The column of acceptance probabilities.")
@click.option("--outcome", default="outcome", show_default=True, help="The column of outcomes; empty for the rejected.")
@click.option("--proposed", help="The column of the proposed policy's acceptance probabilities (or 0 and 1).")
@click.option("--score", help="Instead: a column of scores, with --at-least.")
@click.option("--at-least", type=float, help="The proposal accepts whoever has at least this score.")
@click.option(
    "--without-score",
    type=click.Choice(["reject", "accept", "leave-out"]),
    help="What the proposal does with rows that have no score; leave-out: estimate it on the others alone.",
)
@click.option("--features", help="Columns for the doubly robust estimate, separated by commas.")
@json_option
def offpolicy(
    log: str,
    cost: float,
    accepted: str,
    propensity: str,
    outcome: str,
    proposed: str | None,
    score: str | None,
    at_least: float | None,
    without_score: str | None,
    features: str | None,
    as_json: bool,
) -> None:
    """What a proposal would have earned an arrival, from LOG, a CSV or Parquet file with a line for each decision.

    \b
    Example:
      lenience offpolicy decisions.csv --cost 0.8 --score score --at-least 0.7 --features age,amount
    """
    import numpy as np

    from lenience.analysis.off_policy import off_policy
    from lenience.core.errors import InputError
    from lenience.core.validation import real
    from lenience.files.columns import read_columns
    from lenience.files.table import coded, numbers_of

    if (proposed is None) == (score is None or at_least is None):
        raise InputError.because(
            "Give either --proposed, or --score with --at-least", ("--proposed", "--score"), label="", code="missing"
        )
    if without_score is not None and score is None:
        raise InputError.because(
            "needs --score", ("--without-score", "--score"), label="--without-score", code="missing"
        )
    notes: list[str] = []
    columns = read_columns(log, notes)
    for note in notes:
        click.echo(note, err=True)
    if score is not None and at_least is not None:
        at_least = real("at_least", at_least)
        scores = numbers_of(columns, score)
        unscored = np.isnan(scores)
        chances = np.where(unscored, float(without_score == "accept"), scores >= at_least)
        word = _told_unscored(score, int(unscored.sum()), len(scores), without_score)
        if not unscored.all() and not (scores >= at_least).any():
            word += f" No {score} is {at_least:g} or more: they go from {np.nanmin(scores):g} to {np.nanmax(scores):g}."
    else:
        chances, unscored, word = numbers_of(columns, str(proposed)), None, ""
    X = None if features is None else coded(columns, [name.strip() for name in features.split(",")])
    kept = ~unscored if unscored is not None and without_score == "leave-out" else slice(None)
    found = off_policy(
        chances[kept],
        numbers_of(columns, accepted)[kept],
        numbers_of(columns, propensity)[kept],
        numbers_of(columns, outcome)[kept],
        cost,
        None if X is None else X[kept],
    )
    if as_json:
        without = None if unscored is None else int(unscored.sum())
        print_json(
            {**msgspec.to_builtins(found), "without_score": without, "statement": f"{found.statement} {word}".strip()}
        )
        return
    grid = table(f"Reward an arrival, {found.arrivals:,} arrivals, c = {cost:g}")
    grid.add_column("")
    grid.add_column("estimate", justify="right")
    grid.add_column("95% interval", justify="right")
    for name, estimate in (
        ("the policy that was used", found.logged),
        ("the proposal, inverse propensity", found.inverse_propensity),
        ("the proposal, doubly robust", found.doubly_robust),
        ("the proposal's gain", found.gain),
    ):
        if estimate is not None:
            grid.add_row(
                name,
                found.format_reward(estimate.value),
                f"{found.format_reward(estimate.lower)} … {found.format_reward(estimate.upper)}",
            )
    out = console()
    out.print(grid)
    out.print(found.statement)
    if word:
        out.print(word.strip())


def _told_unscored(score: str, missing: int, rows: int, meaning: str | None) -> str:
    """What is done with rows that have no score: a proposal by scores says nothing of them, so the user must."""
    from lenience.core.errors import InputError
    from lenience.core.formatting import percent

    if not missing:
        return ""
    of = f"{missing:,} of {rows:,} rows ({percent(missing / rows)})"
    if meaning is None:
        raise InputError.because(
            f"must be known in every row; it is missing in {of}",
            "--score",
            label=f"score {score!r}",
            value=missing,
            hint=(
                "Say what the proposal does with these rows: --without-score reject, accept, or leave-out to estimate "
                "it on the others alone."
            ),
            code="missing",
        )
    if meaning == "leave-out":
        return f"Without {score}, and left out: {of}. The estimate is of arrivals that have it."
    return f"Without {score}, and {meaning}ed by the proposal: {of}."
