"""An estimate of values and exposure limits with late labels, for problems of any size.

The exact recursion (:mod:`lenience.solvers.delayed.recursion`) has a row for every number of labels and a state for
every number pending. With many thousands of either it is too large, and it is not needed: one label more or less moves
p̂ by 1/n only. Here rows grow geometrically. At belief size n, labels come in blocks of D = max(1, ⌊εn⌋): the
same recursion with the number pending m counted in blocks,

    V(n, p̂, m) = max{ [λ(p̂ − c + V(n, p̂, m + 1/D)) + mμR] / (r + λ + mμ),  mμR / (r + mμ) },
    R = E V(n + D, p̂′, m − 1),

where p̂′ = (s + j)/(n + D) and the number of successes j is beta-binomial. Three values of j with the right moments up
to the fifth stand for its distribution. (A normal approximation loses the skewness, and with it 1% of the value at
n = 100.) Single labels are accepted, not blocks: V with one label more is interpolated. Three grids are interpolated by
parabolas:

- p̂, on equal steps within a number of standard deviations √(c(1−c)/n) of c. Above them V = g(p̂ − c) with g = λ/r, and
  below them V = 0.
- The number pending: every number up to ``DENSE`` blocks, then a geometric grid. V(m + 1/D) is interpolated between
  V(m) and the two nodes above, so the equation contains V(m) on both sides and is solved for it.
- The same where D changes from one row to the next.

Guarantees: none. The error falls with ε and with the step of p̂. :func:`solve_blocks` therefore solves twice, with
different steps, and states twice the distance of the two values as the error, plus 0.01% of the value and up to 0.01%
of g times the standard deviation of p. The tests compare it with certified solves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.delayed.estimate import parabola

# ε and the number of rates p̂ within seven standard deviations on each side: the first pair that fits MOST_STATES.
FINENESS = (
    *((0.002, 1201), (0.003, 1201), (0.005, 901), (0.005, 601)),
    *((0.007, 601), (0.01, 601), (0.01, 401), (0.014, 401), (0.02, 301)),
)
MOST_STATES = 8e7  # about half a second on an idle core
COARSER, FEWER = 2.5, 1.5  # the coarse solve has so many times the fine solve's ε, and so many times fewer rates
GROWTH = 1.05  # of the grid of the number pending
DENSE = 30.0  # blocks pending up to which every number is a node
LEAST_ERROR = 1e-4  # relative to the value
KINK_ERROR = 1e-4  # relative to g times the standard deviation of p: twice what 600 random problems needed
FEW_LABELS = 6.0  # belief size; below it kinks are few, because single labels move p̂ far
TIMES = 12.0  # rows go on until this many times λ/r labels, when a discount of e⁻¹² is left


class BlockSolution(NamedTuple):
    """Hold estimates of the value at the prior, and of the exposure limits.

    ``limits[k, i]`` belongs to the belief size ``sizes[k]`` and to the rate ``lowest[k] + i · steps[k]``, up to the
    cost. It is the number pending, not rounded, from which on rejecting is better. ``values`` are those at the prior,
    for the numbers pending in ``pending``.
    """

    value: float
    error: float
    sizes: NDArray[np.float64]
    lowest: NDArray[np.float64]
    steps: NDArray[np.float64]
    limits: NDArray[np.float64]
    pending: NDArray[np.float64]
    values: NDArray[np.float64]


def solve_blocks(n: float, s: float, cost: float, arrivals: float, rate: float, resolve: float) -> BlockSolution:
    """Estimate the value at a prior and the exposure limits from there on.

    Parameters
    ----------
    n, s
        The prior: observations and successes.
    cost
        The break-even success rate.
    arrivals, rate, resolve
        λ, r and μ per unit of time.

    Returns
    -------
    BlockSolution
        The estimates; ``error`` is twice the distance of a fine and a coarse solve, plus 0.01% of the value and up to
        0.01% of g times the standard deviation of p.

    Examples
    --------
    >>> solution = solve_blocks(2.0, 1.0, 0.8, 200.0, 0.1, 1.0)
    >>> round(solution.value, 2), round(solution.error, 2)
    (34.03, 0.02)
    """
    horizon = arrivals / rate
    width = max(7.0, math.sqrt(2.0 * math.log1p(horizon)) + 2.0)
    values = []
    fine, most = _finest(n, horizon, arrivals / resolve)
    for step, points in ((COARSER * fine, most / FEWER), (fine, most)):
        count = 2 * round(points * width / 14.0) + 1
        sizes, blocks = rows_of(n, n + TIMES * horizon, step)
        lowest, steps, limits, pending, at_prior = run_blocks(
            sizes, blocks, s / n, cost, arrivals, rate, resolve, width, count
        )
        values.append(float(at_prior[0]))
    coarse, value = values
    # Decisions are discrete, so V has kinks in p̂, and what parabolas lose there need not show in the distance.
    kinks = horizon * math.sqrt(cost * (1.0 - cost) / (n + 1.0)) * n / (n + FEW_LABELS)
    error = 2.0 * abs(value - coarse) + LEAST_ERROR * value + KINK_ERROR * kinks
    return BlockSolution(value, error, sizes, lowest, steps, limits, pending, at_prior)


def _finest(n: float, horizon: float, in_flight: float) -> tuple[float, int]:
    """Return the smallest ε, and the largest number of rates, with which the recursion has few enough states."""
    for step, points in FINENESS:
        nodes = DENSE + math.log1p(in_flight / (DENSE * max(1.0, step * n))) / math.log(GROWTH)
        if rows_of(n, n + TIMES * horizon, step)[0].size * nodes * points < MOST_STATES:
            break
    return step, points


def rows_of(first: float, last: float, step: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the belief sizes from ``first`` to at least ``last``, and the block that leads from each to the next.

    >>> sizes, blocks = rows_of(38.0, 46.0, 0.05)
    >>> sizes.tolist(), blocks.tolist()
    ([38.0, 39.0, 40.0, 42.0, 44.0, 46.0], [1.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    """
    sizes = [first]
    blocks = [max(1.0, math.floor(step * first))]
    while sizes[-1] < last or len(sizes) < 2:
        sizes.append(sizes[-1] + blocks[-1])
        blocks.append(max(1.0, math.floor(step * sizes[-1])))
    return np.array(sizes, dtype=np.float64), np.array(blocks, dtype=np.float64)


