"""A file of past decisions, uploaded: checked once, kept as a table of texts, and read for what each step needs.

Whatever came (CSV with any separator, Parquet with any types) becomes one Parquet file whose columns are texts, so that
a value a person sees on the page is the value that is compared. Counting is left to :func:`lenience.fit_history`.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from lenience.errors import InputError
from lenience.history import History, fit_history
from lenience.service import limits

MOST_COLUMNS, MOST_ROWS = 300, 3_000_000
MOST_VALUES = 20  # that an outcome or a decision may have
SAMPLE = 1_000
SEPARATORS = (",", ";", "\t", "|")
NOT_TABLES = {b"PK\x03\x04": "an Excel workbook or archive", b"\x1f\x8b": "compressed", b"%PDF": "a PDF"}


class Column(msgspec.Struct, frozen=True):
    """A column, with a few of its values."""

    name: str
    examples: tuple[str, ...]
    different: int  # values in the first rows
    numbers: bool
    dates: bool


class Mapping(msgspec.Struct, frozen=True):
    """What the columns mean. Without an ``accepted`` column everyone in the file was accepted."""

    segments: tuple[str, ...]
    outcome: str
    success: tuple[str, ...]
    failure: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    accepted: str = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    time: str = ""
    group: str = ""
    score: str = ""
    maturity: float = 0.0


class Past(msgspec.Struct, frozen=True):
    """What the file says: the counts, and of each segment its group and mean score where they were asked for."""

    history: History
    groups: dict[str, str]
    scores: dict[str, float]
    years: float | None  # from the first decision to the last


class Known(msgspec.Struct, frozen=True):
    """One past applicant whose outcome is known; ``years`` is when, from the first date (or by place in the file)."""

    segment: str
    success: bool
    years: float | None
    place: int


def ready() -> bool:
    """Whether the extra that reads histories is installed."""
    try:
        import duckdb  # noqa: F401
        import ibis  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def take_in(source: Path, target: Path) -> None:
    """Check an uploaded file and keep it as texts."""
    import duckdb

    with source.open("rb") as file:
        start = file.read(4)
    parquet = start == b"PAR1"
    if not parquet:
        _check_text(source, start)
    with _engine() as engine:
        try:
            table = _parquet(engine, source) if parquet else _csv(source)
            query = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {table}"
            engine.execute(f"COPY ({query}) TO {_text(str(target))} (FORMAT parquet)")
            rows = engine.execute(f"SELECT count(*) FROM {_kept(target)}").fetchone()[0]
        except duckdb.Error as error:
            raise InputError(_said(str(error), parquet)) from None
    if rows == 0:
        raise InputError("the file has a heading and no rows below it")
    _check_size(rows, len(_names(target)))


def columns(path: Path) -> list[Column]:
    """The columns with examples from the first rows."""
    names = _names(path)
    with _engine() as engine:
        rows = engine.execute(f"SELECT * FROM {_kept(path)} LIMIT {SAMPLE}").fetchall()
    found = []
    for i, name in enumerate(names):
        values = [row[i] for row in rows if row[i] is not None and row[i].strip()]
        different = list(dict.fromkeys(values))
        found.append(
            Column(
                name,
                tuple(value[:40] for value in different[:4]),
                len(different),
                bool(values) and all(_is_number(value) for value in values),
                bool(values) and all(_is_date(value) for value in different[:50]),
            )
        )
    return found


def values(path: Path, column: str) -> list[tuple[str, int]]:
    """The different values of a column with their counts, the most frequent first; missing ones are left out."""
    if column not in _names(path):
        raise InputError(f"the file has no column {column!r}")
    with _engine() as engine:
        query = f"SELECT {_name(column)} AS v, count(*) AS k FROM {_kept(path)} WHERE v IS NOT NULL GROUP BY v"
        found = engine.execute(f"{query} ORDER BY k DESC, v LIMIT {MOST_VALUES + 1}").fetchall()
    if len(found) > MOST_VALUES:
        raise InputError(
            f"the column {column!r} has more than {MOST_VALUES} different values, too many to say what each means"
        )
    return [(str(value), int(count)) for value, count in found]


@lru_cache(maxsize=16)
def read_past(path: Path, mapping: Mapping) -> Past:
    """Count the file as the mapping says."""
    with _engine() as engine:
        frame = engine.sql(_meant(path, mapping)).to_arrow_table()
        keys = [f"s{i}" for i in range(len(mapping.segments))]
        history = fit_history(
            frame,
            keys if len(keys) > 1 else keys[0],
            "accepted",
            "outcome",
            "decided" if mapping.time else None,
            maturity=mapping.maturity or None,
        )
        history = msgspec.structs.replace(history, strange=())  # here the mapping has put a number in their place
        _check(history, mapping)
        engine.execute(f"CREATE VIEW past AS {_meant(path, mapping)}")
        used = "WHERE segment IS NOT NULL GROUP BY segment"
        groups = {}
        for segment, least, many in engine.execute(
            f"SELECT segment, min(grouped), count(DISTINCT grouped) FROM past {used}"
        ).fetchall():
            if many > 1:
                raise InputError(
                    f"the segment {segment!r} has members of {many} groups of {mapping.group!r}: choose "
                    f"{mapping.group!r} as a segment too, or another group"
                )
            if least is not None:
                groups[segment] = least
        scores = {
            segment: float(score)
            for segment, score in engine.execute(f"SELECT segment, avg(score) FROM past {used}").fetchall()
            if score is not None
        }
        until = f"WHERE {_not_future(history)}"
        first, last = engine.execute(f"SELECT min(decided), max(decided) FROM past {until}").fetchone()
    if mapping.score and any(row.segment not in scores for row in history.segments):
        without = next(row.segment for row in history.segments if row.segment not in scores)
        raise InputError(f"the column {mapping.score!r} must hold numbers, and the segment {without!r} has none")
    years = (last - first).total_seconds() / (365.25 * 86_400) if mapping.time and last is not None else None
    return Past(history, groups, scores, years)


def known_outcomes(path: Path, mapping: Mapping, history: History) -> list[Known]:
    """The past applicants whose outcome is known (and mature), in order of time."""
    where = "accepted AND outcome IN (0, 1) AND segment IS NOT NULL"
    if mapping.time:
        where += f" AND {_not_future(history)}"
        if mapping.maturity and history.as_of is not None:
            cutoff = history.as_of - dt.timedelta(days=mapping.maturity)
            where += f" AND decided <= TIMESTAMP '{cutoff:%Y-%m-%d %H:%M:%S.%f}'"
    with _engine() as engine:
        rows = engine.execute(
            f"SELECT segment, outcome = 1, epoch(decided - min(decided) OVER ()), place FROM "
            f"({_meant(path, mapping)}) WHERE {where} ORDER BY decided, place"
        ).fetchall()
    year = 365.25 * 86_400
    return [Known(segment, good, None if at is None else at / year, place) for segment, good, at, place in rows]


def _not_future(history: History) -> str:
    """The condition of a sound date: there, and not after that of the count, the last that is not in the future."""
    if history.as_of is None:
        return "decided IS NOT NULL"
    return f"decided <= TIMESTAMP '{history.as_of:%Y-%m-%d %H:%M:%S.%f}'"


def _check(history: History, mapping: Mapping) -> None:
    by = " and ".join(repr(name) for name in mapping.segments)
    if not history.segments:
        raise InputError(f"no row can be used: {history.describe()}")
    if len(history.segments) > limits.SEGMENTS:
        raise InputError(
            f"the file has {len(history.segments):,} segments by {by}, and a policy may have {limits.SEGMENTS:,}: "
            "choose fewer or coarser columns"
        )
    for row in history.segments:
        if len(row.segment) > 200 or not re.match(limits.PLAIN, row.segment):
            raise InputError(f"the name of a segment may have 200 characters without line breaks, not {row.segment!r}")
    if not any(row.labels for row in history.segments):
        old = f" and is {mapping.maturity:g} days old" if mapping.maturity else ""
        raise InputError(f"no outcome is known: no accepted row has a value of {mapping.outcome!r} with a meaning{old}")


def _meant(path: Path, mapping: Mapping) -> str:
    """The query that says what each row means."""
    there = _names(path)
    asked = [*mapping.segments, mapping.outcome, mapping.accepted, mapping.time, mapping.group, mapping.score]
    for name in asked:
        if name and name not in there:
            raise InputError(f"the file has no column {name!r}")
    parts = [f"NULLIF(trim({_name(name)}), '') AS s{i}" for i, name in enumerate(mapping.segments)]
    # As fit_history names a segment of several columns; missing where one of them is.
    whole = " || ' / ' || ".join(f"NULLIF(trim({_name(name)}), '')" for name in mapping.segments)
    parts.append(f"{whole} AS segment")
    if mapping.accepted:
        column = _name(mapping.accepted)
        yes, no = _among(column, mapping.yes), _among(column, mapping.no)
        parts.append(f"CASE WHEN {yes} THEN true WHEN {no} THEN false END AS accepted")
    else:
        parts.append("true AS accepted")
    column = _name(mapping.outcome)
    good, bad = _among(column, mapping.success), _among(column, mapping.failure)
    unknown = f"{column} IS NULL OR {_among(column, mapping.unknown)}"
    parts.append(
        f"CAST(CASE WHEN {unknown} THEN NULL WHEN {good} THEN 1 WHEN {bad} THEN 0 ELSE 2 END AS TINYINT) AS outcome"
    )
    parts.append(f"{_moment(mapping.time)} AS decided")
    grouped = f"NULLIF(trim({_name(mapping.group)}), '')" if mapping.group else "CAST(NULL AS VARCHAR)"
    parts.append(f"{grouped} AS grouped")
    score = f"TRY_CAST({_name(mapping.score)} AS DOUBLE)" if mapping.score else "CAST(NULL AS DOUBLE)"
    parts.append(f"CASE WHEN isfinite({score}) THEN {score} END AS score")
    parts.append("file_row_number AS place")
    return f"SELECT {', '.join(parts)} FROM read_parquet({_text(str(path))}, file_row_number = true)"


def _moment(column: str) -> str:
    if not column:
        return "CAST(NULL AS TIMESTAMP)"
    text = f"trim({_name(column)})"
    return f"coalesce(TRY_CAST({text} AS TIMESTAMP), try_strptime({text}, ['%d.%m.%Y', '%Y-%m']))"


def _check_text(source: Path, start: bytes) -> None:
    """A text in UTF-8, or a sentence that says what it is instead."""
    for magic, what in NOT_TABLES.items():
        if start.startswith(magic):
            raise InputError(f"the file is {what}: save it as CSV (or Parquet) and upload that")
    decoder = codecs.getincrementaldecoder("utf-8")()
    blank = True
    with source.open("rb") as file:
        while chunk := file.read(1 << 20):
            try:
                text = decoder.decode(chunk)
            except UnicodeDecodeError:
                raise InputError("the file is not a CSV in UTF-8: save it as “CSV UTF-8”, or as Parquet") from None
            if "\x00" in text:
                raise InputError("the file is no CSV: it holds bytes that no text has")
            blank = blank and not text.strip("\ufeff \t\r\n")
    if blank:
        raise InputError("the file is empty")


def _check_size(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise InputError(
            f"the file has {rows:,} rows and {columns:,} columns, and {MOST_ROWS:,} and {MOST_COLUMNS} are the most"
        )


def _parquet(engine: Any, source: Path) -> str:
    """How to read a Parquet file; its size is looked at first, for a small file can hold very many rows."""
    table = _kept(source)
    rows = engine.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({_text(str(source))})").fetchone()[0]
    _check_size(rows, len(engine.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()))
    return table


def _csv(source: Path) -> str:
    """How to read a CSV: separated as its first line is, every column as text."""
    with source.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for _, line in zip(range(20), file, strict=False)]  # a quoted name may run over several
    headings = {mark: next(csv.reader(lines, delimiter=mark), []) for mark in SEPARATORS}
    mark = max(headings, key=lambda one: len(headings[one]))
    names = [name.strip() for name in headings[mark]]
    if len(names) < 2:
        raise InputError(
            "the file has only one column: a CSV has a heading and at least a column for the segment and one for the "
            "outcome, separated by commas, semicolons or tabs"
        )
    if "" in names:
        raise InputError(f"every column must have a name in the first line, and column {1 + names.index('')} has none")
    twice = next((name for name in names if sum(other.lower() == name.lower() for other in names) > 1), None)
    if twice is not None:
        raise InputError(f"the names of columns must differ, and {twice!r} is there twice")
    listed = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
    how = f"delim = {_text(mark)}, quote = '\"', escape = '\"', header = true, auto_detect = false"
    return f"read_csv({_text(str(source))}, {how}, columns = {{{listed}}}, max_line_size = {1 << 24})"


def _said(error: str, parquet: bool) -> str:
    """What the engine says of a file it cannot read, in a sentence of ours."""
    if parquet:
        return "the file begins as Parquet and cannot be read as such: it may be cut off"
    line = re.search(r"(?:CSV Error on Line|Line): ?(\d+)", error)
    amount = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
    where = f" at line {int(line[1]):,}" if line else ""
    more = amount is not None and int(amount[2]) > int(amount[1])
    what = f", which has {'more' if more else 'fewer'} values than the heading's {amount[1]}" if amount else ""
    return f"the file cannot be read as CSV{where}{what}"


@lru_cache(maxsize=64)
def _names(path: Path) -> tuple[str, ...]:
    with _engine() as engine:
        return tuple(row[0] for row in engine.execute(f"DESCRIBE SELECT * FROM {_kept(path)}").fetchall())


def _engine() -> Any:
    import duckdb

    # Small, with nothing left on the disk and nothing fetched.
    within = {"memory_limit": "1GB", "max_temp_directory_size": "0GB", "autoinstall_known_extensions": "false"}
    return duckdb.connect(config={"threads": "1", **within})


def _kept(path: Path) -> str:
    return f"read_parquet({_text(str(path))})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _among(column: str, values: Iterable[str]) -> str:
    listed = ", ".join(_text(value) for value in values)
    return f"{column} IN ({listed})" if listed else "false"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    """Whether a text looks like a date.

    >>> [_is_date(text) for text in ("2024-01-31", "31.1.2024", "2024-01", "north", "612")]
    [True, True, True, False, False]
    """
    return re.match(r"\s*(\d{4}-\d{1,2}(-\d{1,2})?([ T].*)?|\d{1,2}\.\d{1,2}\.\d{4})\s*\Z", text) is not None
