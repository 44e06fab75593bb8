"""EpsilonGreedy: greedy, with a constant probability of accepting the others.

References: Watkins 1989; Sutton and Barto 2018, Section 2.2.

    Π(n, p̂) = 1 where p̂ > c, and ε elsewhere.

With two actions the textbook rule also rejects at random where p̂ > c. Here a rejection teaches nothing, so exploring
means accepting, and only acceptances are random.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class EpsilonGreedy(Rule, frozen=True, tag="epsilon_greedy"):
    """Accept where p̂ > c, and elsewhere with probability ε.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    epsilon
        The probability of accepting where p̂ ≤ c, from 0 to 1.

    Examples
    --------
    >>> EpsilonGreedy(cost=0.8, epsilon=0.05).acceptance([10, 10], [8, 9])
    array([0.05, 1.  ])
    """

    two_valued: ClassVar[bool] = True

    cost: float
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "epsilon", real("epsilon", self.epsilon, least=0, most=1))

    @property
    def stop_ceiling(self) -> float:
        """0, because the policy never stops for good; the cost if ε is 0."""
        return 0.0 if self.epsilon > 0 else self.cost

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which the policy has stopped.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            −1, because the policy never stops; the cost if ε is 0.

        Examples
        --------
        >>> EpsilonGreedy(cost=0.8, epsilon=0.05).stop_floor(10), EpsilonGreedy(cost=0.8, epsilon=0.0).stop_floor(10)
        (-1.0, 0.8)
        """
        return -1.0 if self.epsilon > 0 else self.cost

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(s > self.cost * n, 1.0, self.epsilon)
