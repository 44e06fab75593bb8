"""The interface of every policy: return the acceptance probability at a belief, and write itself as JSON.

A policy that also uses the number of acceptances without a label takes it as a third argument, ``pending``.
:func:`acceptance_at` calls both kinds. A policy sees no clock. What should change with time (e.g. a decreasing ε)
changes with the belief size n, which a rejection does not change. Forgetting policies are the exception: see
``memory``.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.offers import Offers


class Accepts(Protocol):
    """The smallest interface of a policy, which a simulation needs. ``pending`` may be a third argument."""

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


UNKNOWN = -1  # the ``steady_limit`` of a policy that does not state one
UNLIMITED = np.iinfo(np.int64).max  # stands for no exposure limit


@runtime_checkable
class PendingPolicy(Protocol):
    """A policy that decides by the belief and the number pending."""

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual, for arrays that broadcast."""

    @property
    def steady_limit(self) -> int | None:
        """The limit wherever p̂ ≥ c: accept while fewer are pending (None: always accept; −1: unknown)."""

    def stop_floor(self, n: float) -> float:
        """Return a rate at or below which nobody is accepted at size n, with any number pending (−1 if unknown)."""


@runtime_checkable
class Policy(Protocol):
    """A policy that decides by the belief only."""

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

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> Greedy(cost=0.8).acceptance(10, [7, 8, 9])
        array([0., 0., 1.])
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
            The success rate; −1 if none is known.

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> Greedy(cost=0.8).stop_floor(10)
        0.8
        """

    def to_json(self) -> str:
        """Return the policy as JSON text, which :func:`lenience.policy_from_json` reads.

        Returns
        -------
        str
            JSON text.

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> Greedy(cost=0.8).to_json()
        '{"type":"greedy","cost":0.8}'
        """


class Rule(msgspec.Struct, frozen=True, tag_field="type"):
    """The base class of policies that are a formula.

    ``monotone`` means that at each n, acceptance does not fall with s. ``two_valued`` means that at each n it has at
    most two values, one below a number of successes and one from there on; a simulation then needs one number per row.
    ``memory`` is the weight that a past observation keeps from one arrival to the next.
    """

    monotone: ClassVar[bool] = True
    two_valued: ClassVar[bool] = False

    @property
    def memory(self) -> float:
        """The weight that a past observation keeps: 1, because nothing is forgotten."""
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

        Examples
        --------
        >>> from lenience.policies import Thompson
        >>> Thompson(cost=0.8).acceptance(10, [7, 8, 9]).round(2)
        array([0.26, 0.56, 0.87])
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

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> Greedy(cost=0.8).accepts(Belief(10, 9)), Greedy(cost=0.8).accepts(Belief(10, 8))
        (True, False)
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
            The success rate; −1 if none is known.

        Examples
        --------
        >>> from lenience.policies import Thompson
        >>> Thompson(cost=0.8).stop_floor(10)
        -1.0
        """
        return -1.0

    def to_json(self) -> str:
        """Return the policy as JSON text, which :func:`lenience.policy_from_json` reads.

        Returns
        -------
        str
            JSON text.

        Examples
        --------
        >>> from lenience import policy_from_json
        >>> from lenience.policies import Greedy
        >>> Greedy(cost=0.8).to_json()
        '{"type":"greedy","cost":0.8}'
        >>> policy_from_json(Greedy(cost=0.8).to_json())
        Greedy(cost=0.8)
        """
        return msgspec.json.encode(self).decode()

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the acceptance probabilities for arrays of the same shape. Subclasses implement it."""
        raise NotImplementedError


def acceptance_of(policy: Policy, n: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the acceptance probabilities of one row of beliefs, after checking that they are probabilities."""
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
    """Return whether a policy takes the number of pending labels as an argument."""
    return "pending" in inspect.signature(policy.acceptance).parameters


def acceptance_at(policy: Accepts, n: ArrayLike, s: ArrayLike, pending: ArrayLike) -> NDArray[np.float64]:
    """Return the acceptance of any policy. Pass the number pending only to policies that take it."""
    if looks_at_pending(policy):
        aware: Any = policy
        result: NDArray[np.float64] = aware.acceptance(n, s, pending)
        return result
    return policy.acceptance(n, s)


def offer_acceptance_at(
    policy: OfferRule | Accepts,
    n: float,
    s: NDArray[np.float64],
    offers: Offers,
    pending: ArrayLike = 0,
    left: int | None = None,
) -> NDArray[np.float64]:
    """Return the probability that any policy accepts each offer, at beliefs of one size.

    Pass the number pending and the number of arrivals left only to policies that take them. A policy that does not
    look at the offer treats all of them alike.
    """
    if isinstance(policy, OfferRule):
        aware: Any = policy
        known: dict[str, Any] = {"pending": pending, "left": left}
        given = {name: value for name, value in known.items() if looks_at(policy, name)}
        result: NDArray[np.float64] = aware.offer_acceptance(n, s, offers, **given)
        return result
    alike = np.broadcast_to(np.asarray(acceptance_at(policy, n, s, pending), dtype=np.float64), s.shape)
    return np.repeat(alike[:, None], len(offers.amount), axis=1)


def looks_at(policy: OfferRule | Accepts, parameter: str) -> bool:
    """Return whether a policy takes a parameter, such as ``pending`` or ``left``, to decide."""
    method = policy.offer_acceptance if isinstance(policy, OfferRule) else policy.acceptance
    return parameter in _parameters(getattr(method, "__func__", method))


@lru_cache(maxsize=256)
def _parameters(function: Any) -> frozenset[str]:
    """Return the names of the parameters of a function, cached because :func:`inspect.signature` is slow."""
    return frozenset(inspect.signature(function).parameters)


class StoppingProblem(Protocol):
    """What a solver needs of a problem whose optimal policy accepts until it stops for good at some belief."""

    def __hash__(self) -> int:
        """Return a hash, because solvers cache their results by problem."""

    @property
    def cost(self) -> float:
        """The break-even success rate."""

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """Return bounds of the value at a belief, and of the value of accepting there and then acting optimally."""

    @property
    def discount(self) -> float:
        """The discount factor from one individual to the next."""

    def remaining(self, acceptances: int) -> StoppingProblem | None:
        """Return the problem that is left after a number of acceptances, or None if the horizon is over."""
