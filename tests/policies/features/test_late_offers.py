"""Policies with features where amounts differ and labels come late, against one cost and the segments' policies."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from lenience import Belief, Delayed, FeaturePolicy, Offer, Offers
from lenience.models import BayesianLogistic, Cells, FeatureColumn
from lenience.models.state_bytes import join, split
from lenience.policies.features.decision import OfferedDecision
from lenience.policies.features.effective_discount import explored_share
from lenience.policies.features.feature_rule import FeatureRule, RuleFrame
from lenience.solvers.offers.label_table import per_mean_amount
from lenience.solvers.offers.late_label_table import late_label_value

LOANS = Offers([50, 500], [0.8, 0.75], currency="$")
LATE = Delayed(offers=LOANS, arrivals=40, discount_rate=0.2, label_delay=0.5)
SHARES = (0.5, 0.25, 0.25)


def cells() -> Any:
    return np.repeat([[0.0], [1.0], [2.0]], [50, 25, 25], axis=0)


def test_on_cells_limits_are_those_of_the_segments() -> None:
    """Each cell against the solved policy of its own segment, label by label."""
    policy = FeaturePolicy(Cells(), LATE, refresh=False).fit(cells())
    own = [LATE.for_share(share).solve(Belief(2, 1), tolerance=1e-3) for share in SHARES[:2]]
    beliefs, waiting = [Belief(2, 1), Belief(2, 1)], [0, 0]
    rng = np.random.default_rng(2)
    held = same = 0
    for _ in range(120):
        cell, offer = int(rng.integers(2)), Offer(float(rng.choice([10.0, 50.0, 500.0])), 0.8)
        row = np.array([[float(cell)]])
        accepted = bool(policy.decide(row, offers=offer, time=0.0)[0])
        same += accepted == own[cell].accepts(beliefs[cell], offer, waiting[cell])
        decision = policy.log_[-1]
        assert isinstance(decision, OfferedDecision)
        held += decision.held_back
        waiting[cell] += accepted
        if waiting[cell] and rng.random() < 0.4:  # the outcome of one arrives
            outcome = bool(rng.random() < 0.65)
            policy.observe(row, [True], [outcome])
            beliefs[cell], waiting[cell] = beliefs[cell].observe(outcome), waiting[cell] - 1
    assert held > 5  # some were rejected for what was pending alone
    assert same >= 116  # interpolated limits may be off by one


@pytest.mark.parametrize("model", [Cells(), BayesianLogistic(bent_variance=())], ids=["cells", "logistic"])
def test_one_offer_for_all_is_one_cost(model: Any) -> None:
    rng = np.random.default_rng(1)
    X = cells() if isinstance(model, Cells) else rng.normal(size=(100, 2))
    one = Delayed(offers=Offers([700], [0.7]), arrivals=40, discount_rate=0.2, label_delay=0.5)
    plain = FeaturePolicy(model, Delayed(0.7, 40, 0.2, 0.5), explore=1e-12, random_state=0).fit(X)
    offered = FeaturePolicy(model, one, explore=1e-12, random_state=0).fit(X)
    same = below = rejected = 0
    for i in range(150):
        row = X[i % 100][None]
        wanted = plain.propensity(row).tolist() == [1.0]
        same += wanted == (offered.propensity(row).tolist() == [1.0])
        chances = np.zeros(1) if wanted else np.ones(1)  # so that both know the same afterwards
        accepted = plain.decide(row, chances=chances, time=0.0)
        assert offered.decide(row, chances=chances, time=0.0).tolist() == accepted.tolist() == [wanted]
        below += wanted and plain.log_[-1].mean <= 0.7
        rejected += not wanted
        if wanted and i % 3:
            outcome = [float(rng.random() < 0.7)]
            plain.observe(row, accepted, outcome)
            offered.observe(row, accepted, outcome)
    assert below > 5
    assert rejected > 10
    assert same >= 147


def test_a_label_is_worth_what_one_more_pending_label_is() -> None:
    policy = FeaturePolicy(Cells(), LATE, refresh=False).fit(cells())
    unit, offers = per_mean_amount(LOANS)
    assert unit == 275.0
    for pending in range(4):
        expected = unit * late_label_value(offers, 2.0, 0.5, pending, arrivals=10.0, rate=0.1)
        assert policy.label_value([[0.0]])[0] == pytest.approx(expected)
        policy.decide([[0.0]], offers=Offer(1e-6, 0.8), time=0.0)
    # A pending acceptance of another cell says nothing about this one.
    own = unit * late_label_value(offers, 2.0, 0.5, 0, arrivals=5.0, rate=0.1)
    assert policy.label_value([[1.0]])[0] == pytest.approx(own)


def test_pending_acceptances_above_the_break_even_do_not_fill_the_limit() -> None:
    cost, start, share = np.array([0.7, 0.9, 0.8]), np.array([0, 2, 3]), np.array([0.6, 0.4])
    assert explored_share(0.6, 0.6, cost, start, share) == 1.0
    assert explored_share(0.75, 0.6, cost, start, share) == pytest.approx(0.4)  # the menu with 0.7 accepts it anyway
    assert explored_share(0.85, 0.6, cost, start, share) == 0.0
    assert explored_share(0.85, 0.75, cost, start, share) == pytest.approx(0.6)  # at 0.7 x is accepted, too


def stored() -> FeatureRule:
    people = [{"income": float(i % 10)} for i in range(60)]
    policy = FeaturePolicy(objective=LATE, columns=[FeatureColumn("income")], random_state=0).fit(people)
    return policy.to_rule()


def test_rules_of_before_there_were_limits_decide_as_they_did() -> None:
    """Their labels count 1/(1 + r · delay), and their states keep their hashes."""
    rule = stored()
    frame, numbers = split(rule.state())
    kind, _, described = frame.partition(b"\n")
    body = msgspec.msgpack.decode(described, type=RuleFrame)
    assert body.late_limits is True
    older = msgspec.structs.replace(body, late_limits=msgspec.UNSET)
    state = join(kind + b"\n" + msgspec.msgpack.encode(older), numbers)
    before = FeatureRule.from_state(state)
    assert not before.late_limits
    assert before.state() == state
    assert FeatureRule.from_state(rule.state()).late_limits
    person = {"income": 5.0}
    old, new = before.decide(person, Offer(50, 0.8)), rule.decide(person, Offer(50, 0.8))
    assert isinstance(old, OfferedDecision)
    assert isinstance(new, OfferedDecision)
    assert old.first_label_value is None
    assert old.label_value is not None
    assert new.label_value == pytest.approx(1.1 * old.label_value)  # r · delay is 0.1, and nobody is pending
    assert not FeaturePolicy.from_rule(before)._late_limits
    assert FeaturePolicy.from_rule(rule).to_rule().state_hash() == rule.state_hash()


def test_who_is_held_back_is_told_so() -> None:
    rule = stored()
    person, offer = {"income": 5.0}, Offer(60, 0.8)
    waiting: list[Any] = []
    while rule.decide(person, offer, waiting).accepted:
        waiting.append(person)
    assert waiting
    decision = rule.decide(person, offer, waiting)
    assert isinstance(decision, OfferedDecision)
    assert decision.held_back
    assert decision.pending == pytest.approx(len(waiting), rel=1e-6)
    explanation = rule.explain(person, offer, waiting)
    assert [reason.code for reason in explanation.reasons] == ["limit_reached"]
    assert "for now" in explanation.summary
    assert explanation.changes[-1].kind in ("amount", "break_even")
    large = rule.decide(person, Offer(1e6, 0.8), waiting)
    assert isinstance(large, OfferedDecision)
    assert not large.held_back  # it would be rejected in any case
