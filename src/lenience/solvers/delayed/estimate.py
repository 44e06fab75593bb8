"""A quick estimate of the value when labels come late and many are pending at once.

This is the recursion of :mod:`lenience.solvers.delayed.recursion`, without bounds and on a few pending counts only: m =
0, 1, …, 8 and then a geometric grid up to the cap. Between the nodes, parabolas interpolate Q. Straight lines would
lose 5e-4 of the value at 5,000 arrivals a year, because their errors all have one sign and add up over the rows. At
node m the recursion needs Q(n, s, m+1), which it takes from m and the two nodes above, and E at m−1, which it takes
from m and the two nodes below. The first contains the unknown Q(n, s, m), so the equation is solved for it.

Guarantees: none. Report the estimate only together with proved bounds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.delayed.start import first_above
from lenience.solvers.stopping.band import put_above, strike_distance


def pending_nodes(cap: int, ratio: float = 1.12) -> NDArray[np.int64]:
    """Return the pending counts of the grid: every whole number at first, then a geometric grid, and last ``cap``.

    >>> pending_nodes(20).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 19, 20]
    """
    nodes = [0]
    while nodes[-1] < cap:
        nodes.append(min(cap, max(nodes[-1] + 1, round(nodes[-1] * ratio))))
    return np.array(nodes, dtype=np.int64)


@compiled
def parabola(a: float, b: float, c: float, x: float) -> tuple[float, float, float]:
    """Return the weights of the nodes a, b, c in the quadratic interpolation at x."""
    return (
        (x - b) * (x - c) / ((a - b) * (a - c)),
        (x - a) * (x - c) / ((b - a) * (b - c)),
        (x - a) * (x - b) / ((c - a) * (c - b)),
    )


@compiled
def estimate_delayed(
    n0: float,
    s0: float,
    f0: float,
    c: float,
    arrivals: float,
    rate: float,
    resolve: float,
    last: int,
    nodes: NDArray[np.int64],
    drop: float,
) -> float:
    """Estimate Q at the prior with nothing pending, with pending counts ``nodes`` and ``last`` rows."""
    g = arrivals / rate
    one = np.uint64(1)
    count = nodes.size
    up = np.zeros((count, 3))
    down = np.zeros((count, 3))
    for i in range(count):
        if i + 2 < count:
            weights = parabola(float(nodes[i]), float(nodes[i + 1]), float(nodes[i + 2]), nodes[i] + 1.0)
            up[i, 0], up[i, 1], up[i, 2] = weights
        elif i + 1 < count:
            up[i, 1] = 1.0 / (nodes[i + 1] - nodes[i])
            up[i, 0] = 1.0 - up[i, 1]
        else:
            up[i, 0] = 1.0
        if i >= 2:
            weights = parabola(float(nodes[i - 2]), float(nodes[i - 1]), float(nodes[i]), nodes[i] - 1.0)
            down[i, 0], down[i, 1], down[i, 2] = weights
        elif i == 1:
            down[i, 1] = 1.0

    n = n0 + last
    middle = first_above(c, n0, s0, last)
    spread = 0
    while spread < last and g * put_above(spread / n, n, c * (1.0 - c) / (n + 1.0)) > drop:
        spread += 1
    lo = max(middle - spread, 0)
    hi = min(middle + spread, last)
    width = ((hi - lo + 600) // 16) * 16 + 8
    base = hi + 4 - width
    grid = np.zeros((count + 1) * width)
    for j in range(lo, hi + 1):
        for i in range(count):
            grid[i * width + j - base] = g * max(strike_distance(c, n0, s0, last, j) / n, 0.0)
    good = np.zeros(width)
    bad = np.zeros(width)
    strike = np.zeros(width)
    mixed = np.zeros(width)

    for k in range(last - 1, -1, -1):
        n = n0 + k
        if lo < base + 4 and base > -8:
            new_width = width if hi - lo + 128 < width else ((hi - lo) * 3 // 2 + 256) // 16 * 16 + 8
            new_base = hi + 4 - new_width
            new_grid = np.zeros((count + 1) * new_width)
            for i in range(count):
                for j in range(lo, hi + 1):
                    new_grid[i * new_width + j - new_base] = grid[i * width + j - base]
            grid = new_grid
            if new_width > width:
                good = np.zeros(new_width)
                bad = np.zeros(new_width)
                strike = np.zeros(new_width)
                mixed = np.zeros(new_width)
            width = new_width
            base = new_base
        # Assume Q = 0 for the neighbour above the band and V = 0 for the neighbour below it.
        for i in range(count):
            grid[i * width + hi + 1 - base] = 0.0
            if lo > 0:
                grid[i * width + lo - 1 - base] = g * strike_distance(c, n0, s0, k + 1, lo - 1) / (n + 1.0)
        lo = max(lo - 1, 0)
        hi = min(hi, k)
        for j in range(lo, hi + 1):
            good[j - base] = (s0 + j) / n
            bad[j - base] = (f0 + (k - j)) / n
            strike[j - base] = strike_distance(c, n0, s0, k, j) / n
        begin = np.uint64(lo - base)
        end = np.uint64(hi + 1 - base)
        for node in range(count - 1, -1, -1):
            m = float(nodes[node])
            here = np.uint64(node * width)
            next1 = np.uint64(min(node + 1, count - 1) * width)
            next2 = np.uint64(min(node + 2, count - 1) * width)
            under1 = np.uint64(max(node - 1, 0) * width)
            under2 = np.uint64(max(node - 2, 0) * width)
            v0 = down[node, 0]
            v1 = down[node, 1]
            v2 = down[node, 2]
            for i in range(begin, end + one):
                mixed[i] = v0 * grid[under2 + i] + v1 * grid[under1 + i] + v2 * grid[here + i]
            total = rate + arrivals * (1.0 - up[node, 0]) + m * resolve
            u1 = arrivals * up[node, 1] / total
            u2 = arrivals * up[node, 2] / total
            stay = m * resolve / total
            wait = m * resolve / (rate + m * resolve)
            d = arrivals / (rate + m * resolve)
            for i in range(begin, end):
                mean = good[i] * mixed[i + one] + bad[i] * mixed[i]
                go = u1 * grid[next1 + i] + u2 * grid[next2 + i] + stay * mean
                stop = wait * mean + d * strike[i]
                grid[here + i] = go if go > stop else stop
        if k % 4 == 0:
            middle = first_above(c, n0, s0, k)
            top = (count - 1) * width - base
            while hi > middle + 2 and hi > lo and grid[top + hi] < drop:
                hi -= 1
            while lo < min(middle - 2, k) and grid[top + lo + 1] - g * strike[lo + 1 - base] < drop:
                lo += 1
    return grid[-base] if math.isfinite(grid[-base]) else math.nan
