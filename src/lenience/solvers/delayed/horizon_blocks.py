"""An estimate of late labels with a known number of arrivals, for problems of any size.

The exact recursion (:mod:`lenience.solvers.delayed.horizon`) has about H⁴/24 states. Here all four coordinates have
grids, as in :mod:`lenience.solvers.delayed.blocks`: belief sizes grow geometrically and labels come in blocks, rates p̂
lie around the cost, and the numbers pending and the numbers of arrivals left are geometric beyond the first few.

With nodes h > h′ > h″ of arrivals left, V_{h−1} is interpolated by a parabola through all three, and so contains V_h
itself. The same holds for one more label pending. With the weights of the node itself, o_h and o_m,

    (r + λ(1 − o_h) + mμ) V = λ K_reject + mμ R             or
    (r + λ(1 − o_h o_m) + mμ) V = λ (p̂ − c + K_accept) + mμ R,

where K holds the known nodes. Both slopes are below 1, so the larger of the two solutions is the value.

Guarantees: none. A fine and a coarse solve give the stated error, and the tests compare it with exact solves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.delayed.blocks import expected_values, first_rejection, parabola_at, rows_of
from lenience.solvers.delayed.estimate import parabola

MOST_STATES = 6e7  # about a second
# ε, the number of rates, the growth of the arrivals left and of the number pending: the first that fits MOST_STATES.
FINENESS = (
    (0.01, 401, 1.05, 1.06),
    (0.02, 301, 1.07, 1.08),
    (0.03, 241, 1.1, 1.1),
    (0.04, 201, 1.12, 1.12),
    (0.06, 161, 1.16, 1.16),
    (0.08, 121, 1.2, 1.2),
    (0.12, 101, 1.3, 1.3),
)
DENSE_LEFT, DENSE_PENDING = 24, 16
LEAST_ERROR = 1e-3  # relative to the value
KINK_ERROR = 5e-4  # relative to the arrivals left, at their discount, times the standard deviation of p


class HorizonBlocks(NamedTuple):
    """Hold estimates by number of arrivals left, belief size and success rate.

    ``limits[t, k, i]`` belongs to ``lefts[t]`` arrivals left, the belief size ``sizes[k]`` and the rate
    ``lowest[k] + i · steps[k]``; it is the number pending, not rounded, from which on rejecting is better.
    """

    value: float
    error: float
    lefts: NDArray[np.float64]
    sizes: NDArray[np.float64]
    lowest: NDArray[np.float64]
    steps: NDArray[np.float64]
    limits: NDArray[np.float32]
    pending: NDArray[np.float64]
    values: NDArray[np.float64]


def geometric_nodes(most: float, dense: int, growth: float) -> NDArray[np.float64]:
    """Return 0, 1, …, ``dense``, then a geometric grid of whole numbers that ends at ``most``.

    >>> geometric_nodes(20, 4, 1.5).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 19.0, 20.0]
    """
    nodes = [0.0, 1.0, 2.0]
    while nodes[-1] < most:
        node = nodes[-1]
        further = node + 1.0 if node < dense else max(node + 1.0, math.floor(node * growth))
        nodes.append(min(further, max(math.ceil(most), 3.0)))
    return np.array(nodes)


def annuity(left: float, gamma: float) -> float:
    """Return γ + γ² + … over the arrivals left: what an income of 1 from each is worth before the first comes.

    >>> annuity(3, 1.0), round(annuity(2, 0.5), 3)
    (3.0, 0.75)
    """
    return float(left) if gamma == 1.0 else gamma * -math.expm1(left * math.log(gamma)) / (1.0 - gamma)


def solve_horizon_blocks(
    n: float, s: float, cost: float, arrivals: float, rate: float, resolve: float, horizon: int
) -> HorizonBlocks:
    """Estimate the value at a prior and the exposure limits from there on.

    Parameters
    ----------
    n, s
        The prior: observations and successes.
    cost
        The break-even success rate.
    arrivals, rate, resolve
        λ, r and μ per unit of time; r may be 0.
    horizon
        The number of arrivals.

    Returns
    -------
    HorizonBlocks
        The estimates. ``error`` is twice the distance of a fine and a coarse solve, plus 0.1% of the value and 0.05% of
        the discounted number of arrivals times the standard deviation of p.

    Examples
    --------
    >>> solution = solve_horizon_blocks(2.0, 1.0, 0.7, 50.0, 0.1, 1.0, 1000)
    >>> round(solution.value, 1)
    16.0
    """
    in_flight = arrivals / resolve
    most = min(in_flight + 4.0 * math.sqrt(in_flight) + 2.0, float(horizon))
    gamma = arrivals / (arrivals + rate)
    width = max(6.0, math.sqrt(2.0 * math.log1p(horizon)) + 2.0)
    at = len(FINENESS) - 2
    for position, (step, points, left_growth, pending_growth) in enumerate(FINENESS[:-1]):
        rows = rows_of(n, n + horizon, step)[0].size
        states = rows * points * geometric_nodes(horizon, DENSE_LEFT, left_growth).size
        states *= geometric_nodes(most / max(1.0, step * n), DENSE_PENDING, pending_growth).size
        if states < MOST_STATES:
            at = position
            break
    values = []
    for step, points, left_growth, pending_growth in (FINENESS[at + 1], FINENESS[at]):
        sizes, blocks = rows_of(n, n + horizon, step)
        lefts = geometric_nodes(horizon, DENSE_LEFT, left_growth)
        annuities = np.array([annuity(left, gamma) for left in lefts])
        counts = np.array([geometric_nodes(most / block, DENSE_PENDING, pending_growth).size for block in blocks])
        nodes = np.zeros((sizes.size, int(counts.max())))
        for k, block in enumerate(blocks.tolist()):
            nodes[k, : counts[k]] = geometric_nodes(most / block, DENSE_PENDING, pending_growth)
        lowest, steps, limits, at_prior = run_horizon_blocks(
            sizes, blocks, lefts, annuities, nodes, counts, s / n, cost, arrivals, rate, resolve, width, points
        )
        values.append(float(at_prior[0]))
    coarse, value = values
    kinks = float(annuities[-1]) * math.sqrt(cost * (1.0 - cost) / (n + 1.0))
    error = 2.0 * abs(value - coarse) + LEAST_ERROR * value + KINK_ERROR * kinks
    pending = nodes[0, : counts[0]] * blocks[0]
    return HorizonBlocks(value, error, lefts, sizes, lowest, steps, limits, pending, at_prior)


@compiled
def run_horizon_blocks(
    sizes: NDArray[np.float64],
    blocks: NDArray[np.float64],
    lefts: NDArray[np.float64],
    annuities: NDArray[np.float64],
    nodes: NDArray[np.float64],
    counts: NDArray[np.int64],
    mean: float,
    cost: float,
    arrivals: float,
    rate: float,
    resolve: float,
    width: float,
    points: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float32], NDArray[np.float64]]:
    """Run the recursion from few arrivals left to many, and for each from the last size to the first."""
    rows = sizes.size
    most = nodes.shape[1]
    lowest = np.zeros(rows)
    steps = np.zeros(rows)
    for k in range(rows):
        deviation = math.sqrt(cost * (1.0 - cost) / sizes[k])
        lowest[k] = max(0.0, cost - width * deviation)
        steps[k] = (min(1.0, cost + width * deviation) - lowest[k]) / (points - 1)
    limits = np.zeros((lefts.size, rows, points), dtype=np.float32)
    planes = np.zeros((3, rows, most, points))  # of the last three numbers of arrivals left, in turn
    after = np.zeros(points)
    for t in range(1, lefts.size):
        worth = annuities[t]
        value = planes[t % 3]
        before = planes[(t - 1) % 3]
        earlier = planes[(t - 2) % 3]
        if t >= 2:
            o_h, w1, w2 = parabola(lefts[t], lefts[t - 1], lefts[t - 2], lefts[t] - 1.0)
        else:
            o_h, w1, w2 = 0.0, 1.0, 0.0
        for k in range(rows - 1, -1, -1):
            low = lowest[k]
            step = steps[k]
            if k == rows - 1:  # as if nothing more could be learnt
                for m in range(counts[k]):
                    for i in range(points):
                        value[k, m, i] = worth * max(low + i * step - cost, 0.0)
                for i in range(points):
                    limits[t, k, i] = math.inf if low + i * step >= cost else 0.0
                continue
            n = sizes[k]
            block = blocks[k]
            here = counts[k]
            following = counts[k + 1]
            expected = np.empty((following, points))
            expected_values(
                value[k + 1, :following], low, step, lowest[k + 1], steps[k + 1], n, block, cost, worth, expected
            )
            last = here - 1
            for q in range(last, -1, -1):
                m = nodes[k, q]
                resolving = m * resolve
                if q > 0:
                    position = min((m - 1.0) * block / blocks[k + 1], nodes[k + 1, following - 1])
                    a = min(max(np.searchsorted(nodes[k + 1, :following], position) - 1, 0), following - 3)
                    v0, v1, v2 = parabola(nodes[k + 1, a], nodes[k + 1, a + 1], nodes[k + 1, a + 2], position)
                    for i in range(points):
                        after[i] = v0 * expected[a, i] + v1 * expected[a + 1, i] + v2 * expected[a + 2, i]
                else:
                    after[:] = 0.0
                refuse = 1.0 / (rate + arrivals * (1.0 - o_h) + resolving)
                if q == last:  # further arrivals are accepted, but their labels are not counted
                    for i in range(points):
                        gain = max(low + i * step - cost, 0.0) + w1 * before[k, q, i] + w2 * earlier[k, q, i]
                        value[k, q, i] = refuse * (arrivals * gain + resolving * after[i])
                    continue
                share = 1.0 / block
                if q + 2 <= last:
                    o_m, u1, u2 = parabola(m, nodes[k, q + 1], nodes[k, q + 2], m + share)
                    far = q + 2
                else:
                    u1 = share / (nodes[k, q + 1] - m)
                    o_m, u2, far = 1.0 - u1, 0.0, q + 1
                near = q + 1
                take = 1.0 / (rate + arrivals * (1.0 - o_h * o_m) + resolving)
                for i in range(points):
                    stay = w1 * before[k, q, i] + w2 * earlier[k, q, i]
                    more = (
                        o_m * stay
                        + u1 * (o_h * value[k, near, i] + w1 * before[k, near, i] + w2 * earlier[k, near, i])
                        + u2 * (o_h * value[k, far, i] + w1 * before[k, far, i] + w2 * earlier[k, far, i])
                    )
                    label = resolving * after[i]
                    accept = take * (arrivals * (low + i * step - cost + more) + label)
                    reject = refuse * (arrivals * stay + label)
                    best = max(accept, reject)
                    value[k, q, i] = best if best > 1e-15 * worth else 0.0
            # A decision with h arrivals left compares values after it, with h − 1 left.
            for i in range(points):
                loss = cost - (low + i * step)
                limits[t, k, i] = math.inf
                if loss > 0.0:
                    limits[t, k, i] = first_rejection(before[k, :here], nodes[k, :here], block, loss, i)
    final = planes[(lefts.size - 1) % 3]
    at_prior = np.empty(counts[0])
    a, w0, w1, w2 = parabola_at((mean - lowest[0]) / steps[0], points)
    for q in range(counts[0]):
        at_prior[q] = max(w0 * final[0, q, a] + w1 * final[0, q, a + 1] + w2 * final[0, q, a + 2], 0.0)
    return lowest, steps, limits, at_prior
