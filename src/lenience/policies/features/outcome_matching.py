"""PendingOutcomes: which decision an outcome belongs to, and which acceptances have no outcome yet.

An outcome comes with the *arrival* it belongs to (the number of the decision, from 0 on), or with its features only.

By arrival, nothing counts twice. An outcome that was observed before is skipped if it is the same (e.g. a job that was
retried) and raises an error if it is different. An outcome also raises an error if its arrival was rejected, was never
decided or had other features.

By features, an outcome belongs to the longest pending acceptance with exactly these features, otherwise to an expired
one. If there is neither, it counts as a label from another source, which is how past data is loaded. If an outcome with
these features was observed before, or an individual with them was rejected, a mistake is more likely. The policy then
issues an :class:`UnmatchedOutcomeWarning`. It is not an error, because different people can have the same features.
"""

from __future__ import annotations

import warnings
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import counted, plural
from lenience.core.validation import whole

Row = NDArray[np.float64]


class UnmatchedOutcomeWarning(UserWarning):
    """Warn about outcomes without arrivals that look like repeated ones, or like those of rejected individuals."""


class PendingOutcomes:
    """The acceptances without an outcome, and the outcomes observed, by arrival."""

    def __init__(self) -> None:
        self.pending: dict[int, tuple[float, Row]] = {}  # time of arrival, and features
        self.outcomes: dict[int, float] = {}
        self._expired: dict[int, Row] = {}
        # Arrivals by features, oldest first.
        self._pending_by_key: dict[bytes, list[int]] = {}
        self._expired_by_key: dict[bytes, list[int]] = {}
        # True for features with an outcome that was observed, False for those that were only rejected.
        self._observed: dict[bytes, bool] = {}

    def decided(self, first: int, rows: Row, accepted: NDArray[np.bool_], now: float) -> None:
        """Record decisions, of which the first has the arrival ``first``."""
        taken = iter(rows[accepted])  # a copy, because the caller may reuse the array
        for arrival, (key, accept) in enumerate(zip(_keys(rows), accepted.tolist(), strict=True), first):
            if accept:
                self.pending[arrival] = now, next(taken)
                self._pending_by_key.setdefault(key, []).append(arrival)
            else:
                self._observed.setdefault(key, False)

    def expire(self, now: float, after: float) -> None:
        """Expire the acceptances that are older than ``after``: they no longer count as pending."""
        for arrival in [arrival for arrival, (came, _) in self.pending.items() if now - came > after]:
            _, row = self.pending.pop(arrival)
            key = _key(row)
            _remove(self._pending_by_key, key, arrival)
            self._expired[arrival] = row
            self._expired_by_key.setdefault(key, []).append(arrival)

    def by_features(self, rows: Row, outcomes: list[float]) -> list[int | None]:
        """Match outcomes to acceptances by their features. Return the arrival of each, None where there is none."""
        again = rejected = 0
        arrivals: list[int | None] = []
        for row, outcome in zip(rows, outcomes, strict=True):
            key = _key(row)
            candidates = self._pending_by_key.get(key) or self._expired_by_key.get(key)
            arrivals.append(candidates[0] if candidates else None)
            if candidates:
                self._record(candidates[0], key, outcome)
            elif key in self._observed:
                again += self._observed[key]
                rejected += not self._observed[key]
        if again or rejected:
            match = plural(again + rejected, "matches", "match")
            warnings.warn(
                f"Of {counted(len(outcomes), 'outcome')}, {again + rejected} {match} no pending acceptance (repeated: "
                f"{again}, of rejected individuals: {rejected}). The policy learns from them anyway. To skip repeats "
                "and detect mistakes, save policy.latest_ after decide and pass it as arrivals",
                UnmatchedOutcomeWarning,
                stacklevel=3,
            )
        return arrivals

    def by_arrival(
        self, arrivals: list[int], rows: Row, which: list[int], outcomes: list[float]
    ) -> tuple[list[int], list[float]]:
        """Match outcomes to decisions by arrival and return the new ones. Check all of them before recording any."""
        new: dict[int, tuple[int, float]] = {}
        for i, outcome in zip(which, outcomes, strict=True):
            arrival = arrivals[i]
            before = self.outcomes.get(arrival, new.get(arrival, (i, None))[1])
            if before is not None:
                if before != outcome:
                    raise InputError.because(
                        f"must not change: that of arrival {arrival} was {before:g}, and now it is {outcome:g}",
                        "outcomes",
                        value=outcome,
                    )
                continue
            row = self.pending[arrival][1] if arrival in self.pending else self._expired.get(arrival)
            if row is None:
                raise InputError.because(
                    f"must belong to accepted individuals; arrival {arrival} was rejected", "arrivals", value=arrival
                )
            if not np.allclose(row, rows[i], rtol=1e-6, atol=1e-9, equal_nan=True):
                raise InputError.because(
                    f"must have the same features as in the decision of arrival {arrival}", "X", value=arrival
                )
            new[arrival] = i, outcome
        for arrival, (_, outcome) in new.items():
            row = self.pending[arrival][1] if arrival in self.pending else self._expired[arrival]
            self._record(arrival, _key(row), outcome)
        return [i for i, _ in new.values()], [outcome for _, outcome in new.values()]

    def _record(self, arrival: int, key: bytes, outcome: float) -> None:
        """Record the outcome of a pending or expired acceptance."""
        if self.pending.pop(arrival, None) is not None:
            _remove(self._pending_by_key, key, arrival)
        else:
            del self._expired[arrival]
            _remove(self._expired_by_key, key, arrival)
        self.outcomes[arrival] = outcome
        self._observed[key] = True


def checked_arrivals(arrivals: ArrayLike, rows: int, decided: int) -> list[int]:
    """Return one arrival for each row, after checking that each was decided."""
    numbers = [whole("arrivals", arrival) for arrival in one_per_row("arrivals", arrivals, rows)]
    for arrival in numbers:
        if arrival >= decided:
            raise InputError("arrivals", arrival, f"one of the {decided:,} decisions so far, counted from 0")
    return numbers


def one_per_row(field: str, values: ArrayLike, rows: int) -> list[Any]:
    """Return the values as a list, after checking that there is one for each row."""
    entries: Any = values if isinstance(values, list) else np.asarray(values).tolist()
    if not isinstance(entries, list) or len(entries) != rows:
        raise InputError.because(
            f"must have one entry for each of the {rows} rows, not the shape {np.shape(values)}",
            field,
            value=np.shape(values),
            code="length_mismatch",
        )
    return entries


def _remove(lists: dict[bytes, list[int]], key: bytes, arrival: int) -> None:
    """Remove an arrival from the list of its key, and the list if it is then empty."""
    lists[key].remove(arrival)
    if not lists[key]:
        del lists[key]


def _key(row: Row) -> bytes:
    """Return the key of the features of one row."""
    return _keys(row[None])[0]


def _keys(rows: Row) -> list[bytes]:
    """Return a key of the features of each row: adding 0 makes −0.0 equal to 0.0, and all NaN become the same."""
    same = rows + 0.0
    missing = np.isnan(same)
    if missing.any():
        same[missing] = np.nan
    return [blake2b(row, digest_size=16).digest() for row in np.ascontiguousarray(same)]
