"""The population stability index: its law without and with drift, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from lenience.service.domain.population_stability import counts_by_range, range_edges, stability_index

SHARES = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("exact", [False, True])
def test_chance_alone_exceeds_the_noise_level_as_often_as_stated(exact: bool) -> None:
    rng = np.random.default_rng(1)
    above = 0
    for _ in range(1_500):
        old = SHARES if exact else rng.multinomial(800, SHARES)
        found = stability_index(old, rng.multinomial(500, SHARES), 0.05, exact=exact)
        above += found.index > found.noise
        assert found.change == "none"
    assert 0.03 < above / 1_500 < 0.07


@pytest.mark.parametrize("exact", [False, True])
def test_the_interval_holds_the_true_index(exact: bool) -> None:
    moved = np.array([0.3, 0.3, 0.2, 0.2])
    truth = float(((moved - SHARES) * np.log(moved / SHARES)).sum())
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(800):
        old = SHARES if exact else rng.multinomial(2_000, SHARES)
        found = stability_index(old, rng.multinomial(1_000, moved), exact=exact)
        inside += found.interval.lower <= truth <= found.interval.upper
    assert 0.92 < inside / 800 < 0.98


def test_a_change_must_be_sure_and_large() -> None:
    sure = stability_index([500_000, 500_000], [510_000, 490_000])
    assert sure.index > sure.noise
    assert sure.change == "none"  # too small to matter
    unsure = stability_index([10, 10], [4, 16])
    assert unsure.index > 0.25
    assert unsure.change == "none"  # by chance
    assert stability_index([100, 100], [100, 100]).interval.lower == 0.0


def test_the_index_of_exact_shares_is_a_slow_sum() -> None:
    new = [70, 20, 6, 4]
    total = 0.0
    for share, count in zip(SHARES, new, strict=True):
        now = (count + 0.5 * 4 * share) / (100 + 0.5 * 4)  # half a case for each part, divided as expected
        total += (now - share) * math.log(now / share)
    found = stability_index(SHARES, new, exact=True)
    assert found.index == pytest.approx(total)
    assert stability_index(1000 * SHARES, new, exact=True).index == pytest.approx(total)  # shares of any total
    assert found.noise == pytest.approx(chi2.isf(0.001, 3) / 100)


def test_rare_parts_are_counted_as_one() -> None:
    together = stability_index([0.9, 0.09, 0.01], [50, 44, 6], exact=True)
    assert together == stability_index([0.9, 0.09, 0.006, 0.004], [50, 44, 3, 3], exact=True)
    apart = stability_index([0.9, 0.08, 0.02], [50, 44, 6], exact=True)  # 2 are expected, so 8 together
    assert apart.noise == pytest.approx(chi2.isf(0.001, 2) / 100)
    small = stability_index([60, 38, 1, 1], [6, 3, 1, 0], exact=True)  # 0.1 is expected in each of the last parts
    assert small.noise == pytest.approx(chi2.isf(0.001, 2) / 10)
    assert stability_index([1.0, 0.0], [30, 0], exact=True).change == "none"


def test_ranges_hold_about_equal_shares_and_all_numbers() -> None:
    rng = np.random.default_rng(3)
    before = rng.lognormal(size=400).tolist()
    edges = range_edges(before, 400)
    counts = counts_by_range(edges, before)
    assert sum(counts) == 400
    assert max(counts) - min(counts) <= 2
    assert range_edges([5.0] * 100, 100) == []


def test_a_change_counts_from_the_usual_limits_on() -> None:
    even = [0.5, 0.5]
    changes = {}
    for size in (640_000, 670_000, 660_000, 740_000, 750_000):
        found = stability_index(even, [size, 1_000_000 - size], exact=True)
        changes[round(found.index, 2)] = found.change
        wider = stability_index([1_000_000, 1_000_000], [size, 1_000_000 - size])
        assert wider.index == pytest.approx(found.index, abs=1e-4)
        assert wider.change == found.change
    assert changes == {0.08: "none", 0.12: "some", 0.11: "some", 0.25: "much", 0.27: "much"}
    assert stability_index(even, [738_000, 262_000], exact=True).change == "some"


def test_nothing_to_compare_is_no_change() -> None:
    for found in (
        stability_index([1.0], [30], exact=True),
        stability_index([0.5, 0.5], [0, 0], exact=True),
        stability_index([40], [30]),
    ):
        assert (found.index, found.noise, found.interval.lower, found.interval.upper) == (0.0, 0.0, 0.0, 0.0)
        assert found.change == "none"


def test_the_index_of_two_samples_is_a_slow_sum() -> None:
    old, new = [50, 30, 3, 20], [40, 35, 2, 23]  # five cases of the third part are not rare
    total = 0.0
    for before, now in zip(old, new, strict=True):
        first, second = (before + 0.5) / (103 + 2), (now + 0.5) / (100 + 2)
        total += (second - first) * math.log(second / first)
    found = stability_index(old, new, 0.01)
    assert found.index == pytest.approx(total)
    assert found.noise == pytest.approx(chi2.isf(0.01, 3) * (1 / 103 + 1 / 100))
    rarer = stability_index([50, 30, 2, 2, 19], [40, 35, 2, 2, 21], 0.01)  # four of each: counted as one
    assert rarer.noise == pytest.approx(chi2.isf(0.01, 3) * (1 / 103 + 1 / 100))
    assert stability_index(old, new).noise == pytest.approx(chi2.isf(0.001, 3) * (1 / 103 + 1 / 100))


def test_how_many_ranges_there_are() -> None:
    numbers = [float(i) for i in range(1000)]
    assert [len(range_edges(numbers, latest)) + 1 for latest in (1000, 200, 199, 60, 59, 1)] == [10, 10, 9, 3, 2, 2]
    assert [len(range_edges(numbers[:size], 1000)) + 1 for size in (1000, 200, 199, 60, 59)] == [10, 10, 9, 3, 2]
    assert range_edges([0.0] * 90 + numbers[1:11], 100) == []  # the first edge would hold all numbers
    assert counts_by_range([20.0], [1.0]) == [1, 0]
