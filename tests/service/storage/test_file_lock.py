"""One process writes to a SQLite file, whatever name it opens the file by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from engines import Engine
from lenience.service.storage.store import Store
from rejections import rejected
from serving import sqlite_file

TRY = """
import sys
from lenience.core.errors import InputError
from lenience.service.storage.store import Store
try:
    Store(sys.argv[1], serving=True).close()
    print("opened")
except InputError as error:
    print(error.code)
"""


def opened_by_another_process(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", TRY, str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_hard_link_does_not_open_the_file_twice(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    second_name = elsewhere / "second.db"
    first = Engine(database)
    os.link(database, second_name)
    with rejected("database", "database_in_use"):
        Store(str(second_name), serving=True)
    assert opened_by_another_process(second_name) == "database_in_use"
    first.create()
    first.decide()
    assert opened_by_another_process(second_name) == "database_in_use"
    first.close()
    assert opened_by_another_process(second_name) == "opened"


def test_a_rejected_second_writer_does_not_release_the_locks_of_sqlite(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    with engine.store.write():
        with rejected("database", "database_in_use"):
            Store(engine.database, serving=True)
        script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0, 0, None).execute('BEGIN IMMEDIATE')"
        second = subprocess.run([sys.executable, "-c", script, engine.database], capture_output=True, text=True)
        assert "database is locked" in second.stderr
    engine.decide()
    engine.close()


def test_a_replaced_file_is_locked_too(tmp_path: Path) -> None:
    engine, copy = Engine(sqlite_file(tmp_path)), tmp_path / "copy.db"
    engine.create()
    other = Engine(str(copy))
    other.create()
    other.close()
    engine.store.checkpoint()
    for ending in ("", "-wal", "-shm"):
        Path(engine.database + ending).unlink(missing_ok=True)
    copy.rename(engine.database)
    engine.decide()
    second_name = tmp_path / "second.db"
    os.link(engine.database, second_name)
    assert opened_by_another_process(second_name) == "database_in_use"
    engine.close()
