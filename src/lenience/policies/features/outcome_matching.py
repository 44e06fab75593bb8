"""Awaited: which decision an outcome belongs to, and who has not been heard of.

An outcome comes with the *arrival* it belongs to (each decision's number, from 0 on), or with its features alone.

By arrival nothing is counted twice: an outcome that was taken before is left out if it is the same (a job that was
retried), and refused if it is another; so is one of an arrival that was rejected, that was never decided, or that had
other features.

By features an outcome belongs to the longest pending acceptance with just these features, to one that has expired
if there is none, and otherwise to nobody: it is a label from elsewhere, which is how a history is taken in. Where these
features are those of an outcome taken before, or of someone who was rejected, that is more likely a mistake, and there
is an :class:`UnawaitedOutcomeWarning`: it may still be right, for different people can have the same features.
"""

from __future__ import annotations

import warnings
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.validation import whole

Row = NDArray[np.float64]


class UnawaitedOutcomeWarning(UserWarning):
    """Outcomes without arrivals that look like ones taken before, or like those of rejected individuals."""


class Awaited:
    """The accepted of whom no outcome has come, and the outcomes that have, by arrival."""

    def __init__(self) -> None:
        self.pending: dict[int, tuple[float, Row]] = {}  # when they came, and their features
        self.outcomes: dict[int, float] = {}
        self._expired: dict[int, Row] = {}
        self._unheard: dict[bytes, list[int]] = {}  # by features, the pending and then those expired, oldest first
        self._late: dict[bytes, list[int]] = {}
        self._repeats: dict[bytes, bool] = {}  # features whose outcome was taken (true), or that were rejected (false)

    def decided(self, arrival: int, row: Row, accepted: bool, now: float) -> None:
        """A decision was made."""
        if accepted:
            self.pending[arrival] = now, row.copy()  # whoever gave it may use its place for others
            self._unheard.setdefault(_key(row), []).append(arrival)
        else:
            self._repeats.setdefault(_key(row), False)

    def expire(self, now: float, after: float) -> None:
        """Let those expire who came longer ago than this: they are no longer pending."""
        for arrival in [arrival for arrival, (came, _) in self.pending.items() if now - came > after]:
            _, row = self.pending.pop(arrival)
            key = _key(row)
            _remove(self._unheard, key, arrival)
            self._expired[arrival] = row
            self._late.setdefault(key, []).append(arrival)

    def by_features(self, rows: Row, outcomes: list[float]) -> None:
        """Outcomes have come, of whoever has these features."""
        again = rejected = 0
        for row, outcome in zip(rows, outcomes, strict=True):
            key = _key(row)
            found = self._unheard.get(key) or self._late.get(key)
            if found:
                self._hear(found[0], key, outcome)
            elif key in self._repeats:
                again += self._repeats[key]
                rejected += not self._repeats[key]
        if again or rejected:
            what = [f"{again} of rows whose outcome was taken before"] * bool(again)
            what += [f"{rejected} of rows that were rejected"] * bool(rejected)
            warnings.warn(
                f"of {counted(len(outcomes), 'outcome')}, {' and '.join(what)} belong to no acceptance that waits for "
                "one; they are learnt all the same. With arrivals=policy.latest_, kept from decide, repeats are left "
                "out and mistakes refused",
                UnawaitedOutcomeWarning,
                stacklevel=3,
            )

    def by_arrival(
        self, arrivals: list[int], rows: Row, which: list[int], outcomes: list[float]
    ) -> tuple[list[int], list[float]]:
        """Outcomes have come, of these arrivals: those that are new. All are checked before any is taken."""
        new: dict[int, tuple[int, float]] = {}
        for i, outcome in zip(which, outcomes, strict=True):
            arrival = arrivals[i]
            before = self.outcomes.get(arrival, new.get(arrival, (i, None))[1])
            if before is not None:
                if before != outcome:
                    raise InputError(f"outcomes must not change: arrival {arrival} had {before:g}, not {outcome:g}")
                continue
            row = self.pending[arrival][1] if arrival in self.pending else self._expired.get(arrival)
            if row is None:
                raise InputError(f"arrivals must be of accepted decisions: {arrival} was rejected")
            if not np.allclose(row, rows[i], rtol=1e-6, atol=1e-9, equal_nan=True):
                raise InputError(f"X must hold the features that arrival {arrival} was decided by, not others")
            new[arrival] = i, outcome
        for arrival, (_, outcome) in new.items():
            row = self.pending[arrival][1] if arrival in self.pending else self._expired[arrival]
            self._hear(arrival, _key(row), outcome)
        return [i for i, _ in new.values()], [outcome for _, outcome in new.values()]

    def _hear(self, arrival: int, key: bytes, outcome: float) -> None:
        if self.pending.pop(arrival, None) is not None:
            _remove(self._unheard, key, arrival)
        else:
            del self._expired[arrival]
            _remove(self._late, key, arrival)
        self.outcomes[arrival] = outcome
        self._repeats[key] = True


def checked_arrivals(arrivals: ArrayLike, rows: int, decided: int) -> list[int]:
    """One arrival for each row, of those that were decided."""
    given = arrivals if isinstance(arrivals, list) else np.asarray(arrivals).tolist()
    if not isinstance(given, list) or len(given) != rows:
        raise InputError(f"arrivals must be one for each of the {rows} rows, not of shape {np.shape(arrivals)}")
    found = [whole("arrivals", arrival) for arrival in given]
    for arrival in found:
        if arrival >= decided:
            raise InputError(f"arrivals must be of the {decided:,} decided so far, from 0 on: {arrival} was not")
    return found


def _remove(lists: dict[bytes, list[int]], key: bytes, arrival: int) -> None:
    lists[key].remove(arrival)
    if not lists[key]:
        del lists[key]


def _key(row: Row) -> bytes:
    """The same for the same features: adding 0 makes −0.0 the same as 0.0, and every NaN is made one."""
    same = row + 0.0
    if np.isnan(same).any():
        same[np.isnan(same)] = np.nan
    return blake2b(same.tobytes(), digest_size=16).digest()
