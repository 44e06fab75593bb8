"""What a review is worth, its price within a capacity, and who was right."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import pytest

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.core.offers import Offer
from lenience.objectives.discounted import Discounted
from lenience.service.domain.clock import DAY
from lenience.service.domain.pooled_models import Borrowed
from lenience.service.domain.referral import (
    SETTLED,
    Referral,
    price_of_day,
    price_of_review,
    review_worth,
    window_of,
)
from lenience.service.domain.referral_decision import estimate, refer
from lenience.service.domain.review_report import ReviewedCase, report_reviews
from lenience.service.domain.rule import ABOVE, BELOW, CAP, FLOOR, Counts, SegmentRule, Verdict
from lenience.service.domain.solved_tables import load, solve
from lenience.service.domain.specification import SegmentProblem

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


def test_the_estimate_of_a_segment_rests_on_all_outcomes_that_count() -> None:
    problem = SegmentProblem("young", 1.0, Discounted(0.8, 0.9), Belief(2, 1), None, 0.0)
    rule = SegmentRule("young", 1.0, load(solve(problem)), "", None, 0.0)
    counts = Counts(successes=5, failures=3, open=2, open_outcomes=0.5, open_successes=0.25)
    rate, evidence = estimate(rule, counts, None)
    assert (rate, evidence) == pytest.approx((6.25 / 10.5, 8.5))
    borrowed = Counts(successes=5, failures=3, borrowed=Borrowed(4.0, 1.0))
    rate, evidence = estimate(rule, borrowed, None)
    assert (rate, evidence) == pytest.approx((7 / 14, 12.0))
    forgetful = Counts(successes=5, failures=3, forgotten_outcomes=2.0, forgotten_successes=1.5)
    rate, evidence = estimate(rule, forgetful, None)
    assert (rate, evidence) == pytest.approx((4.5 / 8, 6.0))


def test_an_interval_needs_two_outcomes() -> None:
    case = ReviewedCase("reject", "accept", False, 100.0, -20.0)
    one, two = (report_reviews("loans", [case] * number, Money()).people_accept for number in (1, 2))
    assert one.interval is None
    assert two.interval is not None
    assert (two.interval.lower, two.interval.upper, two.profit, two.expected) == (200.0, 200.0, 200.0, -40.0)
    apart = report_reviews("loans", [case, case._replace(profit=-60.0)], Money(1.0, "$"))
    assert apart.people_accept.interval is not None
    assert apart.people_accept.interval.lower == pytest.approx(40 - 1.6449 * math.sqrt(2 * 80**2 * 2))
    assert apart.people_accept.successes == 1
    assert report_reviews("loans", [case._replace(profit=0.0)], Money()).people_accept.successes == 0


def test_the_share_of_disagreement_by_the_score_test() -> None:
    """Wilson's interval holds the rates that a test of the observed share does not reject."""
    agreed, against = (ReviewedCase(would, "accept", False, None, 0.0) for would in ("accept", "reject"))
    for number, size in ((0, 5), (3, 10), (40, 40), (50, 200)):
        cases = [against] * number + [agreed] * (size - number)
        report = report_reviews("loans", cases, Money())
        assert (report.disagreed, report.disagreement) == (number, number / size)
        interval = report.disagreement_interval
        assert interval is not None
        for end in (interval.lower, interval.upper):
            distance = abs(number / size - end)
            assert distance in (0.0, pytest.approx(1.6449 * math.sqrt(end * (1 - end) / size)))
        assert (interval.lower > 0.0, interval.upper < 1.0) == (number > 0, number < size)


def test_the_words_of_a_report() -> None:
    saved, failed = (ReviewedCase("reject", "accept", False, profit, -20.0) for profit in (100.0, -400.0))
    early = report_reviews("loans", [saved] * 9, Money(1.0, "$"))
    assert (early.verdict, "earned $900" in early.sentence) == ("too_early", True)
    ten = report_reviews("loans", [saved] * 10, Money(1.0, "$"))
    assert (ten.verdict, ten.currency) == ("people", "$")
    lost = report_reviews("loans", [failed] * 10, Money())
    assert (lost.verdict, lost.currency, "lost 4,000" in lost.sentence) == ("policy", None, True)
    rejected = [ReviewedCase("reject", "reject", False, None, -3.0)] * 2
    both = report_reviews("loans", rejected, Money(1.0, "$"))
    assert both.unknown == "The same holds for the 2 cases that both rejected."
    assert "known outcome yet" in both.sentence
    nobody = report_reviews("loans", [], Money())
    assert (nobody.sentence, nobody.unknown) == ("No referred case has been decided yet.", "")


def test_what_a_window_and_a_price_hold() -> None:
    at = 30 * DAY + 5
    until = 30 * DAY - DAY // 24
    assert window_of(at) == (until - 7 * DAY, until)
    first, last = ("a", until - 7 * DAY, 3.0), ("b", until - 1, 2.0)
    assert price_of_day([first, last], at, 1) == 0.0  # room for 7
    many = [(f"{i:05}", until - DAY - i % 7, float(i)) for i in range(6000)]
    # The 5,000 latest ids count: those from 1,000 on. In two days at least, there is room for 5,000.
    assert price_of_day(many, at, 2_500) == 3_500.0
    assert price_of_day(many[:1000], at, 1000) == 0.0
    assert price_of_review([2.0, 1.0], 1.0, 2) == 1.0
    assert price_of_review([2.0, 1.0], 1.5, 2) == 0.0


def test_the_rules_do_not_hold_at_their_limits() -> None:
    verdict = Verdict("accept", ABOVE, None, 1.0, 0.75, Offer(5000.0, 0.8))
    assert refer(Referral(near_minimum=0.25), verdict, 1.0, 9.0)[0] is None
    assert refer(Referral(near_minimum=0.25), verdict, 0.5, 9.0)[0] is None
    ground, _ = refer(Referral(near_minimum=0.251), verdict, 1.0, 9.0)
    assert ground is not None
    assert ground.worth == review_worth(5000.0, 1.0, 0.75, 0.75)
    assert refer(Referral(daily_capacity=1), verdict._replace(probability=0.5), 0.75, 9.0) == (None, None)
    without = verdict._replace(offer=None)
    ground, _ = refer(Referral(daily_capacity=1), without, 0.75, 9.0)
    assert ground is not None
    assert ground.worth == review_worth(1.0, 0.75, 0.75, 0.75)
