"""The effective discount γ_x and the weights, against a slow dynamic program over all arrivals, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief, Discounted, Segments

ROWS = 12


def lattice(prior: Belief) -> list[tuple[int, int]]:
    return [(k, j) for k in range(ROWS + 1) for j in range(k + 1)]


def step_by_step(
    gamma: float, q: tuple[float, float], cost: tuple[float, float], priors: tuple[Belief, Belief]
) -> float:
    """The optimal value over the joint beliefs of two segments: at each arrival a segment is drawn, then one decides.

    Beyond ROWS observations of a segment nothing more is learnt of it, so the program is finite. No segment is
    treated on its own, no wait is summed, and nothing assumes that a rejection is final.
    """
    states = lattice(priors[0])
    index = {state: i for i, state in enumerate(states)}
    last = np.array([k == ROWS for k, _ in states])
    up = np.array([index.get((k + 1, j + 1), i) for i, (k, j) in enumerate(states)])
    down = np.array([index.get((k + 1, j), i) for i, (k, j) in enumerate(states)])
    mean = [np.array([(prior.s + j) / (prior.n + k) for k, j in states]) for prior in priors]
    value = np.zeros((len(states), len(states)))
    for _ in range(400):
        m0, m1 = mean[0][:, None], mean[1][None, :]
        learn0 = m0 * value[up, :] + (1 - m0) * value[down, :]
        learn1 = m1 * value[:, up] + (1 - m1) * value[:, down]
        accept0 = m0 - cost[0] + gamma * np.where(last[:, None], value, learn0)
        accept1 = m1 - cost[1] + gamma * np.where(last[None, :], value, learn1)
        reject = gamma * value
        rest = 1.0 - q[0] - q[1]
        value = q[0] * np.maximum(accept0, reject) + q[1] * np.maximum(accept1, reject) + rest * reject
    return float(value[0, 0])


def truncated(gamma: float, cost: float, prior: Belief) -> float:
    """V at the prior by the paper's recursion from ROWS observations, where nothing more is learnt."""
    n = prior.n + ROWS
    value: NDArray[np.float64] = np.maximum((prior.s + np.arange(ROWS + 1)) / n - cost, 0.0) / (1.0 - gamma)
    for k in range(ROWS - 1, -1, -1):
        p = (prior.s + np.arange(k + 1)) / (prior.n + k)
        value = np.maximum(p - cost + gamma * (p * value[1:] + (1 - p) * value[:-1]), 0.0)
    return float(value[0])


@pytest.mark.parametrize(
    ("gamma", "q", "cost"),
    [(0.9, (0.7, 0.3), (0.6, 0.7)), (0.85, (0.5, 0.1), (0.65, 0.55)), (0.8, (0.95, 0.05), (0.6, 0.5))],
)
def test_segments_equal_the_joint_program(gamma: float, q: tuple[float, float], cost: tuple[float, float]) -> None:
    priors = (Belief(2, 1), Belief(1.5, 1.0))
    joint = step_by_step(gamma, q, cost, priors)
    total = 0.0
    for share, c, prior in zip(q, cost, priors, strict=True):
        whole = Discounted(c, gamma)
        total += whole.weight_of_share(share) * truncated(whole.for_share(share).discount, c, prior)
    assert total == pytest.approx(joint, abs=1e-12)
    # One γ for all is a mistake that this test would notice.
    naive = sum(
        Discounted(c, gamma).weight_of_share(share) * truncated(gamma, c, prior)
        for share, c, prior in zip(q, cost, priors, strict=True)
    )
    assert abs(naive - joint) > 0.01


def test_library_value_agrees_with_the_joint_program() -> None:
    gamma, q, cost = 0.8, (0.6, 0.4), (0.6, 0.55)
    priors = (Belief(2, 1), Belief(3, 2))
    objectives = {"a": Discounted(cost[0], gamma), "b": Discounted(cost[1], gamma)}
    cells = Segments.of({"a": q[0], "b": q[1]}, objectives, {"a": priors[0], "b": priors[1]})
    value = cells.solve().value()
    joint = step_by_step(gamma, q, cost, priors)
    assert value.width < 1e-8
    assert joint <= value.upper  # the joint program stops learning after 12 observations
    assert value.midpoint - joint < 2e-3


def test_simulated_arrivals_earn_the_value() -> None:
    """Draw truths from the priors, arrivals from the shares, and follow the solved policies."""
    gamma, shares = 0.97, {"a": 0.8, "b": 0.2}
    cells = Segments.of(shares, Discounted(0.6, gamma), Belief(2, 1))
    policies = cells.solve(rows=500)
    tables = [policies[name].accept_from for name in shares]
    generator = np.random.default_rng(20)
    runs, steps = 4000, 400
    truth = generator.random((runs, 2))
    seen = np.zeros((runs, 2), dtype=np.int64)
    good = np.zeros((runs, 2), dtype=np.int64)
    earned = np.zeros(runs)
    every = np.arange(runs)
    for i in range(steps):
        x = (generator.random(runs) < 0.2).astype(np.int64)
        table = np.where(x == 0, tables[0][seen[every, x]], tables[1][seen[every, x]])
        accept = good[every, x] >= table
        success = generator.random(runs) < truth[every, x]
        earned += np.where(accept, gamma**i * (success - 0.6), 0.0)
        seen[every, x] += accept
        good[every, x] += accept & success
    error = earned.std() / np.sqrt(runs)
    assert abs(earned.mean() - policies.value().midpoint) < 4 * error
    assert error < 0.07
