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
