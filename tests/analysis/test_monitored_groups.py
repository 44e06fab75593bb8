"""Measures by monitored attribute, against slow and obvious computations."""

from __future__ import annotations

import math
from itertools import product

import msgspec
import numpy as np
import pytest
from scipy import stats

from lenience.analysis.monitored_groups import (
    GroupCounts,
    _deserving,
    _mean,
    measure_groups,
    rows_to_cells,
    segment_rates,
    waiting_interval,
)
from lenience.analysis.proxies import decompose_difference, find_proxy
from lenience.core.errors import InputError

CELLS = {
    ("f", "low"): GroupCounts(9, 3, 2, 1),
    ("f", "high"): GroupCounts(4, 3, 3, 0),
    ("m", "low"): GroupCounts(5, 2, 1, 0),
    ("m", "high"): GroupCounts(8, 7, 5, 1),
    ("", "low"): GroupCounts(5, 2, 1, 1),
}


def test_unknown_attributes_are_bounded_by_every_way_to_assign_them() -> None:
    result = measure_groups(CELLS)
    f, m = (next(group for group in result.groups if group.name == name) for name in "fm")
    rates, differences = [], []
    for to_f, rejected_f in product(range(3), range(4)):  # of 2 accepted and 3 rejected; the others are men
        for to_m, rejected_m in product(range(3 - to_f), range(4 - rejected_f)):
            mine = (f.counts.accepted + to_f) / (f.counts.arrivals + to_f + rejected_f)
            theirs = (m.counts.accepted + to_m) / (m.counts.arrivals + to_m + rejected_m)
            rates.append(mine)
            differences.append(mine - theirs)
    assert (f.acceptance_bounds.lower, f.acceptance_bounds.upper) == pytest.approx((min(rates), max(rates)))
    [row] = result.comparisons
    bounds = row.difference_bounds
    assert (bounds.lower, bounds.upper) == pytest.approx((min(differences), max(differences)))
    assert result.unknown_share == pytest.approx(5 / 31)


def test_unknown_outcomes_are_bounded_by_every_way_they_could_be() -> None:
    f = next(group for group in measure_groups(CELLS).groups if group.name == "f")
    good, bad, accepted, arrivals = 5, 1, 6, 13
    assert (f.counts.successes, f.counts.failures, f.counts.accepted, f.counts.arrivals) == (
        *(good, bad, accepted, arrivals),
    )
    cells = {("f", "a"): GroupCounts(9, 5, 2, 1)}  # two are open and four rejected
    [group] = measure_groups(cells).groups
    shares = [(2 + x) / (2 + x + y) for x, y in product(range(3), range(5))]
    totals = [(2 + x + y) / 9 for x, y in product(range(3), range(5))]
    assert (group.deserving_bounds.lower, group.deserving_bounds.upper) == pytest.approx((min(shares), max(shares)))
    assert (group.success_bounds.lower, group.success_bounds.upper) == pytest.approx((min(totals), max(totals)))
    assert group.outcome_unknown == pytest.approx(6 / 9)


def test_the_deserving_are_estimated_from_their_segments() -> None:
    rates = {"low": (0.5, 0.01), "high": (0.9, 0.001)}
    f = next(group for group in measure_groups(CELLS, rates=rates).groups if group.name == "f")
    assert f.deserving_acceptance is not None
    value = f.deserving_acceptance.value
    assert value == pytest.approx((3 * 0.5 + 3 * 0.9) / (9 * 0.5 + 4 * 0.9))
    assert f.deserving_acceptance.interval.lower < value < f.deserving_acceptance.interval.upper
    assert f.expected_success == pytest.approx((3 * 0.5 + 3 * 0.9) / 6)
    assert f.calibration is not None
    assert f.calibration.value == pytest.approx(5 / 6 - 0.7)


def test_the_interval_of_the_wait_covers_as_often_as_it_says() -> None:
    chance = np.random.default_rng(3)
    for q in (0.05, 0.4, 0.9):
        firsts = chance.geometric(q, 4000)
        inside = np.mean([1 / q in waiting_interval(int(first)) for first in firsts])
        assert inside >= 0.94


