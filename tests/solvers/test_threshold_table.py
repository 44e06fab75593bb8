"""The table of thresholds against certified ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Discounted, InputError
from lenience.solvers.stopping.threshold import enclose_threshold
from lenience.solvers.stopping.threshold_table import LARGEST, SMALLEST, measured_error, threshold_table
from oracles import continuation


def slow_threshold(cost: float, discount: float, n: float) -> float:
    """c_n by bisection of a plain recursion over whole rows, which shares no code with the solvers."""
    rows = max(math.ceil(math.log(1e-8) / math.log(discount)), 20)
    low, high = 0.0, cost
    for _ in range(26):
        middle = (low + high) / 2
        below, above = continuation(n, middle * n, cost, discount, rows)
        low, high = (low, middle) if below + above > 0 else (middle, high)
    return (low + high) / 2


@pytest.mark.parametrize("cost", [0.3, 0.8, 0.95])
def test_interpolation_error_is_as_stated(cost: float) -> None:
    table = threshold_table(cost, 0.99)
    rng = np.random.default_rng(3)
    for discount in (0.03, 0.5, 0.88, 0.95):
        for n in np.exp(rng.uniform(math.log(0.06), math.log(2000.0), size=2)):
            proved = slow_threshold(cost, discount, float(n))
            error = abs(float(table.threshold(n, discount)) - proved) / min(proved, cost - proved)
            assert error < 0.01, (n, discount)


def test_the_measured_error_notices_a_table_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    right = threshold_table(0.8, 0.9)
    assert measured_error(0.8, 0.9, points=8, seed=1) < 0.01
    wrong = right._replace(f=right.f + 0.05)  # leniency that is 5 % too large
    monkeypatch.setattr("lenience.solvers.stopping.threshold_table.threshold_table", lambda *_: wrong)
    assert 0.02 < measured_error(0.8, 0.9, points=8, seed=1) < 0.06


def test_published_thresholds() -> None:
    found = threshold_table(0.8, 0.99).threshold([1, 10, 100, 1000, 10000], 0.99)
    proved = np.array([0.217329403, 0.654376406, 0.777767907, 0.797446613, 0.799738907])
    assert np.all(np.abs(found - proved) < 0.01 * np.minimum(proved, 0.8 - proved))


def test_limits_and_edges() -> None:
    table = threshold_table(0.7, 0.99)
    assert table.threshold(10, 0.0) == 0.7
    # One label tells everything as n → 0, where c_n → c(1 − γ)/(1 − γ + γ(1 − c)).
    assert table.threshold(0.05, 0.9) == pytest.approx(0.7 * 0.1 / (0.1 + 0.9 * 0.3), rel=0.12)
    assert table.threshold(1e-9, 0.9) == table.threshold(SMALLEST, 0.9)
    assert table.threshold(1e9, 0.9) == table.threshold(LARGEST, 0.9)
    n = np.geomspace(0.05, 3e4, 60)
    for discount in (0.05, 0.5, 0.9, 0.99):
        curve = table.threshold(n, discount)
        assert np.all(np.diff(curve) > 0)  # thresholds rise with n (Proposition 3)
        assert np.all(curve < 0.7)
    assert np.all(np.diff(table.threshold(5.0, np.linspace(0.02, 0.99, 50))) < 0)  # more future, more leniency


def test_beyond_the_table_a_straight_line_is_near() -> None:
    table = threshold_table(0.8, 0.999)
    proved = enclose_threshold(Discounted(0.8, 0.9995), 20.0, 1e-5).midpoint
    beyond = float(table.threshold(20.0, 0.9995))
    assert beyond == pytest.approx(proved, abs=0.02 * (0.8 - proved))


def test_one_table_serves_smaller_discounts() -> None:
    smaller = threshold_table(0.61, 0.95)
    assert threshold_table(0.61, 0.5) is smaller
    larger = threshold_table(0.61, 0.98)
    assert larger.f.shape[1] > smaller.f.shape[1]
    assert threshold_table(0.61, 0.9) is larger
    for table in (smaller, larger):
        assert float(table.threshold(3, 0.9)) == pytest.approx(slow_threshold(0.61, 0.9, 3.0), rel=2e-3)


@pytest.mark.parametrize(("cost", "discount"), [(0.0, 0.9), (1.0, 0.9), (0.5, 1.0), (0.5, -0.1)])
def test_bad_input(cost: float, discount: float) -> None:
    with pytest.raises(InputError, match="must be a number"):
        threshold_table(cost, discount)
