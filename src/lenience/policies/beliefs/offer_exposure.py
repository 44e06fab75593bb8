"""OfferExposurePolicy: accept an offer while one more pending label is worth its expected loss.

With late labels an offer is accepted where a(p̂ − c) + D > 0. D = V(m+1) − V(m) is what one more pending label is
worth when m are pending. D falls as more are pending, so each offer has its own exposure limit, and small amounts have
larger ones. Each belief is solved when it is asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.formatting import counted, percents
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.objective import ExposureObjective
from lenience.core.offers import Offer, Offers
from lenience.core.validation import whole
from lenience.policies.beliefs.offers import OfferDecision, check_belief, choices_of, offers_of

if TYPE_CHECKING:
    from lenience.solvers.offers.delayed import DelayedOfferSolution


class OfferExposurePolicy(msgspec.Struct, frozen=True, eq=False):
    """The optimal policy where labels come late and amounts or break-evens differ.

    The ``solve`` method of :class:`~lenience.Delayed` creates it.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    tolerance
        How accurately values are computed, relative to the discounted number of arrivals times their mean amount.
    seconds
        The longest time that one solve may take.

    Examples
    --------
    >>> from lenience import Delayed
    >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> problem = Delayed(offers=offers, arrivals=50, discount_rate=0.5, label_delay=0.25)
    >>> policy = problem.solve(prior=Belief(2, 1), tolerance=1e-5)
    >>> [policy.limit(Belief(2, 1), Offer(amount, 0.8)) for amount in (0.1, 1, 5)]
    [11, 0, 0]
    """

    objective: ExposureObjective
    prior: MixtureBelief
    tolerance: float
    seconds: float

    @property
    def offers(self) -> Offers:
        """What arrivals bring: the objective's offers, or one offer of amount 1 at the objective's cost."""
        return offers_of(self.objective)

    def value(self, belief: Belief | MixtureBelief) -> Bounds:
        """Return what the optimal policy earns from a belief on, with nothing pending.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        Bounds
            Proved bounds of the value, in money.

        Examples
        --------
        >>> from lenience import Delayed
        >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
        >>> problem = Delayed(offers=offers, arrivals=50, discount_rate=0.5, label_delay=0.25)
        >>> 2.64949 in problem.solve(Belief(2, 1), tolerance=1e-5).value(Belief(2, 1))
        True
        """
        return self._solved(belief).value

    def label_value(self, belief: Belief | MixtureBelief, pending: int = 0) -> Bounds:
        """Return what one more pending label is worth for later decisions.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            Number of accepted individuals whose label is not known yet.

        Returns
        -------
        Bounds
            Proved bounds, in money. From the solver's largest number of pending labels on, 0 is the lower bound.

        Examples
        --------
        >>> from lenience import Delayed
        >>> offers = Offers(amount=[0.1, 1], cost=[0.8, 0.8])
        >>> policy = Delayed(offers=offers, arrivals=20, discount_rate=0.5, label_delay=0.5).solve(Belief(2, 1))
        >>> policy.label_value(Belief(2, 1), 3).upper < policy.label_value(Belief(2, 1), 0).lower
        True
        """
        solution = self._solved(belief)
        count = whole("pending", pending)
        last = len(solution.lower) - 2
        bounds = solution.pending_worth(min(count, last))
        return bounds if count <= last else Bounds(0.0, bounds.upper)

    def decide(
        self, belief: Belief | MixtureBelief, offer: Offer | Offers | Sequence[Offer] | None = None, pending: int = 0
    ) -> OfferDecision:
        """Return the decision: whether to accept, and which offer to make.

        Where the bounds do not settle it, the policy decides by their middle. From the solver's largest number of
        pending labels on, it accepts no more losses, as :meth:`limit` says.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.
        pending : int
            Number of accepted individuals whose label is not known yet.

        Returns
        -------
        OfferDecision
            The decision.

        Examples
        --------
        >>> from lenience import Delayed
        >>> menu = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])
        >>> policy = Delayed(offers=menu, arrivals=50, discount_rate=0.5, label_delay=0.25).solve(Belief(2, 1))
        >>> policy.decide(Belief(2, 1)).offer, policy.decide(Belief(2, 1), pending=40).accepted
        (Offer(amount=0.1, cost=0.8), False)
        """
        label = self.label_value(belief, pending)
        rate = belief.mean
        best = max(choices_of(self.offers, offer), key=lambda one: one.expected_profit(rate))
        profit = best.expected_profit(rate)
        proved = profit + label.lower > 0.0 or profit + label.upper <= 0.0
        computed = pending < len(self._solved(belief).lower) - 1
        accepted = profit + label.midpoint > 0.0 if computed else profit >= 0.0
        return OfferDecision(accepted, best, profit, label, proved)

    def accepts(
        self, belief: Belief | MixtureBelief, offer: Offer | Offers | Sequence[Offer] | None = None, pending: int = 0
    ) -> bool:
        """Return whether the next individual is accepted.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from.
        pending : int
            Number of accepted individuals whose label is not known yet.

        Returns
        -------
        bool
            True to accept.

        Examples
        --------
        >>> from lenience import Delayed
        >>> offers = Offers(amount=[0.1, 1], cost=[0.8, 0.8])
        >>> policy = Delayed(offers=offers, arrivals=20, discount_rate=0.5, label_delay=0.5).solve(Belief(2, 1))
        >>> policy.accepts(Belief(2, 1), Offer(0.1, 0.8)), policy.accepts(Belief(2, 1), Offer(1, 0.8))
        (True, False)
        """
        return self.decide(belief, offer, pending).accepted

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """Return which offers are accepted at many beliefs of one size. Each belief needs its own solve.

        Parameters
        ----------
        n : float
            The number of observations.
        s : array_like
            Numbers of successes.
        offers : Offers
            The offers.
        pending : array_like
            Numbers of accepted individuals whose label is not known yet, one for each belief.

        Returns
        -------
        ndarray of float
            0 or 1: one line for each belief, one column for each offer.

        Examples
        --------
        >>> from lenience import Delayed
        >>> offers = Offers(amount=[0.1, 1], cost=[0.8, 0.8])
        >>> policy = Delayed(offers=offers, arrivals=20, discount_rate=0.5, label_delay=0.5).solve(Belief(2, 1))
        >>> policy.offer_acceptance(2, [1, 1], offers, pending=[0, 30])
        array([[1., 0.],
               [0., 0.]])
        """
        successes = np.atleast_1d(np.asarray(s, dtype=np.float64))
        counts = np.broadcast_to(np.asarray(pending, dtype=np.int64), successes.shape)
        gains = np.array(offers.amount) * ((successes / n)[:, None] - np.array(offers.cost))
        labels = np.array(
            [
                self.label_value(Belief(n, good), count).midpoint if gain < 0.0 else 0.0
                for good, count, gain in zip(successes.tolist(), counts.tolist(), gains.min(axis=1), strict=True)
            ]
        )
        return np.asarray(gains + labels[:, None] > 0.0, dtype=np.float64)

    def limit(self, belief: Belief | MixtureBelief, offer: Offer | None = None) -> int | None:
        """Return the exposure limit of an offer: it is accepted while fewer than this many labels are pending.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, optional
            The offer. It may be left out if there is only one.

        Returns
        -------
        int or None
            The limit; None if there is none.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(MixtureBelief.of(Belief(2, 1)))
        >>> policy.limit(Belief(2, 1)), policy.limit(Belief(10, 9))
        (2, None)
        """
        profit = max(one.expected_profit(belief.mean) for one in choices_of(self.offers, offer))
        if profit >= 0.0:
            return None
        solution = self._solved(belief)
        pending = 0
        while pending < len(solution.lower) - 1 and profit + solution.pending_worth(pending).midpoint > 0.0:
            pending += 1
        return pending

    def explain(
        self,
        belief: Belief | MixtureBelief,
        offer: Offer | Offers | Sequence[Offer] | None = None,
        pending: int = 0,
        money: Money | None = None,
    ) -> str:
        """Return the decision at a belief and its reason, in words.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from.
        pending : int
            Number of accepted individuals whose label is not known yet.
        money : Money, optional
            How to show amounts; by default as the objective says.

        Returns
        -------
        str
            A few sentences.

        Examples
        --------
        >>> from lenience import Delayed
        >>> menu = Offers.menu(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
        >>> policy = Delayed(offers=menu, arrivals=50, discount_rate=0.5, label_delay=0.25).solve(Belief(2, 1))
        >>> print(policy.explain(Belief(2, 1), pending=20))
        Reject $500: the expected success rate is 50%, below the break-even of 80%. The expected loss is $150. With 20
        outcomes pending, one more is worth only $33.65. The limit is 5 pending outcomes.
        """
        decision = self.decide(belief, offer, pending)
        best, money = decision.offer, self.offers.money if money is None else money
        mean, even = percents(belief.mean, best.cost)
        size = money.format(best.amount)
        facts = f"the expected success rate is {mean}"
        if decision.expected_profit > 0.0:
            profit = money.format(decision.expected_profit)
            return f"Accept {size}: {facts}, above the break-even of {even}. The expected profit is {profit}."
        loss = money.format(-decision.expected_profit)
        facts += f", below the break-even of {even}. The expected loss is {loss}."
        known = f"With {counted(pending, 'outcome')} pending, one more is worth"
        worth = money.format(decision.label_value.midpoint)
        if decision.accepted:
            return f"Accept {size}: {facts} {known} {worth} for later decisions."
        limit = self.limit(belief, best)
        return f"Reject {size}: {facts} {known} only {worth}. The limit is {counted(limit or 0, 'pending outcome')}."

    def __repr__(self) -> str:
        return f"OfferExposurePolicy({self.objective!r}, prior={self.prior.simplified!r})"

    def _solved(self, belief: Belief | MixtureBelief) -> DelayedOfferSolution:
        """Return the solution with the belief as its prior, cached."""
        objective = self.objective
        return _solution(
            MixtureBelief.of(check_belief(belief)).simplified,
            self.offers,
            objective.arrivals or 0.0,
            objective.label_delay,
            objective.discount_rate or 0.0,
            self.tolerance,
            self.seconds,
        )


@lru_cache(maxsize=1024)
def _solution(
    belief: Belief | MixtureBelief,
    offers: Offers,
    arrivals: float,
    label_delay: float,
    discount_rate: float,
    tolerance: float,
    seconds: float,
) -> DelayedOfferSolution:
    """Solve one belief."""
    from lenience.solvers.offers.delayed import solve_delayed_offers

    return solve_delayed_offers(belief, offers, arrivals, label_delay, discount_rate, tolerance, seconds)
