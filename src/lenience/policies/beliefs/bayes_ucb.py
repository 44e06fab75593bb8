"""BayesUCB: accept while an upper quantile of the belief exceeds the cost (Kaufmann, Cappé and Garivier 2012).

    Π(n, s) = 1( Q(q; Beta(s, n − s)) > c ) = 1( P(p > c) > 1 − q ).

In the paper q rises with time as 1 − 1/t. A policy here sees only the belief, so without a given quantile it uses
q = 1 − 1/(n + 1).
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real
from lenience.policies.beliefs.thompson import probability_above


class BayesUCB(Rule, frozen=True, tag="bayes_ucb"):
    """Accept while an upper quantile of the belief is above the cost.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    quantile
        The quantile, strictly between 0 and 1. ``None`` for 1 − 1/(n + 1), which rises with the observations.

    Examples
    --------
    >>> BayesUCB(cost=0.8).acceptance([10, 10], [5, 6])
    array([0., 1.])
    """

    two_valued: ClassVar[bool] = True

    cost: float
    quantile: float | None = 0.95

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        if self.quantile is not None:
            msgspec.structs.force_setattr(self, "quantile", real("quantile", self.quantile, above=0, below=1))

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        doubt = 1.0 / (n + 1.0) if self.quantile is None else 1.0 - self.quantile
        return (probability_above(n, s, self.cost) > doubt).astype(np.float64)
