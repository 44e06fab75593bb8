"""Forgetting: what was seen long ago counts for less, so that a population once shut out is looked at again.

Before each arrival, accepted or not, what the observations added to the prior fades by the memory ρ:

    n ← n₀ + ρ (n − n₀),  s ← s₀ + ρ (s − s₀)   (discounted counts: Raj and Kalyani 2017; Garivier and Moulines 2011),

and one accepts while p̂ > c_n, the threshold of the discounted optimum at the faded belief. After a stop the belief
drifts back to the prior; if the prior is accepted, the population gets another look after a while, again and again.
Where p does not change that is waste; where it may, it is the only way to find out. n never exceeds n₀ + 1/(1 − ρ).

The faded beliefs are off the prior's lattice, so c_n is interpolated: n (c − c_n) is smooth in log n.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real

SMALLEST, LARGEST, NODES = 0.1, 20_000.0, 48


class Forgetting(Rule, frozen=True, tag="forgetting"):
    """Accept while p̂ > c_n at a belief whose observations fade by ``memory`` from one arrival to the next.

    ``acceptance`` is that of the discounted optimum; what differs is how the belief moves, see :meth:`fade`.

    >>> policy = Forgetting(cost=0.8, discount=0.99, memory=0.99, prior=Belief(2, 1))
    >>> policy.acceptance([2, 10, 10], [1, 6, 7])
    array([1., 0., 1.])
    >>> n, s = policy.fade(10.0, 6.0)
    >>> round(float(n), 2), round(float(s), 2)
    (9.92, 5.95)
    """

    two_valued: ClassVar[bool] = True

    cost: float
    discount: float
    memory: float  # a field here, 1 for every other rule
    prior: Belief

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "discount", real("discount", self.discount, least=0, below=1))
        msgspec.structs.force_setattr(self, "memory", real("memory", self.memory, above=0, most=1))
        check_prior(self.prior)

    def fade(self, n: Any, s: Any) -> tuple[Any, Any]:
        """The belief before the next arrival, given that after the last one."""
        n0, s0 = self.prior.n, self.prior.s
        return n0 + self.memory * (n - n0), s0 + self.memory * (s - s0)

    @property
    def looks_again(self) -> bool:
        """Whether a population that is shut out is looked at again: whether the prior itself is accepted."""
        return self.memory < 1 and self.accepts(self.prior)

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return (s > thresholds(self.cost, self.discount, n) * n).astype(np.float64)


def thresholds(cost: float, discount: float, n: NDArray[np.float64]) -> NDArray[np.float64]:
    """c_n at many real n, by linear interpolation of n (c − c_n) in log n; beyond the last node it is constant.

    >>> thresholds(0.8, 0.99, np.array([1.0, 10.0, 100.0])).round(3)
    array([0.217, 0.654, 0.778])
    """
    knots, gaps = _curve(cost, discount)
    size = np.maximum(n, SMALLEST)
    result: NDArray[np.float64] = cost - np.interp(np.log(size), knots, gaps) / size
    return result


@lru_cache(maxsize=32)
def _curve(cost: float, discount: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from lenience.solvers.stopping.solve import DiscountedProblem
    from lenience.solvers.stopping.threshold import enclose_threshold

    problem = DiscountedProblem(cost, discount)
    knots = np.linspace(np.log(SMALLEST), np.log(LARGEST), NODES)
    sizes = np.exp(knots)
    gaps = np.array([n * (cost - enclose_threshold(problem, float(n), 1e-6).midpoint) for n in sizes])
    return knots, gaps
