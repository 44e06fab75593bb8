"""A file of past decisions that was uploaded, read for what each step of the wizard needs.

Its columns are texts without white space around them (see :mod:`lenience.dashboard.wizard.upload_reader`). What its
rows mean and count is decided by :mod:`lenience.history.past`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lenience.core.errors import InputError
from lenience.dashboard.wizard.bands import Cut, features_of
from lenience.dashboard.wizard.upload_table import LIMITS, connect, identifier, names, table_of
from lenience.files.source import without_engine_warnings
from lenience.files.vocabulary import looks_like_date
from lenience.history import past, past_rows
from lenience.history.beliefs import BAND
from lenience.history.fit import SEPARATOR, History
from lenience.history.past import PastSegments
from lenience.history.past_columns import PastColumns
from lenience.history.past_rows import KnownOutcome
from lenience.service.domain import limits
from lenience.service.domain.feature_cells import Feature, names_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_VALUES = 20  # that an outcome or a decision may have
SAMPLE = 1_000


class Column(msgspec.Struct, frozen=True):
    """A column, with a few of its values."""

    name: str
    examples: tuple[str, ...]
    different: int  # values in the first rows
    numbers: bool  # most of them; a few that are none do not make it something else
    dates: bool  # likewise
    bands: bool = False


class ColumnAnswers(msgspec.Struct, frozen=True):
    """What the columns mean, and how columns of numbers are cut into bands."""

    columns: PastColumns
    cuts: tuple[tuple[str, Cut], ...] = ()


class UploadedPast(PastSegments, frozen=True):
    """The segments of an uploaded file.

    Parameters
    ----------
    years
        In how many years the applicants came; None without dates.
    silent
        How many of those accepted have no outcome in the file.
    features
        The features whose cells are the segments, where columns are cut into bands.
    """

    years: float | None = None
    silent: int = 0
    features: tuple[Feature, ...] = ()


def ready() -> bool:
    """Whether the extra that reads histories is installed; it takes a second to load, and is not loaded for that."""
    return all(find_spec(name) is not None for name in ("duckdb", "ibis", "pyarrow"))


def columns(path: Path) -> list[Column]:
    """The columns with examples from the first rows."""
    with connect() as engine:
        rows = engine.execute(f"SELECT * FROM {table_of(path)} LIMIT {SAMPLE}").fetchall()
    found = []
    for i, name in enumerate(names(path)):
        values = [row[i] for row in rows if row[i] is not None]
        different = list(dict.fromkeys(values))
        found.append(
            Column(
                name,
                tuple(value[:40] for value in different[:4]),
                len(different),
                bool(values) and 10 * sum(_is_number(value) for value in values) >= 9 * len(values),
                2 * sum(looks_like_date(value) for value in values) > len(values),
                any(BAND.fullmatch(value) and not _is_number(value) for value in different),
            )
        )
    return found


def count(path: Path) -> int:
    """How many rows there are."""
    with connect() as engine:
        return int(engine.execute(f"SELECT count(*) FROM {table_of(path)}").fetchone()[0])


def values(path: Path, column: str) -> list[tuple[str, int]]:
    """The different values of a column with their counts, the most frequent first; missing ones are left out."""
    if column not in names(path):
        raise InputError.because(
            f"The file has no column {column!r}", "column", label="", value=column, code="unknown_name"
        )
    with connect() as engine:
        query = f"SELECT {identifier(column)} AS v, count(*) AS k FROM {table_of(path)} WHERE v IS NOT NULL GROUP BY v"
        found = engine.execute(f"{query} ORDER BY k DESC, v LIMIT {MOST_VALUES + 1}").fetchall()
    if len(found) > MOST_VALUES:
        raise InputError.because(
            f"has more than {MOST_VALUES} different values, too many to say what each means",
            column,
            label=f"the column {column!r}",
            code="too_large",
        )
    return [(str(value), int(count)) for value, count in found]


def without(path: Path, column: str) -> int:
    """In how many rows a column is empty."""
    with connect() as engine:
        query = f"SELECT count(*) FROM {table_of(path)} WHERE {identifier(column)} IS NULL"
        return int(engine.execute(query).fetchone()[0])


def follows(path: Path, outcome: str, column: str, yes: str, no: str) -> bool:
    """Whether the outcomes go by a column: most are there where it says yes, hardly any (1 in 100) where it says no."""
    there, by = identifier(outcome), identifier(column)
    query = f"SELECT {by}, count({there}) / count(*) FROM {table_of(path)} WHERE {by} IS NOT NULL GROUP BY {by}"
    with connect() as engine:
        shares = dict(engine.execute(query).fetchall())
    return bool(shares.get(yes, 0.0) > 0.5 and shares.get(no, 1.0) <= 0.01)


@lru_cache(maxsize=16)
def read_past(path: Path, answers: ColumnAnswers) -> UploadedPast:
    """Count the file as the answers say."""
    with _opened(path, answers) as (table, columns, features):
        if features:
            names_of(list(features))  # raises if there are too many cells
        counts = past.read_past(table, columns)
        _check(counts.history, columns)
        return UploadedPast(
            counts.history,
            counts.groups,
            counts.scores,
            past_rows.span_in_years(table, columns),
            past_rows.accepted_without_outcome(table, columns),
            features,
        )


def known_outcomes(path: Path, answers: ColumnAnswers, history: History) -> list[KnownOutcome]:
    """Return the past applicants whose outcome is known (and mature), in order of time."""
    with _opened(path, answers) as (table, columns, _):
        return past_rows.known_outcomes(table, columns, history)


def rejected_since(path: Path, answers: ColumnAnswers, history: History, years: float) -> tuple[dt.date, int]:
    """Return the day so many years after the first known outcome was decided, and how many were rejected since."""
    with _opened(path, answers) as (table, columns, _):
        return past_rows.rejected_since(table, columns, history, years)


def mean_delay(path: Path, answers: ColumnAnswers, history: History, column: str) -> tuple[float, int] | None:
    """Return the mean days from the decision to the date in another column, and of how many outcomes."""
    with _opened(path, answers) as (table, columns, _):
        return past_rows.mean_delay(table, columns, history, column)


@contextmanager
def _opened(path: Path, answers: ColumnAnswers) -> Iterator[tuple[ir.Table, PastColumns, tuple[Feature, ...]]]:
    """Open the file as a table, with what its columns mean and the features they are divided by."""
    import ibis

    columns = answers.columns
    for name in (*columns.segments, columns.outcome, columns.accepted, columns.time, *columns.groups, *columns.scores):
        if name and name not in names(path):
            raise InputError.unknown_name("column", name, names(path), "the columns")
    features = features_of(path, columns.segments, answers.cuts)
    backend = ibis.duckdb.connect(threads=1, **LIMITS)
    try:
        with without_engine_warnings():
            table = backend.read_parquet(path, file_row_number=True)
        yield table, msgspec.structs.replace(columns, cells=features), features
    finally:
        backend.disconnect()


def _check(history: History, columns: PastColumns) -> None:
    """Raise InputError if a policy cannot have these segments."""
    by = " and ".join(repr(name) for name in columns.segments)
    if not history.segments:
        raise InputError.because(
            f"No row can be used: {history.describe()}", "file", label="", code="insufficient_data"
        )
    if len(history.segments) > limits.SEGMENTS:
        raise InputError.because(
            f"has {len(history.segments):,} segments by {by}; a policy may have {limits.SEGMENTS:,}",
            "segment",
            label="the file",
            value=len(history.segments),
            hint=(
                "Choose fewer or coarser columns, and cut a column of numbers into bands by typing 5 beside it "
                f"({_widest(history, columns)!r} has the most values)."
            ),
            code="too_large",
        )
    for row in history.segments:
        if len(row.segment) > 200 or not re.match(limits.PLAIN, row.segment):
            raise InputError.because(
                f"must have a name of at most 200 characters without line breaks, not {row.segment!r}",
                "segment",
                label="a segment",
                value=row.segment,
            )
    if not any(row.labels for row in history.segments):
        old = f" and is {columns.maturity:g} days old" if columns.maturity else ""
        raise InputError.because(
            f"No outcome is known: no accepted row has a value of {columns.outcome!r} with a meaning{old}",
            "outcome",
            label="",
            code="insufficient_data",
        )


def _widest(history: History, columns: PastColumns) -> str:
    """Return the column that divides the applicants most."""
    parts = [row.segment.split(SEPARATOR) for row in history.segments[:SAMPLE]]
    different = [len({part[i] for part in parts if i < len(part)}) for i in range(len(columns.segments))]
    return columns.segments[different.index(max(different))]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
