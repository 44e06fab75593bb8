"""SemiLogistic: the semi-logistic exploring policy of Kilbertus et al. (2020), without features.

    Π(n, p̂) = 1 where θ ≥ 0, and σ(θ) elsewhere,  θ = sharpness · (logit p̂ − logit c).

Only the individuals whom a threshold would reject are accepted at random. See
:mod:`lenience.policies.beliefs.logistic` for the score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.policies.beliefs.logistic import Squashed


class SemiLogistic(Squashed, frozen=True, tag="semi_logistic"):
    """Accept where p̂ ≥ c, and elsewhere with probability σ(sharpness · (logit p̂ − logit c)).

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    sharpness
        The factor of the log-odds, above 0. Larger values are closer to the greedy policy.

    Examples
    --------
    >>> SemiLogistic(cost=0.8).acceptance([10, 10, 10], [5, 8, 9]).round(4)
    array([0.2, 1. , 1. ])
    """

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(s >= self.cost * n, 1.0, self._score(n, s))
