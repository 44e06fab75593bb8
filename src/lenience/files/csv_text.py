"""CSV files as people save them: what separates their values, how their letters and their numbers are written.

Spreadsheets of half of Europe separate by semicolons and write 1.234,5 for 1234.5; those of Windows often write letters
in its own code page. One reader for the commands and the dashboard: whoever asks is told what was read as what.
"""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from lenience.core.errors import InputError
from lenience.files.unreadable import CHUNK, UTF8, check_text, unpacked
from lenience.files.vocabulary import NOTHING, with_point

csv.field_size_limit(2**31 - 1)  # a heading is one field by all separators but its own, and may be long

SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 5_000  # beyond which an engine takes minutes to plan a query
HEAD = 20  # lines looked at for the heading: a quoted name may run over several
COMMA = r"[-+]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?"  # a number with a decimal comma, its thousands with points or without
SAMPLE = 1_000  # rows that must all be such numbers before all are looked at
WINDOWS = "The file is not in UTF-8: its letters are read as those of Windows (cp1252)."


def separator(lines: Sequence[str]) -> str:
    """What separates the values of a text, by its heading.

    >>> separator(["id;day;paid, or not\\n"]), separator(["id\\n"])
    (';', ',')
    """
    return max(SEPARATORS, key=lambda mark: len(next(csv.reader(lines, delimiter=mark), [])))


def with_points(values: Sequence[str], mark: str) -> list[str] | None:
    """Numbers with a decimal comma as numbers with a point, if all the values of a column are such; else None.

    Where commas separate values they separate thousands too, and without any comma 1.234 is what it seems.

    >>> with_points(["1.234,5", "603", ""], ";"), with_points(["603,7", "603.7"], ";"), with_points(["603,7"], ",")
    (['1234.5', '603', ''], None, None)
    """
    if mark == "," or not any("," in value for value in values):
        return None
    if not all(re.fullmatch(COMMA, text := value.strip()) or text.lower() in NOTHING for value in values):
        return None
    return [with_point(value) for value in values]


def told(column: str, example: str) -> str:
    """What is said of a column of numbers with decimal commas.

    >>> told("Score", "1.603,7")
    "Score: numbers with a decimal comma, '1.603,7' read as 1603.7."
    """
    return f"{column}: numbers with a decimal comma, {example!r} read as {with_point(example)}."


def heading(path: Path) -> tuple[str, list[str]]:
    """What separates the values of a text in UTF-8, and the names in its first line."""
    with opened(path, UTF8) as text:
        lines = list(islice(text, HEAD))
    mark = separator(lines)
    names = [name.strip() for name in next(csv.reader(lines, delimiter=mark), [])]
    if len(names) > MOST_COLUMNS:
        raise InputError.because(
            f"its first line has {len(names):,} values; at most {MOST_COLUMNS:,} columns are read",
            value=len(names),
            code="too_large",
        )
    often = Counter(name.lower() for name in names)
    twice = next((name for name in names if name and often[name.lower()] > 1), None)
    if twice is not None:
        raise InputError.because(
            f"the names of columns must differ; {twice!r} is there twice", value=twice, code="duplicate"
        )
    return mark, names


def scan(paths: Sequence[Path], mark: str, names: Sequence[str]) -> str:
    """How DuckDB reads such files: every line has as many values as the heading, and every value is a text."""
    listed = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    how = f"delim = {literal(mark)}, quote = '\"', escape = '\"', header = true, auto_detect = false"
    files = ", ".join(literal(str(path)) for path in paths)
    return f"read_csv([{files}], {how}, columns = {{{listed}}}, max_line_size = {1 << 24})"


def numbers_read(engine: Any, table: str, mark: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """A query of the table in which columns of numbers with decimal commas have points, and what is to be said."""
    if mark == ",":
        return f"SELECT * FROM {table}", []
    sample = _commas(engine, f"(SELECT * FROM {table} LIMIT {SAMPLE})", names)
    found = _commas(engine, table, list(sample))
    parts = ", ".join(
        f"replace(replace({identifier(name)}, '.', ''), ',', '.') AS {identifier(name)}" for name in found
    )
    change = f" REPLACE ({parts})" if found else ""
    return f"SELECT *{change} FROM {table}", [told(name, example) for name, example in found.items()]


@contextmanager
def opened(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a file, unpacked if it is packed."""
    with unpacked(path) as file:
        yield io.TextIOWrapper(file, encoding=encoding, newline="")


@contextmanager
def in_utf8(path: Path, parquet: bool = True) -> Iterator[tuple[Path, list[str]]]:
    """A text in UTF-8: the file itself, or a copy for as long as it is needed; and what is to be said of it."""
    encoding = check_text(path, parquet)
    if encoding == UTF8:
        yield path, []
        return
    handle, name = tempfile.mkstemp(suffix=".csv")
    try:
        with opened(path, encoding) as old, os.fdopen(handle, "w", encoding="utf-8", newline="") as new:
            while chunk := old.read(CHUNK):
                new.write(chunk)
        yield Path(name), [WINDOWS]
    finally:
        os.unlink(name)


def literal(value: str) -> str:
    """A text as a value in a query.

    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A text as the name of a column in a query."""
    return '"' + name.replace('"', '""') + '"'


def _commas(engine: Any, table: str, names: Sequence[str]) -> dict[str, str]:
    """The columns all of whose values are numbers, some with a decimal comma; each with the first of these in order."""
    if not names:
        return {}
    nothing = ", ".join(literal(word) for word in NOTHING)
    asked = []
    for name in names:
        text = f"trim({identifier(name)})"
        asked.append(f"bool_and(regexp_full_match({text}, {literal(COMMA)}) OR lower({text}) IN ({nothing}))")
        asked.append(f"min({text}) FILTER (contains({text}, ','))")
    row = engine.execute(f"SELECT {', '.join(asked)} FROM {table}").fetchone()
    return {name: row[2 * i + 1] for i, name in enumerate(names) if row[2 * i] and row[2 * i + 1] is not None}
