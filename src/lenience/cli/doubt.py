"""Show the optimal policy for a prior that may be wrong (lenience solve --doubt)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from lenience.cli.options import as_dict, bold, console, print_json, prior_text, table, unit_of
from lenience.core.bounds import Bounds
from lenience.core.formatting import describe_unit, even_percent
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money

if TYPE_CHECKING:
    from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy
    from lenience.policies.beliefs.offers import OfferPolicy

SHOWN = (0, 1, 3, 8, 18, 48, 98, 198, 498, 998)  # new outcomes of the table's lines


def print_doubt(policy: OfferPolicy | HorizonOfferPolicy, prior: MixtureBelief, money: Money, as_json: bool) -> None:
    """Print what to do and what it earns, then how many successes are enough."""
    if as_json:
        print_json(_answer(policy, prior, money))
        return
    out = console()
    out.print(policy.explain(prior, money=money))
    out.print(_earnings(policy, prior, money) + "\n")
    grid = table()
    for heading in ("new outcomes", "successes needed", "expected success rate", "value of one more outcome"):
        grid.add_column(heading, justify="right")
    shown = [count for count in SHOWN if count < policy.certificate.rows]
    accept_from = _accept_from(policy, shown[-1] + 1)
    for count in shown:
        least = accept_from[count]
        line = ["none are enough", "", ""]
        if least is not None:
            after = prior.after(count, least)
            line = [f"{least:,}", even_percent(after.mean, 2), money.format(policy.label_value(after).midpoint)]
        grid.add_row(f"{count:,}", *line)
    out.print(grid)
    out.print(
        "New outcomes do not include the prior's. The expected success rate is the one with just as many successes as "
        "needed: outcomes that contradict the prior shift its weight to the flat one.\n"
    )
    out.print(bold(policy.objective), f", {prior_text(prior)}", sep="")
    out.print("Value at the prior: ", bold(money.format_bounds(policy.value(prior))), sep="")
    out.print(policy.certificate.describe(money))


def _answer(policy: OfferPolicy | HorizonOfferPolicy, prior: MixtureBelief, money: Money) -> dict[str, object]:
    """Return the policy for JSON, with the fields that it has without doubt."""
    return {
        "objective": msgspec.to_builtins(policy.objective),
        "prior": msgspec.to_builtins(prior),
        "accept": policy.accepts(prior),
        "value": as_dict(policy.value(prior)),
        "continuation": as_dict(_continuation(policy, prior)),
        "label_value": as_dict(policy.label_value(prior)),
        "unit": unit_of(policy.objective.cost, money),
        "explanation": policy.explain(prior, money=money),
        "certificate": {
            **msgspec.to_builtins(policy.certificate),
            "proved": policy.certificate.proved,
            "statement": policy.certificate.describe(money),
        },
        "thresholds": [
            {"outcomes": count, "accept_from": least}
            for count, least in enumerate(_accept_from(policy, policy.certificate.rows))
        ],
    }


def _continuation(policy: OfferPolicy | HorizonOfferPolicy, prior: MixtureBelief) -> Bounds:
    """Return the value of accepting now: the expected profit, the value of the label, and the future without it."""
    from lenience.policies.beliefs.offers import OfferPolicy

    if isinstance(policy, OfferPolicy):
        return policy.continuation(prior)
    profit, discount = prior.mean - policy.objective.cost, policy.objective.discount
    label, later = policy.label_value(prior), Bounds(0.0, 0.0)
    if policy.horizon > 1:
        later = policy.value(prior, policy.horizon - 1)
    return Bounds(profit + label.lower + discount * later.lower, profit + label.upper + discount * later.upper)


def _accept_from(policy: OfferPolicy | HorizonOfferPolicy, rows: int) -> list[int | None]:
    """Return for each number of new outcomes how many successes are enough; None if none is."""
    from lenience.policies.beliefs.mixture import MixturePolicy

    table = MixturePolicy.of(policy, rows).accept_from.tolist()
    return [least if least <= count else None for count, least in enumerate(table)]


def _earnings(policy: OfferPolicy | HorizonOfferPolicy, prior: MixtureBelief, money: Money) -> str:
    """Say what the policy earns, and what learning costs."""
    from lenience.solvers.stopping.clairvoyant import gain_of_knowing

    objective = policy.objective
    best = objective.discounted_count * math.fsum(
        weight * gain_of_knowing(belief.n, belief.s, objective.cost)
        for belief, weight in zip(prior.beliefs, prior.weights, strict=True)
    )
    value = policy.value(prior).midpoint
    earned, learning = "This earns nothing and loses nothing", "but learning it would cost more"
    if value:
        earned = f"This is expected to earn {money.format(value)} in total"
        learning = f"so learning costs {money.format(max(best - value, 0.0))}"
    return (
        f"{earned}. Someone who knew the success rate in advance would expect {money.format(best)}, {learning}. "
        f"{describe_unit(objective.cost, money)}"
    )
