"""Decide how to read a CSV file: its encoding, separator, heading, repeated headings and decimal commas.

Spreadsheets in half of Europe separate values by semicolons and write 1.234,5 for 1234.5. Windows often saves letters
in its own code page. Tools that append files to each other repeat the heading. Both readers of CSV files use these
decisions: :mod:`lenience.files.columns`, which needs no extra package, and :mod:`lenience.files.source`, which uses
DuckDB. ``notes`` are sentences for the user about what was decided.
"""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from lenience.core.errors import InputError
from lenience.core.formatting import counted, plural
from lenience.files.unreadable import CHUNK, UTF8, check_text, decompressed
from lenience.files.vocabulary import MISSING, with_point

csv.field_size_limit(2**31 - 1)  # with a wrong separator, a long heading is one long field

SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 5_000  # with more, DuckDB takes minutes to plan a query
HEAD_LINES = 20  # lines in which to look for the heading: a quoted name may span several lines
DECIMAL_COMMA = r"[-+]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?"  # a number with a decimal comma; points may separate thousands
SAMPLE = 1_000  # rows that DuckDB checks for such numbers before it checks every row
WINDOWS = "The file is not in UTF-8. It was read in the Windows encoding (cp1252)."


class CsvFormat(NamedTuple):
    """The format of one CSV file.

    Parameters
    ----------
    path
        The file.
    encoding
        The encoding of its letters.
    separator
        The character between two values.
    heading
        The first line's values, without white space around them.
    """

    path: Path
    encoding: str
    separator: str
    heading: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, all different; see :func:`column_names`."""
        return column_names(self.heading)

    @property
    def notes(self) -> list[str]:
        """What to tell the user about the encoding and the heading."""
        return [*([] if self.encoding == UTF8 else [WINDOWS]), *repeated_names_notes(self.heading)]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line number and the values of every row below the heading that is not empty."""
        with open_text(self.path, self.encoding) as text:
            reader = csv.reader(text, delimiter=self.separator)
            rows = ((reader.line_num, row) for row in reader if row)
            next(rows, None)
            yield from rows

    def is_heading(self, row: Sequence[str]) -> bool:
        """Return whether a row repeats the heading."""
        return len(row) == len(self.heading) and all(
            value.strip() == name for value, name in zip(row, self.heading, strict=True)
        )


def detect_format(path: Path, parquet: bool = True) -> CsvFormat:
    """Detect the format of a CSV file.

    Parameters
    ----------
    path
        The file, perhaps compressed with gzip or Zstandard.
    parquet
        Whether the caller reads Parquet too; the message for a file that is not text then says so.

    Raises
    ------
    InputError
        If the file is not text, or its heading has too many columns.
    """
    encoding = check_text(path, parquet)
    with open_text(path, encoding) as text:
        lines = list(islice(text, HEAD_LINES))
    separator = separator_of(lines)
    heading = tuple(name.strip() for name in _first_row(lines, separator))
    if len(heading) > MOST_COLUMNS:
        raise InputError.because(
            f"its first line has {len(heading):,} values; at most {MOST_COLUMNS:,} columns are read", code="too_large"
        )
    return CsvFormat(path, encoding, separator, heading)


def column_names(heading: Sequence[str]) -> list[str]:
    """Return the names of columns, all different.

    A column without a name is called column0, column1, … by its position. If several have the same name (case does not
    matter, because it does not to most engines), each gets its number, so that a column that nobody uses blocks nothing
    and none is taken for another.

    >>> column_names(["id", "", "note", "Note"])
    ['id', 'column1', 'note (1)', 'Note (2)']
    """
    repeated = _repeated(heading)
    taken, names, seen = {name.lower() for name in heading}, list[str](), Counter[str]()
    for i, name in enumerate(heading):
        unique = name or f"column{i}"
        if name.lower() in repeated:
            seen[name.lower()] += 1
            unique = f"{name} ({seen[name.lower()]})"
        while unique != name and unique.lower() in taken:
            unique += "_"
        taken.add(unique.lower())
        names.append(unique)
    return names


