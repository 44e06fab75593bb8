"""A decision as a policy with features logs it."""

from __future__ import annotations

import msgspec

MOST_REASONS = 4  # of a rejection


class Decision(msgspec.Struct, frozen=True):
    """A decision as it is logged.

    Parameters
    ----------
    arrival
        The number of the decision, counted from 0.
    accepted
        Whether the individual was accepted.
    propensity
        The probability with which it was accepted.
    mean
        The expected success probability p̂ at the time.
    n
        The belief size: how many observations the estimate is worth.
    discount
        The individual's effective discount factor γ′; None if the policy does not use one.
    threshold
        The individual's threshold c_n; None if the policy does not use one.
    pending
        The number of similar acceptances that were pending, weighted by likeness; None if the policy does not use it.

    Examples
    --------
    >>> from lenience import Discounted, FeaturePolicy
    >>> X = [[0.0], [1.0]] * 50
    >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
    >>> accepted = policy.decide(X[:1])
    >>> decision = policy.log_[0]
    >>> decision.arrival, decision.accepted, decision.propensity
    (0, True, 1.0)
    """

    arrival: int
    accepted: bool
    propensity: float
    mean: float
    n: float
    discount: float | None = None
    threshold: float | None = None
    pending: float | None = None


class OfferedDecision(Decision, frozen=True, kw_only=True):
    """A decision on an offer as it is logged.

    Parameters
    ----------
    amount
        The amount at stake of the offer that was made: the best of those that could be made.
    cost
        Its break-even success rate.
    label_value
        What the outcome was expected to teach, in money; None if the policy does not use it.
    first_label_value
        What it would have been worth if no similar acceptances were pending; None if the policy has no limits of them.

    Examples
    --------
    >>> from lenience import Discounted, FeaturePolicy, Offer, Offers
    >>> X = [[0.0], [1.0]] * 50
    >>> objective = Discounted(offers=Offers([500, 5000], [0.6, 0.6]), discount=0.9)
    >>> policy = FeaturePolicy(objective=objective).fit(X)
    >>> accepted = policy.decide(X[:2], offers=[Offer(500, 0.6), Offer(5000, 0.6)])
    >>> [(decision.amount, decision.cost) for decision in policy.log_]
    [(500.0, 0.6), (5000.0, 0.6)]
    """

    amount: float
    cost: float
    label_value: float | None = None
    first_label_value: float | None = None

    @property
    def held_back(self) -> bool:
        """Whether only pending outcomes stand in the way of an acceptance."""
        profit = self.amount * (self.mean - self.cost)
        return self.propensity < 1.0 and profit <= 0.0 < profit + (self.first_label_value or 0.0)
