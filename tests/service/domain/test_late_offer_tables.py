"""Tables for offers whose outcomes come late: the library's decisions, each offer with its own exposure limit."""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
import pytest

from lenience import Belief, Delayed, Offer, Offers
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.policies.beliefs.offer_exposure import OfferExposurePolicy
from lenience.service.domain import late_offer_tables
from lenience.service.domain.late_offer_tables import (
    VALUE_TOLERANCE,
    EstimatedLateOfferTable,
    LateOfferBody,
    LateOfferTable,
    solve_late_offer_table,
)
from lenience.service.domain.offer_reasons import offer_principal_reasons, offer_reason, what_would_change_offer
from lenience.service.domain.offer_tables import labels_beyond
from lenience.service.domain.rule import Counts, SegmentRule
from lenience.service.domain.solved_tables import load, solve
from lenience.service.domain.specification import PolicySpecification, SegmentProblem
from lenience.service.domain.version_warnings import beyond_table_warnings, version_warnings
from lenience.solvers.offers.delayed import solve_delayed_offers

OFFERS = Offers(amount=[100, 1000, 5000], cost=[0.8, 0.8, 0.8], currency="$")
PROBLEM = Delayed(offers=OFFERS, arrivals=20, discount_rate=0.5, label_delay=0.5)
NEAR = 1e-4 * OFFERS.mean_amount
FLAT, DOUBTFUL = Belief(2, 1), MixtureBelief.doubt(Belief(8, 3), 0.3)
ONE_COST = Delayed(0.7, arrivals=20, discount_rate=0.2, label_delay=0.5)


@cache
def table(problem: Delayed = PROBLEM, prior: Belief | MixtureBelief = FLAT) -> LateOfferTable:
    loaded = load(solve(SegmentProblem("x", 1.0, problem, prior, None, 0.0)))
    assert isinstance(loaded, LateOfferTable)
    return loaded


@cache
def policy(problem: Delayed = PROBLEM, prior: Belief | MixtureBelief = FLAT) -> OfferExposurePolicy:
    solved: OfferExposurePolicy = problem.solve(prior, tolerance=1e-6)
    return solved


@pytest.mark.parametrize(("successes", "failures"), [(0, 0), (0, 1), (2, 1), (8, 2), (30, 10), (5, 9)])
def test_decisions_are_those_of_the_library(successes: int, failures: int) -> None:
    belief = Belief(2 + successes + failures, 1 + successes)
    segment = SegmentRule("x", 1.0, table(), "", None, 0.0)
    for pending in (0, 1, 2, 4, 8, 15):
        counts = Counts(successes=successes, failures=failures, pending=pending)
        label = policy().label_value(belief, pending)
        stored = table().label(successes, failures, pending)
        assert stored.worth == pytest.approx(label.midpoint, rel=0.02, abs=NEAR)
        assert stored.bounds.lower <= label.upper
        assert stored.bounds.upper >= label.lower
        for offer in (Offer(100, 0.8), Offer(1000, 0.8), Offer(5000, 0.75), Offer(20, 0.9)):
            verdict = segment.decide(counts, 0.0, [offer])
            expected = policy().decide(belief, offer, pending)
            assert verdict.expected_profit == expected.expected_profit
            if abs(expected.expected_profit + label.midpoint) > 0.02 * label.midpoint + NEAR:
                assert (verdict.decision == "accept") == expected.accepted, (counts, offer)
            if verdict.decision == "reject":
                open_later = table().label(successes, failures).worth + expected.expected_profit > 0
                assert verdict.rule == ("exposure_limit" if open_later else "below_threshold")


