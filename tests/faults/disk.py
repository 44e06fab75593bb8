"""A disk that fails on purpose: what was written is visible at once, but only what was synced survives a power loss.

SQLite writes through to real files in memory (/dev/shm), so it reads and locks them as always. This module remembers
beside them what a disk would hold. A crash image is what the next process finds: everything after a kill, and after a
power loss what was synced plus any sectors of what was not.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from faults.scheduler import Killed, Scheduler

SECTOR = 512
READ_SECONDS, WRITE_SECONDS, SYNC_SECONDS = 5e-6, 20e-6, 500e-6
NO_IMAGE = ("-shm", ".lock")  # files that a new process makes anew

Operation = Literal["read", "write", "sync", "truncate", "delete"]
Fault = Literal["error", "full", "torn", "killed"]


@dataclass(slots=True)
class DiskFile:
    """A file: what is on the disk for sure, and what was written since."""

    durable: bytearray
    writes: list[tuple[int, bytes]] = field(default_factory=list)  # an offset below 0: truncated to -1 - offset
    entered: bool = True  # its name is in the folder for sure

    def sync(self) -> None:
        """Put everything on the disk."""
        for offset, data in self.writes:
            apply(self.durable, offset, data)
        self.writes.clear()


def _of_sqlite(name: str) -> bool:
    return name.endswith((".db", "-wal", "-journal"))


def apply(content: bytearray, offset: int, data: bytes) -> None:
    """Write or truncate."""
    if offset < 0:
        del content[-1 - offset :]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


@dataclass(slots=True)
class FaultPlan:
    """Which operations of the disk fail: a share of each kind, from a step on, until another one."""

    shares: dict[Operation, float] = field(default_factory=dict)
    first: int = 0  # the steps between which they fail
    last: int = 0
    full: bool = False  # the disk is full meanwhile: nothing can grow


class Disk:
    """The files of one simulated machine.

    Parameters
    ----------
    folder : Path
        An empty folder in memory.
    scheduler : Scheduler
        Counts the steps.
    random : Random
        Decides what fails.
    """

    def __init__(self, folder: Path, scheduler: Scheduler, random: Random) -> None:
        self.root = folder
        self.scheduler = scheduler
        self.random = random
        self.plan = FaultPlan()
        self.files: dict[str, DiskFile] = {}  # by name
        self.deleted: dict[str, DiskFile] = {}  # files that a power loss may bring back
        self.plain: set[str] = set()  # names of files that SQLite does not write and that are in the folder for sure
        self._generation = 0
        self._enter_folder()
        self.failed: dict[str, int] = {}  # how many operations have failed, by kind
        self.trace: list[tuple[str, str, int, int]] | None = None

    def _enter_folder(self) -> None:
        """Give the next process a folder of its own."""
        self.folder = self.root / str(self._generation)
        self._inside = f"{self.folder}/"

    def fill(self, files: dict[str, bytes]) -> None:
        """Put files on the disk, before the first process starts."""
        self.files = {name: DiskFile(bytearray(content)) for name, content in files.items() if _of_sqlite(name)}
        self.plain = set(files) - set(self.files)
        self.folder.mkdir()
        for name, content in files.items():
            self._put(name, content)

    def file(self, path: str) -> DiskFile | None:
        """Return a file of the process that runs now. None for a file outside the simulation or of a dead process."""
        name = path.removeprefix(self._inside)
        if name is path or name.endswith(NO_IMAGE):
            return None
        known = self.files.get(name)
        if known is None:
            known = self.files[name] = DiskFile(bytearray(), entered=False)
        return known

    def concerns(self, path: str) -> bool:
        """Return whether a path is inside the simulation."""
        return path.startswith(f"{self.root}/")

    def meets(self, operation: Operation, path: str, offset: int = 0, size: int = 0) -> Fault | None:
        """Count an operation, let other threads run, and return the fault that it meets."""
        scheduler = self.scheduler
        if scheduler.dead or not path.startswith(self._inside):
            return "killed"
        slow = SYNC_SECONDS if operation == "sync" else READ_SECONDS if operation == "read" else WRITE_SECONDS
        scheduler.step(slow)
        if self.trace is not None:
            self.trace.append((operation, path[-4:], offset, size))
        if scheduler.dead:
            return "killed"
        try:
            scheduler.pause()
        except Killed:
            return "killed"
        plan = self.plan
        if not plan.first <= scheduler.steps < plan.last:
            return None
        if plan.full and operation == "write" and offset + size > os.path.getsize(path):
            return self._fault("full")
        if self.random.random() < plan.shares.get(operation, 0.0):
            torn = operation == "write" and self.random.random() < 0.5
            return self._fault("torn" if torn else "error")
        return None

    def sync_descriptor(self, descriptor: int) -> None:
        """Sync an open file that SQLite does not know, or a folder, as ``os.fsync`` does."""
        fault = self.meets("sync", f"{self.folder}/")
        if fault == "killed":
            raise Killed
        if fault is not None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self.sync_folder()

    def _fault(self, fault: Fault) -> Fault:
        self.failed[fault] = self.failed.get(fault, 0) + 1
        return fault

    def fail_sync(self, path: str) -> None:
        """Lose any part of what was written since the last sync. A later sync does not bring it back, as on Linux."""
        file = self.file(path)
        if file is not None:
            for offset, data in file.writes:
                if self.random.random() < 0.5:
                    apply(file.durable, offset, data)
            file.writes.clear()

    def sync(self, path: str) -> None:
        """Put a file on the disk. The first sync of a new file also syncs its folder, as SQLite does."""
        file = self.file(path)
        if file is not None:
            file.sync()
            if not file.entered:
                self.sync_folder()

    def sync_folder(self) -> None:
        """Put the names of all files on the disk."""
        self.deleted.clear()
        self.plain.update(name for name in os.listdir(self.folder) if not _of_sqlite(name))
        for file in self.files.values():
            file.entered = True

    def delete(self, path: str) -> None:
        """Delete a file. Its name may still be in the folder after a power loss."""
        name = path.rpartition("/")[2]
        file = self.files.pop(name, None)
        if file is not None and file.entered:
            self.deleted[name] = file

    def crash(self, *, power: bool) -> None:
        """Start over with what the next process finds: after a kill everything, after a power loss less."""
        before = self.folder
        self._generation += 1
        self._enter_folder()
        self.folder.mkdir()
        for path in sorted(before.iterdir()):
            if path.name.endswith(NO_IMAGE):
                continue
            if power and not _of_sqlite(path.name) and path.name not in self.plain and self.random.random() < 0.5:
                continue
            content = path.read_bytes()
            file = self.files.get(path.name)
            if power and file is not None:
                self._lose_power(file)
                content = bytes(file.durable)
                if not file.entered and self.random.random() < 0.5:
                    continue
            self._put(path.name, content)
        present = {path.name for path in self.folder.iterdir()}
        if power:
            for name, file in self.deleted.items():
                if name not in present and self.random.random() < 0.5:
                    self._put(name, bytes(file.durable))
                    self.files[name] = DiskFile(file.durable)
                    present.add(name)
            self.deleted = {}
        self.files = {name: file for name, file in self.files.items() if name in present}
        for file in self.files.values():
            file.entered |= power
        shutil.rmtree(before)

    def _lose_power(self, file: DiskFile) -> None:
        """Keep any sectors of what was not synced: all up to some write, or a share of all."""
        kept = self.random.choice((0.0, 0.5, 0.9, 1.0))
        until = self.random.randrange(len(file.writes) + 1) if file.writes and self.random.random() < 0.5 else None
        for i, (offset, data) in enumerate(file.writes):
            if offset < 0:
                if i < until if until is not None else self.random.random() < kept:
                    apply(file.durable, offset, data)
                continue
            for start in range(0, len(data), SECTOR):
                whole = i < until if until is not None else self.random.random() < kept
                if whole or (i == until and self.random.random() < 0.5):
                    apply(file.durable, offset + start, data[start : start + SECTOR])
        file.writes.clear()

    def _put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.write_bytes(content)
        os.chmod(path, 0o600)
