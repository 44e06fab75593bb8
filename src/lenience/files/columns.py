"""Read the columns or rows of a file; CSV and Excel need no extra package.

:mod:`lenience.files.csv_format` decides how a CSV file is read, and :mod:`lenience.files.workbook` reads Excel. DuckDB
(:mod:`lenience.files.source`) reads Parquet, Zstandard, folders and patterns, and SciPy reads ARFF.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.csv_format import (
    CsvFormat,
    decimal_comma_note,
    detect_format,
    repeated_headings_note,
    replace_decimal_commas,
)
from lenience.files.unreadable import PARQUET, UTF8, begins
from lenience.files.workbook import is_workbook, open_sheet


def read_columns(path: str | Path, notes: list[str] | None = None, sheet: str | None = None) -> dict[str, list[Any]]:
    """Read the columns of a file by name: CSV and Excel as text, Parquet with its types.

    Parameters
    ----------
    path
        A CSV, Excel, Parquet or ARFF file, a folder of Parquet files, or a pattern.
    notes
        A list to which sentences for the user are added, e.g. that numbers have decimal commas.
    sheet
        The sheet of an Excel file; by default the first that is not empty.

    Returns
    -------
    dict of str to list
        The values of each column.

    Raises
    ------
    InputError
        If the file does not exist or cannot be read.
    """
    remarks = [] if notes is None else notes
    file = Path(path)
    if not file.exists() and not glob(str(path), recursive=True):
        raise InputError("data", str(path), "a file that exists", code="missing_file")
    check_sheet(file, sheet)
    if file.suffix.lower() == ".arff":
        return _arff(file)
    if not file.is_file() or file.suffix == ".zst" or begins(file) == PARQUET or ".parquet" in file.name:
        return _engine(str(path), remarks)
    lines = _text_rows(file, remarks, sheet)
    layout = next(lines)
    assert isinstance(layout, CsvFormat)
    values: list[list[str]] = [[] for _ in layout.names]
    for line in lines:
        assert not isinstance(line, CsvFormat)
        number, row = line
        if len(row) != len(values):
            raise InputError.because(
                f"must have {len(values)} values, not {len(row)}",
                "data",
                label=f"line {number:,} of {str(file)!r}",
                value=len(row),
                code="invalid_file",
            )
        for column, value in zip(values, row, strict=True):
            column.append(value)
    columns: dict[str, list[Any]] = dict(zip(layout.names, values, strict=True))
    for name, texts in columns.items():
        pointed = replace_decimal_commas(texts, layout.separator)
        if pointed is not None:
            remarks.append(decimal_comma_note(name, next(value for value in texts if "," in value)))
            columns[name] = pointed
    return columns


def check_sheet(path: Path, sheet: str | None) -> None:
    """Raise InputError if a sheet is given for a file that has no sheets."""
    if sheet is not None and not is_workbook(path):
        raise InputError.because(
            f"needs an Excel file (.xlsx); {path.name!r} is none", "sheet", value=sheet, code="conflicting_fields"
        )


def read_rows(
    path: str | Path, notes: list[str] | None = None, sheet: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the heading of a CSV or Excel file and then its rows, each with its number, while the file is read.

    Empty rows and rows that repeat the heading are left out. Sentences for the user are added to ``notes``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("id; paid\\n\\n17; yes", file=file, flush=True)
    ...     list(read_rows(file.name))
    [(1, ['id', 'paid']), (3, ['17', ' yes'])]
    """
    check_sheet(Path(path), sheet)
    for item in _text_rows(Path(path), [] if notes is None else notes, sheet):
        yield (1, item.names) if isinstance(item, CsvFormat) else item


def _text_rows(file: Path, notes: list[str], sheet: str | None) -> Iterator[CsvFormat | tuple[int, list[str]]]:
    """Yield the format of a CSV or Excel file, and then its rows with their numbers; errors name the file."""
    try:
        yield from text_rows(file, notes, sheet)
    except FileNotFoundError:
        raise InputError("data", str(file), "a file that exists", code="missing_file") from None
    except (InputError, OSError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, InputError) and error.field == "sheet":
            raise
        raise InputError.unreadable("data", file, error) from None


def text_rows(file: Path, notes: list[str], sheet: str | None) -> Iterator[CsvFormat | tuple[int, list[str]]]:
    """Yield the format of a CSV or Excel file, and then its rows with their numbers."""
    if is_workbook(file):
        opened = open_sheet(file, sheet)
        notes += opened.notes
        layout, cells = CsvFormat(file, UTF8, ",", opened.heading), opened.rows
    else:
        layout = detect_format(file)
        cells = layout.rows()
    notes += layout.notes
    repeated, rows = 0, 0
    for line, row in cells:
        if layout.is_heading(row):
            repeated += 1
            continue
        if not rows:
            yield layout
        rows += 1
        yield line, row
    if not rows:
        lines = len(layout.heading[:1])
        raise InputError.because(
            f"must have a header and at least one row; it has {counted(lines, 'line')}",
            "data",
            label="it",
            code="invalid_file",
        )
    if repeated:
        notes.append(repeated_headings_note(repeated))


def _engine(path: str, notes: list[str]) -> dict[str, list[Any]]:
    """Read the columns of a file with DuckDB."""
    from lenience.files.source import open_source, reading, without_engine_warnings

    with without_engine_warnings(), reading(path):
        table, backend = open_source(path, notes=notes)
        try:
            columns: dict[str, list[Any]] = backend.to_pyarrow(table).to_pydict()
        finally:
            backend.disconnect()
    return columns


def _arff(file: Path) -> dict[str, list[Any]]:
    """Read the columns of an ARFF file."""
    from scipy.io import arff

    try:
        data, meta = arff.loadarff(str(file))
    except (arff.ArffError, ValueError, StopIteration) as error:
        raise InputError.unreadable("data", file, f"it is not an ARFF file ({error})", "invalid_file") from None
    return {
        column: [value.decode() if isinstance(value, bytes) else value for value in data[column].tolist()]
        for column in meta.names()
    }
