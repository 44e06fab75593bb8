"""Persistent: never stop for good, but explore ever more rarely, as an optimal average reward requires (Theorem 4)."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class Persistent(Rule, frozen=True, tag="persistent"):
    """Accept where p̂ > c, and elsewhere with probability min(1, n^−exponent).

    The policy leaves every belief with positive probability, so n grows without bound and p becomes known. Yet the
    share of individuals accepted below the cost falls to 0. With exponent 1 both the cost of exploring (where p < c)
    and the cost of not accepting (where p > c) grow like √H over H individuals.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    exponent
        How fast exploration decays with the observations, above 0.

    Examples
    --------
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
        """0, because the policy never stops for good."""
        return 0.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        # NumPy rounds powers of a reversed or spread-out array differently in the last place.
        return np.where(s > self.cost * n, 1.0, np.minimum(1.0, np.array(n, order="C") ** -self.exponent))
