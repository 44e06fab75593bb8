"""fit_history: past decisions in files, frames, databases, warehouses, counted where they are, become beliefs.

Counting is a GROUP BY, so the engine that holds the data does it (through Ibis: DuckDB embedded, or PostgreSQL,
Spark, BigQuery, Snowflake by connection URL) and one row per segment comes back, whatever the size of the table.

What counts. A row is one past arrival: its segment(s), whether it was accepted, its outcome (missing where it was
rejected or is not known yet), when it was decided. A *label* is the outcome of an accepted arrival. With a maturity
window only those decided at least so long ago have labels: a loan of last month that has not defaulted is pending,
not a success. Nor does a young failure count: if it did, recent months would show failures only. Older labels can be
weighted down by a half-life; n and s are then no whole numbers, which a belief does not mind.

What is promised: every row is counted once, as used or as bad, and the counts are shown. A bad row (no segment, no
such thing as an acceptance or an outcome, an outcome on a rejection, no date where one is needed, a date in the
future) is never used and never passed over in silence; ``strict`` refuses to go on. A date in the future is bad, and
not the day of the count: one 2062 for 2026 would make every label of the file old enough.

How it is counted, and quickly: :mod:`lenience.history.counts`.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.formatting import counted, percent, plural
from lenience.core.validation import listed
from lenience.files.source import open_source, reading, repetitions, without_engine_warnings
from lenience.history.counts import BAD_ROWS, KINDS, count_rows, strange_dates
from lenience.history.dates import SUCH, check_span, in_days, make_clock
from lenience.history.statuses import GivenWords, check_words, strange_values
from lenience.segments.similar_names import SimilarNamesWarning, describe_similar_names

if TYPE_CHECKING:
    from lenience.core.objective import Objective
    from lenience.segments.segments import Segments

SEPARATOR = " / "  # between the values of several segment columns


class SegmentHistory(msgspec.Struct, frozen=True):
    """The past of one segment: who came, who was accepted, what became of them.

    ``pending`` are accepted whose outcome is missing or not mature, ``given_up`` those of them whose outcome is missing
    for longer than one waits; ``n`` and ``s`` are the labels and successes, weighted by age where asked; ``values``
    what its columns hold.
    """

    segment: str
    arrivals: int
    accepted: int
    labels: int
    successes: int
    pending: int
    n: float
    s: float
    values: tuple[str, ...] = ()
    given_up: int = 0

    @property
    def out(self) -> int:
        """How many labels are still to come."""
        return self.pending - self.given_up

    @property
    def rate(self) -> float | None:
        """The success rate of the labels, where there are any."""
        return self.successes / self.labels if self.labels else None


NAMED_UP_TO = 5_000_000  # rows of a source whose values that are no outcome are named
MANY = 0.02  # of the rows: without so many the shares are not what they were

MEANINGS = {"accepted": "accepted or rejected", "outcome": "success, failure or not known yet"}


class History(msgspec.Struct, frozen=True):
    """Past decisions by segment, and what could not be used.

    ``bad`` says how many rows of each kind were not used; ``later`` how many lie after ``as_of`` and were left out
    for that. ``columns`` are those that make a segment, ``maturity`` the days that a label needs. ``strange`` are the
    most frequent values that are no outcome, each with how often it is there, ``strange_decisions`` those that do not
    say who was accepted, ``strange_dates`` those that are no date. ``repeated`` rows are exact repetitions of others
    (where rows differ otherwise); ``notes`` say how a file was read.
    """

    segments: tuple[SegmentHistory, ...]
    rows: int
    bad: dict[str, int]
    later: int
    as_of: dt.datetime | None
    columns: tuple[str, ...] = ()
    maturity: float | None = None
    strange: tuple[tuple[str, int], ...] = ()
    strange_dates: tuple[str, ...] = ()
    strange_decisions: tuple[tuple[str, int], ...] = ()
    repeated: int = 0
    notes: tuple[str, ...] = ()

    @property
    def bad_rows(self) -> int:
        """How many rows were not used because they make no sense."""
        return sum(self.bad.values())

    @property
    def unread(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """The words nobody explained that cost so many rows that shares are biased: of the column of the decisions
        (``accepted``), of that of the outcomes (``outcome``)."""
        words = {"accepted": self.strange_decisions, "outcome": self.strange}
        return {kind: values for kind, values in words.items() if self.bad[kind] > MANY * self.rows}

    def beliefs(self, prior: Belief | None = None) -> dict[str, Belief]:
        """Each segment's belief: the prior (by default Beta(1, 1)) plus its own labels."""
        base = Belief(2, 1) if prior is None else check_prior(prior)
        return {row.segment: Belief(base.n + row.n, base.s + row.s) for row in self.segments}

    def shares(self) -> dict[str, float]:
        """Each segment's share of the arrivals, the rejected included."""
        total = sum(row.arrivals for row in self.segments)
        return {row.segment: row.arrivals / total for row in self.segments if row.arrivals}

    def divide(self, objective: Objective, prior: Belief | None = None, group: str | Sequence[str] = ()) -> Segments:
        """The segments of the history, with their shares and beliefs, ready to be solved.

        ``group`` names the segment column, or columns, that say which group a segment belongs to.
        """
        from lenience.segments.segments import Segments

        shares = self.shares()
        known = self.beliefs(prior)
        return Segments.of(shares, objective, {name: known[name] for name in shares}, self.groups(group))

    def groups(self, group: str | Sequence[str]) -> dict[str, str]:
        """The group of each segment, by one or several of the segment columns; '' where none is named.

        >>> past = {"race": ["x", "y"], "band": [1, 2], "in": [1, 1], "good": [1, 0]}
        >>> fit_history(past, ["race", "band"], "in", "good").groups("race")
        {'x / 1': 'x', 'y / 2': 'y'}
        """
        chosen = self.positions("group", [group] if isinstance(group, str) else group)
        return {row.segment: SEPARATOR.join(row.values[i] for i in chosen) for row in self.segments}

    def positions(self, field: str, columns: Sequence[str]) -> list[int]:
        """Where these columns stand among those that make a segment."""
        for name in columns:
            if name not in self.columns:
                raise InputError.unknown_name(field, name, self.columns, "the segment columns")
        return [self.columns.index(name) for name in columns]

    def __getitem__(self, segment: str) -> SegmentHistory:
        for row in self.segments:
            if row.segment == segment:
                return row
        raise InputError(
            "segment", segment, f"one of the {len(self.segments):,} segments of the history", code="unknown_name"
        )

    def describe(self) -> str:
        """What was read, in words."""
        used = self.rows - self.bad_rows - self.later
        labels = sum(row.labels for row in self.segments)
        pending = sum(row.pending for row in self.segments)
        counts = f"{counted(labels, 'label')} and {pending:,} pending in {counted(len(self.segments), 'segment')}"
        lines = [f"{self.rows:,} rows read, {used:,} used: {counts}."]
        if self.as_of is not None:
            young = f"; younger than {self.maturity:g} days is pending" if self.maturity else ""
            lines.append(f"Counted as of {self.as_of:%Y-%m-%d}{young}.")
        given_up = sum(row.given_up for row in self.segments)
        if given_up:
            lines.append(
                f"{given_up:,} of the pending {plural(given_up, 'is', 'are')} given up: no outcome for too long."
            )
        for kind, count in self.bad.items():
            if count:
                strange = {"outcome": self.strange, "accepted": self.strange_decisions}.get(kind)
                which = f": {_named(strange, count)}" if strange else ""
                if kind == "time" and self.strange_dates:
                    named = ", ".join(repr(value) for value in self.strange_dates)
                    which = f" that can be read (write {SUCH}, not {named})"
                lines.append(f"{counted(count, 'row')} not used: {BAD_ROWS[kind]}{which}.")
        if lost := [MEANINGS[kind] for kind in self.unread]:
            lines.append(
                "With so many rows left out, shares, volumes and the share accepted are biased: say which values mean "
                f"{', and which '.join(lost)}."
            )
        if self.later:
            lines.append(f"{counted(self.later, 'row')} left out: decided after {self.as_of:%Y-%m-%d}.")
        if self.repeated:
            are = "is an exact repetition" if self.repeated == 1 else "are exact repetitions"
            lines.append(f"{counted(self.repeated, 'row')} {are} of others, and counted as often as they are there.")
        lines += self.notes
        same = describe_similar_names(row.segment for row in self.segments)
        if same is not None:
            lines.append(same)
        return "\n".join(lines)

    def selection(self) -> str:
        """A warning where the past chose whom to accept; empty where it accepted everyone.

        >>> past = {"region": ["north", "north"], "in": [1, 0], "good": [1, None]}
        >>> print(fit_history(past, "region", "in", "good").selection())
        The past chose whom to accept: 1 of 2 (50%). Within a segment the outcomes are a fair sample only if those \
accepted differ from those rejected by nothing else that matters.
        """
        came, taken = sum(row.arrivals for row in self.segments), sum(row.accepted for row in self.segments)
        if taken == came:
            return ""
        none = sum(row.labels == 0 for row in self.segments)
        text = (
            f"The past chose whom to accept: {taken:,} of {came:,} ({percent(taken / came, 0)}). Within a segment the "
            "outcomes are a fair sample only if those accepted differ from those rejected by nothing else that matters."
        )
        if none:
            text += (
                f" {none:,} of {len(self.segments):,} segments {'has' if none == 1 else 'have'} no outcome at all: "
                "what to expect there a shared or a curve model says, their own record cannot."
            )
        return text


