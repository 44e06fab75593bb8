"""The walk of a belief under a policy that is a boundary on the lattice, fast enough for a slider.

From (n, s) the walk is at (n + k, s + j) after k acceptances. It stops for good at the first row k with j < least[k];
in every other state the policy accepts. The probability that p is above the cost is known at each stop: it is a Beta
tail. :func:`lenience.solvers.stopping.forward.walk` follows any policy, and uses this module if the policy is a
boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled

NEGLIGIBLE = 1e-18  # end states of a row with less probability are dropped and counted as undecided
BELIEVED = -1.0  # stands for an unknown p: each step succeeds with the probability p̂ of its belief


class Fate(NamedTuple):
    """The probabilities of what happens to a population within a number of acceptances."""

    deserving: float  # p is above the cost
    stops: float  # the policy stops for good
    shut_out: float  # the policy stops for good although p is above the cost


def fate(n: float, s: float, cost: float, least: Sequence[int] | NDArray[np.int64]) -> Fate:
    """Return the fate of a population with the belief (n, s), for as many acceptances as the boundary has rows.

    >>> from lenience import Belief, Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1), rows=1000)
    >>> ahead = fate(2, 1, 0.8, policy.accept_from)
    >>> round(ahead.deserving, 3), round(ahead.stops, 3), round(ahead.shut_out, 3)
    (0.2, 0.865, 0.066)
    """
    walk = follow(n, s, cost, 1.0, np.asarray(least, dtype=np.int64), BELIEVED)
    deserving = float(exceeds(np.array([n]), np.array([s]), cost)[0])
    shut_out = float(walk.lost @ exceeds(n + walk.at, s + walk.good, cost))
    return Fate(deserving, float(walk.lost.sum()), shut_out)


def exceeds(n: NDArray[np.float64], s: NDArray[np.float64], cost: float) -> NDArray[np.float64]:
    """Return P(Beta(s, n − s) > cost)."""
    from scipy.special import betaincc

    certain = (s <= 0.0) | (s >= n)
    inner = np.where(certain, 0.5 * n, s)
    return np.where(certain, (s / n > cost).astype(np.float64), betaincc(inner, n - inner, cost))


class Followed(NamedTuple):
    """A walk under a boundary: each of its stops, and by row the probability that it continues."""

    at: NDArray[np.float64]  # by stop: the row
    good: NDArray[np.float64]  # by stop: the number of successes
    lost: NDArray[np.float64]  # by stop: the probability
    moving: NDArray[np.float64]  # by row: the probability of one more acceptance
    weight: NDArray[np.float64]  # by row: the same, discounted
    earned: NDArray[np.float64]  # by row: the discounted expected reward of that acceptance
    left: NDArray[np.float64]  # by number of successes: the probability after the last row
    left_weight: NDArray[np.float64]  # by number of successes: the same, discounted
    first: int  # the number of successes of the first entry of ``left``
    aside: float  # the probability that was dropped


@compiled
def follow(n: float, s: float, cost: float, discount: float, least: NDArray[np.int64], p: float) -> Followed:
    """Follow the walk for as many acceptances as the boundary has rows, at a true p or ``BELIEVED``."""
    rows = least.size
    mass, weighed = np.zeros(rows + 1), np.zeros(rows + 1)
    mass[0] = weighed[0] = 1.0
    moving, weight, earned = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    at, good, lost = (
        np.zeros(rows + 1),
        np.zeros(rows + 1),
        np.zeros(rows + 1),
    )  # at most one stop for each number of successes
    stops = 0
    first, end = 0, 1  # the range of numbers of successes at which the walk continues
    aside = 0.0
    for k in range(rows):
        border = min(max(least[k], first), end)
        for j in range(first, border):
            if mass[j] > 0.0:
                at[stops], good[stops], lost[stops] = k, j, mass[j]
                stops += 1
            mass[j] = weighed[j] = 0.0
        first = border
        if first == end:
            break
        for j in range(end - 1, first - 1, -1):
            success = (s + j) / (n + k) if p < 0.0 else p
            moving[k] += mass[j]
            weight[k] += weighed[j]
            earned[k] += weighed[j] * (success - cost)
            mass[j + 1] += mass[j] * success
            weighed[j + 1] += discount * weighed[j] * success
            mass[j] *= 1.0 - success
            weighed[j] *= discount * (1.0 - success)
        end += 1
        while first < end and mass[first] <= NEGLIGIBLE:
            aside += mass[first]
            mass[first] = weighed[first] = 0.0
            first += 1
        while end > first and mass[end - 1] <= NEGLIGIBLE:
            end -= 1
            aside += mass[end]
            mass[end] = weighed[end] = 0.0
        if first == end:
            break
    return Followed(
        at[:stops],
        good[:stops],
        lost[:stops],
        moving,
        weight,
        earned,
        mass[first:end],
        weighed[first:end],
        first,
        aside,
    )
