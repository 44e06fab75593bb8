"""The certified solver for late labels against a plain recursion, published-in-the-docs figures and its own claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from lenience import Belief
from lenience.objectives.delayed import Delayed
from lenience.solvers.delayed import plan
from lenience.solvers.delayed.estimate import estimate_delayed, pending_nodes
from lenience.solvers.delayed.plan import DelayedProblem, _poisson_cap, rows_for, solve_problem
from lenience.solvers.delayed.recursion import DelayedBand, solve_delayed
from oracles import continuation, late_values
from rejections import rejected

PRIOR = Belief(2, 1)


def value(problem: Delayed, prior: Belief = PRIOR, tolerance: float = 1e-6) -> tuple[float, float]:
    found = problem.enclose(prior, tolerance=tolerance)[0]
    return found.lower, found.upper


@pytest.mark.parametrize(
    ("arrivals", "discount_rate", "label_delay", "known", "limit"),
    [
        (50, 0.1, 1 / 12, 8.021163, 2),
        (50, 0.1, 1 / 4, 7.790150, 2),
        (50, 0.1, 1, 7.000204, 2),
        (50, 0.5, 1 / 4, 0.687839, 1),
    ],
)
def test_known_values(arrivals: float, discount_rate: float, label_delay: float, known: float, limit: int) -> None:
    policy = Delayed(0.8, arrivals, discount_rate, label_delay).solve(PRIOR, tolerance=1e-8)
    found = policy.value(PRIOR)
    assert abs(found.midpoint - known) <= 5.1e-7  # the figure has six decimals
    assert found.width <= 1e-8 * found.upper * 1.001
    assert policy.limit(PRIOR) == limit
    assert policy.proved(PRIOR)


def test_two_hundred_a_year() -> None:
    policy = Delayed(0.8, 200, 0.1, 1).solve(PRIOR)
    found = policy.value(PRIOR)
    assert found.lower <= 34.031023
    assert found.upper >= 34.031010
    assert found.width <= 1e-6 * found.upper
    assert policy.limit(PRIOR) == 5


def test_a_thousand_a_year() -> None:
    policy = Delayed(0.8, 1000, 0.1, 1).solve(PRIOR, rows=10, tolerance=2e-3)
    found = policy.certificate
    assert found.value.lower <= 187.0540
    assert found.value.upper >= 187.0596
    assert found.estimate in found.value
    assert abs(found.estimate - 187.0554) < 2e-3  # the certified solve to 1e-6 encloses 187.0554


def test_five_thousand_a_year() -> None:
    found = Delayed(0.8, 5000, 0.1, 1).solve_proved(PRIOR, rows=10, tolerance=5e-3).certificate
    assert found.relative_gap <= 5e-3
    assert found.value.lower <= 970.755 + 1.7
    assert found.value.upper >= 972.407 - 1.7
    assert found.estimate in found.value
    assert abs(found.estimate - 971.82) < 0.02


SMALL = st.tuples(
    st.floats(0.15, 0.9),  # cost
    st.floats(0.5, 12),  # arrivals
    st.floats(0.1, 0.6),  # discount rate
    st.floats(0.05, 4),  # delay
    st.floats(0.5, 6),  # n
    st.floats(0.1, 0.9),  # the prior's rate
)


@settings(max_examples=30)
@given(SMALL, st.integers(5, 60), st.integers(1, 12))
def test_bounds_enclose(problem: tuple[float, ...], last: int, cap: int) -> None:
    """However short the look-ahead and low the cap, the truth is inside, for every number pending."""
    c, arrivals, rate, delay, n, mean = problem
    s = n * mean
    sure_low, sure_high, _ = late_values(n, s, c, arrivals, rate, 1 / delay, 150, 40)
    band = DelayedBand(*solve_delayed(n, s, n - s, c, arrivals, rate, 1 / delay, last, cap, 1e-6, 5))
    shift = arrivals / rate * (mean - c)
    slack = 1e-11 * arrivals / rate
    assert np.all(band.lower[: cap + 1] + shift <= sure_high[: cap + 1] + slack)
    assert np.all(band.upper[: cap + 1] + shift >= sure_low[: cap + 1] - slack)
    assert np.all(band.lower <= band.upper)


@settings(max_examples=15)
@given(SMALL)
def test_same_as_the_plain_recursion(problem: tuple[float, ...]) -> None:
    """With nothing dropped and the same rows and cap, the lower bound is the plain recursion's, to rounding."""
    c, arrivals, rate, delay, n, mean = problem
    s = n * mean
    low, high, _ = late_values(n, s, c, arrivals, rate, 1 / delay, 60, 8)
    band = DelayedBand(*solve_delayed(n, s, n - s, c, arrivals, rate, 1 / delay, 60, 8, 0.0, 5))
    g = arrivals / rate
    assert band.lower + g * (mean - c) == pytest.approx(low, abs=1e-11 * g + 1e-13)
    # The upper start is tighter than the plain one, never looser.
    assert np.all(band.upper + g * (mean - c) <= high + 1e-11 * g)


