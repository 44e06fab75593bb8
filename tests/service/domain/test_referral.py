"""What a review is worth, its price within a capacity, and who was right."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import pytest

from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.core.offers import Offer
from lenience.service.domain.clock import DAY
from lenience.service.domain.referral import SETTLED, Referral, price_of_day, price_of_review, review_worth
from lenience.service.domain.referral_decision import refer
from lenience.service.domain.review_report import ReviewedCase, report_reviews
from lenience.service.domain.rule import ABOVE, BELOW, CAP, FLOOR, Verdict

RATES = (0.0, 0.2, 0.5, 0.7, 0.79, 0.8, 0.81, 0.95, 1.0)


def slow_worth(amount: float, rate: float, minimum: float, accuracy: float) -> float:
    """Enumerate outcome and call, and every way to answer a call. Compare the best with the best without a call."""

    def earned(answers: dict[bool, bool]) -> float:
        total = 0.0
        for good, right in product((True, False), repeat=2):
            probability = (rate if good else 1 - rate) * (accuracy if right else 1 - accuracy)
            call = good if right else not good
            total += probability * answers[call] * amount * ((1 - minimum) if good else -minimum)
        return total

    with_call = max(earned({True: up, False: down}) for up, down in product((True, False), repeat=2))
    without = max(earned({True: same, False: same}) for same in (True, False))
    return with_call - without


@pytest.mark.parametrize("accuracy", [0.55, 0.75, 1.0])
@pytest.mark.parametrize("minimum", [0.3, 0.8])
def test_the_worth_of_a_review_by_enumeration(accuracy: float, minimum: float) -> None:
    for rate, amount in product(RATES, (1.0, 700.0)):
        slow = slow_worth(amount, rate, minimum, accuracy)
        assert review_worth(amount, rate, minimum, accuracy) == pytest.approx(slow, abs=1e-9)


def test_a_review_is_worth_most_near_the_minimum() -> None:
    worths = [review_worth(1.0, rate, 0.8, 0.75) for rate in RATES]
    assert max(worths) == worths[RATES.index(0.8)]
    assert worths[0] == worths[-1] == 0.0
    assert review_worth(1.0, 0.8, 0.8, 0.9) > review_worth(1.0, 0.8, 0.8, 0.6)


def test_the_price_uses_the_capacity_up() -> None:
    rng = Random(1)
    worths = [rng.random() for _ in range(700)]
    price = price_of_review(worths, 7.0, 20)
    assert sum(worth >= price for worth in worths) == 140
    assert price_of_review(worths, 7.0, 101) == 0.0


def test_only_the_week_before_the_day_counts_for_the_price() -> None:
    at = 30 * DAY + 5
    until = 30 * DAY - SETTLED
    inside = [(f"{i:03}", until - 1 - i * DAY, float(i)) for i in range(7)]
    assert price_of_day(inside, at, 1) == price_of_review([worth for *_, worth in inside], 6.0, 1)
    outside = [("a", until, 99.0), ("b", until - 7 * DAY - 1, 99.0), ("c", at, 99.0)]
    assert price_of_day(inside + outside, at, 1) == price_of_day(inside, at, 1)
    assert price_of_day(outside, at, 1) == 0.0
    short = [("a", until - 10, 5.0), ("b", until - 9, 4.0), ("c", until - 8, 3.0)]
    assert price_of_day(short, at, 2) == 4.0  # a few hours count as a day


def test_the_rules() -> None:
    offer = Offer(5000.0, 0.8)
    accept = Verdict("accept", ABOVE, None, 1.0, 0.75, offer)
    reject = Verdict("reject", BELOW, None, 0.0, 0.75, offer)

    def by(referral: Referral, verdict: Verdict = accept, rate: float = 0.9, evidence: float = 50.0) -> str | None:
        ground, _ = refer(referral, verdict, rate, evidence)
        return None if ground is None else ground.by

    assert by(Referral(amount_above=4000)) == "amount_above"
    assert by(Referral(amount_above=5000)) is None
    assert by(Referral(amount_above=1), accept._replace(offer=None)) is None
    assert by(Referral(evidence_below=51)) == "evidence_below"
    assert by(Referral(evidence_below=50)) is None
    assert by(Referral(near_minimum=0.16)) == "near_minimum"
    assert by(Referral(near_minimum=0.14)) is None
    assert by(Referral(near_minimum=0.16), reject, rate=0.6) == "near_minimum"
    for other in (accept._replace(rule=FLOOR, probability=0.1), reject._replace(rule=CAP)):
        assert by(Referral(amount_above=1), other) is None
    assert by(Referral(amount_above=1), reject._replace(probability=0.1)) is None
    ground, review = refer(Referral(amount_above=1, daily_capacity=1), reject, 0.7, 0.0)
    assert ground is not None
    assert (ground.would, ground.rule, review) == ("reject", BELOW, None)
    with pytest.raises(InputError):
        Referral()


def test_the_capacity() -> None:
    referral, verdict = Referral(daily_capacity=2, accuracy=0.75), Verdict("reject", BELOW, None, 0.0, 0.8)
    worth = review_worth(1.0, 0.78, 0.8, 0.75)
    for price, used, expected in ((0.0, 0, True), (0.0, 2, False), (worth, 1, True), (worth * 1.01, 0, False)):
        ground, review = refer(referral, verdict, 0.78, 9.0, price, used)
        assert (ground is not None) == expected
        assert review is not None
        assert (review.worth, review.price, review.used) == (worth, price, used)
    assert refer(referral, verdict, 0.1, 9.0)[0] is None  # a review would change nothing


def test_who_was_right() -> None:
    case = ReviewedCase("reject", "accept", False, 100.0, -20.0)
    failed = case._replace(profit=-400.0)
    report = report_reviews("loans", [case] * 30 + [failed] * 2, Money(1.0, "$"))
    mean = (3000 - 800) / 32
    spread = math.sqrt(sum((x - mean) ** 2 for x in [100.0] * 30 + [-400.0] * 2) / 31)
    assert report.people_accept.interval is not None
    assert report.people_accept.interval.upper == pytest.approx(2200 + 1.6449 * spread * math.sqrt(32))
    assert (report.verdict, report.people_accept.successes) == ("people", 30)
    assert report_reviews("loans", [failed] * 9 + [case], Money()).verdict == "policy"
    assert report_reviews("loans", [failed] * 9, Money()).verdict == "too_early"
    assert report_reviews("loans", [failed, case, case, case, case] * 3, Money()).verdict == "unclear"


def test_what_cannot_be_known() -> None:
    cases = [
        ReviewedCase("accept", "reject", False, None, 30.0),
        ReviewedCase("accept", "accept", False, 5.0, 3.0),
        ReviewedCase("reject", "reject", False, None, -3.0),
        ReviewedCase("reject", None, False, None, -3.0),
        ReviewedCase("reject", None, True, None, -3.0),
    ]
    report = report_reviews("loans", cases, Money(1.0, "$"))
    assert (report.referred, report.decided, report.waiting, report.lapsed, report.disagreed) == (5, 3, 1, 1, 1)
    assert report.people_reject.expected == 30.0
    assert (report.people_reject.outcomes, report.both_accept.profit) == (0, 5.0)
    assert "$30" in report.unknown
    assert report.disagreement_interval is not None
    assert 0 < report.disagreement_interval.lower < 1 / 3 < report.disagreement_interval.upper < 1
    assert report_reviews("loans", [], Money()).disagreement is None
