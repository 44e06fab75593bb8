"""The certified solver against plain recursions, extended precision and published figures."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lenience import Belief, Bounds, Discounted, FiniteHorizon, gittins_index, leniency_rate
from lenience.solvers import gittins_table
from lenience.solvers.stopping.band import put_above, strike_distance
from lenience.solvers.stopping.leniency_rate import _log_binomial
from lenience.solvers.stopping.solve import solve_discounted, solve_horizon
from oracles import continuation, horizon_value, precise_continuation, triangle
from rejections import rejected

costs = st.floats(0.02, 0.98)
priors = st.tuples(st.floats(0.05, 60), st.floats(0.0, 1.0)).map(lambda pair: (pair[0], pair[0] * pair[1]))


@settings(max_examples=40)
@given(priors, costs, st.floats(0.0, 0.93))
@example((2.0, 1.0), 0.8, 0.0)
@example((1.0, 0.5), 0.5, 0.9)
@example((5.0, 0.0), 0.3, 0.9)
@example((5.0, 5.0), 0.3, 0.9)
def test_every_decision_agrees_with_the_double_loop(prior: tuple[float, float], cost: float, discount: float) -> None:
    rows, ahead = 40, 160
    found = solve_discounted(*prior, cost, discount, rows, 1e-7)
    oracle = triangle(*prior, cost, discount, rows + ahead)
    for k in range(rows):
        lower, upper = oracle[k]
        for j in range(k + 1):
            if j >= found.accept_from[k]:
                assert upper[j] > -1e-12, (k, j)
            if j < found.stop_below[k]:
                assert lower[j] <= 1e-12, (k, j)
    assert found.continuation.lower <= oracle[0][1][0] + 1e-12
    assert found.continuation.upper >= oracle[0][0][0] - 1e-12
    assert found.continuation.width <= 1e-6


@settings(max_examples=12)
@given(priors, costs, st.floats(0.95, 0.995))
def test_value_is_enclosed_at_high_discounts(prior: tuple[float, float], cost: float, discount: float) -> None:
    found = solve_discounted(*prior, cost, discount, 1, 1e-8)
    lower, upper = continuation(*prior, cost, discount, min(math.ceil(25 / (1 - discount)), 4000))
    assert found.continuation.lower <= upper + 1e-10
    assert found.continuation.upper >= lower - 1e-10
    assert found.continuation.width <= 1e-8


@settings(max_examples=15)
@given(priors, costs, st.floats(0.1, 0.6))
def test_enclosures_hold_in_extended_precision(prior: tuple[float, float], cost: float, discount: float) -> None:
    # At the smallest tolerance the enclosure is as narrow as rounding allows, and must still hold.
    found = solve_discounted(*prior, cost, discount, 1, 1e-15)
    exact = precise_continuation(*prior, cost, discount, 90)
    slack = 1.1 * discount**90 / (1 - discount)
    assert found.continuation.lower <= exact + slack
    assert found.continuation.upper >= exact - 1e-30
    assert found.continuation.width < 1e-12


@settings(max_examples=60)
@given(priors, costs, st.floats(0.1, 0.7), st.integers(0, 6))
def test_a_short_look_ahead_still_encloses(
    prior: tuple[float, float], cost: float, discount: float, look_ahead: int
) -> None:
    found = solve_discounted(*prior, cost, discount, 1, 1e-9, look_ahead)
    lower, upper = continuation(*prior, cost, discount, 120)
    assert found.continuation.lower <= upper + 1e-13
    assert found.continuation.upper >= lower - 1e-13


@settings(max_examples=10)
@given(priors, costs, st.sampled_from([0.999, 0.9995, 0.9999]))
def test_bellman_holds_where_no_oracle_reaches(prior: tuple[float, float], cost: float, discount: float) -> None:
    n, s = prior
    tolerance = 1e-5
    here = solve_discounted(n, s, cost, discount, 1, tolerance).continuation
    up = solve_discounted(n + 1, s + 1, cost, discount, 1, tolerance).value
    down = solve_discounted(n + 1, s, cost, discount, 1, tolerance).value
    p = s / n
    assert here.lower <= p - cost + discount * (p * up.upper + (1 - p) * down.upper) + 1e-9
    assert here.upper >= p - cost + discount * (p * up.lower + (1 - p) * down.lower) - 1e-9


@settings(max_examples=25)
@given(priors, costs, st.integers(1, 14), st.floats(0.5, 1.0))
def test_finite_horizon_is_optimal_even_among_those_that_pause(
    prior: tuple[float, float], cost: float, horizon: int, discount: float
) -> None:
    found = solve_horizon(*prior, cost, discount, horizon, horizon, 1e-12)
    exact = horizon_value(*prior, cost, discount, horizon)
    assert found.value.lower - 1e-13 <= exact <= found.value.upper + 1e-13
    assert found.value.width < 1e-11


def test_checked_values() -> None:
    value = Discounted(0.8, 0.99).solve(Belief(2, 1)).value(Belief(2, 1))
    assert 1.02916652 <= value.lower <= value.upper <= 1.02916655


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, 0.217329403), (10, 0.654376406), (100, 0.777767907), (1000, 0.797446613), (10000, 0.799738907)],
)
def test_checked_thresholds(n: int, expected: float) -> None:
    threshold = Discounted(0.8, 0.99).solve(Belief(2, 1)).threshold(n)
    assert threshold.width <= 1e-9
    assert threshold.lower - 5e-10 <= expected <= threshold.upper + 5e-10


@pytest.mark.parametrize(
    ("discount", "expected"),
    [
        (0.5, 0.5590188346),
        (0.7, 0.6045957711),
        (0.8, 0.6413153191),
        (0.9, 0.7028891938),
        (0.95, 0.7614336343),
        (0.99, 0.8698599944),
        (0.995, 0.9031641966),
        (0.999, 0.953756492),
        (0.9999, 0.985062011),
    ],
)
def test_checked_gittins_indices(discount: float, expected: float) -> None:
    index = gittins_index(Belief(2, 1), discount)
    assert index.lower - 6e-10 <= expected <= index.upper + 6e-10
    assert index.width < 1e-8


def test_published_gittins_indices() -> None:
    at_90 = {(2, 1): 0.8001, (3, 1): 0.8452, (1, 2): 0.5001, (2, 2): 0.6346, (3, 3): 0.6010, (1, 3): 0.3796}
    at_99 = {(1, 1): 0.8699, (1, 2): 0.7005, (2, 1): 0.9102, (2, 2): 0.7844, (3, 3): 0.7308}
    for discount, table in ((0.9, at_90), (0.99, at_99)):
        pairs = np.array(list(table))
        lower, upper = gittins_table(pairs[:, 0], pairs[:, 1], discount, 1e-7)
        assert np.all(np.abs((lower + upper) / 2 - np.array(list(table.values()))) <= 0.5e-4 + 1e-7)


def test_an_index_needs_an_observation() -> None:
    lower, upper = gittins_table([0, 1], [1, 0], 0.9, 1e-6)
    assert lower[0] <= 0 <= upper[0]
    assert lower[1] <= 1 <= upper[1]
    for alpha, beta in [(0, 0), (-1, 2), (2, -1), (np.inf, 1), (1, np.nan)]:
        with rejected("alpha"):
            gittins_table([1, alpha], [1, beta], 0.9)


@settings(max_examples=20)
@given(priors, st.floats(0.1, 0.97))
def test_index_is_the_cost_at_which_accepting_is_worth_nothing(prior: tuple[float, float], discount: float) -> None:
    index = gittins_index(Belief(*prior), discount, 1e-8)
    assert Belief(*prior).mean <= index.upper
    if index.lower > 1e-6 and index.upper < 1 - 1e-6 and index.width > 0:
        above = Discounted(min(index.upper + 1e-7, 0.999999), discount).solve(Belief(*prior), rows=1)
        below = Discounted(max(index.lower - 1e-7, 1e-6), discount).solve(Belief(*prior), rows=1)
        assert below.accepts(Belief(*prior))
        assert not above.accepts(Belief(*prior))


@pytest.mark.parametrize(
    ("cost", "discount", "expected"),
    [
        (0.8, 0.99, 2.61800741),
        (0.5, 0.9, 0.839725),
        (0.5, 0.95, 1.311249),
        (0.5, 0.99, 3.276684),
        (0.9, 0.9, 0.464331),
        (0.9, 0.95, 0.748133),
        (0.9, 0.99, 1.929856),
    ],
)
def test_checked_leniency_rates(cost: float, discount: float, expected: float) -> None:
    assert leniency_rate(cost, discount) == pytest.approx(expected, abs=6e-7)


@settings(max_examples=20)
@given(costs, st.floats(0.0, 0.95))
def test_leniency_rate_is_the_plain_sum(cost: float, discount: float) -> None:
    total = 0.0
    for k in range(1, 400):
        shortfall = sum(
            (k * cost - i) * math.comb(k, i) * cost**i * (1 - cost) ** (k - i) for i in range(math.ceil(k * cost))
        )
        total += discount**k / k * shortfall
    assert leniency_rate(cost, discount) == pytest.approx(total, rel=1e-7, abs=1e-12)


def test_binomial_logarithms_are_exact_to_rounding() -> None:
    for c in (0.2, 0.5, 0.8):
        for k in (1, 7, 29, 30, 31, 45, 200, 3000):
            m = math.floor(k * c) + 1
            with mpmath.workdps(40):
                exact = mpmath.log(mpmath.binomial(k, m)) + m * mpmath.log(c) + (k - m) * mpmath.log1p(-c)
            found = float(_log_binomial(np.array([float(k)]), np.array([float(m)]), c)[0])
            assert found == pytest.approx(float(exact), abs=2e-13)


def test_thresholds_approach_the_leniency_rate() -> None:
    problem = Discounted(0.8, 0.95)
    threshold = problem.solve(Belief(2, 1)).threshold(1e5, 1e-9)
    assert 1e5 * (0.8 - threshold.midpoint) == pytest.approx(leniency_rate(0.8, 0.95), rel=1e-3)


def test_a_million_rows_are_decided() -> None:
    found = solve_discounted(2.0, 1.0, 0.8, 0.999, 1_000_000, 1e-9)
    assert found.undecided == 0
    steps = np.diff(found.accept_from)
    assert steps.min() >= 0
    assert steps.max() <= 1


def test_discounts_very_near_one() -> None:
    found = solve_discounted(2.0, 1.0, 0.8, 0.99999, 10, 1e-6)
    assert found.undecided == 0
    assert found.value.width < 1e-4
    assert 1990 < found.value.lower < 2000


def test_absurd_sizes_are_refused_with_an_estimate() -> None:
    with rejected("rows", "too_large"):
        Discounted(0.8, 1 - 1e-10).solve(Belief(2, 1))
    with rejected("rows", "too_large"):
        Discounted(0.8, 0.9).solve(Belief(2, 1), rows=10**9)
    with rejected("rows", "too_large"):
        FiniteHorizon(0.8, 10**9).solve(Belief(2, 1))
    with rejected("discount", "too_large"):
        leniency_rate(0.8, 1 - 1e-12)


def test_a_given_look_ahead_is_kept_and_leaves_states_undecided() -> None:
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=1000, look_ahead=0)
    assert policy.certificate.look_ahead == 0
    assert policy.certificate.undecided > 0
    assert "All but" in policy.certificate.statement
    proved = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=1000)
    assert proved.certificate.proved
    # What was proved with little look-ahead is what is true.
    assert np.all(policy.accept_from >= proved.accept_from)


def test_the_certificate_is_wide_where_states_are_undecided() -> None:
    for rows in (1, 3):
        policy = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=rows, look_ahead=0)
        assert policy.certificate.undecided > 0
        assert policy.certificate.width >= policy.value(Belief(2, 1)).lower


def test_finite_horizons_stay_in_a_band() -> None:
    # Without discounting the band is about as wide as the belief's mean can still move: its work grows like H^1.5.
    small, large = (solve_horizon(2.0, 1.0, 0.8, 1.0, h, 1, 1e-9).states for h in (2_000, 32_000))
    assert large / small < 16**1.7


def test_the_last_discount_before_one_is_refused_with_an_estimate() -> None:
    with rejected("rows", "too_large"):
        Discounted(0.8, math.nextafter(1.0, 0.0)).solve(Belief(2, 1))


def test_discount_zero_with_a_tolerance_below_rounding() -> None:
    assert solve_discounted(2.0, 1.0, 0.8, 0.0, 5, 1e-16).undecided == 0


def test_sizes_that_are_no_numbers_of_their_own_are_refused() -> None:
    for n in (1e301, 1e16, 1e-310):
        with rejected("n"):
            Discounted(0.8, 0.9).solve(Belief(n, n / 2))


def test_the_index_without_a_future_holds_the_exact_rate() -> None:
    index = gittins_index(Belief(3, 1), 0.0)
    assert Fraction(index.lower) < Fraction(1, 3) < Fraction(index.upper)


def test_ties_at_discount_zero_are_exact() -> None:
    # 0.75 is a binary fraction, so 3 of 4 is exactly at the cost: not above it, hence rejected.
    policy = Discounted(0.75, 0.0).solve(Belief(2, 1), rows=30)
    assert policy.certificate.proved
    assert not policy.accepts(Belief(4, 3))
    assert policy.accepts(Belief(5, 4))
    assert policy.threshold(4, 1e-3) == Bounds(0.75, 0.75)
    assert FiniteHorizon(0.8, 1).solve(Belief(2, 1)).threshold(2, 1e-3) == Bounds(0.8, 0.8)
    for n in range(2, 32):
        least = policy.least_accepted(float(n))
        assert least is None or (least > 0.75 * n and least - 1 <= 0.75 * n)


@given(costs, st.floats(0.01, 1e6), st.floats(0, 1), st.integers(0, 10**6))
def test_distance_to_the_strike_is_exact_to_rounding(cost: float, n: float, share: float, k: int) -> None:
    s = share * n
    j = int(share * k)
    exact = Fraction(cost) * (Fraction(n) + k) - (Fraction(s) + j)
    assert strike_distance(cost, n, s, k, j) == pytest.approx(float(exact), rel=1e-14, abs=1e-24 * (n + k))


@settings(max_examples=50)
@given(st.floats(0.1, 1000), st.floats(0.01, 0.99), costs)
def test_cheap_upper_start_is_above_the_clairvoyant(n: float, mean: float, cost: float) -> None:
    from oracles import knowing

    variance = mean * (1 - mean) / (n + 1)
    gain = knowing(n, mean * n, cost)
    loss = gain - (mean - cost)
    bound = put_above(abs(mean - cost), n, variance)
    assert (loss if mean >= cost else gain) <= bound + 1e-13


def test_distance_to_the_strike_next_to_it() -> None:
    """Where c n and s cancel to the last digits, the rounding of both sums counts."""
    rng = np.random.default_rng(6)
    for _ in range(300):
        k, j = int(rng.integers(5, 40)), int(rng.integers(1, 5))
        s = float(rng.uniform(0.5, 4.0))
        cost = float(rng.uniform(0.1, 0.45))
        n = (s + j) / cost - k
        if n < s:
            continue
        exact = Fraction(cost) * (Fraction(n) + k) - (Fraction(s) + j)
        assert strike_distance(cost, n, s, k, j) == pytest.approx(float(exact), rel=1e-9, abs=1e-30)