def test_bounds_enclose_across_a_sliding_window() -> None:
    """Thousands of rows, so that the window slides and the band is trimmed on both sides."""
    tight = Delayed(0.8, 200, 0.1, 0.02).enclose(PRIOR, tolerance=1e-7)[0]
    for last, cap, drop in ((900, 3, 1e-2), (2500, 6, 1e-4), (7001, 12, 1e-3)):
        band = DelayedBand(*solve_delayed(2.0, 1.0, 1.0, 0.8, 200.0, 0.1, 50.0, last, cap, drop, 1))
        assert band.lower[0] - 600 <= tight.upper
        assert band.upper[0] - 600 >= tight.lower
    assert band.upper[0] - band.lower[0] < 0.1


@pytest.mark.parametrize("delay", [0.01, 0.001])
def test_no_delay_is_the_paper(delay: float) -> None:
    """As the delay goes to 0 the value goes to γ times the paper's, from below, with a difference of its order."""
    gamma = 20 / 20.5
    low, high = continuation(2.0, 1.0, 0.7, gamma, 800)
    lower, upper = value(Delayed(0.7, 20, 0.5, delay))
    assert upper <= gamma * high * (1 + 1e-6)
    assert gamma * low - lower < 6 * delay
    assert gamma * low - lower > 0.06 * delay


def test_counterexample() -> None:
    """Accept, reject, accept, reject at 0, 1, 2, 3 pending: not quite an exposure limit."""
    *_, gains = late_values(6.0, 4.0, 0.7, 1.0, 0.1, 1.0, 400, 12)
    signs = [1 if low > 0 else -1 if high < 0 else 0 for low, high in gains[0][:4]]
    assert signs == [1, -1, 1, -1]
    prior = Belief(6, 4)
    policy = Delayed(0.7, 1, 0.1, 1).solve(prior)
    assert policy.limit(prior) == 1
    assert policy.proved(prior)
    assert policy.certificate.resumed_proved >= 1
    assert not policy.certificate.proved


@settings(max_examples=10)
@given(SMALL)
def test_limits_are_the_plain_recursion_s(problem: tuple[float, ...]) -> None:
    """Where a limit is proved, the plain recursion does not contradict it, and accepts below it."""
    c, arrivals, rate, delay, n, mean = problem
    prior = Belief(n, n * mean)
    policy = Delayed(c, arrivals, rate, delay).solve(prior, tolerance=1e-7)
    limit = policy.limit(prior)
    *_, gains = late_values(prior.n, prior.s, c, arrivals, rate, 1 / delay, 150, 40)
    if limit is None:
        assert mean >= c * (1 - 1e-12)
    elif policy.proved(prior) and limit < 40:
        assert all(high > 0 for _, high in gains[0][:limit])
        assert gains[0][limit][0] < 0


@settings(max_examples=15)
@given(SMALL, st.floats(1.05, 2))
def test_monotone(problem: tuple[float, ...], factor: float) -> None:
    """V does not fall in the number pending, in s, or as labels come sooner."""
    c, arrivals, rate, delay, n, mean = problem
    found = solve_problem(
        DelayedProblem(n, n * mean, n - n * mean, c, arrivals, rate, 1 / delay),
        rows=1,
        tolerance=1e-6,
        pending_cap=None,
        look_ahead=None,
        seconds=60.0,
    )
    assert np.all(found.lower[:-1] <= found.upper[1:])
    better = Belief(n, min(n * mean * factor, n))
    assert value(Delayed(c, arrivals, rate, delay), better)[1] >= found.lower[0] * (1 - 1e-12)
    later = value(Delayed(c, arrivals, rate, delay * factor), Belief(n, n * mean))
    assert later[0] <= found.upper[0] * (1 + 1e-12) + 1e-12