def fit_history(
    source: object,
    segment: str | Sequence[str],
    accepted: str,
    outcome: str,
    time: str | None = None,
    *,
    connection: object = None,
    as_of: dt.datetime | dt.date | str | None = None,
    maturity: float | dt.timedelta | None = None,
    half_life: float | dt.timedelta | None = None,
    give_up_after: float | dt.timedelta | None = None,
    success: Sequence[object] | None = None,
    failure: Sequence[object] | None = None,
    pending: Sequence[object] | None = None,
    accepted_values: Sequence[object] | None = None,
    rejected_values: Sequence[object] | None = None,
    only_given: bool = False,
    strict: bool = False,
    warn: bool = True,
) -> History:
    """Count past decisions by segment, in the engine that holds them.

    ``source`` is a path (CSV or Parquet, also a glob), any frame (pandas, polars, pyarrow, a dict of lists), an Ibis
    table, or, with a ``connection`` (a URL such as ``postgres://user@host/base``, or an Ibis backend), the name of a
    table. ``segment`` may be several columns. ``maturity`` and ``half_life`` are in days (or a timedelta) before
    ``as_of``, by default the last date that is not in the future; they need ``time``. So does ``give_up_after``: of the
    accepted whose outcome is still missing after so long (and after the maturity) none is awaited, and each segment's
    ``given_up`` counts them. What was decided after an
    ``as_of`` that is given is left out, and told. ``success`` and ``failure`` say which values of ``outcome`` mean
    what, beside 1 and 0, true and false, and words for them; ``pending`` which mean that it is not known yet, and
    ``accepted_values`` and ``rejected_values`` which of ``accepted``; one that does not occur is refused. With
    ``only_given`` no other value has a meaning, and texts are compared as they are written. White space around texts
    does not count. Segments whose names differ only by case, or by space within, are told by ``describe()``, and with
    ``warn`` by an :class:`SimilarNamesWarning`.

    >>> past = {
    ...     "region": ["north", "north", "south", "south", "south"],
    ...     "accepted": [True, True, True, False, False],
    ...     "repaid": [1, 0, None, None, 1],
    ... }
    >>> history = fit_history(past, segment="region", accepted="accepted", outcome="repaid")
    >>> history.beliefs()
    {'north': Belief(n=4.0, s=2.0), 'south': Belief(n=2.0, s=1.0)}
    >>> print(history.describe())
    5 rows read, 4 used: 2 labels and 1 pending in 2 segments.
    1 row not used: an outcome on a rejection.
    """
    columns = [segment] if isinstance(segment, str) else listed("segment", segment, "a column's name or several")
    words = GivenWords(
        success or (), failure or (), pending or (), accepted_values or (), rejected_values or (), only=only_given
    )
    needed, notes = in_days("maturity", maturity), list[str]()
    with without_engine_warnings(), reading(None if connection is not None else source):
        table, backend = open_source(source, connection, notes)
        try:
            _check_columns(table.columns, columns, {"accepted": accepted, "outcome": outcome, "time": time})
            ages = (needed, in_days("half_life", half_life), in_days("give_up_after", give_up_after))
            clock = make_clock(backend, table, time, as_of, *ages)
            check_words(backend, table, accepted, outcome, words)
            rows = count_rows(backend, table, columns, accepted, outcome, clock, words)
            history = _history(rows, columns, None if clock is None else clock.now)
            if needed and clock and not any(row.labels for row in history.segments):
                check_span(backend, table, clock, needed)
            details: dict[str, Any] = {"maturity": needed, "notes": tuple(notes)}
            # Naming them reads the rows once more: worth it where a person looks at them, not in a warehouse.
            if history.rows <= NAMED_UP_TO:
                if history.bad["outcome"] or history.bad["accepted"]:
                    strange = strange_values(backend, table, columns, accepted, outcome, words)
                    details["strange"], details["strange_decisions"] = (tuple(values) for values in strange)
                if time and clock and history.bad["time"]:
                    details["strange_dates"] = tuple(strange_dates(backend, table, time, clock))
            if connection is None:
                details["repeated"] = repetitions(source, table, history.rows)
            history = msgspec.structs.replace(history, **details)
        finally:
            if isinstance(connection, str):
                backend.disconnect()
    if strict and history.bad_rows:
        raise InputError.because(
            f"must have no bad rows with strict:\n{history.describe()}",
            "source",
            label="history",
            value=history.bad_rows,
        )
    same = describe_similar_names(row.segment for row in history.segments) if warn else None
    if same is not None:
        warnings.warn(same, SimilarNamesWarning, stacklevel=2)
    return history