def test_rows_are_counted_by_group_segment_and_half() -> None:
    chance = np.random.default_rng(5)
    sex = [("f", "m", None)[i] for i in chance.integers(3, size=200)]
    age = [("young", "", "old")[i] for i in chance.integers(3, size=200)]
    accepted = chance.random(200) < 0.6
    outcome = [(None, True, False)[i] for i in chance.integers(3, size=200)]
    segment = list(chance.integers(2, size=200))
    cells, first = rows_to_cells([sex, age], accepted.tolist(), outcome, segment, [100.0] * 200)
    rows = [i for i in range(200) if sex[i] == "f" and age[i] == "old"]
    own = [cells[key] for key in cells if key[0] == "f × old"]
    assert sum(cell.arrivals for cell in own) == len(rows)
    assert sum(cell.successes for cell in own) == sum(bool(accepted[i]) and outcome[i] is True for i in rows)
    assert sum(cell.early_accepted for cell in own) == sum(bool(accepted[i]) for i in rows[: len(rows) // 2])
    assert sum(cell.amount for cell in own) == 100 * sum(bool(accepted[i]) for i in rows)
    assert first["f × old"] == next(k for k, i in enumerate(rows, 1) if accepted[i])
    unknown = sum(cell.arrivals for key, cell in cells.items() if key[0] == "")
    assert unknown == sum(sex[i] is None or age[i] == "" for i in range(200))


def test_a_difference_divides_into_composition_and_rates() -> None:
    parts = decompose_difference(CELLS, "f", "m")
    shares = {("f", "low"): 9 / 13, ("f", "high"): 4 / 13, ("m", "low"): 5 / 13, ("m", "high"): 8 / 13}
    rates = {key: counts.accepted / counts.arrivals for key, counts in CELLS.items()}
    composition = sum((shares["f", x] - shares["m", x]) * (rates["f", x] + rates["m", x]) / 2 for x in ("low", "high"))
    assert parts.composition.value == pytest.approx(composition)
    assert parts.difference.value == pytest.approx(6 / 13 - 9 / 13)
    assert parts.composition.value + parts.rates.value == pytest.approx(parts.difference.value)
    assert sum(parts.by_value.values()) == pytest.approx(composition)
    for part in (parts.difference, parts.composition, parts.rates):
        assert part.interval.lower <= part.value <= part.interval.upper


def test_a_group_that_lacks_a_segment_takes_the_other_s_rate() -> None:
    cells = {("f", "low"): GroupCounts(10, 2), ("m", "low"): GroupCounts(5, 1), ("m", "high"): GroupCounts(5, 5)}
    parts = decompose_difference(cells, "f", "m")
    assert parts.rates.value == pytest.approx(0)
    assert parts.composition.value == pytest.approx(0.2 - 0.6)


def test_proxies_against_slow_definitions() -> None:
    members = [(group, value) for (group, value), n in CELLS.items() if group for _ in range(n.arrivals)]
    proxy = find_proxy(CELLS)
    women, men = ([value for group, value in members if group == name] for name in "fm")
    wins = [1.0 if (a, b) == ("low", "high") else 0.5 if a == b else 0.0 for a in women for b in men]
    assert proxy.auc is not None
    assert proxy.auc.value == pytest.approx(np.mean(wins))
    total = len(members)
    joint = {pair: members.count(pair) / total for pair in set(members)}
    of_group = {name: sum(p for (group, _), p in joint.items() if group == name) for name in "fm"}
    of_value = {name: sum(p for (_, value), p in joint.items() if value == name) for name in ("low", "high")}
    information = sum(p * math.log2(p / (of_group[group] * of_value[value])) for (group, value), p in joint.items())
    assert proxy.information.value == pytest.approx(information)
    # The best guess: women where low is more frequent among them, men where high is.
    assert proxy.balanced_accuracy.value == pytest.approx((9 / 13 + 8 / 13) / 2)
    assert proxy.guessing == 0.5


def test_chance_alone_reveals_nothing_and_a_perfect_proxy_everything() -> None:
    chance = np.random.default_rng(11)
    found = 0
    for _ in range(40):
        counts = chance.multinomial(300, [1 / 12] * 12).reshape(6, 2)
        cells = {(str(g), str(x)): GroupCounts(int(counts[x, g])) for x in range(6) for g in range(2)}
        found += find_proxy(cells, draws=200).reveals
    assert found <= 7  # about 1 of 20
    perfect = find_proxy({("f", "a"): GroupCounts(50), ("m", "b"): GroupCounts(70)})
    assert (perfect.balanced_accuracy.value, perfect.information_share) == pytest.approx((1.0, 1.0))


def test_groups_must_be_known() -> None:
    with pytest.raises(InputError):
        measure_groups({("", "a"): GroupCounts(3)}, ["sex"])
    with pytest.raises(InputError):
        find_proxy({("f", "a"): GroupCounts(3)})
    with pytest.raises(InputError):
        decompose_difference(CELLS, "f", "x")


def test_a_mean_has_the_interval_of_students_distribution() -> None:
    amounts = [120.0, 80.0, 150.0, 95.0]
    measure = _mean(4, sum(amounts), sum(one * one for one in amounts))
    off = stats.t.ppf(0.975, 3) * np.std(amounts, ddof=1) / 2.0
    assert measure is not None
    assert (measure.value, measure.interval.lower, measure.interval.upper) == pytest.approx(
        (111.25, 111.25 - off, 111.25 + off)
    )
    one = _mean(1, 7.0, 49.0)
    assert one is not None
    assert (one.value, one.interval.lower, one.interval.upper) == (7.0, -math.inf, math.inf)
    same = _mean(3, 0.3, 0.03)  # rounding must not make a variance negative
    assert same is not None
    assert same.interval.width == pytest.approx(0.0, abs=1e-7)
    assert _mean(0, 0.0, 0.0) is None


def test_rates_of_segments_are_those_of_a_flat_prior() -> None:
    rates = segment_rates(CELLS)
    assert rates["low"] == pytest.approx((5 / 8, stats.beta(5, 3).var()))  # four successes and two failures
    assert rates["high"] == pytest.approx((9 / 11, stats.beta(9, 2).var()))
    assert segment_rates({("f", "new"): GroupCounts(3, 1)}) == {}


def test_deserving_acceptance_by_the_delta_method() -> None:
    own = {"low": GroupCounts(9, 3), "high": GroupCounts(4, 3), "new": GroupCounts(50, 1)}
    rates = {"low": (0.6, 0.03), "high": (0.8, 0.02)}
    measure = _deserving(own, rates)
    accepted, total = 3 * 0.6 + 3 * 0.8, 9 * 0.6 + 4 * 0.8
    value = accepted / total
    # By how much the share changes with each rate: a difference quotient.
    spread = value * (1 - value) / total
    for segment, (rate, variance) in rates.items():
        moved = {**rates, segment: (rate + 1e-6, variance)}
        up = sum(own[name].accepted * one for name, (one, _) in moved.items())
        slope = (up / sum(own[name].arrivals * one for name, (one, _) in moved.items()) - value) / 1e-6
        spread += slope**2 * variance
    off = stats.norm.ppf(0.975) * math.sqrt(spread)
    assert measure is not None
    assert (measure.value, measure.interval.lower, measure.interval.upper) == pytest.approx(
        (value, value - off, value + off), rel=1e-5
    )
    assert _deserving({"new": GroupCounts(5, 1)}, rates) is None
    full = _deserving({"low": GroupCounts(9, 9)}, rates)
    assert full is not None
    assert full.interval.upper == 1.0


def test_rows_are_counted_by_group_and_segment() -> None:
    cells, first = rows_to_cells(
        [["f", "f", "m", "f", None, "m"]],
        [False, True, True, True, True, False],
        [None, True, None, False, True, None],
        ["a", "a", "a", "b", "a", "b"],
        [10.0, 20.0, 30.0, None, 50.0, 60.0],
    )
    assert cells["f", "a"] == GroupCounts(2, 1, 1, 0, 1, 0, 1, amount=20.0, amount_squares=400.0)
    assert cells["f", "b"] == GroupCounts(1, 1, 0, 1, 0, 0, 0)
    assert cells["m", "a"] == GroupCounts(1, 1, 0, 0, 1, 1, 1, amount=30.0, amount_squares=900.0)
    assert cells["m", "b"] == GroupCounts(1, 0, 0, 0, 0, 0, 0)
    assert cells["", "a"] == GroupCounts(1, 1, 1, 0, 0, 0, 1, amount=50.0, amount_squares=2500.0)
    assert first == {"f": 2, "m": 1}


def test_calibration_is_observed_minus_expected() -> None:
    f = next(group for group in measure_groups(CELLS).groups if group.name == "f")
    assert f.success is not None
    assert f.expected_success is not None
    calibration = f.calibration
    assert calibration is not None
    assert calibration.value == pytest.approx(5 / 6 - f.expected_success)
    assert calibration.interval.lower == pytest.approx(f.success.interval.lower - f.expected_success)
    assert calibration.interval.upper == pytest.approx(f.success.interval.upper - f.expected_success)
    for field in ("success", "expected_success"):
        assert msgspec.structs.replace(f, **{field: None}).calibration is None


def test_waiting_for_the_first_acceptance() -> None:
    """The chance of the first acceptance at the n-th applicant or later, or earlier, is a fortieth at the ends."""
    for first in (1, 2, 7):
        interval = waiting_interval(first)
        shortest, longest = 1 / interval.lower, 1 / interval.upper
        assert 1 - (1 - longest) ** first == pytest.approx(0.025)
        if first > 1:
            assert (1 - shortest) ** (first - 1) == pytest.approx(0.025)
        else:
            assert shortest == 1.0
