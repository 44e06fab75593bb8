"""PostgreSQL: a server that no longer answers is noticed, and commits are on the disk."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, ProgrammingError

from apart import awaited
from engines import Engine
from lenience.core.settings import ALLOW_FSYNC_OFF
from lenience.dashboard.app import create_app
from lenience.service.domain.problems import Unavailable
from lenience.service.http import service as running
from lenience.service.http.service import Service
from lenience.service.storage import postgres as connections
from lenience.service.storage import schema
from lenience.service.storage.statements import Statement
from lenience.service.storage.store import Store
from rejections import rejected
from serving import Postgres
from stalling import StallingProxy

Run = Any


@pytest.fixture
def proxy(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[StallingProxy]:
    monkeypatch.setattr(connections, "WRITE_SECONDS", 1)
    monkeypatch.setattr(connections, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(connections, "PING_SECONDS", 1.0)
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 2)
    monkeypatch.setattr(connections.DeadlineConnection, "patience", 1.0)
    proxy = StallingProxy(postgres.folder)
    yield proxy
    proxy.close()


def within(seconds: float, work: Any) -> BaseException | None:
    """Run something in a thread, and return how it failed. It must end in time."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"it hangs after {seconds} seconds"
    return raised[0] if raised else None


def test_the_writer_gives_up_a_connection_that_has_died(postgres: Postgres, proxy: StallingProxy) -> None:
    engine = Engine(proxy.address(postgres.emptied()))
    engine.create()
    engine.decide(key="before")
    proxy.stall()
    failed = within(20, lambda: engine.decide(key="during"))
    assert isinstance(failed, Unavailable)
    proxy.go_on()
    assert engine.decide(key="during")["pending"] == 1, "nothing was written while it was away"
    assert engine.audit().whole
    engine.close()


def test_readers_give_up_a_connection_that_has_died(
    postgres: Postgres, proxy: StallingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_SECONDS", 1)
    engine = Engine(proxy.address(postgres.emptied()))
    engine.create()
    proxy.stall()
    assert isinstance(within(20, lambda: engine.queries.policies()), Unavailable)
    proxy.go_on()
    assert len(engine.queries.policies().policies) == 1
    engine.close()


def test_a_slow_statement_is_ended_by_the_server(postgres: Postgres, proxy: StallingProxy) -> None:
    """The server is alive, so the connection is kept."""
    store = Store(proxy.address(postgres.emptied()))
    started = time.monotonic()
    with pytest.raises(Unavailable, match="statement timeout"), store.write() as connection:
        connection.execute(text("SELECT pg_sleep(30)"))
    assert time.monotonic() - started < 10
    store.close()


def test_ready_is_a_503_while_the_writer_waits(
    postgres: Postgres, proxy: StallingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "READY_SECONDS", 0.7)
    app: Any = create_app(proxy.address(postgres.emptied()))

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=30) as client:
            statuses = [(await client.get("/ready")).status_code]
            proxy.stall()
            statuses += [answer.status_code for answer in await asyncio.gather(*(client.get("/ready") for _ in "ab"))]
            statuses.append((await client.get("/ready")).status_code)
            proxy.go_on()
            for _ in range(60):
                status = (await client.get("/ready")).status_code
                if status == 200:
                    break
                await asyncio.sleep(0.2)
            return [*statuses, status]

    started = time.monotonic()
    assert awaited(ask()) == [200, 503, 503, 503, 200]
    assert time.monotonic() - started < 30
    awaited(app.app.state.service.stop())


def test_the_network_settings_can_be_replaced(postgres: Postgres, proxy: StallingProxy) -> None:
    store = Store(proxy.address(postgres.emptied()) + "&keepalives_idle=77")
    with store.read() as connection:
        raw: Any = connection.connection.driver_connection
        chosen = raw.info.get_parameters()
    store.close()
    assert (chosen["keepalives_idle"], chosen["tcp_user_timeout"]) == ("77", "20000")


@pytest.mark.parametrize(("default", "used"), [("off", "on"), ("on", "on"), ("local", "local"), ("remote_apply",) * 2])
def test_a_commit_is_on_the_disk_whatever_the_database_says(postgres: Postgres, default: str, used: str) -> None:
    database = postgres.database()
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {default}")
    store = Store(database)
    for _ in range(2):
        with store.write() as writing:
            assert writing.execute(text("SHOW synchronous_commit")).scalar_one() == used
    store.close()


