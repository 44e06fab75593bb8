"""Files of rows as their columns, as they are written: what :func:`lenience.fit_history` reads, and ARFF.

Text is separated by commas, semicolons, tabs or bars, whichever divides the heading into the most columns, and may be
packed by gzip; for it no extra is needed. Parquet, Zstandard, folders and patterns are read by the engine of histories.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.csv_text import HEAD, WINDOWS, opened, separator, told, with_points
from lenience.files.unreadable import PARQUET, UTF8, begins, check_text


def columns_of(path: str | Path, notes: list[str] | None = None) -> dict[str, list[Any]]:
    """The columns of a file by name, as they are written; of Parquet as they are typed.

    Numbers with decimal commas get points; what is to be said of such things is added to ``notes``.
    """
    said = [] if notes is None else notes
    file = Path(path)
    if not file.exists() and not glob(str(path), recursive=True):
        raise InputError("data", str(path), "a file that exists", code="missing_file")
    if file.suffix.lower() == ".arff":
        return _arff(file)
    if not file.is_file() or file.suffix == ".zst" or begins(file) == PARQUET or ".parquet" in file.name:
        return _engine(str(path), said)
    lines = rows_of(file, said)
    _, heading = next(lines)
    columns: list[list[str]] = [[] for _ in heading]
    for number, row in lines:
        if len(row) != len(heading):
            raise InputError.because(
                f"must have {len(heading)} values, not {len(row)}",
                "data",
                label=f"line {number:,} of {str(file)!r}",
                value=len(row),
                code="invalid_file",
            )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    found: dict[str, list[Any]] = dict(zip(heading, columns, strict=True))
    mark = _mark(file, check_text(file))
    for name, values in found.items():
        pointed = with_points(values, mark)
        if pointed is not None:
            said.append(told(name, next(value for value in values if "," in value)))
            found[name] = pointed
    return found


def rows_of(path: str | Path, notes: list[str] | None = None) -> Iterator[tuple[int, list[str]]]:
    """The heading of a text file and then its rows that are not empty, each with its line, read as they are asked for.

    That its letters are not in UTF-8 is added to ``notes``.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("id; paid\\n\\n17; yes", file=file, flush=True)
    ...     list(rows_of(file.name))
    [(1, ['id', 'paid']), (3, ['17', ' yes'])]
    """
    file = Path(path)
    try:
        encoding = check_text(file)
        if encoding != UTF8 and notes is not None:
            notes.append(WINDOWS)
        mark = _mark(file, encoding)
        with opened(file, encoding) as text:
            reader = csv.reader(text, delimiter=mark)
            full = ((reader.line_num, row) for row in reader if row)
            line, heading = next(full, (0, []))
            names = [name.strip() for name in heading]
            for name, often in Counter(names).items():
                if often > 1:
                    raise InputError.because(
                        f"the names of columns must differ; {name!r} is there twice", value=name, code="duplicate"
                    )
            first = next(full, None)
            if first is None:
                raise InputError.because(
                    f"it must have a header and at least one row, and has {counted(len(names[:1]), 'line')}",
                    code="invalid_file",
                )
            yield line, names
            yield first
            yield from full
    except FileNotFoundError:
        raise InputError("data", str(path), "a file that exists", code="missing_file") from None
    except (InputError, OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError.unreadable("data", path, error) from None


def _mark(file: Path, encoding: str) -> str:
    with opened(file, encoding) as text:
        return separator(list(islice(text, HEAD)))


def _engine(path: str, notes: list[str]) -> dict[str, list[Any]]:
    from lenience.files.source import open_source, quietly, reading

    with quietly(), reading(path):
        table, backend = open_source(path, notes=notes)
        try:
            found: dict[str, list[Any]] = backend.to_pyarrow(table).to_pydict()
        finally:
            backend.disconnect()
    return found


def _arff(file: Path) -> dict[str, list[Any]]:
    from scipy.io import arff

    try:
        data, meta = arff.loadarff(str(file))
    except (arff.ArffError, ValueError, StopIteration) as error:
        raise InputError.unreadable("data", file, f"it is not an ARFF file ({error})", "invalid_file") from None
    return {
        column: [value.decode() if isinstance(value, bytes) else value for value in data[column].tolist()]
        for column in meta.names()
    }
