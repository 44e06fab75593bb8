"""Logistic: the logistic exploring policy of Kilbertus et al. (2020), without features.

    Π(n, p̂) = σ(θ),  θ = sharpness · (logit p̂ − logit c),  σ(x) = 1/(1 + e^−x).

Theirs is σ(φ(x)ᵀθ) with θ learnt by stochastic gradient ascent. Without features the score is one number; the log-odds
of the belief's mean against those of the cost have the sign that is wanted, and a sharpness of 1 makes the score
the one that a logistic regression on the outcomes would give.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class Squashed(Rule, frozen=True):
    """What the logistic and the semi-logistic policy share: a cost, a sharpness and the score σ(θ)."""

    cost: float
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "sharpness", real("sharpness", self.sharpness, above=0))

    @property
    def stop_ceiling(self) -> float:
        """0: only a certainty is ever stopped at."""
        return 0.0

    def _score(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        """σ(sharpness · (logit p̂ − logit c)), certainties included."""
        from scipy.special import expit, logit

        score: NDArray[np.float64] = expit(self.sharpness * (logit(np.minimum(s / n, 1.0)) - logit(self.cost)))
        return score


class Logistic(Squashed, frozen=True, tag="logistic"):
    """Accept with probability σ(sharpness · (logit p̂ − logit c)): ½ at p̂ = c.

    >>> Logistic(cost=0.8).acceptance([10, 10, 10], [5, 8, 9]).round(4)
    array([0.2   , 0.5   , 0.6923])
    """

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._score(n, s)
