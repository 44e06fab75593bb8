"""Constant: accept everyone with the same probability, whatever the belief."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import real


class Constant(Rule, frozen=True, tag="constant"):
    """Accept everyone with the same probability π (the paper's Section 3.2; π = 1 is its always-accept policy).

    Parameters
    ----------
    probability
        The probability of accepting, from 0 to 1.

    Examples
    --------
    >>> Constant(0.25).acceptance([2, 100], [1, 3])
    array([0.25, 0.25])
    """

    two_valued: ClassVar[bool] = True

    probability: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "probability", real("probability", self.probability, least=0, most=1))

    @property
    def stop_ceiling(self) -> float:
        """0, because the policy never stops; 1 if it never accepts."""
        return 0.0 if self.probability > 0 else 1.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(n.shape, self.probability)
