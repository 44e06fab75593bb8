"""Count past decisions in one query that judges groups of rows instead of single rows.

The kind of a row (a label, pending, turned down, or one kind of bad row) depends on its segment, its date and two small
codes: whether it was accepted, and which known word its outcome is. So the engine first groups the rows by segment and
codes, and counts how many rows of a group are young, late or without a date. That costs about as much as a GROUP BY of
the segment alone. The query then decides the kind of each group, and adds the groups up to one row per segment.

Boolean columns are their own codes. For other columns, a code is the position of the value in a short list of known
values. DuckDB computes it with a function of one column, once for each distinct value of a Parquet dictionary instead
of once for each row. Other engines get a chain of comparisons, which in DuckDB would make the whole query take half as
long again. Any column has at most a few dozen codes, so there are few groups and memory stays bounded.

White space around texts is ignored: ' south' is 'south', and a segment of blanks is missing. Segments are trimmed after
grouping, not row by row; groups that then have the same name are added up with all the others.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.files.economics import GAIN, LOSS, NUMBERS, Economics
from lenience.files.outcome_words import MOST_NAMED
from lenience.files.vocabulary import MISSING
from lenience.history.statuses import (
    BAD,
    FALSE,
    TRUE,
    UNKNOWN,
    GivenWords,
    decision_codes,
    outcome_codes,
    trimmed,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

BAD_ROWS = {
    "segment": "no segment",
    "accepted": "neither accepted nor rejected",
    "outcome": "an outcome that is neither success nor failure",
    "rejected": "an outcome on a rejection",
    "time": "no date",
    "future": "a date in the future",
}
NO_ECONOMICS = {"economics": "no valid gain and loss"}  # the kind of bad row that is added if economics are given
OUTCOME_DATES = {  # the kinds of bad rows that are added if outcomes have dates
    "outcome_time": "an outcome without a date",
    "outcome_early": "an outcome before its decision",
    "outcome_future": "an outcome in the future",
}
DATES = ("time", "future")  # the kinds of bad rows that depend on the date
LABELS = ("success", "failure")
DATE_CODE = "__date_code__"  # a derived column: 0, or the position in OUTCOME_DATES of what is wrong, from 1 on
KINDS = (*BAD_ROWS, *OUTCOME_DATES, *NO_ECONOMICS, "later", "turned_down", "pending", *LABELS)  # all kinds of rows
DAY = 86_400.0


class Clock(NamedTuple):
    """When rows were decided, and the dates that decide what counts.

    Parameters
    ----------
    when
        The column of the decision's date.
    now
        The date of the count.
    until
        Rows after this moment are left out.
    cutoff
        Rows after this moment are too young to have labels.
    half_life
        Days before ``now`` after which a label counts half.
    future
        Whether ``until`` is the end of today, so that later rows are bad rather than left out.
    expired_until
        A pending row up to this moment has expired; a later one may still receive its outcome.
    recent_after
        Rows after this moment are those of the last twelve months.
    """

    when: Any
    now: dt.datetime | None = None
    until: dt.datetime | None = None
    cutoff: dt.datetime | None = None
    half_life: float | None = None
    future: bool = False
    expired_until: dt.datetime | None = None
    recent_after: dt.datetime | None = None


def count_rows(
    backend: Any,
    table: ir.Table,
    segments: Sequence[str],
    accepted: str,
    outcome: str,
    clock: Clock | None,
    words: GivenWords,
    with_economics: bool = False,
) -> list[dict[str, Any]]:
    """Return one row per segment with its counts.

    A row has the segment's values (``g0``, …), the number of rows of each kind, with a clock the ``first`` and the
    ``last`` date of a decision, and, with a half-life, the weights ``n`` of all labels and ``s`` of the successes. If
    outcomes have dates, the table has the column :data:`DATE_CODE`.
    """
    import ibis

    decision = decision_codes(backend, table[accepted], words)
    label = outcome_codes(backend, table[outcome], words)
    names = [f"g{i}" for i in range(len(segments))]
    keys = {name: table[column] for name, column in zip(names, segments, strict=True)}
    keys |= {"a": decision.value, "o": label.value}
    if with_economics:
        keys["e"] = table[GAIN].notnull()
    date_kinds = tuple(OUTCOME_DATES) if DATE_CODE in table.columns else ()
    if date_kinds:
        keys["d"] = table[DATE_CODE]
    groups = table.group_by(**keys).agg(rows=table.count(), **_by_date(backend, clock))
    groups = groups.mutate(**{name: trimmed(groups[name]) for name in names})

    # The kind of a group's rows, apart from their dates.
    accepted_is, outcome_is = decision.meaning(groups.a), label.meaning(groups.o)
    kind = ibis.cases(
        (ibis.or_(*[groups[name].isnull() for name in names]), "segment"),
        (accepted_is >= UNKNOWN, "accepted"),
        (outcome_is == BAD, "outcome"),
        ((accepted_is == FALSE) & (outcome_is != UNKNOWN), "rejected"),
        *(
            ((accepted_is == TRUE) & (outcome_is != UNKNOWN) & (groups.d == code), bad)
            for code, bad in enumerate(date_kinds, 1)
        ),
        *([(~groups.e, "economics")] if with_economics else []),
        (accepted_is == FALSE, "turned_down"),
        (outcome_is == UNKNOWN, "pending"),
        (outcome_is == TRUE, "success"),
        else_="failure",
    )
    judged = groups.mutate(kind=kind)
    sound, labelled = judged.kind.isin(["turned_down", "pending", *LABELS]), judged.kind.isin(LABELS)
    bad_kinds = [bad for bad in BAD_ROWS if bad not in DATES] + ([*NO_ECONOMICS] if with_economics else [])
    bad_kinds += date_kinds
    sums = {bad: judged["rows"].sum(where=judged.kind == bad) for bad in bad_kinds}
    # Leave out what is not needed: on a few million rows the engine counts as fast as Ibis writes the query.
    dated = in_time = mature = judged["rows"]
    if clock is not None:
        dated = in_time = mature = judged.dated
        sums["time"] = (judged["rows"] - dated).sum(where=sound)
        sums |= {"first": judged["first"].min(where=sound), "last": judged["last"].max(where=sound)}
    if "late" in groups.columns:
        in_time = mature = dated - judged.late
        sums["future" if clock is not None and clock.future else "later"] = judged.late.sum(where=sound)
    pending = in_time.sum(where=judged.kind == "pending")
    if "young" in groups.columns:  # late rows are young too
        mature = dated - judged.young
        pending = ibis.ifelse(labelled, in_time - mature, in_time).sum(where=labelled | (judged.kind == "pending"))
    if "weight" in groups.columns:
        sums |= {"n": judged.weight.sum(where=labelled), "s": judged.weight.sum(where=judged.kind == "success")}
    if "unexpired" in groups.columns:  # late rows are among them
        sums["expired"] = (dated - judged.unexpired).sum(where=judged.kind == "pending")
    if "recent" in groups.columns:  # late rows are among them
        recent = judged.recent - judged.late if "late" in groups.columns else judged.recent
        sums["recent"] = recent.sum(where=sound)
    by_segment = judged.group_by(names).agg(
        **sums,
        turned_down=in_time.sum(where=judged.kind == "turned_down"),
        pending=pending,
        **{label_kind: mature.sum(where=judged.kind == label_kind) for label_kind in LABELS},
    )
    rows: list[dict[str, Any]] = backend.to_pyarrow(by_segment).to_pylist()
    return rows


def used_rows(
    backend: Any,
    table: ir.Table,
    segments: Sequence[str],
    accepted: str,
    outcome: str,
    clock: Clock | None,
    words: GivenWords,
) -> ir.Table:
    """Return the rows that :func:`count_rows` counts as arrivals: segment, gain, loss and whether each was accepted.

    ``known`` says whether a row has a label, ``good`` whether that is a success, and ``month`` (with a clock) when it
    was decided.
    """
    import ibis

    decision = decision_codes(backend, table[accepted], words)
    label = outcome_codes(backend, table[outcome], words)
    names = [f"g{i}" for i in range(len(segments))]
    in_time = mature = ibis.literal(True)
    if clock is not None:
        in_time = clock.when.notnull()
        if clock.until is not None:
            in_time = in_time & ~after(clock.when, clock.until)
        if clock.cutoff is not None:
            mature = ~after(clock.when, clock.cutoff)
    rows = table.select(
        **{name: trimmed(table[column]) for name, column in zip(names, segments, strict=True)},
        gain=table[GAIN],
        loss=table[LOSS],
        decision=decision.meaning(decision.value),
        label=label.meaning(label.value),
        mature=mature,
        in_time=in_time & valid_outcome_date(table, label.meaning(label.value)),
        **({} if clock is None else {"month": clock.when.truncate("M")}),
    )
    has_segment = ibis.and_(*[rows[name].notnull() for name in names])
    sound = ((rows.decision == TRUE) & (rows.label != BAD)) | ((rows.decision == FALSE) & (rows.label == UNKNOWN))
    used = rows.filter(rows.gain.notnull() & rows.in_time & has_segment & sound)
    taken = used.decision == TRUE
    known = taken & used.label.isin([TRUE, FALSE]) & used.mature
    month = [] if clock is None else ["month"]
    return used.select(*names, "gain", "loss", *month, accepted=taken, known=known, good=used.label == TRUE)


def valid_outcome_date(table: ir.Table, meaning: Any) -> Any:
    """Return whether the date of a row's outcome is valid; true without an outcome, or if outcomes have no dates."""
    import ibis

    if DATE_CODE not in table.columns:
        return ibis.literal(True)
    return (meaning == UNKNOWN) | (table[DATE_CODE] == 0)


