"""How close a belief must be to the prior's lattice, and a rate to the cost, to count as equal to it.

From a prior (n₀, s₀) only the beliefs (n₀ + k, s₀ + j) can be reached. Floating-point sums reach them with an error of
a few roundings, so solved policies look a belief up if it is near such a state. The distance must be small compared
with the prior too: with n₀ = 10⁻¹⁰ a distance of 10⁻¹¹ is a different rate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief

LATTICE = 1e-9  # the largest distance, in units of one observation
ROUNDINGS = 4 * 2.0**-52  # relative error of floating-point sums
# Relative distance below the cost at which a rate still counts as equal to the cost. The cost is a rounded decimal
# fraction: 0.8 as a double is above 4/5, so 16 of 20 would be below it.
AT_COST = 1e-15


def size_distance(prior: Belief) -> float:
    """Return how far n may be from the lattice, before the rounding of n itself is counted.

    >>> size_distance(Belief(2, 1)), size_distance(Belief(0.5, 0.2))
    (1e-09, 5e-10)
    """
    return LATTICE * min(1.0, prior.n)


def success_distance(prior: Belief) -> float:
    """Return how far s may be from the lattice, before the rounding of s itself is counted.

    >>> success_distance(Belief(2, 1)), success_distance(Belief(3, 0))
    (1e-09, 0.0)
    """
    return LATTICE * min(1.0, prior.s, prior.n - prior.s)


def is_near(number: float, start: float, distance: float) -> bool:
    """Return whether a number is a whole number of steps from ``start``, within a distance or its own rounding.

    >>> is_near(2.3 + 1e-12, 0.3, 1e-9), is_near(1e-11, 9e-11, 1e-20), is_near(5.0, 9e-11, 1e-20)
    (True, False, False)
    """
    gap = abs(number - start - round(number - start))
    return gap <= min(LATTICE, max(distance, ROUNDINGS * abs(number)))


def near(numbers: NDArray[np.float64], start: float, distance: float) -> NDArray[np.bool_]:
    """Return :func:`is_near` for many numbers at once.

    >>> near(np.array([2.3, 2.4]), 0.3, 1e-9)
    array([ True, False])
    """
    steps = numbers - start
    gap = np.abs(steps - np.rint(steps))
    return np.asarray(gap <= np.minimum(LATTICE, np.maximum(distance, ROUNDINGS * np.abs(numbers))))
