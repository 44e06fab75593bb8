"""Offers in the service: requests, tables, decisions and specifications, against solves at each belief and by hand."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from lenience import Belief, Bounds, Discounted, MixtureBelief, Offer, Offers
from lenience.core.certificate import Certificate
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.offer_tables import OfferBody, PromptOfferTable, solve_offer_table
from lenience.service.domain.rule import Counts, SegmentRule, Verdict
from lenience.service.domain.solved_tables import Effort, load, solve, solve_seconds
from lenience.service.domain.specification import PolicySpecification, SegmentProblem
from lenience.solvers.offers.solve import offer_seconds, solve_offers
from rejections import rejected

TWO = Offers([500, 5000], [0.8, 0.75], [0.75, 0.25], currency="$")
MENU = Offers.menu([100, 1000], [0.8, 0.8])
DOUBTFUL = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
FLAT = Belief(2, 1)
ROWS = 30


@cache
def table_of(offers: Offers | None, prior: Belief | MixtureBelief = FLAT, discount: float = 0.95) -> PromptOfferTable:
    problem = Discounted(offers=offers, discount=discount) if offers else Discounted(0.7, discount)
    table = load(solve(SegmentProblem("x", 1.0, problem, prior, None, 0.0), Effort(offer_rows=ROWS)))
    assert isinstance(table, PromptOfferTable)
    return table


def after(prior: Belief | MixtureBelief, successes: int, failures: int) -> Belief | MixtureBelief:
    return prior.observe([True] * successes + [False] * failures)


CASES = [(TWO, FLAT), (MENU, FLAT), (TWO, DOUBTFUL), (None, DOUBTFUL)]


@pytest.mark.parametrize(("offers", "prior"), CASES)
def test_a_table_holds_the_label_values_of_separate_solves(
    offers: Offers | None, prior: Belief | MixtureBelief
) -> None:
    table = table_of(offers, prior)
    each = offers or Offers([1.0], [0.7])
    assert table.rows == ROWS
    assert table.body.gap <= 2e-6 * each.mean_amount
    assert table.body.small == pytest.approx(1e-6 * each.mean_amount)
    stored = 0
    for k in (0, 1, 2, 5, 11, ROWS - 1):
        for successes in range(0, k + 1, 2):
            belief = after(prior, successes, k - successes)
            exact = solve_offers(belief, each, 0.95, 1, 1e-9).label_value
            label = table.label_value(successes, k - successes)
            assert label.lower <= exact.upper
            assert label.upper >= exact.lower
            assert label.width <= max(table.body.gap, table.body.small) * (1 + 1e-9)
            stored += label.lower > 0
            assert table.rate(successes, k - successes) == pytest.approx(belief.mean, rel=1e-12)
            single = table.belief(successes, k - successes)
            assert (single.n, single.s) == pytest.approx((belief.n, belief.s), rel=1e-9)
    assert stored >= 9


@pytest.mark.parametrize(("offers", "prior"), CASES)
def test_beyond_an_older_table_only_a_profit_is_accepted(offers: Offers | None, prior: Belief | MixtureBelief) -> None:
    stored = table_of(offers, prior)
    table = PromptOfferTable(msgspec.structs.replace(stored.body, beyond=""))
    assert (stored.values_any_number, table.values_any_number) == (True, False)
    each = offers or Offers([1.0], [0.7])
    for successes, failures in [(ROWS, 0), (20, 10), (25, 8), (40, 0)]:
        belief = after(prior, successes, failures)
        label = table.label_value(successes, failures)
        assert label.lower == 0.0
        # 19 arrivals are still to come, each weighted by its discount of 0.95.
        assert label.upper == pytest.approx(19 * each.mean_amount * math.sqrt(belief.variance) / 2)
        profitable = any(offer.expected_profit(belief.mean) > 0 for offer in table.choices)
        assert (table.limit(successes, failures) is None) == profitable
        assert table.least_accepted(successes + failures) is None
        exact = solve_offers(belief, each, 0.95, 1, 1e-9).label_value
        estimate = stored.label_value(successes, failures)
        assert estimate.lower <= exact.upper
        assert exact.lower <= estimate.upper <= label.upper
        assert stored.label(successes, failures).worth == pytest.approx(
            exact.midpoint, rel=0.15, abs=2e-3 * each.mean_amount
        )


@pytest.mark.parametrize(("offers", "prior"), CASES)
def test_limits_shares_and_thresholds_by_hand(offers: Offers | None, prior: Belief | MixtureBelief) -> None:
    table = table_of(offers, prior)
    each = offers or Offers([1.0], [0.7])
    kinds = set()
    for k in range(ROWS):
        accepted = []
        for successes in range(k + 1):
            rate, label = table.rate(successes, k - successes), table.label_value(successes, k - successes).lower
            pays = [amount * (rate - cost) + label > 0 for amount, cost in zip(each.amount, each.cost, strict=True)]
            share = sum(
                part
                for menu, part in enumerate(each.share)
                if any(one for one, of in zip(pays, each.menu_of, strict=True) if of == menu)
            )
            assert table.share_accepted(successes, k - successes) == pytest.approx(share)
            kinds.add(round(share, 6))
            assert (table.limit(successes, k - successes) is None) == any(pays)
            least = min(cost - label / amount for amount, cost in zip(each.amount, each.cost, strict=True))
            assert table.threshold(successes, k - successes) == pytest.approx(min(max(least, 0), 1))
            if any(pays):
                accepted.append(successes)
        assert table.boundary[k] == (accepted[0] if accepted else k + 1)
        assert table.least_accepted(k) == (accepted[0] if accepted else None)
    assert table.least_accepted(ROWS) is None
    assert kinds == ({0, 0.75, 1} if offers is TWO else {0, 1})
    assert table.closed == (table.share_accepted(0, 0) == 0)


def test_facts_of_a_table() -> None:
    two, menu, doubtful = table_of(TWO), table_of(MENU), table_of(None, DOUBTFUL)
    assert [table.money.currency for table in (two, menu, doubtful)] == ["$", "", ""]
    assert [table.one_menu for table in (two, menu, doubtful)] == [False, True, True]
    assert two.choices == (Offer(500, 0.8), Offer(5000, 0.75))
    assert two.cost == pytest.approx((0.75 * 400 + 0.25 * 3750) / (0.75 * 500 + 0.25 * 5000))
    assert doubtful.cost == 0.7
    assert doubtful.offers is None
    assert two.volume == pytest.approx(19)
    assert two.horizon is None
    assert two.proved == two.body.certificate.proved
    assert two.statement == two.body.certificate.statement
    hopeless = table_of(Offers([100], [0.97]), discount=0.5)
    assert hopeless.closed
    assert not two.closed


def test_values_are_those_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    value, continuation = table_of(TWO).value(3, 1, 0)
    exact = solve_offers(Belief(6, 4), TWO, 0.95, 1, 1e-9).value
    assert value is not None
    assert value.lower <= exact.upper
    assert value.upper >= exact.lower
    assert value.width < 1e-5 * TWO.mean_amount
    assert continuation is None
    monkeypatch.setattr("lenience.service.domain.offer_tables.VALUE_SECONDS", 0.0)
    assert table_of(TWO).value(3, 1, 0) == (None, None)


def test_only_labels_that_are_worth_something_are_stored() -> None:
    body = solve_offer_table(Discounted(offers=TWO, discount=0.95), Belief(2, 1), ROWS, 1e-6)
    table = PromptOfferTable(body)
    outside = 0
    for k in range(ROWS):
        first, count = table._first[k], table._count[k]
        if count:
            exact = solve_offers(Belief(2 + k, 1 + first), TWO, 0.95, 1, 1e-9).label_value
            assert exact.upper > body.small / 2
        for successes in {0, k, first - 1, first + count} & set(range(k + 1)):
            if not first <= successes < first + count:
                outside += 1
                assert table.label_value(successes, k - successes) == Bounds(0.0, body.small)
                exact = solve_offers(Belief(2 + k, 1 + successes), TWO, 0.95, 1, 1e-9).label_value
                assert exact.lower <= body.small
    assert outside > 10


def text(numbers: Sequence[float], kind: str) -> str:
    return b64encode(np.array(numbers, dtype=kind).tobytes()).decode()


def written_table(rows: list[tuple[int, list[float]]]) -> PromptOfferTable:
    """A table with one offer of amount 1 and break-even 0.8 after the prior (2, 1), from given labels."""
    certificate = Certificate(1e-6, len(rows), len(rows), 0, 1e-6, 0)
    body = OfferBody(
        objective=Discounted(offers=Offers([1], [0.8]), discount=0.9),
        prior=MixtureBelief.of(Belief(2, 1)),
        certificate=certificate,
        first=text([first for first, _ in rows], "<i4"),
        count=text([len(labels) for _, labels in rows], "<i4"),
        labels=text([label for _, labels in rows for label in labels], "<f8"),
        gap=0.25,
        small=0.125,
    )
    return PromptOfferTable(body)


def test_labels_are_looked_up_by_their_row_and_place() -> None:
    table = written_table([(0, [0.5]), (1, [0.25]), (0, []), (1, [0.1, 0.2])])
    known = {(0, 0): 0.5, (1, 0): 0.25, (1, 2): 0.1, (2, 1): 0.2}
    for k in range(4):
        for successes in range(k + 1):
            lower = known.get((successes, k - successes))
            expected = Bounds(0.0, 0.125) if lower is None else Bounds(lower, lower + 0.25)
            assert table.label_value(successes, k - successes) == expected


def test_the_boundary_follows_undecided_rows_up_and_down() -> None:
    """Where rounding leaves a row undecided, its labels are 0, and the next row may accept fewer successes again."""
    nothing: tuple[int, list[float]] = (0, [])
    table = written_table([(0, [0.5]), (0, [0.6, 0.6]), nothing, nothing, (0, [0.7] * 5), (2, [0.7] * 4), nothing])
    assert [table.least_accepted(k) for k in range(7)] == [0, 0, None, None, 0, 2, 6]
    assert table.boundary == [0, 0, 3, 4, 0, 2, 6]


SMALL, LARGE = Offer(500, 0.8), Offer(5000, 0.75)


def rule(
    offers: Offers = TWO, cap: int | None = None, floor: float = 0.0, most: float | None = None, discount: float = 0.95
) -> SegmentRule:
    return SegmentRule("x", 1.0, table_of(offers, discount=discount), "", cap, floor, most)


def parts(verdict: Verdict) -> tuple[str, str, float, Offer | None]:
    return verdict.decision, verdict.rule, verdict.probability, verdict.offer


def test_which_offers_must_be_given() -> None:
    assert rule(TWO).needs_offer
    assert not rule(MENU).needs_offer
    assert not SegmentRule("x", 1.0, table_of(None, DOUBTFUL), "", None, 0.0).needs_offer
    plain = load(solve(SegmentProblem("x", 1.0, Discounted(0.8, 0.9), Belief(2, 1), None, 0.0), Effort(rows=9)))
    assert not SegmentRule("x", 1.0, plain, "", None, 0.0).needs_offer


def test_every_decision_about_offers() -> None:
    """At (9, 1) of (2, 1) both are profitable; at (2, 1) the small one only teaches; at (0, 6) nothing pays."""
    good, unsure, bad = Counts(successes=9, failures=1), Counts(), Counts(failures=6)
    assert parts(rule().decide(good, 0.0, [SMALL])) == ("accept", "above_break_even", 1.0, SMALL)
    assert parts(rule().decide(good, 0.0, [SMALL, LARGE])) == ("accept", "above_break_even", 1.0, LARGE)
    assert parts(rule().decide(unsure, 0.0, [SMALL])) == ("accept", "worth_learning", 1.0, SMALL)
    assert parts(rule().decide(unsure, 0.0, [LARGE])) == ("reject", "below_threshold", 0.0, LARGE)
    assert parts(rule().decide(bad, 0.0, [SMALL, LARGE])) == ("reject", "below_threshold", 0.0, SMALL)
    assert parts(rule().decide(good, 0.0)) == ("accept", "above_break_even", 1.0, LARGE)  # all of the version
    at_cost = Counts(successes=7, failures=1)  # 8 of 10: no profit, so the label decides
    assert rule().decide(at_cost, 0.0, [SMALL]).rule == "worth_learning"


def test_grounds_of_a_decision_about_an_offer() -> None:
    counts = Counts(successes=2, failures=1)
    verdict, label = rule(cap=7).decide(counts, 0.0, [SMALL]), table_of(TWO).label_value(2, 1)
    assert verdict.expected_profit == pytest.approx(500 * (0.6 - 0.8))
    assert verdict.label_value == label
    assert verdict.threshold == pytest.approx(0.8 - label.lower / 500)
    assert 0 < verdict.threshold < 0.6
    assert verdict.limit == 7
    tiny = rule().decide(counts, 0.0, [Offer(0.01, 0.8)])
    assert tiny.threshold == 0.0
    basis = rule().basis(counts)
    assert basis.rate == pytest.approx(0.6)
    assert not basis.above
    assert rule().basis(Counts(successes=9, failures=1)).above


@pytest.mark.parametrize(
    ("pending", "at_risk", "choices", "expected"),
    [
        (2, 0, [SMALL], ("accept", "above_break_even", 1.0, SMALL)),
        (3, 0, [SMALL], ("reject", "exposure_cap", 0.0, SMALL)),
        (4, 0, [SMALL], ("reject", "exposure_cap", 0.0, SMALL)),
        (1, 250, [LARGE], ("accept", "above_break_even", 1.0, LARGE)),  # 250 + 3,750 is the cap
        (1, 250.1, [LARGE], ("reject", "exposure_cap_amount", 0.0, LARGE)),
        (1, 250.1, [SMALL, LARGE], ("accept", "above_break_even", 1.0, SMALL)),
        (1, 3600, [SMALL, LARGE], ("accept", "above_break_even", 1.0, SMALL)),
        (1, 3600.1, [SMALL, LARGE], ("reject", "exposure_cap_amount", 0.0, LARGE)),
    ],
)
def test_caps_on_outcomes_and_on_money(
    pending: int, at_risk: float, choices: list[Offer], expected: tuple[str, str, float, Offer]
) -> None:
    counts = Counts(successes=9, failures=1, pending=pending, at_risk=at_risk)
    assert parts(rule(cap=3, most=4000).decide(counts, 0.0, choices)) == expected


def test_a_smaller_offer_that_does_not_pay_is_not_made() -> None:
    """A cap in money leaves only an offer whose break-even is too high."""
    dear = Offer(400, 0.999)
    counts = Counts(successes=19, failures=1, at_risk=3000)
    label = table_of(TWO).label_value(19, 1)
    assert dear.expected_profit(20 / 22) + label.upper < 0
    assert parts(rule(most=3500).decide(counts, 0.0, [dear, LARGE])) == ("reject", "exposure_cap_amount", 0.0, LARGE)


@pytest.mark.parametrize(
    ("draw", "pending", "at_risk", "expected"),
    [
        (0.0, 0, 0, ("accept", "exploration_floor", 0.25, SMALL)),
        (0.2499, 2, 0, ("accept", "exploration_floor", 0.25, SMALL)),
        (0.25, 0, 0, ("reject", "below_threshold", 0.25, SMALL)),
        (0.0, 3, 0, ("reject", "below_threshold", 0.0, SMALL)),
        (0.0, 1, 3700, ("reject", "below_threshold", 0.0, SMALL)),
    ],
)
def test_the_floor_with_offers(
    draw: float, pending: int, at_risk: float, expected: tuple[str, str, float, Offer]
) -> None:
    counts = Counts(failures=20, pending=pending, at_risk=at_risk)
    assert parts(rule(cap=3, floor=0.25, most=4000).decide(counts, draw, [LARGE, SMALL])) == expected


def test_the_floor_waits_until_no_offer_is_accepted() -> None:
    """At the prior the large offer is rejected, but the small one is accepted: nothing is gained by a draw."""
    assert parts(rule(floor=0.25).decide(Counts(), 0.0, [LARGE])) == ("reject", "below_threshold", 0.0, LARGE)
    none = rule(floor=0.25).decide(Counts(failures=20), 0.0, [LARGE])
    assert parts(none) == ("accept", "exploration_floor", 0.25, LARGE)
    without = rule().decide(Counts(failures=20), 0.0, [LARGE])
    assert parts(without) == ("reject", "below_threshold", 0.0, LARGE)


def test_the_best_offer_is_the_first_of_equals() -> None:
    best_offer = rule(Offers([1.0, 2.0], [0.5, 0.5])).best_offer
    assert best_offer([Offer(1, 0.5), Offer(2, 0.5), Offer(4, 0.5)], 0.5) == Offer(1, 0.5)
    assert best_offer([Offer(1, 0.5), Offer(2, 0.5)], 0.6) == Offer(2, 0.5)


@pytest.mark.parametrize(
    ("fields", "offer"),
    [
        ({"amount": 1000, "cost": 0.8}, Offer(1000, 0.8)),
        ({"gain": 200, "loss": 800}, Offer(1000, 0.8)),
        ({"amount": 1000, "rate": 0.12, "term": 3}, Offer.from_loan(1000, 0.12, 3, 1.0, 0.0)),
        (
            {"amount": 1000, "rate": 0.12, "term": 3, "loss_given_default": 0.6, "funding_rate": 0.04},
            Offer.from_loan(1000, 0.12, 3, 0.6, 0.04),
        ),
        ({"gain": 1e-9, "loss": 1e-9}, Offer(2e-9, 0.5)),
    ],
)
def test_forms_of_a_request(fields: dict[str, float], offer: Offer) -> None:
    assert msgspec.convert(fields, OfferRequest).offer == offer


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({}, "amount", "missing"),
        ({"amount": 100}, "cost", "missing"),
        ({"cost": 0.8}, "amount", "missing"),
        ({"gain": 100}, "loss", "missing"),
        ({"loss": 100}, "gain", "missing"),
        ({"amount": 100, "rate": 0.1}, "term", "missing"),
        ({"amount": 100, "term": 3}, "rate", "missing"),
        ({"rate": 0.1, "term": 3}, "amount", "missing"),
        ({"gain": 100, "loss": 100, "cost": 0.5}, "cost", "conflicting_fields"),
        ({"gain": 100, "loss": 100, "amount": 200}, "amount", "conflicting_fields"),
        ({"amount": 100, "cost": 0.5, "rate": 0.1, "term": 3}, "cost", "conflicting_fields"),
        ({"amount": 100, "cost": 0.5, "funding_rate": 0.1}, "funding_rate", "conflicting_fields"),
        ({"gain": 100, "loss": 100, "loss_given_default": 0.1}, "loss_given_default", "conflicting_fields"),
        ({"amount": 100, "rate": 0.1, "term": 3, "funding_rate": 0.1}, "funding_rate", "invalid_value"),
        ({"gain": 6e11, "loss": 6e11}, "amount", "invalid_value"),
        ({"gain": 1e12, "loss": 1e-9}, "cost", "invalid_value"),
    ],
)
def test_requests_that_are_no_offer(fields: dict[str, float], field: str, code: str) -> None:
    with rejected(field, code):
        OfferRequest(**fields)


@pytest.mark.parametrize(
    ("field", "least", "below", "most", "above"),
    [
        ("amount", 1e-9, 0.9e-9, 1e12, 1.1e12),
        ("cost", 1e-9, 0.9e-9, math.nextafter(1, 0), 1.0),
        ("rate", 1e-6, 0.0, 100.0, 101.0),
        ("term", 0.1, 0.0, 100.0, 101.0),
        ("loss_given_default", 0.01, 0.0, 10.0, 10.1),
        ("funding_rate", 0.0, -0.1, 0.49, 101.0),
    ],
)
def test_limits_of_requests(field: str, least: float, below: float, most: float, above: float) -> None:
    loan = {"amount": 1000.0, "rate": 0.5, "term": 3.0}
    other = {"amount": 1000.0, "cost": 0.5}
    rest = other if field in other else loan
    for allowed in (least, most):
        assert getattr(msgspec.convert({**rest, field: allowed}, OfferRequest), field) == allowed
    for wrong in (below, above):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({**rest, field: wrong}, OfferRequest)


def posted(**fields: Any) -> PolicySpecification:
    plain = {"name": "p", "objective": {"type": "discounted", "cost": 0.8, "discount": 0.9}}
    try:
        return msgspec.convert(plain | fields, PolicySpecification)
    except msgspec.ValidationError as error:
        raise error.__cause__ or error from None


OFFERS = {"type": "discounted", "offers": {"amount": [500, 5000], "cost": [0.8, 0.75], "currency": "$"}}
WITH_OFFERS = OFFERS | {"discount": 0.9}
LATE = {"type": "delayed", "cost": 0.8, "arrivals": 50, "discount_rate": 0.1, "label_delay": 1}


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"objective": LATE | {"horizon": 9}}, "horizon", "conflicting_fields"),
        ({"segments": [{"name": "a", "offers": OFFERS["offers"]}]}, "segments", "conflicting_fields"),
        ({"constraints": {"exposure_cap_amount": 100}}, "exposure_cap_amount", "conflicting_fields"),
        ({"segments": [{"name": "a", "exposure_cap_amount": 9}]}, "exposure_cap_amount", "conflicting_fields"),
        ({"objective": WITH_OFFERS, "segments": [{"name": "a", "cost": 0.5}]}, "segments", "conflicting_fields"),
        (
            {
                "objective": WITH_OFFERS,
                "segments": [{"name": "a", "offers": {"amount": [1], "cost": [0.5], "currency": "EUR"}}],
            },
            "segments",
            "conflicting_fields",
        ),
        (
            {"objective": {"type": "discounted", "discount": 0.9, "offers": {"amount": [1e-10], "cost": [0.5]}}},
            "objective.offers.amount",
            "invalid_value",
        ),
        (
            {"objective": {"type": "discounted", "discount": 0.9, "offers": {"amount": [1.1e12], "cost": [0.5]}}},
            "objective.offers.amount",
            "invalid_value",
        ),
        (
            {
                "objective": {
                    "type": "discounted",
                    "discount": 0.9,
                    "offers": {"amount": [1], "cost": [0.5], "currency": "123456789"},
                }
            },
            "objective.offers.currency",
            "invalid_value",
        ),
        (
            {
                "objective": {
                    "type": "discounted",
                    "discount": 0.9,
                    "offers": {"amount": [1], "cost": [0.5], "currency": "\n"},
                }
            },
            "objective.offers.currency",
            "invalid_value",
        ),
        (
            {
                "objective": {
                    "type": "discounted",
                    "discount": 0.9,
                    "offers": {"amount": [1] * 1001, "cost": [0.5] * 1001},
                }
            },
            "objective.offers",
            "too_large",
        ),
        ({"history_model": "shared"}, "history_model", "missing"),
        ({"scores": {"all": 1.0}}, "scores", "conflicting_fields"),
        (
            {"history_model": "curve", "history": {"all": {"successes": 1, "failures": 1}}},
            "scores",
            "conflicting_fields",
        ),
    ],
)
def test_specifications_that_contradict_themselves(fields: dict[str, Any], field: str, code: str) -> None:
    with rejected(field, code):
        posted(**fields)


def test_specifications_at_their_limits() -> None:
    largest = {"amount": [1e12] + [1e-9] * 999, "cost": [0.5] * 1000, "currency": "12345678"}
    own = {"name": "a", "offers": {"amount": [1], "cost": [0.5]}}
    spec = posted(objective={"type": "discounted", "discount": 0.9, "offers": largest}, segments=[own, "b"])
    a, b = spec.problems()
    assert a.problem.offers == Offers([1], [0.5], currency="12345678")
    assert b.problem.offers is not None
    assert len(b.problem.offers.amount) == 1000
    for doubt in (0, 0.999):
        assert posted(doubt=doubt).doubt == doubt
    for wrong in (-0.1, 1):
        with pytest.raises(msgspec.ValidationError):
            posted(doubt=wrong)


def test_doubts_histories_and_caps_of_segments() -> None:
    spec = posted(
        objective=WITH_OFFERS,
        prior={"n": 4, "s": 2.8},
        segments=[
            "plain",
            {"name": "sure", "doubt": 0},
            {"name": "past", "doubt": 0.5, "exposure_cap": 3, "exposure_cap_amount": 70},
        ],
        doubt=0.2,
        history={"past": {"successes": 60, "failures": 20}, "sure": {"successes": 3, "failures": 1}},
        history_cap=40,
        constraints={"exposure_cap": 9, "exposure_cap_amount": 900, "exploration_floor": 0.1},
    )
    plain, sure, past = spec.problems()
    assert plain.prior == MixtureBelief.doubt(Belief(4, 2.8), 0.2)
    assert sure.prior == Belief(8, 5.8)  # four outcomes are fewer than the cap
    assert past.prior == MixtureBelief.doubt(Belief(4, 2.8), 0.5).after(40, 30)  # half of 80 outcomes
    assert (plain.exposure_cap, plain.exposure_cap_amount) == (9, 900)
    assert (past.exposure_cap, past.exposure_cap_amount) == (3, 70)
    assert {one.exploration_floor for one in (plain, sure, past)} == {0.1}
    assert (plain.belief.n, plain.belief.s) == pytest.approx((plain.prior.n, plain.prior.s))
    assert sure.belief is sure.prior
    bare = posted(segments=["a"]).problems()[0]
    assert (bare.exposure_cap, bare.exposure_cap_amount, bare.exploration_floor) == (None, None, 0.0)
    assert bare.prior == Belief(2, 1)


def test_history_counts_up_to_its_cap() -> None:
    spec = posted(segments=["a"], history={"a": {"successes": 30, "failures": 10}})
    assert spec.problems()[0].prior == Belief(22, 16)  # 20 of the 40 outcomes
    empty = posted(segments=["a"], history={"a": {"successes": 0, "failures": 0}})
    assert empty.problems()[0].prior == Belief(2, 1)


def test_shares_of_segments() -> None:
    def shares(*segments: object) -> list[float]:
        return [one.share for one in posted(segments=list(segments)).problems()]

    assert shares({"name": "a", "share": 0.4}, "b", "c") == pytest.approx([0.4, 0.3, 0.3])
    assert shares({"name": "a", "share": 0.4}, {"name": "b", "share": 0.6}) == [0.4, 0.6]
    assert shares({"name": "a", "share": 0.4}, {"name": "b", "share": 0.6 + 5e-10}) == [0.4, 0.6 + 5e-10]
    assert shares() == [1.0]
    for wrong in (
        [{"name": "a", "share": 0.4}, {"name": "b", "share": 0.61}],
        [{"name": "a", "share": 1.0}, "b"],
    ):
        with rejected("segments"):
            shares(*wrong)
    with rejected("segments", "duplicate"):
        shares("a", "a")


@pytest.mark.parametrize(
    ("objective", "days", "expected"),
    [
        (LATE, None, 3 * 365.25),
        (LATE, 12.0, 12.0),
        ({"type": "discounted", "cost": 0.8, "discount": 0.9}, None, None),
        ({"type": "discounted", "cost": 0.8, "discount": 0.9}, 12.0, 12.0),
    ],
)
def test_days_until_an_outcome_expires(objective: dict[str, Any], days: float | None, expected: float | None) -> None:
    assert posted(objective=objective, expire_after_days=days).expiry_days == expected


def test_the_solver_says_how_long_it_takes() -> None:
    segment = SegmentProblem("x", 1.0, Discounted(offers=TWO, discount=0.95), Belief(2, 1), None, 0.0)
    effort = Effort(offer_rows=ROWS)
    assert solve_seconds(segment, effort) == offer_seconds(Belief(2, 1), TWO, 0.95, ROWS, 1e-6)
    doubtful = SegmentProblem("x", 1.0, Discounted(0.8, 0.95), DOUBTFUL, None, 0.0)
    assert solve_seconds(doubtful, effort) == offer_seconds(DOUBTFUL, Offers([1.0], [0.8]), 0.95, ROWS, 1e-6)


def test_rules_are_equal_whatever_they_decided_last() -> None:
    one, other = rule(), rule()
    one.decide(Counts(successes=3), 0.0, [SMALL])
    assert one == other
    assert "_last" not in repr(one)
    assert one != rule(cap=3)


@pytest.mark.parametrize(
    ("rate", "worth", "price", "in_money", "largest"),
    [
        (0.9, 0.0, None, False, math.inf),  # above the break-even
        (0.9, 5.0, None, False, math.inf),
        (0.75, 5.0, None, False, math.inf),  # at the break-even a label decides
        (0.75, 0.0, None, False, 0.0),
        (0.5, 5.0, None, False, 20.0),
        (0.5, 5.0, 2.0, False, 12.0),  # the price of an acceptance is taken off the label
        (0.5, 1.0, 2.0, False, 0.0),
        (0.5, 5.0, 1.0, True, 5.0),  # the price of a unit of money raises the gap by price times cost
        (0.9, 0.0, 0.1, True, math.inf),
    ],
)
def test_the_largest_amount_at_a_break_even(
    rate: float, worth: float, price: float | None, in_money: bool, largest: float
) -> None:
    capacity = None if price is None else SimpleNamespace(capacity=SimpleNamespace(loss=100.0 if in_money else None))
    rule: Any = SimpleNamespace(
        capacity=capacity,
        price=price or 0.0,
        basis=lambda counts: SimpleNamespace(rate=rate),
        label=lambda counts: SimpleNamespace(worth=worth),
    )
    assert SegmentRule.largest_amount(rule, 0.75, Counts()) == pytest.approx(largest)


def test_the_best_offer_counts_the_price_of_its_capacity() -> None:
    small, large = Offer(100, 0.5), Offer(1000, 0.5)
    rule: Any = SimpleNamespace(charge=lambda offer: 0.3 * offer.loss if offer is large else 0.0)
    rule.net_profit = lambda offer, rate: SegmentRule.net_profit(rule, offer, rate)
    assert rule.net_profit(large, 0.65) == pytest.approx(150.0 - 150.0)
    assert SegmentRule.best_offer(rule, (large, small), 0.64) is small  # it earns 14, the other one loses 10
    assert SegmentRule.best_offer(rule, (small, large), 0.8) is large
