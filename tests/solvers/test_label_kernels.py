"""The kernels of the table of label values, each against a plain computation of what its docstring states."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Offers
from lenience.solvers.delayed.limit_table import SMALLEST
from lenience.solvers.offers import late_label_table
from lenience.solvers.offers.label_table import fill_column, interpolate, label_of, look_up_label, mesh, step_back
from lenience.solvers.offers.late_label_table import look_up_rise

Array = NDArray[np.float64]
RNG = np.random.default_rng(5)
GRID = np.concatenate([[0.0], np.sort(RNG.uniform(0.02, 0.98, 9)), [1.0]])
CELL = np.array([max(j for j in range(GRID.size) if GRID[j] <= b / 64) for b in range(64)])
SHARE = np.array([0.5, 0.3, 0.2])
COST, AMOUNT = np.array([0.45, 0.6, 0.8]), np.array([0.5, 1.0, 2.0])
GAIN = AMOUNT[:, None] * (GRID[None] - COST[:, None])


def plain_interpolate(f: Array, i: int, x: float) -> float:
    """The parabola through a node and its neighbours where x is between them, otherwise the cubic around x."""
    if x <= 0.0:
        return float(f[0])
    if x >= 1.0:
        return float(f[-1])
    last = GRID.size - 1
    if 0 < i < last and GRID[i - 1] <= x <= GRID[i + 1]:
        nodes = np.arange(i - 1, i + 2)
    else:
        below = max(j for j in range(last) if GRID[j] < x)
        first = min(max(below - 1, 0), last - 3)
        nodes = np.arange(first, first + 4)
    return float(np.linalg.solve(np.vander(GRID[nodes] - x), f[nodes])[-1])


def plain_label(rise: float, rate: float, gain: Array, share: Array = SHARE) -> tuple[float, float]:
    """Try every number of accepted menus, the best first, until they are those with g + I above 0."""
    if rise <= 0.0:
        return 0.0, 0.0
    order = np.argsort(-gain)
    for count in range(gain.size + 1):
        taken, rejected = order[:count], order[count:]
        share_taken = share[taken].sum()
        gained = (share[taken] @ np.minimum(gain[taken], 0.0) + rate * share_taken * rise) / (1.0 + rate * share_taken)
        worth = rate * (rise - gained)
        if np.all(gain[taken] + worth > 0.0) and np.all(gain[rejected] + worth <= 0.0):
            return float(gained), float(worth)
    raise AssertionError("no set of menus is consistent")


def plain_step(n: float, block: int, discount: float, later: Array) -> tuple[Array, Array]:
    """W and Y at a belief size, one node after the other."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    value, rise = np.empty(GRID.size), np.empty(GRID.size)
    for i, p in enumerate(GRID):
        if block == 1:
            expected = p * plain_interpolate(later, i, (p * n + 1.0) / (n + 1.0))
            expected += (1.0 - p) * plain_interpolate(later, i, p * n / (n + 1.0))
        else:
            spread = math.sqrt(p * (1.0 - p) * block / (n + 1.0) / (n + block))
            # The middle point is the node itself.
            points = [plain_interpolate(later, i, p + z * spread) if abs(z) > 1e-9 else later[i] for z in nodes]
            expected = float(np.dot(weights, points) / weights.sum())
        known = float(SHARE @ np.maximum(GAIN[:, i], 0.0))
        rate = discount / (1.0 - discount) / block
        gained, worth = plain_label(expected - known, rate, GAIN[:, i])
        value[i] = known + gained
        rise[i] = gained + worth * (1.0 - discount) / discount
    return value, rise


def convex(seed: int = 0) -> Array:
    """A later value as the recursion has it: convex, and above the gain of the best offers."""
    known = SHARE @ np.maximum(GAIN, 0.0)
    return np.asarray(known + 0.03 * GRID * (1.0 - GRID) * (2.0 + np.sin(seed + GRID)))


@pytest.mark.parametrize("i", [0, 1, 5, GRID.size - 2, GRID.size - 1])
def test_interpolation(i: int) -> None:
    f = RNG.normal(size=GRID.size)
    places = [-0.5, 0.0, 1e-9, 1.0, 1.7, *RNG.uniform(0.0, 1.0, 60)]
    places += [float(GRID[i] + part * (GRID[other] - GRID[i])) for other in (i - 1, i + 1) if 0 <= other < GRID.size
               for part in (0.3, 0.999, 1.001)]  # fmt: skip
    for x in places:
        assert interpolate(GRID, CELL, f, i, x) == pytest.approx(plain_interpolate(f, i, x), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0])
