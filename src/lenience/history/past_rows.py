"""Queries about single rows of past decisions: who has an outcome, when, in which group, with which score.

Rows have the same meaning as in :func:`lenience.fit_history`: the same expressions decide who was accepted, what an
outcome is and how a date is read. The table must be held by DuckDB. Queries fetch all of a result: the connection
cannot be used for another query before that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.errors import InputError
from lenience.files.source import without_engine_warnings
from lenience.history.bands import cell_expression, part_expression
from lenience.history.beliefs import BAND, ordered
from lenience.history.date_columns import date_column
from lenience.history.history import History
from lenience.history.past_columns import CELL, EVERYONE, PastColumns
from lenience.history.segment_history import SEPARATOR
from lenience.history.statuses import BAD, FALSE, TRUE, GivenWords, decision_codes, outcome_codes, trimmed

if TYPE_CHECKING:
    import ibis.expr.types as ir

YEAR = 365.25 * 86_400  # in seconds
ROW_NUMBER = "file_row_number"  # of a Parquet file that was opened with it


class KnownOutcome(msgspec.Struct, frozen=True):
    """A past applicant whose outcome is known.

    Parameters
    ----------
    segment
        The segment.
    success
        The outcome.
    years
        The time of the decision, in years after the first date; None without dates.
    place
        The position in the file.
    """

    segment: str
    success: bool
    years: float | None
    place: int


def known_outcomes(table: ir.Table, columns: PastColumns, history: History) -> list[KnownOutcome]:
    """Return the past applicants whose outcome is known (and mature), in order of time."""
    with _judged(table, columns) as engine:
        rows = engine.execute(
            "SELECT segment, outcome = 1, epoch(decided - min(decided) OVER ()), place FROM past "
            f"WHERE {_is_known(columns, history)} ORDER BY decided, place"
        ).fetchall()
    return [
        KnownOutcome(segment, good, None if seconds is None else seconds / YEAR, place)
        for segment, good, seconds, place in rows
    ]


def rejected_since(table: ir.Table, columns: PastColumns, history: History, years: float) -> tuple[dt.date, int]:
    """Return the day ``years`` after the first decision with a known outcome, and the number of rejections since."""
    with _judged(table, columns) as engine:
        first = engine.execute(f"SELECT min(decided) FROM past WHERE {_is_known(columns, history)}").fetchall()[0][0]
        since: dt.datetime = first + dt.timedelta(seconds=round(years * YEAR))
        where = f"NOT accepted AND outcome IS NULL AND segment IS NOT NULL AND {_happened(columns)} AND decided >= ?"
        return since.date(), int(engine.execute(f"SELECT count(*) FROM past WHERE {where}", [since]).fetchall()[0][0])


def mean_delay(table: ir.Table, columns: PastColumns, history: History, column: str) -> tuple[float, int] | None:
    """Return the mean days from the decision to the date in another column, and the number of outcomes it is based on.

    Return None if that column cannot be the date of the outcome: it is missing for many rows, before the decision, in
    the future, or ambiguous.
    """
    ahead = "count(*) FILTER (came > decided), count(*) FILTER (came > current_localtimestamp())"
    try:
        with _judged(table, columns, came=column) as engine:
            mean, later, future, known = engine.execute(
                f"SELECT avg(epoch(came - decided)) / 86400, {ahead}, count(*) FROM past "
                f"WHERE {_is_known(columns, history)}"
            ).fetchall()[0]
    except InputError as error:
        if "dates" not in error.fields:
            raise
        return None
    return (float(mean), int(later)) if known and later >= 0.9 * known and not future else None


def span_in_years(table: ir.Table, columns: PastColumns) -> float | None:
    """Return the years over which applicants arrived; None without dates.

    Only the middle 98% of the dates count, because one mistyped date would lengthen the span by decades.
    """
    if columns.time is None:
        return None
    with _judged(table, columns) as engine:
        query = f"SELECT quantile_cont(epoch(decided), [0.01, 0.99]) FROM past WHERE {_happened(columns)}"
        ends = engine.execute(query).fetchall()[0][0]
    return None if ends is None else (ends[1] - ends[0]) / 0.98 / YEAR


def accepted_without_outcome(table: ir.Table, columns: PastColumns) -> int:
    """Return how many of those accepted have no outcome in the file."""
    with _judged(table, columns) as engine:
        where = "accepted AND outcome IS NULL AND segment IS NOT NULL"
        return int(engine.execute(f"SELECT count(*) FROM past WHERE {where}").fetchall()[0][0])


def groups_of_rows(table: ir.Table, columns: PastColumns) -> dict[str, str]:
    """Return the group of each segment by the rows; raise if a segment has members of several groups."""
    [group] = columns.groups
    query = (
        "SELECT segment, min(grouped), count(DISTINCT grouped) FROM past WHERE segment IS NOT NULL "
        "GROUP BY segment ORDER BY segment"
    )
    with _judged(table, columns, grouped=group) as engine:
        rows = engine.execute(query).fetchall()
    for segment, _, count in rows:
        if count > 1:
            raise InputError.because(
                f"has members of {count} groups of {group!r}",
                "group",
                label=f"the segment {segment!r}",
                value=group,
                hint=f"Choose {group!r} as a segment too, or another group.",
            )
    return {segment: name for segment, name, _ in rows if name is not None}


def mean_scores(table: ir.Table, columns: PastColumns) -> dict[str, float]:
    """Return the mean score of each segment that has one; bands such as 300-499 count by their rank."""
    [column] = columns.scores
    scored = "FROM past WHERE segment IS NOT NULL AND score IS NOT NULL"
    number = "TRY_CAST(score AS DOUBLE)"
    with _judged(table, columns, score=column) as engine:
        texts = [text for (text,) in engine.execute(f"SELECT DISTINCT score {scored}").fetchall()]
        if any(BAND.fullmatch(text) and not _is_number(text) for text in texts):
            bands = [text for text in texts if BAND.fullmatch(text)]
            engine.execute(
                "CREATE OR REPLACE TEMP TABLE ranks AS SELECT unnest(?) AS band, unnest(?) AS rank",
                [bands, ordered(column, bands)],
            )
            query = "SELECT segment, avg(rank) FROM past JOIN ranks ON score = band WHERE segment IS NOT NULL"
        else:
            query = f"SELECT segment, avg({number}) {scored} AND isfinite({number})"
        return {segment: float(score) for segment, score in engine.execute(f"{query} GROUP BY segment").fetchall()}


def prepared_table(table: ir.Table, columns: PastColumns) -> ir.Table:
    """Return a table with the derived columns: the cell of each row, and that everyone was accepted."""
    import ibis

    check_columns(table, columns)
    derived: dict[str, Any] = {}
    if columns.cells:
        derived[CELL] = cell_expression(table, columns.cells)
    if columns.accepted is None:
        derived[EVERYONE] = ibis.literal(True)
    return table.mutate(**derived) if derived else table


def check_columns(table: ir.Table, columns: PastColumns) -> None:
    """Raise InputError if a column does not exist."""
    names = [*columns.segments, columns.outcome, columns.accepted, columns.time, columns.outcome_time]
    names += [*columns.groups, *columns.scores]
    for name in names:
        if name and name not in table.columns:
            raise InputError.unknown_name("column", name, table.columns, "the columns")


@contextmanager
def _judged(table: ir.Table, columns: PastColumns, **others: str) -> Iterator[Any]:
    """Yield the DuckDB connection of a table, with a view ``past`` that holds the meaning of each row.

    ``others`` name further columns of the view: ``came`` is read as a date, the rest as text.
    """
    import ibis

    with without_engine_warnings():
        backend = table.get_backend()
        ready = prepared_table(table, columns)
        words = GivenWords(columns.success, columns.failure, columns.pending, columns.accepted_values,
                      columns.rejected_values, columns.only_given)  # fmt: skip
        decision = decision_codes(backend, ready[columns.accepted or EVERYONE], words)
        label = outcome_codes(backend, ready[columns.outcome], words)
        accepted, outcome = decision.meaning(decision.value), label.meaning(label.value)
        segment = ready[CELL] if columns.cells else _joined(ready, columns.segments)
        place = ready[ROW_NUMBER] if ROW_NUMBER in ready.columns else ibis.row_number()
        further = {}
        for name, column in others.items():
            if name == "came":
                further[name] = date_column(backend, ready, column, columns.dates).cast("timestamp")
            else:
                cut = next((cell for cell in columns.cells if cell.name == column and name == "grouped"), None)
                text = trimmed(ready[column].cast("string"))
                further[name] = text if cut is None else part_expression(ready, cut)
        decided = ibis.null("timestamp")
        if columns.time is not None:
            decided = date_column(backend, ready, columns.time, columns.dates).cast("timestamp")
        known_at = ibis.null("timestamp")
        if columns.outcome_time is not None:
            known_at = date_column(backend, ready, columns.outcome_time, columns.dates).cast("timestamp")
        view = ready.select(
            segment=segment,
            accepted=ibis.cases((accepted == TRUE, True), (accepted == FALSE, False)),
            outcome=ibis.cases((outcome == TRUE, 1), (outcome == FALSE, 0), (outcome == BAD, 2)),
            decided=decided,
            known_at=known_at,
            place=place,
            **further,
        )
        backend.con.execute(f"CREATE OR REPLACE TEMP VIEW past AS {ibis.to_sql(view, dialect='duckdb')}")
        yield backend.con


def _joined(table: ir.Table, segments: Sequence[str]) -> Any:
    import ibis

    name: Any = None
    for column in segments:
        part = trimmed(table[column].cast("string"))
        name = part if name is None else name + ibis.literal(SEPARATOR) + part
    return name


def _is_known(columns: PastColumns, history: History) -> str:
    """Return the condition that a row has an outcome that counts: known, and old enough."""
    where = "accepted AND outcome IN (0, 1) AND segment IS NOT NULL"
    if columns.time is not None:
        where += f" AND {_happened(columns)}"
        if columns.outcome_time is not None and history.as_of is not None:
            where += f" AND known_at <= TIMESTAMP '{history.as_of:%Y-%m-%d %H:%M:%S.%f}'"
        if columns.maturity and history.as_of is not None:
            cutoff = history.as_of - dt.timedelta(days=columns.maturity)
            where += f" AND decided <= TIMESTAMP '{cutoff:%Y-%m-%d %H:%M:%S.%f}'"
    return where


def _happened(columns: PastColumns) -> str:
    """Return the condition that a row's date is neither in the future nor after the date of the count."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    if columns.as_of:
        now = min(now, dt.datetime.combine(dt.date.fromisoformat(columns.as_of), dt.time.max))
    return f"decided <= TIMESTAMP '{now:%Y-%m-%d %H:%M:%S.%f}'"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
