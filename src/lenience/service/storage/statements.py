"""The statements that every transaction of the writer runs, as text for the driver.

SQLAlchemy's own statements cost more time in Python than the database needs to run them. Each statement here is for
any number of rows: SQLite gets as many placeholders, PostgreSQL one array for each column. The arrays are written as
text, which takes a tenth of the driver's time for lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, Dialect, Double, Integer, LargeBinary, SmallInteger, String, Table

MOST_ROWS = 128  # rows that one statement inserts (SQLite); a power of two
MOST_KEYS = 500  # keys that one statement looks up (SQLite)
MOST_PLANS = 2_000  # statements in the cache


class Statement(NamedTuple):
    """A statement and its values."""

    text: str
    values: Sequence[Any] = ()


class _Plan(NamedTuple):
    """A statement without its values, and the function that writes the array of each column (PostgreSQL)."""

    text: str
    arrays: tuple[Callable[[Sequence[Any]], str], ...]


class Statements:
    """Writes the statements in the dialect of a database.

    Parameters
    ----------
    dialect : Dialect
        That of the database.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._sqlite = dialect.name == "sqlite"
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def insert(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> list[Statement]:
        """Return the statements that insert rows, whose values are in the order of the columns."""
        return self._of_rows("insert", table, (), rows)

    def add(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> list[Statement]:
        """Return the statements that add numbers to rows, or insert the rows that do not exist.

        The values of a row are in the order of the columns. All columns with numbers that are not in the primary key
        are added up.
        """
        return self._of_rows("add", table, (), rows)

    def update(
        self, table: Table, key: str, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> list[Statement]:
        """Return the statements that set columns of rows. The values of a row follow the names, then its key."""
        return self._of_rows("update", table, (*names, key), rows)

    def select(self, table: Table, names: tuple[str, ...], key: str, values: Sequence[Any]) -> list[Statement]:
        """Return the statements that read columns of the rows with these keys. Without names, read all columns."""
        if not values:
            return []
        if not self._sqlite:
            plan = self._plan("select", table, names, key)
            return [Statement(plan.text, (plan.arrays[0](values),))]
        parts = (values[start : start + MOST_KEYS] for start in range(0, len(values), MOST_KEYS))
        return [Statement(self._plan("select", table, names, key, len(part)).text, tuple(part)) for part in parts]

    def lock(self, table: Table, ids: Sequence[int]) -> Statement:
        """Return the statement that locks rows in the order of their ids, and reads them."""
        if self._sqlite:  # the only writer holds them anyway
            return Statement(self._plan("select", table, (), "id", len(ids)).text, tuple(ids))
        plan = self._plan("lock", table, (), "id")
        return Statement(plan.text, (plan.arrays[0](ids),))

    def _of_rows(
        self, kind: str, table: Table, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> list[Statement]:
        if not rows:
            return []
        if not self._sqlite:
            plan = self._plan(kind, table, names)
            arrays = [array(column) for array, column in zip(plan.arrays, zip(*rows, strict=True), strict=True)]
            return [Statement(plan.text, arrays)]
        return [
            Statement(self._plan(kind, table, names, None, size).text, _flat(rows[start : start + size]))
            for start, size in _parts(len(rows))
        ]

    def _plan(self, kind: str, table: Table, names: tuple[str, ...], key: str | None = None, size: int = 0) -> _Plan:
        """Return the plan of a statement, from the cache if it was used before."""
        known = (kind, table.name, names, key, size)
        plan = self._plans.get(known)
        if plan is None:
            if len(self._plans) > MOST_PLANS:
                self._plans.clear()
            columns = names or tuple(column.name for column in table.columns)
            listed = columns if key is None else (*columns, key)
            arrays = tuple(_array_of(table.columns[name]) for name in (listed if key is None else [key]))
            plan = self._plans[known] = _Plan(_WRITERS[kind, self._sqlite](self, table, listed, size), arrays)
        return plan

    def _unnested(self, table: Table, names: Sequence[str]) -> str:
        """Return the rows that arrays make, one for each column."""
        arrays = (f"%s::{self._type(table, name)}[]" for name in names)
        return f"unnest({', '.join(arrays)}) AS rows ({', '.join(names)})"

    def _type(self, table: Table, name: str) -> str:
        """Return the type of a column without its length."""
        return str(table.columns[name].type.compile(self._dialect)).split("(")[0]

    def _insert_sqlite(self, table: Table, names: tuple[str, ...], size: int) -> str:
        values = ", ".join([f"({', '.join('?' * len(names))})"] * size)
        # OR FAIL: a failure rolls back the whole transaction, so SQLite need not save each statement.
        return f"INSERT OR FAIL INTO {table.name} ({', '.join(names)}) VALUES {values}"

    def _insert_postgres(self, table: Table, names: tuple[str, ...], size: int) -> str:
        return f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM {self._unnested(table, names)}"

    def _add_sqlite(self, table: Table, names: tuple[str, ...], size: int) -> str:
        values = ", ".join([f"({', '.join('?' * len(names))})"] * size)
        return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {values} {_added(table)}"

    def _add_postgres(self, table: Table, names: tuple[str, ...], size: int) -> str:
        return f"{self._insert_postgres(table, names, size)} {_added(table)}"

    def _update_sqlite(self, table: Table, names: tuple[str, ...], size: int) -> str:
        renamed = ", ".join(f"column{i} AS {name}" for i, name in enumerate(names, start=1))
        given = ", ".join([f"({', '.join('?' * len(names))})"] * size)
        source = f"(SELECT {renamed} FROM (VALUES {given}))"
        return f"UPDATE OR FAIL {table.name} SET {_set(names)} FROM {source} AS given {_joined(table, names)}"

    def _update_postgres(self, table: Table, names: tuple[str, ...], size: int) -> str:
        source = f"(SELECT * FROM {self._unnested(table, names)})"
        return f"UPDATE {table.name} SET {_set(names)} FROM {source} AS given {_joined(table, names)}"

    def _select_sqlite(self, table: Table, names: tuple[str, ...], size: int) -> str:
        return f"SELECT {', '.join(names[:-1])} FROM {table.name} WHERE {names[-1]} IN ({', '.join('?' * size)})"

    def _select_postgres(self, table: Table, names: tuple[str, ...], size: int) -> str:
        keys = f"%s::{self._type(table, names[-1])}[]"
        return f"SELECT {', '.join(names[:-1])} FROM {table.name} WHERE {names[-1]} = ANY({keys})"

    def _lock_postgres(self, table: Table, names: tuple[str, ...], size: int) -> str:
        return f"{self._select_postgres(table, names, size)} ORDER BY {names[-1]} FOR UPDATE"


_WRITERS: dict[tuple[str, bool], Callable[[Statements, Table, tuple[str, ...], int], str]] = {
    ("insert", True): Statements._insert_sqlite,
    ("insert", False): Statements._insert_postgres,
    ("add", True): Statements._add_sqlite,
    ("add", False): Statements._add_postgres,
    ("update", True): Statements._update_sqlite,
    ("update", False): Statements._update_postgres,
    ("select", True): Statements._select_sqlite,
    ("select", False): Statements._select_postgres,
    ("lock", False): Statements._lock_postgres,
}


def _added(table: Table) -> str:
    """Return the clause that adds the numbers of a row to those that are there."""
    keys = [column.name for column in table.primary_key]
    numbers = [column.name for column in table.columns if column.name not in keys and not _is_text(column)]
    sums = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in numbers)
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {sums}"


def _is_text(column: Column[Any]) -> bool:
    return isinstance(column.type, String)


def _set(names: Sequence[str]) -> str:
    return ", ".join(f"{name} = given.{name}" for name in names[:-1])


def _joined(table: Table, names: Sequence[str]) -> str:
    return f"WHERE {table.name}.{names[-1]} = given.{names[-1]}"


def _flat(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    return list(chain.from_iterable(rows))


def _array_of(column: Column[Any]) -> Callable[[Sequence[Any]], str]:
    """Return the function that writes values of a column as the text of a PostgreSQL array."""
    if isinstance(column.type, Integer | BigInteger | SmallInteger | Double):
        return number_array
    return binary_array if isinstance(column.type, LargeBinary) else text_array


def number_array(values: Sequence[float | None]) -> str:
    """Return numbers as the text of a PostgreSQL array.

    >>> number_array([1, None, 0.1])
    '{1,NULL,0.1}'
    """
    return f"{{{','.join(['NULL' if value is None else str(value) for value in values])}}}"


def text_array(values: Sequence[str | None]) -> str:
    r"""Return texts as the text of a PostgreSQL array.

    >>> text_array(["a", None, "say \"no\"", "NULL", "back\\slash"])
    '{"a",NULL,"say \\"no\\"","NULL","back\\\\slash"}'
    """
    return f"{{{','.join(['NULL' if value is None else _quoted(value) for value in values])}}}"


def binary_array(values: Sequence[bytes | None]) -> str:
    r"""Return bytes as the text of a PostgreSQL array.

    >>> binary_array([b"\x00a"])
    '{"\\\\x0061"}'
    """
    return text_array([None if value is None else f"\\x{value.hex()}" for value in values])


def _quoted(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    return f'"{text}"'


def _parts(rows: int) -> Iterator[tuple[int, int]]:
    """Yield the start and size of each statement's rows. Sizes are powers of two, so that few statements differ.

    Statements have many rows because the driver releases the interpreter at each and may then wait for it.

    >>> list(_parts(261))
    [(0, 128), (128, 128), (256, 4), (260, 1)]
    """
    start = 0
    while start < rows:
        size = min(MOST_ROWS, 1 << ((rows - start).bit_length() - 1))
        yield start, size
        start += size
