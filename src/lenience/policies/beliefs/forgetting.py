"""Forgetting: old observations count for less, so that a rejected population gets another chance.

Before each arrival, accepted or not, what the observations added to the prior fades by the memory ρ:

    n ← n₀ + ρ (n − n₀),  s ← s₀ + ρ (s − s₀)   (discounted counts: Raj and Kalyani 2017; Garivier and Moulines 2011).

The policy accepts while p̂ > c_n, the threshold of the discounted optimum at the faded belief. After a stop the belief
drifts back to the prior. If the policy accepts at the prior, the population gets another chance after a while, again
and again. This is wasteful where p does not change. Where p may change, it is the only way to notice. n never exceeds
n₀ + 1/(1 − ρ).

The faded beliefs are off the prior's lattice, so c_n is interpolated (:mod:`lenience.solvers.stopping.leniency_curve`).
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
from lenience.solvers.stopping.leniency_curve import leniency_series, thresholds_on_curve

SMALLEST, LARGEST, NODES = 0.1, 20_000.0, 32  # belief sizes between which c_n is interpolated


class Forgetting(Rule, frozen=True, tag="forgetting"):
    """Accept while p̂ > c_n at a belief whose observations fade from one arrival to the next.

    ``acceptance`` is that of the discounted optimum. What differs is how the belief changes, see :meth:`fade`.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    discount
        The discount factor from one individual to the next, from 0 to below 1.
    memory
        The weight ρ that a past observation keeps from one arrival to the next, above 0 and at most 1.
    prior
        The belief that the observations are added to and fade towards.

    Examples
    --------
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
    memory: float  # overrides the property of other rules, which is 1
    prior: Belief

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "discount", real("discount", self.discount, least=0, below=1))
        msgspec.structs.force_setattr(self, "memory", real("memory", self.memory, above=0, most=1))
        check_prior(self.prior)

    def fade(self, n: Any, s: Any) -> tuple[Any, Any]:
        """Return the belief before the next arrival, from the belief after the last one.

        Parameters
        ----------
        n : float or ndarray
            Numbers of observations after the last arrival.
        s : float or ndarray
            Numbers of successes after the last arrival.

        Returns
        -------
        tuple
            The faded n and s.

        Examples
        --------
        >>> Forgetting(cost=0.8, discount=0.99, memory=0.5, prior=Belief(2, 1)).fade(10.0, 7.0)
        (6.0, 4.0)
        """
        n0, s0 = self.prior.n, self.prior.s
        return n0 + self.memory * (n - n0), s0 + self.memory * (s - s0)

    @property
    def looks_again(self) -> bool:
        """Whether a rejected population gets another chance, which it does if the policy accepts at the prior."""
        return self.memory < 1 and self.accepts(self.prior)

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return (s > thresholds(self.cost, self.discount, n) * n).astype(np.float64)


def thresholds(cost: float, discount: float, n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return c_n at many real n. Beyond the last node n (c − c_n) is constant.

    >>> thresholds(0.8, 0.99, np.array([1.0, 10.0, 100.0])).round(3)
    array([0.217, 0.654, 0.778])
    """
    return thresholds_on_curve(cost, _series(cost, discount), SMALLEST, LARGEST, np.maximum(n, SMALLEST))


@lru_cache(maxsize=32)
def _series(cost: float, discount: float) -> tuple[float, ...]:
    from lenience.solvers.stopping.solve import DiscountedProblem

    if discount == 0.0:
        return (0.0, 0.0)  # The future counts for nothing: accept above the break-even.
    return tuple(leniency_series(DiscountedProblem(cost, discount), SMALLEST, LARGEST, NODES, 1e-5))
