"""Greedy: accept while the success rate seen so far is above the cost."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost


class Greedy(Rule, frozen=True, tag="greedy"):
    """1(p̂ > c): no benefit of the doubt. It stops for good at the first belief that is not above the cost.

    >>> Greedy(cost=0.8).acceptance([10, 10], [8, 9])
    array([0., 1.])
    """

    two_valued: ClassVar[bool] = True

    cost: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))

    @property
    def stop_ceiling(self) -> float:
        """The cost: above it the policy accepts."""
        return self.cost

    def stop_floor(self, n: float) -> float:
        """The cost: at or below it the policy has stopped."""
        return self.cost

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return (s > self.cost * n).astype(np.float64)
