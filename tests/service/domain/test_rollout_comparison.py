"""The comparison of a version in rollout: its mean, its interval at any time, and its verdict."""

from __future__ import annotations

import math
import random

import pytest

from lenience.core.confidence_sequence import observations_until, radius
from lenience.core.money import Money
from lenience.service.domain.rollout_comparison import (
    Estimated,
    RolloutApplicant,
    RolloutComparison,
    compare_rollout_applicants,
)

DOLLARS = Money(1.0, "$")


def applicant(
    rolled_out: bool, accepted: bool, profit: float | None, *, share: float = 0.5, differs: bool = True, n: float = 20
) -> RolloutApplicant:
    estimates = Estimated(0.6, n), Estimated(0.8, n)
    return RolloutApplicant("all", share, rolled_out, differs, accepted, profit, 100.0, 0.7, *estimates)


def compare(applicants: list[RolloutApplicant]) -> RolloutComparison:
    return compare_rollout_applicants(applicants, (1, 2), 50.0, "2026-01-01", DOLLARS)


def test_a_slow_computation_of_the_difference() -> None:
    """Draw who is assigned over and over: the average estimate is the true difference, at any shares."""
    rng = random.Random(3)
    people = [(rng.random() < 0.5, rng.random() < 0.5, rng.choice((30.0, -70.0)), rng.choice((0.1, 0.5)))
              for _ in range(40)]  # fmt: skip
    true = sum((second - first) * profit for first, second, profit, _ in people) / len(people)
    estimates = []
    for _ in range(1000):
        drawn = []
        for first, second, profit, share in people:
            rolled_out = rng.random() < share
            accepted = second if rolled_out else first
            drawn.append(applicant(rolled_out, accepted, profit if accepted else None, share=share,
                                   differs=first != second))  # fmt: skip
        result = compare(drawn)
        assert result.difference == pytest.approx(result.arms[1].per_applicant - result.arms[0].per_applicant)
        estimates.append(result.difference)
    mean = sum(estimates) / len(estimates)
    error = math.sqrt(sum((one - mean) ** 2 for one in estimates)) / len(estimates)
    assert abs(mean - true) < 4 * error


def test_the_interval_holds_at_all_times_at_once() -> None:
    """Look after every tenth applicant: hardly any sequence is ever wrong, while an ordinary interval often is."""
    rng = random.Random(5)
    missed = ordinary = 0
    for _ in range(300):
        total = squares = 0.0
        ever = ever_ordinary = False
        for t in range(1, 2001):
            value = rng.choice((1.0, -1.0))
            total, squares = total + value, squares + value * value
            if t >= 30 and t % 10 == 0:
                deviation = math.sqrt(squares / t - (total / t) ** 2)
                ever = ever or abs(total / t) > radius(t, deviation)
                ever_ordinary = ever_ordinary or abs(total / t) > 1.6449 * deviation / math.sqrt(t)
        missed, ordinary = missed + ever, ordinary + ever_ordinary
    assert missed / 300 <= 0.1
    assert ordinary / 300 > 0.4


def test_the_verdicts() -> None:
    many = [applicant(i % 2 > 0, i % 2 > 0, (30.0 if i % 11 else -70.0) if i % 2 else None) for i in range(4000)]
    better = compare(many)
    assert (better.verdict, better.differently, better.outcomes) == ("better", 4000, 2000)
    assert better.interval is not None
    assert better.interval.lower > 0
    worse = compare([one._replace(profit=None if one.profit is None else -one.profit) for one in many])
    assert worse.verdict == "worse"
    few = compare(many[:60])
    assert (few.verdict, few.interval is not None) == ("too_early", True)
    assert few.needed is not None
    assert f"{few.needed}"[0] in few.sentence
    assert compare(many[:20]).interval is None
    assert compare([one._replace(differs=False) for one in many]).verdict == "same"
    nothing = compare([applicant(i % 2 > 0, False, None) for i in range(100)])
    assert (nothing.verdict, nothing.difference) == ("too_early", 0.0)


