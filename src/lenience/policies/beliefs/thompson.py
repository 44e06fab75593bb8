"""Thompson: accept with the probability that accepting is right (Thompson 1933; Russo et al. 2018).

    Π(n, s) = P(p > c), p ~ Beta(s, n − s).

The usual algorithm draws one p from the belief and accepts if it exceeds the cost. It accepts with exactly this
probability.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost


class Thompson(Rule, frozen=True, tag="thompson"):
    """Accept with probability P(p > c) under the belief.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.

    Examples
    --------
    >>> Thompson(cost=0.8).acceptance([2, 10], [1, 7]).round(4)
    array([0.2   , 0.2618])
    """

    cost: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))

    @property
    def stop_ceiling(self) -> float:
        """0, because the policy stops only at a certainty."""
        return 0.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return probability_above(n, s, self.cost)


def probability_above(n: NDArray[np.float64], s: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Return P(p > rate) under Beta(s, n − s), also at certainties."""
    from scipy.special import betaincc

    open_ = (s > 0) & (s < n)
    chance = betaincc(np.where(open_, s, 1.0), np.where(open_, n - s, 1.0), rate)
    return np.where(open_, chance, (s >= n).astype(np.float64))