def test_the_label_of_a_rise(rate: float) -> None:
    for rise in (-0.1, 0.0, 1e-4, 0.01, 0.2):
        for gain in ([-0.2, -0.05, 0.3], [-0.4, -0.3, -0.2], [0.1, 0.2, 0.3], [-1e-3, -0.02, -0.5]):
            got = label_of(rise, rate, np.array(gain), SHARE)
            assert got == pytest.approx(plain_label(rise, rate, np.array(gain)), abs=1e-12)


@pytest.mark.parametrize(("n", "block"), [(0.3, 1), (7.0, 1), (200.0, 1), (40.0, 2), (300.0, 6)])
@pytest.mark.parametrize("discount", [0.3, 0.97])
def test_a_step_back(n: float, block: int, discount: float) -> None:
    later, value, rise = convex(), np.empty(GRID.size), np.empty(GRID.size)
    step_back(n, block, discount, GRID, CELL, GAIN, SHARE, later, value, rise)
    expected_value, expected_rise = plain_step(n, block, discount, later)
    np.testing.assert_allclose(value, expected_value, atol=1e-11)
    np.testing.assert_allclose(rise, expected_rise, atol=1e-11)


def plain_column(discount: float, sizes: Array, largest: float) -> Array:
    """The recursion from large belief sizes down, with its values kept by size."""
    horizon = 1.0 / (1.0 - discount)
    way = [1.0]
    while way[-1] < largest + 10.0 * horizon:
        way.append(way[-1] + max(1, int(min(0.02 * way[-1], 0.05 * horizon))))
    value, rise = {way[-1]: SHARE @ np.maximum(GAIN, 0.0)}, {}
    for n, above in list(pairwise(way))[::-1]:
        value[n], rise[n] = plain_step(n, int(above - n), discount, value[above])
    out = np.empty((sizes.size, GRID.size))
    reached = [b for b in range(sizes.size) if sizes[b] <= largest]
    for b, size in enumerate(sizes):
        if size > largest:
            out[b] = out[reached[-1]] * sizes[reached[-1]] / size
        elif size >= 10.0:
            below = max(n for n in rise if n <= size)
            above = way[way.index(below) + 1]
            part = math.log(size / below) / math.log(above / below)
            out[b] = (1.0 - part) * rise[below] + part * rise[above]
        else:
            n = size + math.ceil(10.0 - size)
            later = value[10.0] + (n - 10.0) * (value[11.0] - value[10.0])
            while n > size + 0.5:
                n -= 1.0
                later, out[b] = plain_step(n, 1, discount, later)
    return out


@pytest.mark.parametrize(("discount", "largest"), [(0.5, 14.0), (0.5, 170.0), (0.975, 110.0)])
def test_a_column_of_the_table(discount: float, largest: float) -> None:
    sizes = np.array([0.4, 1.0, 3.7, 9.99, 10.0, 10.5, 13.2, 14.0, 60.0, 108.5, 111.0, 150.0])
    out = np.zeros((sizes.size, GRID.size))
    fill_column(discount, GRID, CELL, GAIN, SHARE, sizes, largest, out)
    np.testing.assert_allclose(out, plain_column(discount, sizes, largest), atol=1e-10)


def test_a_look_up_interpolates_in_three_directions() -> None:
    f = RNG.uniform(0.0, 0.2, (4, 5, GRID.size))
    n0, n_step, g0, g_step = math.log(0.5), 0.8, 0.2, 0.5
    start = np.array([0, 1, 3])  # the second menu has two offers
    share = np.array([0.6, 0.4])

    def plain(n: float, mean: float, discount: float) -> float:
        def place(value: float, count: int) -> tuple[int, float]:
            value = min(max(value, 0.0), count - 1.0)
            return min(int(value), count - 2), value - min(int(value), count - 2)

        discount = min(discount, 1.0 - math.exp(-(g0 + 3 * g_step)))
        column, t = place((math.log(1.0 / (1.0 - discount)) - g0) / g_step, 4)
        row, s = place((math.log(n) - n0) / n_step, 5)
        p = min(max(mean, 0.0), 1.0)
        lines = [[float(np.interp(p, GRID, f[column + a, row + b])) for b in (0, 1)] for a in (0, 1)]
        rise = (1 - t) * ((1 - s) * lines[0][0] + s * lines[0][1]) + t * ((1 - s) * lines[1][0] + s * lines[1][1])
        each = AMOUNT * (p - COST)
        gain = np.array([each[0], max(each[1], each[2])])
        return plain_label(rise, discount / (1.0 - discount), gain, share)[1]

    lines = AMOUNT, COST, start, share, n0, n_step, g0, g_step, GRID, CELL, f
    for n in (0.1, 0.5, 0.7, 3.0, 12.0, 12.3, 400.0):
        for mean in (-0.1, 0.0, 0.3, 0.57, 0.9, 1.0, 1.2):
            for discount in (0.05, 0.2, 0.5, 0.8, 0.82, 0.999):
                assert look_up_label(*lines, n, mean, discount) == pytest.approx(plain(n, mean, discount), abs=1e-10)
    assert look_up_label(*lines, 3.0, 0.5, 0.0) == look_up_label(*lines, 3.0, 0.5, -1.0) == 0.0