def test_pending_outcomes_widen_the_interval_and_favour_neither_version() -> None:
    known = [applicant(i % 2 > 0, i % 2 > 0, (30.0 if i % 11 else -70.0) if i % 2 else None) for i in range(4000)]
    pending = [one._replace(profit=None) if i >= 2000 else one for i, one in enumerate(known)]
    first, second = compare(known), compare(pending)
    assert first.interval is not None
    assert second.interval is not None
    assert second.interval.upper - second.interval.lower > first.interval.upper - first.interval.lower
    assert second.pending == 1000
    # By the active version's estimates the pending lose $10 each, by those of the other they earn $10 each.
    kept = sum(one.profit or 0.0 for one in pending) * 2 / 4000
    assert second.difference == pytest.approx(kept)
    assert second.interval.lower < kept - 5 < kept + 5 < second.interval.upper
    surer = compare([one._replace(active=Estimated(0.6, 1e6), rollout=Estimated(0.8, 1e6)) for one in pending])
    assert surer.interval is not None
    assert surer.interval.upper < second.interval.upper


def test_applicants_of_a_full_rollout_say_nothing_about_the_difference() -> None:
    assert compare([applicant(True, True, 30.0, share=1.0) for _ in range(50)]).applicants == 0


def test_how_many_applicants_decide() -> None:
    enough = observations_until(2.0, 50.0)
    assert enough is not None
    assert radius(enough, 50.0) < 2.0 <= radius(enough - 1, 50.0)
    assert observations_until(0.0, 1.0) is None


def test_the_interval_against_plain_sums() -> None:
    """The formulas of the module, written out once more with plain loops."""
    rng = random.Random(11)
    people = []
    for i in range(80):
        rolled_out, accepted, pending = rng.random() < 0.4, rng.random() < 0.7, rng.random() < 0.4
        profit = rng.choice((30.0, -70.0)) if accepted and not pending else None
        one = applicant(rolled_out, accepted, profit, share=rng.choice((0.2, 0.6)), differs=i % 3 > 0, n=5.0 + i)
        people.append(one._replace(segment=rng.choice("abc"), amount=50.0 + i, cost=0.6 + 0.001 * i))
    ends, means, deviations = [], [], []
    for active in (True, False):
        values, hidden, errors = [], 0.0, {"a": 0.0, "b": 0.0, "c": 0.0}
        for one in people:
            rate, n = one.active if active else one.rollout
            weight = (1 / one.share if one.rolled_out else -1 / (1 - one.share)) if one.differs else 0.0
            expected = one.amount * (rate - one.cost) if one.profit is None else one.profit
            values.append(weight * expected if one.accepted else 0.0)
            if one.accepted and one.profit is None:
                stake = weight * one.amount
                hidden += stake * stake * rate * (1 - rate)
                errors[one.segment] += stake * math.sqrt(rate * (1 - rate) / (n + 1))
        mean = sum(values) / 80
        deviation = math.sqrt((sum((value - mean) ** 2 for value in values) + hidden) / 79)
        error = math.sqrt(sum(each * each for each in errors.values())) / 80
        half = radius(80, deviation, 0.1) + 1.6449 * error
        means.append(mean)
        deviations.append(deviation)
        ends += [mean - half, mean + half]
    result = compare(people)
    assert result.interval is not None
    assert (result.interval.lower, result.interval.upper) == pytest.approx((min(ends), max(ends)))
    assert result.difference == pytest.approx(sum(means) / 2)
    total = observations_until(sum(means) / 2, max(deviations), 0.1)
    assert total is not None
    assert (result.verdict, result.needed) == ("too_early", total - 80)
    for arm, rolled_out in zip(result.arms, (False, True), strict=True):
        own = [one for one in people if one.rolled_out == rolled_out]
        earned = [one.profit for one in own if one.profit is not None]
        middles = {True: 0.0, False: 0.0}
        for one in people:
            weight = 1 / one.share if one.rolled_out else 1 / (1 - one.share)
            value = one.amount * (0.7 - one.cost) if one.profit is None else one.profit
            if one.accepted and (not one.differs or one.rolled_out == rolled_out):
                middles[one.differs] += (weight if one.differs else 1.0) * value
        assert arm.per_applicant == pytest.approx(sum(middles.values()) / 80)
        number = sum(one.accepted for one in own)
        assert (arm.applicants, arm.accepted, arm.outcomes) == (len(own), number, len(earned))
        assert arm.pending == number - len(earned)
        assert arm.profit == pytest.approx(sum(earned))


