"""Copy a database into a SQLite file, and put such a file in the place of a database.

A backup is always one SQLite file, also of a PostgreSQL database. ``lenience audit`` reads it as it is, and either
kind of database can be restored from it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, func, select, text

from lenience.core.errors import InputError
from lenience.service.storage import schema
from lenience.service.storage.file_lock import MAGIC, create_file
from lenience.service.storage.migrate import newest
from lenience.service.storage.private_file import sync_folder
from lenience.service.storage.store import Store

BESIDE = ("-wal", "-shm", "-journal")  # files that SQLite writes next to a database
ROWS = 2_000  # that are copied at a time
NUMBERED = ("policy", "chain")  # tables whose ids the database counts


def copy_database(source: Store, target: Path) -> None:
    """Copy one consistent state of a database into a new SQLite file. Services may go on writing.

    Parameters
    ----------
    source : Store
        The database, opened for reading.
    target : Path
        The file to create. It is readable by its owner only.
    """
    remove_file(target)
    create_file(target)
    if source.sqlite:
        with source.read() as connection, closing(sqlite3.connect(target)) as copy:
            raw = connection.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)
            raw.backup(copy)  # all pages in one step, so no commit comes in between
    else:
        _copy_rows(source, target)
    finish_file(target)


def publish_file(partial: Path, final: Path) -> None:
    """Give a finished file its name, unless that name is taken meanwhile."""
    try:
        os.link(partial, final)
    except FileExistsError:
        raise _exists(final) from None
    except OSError:  # a file system without hard links
        if final.exists():
            raise _exists(final) from None
        os.rename(partial, final)
    partial.unlink(missing_ok=True)
    sync_folder(final)


def check_new(path: Path) -> None:
    """Raise InputError if a file exists or its folder does not."""
    if path.exists():
        raise _exists(path)
    if not path.absolute().parent.is_dir():
        raise InputError("output", str(path), "in a folder that exists", code="missing_file")


def remove_file(path: Path) -> None:
    """Delete a SQLite file of our own, with the files next to it."""
    for ending in ("", *BESIDE):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def replace_file(path: Path, new: Path, aside: Path) -> bool:
    """Move a SQLite database aside, and put another file in its place. Return whether there was one.

    The caller holds the lock of the file. The database never has the -wal file of another one next to it: that would
    corrupt it, or silently undo the restore. If this is interrupted, the database is missing, and can be restored
    again.

    Raises
    ------
    InputError
        If another process has the database open.
    """
    _empty_wal(path)
    replaced = False
    for ending in ("", *BESIDE):  # the database first: without it, nobody opens the others
        file = Path(f"{path}{ending}")
        if file.exists() and file.stat().st_size > 0:
            os.rename(file, f"{aside}{ending}")
            replaced = True
        else:
            file.unlink(missing_ok=True)
    sync_folder(path)
    os.rename(new, path)
    sync_folder(path)
    return replaced


def fill_server(target: Store, source: Store, check: Callable[[Connection], None]) -> None:
    """Copy all rows of a SQLite file into an empty PostgreSQL database, all or none.

    Parameters
    ----------
    target : Store
        The PostgreSQL database.
    source : Store
        The SQLite file, with the newest schema.
    check : callable
        Checks the rows before they are committed. If it raises, nothing is written.

    Raises
    ------
    InputError
        If a service uses the database, or it has rows.
    """
    from lenience.service.storage.postgres import lift_limits

    with target.write() as connection:
        _refuse_used(connection)
    target.upgrade()
    names = ", ".join(schema.metadata.tables)
    with target.write() as connection, source.read() as reading:
        lift_limits(connection)
        _refuse_used(connection)
        connection.execute(text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))
        _refuse_filled(connection)
        for table in reversed(schema.metadata.sorted_tables):
            connection.execute(table.delete())
        for table in schema.metadata.sorted_tables:
            for rows in _groups(reading, table.name):
                target.insert(connection, table, rows)
        for name in NUMBERED:
            highest = f"(SELECT max(id) FROM {name})"
            query = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), {highest}) WHERE {highest} IS NOT NULL"
            connection.execute(text(query))
        check(connection)


def _copy_rows(source: Store, target: Path) -> None:
    source.check_schema()
    copy = Store(str(target))
    try:
        copy.upgrade(newest())
        with source.read() as reading, copy.write() as writing:
            writing.execute(schema.chain.delete())  # the migration has made the system's chain
            for table in schema.metadata.sorted_tables:
                for rows in _groups(reading, table.name):
                    copy.insert(writing, table, rows)
    finally:
        copy.close()


def _groups(connection: Connection, name: str) -> Iterator[list[tuple[object, ...]]]:
    query = select(schema.metadata.tables[name]).execution_options(yield_per=ROWS)
    with connection.execute(query) as rows:
        for group in rows.partitions(ROWS):
            yield [tuple(row) for row in group]


def finish_file(path: Path) -> None:
    """Make a SQLite file complete in itself, without the remains of deleted rows, and put it on the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection, suppress(sqlite3.DatabaseError):
        # A damaged copy stays as it is, for the audit to report.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _empty_wal(path: Path) -> None:
    """Write the -wal file of a database into it and remove it, or raise InputError if another process uses both."""
    if not path.exists():
        return
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return  # SQLite would delete the -wal file of a file that it does not know
    try:
        with closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # possible only for the last connection
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise InputError.because(
                f"Another process has the database {str(path)!r} open",
                "database",
                label="",
                value=str(path),
                hint="Stop the service and all programs that read the file.",
                code="database_in_use",
            ) from None
    except sqlite3.DatabaseError:
        pass  # damaged: its files are moved aside as they are


def _refuse_used(connection: Connection) -> None:
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND application_name = 'lenience'"
    )
    others = int(connection.execute(text(query)).scalar_one())
    if others:
        raise InputError.because(
            f"A service has {others} connections to the database open",
            "database",
            label="",
            hint="Stop the service before you restore.",
            code="database_in_use",
        )


def _refuse_filled(connection: Connection) -> None:
    for table in (schema.event, schema.policy, schema.api_key):
        if connection.execute(select(func.count()).select_from(table)).scalar_one():
            raise InputError.because(
                "The database has data. A PostgreSQL database must be empty to restore a backup into it",
                "database",
                label="",
                hint="Create a new database, e.g. createdb restored, and restore into that.",
                code="database_unusable",
            )


def _exists(path: Path) -> InputError:
    return InputError.because(
        f"The file {str(path)!r} exists", "output", label="", value=str(path), hint="Choose another name."
    )
