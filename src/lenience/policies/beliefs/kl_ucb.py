"""KLUCB: accept while the observations do not rule out a success rate at the cost (Garivier and Cappé 2011).

    Π(n, p̂) = 1( p̂ > c or n · kl(p̂, c) < exploration · log(n + 1) ),
    kl(p, q) = p log(p/q) + (1 − p) log((1 − p)/(1 − q)).

The upper confidence bound max{q : n kl(p̂, q) ≤ log t} exceeds c in exactly these states. The paper's t is time. A
policy here sees only the belief and uses n + 1. The paper's further term 3 log log t is left out, as its authors
advise in practice.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.protocols import Rule
from lenience.core.validation import check_cost, real


class KLUCB(Rule, frozen=True, tag="kl_ucb"):
    """Accept while the KL upper confidence bound is above the cost.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    exploration
        The factor of log(n + 1) in the bound, at least 0. Larger values accept more.

    Examples
    --------
    >>> KLUCB(cost=0.8).acceptance([10, 10], [4, 6])
    array([0., 1.])
    """

    two_valued: ClassVar[bool] = True

    cost: float
    exploration: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "exploration", real("exploration", self.exploration, least=0))

    @property
    def stop_ceiling(self) -> float:
        """The cost: the policy accepts above it."""
        return self.cost

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import rel_entr

        mean = s / n
        divergence = rel_entr(mean, self.cost) + rel_entr(1.0 - mean, 1.0 - self.cost)
        unrefuted = n * divergence < self.exploration * np.log1p(n)
        accepted: NDArray[np.float64] = ((s > self.cost * n) | unrefuted).astype(np.float64)
        return accepted
