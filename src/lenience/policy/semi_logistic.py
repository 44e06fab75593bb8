"""SemiLogistic: the semi-logistic exploring policy of Kilbertus et al. (2020), without features.

    Π(n, p̂) = 1 where θ ≥ 0, and σ(θ) elsewhere,  θ = sharpness · (logit p̂ − logit c):

chance is kept for those whom a threshold would reject. See :mod:`lenience.policy.logistic` for the score.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.errors import real
from lenience.objective.base import check_cost
from lenience.policy.logistic import squashed
from lenience.policy.protocol import Rule


class SemiLogistic(Rule, frozen=True, tag="semi_logistic"):
    """Accept where p̂ ≥ c, and elsewhere with probability σ(sharpness · (logit p̂ − logit c)).

    >>> SemiLogistic(cost=0.8).acceptance([10, 10, 10], [5, 8, 9]).round(4)
    array([0.2, 1. , 1. ])
    """

    cost: float
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "sharpness", real("sharpness", self.sharpness, above=0))

    @property
    def stop_ceiling(self) -> float:
        """0: only a certainty is ever stopped at."""
        return 0.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(s >= self.cost * n, 1.0, squashed(n, s, self.cost, self.sharpness))
