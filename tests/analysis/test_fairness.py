"""Fairness: exact fates against a plain simulation, groups as sums, constraints with
their cost."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief, Discounted, Segments, characteristics
from lenience.analysis import fairness
from lenience.analysis.fairness import (
    WithExposureCap,
    WithFloor,
    cost_of_exposure_cap,
    cost_of_floor,
    group_fates,
    segment_fates,
)
from lenience.core.belief import check_prior
from lenience.segments.policies import SegmentPolicies
from rejections import rejected

TRUTHS = {"a1": 0.9, "a2": 0.6, "b1": 0.85, "b2": 0.9, "b3": 0.3}


def solved(discount: float = 0.98) -> SegmentPolicies:
    shares = {"a1": 0.4, "a2": 0.3, "b1": 0.15, "b2": 0.1, "b3": 0.05}
    groups = {name: name[0].upper() for name in shares}
    return Segments.of(shares, Discounted(0.7, discount), Belief(2, 1), groups).solve()


def test_fates_by_simulation() -> None:
    policies = solved()
    fates = {fate.name: fate for fate in segment_fates(policies, TRUTHS)}
    cell = policies.segments["a1"]
    table, gamma, runs = policies["a1"]._table(400), cell.own.discount, 20_000
    generator = np.random.default_rng(0)
    alive, good = np.ones(runs, dtype=bool), np.zeros(runs, dtype=np.int64)
    accepted = np.zeros(400)
    for k in range(400):
        alive &= good >= table[k]
        accepted[k] = alive.mean()
        good += generator.random(runs) < TRUTHS["a1"]
    weight = gamma ** np.arange(400)
    early = weight > 0.5
    assert fates["a1"].early == pytest.approx(weight[early] @ accepted[early] / weight[early].sum(), abs=0.01)
    assert fates["a1"].late == pytest.approx(weight[~early] @ accepted[~early] / weight[~early].sum(), abs=0.01)
    assert fates["a1"].shut_out == pytest.approx(1 - accepted[-1], abs=0.01)
    assert fates["a1"].accepted == pytest.approx(weight @ accepted * (1 - gamma), abs=0.01)
    assert fates["a1"].early > fates["a1"].late  # the early enjoy the benefit of the doubt


def test_fates_agree_with_the_characteristics() -> None:
    policies = solved()
    for fate in segment_fates(policies, TRUTHS):
        cell = policies.segments[fate.name]
        assert fate.p is not None
        prior = check_prior(cell.prior)
        found = characteristics(policies[fate.name], p=fate.p, objective=cell.own, belief=prior, rows=4000)
        # What is earned is the discounted acceptance times p − c.
        assert fate.accepted * (fate.p - 0.7) / (1 - cell.own.discount) == pytest.approx(
            found.reward.midpoint, abs=1e-6
        )
        assert (fate.shut_out is None) == (fate.p <= 0.7)
        assert not fate.starts or fate.early > 0


@pytest.mark.parametrize(("discount", "p"), [(0.9999, 0.77), (0.9999, 0.84)])
def test_fates_against_a_long_and_plain_walk(discount: float, p: float) -> None:
    """Follow the segment until nothing is left to happen, without any bound."""
    problem = Discounted(0.8, discount)
    policies = Segments.of({"all": 1.0}, problem, Belief(20, 16)).solve()
    going = plain_walk(policies["all"]._table(ROWS), p)
    weight = discount ** np.arange(ROWS, dtype=np.float64)
    rest = discount**ROWS / (1 - discount)
    early = weight > 0.5
    assert early.sum() > 3000
    assert going[-1] < 1e-5 or p > 0.8  # at p < c it has stopped; above, it stops no more
    exact = {
        "accepted": (weight @ going + rest * going[-1]) * (1 - discount),
        "early": weight[early] @ going[early] / weight[early].sum(),
        "ever": going[-1] if p > 0.8 else 0.0,
    }
    exact["late"] = (weight[~early] @ going[~early] + rest * going[-1]) / (weight[~early].sum() + rest)
    if p > 0.8:
        exact["shut_out"] = 1 - going[-1]
    for rows in (None, 300):
        [fate] = segment_fates(policies, {"all": p}, rows=rows)
        for name, value in exact.items():
            bounds = getattr(fate.bounds, name)
            assert bounds.lower - 1e-6 <= value <= bounds.upper + 1e-6, (rows, name)
            assert getattr(fate, name) == pytest.approx(bounds.midpoint)
            if rows is None:
                assert bounds.width <= 1e-4


ROWS = 12_000


def plain_walk(least: NDArray[np.int64], p: float) -> NDArray[np.float64]:
    """Return the probability that each of ``ROWS`` members is accepted, by adding up the states one row at a time."""
    going = np.zeros(ROWS)
    first, mass = 0, np.ones(1)
    for k in range(ROWS):
        mass = np.where(first + np.arange(mass.size) < least[k], 0.0, mass)
        going[k] = mass.sum()
        mass = np.append(mass, 0.0) * (1 - p) + np.append(0.0, mass) * p
        kept = np.flatnonzero(mass > 1e-14)
        if not kept.size:
            break
        first, mass = first + kept[0], mass[kept[0] : kept[-1] + 1]
    return going


def test_at_or_below_the_cost_acceptance_always_ends() -> None:
    policies = Segments.of({"all": 1.0}, Discounted(0.8, 0.999), Belief(20, 16)).solve()
    for p in (0.5, 0.799, 0.8):
        [fate] = segment_fates(policies, {"all": p}, rows=200)
        assert fate.bounds.ever.upper < 1e-9
    [average], [finer] = segment_fates(policies, rows=500), segment_fates(policies, rows=2000)
    for name in ("accepted", "early", "late", "ever", "shut_out"):
        wide, narrow = getattr(average.bounds, name), getattr(finer.bounds, name)
        assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper
    assert finer.ever == pytest.approx(finer.deserving * (1 - (finer.shut_out or 0)), abs=0.01)
    [once] = segment_fates(Segments.of({"all": 1.0}, Discounted(0.7, 0.0), Belief(5, 4)).solve(), {"all": 0.6})
    assert [once.accepted, once.early] == pytest.approx([1.0, 1.0])  # only the first member counts
    with rejected("tolerance"):
        segment_fates(policies, tolerance=0.0)


def test_groups_and_disparity() -> None:
    fates = segment_fates(solved(), TRUTHS)
    a, b = group_fates(fates)
    assert (a.group, a.segments, a.deserving_segments) == ("A", 2, 1)
    assert (b.group, b.segments, b.deserving_segments, b.never_start) == ("B", 3, 2, 3)
    deserving = sum(fate.share for fate in fates if fate.group == "B" and fate.deserves)
    assert b.deserving == pytest.approx(deserving / b.share)
    (nobody,) = group_fates([fate for fate in fates if fate.group == "B" and not fate.deserves])
    assert (nobody.deserving, nobody.shut_out) == (0.0, None)
    assert b.shut_out == pytest.approx(1.0)  # a small group's segments never start, deserving or not
    assert b.acceptance == 0.0
    assert b.false_rejection == 1.0
    assert a.shut_out is not None
    assert 0.1 < a.shut_out < 0.5
    assert a.share + b.share == pytest.approx(1.0)


def test_without_truths_fates_are_averaged_over_the_belief() -> None:
    policies = solved()
    known = [segment_fates(policies, dict.fromkeys(TRUTHS, p), rows=150) for p in (np.arange(50) + 0.5) / 50]
    expected = segment_fates(policies, rows=150)
    for i, fate in enumerate(expected):
        assert fate.p is None
        assert fate.deserving == pytest.approx(0.3)  # the prior is flat, the cost 0.7
        for name in ("accepted", "early", "late"):
            mean = np.mean([getattr(one[i], name) for one in known])
            assert getattr(fate, name) == pytest.approx(mean, abs=1e-2), name
        shut_out = [one[i].shut_out for one in known]  # of those that deserve acceptance: nothing of the others
        mean = np.mean([share for share in shut_out if share is not None])
        assert fate.shut_out == pytest.approx(mean, abs=2e-2)
    a, b = group_fates(expected)
    assert a.false_rejection is None
    assert b.shut_out == pytest.approx(1.0)
    assert a.shut_out is not None
    assert 0.1 < a.shut_out < 0.9


def test_the_cost_of_a_floor() -> None:
    policies = solved()
    rows = cost_of_floor(policies, {"B": 0.1})
    assert [row.name for row in rows] == ["b1", "b2", "b3"]
    for row in rows:
        assert row.optimum.upper == 0.0
        assert row.cost.lower > 0.0
        assert row.cost.width < 1e-5
    # Higher floors cost more.
    dearer = cost_of_floor(policies, {"B": 0.3})
    assert all(b.cost.lower > a.cost.upper for a, b in zip(rows, dearer, strict=True))
    with rejected("group", "unknown_name"):
        cost_of_floor(policies, {"C": 0.1})


def test_a_floor_never_stops() -> None:
    policies = solved()
    policy = WithFloor(policies["a1"], 0.05)
    found = characteristics(policy, p=0.9, objective=policies.segments["a1"].own, belief=Belief(2, 1), rows=500)
    assert found.stops.upper < 1e-11


def test_the_cost_of_a_cap_on_exposure() -> None:
    policies = solved()
    costs = [cost_of_exposure_cap(policies, {"a1": cap})[0].cost for cap in (0, 3, 30, 300)]
    assert costs[0].midpoint == pytest.approx(
        policies.segment_value("a1").midpoint, abs=1e-5
    )  # nothing is tried at all
    assert costs[0].lower > costs[1].upper > costs[1].lower > costs[2].upper
    assert costs[3].upper < 1e-2
    capped = WithExposureCap(policies["a1"], Belief(2, 1), 0.7, cap=3)
    assert capped.acceptance(4, [1.0, 3.0]).tolist() == policies["a1"].acceptance(4, [1.0, 3.0]).tolist()
    assert json.loads(capped.to_json())["policy"]["type"] == "optimal"
    assert capped.acceptance(10, [6.0, 7.5]).tolist() == [0.0, 1.0]


def test_truths_must_be_complete() -> None:
    with rejected("truths", "missing"):
        segment_fates(solved(), {name: p for name, p in TRUTHS.items() if name != "b3"})


def test_walks_that_need_a_long_solve_stay_within_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = Segments.of({"a": 1.0}, Discounted(0.8, 0.999), Belief(20, 15)).solve(rows=300)
    [exact] = segment_fates(policies)
    monkeypatch.setattr(fairness, "GROWING_SECONDS", 0.0)
    monkeypatch.setattr(Discounted, "solve", None)  # nothing may be solved again
    [short] = segment_fates(policies)
    for name in ("accepted", "early", "late", "ever", "shut_out"):
        wide, narrow = getattr(short.bounds, name), getattr(exact.bounds, name)
        assert wide.lower <= narrow.upper
        assert narrow.lower <= wide.upper
    assert short.starts
    assert short.ever == pytest.approx(exact.ever, abs=0.05)
