"""The real-valued threshold c_n: the p̂ at which Ṽ(n, p̂) = 0, for a fixed n.

Ṽ rises in p̂ with a slope of at least 1 (Proposition 2). It is −c at p̂ = 0 and positive at p̂ = c. So c_n is a root that
:func:`lenience.solvers.stopping.root.enclose_root` encloses.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.protocols import StoppingProblem
from lenience.solvers.stopping.leniency_curve import leniency_series, thresholds_on_curve
from lenience.solvers.stopping.root import enclose_root
from lenience.solvers.stopping.solve import DiscountedProblem, look_ahead_within, solve_discounted


@lru_cache(maxsize=4096)
def enclose_threshold(
    problem: StoppingProblem, n: float, tolerance: float, guess: float | None = None, spread: float = math.inf
) -> Bounds:
    """Return bounds of c_n within the tolerance of each other, or within the rounding error at discounts near 1.

    A good guess saves solves; ``spread`` is its likely error.
    """
    cost = problem.cost
    if problem.remaining(1) is None or problem.discount == 0.0:
        return Bounds(cost, cost)  # Nothing learnt can be used later, so accept above the break-even.

    def continuation(rate: float) -> Bounds:
        belief = Belief(n, min(rate * n, n))
        # Away from the root a coarse value is enough to show on which side x lies, in a third of the time if the
        # discount is near 1. Even near the root it may be enough, because a solve is often more precise than requested.
        rough = problem.enclose(belief, max(math.sqrt(tolerance), tolerance / 4))[1]
        conclusive = abs(rough.midpoint) > rough.width or rough.width <= tolerance
        return rough if conclusive else problem.enclose(belief, tolerance / 4)[1]

    start = cost / (1.0 + 1.0 / (n * cost)) if guess is None else guess
    bounds = enclose_root(continuation, 0.0, cost, start, tolerance, spread)
    # The solver sees the rate fl(x·n)/n, which may differ from x by half a rounding. One step outwards covers that.
    lower, upper = math.nextafter(bounds.lower, 0.0), math.nextafter(bounds.upper, math.inf)
    return Bounds(lower, min(upper, cost))


def estimate_threshold(
    cost: float, discount: float, n: float, tolerance: float, seconds: float, guess: float | None = None
) -> float:
    """Return c_n, from proved bounds or, if one solve takes longer than ``seconds``, from solves that look less far.

    A solve with a shorter look-ahead has wider bounds, and their midpoints have a root that is close to c_n.

    >>> exact = enclose_threshold(DiscountedProblem(0.8, 0.999), 40.0, 1e-5).midpoint
    >>> abs(estimate_threshold(0.8, 0.999, 40.0, 1e-5, 1e-4) - exact) < 1e-3
    True
    """
    ahead = look_ahead_within(n, cost, discount, 1, math.sqrt(tolerance), seconds)
    if ahead is None:
        return enclose_threshold(DiscountedProblem(cost, discount), n, tolerance, guess).midpoint

    def middle(rate: float) -> Bounds:
        value = solve_discounted(n, min(rate * n, n), cost, discount, 1, math.sqrt(tolerance), ahead).continuation
        return Bounds(value.midpoint, value.midpoint)

    start = cost / (1.0 + 1.0 / (n * cost)) if guess is None else guess
    return enclose_root(middle, 0.0, cost, start, tolerance).midpoint


def threshold_curve(problem: StoppingProblem, n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return c_n at many n for a figure: exact at Chebyshev nodes, with n (c − c_n) interpolated in log n between them.

    A curve through the smallest accepted s/n of a lattice would be a sawtooth. This one is smooth. It is not proved,
    but the error of the leniency c − c_n is about 1% or less.
    """
    low, high = float(n.min()), float(n.max())
    if math.log(high / low) < 1e-9:
        return np.full(n.shape, enclose_threshold(problem, float(n.flat[0]), 1e-6).midpoint)
    series = leniency_series(problem, low, high)
    return thresholds_on_curve(problem.cost, series, low, high, n)
