"""The policies that run along for comparison: the optimum, called by what it assumes where the world breaks that.

The optimum is that of the paper's problem: p stays as it is and labels are prompt. Where labels come late or p drifts
it is only a policy among others, and greed may beat it; its name then says for what it is optimal. Where delays are
exponential and the discounted future fits into the horizon, exposure limits run along too, and are the reference.
They are optimal for arrivals at random times; here arrivals are evenly spaced, so they are a reference, not a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lenience.core.belief import Belief
from lenience.core.counter_rng import replication_keys
from lenience.core.errors import TooLargeError
from lenience.core.protocols import Accepts
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.simulation.late_labels import LateLabels
from lenience.simulation.stream import World
from lenience.simulation.worlds import Mixture

OPTIMUM, EXPOSURE = "optimum", "exposure limits"
BEYOND = 0.01  # the share of all discounted volume that may lie beyond the horizon where exposure limits run along
SECONDS = 10.0  # that a solve of exposure limits may take


class References(NamedTuple):
    """The policies that run along, one a segment, by name; which of them is the reference; what the world breaks."""

    policies: dict[str, tuple[Accepts, ...]]
    baseline: str
    note: str


def references(world: World, cost: float, discount: float, horizon: int, priors: tuple[Belief, ...]) -> References:
    """What runs along in a world, from one prior or one a segment.

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
    what = " and ".join((["labels come late"] if late else []) + (["p drifts"] if drifts else []))
    note = f"In this world {what}: the {name} is not the optimum here, and others may be ahead of it."
    delay = _exponential_delay(world)
    if delay is not None and not drifts and 0 < discount < 1 and discount**horizon <= BEYOND:
        problem = Delayed(cost, 1.0, 1 / discount - 1, delay)
        try:
            limits = tuple(
                problem.for_share(q).solve(prior, tolerance=1e-3, seconds=SECONDS)
                for q, prior in zip(shares, each, strict=True)
            )
        except TooLargeError:
            return References(policies, name, note)
        policies[EXPOSURE] = limits
        return References(policies, EXPOSURE, f"{note} The {EXPOSURE} reckon with exponential delays.")
    return References(policies, name, note)


def columns_in_words(baselines: Sequence[str]) -> str:
    """What the columns of a comparison mean, with the policies that the others are compared with, if any.

    >>> print(columns_in_words(["optimum"]))
    Discounted: the reward, where a success earns 1 − c and a failure loses c. Behind optimum: how much less than the
    policy that is optimal for the prior is to be expected on the same individuals; below 0 it is more. Shut out: ...
    """
    behind = ""
    if baselines:
        whom = "the policy that is optimal for the prior" if list(baselines) == [OPTIMUM] else "that policy"
        named = baselines[0] if len(baselines) == 1 else f"reference ({' or '.join(baselines)})"
        behind = (
            f"Behind {named}: how much less than {whom} is to be expected on the same individuals; below 0 it is more. "
        )
    return (
        f"Discounted: the reward, where a success earns 1 − c and a failure loses c. {behind}Shut out: the share of "
        "all arrivals, in all replications, whose population is worth accepting (p > c) and yet ends up rejected for "
        "good; those not worth accepting count as not shut out."
    )


def optimum_name(late: bool, drifts: bool) -> str:
    """What the optimum of the paper's problem is called in a world.

    >>> optimum_name(False, False), optimum_name(True, True)
    ('optimum', 'optimum for prompt labels, without drift')
    """
    return OPTIMUM + " for prompt labels" * late + "," * (late and drifts) + " without drift" * drifts


def best_policies(
    shares: tuple[float, ...], cost: float, discount: float, horizon: int, priors: tuple[Belief, ...]
) -> tuple[Accepts, ...]:
    """The optimum for each segment, each with the discount factor of its own: γ_x = γq/(1 − γ + γq)."""
    if len(shares) == 1 and (discount == 1.0 or discount**horizon > 1e-12):
        return (FiniteHorizon(cost, horizon, discount).solve(priors[0]),)
    segments = zip(shares, priors, strict=True)
    if discount == 1.0:
        # How many of a segment are still to come is not known; its expected number is taken.
        return tuple(FiniteHorizon(cost, max(1, round(q * horizon))).solve(prior) for q, prior in segments)
    return tuple(Discounted(cost, discount * q / (1.0 - discount + discount * q)).solve(prior) for q, prior in segments)


def is_late(world: World) -> bool:
    """Whether any label comes later than before the next arrival."""
    if isinstance(world, LateLabels):
        return not world.delay.prompt
    return world.open(replication_keys(0, 0, 1), 1).label_lag(0) is not None


def _exponential_delay(world: World) -> float | None:
    """The mean delay of labels that all come, by the exponential law."""
    if not isinstance(world, LateLabels) or world.delay.kind != "exponential" or not world.delay.all_come:
        return None
    return world.delay.mean


def _inner(world: World) -> World:
    return world.world if isinstance(world, LateLabels) else world


def _shares(world: World) -> tuple[float, ...]:
    inner = _inner(world)
    return tuple(float(q) for q in inner.shares) if isinstance(inner, Mixture) else (1.0,)
