"""The segment that never starts."""

from __future__ import annotations

import math

import pytest

from lenience import Belief, Discounted, Segments, gittins_index, starts
from lenience.segments import shut_out_at_outset, starting_volume


@pytest.mark.parametrize(("cost", "volume"), [(0.7, 8.7), (0.8, 32), (0.9, 185)])
def test_flat_prior_volumes(cost: float, volume: float) -> None:
    found = starting_volume(Belief(2, 1), cost)
    assert found.midpoint == pytest.approx(volume, rel=0.01)
    assert found.width <= 2e-6 * found.midpoint


def test_at_the_starting_volume_the_gittins_index_is_the_cost() -> None:
    volume = starting_volume(Belief(3, 1.5), 0.75).midpoint
    index = gittins_index(Belief(3, 1.5), discount=volume / (1 + volume), tolerance=1e-7)
    assert index.midpoint == pytest.approx(0.75, abs=1e-5)


def test_extremes() -> None:
    assert starting_volume(Belief(2, 1.7), 0.8).upper == 0.0
    assert math.isinf(starting_volume(Belief(2, 0), 0.8).lower)
    assert math.isinf(starting_volume(Belief(200, 100), 0.9).lower)


def test_starts_agree_with_the_solved_policies() -> None:
    shares = {f"{i}": 0.3 / 1.5**i for i in range(8)}
    cells = Segments.of(shares, Discounted(0.8, 0.997), Belief(2, 1))
    policies = cells.solve()
    rows = starts(cells)
    assert [row.starts for row in rows] == [policies.accepts(row.name) for row in rows]
    assert {row.starts for row in rows} == {True, False}
    assert rows[0].volume == pytest.approx(0.3 * 0.997 / 0.003)


def test_shut_out_by_group() -> None:
    groups = {"big": "A", "mid": "A", "small": "B", "tiny": "B"}
    shares = {"big": 0.6, "mid": 0.3, "small": 0.08, "tiny": 0.02}
    cells = Segments.of(shares, Discounted(0.8, 0.99), Belief(2, 1), groups)
    truths = {"big": 0.9, "mid": 0.5, "small": 0.95, "tiny": 0.85}
    a, b = shut_out_at_outset(cells, truths, model="flat")
    assert (a.group, a.segments, a.shut, a.deserving, a.deserving_shut) == ("A", 2, 1, 1, 0)
    assert (b.group, b.segments, b.shut, b.deserving, b.deserving_shut) == ("B", 2, 2, 2, 2)
    assert b.deserving_share_shut == 1.0
    assert shut_out_at_outset(cells)[0].deserving is None
