"""What an operator meets: sockets, rights, restarts, files, metrics and what is told to whom."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import psycopg
import pytest
from sqlalchemy import text

from apart import awaited
from engines import Engine
from lenience.cli.serve import announce_start, listen, log_dead_processes
from lenience.dashboard.app import create_app
from lenience.dashboard.pages import document
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.domain.problems import Conflict, Unavailable
from lenience.service.domain.receipts import make_sender
from lenience.service.http import decisions, erasures, feed, log, monitoring, policies, solves, webhooks
from lenience.service.http.metrics import Metrics, remove_dead_processes
from lenience.service.storage.migrate import revision_of
from lenience.service.storage.postgres import COMMIT, DeadlineConnection
from lenience.service.storage.privileges import RIGHTS
from lenience.service.storage.statements import Statement
from lenience.service.storage.store import Store
from lenience.service.storage.writer import Writer
from serving import Postgres, sqlite_file

Run = Any


def test_answers_do_not_wait_for_more_to_send() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
        listening.listen()
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def cut_off(database: str) -> None:
    """End all other connections to a database, as its restart does."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()"
        )


def test_a_restart_of_the_database_costs_no_request(postgres: Postgres) -> None:
    engine = Engine(postgres.emptied())
    try:
        engine.create()
        engine.decide()
        cut_off(engine.database)
        assert engine.decide()["pending"] == 1
        cut_off(engine.database)
        engine.store.check_writable()
        assert engine.audit().findings == []
    finally:
        engine.close()