def test_each_offer_has_its_own_limit() -> None:
    limits = [table().exposure_limit(Offer(amount, 0.8), 0, 0) for amount in (50, 100, 1000, 5000)]
    expected = [policy().limit(FLAT, Offer(amount, 0.8)) for amount in (50, 100, 1000, 5000)]
    assert limits == pytest.approx(expected, abs=1)
    assert limits[0] is not None
    assert limits[1] is not None
    assert limits[0] > limits[1] > 0
    assert limits[2:] == [0, 0]
    assert table().exposure_limit(Offer(100, 0.3), 0, 0) is None
    segment = SegmentRule("x", 1.0, table(), "", 3, 0.0)
    assert segment.decide(Counts(), 0.0, [Offer(50, 0.8)]).limit == 3
    assert segment.decide(Counts(), 0.0, [Offer(5000, 0.8)]).limit == 0


def test_a_limit_is_explained() -> None:
    segment = SegmentRule("x", 1.0, table(), "", None, 0.0)
    offer = Offer(100, 0.8)
    limit = table().exposure_limit(offer, 0, 0)
    assert limit is not None
    counts = Counts(pending=limit + 2)
    verdict = segment.decide(counts, 0.0, [offer])
    assert (verdict.decision, verdict.rule, verdict.limit) == ("reject", "exposure_limit", limit)
    text = offer_reason(segment, counts, verdict)
    assert text.startswith("Reject $100 for now: the expected success rate is 50%")
    assert f"With {limit + 2} outcomes pending, one more is worth only $" in text
    assert f"The limit for this offer is {limit}. New outcomes make room." in text
    codes = [each.code for each in offer_principal_reasons(segment, counts, verdict)]
    assert codes[:2] == ["exposure_limit_reached", "record_of_similar_applicants"]
    changes = what_would_change_offer(segment, counts, verdict)
    assert changes[0] == "3 fewer outcomes pending: the decision would have been accept."
    assert segment.decide(Counts(pending=limit - 1), 0.0, [offer]).decision == "accept"


def test_a_doubtful_prior_with_one_cost() -> None:
    stored = table(ONE_COST, DOUBTFUL)
    assert stored.offers is None
    for successes, failures in ((0, 0), (2, 0), (6, 3), (12, 6)):
        expected = policy(ONE_COST, DOUBTFUL).limit(DOUBTFUL.after(successes + failures, successes))
        assert stored.limit(successes, failures) == pytest.approx(expected, abs=1)
    segment = SegmentRule("x", 1.0, stored, "", None, 0.0)
    assert segment.decide(Counts(pending=500, successes=3), 0.0).rule in ("exposure_limit", "above_break_even")


def test_what_is_not_stored_counts_as_nothing() -> None:
    stored = table()
    old = LateOfferTable(msgspec.structs.replace(stored.body, beyond=""))  # as earlier versions stored it
    assert (stored.values_any_number, old.values_any_number) == (True, False)
    beyond = old.label(old.rows, 0)
    assert (beyond.worth, beyond.bounds.lower) == (0.0, 0.0)
    assert beyond.bounds.upper > 0
    many = stored.label(0, 0, 10**6)
    assert many.worth == 0.0
    assert stored.label(0, 30).worth == pytest.approx(0.0, abs=NEAR)
    value, continuing = stored.value(0, 0, 0)
    assert value is not None
    assert continuing is None
    assert value.lower <= policy().value(FLAT).midpoint <= value.upper
    more = stored.value(0, 0, 2)[0]
    assert more is not None
    assert more.midpoint > value.midpoint
    assert not stored.proved
    assert "value at the prior" in stored.statement