def _check_columns(there: Sequence[str], segment: Sequence[str], single: Mapping[str, str | None]) -> None:
    """Every column is there, and no other has its role: who was accepted says nothing of what became of them."""
    roles: dict[str, str] = {}
    for role, name in [*(("segment", name) for name in segment), *single.items()]:
        if name is None:
            continue
        if name not in there:
            raise InputError.unknown_name(role, name, there, "the columns")
        if roles.get(name) == role:
            raise InputError.because(
                f"must name different columns; {name!r} is there twice", role, value=name, code="duplicate"
            )
        if name in roles and role != "time":  # a segment may be a day that is also the date
            raise InputError.because(
                f"must be different columns; both are {name!r}", (role, roles[name]), value=name, code="duplicate"
            )
        roles[name] = role


def _named(strange: Sequence[tuple[str, int]], count: int) -> str:
    """The values that mean nothing, and how often they are there."""
    named = ", ".join(f"{value!r} ({often:,})" for value, often in strange)
    others = count - sum(often for _, often in strange)
    return f"{named}, others ({others:,})" if others else named


def _history(rows: list[dict[str, Any]], columns: list[str], as_of: dt.datetime | None) -> History:
    bad = dict.fromkeys(BAD_ROWS, 0)
    later = total = 0
    segments = []
    for row in rows:
        count = {kind: int(row.get(kind) or 0) for kind in KINDS}
        total += sum(count.values())
        later += count["later"]
        for kind in BAD_ROWS:
            bad[kind] += count[kind]
        labels = count["success"] + count["failure"]
        taken = labels + count["pending"]
        arrivals = taken + count["turned_down"]
        if not arrivals:
            continue
        values = tuple(str(row[f"g{i}"]) for i in range(len(columns)))
        n, s = float(row.get("n", labels) or 0.0), float(row.get("s", count["success"]) or 0.0)
        segments.append(
            SegmentHistory(
                segment=SEPARATOR.join(values),
                arrivals=arrivals,
                accepted=taken,
                labels=labels,
                successes=count["success"],
                pending=count["pending"],
                n=n,
                s=min(s, n),
                values=values,
                given_up=int(row.get("given_up") or 0),
            )
        )
    segments.sort(key=lambda one: one.segment)
    return History(tuple(segments), total, bad, later, as_of, tuple(columns))
