"""Logistic: the logistic exploring policy of Kilbertus et al. (2020), without features.

    Π(n, p̂) = σ(θ),  θ = sharpness · (logit p̂ − logit c),  σ(x) = 1/(1 + e^−x).

Theirs is σ(φ(x)ᵀθ) with θ learnt by stochastic gradient ascent. Without features the score is one number: the log-odds
of the belief's mean less those of the cost, which is positive exactly where p̂ > c. With a sharpness of 1 it is the
score that a logistic regression on the outcomes would give.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class Squashed(Rule, frozen=True):
    """Base of the logistic and the semi-logistic policy: a cost, a sharpness and the score σ(θ).

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    sharpness
        The factor of the log-odds, above 0. Larger values are closer to the greedy policy.
    """

    cost: float
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "sharpness", real("sharpness", self.sharpness, above=0))

    @property
    def stop_ceiling(self) -> float:
        """0, because the policy stops only at a certainty."""
        return 0.0

    def _score(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return σ(sharpness · (logit p̂ − logit c)), also at certainties."""
        from scipy.special import expit, logit

        score: NDArray[np.float64] = expit(self.sharpness * (logit(np.minimum(s / n, 1.0)) - logit(self.cost)))
        return score


class Logistic(Squashed, frozen=True, tag="logistic"):
    """Accept with probability σ(sharpness · (logit p̂ − logit c)), which is ½ at p̂ = c.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    sharpness
        The factor of the log-odds, above 0. Larger values are closer to the greedy policy.

    Examples
    --------
    >>> Logistic(cost=0.8).acceptance([10, 10, 10], [5, 8, 9]).round(4)
    array([0.2   , 0.5   , 0.6923])
    """

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._score(n, s)
