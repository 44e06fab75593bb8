"""Thompson: accept with the probability that accepting is right (Thompson 1933; Russo et al. 2018).

    Π(n, s) = P(p > c), p ~ Beta(s, n − s):

drawing one p from the belief and accepting if it exceeds the cost does so with exactly this probability.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost


class Thompson(Rule, frozen=True, tag="thompson"):
    """Accept with probability P(p > c) under the belief.

    >>> Thompson(cost=0.8).acceptance([2, 10], [1, 7]).round(4)
    array([0.2   , 0.2618])
    """

    cost: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))

    @property
    def stop_ceiling(self) -> float:
        """0: only a certainty is ever stopped at."""
        return 0.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return probability_above(n, s, self.cost)


def probability_above(n: NDArray[np.float64], s: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """P(p > rate) under Beta(s, n − s), certainties included."""
    from scipy.special import betaincc

    open_ = (s > 0) & (s < n)
    chance = betaincc(np.where(open_, s, 1.0), np.where(open_, n - s, 1.0), rate)
    return np.where(open_, chance, (s >= n).astype(np.float64))
