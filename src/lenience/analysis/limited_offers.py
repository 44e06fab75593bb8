"""Constraints on policies that look at the offer: a floor on exploration, and a cap on it.

They are those of :class:`~lenience.analysis.WithFloor` and :class:`~lenience.analysis.WithExposureCap`. A floor matters
where the policy accepts no offer that arrivals bring any more, because only there it has stopped learning. Beyond the
rows of its table a policy accepts every offer that is profitable by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.offers import Offers
from lenience.core.validation import real, whole
from lenience.policies.beliefs.offer_baselines import GreedyOffers


class _Tabulated:
    """A policy within the rows of its table, and the greedy one beyond them."""

    def __init__(self, policy: Any, prior: Belief) -> None:
        self.policy, self.prior = policy, prior
        self.rows = int(policy.certificate.rows)

    def accepted(self, n: float, s: ArrayLike, offers: Offers) -> NDArray[np.float64]:
        """Return which offers are accepted at many beliefs of one size."""
        rule = self.policy if round(n - self.prior.n) < self.rows else GreedyOffers()
        return np.asarray(rule.offer_acceptance(n, s, offers))


class OffersWithFloor:
    """A policy for offers that never stops for good.

    Parameters
    ----------
    policy : OfferPolicy
        The policy without the constraint.
    prior : Belief
        The belief at the start.
    floor : float
        The least probability of acceptance where no offer is accepted, above 0 and at most 1. The best offer is made.

    Examples
    --------
    >>> from lenience import Discounted
    >>> offers = Offers([1, 5], [0.8, 0.8])
    >>> policy = Discounted(offers=offers, discount=0.99).solve(Belief(2, 1))
    >>> OffersWithFloor(policy, Belief(2, 1), 0.05).offer_acceptance(10, [6, 7], offers)
    array([[0.05, 0.05],
           [1.  , 0.  ]])
    """

    def __init__(self, policy: Any, prior: Belief, floor: float) -> None:
        self._inside = _Tabulated(policy, prior)
        self.floor = real("floor", floor, above=0, most=1)

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
        accepted = self._inside.accepted(n, s, offers)
        come = np.array([offers.share[menu] > 0.0 for menu in offers.menu_of])
        stopped = accepted[:, come].max(axis=1, initial=0.0) == 0.0
        return np.where(stopped.reshape(-1, 1), self.floor, accepted)


class OffersWithExposureCap:
    """A policy for offers that stops exploring after a number of acceptances.

    Parameters
    ----------
    policy : OfferPolicy
        The policy without the constraint.
    prior : Belief
        The belief at the start.
    cap : int
        The number of acceptances after which only offers that are profitable by themselves are accepted.

    Examples
    --------
    >>> from lenience import Discounted
    >>> offers = Offers([1, 5], [0.8, 0.8])
    >>> policy = Discounted(offers=offers, discount=0.99).solve(Belief(2, 1))
    >>> capped = OffersWithExposureCap(policy, Belief(2, 1), cap=5)
    >>> capped.offer_acceptance(6, [4], offers), capped.offer_acceptance(7, [5], offers)
    (array([[1., 0.]]), array([[0., 0.]]))
    """

    def __init__(self, policy: Any, prior: Belief, cap: int) -> None:
        self._inside = _Tabulated(policy, prior)
        self.cap = whole("cap", cap)

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
        if round(n - self._inside.prior.n) >= self.cap:
            return np.asarray(GreedyOffers().offer_acceptance(n, s, offers))
        return self._inside.accepted(n, s, offers)
