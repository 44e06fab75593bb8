"""Offers and doubt with a horizon: tables against the library's policy, decisions, reasons and the audit."""

from __future__ import annotations

import math
from base64 import b64decode
from typing import Any

import msgspec
import numpy as np
import pytest

from engines import Engine
from lenience import Belief, FiniteHorizon, MixtureBelief, Offer, Offers
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.service.domain import horizon_offer_tables
from lenience.service.domain.horizon_offer_tables import (
    HorizonOfferBody,
    HorizonOfferTable,
    _spaced,
    _stored_lefts,
    solve_horizon_offer_table,
)
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.offer_tables import array_text
from lenience.service.domain.reasons import what_would_change
from lenience.service.domain.rule import Counts, SegmentRule
from lenience.service.domain.solved_tables import load, solve, solve_seconds
from lenience.service.domain.specification import PolicySpecification
from lenience.solvers.offers.horizon import HorizonTables
from serving import SPEC

OFFERS = Offers([200, 1000, 4000], [0.7, 0.8, 0.75], currency="$")
PRIOR = Belief(2, 1)
DOUBTED = MixtureBelief.doubt(Belief(6, 4), 0.3)


def states(horizon: int, seed: int, count: int) -> list[tuple[int, int, int]]:
    """Draw arrivals so far, outcomes among them, and successes among these."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        arrivals = int(rng.integers(0, horizon))
        outcomes = int(rng.integers(0, arrivals + 1))
        drawn.append((arrivals, outcomes, int(rng.binomial(outcomes, rng.uniform(0.5, 0.95)))))
    return drawn


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize(
    ("problem", "prior"),
    [
        (FiniteHorizon(offers=OFFERS, horizon=40), PRIOR),
        (FiniteHorizon(offers=OFFERS, horizon=40, discount=0.95), DOUBTED),
        (FiniteHorizon(cost=0.7, horizon=40), DOUBTED),
    ],
)
def test_labels_are_those_of_the_policy(
    problem: FiniteHorizon, prior: Belief | MixtureBelief, spaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spaced:
        monkeypatch.setattr(horizon_offer_tables, "STEPS", (1.2,))
    body = solve_horizon_offer_table(problem, prior, 1e-6)
    table = load(msgspec.json.encode(body).decode())
    assert isinstance(table, HorizonOfferTable)
    policy, unit = problem.solve(prior), problem.offers.mean_amount if problem.offers else 1.0
    assert body.value.lower <= policy.value(prior).upper
    assert body.value.upper >= policy.value(prior).lower
    nonzero = differing = 0
    for arrivals, outcomes, good in states(40, 1, 250):
        belief = MixtureBelief.of(prior).after(outcomes, good).simplified
        exact = policy.label_value(belief, 40 - arrivals)
        label = table.after(arrivals).label(good, outcomes - good)
        assert label.bounds.lower <= exact.upper + 1e-6 * unit
        assert label.bounds.upper >= exact.lower - 2e-6 * unit
        if not spaced:
            assert label.worth == pytest.approx(exact.lower, abs=2e-6 * unit, rel=1e-6)
        nonzero += label.worth > 1e-3 * unit
        for offer in table.choices:
            profit = offer.expected_profit(belief.mean)
            differing += (profit + label.worth > 0) != (profit + exact.midpoint > 0)
    assert nonzero > 20
    assert differing <= (3 if spaced else 0)
    assert ("interpolated" in table.statement) is spaced


def test_the_end_and_what_is_left() -> None:
    table = HorizonOfferTable(solve_horizon_offer_table(FiniteHorizon(offers=OFFERS, horizon=12), PRIOR, 1e-6))
    assert table.after(0).label(0, 0).worth > table.after(6).label(0, 0).worth > table.after(8).label(0, 0).worth > 0
    for arrivals in (11, 12, 40):  # nothing is decided later
        assert table.after(arrivals).label(3, 1) == (0.0, table.after(12).label(0, 0).bounds)
    beyond = table.after(3).label(4, 0)  # more outcomes than applicants
    assert beyond.worth == 0.0 < beyond.bounds.upper
    assert table.after(5).volume == 7.0
    assert table.after(20).volume == 0.0
    assert table.volume is None
    assert table.label(2, 1) == table.after(3).label(2, 1)  # by default nobody was rejected
    policy = FiniteHorizon(offers=OFFERS, horizon=12).solve(PRIOR)
    value, _ = table.after(4).value(2, 1, 0)
    assert value is not None
    assert value.lower <= policy.value(Belief(5, 3), 8).upper
    assert value.upper >= policy.value(Belief(5, 3), 8).lower
    assert table.after(12).value(2, 1, 0) == (Bounds(0.0, 0.0), None)
    one, two = table.after(2).batch_label_values(0, 0, 2, 0)
    rate = table.rate(0, 0)
    after = [table.after(2).label(*state).worth for state in ((1, 0), (0, 1))]
    assert (one, two) == pytest.approx((table.after(2).label(0, 0).worth, rate * after[0] + (1 - rate) * after[1]))


FIRST, COUNT, LEFTS = [0, 0, 1, 1, 2, 2], [1, 2, 1, 2, 1, 0], [1, 2, 4, 6]


def handmade(gap: float, scale: float) -> tuple[HorizonOfferTable, dict[tuple[int, int, int], float]]:
    """A table of made-up labels, and its labels by number left, outcomes and successes."""
    rng = np.random.default_rng(4)
    labels = {
        (left, k, FIRST[k] + i): float(np.float32(scale * left * rng.uniform(0.5, 1.0)))
        for left in LEFTS
        for k in range(6 - left + 1)
        for i in range(COUNT[k])
    }
    body = HorizonOfferBody(
        objective=FiniteHorizon(offers=OFFERS, horizon=6),
        prior=MixtureBelief.of(PRIOR),
        tolerance=1e-6,
        value=Bounds(1.0, 2.0),
        undecided=0,
        left=array_text(np.array(LEFTS, dtype="<i4")),
        first=array_text(np.array(FIRST, dtype="<i4")),
        count=array_text(np.array(COUNT, dtype="<i4")),
        labels=array_text(np.array(list(labels.values()), dtype="<f4")),
        gap=gap,
        small=0.25,
    )
    return HorizonOfferTable(body), labels


@pytest.mark.parametrize(("gap", "scale"), [(0.0, 1.0), (0.5, 1.0), (0.0, 1e5)])
def test_every_label_of_a_small_table(gap: float, scale: float) -> None:
    table, labels = handmade(gap, scale)
    kinds = set()
    for arrivals in range(8):
        for k in range(8):
            for good in range(k + 1):
                left, at = max(6 - arrivals, 0), table.after(arrivals)
                worth, lower, upper = 0.0, 0.0, 0.0
                known = left * OFFERS.mean_amount * math.sqrt(Belief(2 + k, 1 + good).variance) / 2
                if left > 1 and k < 6:
                    below = max(one for one in LEFTS if one <= left)
                    above = min((one for one in LEFTS if one >= left), default=0)
                    if k > 6 - below:
                        kind, upper = "question", known
                    elif (below, k, good) not in labels:
                        kind, upper = "small", 0.25
                    else:
                        lower = worth = most = labels[below, k, good]
                        kind = "stored"
                        if below < left:
                            kind, most = "unknown above", math.inf
                            if (above, k, good) in labels:
                                kind, most = "between", labels[above, k, good]
                                worth += (left - below) / (above - below) * (most - worth)
                                lower, most = min(lower, most), max(lower, most)
                        upper = max(min(most * (1 + 2.0**-23) + gap, max(known, worth)), worth)
                    kinds.add(kind)
                label = at.label(good, k - good)
                assert label.worth == pytest.approx(worth, rel=1e-14)
                assert (label.bounds.lower, label.bounds.upper) == pytest.approx((lower, upper), rel=1e-14), kind
    assert kinds == {"question", "small", "stored", "unknown above", "between"}
    assert table.left_after(2) == 4
    assert not table.proved


def test_as_many_numbers_left_are_stored_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    count = [min(k + 1, 30) for k in range(150)]
    sizes = []
    for step in (1.0, 1.02, 1.05, 1.1, 1.2):
        lefts = [1]
        while lefts[-1] < 150:
            lefts.append(min(max(lefts[-1] + 1, math.floor(step * lefts[-1])), 150))
        sizes.append(sum(sum(count[: 150 - left + 1]) for left in lefts))
        monkeypatch.setattr(horizon_offer_tables, "NUMBERS", sizes[-1])
        assert _stored_lefts(count, 150) == lefts
    assert sizes == sorted(sizes, reverse=True)
    monkeypatch.setattr(horizon_offer_tables, "NUMBERS", sizes[-1] - 1)
    with pytest.raises(TooLargeError):
        _stored_lefts(count, 150)


def test_what_is_stored_and_what_is_left_out() -> None:
    problem = FiniteHorizon(offers=OFFERS, horizon=25)
    body = solve_horizon_offer_table(problem, PRIOR, 1e-6)
    solved = HorizonTables(PRIOR, OFFERS, 1.0, 25, 1e-6)
    first, count = (np.frombuffer(b64decode(text), dtype="<i4") for text in (body.first, body.count))
    stored = np.frombuffer(b64decode(body.labels), dtype="<f4").astype(float)
    least, dropped, at = 1e-6 * OFFERS.mean_amount, [0.0], 0
    exact = {
        (left, k): solved.state_labels(np.full(states.size, k), states, left)
        for left in range(1, 26)
        for k in range(25 - left + 1)
        for states in [np.arange(solved.band.low[k], solved.band.high[k] + 1)]
    }
    for left in range(1, 26):
        for k in range(25 - left + 1):
            labels = exact[left, k]
            begin = first[k] - int(solved.band.low[k])
            own = labels[begin : begin + count[k]]
            single = stored[at : at + count[k]]
            assert np.all(single <= own)
            assert np.all(single >= own * (1 - 2.0**-22))
            dropped += [*labels[:begin], *labels[begin + count[k] :]]
            at += int(count[k])
    assert at == stored.size
    assert body.small == max(least, *dropped)
    for k in range(25):
        lefts = [left for left in _spaced(25, 1.2) if left <= 25 - k]
        largest = np.max([exact[left, k] for left in lefts], axis=0)
        worth_it = np.flatnonzero(largest > 0.5 * least)
        if worth_it.size == 0:
            assert count[k] == 0
            continue
        begin, end = max(worth_it[0] - 1, 0), min(worth_it[-1] + 2, largest.size)
        assert (first[k] - solved.band.low[k], count[k]) == (begin, end - begin)
    assert (body.gap, body.value) == (solved.width, solved.value)


def test_tables_that_do_not_fit_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizon_offer_tables, "NUMBERS", 50)
    with pytest.raises(TooLargeError) as caught:
        solve_horizon_offer_table(FiniteHorizon(offers=OFFERS, horizon=40), PRIOR, 1e-6)
    assert caught.value.field == "objective.horizon"


def test_rules_follow_the_arrivals_left() -> None:
    text = msgspec.json.encode(solve_horizon_offer_table(FiniteHorizon(offers=OFFERS, horizon=12), PRIOR, 1e-6))
    rule = SegmentRule("all", 1.0, load(text.decode()), "d", None, 0.0)
    policy = FiniteHorizon(offers=OFFERS, horizon=12).solve(PRIOR)
    seen = set()
    for arrivals in (0, 3, 6, 9, 11, 3):  # also back: the basis of the last decision must not be used again
        for offer in (Offer(200, 0.7), Offer(4000, 0.75)):
            verdict = rule.decide(Counts(arrivals=arrivals), 1.0, (offer,))
            assert (verdict.decision == "accept") == policy.accepts(PRIOR, offer, 12 - arrivals)
            seen.add((verdict.decision, offer.amount))
    assert {("accept", 200.0), ("reject", 200.0), ("reject", 4000.0)} <= seen
    over = rule.decide(Counts(arrivals=12, accepted=2), 0.0, (Offer(200, 0.1),))
    assert (over.decision, over.rule) == ("reject", "horizon_over")
    assert what_would_change(rule, Counts(arrivals=12), over) == ["A longer horizon."]


def specification(**changes: Any) -> PolicySpecification:
    return msgspec.convert(SPEC | changes, PolicySpecification)


def test_each_segment_has_its_share_of_the_horizon() -> None:
    spec = specification(
        objective={"type": "horizon", "horizon": 60, "offers": {"amount": [500, 5000], "cost": [0.8, 0.8]}},
        segments=[{"name": "young", "share": 0.25}, {"name": "old", "doubt": 0.3}],
    )
    young, old = spec.problems()
    assert (young.problem.horizon, old.problem.horizon) == (15, 45)
    assert isinstance(old.prior, MixtureBelief)
    assert 0 < solve_seconds(young) < 1
    assert isinstance(load(solve(old)), HorizonOfferTable)
    assert solve(old) == solve(old)


def test_decisions_in_the_service_pass_the_audit(engine: Engine) -> None:
    offers = {"amount": [500, 5000], "cost": [0.8, 0.8], "currency": "$"}
    engine.create(objective={"type": "horizon", "horizon": 30, "offers": offers}, segments=["young"])
    policy = FiniteHorizon(offers=Offers([500, 5000], [0.8, 0.8], currency="$"), horizon=30).solve(PRIOR)
    belief, rules = PRIOR, []
    for arrival in range(31):
        amount = 500 if arrival % 3 else 5000
        decision = engine.decide(offer=OfferRequest(amount=amount, cost=0.8))
        rules.append(decision["rule"])
        if arrival == 30:
            break
        assert (decision["decision"] == "accept") == policy.accepts(belief, Offer(amount, 0.8), 30 - arrival)
        if decision["decision"] == "accept":
            engine.outcome(decision["id"], "success")
            belief = belief.observe(True)
    assert rules[-1] == "horizon_over"
    assert "applicants of the horizon" in decision["reason"]
    assert {"worth_learning", "above_break_even", "below_threshold"} <= set(rules)
    segment = engine.queries.policy("cards").segments[0]
    assert segment.volume == 0.0
    assert engine.audit().whole


def test_doubt_with_a_horizon_in_the_service(engine: Engine) -> None:
    engine.create(
        objective={"type": "horizon", "cost": 0.7, "horizon": 25}, segments=["young"], prior={"n": 4, "s": 2}, doubt=0.3
    )
    prior = MixtureBelief.doubt(Belief(4, 2), 0.3)
    policy = FiniteHorizon(cost=0.7, horizon=25).solve(prior)
    good = bad = 0
    decisions = []
    for arrival, outcome in enumerate((1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0)):
        decision = engine.decide()
        decisions.append(decision["decision"])
        assert (decision["decision"] == "accept") == policy.accepts(prior.after(good + bad, good), None, 25 - arrival)
        if decision["decision"] == "accept":
            engine.outcome(decision["id"], "success" if outcome else "failure")
            good, bad = good + outcome, bad + 1 - outcome
    assert set(decisions) == {"accept", "reject"}
    assert engine.audit().whole
