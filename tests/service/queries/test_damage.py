"""Damage to a file, a table or an index is a finding with its place, and the audit goes on."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text

from apart import awaited
from engines import Engine
from lenience.dashboard.app import create_app
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.domain.problems import UnreadableText
from lenience.service.domain.receipts import CommandAnswer, make_sender
from lenience.service.http.service import Service
from lenience.service.queries.audit import audit
from lenience.service.storage.integrity import Damage, count_rows, table_names
from lenience.service.storage.store import Store
from lenience.service.storage.writer import QueuedCommand
from rejections import rejected
from serving import Postgres, sqlite_file

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def filled(tmp_path: Path) -> str:
    """A closed SQLite database whose tables have several pages."""
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    for i in range(20):
        engine.batch(["young", "old"] * 20, key=f"key {i}")
    engine.decide("young", reference="Ada Lovelace")
    engine.close()
    return engine.database


def findings(run: Run, database: str) -> list[dict[str, str]]:
    """What the audit prints, with exit code 1."""
    code, out, err = run("audit", "--database", database, "--json")
    assert (code, err) == (1, "")
    listed: list[dict[str, str]] = json.loads(out)["findings"]
    return listed


def leaf_pages(path: str, table: str) -> tuple[int, list[int]]:
    """The page size, and the leaf pages of a table or an index."""
    with sqlite3.connect(path) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    connection.close()
    content = Path(path).read_bytes()

    def leaves(page: int) -> list[int]:
        start = (page - 1) * size
        kind, cells = content[start], int.from_bytes(content[start + 3 : start + 5])
        if kind in (10, 13):
            return [page]
        pointers = [
            int.from_bytes(content[start + 12 + 2 * i : start + 14 + 2 * i]) for i in range(cells)
        ]  # of the cells, which begin with the number of a page
        below = [int.from_bytes(content[start + at : start + at + 4]) for at in pointers]
        below.append(int.from_bytes(content[start + 8 : start + 12]))
        return [leaf for child in below for leaf in leaves(child)]

    return size, leaves(root)


def overwrite(path: str, at: int, content: bytes) -> None:
    with Path(path).open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_a_row_that_vanishes_from_its_page(run: Run, filled: str) -> None:
    """The page still looks like a page of the table, but has a row less: no statement fails."""
    size, leaves = leaf_pages(filled, "decision")
    assert len(leaves) > 3
    start = (leaves[1] - 1) * size
    rows = int.from_bytes(Path(filled).read_bytes()[start + 3 : start + 5])
    overwrite(filled, start + 3, (rows - 1).to_bytes(2))
    listed = findings(run, filled)
    assert any(one["where"] == "table decision" and "index decision_of_chain has" in one["what"] for one in listed)
    assert any(one["where"].startswith("decision 0") and "its row is missing" in one["what"] for one in listed)
    with rejected("database", "database_unusable"):
        store = Store(filled)
        try:
            store.check_integrity()
        finally:
            store.close()


def test_a_page_that_cannot_be_read(run: Run, filled: str) -> None:
    size, leaves = leaf_pages(filled, "event")
    overwrite(filled, (leaves[2] - 1) * size, b"\xa5" * size)
    listed = findings(run, filled)
    assert any(one["where"] == "table event" and "the file is damaged" in one["what"] for one in listed)
    places = [one["where"] for one in listed if "it cannot be read" in one["what"]]
    assert any(place.startswith("event ") and "of segment" in place for place in places)


def test_damage_to_a_solved_table_does_not_end_the_audit(run: Run, filled: str) -> None:
    size, leaves = leaf_pages(filled, "solved")
    overwrite(filled, (leaves[0] - 1) * size, b"\xa5" * size)
    code, out, _ = run("audit", "--database", filled, "--json")
    report = json.loads(out)
    assert (code, report["decisions"]) == (1, 801)
    assert report["findings"][0]["where"] == "table solved"
    assert not any("belong" in one["what"] for one in report["findings"])


def test_a_file_whose_first_page_is_gone(run: Run, filled: str) -> None:
    overwrite(filled, 100, b"\xff" * 3000)  # after the header
    assert [one["where"] for one in findings(run, filled)] == ["the database"]


def test_an_event_that_cannot_be_read(run: Run, database: str) -> None:
    engine = Engine(database)
    engine.create()
    for i in range(6):
        engine.decide(key=f"key {i}")
    with engine.store.write() as connection:
        connection.execute(
            text("UPDATE event SET body = 'x' || body WHERE seq = 3 AND chain_id IN (SELECT chain_id FROM decision)")
        )
    engine.close()
    listed = findings(run, database)
    event = "event 3 of segment 'young' of policy 'cards'"
    assert {"where": event, "what": "its hash does not follow from its text and the event before it"} in listed
    unreadable = "its text cannot be read, so the events after it are checked without it"
    assert {"where": event, "what": unreadable} in listed
    assert not any("event 5" in one["where"] for one in listed), "the events after it are checked as before"


@pytest.mark.parametrize("value", ["x'00ff'", "x'7b7d'", "17", "NULL"])
@pytest.mark.parametrize("column", ["event.body", "event.hash", "decision.at", "personal.reference", "solved.body"])
def test_a_value_of_another_type(filled: str, column: str, value: str) -> None:
    table, name = column.split(".")
    with sqlite3.connect(filled) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA writable_schema = ON")
        for kind in ("VARCHAR(64)", "TEXT", "BIGINT"):
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?)", (f"{kind} NOT NULL", kind))
    connection.close()
    with sqlite3.connect(filled) as connection:
        connection.execute(f"UPDATE {table} SET {name} = {value} WHERE {name} IS NOT NULL")
    connection.close()
    store = Store(filled, reading=True)
    report = audit(store)
    store.close()
    assert not report.whole
    assert all(len(finding.where) < 200 for finding in report.findings)


def test_a_text_that_is_not_utf_8_is_not_repeated(filled: str, run: Run) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute("UPDATE personal SET reference = CAST(x'416461ff' AS TEXT) WHERE reference IS NOT NULL")
    connection.close()
    engine = Engine(filled)
    with engine.store.read() as reading:
        newest = reading.execute(text("SELECT max(id) FROM decision")).scalar_one()
    with pytest.raises(UnreadableText) as caught:
        engine.queries.decision(newest)
    engine.store.check_readable()  # one text is damaged, the database is not
    engine.close()
    assert "Ada" not in caught.value.full_detail
    listed = findings(run, filled)
    assert [one["what"] for one in listed] == ["it differs from what the event commits to"]
    assert listed[0]["where"].startswith("personal data at event ")


def test_a_text_that_is_not_utf_8_is_in_no_answer_and_no_log(
    filled: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute("UPDATE personal SET reference = CAST(x'416461ff' AS TEXT) WHERE reference IS NOT NULL")
        (newest,) = connection.execute("SELECT max(id) FROM decision").fetchone()
    connection.close()
    app: Any = create_app(filled)

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.get(f"/v1/decisions/{newest}")

    with caplog.at_level(logging.INFO):
        answer = awaited(ask())
    awaited(app.app.state.service.stop())
    assert answer.status_code == 503
    assert answer.json()["detail"] == "a text in the column 'reference' is damaged (not UTF-8). Run lenience audit."
    logged = [str(vars(record)) for record in caplog.records if record.name.startswith("lenience")]
    assert logged
    assert not any("Ada" in line for line in [*logged, answer.text, capsys.readouterr().err])


@pytest.mark.parametrize("table", ["event", "personal", "idempotency", "solved"])
def test_rows_that_postgresql_cannot_read(postgres: Postgres, run: Run, table: str) -> None:
    """A view stands for the table, and fails as the server does at a damaged page."""
    database = postgres.database()
    engine = Engine(database)
    engine.create()
    for i in range(5):
        engine.decide(reference=f"person {i}", key=f"key {i}")
    engine.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION fails() RETURNS boolean LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'invalid page in block 3' USING ERRCODE = 'XX001'; END $$"
        )
        connection.execute(f"ALTER TABLE {table} RENAME TO {table}_file")
        after = "TRUE" if table in ("idempotency", "solved") else "seq > 2"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {table}_file WHERE NOT {after} OR fails()")
    listed = findings(run, database)
    assert any("PostgreSQL reports damage (invalid page in block 3)" in one["what"] for one in listed)
    if table == "personal":
        assert [one["where"] for one in listed] == ["segment 'young' of policy 'cards'"], "the rest is checked"


def test_versions_of_a_policy_that_does_not_exist(filled: str, run: Run) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute(
            "INSERT INTO version (policy_id, number, state, specification, segments, created_at) "
            "SELECT 99, number, state, specification, segments, created_at FROM version"
        )
    connection.close()
    listed = findings(run, filled)
    assert listed == [{"where": "version 1 of policy number 99", "what": "no policy has this number"}]


def test_versions_of_a_policy_that_does_not_exist_on_postgresql(postgres: Postgres) -> None:
    engine = Engine(postgres.emptied())
    engine.create()
    with engine.store.write() as connection:
        connection.execute(text("SET session_replication_role = replica"))
        copied = "SELECT 99, number, state, specification, segments, created_at FROM version"
        connection.execute(text(f"INSERT INTO version {copied}"))
        connection.execute(text("SET session_replication_role = DEFAULT"))
    assert [finding.what for finding in engine.audit().findings] == ["no policy has this number"]
    engine.close()


def test_every_index_is_counted(database: str) -> None:
    engine = Engine(database)
    engine.create()
    engine.override(engine.decide(reference="x", key="k")["id"], "reject")
    with engine.store.read() as connection:
        tables = table_names(connection)
        assert {"decision", "event", "personal"} <= set(tables)
        assert [damage for table in tables for damage in count_rows(connection, table)] == []
    engine.close()


def test_the_integrity_check_names_the_table(filled: str) -> None:
    size, leaves = leaf_pages(filled, "decision_of_chain")
    overwrite(filled, (leaves[0] - 1) * size + 3, (0).to_bytes(2))
    store = Store(filled)
    full, quick = store.find_damage(quick=False), store.find_damage(quick=True)
    store.close()
    assert {damage.where for damage in full} == {"table decision"}
    assert quick == [] or {damage.where for damage in quick} == {"table decision"}


def test_a_sound_file_is_checked_until_it_changes(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bool] = []

    def find_damage(self: Store, *, quick: bool) -> list[Damage]:
        checked.append(quick)
        return []

    monkeypatch.setattr(Store, "find_damage", find_damage)

    def check() -> None:
        store = Store(filled)
        store.check_integrity()
        store.check_writable()
        store.close()

    check()
    check()
    assert checked == [False]
    overwrite(filled, 5000, b"x")
    check()
    monkeypatch.setattr("lenience.service.storage.store.FULL_CHECK_BYTES", 1000)
    overwrite(filled, 5000, b"y")
    check()
    assert checked == [False, False, True]


def test_a_damaged_file_is_not_migrated(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path)
    store = Store(path)
    store.upgrade("0004")
    store.close()
    size, leaves = leaf_pages(path, "chain")
    overwrite(path, (leaves[0] - 1) * size, b"\xa5" * size)
    before = Path(path).read_bytes()
    with rejected("database", "database_unusable"):
        Service(path)
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("damage", [lambda body: b"{\xff", lambda body: body.replace(b"tester", b"te\xffter")])
def test_one_unreadable_text_does_not_fail_the_commands_beside_it(
    filled: str, damage: Callable[[bytes], bytes]
) -> None:
    newest = "seq = (SELECT max(seq) FROM event)"
    with sqlite3.connect(filled) as connection:
        (body,) = connection.execute(f"SELECT CAST(body AS BLOB) FROM event WHERE {newest}").fetchone()
        assert damage(body) != body
        connection.execute(f"UPDATE event SET body = CAST(? AS TEXT) WHERE {newest}", (damage(body),))
    connection.close()
    engine = Engine(filled)
    request = DecisionRequest("old")
    fine = Decide(make_sender("tester", None, "", ""), "cards", [request], True)
    outcome = OutcomeItem(reference="Ada Lovelace", outcome="success")
    broken = RecordOutcomes(make_sender("tester", None, "", ""), [outcome])
    results = engine.writer._write([QueuedCommand(command, lambda result: None) for command in (fine, broken, fine)])
    engine.close()
    assert [type(result) for result in results] == [CommandAnswer, UnreadableText, CommandAnswer]


def test_a_service_that_cannot_start_releases_its_file(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*about: object, **more: object) -> None:
        raise UnreadableText("damaged")

    with monkeypatch.context() as patched:
        patched.setattr("lenience.service.http.service.Writer", fail)
        with pytest.raises(UnreadableText) as raised:
            Service(filled)
    Store(filled, serving=True).close()
    assert raised.tb is not None  # it holds the service, so that nothing is closed by chance
