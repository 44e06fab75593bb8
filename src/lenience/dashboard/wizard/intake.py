"""Taking in an uploaded file of past decisions: checked once, and kept as a table of texts.

Whatever came (CSV with any separator, Parquet with any types) becomes one Parquet file whose columns are texts, so that
a value a person sees on the page is the value that is compared. White space around a text is none of it, as for
:func:`lenience.fit_history`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from string import whitespace
from typing import Any

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.dashboard.wizard.kept_table import connect, identifier, kept, literal, names
from lenience.files.csv_text import heading, in_utf8, numbers_read, scan
from lenience.files.unreadable import PARQUET, begins, said_of

MOST_COLUMNS, MOST_ROWS = 300, 3_000_000
NOTES = "notes"  # under which the file kept says how it was read


def take_in(source: Path, target: Path) -> None:
    """Check an uploaded file and keep it as texts, with what is to be said of how it was read."""
    import duckdb

    parquet = begins(source) == PARQUET
    text: AbstractContextManager[tuple[Path, list[str]]] = nullcontext((source, [])) if parquet else in_utf8(source)
    with connect() as engine, text as (readable, letters):
        try:
            table, said = (_parquet(engine, readable), []) if parquet else _csv(engine, readable)
            query = f"SELECT NULLIF(trim(CAST(COLUMNS(*) AS VARCHAR), {literal(whitespace)}), '') FROM {table}"
            repeated = _heading(engine, query)
            count = engine.execute(f"SELECT count(*) FROM ({query}) WHERE {repeated}").fetchone()[0]
            if count:
                said.append(f"{counted(count, 'row')} left out: the heading once more.")
            told = literal("\n".join([*letters, *said]))
            how = f"FORMAT parquet, KV_METADATA {{{NOTES}: {told}}}"
            wanted = f"SELECT * FROM ({query}) WHERE NOT ({repeated})"
            engine.execute(f"COPY ({wanted}) TO {literal(str(target))} ({how})")
            rows = engine.execute(f"SELECT count(*) FROM {kept(target)}").fetchone()[0]
        except duckdb.Error as error:
            raise InputError.because(said_of(error, parquet), "file", label="", code="invalid_file") from None
    if rows == 0:
        raise InputError.because("has a heading and no rows below it", "file", label="the file", code="invalid_file")
    _check_size(rows, len(names(target)))


def notes(path: Path) -> list[str]:
    """What is to be said of how the file was read."""
    asked = f"SELECT decode(value) FROM parquet_kv_metadata({literal(str(path))}) WHERE decode(key) = '{NOTES}'"
    with connect() as engine:
        found = engine.execute(asked).fetchone()
    return str(found[0]).splitlines() if found else []


def _heading(engine: Any, query: str) -> str:
    """Whether a row is the heading once more, as where files were put one after the other."""
    there = [row[0] for row in engine.execute(f"DESCRIBE {query}").fetchall()]
    return " AND ".join(f"coalesce({identifier(name)} = {literal(name.strip())}, false)" for name in there)


def _check_size(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise InputError.because(
            f"has {rows:,} rows and {columns:,} columns; at most {MOST_ROWS:,} rows and {MOST_COLUMNS} columns are "
            "allowed",
            "file",
            label="the file",
            code="too_large",
        )


def _parquet(engine: Any, source: Path) -> str:
    """How to read a Parquet file; its size is looked at first, for a small file can hold very many rows."""
    table = kept(source)
    rows = engine.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({literal(str(source))})").fetchone()[0]
    _check_size(rows, len(engine.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()))
    return table


def _csv(engine: Any, text: Path) -> tuple[str, list[str]]:
    """How to read a CSV: separated as its first line is, every column as text; and what is to be said of it."""
    mark, names = heading(text)
    if len(names) < 2:
        raise InputError.because(
            "has only one column; it needs a heading and at least a column for the segment and one for the outcome",
            "file",
            label="the file",
            hint="Separate the columns by commas, semicolons or tabs.",
            code="invalid_file",
        )
    if "" in names:
        raise InputError.because(
            f"must have a name for every column in its first line; column {1 + names.index('')} has none",
            "file",
            label="the file",
            code="invalid_file",
        )
    query, notes = numbers_read(engine, scan([text], mark, names), mark, names)
    return f"({query})", notes
