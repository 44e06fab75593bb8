"""Read an uploaded file of past decisions, check it once and store it as a table of texts.

Any upload (CSV with any separator, Parquet with any types) becomes one Parquet file whose columns are texts, so that
the values shown on the page are the values compared. Surrounding white space is removed, as in
:func:`lenience.fit_history`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import whitespace
from typing import Any

from lenience.core.errors import InputError
from lenience.dashboard.wizard.upload_table import connect, literal, names, table_of
from lenience.files.csv_format import csv_query, without_headings
from lenience.files.unreadable import PARQUET, begins, describe_engine_error

MOST_COLUMNS, MOST_ROWS = 300, 3_000_000
NOTES = "notes"  # metadata key of the notes on how the file was read


def save_upload(source: Path, target: Path) -> None:
    """Check an uploaded file and save it as a table of texts, with notes on how it was read."""
    import duckdb

    parquet = begins(source) == PARQUET
    with connect() as engine:
        try:
            with _readable(engine, source, parquet) as (table, remarks):
                query = f"SELECT NULLIF(trim(CAST(COLUMNS(*) AS VARCHAR), {literal(whitespace)}), '') FROM {table}"
                written = literal("\n".join(remarks))
                options = f"FORMAT parquet, KV_METADATA {{{NOTES}: {written}}}"
                engine.execute(f"COPY ({query}) TO {literal(str(target))} ({options})")
            rows = engine.execute(f"SELECT count(*) FROM {table_of(target)}").fetchone()[0]
        except duckdb.Error as error:
            raise InputError.because(
                describe_engine_error(error, parquet), "file", label="", code="invalid_file"
            ) from None
    if rows == 0:
        raise InputError.because("the file has a heading but no rows", "file", label="", code="insufficient_data")
    _check_size(rows, len(names(target)))


def notes(path: Path) -> list[str]:
    """Return the notes on how the file was read."""
    query = f"SELECT decode(value) FROM parquet_kv_metadata({literal(str(path))}) WHERE decode(key) = '{NOTES}'"
    with connect() as engine:
        row = engine.execute(query).fetchone()
    return str(row[0]).splitlines() if row else []


@contextmanager
def _readable(engine: Any, source: Path, parquet: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the table that a query reads from, and notes on how the file is read."""
    if parquet:
        table, columns = _parquet(engine, source)
        yield without_headings(engine, table, columns, [name.strip() for name in columns])
        return
    with csv_query(engine, [source]) as query:
        if len(query.heading) < 2:
            raise InputError.because(
                "the file has only one column. A CSV needs a heading and at least two columns, for the segment and the "
                "outcome, separated by commas, semicolons or tabs",
                "file",
                label="",
                code="invalid_file",
            )
        if "" in query.heading:
            nameless = 1 + query.heading.index("")
            raise InputError.because(
                f"every column must have a name in the first line; column {nameless} has none",
                "file",
                label="",
                code="invalid_file",
            )
        yield f"({query.sql})", query.notes


def _check_size(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise InputError.because(
            f"the file has {rows:,} rows and {columns:,} columns; "
            f"at most {MOST_ROWS:,} rows and {MOST_COLUMNS} columns are allowed",
            "file",
            label="",
            code="too_large",
        )


def _parquet(engine: Any, source: Path) -> tuple[str, list[str]]:
    """Return how to read a Parquet file, and its columns.

    The size is checked first, because a small file can hold very many rows.
    """
    table = table_of(source)
    rows = engine.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({literal(str(source))})").fetchone()[0]
    columns = [row[0] for row in engine.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
    _check_size(rows, len(columns))
    return table, columns
