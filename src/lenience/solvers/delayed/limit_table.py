"""Exposure limits at any belief and for any rate of arrivals, from solves that are done once and shared.

With features everyone has a belief (n, p̂) of their own, and people like x arrive at a rate of their own. Solving the
problem with late labels for each of them takes too long. But measured in mean delays, a problem has only two rates: λ/μ
arrivals and r/μ discounting. So limits are solved with :mod:`lenience.solvers.delayed.blocks` where both are powers of
2. Each solve has the limits of all beliefs from a size of ``SMALLEST`` on, and those in between are interpolated: in
the logarithms of both rates and of n, and at equal distances (p̂ − c)√n from the break-even. A solve takes about 0.05 s,
and is done when the first belief needs it.

The limit is a number that need not be whole, because pending outcomes count by likeness: accept while fewer than that
are pending. If it is 0, the value of a first label that comes late is below the expected loss.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.delayed.blocks import TIMES, rows_of, run_blocks

SMALLEST = 0.05  # belief size where the table starts
FINENESS, POINTS = 0.02, 301  # ε of the blocks, and the number of rates p̂
ARRIVALS = (-10, 16)  # powers of 2 between which arrivals per mean delay are solved; others count as the nearest
RATES = (-24, 6)  # and discounting per mean delay
NODES = 256  # solves kept


class LimitNode(NamedTuple):
    """One solve: log(1 + number pending where the slope of V falls to the loss), by belief size and success rate."""

    sizes: NDArray[np.float64]
    lowest: NDArray[np.float64]
    steps: NDArray[np.float64]
    logarithms: NDArray[np.float64]


def exposure_limit(n: float, mean: float, cost: float, arrivals: float, rate: float) -> float:
    """Return the exposure limit at a belief: accept while fewer than that are pending.

    Parameters
    ----------
    n : float
        Belief size: how many observations the estimate is worth.
    mean : float
        Expected success rate.
    cost : float
        The break-even success rate.
    arrivals : float
        Arrivals of such people per mean delay of a label.
    rate : float
        Discount rate per mean delay of a label.

    Returns
    -------
    float
        The limit, infinite from the break-even on.

    Examples
    --------
    >>> from lenience import Belief, Delayed
    >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> late.solve(Belief(2, 1)).limit(Belief(10, 7)), 4 < exposure_limit(10, 0.7, 0.8, arrivals=50, rate=0.1) < 5
    (5, True)
    """
    if mean >= cost:
        return math.inf
    across, across_share = between_powers(arrivals, *ARRIVALS)
    down, down_share = between_powers(rate, *RATES)
    total = 0.0
    for i, j, share in (
        (0, 0, (1.0 - across_share) * (1.0 - down_share)),
        (1, 0, across_share * (1.0 - down_share)),
        (0, 1, (1.0 - across_share) * down_share),
        (1, 1, across_share * down_share),
    ):
        if share > 0.0:
            total += share * look_up_limit(
                *_node(float(cost), across + i, down + j), float(cost), float(n), float(mean)
            )
    # The slope of V falls to the loss at this number. A label at m pending is worth V(m + 1) − V(m): that at m + ½.
    return max(math.expm1(total) - 0.5, 0.0)


def between_powers(value: float, low: int, high: int) -> tuple[int, float]:
    """Return the power of 2 at or below a value, and how far the value is from there to the next.

    >>> between_powers(8.0, -10, 16)
    (3, 0.0)
    """
    position = min(max(math.log2(value), float(low)), float(high)) if value > 0.0 else float(low)
    first = min(math.floor(position), high - 1)
    share = position - first
    return (first, share) if share < 1.0 - 1e-9 else (first + 1, 0.0)


@lru_cache(maxsize=NODES)
def _node(cost: float, arrivals: int, rate: int) -> LimitNode:
    """Solve the problem with 2^arrivals arrivals and a discount rate of 2^rate per mean delay."""
    horizon = 2.0 ** (arrivals - rate)
    sizes, blocks = rows_of(SMALLEST, SMALLEST + TIMES * horizon, FINENESS)
    width = max(7.0, math.sqrt(2.0 * math.log1p(horizon)) + 2.0)
    count = 2 * round(POINTS * width / 14.0) + 1
    lowest, steps, limits, _, _ = run_blocks(sizes, blocks, cost, cost, 2.0**arrivals, 2.0**rate, 1.0, width, count)
    # The last row starts the recursion and has no limits.
    return LimitNode(sizes[:-1], lowest[:-1], steps[:-1], np.log1p(np.where(np.isfinite(limits), limits, 0.0))[:-1])


@compiled
def look_up_limit(
    sizes: NDArray[np.float64],
    lowest: NDArray[np.float64],
    steps: NDArray[np.float64],
    logarithms: NDArray[np.float64],
    cost: float,
    n: float,
    mean: float,
) -> float:
    """Return the logarithm of :class:`LimitNode` at a belief below the break-even."""
    rows = sizes.size
    first = min(max(int(np.searchsorted(sizes, n)) - 1, 0), max(rows - 2, 0))
    distance = (mean - cost) * math.sqrt(n)
    low = at_distance(lowest[first], steps[first], logarithms[first], cost, cost + distance / math.sqrt(sizes[first]))
    if rows == 1 or n <= sizes[first]:
        return low
    second = first + 1
    high = at_distance(
        lowest[second], steps[second], logarithms[second], cost, cost + distance / math.sqrt(sizes[second])
    )
    share = min(math.log(n / sizes[first]) / math.log(sizes[second] / sizes[first]), 1.0)
    return low + share * (high - low)


@compiled
def at_distance(lowest: float, step: float, logarithms: NDArray[np.float64], cost: float, rate: float) -> float:
    """Return the logarithm of :class:`LimitNode` in one row of the table, at a rate below the break-even."""
    position = (rate - lowest) / step
    if position <= 0.0:
        return 0.0
    last = max(math.ceil((cost - lowest) / step - 1e-9) - 1, 1)  # the last rate below the cost
    left = min(int(position), last - 1)
    # Beyond the last rate the logarithm goes on as before it.
    return float(logarithms[left] + (position - left) * (logarithms[left + 1] - logarithms[left]))
