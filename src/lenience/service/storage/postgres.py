"""Connections to PostgreSQL that notice a server that no longer answers, and whose commits are on the disk.

Connections that write send several statements in one round trip: a transaction that decides takes two, one to begin
and to lock and read what it needs, and one to write and commit. Such statements go to the driver as bytes and are
prepared, so that neither side parses them again.

A server or a firewall can vanish without closing a connection. The operating system then repeats what was sent for
many minutes, and the driver waits forever for an answer. So every wait has a deadline in this process. It is longer
than the server's own statement_timeout, which ends a statement that is only slow. After the deadline the connection is
closed, and the transaction has failed as if the connection had been lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from lenience.service.storage.statements import Statement

CONNECT_SECONDS = 5  # to open a connection
PING_SECONDS = 5.0  # to answer anything outside a transaction
WRITE_SECONDS = 30  # for a statement of a writing transaction, which takes milliseconds
READ_SECONDS = 120  # for a statement of a reading transaction
LOCK_SECONDS = 20  # to wait for another process's lock
GRACE_SECONDS = 5.0  # that this process waits longer than the server allows
LONG_WAIT = 0.002  # seconds after which a wait is longer than a round trip
_WAIT = 0.1  # seconds between checks of the deadline
BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
COMMIT = Statement("COMMIT")
# The operating system's own checks: they find a host that is gone, even while a statement runs.
NETWORK = {
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",  # milliseconds
}

Value = TypeVar("Value")


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection that waits at most ``patience`` seconds for an answer, or forever if it is None."""

    patience: float | None = PING_SECONDS

    def __init__(self, *about: Any, **more: Any) -> None:
        super().__init__(*about, **more)
        self._names: dict[str, bytes] = {}  # of the statements that the server has prepared
        self._numbered = 0

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        return self.pgconn.transaction_status != TransactionStatus.IDLE

    def rollback(self) -> None:
        """Roll the transaction back, if there is one. The driver may then forget all prepared statements."""
        if self.in_transaction:
            self._names.clear()
        super().rollback()

    def exchange(
        self, statements: Sequence[Statement], sent: Callable[[], None] | None, waiting: Callable[[], None] | None
    ) -> list[list[tuple[Any, ...]]]:
        """Send statements together, and return the rows of each. If one fails, those after it are not run.

        ``sent`` is called when all are sent, and ``waiting`` when the answer takes longer than a round trip.
        """
        pgconn = self.pgconn
        encoded = [(text, [value.encode() for value in values]) for text, values in statements]
        new: dict[str, bytes] = {}
        try:
            pgconn.enter_pipeline_mode()
            prepared = [self._send(text, values, new) for text, values in encoded]
            pgconn.pipeline_sync()
            arrived = self.wait(self._results(sent, waiting), _WAIT if waiting is None else LONG_WAIT)
            pgconn.exit_pipeline_mode()
        except BaseException:
            self.close()  # answers may still be on their way
            raise
        rows, results = [], iter(arrived)
        for statement, before in zip(statements, prepared, strict=True):
            if before:
                _checked(next(results))
            result = _checked(next(results))
            if statement is COMMIT and result.command_status != b"COMMIT":
                raise psycopg.OperationalError("the transaction was rolled back")
            rows.append(self._rows(result))
        self._names.update(new)
        return rows

    def _send(self, text: str, values: Sequence[bytes], new: dict[str, bytes]) -> bool:
        """Put a statement into the buffer. Return whether it had to be prepared first."""
        name = self._names.get(text) or new.get(text)
        prepare = name is None
        if name is None:
            self._numbered += 1  # a name is never used again, because a failed transaction may have prepared it
            name = new[text] = f"lenience_{self._numbered}".encode()
            self.pgconn.send_prepare(name, _numbered(text).encode())
        self.pgconn.send_query_prepared(name, values, result_format=Format.BINARY)
        return prepare

    def _results(self, sent: Callable[[], None] | None, waiting: Callable[[], None] | None) -> PQGen[list[PGresult]]:
        """Send the buffer and yield until the results of all statements have arrived."""
        pgconn = self.pgconn
        while pgconn.flush():
            if (yield Wait.RW) & Ready.R:
                pgconn.consume_input()
        if sent is not None:
            sent()
        results: list[PGresult] = []
        while True:
            while pgconn.is_busy():
                if (yield Wait.R):
                    pgconn.consume_input()
                elif waiting is not None:
                    waiting()
                    waiting = None
            result = pgconn.get_result()
            if result is None:  # the end of one statement's results, or of all because the connection is lost
                if pgconn.status == ConnStatus.BAD:
                    raise psycopg.OperationalError("the connection was lost")
                continue
            if result.status == ExecStatus.PIPELINE_SYNC:
                return results
            results.append(result)

    def _rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        if result.status != ExecStatus.TUPLES_OK:
            return []
        transformer = Transformer(self)
        transformer.set_pgresult(result)
        return transformer.load_rows(0, result.ntuples, tuple)

    def wait(self, gen: PQGen[Value], *args: Any, **options: Any) -> Value:
        """Wait for an answer of the server. Raise OperationalError after the deadline."""
        if self.patience is not None:
            gen = self._with_deadline(gen, self.patience)
        return super().wait(gen, *args, **options)

    def _with_deadline(self, answer: Any, seconds: float) -> Generator[Any, Any, Any]:
        deadline = monotonic() + seconds
        try:
            state = next(answer)
            while True:
                ready = yield state
                if not ready and monotonic() > deadline:
                    self.close()
                    raise psycopg.OperationalError(f"the server has not answered for {seconds:g} seconds")
                state = answer.send(ready)
        except StopIteration as end:
            return end.value


