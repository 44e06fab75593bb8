"""Exact evaluation and operating characteristics against sums over all histories."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from lenience import (
    Belief,
    Discounted,
    FiniteHorizon,
    OptimalPolicy,
    Policy,
    characteristics,
    evaluate,
)
from lenience.analysis import regret_table
from lenience.core.protocols import Rule
from lenience.policies import Constant, ExploreThenExploit, Greedy, Persistent, Thompson
from lenience.solvers.stopping.boundary_walk import fate
from lenience.solvers.stopping.forward import Walk, walk
from rejections import rejected

PRIOR = Belief(2, 1)


def by_histories(policy: Policy, belief: Belief, cost: float, discount: float, horizon: int) -> float:
    """The expected reward over ``horizon`` individuals, adding up every sequence of decisions and outcomes."""
    total = 0.0
    for decisions in product((0, 1), repeat=horizon):
        for outcomes in product((0, 1), repeat=sum(decisions)):
            n, s, chance, reward, seen = belief.n, belief.s, 1.0, 0.0, iter(outcomes)
            for time, decision in enumerate(decisions):
                accept = float(policy.acceptance(n, s)[()])
                chance *= accept if decision else 1 - accept
                if decision:
                    outcome = next(seen)
                    chance *= s / n if outcome else 1 - s / n
                    reward += discount**time * (outcome - cost)
                    n, s = n + 1, s + outcome
            total += chance * reward
    return total


@pytest.mark.parametrize(
    "policy",
    [
        Greedy(0.4),
        Constant(0.3),
        Persistent(0.6),
        ExploreThenExploit(0.6, 2, PRIOR),
        FiniteHorizon(0.6, 6).solve(PRIOR),
        Discounted(0.6, 0.8).solve(PRIOR),
    ],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize("discount", [1.0, 0.8])
def test_values_are_sums_over_histories(policy: Policy, discount: float) -> None:
    cost, horizon = 0.6, 6
    exact = by_histories(policy, PRIOR, cost, discount, horizon)
    assert evaluate(policy, FiniteHorizon(cost, horizon, discount), PRIOR).midpoint == pytest.approx(exact, abs=1e-12)
    # With an infinite horizon what comes later is worth at most γ^6/(1−γ).
    if discount < 1:
        infinite = evaluate(policy, Discounted(cost, discount), PRIOR).midpoint
        assert abs(infinite - exact) <= discount**horizon / (1 - discount) + 1e-9


@settings(max_examples=15)
@given(st.floats(0.1, 0.9), st.floats(0.3, 0.95), st.floats(0.5, 10), st.floats(0.05, 0.95))
def test_the_optimum_is_worth_what_its_solver_says_and_no_rule_is_worth_more(
    cost: float, discount: float, n: float, rate: float
) -> None:
    problem, belief = Discounted(cost, discount), Belief(n, rate * n)
    best = problem.solve(belief).value(belief)
    own = evaluate(problem.solve(belief), problem, belief)
    assert own.midpoint == pytest.approx(best.midpoint, abs=1e-7)
    for rule in (Greedy(cost), Constant(1.0), Constant(0.5), Persistent(cost), ExploreThenExploit(cost, 3, belief)):
        assert evaluate(rule, problem, belief).lower <= best.upper + 1e-9


def test_a_constant_policy_earns_the_mean() -> None:
    value = evaluate(Constant(0.25), Discounted(0.8, 0.97), Belief(10, 9))
    assert pytest.approx(value.midpoint, abs=1e-8) == 0.25 * (0.9 - 0.8) / (1 - 0.97)


@pytest.mark.parametrize("p", [0.35, 0.6, 0.75])
def test_characteristics_are_sums_over_outcomes(p: float) -> None:
    cost, horizon = 0.6, 9
    problem = FiniteHorizon(cost, horizon)
    policy = problem.solve(PRIOR)
    stops = np.zeros(horizon)
    accepted = reward = 0.0
    for outcomes in product((0, 1), repeat=horizon):
        chance = float(np.prod([p if outcome else 1 - p for outcome in outcomes]))
        belief = PRIOR
        for k, outcome in enumerate(outcomes):
            if not policy.accepts(belief):
                stops[k] += chance
                break
            accepted += chance
            reward += chance * (outcome - cost)
            belief = belief.observe(bool(outcome))
    found = characteristics(policy, p)
    assert found.stops_at == pytest.approx(stops, abs=1e-12)
    assert found.stops.midpoint == pytest.approx(stops.sum(), abs=1e-11)
    assert found.accepted.midpoint == pytest.approx(accepted, abs=1e-10)
    assert found.reward.midpoint == pytest.approx(reward, abs=1e-10)
    assert (found.shut_out is None) == (p <= cost)


class Unbounded(Rule, frozen=True):
    """The decisions of an optimal policy, without the boundary that makes a walk quick."""

    policy: OptimalPolicy

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        return self.policy.acceptance(n, s)


@pytest.mark.parametrize("p", [None, 0.0, 0.45, 0.72, 1.0])
@pytest.mark.parametrize("start", [PRIOR, Belief(9, 6), Belief(3, 0.5)])
def test_a_walk_along_a_boundary_is_the_walk_of_any_policy(p: float | None, start: Belief) -> None:
    policy = Discounted(0.7, 0.98).solve(start)
    quick = walk(policy, start.n, start.s, 0.7, 0.98, 400, p)
    plain = walk(Unbounded(policy), start.n, start.s, 0.7, 0.98, 400, p)
    assert not plain.left.size or quick.first == plain.first
    for name, one, other in zip(Walk._fields, quick._replace(first=0), plain._replace(first=0), strict=True):
        assert one == pytest.approx(other, abs=1e-13, rel=1e-12), name
    if p is None:
        found = fate(start.n, start.s, 0.7, policy.accept_from[:400])
        assert found.stops == pytest.approx(plain.stopped.sum(), abs=1e-12)
        assert found.shut_out == pytest.approx(plain.stopped_deserving.sum(), abs=1e-12)


def test_characteristics_averaged_over_the_belief_are_the_average() -> None:
    policy = FiniteHorizon(0.6, 12).solve(PRIOR)
    averaged = characteristics(policy)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    truths = [characteristics(policy, float(p)) for p in (nodes + 1) / 2]  # the prior is uniform
    for field in ("stops", "accepted", "reward"):
        mean = sum(w / 2 * getattr(one, field).midpoint for w, one in zip(weights, truths, strict=True))
        assert getattr(averaged, field).midpoint == pytest.approx(mean, abs=1e-9)
    assert averaged.reward.midpoint == pytest.approx(policy.value(PRIOR).midpoint, abs=1e-9)
    fine = np.linspace(0.6, 1, 4001)
    chance = [characteristics(policy, float(p)).stops.midpoint for p in fine[1::40]]
    assert averaged.shut_out is not None
    assert averaged.shut_out.midpoint == pytest.approx(0.4 * np.mean(chance), rel=0.05)


def test_what_happens_after_the_last_row_is_in_the_bounds() -> None:
    policy = Discounted(0.8, 0.99).solve(PRIOR)
    assert policy.accepts(PRIOR)
    for p in (0.7, 0.85, 0.95, None):
        short, long = characteristics(policy, p, rows=60), characteristics(policy, p, rows=3000)
        for field in ("stops", "accepted", "reward", "shut_out"):
            if p is not None and p <= 0.8 and field == "shut_out":
                continue
            few, many = getattr(short, field), getattr(long, field)
            assert few.lower <= many.upper, (p, field)
            assert few.upper >= many.lower, (p, field)
            # Rounding is counted by the row, so it alone may widen the longer walk's bounds.
            assert many.width <= few.width + 1e-8 or few.width == many.width == float("inf"), (p, field)
    assert characteristics(policy, 0.7, rows=3000).stops.lower > 1 - 1e-9
    assert characteristics(policy, 0.95, rows=3000).stops.width < 1e-9
    # Who may never stop is expected to accept without end; who is sure to stop is not.
    assert str(characteristics(policy, 0.95, rows=3000).accepted) == "∞"
    assert characteristics(policy, 0.7, rows=3000).accepted.upper < 12


class UnknownCeiling(Rule, frozen=True, tag="unknown_ceiling"):
    """Greedy at 0.8 that does not tell above which rate it never stops."""

    def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        return (s > 0.8 * n).astype(np.float64)


@pytest.mark.parametrize("policy", [UnknownCeiling(), Greedy(0.9)])
def test_later_stops_are_bounded_where_the_policy_may_stop_above_the_cost(policy: Policy) -> None:
    problem, start = Discounted(0.8, 0.9), Belief(20, 19)
    few, many = (characteristics(policy, None, problem, start, rows).shut_out for rows in (5, 2000))
    assert few is not None
    assert many is not None
    assert few.lower <= many.lower <= many.upper <= few.upper + 1e-9


@pytest.mark.parametrize("p", [0.1, 0.3])
def test_rounding_of_a_long_walk_is_counted(p: float) -> None:
    found = characteristics(Constant(1.0), p, FiniteHorizon(0.5, 20_000), PRIOR)
    assert 20_000 in found.accepted
    assert 20_000 * (p - 0.5) in found.reward


def test_what_was_set_aside_may_go_on_for_ever() -> None:
    start = Belief(1000, 100)
    found = characteristics(ExploreThenExploit(0.5, 900, start), 0.51, Discounted(0.5, 0.9), start, rows=1500)
    assert found.accepted.upper == float("inf")


def test_policies_are_checked_before_they_are_believed() -> None:
    class Twice(UnknownCeiling, frozen=True, tag="twice"):
        def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.full(n.shape, 2.0)

    class LateDice(UnknownCeiling, frozen=True, tag="late_dice"):
        def _acceptance(self, n: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(n < 100, 1.0, 0.5)

    with rejected("policy"):
        evaluate(Twice(), Discounted(0.5, 0.5), PRIOR)
    with rejected("policy"):
        characteristics(LateDice(), 0.5, FiniteHorizon(0.4, 200), PRIOR)


def test_rules_that_never_stop() -> None:
    found = characteristics(Persistent(0.8), 0.5, Discounted(0.8, 0.9), PRIOR, rows=200)
    assert found.stops.upper < 1e-9
    assert found.reward.midpoint < 0
    nobody = characteristics(Constant(0.0), 0.9, Discounted(0.8, 0.9), PRIOR, rows=10)
    assert nobody.accepted.upper < 1e-9
    assert nobody.stops.lower > 1 - 1e-9


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: characteristics(Greedy(0.8), 0.9), ("objective", "missing")),
        (lambda: characteristics(Greedy(0.8), 0.9, Discounted(0.8, 0.9)), ("belief", "missing")),
        (lambda: characteristics(Greedy(0.8), 1.9, Discounted(0.8, 0.9), PRIOR), ("p", "invalid_value")),
        (lambda: characteristics(Constant(0.5), 0.9, FiniteHorizon(0.8, 9), PRIOR), ("policy", "invalid_value")),
        (lambda: evaluate(Greedy(0.8), "discounted", PRIOR), ("objective", "invalid_value")),  # type: ignore[arg-type]
        (lambda: evaluate(Greedy(0.8), Discounted(0.8, 0.9), (2, 1)), ("belief", "invalid_value")),  # type: ignore[arg-type]
        (lambda: regret_table(0.5, PRIOR, [10], ["never"]), ("schedules", "invalid_value")),
        (lambda: Constant(1.5), ("probability", "invalid_value")),
        (lambda: ExploreThenExploit(0.5, -1, PRIOR), ("explore", "invalid_value")),
        (lambda: Persistent(0.5, 0.0), ("exponent", "invalid_value")),
    ],
)
def test_bad_input(work: object, message: tuple[str | None, str]) -> None:
    assert callable(work)
    with rejected(*message):
        work()


def test_evaluations_that_would_take_hours_are_refused() -> None:
    with rejected("policy", "too_large"):
        evaluate(Greedy(0.8), Discounted(0.8, 0.99999), PRIOR)
    with rejected("policy", "too_large"):
        evaluate(Persistent(0.8), FiniteHorizon(0.8, 10_000), PRIOR)


def test_regret_of_schedules() -> None:
    rows = {(row.policy, row.horizon): row for row in regret_table(0.5, PRIOR, horizons=[100, 1000, 4000])}
    for horizon in (100, 1000, 4000):
        best = rows["optimal", horizon]
        assert best.avoidable == 0
        assert rows["always accept", horizon].regret == pytest.approx(horizon / 8)
        for (_, h), row in rows.items():
            assert h != horizon or row.regret >= best.regret - 1e-9
    # √H is the right order for exploring first: twice the regret at four times the horizon. The optimum does better.
    root = [rows["explore √H", h].regret for h in (1000, 4000)]
    assert root[1] / root[0] == pytest.approx(2, rel=0.1)
    assert rows["explore H^(2/3)", 4000].regret > 1.5 * root[1]
    assert rows["explore log H", 4000].regret > 1.5 * root[1]
    assert rows["optimal", 4000].regret / rows["optimal", 1000].regret < 1.5


def test_a_policy_with_a_horizon_stops_at_it_whatever_the_objective() -> None:
    for horizon, rows in ((60, 20), (60, 59), (60, 60), (60, 200)):
        policy = FiniteHorizon(0.5, horizon).solve(PRIOR)
        for p in (0.3, 0.9, None):
            short = characteristics(policy, p=p, objective=Discounted(0.5, 0.9), rows=rows)
            full = characteristics(policy, p=p, objective=Discounted(0.5, 0.9), rows=500)
            assert short.stops.lower > 1 - 1e-9
            for name in ("reward", "shut_out", "accepted"):
                wide, exact = getattr(short, name), getattr(full, name)
                if exact is not None:
                    assert wide.lower - 1e-9 <= exact.midpoint <= wide.upper + 1e-9, (rows, p, name)


def test_a_probability_that_is_too_small_for_a_float_is_no_stop() -> None:
    """Thompson sampling and persistent exploration never stop, however small their probability of acceptance."""
    goal = Discounted(0.8, 0.99)
    for policy in (Thompson(0.8), Persistent(0.8, 200.0)):
        assert policy.acceptance(5000.0, 100.0) == 0.0
        result = characteristics(policy, p=0.1, objective=goal, belief=PRIOR, rows=1500)
        assert result.stops.upper < 1e-9
        assert result.accepted.lower == np.inf
    stopped = characteristics(Greedy(0.8), p=0.1, objective=goal, belief=Belief(10, 9), rows=300)
    assert stopped.stops.lower > 1 - 1e-9
