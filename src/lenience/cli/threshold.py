"""lenience threshold: compute the minimum success rate for acceptance."""

from __future__ import annotations

import click

from lenience.cli.options import (
    as_dict,
    console,
    discounted,
    json_option,
    note_rounding,
    objective_options,
    print_json,
    table,
    tolerance_option,
    unit_of,
)
from lenience.cli.progress import each
from lenience.core.errors import InputError
from lenience.core.formatting import describe_rule
from lenience.core.money import Money


@click.command(short_help="Compute the minimum success rate for acceptance after n observations.")
@objective_options
@click.option("-n", "--observations", "sizes", type=float, multiple=True, help="Belief sizes n; may be repeated.")
@tolerance_option
@json_option
def threshold(
    cost: float,
    money: Money,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    sizes: tuple[float, ...],
    tolerance: float,
    as_json: bool,
) -> None:
    """Compute the threshold c_n: after n observations (any number above 0), accept if the success rate is above it.

    \b
    Example:
      lenience threshold --cost 0.8 --discount 0.99 -n 1 -n 10 -n 100
    """
    from lenience.core.validation import check_tolerance
    from lenience.solvers.stopping.leniency_rate import leniency_rate
    from lenience.solvers.stopping.solve import check_size
    from lenience.solvers.stopping.threshold import enclose_threshold

    if horizon is not None:
        raise InputError.because(
            "cannot be used here: with a finite horizon the thresholds depend on how many individuals are left",
            "--horizon",
            hint="Use lenience solve --horizon.",
            code="conflicting_fields",
        )
    check_tolerance(tolerance)
    problem = discounted(cost, discount, arrivals, discount_rate)
    chosen = [check_size(n) for n in sizes or (1.0, 10.0, 100.0, 1000.0)]
    thresholds = [(n, enclose_threshold(problem, n, tolerance)) for n in each("Finding thresholds", chosen)]
    note_rounding(max(bounds.width for _, bounds in thresholds), tolerance)
    rate = leniency_rate(problem.cost, problem.discount)
    if as_json:
        print_json(
            {
                "cost": problem.cost,
                "discount": problem.discount,
                "unit": unit_of(problem.cost, money),
                "thresholds": [{"n": n, "threshold": as_dict(bounds)} for n, bounds in thresholds],
                "leniency_rate": rate,
            }
        )
        return
    grid = table(f"c = {problem.cost:g}, γ = {problem.discount:g}")
    for heading in ("n", "minimum rate cₙ", "leniency c − cₙ", "n (c − cₙ)"):
        grid.add_column(heading, justify="right")
    for n, bounds in thresholds:
        leniency = problem.cost - bounds.midpoint
        grid.add_row(f"{n:g}", str(bounds), f"{leniency:.6f}", f"{n * leniency:.4f}")
    out = console()
    out.print(describe_rule(problem.cost, [(n, bounds.midpoint) for n, bounds in sorted(thresholds)]) + "\n")
    out.print(grid)
    out.print(
        "Leniency: how far the minimum rate is below the break-even c after n observations. It decreases like "
        f"{rate:.6g}/n."
    )
