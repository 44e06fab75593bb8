"""An estimate of values and labels with offers or a doubtful prior, where labels come late, for problems of any size.

This is the recursion of :mod:`lenience.solvers.offers.delayed` on the grids of :mod:`lenience.solvers.delayed.blocks`.
With m labels pending, gains g_k(p̂) and D = V(m+1) − V(m), one scalar equation a state is solved:

    (r + mμ) V(m) = λ Σ w_k (g_k + D)⁺ + mμ R.

At belief size n, labels come in blocks of about εn, at most a share of λ/r. R is the expected value after a block, and
V(m+1) is interpolated between V(m) and the next two nodes. So the equation has V(m) on both sides. It is linear as long
as the same menus are accepted, and these are the ones with the largest gains.

The state. A mixture of beliefs Beta(a_i, b_i) after k labels with j successes is described by y = (a + j)/(a + b + k),
where a and b are the least a_i and b_i. For one belief y is p̂. For a mixture p̂ and the weights follow from (k, y)
exactly, so nothing is approximated there. After a block, three numbers of successes stand for the predictive
distribution of each belief of the mixture, with the right moments up to the fifth.

The grid of y covers a number of standard deviations around each kink of φ(p̂) = Σ w_k g_k(p̂)⁺, as far as it can be
reached from the prior. Elsewhere V = (λ/r) φ(p̂).

Guarantees: none. :func:`solve_offer_blocks` solves twice, with different steps, and states twice the distance of the
two values as the error, plus 0.002% of the value and up to 0.03% of λ/r times the standard deviation of p. Of many
offers the coarse solve has fewer, so the distance counts what compressing them loses. The tests compare the error with
certified solves, and ``python -m benchmarks.delayed offer-errors`` does so for more problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.solvers.delayed.blocks import (
    COARSER,
    DENSE,
    FEW_LABELS,
    FEWER,
    GROWTH,
    TIMES,
    pending_grid,
    rule_of_block,
)
from lenience.solvers.delayed.estimate import parabola
from lenience.solvers.offers.accepted_sets import best_offers
from lenience.solvers.offers.solve import OfferArrays, prepare

# ε and the number of nodes of y: the first pair that fits MOST_STATES.
FINENESS = (
    *((0.003, 1201), (0.005, 901), (0.005, 601), (0.007, 601)),
    *((0.01, 601), (0.01, 401), (0.014, 401), (0.02, 301)),
)
MOST_STATES = 1.5e7  # about a quarter of a second on an idle core, divided by the beliefs of a mixture
LEAST_ERROR = 2e-5  # relative to the value and to λ/r times the standard deviation of p
KINK_ERROR = 3e-4  # relative to the latter: what the worst of 237 random problems needed, and half as much again
MOST_MENUS = 50  # more offers are compressed
NODES_A_KINK = 6  # of y at least
PATIENCE = 0.05  # labels in a block, as a share of λ/r
REACH = 10.0  # standard deviations of the prior within which the grid stays
EDGE = 1e-3  # the least number of successes, and of failures, at a node
NEGLIGIBLE = 1e-10  # weight of a belief of the mixture that is left out of the predictive distribution
TABLE_RATIO = 1.1  # of belief sizes in the table
TABLE_LABELS = 1e6  # the table goes on at least to so many labels
TABLE_NODES = 80  # of y in a row of the table
TABLE_GROWTH = 1.4  # of the numbers pending in the table


class OfferBlocks(NamedTuple):
    """Hold estimates of the value at the prior and of the worth of one more pending label.

    Row k of the table belongs to ``after[k]`` labels. Its nodes are ``nodes[k]``, values of y that rise, and
    ``labels[k, i, t]`` is V(m+1) − V(m) at node i with m = ``pending[t]``. ``values`` are those at the prior, for the
    same numbers pending. All are in money.
    """

    value: float
    error: float
    pace: float  # the belief size of the first row
    after: NDArray[np.float64]
    nodes: NDArray[np.float64]
    labels: NDArray[np.float64]
    pending: NDArray[np.float64]
    values: NDArray[np.float64]


@compiled
def log_gamma(x: float) -> float:
    """Return the logarithm of the gamma function: by Stirling's series for large x, which is fast."""
    if x < 12.0:
        return math.lgamma(x)
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))
    return float((x - 0.5) * math.log(x) - x + 0.9189385332046727 + series)


