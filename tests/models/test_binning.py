"""Bands of a score: given, by quantiles, optimal, monotone; and how many would start."""

from __future__ import annotations

import numpy as np
import pytest

from lenience import Belief, Discounted
from lenience.models.binning import Binning, bin_by_quantiles, monotone
from lenience.segments.band_advice import advise_bands
from rejections import rejected


def drawn(
    count: int = 4000,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    generator = np.random.default_rng(2)
    score = generator.uniform(0, 100, count)
    return score, (generator.random(count) < 1 / (1 + np.exp(-(score - 50) / 12))).astype(np.int64)


def test_edges() -> None:
    bands = Binning((0.0, 10.0))
    assert bands.bands == 3
    assert bands.assign([-1, 0, 9, 10]).tolist() == [0, 1, 1, 2]
    assert bands.shares([-1, 0, 9, 10]).tolist() == [0.25, 0.5, 0.25]
    n, s = bands.counts([-1, 0, 9, 10], [1, 0, 1, 1])
    assert (n.tolist(), s.tolist()) == ([1, 2, 1], [1, 1, 1])
    assert Binning(()).names == ["all"]
    with rejected("edges"):
        Binning((2.0, 1.0))
    with rejected("scores"):
        bands.assign([float("nan")])


def test_quantiles_have_equal_shares_and_survive_ties() -> None:
    score, _ = drawn()
    assert bin_by_quantiles(score, 8).shares(score) == pytest.approx(np.full(8, 1 / 8), abs=1e-3)
    tied = bin_by_quantiles([0.0] * 90 + [1.0] * 10, 5)
    assert np.all(tied.shares([0.0] * 90 + [1.0] * 10) > 0)


def test_monotone_pools_violators() -> None:
    score, good = drawn()
    fine = bin_by_quantiles(score, 80)
    coarse = monotone(fine, *fine.counts(score, good))
    n, s = coarse.counts(score, good)
    assert 5 < coarse.bands < 80
    assert np.all(np.diff(s / n) >= 0)
    falling = monotone(fine, *fine.counts(score, good), rising=False)
    assert falling.bands == 1


def test_coarse_wins_without_pooling() -> None:
    score, _ = drawn()
    rows = advise_bands(score, Discounted(0.8, 0.998), Belief(2, 1), bands=(2, 10, 40))
    assert [row.starting for row in rows] == [2, 10, 0]
    assert "all start" in rows[0].advice
    assert f"only {rows[2].starting} start" in rows[2].advice
