"""lenience regret: compare ways of exploring when rewards are not discounted."""

from __future__ import annotations

import click
import msgspec

from lenience.cli.options import (
    console,
    cost_options,
    doubt_option,
    json_option,
    print_json,
    prior_option,
    prior_text,
    table,
    unit_of,
    with_doubt,
)
from lenience.cli.progress import each
from lenience.core.belief import Belief
from lenience.core.formatting import describe_unit
from lenience.core.money import Money

HORIZONS = (10, 100, 1000, 10_000)


@click.command(short_help="Compare ways of exploring when rewards are not discounted.")
@cost_options
@prior_option
@doubt_option
@click.option("--horizon", "horizons", type=int, multiple=True, help="Numbers of individuals; may be repeated.")
@json_option
def regret(
    cost: float, money: Money, prior: Belief, doubt: float | None, horizons: tuple[int, ...], as_json: bool
) -> None:
    """Compute the exact regret of always accepting, of exploring then exploiting, and of the optimum, by horizon.

    \b
    Example:
      lenience regret --cost 0.5 --horizon 100 --horizon 1000
      lenience regret --cost 0.5 --prior 10,3 --doubt 0.2 --horizon 1000
    """
    from lenience.analysis.regret import regret_table

    chosen = horizons or HORIZONS
    start = with_doubt(prior, doubt)
    rows = [
        row for horizon in each("Evaluating ways of exploring", chosen) for row in regret_table(cost, start, [horizon])
    ]
    if as_json:
        print_json(
            {
                "cost": cost,
                "unit": unit_of(cost, money),
                "prior": msgspec.to_builtins(start),
                "rows": msgspec.to_builtins(rows),
            }
        )
        return
    grid = table(f"Regret against knowing p (c = {cost:g}, {prior_text(start)})")
    grid.add_column("policy")
    for horizon in chosen:
        grid.add_column(f"H = {horizon:,}", justify="right")
    for name in dict.fromkeys(row.policy for row in rows):
        grid.add_row(name, *(money.format(row.regret, 2) for row in rows if row.policy == name))
    out = console()
    out.print(grid)
    out.print(describe_unit(cost, money))
