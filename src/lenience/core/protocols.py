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
from lenience.core.offers import Offers


class Accepts(Protocol):
    """The least that a policy can do: all that a simulation asks of it (``pending`` may be a third argument)."""

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual at beliefs (n, s).

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes; it broadcasts with n.

        Returns
        -------
        ndarray of float
            One probability for each belief.
        """


@runtime_checkable
class OfferRule(Protocol):
    """A policy that looks at the belief and at the offer."""

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers) -> NDArray[np.float64]:
        """Return the probability of accepting each offer at many beliefs of one size.

        Parameters
        ----------
        n : float
            The number of observations.
        s : array_like
            Numbers of successes.
        offers : Offers
            The offers.

        Returns
        -------
        ndarray of float
            One line for each belief, one column for each offer.
        """


UNKNOWN = -1  # a ``steady_limit`` that is not promised
UNLIMITED = np.iinfo(np.int64).max  # an exposure limit where there is none


@runtime_checkable
class PendingPolicy(Protocol):
    """A policy that looks at the belief and at the number pending."""

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """The probability of accepting the next individual, for arrays that broadcast."""

    @property
    def steady_limit(self) -> int | None:
        """What happens wherever p̂ ≥ c: accept while fewer than this many are pending (None: always; −1: unknown)."""

    def stop_floor(self, n: float) -> float:
        """A rate at or below which nobody is accepted at belief size n, whatever is pending (−1 if none is known)."""


@runtime_checkable
class Policy(Protocol):
    """A policy that looks at the belief alone."""

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual at beliefs (n, s).

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes; it broadcasts with n.

        Returns
        -------
        ndarray of float
            One probability for each belief.
        """

    @property
    def stop_ceiling(self) -> float:
        """A success rate above which the policy never stops for good (1 if nothing is known)."""

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which the policy has stopped, at size n and every larger one.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The success rate; −1 if there is none.
        """

    def to_json(self) -> str:
        """Return the policy as JSON text, which :func:`lenience.policy_from_json` reads.

        Returns
        -------
        str
            JSON text.
        """


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
        """Return the probability of accepting the next individual at beliefs (n, s).

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes; it broadcasts with n.

        Returns
        -------
        ndarray of float
            One probability for each belief.
        """
        sizes, successes = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        return self._acceptance(sizes, successes)

    def accepts(self, belief: Belief) -> bool:
        """Return whether the policy accepts for certain at a belief.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if the probability of accepting is 1.
        """
        return bool(self.acceptance(belief.n, belief.s)[()] >= 1.0)

    @property
    def stop_ceiling(self) -> float:
        """A success rate above which the policy never stops for good."""
        return 1.0

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which the policy has stopped, at size n and every larger one.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The success rate; −1 if there is none.
        """
        return -1.0

    def to_json(self) -> str:
        """Return the policy as JSON text, which :func:`lenience.policy_from_json` reads.

        Returns
        -------
        str
            JSON text.
        """
        return msgspec.json.encode(self).decode()

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError


def acceptance_of(policy: Policy, n: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a policy says of one row of beliefs, checked: one probability for each."""
    probabilities = np.asarray(policy.acceptance(n, s), dtype=np.float64)
    if probabilities.shape != s.shape:
        raise InputError.because(
            f"must give one probability for each of {s.size} beliefs, not an array of {probabilities.shape}",
            "policy",
            value=probabilities.shape,
            code="length_mismatch",
        )
    outside = ~((probabilities >= 0.0) & (probabilities <= 1.0))
    if outside.any():
        raise InputError("policy", float(probabilities[outside][0]), "one whose probabilities are from 0 to 1")
    return probabilities


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


class StoppingProblem(Protocol):
    """What a solver must know of a problem whose optimum is to accept until, at some belief, one stops for good."""

    def __hash__(self) -> int:
        """Problems are values: answers about them are kept for the next time they are asked."""

    @property
    def cost(self) -> float:
        """The break-even success rate."""

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """The value at a belief, and the value of accepting there and being optimal afterwards."""

    @property
    def discount(self) -> float:
        """The discount factor from one individual to the next."""

    def remaining(self, acceptances: int) -> StoppingProblem | None:
        """What is left after so many acceptances; nothing where the horizon is over."""
