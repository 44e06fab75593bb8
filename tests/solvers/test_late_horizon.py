"""Late labels with a known number of arrivals: against a plain loop, known limits of the model, and estimates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Delayed, FiniteHorizon, MixtureBelief
from lenience.core.errors import InputError, TooLargeError
from lenience.policies import HorizonExposurePolicy
from lenience.policies.beliefs.horizon_exposure import _estimated_limit
from lenience.solvers.delayed import horizon_blocks
from lenience.solvers.delayed.horizon import solve_late_horizon
from lenience.solvers.delayed.horizon_blocks import HorizonBlocks, solve_horizon_blocks
from oracles import late_horizon_values


@pytest.mark.parametrize(
    ("prior", "cost", "arrivals", "rate", "delay"),
    [
        (Belief(2, 1), 0.61, 10.0, 0.0, 0.5),
        (Belief(5.5, 3.2), 0.62, 7.0, 0.3, 0.9),
        (MixtureBelief.doubt(Belief(4, 2.4), 0.3), 0.6, 10.0, 0.1, 0.2),
    ],
)
def test_values_and_limits_agree_with_a_plain_loop(
    prior: Belief | MixtureBelief, cost: float, arrivals: float, rate: float, delay: float
) -> None:
    horizon, pending = 14, 3
    solution = solve_late_horizon(prior, cost, arrivals, rate, 1 / delay, horizon, pending)
    values, limits = late_horizon_values(prior, cost, arrivals, rate, 1 / delay, horizon, pending)
    for m in range(pending + 1):
        assert values[m] in solution.values[m]
        assert solution.values[m].upper - solution.values[m].lower < 1e-10
    assert max(values) > 0.1
    compared = 0
    for (left, k, j), limit in limits.items():
        assert solution.limit(left, k, j) == limit, (left, k, j)
        compared += limit > 0
    assert compared > 50


def test_prompt_labels_give_the_finite_horizon_and_many_arrivals_no_horizon() -> None:
    prior = Belief(2, 1)
    prompt = FiniteHorizon(0.7, 60).solve(prior).value(prior).midpoint
    quick = Delayed(0.7, arrivals=1, label_delay=1e-7, horizon=60).solve(prior)
    assert quick.value(prior).midpoint == pytest.approx(prompt, rel=1e-5)
    endless = Delayed(0.7, 20, 1.0, 0.2)
    long = Delayed(0.7, 20, 1.0, 0.2, horizon=190).solve(prior)
    assert long.value(prior).midpoint == pytest.approx(endless.solve(prior).value(prior).midpoint, rel=1e-3)


@pytest.mark.parametrize(
    ("n", "s", "cost", "arrivals", "rate", "delay", "horizon"),
    [
        (2.0, 1.0, 0.7, 50.0, 0.1, 0.5, 120),
        (4.0, 2.7, 0.7, 1.0, 0.0, 13.58, 150),
        (40.0, 27.0, 0.7, 10.0, 0.2, 1.0, 150),
        (100.0, 68.0, 0.7, 100.0, 0.2, 0.25, 150),
    ],
)
def test_the_stated_error_of_estimates_holds(
    n: float, s: float, cost: float, arrivals: float, rate: float, delay: float, horizon: int
) -> None:
    exact = solve_late_horizon(Belief(n, s), cost, arrivals, rate, 1 / delay, horizon).values[0]
    estimate = solve_horizon_blocks(n, s, cost, arrivals, rate, 1 / delay, horizon)
    assert exact.lower - estimate.error <= estimate.value <= exact.upper + estimate.error
    scale = horizon * math.sqrt(cost * (1 - cost) / (n + 1))
    assert estimate.error < 0.02 * estimate.value + 1.5e-3 * scale
    assert estimate.value == pytest.approx(exact.midpoint, rel=4e-4, abs=5e-4 * scale)


def test_estimated_limits_are_near_the_exact_ones() -> None:
    objective, prior = Delayed(0.7, 50, label_delay=0.2, horizon=150), Belief(2, 1)
    exact, rough = objective.solve(prior), objective.solve(prior, seconds=1e-9)
    assert exact.certificate.proved
    assert not rough.certificate.proved
    assert "estimated" in rough.certificate.statement
    for left in (140, 100, 50, 20):
        for belief in (prior, Belief(10, 6), Belief(12, 8)):
            one, other = exact.limit(belief, left), rough.limit(belief, left)
            assert abs(one - other) <= 1 + 0.15 * one
    assert rough.limit(Belief(10, 8), 50) is None
    assert rough.value(prior).lower <= exact.value(prior).midpoint <= rough.value(prior).upper


def test_estimated_limits_between_the_grid() -> None:
    # Logarithms that are linear in the arrivals left, in log n and in the rate at equal distance are met exactly.
    cost, sizes, lefts = 0.6, np.array([4.0, 9.0, 25.0]), np.array([0.0, 10.0, 40.0])
    lowest, steps = np.array([0.1, 0.2, 0.3]), np.array([0.05, 0.04, 0.03])

    def logarithm(left: float, n: float, distance: float) -> float:
        return 0.2 + 0.03 * left + 0.4 * math.log(n) + 2.0 * (distance + 1.2)

    limits = np.empty((3, 3, 12))
    for t, left in enumerate(lefts.tolist()):
        for k, n in enumerate(sizes.tolist()):
            for i in range(12):
                distance = (lowest[k] + i * steps[k] - cost) * math.sqrt(n)
                limits[t, k, i] = math.expm1(logarithm(left, n, distance))
    blocks = HorizonBlocks(1.0, 0.1, lefts, sizes, lowest, steps, limits, np.zeros(1), np.zeros(1))  # type: ignore[arg-type]
    for n, mean, left in (
        (4.0, 0.4, 10),
        (6.0, 0.45, 25),
        (9.0, 0.5, 40),
        (12.0, 0.5, 17),
        (25.0, 0.55, 33),
        (20, 0.5, 3),
    ):
        expected = math.expm1(logarithm(left, n, (mean - cost) * math.sqrt(n)))
        assert _estimated_limit(blocks, cost, Belief(n, n * mean), left) == math.floor(expected + 0.5)
    # Smaller and larger than the grid: its ends count.
    small, least = Belief(2.0, 0.9), cost + (0.45 - cost) * math.sqrt(2.0 / 4.0)
    assert _estimated_limit(blocks, cost, small, 10) == _estimated_limit(blocks, cost, Belief(4.0, 4.0 * least), 10)
    assert _estimated_limit(blocks, cost, Belief(9.0, 4.5), 90) == _estimated_limit(blocks, cost, Belief(9.0, 4.5), 40)
    assert _estimated_limit(blocks, cost, Belief(9.0, 1.0), 40) == 0  # below the lowest rate


def test_large_horizons_are_estimated_and_tend_to_no_horizon() -> None:
    prior = Belief(2, 1)
    policy = Delayed(0.8, 1000, 0.1, 1, horizon=1_000_000).solve(prior)
    assert not policy.certificate.proved
    assert 187.055 in policy.value(prior)
    limits = [policy.limit(Belief(100, 78), left) for left in (1_000_000, 10_000, 20)]
    assert limits[0] > limits[1] > limits[2] == 0


def test_a_policy_answers_for_beliefs_beside_its_lattice_and_after_more_labels_than_expected() -> None:
    policy = Delayed(0.7, 50, label_delay=0.2, horizon=60).solve(Belief(2, 1))
    assert policy.limit(Belief(10.5, 6.2), left=40) == Delayed(0.7, 50, label_delay=0.2, horizon=40).solve(
        Belief(10.5, 6.2)
    ).limit(Belief(10.5, 6.2))
    assert policy.limit(Belief(42, 28), left=55) >= 0
    assert policy.value(Belief(2, 1), pending=50).midpoint > policy.value(Belief(2, 1)).midpoint
    again = HorizonExposurePolicy.from_json(policy.to_json())
    assert again.limit(Belief(12, 8), left=30) == policy.limit(Belief(12, 8), left=30)
    assert again.accept_now(Belief(12, 8), 1, 100, left=30) == policy.limit(Belief(12, 8), left=30) - 1


def test_estimates_of_beliefs_and_numbers_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizon_blocks, "MOST_STATES", 2e6)  # rougher and faster
    objective, prior = Delayed(0.55, 20, label_delay=0.2, horizon=30), Belief(4, 2)
    exact, rough = objective.solve(prior), objective.solve(prior, seconds=1e-9)
    blocks = rough._blocks(prior)
    assert rough._blocks(Belief(30, 20)) is blocks
    assert rough._blocks(Belief(4, 3)) is blocks  # as large as the prior
    assert rough._blocks(Belief(2, 1)).sizes[0] == 2.0
    for belief, pending in ((Belief(2, 1), 3), (prior, 0), (prior, 5)):
        estimate, proved = rough.value(belief, pending), exact.value(belief, pending)
        assert estimate.lower <= proved.midpoint <= estimate.upper
        assert estimate.midpoint == pytest.approx(proved.midpoint, rel=5e-3)
        own = rough._blocks(belief)
        scale = max(estimate.midpoint / own.value, 1.0)  # a larger value may err by more
        assert estimate.width == pytest.approx(2 * own.error * scale, rel=1e-9)


def test_what_a_horizon_does_not_take_is_rejected() -> None:
    objective = Delayed(0.7, 50, label_delay=0.2, horizon=60)
    assert objective.discount_rate == 0
    assert objective.for_share(0.25).horizon == 15
    assert objective.volume == 60
    for call in (objective.enclose, objective.solve_proved, objective.problem):
        with pytest.raises(InputError, match="without a horizon"):
            call(Belief(2, 1))
    with pytest.raises(InputError, match="horizon"):
        Delayed(0.7, 50, label_delay=0.2, horizon=0)
    with pytest.raises(InputError, match="discount_rate"):
        Delayed(0.7, 50, 0.0, 0.2)
    with pytest.raises(TooLargeError):
        Delayed(0.7, 50, label_delay=0.2, horizon=10_000).solve(MixtureBelief.doubt(Belief(4, 2), 0.2))


def test_fewer_arrivals_left_never_raise_a_limit_by_much_and_zero_is_reached() -> None:
    policy = Delayed(0.7, 50, label_delay=0.2, horizon=100).solve(Belief(2, 1))
    limits = [policy.limit(Belief(12, 8), left) for left in range(90, 0, -1)]
    assert limits[-1] == 0
    assert np.all(np.diff(limits) <= 1)


SMALL = [
    (2.0, 1.0, 0.55, 5.0, 0.1, 2.0, 12),
    (4.0, 2.5, 0.6, 3.0, 0.0, 1.0, 16),
    (3.0, 1.0, 0.4, 8.0, 0.3, 4.0, 20),
    (10.0, 7.0, 0.72, 4.0, 0.05, 1.0, 20),
    (1.0, 0.5, 0.6, 6.0, 0.2, 0.7, 24),
]


@pytest.mark.parametrize("problem", SMALL)
def test_small_estimates_are_nearly_exact(problem: tuple[float, float, float, float, float, float, int]) -> None:
    # Here the grids hold every number pending and left, and only rates are interpolated.
    n, s, cost, arrivals, rate, resolve, horizon = problem
    exact = solve_late_horizon(Belief(n, s), cost, arrivals, rate, resolve, horizon, 4)
    blocks = solve_horizon_blocks(*problem)
    assert blocks.value == pytest.approx(exact.values[0].midpoint, rel=3e-5)
    assert blocks.pending[:5].tolist() == [0, 1, 2, 3, 4]
    assert blocks.lefts.tolist() == list(range(horizon + 1))
    for m in range(5):
        # Labels pending at the start add to those that may be pending at once, which the estimate cuts off.
        assert blocks.values[m] == pytest.approx(exact.values[m].midpoint, rel=2e-3)
    gamma = arrivals / (arrivals + rate)
    kinks = math.sqrt(cost * (1 - cost) / (n + 1)) * math.fsum(gamma ** (i + 1) for i in range(horizon))
    stated = 1e-3 * blocks.value + 5e-4 * kinks
    assert stated < blocks.error < stated + 1e-3 * blocks.value  # the rest is the distance of two solves
    settled = compared = 0
    for left in (2, horizon // 2, horizon):
        for k in range(0, horizon - left + 1, 2):
            for j in range(k + 1):
                belief = Belief(n + k, s + j)
                if belief.mean < cost - 1e-9:
                    one, other = exact.limit(left, k, j), _estimated_limit(blocks, cost, belief, left)
                    assert abs(one - other) <= 1 + 0.3 * one
                    settled += one == other
                    compared += 1
    assert settled >= 0.8 * compared


def test_a_rough_estimate_of_a_small_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizon_blocks, "MOST_STATES", 6e4)
    for problem in (SMALL[0], (3.0, 1.6, 0.5, 9.0, 0.2, 2.0, 9)):
        exact = solve_late_horizon(Belief(*problem[:2]), *problem[2:]).values[0].midpoint
        assert solve_horizon_blocks(*problem).value == pytest.approx(exact, rel=1e-3)
