"""The table of thresholds against certified ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Bounds, Discounted, InputError
from lenience.solvers.stopping.leniency_curve import (
    chebyshev_sum,
    leniency_series,
    threshold_on_curve,
    thresholds_on_curve,
)
from lenience.solvers.stopping.solve import DiscountedProblem, discounted_seconds, look_ahead_within
from lenience.solvers.stopping.threshold import enclose_threshold, estimate_threshold, threshold_curve
from lenience.solvers.stopping.threshold_column import thresholds_at
from lenience.solvers.stopping.threshold_table import LARGEST, SMALLEST, look_up, measured_error, threshold_table
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


def test_a_table_does_not_depend_on_the_tables_before_it() -> None:
    smaller = threshold_table(0.61, 0.95)
    larger = threshold_table(0.61, 0.98)
    assert larger.f.shape[1] > smaller.f.shape[1]
    assert threshold_table(0.61, 0.5) is threshold_table(0.61, 0.9)
    assert threshold_table(0.61, 0.95) is smaller
    for table in (smaller, larger):
        assert float(table.threshold(3, 0.9)) == pytest.approx(slow_threshold(0.61, 0.9, 3.0), rel=2e-3)


@pytest.mark.parametrize("cost", [0.05, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("discount", [0.02, 0.6, 0.97, 0.999])
def test_thresholds_from_one_pass_are_near_certified_ones(cost: float, discount: float) -> None:
    sizes = np.array([0.05, 0.8, 7.3, 60.0, 1000.5, 2e4])
    for n, quick in zip(sizes, thresholds_at(cost, discount, sizes), strict=True):
        scale = min(quick, cost - quick)
        proved = enclose_threshold(DiscountedProblem(cost, discount), float(n), 1e-4 * scale, float(quick))
        assert abs(quick - proved.midpoint) < 4e-4 * scale, n


def test_thresholds_near_a_discount_of_1() -> None:
    """At γ = 0.99999 a certified threshold takes seconds, so that one must do."""
    n, cost = 3000.0, 0.8
    (quick,) = thresholds_at(cost, 0.9999, np.array([n]))
    proved = enclose_threshold(DiscountedProblem(cost, 0.9999), n, 1e-3 * (cost - quick), float(quick)).midpoint
    assert quick == pytest.approx(proved, abs=1.5e-3 * (cost - proved))
    # With many observations the leniency depends on n(1 − γ) alone, times a standard deviation.
    tenfold = thresholds_at(cost, 0.99999, np.array([10.0 * n]))[0]
    assert (cost - tenfold) * math.sqrt(10.0) == pytest.approx(cost - quick, rel=0.02)


@pytest.mark.parametrize(("cost", "discount"), [(0.0, 0.9), (1.0, 0.9), (0.5, 1.0), (0.5, -0.1)])
def test_bad_input(cost: float, discount: float) -> None:
    with pytest.raises(InputError, match="must be a number"):
        threshold_table(cost, discount)


@pytest.mark.parametrize(("cost", "discount"), [(0.8, 0.95), (0.3, 0.9)])
def test_a_curve_goes_through_certified_thresholds(cost: float, discount: float) -> None:
    problem = DiscountedProblem(cost, discount)
    series = leniency_series(problem, 2.0, 400.0, nodes=10, tolerance=1e-6)
    assert len(series) == 10
    sizes = np.array([2.0, 3.1, 17.0, 120.0, 400.0])
    curve = thresholds_on_curve(cost, series, 2.0, 400.0, sizes)
    for n, on_curve in zip(sizes, curve, strict=True):
        proved = enclose_threshold(problem, float(n), 1e-8).midpoint
        assert on_curve == pytest.approx(proved, abs=2e-4 * (cost - proved))
        assert threshold_on_curve(cost, series, 2.0, 400.0, float(n)) == pytest.approx(on_curve, rel=1e-14)
    # Beyond its end n (c − c_n) stays as it is there.
    ends = 400 * (cost - curve[-1])
    assert threshold_on_curve(cost, series, 2.0, 400.0, 4000.0) == pytest.approx(cost - ends / 4000, rel=1e-12)
    assert thresholds_on_curve(cost, series, 2.0, 400.0, np.array([4000.0]))[0] == pytest.approx(cost - ends / 4000)


def test_a_curve_is_fitted_at_chebyshev_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node is as precise as its size needs, and starts from a line through the last two."""
    cost, low, high = 0.7, 3.0, 500.0
    calls: list[tuple[float, float, float | None]] = []

    def leniency(n: float) -> float:
        return 1.5 + 0.3 * math.log(n) - 0.02 * math.log(n) ** 3

    def enclose(problem: object, n: float, tolerance: float, guess: float | None) -> Bounds:
        calls.append((n, tolerance, guess))
        threshold = cost - leniency(n) / n
        return Bounds(threshold, threshold)

    monkeypatch.setattr("lenience.solvers.stopping.threshold.enclose_threshold", enclose)
    series = leniency_series(DiscountedProblem(cost, 0.9), low, high, nodes=6, tolerance=1e-3)
    nodes = sorted(math.cos((2 * i + 1) * math.pi / 12) for i in range(6))
    sizes = [low * (high / low) ** ((x + 1) / 2) for x in nodes]
    assert [n for n, _, _ in calls] == pytest.approx(sizes)
    assert [close for _, close, _ in calls] == pytest.approx([min(1e-3, 0.1 * 0.21 / (1 + n)) for n in sizes])
    assert min(close for _, close, _ in calls) < 1e-4
    assert [guess for _, _, guess in calls[:2]] == [None, None]
    for i in range(2, 6):
        ahead = 2 * leniency(sizes[i - 1]) - leniency(sizes[i - 2])
        assert calls[i][2] == pytest.approx(max(cost - ahead / sizes[i], 0.35))
    # A cubic in log n is the sum of four terms.
    assert series[4:] == pytest.approx([0, 0], abs=1e-9)
    for n in (3.0, 40.0, 500.0):
        assert threshold_on_curve(cost, series, low, high, n) == pytest.approx(cost - leniency(n) / n, rel=1e-9)


