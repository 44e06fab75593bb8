"""Checks that a database can be read in full: SQLite's own, and a count of rows by table and by index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DatabaseError

MOST_LINES = 50  # of SQLite's report
# The server chooses the way it counts. These settings leave it one way.
BY_TABLE = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")
BY_INDEX = ("enable_seqscan", "enable_bitmapscan")


class Damage(NamedTuple):
    """A damaged part of a database."""

    where: str
    what: str


def check_sqlite(connection: Connection, *, quick: bool) -> list[Damage]:
    """Return the damage that SQLite finds in its file, by table where it can be located.

    Parameters
    ----------
    connection : Connection
        A connection to the file.
    quick : bool
        Read every page, but do not compare each index with its table. This takes a fraction of the time.
    """
    pragma = "quick_check" if quick else "integrity_check"
    lines = _report(connection, f"PRAGMA {pragma}({MOST_LINES})")
    if not lines:
        return []
    located = [
        Damage(f"table {name}", line)
        for name in _table_names(connection)
        for line in _report(connection, f"PRAGMA {pragma}('{name}')")
    ]
    return (located or [Damage("the database file", line) for line in lines])[:MOST_LINES]


def count_rows(connection: Connection, table: str) -> Iterator[Damage]:
    """Count the rows of a table by the table and by its indexes, and yield the differences.

    A query that an index answers alone does not notice that the row itself is gone.
    """
    sqlite = connection.dialect.name == "sqlite"
    for index, by_table, by_index in _sqlite_counts(connection, table) if sqlite else _counts(connection, table):
        if by_table != by_index:
            counts = f"the table has {by_table:,} rows, but its index {index} has {by_index:,}"
            yield Damage(f"table {table}", counts)


def table_names(connection: Connection) -> list[str]:
    """Return the names of all tables, sorted."""
    if connection.dialect.name == "sqlite":
        return _table_names(connection)
    return sorted(inspect(connection).get_table_names())


def _report(connection: Connection, pragma: str) -> list[str]:
    try:
        rows = [str(row[0]) for row in connection.exec_driver_sql(pragma)]
    except (sqlite3.DatabaseError, DatabaseError) as error:
        return [str(error.orig if isinstance(error, DatabaseError) else error)]
    lines = [line for row in rows for line in row.splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def _table_names(connection: Connection) -> list[str]:
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        return [str(row[0]) for row in connection.exec_driver_sql(query)]
    except (sqlite3.DatabaseError, DatabaseError):
        return []


def _sqlite_counts(connection: Connection, table: str) -> Iterator[tuple[str, int, int]]:
    for row in connection.exec_driver_sql(f"PRAGMA index_list('{table}')").all():
        name, origin, partial = row[1], row[3], bool(row[4])
        condition = ""
        if partial:
            query = "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?"
            sql = str(connection.exec_driver_sql(query, (name,)).scalar_one())
            condition = sql[re.search(r"\sWHERE\s", sql).start() :]  # type: ignore[union-attr]
        elif origin == "pk" and _without_rowid(connection, table):
            continue  # the table itself
        counts = [
            int(connection.exec_driver_sql(f"SELECT count(*) FROM {table} {way}{condition}").scalar_one())
            for way in ("NOT INDEXED", f"INDEXED BY {name}")
        ]
        yield name, counts[0], counts[1]


def _without_rowid(connection: Connection, table: str) -> bool:
    query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    sql = str(connection.exec_driver_sql(query, (table,)).scalar_one())
    return sql.upper().rstrip().endswith("WITHOUT ROWID")


def _counts(connection: Connection, table: str) -> Iterator[tuple[str, int, int]]:
    counts = []
    for disabled in (BY_TABLE, BY_INDEX):
        for setting in disabled:
            connection.execute(text(f"SET LOCAL {setting} = off"))
        counts.append(int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()))
        for setting in disabled:
            connection.execute(text(f"SET LOCAL {setting} = on"))
    key = inspect(connection).get_pk_constraint(table)["name"]
    yield str(key), counts[0], counts[1]
