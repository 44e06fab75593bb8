"""fit_history: past decisions in files, frames, databases, warehouses, counted where they are, become beliefs.

Counting is a GROUP BY, so the engine that holds the data does it (through Ibis: DuckDB embedded, or PostgreSQL,
Spark, BigQuery, Snowflake by connection URL) and one row per segment comes back, whatever the size of the table.

What counts. A row is one past arrival: its segment(s), whether it was accepted, its outcome (missing where it was
rejected or is not known yet), when it was decided. A *label* is the outcome of an accepted arrival. With a maturity
window only those decided at least so long ago have labels: a loan of last month that has not defaulted is pending,
not a success. Nor does a young failure count: if it did, recent months would show failures only. Older labels can be
weighted down by a half-life; n and s are then no whole numbers, which a belief does not mind.

What is promised: every row is counted once, as used or as bad, and the counts are shown. A bad row (no segment, no
such thing as an acceptance or an outcome, an outcome on a rejection, no date where one is needed) is never used and
never passed over in silence; ``strict`` refuses to go on.

How it is fast. Rows are first grouped by the values themselves (segment, accepted, outcome, mature or not), which
costs the engine little more than the segments alone; what the values mean is decided on the few groups that are left,
in the same query. Columns in which anything might stand (text, decimals) are first mapped to a few codes, so the
number of groups stays bounded.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.belief import Belief
from lenience.errors import InputError, real, refusal
from lenience.history_source import is_parquet, open_source, parquet_pattern, quietly
from lenience.objective.base import check_prior

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from lenience.segments.segment import DividedObjective, Segments

YES = ("1", "1.0", "true", "t", "yes", "y", "accept", "accepted", "success", "good", "paid", "repaid")
NO = ("0", "0.0", "false", "f", "no", "n", "reject", "rejected", "failure", "bad", "default", "defaulted", "declined")
NOTHING = ("", "nan", "null", "none", "na", "n/a")
MISSING, FALSE, TRUE, BAD = -1, 0, 1, 2  # what a value may mean
BAD_ROWS = {
    "segment": "no segment",
    "accepted": "neither accepted nor rejected",
    "outcome": "an outcome that is none",
    "rejected": "an outcome on a rejection",
    "time": "no date",
}
DAY = 86_400.0


class SegmentHistory(msgspec.Struct, frozen=True):
    """The past of one segment: who came, who was accepted, what became of them.

    ``pending`` are accepted whose outcome is missing or not mature; ``n`` and ``s`` are the labels and successes,
    weighted by age where asked.
    """

    segment: str
    arrivals: int
    accepted: int
    labels: int
    successes: int
    pending: int
    n: float
    s: float

    @property
    def rate(self) -> float | None:
        """The success rate of the labels, where there are any."""
        return self.successes / self.labels if self.labels else None


class History(msgspec.Struct, frozen=True):
    """Past decisions by segment, and what could not be used.

    ``bad`` says how many rows of each kind were not used; ``later`` how many lie after ``as_of`` and were left out
    for that.
    """

    segments: tuple[SegmentHistory, ...]
    rows: int
    bad: dict[str, int]
    later: int
    as_of: dt.datetime | None

    @property
    def bad_rows(self) -> int:
        """How many rows were not used because they make no sense."""
        return sum(self.bad.values())

    def beliefs(self, prior: Belief | None = None) -> dict[str, Belief]:
        """Each segment's belief: the prior (by default Beta(1, 1)) plus its own labels."""
        base = Belief(2, 1) if prior is None else check_prior(prior)
        return {row.segment: Belief(base.n + row.n, base.s + row.s) for row in self.segments}

    def shares(self) -> dict[str, float]:
        """Each segment's share of the arrivals, the rejected included."""
        total = sum(row.arrivals for row in self.segments)
        return {row.segment: row.arrivals / total for row in self.segments if row.arrivals}

    def divide(self, objective: DividedObjective, prior: Belief | None = None) -> Segments:
        """The segments of the history, with their shares and beliefs, ready to be solved."""
        from lenience.segments.segment import Segments

        shares = self.shares()
        known = self.beliefs(prior)
        return Segments.of(shares, objective, {name: known[name] for name in shares})

    def __getitem__(self, segment: str) -> SegmentHistory:
        for row in self.segments:
            if row.segment == segment:
                return row
        raise refusal("segment", segment, f"one of the {len(self.segments):,} segments of the history")

    def describe(self) -> str:
        """What was read, in words."""
        used = self.rows - self.bad_rows - self.later
        labels = sum(row.labels for row in self.segments)
        pending = sum(row.pending for row in self.segments)
        found = f"{labels:,} labels and {pending:,} pending in {len(self.segments):,} segments"
        lines = [f"{self.rows:,} rows read, {used:,} used: {found}."]
        lines += [
            f"{count:,} row{'' if count == 1 else 's'} not used: {BAD_ROWS[kind]}."
            for kind, count in self.bad.items()
            if count
        ]
        if self.later:
            lines.append(
                f"{self.later:,} row{'' if self.later == 1 else 's'} left out: decided after {self.as_of:%Y-%m-%d}."
            )
        return "\n".join(lines)


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
    success: Sequence[object] | None = None,
    failure: Sequence[object] | None = None,
    strict: bool = False,
) -> History:
    """Count past decisions by segment, in the engine that holds them.

    ``source`` is a path (CSV or Parquet, also a glob), any frame (pandas, polars, pyarrow, a dict of lists), an Ibis
    table, or, with a ``connection`` (a URL such as ``postgres://user@host/base``, or an Ibis backend), the name of a
    table. ``segment`` may be several columns. ``maturity`` and ``half_life`` are in days (or a timedelta) before
    ``as_of``, by default the last date there is; they need ``time``. ``success`` and ``failure`` say which values of
    ``outcome`` mean what, where they are not 1 and 0, true and false, or words for them.

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
    if is_parquet(source) and connection is None and time is None and success is None and failure is None:
        from lenience.history_parquet import clean_counts

        names = [segment] if isinstance(segment, str) else list(segment)
        clean = clean_counts(parquet_pattern(os.fspath(source)), names, accepted, outcome)  # type: ignore[call-overload]
        if clean is not None:
            return _history(clean, names, None, strict)
    with quietly():
        table, backend = open_source(source, connection)
        try:
            return _count(
                table, backend, segment, accepted, outcome, time, as_of, maturity, half_life, success, failure, strict
            )
        finally:
            if isinstance(connection, str):
                backend.disconnect()


def _count(
    table: ir.Table,
    backend: Any,
    segment: str | Sequence[str],
    accepted: str,
    outcome: str,
    time: str | None,
    as_of: dt.datetime | dt.date | str | None,
    maturity: float | dt.timedelta | None,
    half_life: float | dt.timedelta | None,
    success: Sequence[object] | None,
    failure: Sequence[object] | None,
    strict: bool,
) -> History:
    names = [segment] if isinstance(segment, str) else list(segment)
    for name in [*names, accepted, outcome, *([time] if time else [])]:
        if name not in table.columns:
            raise refusal("column", name, f"one of {', '.join(table.columns)}")
    window, decay = _days("maturity", maturity), _days("half_life", half_life)
    if time is None and (window is not None or decay is not None or as_of is not None):
        raise InputError("time must be named where maturity, half_life or as_of is asked for")
    when = _moment(backend, table, time) if time else None
    until = (
        _until(as_of, backend, table, when)
        if time and (window is not None or decay is not None or as_of is not None)
        else None
    )
    counted = _counted(backend, table, names, accepted, outcome, when, until, window, decay, success, failure)
    rows = backend.to_pyarrow(counted).to_pylist()
    return _history(rows, names, until, strict)


def _days(field: str, value: float | dt.timedelta | None) -> float | None:
    if value is None:
        return None
    days = value.total_seconds() / DAY if isinstance(value, dt.timedelta) else value
    return real(field, days, least=0) if field == "maturity" else real(field, days, above=0)


def _moment(backend: Any, table: ir.Table, time: str) -> ir.Value:
    """The time column as a timestamp; what is no date becomes missing."""
    import ibis.expr.operations as ops

    column = table[time]
    kind = column.type()
    if kind.is_timestamp():
        return column if kind.timezone is None else column.cast("timestamp")
    if kind.is_date():
        return column.cast("timestamp")
    if kind.is_string() and backend.has_operation(ops.TryCast):
        # Trimmed first: DuckDB would otherwise have its CSV reader cast, which fails where a cast may not.
        return column.strip().try_cast("timestamp")
    raise InputError(f"time must be a column of dates or timestamps on this engine, and {time!r} is {kind}")


def _until(as_of: dt.datetime | dt.date | str | None, backend: Any, table: ir.Table, when: Any) -> dt.datetime:
    if isinstance(as_of, dt.datetime):
        return as_of
    if isinstance(as_of, dt.date):
        return dt.datetime.combine(as_of, dt.time.max)
    if isinstance(as_of, str):
        try:
            moment = dt.datetime.fromisoformat(as_of)
        except ValueError as error:
            raise refusal("as_of", as_of, "a date such as 2024-12-31") from error
        return moment if len(as_of) > 10 else dt.datetime.combine(moment.date(), dt.time.max)
    last = backend.to_pyarrow(table.select(at=when).agg(last=lambda t: t.at.max()))["last"][0].as_py()
    if last is None:
        raise InputError("time must hold at least one date")
    return last.replace(tzinfo=None) if isinstance(last, dt.datetime) else dt.datetime.combine(last, dt.time.max)


def _code(column: Any, yes: Sequence[object] | None = None, no: Sequence[object] | None = None) -> Any:
    """A column that says yes or no as 1, 0, missing, or anything else for bad: cheaply where its type allows."""
    import ibis

    kind = column.type()
    missing, good, wrong = column.isnull(), None, None
    if yes is not None or no is not None:
        if not yes or not no:
            raise InputError("success and failure must both be given where one is, each with at least one value")
        good, wrong = column.isin(list(yes)), column.isin(list(no))
    elif kind.is_boolean() or (kind.is_integer() and kind.nbytes == 1):
        return column
    elif kind.is_integer():
        return column.clip(-1, 2).cast("int8")
    elif kind.is_floating() or kind.is_decimal():
        missing = missing | column.isnan() if kind.is_floating() else missing
        good, wrong = column == 1, column == 0
    elif kind.is_string():
        word = column.strip().lower()
        missing = missing | word.isin(list(NOTHING))
        good, wrong = word.isin(list(YES)), word.isin(list(NO))
    else:
        raise refusal(f"column {column.get_name()}", str(kind), "one of truth values, numbers or words")
    return ibis.cases((missing, ibis.null("int8")), (good, 1), (wrong, 0), else_=2)


def _meaning(value: Any) -> Any:
    """What a code means: MISSING, FALSE, TRUE or BAD."""
    import ibis

    if value.type().is_boolean():
        return ibis.cases((value.isnull(), MISSING), (value, TRUE), else_=FALSE)
    return ibis.cases((value.isnull(), MISSING), (value == 1, TRUE), (value == 0, FALSE), else_=BAD)


def _counted(
    backend: Any,
    table: Any,
    names: list[str],
    accepted: str,
    outcome: str,
    when: Any,
    until: dt.datetime | None,
    window: float | None,
    decay: float | None,
    success: Sequence[object] | None,
    failure: Sequence[object] | None,
) -> Any:
    """One row per segment, as an expression: first groups of equal values, then what they mean."""
    import ibis

    keys = {f"g{i}": table[name] for i, name in enumerate(names)}
    keys["o"] = _code(table[outcome], success, failure)
    if when is not None:
        # 0 mature, 1 young, 2 later than as_of, 3 no date.
        cutoff = None if until is None or window is None else until - dt.timedelta(days=window)
        cases = [(when.isnull(), 3)]
        if until is not None:
            cases.append((when > ibis.literal(until), 2))
        if cutoff is not None:
            cases.append((when > ibis.literal(cutoff), 1))
        keys["w"] = ibis.cases(*cases, else_=0)
    inner = table.mutate(**keys, a=_truth(_code(table[accepted])))
    sums = {"rows": inner.count(), "known": inner.a.count(), "taken": _count_true(backend, inner.a)}
    if decay is not None and until is not None:
        age = (until.replace(tzinfo=dt.UTC).timestamp() - when.epoch_seconds().cast("float64")) / DAY
        sums["weight"] = (ibis.greatest(age, 0.0) * (-math.log(2.0) / decay)).exp().sum(where=inner.a)
    groups = inner.group_by(list(keys)).agg(**sums)

    # What a group's rows are: by its outcome, its date, and whether they were accepted.
    outcome_is = _meaning(groups.o)
    nameless = ibis.or_(*[groups[f"g{i}"].isnull() for i in range(len(names))])
    dated = ibis.literal(True) if when is None else groups.w < 2
    young = ibis.literal(False) if when is None else groups.w == 1
    plain = ~nameless & (outcome_is != BAD)
    given = plain & (outcome_is != MISSING)
    label = given & dated & ~young
    waiting = plain & dated & ((outcome_is == MISSING) | young)
    refused = groups.known - groups.taken
    weight = groups.weight if decay is not None else groups.taken.cast("float64")
    unused = plain & ~dated
    misplaced = [] if when is None else [groups.w == 3, groups.w == 2]
    kinds = {
        "segment": groups["rows"].sum(where=nameless),
        "accepted": (groups["rows"] - groups.known).sum(where=~nameless),
        "outcome": groups.known.sum(where=~nameless & (outcome_is == BAD)),
        "rejected": refused.sum(where=given),
    }
    for name, where in zip(("time", "later"), misplaced or (ibis.literal(False),) * 2, strict=True):
        # An outcome on a rejection is bad already, whatever its date.
        kinds[name] = (groups.taken + ibis.ifelse(given, 0, refused)).sum(where=unused & where)
    return groups.group_by([f"g{i}" for i in range(len(names))]).agg(
        **kinds,
        turned_down=refused.sum(where=plain & ~given & dated),
        pending=groups.taken.sum(where=waiting),
        success=groups.taken.sum(where=label & (outcome_is == TRUE)),
        failure=groups.taken.sum(where=label & (outcome_is == FALSE)),
        n=weight.sum(where=label),
        s=weight.sum(where=label & (outcome_is == TRUE)),
    )


def _truth(code: Any) -> Any:
    """Accepted or rejected as a truth value; missing where it is neither."""
    import ibis

    if code.type().is_boolean():
        return code
    return ibis.cases((code == 1, True), (code == 0, False), else_=ibis.null("boolean"))


def _count_true(backend: Any, column: Any) -> Any:
    """How many are true, by DuckDB's own quicker function where it is the engine."""
    import ibis

    if backend.name != "duckdb":
        return column.sum().fill_null(0)

    @ibis.udf.agg.builtin  # type: ignore[untyped-decorator]
    def count_if(flag: bool) -> int: ...  # type: ignore[empty-body]

    return count_if(column)


def _history(rows: list[dict[str, Any]], names: list[str], until: dt.datetime | None, strict: bool) -> History:
    bad = dict.fromkeys(BAD_ROWS, 0)
    later = total = 0
    found = []
    for row in rows:
        count = {
            key: int(row.get(key) or 0) for key in (*BAD_ROWS, "later", "turned_down", "pending", "success", "failure")
        }
        total += sum(count.values())
        later += count["later"]
        for kind in BAD_ROWS:
            bad[kind] += count[kind]
        labels = count["success"] + count["failure"]
        taken = labels + count["pending"]
        if any(row[f"g{i}"] is None for i in range(len(names))) or not taken + count["turned_down"]:
            continue
        name = " / ".join(str(row[f"g{i}"]) for i in range(len(names)))
        n, s = float(row["n"] or 0.0), float(row["s"] or 0.0)
        found.append(
            SegmentHistory(
                name, taken + count["turned_down"], taken, labels, count["success"], count["pending"], n, min(s, n)
            )
        )
    found.sort(key=lambda one: one.segment)
    history = History(tuple(found), total, bad, later, until)
    if strict and history.bad_rows:
        raise InputError(f"history must have no bad rows where strict is asked for:\n{history.describe()}")
    return history
