"""A table of the value of one label over (n, p̂, γ), for decisions that cannot wait for a solve.

With features, every individual has its own belief and its own discount, so each decision needs the value of a label at
another place. With W = (1 − γ)V and φ(p̂) = Σ w_k g_k(p̂)⁺ as in :mod:`lenience.solvers.offers.band`,

    W(n, p̂) = Σ w_k (g_k(p̂) + I)⁺,     I = γ/(1 − γ) · (E W(n + 1, p̂′) − W(n, p̂)).

I has a kink at every threshold, and thresholds move with n and γ. So the table holds Y = E W(n + 1, p̂′) − φ(p̂), which
is smooth, in units of the mean amount at stake. It interpolates Y linearly in (log n, p̂, g), g = log 1/(1 − γ), and
solves the scalar equation of W for I at each look-up.

The recursion runs on a grid of p̂ that is finest around the kinks of φ, and for large n in blocks of D labels. A block
moves p̂ by a normal variable of variance p̂(1 − p̂) D/((n + 1)(n + D)), and I = γ/(1 − γ) · (E W(n + D, p̂′) − W)/D. One
pass from large n down to 0 gives all belief sizes of a discount.

Guarantees. None of this is an enclosure: :func:`measured_error` measures the error against certified solves
(research/features-measured.md has the figures). Beyond a belief size at which the leniency is below a thousandth, Y is
continued as 1/n. Below γ = 0.02, Y hardly depends on γ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.disk_cache import cached_arrays
from lenience.core.offers import Offers
from lenience.core.validation import real
from lenience.solvers.offers import solve
from lenience.solvers.offers.solve import OfferArrays, prepare, solve_offers

SMALLEST, LARGEST = 0.05, 3e4  # the belief sizes n of the table
LEAST_DISCOUNT = 0.02
MOST_DISCOUNT = 1.0 - 1e-6
N_STEP = 0.16  # distance between nodes in log n
G_STEP = 0.21  # distance between nodes in g
SINGLE = 10.0  # from this belief size down, labels come one by one from a size that need not be whole
BLOCK = 0.02  # labels in a block, as a share of n
PATIENCE = 0.05  # labels in a block, as a share of 1/(1 − γ)
MOST_OFFERS = 25  # more offers are compressed
CLOSE = 2e-4  # kinks nearer than this share a node of the grid
BUCKETS = 4096  # to find the cell of a p̂

# The Gauss–Hermite rule of five points for a standard normal variable: its points from 0 up, and their weights.
POINT_1, POINT_2 = 1.355626179974266, 2.856970013872806
WEIGHT_0, WEIGHT_1, WEIGHT_2 = 8.0 / 15.0, 0.2220759220056126, 0.0112574113277207


class LabelTable(NamedTuple):
    """Y by column (g from ``g0`` by ``g_step``), row (log n from ``n0`` by ``n_step``) and node of ``grid`` (p̂)."""

    unit: float  # the mean amount at stake
    amount: NDArray[np.float64]  # the offers of the menus, in units of the mean amount
    cost: NDArray[np.float64]
    start: NDArray[np.int64]  # where each menu starts
    share: NDArray[np.float64]
    n0: float
    n_step: float
    g0: float
    g_step: float
    grid: NDArray[np.float64]
    cell: NDArray[np.int64]
    f: NDArray[np.float64]
    kink: NDArray[np.float64]  # the break-evens, and the amount for which each is one
    slope: NDArray[np.float64]

    def label_value(self, n: ArrayLike, mean: ArrayLike, discount: ArrayLike) -> NDArray[np.float64]:
        """Return what a label is worth in money, at belief sizes, means and discounts that broadcast.

        >>> table = label_table(Offers(amount=[500, 5000], cost=[0.8, 0.8]), 0.99)
        >>> table.label_value([2, 10], [0.5, 0.6], 0.99).round(-1)
        array([230., 100.])
        """
        sizes, means, discounts = np.broadcast_arrays(
            *(np.asarray(each, dtype=np.float64) for each in (n, mean, discount))
        )
        result = np.empty(sizes.shape)
        for at in np.ndindex(sizes.shape):
            result[at] = self.unit * look_up_label(
                *self[1:-2], float(sizes[at]), float(means[at]), float(discounts[at])
            )
        return result


@compiled
def look_up_label(
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    grid: NDArray[np.float64],
    cell: NDArray[np.int64],
    f: NDArray[np.float64],
    n: float,
    mean: float,
    discount: float,
) -> float:
    """Return I in units of the mean amount at stake. It is 0 if γ = 0."""
    if discount <= 0.0:
        return 0.0
    columns, rows, points = f.shape
    i = (math.log(max(n, 1e-300)) - n0) / n_step
    i = min(max(i, 0.0), rows - 1.0)
    discount = min(discount, -math.expm1(-(g0 + g_step * (columns - 1.0))))  # the last column's
    j = (-math.log1p(-discount) - g0) / g_step
    j = min(max(j, 0.0), columns - 1.0)
    row = min(int(i), rows - 2)
    column = min(int(j), columns - 2)
    s = i - row
    t = j - column
    p = min(max(mean, 0.0), 1.0)
    k = cell[min(int(p * cell.size), cell.size - 1)]
    while k < points - 2 and grid[k + 1] < p:
        k += 1
    u = (p - grid[k]) / (grid[k + 1] - grid[k])
    rise = 0.0
    for a in range(2):
        for b in range(2):
            here = f[column + a, row + b, k] + u * (f[column + a, row + b, k + 1] - f[column + a, row + b, k])
            rise += (t if a else 1.0 - t) * (s if b else 1.0 - s) * here
    return label_at(rise, discount / (1.0 - discount), p, amount, cost, start, share)


@compiled
def label_at(
    rise: float,
    rate: float,
    p: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
) -> float:
    """Return I where the success rate is p: :func:`label_of` with the gains of the menus there."""
    gain = np.empty(share.size)
    for menu in range(share.size):
        gain[menu] = amount[start[menu]] * (p - cost[start[menu]])
        for line in range(start[menu] + 1, start[menu + 1]):
            gain[menu] = max(gain[menu], amount[line] * (p - cost[line]))
    return label_of(rise, rate, gain, share)[1]


@compiled
def label_of(rise: float, rate: float, gain: NDArray[np.float64], share: NDArray[np.float64]) -> tuple[float, float]:
    """Return X = W − φ and I = rate · (Y − X), from Y and the menus' gains.

    Newton's method on a convex function that is piecewise linear: X rises, so menus only leave the accepted set.
    """
    gained = 0.0
    worth = max(rate * rise, 0.0)
    before = -1.0
    for _ in range(share.size + 1):
        taken = 0.0
        lost = 0.0
        for k in range(share.size):
            if gain[k] + worth > 0.0:
                taken += share[k]
                lost += share[k] * min(gain[k], 0.0)
        if taken == before:
            break
        before = taken
        gained = max((lost + rate * taken * rise) / (1.0 + rate * taken), 0.0)
        worth = max(rate * (rise - gained), 0.0)
    return gained, worth


def label_table(offers: Offers, most_discount: float) -> LabelTable:
    """Return the table for offers and all discounts up to a largest one. A cached table that reaches further is reused.

    More than 25 single offers are compressed.

    >>> offers = Offers(amount=[500, 5000], cost=[0.8, 0.8])
    >>> label_table(offers, 0.99).f is label_table(Offers([5, 50], [0.8, 0.8]), 0.98).f
    True
    """
    unit, scaled = per_mean_amount(offers)
    highest = -math.log1p(-min(max(real("most_discount", most_discount, least=0, below=1), 0.9), MOST_DISCOUNT))
    columns = math.ceil((highest + math.log1p(-LEAST_DISCOUNT)) / G_STEP - 1e-9) + 1
    _reached[scaled] = max(columns, _reached.get(scaled, 0))
    return _build(scaled, _reached[scaled])._replace(unit=unit)


@lru_cache(maxsize=64)
def per_mean_amount(offers: Offers) -> tuple[float, Offers]:
    """Return the mean amount, and the offers in units of it: few of them, in no currency.

    >>> unit, few = per_mean_amount(Offers([500, 1500], [0.8, 0.8], currency="$"))
    >>> unit, few.amount
    (1000.0, (0.5, 1.5))
    """
    unit = offers.mean_amount
    few = offers if offers.menus or len(offers.amount) <= MOST_OFFERS else offers.compress(MOST_OFFERS)
    # Numbers are rounded, so that the same offers in another currency share a table.
    amounts = tuple(float(f"{amount / unit:.12g}") for amount in few.amount)
    costs = tuple(float(f"{cost:.12g}") for cost in few.cost)
    return unit, msgspec.structs.replace(few, amount=amounts, cost=costs, currency="")


_reached: dict[Offers, int] = {}  # by offers: the number of columns of the largest table so far


@lru_cache(maxsize=16)
def _build(offers: Offers, columns: int) -> LabelTable:
    """Return the table from the disk, or compute it column by column."""
    arrays = prepare(offers)
    grid = mesh(arrays.kink)
    cell = np.maximum(np.searchsorted(grid, np.arange(BUCKETS) / BUCKETS, side="right") - 1, 0)
    gain = best_gains(arrays, grid)
    g0, n0 = -math.log1p(-LEAST_DISCOUNT), math.log(SMALLEST)
    sizes = np.exp(n0 + N_STEP * np.arange(math.ceil((math.log(LARGEST) - n0) / N_STEP) + 1))

    def compute() -> list[NDArray[np.float64]]:
        f = np.zeros((columns, len(sizes), len(grid)))
        for column in range(columns):
            discount = -math.expm1(-(g0 + G_STEP * column))
            # The leniency is about √(c(1 − c)/(2(1 − γ)))/n: beyond this size it is below a thousandth.
            largest = min(LARGEST, 200.0 + 500.0 / math.sqrt(2.0 * (1.0 - discount)))
            fill_column(discount, grid, cell, gain, arrays.share, sizes, largest, f[column])
        return [f]

    parameters = f"{msgspec.json.encode(offers).decode()} {columns}"
    (f,) = cached_arrays("labels", parameters, (__file__, solve.__file__), compute)
    lines = arrays.amount, arrays.cost, arrays.start, arrays.share
    return LabelTable(1.0, *lines, n0, N_STEP, g0, G_STEP, grid, cell, f, arrays.kink, arrays.slope)


def best_gains(arrays: OfferArrays, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected profit of the best offer of each menu at success rates, one line for each menu."""
    return np.array(
        [
            np.max(
                [a * (mean - c) for a, c in zip(arrays.amount[first:end], arrays.cost[first:end], strict=True)], axis=0
            )
            for first, end in zip(arrays.start[:-1], arrays.start[1:], strict=True)
        ]
    )


