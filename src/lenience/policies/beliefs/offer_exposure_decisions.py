"""OfferExposureDecisions: what every policy with offers and late labels decides from the worth of one more label.

With m labels pending, an offer is accepted where its expected profit a(p̂ − c) and the worth D of one more pending label
are above 0 together. A policy says where D comes from with :class:`PendingLabels`: it is proved, or estimated where the
problem is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
from lenience.policies.beliefs.offers import OfferDecision, choices_of, offers_of


class PendingLabels(Protocol):
    """What one more pending label is worth at one belief, by how many are pending."""

    def bounds(self, pending: int) -> Bounds:
        """Return bounds of the worth: proved, or with a stated error."""

    def worth(self, pending: int) -> float:
        """Return what it counts for in a decision: 0 for more pending than were computed."""

    def first_rejection(self, profit: float) -> int:
        """Return the fewest pending labels at which an expected loss is not worth taking."""


class OfferExposureDecisions(msgspec.Struct, frozen=True, eq=False):
    """Decide offers by the worth of one more pending label.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    """

    objective: ExposureObjective
    prior: MixtureBelief

    @property
    def proves(self) -> bool:
        """Whether bounds of a label are proved."""
        return True

    @property
    def offers(self) -> Offers:
        """What arrivals bring: the objective's offers, or one offer of amount 1 at the objective's cost."""
        return offers_of(self.objective)

    def labels_at(self, belief: Belief | MixtureBelief) -> PendingLabels:
        """Return what labels are worth at a belief.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        PendingLabels
            Their worth by the number pending.
        """
        raise NotImplementedError

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
            Money. The bounds are proved, or an estimate less and plus its stated error (:attr:`proves`). From the
            solver's largest number of pending labels on, the lower bound is 0.

        Examples
        --------
        >>> from lenience import Delayed
        >>> offers = Offers(amount=[0.1, 1], cost=[0.8, 0.8])
        >>> policy = Delayed(offers=offers, arrivals=20, discount_rate=0.5, label_delay=0.5).solve(Belief(2, 1))
        >>> policy.label_value(Belief(2, 1), 3).upper < policy.label_value(Belief(2, 1), 0).lower
        True
        """
        return self.labels_at(belief).bounds(whole("pending", pending))

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
        labels, count = self.labels_at(belief), whole("pending", pending)
        label = labels.bounds(count)
        rate = belief.mean
        best = max(choices_of(self.offers, offer), key=lambda one: one.expected_profit(rate))
        profit = best.expected_profit(rate)
        proved = profit >= 0.0 or (self.proves and (profit + label.lower > 0.0 or profit + label.upper <= 0.0))
        accepted = profit >= 0.0 or profit + labels.worth(count) > 0.0
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
                self.labels_at(Belief(n, good)).worth(count) if gain < 0.0 else 0.0
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
        return self.labels_at(belief).first_rejection(profit)

    def proved(self, belief: Belief | MixtureBelief, offer: Offer | None = None) -> bool:
        """Return whether the exposure limit of an offer is proved.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, optional
            The offer. It may be left out if there is only one.

        Returns
        -------
        bool
            True if there is no limit, or if the bounds of a label settle it.

        Examples
        --------
        >>> from lenience import Delayed
        >>> late = Delayed(offers=Offers([0.1, 1], [0.8, 0.8]), arrivals=20, discount_rate=0.5, label_delay=0.5)
        >>> late.solve(Belief(2, 1)).proved(Belief(2, 1), Offer(1, 0.8))
        True
        """
        limit = self.limit(belief, offer)
        if limit is None or not self.proves:
            return limit is None
        profit = max(one.expected_profit(belief.mean) for one in choices_of(self.offers, offer))
        labels = self.labels_at(belief)
        before = limit == 0 or profit + labels.bounds(limit - 1).lower > 0.0
        return before and profit + labels.bounds(limit).upper <= 0.0

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
