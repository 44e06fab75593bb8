"""lenience characteristics: compute what a policy does to a population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lenience.cli.options import (
    as_dict,
    console,
    doubt_option,
    json_option,
    objective,
    objective_or_offer_options,
    print_json,
    prior_option,
    prior_text,
    show,
    table,
    unit_of,
    with_doubt,
)
from lenience.cli.progress import each
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import percent
from lenience.core.money import Money
from lenience.core.offers import Offers

if TYPE_CHECKING:
    from lenience.analysis.characteristics import Characteristics


@click.command(short_help="Compute what a policy does to a population: who is wrongly rejected, what learning costs.")
@objective_or_offer_options
@prior_option
@doubt_option
@click.option("--p", "truths", type=float, multiple=True, help="True success probabilities; may be repeated.")
@click.option(
    "--rows", type=int, default=3000, show_default=True, help="The number of acceptances to follow (without --horizon)."
)
@click.option("--greedy", is_flag=True, help="Use the greedy policy (accept while p̂ > c) instead of the optimum.")
@json_option
def characteristics(
    cost: float | None,
    money: Money,
    offers: Offers | None,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    prior: Belief,
    doubt: float | None,
    truths: tuple[float, ...],
    rows: int,
    greedy: bool,
    as_json: bool,
) -> None:
    """Compute exact operating characteristics at true success probabilities p, and averaged over the prior.

    \b
    Example:
      lenience characteristics --cost 0.8 --discount 0.99 --p 0.7 --p 0.9
      lenience characteristics --cost 0.8 --discount 0.99 --prior 4,2.8 --doubt 0.2
      lenience characteristics --offer 500@0.8 --offer 5000@0.8 --discount 0.99 --p 0.7 --p 0.9 --currency $
    """
    from lenience.analysis.characteristics import characteristics as compute
    from lenience.policies.beliefs.greedy import Greedy
    from lenience.policies.beliefs.offer_baselines import GreedyOffers

    lowest = min(offers.cost) if offers is not None else cost or 0.0
    problem = objective(lowest, discount, arrivals, discount_rate, horizon)
    start = with_doubt(prior, doubt)
    if doubt is not None and (greedy or offers is not None):
        other, why = ("--greedy", ": the greedy policy trusts the prior") if greedy else ("--offer", "")
        raise InputError.because(
            f"cannot be combined with {other}{why}", ("--doubt", other), label="--doubt", code="conflicting_fields"
        )
    if offers is not None:
        problem = msgspec.structs.replace(problem, cost=None, offers=offers)
    myopic = Greedy(lowest) if offers is None else GreedyOffers()
    table_rows = rows if doubt is not None and horizon is None else None
    policy: Any = myopic if greedy else problem.solve(start, rows=table_rows)
    chosen: list[float | None] = [*truths, None] if truths else [0.5 * lowest, lowest, 0.5 * (1 + lowest), None]
    results = [compute(policy, p, problem, start, rows) for p in each("Following the policy forward", chosen)]
    if as_json:
        entries = [_entry(result) for result in results]
        name = "greedy" if greedy else "optimal"
        print_json({"policy": name, "unit": unit_of(cost, money), "characteristics": entries})
        return
    name = "Greedy" if greedy else "Optimal"
    what = problem if offers is None else problem.describe()
    grid = table(f"{name} policy, {what}, {prior_text(start)}")
    wrongly = "wrongly rejected (p > c)" if offers is None else f"wrongly rejected (p > {lowest:g})"
    for heading in ("true p", "stops for good", "accepted", "reward", wrongly):
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
    if offers is not None:
        _print_offers(results, offers, money)


def _print_offers(results: Sequence[Characteristics], offers: Offers, money: Money) -> None:
    """Print the share of the arrivals with each offer that are accepted."""
    grid = table("Share of the arrivals with each offer that are accepted, discounted")
    for heading in ("amount", "break-even", *("prior's p" if one.p is None else f"p = {one.p:g}" for one in results)):
        grid.add_column(heading, justify="right")
    for position, (amount, cost) in enumerate(zip(offers.amount, offers.cost, strict=True)):
        shares = [one.offer_acceptance[position] for one in results if one.offer_acceptance is not None]
        grid.add_row(money.format(amount), percent(cost, 2), *(percent(share.midpoint) for share in shares))
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
        **(
            {}
            if result.offer_acceptance is None
            else {"offer_acceptance": [as_dict(one) for one in result.offer_acceptance]}
        ),
    }