def test_tolerance_is_met_or_refused() -> None:
    for tolerance in (1e-2, 1e-4, 1e-7):
        policy = Delayed(0.7, 10, 0.2, 0.5).solve(PRIOR, tolerance=tolerance)
        assert policy.certificate.relative_gap <= tolerance
        assert policy.value(PRIOR).width <= tolerance * policy.value(PRIOR).upper
    with rejected("tolerance", "tolerance_not_reached"):
        Delayed(0.7, 10, 0.2, 0.5).solve(PRIOR, tolerance=1e-15)


def test_overrides_are_used_as_they_are() -> None:
    policy = Delayed(0.7, 10, 0.2, 0.5).solve(PRIOR, pending_cap=3, look_ahead=40)
    assert (policy.certificate.pending_cap, policy.certificate.look_ahead) == (3, 40)
    assert policy.certificate.relative_gap > 1e-6
    sure = Delayed(0.7, 10, 0.2, 0.5).solve(PRIOR).value(PRIOR)
    assert policy.value(PRIOR).lower <= sure.upper
    assert policy.value(PRIOR).upper >= sure.lower
    for option in ({"pending_cap": 30}, {"look_ahead": 800}):
        one = Delayed(0.7, 10, 0.2, 0.5).solve(PRIOR, **option).certificate
        assert one.relative_gap <= 1e-6
        assert one.pending_cap == option.get("pending_cap", one.pending_cap)
        assert one.look_ahead == option.get("look_ahead", one.look_ahead)


def test_refusal_has_an_estimate() -> None:
    with rejected("tolerance", "too_large"):
        Delayed(0.8, 1000, 0.1, 1).solve_proved(PRIOR, tolerance=1e-6, seconds=1)
    with rejected("tolerance", "too_large"):
        Delayed(0.8, 50, 0.1, 1).solve(PRIOR, pending_cap=10**6, look_ahead=10**5, seconds=1e9)


def test_a_hopeless_prior_is_worth_nothing() -> None:
    policy = Delayed(0.9, 3, 0.5, 1).solve(Belief(11, 1))
    assert policy.value(Belief(11, 1)).upper == 0
    assert policy.limit(Belief(11, 1)) == 0


def test_certainties() -> None:
    sure = Delayed(0.8, 50, 0.1, 1).solve(Belief(3, 3), rows=5)
    assert sure.value(Belief(3, 3)).midpoint == pytest.approx(100, rel=1e-9)
    assert sure.limit(Belief(3, 3)) is None
    never = Delayed(0.8, 50, 0.1, 1).solve(Belief(3, 0), rows=5)
    assert never.value(Belief(3, 0)).upper == 0
    assert never.limit(Belief(3, 0)) == 0


def test_grid_estimate_is_exact_on_a_full_grid() -> None:
    """With every number pending a node, the estimate is the plain recursion."""
    low, high, _ = late_values(2.0, 1.0, 0.7, 10.0, 0.5, 2.0, 250, 30)
    full = estimate_delayed(2.0, 1.0, 1.0, 0.7, 10.0, 0.5, 2.0, 250, np.arange(31), 0.0)
    assert low[0] - 1e-9 <= full - 20 * 0.2 <= high[0] + 1e-9
    coarse = estimate_delayed(2.0, 1.0, 1.0, 0.7, 10.0, 0.5, 2.0, 250, pending_nodes(30, 1.3), 1e-9)
    assert coarse != full
    assert coarse == pytest.approx(full, rel=1e-3)


def test_rows_for_meets_its_share() -> None:
    problem = Delayed(0.8, 50, 0.5, 0.25).problem(PRIOR)
    assert rows_for(problem, 1e-3) < rows_for(problem, 1e-6)


@pytest.mark.parametrize(("mean", "tail"), [(30.0, 1e-9), (2.5, 1e-280), (0.3, 1e-5), (1000.0, 1e-12), (7.0, 0.2)])
def test_the_cap_of_a_poisson_variable(mean: float, tail: float) -> None:
    cap = _poisson_cap(mean, tail)
    assert poisson.sf(cap - 1, mean) < tail <= poisson.sf(cap - 2, mean)


def test_with_one_size_given_there_are_at_most_two_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    caps: list[int] = []
    solve = plan._solve

    def counted(problem: Any, given: Any, *rest: Any) -> Any:
        caps.append(given.pending_cap)
        return solve(problem, given, *rest)

    monkeypatch.setattr(plan, "_solve", counted)
    problem = Delayed(0.55, 20, 0.5, 0.5).problem(Belief(2, 1))
    wide = solve_problem(problem, rows=1, tolerance=1e-6, pending_cap=2, look_ahead=None, seconds=60.0)
    assert caps == [2, 2, 2]  # a coarse one first
    assert wide.relative_gap > 1e-6
