"""Open past decisions from files, frames, databases and warehouses, each as an Ibis table with its engine."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lenience.core.errors import InputError
from lenience.files.columns import check_sheet, text_rows
from lenience.files.connection import connect, table_of
from lenience.files.csv_format import CsvFormat, csv_query
from lenience.files.unreadable import unreadable
from lenience.files.workbook import is_workbook

if TYPE_CHECKING:
    import ibis.expr.types as ir

BATCH = 20_000  # rows of a workbook that are texts in Python at a time
MOST_COMPARED = 500_000  # rows: copies are not counted in larger files
MOST_WIDE = 500  # columns: copies are not counted in wider files
MOSTLY = 0.9  # share of rows that must differ: otherwise no column identifies individuals, and copies mean nothing


def open_source(
    source: object, connection: object = None, notes: list[str] | None = None, sheet: str | None = None
) -> tuple[ir.Table, Any]:
    """Return the source as an Ibis table, and the engine that holds it.

    How a file was read is added to ``notes``, as sentences for the user. ``sheet`` is the sheet of an Excel file.
    """
    ibis = _ibis()
    import duckdb
    import ibis.expr.types as ir
    from ibis.common.exceptions import IbisError

    is_file = isinstance(source, str | os.PathLike) and connection is None
    if sheet is not None and not is_file:
        raise InputError.because("needs an Excel file", "sheet", value=sheet, code="conflicting_fields")
    if isinstance(source, ir.Table):
        return source, source.get_backend()
    if connection is not None:
        if not isinstance(source, str):
            raise InputError("source", source, "the name of a table where a connection is given")
        backend: Any = connect(connection) if isinstance(connection, str) else connection
        try:
            return table_of(backend, source), backend
        except InputError:
            if isinstance(connection, str):
                backend.disconnect()
            raise
    backend = ibis.duckdb.connect()
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if "://" not in path and not os.path.exists(path) and not glob(path, recursive=True):
            raise InputError("source", path, "a file that exists", code="missing_file")
        if os.path.isdir(path):
            path = os.path.join(path, "**/*.parquet")
            if not glob(path, recursive=True):
                raise InputError.because(
                    f"must be a file or a folder with Parquet files; {source!r} has none",
                    "source",
                    value=str(source),
                    code="missing_file",
                )
        check_sheet(Path(path), sheet)
        try:
            if is_workbook(Path(path)):
                backend.con.register("cells", workbook_table(Path(path), [] if notes is None else notes, sheet))
                backend.con.execute("CREATE TABLE past_decisions AS SELECT * FROM cells")
                return backend.table("past_decisions"), backend
            if ".parquet" in path:
                return backend.read_parquet(path), backend
            if "://" not in path:
                files = [path] if os.path.isfile(path) else sorted(filter(os.path.isfile, glob(path, recursive=True)))
                if not files:  # a CSV source is read twice, which a pipe does not allow
                    raise InputError.because(
                        "it is a pipe or a device", hint="Save its content to a file.", code="unreadable_file"
                    )
                return _text(backend, [Path(file) for file in files], [] if notes is None else notes), backend
            # Read all columns as text: an invalid value then makes one bad row instead of an unreadable file.
            return backend.read_csv(path, all_varchar=True), backend
        except OSError as error:
            raise InputError.unreadable("source", path, error) from error
        except (duckdb.Error, IbisError, InputError) as error:
            if isinstance(error, InputError) and error.field == "sheet":
                raise
            raise unreadable(path, error) from None
    return ibis.memtable(_arrow(source)), backend


def _text(backend: Any, paths: Sequence[Path], notes: list[str]) -> ir.Table:
    """Open CSV files that have the same heading as one table of texts."""
    with csv_query(backend.con, paths) as query:
        # A temporary copy in UTF-8 will be deleted, so load it now. Other files are read when rows are counted.
        backend.con.execute(f"CREATE {'TABLE' if query.temporary else 'VIEW'} past_decisions AS {query.sql}")
    notes += query.notes
    return backend.table("past_decisions")


def workbook_table(
    path: Path, notes: list[str], sheet: str | None = None, check: Callable[[Sequence[str]], None] | None = None
) -> Any:
    """Return a sheet of an Excel workbook as an Arrow table of texts; empty cells are missing.

    ``check`` is called with the names of the columns before the rows are read.
    """
    import pyarrow as pa

    lines = text_rows(path, notes, sheet)
    layout = next(lines)
    assert isinstance(layout, CsvFormat)
    if check is not None:
        check(layout.names)
    schema = pa.schema([(name, pa.string()) for name in layout.names])
    batches = []
    while rows := [line[1] for line in islice(lines, BATCH) if not isinstance(line, CsvFormat)]:
        columns = [[cell or None for cell in column] for column in zip(*rows, strict=True)]
        batches.append(pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=schema))
    return pa.Table.from_batches(batches, schema)


def repetitions(source: object, table: ir.Table, rows: int) -> int:
    """Return how many rows of a file are exact copies of other rows; 0 if most rows are alike."""
    if not isinstance(source, str | os.PathLike) or rows > MOST_COMPARED or len(table.columns) > MOST_WIDE:
        return 0
    different = int(table.get_backend().to_pyarrow(table.distinct().count()).as_py())
    return rows - different if different >= MOSTLY * rows else 0


@contextmanager
def reading(source: object) -> Iterator[None]:
    """Replace the engine's errors about a damaged file by one sentence."""
    _ibis()  # raises an error that says what to install
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if not isinstance(source, str | os.PathLike) or isinstance(error, duckdb.OutOfMemoryException):
            raise
        raise unreadable(os.fspath(source), error) from error


@contextmanager
def without_engine_warnings() -> Iterator[None]:
    """Suppress the deprecation warnings that newer engines raise for calls inside Ibis: the user cannot act on them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
        yield


def _ibis() -> Any:
    """Import Ibis with its DuckDB engine; raise InputError if it is not installed."""
    try:
        import ibis
        import ibis.backends.duckdb
    except ImportError as error:
        raise InputError.missing_package("past decisions", "Ibis", "history") from error
    return ibis


def _arrow(frame: object) -> Any:
    """Return a frame or a dict of lists as an Arrow table."""
    import pyarrow as pa

    try:
        if isinstance(frame, Mapping):
            return pa.table(dict(frame))
        return pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise InputError("source", type(frame).__name__, "a path, a frame, an Ibis table, or a table's name") from error
