"""The store: addresses, one writer, the schema's history, and a database that is not there."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import func, inspect, select, text
from sqlalchemy.exc import IntegrityError

from engines import Engine
from lenience.cli import cli
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.events import PolicyCreated, write
from lenience.service.domain.problems import Damaged, Unavailable
from lenience.service.storage import schema
from lenience.service.storage.address import database_url
from lenience.service.storage.migrate import newest, revision_of
from lenience.service.storage.store import Store
from rejections import rejected
from serving import Postgres, sqlite_file


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("mysql://localhost/x", "invalid_value"),
        ("nonsense://", "invalid_value"),
        ("sqlite://", "invalid_value"),
        (":memory:", "invalid_value"),
        ("/nowhere/at/all.db", "missing_file"),
        ("postgresql+asyncpg://localhost/x", "invalid_value"),
        ("postgresql://localhost/x?colour=red", "unknown_name"),
        ("postgresql://me:pa@secret@localhost/x", "invalid_value"),
    ],
)
def test_addresses_that_cannot_be_used(address: str, code: str) -> None:
    with rejected("database", code) as caught:
        database_url(address)
    assert "secret" not in str(caught.value)


def test_passwords_are_not_shown() -> None:
    store = Store("postgresql://user:secret@localhost:1/none")
    assert "secret" not in store.name
    with pytest.raises(Unavailable, match=r"^the database is unavailable$") as told, store.read():
        pass
    assert "port 1 failed" in told.value.full_detail  # to who runs it, and to the log
    store.close()


def test_sqlite_has_one_writer(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    first = Store(database, serving=True)
    with rejected("database", "database_in_use"):
        Store(database, serving=True)
    link_to_it = tmp_path / "link.db"
    link_to_it.symlink_to(database)
    with rejected("database", "database_in_use"):
        Store(str(link_to_it), serving=True)
    assert Path(f"{database}.lock").stat().st_mode & 0o777 == 0o600
    first.close()
    Store(database, serving=True).close()


def test_migrations_from_the_first_schema_on(empty_database: str) -> None:
    store = Store(empty_database)
    store.upgrade("0001")
    with store.read() as connection:
        assert revision_of(connection) == "0001"
        assert "decision_pending" not in {index["name"] for index in inspect(connection).get_indexes("decision")}
    with rejected("database", "schema_mismatch"):
        store.check_schema()
    body = write(PolicyCreated(at=1, actor="first", name="kept"))
    head = link(genesis(None, None), body)
    with store.write() as connection:
        connection.execute(text("INSERT INTO policy (name, created_at) VALUES ('kept', 1)"))
        connection.execute(text("INSERT INTO event VALUES (1, 1, :body, :head, NULL)"), {"body": body, "head": head})
        connection.execute(text("UPDATE chain SET length = 1, head = :head WHERE id = 1"), {"head": head})
    store.upgrade()
    store.check_schema()
    with store.write() as connection:
        assert revision_of(connection) == newest()
        assert connection.execute(text("SELECT name FROM policy")).scalar_one() == "kept"
        connection.execute(
            text("INSERT INTO chain (policy_id, head) VALUES (1, :head)"), {"head": genesis("kept", None)}
        )
    store.close()
    engine = Engine(empty_database)
    assert engine.audit().whole
    engine.create()
    engine.decide()
    report = engine.audit()
    assert report.whole
    assert report.heads[0].length == 2
    engine.close()


def test_many_rows_are_written_in_one_go(database: str) -> None:
    store = Store(database)
    store.upgrade()
    rows = [(1, seq, f"body {seq}", "hash", None) for seq in range(1, 400)]
    with store.write() as connection:
        store.insert(connection, schema.event, rows)
        changes = [(f"new {i}", "h", i) for i in range(2, 300)]
        store.run(connection, store.statements.update(schema.event, "seq", ("body", "hash"), changes))
    with store.read() as connection:
        found = connection.execute(text("SELECT body, hash FROM event ORDER BY seq")).all()
    assert found[:2] == [("body 1", "hash"), ("new 2", "h")]
    assert found[298:] == [("new 299", "h"), *((f"body {seq}", "hash") for seq in range(300, 400))]
    with pytest.raises((sqlite3.IntegrityError, IntegrityError)), store.write() as connection:
        store.insert(connection, schema.event, [(1, 400, "body", "hash", None), (1, 7, "twice", "hash", None)])
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM event")).scalar_one() == 399
    store.close()


def test_values_come_back_as_they_were_written(database: str) -> None:
    texts = ['say "no"', "back\\slash", "NULL", "", "a,b", "{x}", " a ", "line\nbreak\ttab", "Ünï→𝄞", "%s $1", None]
    numbers = [0.1, 1e300, -5e-324, 0.0, float("inf"), None]
    store = Store(database)
    store.upgrade()
    people = [(1, i, "salt", text, text) for i, text in enumerate(texts)]
    decisions = [(f"d{i}", 1, i, 1, 1 << 60, 1, "pending", x, x, None, None, None) for i, x in enumerate(numbers)]
    tiles = [(0, 0, bytes(range(256))), (0, 1, b"")]
    with store.write() as connection:
        for table, rows in ((schema.personal, people), (schema.decision, decisions), (schema.log_tile, tiles)):
            store.insert(connection, table, rows)
        (found,) = store.run(
            connection,
            store.statements.select(schema.decision, (), "id", [row[0] for row in decisions]),
        )
        assert sorted(tuple(row) for row in found) == decisions
        (none,) = store.run(connection, store.statements.select(schema.decision, ("id",), "id", ["x"]))
        assert none == []
    with store.read() as connection:
        for table, rows in ((schema.personal, people), (schema.log_tile, tiles)):
            assert sorted(tuple(row) for row in connection.execute(select(table))) == rows
    store.close()


def test_the_migrated_schema_is_the_described_one(database: str) -> None:
    store = Store(database)
    store.upgrade()
    with store.read() as connection:
        found = inspect(connection)
        assert set(found.get_table_names()) == {*schema.metadata.tables, "alembic_version"}
        for name, table in schema.metadata.tables.items():
            columns = {column["name"]: column["nullable"] for column in found.get_columns(name)}
            assert columns == {column.name: column.nullable for column in table.columns}, name
            assert set(found.get_pk_constraint(name)["constrained_columns"]) == {one.name for one in table.primary_key}
            indexes = {index["name"] for index in found.get_indexes(name) if not index.get("duplicates_constraint")}
            assert indexes == {index.name for index in table.indexes}, name
    store.close()


def test_a_database_of_others_is_refused(run: Callable[..., tuple[int, str, str]], empty_database: str) -> None:
    store = Store(empty_database)
    with store.write() as connection:
        connection.execute(text("CREATE TABLE event (id INTEGER)"))
    store.close()
    for command in (("serve", "--port", "0"), ("keys", "create", "--label", "x", "--role", "read"), ("audit",)):
        code, _, err = run(*command, "--database", empty_database)
        assert code == 2
        assert err.startswith("lenience: this database has tables of another application (event)")
        assert len(err.splitlines()) == 1


def test_an_empty_database_is_said_to_be_empty(empty_database: str) -> None:
    store = Store(empty_database)
    with rejected("database", "schema_mismatch"):
        store.check_schema()
    store.close()


def test_commits_are_on_the_disk(tmp_path: Path) -> None:
    store = Store(sqlite_file(tmp_path))
    with store.write() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2  # FULL
    store.close()


def test_a_full_disk_is_a_refusal_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.decide()
    with engine.store.write() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        connection.execute(text(f"PRAGMA max_page_count = {pages + 1}"))
    told: set[str] = set()
    for _ in range(20):
        try:
            engine.batch(["young"] * 20)
        except Unavailable as problem:
            told.add(problem.detail)
    assert told == {"the database is unavailable (database or disk is full)"}
    assert engine.audit().whole
    with engine.store.write() as connection:
        connection.execute(text("PRAGMA max_page_count = 1000000"))
    engine.decide()
    assert engine.audit().whole
    engine.close()


def test_a_file_that_is_gone_is_noticed_and_comes_back(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    engine = Engine(database)
    engine.create()
    engine.decide()
    aside = Path(f"{database}.aside")
    for ending in ("", "-wal", "-shm"):
        if Path(database + ending).exists():
            Path(database + ending).rename(str(aside) + ending)
    with pytest.raises(Unavailable, match="does not exist any more"):
        engine.decide()
    for ending in ("", "-wal", "-shm"):
        if Path(str(aside) + ending).exists():
            Path(str(aside) + ending).rename(database + ending)
    engine.decide()
    assert engine.counts()[2] == 2
    assert engine.audit().whole
    engine.close()


def test_reading_makes_and_changes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    engine = Engine(str(folder / "a b#?%.db"))
    engine.create()
    engine.decide()
    beside = Store(engine.database, reading=True)
    with beside.read() as connection:
        assert connection.execute(select(func.count()).select_from(schema.decision)).scalar() == 1
    beside.close()
    engine.close()
    file = Path(engine.database)
    Path(f"{file}.lock").unlink()
    file.chmod(0o444)
    folder.chmod(0o555)
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    reading = Store(engine.database, reading=True)
    reading.check_schema()
    with reading.read() as connection:
        assert connection.execute(select(func.count()).select_from(schema.decision)).scalar() == 1
        assert list(folder.iterdir()) == [file]
    with pytest.raises(Unavailable, match="readonly"), reading.read() as connection:
        connection.execute(schema.decision.delete())
    reading.close()
    for command in (["audit", "--database", engine.database], ["keys", "list", "--database", engine.database]):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
    assert list(folder.iterdir()) == [file]
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    folder.chmod(0o755)


def test_a_file_written_to_while_it_is_read_is_refused(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.close()
    reading = Store(engine.database, reading=True)

    def read_beside_a_writer() -> None:
        with reading.read() as connection:
            connection.execute(select(schema.policy)).all()
            meanwhile = Engine(engine.database)
            meanwhile.decide()
            meanwhile.close()

    with pytest.raises(Unavailable, match="changed while it was read"):
        read_beside_a_writer()
    reading.close()


def test_reading_postgresql_changes_nothing(postgres: Postgres) -> None:
    database = postgres.emptied()
    store = Store(database)
    store.upgrade()
    store.close()
    reading = Store(database, reading=True)
    with pytest.raises(Unavailable, match="read-only"), reading.read() as connection:
        connection.execute(schema.policy.delete())
    reading.close()


def test_backup_and_restore_of_sqlite(tmp_path: Path) -> None:
    """A copy made while the service goes on is whole, and serves."""
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.batch(["young"] * 10)
    copy = str(tmp_path / "backup.db")
    source, target = sqlite3.connect(engine.database), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    engine.batch(["young"] * 5)
    heads = engine.audit().heads
    engine.close()
    restored = Engine(copy)
    assert restored.counts()[2] == 10
    assert restored.decide()["pending"] == 10
    assert restored.audit().whole
    from lenience.service.queries.audit import audit

    assert not audit(restored.store, heads).whole, "what the backup has not got is found by the earlier audit"
    restored.close()


def test_backup_and_restore_of_postgresql(postgres: Postgres) -> None:
    first = postgres.database()
    engine = Engine(first)
    engine.create()
    engine.batch(["young"] * 10)
    tools = Path(postgres.server.bin_path)
    dump = subprocess.run([str(tools / "pg_dump"), first], capture_output=True, check=True).stdout
    engine.close()
    second = postgres.database()
    subprocess.run([str(tools / "psql"), "-q", "-v", "ON_ERROR_STOP=1", second], input=dump, check=True)
    restored = Engine(second)
    assert restored.decide()["pending"] == 10
    assert restored.audit().whole
    restored.close()


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, only words " * 200)
    store = Store(str(path))
    with pytest.raises(Damaged, match="damaged or is not a database"):
        store.upgrade()
    store.close()


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = Store(sqlite_file(tmp_path))
    store.upgrade()
    with store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for use in (store.upgrade, store.check_schema):
        with rejected("database", "schema_mismatch"):
            use()
    store.close()
