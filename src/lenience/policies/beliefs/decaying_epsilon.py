"""DecayingEpsilon: ε-greedy whose ε falls with the observations (Auer, Cesa-Bianchi and Fischer 2002, ε_n-greedy).

    Π(n, p̂) = 1 where p̂ > c, and min(1, scale/n) elsewhere.

Auer's ε falls with time. A policy here sees only the belief, so ε falls with the number n of observations. While a
population is rejected most of the time, n grows like √time and ε falls like 1/√time.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class DecayingEpsilon(Rule, frozen=True, tag="decaying_epsilon"):
    """Accept where p̂ > c, and elsewhere with probability min(1, scale/n).

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    scale
        The number of observations up to which everyone is accepted, above 0.

    Examples
    --------
    >>> DecayingEpsilon(cost=0.8, scale=2.0).acceptance([10, 100], [5, 50])
    array([0.2 , 0.02])
    """

    two_valued: ClassVar[bool] = True

    cost: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "scale", real("scale", self.scale, above=0))

    @property
    def stop_ceiling(self) -> float:
        """0, because the policy never stops for good."""
        return 0.0

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(s > self.cost * n, 1.0, np.minimum(1.0, self.scale / n))