def test_the_grid_is_as_fine_as_stated() -> None:
    kinks = np.array([0.2, 0.7, 0.70015])
    grid = mesh(kinks)
    gaps = np.diff(grid)
    fine = 0.002 * np.sqrt(kinks * (1.0 - kinks))
    for p, gap in zip(grid[:-1], gaps, strict=True):
        allowed = min(np.min(fine + 0.04 * np.abs(p - kinks)), 0.002 + 0.08 * min(p, 1.0 - p), 0.015)
        assert gap <= allowed * (1.0 + 1e-9)
        assert gap > 0.4 * allowed  # it is not finer than needed: the last gap before a kink may be short
    assert np.abs(grid - 0.70015).min() > 1e-5  # a kink that nearly coincides with another is no node
    assert np.abs(grid - 0.7).min() < 1e-12


def test_a_look_up_of_late_labels_interpolates() -> None:
    sizes, counts = np.array([0.5, 2.0, 9.0]), np.array([0.0, 1.0, 3.0, 8.0])
    rates = np.array([[0.1, 0.4, 0.9], [0.2, 0.5, 0.8], [0.3, 0.5, 0.7]])
    rises = RNG.uniform(0.0, 1.0, (3, 3, 4)).astype(np.float32)

    def plain(n: float, mean: float, pending: float) -> float:
        if pending > 8.0:
            return 0.0
        total = 0.0
        for row in range(3):
            weight = float(np.interp(math.log(n), np.log(sizes), np.eye(3)[row]))
            if rates[row, 0] <= mean <= rates[row, -1]:
                lines = [np.interp(pending, counts, rises[row, node]) for node in range(3)]
                total += weight * float(np.interp(mean, rates[row], lines))
        return total

    for n in (0.1, 0.5, 1.3, 2.0, 5.0, 9.0, 80.0):
        for mean in (0.05, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.9, 1.0):
            for pending in (0.0, 0.4, 1.0, 2.5, 3.0, 7.9, 8.0, 8.1):
                got = look_up_rise(sizes, rates, counts, rises, n, mean, pending)
                assert got == pytest.approx(plain(n, mean, pending), abs=1e-6), (n, mean, pending)
    single = look_up_rise(sizes[:1], rates[:1], counts, rises[:1], 7.0, 0.25, 2.0)
    assert single == pytest.approx((rises[0, 0, 1] + rises[0, 0, 2] + rises[0, 1, 1] + rises[0, 1, 2]) / 4, abs=1e-6)


def test_a_node_of_late_labels_holds_what_the_equation_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solves from other belief sizes are kept where blocks are few; Y follows from D by its equation."""
    offers, counts = Offers([2, 6], [0.5, 0.7], [0.75, 0.25]), np.array([0.0, 1.0, 4.0])
    asked: list[tuple[object, ...]] = []

    def label_rows(*given: float) -> tuple[Array, Array, Array, Array]:
        asked.append(given)
        sizes = given[3] + np.array([0.0, 1.0, 4.9])
        rates = np.linspace(0.1, 0.9, 4) + 0.0 * sizes[:, None]
        return sizes, rates, counts, 3.0 * sizes[:, None, None] + rates[..., None] - 0.5 * counts

    monkeypatch.setattr(late_label_table, "label_rows", label_rows)
    node = late_label_table._node.__wrapped__(offers, 3, 0.25)
    starts = (SMALLEST, 0.2, 0.45, 0.7)
    assert [given[1:4] for given in asked] == [(8.0, 0.25, first) for first in starts]
    assert all(given[4] == 3e4 for given in asked)
    kept = [starts[0] + step for step in (0.0, 1.0, 4.9)]
    kept += [first + step for first in starts[1:] for step in (0.0, 1.0, 4.9) if first + step < 5.0]
    np.testing.assert_allclose(node.sizes, sorted(kept))
    np.testing.assert_array_equal(node.counts, counts)
    for row, size in enumerate(node.sizes):
        for i, rate in enumerate(node.rates[row]):
            label = (3.0 * size + rate - 0.5 * counts) / 3.0  # in units of the mean amount
            rise = label * (0.25 + counts) / 8.0
            for share, amount, cost in ((0.75, 2 / 3, 0.5), (0.25, 6 / 3, 0.7)):
                gain = amount * (rate - cost)
                rise += share * (np.maximum(gain + label, 0.0) - max(gain, 0.0))
            np.testing.assert_allclose(node.rises[row, i], rise, rtol=1e-6)