def postgres_engine(url: URL, *, writing: bool, read_only: bool, patience: float) -> Engine:
    """Return the engine for the connections that write, or for those that read.

    Parameters
    ----------
    url : URL
        The address of the database. Its options replace the network settings of this module.
    writing : bool
        Whether its transactions write.
    read_only : bool
        Whether the server must reject every write.
    patience : float
        The seconds to wait for a free connection.
    """
    seconds = WRITE_SECONDS if writing else READ_SECONDS
    options = f"-c lock_timeout={LOCK_SECONDS}s -c statement_timeout={seconds}s -c application_name=lenience"
    if read_only:
        options += " -c default_transaction_read_only=on"
    network = {name: value for name, value in NETWORK.items() if name not in url.query}
    engine = create_engine(
        url,
        pool_size=4,
        pool_timeout=patience,
        pool_pre_ping=not writing,  # the writer detects a lost connection itself and retries
        # A writing connection begins its transactions with the statement below, in the same round trip as the first.
        isolation_level="AUTOCOMMIT" if writing else "REPEATABLE READ",
        hide_parameters=True,  # an error must not repeat personal data
        connect_args={"connect_timeout": CONNECT_SECONDS, "options": options, **network},
    )

    def connect(dialect: object, record: object, arguments: Any, parameters: Any) -> DeadlineConnection:
        return DeadlineConnection.connect(*arguments, **parameters)

    def begin(connection: Connection) -> None:
        set_patience(connection, seconds + GRACE_SECONDS)

    def checkin(connection: DeadlineConnection | None, record: object) -> None:
        if connection is not None:
            connection.patience = PING_SECONDS

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "begin", begin)
    event.listen(engine, "checkin", checkin)
    if writing:
        event.listen(engine, "connect", _commit_to_disk)
        event.listen(engine, "before_cursor_execute", _begin_first)
    return engine


def run_together(
    connection: Connection,
    statements: Sequence[Statement],
    *,
    commit: bool,
    sent: Callable[[], None] | None,
    waiting: Callable[[], None] | None,
) -> list[list[tuple[Any, ...]]]:
    """Run statements of a writing transaction in one round trip, begin it before and end it after them if needed."""
    raw = _raw_connection(connection)
    first = [] if raw.in_transaction else [BEGIN]
    try:
        rows = raw.exchange([*first, *statements, *([COMMIT] if commit else [])], sent, waiting)
    except psycopg.Error as error:
        lost = raw.closed
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            *(None, None, error, psycopg.Error),
            hide_parameters=True,
            connection_invalidated=lost,
            dialect=connection.dialect,
        ) from error
    return rows[len(first) : len(first) + len(statements)]


def set_patience(connection: Connection, seconds: float | None) -> None:
    """Set the seconds that a connection waits for each answer, until its transaction ends."""
    _raw_connection(connection).patience = seconds


def lift_limits(connection: Connection) -> None:
    """Let the statements of this transaction take any time, e.g. those of a migration."""
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    set_patience(connection, None)


def _raw_connection(connection: Connection) -> DeadlineConnection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, DeadlineConnection)
    return raw


def _begin_first(connection: object, cursor: Any, *about: object) -> None:
    """Begin a transaction before its first statement."""
    raw = cursor.connection
    if not raw.in_transaction:
        raw.execute(BEGIN.text)


def _checked(result: PGresult) -> PGresult:
    """Return the result of a statement, or raise its error."""
    if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        raise error_from_result(result)
    return result


def _numbered(statement: str) -> str:
    """Return a statement with the placeholders of the server.

    >>> _numbered("SELECT %s, %s")
    'SELECT $1, $2'
    """
    first, *others = statement.split("%s")
    return first + "".join(f"${i}{part}" for i, part in enumerate(others, start=1))


def _commit_to_disk(connection: DeadlineConnection, record: object) -> None:
    """Let a commit return only when it is on the disk, even if the database or the role has another default.

    Settings that wait for a standby as well are stronger and stay.
    """
    setting = "current_setting('synchronous_commit')"
    connection.execute(
        f"SELECT set_config('synchronous_commit', CASE {setting} WHEN 'off' THEN 'on' ELSE {setting} END, false)"
    )
    connection.commit()