def repeated_names_notes(heading: Sequence[str]) -> list[str]:
    """Return the notes about columns that have the same name.

    >>> repeated_names_notes(["id", "note", "note"])
    ["2 columns are named 'note'. They are called 'note (1)' and 'note (2)' here."]
    """
    notes = []
    for lower in _repeated(heading):
        places = [i for i, name in enumerate(heading) if name.lower() == lower]
        *most, last = [repr(column_names(heading)[i]) for i in places]
        called = f"{', '.join(most)} and {last}"
        notes.append(f"{len(places)} columns are named {heading[places[0]]!r}. They are called {called} here.")
    return notes


def _repeated(heading: Sequence[str]) -> list[str]:
    """Return the names that several columns have, in lower case."""
    return [name for name, count in Counter(name.lower() for name in heading if name).items() if count > 1]


def separator_of(lines: Sequence[str]) -> str:
    """Return the separator that divides the heading into the most columns.

    >>> separator_of(["id;day;paid, or not\\n"]), separator_of(["id\\n"])
    (';', ',')
    """
    return max(SEPARATORS, key=lambda mark: len(_first_row(lines, mark)))


def _first_row(lines: Sequence[str], separator: str) -> list[str]:
    """Return the values of the first line that is not empty."""
    return next((row for row in csv.reader(lines, delimiter=separator) if row), [])


def replace_decimal_commas(values: Sequence[str], separator: str) -> list[str] | None:
    """Return a column with points for decimal commas, or None if it is not a column of such numbers.

    In a file whose values are separated by commas, a comma in a number separates thousands, so nothing is replaced. In
    a column without any comma, 1.234 is read as it is written.

    Examples
    --------
    >>> replace_decimal_commas(["1.234,5", "603", ""], ";"), replace_decimal_commas(["603,7", "603.7"], ";")
    (['1234.5', '603', ''], None)
    >>> replace_decimal_commas(["603,7"], ",") is None
    True
    """
    if separator == "," or not any("," in value for value in values):
        return None
    if not all(re.fullmatch(DECIMAL_COMMA, text := value.strip()) or text.lower() in MISSING for value in values):
        return None
    return [with_point(value) if re.fullmatch(DECIMAL_COMMA, value.strip()) else value for value in values]


def decimal_comma_note(column: str, example: str) -> str:
    """Return the note about a column of numbers with decimal commas.

    >>> decimal_comma_note("Score", "1.603,7")
    "Score: numbers with a decimal comma, '1.603,7' read as 1603.7."
    """
    return f"{column}: numbers with a decimal comma, {example!r} read as {with_point(example)}."