@pytest.mark.parametrize(
    ("arrivals", "discount_rate", "label_delay", "rows"),
    [(2.0, 0.01, 0.5, 400), (20.0, 0.5, 10.0, 87), (20.0, 0.5, 50.0, 50), (6.0, 1.0, 0.5, None)],
)
def test_a_table_holds_the_bounds_of_the_solver(
    arrivals: float, discount_rate: float, label_delay: float, rows: int | None
) -> None:
    problem = Delayed(offers=OFFERS, arrivals=arrivals, discount_rate=discount_rate, label_delay=label_delay)
    body = solve_late_offer_table(problem, FLAT, 1e-4, 5.0)
    assert isinstance(body, LateOfferBody)
    stored = LateOfferTable(body)
    solution = solve_delayed_offers(FLAT, OFFERS, arrivals, label_delay, discount_rate, 1e-4, 5.0, body.rows)
    assert body.rows == (rows or solution.look_ahead)  # about half a million numbers
    assert body.small == pytest.approx(1e-4 * arrivals / discount_rate * OFFERS.mean_amount)
    lower, upper = solution.table
    for k in {0, 1, 7, body.rows // 2, body.rows - 1}:
        first, begin, count = solution.rows[k].tolist()
        for j in range(count):
            middle = np.maximum((lower[begin + j] + upper[begin + j]) / 2.0, 0.0)
            gap = (upper[begin + j] - lower[begin + j]).max() / 2.0
            for pending in (0, 1, body.width - 1):
                label = stored.label(first + j, k - first - j, pending)
                assert label.worth == pytest.approx(middle[pending], rel=1e-6)
                assert label.bounds.lower <= max(lower[begin + j, pending], 0.0)
                assert label.bounds.upper >= upper[begin + j, pending]
                assert label.bounds.upper == pytest.approx(middle[pending] + gap, rel=1e-6)
                assert label.bounds.lower == pytest.approx(max(middle[pending] - gap, 0.0), rel=1e-6, abs=1e-6 * gap)
            more = stored.label(first + j, k - first - j, body.width)
            assert (more.worth, more.bounds.lower) == (0.0, 0.0)
            assert more.bounds.upper == pytest.approx(middle[-1] + gap, rel=1e-6)
        if first + count <= k:
            beside = stored.label(first + count, k - first - count)
            assert (beside.worth, beside.bounds.lower, beside.bounds.upper) == (0.0, 0.0, body.small)


def test_a_table_is_as_precise_as_the_time_allows() -> None:
    with pytest.raises(TooLargeError) as least:
        solve_delayed_offers(FLAT, OFFERS, 20.0, 0.5, 0.5, 1e-3, 0.0)
    assert least.value.seconds is not None
    body = solve_late_offer_table(PROBLEM, FLAT, 1e-6, 1.001 * least.value.seconds)
    assert isinstance(body, LateOfferBody)
    assert body.tolerance == pytest.approx(1e-3)
    with pytest.raises(TooLargeError):
        solve_late_offer_table(PROBLEM, FLAT, 1e-6, 0.999 * least.value.seconds)


def test_values_with_outcomes_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    stored, solution = table(), solve_delayed_offers(Belief(5, 3), OFFERS, 20.0, 0.5, 0.5, VALUE_TOLERANCE, 3.0)
    last = len(solution.lower) - 1
    for pending in (0, 1, 5, last):
        value = stored.value(2, 1, pending)[0]
        assert value is not None
        expected = policy().value(Belief(5, 3)).midpoint + sum(
            policy().label_value(Belief(5, 3), k).midpoint for k in range(pending)
        )
        assert value.lower <= expected <= value.upper
        assert value.upper - value.lower == pytest.approx(solution.upper[pending] - solution.lower[pending], rel=1e-3)
    more, most = stored.value(2, 1, last + 1)[0], stored.value(2, 1, last)[0]
    assert more is not None
    assert most is not None
    assert more.lower == most.lower
    assert more.upper == solution.most > most.upper
    proved = stored.value(2, 1, 3)[0]
    monkeypatch.setattr(late_offer_tables, "VALUE_SECONDS", 0.0)
    estimated = stored.value(2, 1, 3)[0]
    assert proved is not None
    assert estimated is not None
    assert estimated.midpoint in proved


@pytest.mark.parametrize("prior", [FLAT, DOUBTFUL])
def test_labels_beyond_the_last_row_are_estimated(prior: Belief | MixtureBelief) -> None:
    """A table of few rows, from there on estimated, against a longer one."""
    long = table(PROBLEM, prior)
    assert long.rows > 110
    beyond = labels_beyond(prior, OFFERS, 20.0, 0.5, 0.5, 30)
    short = LateOfferTable(msgspec.structs.replace(long.body, rows=30, beyond=beyond))
    compared = 0
    for k in (30, 37, 60, 110):
        for j in range(k + 1):
            for pending in (0, 1, 4, 9):
                estimated, proved = short.label(j, k - j, pending), long.label(j, k - j, pending)
                assert estimated.bounds.lower <= proved.bounds.upper
                assert proved.bounds.lower <= estimated.bounds.upper
                assert estimated.worth == pytest.approx(proved.worth, rel=0.15, abs=0.004 * OFFERS.mean_amount)
                compared += proved.worth > 0.004 * OFFERS.mean_amount
    assert compared > 20
    for amount in (10.0, 30.0):
        limit, profit = (
            short.exposure_limit(Offer(amount, 0.8), 45, 15),
            Offer(amount, 0.8).expected_profit(short.rate(45, 15)),
        )
        worths = [short.label(45, 15, pending).worth for pending in range(60)]
        assert limit == next(m for m, worth in enumerate(worths) if profit + worth <= 0.0)


def test_a_table_for_any_number_of_arrivals() -> None:
    """4,000 arrivals a year were rejected before; the stored table decides like the library's estimate."""
    problem = Delayed(offers=OFFERS, arrivals=4_000, discount_rate=0.1, label_delay=1)
    text = solve(SegmentProblem("x", 1.0, problem, FLAT, None, 0.0))
    stored, again = load(text), load(text)
    assert isinstance(stored, EstimatedLateOfferTable)
    assert isinstance(again, EstimatedLateOfferTable)
    assert not stored.proved
    assert "estimated" in stored.statement
    library = problem.solve(FLAT)
    for successes, failures in ((0, 0), (3, 1), (7, 3), (2000, 520), (1e5, 25_100.5)):
        belief = Belief(2 + successes + failures, 1 + successes)
        for offer in (Offer(100, 0.8), Offer(1000, 0.8), Offer(5000, 0.81)):
            limit = stored.exposure_limit(offer, successes, failures)
            assert limit == library.limit(belief, offer) == again.exposure_limit(offer, successes, failures)
            if limit is not None:
                assert stored.label(successes, failures, limit).worth <= -offer.expected_profit(belief.mean)
                assert (
                    limit == 0
                    or stored.label(successes, failures, limit - 1).worth > -offer.expected_profit(belief.mean) - 1e-9
                )
    segment = SegmentRule("x", 1.0, stored, "", None, 0.0)
    assert segment.decide(Counts(), 0.0, [Offer(100, 0.8)]).decision == "accept"
    assert segment.decide(Counts(pending=10**5), 0.0, [Offer(100, 0.8)]).rule == "exposure_limit"
    assert segment.decide(Counts(), 0.0, [Offer(5000, 0.8)]).decision == "reject"
    assert stored.limit(0, 0) is None
    assert stored.limit(0, 200) == 0
    value = stored.value(0, 0, 0)[0]
    assert value is not None
    assert library.certificate.estimate in value
    warnings = version_warnings(PolicySpecification("loans", problem), {"x": stored})
    assert any("estimates" in warning for warning in warnings)
    assert beyond_table_warnings({"x": segment}, {"x": Counts(successes=2000, failures=520)}) == []


def test_limits_and_batches_follow_the_stored_labels() -> None:
    stored = table()
    labels = [stored.label(1, 1, pending).worth for pending in range(stored.body.width + 1)]
    assert stored.batch_label_values(1, 1, 3, 2) == tuple(labels[2:5])
    for amount in (20.0, 60.0, 300.0):
        profit = Offer(amount, 0.8).expected_profit(stored.rate(1, 1))
        expected = next(m for m, worth in enumerate(labels) if profit + worth <= 0.0)
        assert stored.exposure_limit(Offer(amount, 0.8), 1, 1) == expected
    assert stored.exposure_limit(Offer(100, 0.5), 0, 0) == stored.body.width  # it neither gains nor loses