def mesh(kinks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a grid of p̂ from 0 to 1 that is finest around the kinks, which are nodes.

    Of kinks that nearly coincide only one is a node.
    """
    fine = 0.002 * np.sqrt(kinks * (1.0 - kinks))
    nodes = [0.0]
    for kink in kinks.tolist():
        if kink - nodes[-1] > CLOSE and 1.0 - kink > CLOSE:
            nodes.append(kink)

    def spacing(p: float) -> float:
        near_kink = float(np.min(fine + 0.04 * np.abs(p - kinks)))
        return min(near_kink, 0.002 + 0.08 * min(p, 1.0 - p), 0.015)

    parts = [np.zeros(1)]
    for first, end in zip(nodes, [*nodes[1:], 1.0], strict=True):
        points = [first]
        while points[-1] < end:
            points.append(points[-1] + spacing(points[-1]))
        between = np.array(points[1:])
        parts.append(first + (between - first) * ((end - first) / (between[-1] - first)))
    grid = np.concatenate(parts)
    grid[-1] = 1.0
    return grid


@compiled
def fill_column(
    discount: float,
    grid: NDArray[np.float64],
    cell: NDArray[np.int64],
    gain: NDArray[np.float64],
    share: NDArray[np.float64],
    sizes: NDArray[np.float64],
    largest: float,
    out: NDArray[np.float64],
) -> None:
    """Write Y at all belief sizes for one discount; beyond ``largest`` it is continued as 1/n."""
    points = grid.size
    horizon = 1.0 / (1.0 - discount)
    rows = 1
    n = 1.0
    while n < largest + 10.0 * horizon:
        n += max(1, int(min(BLOCK * n, PATIENCE * horizon)))
        rows += 1
    way = np.empty(rows)
    way[0] = 1.0
    for r in range(1, rows):
        way[r] = way[r - 1] + max(1, int(min(BLOCK * way[r - 1], PATIENCE * horizon)))
    later = np.zeros(points)
    for i in range(points):
        for k in range(share.size):
            later[i] += share[k] * max(gain[k, i], 0.0)
    value, rise, rise_above = np.empty((3, points))
    single, single_above = np.empty((2, points))
    at = sizes.size - 1
    while sizes[at] > largest:
        at -= 1
    continued = at
    for r in range(rows - 2, -1, -1):
        step_back(way[r], int(way[r + 1] - way[r]), discount, grid, cell, gain, share, later, value, rise)
        while sizes[at] >= max(way[r], SINGLE):
            t = math.log(sizes[at] / way[r]) / math.log(way[r + 1] / way[r])
            for i in range(points):
                out[at, i] = rise[i] + t * (rise_above[i] - rise[i])
            at -= 1
        rise_above[:] = rise
        later[:] = value
        if way[r] == SINGLE + 1.0:
            single_above[:] = value
        if way[r] == SINGLE:
            single[:] = value
            break
    for b in range(at + 1):
        steps = math.ceil(SINGLE - sizes[b])
        n = sizes[b] + steps
        for i in range(points):
            later[i] = single[i] + (n - SINGLE) * (single_above[i] - single[i])
        for _ in range(steps):
            n -= 1.0
            step_back(n, 1, discount, grid, cell, gain, share, later, value, rise)
            later[:] = value
        out[b] = rise
    for b in range(continued + 1, sizes.size):
        out[b] = out[continued] * (sizes[continued] / sizes[b])


@compiled
def step_back(
    n: float,
    block: int,
    discount: float,
    grid: NDArray[np.float64],
    cell: NDArray[np.int64],
    gain: NDArray[np.float64],
    share: NDArray[np.float64],
    later: NDArray[np.float64],
    value: NDArray[np.float64],
    rise: NDArray[np.float64],
) -> None:
    """Write W and Y at belief size n, from W at n + ``block``."""
    rate = discount / ((1.0 - discount) * block)
    chosen = np.empty(share.size)
    for i in range(grid.size):
        p = grid[i]
        if block == 1:
            expected = p * interpolate(grid, cell, later, i, (p * n + 1.0) / (n + 1.0))
            expected += (1.0 - p) * interpolate(grid, cell, later, i, p * n / (n + 1.0))
        else:
            spread = math.sqrt(p * (1.0 - p) * block / ((n + 1.0) * (n + block)))
            near = interpolate(grid, cell, later, i, p + POINT_1 * spread)
            near += interpolate(grid, cell, later, i, p - POINT_1 * spread)
            far = interpolate(grid, cell, later, i, p + POINT_2 * spread)
            far += interpolate(grid, cell, later, i, p - POINT_2 * spread)
            expected = WEIGHT_0 * later[i] + WEIGHT_1 * near + WEIGHT_2 * far
        known = 0.0
        for k in range(share.size):
            chosen[k] = gain[k, i]
            known += share[k] * max(gain[k, i], 0.0)
        gained, worth = label_of(expected - known, rate, chosen, share)
        value[i] = known + gained
        rise[i] = gained + worth / (rate * block)


@compiled
def interpolate(grid: NDArray[np.float64], cell: NDArray[np.int64], f: NDArray[np.float64], i: int, x: float) -> float:
    """Return f at x: quadratic between the neighbours of node i, which keeps f convex, and cubic farther away."""
    last = grid.size - 1
    if x <= 0.0 or x >= 1.0:
        return float(f[0] if x <= 0.0 else f[last])
    if 0 < i < last and grid[i - 1] <= x <= grid[i + 1]:
        left = (f[i] - f[i - 1]) / (grid[i] - grid[i - 1])
        right = (f[i + 1] - f[i]) / (grid[i + 1] - grid[i])
        bend = (right - left) / (grid[i + 1] - grid[i - 1])
        return float(f[i] + (x - grid[i]) * (right + (x - grid[i + 1]) * bend))
    j = cell[int(x * cell.size)]
    while grid[j + 1] < x:
        j += 1
    j = min(max(j - 1, 0), last - 3)
    total = 0.0
    for k in range(4):
        term = f[j + k]
        for other in range(4):
            if other != k:
                term *= (x - grid[j + other]) / (grid[j + k] - grid[j + other])
        total += term
    return total


def measured_error(offers: Offers, most_discount: float, points: int = 100, seed: int = 0) -> tuple[float, float]:
    """Return the largest and the median error of thresholds that the table implies, at random n, γ and offers.

    The threshold of an offer is the largest success rate below its break-even at which it is rejected.
    """
    table = label_table(offers, most_discount)
    rng = np.random.default_rng(seed)
    highest = -math.log1p(-min(most_discount, MOST_DISCOUNT))
    errors = []
    for _ in range(points):
        n = math.exp(rng.uniform(math.log(SMALLEST), math.log(5000.0)))
        discount = -math.expm1(-rng.uniform(-math.log1p(-LEAST_DISCOUNT), highest))
        which = int(rng.integers(len(offers.amount)))
        amount, cost = offers.amount[which], offers.cost[which]

        def quick(
            mean: float, amount: float = amount, cost: float = cost, at: tuple[float, float] = (n, discount)
        ) -> bool:
            return amount * (mean - cost) + float(table.label_value(at[0], mean, at[1])) > 0.0

        def proved(
            mean: float, amount: float = amount, cost: float = cost, at: tuple[float, float] = (n, discount)
        ) -> bool:
            label = solve_offers(Belief(at[0], at[0] * mean), offers, at[1], 1, 1e-7).label_value
            return amount * (mean - cost) + label.midpoint > 0.0

        rejected = [mean for mean in np.linspace(cost, 0.0, 400)[1:-1].tolist() if not quick(mean)]
        if not rejected:
            continue
        threshold = _change(quick, rejected[0], min(rejected[0] + cost / 399, cost))
        width = 1e-5
        while width < cost and proved(max(threshold - width, 1e-9)):
            width *= 2.0
        low = max(threshold - width, 1e-9)
        width = 1e-5
        while threshold + width < cost and not proved(threshold + width):
            width *= 2.0
        errors.append(abs(threshold - _change(proved, low, min(threshold + width, cost))))
    return max(errors), float(np.median(errors))


def _change(accepted: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a rule that rejects at ``low`` and accepts at ``high`` changes, to 1e-6."""
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        low, high = (low, middle) if accepted(middle) else (middle, high)
    return high