@compiled
def write_weights(
    k: float, y: float, mixture: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Write the weights of the beliefs after k labels at y; return the mean and the standard deviation of p.

    Each line of the mixture is a_i − a, b_i − b, and the logarithm of the weight less that of the Beta function. The
    last line has a, b and 0.
    """
    count = mixture.shape[0] - 1
    size = mixture[count, 0] + mixture[count, 1] + k
    good = y * size
    bad = (1.0 - y) * size
    if count == 1:
        weights[0] = 1.0
    else:
        largest = -math.inf
        for i in range(count):
            a = good + mixture[i, 0]
            b = bad + mixture[i, 1]
            weights[i] = mixture[i, 2] + log_gamma(a) + log_gamma(b) - log_gamma(a + b)
            largest = max(largest, weights[i])
        total = 0.0
        for i in range(count):
            weights[i] = math.exp(weights[i] - largest)
            total += weights[i]
        for i in range(count):
            weights[i] /= total
    mean = 0.0
    square = 0.0
    for i in range(count):
        a = good + mixture[i, 0]
        n = a + bad + mixture[i, 1]
        mean += weights[i] * a / n
        square += weights[i] * (a / n) * (a + 1.0) / (n + 1.0)
    return mean, math.sqrt(max(square - mean * mean, 1e-30))


@compiled
def place_of(mean: float, k: float, low: float, high: float, mixture: NDArray[np.float64]) -> float:
    """Return the y at which the mean is as given, or the nearer end if there is none between ``low`` and ``high``."""
    weights = np.empty(mixture.shape[0])
    if mixture.shape[0] == 2:
        return min(max(mean, low), high)
    for _ in range(50):
        middle = 0.5 * (low + high)
        if write_weights(k, middle, mixture, weights)[0] < mean:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@compiled
def write_grid(
    k: float,
    mixture: NDArray[np.float64],
    kink: NDArray[np.float64],
    width: float,
    least: float,
    most: float,
    y: NDArray[np.float64],
    intervals: NDArray[np.float64],
) -> int:
    """Write the nodes y of a row, and its intervals: their lowest y, step, first node and number of nodes.

    The intervals cover ``width`` standard deviations around each kink. Returns the number of intervals.
    """
    last = mixture.shape[0] - 1
    size = mixture[last, 0] + mixture[last, 1] + k
    least = max(least, EDGE / size)
    most = min(most, 1.0 - EDGE / size)
    weights = np.empty(mixture.shape[0])
    ends = np.empty((kink.size, 2))
    found = 0
    for i in range(kink.size):
        centre = place_of(kink[i], k, least, most, mixture)
        reach = width * math.sqrt(max(kink[i] * (1.0 - kink[i]), 1e-6) / size)
        below = max(centre - reach, least)
        above = min(centre + reach, most)
        if last > 1:
            # Where a belief of the mixture is much larger than the least one, p̂ moves more slowly than y.
            while below > least:
                mean, deviation = write_weights(k, below, mixture, weights)
                if mean <= kink[i] - 0.7 * width * deviation:
                    break
                below = max(below - 0.5 * reach, least)
            while above < most:
                mean, deviation = write_weights(k, above, mixture, weights)
                if mean >= kink[i] + 0.7 * width * deviation:
                    break
                above = min(above + 0.5 * reach, most)
        # Kinks rise, so an interval can overlap only with the one before.
        while found > 0 and below <= ends[found - 1, 1]:
            found -= 1
            below = min(below, ends[found, 0])
            above = max(above, ends[found, 1])
        if above > below:
            ends[found, 0] = below
            ends[found, 1] = above
            found += 1
    if found == 0:
        ends[0, 0] = least
        ends[0, 1] = most
        found = 1
    total = 0.0
    for i in range(found):
        total += ends[i, 1] - ends[i, 0]
    spare = y.size - 5 * found
    used = 0
    covered = 0.0
    for i in range(found):
        covered += ends[i, 1] - ends[i, 0]
        upto = 5 * (i + 1) + int(spare * covered / total + 0.5)
        if i == found - 1:
            upto = y.size
        count = upto - used
        step = (ends[i, 1] - ends[i, 0]) / (count - 1)
        intervals[i, 0] = ends[i, 0]
        intervals[i, 1] = step
        intervals[i, 2] = used
        intervals[i, 3] = count
        for t in range(count):
            y[used + t] = ends[i, 0] + t * step
        used = upto
    return found


@compiled
def best_profit(p: float, kink: NDArray[np.float64], slope: NDArray[np.float64]) -> float:
    """Return φ(p): what an arrival earns where p is the success rate."""
    total = 0.0
    for i in range(kink.size):
        if p <= kink[i]:
            break
        total += slope[i] * (p - kink[i])
    return total


@compiled
def expected_after(
    value: NDArray[np.float64],
    y: NDArray[np.float64],
    k: float,
    block: float,
    intervals: NDArray[np.float64],
    found: int,
    mixture: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    horizon: float,
    expected: NDArray[np.float64],
) -> None:
    """Write E V after a block of labels, for each number pending of the next row and each node y of this row."""
    grid, count = value.shape
    parts = mixture.shape[0] - 1
    size = mixture[parts, 0] + mixture[parts, 1] + k
    points = 2 if block == 1.0 else 3 * parts
    first = np.zeros((points, count), dtype=np.int64)
    weight = np.zeros((3, points, count))
    sure = np.zeros(count)  # what the places beyond the grid add
    weights = np.empty(parts + 1)
    unused = np.empty(parts + 1)
    rates = np.empty(3)
    chances = np.empty(3)
    good_after = np.empty(points)
    chance_of = np.empty(points)
    for i in range(count):
        good = y[i] * size
        mean = write_weights(k, y[i], mixture, weights)[0]
        if block == 1.0:
            good_after[0] = good + 1.0
            chance_of[0] = mean
            good_after[1] = good
            chance_of[1] = 1.0 - mean
        else:
            for part in range(parts):
                a = good + mixture[part, 0]
                n = size + mixture[part, 0] + mixture[part, 1]
                if weights[part] < NEGLIGIBLE:
                    chance_of[3 * part : 3 * part + 3] = 0.0
                    continue
                rule_of_block(n, a / n, block, rates, chances)
                for q in range(3):
                    good_after[3 * part + q] = good + min(max(rates[q] * (n + block) - a, 0.0), block)
                    chance_of[3 * part + q] = weights[part] * chances[q]
        for q in range(points):
            chance = chance_of[q]
            if chance == 0.0:
                continue
            place = good_after[q] / (size + block)
            inside = -1
            for one in range(found):
                if place >= intervals[one, 0]:
                    inside = one
            if inside >= 0:
                position = (place - intervals[inside, 0]) / intervals[inside, 1]
                number = int(intervals[inside, 3])
                if position <= number - 1.0 + 1e-9:
                    start = min(max(int(position + 0.5) - 1, 0), number - 3)
                    u = position - start
                    first[q, i] = start + int(intervals[inside, 2])
                    weight[0, q, i] = chance * 0.5 * (u - 1.0) * (u - 2.0)
                    weight[1, q, i] = chance * u * (2.0 - u)
                    weight[2, q, i] = chance * 0.5 * u * (u - 1.0)
                    continue
            rate = write_weights(k + block, place, mixture, unused)[0]
            sure[i] += chance * horizon * best_profit(rate, kink, slope)
    for m in range(grid):
        for i in range(count):
            total = sure[i]
            for q in range(points):
                a = first[q, i]
                total += weight[0, q, i] * value[m, a] + weight[1, q, i] * value[m, a + 1]
                total += weight[2, q, i] * value[m, a + 2]
            expected[m, i] = total


@compiled
def worth_of_label(
    value: NDArray[np.float64], nodes: NDArray[np.float64], block: float, pending: float, i: int
) -> float:
    """Return V(m+1) − V(m) from the slopes of V between the nodes."""
    at = (pending + 0.5) / block
    last = nodes.size - 1
    if at >= 0.5 * (nodes[last - 1] + nodes[last]):
        return float(max((value[last, i] - value[last - 1, i]) / ((nodes[last] - nodes[last - 1]) * block), 0.0))
    t = max(int(np.searchsorted(nodes, at)) - 1, 0)
    if t > 0 and at < 0.5 * (nodes[t] + nodes[t + 1]):
        t -= 1
    middle = 0.5 * (nodes[t] + nodes[t + 1])
    slope = (value[t + 1, i] - value[t, i]) / (nodes[t + 1] - nodes[t])
    next_middle = 0.5 * (nodes[t + 1] + nodes[t + 2])
    next_slope = (value[t + 2, i] - value[t + 1, i]) / (nodes[t + 2] - nodes[t + 1])
    between = slope + (next_slope - slope) * (at - middle) / (next_middle - middle)
    return float(max(between, 0.0) / block)


@compiled
def run_offer_blocks(
    after: NDArray[np.float64],
    blocks: NDArray[np.float64],
    keep: NDArray[np.int64],
    mixture: NDArray[np.float64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    arrivals: float,
    rate: float,
    resolve: float,
    width: float,
    least: float,
    most_y: float,
    count: int,
    every: int,
    pending: NDArray[np.float64],
    most: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Run the recursion from the last row to the first.

    ``keep[k]`` is the position of row k in the table, or −1. At most ``most`` labels are pending. Returns
    the nodes and the labels of the table, and the numbers pending and the values at the prior.
    """
    menus = share.size
    horizon = arrivals / rate
    rows = after.size
    parts = mixture.shape[0] - 1
    negligible = 1e-15 * horizon  # smaller numbers would become denormal, which is slow
    kept = 0
    for k in range(rows):
        kept = max(kept, keep[k] + 1)
    columns = (count - 1) // every + 1
    table_nodes = np.zeros((kept, columns))
    table = np.zeros((kept, columns, pending.size))
    weights = np.empty(parts + 1)
    y = np.empty(count)
    next_intervals = np.zeros((kink.size, 4))
    intervals = np.zeros((kink.size, 4))
    gain = np.zeros(menus)
    choice = np.zeros(menus, dtype=np.int64)
    order = np.arange(menus)
    gains = np.zeros((count, menus))
    shares = np.zeros((count, menus + 1))
    sums = np.zeros((count, menus + 1))
    taken = np.zeros(count, dtype=np.int64)
    remainder = np.zeros(count)

    k = rows - 1
    next_found = write_grid(after[k], mixture, kink, width, least, most_y, y, next_intervals)
    next_nodes = pending_grid(most / blocks[k])
    value = np.zeros((next_nodes.size, count))
    for i in range(count):
        mean = write_weights(after[k], y[i], mixture, weights)[0]
        value[:, i] = horizon * best_profit(mean, kink, slope)
    for k in range(rows - 2, -1, -1):
        block = blocks[k]
        found = write_grid(after[k], mixture, kink, width, least, most_y, y, intervals)
        expected = np.empty((next_nodes.size, count))
        expected_after(value, y, after[k], block, next_intervals, next_found, mixture, kink, slope, horizon, expected)
        for i in range(count):
            mean = write_weights(after[k], y[i], mixture, weights)[0]
            best_offers(mean, amount, cost, start, gain, choice)
            # Neighbouring nodes have nearly the same order, so inserting is fast.
            for position in range(1, menus):
                one = order[position]
                at = position
                while at > 0 and gain[order[at - 1]] < gain[one]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = one
            for position in range(menus):
                one = order[position]
                gains[i, position] = gain[one]
                shares[i, position + 1] = shares[i, position] + share[one]
                sums[i, position + 1] = sums[i, position] + share[one] * gain[one]
            best = 0
            while best < menus and gains[i, best] > 0.0:
                best += 1
            taken[i] = best
        nodes = pending_grid(most / block)
        last = nodes.size - 1
        value = np.empty((nodes.size, count))
        for t in range(last, -1, -1):
            m = nodes[t]
            resolving = m * resolve
            if t > 0:
                position_m = min((m - 1.0) * block / blocks[k + 1], next_nodes[next_nodes.size - 1])
                a = min(max(int(np.searchsorted(next_nodes, position_m)) - 1, 0), next_nodes.size - 3)
                w0, w1, w2 = parabola(next_nodes[a], next_nodes[a + 1], next_nodes[a + 2], position_m)
                for i in range(count):
                    remainder[i] = resolving * (w0 * expected[a, i] + w1 * expected[a + 1, i] + w2 * expected[a + 2, i])
            else:
                remainder[:] = 0.0
            if t == last:  # further arrivals are accepted, but their labels are not counted
                for i in range(count):
                    v = (arrivals * sums[i, taken[i]] + remainder[i]) / (rate + resolving)
                    value[t, i] = v if v > negligible else 0.0
                continue
            next_share = 1.0 / block
            one_weight = next_share / (nodes[t + 1] - m)
            own = 1.0 - one_weight
            two_weight = 0.0
            if t + 2 <= last:
                own, one_weight, two_weight = parabola(m, nodes[t + 1], nodes[t + 2], m + next_share)
            further = min(t + 2, last)
            rest = 1.0 - own
            for i in range(count):
                above = one_weight * value[t + 1, i] + two_weight * value[further, i]
                q = taken[i]
                v = (arrivals * (shares[i, q] * above + sums[i, q]) + remainder[i]) / (
                    rate + resolving + arrivals * shares[i, q] * rest
                )
                while q < menus and gains[i, q] + above - rest * v > 0.0:
                    q += 1
                    v = (arrivals * (shares[i, q] * above + sums[i, q]) + remainder[i]) / (
                        rate + resolving + arrivals * shares[i, q] * rest
                    )
                while q > 0 and gains[i, q - 1] + above - rest * v <= 0.0:
                    q -= 1
                    v = (arrivals * (shares[i, q] * above + sums[i, q]) + remainder[i]) / (
                        rate + resolving + arrivals * shares[i, q] * rest
                    )
                taken[i] = q
                value[t, i] = v if v > negligible else 0.0
        if keep[k] >= 0:
            for column in range(columns):
                i = column * every
                table_nodes[keep[k], column] = y[i]
                for t in range(pending.size):
                    table[keep[k], column, t] = worth_of_label(value, nodes, block, pending[t], i)
        next_nodes = nodes
        next_found = found
        next_intervals[:] = intervals
    at_prior = np.empty(next_nodes.size)
    place = mixture[parts, 0] / (mixture[parts, 0] + mixture[parts, 1])
    inside = -1
    for one in range(next_found):
        if intervals[one, 0] <= place <= intervals[one, 0] + intervals[one, 1] * (intervals[one, 3] - 1.0):
            inside = one
    mean = write_weights(after[0], place, mixture, weights)[0]
    for m in range(next_nodes.size):
        at_prior[m] = horizon * best_profit(mean, kink, slope)
        if inside >= 0:
            position = (place - intervals[inside, 0]) / intervals[inside, 1]
            number = int(intervals[inside, 3])
            begin = min(max(int(position + 0.5) - 1, 0), number - 3)
            u = position - begin
            a = begin + int(intervals[inside, 2])
            parabolic = 0.5 * (u - 1.0) * (u - 2.0) * value[m, a] + u * (2.0 - u) * value[m, a + 1]
            parabolic += 0.5 * u * (u - 1.0) * value[m, a + 2]
            # Beside a kink a parabola may fall below what is earned without learning, which no value does.
            at_prior[m] = max(parabolic, at_prior[m])
    return table_nodes, table, next_nodes * blocks[0], at_prior


def solve_offer_blocks(
    prior: Belief | MixtureBelief,
    offers: Offers,
    arrivals: float,
    label_delay: float,
    discount_rate: float,
    charges: Sequence[float] = (),
    first: float = 0.0,
) -> OfferBlocks:
    """Estimate the value at a prior, and what a label is worth from there on.

    Parameters
    ----------
    prior
        What is known of the success probability.
    offers
        What arrivals bring.
    arrivals, label_delay, discount_rate
        λ, 1/μ and r, in one unit of time.
    charges
        What accepting each offer costs beside its expected loss.
    first
        The number of labels from which on labels are wanted. From more than 0 on there is one rough solve only, and the
        value is not estimated.

    Returns
    -------
    OfferBlocks
        The estimates, in money.

    Examples
    --------
    >>> amounts = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> solution = solve_offer_blocks(Belief(2, 1), amounts, 50.0, 1.0, 0.1)
    >>> round(solution.value, 1)
    17.4
    """
    arrivals, label_delay, discount_rate = float(arrivals), float(label_delay), float(discount_rate)
    arrays = prepare(_few(offers, charges, MOST_MENUS), charges)
    mixture, pace = _mixture(prior)
    horizon = arrivals / discount_rate
    pending = _table_pending(arrivals * label_delay)
    if arrays.kink.size == 0 or not all(mixture[-1, :2] > 0.0):  # no offer ever pays, or p is known
        sure = horizon * arrays.unit * best_profit(prior.mean, arrays.kink, arrays.slope) if arrays.kink.size else 0.0
        nothing = np.zeros((1, 3, pending.size))
        return OfferBlocks(
            sure,
            0.0,
            pace,
            np.zeros(1),
            np.array([[0.0, 0.5, 1.0]]),
            nothing,
            pending,
            np.full(pending.size, sure),
        )
    width = _width(arrays, horizon)
    reach = (0.0, 1.0)
    if mixture.shape[0] == 2:
        deviation = math.sqrt(prior.variance)
        reach = (prior.mean - REACH * deviation, prior.mean + REACH * deviation)
    fine, most = FINENESS[-1]
    if first == 0.0:
        least = NODES_A_KINK * arrays.kink.size
        fine, most = _finest(pace, horizon, arrivals * label_delay, least, MOST_STATES / (mixture.shape[0] - 1))
    values = []
    # The coarse solve has half as many offers too, if there are many, so that the error counts what compressing loses.
    rough = prepare(_few(offers, charges, MOST_MENUS // 2), charges) if len(offers.amount) > MOST_MENUS else arrays
    solves = ((COARSER * fine, most / FEWER, rough), (fine, most, arrays))
    for step, points, given in solves[first > 0.0 :]:
        after, blocks, keep = _rows(pace, horizon, step, first)
        count = max(int(points), NODES_A_KINK * given.kink.size)
        nodes, labels, grid, at_prior = run_offer_blocks(
            after, blocks, keep, mixture, *given[:6], arrivals, discount_rate, 1.0 / label_delay,
            width, *reach, count, math.ceil(count / TABLE_NODES), pending, most_pending(arrivals * label_delay),
        )  # fmt: skip
        values.append(float(at_prior[0]) * given.unit)
    unit = arrays.unit
    value = values[-1] / unit
    error = 2.0 * abs(values[-1] - values[0])
    # Decisions are discrete, so V has kinks, and what parabolas lose there need not show in the distance of two solves.
    deviation = horizon * math.sqrt(prior.variance) * unit
    error += LEAST_ERROR * (value * unit + deviation) + KINK_ERROR * deviation * prior.n / (prior.n + FEW_LABELS)
    return OfferBlocks(
        value * unit,
        error,
        pace,
        after[keep >= 0],
        nodes,
        labels * unit,
        pending,
        np.interp(pending, grid, at_prior) * unit,
    )


def label_rows(
    offers: Offers, arrivals: float, rate: float, smallest: float, largest: float, step: float, points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Estimate once what a label is worth at every belief of one Beta distribution between two sizes.

    Time is measured in mean delays of a label.

    Parameters
    ----------
    offers
        What arrivals bring.
    arrivals, rate
        λ and r.
    smallest, largest
        The belief sizes of the first row, and of the last at least.
    step, points
        ε of the blocks, and the number of rates p̂.

    Returns
    -------
    tuple of ndarray
        The belief sizes of the rows, the rates of each, the numbers pending, and V(m+1) − V(m) in money by row, rate
        and number pending.
    """
    arrays = prepare(offers)
    counts = _table_pending(2.0 * arrivals)  # those of the next power of 2
    if arrays.kink.size == 0:  # no offer ever pays
        return np.array([smallest]), np.array([[0.0, 1.0]]), counts, np.zeros((1, 2, counts.size))
    horizon = arrivals / rate
    after, blocks, keep = _rows(smallest, horizon, step, labels=largest)
    count = max(points, NODES_A_KINK * arrays.kink.size)
    nodes, labels, _, _ = run_offer_blocks(
        after, blocks, keep, _mixture(Belief(smallest, smallest / 2.0))[0], *arrays[:6], arrivals, rate, 1.0,
        _width(arrays, horizon), 0.0, 1.0, count, math.ceil(count / TABLE_NODES), counts, most_pending(2.0 * arrivals),
    )  # fmt: skip
    return smallest + after[keep >= 0], nodes, counts, labels * arrays.unit


def _width(arrays: OfferArrays, horizon: float) -> float:
    """Return how many standard deviations around a kink the grid of y covers."""
    spread = float(arrays.amount.max() / arrays.amount.min())
    return max(5.5, math.sqrt(2.0 * math.log1p(horizon * spread)) + 2.0)


def most_pending(in_flight: float) -> float:
    """Return how many labels may be pending at most, if so many are in flight on average and all are accepted."""
    return in_flight + 4.0 * math.sqrt(in_flight) + 6.0


def _few(offers: Offers, charges: Sequence[float], most: int) -> Offers:
    """Return at most so many offers. Menus, and offers with charges, stay as they are."""
    return offers if len(offers.amount) <= most or offers.menus or charges else offers.compress(most)


def _mixture(prior: Belief | MixtureBelief) -> tuple[NDArray[np.float64], float]:
    """Return the mixture as the kernel takes it, and the belief size that sets the pace of the first blocks.

    A block must not tell the beliefs of a mixture apart: two of them are like one belief whose standard deviation is
    half the distance of their means.
    """
    whole = MixtureBelief.of(prior)
    a, b = min(belief.s for belief in whole.beliefs), min(belief.n - belief.s for belief in whole.beliefs)
    lines = []
    pace = min(belief.n for belief in whole.beliefs)
    for belief, weight in zip(whole.beliefs, whole.weights, strict=True):
        log_beta = (
            math.lgamma(belief.s) + math.lgamma(belief.n - belief.s) - math.lgamma(belief.n) if a > 0 < b else 0.0
        )
        lines.append([belief.s - a, belief.n - belief.s - b, math.log(weight) - log_beta])
        for other in whole.beliefs:
            middle = (belief.mean + other.mean) / 2.0
            if other.mean != belief.mean:
                pace = min(pace, 4.0 * middle * (1.0 - middle) / (other.mean - belief.mean) ** 2)
    return np.array([*lines, [a, b, 0.0]]), pace


def _rows(
    pace: float, horizon: float, step: float, first: float = 0.0, labels: float = TABLE_LABELS
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the numbers of labels of the rows, the blocks that lead to the next, and the places in the table."""
    after, blocks = [first], [_block(pace + first, PATIENCE * horizon, step)]
    while after[-1] < max(TIMES * horizon, labels, 2.0 * first) or len(after) < 3:
        after.append(after[-1] + blocks[-1])
        # After most of the discounted arrivals, values hardly matter, but labels are still looked up.
        patience = PATIENCE * horizon if after[-1] < TIMES * horizon else math.inf
        blocks.append(_block(pace + after[-1], patience, step))
    keep, kept, last = [-1] * len(after), 0, -math.inf
    for row in range(len(after) - 1):  # the last row is where the recursion starts
        if row == 0 or pace + after[row] >= TABLE_RATIO * (pace + last):
            keep[row], kept, last = kept, kept + 1, after[row]
    return np.array(after), np.array(blocks), np.array(keep, dtype=np.int64)


def _block(size: float, most: float, step: float) -> float:
    return max(1.0, math.floor(min(step * size, most)))


def _finest(pace: float, horizon: float, in_flight: float, least: int, states: float) -> tuple[float, int]:
    """Return the smallest ε, and the largest number of nodes, with which the recursion has few enough states."""
    for step, points in FINENESS:
        blocks = _rows(pace, horizon, step)[1]
        grid = DENSE + np.log1p(in_flight / (DENSE * blocks)) / math.log(GROWTH)
        if float(np.minimum(grid, in_flight / blocks + 6.0).sum()) * max(points, least) < states:
            break
    return step, points


def _table_pending(in_flight: float) -> NDArray[np.float64]:
    """Return the numbers pending of the table."""
    counts = [0.0]
    while counts[-1] < in_flight + 4.0 * math.sqrt(in_flight) + 2.0:
        counts.append(max(counts[-1] + 1.0, math.floor(counts[-1] * TABLE_GROWTH)))
    return np.array(counts)
