"""Which numbers policies take."""

from __future__ import annotations

from functools import cache

import pytest

from lenience import Belief, Delayed, Discounted, FiniteHorizon, MixtureBelief, Offers
from lenience.policies import (
    KLUCB,
    BayesUCB,
    Blind,
    Capped,
    Constant,
    DecayingEpsilon,
    EpsilonGreedy,
    ExploreThenExploit,
    Forgetting,
    Gittins,
    Greedy,
    HorizonExposurePolicy,
    HorizonOfferPolicy,
    Logistic,
    OfferExposurePolicy,
    Persistent,
    SemiLogistic,
)
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.offers import OfferPolicy
from lenience.policies.beliefs.optimal import OptimalPolicy
from number_ranges import Range, names_of

PRIOR = Belief(2, 1)
OFFERS = Offers([1, 2], [0.5, 0.6])


@cache
def late() -> ExposurePolicy:
    return Delayed(0.6, 4, 0.5, 0.5).solve_proved(PRIOR, rows=3)


@cache
def late_horizon() -> HorizonExposurePolicy:
    policy: HorizonExposurePolicy = Delayed(0.6, 4, label_delay=0.5, horizon=6).solve(PRIOR)
    return policy


@cache
def late_offers() -> OfferExposurePolicy:
    policy: OfferExposurePolicy = Delayed(offers=OFFERS, arrivals=4, discount_rate=0.5, label_delay=0.5).solve(PRIOR)
    return policy


@cache
def horizon_offers() -> HorizonOfferPolicy:
    policy: HorizonOfferPolicy = FiniteHorizon(offers=OFFERS, horizon=6).solve(PRIOR)
    return policy


@cache
def with_doubt() -> OfferPolicy:
    policy: OfferPolicy = Discounted(0.6, 0.8).solve(MixtureBelief.doubt(PRIOR, 0.1), rows=6)
    return policy


@cache
def with_offers() -> OfferPolicy:
    policy: OfferPolicy = Discounted(offers=OFFERS, discount=0.8).solve(PRIOR, rows=6)
    return policy


@cache
def optimal() -> OptimalPolicy:
    policy: OptimalPolicy = Discounted(0.6, 0.8).solve(PRIOR, rows=6)
    return policy


RANGES = [
    Range("quantile", lambda x: BayesUCB(0.6, x), [0.1, 0.9], [0, 1]),
    Range("probability", lambda x: Constant(x), [0, 0.5, 1], [-0.1, 1.1]),
    Range("scale", lambda x: DecayingEpsilon(0.6, x), [0.1], [0]),
    Range("epsilon", lambda x: EpsilonGreedy(0.6, x), [0, 0.5, 1], [-0.1, 1.1]),
    Range("explore", lambda x: ExploreThenExploit(0.6, x, PRIOR), [0, 1], [-1]),
    Range("discount", lambda x: Forgetting(0.6, x, 0.9, PRIOR), [0, 0.9], [-0.1, 1]),
    Range("memory", lambda x: Forgetting(0.6, 0.9, x, PRIOR), [0.1, 1], [0, 1.1]),
    Range("discount", lambda x: Gittins(0.6, x), [0, 0.9], [-0.1, 1]),
    Range("exploration", lambda x: KLUCB(0.6, x), [0, 0.5], [-0.1]),
    Range("sharpness", lambda x: Logistic(0.6, x), [0.1], [0]),
    Range("sharpness", lambda x: SemiLogistic(0.6, x), [0.1], [0]),
    Range("exponent", lambda x: Persistent(0.6, x), [0.1], [0]),
    Range("cost", lambda x: Blind(Greedy(0.5), x), [0.1, 0.9], [0, 1]),
    Range("cap", lambda x: Capped(Greedy(0.5), 0.5, x), [1], [0]),
    Range("pending", lambda x: late().accepts(PRIOR, x), [0, 1], [-1]),
    Range("pending", lambda x: late().value(PRIOR, x), [0, 1], [-1]),
    Range("applicants", lambda x: late().accept_now(PRIOR, 0, x), [0, 1], [-1]),
    Range("left", lambda x: late_horizon().limit(PRIOR, x), [1, 6], [0, 7]),
    Range("left", lambda x: late_horizon().value(PRIOR, 0, x), [1, 6], [0, 7]),
    Range("pending", lambda x: late_horizon().value(PRIOR, x), [0, 1], [-1]),
    Range("pending", lambda x: late_horizon().accepts(PRIOR, x), [0, 1], [-1]),
    Range("pending", lambda x: late_offers().label_value(PRIOR, x), [0, 1], [-1]),
    Range("left", lambda x: horizon_offers().label_value(PRIOR, x), [1, 6], [0, 7]),
    Range("count", lambda x: with_offers().batch_label_values(x), [1, 2], [0]),
    Range("outcomes", lambda x: with_doubt().least_accepted(x), [0, 2], [-1]),
    Range("cost", lambda x: with_offers().largest_amount(PRIOR, x), [0.1, 0.9], [0, 1]),
    Range("n", lambda x: optimal().threshold(x, 1e-3), [0.5], [0]),
]


@pytest.mark.parametrize("one", RANGES, ids=names_of(RANGES))
def test_which_numbers_are_allowed(one: Range) -> None:
    one.check()


def test_how_many_to_accept_now_with_a_horizon() -> None:
    limit = late_horizon().limit(PRIOR)
    assert limit is not None
    assert late_horizon().accept_now(PRIOR, 0, 100) == limit
    assert late_horizon().accept_now(PRIOR, limit + 1, 100) == 0
    assert late_horizon().accept_now(PRIOR, 0, 0) == 0
    assert late_horizon().accept_now(Belief(10, 9), 50, 7) == 7
    assert late_horizon().accepts(PRIOR, limit - 1) or limit == 0
    assert not late_horizon().accepts(PRIOR, limit)
    assert late_horizon().expire_after == late_horizon().objective.expire_after
