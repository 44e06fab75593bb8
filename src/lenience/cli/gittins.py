"""lenience gittins: find the costs up to which a population is worth accepting."""

from __future__ import annotations

import click

from lenience.cli.options import (
    as_dict,
    bold,
    console,
    given,
    json_option,
    note_rounding,
    print_json,
    prior_option,
    tolerance_option,
)
from lenience.cli.options import table as new_table
from lenience.cli.progress import each
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.validation import whole


@click.command(short_help="Find the costs up to which a population is worth accepting (Gittins index).")
@click.option(
    "--discount", type=float, required=True, help="The discount γ from one individual to the next, in [0, 1)."
)
@prior_option
@tolerance_option
@click.option("--table", type=int, help="Print the indices of all Beta(α, β) with whole α and β and α + β up to this.")
@json_option
def gittins(discount: float, prior: Belief, tolerance: float, table: int | None, as_json: bool) -> None:
    """Compute the Gittins index of a belief: accept if and only if it exceeds the cost.

    \b
    Example:
      lenience gittins --discount 0.99 --prior 2,1
      lenience gittins --discount 0.9 --table 8 --tolerance 1e-6
    """
    if table is not None:
        if given("prior"):
            raise InputError.because(
                "cannot be combined with --prior: it prints the indices of many beliefs",
                ("--table", "--prior"),
                label="--table",
                code="conflicting_fields",
            )
        _print_table(discount, whole("table", table, least=2, most=1000), tolerance, as_json)
        return
    from lenience.solvers.stopping.gittins_index import gittins_index

    index = gittins_index(prior, discount, tolerance)
    note_rounding(index.width, tolerance)
    if as_json:
        print_json({"discount": discount, "prior": {"n": prior.n, "s": prior.s}, "index": as_dict(index)})
        return
    out = console()
    out.print(f"Gittins index of Beta({prior.alpha:g}, {prior.beta:g}) at γ = {discount:g}: ", bold(index), sep="")
    out.print("Accept if the cost (the break-even success rate) is below it.")


def _print_table(discount: float, largest: int, tolerance: float, as_json: bool) -> None:
    import numpy as np

    from lenience.core.validation import check_discount
    from lenience.solvers.stopping.gittins_index import check_work, gittins_table

    check_work(largest * (largest - 1) // 2, check_discount(discount))
    pairs = [(a, n - a) for n in range(2, largest + 1) for a in range(1, n)]
    bounds_by_size = [
        gittins_table(np.arange(1, n), n - np.arange(1, n), discount, tolerance)
        for n in each("Finding indices", range(2, largest + 1))
    ]
    lower, upper = (np.concatenate(part) for part in zip(*bounds_by_size, strict=True))
    note_rounding(float((upper - lower).max()), tolerance)
    if as_json:
        rows = [
            {"alpha": a, "beta": b, "index": {"lower": float(low), "upper": float(high)}}
            for (a, b), low, high in zip(pairs, lower, upper, strict=True)
        ]
        print_json({"discount": discount, "indices": rows})
        return
    shown = min(largest, 12)
    grid = new_table(f"Gittins index of Beta(α, β), γ = {discount:g}, to within {(upper - lower).max():.1g}")
    grid.add_column("α ╲ β", justify="right")
    for b in range(1, shown):
        grid.add_column(str(b), justify="right")
    middle = {pair: (low + high) / 2 for pair, low, high in zip(pairs, lower, upper, strict=True)}
    for a in range(1, shown):
        grid.add_row(str(a), *(f"{middle[a, b]:.4f}" if (a, b) in middle else "" for b in range(1, shown)))
    console().print(grid)
    if largest > shown:
        click.echo(f"Only the first of {largest - 1} rows are shown; --json prints all {len(pairs):,}.", err=True)
