"""Taking in an uploaded file of past decisions: checked once, and kept as a table of texts.

Whatever came (CSV with any separator, Parquet with any types) becomes one Parquet file whose columns are texts, so that
a value a person sees on the page is the value that is compared. White space around a text is none of it, as for
:func:`lenience.fit_history`.
"""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path
from string import whitespace
from typing import Any

from lenience.columns import HEAD, separator
from lenience.errors import InputError
from lenience.history_damage import PARQUET, begins, check_text, said_of
from lenience.web.kept_table import connect, identifier, kept, literal, names

MOST_COLUMNS, MOST_ROWS = 300, 3_000_000
HEADINGS = "repeated_headings"  # under which the file says how many rows were left out as such


def take_in(source: Path, target: Path) -> None:
    """Check an uploaded file and keep it as texts."""
    import duckdb

    parquet = begins(source) == PARQUET
    if not parquet:
        check_text(source)
    with connect() as engine:
        try:
            table = _parquet(engine, source) if parquet else _csv(source)
            query = f"SELECT NULLIF(trim(CAST(COLUMNS(*) AS VARCHAR), {literal(whitespace)}), '') FROM {table}"
            repeated = _heading(engine, query)
            count = engine.execute(f"SELECT count(*) FROM ({query}) WHERE {repeated}").fetchone()[0]
            how = f"FORMAT parquet, KV_METADATA {{{HEADINGS}: {literal(str(count))}}}"
            wanted = f"SELECT * FROM ({query}) WHERE NOT ({repeated})"
            engine.execute(f"COPY ({wanted}) TO {literal(str(target))} ({how})")
            rows = engine.execute(f"SELECT count(*) FROM {kept(target)}").fetchone()[0]
        except duckdb.Error as error:
            raise InputError(said_of(error, parquet)) from None
    if rows == 0:
        raise InputError("the file has a heading and no rows below it")
    _check_size(rows, len(names(target)))


def repeated_headings(path: Path) -> int:
    """How many rows of the file were its heading once more; they are not kept."""
    asked = f"SELECT decode(value) FROM parquet_kv_metadata({literal(str(path))}) WHERE decode(key) = '{HEADINGS}'"
    with connect() as engine:
        found = engine.execute(asked).fetchone()
    return int(found[0]) if found else 0


def _heading(engine: Any, query: str) -> str:
    """Whether a row is the heading once more, as where files were put one after the other."""
    there = [row[0] for row in engine.execute(f"DESCRIBE {query}").fetchall()]
    return " AND ".join(f"coalesce({identifier(name)} = {literal(name.strip())}, false)" for name in there)


def _check_size(rows: int, columns: int) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise InputError(
            f"the file has {rows:,} rows and {columns:,} columns, and {MOST_ROWS:,} and {MOST_COLUMNS} are the most"
        )


def _parquet(engine: Any, source: Path) -> str:
    """How to read a Parquet file; its size is looked at first, for a small file can hold very many rows."""
    table = kept(source)
    rows = engine.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({literal(str(source))})").fetchone()[0]
    _check_size(rows, len(engine.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()))
    return table


def _csv(source: Path) -> str:
    """How to read a CSV: separated as its first line is, every column as text."""
    with source.open(encoding="utf-8-sig", newline="") as file:
        lines = list(islice(file, HEAD))
    mark = separator(lines)
    names = [name.strip() for name in next(csv.reader(lines, delimiter=mark), [])]
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
    listed = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    how = f"delim = {literal(mark)}, quote = '\"', escape = '\"', header = true, auto_detect = false"
    return f"read_csv({literal(str(source))}, {how}, columns = {{{listed}}}, max_line_size = {1 << 24})"
