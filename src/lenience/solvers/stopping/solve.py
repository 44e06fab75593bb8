"""Solve the stopping problem to a tolerance: how far to look ahead, how wide a band, and what came of it.

The kernel in :mod:`lenience.solvers.stopping.band` encloses whatever it is asked; here the look-ahead (rows beyond
the last one wanted) and the band's upper edge are chosen so that the enclosure of the value at the prior,
and of the value of accepting at every row's boundary, is as narrow as the tolerance. The choice is a
guess that the kernel's own enclosure verifies: where it was too short, the solve is repeated with more.

Rounding alone widens an enclosure by up to about 4·10⁻¹⁵ c/(1−γ)²; a tolerance below that cannot be met,
and the enclosure then says what was.
"""

from __future__ import annotations

import math
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
MOST_ROWS = 50_000_000  # 16 bytes each are kept
ATTEMPTS = 4

progress = np.zeros(2, dtype=np.int64)  # rows done and rows to do of the newest solve, for a progress bar to read


class Solution(NamedTuple):
    """The decisions of the first rows and the enclosures at the prior, in units of reward."""

    accept_from: NDArray[np.int64]  # row k: states j of at least this many new successes are proved accepted
    stop_below: NDArray[np.int64]  # row k: states j below this are proved stops
    value: Bounds
    continuation: Bounds
    undecided: int
    look_ahead: int
    width: float  # the widest enclosure of the value of accepting at the boundary of a row
    states: int


