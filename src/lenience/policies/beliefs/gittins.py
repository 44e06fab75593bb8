"""Gittins: accept while the Gittins index of the belief exceeds the cost.

References: Gittins 1979; Gittins, Glazebrook and Weber 2011.

The index is the cost at which accepting is worth exactly nothing, so this is another way to compute the discounted
optimum (Theorem 1). It is slower, because each state near the boundary needs its own index. It is here for comparison.
Two bounds avoid most of the work: the index is above p̂, and accepting does not pay where
p̂ − c + γ/(1−γ) E(p − c)⁺ ≤ 0, which is the most that could be earned with p known after the first acceptance.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, check_tolerance, real


class Gittins(Rule, frozen=True, tag="gittins"):
    """Accept while the Gittins index of the belief is above the cost.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    discount
        The discount factor from one individual to the next, from 0 to below 1.
    tolerance
        The precision of each index.

    Examples
    --------
    >>> Gittins(cost=0.8, discount=0.99).acceptance([10, 10], [6, 7])
    array([0., 1.])
    """

    two_valued: ClassVar[bool] = True

    cost: float
    discount: float
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "discount", real("discount", self.discount, least=0, below=1))
        msgspec.structs.force_setattr(self, "tolerance", check_tolerance(self.tolerance))

    @property
    def stop_ceiling(self) -> float:
        """The cost: the policy accepts above it."""
        return self.cost

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        from lenience.solvers.stopping.clairvoyant import gain_of_knowing

        best = s / n - self.cost + self.discount / (1.0 - self.discount) * gain_of_knowing(n, s, self.cost)
        result = np.asarray(s > self.cost * n, dtype=np.float64)
        open_ = (result == 0.0) & (np.asarray(best) > 0.0)
        for size in np.unique(n[open_]):
            here = open_ & (n == size)
            candidates = np.unique(s[here])
            # The index rises with s, so bisect for the first s that is accepted.
            low, high = 0, candidates.size
            while low < high:
                middle = (low + high) // 2
                if self._exceeds(float(size), float(candidates[middle])):
                    high = middle
                else:
                    low = middle + 1
            if low < candidates.size:
                result[here & (s >= candidates[low])] = 1.0
        return result

    def _exceeds(self, n: float, s: float) -> bool:
        return _index(n, s, self.discount, self.tolerance) > self.cost


@lru_cache(maxsize=65536)
def _index(n: float, s: float, discount: float, tolerance: float) -> float:
    from lenience.solvers.stopping.gittins_index import gittins_index

    return gittins_index(Belief(n, s), discount, tolerance).midpoint
