"""Exposure limits at any belief and rate, against certified solves of each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Delayed
from lenience.solvers.delayed.limit_table import exposure_limit


def test_against_certified_limits() -> None:
    rng = np.random.default_rng(0)
    off = []
    for _ in range(25):
        cost, n = float(rng.choice([0.5, 0.8, 0.9, 0.967])), float(rng.uniform(0.6, 12.0))
        arrivals, rate = 2.0 ** rng.uniform(0, 4), 2.0 ** rng.uniform(-5, -1)
        mean = cost - rng.uniform(0.1, 1.2) * math.sqrt(cost * (1 - cost) / (n + 1))
        certified = Delayed(cost, arrivals, rate, 1).enclose(Belief(n, n * mean), tolerance=1e-3)[1]
        assert certified is not None
        off.append(math.ceil(exposure_limit(n, mean, cost, arrivals, rate)) - certified)
        assert abs(off[-1]) <= 1 + 0.1 * certified
    assert np.mean(np.array(off) == 0) > 0.7
    assert abs(np.mean(off)) < 0.25


def test_the_belief_that_the_lattice_of_a_flat_prior_does_not_have() -> None:
    late = Delayed(cost=0.967, arrivals=20, discount_rate=0.2, label_delay=1)
    certified = late.enclose(Belief(3.2, 3.2 * 0.936), tolerance=1e-3)[1]
    assert certified is not None
    assert certified > 3
    assert exposure_limit(3.2, 0.936, 0.967, 20, 0.2) == pytest.approx(certified, abs=1.5)


def test_limits_at_the_edges() -> None:
    assert exposure_limit(5, 0.8, 0.8, 10, 0.1) == math.inf
    assert exposure_limit(5, 0.1, 0.8, 10, 0.1) == 0.0
    assert exposure_limit(0.05, 0.79, 0.8, 10, 0.1) > 0.0
    assert exposure_limit(3e4, 0.7999, 0.8, 1e6, 1e-9) >= 0.0
    assert exposure_limit(3, 0.7, 0.8, 1e-9, 10) == 0.0
    limits = [exposure_limit(8, mean, 0.8, 30, 0.05) for mean in (0.6, 0.65, 0.7, 0.75, 0.79)]
    assert limits == sorted(limits)
