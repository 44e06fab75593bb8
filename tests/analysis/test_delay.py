"""Exact evaluation under late labels, the studies and the figures."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from lenience import Belief, Discounted
from lenience.analysis.delay import (
    BLIND,
    OPTIMAL,
    baselines,
    evaluate_pending,
    limit_cost,
    limit_points,
    value_by_delay,
    values_by_law,
)
from lenience.core.protocols import UNKNOWN
from lenience.objectives.delayed import Delayed
from lenience.plot import limit_map, value_against_delay
from lenience.policies import Constant, Greedy
from lenience.policies.beliefs.pending import Blind, Capped
from lenience.simulation.label_delay import LabelDelay
from lenience.solvers.delayed.evaluation import States, _enclose, steady_count
from oracles import knowing
from rejections import rejected

PRIOR = Belief(2, 1)


class Mixed:
    """A stochastic policy that looks at everything and promises nothing."""

    steady_limit = UNKNOWN

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        rate = np.asarray(s, dtype=np.float64) / np.asarray(n, dtype=np.float64)
        return rate / (1.0 + 0.3 * np.asarray(pending, dtype=np.float64))

    def stop_floor(self, n: float) -> float:
        return -1.0


def plainly(policy: Mixed | Blind | Capped, problem: Delayed, prior: Belief, rows: int, cap: int) -> float:
    """The value by a double loop over all beliefs and numbers pending, with nothing accepted after ``rows`` labels."""
    rate, arrivals, resolve = problem.discount_rate, problem.arrivals, 1 / problem.label_delay
    value = np.zeros((rows + 2, cap + 2))
    for k in range(rows, -1, -1):
        fresh = np.zeros((rows + 2, cap + 2))
        for j in range(k + 1):
            n, s = prior.n + k, prior.s + j
            p = s / n
            for m in range(cap, -1, -1):
                go = arrivals * float(policy.acceptance(n, s, m)[()]) if m < cap else 0.0
                late = m * resolve * (p * value[j + 1, m - 1] + (1 - p) * value[j, m - 1]) if m and k < rows else 0.0
                fresh[j, m] = (go * (p - problem.cost + fresh[j, m + 1]) + late) / (rate + go + m * resolve)
        value = fresh
    return float(value[0, 0])


@pytest.mark.parametrize(
    "policy",
    [
        Mixed(),
        Blind(Constant(0.4), 0.6),
        Blind(Greedy(0.4), 0.6),
        Capped(Greedy(0.4), 0.6, 2),
        Capped(Greedy(0.4), 0.6, 1, everywhere=True),
        Capped(Constant(1.0), 0.6, 3, everywhere=True),
    ],
)
def test_evaluation_against_a_double_loop(policy: Mixed | Blind | Capped) -> None:
    problem = Delayed(cost=0.6, arrivals=2, discount_rate=0.6, label_delay=0.7)
    found = evaluate_pending(policy, problem, PRIOR, 1e-7)
    assert found.width < 1e-4
    assert plainly(policy, problem, PRIOR, 70, 14) == pytest.approx(found.midpoint, abs=2e-6 + found.width)


@pytest.mark.parametrize(
    "policy",
    [
        Mixed(),
        Blind(Constant(1.0), 0.6),
        Blind(Greedy(0.4), 0.6),
        Capped(Greedy(0.4), 0.6, 2),
        Capped(Constant(1.0), 0.6, 3, everywhere=True),
    ],
)
@pytest.mark.parametrize("prior", [Belief(2, 1), Belief(3, 2.5)])
def test_rough_evaluations_still_enclose(policy: Mixed | Blind | Capped, prior: Belief) -> None:
    objective = Delayed(cost=0.6, arrivals=2, discount_rate=0.6, label_delay=0.7)
    problem = objective.problem(prior)
    exact = plainly(policy, objective, prior, 45, 12)
    knowing_p = 2 / 0.6 * knowing(prior.n, prior.s, 0.6)
    widths = []
    for rows, spread, drop in ((2, 0.0, 10.0), (6, 1.0, 1e-2), (14, 2.0, 1e-1), (30, 4.0, 1e-3), (60, 6.5, 1e-9)):
        found = _enclose(policy, problem, rows, spread, drop, 1e9, States.of(prior))
        assert found.lower - 3e-5 <= exact <= found.upper + 3e-5  # the double loop ends after 45 labels
        assert found.upper <= knowing_p + 2 / 0.6 + 1e-9
        widths.append(found.width)
    assert widths[0] > widths[-1] > 0.0
    assert widths[-1] < 1e-3


@pytest.mark.parametrize(
    ("discount_rate", "delay", "known"),
    [(0.1, 1 / 12, 7.1879), (0.1, 1 / 4, 6.0546), (0.1, 1, 3.2361), (0.5, 1 / 4, -0.3513)],
)
def test_the_blind_policy_s_known_values(discount_rate: float, delay: float, known: float) -> None:
    problem = Delayed(0.8, 50, discount_rate, delay)
    found = evaluate_pending(baselines(problem, PRIOR)[BLIND], problem, PRIOR, 1e-5)
    assert found.lower - 5.1e-5 <= known <= found.upper + 5.1e-5
    assert found.width < 1e-4


def test_the_blind_policy_s_known_value_at_200_a_year() -> None:
    problem = Delayed(0.8, 200, 0.1, 1)
    found = evaluate_pending(baselines(problem, PRIOR)[BLIND], problem, PRIOR, 1e-2)
    # Known as 24.78, cut off after the second decimal.
    assert 24.78 <= found.lower <= found.upper < 24.79


def test_steady_count() -> None:
    problem = Delayed(0.8, 50, 0.1, 1).problem(PRIOR)
    assert steady_count(problem, None, 10).tolist() == [500] * 12
    one = steady_count(problem, 1, 4)
    # One out at a time: an acceptance after each arrival, the next cycle after its label.
    first = 50 / 50.1
    cycle = first * (1 / 1.1)
    assert one[0] == pytest.approx(first / (1 - cycle), rel=1e-12)
    assert one[1] == pytest.approx(one[0] / 1.1, rel=1e-12)
    assert steady_count(problem, 10**6, 400)[0] == pytest.approx(500, rel=1e-3)


def test_the_limit_is_nearly_optimal() -> None:
    """Following the first rejection costs little, and something where acceptance resumes."""
    ordinary = limit_cost(Delayed(0.8, 50, 0.5, 0.25), PRIOR, 1e-8)
    assert ordinary.upper < 1e-6
    peculiar = limit_cost(Delayed(0.7, 1, 0.1, 1), Belief(6, 4), 1e-9)
    assert 0 < peculiar.lower <= peculiar.upper < 1e-3


def test_no_rival_is_better() -> None:
    rows = value_by_delay(0.7, 20, 0.5, Belief(3, 2), delays=[0.1, 0.5], caps=[1, 3])
    for delay in (0.1, 0.5):
        here = {row.policy: row.value for row in rows if row.label_delay == delay}
        best = here.pop(OPTIMAL)
        assert set(here) == {BLIND, "greedy", "cap 1", "cap 3", "wait for every label"}
        assert all(value.lower <= best.upper for value in here.values())
        assert here[BLIND].upper < best.lower
    ordered = [row.value for row in rows if row.policy == OPTIMAL]
    assert all(later.upper < sooner.lower for sooner, later in pairwise(ordered))


def test_values_by_law() -> None:
    problem = Delayed(0.7, 20, 0.5, 0.5)
    laws = [LabelDelay("fixed", 0.5), LabelDelay("exponential", 0.5, missing=0.1)]
    found = values_by_law(problem, Belief(3, 2), laws, caps=[2], rates=[None, 0.9], replications=400)
    assert [(one.law, one.rate) for one in found] == [
        ("fixed", None),
        ("fixed", 0.9),
        ("exponential, 10% never", None),
        ("exponential, 10% never", 0.9),
    ]
    assert [one.expire_after for one in found] == [None, None, 1.5, 1.5]
    assert all(one.values[0].policy == OPTIMAL for one in found)
    with rejected("rates"):
        values_by_law(problem, Belief(3, 2), laws, rates=[3.0], replications=10)


def test_limit_points() -> None:
    policy = Delayed(0.8, 50, 0.1, 1).solve(PRIOR, rows=30)
    points = limit_points(policy, [0, 10])
    assert len(points) == 12
    assert points[0].limit == policy.limit(PRIOR) == 2
    assert points[0].proved
    assert points[-1].limit is None


def test_figures_show_the_values_and_the_limits() -> None:
    rows = value_by_delay(0.7, 5, 0.5, Belief(3, 2), delays=[0.1, 0.5], caps=[1])
    paper = Discounted.from_rates(0.7, 5, 0.5)
    line = value_against_delay(rows, paper.solve(Belief(3, 2)).value(Belief(3, 2)).midpoint * paper.discount, "Title")
    (axes,) = line.axes
    assert len(axes.get_lines()) == 5 + 2  # a line a policy, the optimum without delay, zero
    for name, drawn in zip(dict.fromkeys(row.policy for row in rows), axes.get_lines(), strict=False):
        assert drawn.get_label() == name
        assert drawn.get_xdata() == pytest.approx([0.1, 0.5])
        assert drawn.get_ydata() == pytest.approx([row.value.midpoint for row in rows if row.policy == name])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1.2\nmonths", "6\nmonths"]
    policy = Delayed(0.7, 5, 0.5, 0.5).solve(Belief(3, 2))
    picture = limit_map(policy, most=30, lattices=2, title="Title")
    # Two lattices start at n = 1 with a quarter and three quarters of a success: their states have their own colour.
    grid = np.asarray(picture.axes[0].collections[0].get_array()).reshape(600, -1)
    sizes = np.unique(np.round(np.geomspace(1, 30, 240)).astype(int))
    rates = np.linspace(0.25, 0.78, 600)
    assert grid.shape[1] == sizes.size
    for n, good in ((2, 1.25), (4, 2.75), (10, 6.25), (20, 13.75), (30, 15.25)):
        start = Belief(1, good % 1)
        limit = policy.objective.solve(start, rows=30).limit(Belief(n, good))
        drawn = grid[np.abs(rates - good / n).argmin(), int(np.flatnonzero(sizes == n)[0])]
        assert drawn == (1e9 if limit is None else limit), (n, good)
    assert np.all(grid[rates >= 0.7] == 1e9)
    assert len(np.unique(grid)) >= 4
