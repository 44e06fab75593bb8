"""Solve the stopping problem to a tolerance: choose how far to look ahead and how wide the band is, and check both.

The kernel in :mod:`lenience.solvers.stopping.band` returns valid bounds for any look-ahead and any band. This module
chooses the look-ahead (the rows beyond the last row that the caller needs) and the upper edge of the band. The aim is
that the bounds of the value at the prior, and of the value of accepting at the boundary of every row, are within the
tolerance of each other. The choice is a guess, and the bounds from the kernel verify it: if they are too wide, the
solve is repeated with a longer look-ahead.

Rounding alone widens the bounds by up to about 4·10⁻¹⁵ c/(1−γ)². A smaller tolerance cannot be reached; the bounds then
show the precision that was reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.validation import real
from lenience.solvers.stopping.band import ROUNDING, Band, solve_band

SECONDS_A_STATE = 6e-10  # on one core
MOST_STATES = 4e11  # about four minutes
MOST_ROWS = 50_000_000  # the solution stores 16 bytes per row
ATTEMPTS = 4

progress = np.zeros(2, dtype=np.int64)  # rows done and rows in total of the latest solve, for the progress bar


class StoppingSolution(NamedTuple):
    """The decisions of the first rows, and bounds of the values at the prior in units of reward."""

    accept_from: NDArray[np.int64]  # by row k: accepting is proved optimal from this number of new successes on
    stop_below: NDArray[np.int64]  # by row k: stopping is proved optimal below this number of new successes
    value: Bounds
    continuation: Bounds
    undecided: int
    look_ahead: int
    width: float  # the largest gap between the bounds of the value of accepting, at the boundaries of the rows
    states: int


def solve_discounted(
    n: float,
    s: float,
    cost: float,
    discount: float,
    rows: int,
    tolerance: float,
    look_ahead: int | None = None,
) -> StoppingSolution:
    """Solve from the prior (n, s) for the first ``rows`` rows. A given ``look_ahead`` is never extended."""
    check_size(n)
    scale, target, drop = _aims(cost, discount, tolerance)
    ahead = _guess_look_ahead(n + rows, cost, discount, target) if look_ahead is None else look_ahead
    accept_from = np.empty(rows, dtype=np.int64)
    stop_below = np.empty(rows, dtype=np.int64)
    for attempt in range(ATTEMPTS):
        last = rows + ahead
        progress[:] = 0, last
        _check_effort(rows, last, _band_states(n, cost, discount, rows, ahead, drop))
        band = Band(*solve_band(n, s, n - s, cost, discount, last, False, drop, accept_from, stop_below, progress))
        width = max(band.edge_width, band.upper - band.lower) * scale
        if width <= target or look_ahead is not None or attempt == ATTEMPTS - 1 or discount == 0.0:
            break
        ahead += math.ceil((math.log(width / target) + 1.0) / -math.log(discount))
        drop /= 64.0
    mean = s / n
    return StoppingSolution(
        accept_from,
        stop_below,
        value=_value(stop_below[0] > 0, _reward(band.lower, band.upper, mean, cost, scale)),
        continuation=_reward(band.continue_lower, band.continue_upper, mean, cost, scale),
        undecided=band.undecided,
        look_ahead=ahead,
        width=band.edge_width * scale,
        states=band.states,
    )


class DiscountedProblem(NamedTuple):
    """The discounted problem as two numbers, for solvers that need the thresholds of many problems."""

    cost: float
    discount: float

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """Return bounds of the value at a belief, and of the value of accepting there and then acting optimally."""
        solution = solve_discounted(belief.n, belief.s, self.cost, self.discount, 1, tolerance)
        return solution.value, solution.continuation

    def remaining(self, acceptances: int) -> DiscountedProblem:
        """Return the problem itself, because with discounting the future looks the same after every acceptance."""
        return self


def solve_horizon(
    n: float, s: float, cost: float, discount: float, horizon: int, rows: int, tolerance: float
) -> StoppingSolution:
    """Solve for a total of ``horizon`` individuals from the prior (n, s), for the first ``rows`` rows."""
    check_size(n)
    scale = float(horizon) if discount == 1.0 else -math.expm1(horizon * math.log(discount)) / (1.0 - discount)
    target = max(tolerance, 4.0 * ROUNDING * cost * scale * scale)
    _check_effort(rows, horizon, horizon * _horizon_width(n, horizon))
    progress[:] = 0, horizon
    accept_from = np.empty(rows, dtype=np.int64)
    stop_below = np.empty(rows, dtype=np.int64)
    band = Band(
        *solve_band(n, s, n - s, cost, discount, horizon, True, target / 8.0, accept_from, stop_below, progress)
    )
    mean = s / n
    return StoppingSolution(
        accept_from,
        stop_below,
        value=_value(stop_below[0] > 0, _reward(band.lower / scale, band.upper / scale, mean, cost, scale)),
        continuation=_reward(band.continue_lower / scale, band.continue_upper / scale, mean, cost, scale),
        undecided=band.undecided,
        look_ahead=horizon - rows,
        width=band.edge_width,
        states=band.states,
    )


def discounted_seconds(
    n: float, cost: float, discount: float, rows: int, tolerance: float, look_ahead: int | None = None
) -> float:
    """Estimate the seconds that :func:`solve_discounted` takes if its first attempt is enough."""
    _, target, drop = _aims(cost, discount, tolerance)
    ahead = _guess_look_ahead(n + rows, cost, discount, target) if look_ahead is None else look_ahead
    return _band_states(n, cost, discount, rows, ahead, drop) * SECONDS_A_STATE


def look_ahead_within(
    n: float, cost: float, discount: float, rows: int, tolerance: float, seconds: float
) -> int | None:
    """Return the longest look-ahead that :func:`solve_discounted` is estimated to compute in a given time.

    Return None if the look-ahead that the tolerance needs takes no longer. With a shorter one the bounds are wider, but
    they are still bounds: after 50,000 rows, say, little is left to learn, whatever the number of arrivals.

    >>> look_ahead_within(40, 0.8, 0.99, 1, 1e-9, 0.1) is None
    True
    >>> ahead = look_ahead_within(40, 0.8, 1 - 1e-6, 1, 1e-3, 0.01)
    >>> discounted_seconds(40, 0.8, 1 - 1e-6, 1, 1e-3, ahead) <= 0.01
    True
    """
    _, target, _ = _aims(cost, discount, tolerance)
    ahead = _guess_look_ahead(n + rows, cost, discount, target)
    if discounted_seconds(n, cost, discount, rows, tolerance, ahead) <= seconds:
        return None
    while ahead > 1 and discounted_seconds(n, cost, discount, rows, tolerance, ahead) > seconds:
        ahead = ahead * 3 // 4
    return ahead


def horizon_seconds(n: float, horizon: int) -> float:
    """Estimate the seconds that :func:`solve_horizon` takes: the average row has a quarter of the largest width."""
    return horizon * _horizon_width(n, horizon) / 4.0 * SECONDS_A_STATE


def _aims(cost: float, discount: float, tolerance: float) -> tuple[float, float, float]:
    """Return the scale of values, the gap to reach (at least that of rounding), and the largest Q to drop."""
    scale = 1.0 / (1.0 - discount)
    target = max(tolerance, 4.0 * ROUNDING * cost * scale * scale)
    return scale, target, target / scale / 8.0


def _horizon_width(n: float, horizon: int) -> float:
    """Return the largest number of states that any row was observed to have."""
    return 8.0 * math.sqrt(n + horizon)


def check_size(n: float) -> float:
    """Check that double precision can represent a belief size n: above 1e15, n + 1 is inexact; below 1e-100, 1/n is."""
    return real("n", n, least=1e-100, most=1e15)


def _reward(lower: float, upper: float, mean: float, cost: float, scale: float) -> Bounds:
    """Convert bounds of the put Q to bounds of the value (Q + p̂ − c)·scale, rounded outwards."""
    slack = 16.0 * 2.0**-53 * (abs(upper) + mean + cost)  # Up to ten roundings, those of the scale included.
    return Bounds((lower + (mean - cost) - slack) * scale, (upper + (mean - cost) + slack) * scale)


def _value(stops: bool, reward: Bounds) -> Bounds:
    """Return V = max(Ṽ, 0): exactly 0 if stopping is proved, and never negative."""
    return Bounds(0.0, 0.0) if stops else Bounds(max(reward.lower, 0.0), max(reward.upper, 0.0))


def guess_look_ahead(
    gap: Callable[[float], float], n: float, discount: float, target: float, final: bool = False
) -> int:
    """Guess how many rows it takes until the bounds of the last row have closed to the target.

    ``gap`` returns how far they are apart at a belief size, in units of reward an individual, and n is the size of the
    last belief that must be this precise. The bounds close by the discount a row. In the last row they differ near the
    break-even only, and that difference diffuses; with ``final`` it also ends where a rejection is final.
    """
    if discount == 0.0:
        return 1
    rate = -math.log(discount)
    exponent = 3.0  # The bounds must close by the factor exp(−exponent).
    for _ in range(4):
        start = math.log(max(gap(n + exponent / rate) / (target * (1.0 - discount)), math.e))
        # The constants were chosen so that fewer than one in a hundred random problems needs a second attempt.
        spread = 0.5 * math.log(math.pi * exponent) + (math.log(2.0 * exponent) - 1.0 if final else 0.5)
        exponent = max(start - spread, 1.0)
    return math.ceil(exponent / rate) + 2


def _guess_look_ahead(n: float, cost: float, discount: float, target: float) -> int:
    """Guess the number of rows over which discounting shrinks the gap of the last row to the target."""
    h = discount / (1.0 - discount)
    return guess_look_ahead(
        lambda size: 0.5 * math.sqrt(cost * (1.0 - cost) / size * (h / (size + h))), n, discount, target, final=True
    )


def _band_states(n: float, cost: float, discount: float, rows: int, ahead: int, drop: float) -> float:
    """Estimate the number of states that are computed.

    Q is largest near the cost, and it falls by a factor of e over so many states as ``decay`` says. A row has the
    states from there to where Q is below the drop level. That level grows by 1/γ a row after the first rows, so the
    band becomes narrower.
    """
    variance = cost * (1.0 - cost)
    size = n + rows
    h = discount / (1.0 - discount)
    largest = 0.5 * math.sqrt(variance / size * (h / (size + h)))
    fade = max(math.log(max(largest / drop, math.e)), 1.0)  # a few states if rounding exceeds Q
    left = max(fade + ahead * math.log(discount), 1.0) if discount > 0.0 else 1.0
    decay = math.sqrt(variance / (2.0 * (1.0 - discount)))
    early = min(math.sqrt(2.0 * fade * size * variance), fade * decay) + 4.0
    late = min(math.sqrt((fade + left) * (size + ahead) * variance), 0.5 * (fade + left) * decay) + 4.0
    return rows * early + ahead * late


def _check_effort(rows: int, last: int, states: float) -> None:
    """Raise TooLargeError if a solve would take too much time or memory."""
    if rows > MOST_ROWS or states > MOST_STATES:
        raise TooLargeError(
            "Solving this problem",
            seconds=states * SECONDS_A_STATE,
            allowed_seconds=MOST_STATES * SECONDS_A_STATE,
            detail=f"{rows * 16 / 1e9:,.2f} GB; {last:,} rows of about {states / last:,.0f} states",
            allowed=f"{MOST_STATES * SECONDS_A_STATE / 60:,.0f} minutes or {MOST_ROWS:,} stored rows",
            field=("rows", "tolerance"),
            value=rows,
            hint="Use a larger tolerance or fewer rows.",
        )
