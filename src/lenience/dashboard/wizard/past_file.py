"""An uploaded file of past decisions, read for each step of the wizard.

Its columns are texts without surrounding white space (see :mod:`lenience.dashboard.wizard.upload_reader`).
:mod:`lenience.history.past` defines what its rows mean and how they count.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.dashboard.wizard.upload_reader import uploaded_file
from lenience.dashboard.wizard.upload_table import LIMITS, connect, identifier, names, table_of
from lenience.files.date_formats import looks_like_date
from lenience.files.economics import GAIN, LOSS, with_economics
from lenience.files.source import without_engine_warnings
from lenience.files.vocabulary import read_number
from lenience.history import past, past_rows
from lenience.history.bands import cut_columns
from lenience.history.beliefs import BAND
from lenience.history.history import History
from lenience.history.past import PastSegments
from lenience.history.past_columns import PastColumns
from lenience.history.past_rows import KnownOutcome
from lenience.history.segment_history import SEPARATOR
from lenience.service.domain import limits

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_VALUES = 20  # different values of a column of outcomes or decisions
SAMPLE = 1_000
EXAMPLE = 200  # characters of a value that are looked at to describe its column


class Column(msgspec.Struct, frozen=True):
    """A column, with a few of its values."""

    name: str
    examples: tuple[str, ...]
    different: int  # values in the first rows
    numbers: bool  # whether most values are numbers
    dates: bool  # whether most values are dates
    bands: bool = False
    values: tuple[str, ...] = ()  # all different ones, if they are few
    filled: float = 1.0  # share of the first rows that have a value


class UploadedPast(PastSegments, frozen=True):
    """The segments of an uploaded file.

    Parameters
    ----------
    years
        Number of years in which the applicants arrived, None without dates.
    silent
        Number of accepted applicants without an outcome in the file.
    """

    years: float | None = None
    silent: int = 0


def ready() -> bool:
    """Return whether the packages that read histories are installed, without the second it takes to import them."""
    return all(find_spec(name) is not None for name in ("duckdb", "ibis", "pyarrow"))


def columns(path: Path) -> list[Column]:
    """Return the columns with examples from the first rows."""
    with connect() as engine:
        start = f"left(COLUMNS(*), {EXAMPLE})"  # a thousand long values of hundreds of columns would fill the memory
        rows = engine.execute(f"SELECT {start} FROM {table_of(path)} LIMIT {SAMPLE}").fetchall()
    described = []
    for i, name in enumerate(names(path)):
        values = [row[i] for row in rows if row[i] is not None]
        different = list(dict.fromkeys(values))
        described.append(
            Column(
                name,
                tuple(value[:40] for value in different[:4]),
                len(different),
                bool(values) and 10 * sum(_is_number(value) for value in values) >= 9 * len(values),
                2 * sum(looks_like_date(value) for value in values) > len(values),
                any(BAND.fullmatch(value) and not _is_number(value) for value in different),
                tuple(different) if len(different) <= MOST_VALUES else (),
                len(values) / max(len(rows), 1),
            )
        )
    return described


def count(path: Path) -> int:
    """Return the number of rows."""
    with connect() as engine:
        return int(engine.execute(f"SELECT count(*) FROM {table_of(path)}").fetchone()[0])


def values(path: Path, column: str) -> list[tuple[str, int]]:
    """Return the different values of a column with their counts, most frequent first, without missing ones."""
    if column not in names(path):
        raise InputError.because(
            f"The file has no column {column!r}", "column", label="", value=column, code="unknown_name"
        )
    with connect() as engine:
        query = f"SELECT {identifier(column)} AS v, count(*) AS k FROM {table_of(path)} WHERE v IS NOT NULL GROUP BY v"
        rows = engine.execute(f"{query} ORDER BY k DESC, v LIMIT {MOST_VALUES + 1}").fetchall()
    if len(rows) > MOST_VALUES:
        raise InputError.because(
            f"has more than {MOST_VALUES} different values, too many to map one by one",
            column,
            label=f"the column {column!r}",
            code="too_large",
        )
    return [(str(value), int(count)) for value, count in rows]


def without(path: Path, column: str) -> int:
    """Return the number of rows in which a column is empty."""
    with connect() as engine:
        query = f"SELECT count(*) FROM {table_of(path)} WHERE {identifier(column)} IS NULL"
        return int(engine.execute(query).fetchone()[0])


def follows(path: Path, outcome: str, column: str, yes: str, no: str) -> bool:
    """Return whether outcomes are mostly present where a column says yes, and rare (1 in 100) where it says no."""
    there, by = identifier(outcome), identifier(column)
    query = f"SELECT {by}, count({there}) / count(*) FROM {table_of(path)} WHERE {by} IS NOT NULL GROUP BY {by}"
    with connect() as engine:
        shares = dict(engine.execute(query).fetchall())
    return bool(shares.get(yes, 0.0) > 0.5 and shares.get(no, 1.0) <= 0.01)


@lru_cache(maxsize=16)
def read_past(path: Path, meaning: PastColumns) -> UploadedPast:
    """Count the rows of the file as the answers define."""
    with _opened(path, meaning) as (table, columns):
        counts = past.read_past(table, columns)
        _check(counts.history, columns)
        file, digest = uploaded_file(path)
        origin = counts.history.origin and msgspec.structs.replace(counts.history.origin, file=file, digest=digest)
        return UploadedPast(
            msgspec.structs.replace(counts.history, origin=origin),
            counts.groups,
            counts.scores,
            past_rows.span_in_years(table, columns),
            past_rows.accepted_without_outcome(table, columns),
        )


def known_outcomes(path: Path, meaning: PastColumns, history: History) -> list[KnownOutcome]:
    """Return the past applicants whose outcome is known (and mature), in order of time."""
    with _opened(path, meaning) as (table, columns):
        return past_rows.known_outcomes(table, columns, history)


def offers_of_rows(path: Path, meaning: PastColumns, places: Collection[int]) -> dict[int, Offer]:
    """Return the offers of rows by their position in the file, those with valid numbers. Empty without economics."""
    economics = meaning.economics
    if economics is None:
        return {}
    wanted = set(places)
    with _opened(path, meaning) as (table, _), without_engine_warnings():
        backend = table.get_backend()
        priced = with_economics(backend, table, economics, [])
        rows = backend.to_pyarrow(priced.select(past_rows.ROW_NUMBER, GAIN, LOSS).filter(priced[GAIN].notnull()))
    lists = (rows.column(name).to_pylist() for name in (past_rows.ROW_NUMBER, GAIN, LOSS))
    return {
        place: Offer.from_gain_and_loss(gain, loss) for place, gain, loss in zip(*lists, strict=True) if place in wanted
    }


def rejected_since(path: Path, meaning: PastColumns, history: History, years: float) -> tuple[dt.date, int]:
    """Return the day ``years`` after the first known decision, and the number of rejections since."""
    with _opened(path, meaning) as (table, columns):
        return past_rows.rejected_since(table, columns, history, years)


def mean_delay(path: Path, meaning: PastColumns, history: History, column: str) -> tuple[float, int] | None:
    """Return the mean days from the decision to the date in another column, and the number of outcomes."""
    with _opened(path, meaning) as (table, columns):
        return past_rows.mean_delay(table, columns, history, column)


@contextmanager
def _opened(path: Path, meaning: PastColumns) -> Iterator[tuple[ir.Table, PastColumns]]:
    """Open the file as a table, with the meaning of its columns and how they divide it."""
    import ibis

    single = (meaning.outcome, meaning.accepted, meaning.time, meaning.outcome_time)
    for name in (*meaning.segments, *single, *meaning.groups, *meaning.scores):
        if name and name not in names(path):
            raise InputError.unknown_name("column", name, names(path), "the columns")
    backend = ibis.duckdb.connect(threads=1, **LIMITS)
    try:
        with without_engine_warnings():
            table = backend.read_parquet(path, file_row_number=True)
        cells = cut_columns(table, meaning.segments, dict(meaning.bands))
        yield table, msgspec.structs.replace(meaning, cells=cells)
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
            f"has {len(history.segments):,} segments by {by}; a policy has at most {limits.SEGMENTS:,}",
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
            f"No outcome is known: no accepted row has a success or failure in {columns.outcome!r}{old}",
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
    return read_number(text) is not None
