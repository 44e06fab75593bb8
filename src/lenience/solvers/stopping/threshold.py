"""The real-valued threshold c_n: the p̂ at which Ṽ(n, p̂) = 0, with n held.

Ṽ rises in p̂ with a slope of at least 1 (Proposition 2), it is −c at p̂ = 0 and positive at p̂ = c, so c_n is a
root that :func:`lenience.solvers.stopping.root.enclose_root` encloses.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.protocols import StoppingProblem
from lenience.solvers.stopping.root import enclose_root

NODES = 16


@lru_cache(maxsize=4096)
def enclose_threshold(
    problem: StoppingProblem, n: float, tolerance: float, guess: float | None = None, spread: float = math.inf
) -> Bounds:
    """Bounds of c_n, as far apart as the tolerance or, at discounts near 1, as rounding makes them; sooner found with a
    good guess, and a spread that says how good."""
    cost = problem.cost
    if problem.remaining(1) is None or problem.discount == 0.0:
        return Bounds(cost, cost)  # what is learnt is of no use: one accepts above the break-even

    def continuation(rate: float) -> Bounds:
        belief = Belief(n, min(rate * n, n))
        # Away from the root a coarse value tells its side, in a third of the time where the discount is near 1; and
        # it may turn out to be fine enough even at the root, for a solve often does better than it was asked to.
        rough = problem.enclose(belief, max(math.sqrt(tolerance), tolerance / 4))[1]
        told = abs(rough.midpoint) > rough.width or rough.width <= tolerance
        return rough if told else problem.enclose(belief, tolerance / 4)[1]

    start = cost / (1.0 + 1.0 / (n * cost)) if guess is None else guess
    return enclose_root(continuation, 0.0, cost, start, tolerance, spread)


def threshold_curve(problem: StoppingProblem, n: NDArray[np.float64]) -> NDArray[np.float64]:
    """c_n at many n for a picture: exact at Chebyshev nodes, n (c − c_n) interpolated in log n between them.

    A curve through the least accepted s/n of a lattice would be a sawtooth. This one is smooth; it is not proved, but
    its leniency is right to about one part in a hundred or better.
    """
    low, high = float(n.min()), float(n.max())
    if math.log(high / low) < 1e-9:
        return np.full(n.shape, enclose_threshold(problem, float(n.flat[0]), 1e-6).midpoint)
    series = leniency_series(problem, low, high)
    places = np.log(n / low) / math.log(high / low) * 2 - 1
    return np.asarray(problem.cost - np.polynomial.chebyshev.chebval(places, series) / n, dtype=np.float64)


def leniency_series(
    problem: StoppingProblem, low: float, high: float, nodes: int = NODES, tolerance: float = 1e-4
) -> NDArray[np.float64]:
    """n (c − c_n) as a Chebyshev series in log n from one belief size to another, exact at its nodes (to a tolerance of
    c_n, closer where n is large)."""
    cost = problem.cost
    places = np.cos((2 * np.arange(nodes) + 1) * math.pi / (2 * nodes))[::-1]
    leniency: list[float] = []
    for place in places:
        size = low * math.exp((place + 1) / 2 * math.log(high / low))
        # n (c − c_n) changes slowly in log n: go on from where the last nodes point.
        ahead = 2 * leniency[-1] - leniency[-2] if len(leniency) > 1 else None
        guess = None if ahead is None else max(cost - ahead / size, 0.5 * cost)
        close = min(tolerance, 100 * tolerance * cost * (1 - cost) / (1 + size))
        leniency.append(size * (cost - enclose_threshold(problem, size, close, guess).midpoint))
    return np.asarray(np.polynomial.chebyshev.chebfit(places, leniency, nodes - 1), dtype=np.float64)
