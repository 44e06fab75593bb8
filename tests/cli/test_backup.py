"""lenience backup and lenience restore: consistent while the service runs, and nothing is replaced unseen."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engines import Engine
from lenience.service.queries.audit import audit
from lenience.service.storage import copying
from lenience.service.storage.store import Store
from serving import Postgres, Served, sqlite_file

Run = Callable[..., tuple[int, str, str]]
OLD = Path(__file__).parents[1] / "service" / "old_logs" / "first.db"


def decided(database: str) -> int:
    """The number of decisions in a database that passes its audit."""
    store = Store(database, reading=True)
    report = audit(store)
    store.close()
    assert report.findings == []
    return report.decisions


def backed_up(run: Run, database: str, output: Path) -> dict[str, Any]:
    code, out, err = run("backup", "--database", database, "--output", str(output), "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def restored(run: Run, database: str, backup: Path) -> dict[str, Any]:
    code, out, err = run("restore", "--database", database, "--input", str(backup), "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    assert answer["restored"] is True
    return answer


def crashed(engine: Engine, folder: Path) -> Path:
    """The files of a database as a crash leaves them: the newest commits are in the -wal file."""
    folder.mkdir()
    left = folder / "decisions.db"
    for ending in ("", "-wal", "-shm"):
        shutil.copy(engine.database + ending, f"{left}{ending}")
    assert Path(f"{left}-wal").stat().st_size > 0
    return left


def test_a_backup_while_decisions_are_made(run: Run, database: str, tmp_path: Path) -> None:
    engine = Engine(database)
    engine.create()
    stop = threading.Event()

    def decide() -> None:
        while not stop.is_set():
            engine.batch(["young", "old"] * 10)

    threads = [threading.Thread(target=decide) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        answers = [backed_up(run, database, tmp_path / f"backup {i}.db") for i in range(3)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    counts = [decided(str(tmp_path / f"backup {i}.db")) for i in range(3)]
    assert counts == [answer["decisions"] for answer in answers]
    assert counts[0] < counts[2] < decided(database)
    assert all(count % 20 == 0 for count in counts), "a batch is in a backup as a whole"
    assert not any(path.suffix == ".partial" for path in tmp_path.iterdir())
    assert {(tmp_path / f"backup {i}.db").stat().st_mode & 0o777 for i in range(3)} == {0o600}
    expected = tmp_path / "expected.json"
    expected.write_text(json.dumps(answers[0]))
    assert run("audit", "--database", database, "--expect", str(expected))[0] == 0
    engine.close()


def test_restoring_beside_a_left_wal_file(run: Run, tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.batch(["young"] * 10)
    backed_up(run, engine.database, tmp_path / "backup.db")
    engine.batch(["young"] * 7)
    left = crashed(engine, tmp_path / "crashed")
    engine.close()
    answer = restored(run, str(left), tmp_path / "backup.db")
    assert decided(str(left)) == answer["decisions"] == 10
    assert decided(answer["previous"]) == 17, "the previous database has all that was committed"
    assert not Path(f"{left}-wal").exists()
    again = Engine(str(left))
    assert again.decide()["pending"] == 10
    again.close()
    assert decided(str(left)) == 11
    assert decided(str(tmp_path / "backup.db")) == 10


def test_restoring_over_a_damaged_database(run: Run, tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.batch(["young"] * 10)
    backed_up(run, engine.database, tmp_path / "backup.db")
    engine.store.checkpoint()
    engine.decide()
    left = crashed(engine, tmp_path / "crashed")
    engine.close()
    left.write_bytes(b"\xa5" * left.stat().st_size)
    answer = restored(run, str(left), tmp_path / "backup.db")
    assert decided(str(left)) == 10
    assert Path(answer["previous"]).read_bytes()[:1] == b"\xa5"
    assert sorted(path.name for path in left.parent.glob("decisions.db*-wal")) == [
        f"{Path(answer['previous']).name}-wal"
    ]


def test_a_restore_that_was_interrupted_can_be_repeated(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.batch(["young"] * 10)
    backed_up(run, engine.database, tmp_path / "backup.db")
    left = crashed(engine, tmp_path / "crashed")
    engine.close()
    rename = os.rename
    for steps in range(2):
        done: list[str] = []

        def stop(source: Any, target: Any, done: list[str] = done, steps: int = steps) -> None:
            if len(done) == steps:
                raise OSError("stopped")
            done.append(str(source))
            rename(source, target)

        with monkeypatch.context() as patched:
            patched.setattr(copying.os, "rename", stop)  # type: ignore[attr-defined]
            assert run("restore", "--database", str(left), "--input", str(tmp_path / "backup.db"))[0] == 2
    restored(run, str(left), tmp_path / "backup.db")
    assert decided(str(left)) == 10


def test_a_restore_refuses_while_the_database_is_open(run: Run, tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.decide()
    backed_up(run, engine.database, tmp_path / "backup.db")
    words = ("restore", "--database", engine.database, "--input", str(tmp_path / "backup.db"))
    code, _, err = run(*words)
    assert code == 2
    assert "Stop the service before you restore." in err
    engine.close()
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM chain'); print(); input()"
    reader = subprocess.Popen(
        [sys.executable, "-c", script, engine.database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    code, _, err = run(*words)
    reader.communicate("\n")
    assert code == 2
    assert "open" in err
    assert decided(engine.database) == 1
    assert not list(tmp_path.glob("*before-restore*"))
    restored(run, engine.database, tmp_path / "backup.db")


def test_a_restore_refuses_while_a_service_runs(run: Run, database: str, tmp_path: Path) -> None:
    engine = Engine(database)
    engine.create()
    engine.close()
    backed_up(run, database, tmp_path / "backup.db")
    served = Served(database)
    try:
        code, _, err = run("restore", "--database", database, "--input", str(tmp_path / "backup.db"))
    finally:
        served.stop()
    assert code == 2
    assert "Stop the service before you restore." in err


def test_a_damaged_backup_replaces_nothing(run: Run, tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.batch(["young"] * 50)
    backup = tmp_path / "backup.db"
    backed_up(run, engine.database, backup)
    engine.close()
    before = Path(engine.database).read_bytes()
    with sqlite3.connect(backup) as connection:
        connection.execute("UPDATE decision SET status = 'success' WHERE seq = 3")
    connection.close()
    code, out, _ = run("restore", "--database", engine.database, "--input", str(backup))
    assert code == 1
    assert "status: success in the table, pending in the log" in out
    assert "Nothing was restored: 1 finding in the backup." in out
    with backup.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * 4096)
    assert run("restore", "--database", engine.database, "--input", str(backup))[0] == 1
    backup.write_text("no database")
    assert run("restore", "--database", engine.database, "--input", str(backup))[0] == 2
    assert Path(engine.database).read_bytes() == before
    missing = tmp_path / "new.db"
    assert run("restore", "--database", str(missing), "--input", str(tmp_path / "none.db"))[0] == 2
    assert not missing.exists()


def test_a_damaged_database_is_backed_up_and_reported(run: Run, tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.decide()
    engine.close()
    with sqlite3.connect(engine.database) as connection:
        connection.execute("DELETE FROM decision")
    connection.close()
    code, out, _ = run("backup", "--database", engine.database, "--output", str(tmp_path / "backup.db"))
    assert code == 1
    assert "its row is missing" in out
    assert (tmp_path / "backup.db").exists()


def test_what_cannot_be_backed_up(run: Run, tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.close()
    taken, other = tmp_path / "taken.db", tmp_path / "other.db"
    taken.write_text("something else")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE event (x)")
    connection.close()
    for database, output, reason in [
        (engine.database, taken, "exists"),
        (engine.database, tmp_path / "no folder" / "x.db", "in a folder that exists"),
        (str(tmp_path / "none.db"), tmp_path / "x.db", "does not exist"),
        (str(other), tmp_path / "x.db", "tables of another application"),
        (str(taken), tmp_path / "x.db", "damaged or is not a database"),
    ]:
        code, _, err = run("backup", "--database", database, "--output", str(output))
        assert code == 2
        assert reason in err
    assert taken.read_text() == "something else"
    assert not (tmp_path / "x.db").exists()


def test_a_backup_goes_into_either_kind_of_database(
    run: Run, database: str, postgres: Postgres, tmp_path: Path
) -> None:
    engine = Engine(database)
    engine.create(key="make")
    made = engine.decide(reference="Ada Lovelace", key="once")
    engine.override(made["id"], "reject")
    engine.batch(["young", "old"] * 20)
    engine.close()
    answer = backed_up(run, database, tmp_path / "backup.db")
    for target in (str(tmp_path / "restored.db"), postgres.database()):
        restored_answer = restored(run, target, tmp_path / "backup.db")
        assert restored_answer["digest"] == answer["digest"]
        assert restored_answer["previous"] is None
        again = Engine(target)
        assert again.decide(reference="Ada Lovelace", key="once") == made, "stored answers are restored"
        again.create(name="another")  # its number follows those of the backup
        again.decide(policy="another")
        assert again.audit().findings == []
        again.close()
    code, _, err = run("restore", "--database", target, "--input", str(tmp_path / "backup.db"))
    assert code == 2
    assert "The database has data." in err


def test_a_backup_with_an_older_schema_is_upgraded(run: Run, tmp_path: Path, postgres: Postgres) -> None:
    old, backup = sqlite_file(tmp_path), tmp_path / "backup.db"
    store = Store(old)
    store.upgrade("0004")
    store.close()
    code, out, _ = run("backup", "--database", old, "--output", str(backup))
    assert code == 0
    assert "not audited" in out
    before = backup.read_bytes()
    for target in (str(tmp_path / "restored.db"), postgres.database()):
        assert restored(run, target, backup)["chains"] == 1
    assert backup.read_bytes() == before


def test_an_old_log_is_backed_up_and_restored(run: Run, tmp_path: Path, postgres: Postgres) -> None:
    backed_up(run, str(OLD), tmp_path / "backup.db")
    targets = (str(tmp_path / "restored.db"), postgres.database())
    counts = [restored(run, target, tmp_path / "backup.db")["decisions"] for target in targets]
    assert counts[0] == counts[1] > 0


def test_erased_data_is_in_no_backup(run: Run, database: str, tmp_path: Path) -> None:
    engine = Engine(database)
    engine.create()
    made = engine.decide(reference="Ada Lovelace, born 1815")["id"]
    engine.erase(made)
    backed_up(run, database, tmp_path / "backup.db")
    engine.close()
    assert b"Ada Lovelace" not in (tmp_path / "backup.db").read_bytes()
