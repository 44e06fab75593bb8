"""Reference policies: what runs along in a comparison.

The optimum solves the paper's problem: p never changes and labels are prompt. If labels come late or p drifts, it is
only one policy among others, and the greedy policy may beat it; its name then says what it is optimal for. If delays
are exponential and the discounted future fits into the horizon, exposure limits run along too and are the baseline.
They are optimal for arrivals at random times. Here arrivals are evenly spaced, so they are a reference, not a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lenience.core.belief import Belief
from lenience.core.counter_rng import replication_keys
from lenience.core.money import UNITS, Money
from lenience.core.offers import Offers
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.simulation.late_labels import LateLabels
from lenience.simulation.stream import World
from lenience.simulation.worlds import Mixture

OPTIMUM, EXPOSURE = "optimum", "exposure limits"
BEYOND = 0.01  # exposure limits run along if at most this share of the discounted volume is beyond the horizon
SECONDS = 10.0  # time limit of solving exposure limits


class References(NamedTuple):
    """The policies that run along.

    Parameters
    ----------
    policies : dict of str to tuple of policies
        The policies by name, one for each segment.
    baseline : str
        The policy that the others are compared with.
    note : str
        Which assumptions of the optimum the world violates, in a sentence.
    """

    policies: dict[str, tuple[Any, ...]]
    baseline: str
    note: str


def references(world: World, cost: float, discount: float, horizon: int, priors: tuple[Belief, ...]) -> References:
    """Return the policies that run along in a world, from one prior or one for each segment.

    >>> from lenience.simulation.label_delay import LabelDelay
    >>> from lenience.simulation.worlds import FromPrior
    >>> late = LateLabels(FromPrior(Belief(2, 1)), LabelDelay("exponential", mean=5))
    >>> result = references(late, 0.5, 0.9, 100, (Belief(2, 1),))
    >>> list(result.policies), result.baseline
    (['optimum for prompt labels', 'exposure limits'], 'exposure limits')
    """
    late, drifts = is_late(world), bool(getattr(_inner(world), "drifts", False))
    name = optimum_name(late, drifts)
    shares = _shares(world)
    each = priors * len(shares) if len(priors) == 1 else priors
    policies = {name: best_policies(shares, cost, discount, horizon, each)}
    if not late and not drifts:
        return References(policies, name, "")
    violated = " and ".join((["labels come late"] if late else []) + (["p drifts"] if drifts else []))
    note = f"In this world {violated}, so the {name} is not optimal here and other policies may earn more."
    delay = _exponential_delay(world)
    if delay is not None and not drifts and 0 < discount < 1 and discount**horizon <= BEYOND:
        problem = Delayed(cost, 1.0, 1 / discount - 1, delay)
        policies[EXPOSURE] = tuple(
            problem.for_share(q).solve(prior, tolerance=1e-3, seconds=SECONDS)
            for q, prior in zip(shares, each, strict=True)
        )
        return References(policies, EXPOSURE, f"{note} The {EXPOSURE} take exponential delays into account.")
    return References(policies, name, note)


def offer_references(
    world: World, offers: Offers, discount: float, horizon: int, priors: tuple[Belief, ...]
) -> References:
    """Return the optimum that runs along where arrivals bring offers, from one prior or one for each segment.

    >>> from lenience.simulation.worlds import FromPrior
    >>> result = offer_references(FromPrior(Belief(2, 1)), Offers([1, 5], [0.8, 0.8]), 1.0, 20, (Belief(2, 1),))
    >>> result.policies["optimum"]
    (HorizonOfferPolicy(FiniteHorizon(horizon=20, discount=1.0, offers=...), prior=Belief(n=2.0, s=1.0)),)
    """
    late, drifts = is_late(world), bool(getattr(_inner(world), "drifts", False))
    shares = _shares(world)
    each = priors * len(shares) if len(priors) == 1 else priors
    name, endless = optimum_name(late, drifts), ""
    policies = []
    for q, prior in zip(shares, each, strict=True):
        # The table holds every number of arrivals that may be left in a segment. The engine says how many are expected.
        ending = FiniteHorizon(offers=offers, horizon=horizon, discount=discount or 1.0)
        own = discount * q / (1.0 - discount + discount * q) if discount < 1.0 else 1.0
        forgets = discount == 0.0 or (discount < 1.0 and (len(shares) > 1 or discount**horizon <= 1e-12))
        if not forgets and discount < 1.0 and ending.solve_seconds(prior) > SECONDS:
            forgets, endless = True, f" The {name} does not know that arrivals end."
        policies.append(Discounted(offers=offers, discount=own).solve(prior) if forgets else ending.solve(prior))
    violated = " and ".join((["labels come late"] if late else []) + (["p drifts"] if drifts else []))
    note = f"In this world {violated}, so the {name} is not optimal here and other policies may earn more."
    return References({name: tuple(policies)}, name, ((note if violated else "") + endless).strip())


def columns_in_words(baselines: Sequence[str], cost: float | None = None, money: Money = UNITS) -> str:
    """Explain the columns of a comparison, given the baselines that the policies are compared with.

    The cost says what a success and a failure are worth in money, if money is known. With offers there is none.

    >>> print(columns_in_words(["optimum"]))
    Discounted: the reward, where a success earns 1 − c and a failure loses c. Behind optimum: how much less a policy
    is expected to earn than the policy that is optimal for the prior on the same individuals; ...
    """
    gain, loss = "1 − c", "c"
    if money.known and cost is not None:
        gain, loss = money.format(1 - cost), money.format(cost)
    earned = f"the reward, where a success earns {gain} and a failure loses {loss}"
    worth = "(p > c)"
    if money.known and cost is None:
        earned, worth = "the reward in money", "(p is above the lowest break-even)"
    behind = ""
    if baselines:
        whom = "the policy that is optimal for the prior" if list(baselines) == [OPTIMUM] else "that policy"
        title = baselines[0] if len(baselines) == 1 else f"reference ({' or '.join(baselines)})"
        behind = (
            f"Behind {title}: how much less a policy is expected to earn than {whom} on the same individuals; a "
            "negative number means that it earns more. "
        )
    return (
        f"Discounted: {earned}. {behind}Shut out: the share of all arrivals, in all replications, whose population is "
        f"worth accepting {worth} but is rejected for good in the end. Populations that are not worth accepting count "
        "as not shut out."
    )


def optimum_name(late: bool, drifts: bool) -> str:
    """Return the name of the optimum of the paper's problem in a world.

    >>> optimum_name(False, False), optimum_name(True, True)
    ('optimum', 'optimum for prompt labels, without drift')
    """
    return OPTIMUM + " for prompt labels" * late + "," * (late and drifts) + " without drift" * drifts


def best_policies(
    shares: tuple[float, ...], cost: float, discount: float, horizon: int, priors: tuple[Belief, ...]
) -> tuple[Any, ...]:
    """Return the optimum of each segment, each with its own discount factor γ_x = γq/(1 − γ + γq)."""
    if len(shares) == 1 and (discount == 1.0 or discount**horizon > 1e-12):
        return (FiniteHorizon(cost, horizon, discount).solve(priors[0]),)
    segments = zip(shares, priors, strict=True)
    if discount == 1.0:
        # The number of arrivals in a segment is random; use its expected value.
        return tuple(FiniteHorizon(cost, max(1, round(q * horizon))).solve(prior) for q, prior in segments)
    return tuple(Discounted(cost, discount * q / (1.0 - discount + discount * q)).solve(prior) for q, prior in segments)


def is_late(world: World) -> bool:
    """Return whether any label comes after the next arrival."""
    if isinstance(world, LateLabels):
        return not world.delay.prompt
    return world.open(replication_keys(0, 0, 1), 1).label_lag(0) is not None


def _exponential_delay(world: World) -> float | None:
    """Return the mean delay if delays are exponential and all labels come, else None."""
    if not isinstance(world, LateLabels) or world.delay.kind != "exponential" or not world.delay.all_come:
        return None
    return world.delay.mean


def _inner(world: World) -> World:
    """Return the world that draws the individuals, without late labels."""
    return world.world if isinstance(world, LateLabels) else world


def _shares(world: World) -> tuple[float, ...]:
    """Return the shares of the segments."""
    inner = _inner(world)
    return tuple(float(q) for q in inner.shares) if isinstance(inner, Mixture) else (1.0,)
