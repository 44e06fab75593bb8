"""The kernels of the estimate with offers and late labels, each against a plain computation of what it states."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta

from lenience import Belief, MixtureBelief, Offers
from lenience.solvers.delayed.blocks import DENSE, GROWTH, TIMES, pending_grid, rule_of_block
from lenience.solvers.offers import delayed_blocks
from lenience.solvers.offers.delayed_blocks import (
    FINENESS,
    _block,
    _finest,
    _mixture,
    _rows,
    _table_pending,
    best_profit,
    expected_after,
    most_pending,
    place_of,
    run_offer_blocks,
    worth_of_label,
    write_grid,
    write_weights,
)
from lenience.solvers.offers.solve import prepare

Array = NDArray[np.float64]
ONE = _mixture(Belief(3, 1.8))[0]
TWO = _mixture(MixtureBelief((Belief(3, 1.8), Belief(40, 18)), (0.7, 0.3)))[0]
SLOW = _mixture(MixtureBelief((Belief(3, 1.8), Belief(900, 450)), (0.4, 0.6)))[0]  # p̂ moves more slowly than y
MENUS = Offers.draw([Offers.menu([1, 2], [0.5, 0.6]), Offers.menu([3], [0.55]), Offers.menu([0.5], [0.3])])
ARRAYS = prepare(MENUS)
KINK, SLOPE = ARRAYS.kink, ARRAYS.slope


def mean_of(k: float, y: float, mixture: Array) -> float:
    """The mean of p after k labels at y, from the densities of the mixture."""
    a, b, _ = mixture[-1]
    size = a + b + k
    good, bad = y * size, (1 - y) * size
    logs, means = [], []
    for line in mixture[:-1]:
        logs.append(
            line[2] + math.lgamma(good + line[0]) + math.lgamma(bad + line[1]) - math.lgamma(size + sum(line[:2]))
        )
        means.append((good + line[0]) / (size + line[0] + line[1]))
    weights = np.exp(np.array(logs) - max(logs))
    return float(weights @ means / weights.sum())


def plain_profit(rate: float) -> float:
    return float(np.sum(SLOPE * np.maximum(rate - KINK, 0.0)))


def plain_intervals(k: float, mixture: Array, width: float, least: float, most: float) -> list[tuple[float, float]]:
    """What the grid covers: the neighbourhoods of the kinks, joined where they overlap."""
    size = mixture[-1, 0] + mixture[-1, 1] + k
    least, most = max(least, 1e-3 / size), min(most, 1 - 1e-3 / size)
    joined: list[tuple[float, float]] = []
    for kink in KINK:
        if mean_of(k, least, mixture) >= kink:
            centre = least
        elif mean_of(k, most, mixture) <= kink:
            centre = most
        else:
            centre = brentq(lambda y, kink=kink: mean_of(k, y, mixture) - kink, least, most, xtol=1e-14)
        reach = width * math.sqrt(max(kink * (1 - kink), 1e-6) / size)
        low, high = max(centre - reach, least), min(centre + reach, most)
        if len(mixture) > 2:
            weights = np.empty(len(mixture))

            def ends(y: float, side: float, kink: float = kink, weights: Array = weights) -> bool:
                mean, deviation = write_weights(k, y, mixture, weights)
                return bool(side * (mean - kink) >= 0.7 * width * deviation)

            while low > least and not ends(low, -1.0):
                low = max(low - reach / 2, least)
            while high < most and not ends(high, 1.0):
                high = min(high + reach / 2, most)
        while joined and low <= joined[-1][1]:
            before = joined.pop()
            low, high = min(low, before[0]), max(high, before[1])
        if high > low:
            joined.append((low, high))
    return joined or [(least, most)]


@pytest.mark.parametrize("mixture", [ONE, TWO, SLOW])
@pytest.mark.parametrize(
    ("k", "least", "most"), [(0.0, 0.0, 1.0), (5.0, 0.0, 1.0), (900.0, 0.0, 1.0), (900.0, 0.52, 0.58), (9e4, 0.7, 0.9)]
)
def test_the_nodes_of_a_row(mixture: Array, k: float, least: float, most: float) -> None:
    nodes, intervals = np.empty(47), np.zeros((KINK.size, 4))
    found = write_grid(k, mixture, KINK, 4.0, least, most, nodes, intervals)
    expected = plain_intervals(k, mixture, 4.0, least, most)
    assert found == len(expected)
    total = sum(high - low for low, high in expected)
    used, covered = 0, 0.0
    for i, (low, high) in enumerate(expected):
        covered += high - low
        upto = 47 if i == found - 1 else 5 * (i + 1) + int((47 - 5 * found) * covered / total + 0.5)
        np.testing.assert_allclose(nodes[used:upto], np.linspace(low, high, upto - used), atol=1e-12)
        step = (high - low) / (upto - used - 1)
        np.testing.assert_allclose(intervals[i], [low, step, used, upto - used], atol=1e-12)
        used = upto


def test_the_place_of_a_mean() -> None:
    for mixture in (ONE, TWO):
        for mean in (0.2, 0.4, 0.55, 0.9):
            place = place_of(mean, 7.0, 0.3, 0.8, mixture)
            ends = mean_of(7.0, 0.3, mixture), mean_of(7.0, 0.8, mixture)
            if ends[0] < mean < ends[1]:
                assert mean_of(7.0, place, mixture) == pytest.approx(mean, abs=1e-12)
            else:
                assert place == pytest.approx(0.3 if mean <= ends[0] else 0.8)


def test_moments_of_a_mixture() -> None:
    weights = np.empty(3)
    for k, y in ((0.0, 0.6), (6.0, 0.3), (50.0, 0.5)):
        mean, deviation = write_weights(k, y, TWO, weights)
        assert mean == pytest.approx(mean_of(k, y, TWO), rel=1e-12)
        size = TWO[-1, 0] + TWO[-1, 1] + k
        second = sum(
            weight * beta(y * size + line[0], (1 - y) * size + line[1]).moment(2)
            for weight, line in zip(weights, TWO[:-1], strict=False)
        )
        assert deviation == pytest.approx(math.sqrt(second - mean**2), rel=1e-9)


def plain_after(
    value: Array, next_nodes: list[Array], k: float, block: float, y: float, mixture: Array, horizon: float
) -> Array:
    """E V after a block: one number of successes after the other, a parabola through the three nearest nodes."""
    size = mixture[-1, 0] + mixture[-1, 1] + k
    weights, rates, chances = np.empty(len(mixture)), np.empty(3), np.empty(3)
    mean = write_weights(k, y, mixture, weights)[0]
    points: list[tuple[float, float]] = []
    if block == 1.0:
        points = [(y * size + 1.0, mean), (y * size, 1.0 - mean)]
    else:
        for weight, line in zip(weights, mixture[:-1], strict=False):
            a, n = y * size + line[0], size + line[0] + line[1]
            rule_of_block(n, a / n, block, rates, chances)
            for rate, chance in zip(rates, chances, strict=True):
                new = min(max(rate * (n + block) - a, 0.0), block)
                points.append((y * size + new, weight * chance))
    total = np.zeros(value.shape[0])
    for good, probability in points:
        place = good / (size + block)
        first = 0
        for nodes in next_nodes:
            if nodes[0] <= place <= nodes[-1] * (1 + 1e-12):
                begin = min(max(int((place - nodes[0]) / (nodes[1] - nodes[0]) + 0.5) - 1, 0), nodes.size - 3)
                solved = np.linalg.solve(
                    np.vander(nodes[begin : begin + 3] - place), value[:, first + begin : first + begin + 3].T
                )
                total += probability * solved[-1]
                break
            first += nodes.size
        else:
            total += probability * horizon * plain_profit(mean_of(k + block, place, mixture))
    return total


def split(nodes: Array, intervals: Array, found: int) -> list[Array]:
    return [nodes[int(line[2]) : int(line[2] + line[3])] for line in intervals[:found]]


@pytest.mark.parametrize("mixture", [ONE, TWO])
@pytest.mark.parametrize(("k", "block"), [(0.0, 1.0), (40.0, 1.0), (40.0, 3.0), (300.0, 9.0)])
def test_values_after_a_block(mixture: Array, k: float, block: float) -> None:
    y, intervals, here = np.empty(31), np.zeros((KINK.size, 4)), np.zeros((KINK.size, 4))
    nodes = np.empty(31)
    found = write_grid(k + block, mixture, KINK, 3.0, 0.05, 0.95, nodes, intervals)
    write_grid(k, mixture, KINK, 4.0, 0.0, 1.0, y, here)
    value = np.random.default_rng(1).uniform(0.0, 5.0, (2, 31))
    expected = np.empty((2, 31))
    expected_after(value, y, k, block, intervals, found, mixture, KINK, SLOPE, 70.0, expected)
    parts = split(nodes, intervals, found)
    for i in range(31):
        plain = plain_after(value, parts, k, block, y[i], mixture, 70.0)
        np.testing.assert_allclose(expected[:, i], plain, rtol=1e-8, atol=1e-9)


def plain_parabola(x: Array, f: Array, at: float) -> Array:
    return np.asarray(np.linalg.solve(np.vander(x - at), f)[-1])


def plain_worth(value: Array, nodes: Array, block: float, pending: float) -> float:
    """The slope of V in the middle between m and m + 1, from the slopes between the nodes."""
    at, middles = (pending + 0.5) / block, (nodes[1:] + nodes[:-1]) / 2
    slopes = np.diff(value) / np.diff(nodes)
    slope = float(np.interp(at, middles, slopes))
    if at < middles[0]:
        slope = slopes[0] + (slopes[1] - slopes[0]) * (at - middles[0]) / (middles[1] - middles[0])
    return max(slope, 0.0) / block


def test_the_worth_of_a_label() -> None:
    nodes = np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    for f in ([0.0, 3.0, 5.0, 8.0, 9.0], [0.0, -1.0, -1.5, -3.0, -3.5], [0.0, 1.0, 4.0, 5.0, 5.0]):
        value = np.array([f]).T.copy()
        for block in (1.0, 3.0):
            for pending in (0.0, 1.0, 2.0, 5.0, 6.0, 9.0, 15.0, 21.0, 40.0):
                got = worth_of_label(value, nodes, block, pending, 0)
                assert got == pytest.approx(plain_worth(value[:, 0], nodes, block, pending), abs=1e-12)


ARRIVALS, RATE, RESOLVE = 6.0, 0.4, 1.5
PENDING = np.array([0.0, 1.0, 3.0, 8.0])


def plain_state(
    gain: Array, remainder: float, resolving: float, next_pending: float, nodes: Array, above: Array
) -> float:
    """V of one state: the root of its equation, where V(m + 1) is on the parabola through V(m) and the nodes above."""

    def excess(v: float) -> float:
        label = 0.0
        if nodes.size > 1:
            label = float(plain_parabola(nodes[:3], np.append(v, above[:2]), next_pending)) - v
        accepted = ARRIVALS * float(ARRAYS.share @ np.maximum(gain + label, 0.0))
        return accepted + remainder - (RATE + resolving) * v

    return float(brentq(excess, -50.0, 500.0, xtol=1e-13))


def plain_run(after: list[float], blocks: list[float], mixture: Array, count: int) -> tuple[dict[int, Array], Array]:
    """The recursion, state by state; return V of each row by pending node and y, and V at the prior."""
    horizon, in_flight = ARRIVALS / RATE, ARRIVALS / RESOLVE
    most = in_flight + 4.0 * math.sqrt(in_flight) + 6.0
    rows = len(after)
    grids = []
    for k in after:
        nodes, intervals = np.empty(count), np.zeros((KINK.size, 4))
        found = write_grid(k, mixture, KINK, 4.0, 0.0, 1.0, nodes, intervals)
        grids.append(split(nodes, intervals, found))
    pendings = [pending_grid(most / block) for block in blocks]
    means = [
        np.array([mean_of(k, y, mixture) for y in np.concatenate(grid)]) for k, grid in zip(after, grids, strict=True)
    ]
    values = {rows - 1: np.tile([horizon * plain_profit(p) for p in means[-1]], (pendings[-1].size, 1))}
    for k in range(rows - 2, -1, -1):
        block, nodes, later = blocks[k], pendings[k], pendings[k + 1]
        value = np.zeros((nodes.size, count))
        for i, y in enumerate(np.concatenate(grids[k])):
            expected = plain_after(values[k + 1], grids[k + 1], after[k], block, y, mixture, horizon)
            gain = np.array([
                max(ARRAYS.amount[line] * (means[k][i] - ARRAYS.cost[line]) for line in range(begin, end))
                for begin, end in zip(ARRAYS.start[:-1], ARRAYS.start[1:], strict=True)
            ])  # fmt: skip
            for t in range(nodes.size - 1, -1, -1):
                m, remainder = nodes[t], 0.0
                if t:
                    place = min((m - 1.0) * block / blocks[k + 1], later[-1])
                    a = min(max(int(np.searchsorted(later, place)) - 1, 0), later.size - 3)
                    remainder = m * RESOLVE * float(plain_parabola(later[a : a + 3], expected[a : a + 3], place))
                value[t, i] = plain_state(gain, remainder, m * RESOLVE, m + 1.0 / block, nodes[t:], value[t + 1 :, i])
                if value[t, i] <= 1e-15 * horizon:
                    value[t, i] = 0.0
        values[k] = value
    prior = mixture[-1, 0] / (mixture[-1, 0] + mixture[-1, 1])
    inside = next(nodes for nodes in grids[0] if nodes[0] <= prior <= nodes[-1])
    first = sum(nodes.size for nodes in grids[0] if nodes[-1] < inside[0])
    begin = min(max(int((prior - inside[0]) / (inside[1] - inside[0]) + 0.5) - 1, 0), inside.size - 3)
    near = values[0][:, first + begin : first + begin + 3]
    at_prior = np.maximum(
        plain_parabola(inside[begin : begin + 3], near.T, prior), horizon * plain_profit(mean_of(0, prior, mixture))
    )
    return values, at_prior


@pytest.mark.parametrize("mixture", [ONE, TWO])
def test_the_whole_recursion(mixture: Array) -> None:
    after, blocks, count, every = [0.0, 1.0, 2.0, 4.0, 7.0], [1.0, 1.0, 2.0, 3.0, 5.0], 18, 3
    keep = np.array([0, -1, 1, 2, -1])
    given = np.array(after), np.array(blocks), keep, mixture, *ARRAYS[:6]
    most = most_pending(ARRIVALS / RESOLVE)
    nodes, table, grid, at_prior = run_offer_blocks(
        *given, ARRIVALS, RATE, RESOLVE, 4.0, 0.0, 1.0, count, every, PENDING, most
    )
    values, expected = plain_run(after, blocks, mixture, count)
    np.testing.assert_allclose(at_prior, expected, rtol=1e-9)
    assert (nodes.shape, table.shape) == ((3, 6), (3, 6, PENDING.size))
    in_flight = ARRIVALS / RESOLVE
    pendings = [pending_grid((in_flight + 4.0 * math.sqrt(in_flight) + 6.0) / block) for block in blocks]
    np.testing.assert_array_equal(grid, pendings[0] * blocks[0])
    for row, place in ((0, 0), (2, 1), (3, 2)):
        y, intervals = np.empty(count), np.zeros((KINK.size, 4))
        write_grid(after[row], mixture, KINK, 4.0, 0.0, 1.0, y, intervals)
        np.testing.assert_array_equal(nodes[place], y[::every])
        plain = [
            [plain_worth(values[row][:, i], pendings[row], blocks[row], pending) for pending in PENDING]
            for i in range(0, count, every)
        ]
        np.testing.assert_allclose(table[place], plain, atol=1e-8)


def test_rows_and_blocks() -> None:
    after, blocks, keep = _rows(2.0, 10.0, 0.2)
    assert after[0] == 0.0
    for k in range(after.size - 1):
        assert after[k + 1] == after[k] + blocks[k]
        patience = 0.5 if after[k] < TIMES * 10.0 else math.inf
        assert blocks[k] == max(1.0, math.floor(min(0.2 * (2.0 + after[k]), patience)))
    assert after[-2] < 1e6 <= after[-1]
    kept = [k for k in range(after.size) if keep[k] >= 0]
    assert keep[kept].tolist() == list(range(len(kept)))
    assert kept[0] == 0
    assert keep[-1] == -1
    for one, other in pairwise(kept):
        sizes = 2.0 + after[one : other + 1]
        assert sizes[-1] >= 1.1 * sizes[0]
        assert sizes[-2] < 1.1 * sizes[0]
    later = _rows(2.0, 10.0, 0.2, first=700_000.0)[0]
    assert later[0] == 700_000.0
    assert later[-2] < 1.4e6 <= later[-1]
    long = _rows(2.0, 1e6, 0.2)
    assert long[0][-1] >= TIMES * 1e6
    assert long[1].max() > 0.05 * 1e6 >= long[1][long[0] < TIMES * 1e6].max()
    assert _block(100.0, 50.0, 0.05) == 5.0
    assert _block(100.0, 3.9, 0.05) == 3.0
    assert _block(10.0, 3.9, 0.05) == 1.0


def test_the_finest_steps_that_fit() -> None:
    assert _finest(2.0, 100.0, 3.0, 6, math.inf) == FINENESS[0]
    assert _finest(2.0, 100.0, 3.0, 6, 0.0) == FINENESS[-1]

    def states(step: float, points: int, least: int) -> float:
        total = 0.0
        for block in _rows(2.0, 100.0, step)[1]:
            grid = DENSE + math.log1p(30.0 / (DENSE * block)) / math.log(GROWTH)
            total += min(grid, 30.0 / block + 6.0)
        return total * max(points, least)

    for least in (6, 700):
        sizes = [states(step, points, least) for step, points in FINENESS]
        for at in (1, 4):
            chosen = next(i for i, size in enumerate(sizes) if size < sizes[at] * 1.0001)
            assert _finest(2.0, 100.0, 30.0, least, sizes[at] * 1.0001) == FINENESS[chosen]


def test_the_pace_of_a_mixture_is_that_of_its_means() -> None:
    assert _mixture(Belief(3, 1.8))[1] == 3.0
    assert _mixture(MixtureBelief((Belief(30, 15), Belief(20, 10)), (0.5, 0.5)))[1] == 20.0
    apart = MixtureBelief((Belief(30, 12), Belief(20, 12)), (0.25, 0.75))
    mixture, pace = _mixture(apart)
    assert pace == pytest.approx(4.0 * 0.25 / 0.2**2 if 4.0 * 0.25 / 0.2**2 < 20 else 20.0)
    far = _mixture(MixtureBelief((Belief(300, 90), Belief(200, 140)), (0.25, 0.75)))[1]
    assert far == pytest.approx(4.0 * 0.25 / 0.4**2)
    assert mixture[-1].tolist() == [12.0, 8.0, 0.0]
    np.testing.assert_allclose(mixture[:, :2] + [12.0, 8.0], [[12.0, 18.0], [12.0, 8.0], [24.0, 16.0]])
    for line, (n, s, weight) in zip(mixture, ((30, 12, 0.25), (20, 12, 0.75)), strict=False):
        assert line[2] == pytest.approx(
            math.log(weight) - math.lgamma(s) - math.lgamma(n - s) + math.lgamma(n), rel=1e-12
        )


def test_the_numbers_pending_of_the_table() -> None:
    assert _table_pending(4.0).tolist() == [0, 1, 2, 3, 4, 5, 7, 9, 12, 16]
    assert _table_pending(0.0).tolist() == [0, 1, 2]


def test_the_profit_at_a_kink() -> None:
    for rate in (0.1, 0.3, 0.5, 0.55, 0.6, 0.99):
        assert best_profit(rate, KINK, SLOPE) == pytest.approx(plain_profit(rate), abs=1e-12)


@pytest.mark.parametrize("prior", [Belief(3, 1.8), MixtureBelief((Belief(3, 1.8), Belief(40, 18)), (0.7, 0.3))])
@pytest.mark.parametrize(("arrivals", "first"), [(4.0, 0.0), (4e6, 0.0), (40.0, 7.0)])
def test_two_solves_and_what_they_state(
    prior: Belief | MixtureBelief, arrivals: float, first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate, delay, asked = 0.5, 0.25, []
    amounts, unit = Offers([1, 2, 30], [0.5, 0.6, 0.55]), 11.0

    def run(*given: object) -> tuple[Array, Array, Array, Array]:
        asked.append(given)
        kept = int(np.max(given[2])) + 1  # type: ignore[call-overload]
        at_prior = np.array([3.0, 4.0]) + (0.5 if len(asked) == 1 else 0.0)
        return np.full((kept, 2), 0.5), np.full((kept, 2, 1), 2.0), np.array([0.0, 100.0]), at_prior

    monkeypatch.setattr(delayed_blocks, "run_offer_blocks", run)
    result = delayed_blocks.solve_offer_blocks(prior, amounts, arrivals, delay, rate, first=first)
    horizon, kinks = arrivals / rate, 3
    assert len(asked) == (1 if first else 2)
    pace = _mixture(prior)[1]
    states = 1.5e7 / len(MixtureBelief.of(prior).beliefs)
    fine, most = FINENESS[-1] if first else _finest(pace, horizon, arrivals * delay, 6 * kinks, states)
    solves = [(2.5 * fine, most / 1.5), (fine, float(most))][-len(asked) :]
    for (step, points), given in zip(solves, asked, strict=True):
        for mine, theirs in zip(_rows(pace, horizon, step, first), given[:3], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert given[10:13] == (arrivals, rate, 4.0)
        assert given[13] == pytest.approx(max(5.5, math.sqrt(2.0 * math.log1p(30.0 * horizon)) + 2.0))
        deviation = 10.0 * math.sqrt(prior.variance)
        reach = (prior.mean - deviation, prior.mean + deviation) if isinstance(prior, Belief) else (0.0, 1.0)
        assert given[14:16] == pytest.approx(reach)
        count = max(int(points), 6 * kinks)
        assert given[16:18] == (count, math.ceil(count / 80))
    value = 3.5 if first else 3.0
    scale = horizon * math.sqrt(prior.variance) * unit
    distance = 0.0 if first else 2.0 * 0.5 * unit
    expected = distance + 2e-5 * (value * unit + scale) + 3e-4 * scale * prior.n / (prior.n + 6.0)
    assert (result.value, result.error) == pytest.approx((value * unit, expected), rel=1e-12)
    assert result.pace == pace
    np.testing.assert_array_equal(result.after, _rows(pace, horizon, fine, first)[0][np.asarray(asked[-1][2]) >= 0])
    assert result.labels.min() == result.labels.max() == 2.0 * unit
    np.testing.assert_allclose(result.values, np.minimum(value + result.pending / 100.0, value + 1.0) * unit)
    np.testing.assert_array_equal(result.pending, _table_pending(arrivals * delay))


def test_labels_at_all_beliefs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def run(*given: Any) -> tuple[Array, Array, Array, Array]:
        asked.append(given)
        kept = int(given[2].max()) + 1
        return np.full((kept, 2), 0.5), np.full((kept, 2, 3), 2.0), np.zeros(1), np.zeros(1)

    monkeypatch.setattr(delayed_blocks, "run_offer_blocks", run)
    offers = Offers([1, 2, 30], [0.5, 0.6, 0.55])
    sizes, nodes, counts, labels = delayed_blocks.label_rows(offers, 8.0, 0.25, 0.3, 900.0, 0.05, 300)
    after, blocks, keep = _rows(0.3, 32.0, 0.05, labels=900.0)
    given = asked[0]
    for mine, theirs in zip((after, blocks, keep), given[:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(given[3], [[0.0, 0.0, given[3][0, 2]], [0.15, 0.15, 0.0]])
    for mine, theirs in zip(prepare(offers)[:6], given[4:10], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert given[10:13] == (8.0, 0.25, 1.0)
    assert given[13] == pytest.approx(max(5.5, math.sqrt(2.0 * math.log1p(30.0 * 32.0)) + 2.0))
    assert given[14:18] == (0.0, 1.0, 300, math.ceil(300 / 80))
    assert given[19] == pytest.approx(16.0 + 4.0 * 4.0 + 6.0)
    np.testing.assert_array_equal(sizes, 0.3 + after[keep >= 0])
    np.testing.assert_array_equal(counts, _table_pending(16.0))
    assert nodes.shape == (sizes.size, 2)
    assert labels.min() == labels.max() == 22.0  # in money: the mean amount is 11
