"""What every policy can do: say with what probability it accepts at a belief, and be written down as JSON.

A policy that also looks at the acceptances whose label is still out takes them as a third argument, ``pending``;
:func:`acceptance_at` calls both kinds. A policy sees no clock: what is to change with time (a fading ε) changes with
the belief's size n, which a rejection leaves as it is. Whoever forgets is the exception: see ``memory``.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError


class Accepts(Protocol):
    """The least that a policy can do: all that a simulation asks of it (``pending`` may be a third argument)."""

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """The probability of accepting the next individual at beliefs (n, s), for arrays that broadcast."""


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

    def to_json(self) -> str:
        """The policy as JSON text; :func:`lenience.policy_from_json` reads it."""


class Rule(msgspec.Struct, frozen=True, tag_field="type"):
    """A policy that is a formula: what the formulas have in common.

    ``monotone``: at each n, acceptance does not fall with s. ``two_valued``: at each n it takes at most two values, one
    below a number of successes and one from there on; a simulation then needs one number a row.
    ``memory`` is the weight that a past observation keeps from one arrival to the next.
    """

    monotone: ClassVar[bool] = True
    two_valued: ClassVar[bool] = False

    @property
    def memory(self) -> float:
        """1: nothing is forgotten, and a rejection leaves the belief as it is."""
        return 1.0

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
        """The policy as JSON text; :func:`lenience.policy_from_json` reads it."""
        return msgspec.json.encode(self).decode()

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError


def acceptance_of(policy: Policy, n: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a policy says of one row of beliefs, checked: one probability for each."""
    found = np.asarray(policy.acceptance(n, s), dtype=np.float64)
    if found.shape != s.shape:
        raise InputError.because(
            f"must give one probability for each of {s.size} beliefs, not an array of {found.shape}",
            "policy",
            value=found.shape,
            code="length_mismatch",
        )
    if not np.all((found >= 0.0) & (found <= 1.0)):
        raise InputError(
            "policy", float(found[~((found >= 0.0) & (found <= 1.0))][0]), "one whose probabilities are from 0 to 1"
        )
    return found


def looks_at_pending(policy: Accepts) -> bool:
    """Whether a policy takes the number of labels that are still out."""
    return "pending" in inspect.signature(policy.acceptance).parameters


def acceptance_at(policy: Accepts, n: ArrayLike, s: ArrayLike, pending: ArrayLike) -> NDArray[np.float64]:
    """The acceptance of any policy: of one that looks at pending labels with them, of others without."""
    if looks_at_pending(policy):
        aware: Any = policy
        result: NDArray[np.float64] = aware.acceptance(n, s, pending)
        return result
    return policy.acceptance(n, s)


class StoppingObjective(Protocol):
    """An objective whose optimum is to accept until, at some belief, one stops for good."""

    def __hash__(self) -> int:
        """Objectives are values: answers about them are kept for the next time they are asked."""

    @property
    def cost(self) -> float:
        """The break-even success rate."""

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """The value at a belief, and the value of accepting there and being optimal afterwards."""

    def after(self, acceptances: int) -> StoppingObjective | None:
        """The objective that is left after so many acceptances; nothing where the horizon is over."""
