"""The database: one class for SQLite and PostgreSQL, with all their differences in this file.

SQLite: one file, one writing process (a lock file rejects a second one), and readers next to it. WAL with
synchronous=FULL: a commit that returned is on the disk. PostgreSQL: any number of processes, which lock the rows that
they change. In both, a database that is full or unreachable raises :class:`Unavailable`. Nothing is half written,
because everything that belongs together is one transaction.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from lenience.core.errors import InputError
from lenience.core.settings import ALLOW_FSYNC_OFF
from lenience.service.domain.problems import Damaged, Problem, Unavailable, UnreadableText
from lenience.service.storage.address import database_url
from lenience.service.storage.file_lock import FileLock, create_file
from lenience.service.storage.integrity import Damage, check_sqlite
from lenience.service.storage.migrate import migrate, newest, refuse_newer, refuse_others, revision_of
from lenience.service.storage.privileges import missing_rights
from lenience.service.storage.read_only import ReadOnlyFile
from lenience.service.storage.statements import Statement, Statements

PATIENCE = 5.0  # seconds to wait for another short writer (SQLite), or for a connection
# Another transaction got there first: the same work, done again, comes out right.
AGAIN = {"40001", "40P01", "23505"}
NO_RIGHT = "the database user lacks privileges that lenience needs"
NO_TABLE = re.compile(r'no such table: (?:main\.)?(\w+)|relation "(\w+)" does not exist')
DAMAGED = {"file is not a database", "database disk image is malformed"}
NO_TEXT = re.compile(r"Could not decode to UTF-8 column '(\w+)'")  # the message goes on with the text itself
WRITABLE_SECONDS = 5.0  # for each answer of PostgreSQL to the question whether it can be written
# Queries that read one page at the end of each large table, however long it is.
READ_QUERIES = (
    "SELECT * FROM chain LIMIT 1",
    "SELECT * FROM decision ORDER BY id DESC LIMIT 1",
    "SELECT * FROM event ORDER BY rowid DESC LIMIT 1",
)
CHECKPOINT_SECONDS = 0.2  # to wait for readers of the -wal file
LEAST_FREE_BYTES = 1 << 20  # of the disk, without which a commit is likely to fail
FULL_CHECK_BYTES = 256 << 20  # the size up to which a file is checked in full at each start


_sound: dict[Path, tuple[int, ...]] = {}  # files without damage, with their state when they were closed


class Store:
    """An open database. :meth:`close` it when done.

    With ``serving`` it is the only writer of a SQLite file. With ``reading`` it changes nothing, creates no file and
    needs no write permission (see :class:`ReadOnlyFile`).
    """

    def __init__(self, database: str, *, serving: bool = False, reading: bool = False) -> None:
        self.url = database_url(database)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._reading = reading
        self._lock: FileLock | None = None
        self._damage: Damaged | None = None  # the damage that a statement has met
        self._is_sound = False  # SQLite has found no damage
        self._identity: tuple[int, int] | None = None
        self._file = ReadOnlyFile(self.path) if self.sqlite and reading else None
        if self.sqlite and serving:
            self._lock = FileLock(self.path)
        try:
            self._writer = self._engine(writing=True)
            self._reader = self._engine(writing=False)
        except BaseException:
            self._unlock()
            raise
        self.statements = Statements(self._writer.dialect)

    def upgrade(self, revision: str = "head", *, only_empty: bool = False) -> bool:
        """Upgrade the schema (with ``only_empty``, only of an empty database). Return whether it was empty.

        Processes that start together do it one after the other.
        """
        if self.sqlite:
            create_file(self.path)
        with self.write() as connection:
            if not self.sqlite:
                from lenience.service.storage.postgres import lift_limits

                lift_limits(connection)
                connection.execute(text("SELECT pg_advisory_xact_lock(7051967)"))
            current = revision_of(connection)
            refuse_others(connection, current)
            refuse_newer(current, self.name)
            if current is None or (current != newest() and not only_empty):
                migrate(connection, revision)
        self._remember_file()
        return current is None

    def check_schema(self) -> None:
        """Raise InputError if the schema is not the one that this software needs."""
        with self.read() as connection:
            revision = revision_of(connection)
            refuse_others(connection, revision)
        refuse_newer(revision, self.name)
        if revision != newest():
            state = "is empty" if revision is None else f"has schema {revision}"
            raise InputError.because(
                f"{state}; this version of lenience needs schema {newest()}",
                "database",
                label=f"the database {self.name}",
                value=revision,
                hint="Start lenience serve once to upgrade the database.",
                code="schema_mismatch",
            )

    def check_durability(self) -> None:
        """Raise InputError if the database may lose what it has acknowledged."""
        if self.sqlite:
            return  # the pragmas of each connection see to it
        with self.read() as connection:
            unsafe = _loses_commits(connection)
        if unsafe:
            raise InputError.because(
                "The PostgreSQL server runs with fsync = off. A crash of its machine can lose or damage decisions",
                "database",
                label="",
                hint=f"Set fsync = on. For a test, set {ALLOW_FSYNC_OFF}=1.",
                code="database_unusable",
            )

    def check_integrity(self) -> None:
        """Raise InputError if SQLite finds damage in the file. PostgreSQL checks what it reads.

        A file of up to 256 MiB is checked in full. In a larger one every page is read, but the indexes are not
        compared with their tables; ``lenience audit`` does that. A file that this process has checked, and that has
        not changed since, is not checked again.
        """
        if not self.sqlite or (self.path.exists() and _sound.get(self.path) == _state(self.path)):
            return
        create_file(self.path)
        damage = self.find_damage(quick=self.path.stat().st_size > FULL_CHECK_BYTES)
        if damage:
            raise InputError.because(
                f"The database {str(self.path)!r} is damaged ({damage[0].where}: {damage[0].what})",
                "database",
                label="",
                value=str(self.path),
                hint="lenience audit lists all damage. Restore a backup with lenience restore.",
                code="database_unusable",
            )
        self._is_sound = True

    def find_damage(self, *, quick: bool) -> list[Damage]:
        """Return the damage that SQLite finds in its file."""
        damage: list[Damage] = []
        try:
            with self.read() as connection:
                damage = check_sqlite(connection, quick=quick)
        except Damaged as problem:  # damage can make even the end of the transaction fail
            return damage or [Damage("the database file", problem.detail)]
        return damage

    def check_writable(self) -> None:
        """Raise Unavailable or Damaged if the database cannot be read and written now."""
        self.check_readable()
        try:
            self._try_to_write()
        except Unavailable as problem:
            if not problem.lost:
                raise
            self._try_to_write()  # the database was restarted and may be back

    def _try_to_write(self) -> None:
        with self.write(WRITABLE_SECONDS) as connection:
            self.probe(connection)

    def check_readable(self) -> None:
        """Raise Damaged if a statement has met damage, or if the SQLite file cannot be read from its start."""
        self._check_file()
        if self._damage is not None:
            raise Damaged(self._damage.detail)
        if not self.sqlite:
            return
        if self._lock is not None and not self._lock.has_header():
            raise Damaged("the file is damaged or is not a database (its first bytes were overwritten)")
        with _translate_errors(), closing(self._new_connection(PATIENCE)) as fresh:
            # A new connection has no cached pages, so it reads what is in the file.
            for query in READ_QUERIES:
                fresh.execute(query).fetchall()

    def checkpoint(self) -> bool:
        """Move the content of the -wal file into the SQLite file, and empty it. Return whether that was possible.

        The -wal file holds earlier versions of pages, and so also personal data that was erased since. A reader of
        such a version prevents it.
        """
        if not self.sqlite:
            return True
        try:
            with closing(self._new_connection(CHECKPOINT_SECONDS)) as connection:
                busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            return False
        return not busy

    def probe(self, connection: Connection) -> None:
        """Write something in a transaction without changing any row, or raise Unavailable."""
        if self.sqlite:
            free = os.statvfs(self.path)
            if free.f_bavail * free.f_frsize < LEAST_FREE_BYTES:
                raise Unavailable("the database is unavailable (the disk is full)")
            if free.f_flag & os.ST_RDONLY or not os.access(self.path, os.W_OK):
                raise Unavailable("the database is unavailable (the file is read-only)")
            # A number in the header of the file, which nothing else uses.
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            connection.exec_driver_sql(f"PRAGMA user_version = {(int(version) + 1) % 2**30}")
            return
        if connection.execute(text("SHOW transaction_read_only")).scalar_one() == "on":
            raise Unavailable("the database is read-only now")
        if _loses_commits(connection):
            raise Unavailable("the database server runs with fsync = off")
        missing = missing_rights(connection)
        if missing:
            raise Unavailable(f"{NO_RIGHT}: {', '.join(missing)}")
        connection.execute(text("SELECT pg_current_xact_id()"))  # so that the commit waits for the disk

    @property
    def path(self) -> Path:
        """The file of a SQLite database."""
        return Path(str(self.url.database))

    @property
    def name(self) -> str:
        """The address of the database without the password."""
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def write(self, patience: float | None = None) -> Iterator[Connection]:
        """Run a transaction that is on the disk when this block ends, or has no effect at all.

        With ``patience``, wait at most this number of seconds for each answer of a PostgreSQL server.
        """
        assert not self._reading
        self._check_file()
        with self._noticing_damage(), self._writer.begin() as connection:
            if patience is not None and not self.sqlite:
                from lenience.service.storage.postgres import set_patience

                set_patience(connection, patience)
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run a transaction that sees one consistent state of the database."""
        self._check_file()
        with self._noticing_damage(), self._reader.begin() as connection:
            yield connection
        if self._file is not None:
            self._file.check_unchanged()

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            with _translate_errors():
                yield
        except Damaged as problem:
            if self.sqlite and not isinstance(problem, UnreadableText):
                self._damage = problem
            raise

    def insert(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert many rows (values in the order of the columns) in one round trip."""
        self.run(connection, self.statements.insert(table, rows))

    def run(
        self,
        connection: Connection,
        statements: Sequence[Statement],
        *,
        commit: bool = False,
        sent: Callable[[], None] | None = None,
        waiting: Callable[[], None] | None = None,
    ) -> list[list[Any]]:
        """Run statements in one round trip, and return the rows of each.

        Parameters
        ----------
        connection : Connection
            A writing transaction.
        statements : sequence of Statement
            What to run, in this order.
        commit : bool
            Whether nothing follows, so that PostgreSQL can commit in the same round trip. If the connection is lost
            meanwhile, the transaction may or may not be written.
        sent : callable, optional
            Called when the statements are on their way, before PostgreSQL answers. SQLite works at once: called last.
        waiting : callable, optional
            Called if PostgreSQL takes longer than a round trip, e.g. because another process has locked a row.
        """
        if not self.sqlite:
            if not statements and not commit:
                return []
            from lenience.service.storage.postgres import run_together

            return run_together(connection, statements, commit=commit, sent=sent, waiting=waiting)
        plain = _raw_connection(connection)
        rows = [plain.execute(*statement).fetchall() for statement in statements]
        if sent is not None:
            sent()
        return rows

    def close(self) -> None:
        """Close all connections and release the file."""
        self._writer.dispose()
        self._reader.dispose()
        if self._is_sound and self.path.exists():
            _sound[self.path] = _state(self.path)
        self._unlock()

    def _new_connection(self, timeout: float) -> sqlite3.Connection:
        """Return a connection of its own to the SQLite file, which must exist."""
        return sqlite3.connect(f"file:{quote(str(self.path.absolute()))}?mode=rw", timeout=timeout, uri=True)

    def _engine(self, *, writing: bool) -> Engine:
        if self.sqlite:
            engine = create_engine(
                self.url,
                connect_args={"timeout": PATIENCE, "check_same_thread": False},
                pool_timeout=PATIENCE,
                pool_reset_on_return=None,  # every transaction here is ended explicitly
                hide_parameters=True,  # an error must not repeat personal data
                **({} if self._file is None else {"creator": self._file.connect}),
            )
            event.listen(engine, "connect", _pragmas if self._file is None else _disable_driver_transactions)
            event.listen(engine, "begin", _begin_immediate if writing else _begin)
            return engine
        from lenience.service.storage.postgres import postgres_engine

        return postgres_engine(self.url, writing=writing, read_only=self._reading, patience=PATIENCE)

    def _remember_file(self) -> None:
        if self.sqlite:
            status = os.stat(self.path)
            self._identity = (status.st_dev, status.st_ino)

    def _check_file(self) -> None:
        """Raise if the file is gone, and reconnect if it was replaced: writes to the old file would be lost."""
        if self._identity is None:
            return
        try:
            status = os.stat(self.path)
        except OSError:
            raise Unavailable("the database file does not exist any more") from None
        if (status.st_dev, status.st_ino) != self._identity:
            self._writer.dispose()
            self._reader.dispose()
            if self._lock is not None:
                try:
                    self._lock.follow()
                except (InputError, OSError) as error:
                    raise Unavailable("the database file was replaced and cannot be locked", cause=str(error)) from None
            self._identity = (status.st_dev, status.st_ino)
            self._damage = None

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when somebody writes to a file."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def try_again(error: BaseException) -> bool:
    """Return whether the same transaction may succeed if repeated, because another one conflicted with it."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in AGAIN


def _raw_connection(connection: Connection) -> sqlite3.Connection:
    """Return the raw DBAPI connection: SQLAlchemy's overhead matters on this path."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _loses_commits(connection: Connection) -> bool:
    """Return whether a crash of the PostgreSQL server's machine may lose commits, and nobody has allowed that."""
    return os.environ.get(ALLOW_FSYNC_OFF) != "1" and connection.execute(text("SHOW fsync")).scalar_one() == "off"


def _disable_driver_transactions(connection: Any, record: object) -> None:
    connection.isolation_level = None  # the listeners below begin transactions, not the driver


def _pragmas(connection: Any, record: object) -> None:
    _disable_driver_transactions(connection, record)
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "cache_size = -65536",
        "wal_autocheckpoint = 4000",
        "temp_store = MEMORY",
        "secure_delete = ON",  # erased personal data is overwritten, not only unlinked
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn temporary errors of the driver into :class:`Unavailable`."""
    try:
        yield
    except PoolTimeout as error:
        raise Unavailable("the database has no free connection") from error
    except (sqlite3.DatabaseError, DBAPIError) as error:
        problem = None if try_again(error) else as_problem(error)
        if problem is None:
            raise
        raise problem from error


def as_problem(error: sqlite3.DatabaseError | DBAPIError) -> Problem | None:
    """Return the problem for an expected error of the driver, without details of the host, or None."""
    original = error.orig if isinstance(error, DBAPIError) else error
    message = (str(original).strip() or type(original).__name__).splitlines()[0]
    state = getattr(original, "sqlstate", None) or ""
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    missing = NO_TABLE.search(message)
    if missing is not None:
        return Damaged(f"the database is damaged: the table {missing[1] or missing[2]!r} is missing. Restore a backup.")
    invalid = NO_TEXT.match(message)
    if invalid is not None:  # do not repeat the text, which may be personal data
        return UnreadableText(f"a text in the column {invalid[1]!r} is damaged (not UTF-8). Run lenience audit.")
    if message in DAMAGED:
        return Damaged(f"the file is damaged or is not a database ({message})")
    if state == "42501":
        return Unavailable(NO_RIGHT, cause=message)
    # 53: out of disk, memory or connections; 57: shutting down; 08: connection; 25006: read-only; 58: system.
    unreachable = state[:2] in ("53", "57", "08", "58") or state in ("25006", "55P03")
    if lost or unreachable or isinstance(error, sqlite3.OperationalError | OperationalError | InterfaceError):
        if state or isinstance(original, sqlite3.Error):
            return Unavailable(f"the database is unavailable ({message})", lost=lost)
        return Unavailable(
            "the database is unavailable", lost=lost, cause=message
        )  # the message may name host and port
    return None
