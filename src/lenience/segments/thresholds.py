"""Thresholds: c_n at any belief size n and any discount, at once, from a table of certified ones.

A model that borrows strength gives beliefs of any real size, and every segment has a discount of its own, so a lattice
table is of no use. c_n depends on (n, γ) alone once c is fixed, and smoothly: divided by its asymptote,

    c − c_n  ÷  (B(c, γ)/n) / (1 + 1/(4n(1 − γ))),

it varies by less than a factor of a few over all n and γ. That ratio is computed at nodes of (log n, log γ/(1 − γ)),
each from a certified enclosure of c_n, and interpolated by a cubic spline. What is promised: nodes are certified to
1e-6; between them the error is that of the spline, measured in the tests to be below 2e-3 in c_n (and shown by
:meth:`Thresholds.error`); beyond the last volume (2,000 members) errors grow where n is small, to 0.1 at n = 5 and
10,000 members.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.validation import check_cost
from lenience.objectives.discounted import Discounted
from lenience.solvers.stopping.leniency_rate import leniency_rate
from lenience.solvers.stopping.root import enclose_root

PRECISION = 1e-6
SIZES = np.geomspace(0.05, 3e4, 29)
VOLUMES = np.geomspace(0.1, 2e3, 15)


class Thresholds:
    """c_n for one cost, at any size and discount.

    >>> table = Thresholds(0.8)
    >>> table.at([1, 10, 100], 0.99).round(3)
    array([0.217, 0.654, 0.778])
    """

    def __init__(self, cost: float) -> None:
        self.cost = check_cost(cost)
        self._ratio, self._rate = _table(self.cost)

    def at(self, n: ArrayLike, discount: ArrayLike) -> NDArray[np.float64]:
        """The success rate above which one accepts, at belief sizes n and discounts, for arrays that broadcast."""
        size, gamma = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(discount, dtype=np.float64))
        last = VOLUMES[-1]
        volume = gamma / (1.0 - gamma)
        result = self._inside(size, np.minimum(volume, last), None)
        outside = volume > last
        if np.any(outside):
            # There the ratio depends, nearly, on n in units of the volume; and thresholds only fall as volumes rise.
            rate = np.ones_like(gamma)
            for value in np.unique(gamma[outside]):
                rate = np.where(gamma == value, leniency_rate(self.cost, float(value)), rate)
            result = np.where(outside, np.minimum(result, self._inside(size, volume, rate)), result)
        return result

    def _inside(
        self, size: NDArray[np.float64], volume: NDArray[np.float64], rate: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """c_n from the table, with the asymptote's B given or from the table too."""
        scaled = size * np.minimum(1.0, VOLUMES[-1] / np.maximum(volume, 1e-12))
        x = np.log(np.clip(scaled, SIZES[0], SIZES[-1]))
        y = np.log(np.clip(volume, VOLUMES[0], VOLUMES[-1]))
        limit = np.exp(np.asarray(self._rate(y))) if rate is None else rate
        asymptote = limit / size / (1.0 + 0.25 * (1.0 + volume) / size)
        # Below the first node in volume leniency vanishes with it.
        few = np.minimum(volume / VOLUMES[0], 1.0)
        result: NDArray[np.float64] = np.maximum(self.cost - few * np.asarray(self._ratio.ev(x, y)) * asymptote, 0.0)
        return result

    def error(self, n: float, discount: float) -> float:
        """How far the table is from a certified threshold at this size and discount."""
        exact = _certified(self.cost, n, discount, leniency_rate(self.cost, discount))
        return float(abs(self.at(n, discount) - exact))


@lru_cache(maxsize=32)
def _table(cost: float) -> tuple[Any, Any]:
    from scipy.interpolate import CubicSpline, RectBivariateSpline

    discounts = VOLUMES / (1.0 + VOLUMES)
    rates = np.array([leniency_rate(cost, float(gamma)) for gamma in discounts])
    asked = [(i, j) for i in range(SIZES.size) for j in range(VOLUMES.size)]
    ratio = np.empty((SIZES.size, VOLUMES.size))

    def fill(place: tuple[int, int]) -> None:
        i, j = place
        n, gamma = float(SIZES[i]), float(discounts[j])
        asymptote = rates[j] / n / (1.0 + 0.25 * (1.0 + VOLUMES[j]) / n)
        ratio[i, j] = (cost - _certified(cost, n, gamma, float(rates[j]))) / asymptote

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, sorted(asked, key=lambda place: -place[1])))
    return RectBivariateSpline(np.log(SIZES), np.log(VOLUMES), ratio), CubicSpline(np.log(VOLUMES), np.log(rates))


def _certified(cost: float, n: float, discount: float, rate: float) -> float:
    """The midpoint of a certified enclosure of c_n."""
    problem = Discounted(cost, discount)
    # Far out c − c_n is small itself: it is wanted to a relative precision.
    guess = cost - rate / n / (1.0 + 0.25 / (n * (1.0 - discount)))
    fine = PRECISION * min(1.0, 10.0 * (cost - guess))

    def continuation(mean: float) -> Bounds:
        return problem.enclose(Belief(n, min(mean * n, n)), fine / 4)[1]

    return enclose_root(continuation, 0.0, cost, max(guess, 1e-3 * cost), fine).midpoint
