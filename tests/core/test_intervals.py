"""Intervals of a success rate against their definition."""

from __future__ import annotations

import math

import pytest

from lenience.core.intervals import wilson_interval


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 10), (3, 10), (8, 10), (56, 70), (400, 4000)])
def test_against_the_closed_form(successes: int, trials: int, confidence: float) -> None:
    from statistics import NormalDist

    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate, weight = successes / trials, z * z / trials
    middle = (rate + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(rate * (1 - rate) / trials + weight / (4 * trials))
    interval = wilson_interval(successes, trials, confidence)
    assert interval.lower == pytest.approx(max(middle - half, 0.0), abs=1e-9)
    assert interval.upper == pytest.approx(min(middle + half, 1.0), abs=1e-9)
    assert interval.lower <= rate <= interval.upper


def test_the_ends_are_exact_without_a_success_or_a_failure() -> None:
    assert wilson_interval(0, 25).lower == 0.0
    assert wilson_interval(25, 25).upper == 1.0
    empty = wilson_interval(0, 0)
    assert (empty.lower, empty.upper) == (0.0, 1.0)
