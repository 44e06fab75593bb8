"""The chance of a replay's run, drawn beforehand: every policy meets the same arrivals, outcomes and luck."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np


class Draw(msgspec.Struct, frozen=True, eq=False):
    """One run's chance: who comes, whose labels are known at the start, who stands for the population, and luck."""

    order: np.ndarray[Any, np.dtype[np.int64]]
    warm: np.ndarray[Any, np.dtype[np.int64]]
    reference: np.ndarray[Any, np.dtype[np.int64]]
    chances: np.ndarray[Any, np.dtype[np.float64]]
    gaps: np.ndarray[Any, np.dtype[np.float64]]  # before each arrival, in mean gaps
    delays: np.ndarray[Any, np.dtype[np.float64]]  # of each outcome, in mean delays


def draw(seed: int, rows: int, arrivals: int, warm: int, reference: int = 100) -> Draw:
    """The chance of a run, the same whatever the policy; runs that differ in ``warm`` alone meet the same arrivals."""
    rng = np.random.default_rng([seed, 6021])
    order = rng.integers(0, rows, arrivals)
    chances = rng.random(arrivals)
    stand = rng.integers(0, rows, reference)
    late = np.random.default_rng([seed, 6022])
    gaps, delays = late.exponential(size=(2, arrivals))
    return Draw(order, rng.integers(0, rows, warm), stand, chances, gaps, delays)
