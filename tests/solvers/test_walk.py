"""The walk of a belief: nothing is lost on the way, and later stops are bounded from the right side."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lenience import Belief, Discounted
from lenience.policies import Greedy
from lenience.policies.beliefs.decaying_epsilon import DecayingEpsilon
from lenience.policies.beliefs.epsilon_greedy import EpsilonGreedy
from lenience.solvers.stopping import boundary_walk, forward
from lenience.solvers.stopping.boundary_walk import exceeds
from lenience.solvers.stopping.forward import Walk, later_acceptances, later_stops, ruin_bound, walk

POLICY = Discounted(0.7, 0.95).solve(Belief(2, 1))


@pytest.mark.parametrize("p", [None, 0.2, 0.75])
def test_probability_is_kept_when_states_are_set_aside(p: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (forward, boundary_walk):
        monkeypatch.setattr(module, "NEGLIGIBLE", 1e-2)
    follow = getattr(boundary_walk.follow, "py_func", boundary_walk.follow)
    monkeypatch.setattr(forward, "follow", follow)
    for policy in (POLICY, Greedy(0.4)):
        found = walk(policy, 2.0, 1.0, 0.7, 0.95, 60, p)
        assert found.aside > 1e-3
        assert found.stopped.sum() + found.left.sum() + found.aside == pytest.approx(1.0, abs=1e-12)
        assert np.all(found.stopped_deserving <= found.stopped + 1e-15)


def artificial(aside: float) -> Walk:
    left = np.array([0.2, 0.3, 0.3])
    return Walk(np.zeros(5), np.zeros(5), np.zeros(5), np.zeros(5), np.zeros(5), left, left, 3, aside)


@pytest.mark.parametrize("p", [None, 0.1, 0.6, 0.95])
def test_what_was_set_aside_may_do_anything_later(p: float | None) -> None:
    without, beside = (later_stops(POLICY, artificial(aside), 2.0, 1.0, 0.7, 5, p) for aside in (0.0, 0.1))
    assert beside.stop_lower == pytest.approx(without.stop_lower, abs=1e-15)
    assert beside.stop_upper == pytest.approx(without.stop_upper + 0.1, abs=1e-15)
    if p is None or p > 0.7:
        assert beside.deserving_upper == pytest.approx(without.deserving_upper + 0.1, abs=1e-15)
    else:
        assert beside.deserving_upper == 0.0


def test_acceptances_after_the_last_row_count_what_was_set_aside() -> None:
    size, floor = 7.0, POLICY.stop_floor(7.0)
    for aside in (0.0, 0.1):
        found = artificial(aside)
        above = np.maximum(1.0 + 3 + np.arange(3) - floor * size, 0.0) + floor
        expected = float(found.left @ above) / (floor - 0.1) + aside * size / (floor - 0.1)
        assert later_acceptances(POLICY, found, 2.0, 1.0, 5, 0.1) == pytest.approx(expected)
    assert later_acceptances(POLICY, artificial(0.0), 2.0, 1.0, 5, 0.99) == np.inf
    nothing = artificial(0.0)._replace(left=np.zeros(0))
    assert later_acceptances(POLICY, nothing, 2.0, 1.0, 5, None) == 0.0


def test_later_stops_are_above_the_mean_of_the_ruin_bound() -> None:
    """Each cell of p counts at its lower end, where ruin is likeliest: above the exact mean, and not far."""
    ceiling, size = POLICY.stop_ceiling, 62.0
    good = 1.0 + 44 + np.arange(8.0)
    left = np.full(8, 1 / 8)
    found = Walk(np.zeros(60), np.zeros(60), np.zeros(60), np.zeros(60), np.zeros(60), left, left, 44, 0.0)
    bound = later_stops(POLICY, found, 2.0, 1.0, 0.7, 60, None)
    edges = ceiling + (1 - ceiling) * np.linspace(0, 1, 2001) ** 2
    tails = np.array([exceeds(np.full(8, size), good, edge) for edge in edges[:-1]] + [np.zeros(8)])
    ruin = np.array([ruin_bound(good - ceiling * size, float((a + b) / 2), ceiling) for a, b in pairwise(edges)])
    mean = float(left @ (1 - tails[0] + (ruin * (tails[:-1] - tails[1:])).sum(axis=0)))
    assert mean <= bound.stop_upper <= mean * 1.08
    sure = float(left @ (1 - exceeds(np.full(8, size), good, POLICY.objective.cost)))  # sooner or later
    assert bound.stop_lower == pytest.approx(sure, abs=1e-12)
    assert bound.stop_lower > 0.05
    # Whoever stops later although p is above the ceiling is at most the part of the bound above the ceiling.
    above = bound.stop_upper - float(left @ (1 - tails[0]))
    between = float(left @ (exceeds(np.full(8, size), good, 0.7) - tails[0]))
    assert bound.deserving_upper == pytest.approx(above + between, abs=1e-9)


@pytest.mark.parametrize("p", [0.55, 0.7, 0.9])
@pytest.mark.parametrize("ceiling", [0.3, 0.5])
def test_ruin_is_bounded_by_lundberg(p: float, ceiling: float) -> None:
    """Against the exact chance of ever falling, by a long walk with steps 1 − q and −q."""
    above = np.array([0.0, 0.4, 1.0, 2.5])
    bounds = ruin_bound(above, p, ceiling)
    theta = -np.log(bounds[2])
    assert p * np.exp(-theta * (1 - ceiling)) + (1 - p) * np.exp(theta * ceiling) == pytest.approx(1.0, abs=1e-9)
    assert bounds[0] == 1.0
    steps = 200
    for start, bound in zip(above, bounds, strict=True):
        chance = np.zeros(steps + 1)  # by successes, among walks that have not fallen by ``start``
        chance[0] = 1.0
        ruined = 0.0
        for k in range(1, steps + 1):
            fresh = (1 - p) * chance
            fresh[1:] += p * chance[:-1]
            fallen = start + np.arange(steps + 1) - ceiling * k < -1e-12
            ruined += float(fresh[fallen].sum())
            chance = np.where(fallen, 0.0, fresh)
        assert ruined <= bound + 1e-12
    assert ruin_bound(above, 1.0, ceiling).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_a_policy_that_never_stops_does_not_stop_later() -> None:
    later = later_stops(DecayingEpsilon(0.8), artificial(0.1), 2.0, 1.0, 0.8, 5, 0.9)
    assert (later.stop_lower, later.stop_upper, later.deserving_upper) == (0.0, 0.0, 0.0)


def test_a_constant_share_of_exploration_never_stops() -> None:
    later = later_stops(EpsilonGreedy(0.8, 0.05), artificial(0.1), 2.0, 1.0, 0.8, 5, 0.9)
    assert later.stop_upper == 0.0
    assert later_stops(EpsilonGreedy(0.8, 0.0), artificial(0.1), 2.0, 1.0, 0.8, 5, 0.9).stop_upper > 0.1
