"""acceptance_by_arrival: the probability that the i-th arrival is accepted ("sequence unfairness" in the paper).

A policy that becomes stricter over time treats equal individuals differently, depending on when they arrive. With i the
arrival and k the number accepted so far, the probability of being at (n₀ + k, s₀ + j) before arrival i is carried
forward in time:

    a_i = Σ_{k, j} P_i(k, j) π(k, j),   P_{i+1}(k+1, j+1) += P_i π p̂,  P_{i+1}(k+1, j) += P_i π (1 − p̂),
    P_{i+1}(k, j) += P_i (1 − π),

with the true p in place of p̂ if it is given. If no decision is random, a walk that still continues has k = i: a
triangle of states. Otherwise it is a pyramid.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.compiled import compiled
from lenience.core.errors import InputError, TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.core.protocols import OfferRule, Policy
from lenience.core.validation import having, real, whole

MOST_ARRIVALS = 20_000  # a triangle: 2·10⁸ states
MOST_MIXED = 1_500  # a pyramid: 6·10⁸ states


class ByArrival(msgspec.Struct, frozen=True, eq=False):
    """The exact probability that each arrival is accepted.

    Parameters
    ----------
    p : float or None
        The true success probability, or None if averaged over the belief.
    acceptance : ndarray
        The probability of acceptance by arrival; ``acceptance[0]`` belongs to the first arrival.

    Examples
    --------
    >>> from lenience import Belief, Discounted, acceptance_by_arrival
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> acceptance_by_arrival(policy, p=0.9, arrivals=50).acceptance[[0, 9, 49]].round(3)
    array([1.   , 0.76 , 0.735])
    """

    p: float | None
    acceptance: np.ndarray[Any, np.dtype[np.float64]]

    @property
    def first(self) -> float:
        """The probability that the first arrival is accepted."""
        return float(self.acceptance[0])

    @property
    def last(self) -> float:
        """The probability that the last arrival is accepted."""
        return float(self.acceptance[-1])

    @property
    def gap(self) -> float:
        """By how much the first arrival's probability exceeds the last one's: the price of coming late."""
        return self.first - self.last

    def __repr__(self) -> str:
        whom = "averaged over the belief" if self.p is None else f"p={self.p}"
        return f"ByArrival({whom}, arrivals={self.acceptance.size}, first={self.first:.4g}, last={self.last:.4g})"


def acceptance_by_arrival(
    policy: Policy | OfferRule,
    arrivals: int,
    p: float | None = None,
    belief: Belief | None = None,
    offers: Offers | None = None,
) -> ByArrival:
    """Compute the exact probability that each arrival is accepted.

    Parameters
    ----------
    policy : Policy or OfferRule
        Any policy with an ``acceptance(n, s)``, or with an ``offer_acceptance(n, s, offers)``.
    arrivals : int
        The number of arrivals, at most 20,000, or about 1,500 if the policy decides at random or there are offers.
    p : float, optional
        The true success probability; by default the result is averaged over the belief.
    belief : Belief, optional
        The belief at the start; by default the prior of the policy.
    offers : Offers, optional
        What arrivals bring; by default what the policy was solved for. The probability is that of any offer.

    Returns
    -------
    ByArrival
        The probabilities.

    Raises
    ------
    InputError
        If an argument is invalid, or the policy has no prior and no belief is given.
    TooLargeError
        If there are too many arrivals.

    Examples
    --------
    >>> from lenience.objectives.discounted import Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> acceptance_by_arrival(policy, arrivals=200, p=0.9)
    ByArrival(p=0.9, arrivals=200, first=1, last=0.7344)
    >>> from lenience.core.offers import Offers
    >>> policy = Discounted(offers=Offers(amount=[1, 5], cost=[0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
    >>> acceptance_by_arrival(policy, arrivals=50, p=0.9)
    ByArrival(p=0.9, arrivals=50, first=0.5, last=0.8339)
    """
    if not isinstance(policy, OfferRule):
        having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    given: Any = belief if belief is not None else getattr(policy, "prior", None)
    start = check_prior(given.simplified if isinstance(given, MixtureBelief) else given, "belief")
    count = whole("arrivals", arrivals, least=1)
    truth = None if p is None else real("p", p, least=0, most=1)
    brought = getattr(policy, "offers", None) if offers is None else offers
    if isinstance(policy, OfferRule) or offers is not None:
        return ByArrival(truth, _with_offers(policy, start, count, truth, brought))
    return ByArrival(truth, _with_one_cost(policy, start, count, truth))


def _with_offers(
    policy: Policy | OfferRule, start: Belief, count: int, p: float | None, offers: object
) -> NDArray[np.float64]:
    """Return the acceptance probabilities where arrivals bring offers."""
    from lenience.solvers.offers.pyramid import OfferPyramid, walk_pyramid

    if not isinstance(offers, Offers):
        raise InputError("offers", offers, "an Offers object, such as Offers(amount=[1, 5], cost=[0.8, 0.8])")
    end = getattr(policy, "horizon", None) or count
    pyramid = OfferPyramid(policy, start, offers, whole("arrivals", count, most=end), p, end)
    return walk_pyramid(pyramid, 1.0, min(offers.cost)).accepted


def _with_one_cost(policy: Policy, start: Belief, count: int, truth: float | None) -> NDArray[np.float64]:
    """Return the acceptance probabilities of a policy that does not look at the offer."""
    if count > MOST_ARRIVALS:
        raise TooLargeError(
            f"The exact walk of {count:,} arrivals",
            size=count**2 / 2,
            allowed_size=MOST_ARRIVALS**2 / 2,
            unit="states",
            field="arrivals",
            value=count,
            hint=f"Use at most {MOST_ARRIVALS:,} arrivals, or simulate.",
        )
    acceptance = _triangle(policy, start, count, truth)
    return _pyramid(policy, start, count, truth) if acceptance is None else acceptance


def _triangle(policy: Policy, start: Belief, count: int, p: float | None) -> NDArray[np.float64] | None:
    """Return the probability that the walk still continues, or None if some decision is random."""
    result = np.zeros(count)
    mass = np.ones(1)
    for k in range(count):
        good = start.s + np.arange(k + 1.0)
        chance = policy.acceptance(start.n + k, good)
        if np.any((chance > 0.0) & (chance < 1.0)):
            return None
        mass = mass * chance
        result[k] = min(float(mass.sum()), 1.0)
        success = np.full(k + 1, p) if p is not None else good / (start.n + k)
        mass = np.append(mass * (1.0 - success), 0.0) + np.insert(mass * success, 0, 0.0)
    return result


def _pyramid(policy: Policy, start: Belief, count: int, p: float | None) -> NDArray[np.float64]:
    """Return the acceptance probabilities of a policy that decides at random."""
    if count > MOST_MIXED:
        raise TooLargeError(
            f"The exact walk of {count:,} arrivals under a policy that decides at random",
            size=count**3 / 6,
            allowed_size=MOST_MIXED**3 / 6,
            unit="states",
            field="arrivals",
            value=count,
            hint=f"Use at most {MOST_MIXED:,} arrivals, or simulate.",
        )
    table = np.zeros((count, count))
    for k in range(count):
        table[k, : k + 1] = policy.acceptance(start.n + k, start.s + np.arange(k + 1.0))
    return _forward(table, start.n, start.s, -1.0 if p is None else p)


@compiled
def _forward(table: NDArray[np.float64], n0: float, s0: float, p: float) -> NDArray[np.float64]:
    """Carry the probabilities of all states forward in time, in place, from the last row reached to the first."""
    count = table.shape[0]
    mass = np.zeros((count + 1, count + 2))
    mass[0, 0] = 1.0
    result = np.zeros(count)
    for i in range(count):
        total = 0.0
        for back in range(i + 1):
            k = i - back
            for j in range(k + 1):
                here = mass[k, j]
                if here == 0.0:
                    continue
                accepted = here * table[k, j]
                success = p if p >= 0.0 else (s0 + j) / (n0 + k)
                total += accepted
                mass[k, j] = here - accepted
                mass[k + 1, j + 1] += accepted * success
                mass[k + 1, j] += accepted * (1.0 - success)
        result[i] = min(total, 1.0)
    return result
