"""Thresholds c_n at many belief sizes for one discount, from one pass over belief sizes.

A certified threshold needs several solves for each n, and at γ = 0.99999 each takes seconds. Here one pass serves all.

With Q = max{γ[p̂ Q(n+1, s+1) + (1 − p̂) Q(n+1, s)], c − p̂}, the put of :mod:`lenience.solvers.stopping.band`, the pass
runs over whole n and s, from the largest n plus 8/(1 − γ) down to a few hundred. It starts from the mean of the two
bounds (c − p̂)⁺ and E(c − p)⁺, of which a discount of e⁻⁸ is left. Where Q is below a millionth of its value at the
boundary, states are dropped.

The threshold at one n is the root of γ E Q(n+1, ·) − (c − p̂), which rises with p̂. For each p̂ tried, the recursion runs
over the next rows exactly, from the states (n, n p̂) that need not be whole. It starts ``AHEAD`` rows later from the
stored rows of the pass, interpolated in s by cubic polynomials and in n linearly.

Guarantees: none. The error, against certified thresholds, is measured in the tests and in docs/features-method.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled

PATIENCE = 8.0  # the pass starts where a discount of e^−PATIENCE is left
DROPPED = 1e-6  # of Q at the boundary
AHEAD = 200  # rows from a belief size to the stored row that its recursion starts from
STEPS = 60  # of the search for a root
PRECISION = 1e-7  # of a root, relative to the smaller of the threshold and the leniency


def thresholds_at(cost: float, discount: float, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return c_n at belief sizes n, in increasing order.

    >>> from lenience import Discounted, Belief
    >>> quick = thresholds_at(0.8, 0.999, np.array([1.0, 40.0, 2000.0]))
    >>> proved = [Discounted(0.8, 0.999).solve(Belief(n, n / 2)).threshold(n).midpoint for n in (1, 40, 2000)]
    >>> bool(np.all(np.abs(quick - proved) < 0.001 * np.minimum(proved, 0.8 - np.array(proved))))
    True
    """
    starts = np.floor(sizes).astype(np.int64) + AHEAD
    last = int(starts[-1]) + 2 + math.ceil(PATIENCE / (1.0 - discount))
    # At each belief size two neighbouring rows are stored. No band is wider than its row, or than Q takes to fade.
    width = int(min(last, 4.0 * math.log(1.0 / DROPPED) * (math.sqrt(cost * (1.0 - cost) / (1.0 - discount)) + 8.0)))
    first, count = np.zeros((2, len(sizes), 2), dtype=np.int64)
    stored = np.zeros((len(sizes), 2, width + 8))
    store_rows(cost, discount, starts, last, first, count, stored)
    result = np.empty(len(sizes))
    for i, n in enumerate(sizes.tolist()):
        result[i] = find_threshold(cost, discount, n, int(starts[i]), first[i], count[i], stored[i])
    return result


