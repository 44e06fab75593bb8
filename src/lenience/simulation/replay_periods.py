"""A replay over time: what each policy did in each month, quarter or year, so that drift is visible."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.files.date_formats import Order, read_dates

MOST_PERIODS = 16
UNITS = ("D", "W", "M", "Q", "Y")  # calendar units, from fine to coarse


class ReplayPeriod(msgspec.Struct, frozen=True):
    """What happened in one period of a replay in order of time.

    Parameters
    ----------
    period : str
        The month, quarter, year or range of the period, e.g. "2011-06".
    arrivals : float
        The mean number of arrivals of a run.
    success_rate : float
        The share of successes among all arrivals, accepted or not.
    accepted : dict of str to float
        The share that each policy accepted.
    success_of_accepted : dict of str to float or None
        The share of successes among those that each policy accepted; None if it accepted nobody.
    reward : dict of str to float
        The mean reward of each policy per arrival, not discounted.
    """

    period: str
    arrivals: float
    success_rate: float
    accepted: dict[str, float]
    success_of_accepted: dict[str, float | None]
    reward: dict[str, float]


def checked_times(times: Any, rows: int, dates: Order | None = None) -> NDArray[Any]:
    """Return the time of each row: numbers, or dates in seconds; raise InputError if one is missing."""
    given = np.asarray(times)
    if given.shape != (rows,):
        raise InputError.because(
            f"must be one for each of the {rows} rows, not of shape {given.shape}",
            "times",
            value=given.shape,
            code="length_mismatch",
        )
    if given.dtype.kind in "iuf":
        missing = np.isnan(given.astype(np.float64))
    else:
        if given.dtype.kind != "M":
            values = [value.to_pydatetime() if hasattr(value, "to_pydatetime") else value for value in given.tolist()]
            given = np.array(read_dates("times", values, dates, "times").moments, dtype="datetime64[us]")
        given = given.astype("datetime64[s]")
        missing = np.isnat(given)
    if missing.any():
        raise InputError.because(
            f"must be known for every row; {int(missing.sum()):,} of {rows:,} are not dates or missing",
            "times",
            value=int(missing.sum()),
            code="missing",
        )
    return given


def periods_of(times: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of the period of each time, and the names of the periods in order.

    Dates are divided by the finest calendar unit that makes at most 16 periods (over more than 16 years: several years
    each); numbers into equal parts.

    Examples
    --------
    >>> days = np.array(["2011-06-01", "2011-06-30", "2011-11-01"], dtype="datetime64[s]")
    >>> periods_of(days)
    (array([0, 0, 5]), ['2011-06', '2011-07', '2011-08', '2011-09', '2011-10', '2011-11'])
    """
    if times.dtype.kind != "M":
        edges = np.unique(np.quantile(times, np.linspace(0, 1, MOST_PERIODS + 1)))
        place = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, max(len(edges) - 2, 0))
        names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)] or [f"{edges[0]:g}"]
        return place.astype(np.int64), names
    for unit in UNITS:
        step = 3 if unit == "Q" else 1
        number = times.astype(f"datetime64[{'M' if unit == 'Q' else unit}]").astype(np.int64) // step
        first, last = int(number.min()), int(number.max())
        if last - first < MOST_PERIODS:
            break
    width = (last - first) // MOST_PERIODS + 1
    first_of_group = range(first, last + 1, width)
    return (number - first) // width, [_name(unit, start, min(start + width - 1, last)) for start in first_of_group]


def _name(unit: str, first: int, last: int) -> str:
    if unit == "Q":
        return f"{1970 + first // 4} Q{first % 4 + 1}"
    start, end = (str(np.array(number).astype(f"datetime64[{unit}]")) for number in (first, last))
    if unit == "W":
        return f"week of {start}"
    return start if first == last else f"{start} to {end}"


def results_by_period(
    times: NDArray[Any], outcomes: NDArray[np.float64], earned: Mapping[str, NDArray[np.float64]],
    accepted: Mapping[str, NDArray[np.bool_]],
) -> tuple[ReplayPeriod, ...]:  # fmt: skip
    """Return the results of each period. All arrays have a row for each run and a column for each arrival."""
    place, names = periods_of(times.ravel())
    here = [place.reshape(times.shape) == i for i in range(len(names))]
    return tuple(
        ReplayPeriod(
            name,
            float(where.sum()) / len(times),
            float(outcomes[where].mean()),
            {policy: float(chosen[where].mean()) for policy, chosen in accepted.items()},
            {policy: _mean(outcomes[where & chosen]) for policy, chosen in accepted.items()},
            {policy: float(rewards[where].mean()) for policy, rewards in earned.items()},
        )
        for name, where in zip(names, here, strict=True)
        if where.any()
    )


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
