"""The paper's theorem, propositions and lemma as properties of what the software computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import AverageReward, Belief, Discounted, FiniteHorizon, evaluate
from lenience.policies import Constant, Greedy, Persistent
from lenience.solvers.stopping.solve import solve_discounted

costs = st.floats(0.05, 0.95)
discounts = st.one_of(st.floats(0.0, 0.99), st.sampled_from([0.995, 0.999, 0.9999]))
sizes = st.floats(0.1, 200)
rates = st.floats(0.0, 1.0)
SLACK = 1e-9  # sums of enclosures are rounded too


def value(n: float, rate: float, cost: float, discount: float) -> tuple[float, float]:
    found = solve_discounted(n, rate * n, cost, discount, 1, 1e-6).value
    return found.lower, found.upper


@settings(max_examples=25)
@given(sizes, rates, costs, discounts)
def test_theorem_1_accept_exactly_where_accepting_is_worth_something(
    n: float, rate: float, cost: float, discount: float
) -> None:
    belief = Belief(n, rate * n)
    policy = Discounted(cost, discount).solve(belief, rows=1, tolerance=1e-6)
    continuation = policy.continuation(belief)
    if continuation.lower > 0:
        assert policy.accepts(belief)
        assert policy.value(belief).lower > 0
    if continuation.upper <= 0:
        assert not policy.accepts(belief)
        assert policy.value(belief).upper == 0


@settings(max_examples=25)
@given(sizes, rates, rates, st.floats(0, 1), costs, discounts)
def test_proposition_2_value_rises_and_is_convex_in_the_rate(
    n: float, first: float, second: float, weight: float, cost: float, discount: float
) -> None:
    low, high = sorted((first, second))
    middle = weight * low + (1 - weight) * high
    at_low, at_high, at_middle = (value(n, rate, cost, discount) for rate in (low, high, middle))
    assert at_low[0] <= at_high[1] + SLACK
    chord = weight * at_low[1] + (1 - weight) * at_high[1]
    assert at_middle[0] <= chord + SLACK * (1 + abs(chord))


@settings(max_examples=25)
@given(sizes, rates, costs, discounts)
def test_proposition_3_value_falls_with_observations(n: float, rate: float, cost: float, discount: float) -> None:
    assert value(n, rate, cost, discount)[1] >= value(n + 1, rate, cost, discount)[0] - SLACK


@settings(max_examples=12)
@given(costs, st.floats(0.2, 0.99), st.floats(0.5, 50), st.floats(0.1, 50))
def test_thresholds_rise_towards_the_cost(cost: float, discount: float, n: float, step: float) -> None:
    policy = Discounted(cost, discount).solve(Belief(2, 1), rows=1)
    here, later = policy.threshold(n, 1e-7), policy.threshold(n + step, 1e-7)
    assert here.lower <= later.upper
    assert later.lower < cost


@settings(max_examples=12)
@given(costs, st.sampled_from([0.5, 0.9, 0.99, 0.999, 0.9999]), st.floats(0.5, 10), rates)
def test_lattice_thresholds_rise_by_at_most_one_a_row(cost: float, discount: float, n: float, rate: float) -> None:
    accept_from = Discounted(cost, discount).solve(Belief(n, rate * n), rows=300, tolerance=1e-6).accept_from
    steps = np.diff(accept_from)
    assert np.all((steps >= 0) & (steps <= 1))


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-5, 5)), min_size=1, max_size=6), st.data())
def test_lemma_1_chords_of_a_convex_function_rise(lines: list[tuple[float, float]], data: st.DataObject) -> None:
    def convex(x: float) -> float:
        return max(slope * x + offset for slope, offset in lines)

    x, weight = data.draw(st.floats(-2, 2)), data.draw(st.floats(0, 1))
    near, far = sorted((data.draw(st.floats(0, 3)), data.draw(st.floats(0, 3))))

    def chord(delta: float) -> float:
        return weight * convex(x + (1 - weight) * delta) + (1 - weight) * convex(x - weight * delta)

    assert chord(near) <= chord(far) + 1e-9


@settings(max_examples=15)
@given(st.integers(2, 40), costs)
def test_theorem_4_never_stopping_is_worth_what_knowing_is(n: int, cost: float) -> None:
    # The recursion of Section 3.2 from the value of knowing p leads to that value at every earlier belief.
    value = np.array([AverageReward(cost).value(Belief(n, s)).midpoint for s in range(n + 1)])
    for size in range(n - 1, 0, -1):
        p = np.arange(size + 1) / size
        value = p * value[1:] + (1 - p) * value[:-1]
        known = [AverageReward(cost).value(Belief(size, s)).midpoint for s in range(size + 1)]
        assert value == pytest.approx(known, abs=1e-10)
        assert np.all(np.diff(value, 2) >= -1e-12)


def test_theorem_4_the_average_nears_its_optimum_only_if_one_never_stops() -> None:
    prior, cost = Belief(2, 1), 0.5
    best = AverageReward(cost).value(prior).midpoint
    persistent = AverageReward(cost).solve(prior)
    assert isinstance(persistent, Persistent)
    gaps = [best - evaluate(persistent, FiniteHorizon(cost, h), prior).midpoint / h for h in (50, 100, 200, 400)]
    # A regret of about √H: the average's gap falls like 1/√H.
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] > 0
    assert gaps[3] < 0.45 * gaps[0]
    stopping = [best - evaluate(Greedy(cost), FiniteHorizon(cost, h), Belief(3, 2)).midpoint / h for h in (200, 400)]
    assert abs(stopping[1] - stopping[0]) < 0.002
    assert evaluate(Constant(1.0), FiniteHorizon(cost, 400), prior).midpoint == pytest.approx(0.0, abs=1e-8)