def strange_dates(backend: Any, table: ir.Table, time: str, clock: Clock) -> list[str]:
    """Return the most frequent texts that are neither missing nor dates."""
    import ibis

    if not (table[time].type().is_string() or table[time].type().is_numeric()):
        return []
    texts = table.select(value=table[time].cast("string").strip(), unread=clock.when.isnull())
    # NULL is neither in the list nor outside it, so missing values are dropped here too.
    texts = texts.filter(texts.unread & ~texts["value"].lower().isin(MISSING))
    frequent = texts.group_by("value").agg(rows=texts.count())
    frequent = frequent.order_by(ibis.desc("rows"), "value").limit(MOST_NAMED)
    return [str(row["value"]) for row in backend.to_pyarrow(frequent).to_pylist()]


def strange_economics(backend: Any, priced: ir.Table, economics: Economics) -> list[tuple[str, int]]:
    """Return the most frequent values that are no valid numbers, each with its column and the number of its rows."""
    import ibis

    strange: list[tuple[str, int]] = []
    for field, name in economics.given.items():
        if not isinstance(name, str) or name not in priced.columns or not priced[name].type().is_string():
            continue
        texts = priced.filter(priced[NUMBERS[field]].isnull()).select(value=priced[name].strip())
        frequent = texts.group_by("value").agg(rows=texts.count())
        frequent = frequent.order_by(ibis.desc("rows"), "value").limit(MOST_NAMED)
        for row in backend.to_pyarrow(frequent).to_pylist():
            strange.append((f"{name} {row['value']!r}" if row["value"] else f"{name} missing", int(row["rows"])))
    return sorted(strange, key=lambda pair: -pair[1])[:MOST_NAMED]