@compiled
def pending_grid(most: float) -> NDArray[np.float64]:
    """Return the numbers of blocks pending that are nodes: 0, 1, …, then a geometric grid beyond ``most``."""
    nodes = [0.0, 1.0, 2.0]
    while nodes[-1] < most:
        node = nodes[-1]
        # NumPy's floor stays a float. That of math would be an integer, which overflows at huge numbers.
        nodes.append(node + (1.0 if node < DENSE else max(1.0, np.floor((GROWTH - 1.0) * node))))
    return np.array(nodes)


@compiled
def parabola_at(position: float, count: int) -> tuple[int, float, float, float]:
    """Return the first of three neighbours on a grid 0, 1, …, count − 1, and their weights, for interpolation."""
    first = min(max(int(position + 0.5) - 1, 0), count - 3)
    u = position - first
    return first, 0.5 * (u - 1.0) * (u - 2.0), u * (2.0 - u), 0.5 * u * (u - 1.0)


@compiled
def rule_of_block(n: float, p: float, block: float, rates: NDArray[np.float64], chances: NDArray[np.float64]) -> None:
    """Write three rates p̂′ after a block of labels and their chances, with the right moments up to the fifth.

    The number of successes in the block is beta-binomial. Its orthogonal polynomials are Hahn's, whose recurrence is
    known, and the three rates are the zeros of the third one (Gauss quadrature).
    """
    # x q_k = q_{k+1} + a_k q_k + b_k q_{k−1}
    s = n * p
    f = n - s
    up0 = s * block / n
    up1 = n * (s + 1.0) * (block - 1.0) / ((n + 1.0) * (n + 2.0)) if block > 1.0 else 0.0
    up2 = (n + 1.0) * (s + 2.0) * (block - 2.0) / ((n + 3.0) * (n + 4.0)) if block > 2.0 else 0.0
    down1 = (n + block) * f / (n * (n + 1.0))
    down2 = 2.0 * (n + block + 1.0) * (f + 1.0) / ((n + 2.0) * (n + 3.0))
    a0 = up0
    a1 = up1 + down1
    a2 = up2 + down2
    b1 = up0 * down1
    b2 = up1 * down2
    # The eigenvalues of the symmetric matrix with the diagonal a and beside it √b, by the cosine formula.
    middle = (a0 + a1 + a2) / 3.0
    size = math.sqrt(((a0 - middle) ** 2 + (a1 - middle) ** 2 + (a2 - middle) ** 2 + 2.0 * (b1 + b2)) / 6.0)
    d0 = (a0 - middle) / size
    d1 = (a1 - middle) / size
    d2 = (a2 - middle) / size
    half = 0.5 * (d0 * d1 * d2 - d0 * b2 / (size * size) - d2 * b1 / (size * size))
    angle = math.acos(min(max(half, -1.0), 1.0)) / 3.0
    for q in range(3):
        x = middle + 2.0 * size * math.cos(angle - q * 2.0 * math.pi / 3.0)
        first = x - a0
        second = (x - a1) * first - b1
        chances[q] = 1.0 / (1.0 + first * first / b1 + second * second / (b1 * b2))
        rates[q] = (s + x) / (n + block)


