"""Enclosures as narrow as rounding allows, held against forty digits; and starts that bound from both sides."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import mpmath
import numpy as np
import pytest

from lenience import Belief, Bounds, Discounted, FiniteHorizon, evaluate
from lenience.core.objective import StoppingObjective
from lenience.policies import Constant
from lenience.solvers.delayed.recursion import DelayedBand, solve_delayed
from lenience.solvers.stopping.band import Band, solve_band
from lenience.solvers.stopping.free_labels import decay_rate, free_label_part
from lenience.solvers.stopping.solve import solve_discounted, solve_horizon
from lenience.solvers.stopping.threshold import enclose_threshold
from oracles import continuation, horizon_value, late_values, precise_late_puts, precise_put

PROBLEMS = [
    (2.0, 1.0, 0.8, 0.85),
    (1.0, 0.5, 0.3, 0.8),
    (3.7, 2.9, 0.6, 0.8),
    (10.1, 3.3, 0.35, 0.85),
    (0.2, 0.1, 0.55, 0.85),
    (7.0, 6.5, 0.9, 0.8),
]


def band_of(
    n: float, s: float, cost: float, discount: float, last: int, horizon: bool = False, drop: float = 1e-300
) -> Band:
    """Solve with nothing dropped from the band, so that only the starts and rounding widen the enclosure."""
    rows = np.empty(1, dtype=np.int64)
    counter = np.zeros(2, dtype=np.int64)
    return Band(*solve_band(n, s, n - s, cost, discount, last, horizon, drop, rows, rows.copy(), counter))


@pytest.mark.parametrize(("n", "s", "cost", "discount"), PROBLEMS)
def test_rounding_alone_keeps_the_exact_put_inside(n: float, s: float, cost: float, discount: float) -> None:
    # 44/(1 − γ) rows ahead the two starts differ by less than 10⁻¹⁹: what is left of the width is rounding.
    last = math.ceil(44 / (1 - discount))
    band = band_of(n, s, cost, discount, last)
    value, go = precise_put(n, s, cost, discount, last)
    assert band.lower < value < band.upper
    assert band.continue_lower < go < band.continue_upper
    assert band.upper - band.lower < 1e-12


# Almost certain to be all or nothing: here the bound of one who knows p is tight.
@pytest.mark.parametrize(("n", "s", "cost", "discount"), [*PROBLEMS, (1e-6, 6e-7, 0.5, 0.85)])
@pytest.mark.parametrize("horizon", [1, 2, 9, 40])
def test_horizons_keep_the_exact_put_inside(n: float, s: float, cost: float, discount: float, horizon: int) -> None:
    for factor in (1.0, discount):
        band = band_of(n, s, cost, factor, horizon, horizon=True)
        value, go = precise_put(n, s, cost, factor, horizon, finite=True)
        assert band.lower <= value <= band.upper
        assert band.continue_lower <= go <= band.continue_upper
        # Beside rounding, the bound of one who knows p may only narrow the enclosure.
        assert band.upper - band.lower < 1e-11 * horizon


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.6, 0.97])
def test_late_labels_keep_the_exact_put_inside(mean: float) -> None:
    # Labels come so soon that more than 9 are never pending, to 19 digits: rounding is all that is left.
    n, cost, arrivals, rate, resolve = 2.3, 0.6, 1.0, 1.0, 400.0
    s = n * mean
    band = DelayedBand(*solve_delayed(n, s, n - s, cost, arrivals, rate, resolve, 70, 9, 1e-300, 1))
    exact = precise_late_puts(n, s, cost, arrivals, rate, resolve, 70, 9)
    for m in range(3):
        assert band.lower[m] < exact[m] < band.upper[m]
        assert band.upper[m] - band.lower[m] < 1e-12


def test_the_width_counts_the_roundings_of_every_row() -> None:
    # From 45 of 50 at a cost of 0.5 no state below the cost is nearer than 40 rows, and each row may cost 8 roundings.
    band = band_of(50.0, 45.0, 0.5, 0.8, 400)
    assert band.upper - band.lower >= 2 * 8 * 2.0**-53 * 40 * band.upper
    assert band.upper - band.lower <= 1e-11 * band.upper


def test_the_width_of_late_labels_counts_the_roundings_of_every_row() -> None:
    # From 22 of 24 at a cost of 0.5 no state below the cost is nearer than 20 rows, and each may cost 22 roundings.
    band = DelayedBand(*solve_delayed(24.0, 22.0, 2.0, 0.5, 1.0, 1.0, 400.0, 130, 8, 1e-300, 1))
    assert band.upper[0] - band.lower[0] >= 2 * 22 * 2.0**-53 * 20 * band.upper[0]
    assert band.upper[0] - band.lower[0] <= 1e-11 * band.upper[0]


@pytest.mark.parametrize("cost", [0.3, 0.7])
@pytest.mark.parametrize("delay", [0.3, 2.0])
@pytest.mark.parametrize("prior", [(2.0, 1.0), (5.0, 3.5)])
def test_small_caps_enclose(cost: float, delay: float, prior: tuple[float, float]) -> None:
    n, s = prior
    arrivals, rate = 6.0, 0.4
    low, high, _ = late_values(n, s, cost, arrivals, rate, 1 / delay, 140, 30)
    shift = arrivals / rate * (s / n - cost)
    for cap in (1, 2, 3, 5):
        for last in (1, 2, 3, 6, 12, 60, 130):
            band = DelayedBand(*solve_delayed(n, s, n - s, cost, arrivals, rate, 1 / delay, last, cap, 1e-9, 1))
            assert np.all(band.lower + shift <= high[: cap + 1] + 1e-9), (cap, last)
            assert np.all(band.upper + shift >= low[: cap + 1] - 1e-9), (cap, last)


@pytest.mark.parametrize("prior", [(1.0, 0.5), (1.0, 0.25), (0.5, 0.25), (2.0, 1.0), (1.5, 1.2)])
@pytest.mark.parametrize("cost", [0.1, 0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_a_look_ahead_of_nothing_still_encloses(prior: tuple[float, float], cost: float, discount: float) -> None:
    exact = continuation(*prior, cost, discount, 1500)
    for rows in (1, 2, 4):
        found = solve_discounted(*prior, cost, discount, rows, 1e-9, look_ahead=0)
        assert found.continuation.lower <= exact[1] + 1e-9
        assert found.continuation.upper >= exact[0] - 1e-9
        assert found.value.lower <= max(exact[1], 0.0) + 1e-9
        assert found.value.upper >= max(exact[0], 0.0) - 1e-9


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
def test_a_short_look_ahead_proves_no_wrong_stop(discount: float, cost: float) -> None:
    known = solve_discounted(2.0, 1.0, cost, discount, 60, 1e-8)
    for rows in range(1, 61):
        for ahead in (0, 1, 3):
            short = solve_discounted(2.0, 1.0, cost, discount, rows, 1e-8, look_ahead=ahead)
            assert np.all(short.stop_below <= known.accept_from[:rows]), (rows, ahead)
            assert np.all(short.accept_from >= known.stop_below[:rows]), (rows, ahead)
            assert short.undecided == int(np.sum(short.accept_from - short.stop_below))


def test_the_value_of_an_undecided_prior_is_enclosed() -> None:
    # At the prior the enclosure of Ṽ holds 0, and the true value is above it.
    found = solve_discounted(2.0, 1.0, 0.8, 0.99, 1, 1e-9, look_ahead=0)
    assert found.undecided == 1
    assert found.value.upper > 1.0291665
    assert found.value.lower == 0.0


@pytest.mark.parametrize("discount", [0.9, 0.95])
@pytest.mark.parametrize("cost", [0.3, 0.7])
@pytest.mark.parametrize("tolerance", [1e-6, 0.1, 1.0])
def test_certain_priors_have_known_values_under_any_tolerance(discount: float, cost: float, tolerance: float) -> None:
    always = Constant(1.0)
    for belief, each in ((Belief(3, 3), 1 - cost), (Belief(3, 0), -cost)):
        bounds = evaluate(always, Discounted(cost, discount), belief, tolerance=tolerance)
        assert each / (1 - discount) in bounds
        assert bounds.width <= 2 * tolerance + 1e-9


@pytest.mark.parametrize("cost", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_horizons_with_a_coarse_tolerance_enclose(cost: float, discount: float) -> None:
    for horizon in (3, 12, 30):
        exact = horizon_value(2.0, 1.0, cost, discount, horizon)
        for tolerance in (1e-9, 1e-2, 0.3):
            found = solve_horizon(2.0, 1.0, cost, discount, horizon, horizon, tolerance)
            assert found.value.lower - 1e-12 <= exact <= found.value.upper + 1e-12
            assert found.value.width <= max(tolerance, 1e-9)


def test_horizon_values_are_those_of_the_policy_itself() -> None:
    problem = FiniteHorizon(0.6, 25, 0.97)
    policy = problem.solve(Belief(2, 1))
    earned = evaluate(policy, problem, Belief(2, 1))
    exact: Any = mpmath.mpf(horizon_value(2.0, 1.0, 0.6, 0.97, 25))
    assert earned.lower <= exact <= earned.upper
    assert policy.value(Belief(2, 1)).lower - 1e-12 <= exact <= policy.value(Belief(2, 1)).upper + 1e-12


class SteepObjective:
    """An objective whose value of accepting is exactly a million times the distance from a known threshold."""

    cost = 0.9
    discount = 0.9

    def __init__(self, root: Fraction) -> None:
        self.root = root

    def remaining(self, acceptances: int) -> SteepObjective:
        return self

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        exact = 10**6 * (Fraction(belief.s) / Fraction(belief.n) - self.root)
        bounds = Bounds(math.nextafter(float(exact), -math.inf), math.nextafter(float(exact), math.inf))
        return bounds, bounds


def test_a_threshold_counts_the_rounding_of_the_rate_that_was_evaluated() -> None:
    cases = 0
    for i in range(1, 400):
        rate, n = 0.1 + i / 517, 3.3 + i / 11
        evaluated = Fraction(rate * n) / Fraction(n)
        if evaluated == Fraction(rate) or rate > 0.89:
            continue
        # The threshold lies between the rate that was asked for and the one that was evaluated.
        root = (evaluated + Fraction(rate)) / 2
        bounds = enclose_threshold(cast(StoppingObjective, SteepObjective(root)), n, 1e-9, rate)
        assert Fraction(bounds.lower) <= root <= Fraction(bounds.upper)
        assert bounds.width <= 1.1e-9
        cases += 1
    assert cases > 100


@pytest.mark.parametrize(("n", "s", "cost", "discount"), PROBLEMS)
def test_dropped_states_widen_the_enclosure_and_keep_the_put_inside(
    n: float, s: float, cost: float, discount: float
) -> None:
    fine = band_of(n, s, cost, discount, math.ceil(44 / (1 - discount)))
    widths = []
    for drop in (0.3, 0.05, 0.01, 1e-3, 1e-6):
        for last in (1, 2, 3, 6, 12, 40, 120):
            rough = band_of(n, s, cost, discount, last, drop=drop)
            assert rough.lower <= fine.upper
            assert rough.upper >= fine.lower
            assert rough.continue_lower <= fine.continue_upper
            assert rough.continue_upper >= fine.continue_lower
            widths.append(rough.upper - rough.lower)
    assert widths[-1] < 1e-4
    assert widths[-1] <= max(widths)


@pytest.mark.parametrize("failures", [2.0**-53, 2.0**-50])
@pytest.mark.parametrize("cost", [0.6, 0.9])
def test_a_rate_that_rounds_to_one_has_something_to_learn(failures: float, cost: float) -> None:
    found = band_of(1.0, 1.0 - failures, cost, 0.9, 1)
    assert found.upper >= precise_put(1.0, 1.0 - failures, cost, 0.9, 60)[0] > 0.0


@pytest.mark.parametrize("kink", [1e-20, 1e-13, 1e-5, 0.3, 1 - 1e-5, 1 - 2.0**-53])
@pytest.mark.parametrize("gamma", [0.0, 0.01, 0.9, 1 - 1e-7, 1 - 1e-12])
def test_exponential_bounds_are_supermartingales_in_forty_digits(kink: float, gamma: float) -> None:
    with mpmath.workdps(40):
        for side, at in ((0, mpmath.mpf(kink)), (1, 1 - mpmath.mpf(kink))):
            rate = decay_rate(gamma, *((kink, 1.0 - kink), (1.0 - kink, kink))[side])
            mean = at * mpmath.exp(-rate * (1 - at)) + (1 - at) * mpmath.exp(rate * at)
            assert rate > 0.0
            assert gamma * mean <= 1


@pytest.mark.parametrize("gamma", [1 - 2.0**-53, 1 - 2.0**-46])
def test_a_discount_next_to_one_has_bounds(gamma: float) -> None:
    assert decay_rate(gamma, 0.8, 0.2) == 0.0
    found = band_of(40.0, 33.0, 0.8, gamma, 50, drop=1e-3)
    assert 0.0 <= found.lower < found.upper < 1.0
    assert found.upper >= band_of(40.0, 33.0, 0.8, 0.99, 300).lower


def test_what_free_labels_add_does_not_hide_in_the_rounding_of_a_large_belief() -> None:
    # One state above the kink at n = 10¹⁵ is a distance of 10⁻¹⁵, and the rounding of s/n is a tenth of it.
    n, gamma = 1e15, 0.5
    rates = decay_rate(gamma, 0.3, 0.7), decay_rate(gamma, 0.7, 0.3)
    parts = [free_label_part(i / n, 0.21, n, 0.3, 1.0, *rates) for i in range(6)]
    assert parts == sorted(parts, reverse=True)
    found = band_of(n, 0.3 * n + 1.0, 0.3, gamma, 3)
    exact = precise_put(n, 0.3 * n + 1.0, 0.3, gamma, 60)[0]
    assert found.lower <= exact <= found.upper
