"""A simulated machine: its disk, its clock and its threads, and the engine's modules connected to them."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine

from faults.disk import Disk
from faults.scheduler import Scheduler, SimulatedFuture, SimulatedLock, SimulatedQueue, SimulatedThread
from faults.sqlite_vfs import FaultyVfs
from lenience.service.commands import keys
from lenience.service.domain import clock, identity, signed_note
from lenience.service.http import service as service_module
from lenience.service.storage import file_lock, policy_cache, private_file, session_secrets, store, writer

START = 1_767_960_000_000_000  # the ninth of January 2026 in microseconds
DATABASE = "decisions.db"
_vfs: list[FaultyVfs] = []  # SQLite may call it until this process ends
_engines: list[Engine] = []  # the first one: all others compile their statements into its cache


class Machine:
    """The machine that a schedule runs on. One machine serves all schedules of a process, one after the other."""

    def __init__(self) -> None:
        if not _vfs:
            _vfs.append(FaultyVfs())
        self.vfs = _vfs[0]
        self.scheduler = Scheduler(Random(0))
        memory = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(prefix="lenience-faults-", dir=memory if memory.is_dir() else None))
        self.disk = Disk(self.root, self.scheduler, Random(0))
        self.random = Random(0)
        self.ahead = 0  # microseconds by which somebody has set the clock forward
        self.stopped_at: int | None = None  # the time at which the clock stands still

    def reset(self, seed: str, files: dict[str, bytes]) -> None:
        """Begin another schedule, on a disk with these files."""
        self.random = Random(f"{seed}/machine")
        self.scheduler.reset(Random(f"{seed}/scheduler"))
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.disk = self.vfs.disk = Disk(self.root, self.scheduler, Random(f"{seed}/disk"))
        self.disk.fill(files)
        self.ahead, self.stopped_at = 0, None
        self.start_process()

    def start_process(self) -> None:
        """Forget what a new process does not know."""
        self.scheduler.revive()
        self.vfs.restart_randomness(self.random)
        identity._last, identity._noise, identity._taken = 0, "", 0
        file_lock._held.clear()
        store._sound.clear()
        clock._clock = clock.GuardedClock(machine=self.machine_time, passed=self.passed_time)

    @property
    def database(self) -> str:
        """The path of the database."""
        return str(self.disk.folder / DATABASE)

    def machine_time(self) -> int:
        """Return the time of the machine's clock in microseconds."""
        return START + self.ahead + self.passed_time() if self.stopped_at is None else self.stopped_at

    def passed_time(self) -> int:
        """Return the microseconds since the start."""
        return int(self.scheduler.time * 1e6)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Connect the engine to this machine while the block runs."""
        scheduler = self.scheduler
        namespace = SimpleNamespace

        def thread(target: Callable[[], object], name: str = "", daemon: bool = False) -> SimulatedThread:
            return SimulatedThread(scheduler, target, name)

        def lock() -> SimulatedLock:
            return SimulatedLock(scheduler)

        def seconds() -> float:
            return scheduler.time

        replaced: list[tuple[Any, str, Any]] = [
            (writer, "threading", namespace(Thread=thread)),
            (writer, "SimpleQueue", lambda: SimulatedQueue(scheduler, Empty)),
            (writer, "Future", _Subscripted(lambda: SimulatedFuture(scheduler))),
            (service_module, "ThreadPoolExecutor", lambda *args, **options: namespace(shutdown=lambda **how: None)),
            (service_module, "monotonic", seconds),
            (store.Store, "_engine", _sharing_statements(store.Store._engine)),
            (policy_cache, "Lock", lock),
            (keys, "threading", namespace(Lock=lock)),
            (keys, "time", namespace(monotonic=seconds)),
            (keys, "secrets", namespace(token_hex=self._hex, token_urlsafe=self._hex)),
            (private_file, "os", _with(os, fsync=lambda descriptor: self.disk.sync_descriptor(descriptor))),
            (signed_note, "secrets", namespace(token_hex=self._hex, token_bytes=self._bytes)),
            (session_secrets, "secrets", namespace(token_hex=self._hex)),
            (identity, "os", namespace(urandom=lambda size: self.random.randbytes(size))),
        ]
        logger = logging.getLogger("lenience.service")
        pool = logging.getLogger("sqlalchemy.pool")
        before = logger.disabled, pool.disabled, clock._clock, dict(os.environ)
        logger.disabled = pool.disabled = True
        try:
            with ExitStack() as stack:
                stack.enter_context(self.vfs.installed())
                for module, name, value in replaced:
                    stack.enter_context(patch.object(module, name, value))
                yield
        finally:
            logger.disabled, pool.disabled, clock._clock, environment = before
            os.environ.clear()
            os.environ.update(environment)
            identity._last = 0
            self.vfs.disk = None
            self.scheduler.end()
            gc.unfreeze()  # the simulator froze what it does not want to look through
            shutil.rmtree(self.root, ignore_errors=True)

    def _bytes(self, size: int) -> bytes:
        return self.random.randbytes(size)

    def _hex(self, size: int) -> str:
        return self.random.randbytes(size).hex()


def _with(module: object, **replaced: object) -> SimpleNamespace:
    """Return a module with some names replaced."""
    return SimpleNamespace(**{**vars(module), **replaced})


def _sharing_statements(original: Callable[..., Engine]) -> Callable[..., Engine]:
    """Let all engines share their compiled statements: every process of a schedule would compile the same ones."""

    def engine(self: store.Store, *, writing: bool) -> Engine:
        made = original(self, writing=writing)
        if self.sqlite:
            if not _engines:
                _engines.append(made)
            made.dialect, made._compiled_cache = _engines[0].dialect, _engines[0]._compiled_cache
        return made

    return engine


class _Subscripted:
    """A class that can be subscripted, as in ``Future[int]``."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __getitem__(self, item: object) -> Callable[[], object]:
        return self._make

    def __call__(self) -> object:
        return self._make()