@compiled
def expected_values(
    value: NDArray[np.float64],
    low: float,
    step: float,
    next_low: float,
    next_step: float,
    n: float,
    block: float,
    cost: float,
    horizon: float,
    expected: NDArray[np.float64],
) -> None:
    """Write E V(n + D, p̂′, m) for each number pending m of the next row and each p̂ of this row."""
    grid, count = value.shape
    top = next_low + (count - 1) * next_step
    points = 2 if block == 1.0 else 3
    rates = np.empty(3)
    chances = np.empty(3)
    first = np.zeros((points, count), dtype=np.int64)
    weight = np.zeros((3, points, count))
    sure = np.zeros(count)  # what the rates beyond the grid add
    for i in range(count):
        p = low + i * step
        if block == 1.0 or p <= 0.0 or p >= 1.0:
            chances[0] = p
            chances[1] = 1.0 - p
            chances[2] = 0.0
            rates[0] = (n * p + block) / (n + block)
            rates[1] = n * p / (n + block)
        else:
            rule_of_block(n, p, block, rates, chances)
        for q in range(points):
            chance = chances[q]
            rate = rates[q]
            if rate >= top:
                sure[i] += chance * horizon * max(rate - cost, 0.0)
            elif rate > next_low:
                first[q, i], w0, w1, w2 = parabola_at((rate - next_low) / next_step, count)
                weight[0, q, i] = chance * w0
                weight[1, q, i] = chance * w1
                weight[2, q, i] = chance * w2
    for m in range(grid):
        for i in range(count):
            total = sure[i]
            for q in range(points):
                a = first[q, i]
                total += weight[0, q, i] * value[m, a] + weight[1, q, i] * value[m, a + 1]
                total += weight[2, q, i] * value[m, a + 2]
            expected[m, i] = total


@compiled
def first_rejection(value: NDArray[np.float64], nodes: NDArray[np.float64], block: float, loss: float, i: int) -> float:
    """Return the number pending from which on one more label is worth less than the loss, not rounded.

    The worth of a label between two nodes is the slope of V there. At 0 the slope of the parabola through the first
    three nodes is taken.
    """
    before = 0.0
    slope_before = (4.0 * value[1, i] - value[2, i] - 3.0 * value[0, i]) / (2.0 * block)
    if slope_before <= loss:
        return 0.0
    for t in range(nodes.size - 1):
        middle = 0.5 * (nodes[t] + nodes[t + 1]) * block
        slope = (value[t + 1, i] - value[t, i]) / ((nodes[t + 1] - nodes[t]) * block)
        if slope <= loss:
            return float(before + (middle - before) * (slope_before - loss) / (slope_before - slope))
        before = middle
        slope_before = slope
    return float(nodes[nodes.size - 1] * block)