@compiled
def store_rows(
    cost: float,
    discount: float,
    starts: NDArray[np.int64],
    last: int,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    stored: NDArray[np.float64],
) -> None:
    """Run the pass, and write the bands of the rows at ``starts`` and of the rows after them.

    A band starts at its ``first`` s, the first at which accepting is better, and has ``count`` states.
    """
    room = stored.shape[2]
    window = 8 * room + 4096
    # The states of a row are whole numbers of successes s; the entry of s is s − base.
    base = int(cost * last) + 2 * room + 8 - window
    q = np.zeros(window)
    index = np.arange(window).astype(np.float64)
    one = np.uint64(1)  # Offsets are unsigned, because the compiler does not vectorise the inner loop with signed ones.
    variance = cost * (1.0 - cost) / (last + 1.0)
    deviation = math.sqrt(variance)
    edge = max(math.floor(cost * last - 6.0 * deviation * last), 0)
    top = min(int(cost * last) + room, last)
    for s in range(edge, top + 1):
        gap = cost - s / last
        z = abs(gap) / deviation
        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        q[s - base] = max(gap, 0.0) + 0.5 * deviation * (density - z * 0.5 * math.erfc(z / math.sqrt(2.0)))
    at = starts.size - 1
    for n in range(last - 1, starts[0] - 1, -1):
        if edge - base < 4:
            # Move the band, and the state above it, to the upper end of the window.
            shift = window - 4 - (top - base)
            for i in range(top + 1 - base, edge - base - 1, -1):
                q[i + shift] = q[i]
            base -= shift
        if top > n:
            top = n
        # The boundary moves by at most one state.
        if edge > 0:
            edge -= 1
            q[edge - base] = cost - edge / (n + 1.0)
        while edge <= top:
            go = discount * (edge * q[edge + 1 - base] + (n - edge) * q[edge - base]) / n
            if go > cost - edge / n:
                break
            edge += 1
        scale = discount / n
        j0, k0 = float(base), float(n - base)
        for i in range(np.uint64(edge - base), np.uint64(top + 1 - base)):
            q[i] = ((index[i] + j0) * q[i + one] + (k0 - index[i]) * q[i]) * scale
        least = DROPPED * q[edge - base]
        while top > edge + 4 and q[top - base] < least:
            q[top - base] = 0.0
            top -= 1
        # Rows are stored twice where belief sizes are close.
        for i in range(at, -1, -1):
            if starts[i] + 1 < n:
                break
            which = n - starts[i]
            if which == 0 or which == 1:
                first[i, which] = edge
                count[i, which] = min(top + 1 - edge, room)
                for j in range(count[i, which]):
                    stored[i, which, j] = q[edge + j - base]
        while at > 0 and starts[at] > n:
            at -= 1


@compiled
def put_at(cost: float, n: float, first: int, count: int, band: NDArray[np.float64], rate: float) -> float:
    """Return Q of a stored row at a success rate, by cubic interpolation between whole numbers of successes."""
    place = rate * n - first
    if place <= 0.0:
        return cost - rate
    if place >= count - 1.0:
        return 0.0
    left = min(max(int(place) - 1, 0), max(count - 4, 0))
    total = 0.0
    points = min(count, 4)
    for a in range(points):
        term = band[left + a]
        for b in range(points):
            if b != a:
                term *= (place - left - b) / (a - b)
        total += term
    return total


@compiled
def gain_of_accepting(
    cost: float,
    discount: float,
    n: float,
    rate: float,
    start: int,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    stored: NDArray[np.float64],
    q: NDArray[np.float64],
) -> float:
    """Return γ E Q(n + 1, ·) − (c − p̂) at a belief."""
    rows = start - math.floor(n)
    share = n + rows - start  # of the second stored row
    s0, f0 = n * rate, n * (1.0 - rate)
    for j in range(rows + 1):
        after = (s0 + j) / (n + rows)
        low = put_at(cost, float(start), first[0], count[0], stored[0], after)
        high = put_at(cost, float(start + 1), first[1], count[1], stored[1], after)
        q[j] = low + share * (high - low)
    for k in range(rows - 1, 0, -1):
        size = n + k
        scale = discount / size
        for j in range(k + 1):
            q[j] = max(((s0 + j) * q[j + 1] + (f0 + (k - j)) * q[j]) * scale, cost - (s0 + j) / size)
    return float(discount * (rate * q[1] + (1.0 - rate) * q[0]) - (cost - rate))


@compiled
def find_threshold(
    cost: float,
    discount: float,
    n: float,
    start: int,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    stored: NDArray[np.float64],
) -> float:
    """Return the rate at which accepting breaks even, by the method of Illinois."""
    q = np.empty(AHEAD + 2)
    low, high = 0.0, cost
    below = gain_of_accepting(cost, discount, n, low, start, first, count, stored, q)
    above = gain_of_accepting(cost, discount, n, high, start, first, count, stored, q)
    side = 0
    for step in range(STEPS):
        x = (low * above - high * below) / (above - below)
        if not low < x < high or step % 4 == 3:
            x = 0.5 * (low + high)
        value = gain_of_accepting(cost, discount, n, x, start, first, count, stored, q)
        if value > 0.0:
            high, above = x, value
            below = 0.5 * below if side > 0 else below
            side = 1
        else:
            low, below = x, value
            above = 0.5 * above if side < 0 else above
            side = -1
        if high - low <= PRECISION * min(low, cost - high):
            break
    return 0.5 * (low + high)
