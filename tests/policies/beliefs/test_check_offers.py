"""The checklist for policies that look at the offer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import lenience as ln
from lenience import Belief, Bounds, Delayed, Discounted, FiniteHorizon, MixtureBelief, Offers
from lenience.policies import GreedyOffers, OfferDecision, PolicyPerCost
from lenience.policies.check import PolicyError
from lenience.policies.registry import OFFER_POLICIES

NINE = Offers(amount=[a for a in (0.2, 1, 4) for _ in range(3)], cost=[0.7, 0.8, 0.9] * 3)
TINY = Offers(amount=[100, 0.001], cost=[0.5, 0.95], share=[0.99, 0.01])  # acceptance is not monotone in the rate
PRIOR = Belief(2, 1)


@pytest.mark.parametrize(
    ("policy", "more"),
    [
        (Discounted(offers=NINE, discount=0.97).solve(PRIOR, rows=60), {"decisions", "largest amounts", "JSON"}),
        (Discounted(offers=TINY, discount=0.99).solve(PRIOR, rows=60), {"decisions", "largest amounts", "JSON"}),
        (FiniteHorizon(offers=NINE, horizon=60).solve(PRIOR), {"decisions", "largest amounts", "JSON"}),
        (FiniteHorizon(offers=NINE, horizon=9).solve(PRIOR), {"decisions", "largest amounts", "JSON"}),
        (
            Delayed(offers=Offers([0.1, 1], [0.8, 0.8]), arrivals=5, discount_rate=0.5, label_delay=0.5).solve(PRIOR),
            {"decisions"},
        ),
        (PolicyPerCost({cost: Discounted(cost, 0.95).solve(PRIOR) for cost in (0.5, 0.7)}), set()),
        (GreedyOffers(), set()),
    ],
    ids=["discounted", "not monotone", "horizon", "short", "late", "each cost", "greedy"],
)
def test_built_in_policies_pass(policy: Any, more: set[str]) -> None:
    done = set(ln.check_policy(policy))
    assert {"probabilities", "no state", "better offers", "repr"} | more <= done


def test_offer_policies_are_registered() -> None:
    settings: dict[str, Any] = {"offers": NINE, "discount": 0.9, "prior": PRIOR}
    made: list[Any] = [
        ln.policies.policy_named("greedy-offers"),
        ln.policies.policy_named("offers", **settings),
        ln.policies.policy_named("horizon-offers", horizon=12, **settings),
    ]
    assert {type(policy).__struct_config__.tag for policy in made} == set(OFFER_POLICIES)
    for policy in made:
        assert ln.policy_from_json(policy.to_json()).to_json() == policy.to_json()


def test_a_mixture_passes() -> None:
    prior = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
    done = ln.check_policy(Discounted(offers=NINE, discount=0.9).solve(prior, rows=20), rows=8)
    assert "decisions" in done


class Broken:
    """The greedy policy with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.calls = 0

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers) -> NDArray[np.float64]:
        self.calls += 1
        successes = np.atleast_1d(np.asarray(s, dtype=np.float64))
        amount, cost = np.array(offers.amount), np.array(offers.cost)
        chance = np.asarray((successes / n)[:, None] > cost, dtype=np.float64)
        if self.fault == "range":
            return chance + 0.5
        if self.fault == "type":
            return chance > 0  # type: ignore[return-value]
        if self.fault == "shape":
            return chance.T
        if self.fault == "state":
            return np.full(chance.shape, self.calls % 2, dtype=np.float64)
        if self.fault == "beside":
            return chance * (len(offers.amount) > 1)
        if self.fault == "large first":
            return np.asarray((successes / n)[:, None] > cost - 0.1 * (amount > 1), dtype=np.float64)
        if self.fault == "dear first":
            return np.asarray((successes / n)[:, None] > 1 - cost, dtype=np.float64)
        if self.fault == "error":
            raise RuntimeError("no answer")
        return chance

    def __repr__(self) -> str:
        return object.__repr__(self) if self.fault == "repr" else f"{type(self).__name__}()"


class Contradicting(Broken):
    """A policy whose decisions contradict what it accepts."""

    def decide(self, belief: Belief, offer: Any) -> OfferDecision:
        if isinstance(offer, list):
            offer = offer[0] if self.fault == "menu" else max(offer, key=lambda one: one.expected_profit(belief.mean))
        profit = offer.expected_profit(belief.mean)
        label = Bounds(0.0, 0.2) if self.fault == "proved" else Bounds(0.0, 0.0)
        accepted = (profit > 0) != (self.fault == "decision")
        return OfferDecision(accepted, offer, profit + (self.fault == "profit"), label, True)

    def accepts(self, belief: Belief, offer: Any) -> bool:
        return self.decide(belief, offer).accepted


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("range", "probability"),
        ("type", "float64"),
        ("shape", "shape"),
        ("state", "depend on the belief|the same alone"),
        ("beside", "alone and beside others"),
        ("large first", "smaller amount"),
        ("dear first", "lower break-even"),
        ("error", "RuntimeError: no answer"),
        ("repr", "repr"),
    ],
)
def test_faults_are_reported(fault: str, message: str) -> None:
    assert ln.check_policy(Broken("none"))
    with pytest.raises(PolicyError, match=message):
        ln.check_policy(Broken(fault))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("decision", "agree with offer_acceptance"),
        ("profit", "expected_profit"),
        ("menu", "largest expected profit"),
        ("proved", "proved only if"),
    ],
)
def test_contradictions_are_reported(fault: str, message: str) -> None:
    assert "decisions" in ln.check_policy(Contradicting("none"))
    with pytest.raises(PolicyError, match=message):
        ln.check_policy(Contradicting(fault))