@compiled
def run_blocks(
    sizes: NDArray[np.float64],
    blocks: NDArray[np.float64],
    mean: float,
    cost: float,
    arrivals: float,
    rate: float,
    resolve: float,
    width: float,
    count: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Run the recursion from the last size to the first.

    Returns the lowest rate and the step of each row, the limits by row, the numbers pending and the values at ``mean``.
    """
    horizon = arrivals / rate
    negligible = 1e-15 * horizon  # smaller numbers would become denormal, which is slow
    in_flight = arrivals / resolve
    most = in_flight + 4.0 * math.sqrt(in_flight) + 2.0
    rows = sizes.size
    lowest = np.zeros(rows)
    steps = np.zeros(rows)
    limits = np.zeros((rows, count))
    for k in range(rows):
        deviation = math.sqrt(cost * (1.0 - cost) / sizes[k])
        lowest[k] = max(0.0, cost - width * deviation)
        steps[k] = (min(1.0, cost + width * deviation) - lowest[k]) / (count - 1)
    next_nodes = pending_grid(most / blocks[rows - 1])
    value = np.zeros((next_nodes.size, count))
    for m in range(next_nodes.size):
        for i in range(count):
            value[m, i] = horizon * max(lowest[rows - 1] + i * steps[rows - 1] - cost, 0.0)
    after = np.zeros(count)
    for k in range(rows - 2, -1, -1):
        n = sizes[k]
        block = blocks[k]
        low = lowest[k]
        step = steps[k]
        expected = np.empty((next_nodes.size, count))
        expected_values(value, low, step, lowest[k + 1], steps[k + 1], n, block, cost, horizon, expected)
        nodes = pending_grid(most / block)
        last = nodes.size - 1
        value = np.empty((nodes.size, count))
        for t in range(last, -1, -1):
            m = nodes[t]
            resolving = m * resolve
            if t > 0:
                # R: what comes after a block of labels, with one block less pending.
                position = min((m - 1.0) * block / blocks[k + 1], next_nodes[next_nodes.size - 1])
                a = min(max(np.searchsorted(next_nodes, position) - 1, 0), next_nodes.size - 3)
                w0, w1, w2 = parabola(next_nodes[a], next_nodes[a + 1], next_nodes[a + 2], position)
                for i in range(count):
                    after[i] = w0 * expected[a, i] + w1 * expected[a + 1, i] + w2 * expected[a + 2, i]
            else:
                after[:] = 0.0
            if t == last:  # further arrivals are accepted, but their labels are not counted
                for i in range(count):
                    now = max(arrivals * (low + i * step - cost), 0.0)
                    value[t, i] = (now + resolving * after[i]) / (rate + resolving)
                continue
            # The value with one more label pending, from this node and the two above.
            share = 1.0 / block
            one = share / (nodes[t + 1] - m)
            own = 1.0 - one
            two = 0.0
            if t + 2 <= last:
                own, one, two = parabola(m, nodes[t + 1], nodes[t + 2], m + share)
            further = min(t + 2, last)
            divisor = rate + arrivals * (1.0 - own) + resolving
            for i in range(count):
                gain = arrivals * (low + i * step - cost + one * value[t + 1, i] + two * value[further, i])
                accept = (gain + resolving * after[i]) / divisor
                best = max(accept, resolving * after[i] / (rate + resolving))
                value[t, i] = best if best > negligible else 0.0
        for i in range(count):
            loss = cost - (low + i * step)
            limits[k, i] = first_rejection(value, nodes, block, loss, i) if loss > 0.0 else math.inf
        next_nodes = nodes
    at_prior = np.empty(next_nodes.size)
    top = lowest[0] + (count - 1) * steps[0]
    for m in range(next_nodes.size):
        if mean >= top:
            at_prior[m] = horizon * (mean - cost)
        elif mean <= lowest[0]:
            at_prior[m] = 0.0
        else:
            a, w0, w1, w2 = parabola_at((mean - lowest[0]) / steps[0], count)
            # Beside a kink a parabola may fall below 0, which no value does.
            at_prior[m] = max(w0 * value[m, a] + w1 * value[m, a + 1] + w2 * value[m, a + 2], 0.0)
    return lowest, steps, limits, next_nodes * blocks[0], at_prior
