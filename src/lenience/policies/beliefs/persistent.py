"""Persistent: never stop for good, but try ever more rarely (what Theorem 4 asks of an average-reward optimum)."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class Persistent(Rule, frozen=True, tag="persistent"):
    """Accept where p̂ > c, and elsewhere with probability min(1, n^−exponent).

    Every belief is left with positive probability, so n grows without bound and p becomes known; yet the share of
    individuals accepted below the cost falls to 0. With exponent 1 both the cost of trying (where p < c) and of not
    accepting (where p > c) grow like √H over H individuals.

    >>> Persistent(cost=0.8).acceptance([10, 10], [5, 9])
    array([0.1, 1. ])
    """

    two_valued: ClassVar[bool] = True

    cost: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "exponent", real("exponent", self.exponent, above=0))

    @property
    def stop_ceiling(self) -> float:
        """0: it never stops for good."""
        return 0.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(s > self.cost * n, 1.0, np.minimum(1.0, n**-self.exponent))
