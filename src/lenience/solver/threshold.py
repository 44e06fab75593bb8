"""The real-valued threshold c_n: the p̂ at which Ṽ(n, p̂) = 0, with n held.

Ṽ rises in p̂ with a slope of at least 1 (Proposition 2), it is −c at p̂ = 0 and positive at p̂ = c, so c_n is a
root that :func:`lenience.solver.root.enclose_root` encloses.
"""

from __future__ import annotations

from functools import lru_cache

from lenience.belief import Belief
from lenience.bounds import Bounds
from lenience.objective.base import StoppingObjective
from lenience.solver.root import enclose_root


@lru_cache(maxsize=4096)
def enclose_threshold(objective: StoppingObjective, n: float, tolerance: float) -> Bounds:
    """Bounds of c_n, as far apart as the tolerance or, at discounts near 1, as rounding makes them."""
    cost = objective.cost

    def continuation(rate: float) -> Bounds:
        return objective.enclose(Belief(n, min(rate * n, n)), tolerance / 4)[1]

    guess = cost / (1.0 + 1.0 / (n * cost))
    return enclose_root(continuation, 0.0, cost, guess, tolerance)
