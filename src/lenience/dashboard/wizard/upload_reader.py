"""Read an uploaded file of past decisions, check it once and store it as a table of texts.

Any upload (CSV with any separator, Excel, Parquet with any types) becomes one Parquet file whose columns are texts, so
that the values shown on the page are the values compared. Surrounding white space is removed, as in
:func:`lenience.fit_history`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import whitespace
from typing import Any

from lenience.core.data_origin import IN_MEMORY, digest_of_file, short
from lenience.core.errors import LONGEST, InputError
from lenience.dashboard.wizard.upload_table import connect, identifier, literal, names, table_of
from lenience.files.columns import check_sheet
from lenience.files.csv_format import csv_query, detect_format, without_headings
from lenience.files.source import workbook_table
from lenience.files.unreadable import PARQUET, begins, describe_engine_error
from lenience.files.workbook import is_workbook

MOST_COLUMNS, MOST_ROWS = 300, 3_000_000
MOST_VALUES = 200_000_000  # values that a Parquet file declares: a list in one row can have very many
MOST_TEXT = 1 << 30  # bytes of all values as text; a Parquet file stores a repeated text once
LONGEST_VALUE = 32_767  # bytes, about the characters that a cell of a spreadsheet holds
NOTES = "notes"  # metadata key of the notes on how the file was read
FILE, DIGEST = "file", "digest"  # metadata keys of the uploaded file's name and of its SHA-256 digest


def save_upload(source: Path, target: Path, sheet: str | None = None, name: str = "") -> None:
    """Check an uploaded file and save it as a table of texts, with its name, its digest and how it was read.

    ``sheet`` is the sheet of an Excel file; by default the first that is not empty. ``name`` is the file's own name.
    The file comes from outside, so every size is checked before the step that would need memory for it.
    """
    import duckdb

    parquet = begins(source) == PARQUET
    with connect() as engine:
        try:
            with _readable(engine, source, parquet, sheet) as (table, remarks):
                query = f"SELECT NULLIF(trim(CAST(COLUMNS(*) AS VARCHAR), {literal(whitespace)}), '') FROM {table}"
                known = {NOTES: "\n".join(remarks), FILE: short(name or source.name), DIGEST: digest_of_file(source)}
                written = ", ".join(f"{key}: {literal(text)}" for key, text in known.items())
                options = f"FORMAT parquet, KV_METADATA {{{written}}}"
                engine.execute(f"COPY ({query}) TO {literal(str(target))} ({options})")
            rows = engine.execute(f"SELECT count(*) FROM {table_of(target)}").fetchone()[0]
        except duckdb.OutOfMemoryException:
            raise too_large("it needs too much memory to be read") from None
        except duckdb.Error as error:
            raise InputError.because(
                describe_engine_error(error, parquet), "file", label="", code="invalid_file"
            ) from None
    if rows == 0:
        raise InputError.because("the file has a heading but no rows", "file", label="", code="insufficient_data")
    _check_size(rows, len(names(target)))


def too_large(reason: str) -> InputError:
    """Return the error for a file that is larger than allowed."""
    return InputError.because(reason, "file", label="", code="too_large")


def notes(path: Path) -> list[str]:
    """Return the notes on how the file was read."""
    return _metadata(path).get(NOTES, "").splitlines()


def uploaded_file(path: Path) -> tuple[str, str]:
    """Return the name of the uploaded file, and its SHA-256 digest."""
    known = _metadata(path)
    return known.get(FILE) or IN_MEMORY, known.get(DIGEST, "")


def _metadata(path: Path) -> dict[str, str]:
    query = f"SELECT decode(key), decode(value) FROM parquet_kv_metadata({literal(str(path))})"
    with connect() as engine:
        return dict(engine.execute(query).fetchall())


@contextmanager
def _readable(engine: Any, source: Path, parquet: bool, sheet: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the table that a query reads from, and notes on how the file is read."""
    if is_workbook(source):
        remarks: list[str] = []
        cells = workbook_table(source, remarks, sheet, _check_heading)
        engine.register("workbook", cells)
        _check_text(engine, "workbook", cells.column_names)
        yield "workbook", remarks
        return
    check_sheet(source, sheet)
    if parquet:
        columns = _parquet_columns(engine, source)
        _check_text(engine, table_of(source), columns)
        yield without_headings(engine, table_of(source), columns, [name.strip() for name in columns])
        return
    # The engine plans a query for each column, so a heading that is too long is rejected before it.
    _check_size(0, len(detect_format(source).heading))
    with csv_query(engine, [source]) as query:
        _check_heading(query.heading)
        yield f"({query.sql})", query.notes


def _check_heading(heading: Sequence[str]) -> None:
    """Raise InputError if a file has too few or too many columns, or one without a name."""
    _check_size(0, len(heading))
    if len(heading) < 2:
        raise InputError.because(
            "the file has only one column. A table needs a heading and at least two columns, for the segment and the "
            "outcome (in a CSV separated by commas, semicolons or tabs)",
            "file",
            label="",
            code="invalid_file",
        )
    if "" in heading:
        raise InputError.because(
            f"every column must have a name in the first line; column {1 + list(heading).index('')} has none",
            "file",
            label="",
            code="invalid_file",
        )


def _check_size(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        size = f"{rows:,} rows and {columns:,} columns" if rows else f"{columns:,} columns"
        raise too_large(
            f"the file has {size}; at most {MOST_ROWS:,} rows and {MOST_COLUMNS} columns are allowed",
        )


def _check_text(engine: Any, table: str, columns: Sequence[str]) -> None:
    """Raise InputError if a Parquet file has too much text.

    A file of 10 kB can repeat a text of 1 MB three million times. The lengths are summed without building the texts.
    (A CSV file has at most as much text as it has bytes.)
    """
    lengths = [f"strlen(CAST({identifier(name)} AS VARCHAR))" for name in columns]
    parts = [part for length in lengths for part in (f"max({length})", f"sum({length})")]
    sizes = engine.execute(f"SELECT {', '.join(parts)} FROM {table}").fetchone()
    for name, longest in zip(columns, sizes[::2], strict=True):
        if (longest or 0) > LONGEST_VALUE:
            raise too_large(
                f"a value in the column {name[:LONGEST]!r} has {longest:,} bytes; at most {LONGEST_VALUE:,} are allowed"
            )
    total = sum(size or 0 for size in sizes[1::2])
    if total > MOST_TEXT:
        raise too_large(
            f"the file has {total / 1e9:.1f} GB of text when it is unpacked; "
            f"at most {MOST_TEXT / 1e9:.1f} GB are allowed",
        )


def _parquet_columns(engine: Any, source: Path) -> list[str]:
    """Return the columns of a Parquet file, after a check of the sizes that it declares."""
    file = literal(str(source))
    rows = engine.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({file})").fetchone()[0]
    values = engine.execute(f"SELECT sum(num_values) FROM parquet_metadata({file})").fetchone()[0]
    columns = [row[0] for row in engine.execute(f"DESCRIBE SELECT * FROM {table_of(source)}").fetchall()]
    _check_size(int(rows or 0), len(columns))
    if (values or 0) > MOST_VALUES:
        raise too_large(f"the file has {int(values):,} values; at most {MOST_VALUES:,} are allowed")
    return columns
