"""Expected against observed outcomes: the variance and the ranges, against simulation and slow sums."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import betabinom

from lenience.models import TimingCurves
from lenience.service.domain.expected_outcomes import (
    KnownOutcome,
    _variance,
    compare_outcomes,
    known_by_age,
    likely_successes,
    worst,
)


def learner(rng: np.random.Generator, n: float, s: float, delay: int, size: int) -> list[KnownOutcome]:
    """A segment whose rate is drawn from the belief, and which learns each outcome after ``delay`` more decisions."""
    rate, outcomes, known = rng.beta(s, n - s), list[bool](), list[KnownOutcome]()
    for i in range(size):
        seen = outcomes[: max(i - delay, 0)]
        belief_n, belief_s = n + len(seen), s + sum(seen)
        outcomes.append(bool(rng.random() < rate))
        known.append(KnownOutcome("a", "a", belief_s / belief_n, belief_n, i - len(seen), outcomes[-1]))
    return known


@pytest.mark.parametrize("delay", [0, 7, 40])
def test_the_variance_is_that_of_a_version_that_is_right(delay: int) -> None:
    rng = np.random.default_rng(delay)
    errors, variances = [], []
    for _ in range(2_500):
        known = learner(rng, 6.0, 4.0, delay, 30)
        errors.append(sum(one.success - one.mean for one in known))
        variances.append(_variance(known))
    assert np.mean(errors) == pytest.approx(0.0, abs=0.35)
    assert np.mean(variances) == pytest.approx(np.var(errors), rel=0.1)


def test_a_version_that_is_right_is_hardly_ever_called_wrong() -> None:
    rng = np.random.default_rng(5)
    states = [compare_outcomes(learner(rng, 4.0, 3.0, 25, 60))[0].state for _ in range(600)]
    assert states.count("act") <= 4  # 0.6 are expected
    assert states.count("watch") <= 50  # 30 are expected


def test_ranges_are_those_of_the_distribution() -> None:
    for size, mean, level in ((12, 0.7, 0.1), (40, 0.95, 0.01), (200, 0.5, 0.001)):
        weights = [comb(size, k) * mean**k * (1 - mean) ** (size - k) for k in range(size + 1)]
        low, high = likely_successes(size, mean, 1.0, level)
        assert sum(weights[:low]) < level / 2 <= sum(weights[: low + 1])
        assert sum(weights[high + 1 :]) <= level / 2 < sum(weights[high:])
        factor = 3.0
        weight = (size - 1) / (factor - 1.0) - 1.0
        law = betabinom(size, mean * weight, (1 - mean) * weight)
        assert law.var() == pytest.approx(factor * size * mean * (1 - mean))
        assert likely_successes(size, mean, factor, level) == (law.ppf(level / 2), law.ppf(1 - level / 2))
    assert likely_successes(10, 1.0, 1.0, 0.05) == (10, 10)


def outcomes(good: int, bad: int, mean: float, group: str = "a") -> list[KnownOutcome]:
    return [KnownOutcome(group, group, mean, 1e6, 0, i < good) for i in range(good + bad)]


def test_unknown_outcomes_make_a_difference_uncertain_unless_they_cannot_change_it() -> None:
    (few,) = compare_outcomes(outcomes(60, 40, 0.9), {"a": 10})
    (many,) = compare_outcomes(outcomes(60, 40, 0.9), {"a": 400})
    (timed,) = compare_outcomes(outcomes(60, 40, 0.9), {"a": 400}, timed=True)
    assert (few.state, many.state, timed.state) == ("act", "watch", "act")
    assert few.possible is not None
    assert (few.possible.lower, few.possible.upper) == pytest.approx((60 / 110, 70 / 110))
    (better,) = compare_outcomes(outcomes(100, 0, 0.7), {"a": 3})
    assert better.state == "act"  # more successes than expected are a difference too


def test_ranges_widen_with_the_number_of_groups() -> None:
    alone = compare_outcomes(outcomes(20, 10, 0.8))[0]
    among = compare_outcomes([one for i in range(50) for one in outcomes(20, 10, 0.8, f"group {i:02}")])[0]
    assert alone.range is not None
    assert among.range is not None
    assert among.range.lower < alone.range.lower <= alone.range.upper < among.range.upper


def test_groups_without_an_outcome_are_named() -> None:
    found = compare_outcomes(outcomes(9, 1, 0.9), {"b": 4, "c": 0})
    assert [(one.name, one.outcomes, one.unknown, one.state) for one in found] == [
        ("a", 10, 0, "ok"),
        ("b", 0, 4, "no_data"),
    ]
    assert worst(one.state for one in found) == "ok"


def test_loans_that_are_known_early_fail_more_often() -> None:
    curves = TimingCurves((0, 100, 300), (1, 0.9, 0), (1, 0.3, 0))
    rng = np.random.default_rng(2)
    success = rng.random(200_000) < 0.85
    arrives = rng.random(200_000)
    known = np.where(success, arrives < 0.1, arrives < 0.7)
    assert known_by_age(0.85, curves, 150) == pytest.approx(success[known].mean(), abs=0.01)
    assert known_by_age(0.85, curves, 50) == 0.85  # nothing is known by then
