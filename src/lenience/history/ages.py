"""Count accepted applicants by segment, outcome and age in whole days, in the engine that holds the data.

Only a small table comes back, from which the timing of outcomes is learnt. A row with an invalid date of its outcome is
a bad row (:data:`~lenience.history.counts.OUTCOME_DATES`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.core.errors import InputError
from lenience.files.date_formats import Order
from lenience.files.economics import GAIN
from lenience.history.counts import DATE_CODE, DAY, Clock, after, valid_outcome_date
from lenience.history.date_columns import date_column
from lenience.history.maturing import OpenLoans
from lenience.history.statuses import BAD, FALSE, TRUE, UNKNOWN, GivenWords, decision_codes, outcome_codes, trimmed
from lenience.models.maturing import TimingCurves

if TYPE_CHECKING:
    import ibis.expr.types as ir

CAME = "__outcome_date__"  # a derived column: when the outcome was known


class CountedAges(NamedTuple):
    """Accepted applicants by segment and age: one entry for each row of the table that the engine returned."""

    segments: list[str]
    ages: list[float]
    successes: list[int]
    failures: list[int]
    still_open: list[int]

    def learn(self) -> TimingCurves:
        """Learn when outcomes arrive."""
        from lenience.models.timing import learn_timing

        if not any(self.successes) and not any(self.failures):
            raise InputError.because(
                "needs at least one accepted applicant with an outcome and its date",
                "maturing",
                code="insufficient_data",
            )
        return learn_timing(self.ages, self.successes, self.failures, self.still_open, self.segments)

    def open_loans(self, half_life: float | None) -> dict[str, OpenLoans]:
        """Return the open loans by segment; with a half-life, older ones count less."""
        by_segment: dict[str, dict[float, float]] = {}
        for segment, age, count in zip(self.segments, self.ages, self.still_open, strict=True):
            if count:
                weight = 1.0 if half_life is None else 0.5 ** (age / half_life)
                ages = by_segment.setdefault(segment, {})
                ages[age] = ages.get(age, 0.0) + weight * count
        return {
            segment: OpenLoans(tuple(sorted(ages)), tuple(ages[age] for age in sorted(ages)))
            for segment, ages in by_segment.items()
        }


def check_maturing(
    maturing: object, time: str | None, outcome_time: str | None, maturity: float | dt.timedelta | None
) -> None:
    """Raise InputError if the dates do not suffice to let the pending count according to their age."""
    if outcome_time is not None and time is None:
        raise InputError.because("needs time, the column of the decision's date", "outcome_time", code="missing")
    if maturing is None:
        return
    if maturing != "learn" and not isinstance(maturing, TimingCurves):
        raise InputError("maturing", maturing, 'None, "learn" or TimingCurves')
    if time is None or (maturing == "learn" and outcome_time is None):
        needed = "time" if time is None else "outcome_time"
        what = "the decision's date" if time is None else "the date when an outcome became known"
        raise InputError.because(f"needs {needed}, the column of {what}", "maturing", code="missing")
    if maturity is not None:
        raise InputError.because(
            "must not both be given: with maturing, the pending count according to their age",
            ("maturing", "maturity"),
            code="conflicting_fields",
        )


def with_outcome_dates(
    backend: Any,
    table: ir.Table,
    outcome: str,
    outcome_time: str,
    words: GivenWords,
    dates: Order | None = None,
    notes: list[str] | None = None,
) -> ir.Table:
    """Return the table with the column :data:`CAME`: when a success or failure became known; missing for the others.

    ``dates`` is the order of day, month and year. Sentences on how the dates were read are added to ``notes``.
    """
    import ibis

    label = outcome_codes(backend, table[outcome], words)
    meaning = label.meaning(label.value)
    moment = date_column(backend, table, outcome_time, dates, notes, "outcome_time")
    known = (meaning == TRUE) | (meaning == FALSE)
    return table.mutate(**{CAME: ibis.ifelse(known, moment, ibis.null(moment.type()))})


def with_date_codes(table: ir.Table, outcome: str, clock: Clock, frozen: bool) -> ir.Table:
    """Return the table with the column :data:`DATE_CODE`, which says what is wrong with the date of an outcome.

    An outcome on the day of its decision is valid, whatever the time of day. If the count is ``frozen`` at a given
    date, later outcomes are missing, as they were then; otherwise they are in the future.
    """
    import ibis

    assert clock.now is not None
    came = table[CAME]
    decided, known = (moment.cast("timestamp").date() for moment in (clock.when, came))
    later = after(came, dt.datetime.combine(clock.now.date(), dt.time.max))
    code = ibis.cases((came.isnull(), 1), (known < decided, 2), (ibis.literal(not frozen) & later, 3), else_=0)
    columns = {DATE_CODE: code}
    if frozen:
        missing = ibis.null(table[outcome].type())
        columns[outcome] = ibis.ifelse(after(came, clock.now).fill_null(False), missing, table[outcome])
    return table.mutate(**columns)


def count_ages(
    backend: Any,
    table: ir.Table,
    segments: Sequence[str],
    accepted: str,
    outcome: str,
    clock: Clock,
    words: GivenWords,
    names: Mapping[tuple[str, ...], str],
    with_economics: bool = False,
) -> CountedAges:
    """Count the accepted applicants of a history by segment, outcome and age.

    The rows are those that :func:`~lenience.history.counts.count_rows` counts as labels or pending. Closed loans need
    the derived column :data:`CAME`; without it all ages are those at the date of the count.
    """
    import ibis

    assert clock.now is not None
    decision = decision_codes(backend, table[accepted], words)
    label = outcome_codes(backend, table[outcome], words)
    columns = [f"g{i}" for i in range(len(segments))]
    dated = CAME in table.columns
    now = ibis.literal(clock.now).cast("timestamp")
    label_is = label.meaning(label.value)
    until = ibis.ifelse(label_is == UNKNOWN, now, table[CAME].cast("timestamp")) if dated else now
    in_time = clock.when.notnull()
    if clock.until is not None:
        in_time = in_time & ~after(clock.when, clock.until)
    in_time = in_time & valid_outcome_date(table, label_is)
    if with_economics:
        in_time = in_time & table[GAIN].notnull()
    rows = table.select(
        **{name: trimmed(table[column]) for name, column in zip(columns, segments, strict=True)},
        decision=decision.meaning(decision.value),
        label=label_is,
        age=_day(until) - _day(clock.when.cast("timestamp")),
        in_time=in_time,
    )
    used = rows.filter(rows.in_time & (rows.decision == TRUE) & (rows.label != BAD) & (rows.age >= 0))
    days = 1 if len(names) <= 200 else 7 if len(names) <= 5_000 else 30  # so that few rows come back
    used = used.mutate(age=(used.age // days) * days)
    counts = used.group_by([*columns, "age"]).agg(
        good=(used.label == TRUE).sum(), bad=(used.label == FALSE).sum(), still_open=(used.label == UNKNOWN).sum()
    )
    result = CountedAges([], [], [], [], [])
    # An engine returns groups in any order, and the random weights of the timing curves follow the order.
    rows_by_age = backend.to_pyarrow(counts).to_pylist()
    for row in sorted(rows_by_age, key=lambda row: ([str(row[column]) for column in columns], row["age"])):
        name = names.get(tuple(str(row[column]) for column in columns))
        if name is not None:  # rows without a segment are bad rows
            for values, value in zip(
                result, (name, float(row["age"]), row["good"], row["bad"], row["still_open"]), strict=True
            ):
                values.append(value or 0)  # type: ignore[attr-defined]
    return result


def _day(moment: Any) -> Any:
    """Return the number of the day of a timestamp."""
    return (moment.epoch_seconds().cast("float64") / DAY).floor().cast("int64")
