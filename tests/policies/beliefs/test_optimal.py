"""Solved policies: look-ups, beliefs off the lattice, words, JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import Belief, Discounted, FiniteHorizon, OptimalPolicy
from lenience.core.errors import InputError
from rejections import rejected


@cache
def solved() -> OptimalPolicy:
    policy: OptimalPolicy = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=200)
    return policy


@settings(max_examples=40)
@given(st.integers(0, 199), st.floats(0, 1))
def test_lookup_equals_a_solve_of_its_own(k: int, share: float) -> None:
    belief = Belief(2 + k, 1 + round(share * k))
    own = Discounted(0.8, 0.99).solve(belief, rows=1)
    assert solved().accepts(belief) == own.accepts(belief) == (own.continuation(belief).lower > 0)


@settings(max_examples=40)
@given(st.floats(0.2, 400), st.floats(0, 1))
def test_beliefs_off_the_lattice_are_decided_by_the_threshold(n: float, rate: float) -> None:
    belief = Belief(n, rate * n)
    threshold = solved().threshold(n, 1e-7)
    if belief.mean > threshold.upper:
        assert solved().accepts(belief)
    if belief.mean < threshold.lower:
        assert not solved().accepts(belief)


def test_scalars_and_arrays_agree_within_and_beyond_the_table() -> None:
    rng = np.random.default_rng(1)
    k = rng.integers(0, 600, 300)
    n, s = 2.0 + k, 1.0 + rng.integers(0, k + 1)
    together = solved().acceptance(n, s)
    assert together.shape == n.shape
    assert np.array_equal(together, [solved().acceptance(a, b)[()] for a, b in zip(n, s, strict=True)])
    row = solved().acceptance(12.0, np.arange(1.0, 12.0))
    assert np.array_equal(row, solved().acceptance(np.full(11, 12.0), np.arange(1.0, 12.0)))
    assert set(np.unique(together)) == {0.0, 1.0}
    assert solved().acceptance([[10, 10]], [[6], [7]]).tolist() == [[0, 0], [1, 1]]


def test_beyond_the_table_agrees_with_a_longer_table() -> None:
    longer = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=2000)
    n = np.repeat(np.arange(1500.0, 1510.0), 3)
    s = np.tile([1195.0, 1199.0, 1205.0], 10)
    assert np.array_equal(solved().acceptance(n, s), longer.acceptance(n, s))


def test_states_outside_the_triangle_are_decided() -> None:
    assert solved().accepts(Belief(5, 5))
    assert not solved().accepts(Belief(5, 0.5))


@pytest.mark.parametrize(
    ("belief", "start"),
    [
        (
            Belief(10, 7),
            "Accept: 7 of 10 succeeded (70%), below the break-even of 80%. The minimum after 10 observations is 65.4%",
        ),
        (Belief(10, 8), "Accept: 8 of 10 succeeded (80%), not above the break-even of 80%. The minimum"),
        (Belief(10, 9), "Accept: 9 of 10 succeeded (90%), above the break-even of 80%."),
        (Belief(10, 6), "Reject: 6 of 10 succeeded (60%). The minimum after 10 observations is 65.4%."),
        (
            Belief(1, 0.5),
            "Accept: 0.5 of 1 succeeded (50%), below the break-even of 80%. The minimum after 1 observation is 21.7%",
        ),
    ],
)
def test_explanations(belief: Belief, start: str) -> None:
    assert solved().explain(belief).startswith(start)


def test_rates_that_are_nearly_equal_are_told_apart() -> None:
    text = solved().explain(Belief(10_000, 7998))
    assert "(79.98%), below the break-even of 80%" in text
    assert "is 79.97" in text


@pytest.mark.parametrize("ask", ["value", "accepts", "explain", "continuation"])
def test_what_is_no_belief_is_named(ask: str) -> None:
    with rejected("belief"):
        getattr(solved(), ask)((10, 7))


@pytest.mark.parametrize("n", [float("nan"), float("inf")])
def test_acceptance_of_what_is_no_number(n: float) -> None:
    with rejected("n"):
        solved().acceptance(n, 1.0)


def test_finite_horizons_end() -> None:
    policy = FiniteHorizon(0.8, 100).solve(Belief(2, 1))
    assert policy.accepts(Belief(10, 7))
    assert not policy.accepts(Belief(102, 101))
    assert policy.value(Belief(102, 101)).upper == 0
    assert policy.explain(Belief(102, 101)) == "Reject: the horizon of 100 individuals is over."
    with rejected("n"):
        policy.threshold(102)
    with rejected("n"):
        policy.threshold(3.5)
    # Near the end there is nothing left to learn for: the threshold is the cost.
    assert policy.threshold(101).midpoint == pytest.approx(0.8, abs=1e-8)
    assert policy.threshold(5).upper < policy.threshold(50).lower


@pytest.mark.parametrize("solve", [solved, lambda: FiniteHorizon(0.7, 50, 0.9).solve(Belief(1, 0.5))])
def test_json_round_trip(solve: Callable[[], OptimalPolicy]) -> None:
    policy = solve()
    again = OptimalPolicy.from_json(policy.to_json())
    assert repr(again) == repr(policy)
    assert np.array_equal(again.accept_from, policy.accept_from)
    assert again.certificate == policy.certificate
    with rejected("accept_from", "length_mismatch"):
        OptimalPolicy.from_json(policy.to_json().replace('"accept_from":[', '"accept_from":[0,'))
    with rejected("text", "invalid_file"):
        OptimalPolicy.from_json('{"type": "optimal"}')


def test_rows_outside_the_table_are_named() -> None:
    with rejected("n"):
        solved().least_accepted(2.5)
    with rejected("n"):
        solved().least_accepted(500)
    nobody = Discounted(0.99, 0.1).solve(Belief(2, 1), rows=3)
    assert nobody.least_accepted(2.0) is None
    assert not nobody.accepts(Belief(2, 1))


def test_tiny_priors_are_told_apart_from_beliefs_beside_them() -> None:
    policy = Discounted(0.5, 0.1).solve(Belief(1e-10, 9e-11))
    beside = Belief(1e-10, 1e-11)
    assert policy.continuation(beside).upper < -0.39
    assert not policy.accepts(beside)
    assert policy.acceptance([1e-10, 1e-10], [1e-11, 9e-11]).tolist() == [0.0, 1.0]
    assert policy.boundary(beside.n, beside.s, 3) is None
    assert not policy.accepts(Belief(5e-10, 9e-11))
    assert policy.accepts(Belief(1e-10, 9e-11).observe([True, True]))


def test_beliefs_beside_the_lattice_are_not_looked_up() -> None:
    policy = solved()
    with pytest.raises(InputError, match=r"n must be prior\.n"):
        policy.least_accepted(10.001)
    assert policy.boundary(4.001, 2, 3) is None
    assert policy.boundary(4, 2.001, 3) is None
    assert policy.stop_floor(10.001) == -1.0
    # The threshold lies between two states: just above it one accepts, although the state below is rejected.
    for n in range(5, 60):
        threshold = policy.threshold(n, 1e-7)
        just_above, just_below = (threshold.upper + 1e-6) * n, (threshold.lower - 1e-6) * n
        assert policy.acceptance(n, [just_below, just_above]).tolist() == [0.0, 1.0]
        assert policy.acceptance([n, n], [just_below, just_above]).tolist() == [0.0, 1.0]


def test_an_undecided_belief_is_rejected() -> None:
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=50, tolerance=0.5)
    undecided = 0
    for n in np.arange(3.3, 40.0, 2.0):
        threshold = Discounted(0.8, 0.99).solve(Belief(n, n / 2), rows=1).threshold(n, 1e-9).midpoint
        for rate in (threshold - 1e-6, threshold, threshold + 1e-6):
            belief = Belief(float(n), float(rate * n))
            worth = policy.continuation(belief)
            undecided += worth.lower <= 0 < worth.upper
            assert policy.accepts(belief) == (worth.lower > 0)
    assert undecided > 5


@pytest.mark.parametrize("objective", [Discounted(0.8, 0.99), Discounted(0.3, 0.7), FiniteHorizon(0.7, 60)])
def test_the_stop_floor_is_the_best_rate_that_is_rejected(objective: Discounted | FiniteHorizon) -> None:
    policy = objective.solve(Belief(2, 1), rows=60)
    for k in range(60):
        n = 2.0 + k
        good = 1.0 + np.arange(k + 1)
        rejected = good[policy.acceptance(n, good) == 0.0]
        floor = policy.stop_floor(n)
        if rejected.size:
            assert floor == rejected.max() / n
        else:
            assert floor == -1.0
    assert policy.stop_floor(1.0) == -1.0
    # At its horizon a policy stops at every rate. Without one it stops sooner or later if p is at most the cost.
    finite = objective.horizon is not None
    assert policy.stop_ceiling == policy.stop_limit == (1.0 if finite else objective.cost)
    if objective.horizon is not None:
        assert policy.stop_floor(policy.prior.n + objective.horizon) == 1.0


def test_the_boundary_counts_from_the_belief_given() -> None:
    policy = solved()
    least = policy.boundary(7, 4, 20)
    assert least is not None
    for i, bound in enumerate(least.tolist()):
        for new in range(i + 1):
            assert policy.accepts(Belief(7 + i, 4 + new)) == (new >= bound)
    assert policy.boundary(7, 0, 20) is None
    assert policy.boundary(7, 7, 20) is None


def test_thresholds_lie_between_the_states_of_the_table() -> None:
    policy = solved()
    for n in (2, 3, 5, 10, 50, 199):
        between, threshold = policy.between(n), policy.threshold(n)
        assert between.lower <= threshold.upper
        assert between.upper >= threshold.lower
        assert between.width <= 1 / n + 1e-12 or between.lower == 0


def test_a_boundary_ends_with_the_horizon() -> None:
    policy = FiniteHorizon(0.7, 60).solve(Belief(2, 1))
    assert policy.boundary(2, 1, 60) is not None
    assert policy.boundary(2, 1, 61) is None
    assert policy.boundary(12, 6, 50) is not None
    assert policy.boundary(12, 6, 51) is None


def test_where_every_state_is_accepted_the_threshold_may_be_0() -> None:
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    assert policy.least_accepted(2) == 1.0
    assert policy.between(2).lower == 0.0
    assert policy.between(2).upper == 0.5
    # Below the fewest successes of the prior itself there is no state that is rejected.
    many = Discounted(0.8, 0.99).solve(Belief(8, 6))
    assert many.least_accepted(8) == 6.0
    assert many.between(8).lower == 0.0
    assert many.between(8).upper == 0.75
    few = Discounted(0.5, 0.99).solve(Belief(1, 0.5))
    assert few.between(1).lower == 0.0
