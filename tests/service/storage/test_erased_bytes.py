"""Erased personal data is in no file of a SQLite database any more."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from apart import awaited
from engines import Engine
from lenience.service.commands.outcomes import Change
from lenience.service.domain.receipts import make_sender
from lenience.service.http.service import Service
from serving import sqlite_file

NAME = "Ada Lovelace, born 1815 in London"


def files_with(database: str, content: str) -> list[str]:
    """The files of a database that hold a text."""
    folder, name = Path(database).parent, Path(database).name
    return sorted(path.name[len(name) :] for path in folder.glob(f"{name}*") if content.encode() in path.read_bytes())


def test_an_erased_reference_is_gone_when_it_is_acknowledged(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    for i in range(30):
        engine.decide(reference=f"someone else {i}")
    made = engine.decide(reference=NAME)["id"]
    engine.override(made, "reject", reason=f"{NAME} is known to the branch")
    for i in range(30):
        engine.decide(reference=f"another one {i}")
    assert files_with(engine.database, NAME)
    engine.erase(made)
    assert files_with(engine.database, NAME) == []
    assert files_with(engine.database, "another one 17")
    assert engine.audit().whole
    engine.close()


def test_a_reader_only_delays_it(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    made = engine.decide(reference=NAME)["id"]
    engine.close()

    async def erase_beside_a_reader() -> tuple[list[str], list[str]]:
        service = Service(engine.database)
        await service.start()
        with service.store.read() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM personal").all()
            change = Change(make_sender("tester", None, "", ""), made, "erasure")
            await service.perform(change)
            during = files_with(engine.database, NAME)
        for _ in range(50):
            await asyncio.sleep(0.1)
            if not service.writer.wal_holds_erased:
                break
        after = files_with(engine.database, NAME)
        await service.stop()
        return during, after

    during, after = awaited(erase_beside_a_reader())
    assert during != []
    assert after == []


def test_a_start_after_a_crash_removes_it(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    made = engine.decide(reference=NAME)["id"]
    crashed = tmp_path / "crashed.db"
    with engine.store.read() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM personal").all()
        engine.erase(made)
        for ending in ("", "-wal"):  # what a crash leaves
            shutil.copy(engine.database + ending, f"{crashed}{ending}")
    engine.close()
    assert files_with(str(crashed), NAME)
    service = Service(str(crashed))
    assert files_with(str(crashed), NAME) == []
    service.writer.close()
    service.store.close()
