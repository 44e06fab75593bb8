"""The kernels of the estimates with late labels, with and without a horizon, each against a plain computation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import betabinom

from lenience.solvers.delayed import blocks as blocks_module
from lenience.solvers.delayed.blocks import (
    _finest,
    expected_values,
    first_rejection,
    parabola_at,
    pending_grid,
    rows_of,
    run_blocks,
    solve_blocks,
)
from lenience.solvers.delayed.horizon_blocks import annuity, geometric_nodes, run_horizon_blocks

Array = NDArray[np.float64]
COST, WIDTH, COUNT = 0.6137, 3.0, 13


def on_parabola(x: Array, f: Array, at: float) -> Array:
    """The parabola through three points, or the line through two, at a place."""
    return np.asarray(np.linalg.solve(np.vander(x - at), f)[-1])


def rates_of(n: float) -> Array:
    deviation = math.sqrt(COST * (1 - COST) / n)
    return np.linspace(max(0.0, COST - WIDTH * deviation), min(1.0, COST + WIDTH * deviation), COUNT)


def at_rate(rates: Array, value: Array, rate: float, worth: float) -> Array:
    """V at a rate: a parabola through the three nearest, what is earned without learning above them, 0 below them."""
    if rate >= rates[-1]:
        return np.full(value.shape[0], worth * max(rate - COST, 0.0))
    if rate <= rates[0]:
        return np.zeros(value.shape[0])
    nearest = min(max(int((rate - rates[0]) / (rates[1] - rates[0]) + 0.5) - 1, 0), COUNT - 3)
    return on_parabola(rates[nearest : nearest + 3], value[:, nearest : nearest + 3].T, rate)


def plain_expected(value: Array, n: float, block: float, rate: float, worth: float) -> Array:
    """E V after a block, with the three points of Gauss for the number of successes."""
    after = rates_of(n + block)
    if block == 1.0 or rate in (0.0, 1.0):
        points = [(n * rate + block, rate), (n * rate, 1.0 - rate)]
    else:
        counts = np.arange(block + 1)
        pmf = betabinom.pmf(counts, int(block), n * rate, n * (1 - rate))
        if block == 2.0:
            points = [(n * rate + x, chance) for x, chance in zip(counts, pmf, strict=True)]
        else:
            points = [(n * rate + x, chance) for x, chance in gauss(counts, pmf)]
    return np.asarray(sum(chance * at_rate(after, value, good / (n + block), worth) for good, chance in points))


def gauss(x: Array, chances: Array) -> list[tuple[float, float]]:
    """Three points and weights with the moments of a distribution, by Lanczos on the distribution itself."""
    diagonal: list[float] = []
    beside: list[float] = []
    q, before = np.sqrt(chances), np.zeros(x.size)
    for _ in range(3):
        new = x * q
        diagonal.append(float(q @ new))
        new = new - diagonal[-1] * q - (beside[-1] if beside else 0.0) * before
        beside.append(float(np.linalg.norm(new)))
        before, q = q, new / beside[-1]
    matrix = np.diag(diagonal) + np.diag(beside[:2], 1) + np.diag(beside[:2], -1)
    roots, vectors = np.linalg.eigh(matrix)
    return list(zip(roots.tolist(), (vectors[0] ** 2).tolist(), strict=True))


@pytest.mark.parametrize(("n", "block"), [(3.0, 1.0), (40.0, 2.0), (90.0, 4.0), (1.2345, 2.0)])
def test_values_after_a_block(n: float, block: float) -> None:
    here, after = rates_of(n), rates_of(n + block)
    value = np.random.default_rng(2).uniform(0.0, 3.0, (2, COUNT))
    expected = np.empty((2, COUNT))
    steps = here[1] - here[0], after[1] - after[0]
    expected_values(value, here[0], steps[0], after[0], steps[1], n, block, COST, 25.0, expected)
    for i, rate in enumerate(here):
        np.testing.assert_allclose(expected[:, i], plain_expected(value, n, block, rate, 25.0), rtol=1e-6, atol=1e-8)


def test_weights_of_a_parabola() -> None:
    f = np.array([1.0, -2.0, 5.0, 7.0, -3.0, 2.0])
    for position in (0.0, 0.4, 0.6, 1.5, 2.2, 3.49, 3.51, 4.7, 5.0):
        first, *weights = parabola_at(position, 6)
        assert first == min(max(math.floor(position + 0.5) - 1, 0), 3)
        near = np.arange(first, first + 3)
        assert np.dot(weights, f[near]) == pytest.approx(float(on_parabola(near.astype(float), f[near], position)))


def test_the_grid_of_pending_blocks() -> None:
    nodes = pending_grid(200.0)
    assert nodes[:31].tolist() == list(range(31))
    for one, other in pairwise(nodes[30:]):
        assert other == one + max(1.0, math.floor(0.05 * one + 1e-9))
    assert nodes[-2] < 200.0 <= nodes[-1]
    assert pending_grid(0.5).tolist() == [0.0, 1.0, 2.0]


def plain_rejection(value: Array, nodes: Array, block: float, loss: float) -> float:
    """Where the slope of V falls to the loss: slopes between nodes count in the middle, at 0 that of a parabola."""
    places = np.concatenate([[0.0], (nodes[1:] + nodes[:-1]) / 2 * block])
    steps = nodes * block
    start = float(np.polyfit(steps[:3], value[:3], 2)[1])
    slopes = np.concatenate([[start], np.diff(value) / np.diff(steps)])
    if slopes[0] <= loss:
        return 0.0
    for t in range(1, slopes.size):
        if slopes[t] <= loss:
            return float(np.interp(loss, [slopes[t], slopes[t - 1]], [places[t], places[t - 1]]))
    return float(steps[-1])


@pytest.mark.parametrize("block", [1.0, 3.0])
def test_the_first_rejection(block: float) -> None:
    nodes = np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    value = np.array([[0.0, 2.0, 3.4, 5.0, 5.6]]).T.copy()
    for loss in (0.01, 0.1, 0.3, 0.5, 0.9, 1.5, 2.2, 2.5, 5.0):
        expected = plain_rejection(value[:, 0], nodes, block, loss)
        assert first_rejection(value, nodes, block, loss, 0) == pytest.approx(expected, abs=1e-9)


ARRIVALS, RATE, RESOLVE = 5.0, 0.5, 1.25


def plain_after(later_nodes: Array, expected: Array, m: float, block: float, next_block: float) -> float:
    """What is left after a block of labels, with one block less pending."""
    place = min((m - 1.0) * block / next_block, later_nodes[-1])
    a = min(max(int(np.searchsorted(later_nodes, place)) - 1, 0), later_nodes.size - 3)
    return float(on_parabola(later_nodes[a : a + 3], expected[a : a + 3], place))


def test_the_whole_recursion() -> None:
    sizes, blocks = np.array([2.0, 3.0, 5.0, 8.0, 12.0]) + 0.3217, np.array([1.0, 2.0, 3.0, 4.0, 6.0])
    horizon, in_flight = ARRIVALS / RATE, ARRIVALS / RESOLVE
    grids = [pending_grid((in_flight + 4.0 * math.sqrt(in_flight) + 2.0) / block) for block in blocks]
    value = np.tile(horizon * np.maximum(rates_of(sizes[-1]) - COST, 0.0), (grids[-1].size, 1))
    limits = {}
    for k in range(3, -1, -1):
        nodes, rates, block = grids[k], rates_of(sizes[k]), blocks[k]
        new = np.zeros((nodes.size, COUNT))
        for i, rate in enumerate(rates):
            expected = plain_expected(value, sizes[k], block, rate, horizon)
            for t in range(nodes.size - 1, -1, -1):
                m = nodes[t]
                later = m * RESOLVE * plain_after(grids[k + 1], expected, m, block, blocks[k + 1]) if t else 0.0

                def excess(v: float, above: Array, x: Array, gain: float, later: float, share: float) -> float:
                    label = float(on_parabola(x, np.append(v, above), x[0] + share)) - v if above.size else 0.0
                    return float(ARRIVALS * max(gain + label, 0.0) + later - (RATE + x[0] * RESOLVE) * v)

                given = new[t + 1 : t + 3, i], nodes[t : t + 3], rate - COST, later, 1.0 / block
                new[t, i] = brentq(excess, -30.0, 90.0, args=given, xtol=1e-13)
                if t < nodes.size - 1:  # no value is below 0, as a parabola may be
                    new[t, i] = max(new[t, i], 0.0)
            limits[k, i] = math.inf if rate >= COST else plain_rejection(new[:, i], nodes, block, COST - rate)
        value = new
    for mean in (0.05, 0.5, 0.63, 0.99):
        lowest, steps, found, pending, at_prior = run_blocks(
            sizes, blocks, mean, COST, ARRIVALS, RATE, RESOLVE, WIDTH, COUNT
        )
        expected = np.maximum(at_rate(rates_of(sizes[0]), value, mean, horizon), 0.0)
        np.testing.assert_allclose(at_prior, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(pending, grids[0] * blocks[0])
    for k, n in enumerate(sizes):
        np.testing.assert_allclose(lowest[k] + steps[k] * np.arange(COUNT), rates_of(n), atol=1e-12)
    for (k, i), limit in limits.items():
        assert found[k, i] == pytest.approx(limit, rel=1e-4, abs=1e-6), (k, i)


def test_the_whole_recursion_with_a_horizon() -> None:
    sizes, blocks = np.array([2.0, 3.0, 5.0, 8.0]) + 0.3217, np.array([1.0, 2.0, 3.0, 4.0])
    lefts = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 8.0])
    gamma = ARRIVALS / (ARRIVALS + RATE)
    annuities = np.array([annuity(left, gamma) for left in lefts])
    grids = [np.array([0.0, 1.0, 2.0, 3.0, 5.0, 8.0]), np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0]),
             np.array([0.0, 1.0, 2.0])]  # fmt: skip
    nodes, counts = np.zeros((4, 6)), np.array([grid.size for grid in grids])
    for k, grid in enumerate(grids):
        nodes[k, : grid.size] = grid
    values: dict[tuple[int, int], Array] = {(0, k): np.zeros((grids[k].size, COUNT)) for k in range(4)}
    for t in range(1, lefts.size):
        worth = annuities[t]
        values[t, 3] = np.tile(worth * np.maximum(rates_of(sizes[-1]) - COST, 0.0), (3, 1))
        for k in (2, 1, 0):
            grid, block, new = grids[k], blocks[k], np.zeros((grids[k].size, COUNT))
            for i, rate in enumerate(rates_of(sizes[k])):
                expected = plain_expected(values[t, k + 1], sizes[k], block, rate, worth)
                for q in range(grid.size - 1, -1, -1):
                    m = grid[q]
                    later = m * RESOLVE * plain_after(grids[k + 1], expected, m, block, blocks[k + 1]) if q else 0.0

                    def one_less(at: int, v: float, t: int, k: int, i: int) -> float:
                        """V with one arrival less, where V with all of them is v."""
                        start = max(t - 2, 0)
                        past = [values[u, k][at, i] for u in range(start, t)]
                        return float(on_parabola(lefts[start : t + 1], np.array([*past, v]), lefts[t] - 1.0))

                    def excess(
                        v: float, t: int, k: int, i: int, q: int, gain: float, later: float, new: Array
                    ) -> float:
                        stay = one_less(q, v, t, k, i)
                        x = grids[k][q : q + 3]
                        if x.size == 1:
                            best = max(gain, 0.0) + stay
                        else:
                            above = [one_less(q + 1 + j, new[q + 1 + j, i], t, k, i) for j in range(x.size - 1)]
                            more = float(on_parabola(x, np.array([stay, *above]), x[0] + 1.0 / blocks[k]))
                            best = max(stay, gain + more)
                        return float(ARRIVALS * best + later - (RATE + ARRIVALS + x[0] * RESOLVE) * v)

                    new[q, i] = brentq(excess, -30.0, 90.0, args=(t, k, i, q, rate - COST, later, new), xtol=1e-13)
                    if q < grid.size - 1:
                        new[q, i] = max(new[q, i], 0.0)
            values[t, k] = new
    for mean in (0.45, 0.66):
        lowest, steps, limits, at_prior = run_horizon_blocks(
            sizes, blocks, lefts, annuities, nodes, counts, mean, COST, ARRIVALS, RATE, RESOLVE, WIDTH, COUNT
        )
        expected = np.maximum(at_rate(rates_of(sizes[0]), values[5, 0], mean, annuities[-1]), 0.0)
        np.testing.assert_allclose(at_prior, expected, rtol=1e-6, atol=1e-9)
    for k, n in enumerate(sizes):
        rates = rates_of(n)
        np.testing.assert_allclose(lowest[k] + steps[k] * np.arange(COUNT), rates, atol=1e-12)
        for t in range(1, lefts.size):
            for i, rate in enumerate(rates):
                if rate >= COST:
                    limit = math.inf
                elif k == 3:
                    limit = 0.0
                else:
                    limit = plain_rejection(values[t - 1, k][:, i], grids[k], blocks[k], COST - rate)
                assert limits[t, k, i] == pytest.approx(limit, rel=1e-4, abs=1e-5), (t, k, i)


def test_nodes_and_annuities() -> None:
    assert geometric_nodes(0.5, 4, 1.5).tolist() == [0.0, 1.0, 2.0]
    assert geometric_nodes(2.5, 4, 1.5).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert geometric_nodes(7.2, 4, 1.05).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert annuity(5, 0.9) == pytest.approx(sum(0.9**k for k in range(1, 6)), rel=1e-12)
    assert rows_of(9.0, 9.0, 0.5)[0].tolist() == [9.0, 13.0]


def test_the_finest_steps_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def states(step: float, points: int) -> float:
        nodes = 30.0 + math.log(1.0 + 400.0 / (30.0 * max(1.0, step * 500.0))) / math.log(1.05)
        return rows_of(500.0, 500.0 + 12.0 * 80.0, step)[0].size * nodes * points

    sizes = [states(*pair) for pair in blocks_module.FINENESS]
    for at in (0, 3, 6):
        monkeypatch.setattr(blocks_module, "MOST_STATES", sizes[at] * 1.0001)
        chosen = next(i for i, size in enumerate(sizes) if size < sizes[at] * 1.0001)
        assert _finest(500.0, 80.0, 400.0) == blocks_module.FINENESS[chosen]
    monkeypatch.setattr(blocks_module, "MOST_STATES", 0.0)
    assert _finest(500.0, 80.0, 400.0) == blocks_module.FINENESS[-1]


def test_the_stated_error_is_twice_the_distance_of_two_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "FINENESS", ((0.1, 31),))
    n, s, cost = 20.0, 11.0, 0.6
    solution = solve_blocks(n, s, cost, 4.0, 0.5, 2.0)
    width = max(7.0, math.sqrt(2.0 * math.log(9.0)) + 2.0)
    values = []
    for step, points in ((0.25, 31 / 1.5), (0.1, 31)):
        sizes, blocks = rows_of(n, n + 96.0, step)
        count = 2 * round(points * width / 14.0) + 1
        values.append(run_blocks(sizes, blocks, s / n, cost, 4.0, 0.5, 2.0, width, count)[4][0])
    kinks = 8.0 * math.sqrt(cost * (1 - cost) / (n + 1)) * n / (n + 6.0)
    assert solution.value == pytest.approx(values[1], rel=1e-12)
    assert solution.error == pytest.approx(2 * abs(values[1] - values[0]) + 1e-4 * values[1] + 1e-4 * kinks, rel=1e-9)
