"""The upper start of the recursion for late labels: all pending labels are revealed at once.

A policy that sees every pending label at once, and every later label without delay, earns at least as much as one that
waits. Its problem is the stopping problem of :mod:`lenience.solvers.stopping.band`, so the optimum of that problem
bounds Q in the last row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.stopping.band import put_above, strike_distance


@compiled
def first_above(c: float, n0: float, s0: float, k: int) -> int:
    """Return the smallest j with p̂ ≥ c in row k, or k + 1 if no state of the row has that."""
    j = int(min(max(math.floor(c * (n0 + k) - s0), 0.0), k + 1.0))
    while j > 0 and strike_distance(c, n0, s0, k, j - 1) <= 0.0:
        j -= 1
    while j <= k and strike_distance(c, n0, s0, k, j) > 0.0:
        j += 1
    return j


@compiled
def reveal_start(
    n0: float,
    s0: float,
    f0: float,
    c: float,
    arrivals: float,
    rate: float,
    last: int,
    cap: int,
    under: int,
    over: int,
) -> NDArray[np.float64]:
    """Return upper bounds of Q in row ``last``, if all pending labels come at once and later labels without delay.

    Row m of the result is for m pending. It has the states from ``under`` below the first state with p̂ ≥ c to ``over``
    above it. Without delay, Q₀(n, s) = max{γ E Q₀(n+1, ·), g (c − p̂)} with γ = λ/(λ + r), and each pending label adds
    one average over its outcome. The far rows need only Q₀; the ``cap`` rows after ``last`` need the averages too.
    """
    g_high = arrivals / rate * (1.0 + 4e-16)
    gamma = arrivals / (arrivals + rate) * (1.0 + 3e-15)
    far = last + cap + int(8.0 * arrivals / rate) + 64
    size = under + over + 1
    planes = np.zeros((cap + 1, size + 2))  # state i is at i + 1, so that both ends have a neighbour
    p = np.zeros(size)
    q = np.zeros(size)
    middle_next = first_above(c, n0, s0, far)
    for k in range(far, last - 1, -1):
        n = n0 + k
        middle = first_above(c, n0, s0, k)
        offset = 1 + (middle - middle_next)  # 1: the band of the next row starts at the same state; 0: one state higher
        depth = min(max(last + cap - k, 0), cap)
        for i in range(size):
            j = middle - under + i
            p[i] = min(max((s0 + j) / n, 0.0), 1.0) * (1.0 + 3e-15)
            q[i] = min(max((f0 + (k - j)) / n, 0.0), 1.0) * (1.0 + 3e-15)
        for m in range(depth, 0, -1):
            before = planes[m - 1]
            now = planes[m]
            for i in range(size):
                now[i + 1] = p[i] * before[i + offset + 1] + q[i] * before[i + offset]
        free = planes[0]
        begin, end, step = (0, size, 1) if offset == 1 else (size - 1, -1, -1)
        for i in range(begin, end, step):
            stop = strike_distance(c, n0, s0, k, middle - under + i) / n
            if k == far:
                mean = min(max((s0 + middle - under + i) / n, 0.0), 1.0)
                extra = put_above(abs(stop), n, mean * (1.0 - mean) / (n + 1.0))
                free[i + 1] = g_high * (max(stop, 0.0) * (1.0 + 1e-14) + extra)
            else:
                go = gamma * (p[i] * free[i + offset + 1] + q[i] * free[i + offset])
                free[i + 1] = max(go, g_high * stop * (1.0 + 6e-15))
        below = g_high * strike_distance(c, n0, s0, k, middle - under - 1) / n
        edge = arrivals / rate * (1.0 - 4e-16) * strike_distance(c, n0, s0, k, middle - under) / n
        for m in range(depth + 1):
            planes[m, size + 1] = planes[m, size]
            surplus = max(planes[m, 1] - edge * (1.0 - 6e-15), 0.0)
            planes[m, 0] = (below * (1.0 + 6e-15) + surplus) * (1.0 + 4e-16)
        middle_next = middle
    return planes