def test_where_the_comparison_begins() -> None:
    rejected = [applicant(i % 2 > 0, False, None) for i in range(60)]
    sure = [applicant(True, True, 30.0 + i % 2) for i in range(10)]
    assert compare(rejected[:29]).interval is None
    assert compare(rejected[:30]).interval is not None
    assert "29 applicants of 30" in compare(rejected[:29]).sentence
    many = [applicant(i % 2 > 0, i % 2 > 0, 30.0 if i % 2 else None) for i in range(4000)]
    known = [one if i < 20 else one._replace(profit=None) for i, one in enumerate(many)]
    likely = [one._replace(active=Estimated(0.99, 1e9), rollout=Estimated(0.99, 1e9)) for one in known]
    assert (compare(likely).outcomes, compare(likely).verdict) == (10, "better")
    fewer = compare([likely[0], likely[1]._replace(profit=None), *likely[2:]])
    assert (fewer.outcomes, fewer.verdict) == (9, "too_early")
    assert "9 outcomes are known" in fewer.sentence
    assert compare([*rejected, *sure]).verdict == "too_early"
    assert compare([]).difference == 0.0
    assert compare([]).arms[0].per_applicant == 0.0


def test_what_the_sentence_says_about_how_long_it_takes() -> None:
    few = [applicant(i % 2 > 0, i % 2 > 0, (30.0 if i % 4 > 1 else -28.0) if i % 2 else None) for i in range(60)]
    result = compare(few)
    assert result.needed is not None
    assert result.needed > 1000
    digits = len(str(result.needed)) - 2
    shown = -(-result.needed // 10**digits) * 10**digits  # rounded up to two digits
    assert f"About {shown:,} more applicants" in result.sentence
    even = [applicant(i % 2 > 0, i % 2 > 0, (30.0 if i % 4 > 1 else -30.0) if i % 2 else None) for i in range(60)]
    never = compare(even)
    assert (never.difference, never.needed) == (0.0, None)
    assert "too small" in never.sentence
    waiting = compare([*even, applicant(True, True, None), applicant(True, True, None)])
    assert waiting.difference == pytest.approx(0.0)
    assert waiting.needed is None
    assert "2 outcomes are still pending" in waiting.sentence
    assert ("more per" in result.sentence) == (result.difference >= 0)


def test_the_boundary_is_that_of_the_paper() -> None:
    for error, at in ((0.1, 2000.0), (0.05, 300.0)):
        rho = math.sqrt((-2 * math.log(error) + math.log(1 - 2 * math.log(error))) / at)
        for t in (1, 40, 5000):
            inner = 2 * (t * rho**2 + 1) / (t**2 * rho**2) * math.log(math.sqrt(t * rho**2 + 1) / error)
            assert radius(t, 3.0, error, at) == pytest.approx(3.0 * math.sqrt(inner))
    assert radius(500, 2.0) == radius(500, 2.0, 0.1, 2000)
    assert radius(0, 1.0) == radius(-1, 1.0) == math.inf
    assert observations_until(radius(1, 1.0) + 1e-9, 1.0) == 1
    assert observations_until(radius(2, 1.0), 1.0) == 3
    assert observations_until(radius(400_000_000, 1.0), 1.0) == 400_000_001
    assert observations_until(-2.0, 50.0) == observations_until(2.0, 50.0)
    assert observations_until(radius(1_200_000_000, 1.0), 1.0) is None
