"""Read a sheet of an Excel workbook (.xlsx) as rows of texts, like those of a CSV file.

A cell becomes the text that a CSV file would have: a date is 2024-12-31, a number has a decimal point, a percentage is
a fraction (12% is 0.12), and a formula is the value that Excel stored with it. Rows above the heading and empty rows
are left out. Cells that are merged over several rows have their value in each of them.

A small file can unpack to terabytes, or have one cell in the last row and column so that a reader reserves memory for
all the others. Both are checked before the workbook is opened.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.unreadable import CHUNK, begins

ZIP = b"PK\x03\x04"
WORKBOOK = "xl/workbook.xml"
MOST_UNPACKED = 1 << 30  # bytes of all parts of a workbook
MOST_CELLS = 50_000_000  # of the rectangle that holds all cells of a sheet
MOST_PARTS = 10_000  # files in the archive
HEAD_ROWS = 50  # rows in which to look for the heading
CELL = re.compile(rb'<(?:\w+:)?c\s(?:[^>]*?\s)?r="([A-Z]{1,3})(\d{1,7})"[^>]*[^/]>')  # a cell that is not empty
OVERLAP = 4_096  # bytes: longer than the start of a cell


class Sheet(NamedTuple):
    """A sheet: its heading, and its rows with their numbers in Excel."""

    name: str
    heading: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]
    notes: list[str]


def is_workbook(path: Path) -> bool:
    """Return whether a file is an Excel workbook of the current format."""
    if not path.is_file() or begins(path) != ZIP:
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return WORKBOOK in archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError):
        return False


def open_sheet(path: Path, sheet: str | None = None) -> Sheet:
    """Open a sheet of a workbook.

    Parameters
    ----------
    path
        The workbook.
    sheet
        The name of the sheet; by default the first that is not empty.

    Raises
    ------
    InputError
        If the workbook is damaged or too large, or has no such sheet.
    """
    import python_calamine as calamine

    _check_size(path)
    try:
        workbook = calamine.CalamineWorkbook.from_path(str(path))
        visible = [
            each.name
            for each in workbook.sheets_metadata
            if each.typ == calamine.SheetTypeEnum.WorkSheet and each.visible == calamine.SheetVisibleEnum.Visible
        ]
        if sheet is not None:
            if sheet not in workbook.sheet_names:
                raise InputError.unknown_name("sheet", sheet, workbook.sheet_names, "the sheets")
            chosen: Any = workbook.get_sheet_by_name(sheet)
        else:
            chosen = next((one for name in visible if (one := workbook.get_sheet_by_name(name)).start), None)
    except calamine.PasswordError:
        raise InputError.because("it is protected by a password", code="invalid_file") from None
    except calamine.CalamineError as error:
        raise InputError.because(f"the workbook is damaged ({error})", code="invalid_file") from None
    if chosen is None or chosen.start is None:
        empty = "the workbook is empty" if sheet is None else f"the sheet {sheet!r} is empty"
        raise InputError.because(empty, code="invalid_file")
    others = [name for name in visible if name != chosen.name] if sheet is None else []
    return _sheet(chosen, others)


def _sheet(sheet: Any, others: Sequence[str]) -> Sheet:
    """Find the heading of a sheet, and return its rows below."""
    cells = _without_empty(enumerate(sheet.iter_rows(), 1))
    head = list(islice(cells, HEAD_ROWS))
    widest = max(_filled(row) for _, row in head)
    place = next((i for i, (_, row) in enumerate(head) if 2 * _filled(row) >= widest and _only_texts(row)), 0)
    number, names = head[place]
    width = max(i for i, cell in enumerate(names) if cell != "") + 1
    notes = []
    if others:
        listed = ", ".join(repr(name) for name in others)
        notes.append(f"The sheet {sheet.name!r} was read. To read another, give its name: {listed}.")
    if place:
        notes.append(f"The heading is in row {number}. {counted(place, 'row')} above it left out.")
    heading = tuple(_text(cell).strip() for cell in names[:width])
    merged = [
        (top, left - sheet.start[1], bottom, right - sheet.start[1])
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or ()
        if bottom >= number
    ]

    def rows() -> Iterator[tuple[int, list[str]]]:
        filled = _fill_merged([*head[place + 1 :]], cells, merged) if merged else _joined(head[place + 1 :], cells)
        for row_number, row in filled:
            if _filled(row[width:]):
                raise InputError.because(
                    f"row {row_number:,} has a value to the right of the heading's last column", code="invalid_file"
                )
            yield row_number, [_text(cell) for cell in row[:width]]

    return Sheet(sheet.name, heading, rows(), notes)


Rows = Iterator[tuple[int, list[Any]]]


def _without_empty(rows: Iterator[tuple[int, list[Any]]]) -> Rows:
    return ((number, row) for number, row in rows if _filled(row))


def _joined(first: Sequence[tuple[int, list[Any]]], rest: Rows) -> Rows:
    yield from first
    yield from rest


def _fill_merged(first: Sequence[tuple[int, list[Any]]], rest: Rows, merged: Sequence[tuple[int, ...]]) -> Rows:
    """Write the value of merged cells into each of them, row by row."""
    waiting = sorted(merged, reverse=True)
    active: list[tuple[int, int, int, Any]] = []
    for number, row in _joined(first, rest):
        while waiting and waiting[-1][0] < number:  # the ranges count rows from 0
            top, left, bottom, right = waiting.pop()
            if top == number - 1 and left < len(row):
                active.append((bottom, left, right, row[left]))
        active = [area for area in active if area[0] >= number - 1]
        for _, left, right, value in active:
            for column in range(left, min(right + 1, len(row))):
                row[column] = value
        yield number, row


def _filled(row: Sequence[Any]) -> int:
    """Return the number of cells that are not empty."""
    return sum(cell != "" and not (isinstance(cell, str) and not cell.strip()) for cell in row)


def _only_texts(row: Sequence[Any]) -> bool:
    return all(isinstance(cell, str) for cell in row)


def _text(cell: Any) -> str:
    """Return a cell as the text that a CSV file would have.

    >>> [_text(cell) for cell in (12.0, 0.1 + 0.2, True, dt.datetime(2024, 12, 31), dt.datetime(2024, 12, 31, 14, 30))]
    ['12', '0.3', 'true', '2024-12-31', '2024-12-31 14:30:00']
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        return f"{cell:.15g}" if abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.datetime):
        midnight = cell.time() == dt.time()
        return cell.date().isoformat() if midnight else cell.isoformat(sep=" ", timespec="seconds")
    if isinstance(cell, dt.timedelta):
        return f"{cell / dt.timedelta(days=1):.15g}"
    return str(cell)


