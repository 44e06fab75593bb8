"""The inner loops of :mod:`lenience.solvers.delayed.recursion`: one plane of one row.

A plane holds Q for all states of a row with m acceptances pending. ``over`` is the plane of m + 1 in the same row, and
``under`` is the plane of m − 1 in the next row (n + 1). Offsets are unsigned, because the compiler does not vectorise
the loops with signed ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled


@compiled
def plane_factors(
    arrivals: float, rate: float, resolve: float, cap: int, side: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the factors w, a, 1 − a and λ/(r + mμ) of each plane, moved outwards by the largest rounding error.

    ``side`` is −1 for the lower recursion and 1 for the upper.
    """
    wait = np.empty(cap + 1)
    move = np.empty(cap + 1)
    stay = np.empty(cap + 1)
    strike = np.empty(cap + 1)
    for m in range(cap + 1):
        wait[m] = m * resolve / (rate + m * resolve) * (1.0 + side * 3e-15)
        move[m] = arrivals / (rate + arrivals + m * resolve) * (1.0 + side * 3e-15)
        stay[m] = (rate + m * resolve) / (rate + arrivals + m * resolve) * (1.0 + side * 3e-15)
        strike[m] = arrivals / (rate + m * resolve) * (1.0 + side * 6e-15)
    return wait, move, stay, strike


@compiled
def sweep_choice(
    value: NDArray[np.float64],
    here: np.uint64,
    over: np.uint64,
    under: np.uint64,
    begin: np.uint64,
    end: np.uint64,
    good: NDArray[np.float64],
    bad: NDArray[np.float64],
    strike: NDArray[np.float64],
    wait: float,
    move: float,
    stay: float,
    strike_rate: float,
) -> None:
    """Compute the states with p̂ < c of a plane: the better of accepting and rejecting."""
    one = np.uint64(1)  # Offsets are unsigned, because the compiler does not vectorise the loop with signed ones.
    for i in range(begin, end):
        later = wait * (good[i] * value[under + i + one] + bad[i] * value[under + i])
        accept = move * value[over + i] + stay * later
        reject = later + strike_rate * strike[i]
        value[here + i] = accept if accept > reject else reject


@compiled
def sweep_accept(
    value: NDArray[np.float64],
    here: np.uint64,
    over: np.uint64,
    under: np.uint64,
    begin: np.uint64,
    end: np.uint64,
    good: NDArray[np.float64],
    bad: NDArray[np.float64],
    move: float,
    stay: float,
) -> None:
    """Compute the states with p̂ ≥ c of a plane, where accepting is optimal."""
    one = np.uint64(1)
    for i in range(begin, end):
        value[here + i] = move * value[over + i] + stay * (good[i] * value[under + i + one] + bad[i] * value[under + i])


@compiled
def sweep_cap_lower(
    low: NDArray[np.float64],
    here: np.uint64,
    under: np.uint64,
    begin: np.uint64,
    turn: np.uint64,
    end: np.uint64,
    good: NDArray[np.float64],
    bad: NDArray[np.float64],
    strike: NDArray[np.float64],
    wait: float,
    strike_rate: float,
) -> None:
    """Compute the lower bounds at the cap: accept and ignore the label, or, up to ``turn`` (p̂ < c), reject."""
    one = np.uint64(1)
    for i in range(begin, turn):
        later = wait * (good[i] * low[under + i + one] + bad[i] * low[under + i])
        low[here + i] = max(later, later + strike_rate * strike[i])
    for i in range(turn, end):
        low[here + i] = wait * (good[i] * low[under + i + one] + bad[i] * low[under + i])


@compiled
def sweep_cap_upper(
    high: NDArray[np.float64],
    here: np.uint64,
    under: np.uint64,
    begin: np.uint64,
    turn: np.uint64,
    end: np.uint64,
    good: NDArray[np.float64],
    bad: NDArray[np.float64],
    strike: NDArray[np.float64],
    wait: float,
    move: float,
    stay: float,
    strike_rate: float,
) -> None:
    """Compute the upper bounds at the cap: another acceptance reveals one label at once."""
    one = np.uint64(1)
    for i in range(begin, turn):
        later = wait * (good[i] * high[under + i + one] + bad[i] * high[under + i])
        more = good[i] * high[here + i + one] + bad[i] * high[here + i]
        high[here + i] = max(move * more + stay * later, later + strike_rate * strike[i])
    for i in range(turn, end):
        later = wait * (good[i] * high[under + i + one] + bad[i] * high[under + i])
        more = good[i] * high[here + i + one] + bad[i] * high[here + i]
        high[here + i] = move * more + stay * later


@compiled
def sweep_none_pending(
    value: NDArray[np.float64],
    here: np.uint64,
    over: np.uint64,
    begin: np.uint64,
    turn: np.uint64,
    end: np.uint64,
    strike: NDArray[np.float64],
    move: float,
    strike_rate: float,
) -> None:
    """Compute the plane with nothing pending, where no label can come: accept, or, up to ``turn``, reject for good."""
    for i in range(begin, turn):
        value[here + i] = max(move * value[over + i], strike_rate * strike[i])
    for i in range(turn, end):
        value[here + i] = move * value[over + i]
