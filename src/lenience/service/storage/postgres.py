"""Connections to PostgreSQL that notice a server that no longer answers, and whose commits are on the disk.

A server or a firewall can vanish without closing a connection. The operating system then repeats what was sent for
many minutes, and the driver waits forever for an answer. So every wait has a deadline in this process. It is longer
than the server's own statement_timeout, which ends a statement that is only slow. After the deadline the connection is
closed, and the transaction has failed as if the connection had been lost.
"""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import URL, Connection, Engine, create_engine, event, text

CONNECT_SECONDS = 5  # to open a connection
PING_SECONDS = 5.0  # to answer anything outside a transaction
WRITE_SECONDS = 30  # for a statement of a writing transaction, which takes milliseconds
READ_SECONDS = 120  # for a statement of a reading transaction
LOCK_SECONDS = 20  # to wait for another process's lock
GRACE_SECONDS = 5.0  # that this process waits longer than the server allows
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
        isolation_level="READ COMMITTED" if writing else "REPEATABLE READ",
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
    return engine


def set_patience(connection: Connection, seconds: float | None) -> None:
    """Set the seconds that a connection waits for each answer, until its transaction ends."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, DeadlineConnection)
    raw.patience = seconds


def lift_limits(connection: Connection) -> None:
    """Let the statements of this transaction take any time, e.g. those of a migration."""
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    set_patience(connection, None)


def fsync_is_off(connection: Connection) -> bool:
    """Return whether a crash of the server's machine may lose or damage what was committed."""
    return bool(connection.execute(text("SHOW fsync")).scalar_one() == "off")


def _commit_to_disk(connection: DeadlineConnection, record: object) -> None:
    """Let a commit return only when it is on the disk, even if the database or the role has another default.

    Settings that wait for a standby as well are stronger and stay.
    """
    setting = "current_setting('synchronous_commit')"
    connection.execute(
        f"SELECT set_config('synchronous_commit', CASE {setting} WHEN 'off' THEN 'on' ELSE {setting} END, false)"
    )
    connection.commit()