def repeated_headings_note(count: int) -> str:
    """Return the note about repeated headings.

    >>> repeated_headings_note(2)
    '2 rows left out: they repeat the heading.'
    """
    return f"{counted(count, 'row')} left out: {plural(count, 'it repeats', 'they repeat')} the heading."


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open the text of a file, decompressed if its ending says that it is compressed."""
    with decompressed(path) as file:
        yield io.TextIOWrapper(file, encoding=encoding, newline="")


class CsvQuery(NamedTuple):
    """A query with which DuckDB reads CSV files.

    Parameters
    ----------
    sql
        The query; every column is text.
    notes
        What to tell the user about how the files were read.
    temporary
        Whether it reads a copy in UTF-8, which is deleted when the context ends.
    heading
        The names in the first line, empty where a column has none.
    """

    sql: str
    notes: list[str]
    temporary: bool
    heading: tuple[str, ...]


@contextmanager
def csv_query(engine: Any, paths: Sequence[Path]) -> Iterator[CsvQuery]:
    """Decide how to read CSV files that have the same heading, and yield DuckDB's query for them.

    Parameters
    ----------
    engine
        A DuckDB connection.
    paths
        The files, all with the same heading.

    Raises
    ------
    InputError
        If a file cannot be read as CSV, or its heading differs from the first file's.
    """
    with ExitStack() as copies:
        texts: list[Path] = []
        formats: list[CsvFormat] = []
        for path in paths:
            try:
                formats.append(detect_format(path))
            except InputError as error:
                raise (error.at(repr(path.name)) if len(paths) > 1 else error) from None
            if formats[-1][2:] != formats[0][2:]:
                raise InputError.because(
                    f"its files must have the same heading; that of {path.name!r} differs from the first",
                    code="invalid_file",
                )
            texts.append(copies.enter_context(_in_utf8(formats[-1])))
        first = formats[0]
        table = _scan(texts, first)
        notes = list(dict.fromkeys(note for file_format in formats for note in file_format.notes))
        table, headings = without_headings(engine, table, first.names, first.heading)
        notes += headings
        commas = _decimal_comma_columns(engine, table, first)
        parts = ", ".join(
            f"replace(replace({identifier(name)}, '.', ''), ',', '.') AS {identifier(name)}" for name in commas
        )
        change = f" REPLACE ({parts})" if commas else ""
        notes += [decimal_comma_note(name, example) for name, example in commas.items()]
        yield CsvQuery(f"SELECT *{change} FROM {table}", notes, texts != [*paths], first.heading)


def without_headings(engine: Any, table: str, names: Sequence[str], heading: Sequence[str]) -> tuple[str, list[str]]:
    """Return a table in SQL without the rows that repeat the heading, and the note about them."""
    is_heading = _heading_condition(names, heading)
    count = int(engine.execute(f"SELECT count(*) FROM {table} WHERE {is_heading}").fetchone()[0])
    if not count:
        return table, []
    return f"(SELECT * FROM {table} WHERE NOT ({is_heading}))", [repeated_headings_note(count)]


def _heading_condition(names: Sequence[str], heading: Sequence[str]) -> str:
    """Return the SQL condition that a row repeats the heading."""
    # This costs next to nothing: the comparison of a row ends at the first value that differs.
    return " AND ".join(
        f"coalesce(trim(CAST({identifier(name)} AS VARCHAR)) = {literal(value)}, {literal(value)} = '')"
        for name, value in zip(names, heading, strict=True)
    )


def literal(value: str) -> str:
    """Return a text as a value in SQL.

    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a text as the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _in_utf8(file: CsvFormat) -> Iterator[Path]:
    """Yield a path of the text in UTF-8: the file itself, or a copy that is deleted afterwards."""
    if file.encoding == UTF8:
        yield file.path
        return
    handle, name = tempfile.mkstemp(suffix=".csv")
    try:
        with open_text(file.path, file.encoding) as old, os.fdopen(handle, "w", encoding="utf-8", newline="") as new:
            while chunk := old.read(CHUNK):
                new.write(chunk)
        yield Path(name)
    finally:
        os.unlink(name)


def _scan(paths: Sequence[Path], file: CsvFormat) -> str:
    """Return DuckDB's table function for the files: each line has as many values as the heading, all of them text."""
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in file.names)
    how = f"delim = {literal(file.separator)}, quote = '\"', escape = '\"', header = true, auto_detect = false"
    files = ", ".join(literal(str(path)) for path in paths)
    return f"read_csv([{files}], {how}, columns = {{{columns}}}, max_line_size = {1 << 24})"


def _decimal_comma_columns(engine: Any, table: str, file: CsvFormat) -> dict[str, str]:
    """Return the columns of numbers with decimal commas, each with its first such number in order of text."""
    if file.separator == ",":
        return {}
    sample = _decimal_commas_in(engine, f"(SELECT * FROM {table} LIMIT {SAMPLE})", file.names)
    return _decimal_commas_in(engine, table, list(sample))


def _decimal_commas_in(engine: Any, table: str, names: Sequence[str]) -> dict[str, str]:
    if not names:
        return {}
    missing = ", ".join(literal(word) for word in MISSING)
    parts = []
    for name in names:
        text = f"trim({identifier(name)})"
        parts.append(f"bool_and(regexp_full_match({text}, {literal(DECIMAL_COMMA)}) OR lower({text}) IN ({missing}))")
        parts.append(f"min({text}) FILTER (contains({text}, ','))")
    row = engine.execute(f"SELECT {', '.join(parts)} FROM {table}").fetchone()
    return {name: row[2 * i + 1] for i, name in enumerate(names) if row[2 * i] and row[2 * i + 1] is not None}
