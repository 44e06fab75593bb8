"""The lock that makes one process the only writer of a SQLite file, whatever name it opens the file by.

There are two locks. The first is a lock file next to the database. It works before the database exists, and it tells
which process holds it. The second lock is on the database file itself, so that a hard link does not escape it: SQLite
derives the name of the -wal file from the name that it opens, and two -wal files for one database corrupt it.

The second lock exists on Linux only. It covers a byte that SQLite never uses, and belongs to the open file, not to the
process. A process that opens and closes a SQLite file on the side loses the locks that SQLite holds on it. So a
process opens each file once for its lock, and closes it after the last connection.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from pathlib import Path
from threading import Lock
from typing import IO

from lenience.core.errors import InputError

LOCKED_BYTE = 1 << 62  # far beyond the end of any database, and beyond the bytes that SQLite locks
MAGIC = b"SQLite format 3\x00"  # the first bytes of a SQLite file

Identity = tuple[int, int]  # device and inode

_held: set[Identity] = set()  # the files that this process has locked
_held_lock = Lock()


class FileLock:
    """The lock on a SQLite file. :meth:`release` it after the last connection is closed.

    Parameters
    ----------
    path : Path
        The database. A file that does not exist is created empty, readable and writable by its owner only.

    Raises
    ------
    InputError
        If another process holds the lock, or the file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._identity: Identity | None = None
        self._named: IO[str] | None = _lock_name(path)
        try:
            create_file(path)
            self.follow()
        except BaseException:
            self.release()
            raise

    def follow(self) -> None:
        """Lock the file that now has the name, if it is another file than before."""
        status = os.stat(self._path)
        identity = (status.st_dev, status.st_ino)
        if identity == self._identity:
            return
        descriptor = self._lock_file(identity)
        self._release_file()
        self._descriptor, self._identity = descriptor, identity

    def has_header(self) -> bool:
        """Return whether the file begins as a SQLite file does. An empty file is a new database."""
        assert self._descriptor is not None
        start = os.pread(self._descriptor, len(MAGIC), 0)
        return start in (b"", MAGIC)

    def release(self) -> None:
        """Release both locks."""
        self._release_file()
        if self._named is not None:
            self._named.close()
            self._named = None

    def _lock_file(self, identity: Identity) -> int:
        with _held_lock:
            if identity in _held:
                raise _in_use(self._path, str(os.getpid()))
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise InputError.because(
                    f"The file {str(self._path)!r} cannot be opened for writing: {error.strerror}",
                    "database",
                    label="",
                    value=str(self._path),
                    code="database_unusable",
                ) from None
            if sys.platform == "linux":
                # struct flock: type, whence, start, length, pid
                wanted = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0)
                try:
                    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
                except OSError:
                    os.close(descriptor)
                    raise _in_use(self._path, "") from None
            _held.add(identity)
            return descriptor

    def _release_file(self) -> None:
        if self._descriptor is not None and self._identity is not None:
            with _held_lock:
                os.close(self._descriptor)
                _held.discard(self._identity)
            self._descriptor = self._identity = None


def create_file(path: Path) -> None:
    """Create an empty database that only its owner may read, unless the file exists.

    The file will hold personal data. SQLite gives its -wal and -shm files the same mode.
    """
    try:
        os.close(os.open(path.resolve(), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise InputError.because(
            f"The file {str(path)!r} cannot be created: {error.strerror}",
            "database",
            label="",
            value=str(path),
            code="database_unusable",
        ) from None


def _lock_name(path: Path) -> IO[str]:
    name = f"{path.resolve()}.lock"  # the same for every symbolic link to the file
    lock = os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        owner = lock.read().strip()
        lock.close()
        raise _in_use(path, owner) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _in_use(path: Path, owner: str) -> InputError:
    return InputError.because(
        f"Another process{f' (pid {owner})' if owner else ''} is serving {str(path)!r}. SQLite allows one writer",
        "database",
        label="",
        value=str(path),
        hint="Use PostgreSQL to run several processes.",
        code="database_in_use",
    )
