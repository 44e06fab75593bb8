"""Baselines for offers: one policy for each break-even, and a greedy one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.offers import Offers
from lenience.core.protocols import Policy


class PolicyPerCost:
    """Decide each offer by the policy for its own break-even. Amounts are ignored.

    Parameters
    ----------
    policies : mapping of float to Policy
        A policy for each break-even.

    Examples
    --------
    >>> from lenience import Belief, Discounted
    >>> policies = {cost: Discounted(cost, 0.99).solve(Belief(2, 1)) for cost in (0.7, 0.8)}
    >>> PolicyPerCost(policies).offer_acceptance(10, [6, 7], Offers([1, 1], [0.7, 0.8]))
    array([[1., 0.],
           [1., 1.]])
    """

    def __init__(self, policies: Mapping[float, Policy]) -> None:
        self.policies = dict(policies)

    @property
    def offers(self) -> Offers:
        """One offer of amount 1 at each break-even that has a policy."""
        return Offers([1.0] * len(self.policies), sorted(self.policies))

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

        Raises
        ------
        InputError
            If there is no policy for a break-even.
        """
        missing = set(offers.cost) - set(self.policies)
        if missing:
            raise InputError("cost", min(missing), f"one of {sorted(self.policies)}")
        by_cost = {cost: self.policies[cost].acceptance(n, s) for cost in set(offers.cost)}
        return np.stack([by_cost[cost] for cost in offers.cost], axis=1)

    def stop_rates(self, n: float, offers: Offers) -> tuple[float, float]:
        """Return the success rates between which every one of the policies may stop for good, from a belief size on.

        Parameters
        ----------
        n : float
            The number of observations.
        offers : Offers
            What arrivals bring.

        Returns
        -------
        tuple of float
            A rate above which some offer is accepted, and one at or below which none is.
        """
        costs = {cost for cost, menu in zip(offers.cost, offers.menu_of, strict=True) if offers.share[menu] > 0.0}
        return (
            min(self.policies[cost].stop_ceiling for cost in costs),
            min(self.policies[cost].stop_floor(n) for cost in costs),
        )

    def __repr__(self) -> str:
        return f"PolicyPerCost({self.policies!r})"


class GreedyOffers(msgspec.Struct, frozen=True, tag="greedy_offers", tag_field="type"):
    """Accept every offer whose expected profit is above 0, and learn only from those.

    Examples
    --------
    >>> GreedyOffers().offer_acceptance(10, [6, 7.5], Offers([1, 9], [0.7, 0.8]))
    array([[0., 0.],
           [1., 0.]])
    """

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers) -> NDArray[np.float64]:
        """Return 1 for each offer whose break-even is below the success rate, at many beliefs of one size.

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
        rates = np.atleast_1d(np.asarray(s, dtype=np.float64)) / n
        return np.asarray(rates[:, None] > np.array(offers.cost), dtype=np.float64)

    def stop_rates(self, n: float, offers: Offers) -> tuple[float, float]:
        """Return the success rates between which the policy may stop for good: twice the lowest break-even.

        Parameters
        ----------
        n : float
            The number of observations.
        offers : Offers
            What arrivals bring.

        Returns
        -------
        tuple of float
            A rate above which some offer is accepted, and one at or below which none is.

        Examples
        --------
        >>> GreedyOffers().stop_rates(10, Offers([1, 9], [0.7, 0.8]))
        (0.7, 0.7)
        """
        lowest = min(cost for cost, menu in zip(offers.cost, offers.menu_of, strict=True) if offers.share[menu] > 0.0)
        return lowest, lowest

    def to_json(self) -> str:
        """Return the policy as JSON text, which :func:`lenience.policy_from_json` reads.

        Returns
        -------
        str
            JSON text.

        Examples
        --------
        >>> GreedyOffers().to_json()
        '{"type":"greedy_offers"}'
        """
        return msgspec.json.encode(self).decode()
