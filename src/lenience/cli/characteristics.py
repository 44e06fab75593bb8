"""lenience characteristics: compute what a policy does to a population."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lenience.cli.options import (
    as_dict,
    console,
    json_option,
    objective,
    objective_options,
    print_json,
    prior_option,
    show,
    table,
    unit_of,
)
from lenience.cli.progress import each
from lenience.core.belief import Belief
from lenience.core.money import Money

if TYPE_CHECKING:
    from lenience.analysis.characteristics import Characteristics


@click.command(short_help="Compute what a policy does to a population: who is wrongly rejected, what learning costs.")
@objective_options
@prior_option
@click.option("--p", "truths", type=float, multiple=True, help="True success probabilities; may be repeated.")
@click.option(
    "--rows", type=int, default=3000, show_default=True, help="The number of acceptances to follow (without --horizon)."
)
@click.option("--greedy", is_flag=True, help="Use the greedy policy (accept while p̂ > c) instead of the optimum.")
@json_option
def characteristics(
    cost: float,
    money: Money,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    prior: Belief,
    truths: tuple[float, ...],
    rows: int,
    greedy: bool,
    as_json: bool,
) -> None:
    """Compute exact operating characteristics at true success probabilities p, and averaged over the prior.

    \b
    Example:
      lenience characteristics --cost 0.8 --discount 0.99 --p 0.7 --p 0.9
    """
    from lenience.analysis.characteristics import characteristics as compute
    from lenience.core.protocols import Policy
    from lenience.policies.beliefs.greedy import Greedy

    problem = objective(cost, discount, arrivals, discount_rate, horizon)
    policy: Policy = Greedy(cost) if greedy else problem.solve(prior)
    chosen: list[float | None] = [*truths, None] if truths else [0.5 * cost, cost, 0.5 * (1 + cost), None]
    results = [compute(policy, p, problem, prior, rows) for p in each("Following the policy forward", chosen)]
    if as_json:
        entries = [_entry(result) for result in results]
        name = "greedy" if greedy else "optimal"
        print_json({"policy": name, "unit": unit_of(cost, money), "characteristics": entries})
        return
    name = "Greedy" if greedy else "Optimal"
    grid = table(f"{name} policy, {problem}, prior n = {prior.n:g}, s = {prior.s:g}")
    for heading in ("true p", "stops for good", "accepted", "reward", "wrongly rejected (p > c)"):
        grid.add_column(heading, justify="right")
    for result in results:
        grid.add_row(
            "prior's" if result.p is None else f"{result.p:g}",
            show(result.stops, 4),
            show(result.accepted, 4),
            money.format_range(result.reward.lower, result.reward.upper) if money.known else show(result.reward, 4),
            "" if result.shut_out is None else show(result.shut_out, 4),
        )
    console().print(grid)


def _entry(result: Characteristics) -> dict[str, object]:
    """Return the characteristics at one success probability for JSON."""
    last = int(result.stops_at.nonzero()[0].max(initial=-1)) + 1
    return {
        "p": result.p,
        "stops": as_dict(result.stops),
        "accepted": as_dict(result.accepted),
        "reward": as_dict(result.reward),
        "shut_out": None if result.shut_out is None else as_dict(result.shut_out),
        "stops_at": result.stops_at[:last].tolist(),
    }
