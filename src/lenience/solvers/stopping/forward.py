"""The exact distribution of a belief under a policy, forward in time.

Let p be known, or average over the belief, in which case each step succeeds with probability p̂. The walk from (n₀, s₀)
is at (n₀ + k, s₀ + j) after k acceptances. The probabilities of these states follow row by row. At a belief where the
policy accepts with probability π > 0, the walk continues after a geometric waiting time, which discounts by
π/(1 − γ + γπ) until the acceptance. At a belief with π = 0 it has stopped for good.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import InputError
from lenience.core.protocols import Policy, acceptance_of
from lenience.solvers.stopping.boundary_walk import BELIEVED, NEGLIGIBLE, exceeds, follow

CELLS = 64  # cells of p for bounds that are averaged over the belief


class Walk(NamedTuple):
    """The probabilities of a walk. Those by k are by the number of acceptances so far."""

    stopped: NDArray[np.float64]  # by k: the probability of stopping for good after k acceptances
    stopped_deserving: NDArray[np.float64]  # by k: the probability of this and of p above the cost
    moving: NDArray[np.float64]  # by k: the probability of one more acceptance
    weight: NDArray[np.float64]  # by k: the same, discounted
    earned: NDArray[np.float64]  # by k: the discounted expected reward of that acceptance
    left: NDArray[np.float64]  # by number of successes: the probability after the last row
    left_weight: NDArray[np.float64]  # by number of successes: the same, discounted
    first: int  # the number of successes of the first entry of ``left``
    aside: float  # the probability that was dropped


def walk(
    policy: Policy, n: float, s: float, cost: float, discount: float, rows: int, p: float | None, certain: bool = False
) -> Walk:
    """Follow ``rows`` acceptances from the belief (n, s). With ``certain``, reject a policy that randomises."""
    boundary = getattr(policy, "boundary", None)  # only a solved policy has a table
    least = None if boundary is None else boundary(n, s, rows)
    if least is not None:
        return _walk_boundary(least, n, s, cost, discount, p)
    return _walk_any(policy, n, s, cost, discount, rows, p, certain)


def _walk_boundary(least: NDArray[np.int64], n: float, s: float, cost: float, discount: float, p: float | None) -> Walk:
    """Follow a boundary with compiled code, because a report follows thousands of rows for each segment."""
    walked = follow(n, s, cost, discount, least, BELIEVED if p is None else p)
    above = exceeds(n + walked.at, s + walked.good, cost) if p is None else np.full(walked.at.size, float(p > cost))
    stopped, deserving = np.zeros(least.size), np.zeros(least.size)
    np.add.at(stopped, walked.at.astype(np.int64), walked.lost)
    np.add.at(deserving, walked.at.astype(np.int64), walked.lost * above)
    return Walk(stopped, deserving, *walked[3:])


def _walk_any(
    policy: Policy, n: float, s: float, cost: float, discount: float, rows: int, p: float | None, certain: bool
) -> Walk:
    """Follow any policy."""
    stopped = np.zeros(rows)
    deserving = np.zeros(rows)
    moving = np.zeros(rows)
    weight = np.zeros(rows)
    earned = np.zeros(rows)
    mass = np.ones(1)
    discounted = np.ones(1)
    first = 0
    aside = 0.0
    ceiling = 1.0 if certain else float(getattr(policy, "stop_ceiling", 1.0))
    for k in range(rows):
        good = s + (first + np.arange(mass.size, dtype=np.float64))
        probability = acceptance_of(policy, n + k, good)
        if certain and np.any((probability > 0.0) & (probability < 1.0)):
            raise InputError.because(
                "must accept with probability 0 or 1 for characteristics over a finite horizon",
                "policy",
                hint="Use a Discounted objective, or simulate.",
            )
        # Above its ceiling a policy never stops: a probability of 0 there is one that is too small for a float.
        stops = (probability <= 0.0) & (good <= ceiling * (n + k))
        if stops.any():
            lost = np.where(stops, mass, 0.0)
            stopped[k] = lost.sum()
            if p is None:
                deserving[k] = float(mass[stops] @ exceeds(np.full(lost.size, n + k)[stops], good[stops], cost))
            else:
                deserving[k] = stopped[k] * (p > cost)
            mass = np.where(stops, 0.0, mass)
            discounted = np.where(stops, 0.0, discounted)
        moving[k] = mass.sum()
        if moving[k] == 0.0:
            mass, discounted = mass[:0], discounted[:0]
            break
        success = good / (n + k) if p is None else np.full(mass.size, p)
        wait = 1.0 - discount + discount * probability
        accepted = discounted * np.divide(probability, wait, out=np.zeros_like(wait), where=wait > 0.0)
        weight[k] = accepted.sum()
        earned[k] = float(accepted @ (success - cost))
        mass = spread(mass, success, 1.0)
        discounted = spread(accepted, success, discount)
        keep = np.flatnonzero(mass > NEGLIGIBLE)
        begin, end = (int(keep[0]), int(keep[-1]) + 1) if keep.size else (0, 0)
        aside += float(mass[:begin].sum() + mass[end:].sum())
        mass, discounted, first = mass[begin:end], discounted[begin:end], first + begin
        if not keep.size:
            break
    return Walk(stopped, deserving, moving, weight, earned, mass, discounted, first, aside)


class Later(NamedTuple):
    """Bounds of the probability of stopping after the last row, and of stopping there although p is above the cost."""

    stop_lower: float
    stop_upper: float
    deserving_upper: float


def later_stops(policy: Policy, walked: Walk, n: float, s: float, cost: float, rows: int, p: float | None) -> Later:
    """Return bounds of the probability that a walk continues for ``rows`` acceptances and stops later."""
    size = n + rows
    good = s + (walked.first + np.arange(walked.left.size, dtype=np.float64))
    ceiling, floor = policy.stop_ceiling, policy.stop_floor(size)
    limit = float(getattr(policy, "stop_limit", -1.0))  # at or below this rate the policy stops sooner or later
    above = good - ceiling * size
    alive = float(walked.left.sum()) + walked.aside
    if ceiling <= 0.0:
        return Later(0.0, 0.0, 0.0)
    if p is not None:
        lower = alive - walked.aside if p < floor or p <= limit else 0.0
        upper = float(walked.left @ ruin_bound(above, p, ceiling)) + walked.aside if p > ceiling else alive
        return Later(lower, upper, upper if p > cost else 0.0)
    sizes = np.full(good.size, size)
    # Average over p: divide the p above the ceiling into cells, and bound each by the probability at its lower end.
    ends = ceiling + (1.0 - ceiling) * np.linspace(0.0, 1.0, CELLS + 1) ** 2
    exceeding = [exceeds(sizes, good, end) for end in ends[:-1]] + [np.zeros(good.size)]
    ever = np.zeros(good.size)
    for i in range(CELLS):
        chance = ruin_bound(above, float(ends[i]), ceiling) if i else np.ones(good.size)
        ever += chance * (exceeding[i] - exceeding[i + 1])
    above_cost = exceeds(sizes, good, cost)
    between = np.maximum(above_cost - exceeding[0], 0.0)  # p is above the cost, but not above the ceiling
    deserving = float(walked.left @ np.minimum(ever + between, above_cost)) + walked.aside
    undeserving = 1.0 - exceeding[0]
    certain = max(floor, limit)
    lower = float(walked.left @ (1.0 - exceeds(sizes, good, certain))) if certain > 0.0 else 0.0
    return Later(lower, float(walked.left @ (undeserving + ever)) + walked.aside, deserving)


def later_acceptances(policy: Policy, walked: Walk, n: float, s: float, rows: int, p: float | None) -> float:
    """Return a bound of the expected number of acceptances after the last row; infinite if they may never end.

    If the floor q is above p, the walk s − q n drifts down by q − p per acceptance and overshoots by at most q. The
    bound is Wald's identity.
    """
    size = n + rows
    floor = policy.stop_floor(size)
    if walked.left.size == 0 and walked.aside == 0.0:
        return 0.0
    if p is None or p >= floor:
        return math.inf
    above = s + (walked.first + np.arange(walked.left.size, dtype=np.float64)) - floor * size
    return float(walked.left @ ((np.maximum(above, 0.0) + floor) / (floor - p))) + walked.aside * (size / (floor - p))


def ruin_bound(above: NDArray[np.float64], p: float, ceiling: float) -> NDArray[np.float64]:
    """Return a bound of the probability that a walk ever falls by ``above``.

    The steps are 1 − q with probability p and −q otherwise, where q is the ceiling and q < p. By Lundberg's inequality
    the probability is at most e^(−θ·above), where θ > 0 solves p e^(−θ(1−q)) + (1−p) e^(θq) = 1.
    """
    if p >= 1.0:
        return np.where(above > 0.0, 0.0, 1.0)

    def log_moment(theta: float) -> float:
        return theta * ceiling + math.log(p * math.exp(-theta) + (1.0 - p))

    high = 1.0
    while log_moment(high) < 0.0 and high < 700.0:
        high *= 2.0
    low = 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if log_moment(middle) < 0.0:
            low = middle
        else:
            high = middle
    return np.exp(-low * np.maximum(above, 0.0))


@compiled
def spread(mass: NDArray[np.float64], success: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return the next row: with the success probability, the mass of a state moves up by one; otherwise it stays."""
    result = np.zeros(mass.size + 1)
    for j in range(mass.size):
        result[j] += factor * mass[j] * (1.0 - success[j])
        result[j + 1] += factor * mass[j] * success[j]
    return result
