"""Draw: the random numbers of one run of a replay, the same for every policy."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np


class Draw(msgspec.Struct, frozen=True, eq=False):
    """The random numbers of one run.

    Parameters
    ----------
    order : ndarray of int
        The rows that arrive, in order.
    warm : ndarray of int
        The rows whose labels are known at the start.
    reference : ndarray of int
        The rows that represent the population.
    chances : ndarray
        One uniform random number per arrival, for decisions that are random.
    gaps : ndarray
        The time before each arrival, in units of the mean gap.
    delays : ndarray
        The delay of each outcome, in units of the mean delay.
    """

    order: np.ndarray[Any, np.dtype[np.int64]]
    warm: np.ndarray[Any, np.dtype[np.int64]]
    reference: np.ndarray[Any, np.dtype[np.int64]]
    chances: np.ndarray[Any, np.dtype[np.float64]]
    gaps: np.ndarray[Any, np.dtype[np.float64]]
    delays: np.ndarray[Any, np.dtype[np.float64]]


def draw(seed: int, rows: int, arrivals: int, warm: int, reference: int = 100) -> Draw:
    """Draw the random numbers of a run. Runs that differ only in ``warm`` meet the same arrivals."""
    rng = np.random.default_rng([seed, 6021])
    order = rng.integers(0, rows, arrivals)
    chances = rng.random(arrivals)
    representatives = rng.integers(0, rows, reference)
    late = np.random.default_rng([seed, 6022])
    gaps, delays = late.exponential(size=(2, arrivals))
    return Draw(order, rng.integers(0, rows, warm), representatives, chances, gaps, delays)