def solve_discounted(
    n: float,
    s: float,
    cost: float,
    discount: float,
    rows: int,
    tolerance: float,
    look_ahead: int | None = None,
) -> Solution:
    """Solve from the prior (n, s) for its first ``rows`` rows; a given ``look_ahead`` is used as it is."""
    check_size(n)
    scale, target, drop = _aims(cost, discount, tolerance)
    ahead = _guess_look_ahead(n + rows, cost, discount, target) if look_ahead is None else look_ahead
    accept_from = np.empty(rows, dtype=np.int64)
    stop_below = np.empty(rows, dtype=np.int64)
    for attempt in range(ATTEMPTS):
        last = rows + ahead
        progress[:] = 0, last
        _refuse_absurd(rows, last, _band_width(n + last, cost, discount, drop))
        band = Band(*solve_band(n, s, n - s, cost, discount, last, False, drop, accept_from, stop_below, progress))
        width = max(band.edge_width, band.upper - band.lower) * scale
        if width <= target or look_ahead is not None or attempt == ATTEMPTS - 1 or discount == 0.0:
            break
        ahead += math.ceil((math.log(width / target) + 1.0) / -math.log(discount))
        drop /= 64.0
    mean = s / n
    return Solution(
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
    """The discounted problem in two numbers, for solvers that find thresholds of many."""

    cost: float
    discount: float

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """The value at a belief, and the value of accepting there and being optimal afterwards."""
        solution = solve_discounted(belief.n, belief.s, self.cost, self.discount, 1, tolerance)
        return solution.value, solution.continuation

    def remaining(self, acceptances: int) -> DiscountedProblem:
        """The same: the future looks alike at every time."""
        return self


def solve_horizon(
    n: float, s: float, cost: float, discount: float, horizon: int, rows: int, tolerance: float
) -> Solution:
    """Solve for ``horizon`` individuals in all, from the prior (n, s), for its first ``rows`` rows."""
    check_size(n)
    scale = float(horizon) if discount == 1.0 else -math.expm1(horizon * math.log(discount)) / (1.0 - discount)
    target = max(tolerance, 4.0 * ROUNDING * cost * scale * scale)
    _refuse_absurd(rows, horizon, _horizon_width(n, horizon))
    progress[:] = 0, horizon
    accept_from = np.empty(rows, dtype=np.int64)
    stop_below = np.empty(rows, dtype=np.int64)
    band = Band(
        *solve_band(n, s, n - s, cost, discount, horizon, True, target / 8.0, accept_from, stop_below, progress)
    )
    mean = s / n
    return Solution(
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
    """About how long :func:`solve_discounted` takes, if its first attempt is enough."""
    _, target, drop = _aims(cost, discount, tolerance)
    last = rows + (_guess_look_ahead(n + rows, cost, discount, target) if look_ahead is None else look_ahead)
    return last * _band_width(n + last, cost, discount, drop) * SECONDS_A_STATE


def horizon_seconds(n: float, horizon: int) -> float:
    """About how long :func:`solve_horizon` takes: on average a row has a quarter of the states that it may have."""
    return horizon * _horizon_width(n, horizon) / 4.0 * SECONDS_A_STATE


def _aims(cost: float, discount: float, tolerance: float) -> tuple[float, float, float]:
    """The scale of values, the width to reach (no less than rounding makes), and what may be dropped for it."""
    scale = 1.0 / (1.0 - discount)
    target = max(tolerance, 4.0 * ROUNDING * cost * scale * scale)
    return scale, target, target / scale / 8.0


def _horizon_width(n: float, horizon: int) -> float:
    """No row has more states, as far as is known."""
    return 8.0 * math.sqrt(n + horizon)


def check_size(n: float) -> float:
    """A belief size: beyond 1e15 one observation more is not a number of its own, and below 1e-100 1/n is none."""
    return real("n", n, least=1e-100, most=1e15)


def _reward(lower: float, upper: float, mean: float, cost: float, scale: float) -> Bounds:
    """From the put Q back to the value (Q + p̂ − c)·scale, rounded outwards."""
    slack = 8.0 * 2.0**-53 * (abs(upper) + mean + cost)
    return Bounds((lower + (mean - cost) - slack) * scale, (upper + (mean - cost) + slack) * scale)


def _value(stops: bool, reward: Bounds) -> Bounds:
    """V = max(Ṽ, 0): where stopping is proved it is 0, and nowhere is it less."""
    return Bounds(0.0, 0.0) if stops else Bounds(max(reward.lower, 0.0), max(reward.upper, 0.0))


def _guess_look_ahead(n: float, cost: float, discount: float, target: float) -> int:
    """Rows until the gap of the last row's bounds has shrunk to the target at the rows before."""
    if discount == 0.0:
        return 1
    rate = -math.log(discount)
    # The gap of the start in units of value, at row n; and what was found to suffice at every n, for all
    # discounts: paths from the boundary to where that gap is open are few.
    gap = math.log(max(0.5 * math.sqrt(cost * (1.0 - cost) / (n + 3.0 / rate)) / (target * (1.0 - discount)), 2.0))
    usual = max(-math.log(target) - 3.6, 3.0)
    return math.ceil(min(gap, usual) / rate) + 2


def _band_width(n: float, cost: float, discount: float, drop: float) -> float:
    fade = max(math.log(1.0 / drop), 1.0)  # at the last discounts before 1 rounding would leave nothing to keep
    spread = math.sqrt(2.0 * fade * n * cost * (1.0 - cost))
    return min(spread, fade * math.sqrt(cost * (1.0 - cost) / (2.0 * (1.0 - discount)))) + 4.0


def _refuse_absurd(rows: int, last: int, band_width: float) -> None:
    states = last * band_width
    if rows > MOST_ROWS or states > MOST_STATES:
        raise TooLargeError(
            f"this problem would take about {states * SECONDS_A_STATE / 60:,.1f} minutes and {rows * 16 / 1e9:,.2f} GB "
            f"({last:,} rows of about {band_width:,.0f} states), and at most {MOST_STATES * SECONDS_A_STATE / 60:,.0f} "
            f"minutes and {MOST_ROWS:,} rows that are kept are allowed: a smaller horizon or number of rows, a lower "
            "discount or a larger tolerance would fit"
        )
