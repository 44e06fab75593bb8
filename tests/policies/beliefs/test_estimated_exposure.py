"""Estimated exposure limits: exact between the nodes of a made-up table, and the solver's own at its nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief, Delayed
from lenience.core.protocols import UNLIMITED
from lenience.policies.beliefs.estimated_exposure import EstimateCertificate, EstimatedExposurePolicy
from lenience.solvers.delayed.blocks import solve_blocks

COST = 0.6
OBJECTIVE = Delayed(COST, 20, 0.2, 0.5)
SIZES = np.array([4.0, 9.0, 25.0])
LOWEST, STEPS = np.array([0.1, 0.21, 0.3]), np.array([0.05, 0.04, 0.03])


def logarithm(n: float, distance: float) -> float:
    """Linear in log n and in the distance (p̂ − c)√n, so that the interpolation is exact."""
    return 0.2 + 0.4 * math.log(n) + 2.0 * (distance + 1.2)


def made_up(lowest: NDArray[np.float64] = LOWEST) -> EstimatedExposurePolicy:
    limits = np.array(
        [
            [math.expm1(logarithm(n, (low + i * step - COST) * math.sqrt(n))) for i in range(12)]
            for n, low, step in zip(SIZES.tolist(), lowest.tolist(), STEPS.tolist(), strict=True)
        ]
    )
    return EstimatedExposurePolicy(
        objective=OBJECTIVE,
        prior=Belief(4, 2),
        sizes=SIZES,
        lowest=lowest,
        steps=STEPS,
        limits=limits,
        pending=np.array([0.0, 2.0, 6.0]),
        values=np.array([1.0, 1.5, 3.5]),
        certificate=EstimateCertificate(1.0, 0.25),
        expire_after=1.5,
    )


def test_limits_between_the_nodes() -> None:
    policy = made_up()
    for n in (4.0, 5.5, 9.0, 13.0, 24.0, 25.0):
        for mean in (0.35, 0.4, 0.47, 0.55, 0.59):
            expected = math.floor(math.expm1(logarithm(n, (mean - COST) * math.sqrt(n))) + 0.5)
            assert policy.exposure(n, mean * n) == max(expected, 0)
            assert policy.limit(Belief(n, mean * n)) == max(expected, 0)
            assert not policy.proved(Belief(n, mean * n))
    # Beyond the last size, its row counts at the same distance from the cost in standard errors.
    for mean in (0.55, 0.58):
        distance = (mean - COST) * math.sqrt(400.0)
        assert policy.exposure(400.0, 400.0 * mean) == policy.exposure(25.0, 25.0 * (COST + distance / 5.0))
    assert policy.exposure(9.0, 9.0 * 0.2) == 0  # below the lowest rate
    assert policy.exposure([4.0, 10.0], [3.0, 6.0]).tolist() == [UNLIMITED, UNLIMITED]
    assert policy.limit(Belief(10, 6)) is None
    assert policy.proved(Belief(10, 6))
    assert policy.limit(Belief(10, 5.999_999)) is not None
    assert policy.rows == 3


def test_two_rates_below_the_cost_are_enough() -> None:
    policy = made_up(COST - 1.6 * STEPS)  # the second one is 0.6 of a step below the cost
    for n in (4.0, 9.0, 25.0):
        for mean in (0.57, 0.58, 0.595):
            expected = math.floor(math.expm1(logarithm(n, (mean - COST) * math.sqrt(n))) + 0.5)
            assert policy.exposure(n, mean * n) == expected
    # With one rate below the cost there is nothing to extrapolate from.
    alone = made_up(COST - 0.5 * STEPS)
    assert alone.exposure(4.0, 4 * 0.59) == alone.exposure(4.0, 4 * 0.58) > 0


def test_values_between_numbers_pending_have_an_error_that_grows() -> None:
    policy, prior = made_up(), Belief(4, 2)
    assert (policy.value(prior).lower, policy.value(prior).upper) == (0.75, 1.25)
    for pending, estimate in ((1, 1.25), (2, 1.5), (4, 2.5), (6, 3.5), (60, 3.5)):
        value = policy.value(prior, pending)
        assert value.midpoint == pytest.approx(estimate)
        assert value.width == pytest.approx(2 * 0.25 * estimate)
    assert policy.stop_floor(4.0) == pytest.approx(
        max(rate for rate in np.linspace(0, COST, 400, endpoint=False) if policy.exposure(4.0, 4.0 * rate) == 0)
    )


def test_the_table_keeps_the_solver_s_limits() -> None:
    problem, prior = Delayed(0.8, 200, 0.1, 1), Belief(30, 22)
    policy = EstimatedExposurePolicy.solve(problem, prior)
    solution = solve_blocks(30, 22, 0.8, 200, 0.1, 1.0)
    assert policy.certificate == EstimateCertificate(solution.value, solution.error)
    assert policy.value(prior).midpoint == pytest.approx(solution.value)
    assert policy.expire_after == problem.expire_after
    assert np.isin(policy.sizes, solution.sizes).all()
    assert policy.sizes[0] == 30.0
    ratios = policy.sizes[1:] / policy.sizes[:-1]
    assert np.all(ratios < 1.2)
    assert len(policy.sizes) < len(solution.sizes)
    for row, n in enumerate(policy.sizes.tolist()):
        k = int(np.flatnonzero(solution.sizes == n)[0])
        rates = policy.lowest[row] + policy.steps[row] * np.arange(policy.limits.shape[1])
        places = np.rint((rates - solution.lowest[k]) / solution.steps[k]).astype(int)
        assert places * solution.steps[k] + solution.lowest[k] == pytest.approx(rates)
        below = np.flatnonzero(rates < 0.8 - 1e-9)
        # The last rate of the solver below the cost is kept: limits change most there.
        assert rates[below[-1]] + solution.steps[k] >= 0.8 - 1e-9
        kept = solution.limits[k, places[below]]
        assert policy.limits[row, below] == pytest.approx(np.where(np.isfinite(kept), kept, -1.0), rel=1e-6)
        for i in below[-3:]:
            assert policy.exposure(n, n * rates[i]) == math.floor(kept[i] + 0.5)
