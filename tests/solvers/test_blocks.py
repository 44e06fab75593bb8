"""Estimates of late labels on blocks: against certified solves, plain moments, and the limits of the model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

from lenience import Belief, Delayed
from lenience.core.protocols import UNLIMITED
from lenience.policies import EstimatedExposurePolicy
from lenience.solvers.delayed.blocks import pending_grid, rows_of, rule_of_block, solve_blocks


@pytest.mark.parametrize(
    ("arrivals", "rate", "delay", "least", "most"),
    [
        (50, 0.1, 1 / 12, 8.021162, 8.021164),
        (50, 0.1, 1.0, 7.000203, 7.000205),
        (200, 0.1, 1.0, 34.031010, 34.031023),
        (50, 0.5, 0.25, 0.687838, 0.687840),
        (1000, 0.1, 1.0, 187.0540, 187.0596),
        (5000, 0.1, 1.0, 970.755, 972.407),
    ],
)
def test_values_agree_with_certified_ones(arrivals: int, rate: float, delay: float, least: float, most: float) -> None:
    solution = solve_blocks(2.0, 1.0, 0.8, float(arrivals), rate, 1.0 / delay)
    assert least - 5e-5 * least <= solution.value <= most + 5e-5 * most
    assert solution.error < 1e-3 * solution.value + 1e-4 * arrivals / rate * np.sqrt(0.8 * 0.2 / 3)
    assert least - solution.error <= solution.value <= most + solution.error


@pytest.mark.parametrize("seed", range(12))
def test_the_stated_error_holds_in_random_problems(seed: int) -> None:
    random = np.random.default_rng(seed)
    cost = random.uniform(0.2, 0.9)
    n = float(np.exp(random.uniform(0.0, 5.5)))
    mean = float(np.clip(cost + random.normal() * np.sqrt(cost * (1 - cost) / n), 0.02, 0.98))
    objective = Delayed(cost, float(random.uniform(5, 80)), 0.2, float(random.uniform(0.05, 1.0)))
    prior = Belief(n, n * mean)
    proved = objective.solve_proved(prior, rows=1, tolerance=1e-5).value(prior)
    estimated = EstimatedExposurePolicy.solve(objective, prior)
    assert proved.lower - 1e-9 <= estimated.value(prior).upper
    assert estimated.value(prior).lower <= proved.upper + 1e-9
    scale = objective.arrivals / 0.2 * np.sqrt(cost * (1 - cost) / (n + 1))
    assert estimated.certificate.error < 0.01 * max(proved.upper, 0.1 * scale)


@pytest.mark.parametrize(
    ("n", "cost", "mean", "arrivals", "rate", "delay"),
    [
        (15.9, 0.783, 0.771, 6.89, 0.854, 1.68),
        (125, 0.376, 0.357, 13.8, 0.152, 0.18),
        (160, 0.909, 0.9, 76.8, 0.832, 0.0222),
    ],
)
def test_the_stated_error_covers_what_two_solves_have_in_common(
    n: float, cost: float, mean: float, arrivals: float, rate: float, delay: float
) -> None:
    """In these problems both solves miss a kink by about as much, so their distance alone is too small."""
    prior = Belief(n, n * mean)
    proved = Delayed(cost, arrivals, rate, delay).solve_proved(prior, rows=1, tolerance=1e-6).value(prior)
    solution = solve_blocks(prior.n, prior.s, cost, arrivals, rate, 1 / delay)
    assert proved.lower - solution.error <= solution.value <= proved.upper + solution.error


@pytest.mark.parametrize(("arrivals", "prior"), [(50, Belief(2, 1)), (200, Belief(2, 1)), (200, Belief(100, 78))])
def test_limits_agree_with_certified_ones(arrivals: int, prior: Belief) -> None:
    objective = Delayed(0.8, arrivals, 0.1, 1)
    proved = objective.solve_proved(prior, tolerance=1e-4)
    estimated = EstimatedExposurePolicy.solve(objective, prior)
    compared = 0
    for k in (0, 1, 2, 3, 5, 8, 13, 20, 35, 60, 100):
        n = prior.n + k
        s = prior.s + np.arange(k + 1)
        exact, rough = proved.exposure(n, s), estimated.exposure(n, s)
        assert np.array_equal(exact == UNLIMITED, rough == UNLIMITED)
        # A certified limit at the most pending that was followed is a bound, not a limit.
        limited = (exact != UNLIMITED) & (exact < 0.9 * proved.certificate.pending_cap)
        apart = np.abs(exact[limited] - rough[limited])
        assert np.all(apart <= 1 + 0.03 * exact[limited]), (n, exact[limited], rough[limited])
        compared += int(limited.sum())
    assert compared > 100


@pytest.mark.parametrize(("n", "p", "block"), [(100.0, 0.78, 2.0), (40.0, 0.1, 3.0), (1300.0, 0.5, 26.0)])
def test_three_rates_have_the_moments_of_a_block_of_labels(n: float, p: float, block: float) -> None:
    rates, chances = np.empty(3), np.empty(3)
    rule_of_block(n, p, block, rates, chances)
    successes = rates * (n + block) - n * p
    counts = np.arange(block + 1)
    exact = betabinom.pmf(counts, int(block), n * p, n * (1 - p))
    for power in range(6):
        assert chances @ successes**power == pytest.approx(exact @ counts**power, rel=1e-9)


def test_rows_and_nodes_cover_the_problem() -> None:
    sizes, blocks = rows_of(2.0, 1e6, 0.02)
    assert np.array_equal(np.diff(sizes), blocks[:-1])
    assert blocks[0] == 1.0
    assert np.all(blocks <= np.maximum(1.0, 0.02 * sizes))
    nodes = pending_grid(1e6)
    assert np.array_equal(nodes[:31], np.arange(31))
    assert nodes[-1] >= 1e6
    assert nodes.size < 300


def test_problems_of_any_size_are_answered() -> None:
    """These were rejected, or ran for minutes."""
    lender = Delayed(cost=4767 / 6467, arrivals=3408, discount_rate=0.1, label_delay=523 / 365)
    policy = lender.solve(prior=Belief(1300, 1033), tolerance=1e-5)
    assert policy.limit(Belief(1300, 1033)) is None
    assert policy.value(Belief(1300, 1033)).midpoint >= 34080 * (1033 / 1300 - 4767 / 6467)
    for objective, prior in (
        (Delayed(0.8, 658, 0.1, 1.4), Belief(338, 262)),
        (Delayed(0.8, 5, 1e-6, 0.2), Belief(2, 1)),
        (Delayed(0.9, 1e6, 0.05, 3.0), Belief(1e6, 0.8999e6)),
        (Delayed(0.5, 1e6, 0.1, 30.0), Belief(0.5, 0.2)),
    ):
        solved = objective.solve(prior)
        assert not solved.certificate.proved
        scale = objective.volume * np.sqrt(objective.cost * (1 - objective.cost) / (prior.n + 1))
        assert 0 <= solved.certificate.error < 5e-3 * solved.certificate.estimate + 5e-4 * scale
        limit = solved.limit(prior)
        assert limit is None or limit > 0
        assert objective.volume * max(prior.mean - objective.cost, 0) <= solved.certificate.estimate


def test_a_proof_is_returned_where_it_fits_the_time() -> None:
    objective = Delayed(0.8, 20, 0.1, 1)
    assert objective.solve(Belief(2, 1), tolerance=1e-4).certificate.relative_gap <= 1e-4
    rough = objective.solve(Belief(2, 1), tolerance=1e-4, seconds=1e-9)
    assert isinstance(rough, EstimatedExposurePolicy)
    assert rough.limit(Belief(10, 7)) == 3


def test_a_policy_is_restored_from_its_json() -> None:
    policy = EstimatedExposurePolicy.solve(Delayed(0.8, 200, 0.1, 1), Belief(2, 1))
    again = EstimatedExposurePolicy.from_json(policy.to_json())
    n, s = np.arange(2.0, 60.0), 0.75 * np.arange(2.0, 60.0)
    assert np.array_equal(policy.exposure(n, s), again.exposure(n, s))
    assert again.value(Belief(2, 1), 3) == policy.value(Belief(2, 1), 3)


def test_pending_labels_are_worth_something() -> None:
    policy = EstimatedExposurePolicy.solve(Delayed(0.8, 200, 0.1, 1), Belief(2, 1))
    proved = Delayed(0.8, 200, 0.1, 1).solve_proved(Belief(2, 1), rows=1, tolerance=1e-4)
    for pending in (0, 1, 5, 20):
        assert policy.value(Belief(2, 1), pending).midpoint == pytest.approx(
            proved.value(Belief(2, 1), pending).midpoint, rel=2e-4
        )


def test_a_smaller_belief_than_the_prior_is_solved() -> None:
    policy = EstimatedExposurePolicy.solve(Delayed(0.8, 200, 0.1, 1), Belief(100, 78))
    assert policy.limit(Belief(2, 1)) == 5


@pytest.mark.parametrize(
    ("n", "s", "cost", "arrivals", "rate", "resolve"),
    [(2.0, 1.0, 0.8, 20.0, 0.2, 2.0), (5.0, 3.0, 0.6, 5.0, 0.3, 1.0), (1.0, 0.5, 0.4, 8.0, 0.4, 4.0)],
)
def test_small_estimates_are_nearly_exact(
    n: float, s: float, cost: float, arrivals: float, rate: float, resolve: float
) -> None:
    problem, prior = Delayed(cost, arrivals, rate, 1 / resolve), Belief(n, s)
    proved = problem.solve_proved(prior, tolerance=1e-6)
    solution = solve_blocks(n, s, cost, arrivals, rate, resolve)
    assert solution.value == pytest.approx(proved.value(prior).midpoint, rel=3e-6)
    for m in range(6):
        value = float(np.interp(m, solution.pending, solution.values))
        assert value == pytest.approx(proved.value(prior, m).midpoint, rel=3e-4)


def test_the_grid_of_pending_blocks_reaches_any_number() -> None:
    for most in (1e3, 1e12, 2.3e23):
        nodes = pending_grid(most)
        assert nodes[-1] >= most
        assert nodes.size < 2_000
        assert np.all(np.diff(nodes) > 0.0)
