"""The table of thresholds against certified ones between its nodes and beyond them."""

from __future__ import annotations

import numpy as np

from lenience import Discounted
from lenience.core.belief import Belief
from lenience.segments import Thresholds


def test_between_the_nodes() -> None:
    table = Thresholds(0.8)
    generator = np.random.default_rng(1)
    for _ in range(12):
        n, volume = float(np.exp(generator.uniform(-2.5, 9))), float(np.exp(generator.uniform(-2, 6)))
        assert table.error(n, volume / (1 + volume)) < 1.5e-3, (n, volume)
    assert table.error(10.0, 0.99) < 3e-4


def test_beyond_the_nodes() -> None:
    table = Thresholds(0.8)
    assert abs(float(table.at(1e6, 0.99)) - (0.8 - 2.61800741e-6)) < 1e-8  # the asymptote
    assert table.at(10, 0.0) == 0.8  # nobody to come: no benefit of the doubt
    assert 0.0 <= table.at(1e-3, 0.999) < 0.05
    assert table.error(200.0, 0.9999) < 1e-3  # a volume beyond the last node


def test_decisions_agree_with_the_optimal_policy() -> None:
    table, own = Thresholds(0.8), Discounted(0.8, 0.98)
    policy = own.solve(Belief(2, 1))
    n = np.repeat(2 + np.arange(60), 30).astype(float)
    s = 1 + np.floor((n - 2) * np.tile(np.linspace(0.4, 1.0, 30), 60))
    same = (s / n > table.at(n, 0.98)) == (policy.acceptance(n, s) > 0)
    assert same.mean() > 0.995
