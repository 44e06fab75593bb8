"""lenience offers: decide applicants who ask for different amounts, or choose what to offer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from lenience.cli.options import (
    as_dict,
    bold,
    choose_option,
    console,
    doubt_option,
    json_option,
    note_units,
    objective,
    offer_option,
    parse_offers,
    print_json,
    prior_option,
    table,
    tolerance_option,
    with_doubt,
)
from lenience.cli.progress import solving
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import amount, counted, percent
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offer, Offers

if TYPE_CHECKING:
    from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy
    from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy
    from lenience.policies.beliefs.offer_exposure import OfferExposurePolicy
    from lenience.policies.beliefs.offers import OfferPolicy

SIZES = (0, 3, 8, 18, 48, 98, 198)  # new observations of the table's lines
LOWER = (0.3, 0.2, 0.1)  # how far below the break-even the table's columns are, relative to it


@click.command(short_help="Decide offers of different amounts, or choose what to offer.")
@offer_option(required=True)
@choose_option
@click.option("--discount", type=float, help="The discount γ from one individual to the next, in [0, 1).")
@click.option("--arrivals", type=float, help="Individuals per year; with --discount-rate, instead of --discount.")
@click.option("--discount-rate", type=float, help="The yearly interest rate, such as 0.1, with --arrivals.")
@click.option("--horizon", type=int, help="The total number of individuals; by default infinite.")
@click.option("--label-delay", type=float, help="The mean time until an outcome is known, in years, with --arrivals.")
@prior_option
@doubt_option
@click.option("--currency", default="", help="The currency to print amounts with, such as $ or EUR.")
@tolerance_option
@json_option
def offers(
    texts: tuple[str, ...],
    choose: bool,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    label_delay: float | None,
    prior: Belief,
    doubt: float | None,
    currency: str,
    tolerance: float,
    as_json: bool,
) -> None:
    """Decide applicants who ask for different amounts, or choose what to offer them.

    An offer is accepted if its expected profit and the value of learning its outcome are above 0 together. So small
    amounts get the benefit of the doubt first.

    \b
    Example:
      lenience offers --offer 500@0.8 --offer 5000@0.8 --choose --discount 0.99 --currency $
      lenience offers --offer 500@0.8 --offer 5000@0.8 --horizon 200 --currency $
      lenience offers --offer 1@0.7 --offer 1@0.9 --arrivals 200 --discount-rate 0.1 --prior 4,2.8 --doubt 0.2
      lenience offers --offer 0.1@0.8 --offer 1@0.8 --arrivals 50 --discount-rate 0.1 --label-delay 1 --json
    """
    described = parse_offers(texts, choose, currency)
    start = with_doubt(prior, doubt)
    if label_delay is not None:
        if horizon is not None:
            raise InputError.because(
                "cannot be combined with --label-delay",
                ("--horizon", "--label-delay"),
                label="--horizon",
                code="conflicting_fields",
            )
        policy = _late(described, discount, arrivals, discount_rate, label_delay, start, max(tolerance, 1e-6))
        print_late(policy, start, as_json)
        return
    one_cost = objective(0.5, discount, arrivals, discount_rate, horizon)
    problem = msgspec.structs.replace(one_cost, cost=None, offers=described)
    print_policy(solving("Solving", lambda: problem.solve(start, tolerance=tolerance)), start, as_json)


def _late(
    described: Offers,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    label_delay: float,
    start: Belief | MixtureBelief,
    tolerance: float,
) -> OfferExposurePolicy | EstimatedOfferExposurePolicy:
    """Solve with late labels."""
    from lenience.objectives.delayed import Delayed

    if discount is not None or arrivals is None or discount_rate is None:
        raise InputError.because(
            "needs --arrivals and --discount-rate instead of --discount",
            ("--label-delay", "--arrivals", "--discount-rate"),
            label="--label-delay",
            code="missing",
        )
    note_units(discount_rate, [label_delay])
    problem = Delayed(arrivals=arrivals, discount_rate=discount_rate, label_delay=label_delay, offers=described)
    policy: OfferExposurePolicy | EstimatedOfferExposurePolicy = solving(
        "Solving", lambda: problem.solve(start, tolerance=tolerance)
    )
    return policy


def _choices(described: Offers) -> list[list[Offer]]:
    """Return what one applicant may get, for each menu."""
    return [described.offers_of(menu) for menu in range(described.menu_count)]


def print_policy(policy: OfferPolicy | HorizonOfferPolicy, start: Belief | MixtureBelief, as_json: bool) -> None:
    """Print the decision on each offer, what is earned, and which amounts are accepted as evidence grows."""
    described, choices = policy.offers, _choices(policy.offers)
    value = policy.value(start)
    if as_json:
        print_json(
            {
                "objective": policy.objective.options(),
                "prior": msgspec.to_builtins(start),
                "value": as_dict(value),
                "label_value": as_dict(policy.label_value(start)),
                "decisions": [_decision(policy.decide(start, menu)) for menu in choices],
                "explanations": [policy.explain(start, menu) for menu in choices],
                "certificate": {**msgspec.to_builtins(policy.certificate), "proved": policy.certificate.proved},
            }
        )
        return
    out = console()
    for menu in choices:
        out.print(policy.explain(start, menu))
    out.print(f"This is expected to earn {described.money.format(value.midpoint)} in total.\n")
    if isinstance(start, Belief):
        _print_amounts(policy, start)
    out.print(bold(policy.objective.describe()))
    out.print("Value at the prior: ", bold(described.money.format_bounds(value)), sep="")
    out.print(policy.certificate.describe(described.money))


def _print_amounts(policy: OfferPolicy | HorizonOfferPolicy, start: Belief) -> None:
    """Print the largest amount that is accepted, by evidence and success rate, at the lowest break-even.

    With a horizon, everyone before is taken to have been accepted.
    """
    cost = min(policy.offers.cost)
    horizon = policy.objective.horizon
    solved: Any = policy
    rates = [cost * (1.0 - part) for part in LOWER]
    grid = table(f"Largest amount accepted, at a break-even of {percent(cost, 2)}")
    grid.add_column("observations", justify="right")
    for rate in rates:
        grid.add_column(f"{percent(rate)} succeeded", justify="right")
    for k in SIZES:
        if horizon is not None and k >= horizon:
            break
        left = {} if horizon is None else {"left": horizon - k}
        n = start.n + k
        sizes = [solved.largest_amount(Belief(n, rate * n), cost, **left) for rate in rates]
        grid.add_row(amount(n), *(policy.offers.money.format(size) if size else "none" for size in sizes))
    out = console()
    out.print(grid)
    out.print(f"From {percent(cost, 2)} on, every amount at this break-even is accepted.\n")


def print_late(
    policy: OfferExposurePolicy | EstimatedOfferExposurePolicy, start: Belief | MixtureBelief, as_json: bool
) -> None:
    """Print the decision on each offer and how many outcomes may be pending."""
    from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy

    described = policy.offers
    value = policy.value(start)
    limits = [
        {"offer": msgspec.to_builtins(one), "limit": policy.limit(start, one)}
        for menu in _choices(described)
        for one in menu
    ]
    if as_json:
        print_json(
            {
                "objective": policy.objective.options(),
                "prior": msgspec.to_builtins(start),
                "value": as_dict(value),
                "label_value": as_dict(policy.label_value(start)),
                "decisions": [_decision(policy.decide(start, menu)) for menu in _choices(described)],
                "explanations": [policy.explain(start, menu) for menu in _choices(described)],
                "limits": limits,
                "proved": policy.proves,
            }
        )
        return
    out = console()
    for menu in _choices(described):
        out.print(policy.explain(start, menu))
    out.print(f"This is expected to earn {described.money.format(value.midpoint)} in total.\n")
    grid = table("How many outcomes may be pending")
    for heading in ("amount", "break-even", "limit"):
        grid.add_column(heading, justify="right")
    for size, cost, row in zip(described.amount, described.cost, limits, strict=True):
        limit: Any = row["limit"]
        shown = "no limit" if limit is None else counted(limit, "outcome") if limit else "not accepted"
        grid.add_row(described.money.format(size), percent(cost, 2), shown)
    out.print(grid)
    out.print(bold(policy.objective.describe()))
    out.print("Value at the prior: ", bold(described.money.format_bounds(value)), sep="")
    if isinstance(policy, EstimatedOfferExposurePolicy):
        out.print(policy.certificate.describe(described.money))


def _decision(decision: object) -> dict[str, Any]:
    """Return a decision for JSON."""
    built: dict[str, Any] = msgspec.to_builtins(decision)
    return built
