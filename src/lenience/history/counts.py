"""How past decisions are counted: one query, in which rows are grouped by their values and only the groups are judged.

A row's kind (a label, pending, turned down, or one of the kinds of bad rows) depends on its segment, its date and two
small codes: accepted or not, and which known word its outcome is. So the engine first groups the rows by segment and
codes, counting how many of a group are young, late or without a date; that costs it about what a GROUP BY of the
segment alone does. What a group's rows are is then decided once a group, and the groups are added up to one row per
segment, in the same query.

Truth values are their own codes. Otherwise a code is the position of the value in a short list of known ones. For
DuckDB that is a function of one column, which it computes once for each distinct value of a Parquet dictionary and not
for each row; a chain of comparisons, which other engines are given, would cost it half as much again as the whole
query. Whatever a column holds, there are at most a few dozen codes, so the groups stay few and memory bounded.

White space around a text is none of it: ' south' is 'south', and a segment of blanks is none. Of segments it is trimmed
from the groups, not from every row, and groups of one name are then added up with all the others.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.files.vocabulary import MISSING
from lenience.history.statuses import (
    BAD,
    FALSE,
    MOST_NAMED,
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
DATES = ("time", "future")  # the kinds that a row's date makes
LABELS = ("success", "failure")
KINDS = (*BAD_ROWS, "later", "turned_down", "pending", *LABELS)  # what a row may be
DAY = 86_400.0


class Clock(NamedTuple):
    """When rows were decided, and what follows: those after ``until`` are left out (as bad ones where it is today's
    end and they lie in the ``future``), those after ``cutoff`` are young, those after ``awaited`` may still have their
    outcome, and ``half_life`` (in days before ``now``) weighs labels by their age."""

    when: Any
    now: dt.datetime | None = None
    until: dt.datetime | None = None
    cutoff: dt.datetime | None = None
    half_life: float | None = None
    future: bool = False
    awaited: dt.datetime | None = None


def count_rows(
    backend: Any,
    table: ir.Table,
    segments: Sequence[str],
    accepted: str,
    outcome: str,
    clock: Clock | None,
    words: GivenWords,
) -> list[dict[str, Any]]:
    """One row per segment: its values (``g0``, …), how many rows of each kind there can be, and, where labels are
    weighed by their age, the weights ``n`` and ``s`` of all and of the successes."""
    import ibis

    taken, label = decision_codes(backend, table[accepted], words), outcome_codes(backend, table[outcome], words)
    names = [f"g{i}" for i in range(len(segments))]
    keys = {name: table[column] for name, column in zip(names, segments, strict=True)}
    keys |= {"a": taken.value, "o": label.value}
    groups = table.group_by(**keys).agg(rows=table.count(), **_by_date(backend, clock))
    groups = groups.mutate(**{name: trimmed(groups[name]) for name in names})

    # What a group's rows are, as long as their date allows.
    accepted_is, outcome_is = taken.meaning(groups.a), label.meaning(groups.o)
    kind = ibis.cases(
        (ibis.or_(*[groups[name].isnull() for name in names]), "segment"),
        (accepted_is >= UNKNOWN, "accepted"),
        (outcome_is == BAD, "outcome"),
        ((accepted_is == FALSE) & (outcome_is != UNKNOWN), "rejected"),
        (accepted_is == FALSE, "turned_down"),
        (outcome_is == UNKNOWN, "pending"),
        (outcome_is == TRUE, "success"),
        else_="failure",
    )
    judged = groups.mutate(kind=kind)
    sound, labelled = judged.kind.isin(["turned_down", "pending", *LABELS]), judged.kind.isin(LABELS)
    sums = {bad: judged["rows"].sum(where=judged.kind == bad) for bad in BAD_ROWS if bad not in DATES}
    # Only what is asked for is computed: on a few million rows the engine needs no longer than a query takes to write.
    dated = here = old = judged["rows"]
    if clock is not None:
        dated = here = old = judged.dated
        sums["time"] = (judged["rows"] - dated).sum(where=sound)
    if "late" in groups.columns:
        here = old = dated - judged.late
        sums["future" if clock is not None and clock.future else "later"] = judged.late.sum(where=sound)
    waiting = here.sum(where=judged.kind == "pending")
    if "young" in groups.columns:  # these hold the late ones
        old = dated - judged.young
        waiting = ibis.ifelse(labelled, here - old, here).sum(where=labelled | (judged.kind == "pending"))
    if "weight" in groups.columns:
        sums |= {"n": judged.weight.sum(where=labelled), "s": judged.weight.sum(where=judged.kind == "success")}
    if "awaited" in groups.columns:  # these hold the late ones too
        sums["expired"] = (dated - judged.awaited).sum(where=judged.kind == "pending")
    by_segment = judged.group_by(names).agg(
        **sums,
        turned_down=here.sum(where=judged.kind == "turned_down"),
        pending=waiting,
        **{one: old.sum(where=judged.kind == one) for one in LABELS},
    )
    rows: list[dict[str, Any]] = backend.to_pyarrow(by_segment).to_pylist()
    return rows


def strange_dates(backend: Any, table: ir.Table, time: str, clock: Clock) -> list[str]:
    """The texts that are there and are no date, the most frequent first."""
    import ibis

    if not table[time].type().is_string():
        return []
    judged = table.select(value=table[time].strip(), lost=clock.when.isnull())
    judged = judged.filter(judged.lost & ~judged["value"].lower().isin(MISSING))  # missing ones are not in it either
    frequent = judged.group_by("value").agg(rows=judged.count())
    frequent = frequent.order_by(ibis.desc("rows"), "value").limit(MOST_NAMED)
    return [str(row["value"]) for row in backend.to_pyarrow(frequent).to_pylist()]


def _by_date(backend: Any, clock: Clock | None) -> dict[str, Any]:
    """How many of a group's rows have a date, are late, are young; and the weight of the old ones."""
    if clock is None:
        return {}
    sums = {"dated": clock.when.count()}
    if clock.until is not None:
        sums["late"] = _count_true(backend, after(clock.when, clock.until))
    if clock.cutoff is not None:
        sums["young"] = _count_true(backend, after(clock.when, clock.cutoff))
    if clock.awaited is not None:
        sums["awaited"] = _count_true(backend, after(clock.when, clock.awaited))
    if clock.half_life is not None:
        last = clock.cutoff or clock.until
        sums["weight"] = _weight(clock).sum(where=None if last is None else ~after(clock.when, last))
    return sums


def _count_true(backend: Any, column: Any) -> Any:
    """How many are true, by DuckDB's own quicker function where it is the engine."""
    import ibis
    import ibis.expr.datatypes as types

    if backend.name != "duckdb":
        return column.sum().fill_null(0)

    def count_if(flag): ...  # type: ignore[no-untyped-def]

    return ibis.udf.agg.builtin(count_if, signature=((types.boolean,), types.int64))(column)


def after(when: Any, moment: dt.datetime) -> Any:
    """Whether a row was decided after a moment; a date is its midnight, and is compared without a cast."""
    import ibis

    return when > ibis.literal(moment.date() if when.type().is_date() else moment)


def _weight(clock: Clock) -> Any:
    """2^(−age/half-life) of a row."""
    import ibis

    assert clock.now is not None
    assert clock.half_life is not None
    age = (
        clock.now.replace(tzinfo=dt.UTC).timestamp() - clock.when.cast("timestamp").epoch_seconds().cast("float64")
    ) / DAY
    return (ibis.greatest(age, 0.0) * (-math.log(2.0) / clock.half_life)).exp()
