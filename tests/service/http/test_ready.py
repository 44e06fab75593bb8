"""/ready is a 200 only while the database can be read and written."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from apart import awaited
from lenience.dashboard.app import create_app
from lenience.service.http.service import Service
from lenience.service.storage import store as storage
from serving import sqlite_file

GET_FLAGS, SET_FLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10  # of a file, on Linux


def set_flag(path: str, flag: int, on: bool) -> None:
    with Path(path).open("rb") as file:
        flags = struct.unpack("l", fcntl.ioctl(file, GET_FLAGS, struct.pack("l", 0)))[0]
        fcntl.ioctl(file, SET_FLAGS, struct.pack("l", flags | flag if on else flags & ~flag))


@contextmanager
def immutable(*paths: str) -> Iterator[None]:
    """Files that nobody can write, not even root by a file that is open already."""
    try:
        for path in paths:
            set_flag(path, IMMUTABLE, True)
    except OSError:
        pytest.skip("this file system cannot make a file read-only for root")
    try:
        yield
    finally:
        for path in paths:
            set_flag(path, IMMUTABLE, False)


class Application:
    """The application in this process."""

    def __init__(self, database: str) -> None:
        made: Any = create_app(database)
        self.app = made
        self.service: Service = made.app.state.service

    def ready(self) -> tuple[int, str]:
        """The status of /ready, and the detail that it tells everybody."""

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self.app), base_url="http://localhost"
            ) as client:
                return await client.get("/ready")

        answer = awaited(ask())
        return answer.status_code, answer.json().get("detail", "")


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    made = Application(sqlite_file(tmp_path))
    yield made
    with suppress(Exception):
        awaited(made.service.stop())


REFUSED = (503, "the database is unavailable")


def test_ready_and_ready_again(application: Application) -> None:
    assert [application.ready()[0] for _ in range(3)] == [200] * 3


def test_a_read_only_file(application: Application) -> None:
    assert application.ready()[0] == 200
    database = str(application.service.store.path)
    with immutable(database, f"{database}-wal"):
        assert application.ready() == REFUSED
    assert application.ready()[0] == 200


def test_a_file_without_write_permission(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write to every file
    assert application.ready() == REFUSED


def test_a_full_disk(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "LEAST_FREE_BYTES", 1 << 62)
    assert application.ready() == REFUSED


def overwritten(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * length)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: overwritten(path, 0, 100),
        lambda path: overwritten(path, 0, path.stat().st_size),
        lambda path: overwritten(path, 100, path.stat().st_size - 100),
        lambda path: path.write_bytes(b""),
    ],
    ids=["header", "all", "all but the header", "emptied"],
)
def test_a_damaged_file(application: Application, damage: Callable[[Path], object]) -> None:
    application.service.store.checkpoint()
    assert application.ready()[0] == 200
    application.service.store.checkpoint()
    damage(application.service.store.path)
    assert application.ready() == REFUSED
    assert application.ready() == REFUSED


def test_damage_that_a_request_has_met(application: Application) -> None:
    store = application.service.store
    with pytest.raises(Exception, match="nothing_of_this_name"), store.read() as connection:
        connection.execute(text("SELECT * FROM nothing_of_this_name"))
    assert application.ready() == REFUSED
