"""Where a belief comes to a stop, for policies that are a boundary on the lattice: quick enough for a slider.

From (n, s), averaged over the belief itself, the walk is at (n + k, s + j) after k acceptances; it stops at the first
row k with j < least[k]. Each stop is a state of its own, at which the probability that p is above the cost is a Beta
tail. :func:`lenience.solver.forward.walk` does the same for any policy, with bounds, a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.solver.compiled import compiled


class Fate(NamedTuple):
    """What becomes of a population within so many acceptances."""

    deserving: float  # the probability that p is above the cost
    stops: float  # that of a stop
    shut_out: float  # that of a stop although p is above the cost


def fate(n: float, s: float, cost: float, least: Sequence[int] | NDArray[np.int64]) -> Fate:
    """The fate of a population with the belief (n, s) under the boundary, over as many acceptances as it has rows.

    >>> from lenience import Belief, Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1), rows=1000)
    >>> found = fate(2, 1, 0.8, policy.accept_from)
    >>> round(found.deserving, 3), round(found.stops, 3), round(found.shut_out, 3)
    (0.2, 0.865, 0.066)
    """
    from scipy.special import betaincc

    boundary = np.asarray(least, dtype=np.int64)
    rows, successes, mass = _stops(n, s, boundary)
    size, good = n + rows, s + successes

    def exceeds(n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        inner = np.clip(s, 1e-12, n * (1 - 1e-15))
        return np.asarray(betaincc(inner, n - inner, cost), dtype=np.float64)

    deserving = float(exceeds(np.array([n]), np.array([s]))[0])
    return Fate(deserving, float(mass.sum()), float(mass @ exceeds(size, good)))


@compiled
def _stops(
    n: float, s: float, least: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The rows, successes and probabilities of all stops."""
    rows = least.size
    mass = np.zeros(rows + 2)
    mass[0] = 1.0
    most = rows + 1
    at, good, lost = np.zeros(most), np.zeros(most), np.zeros(most)
    found = 0
    first = 0  # the least number of successes that still moves
    for k in range(rows):
        border = min(max(least[k], first), k + 1)
        for j in range(first, border):
            if mass[j] > 0.0 and found < most:
                at[found], good[found], lost[found] = k, j, mass[j]
                found += 1
            mass[j] = 0.0
        first = border
        if first > k:
            break
        for j in range(k, first - 1, -1):
            up = mass[j] * (s + j) / (n + k)
            mass[j + 1] += up
            mass[j] -= up
    return at[:found], good[:found], lost[:found]
