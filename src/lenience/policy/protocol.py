"""The one thing every policy can do: say with what probability it accepts at a belief."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.belief import Belief


@runtime_checkable
class Policy(Protocol):
    """A policy that looks at the belief alone."""

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """The probability of accepting the next individual at beliefs (n, s), for arrays that broadcast."""

    @property
    def stop_ceiling(self) -> float:
        """A success rate above which the policy never stops for good (1 if nothing is known)."""

    def stop_floor(self, n: float) -> float:
        """A success rate at or below which the policy has stopped, at size n and every larger one (−1 if none)."""


class Rule(msgspec.Struct, frozen=True, tag_field="type"):
    """A policy that is a formula: what the formulas have in common."""

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """The probability of accepting the next individual at beliefs (n, s), for arrays that broadcast."""
        sizes, successes = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        return self._acceptance(sizes, successes)

    def accepts(self, belief: Belief) -> bool:
        """Whether the policy accepts for certain at a belief."""
        return bool(self.acceptance(belief.n, belief.s)[()] >= 1.0)

    @property
    def stop_ceiling(self) -> float:
        """A success rate above which the policy never stops for good."""
        return 1.0

    def stop_floor(self, n: float) -> float:
        """A success rate at or below which the policy has stopped, at size n and every larger one (−1 if none)."""
        return -1.0

    def to_json(self) -> str:
        """The policy as JSON text."""
        return msgspec.json.encode(self).decode()

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError
