"""Exposure limits at any belief and rate, against certified solves of each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Delayed
from lenience.solvers.delayed import limit_table
from lenience.solvers.delayed.limit_table import LimitNode, between_powers, exposure_limit, look_up_limit


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


SIZES, LOWEST, STEPS = np.array([0.5, 2.0, 7.0]), np.array([0.1, 0.31, 0.5]), np.array([0.05, 0.04, 0.03])


def logarithm(n: float, distance: float, arrivals: float = 3.0, rate: float = -2.0) -> float:
    """Linear in log n, in the distance (p̂ − c)√n and in both powers of 2, so that interpolation is exact."""
    return 3.0 + 0.3 * math.log(n) + 1.5 * distance + 0.2 * arrivals - 0.1 * rate


def made_up(cost: float, arrivals: int, rate: int) -> LimitNode:
    rates = LOWEST[:, None] + STEPS[:, None] * np.arange(20)
    table = [
        [logarithm(n, (mean - cost) * math.sqrt(n), arrivals, rate) for mean in row]
        for n, row in zip(SIZES.tolist(), rates.tolist(), strict=True)
    ]
    return LimitNode(SIZES, LOWEST, STEPS, np.array(table))


def test_limits_between_the_nodes_of_a_made_up_table(monkeypatch: pytest.MonkeyPatch) -> None:
    node = made_up(0.8, 3, -2)
    for n in (0.5, 0.9, 2.0, 3.5, 6.9, 7.0):
        for mean in (0.62, 0.7, 0.78, 0.799):
            assert look_up_limit(*node, 0.8, n, mean) == pytest.approx(logarithm(n, (mean - 0.8) * math.sqrt(n)))
    # Beyond both ends the nearest row counts, at the same distance.
    for n, nearest in ((0.2, 0.5), (30.0, 7.0)):
        assert look_up_limit(*node, 0.8, n, 0.77) == pytest.approx(logarithm(nearest, -0.03 * math.sqrt(n)))
    assert look_up_limit(*node, 0.8, 0.5, 0.1) == 0.0  # the lowest rate
    one = LimitNode(*(part[:1] for part in node))
    assert look_up_limit(*one, 0.8, 3.0, 0.78) == pytest.approx(logarithm(0.5, -0.02 * math.sqrt(3.0)))
    monkeypatch.setattr(limit_table, "_node", made_up)
    for arrivals, rate in ((8.0, 0.25), (11.0, 0.25), (8.0, 0.3), (13.0, 0.2), (1e-9, 1e-9), (1e9, 1e9)):
        across = min(max(math.log2(arrivals), -10.0), 16.0)
        down = min(max(math.log2(rate), -24.0), 6.0)
        expected = math.expm1(logarithm(3.0, -0.05 * math.sqrt(3.0), across, down)) - 0.5
        assert exposure_limit(3.0, 0.75, 0.8, arrivals, rate) == pytest.approx(max(expected, 0.0))


@pytest.mark.parametrize(
    ("value", "first", "share"),
    [(8.0, 3, 0.0), (12.0, 3, math.log2(1.5)), (0.0, -4, 0.0), (1e-9, -4, 0.0), (1e9, 5, 0.0), (32.0, 5, 0.0)],
)
def test_powers_of_two_around_a_number(value: float, first: int, share: float) -> None:
    power, part = between_powers(value, -4, 5)
    assert power == first
    assert part == pytest.approx(share)
