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
    features: str | None,
    as_json: bool,
) -> None:
    """What a proposal would have earned an arrival, from LOG, a CSV or Parquet file with a line for each decision.

    \b
    Example:
      lenience offpolicy decisions.csv --cost 0.8 --score score --at-least 0.7 --features age,amount
    """
    import numpy as np

    from lenience.columns import columns_of
    from lenience.errors import InputError
    from lenience.study.off_policy import off_policy
    from lenience.study.table import from_columns, numbers_of

    if (proposed is None) == (score is None or at_least is None):
        raise InputError("give either --proposed, or --score with --at-least")
    notes: list[str] = []
    columns = columns_of(log, notes)
    for note in notes:
        click.echo(note, err=True)
    taken = numbers_of(columns, accepted)
    if proposed is not None:
        chances = numbers_of(columns, proposed)
    else:
        chances = (numbers_of(columns, str(score)) >= float(at_least or 0.0)).astype(np.float64)
    X = None
    if features is not None:
        chosen = [name.strip() for name in features.split(",")]
        X = from_columns({**columns, "": ["1"] * len(taken)}, "", chosen).X
    found = off_policy(chances, taken, numbers_of(columns, propensity), numbers_of(columns, outcome), cost, X)
    if as_json:
        print_json({**msgspec.to_builtins(found), "statement": found.statement})
        return
    grid = table(f"Reward an arrival, {found.arrivals:,} arrivals, c = {cost:g}")
    grid.add_column("")
    grid.add_column("estimate", justify="right")
    grid.add_column("95 % interval", justify="right")
    for name, estimate in (
        ("the policy that was used", found.logged),
        ("the proposal, inverse propensity", found.inverse_propensity),
        ("the proposal, doubly robust", found.doubly_robust),
        ("the proposal's gain", found.gain),
    ):
        if estimate is not None:
            grid.add_row(name, f"{estimate.value:+.5f}", f"{estimate.lower:+.5f} … {estimate.upper:+.5f}")
    out = console()
    out.print(grid)
    out.print(found.statement)