def test_guesses_stay_above_half_of_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[float | None] = []

    def enclose(problem: object, n: float, tolerance: float, guess: float | None) -> Bounds:
        guesses.append(guess)
        threshold = 0.7 if len(guesses) == 1 else 0.0  # so that n (c − c_n) rises steeply
        return Bounds(threshold, threshold)

    monkeypatch.setattr("lenience.solvers.stopping.threshold.enclose_threshold", enclose)
    leniency_series(DiscountedProblem(0.7, 0.9), 3.0, 50.0, nodes=5)
    assert guesses[:3] == [None, None, 0.35]


def test_chebyshev_sums() -> None:
    rng = np.random.default_rng(2)
    for terms in (1, 2, 3, 8):
        series = rng.normal(size=terms)
        x = rng.uniform(-1, 1, 5)
        assert chebyshev_sum(series.tolist(), x) == pytest.approx(np.polynomial.chebyshev.chebval(x, series))


def test_a_picture_of_thresholds() -> None:
    problem = DiscountedProblem(0.7, 0.9)
    sizes = np.geomspace(1.0, 200.0, 7)
    for n, shown in zip(sizes, threshold_curve(problem, sizes), strict=True):
        proved = enclose_threshold(problem, float(n), 1e-8).midpoint
        assert shown == pytest.approx(proved, abs=0.01 * (0.7 - proved))
    one = threshold_curve(problem, np.array([5.0, 5.0]))
    assert one == pytest.approx(np.full(2, enclose_threshold(problem, 5.0, 1e-8).midpoint), abs=1e-6)


def test_look_up_is_bilinear() -> None:
    f = np.array([[1.0, 2.0, 4.0], [3.0, 7.0, 5.0]])

    def plain(i: float, j: float) -> float:
        row, column = min(int(i), 0), min(int(j), 1)
        s, t = i - row, j - column
        corners = f[row : row + 2, column : column + 2]
        return float(np.array([1 - s, s]) @ corners @ np.array([1 - t, t]))

    for i in (0.0, 0.3, 1.0):
        for j in (0.0, 0.6, 1.0, 1.7, 2.0, 2.8):
            n, discount = math.exp(0.5 + 2.0 * i), -math.expm1(-(0.1 + 0.4 * j))
            expected = 0.8 / (1 + discount * math.exp(plain(i, j)))
            assert look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, n, discount) == pytest.approx(expected, rel=1e-12)
    # Outside the sizes of the table, and below its discounts, the nearest are taken.
    assert look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, 1e-9, 0.5) == look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, math.exp(0.5), 0.5)
    assert look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, 0.0, 0.5) == look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, math.exp(0.5), 0.5)
    assert look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, 1e9, 0.5) == look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, math.exp(2.5), 0.5)
    assert look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, math.exp(0.5), 0.01) == pytest.approx(0.8 / (1 + 0.01 * math.e))
    assert look_up(0.8, 0.5, 2.0, 0.1, 0.4, f, 3.0, 0.0) == 0.8


def test_tables_cover_their_discounts() -> None:
    for most in (0.5, 0.9, 0.99):
        table = threshold_table(0.77, most)
        top = table.g0 + table.g_step * (table.f.shape[1] - 1)
        wanted = -math.log1p(-min(max(most, 0.9), 0.9999))
        assert wanted - 1e-9 <= top
        if most >= 0.9:
            assert top < wanted + 0.42 + 1e-9
        assert table.g0 == pytest.approx(-math.log1p(-0.02))
        assert table.n0 == pytest.approx(math.log(SMALLEST))
        assert table.f.shape[0] == 8 * 21 + 1
        assert table.n0 + table.n_step * 8 * 21 == pytest.approx(math.log(LARGEST))


@pytest.mark.parametrize(("n", "distance"), [(4.0, 1e-3), (40.0, 1e-3), (400.0, 3e-3)])
def test_estimated_thresholds_are_close_to_proved_ones(n: float, distance: float) -> None:
    discount = 1.0 - 1e-4
    proved = enclose_threshold(DiscountedProblem(0.8, discount), n, 1e-5).midpoint
    ahead = look_ahead_within(n, 0.8, discount, 1, math.sqrt(1e-5), 1e-4)
    assert ahead is not None
    assert discounted_seconds(n, 0.8, discount, 1, math.sqrt(1e-5), ahead) <= 1e-4
    assert estimate_threshold(0.8, discount, n, 1e-5, 1e-4) == pytest.approx(proved, abs=distance)
    assert estimate_threshold(0.8, discount, n, 1e-5, 10.0) == pytest.approx(proved, abs=1e-5)