def _by_date(backend: Any, clock: Clock | None) -> dict[str, Any]:
    """Count the rows of a group that have a date, are late, or are young, and add up the weights of the others."""
    if clock is None:
        return {}
    in_time = None if clock.until is None else ~after(clock.when, clock.until)
    sums = {
        "dated": clock.when.count(),
        "first": clock.when.min(where=in_time),
        "last": clock.when.max(where=in_time),
    }
    if clock.until is not None:
        sums["late"] = _count_true(backend, after(clock.when, clock.until))
    if clock.cutoff is not None:
        sums["young"] = _count_true(backend, after(clock.when, clock.cutoff))
    if clock.expired_until is not None:
        sums["unexpired"] = _count_true(backend, after(clock.when, clock.expired_until))
    if clock.recent_after is not None:
        sums["recent"] = _count_true(backend, after(clock.when, clock.recent_after))
    if clock.half_life is not None:
        last = clock.cutoff or clock.until
        sums["weight"] = _weight(clock).sum(where=None if last is None else ~after(clock.when, last))
    return sums


def _count_true(backend: Any, column: Any) -> Any:
    """Count true values; DuckDB has a faster function for it."""
    import ibis
    import ibis.expr.datatypes as types

    if backend.name != "duckdb":
        return column.sum().fill_null(0)

    def count_if(flag): ...  # type: ignore[no-untyped-def]

    return ibis.udf.agg.builtin(count_if, signature=((types.boolean,), types.int64))(column)


def after(when: Any, moment: dt.datetime) -> Any:
    """Return whether a row was decided after a moment. A date counts as midnight and is compared without a cast."""
    import ibis

    return when > ibis.literal(moment.date() if when.type().is_date() else moment)


def _weight(clock: Clock) -> Any:
    """Return the weight of a row, 2^(−age/half-life)."""
    import ibis

    assert clock.now is not None
    assert clock.half_life is not None
    age = (
        clock.now.replace(tzinfo=dt.UTC).timestamp() - clock.when.cast("timestamp").epoch_seconds().cast("float64")
    ) / DAY
    return (ibis.greatest(age, 0.0) * (-math.log(2.0) / clock.half_life)).exp()
