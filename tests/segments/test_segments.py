"""Segments: shares, sharing of tables, objectives of other kinds, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Bounds, Delayed, Discounted, Segment, Segments, starts
from lenience.core.objective import Objective
from lenience.segments import ArrivalCounts
from rejections import rejected


def test_the_whole_is_the_weighted_sum() -> None:
    whole = Discounted(0.8, 0.995)
    cells = Segments.of({"a": 0.5, "b": 0.3, "c": 0.2}, whole, Belief(2, 1))
    policies = cells.solve()
    expected = sum(
        whole.weight_of_share(cell.share) * cell.own.solve(cell.prior).value(cell.prior).midpoint for cell in cells
    )
    assert policies.value().midpoint == pytest.approx(expected, abs=1e-8)
    assert policies.value().width < 1e-7
    # Rounded outwards: the parts are computed numbers, too.
    parts = [policies.segment_value(name) for name in policies]
    assert policies.value().lower < math.fsum(part.lower for part in parts)
    assert policies.value().upper > math.fsum(part.upper for part in parts)


def test_a_single_segment_is_the_homogeneous_problem() -> None:
    whole = Discounted(0.8, 0.99)
    policies = Segments.of({"all": 1.0}, whole, Belief(2, 1)).solve()
    direct = whole.solve(Belief(2, 1))
    assert policies["all"].objective == whole
    assert policies.value().midpoint == pytest.approx(direct.value(Belief(2, 1)).midpoint, abs=1e-9)


def test_equal_cells_share_a_table_and_the_tables_are_those_of_a_single_solve() -> None:
    shares = {f"{i}": 0.01 + 0.01 * (i % 3) for i in range(30)}
    cells = Segments.of(shares, Discounted(0.8, 0.999), Belief(2, 1))
    policies = cells.solve(rows=64)
    assert policies.tables == 3
    assert policies["0"] is policies["3"]
    alone = cells["1"].own.solve(Belief(2, 1), rows=64)
    assert np.array_equal(policies["1"].accept_from, alone.accept_from)


def test_tables_shared_within_an_allowed_loss() -> None:
    generator = np.random.default_rng(3)
    weights = generator.lognormal(0.0, 1.0, 200)
    shares = {f"{i}": float(w) for i, w in enumerate(weights / weights.sum())}
    cells = Segments.of(shares, Discounted(0.7, 0.9999), Belief(2, 1))
    exact, merged = cells.solve(rows=16), cells.solve(rows=16, allowed_loss=0.01)
    assert exact.tables == 200
    assert merged.tables < 130
    bounds, best = merged.value(), exact.value()
    assert bounds.lower <= best.lower
    assert best.upper <= bounds.upper
    losses = merged.losses(cells)
    clairvoyant = {cell.name: cell.weight * (1 + cell.volume) * 0.045 for cell in cells}  # E(p − 0.7)⁺ = 0.045
    assert all(0.0 <= losses[name] <= 0.01 * clairvoyant[name] * (1 + 1e-9) for name in shares)


class Patient(Objective):
    """Another objective by duck typing, as a delayed one will be."""

    cost = 0.5
    volume = 10.0
    divisible = True

    def __init__(self, share: float = 1.0) -> None:
        self.share = share

    def for_share(self, share: float) -> Patient:
        return Patient(self.share * share)

    def weight_of_share(self, share: float) -> float:
        return 1.0

    def solve(self, prior: Belief) -> Patient:
        return self

    def value(self, belief: Belief) -> Bounds:
        return Bounds(self.share, self.share)

    def accepts(self, belief: Belief) -> bool:
        return belief.mean > self.cost


def test_other_objectives_join_by_their_own_share() -> None:
    policies = Segments.of({"a": 0.25, "b": 0.5}, Patient(), Belief(2, 1)).solve()
    assert policies.value().midpoint == pytest.approx(0.75)
    assert policies.accepts("a", Belief(3, 2))


def test_costs_may_differ() -> None:
    objectives = {"small": Discounted(0.7, 0.99), "large": Discounted(0.9, 0.99)}
    policies = Segments.of({"small": 0.5, "large": 0.5}, objectives, Belief(2, 1)).solve()
    assert policies["small"].objective.cost == 0.7
    assert policies.accepts("small")
    assert not policies.accepts("large")


@pytest.mark.parametrize(
    ("shares", "error"),
    [
        ({"a": 0.6, "b": 0.6}, ("shares", "invalid_value")),
        ({"a": 0.0}, ("share", "invalid_value")),
        ({}, ("segments", "missing")),
        ({"a": 1.5}, ("share", "invalid_value")),
    ],
)
def test_bad_shares(shares: dict[str, float], error: tuple[str, str]) -> None:
    with rejected(*error):
        Segments.of(shares, Discounted(0.8, 0.9), Belief(2, 1))


def test_other_errors() -> None:
    cell = Segment("a", 0.5, Discounted(0.8, 0.9), Belief(2, 1))
    with rejected("segments", "duplicate"):
        Segments([cell, cell])
    cells = Segments([cell])
    with rejected("segment"):
        cells["b"]
    with rejected("segment"):
        cells.solve()["b"]
    with rejected("objective"):
        Segment("a", 0.5, 3, Belief(2, 1))  # type: ignore[arg-type]
    with rejected("prior", "missing"):
        Segments.of({"a": 0.5}, Discounted(0.8, 0.9), {"b": Belief(2, 1)})
    shares = {"a": 0.5, "b": 0.5}
    with rejected("groups", "unknown_name"):
        Segments.of(shares, Discounted(0.8, 0.9), Belief(2, 1), {"a": "A", "b": "A", "c": "B"})
    with rejected("groups", "missing"):
        Segments.of(shares, Discounted(0.8, 0.9), Belief(2, 1), {"a": "A"})


def test_arrivals_count_the_rejected_and_learn_the_shares() -> None:
    generator = np.random.default_rng(8)
    drawn = generator.choice(["a", "b", "c"], size=20_000, p=[0.5, 0.3, 0.2])
    counts = ArrivalCounts({"a": 0, "b": 0, "c": 0}).observe(drawn.tolist())
    assert counts.total == 20_000
    shares = counts.shares()
    assert math.fsum(shares.values()) == pytest.approx(1.0)
    assert shares["c"] == pytest.approx(0.2, abs=0.01)
    assert 0.3 in counts.interval("b", 0.999)
    with rejected("arrivals", "unknown_name"):
        counts.observe(["d"])


def test_late_labels_join_by_their_share() -> None:
    whole = Delayed(0.8, arrivals=60, discount_rate=0.2, label_delay=0.5)
    cells = Segments.of({"a": 0.75, "b": 0.25}, whole, Belief(2, 1))
    policies = cells.solve()
    alone = Delayed(0.8, arrivals=45, discount_rate=0.2, label_delay=0.5).solve(Belief(2, 1))
    assert policies.segment_value("a").midpoint == pytest.approx(alone.value(Belief(2, 1)).midpoint, rel=1e-5)
    assert cells["b"].volume == pytest.approx(75.0)
    late = {row.name: row for row in starts(cells)}
    assert late["a"].starts
    assert late["a"].needed == pytest.approx(32.14, abs=0.01)
    # As labels come ever sooner the value is that of immediate labels, times γ for the wait for the first arrival.
    soon = Segments.of({"a": 0.75, "b": 0.25}, Delayed(0.8, 60, 0.2, label_delay=1e-4), Belief(2, 1)).solve()
    at_once = Segments.of({"a": 0.75, "b": 0.25}, Discounted.from_rates(0.8, 60, 0.2), Belief(2, 1)).solve()
    gamma = 60 / 60.2
    assert soon.value().midpoint == pytest.approx(gamma * at_once.value().midpoint, rel=1e-2)


def test_segments_may_be_rarer_than_once_a_year() -> None:
    cells = Segments.from_rates({"often": 40.0, "rare": 0.25}, 0.8, 0.1, Belief(2, 1))
    assert cells["rare"].share == pytest.approx(0.25 / 40.25)


def test_segments_solved_in_a_limited_time_have_wider_bounds() -> None:
    cells = Segments.of({"a": 0.7, "b": 0.3}, Discounted(0.8, 0.9999), Belief(20, 15))
    exact, quick = cells.solve(), cells.solve(seconds=1e-4)
    for name in cells.names:
        narrow, wide = exact.segment_value(name), quick.segment_value(name)
        assert wide.lower <= narrow.lower
        assert narrow.upper <= wide.upper
        assert narrow.width < wide.width < 0.05 * narrow.midpoint
    assert quick.accepts("a") == exact.accepts("a")
    with rejected("seconds"):
        cells.solve(seconds=0)
