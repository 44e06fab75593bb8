"""Greedy: accept while the success rate observed so far is above the cost."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost


class Greedy(Rule, frozen=True, tag="greedy"):
    """Accept where p̂ > c, without any benefit of the doubt.

    It stops for good at the first belief at or below the cost.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.

    Examples
    --------
    >>> Greedy(cost=0.8).acceptance([10, 10], [8, 9])
    array([0., 1.])
    """

    two_valued: ClassVar[bool] = True

    cost: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))

    @property
    def stop_ceiling(self) -> float:
        """The cost: the policy accepts above it."""
        return self.cost

    @property
    def stop_limit(self) -> float:
        """The cost: at p ≤ cost the success rate falls to it sooner or later."""
        return self.cost

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which the policy has stopped.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The cost, at every n.

        Examples
        --------
        >>> Greedy(cost=0.8).stop_floor(10)
        0.8
        """
        return self.cost

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return (s > self.cost * n).astype(np.float64)
