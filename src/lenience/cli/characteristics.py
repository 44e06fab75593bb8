"""lenience characteristics: what a policy does to a population."""

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
)
from lenience.cli.progress import each
from lenience.core.belief import Belief

if TYPE_CHECKING:
    from lenience.analysis.characteristics import Characteristics


@click.command(short_help="What a policy does to a population: whom it shuts out, what learning costs.")
@objective_options
@prior_option
@click.option("--p", "truths", type=float, multiple=True, help="True success probabilities; may be repeated.")
@click.option("--rows", type=int, default=3000, show_default=True, help="Acceptances followed (without --horizon).")
@click.option("--greedy", is_flag=True, help="Of the greedy policy (accept while p̂ > c) instead of the optimum.")
@json_option
def characteristics(
    cost: float,
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
    """Exact operating characteristics at true success probabilities p, and averaged over the prior.

    \b
    Example:
      lenience characteristics --cost 0.8 --discount 0.99 --p 0.7 --p 0.9
    """
    from lenience.analysis.characteristics import characteristics as compute
    from lenience.core.protocols import Policy
    from lenience.policies.beliefs.greedy import Greedy

    problem = objective(cost, discount, arrivals, discount_rate, horizon)
    policy: Policy = Greedy(cost) if greedy else problem.solve(prior)
    wanted: list[float | None] = [*truths, None] if truths else [0.5 * cost, cost, 0.5 * (1 + cost), None]
    found = [compute(policy, p, problem, prior, rows) for p in each("Following the policy forward", wanted)]
    if as_json:
        print_json({"policy": "greedy" if greedy else "optimal", "characteristics": [_entry(one) for one in found]})
        return
    name = "Greedy" if greedy else "Optimal"
    grid = table(f"{name} policy, {problem}, prior n = {prior.n:g}, s = {prior.s:g}")
    for heading in ("true p", "stops for good", "accepted", "reward", "shut out though p > c"):
        grid.add_column(heading, justify="right")
    for one in found:
        grid.add_row(
            "prior's" if one.p is None else f"{one.p:g}",
            show(one.stops, 4),
            show(one.accepted, 4),
            show(one.reward, 4),
            "" if one.shut_out is None else show(one.shut_out, 4),
        )
    console().print(grid)


def _entry(one: Characteristics) -> dict[str, object]:
    last = int(one.stops_at.nonzero()[0].max(initial=-1)) + 1
    return {
        "p": one.p,
        "stops": as_dict(one.stops),
        "accepted": as_dict(one.accepted),
        "reward": as_dict(one.reward),
        "shut_out": None if one.shut_out is None else as_dict(one.shut_out),
        "stops_at": one.stops_at[:last].tolist(),
    }