@pytest.mark.parametrize("committed", [False, True])
def test_what_may_have_been_committed_is_not_done_again(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    engine = Engine(postgres.emptied())
    exchange = DeadlineConnection.exchange
    commits: list[DeadlineConnection] = []

    def cut(self: DeadlineConnection, statements: Sequence[Statement], *about: Any) -> list[list[tuple[Any, ...]]]:
        if COMMIT not in statements:
            return exchange(self, statements, *about)
        commits.append(self)
        if len(commits) > 1:  # a second try would succeed
            return exchange(self, statements, *about)
        if not committed:
            cut_off(engine.database)
            return exchange(self, statements, *about)
        exchange(self, statements, *about)
        self.close()
        raise psycopg.OperationalError("the answer was lost")

    try:
        engine.create()
        with monkeypatch.context() as patched:
            patched.setattr(DeadlineConnection, "exchange", cut)
            with pytest.raises(Unavailable):
                engine.decide()
        assert len(commits) == 1
        assert engine.decide()["pending"] == int(committed)
        assert engine.audit().findings == []
    finally:
        engine.close()


@pytest.fixture
def only_reading(postgres: Postgres) -> str:
    """A database with the newest schema, as one who may not write sees it."""
    database = postgres.emptied()
    Engine(database).close()
    with psycopg.connect(database, autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute("CREATE ROLE looker LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA public TO looker")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    return database.replace("postgres:@", "looker:@")


def test_who_may_not_write_is_told_so(run: Run, only_reading: str) -> None:
    assert "looker" in only_reading
    for words in (("keys", "create", "--label", "x", "--role", "read"), ("serve", "--port", "0")):
        code, _, err = run(*words, "--database", only_reading)
        assert (code, len(err.strip().splitlines())) == (2, 1)
        assert "lacks privileges" in err


def test_a_right_that_is_missing_is_named_before_it_is_needed(postgres: Postgres) -> None:
    engine = Engine(postgres.emptied())
    engine.store.check_writable()
    engine.close()
    with psycopg.connect(engine.database, autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute("CREATE ROLE clerk LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA public TO clerk")
        connection.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk")
        for table, rights in RIGHTS.items():
            connection.execute(f"GRANT {rights} ON {table} TO clerk")
        clerk = Store(engine.database.replace("postgres:@", "clerk:@"))
        clerk.check_writable()
        connection.execute("REVOKE DELETE ON personal FROM clerk")
        with pytest.raises(Unavailable, match=r"DELETE on personal$"):
            clerk.check_writable()
        clerk.close()


def test_a_right_that_was_withdrawn_is_a_503(only_reading: str, caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(only_reading)
    try:
        with caplog.at_level(logging.ERROR), pytest.raises(Unavailable, match="lacks privileges") as told:
            engine.create(activate=False)
    finally:
        engine.close()
    assert "permission denied" not in told.value.detail
    assert "permission denied" in caplog.records[-1].fields["cause"]  # type: ignore[attr-defined]


def test_a_missing_table_is_named(run: Run, database: str) -> None:
    engine = Engine(database)
    with engine.store.write() as connection:
        connection.execute(text("DROP TABLE decision"))
    engine.close()
    code, out, _ = run("audit", "--database", database)
    assert code == 1
    assert "the table 'decision' is missing" in out


def test_making_a_key_says_that_it_made_a_database(run: Run, empty_database: str) -> None:
    command = ("keys", "create", "--database", empty_database, "--label", "x", "--role", "read")
    created = run(*command)
    assert created[1].startswith("lk_")
    assert created[1].count("\n") == 1  # only the key, for KEY=$(lenience keys create …)
    assert created[2].startswith("Created ")
    code, out, err = run(*command, "--json")
    assert (code, err) == (0, "")
    revoked = run("keys", "revoke", "--database", empty_database, json.loads(out)["id"])
    assert revoked[2].startswith("No key with the role admin is left")


def test_making_a_key_does_not_migrate(run: Run, empty_database: str) -> None:
    store = Store(empty_database)
    store.upgrade("0002")
    code, _, err = run("keys", "create", "--database", empty_database, "--label", "x", "--role", "read")
    assert code == 2
    assert "has schema 0002; this version of lenience needs" in err
    with store.read() as connection:
        assert revision_of(connection) == "0002"
    store.close()


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = Path(sqlite_file(tmp_path))
    engine = Engine(str(path))
    modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.glob(f"{path.name}*") if one.suffix != ".lock"}
    engine.close()
    assert modes == dict.fromkeys([path.name, f"{path.name}-wal", f"{path.name}-shm"], 0o600)


def test_a_secret_is_never_repeated(run: Run, tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    made = json.loads(run("keys", "create", "--database", database, "--label", "x", "--role", "read", "--json")[1])
    secret = made["key"].split("_", 2)[2]
    told = [run("keys", "revoke", "--database", database, words) for words in (made["key"], secret, made["key"])]
    assert [code for code, _, _ in told] == [0, 2, 2]
    assert made["id"] in told[0][1]
    assert not any(secret in out + err for _, out, err in told)


def test_the_first_line_is_of_the_log(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.INFO):
        announce_start(2)
    assert caplog.messages == ["Starting 2 processes …"]
    assert capsys.readouterr().err == ""


def test_the_death_of_a_process_is_an_error_with_its_signal(caplog: pytest.LogCaptureFixture) -> None:
    codes = (None, -signal.SIGSEGV, 3)
    log_dead_processes(cast(Any, [SimpleNamespace(pid=7 + i, exitcode=code) for i, code in enumerate(codes)]))
    assert [(record.levelname, record.fields) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("ERROR", {"pid": 8, "signal": "SIGSEGV"}),
        ("ERROR", {"pid": 9, "exit_code": 3}),
    ]


def test_where_the_database_is_is_not_told_to_everybody(database: str, caplog: pytest.LogCaptureFixture) -> None:
    app: Any = create_app(database)
    store = app.app.state.service.store
    with store.write() as connection:
        for table in ("chain", "decision", "event"):
            connection.execute(text(f"ALTER TABLE {table} RENAME TO {table}_elsewhere"))

    async def ask() -> tuple[httpx.Response, httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.get("/ready"), await client.post(f"/v1/decisions/{'0' * 36}/erasure")

    with caplog.at_level(logging.ERROR):
        answer, written = awaited(ask())
    awaited(app.app.state.service.stop())
    assert written.status_code == 503
    told = [record.message for record in caplog.records if record.name == "lenience.service"]
    assert told == ["database unavailable"] * 2  # once each, also for what the writer could not write
    assert (answer.status_code, answer.json()["detail"]) == (503, "the database is unavailable")
    assert any("is missing" in record.fields["detail"] for record in caplog.records if hasattr(record, "fields"))


def test_what_nobody_foresaw_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("in the middle")

    app: Any = create_app(sqlite_file(tmp_path))
    monkeypatch.setattr("lenience.service.commands.outcomes.Change.resolve", broken)
    monkeypatch.setattr("lenience.service.queries.reading.Queries.policies", broken)

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            answers = await client.post(f"/v1/decisions/{'0' * 36}/erasure"), await client.get("/v1/policies")
            return [answer.status_code for answer in answers]

    with caplog.at_level(logging.ERROR):
        assert awaited(ask()) == [500, 500]
    awaited(app.app.state.service.stop())
    told = [record for record in caplog.records if record.name == "lenience.service"]
    assert [(record.message, record.fields) for record in told] == [  # type: ignore[attr-defined]
        ("unforeseen error", {"command": "Change"}),
        ("unforeseen error", {"route": "/v1/policies"}),
    ]
    assert all(record.exc_info for record in told)


def test_metrics_count_what_was_written(database: str) -> None:
    metrics = Metrics()
    engine = Engine(database)
    engine.writer.close()
    engine.writer = Writer(engine.store, engine.registry, written=metrics.written)
    engine.create()
    (accepted,) = {engine.decide(key="once")["id"] for _ in range(3)}
    engine.decide()
    for key in ("a", None, "a"):
        engine.outcome(accepted, "success", key=key)
    again = [OutcomeItem(id=accepted, outcome="success")]
    engine.call(RecordOutcomes(make_sender("tester", "file", "import", again), again))
    with suppress(Conflict):
        engine.outcome(accepted, "failure")
    told = metrics.text(engine.writer).decode().splitlines()
    engine.close()
    counted = {line.split()[0]: float(line.split()[1]) for line in told if "_total" in line and line[0] != "#"}
    assert counted == {
        'lenience_decisions_total{decision="accept",policy="cards"}': 2,
        'lenience_decisions_total{decision="reject",policy="cards"}': 0,
        'lenience_decisions_total{decision="refer",policy="cards"}': 0,
        "lenience_outcomes_total": 1,
        "lenience_transactions_total": 7,  # made, activated, two decisions, an outcome, and twice the same again
        "lenience_commands_total": 7,
    }


def test_how_many_wait_is_seen_whoever_is_asked(tmp_path: Path) -> None:
    metrics, busy = Metrics(), SimpleNamespace(waiting=7)

    async def look() -> None:
        watching = asyncio.create_task(metrics.watch(cast(Writer, busy)))
        await asyncio.sleep(0)
        watching.cancel()

    awaited(look())
    assert metrics.registry.get_sample_value("lenience_waiting") == 7  # and nobody has asked for its metrics
    gone = subprocess.Popen(["true"])
    gone.wait()
    files = [tmp_path / f"gauge_livesum_{process}.db" for process in (os.getpid(), 1, gone.pid)]
    counted = tmp_path / f"counter_{gone.pid}.db"
    for path in (*files, counted):
        path.touch()
    remove_dead_processes(tmp_path)
    assert set(tmp_path.iterdir()) == {*files[:2], counted}


def test_the_rights_of_the_database_role_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    granted = re.findall(r"GRANT ((?:SELECT|INSERT|UPDATE|DELETE)[A-Z, ]*) ON (?!ALL)([a-z_, ]+) TO", page)
    assert {table: rights for rights, tables in granted for table in tables.split(", ")} == RIGHTS


def test_the_role_of_every_endpoint_is_documented() -> None:
    lines = (Path(__file__).parents[3] / "docs" / "service.md").read_text().splitlines()
    told: dict[str, str] = {}
    for line in lines:
        if line.startswith(("| `GET /v1", "| `POST /v1", "| `DELETE /v1")):
            addresses, role = line.split(" | ")[:2]
            told |= {address: role.strip("`") for address in re.findall(r"`(\w+ /v1[^`]*)`", addresses)}
    modules = (policies, monitoring, webhooks, solves, decisions, erasures, log, feed)
    handlers: list[Any] = [*(handler for module in modules for handler in module.HANDLERS), *document.ENDPOINTS]
    assert told == {
        f"{method} /v1{path.replace(':str', '')}": handler.opt["role"]
        for handler in handlers
        for method in handler.http_methods
        for path in handler.paths
    }