def _check_size(path: Path) -> None:
    """Raise InputError if a workbook would need too much memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MOST_PARTS or unpacked > MOST_UNPACKED:
                raise InputError.because(
                    f"the workbook has {unpacked / 1e9:.1f} GB in {len(parts):,} parts when it is unpacked; at most "
                    f"{MOST_UNPACKED / 1e9:.1f} GB in {MOST_PARTS:,} parts are read",
                    hint="Save the sheet as CSV.",
                    code="too_large",
                )
            for part in parts:
                if part.filename.startswith("xl/worksheets/") and part.filename.endswith(".xml"):
                    rows, columns = _extent(archive, part)
                    if rows * columns > MOST_CELLS:
                        raise InputError.because(
                            f"a sheet goes to row {rows:,} and column {columns:,}; at most {MOST_CELLS:,} cells are "
                            "read",
                            hint="Delete the cells far from the table, or save the sheet as CSV.",
                            code="too_large",
                        )
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise InputError.because(f"the workbook is damaged ({error})", code="invalid_file") from None


def _extent(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the last row and the last column of a sheet that have a value."""
    last_row, columns, tail = 0, set[bytes](), b""
    with archive.open(part) as file:
        while chunk := file.read(CHUNK):
            places = CELL.findall(tail + chunk)
            columns.update(column for column, _ in places)
            last_row = max([last_row, *(int(row) for _, row in places)])
            tail = chunk[-OVERLAP:]
    return last_row, max((_column_number(column) for column in columns), default=0)


def _column_number(letters: bytes) -> int:
    """Return the number of a column.

    >>> _column_number(b"A"), _column_number(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