def test_a_server_that_does_not_sync_is_refused(postgres: Postgres, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    database = postgres.emptied()
    service = Service(database)  # the tests allow it
    service.writer.close()
    service.store.close()
    monkeypatch.delenv(ALLOW_FSYNC_OFF)
    with rejected("database", "database_unusable"):
        Service(database)
    store = Store(database)
    with pytest.raises(Unavailable, match="fsync = off"):
        store.check_writable()
    store.close()
    code, _, err = run("serve", "--port", "0", "--database", database)
    assert code == 2
    assert "fsync = off" in err
    assert ALLOW_FSYNC_OFF in err


def test_a_dead_connection_is_logged_with_its_cause(
    postgres: Postgres, proxy: StallingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(proxy.address(postgres.emptied()))
    engine.create()
    proxy.stall()
    with caplog.at_level(logging.ERROR):
        within(20, engine.decide)
    proxy.go_on()
    engine.close()
    causes = [str(record.fields["cause"]) for record in caplog.records if hasattr(record, "fields")]
    assert len(causes) == 1


def test_a_group_takes_two_round_trips(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """One to begin, lock and read, and one to write and commit. Otherwise the network decides how fast it is."""
    engine = Engine(postgres.emptied())
    engine.create()
    accepted = engine.decide(key="before")["id"]
    sent: list[list[str]] = []
    original = connections.DeadlineConnection.exchange

    def exchange(self: Any, statements: Any, *hooks: Any) -> Any:
        sent.append([statement.text.split()[0] for statement in statements])
        return original(self, statements, *hooks)

    monkeypatch.setattr(connections.DeadlineConnection, "exchange", exchange)
    engine.decide(key="k", reference="r")
    inserts = ["INSERT"] * 4  # event, decision, personal, answer
    assert sent == [["BEGIN", "SELECT", "SELECT"], [*inserts, "UPDATE", "INSERT", "COMMIT"]]  # the last one: totals
    sent.clear()
    engine.outcome(accepted, "success")
    totals = ["INSERT", "INSERT"]  # by the day of the decision, and of the outcome
    assert sent == [["BEGIN", "SELECT"], ["SELECT"] * 3, ["INSERT", "UPDATE", "UPDATE", *totals, "COMMIT"]]
    assert engine.audit().whole
    engine.close()


def test_a_failed_statement_leaves_nothing_of_its_group(postgres: Postgres) -> None:
    store = Store(postgres.emptied())
    store.upgrade()
    row = (1, 1, "body", "hash", None)
    twice = store.statements.insert(schema.event, [row, row])
    fine = store.statements.insert(schema.event, [row])
    for _ in range(2):  # the second time with statements that may be prepared already
        with pytest.raises(IntegrityError), store.write() as connection:
            store.run(connection, [*fine, *twice, *fine], commit=True)
    with store.write() as connection:
        store.run(connection, fine, commit=True)
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM event")).scalar_one() == 1
    store.close()


def test_a_commit_that_rolls_back_is_an_error(postgres: Postgres) -> None:
    store = Store(postgres.emptied())
    store.upgrade()

    def commit() -> None:
        with store.write() as connection:
            with suppress(ProgrammingError):
                connection.execute(text("SELECT * FROM nothing_of_this_name"))
            store.run(connection, [], commit=True)

    with pytest.raises(Unavailable):
        commit()
    store.close()


def test_a_lost_connection_is_noticed_in_a_group(postgres: Postgres) -> None:
    database = postgres.emptied()
    store = Store(database)
    store.upgrade()
    select_pid = Statement("SELECT pg_backend_pid()")
    processes = []

    def lose() -> None:
        with store.write() as connection:
            ((own,),) = store.run(connection, [select_pid])
            processes.append(own)
            with psycopg.connect(database, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", own)
            store.run(connection, [select_pid], commit=True)

    with pytest.raises(Unavailable) as caught:
        lose()
    assert caught.value.lost
    with store.write() as connection:
        assert store.run(connection, [select_pid]) != [processes]
    store.close()
