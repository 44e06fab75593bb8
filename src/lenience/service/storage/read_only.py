"""Open a SQLite file without writing, e.g. to audit a copy in a read-only folder.

SQLite creates two files (-wal, -shm) next to a file in WAL mode even to read it, which fails in a read-only folder. If
neither exists, no process has the file open and the file is complete. It is then opened as *immutable*, which creates
and locks nothing. If a service starts meanwhile, it writes to a -wal first and to the file later. So if the file is
unchanged after reading, one consistent state was read, and otherwise the read fails. If one of the two files exists,
SQLite reads both, next to the service that writes.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from lenience.core.errors import InputError
from lenience.service.domain.problems import Unavailable

PATIENCE = 5.0  # seconds to wait for a lock


class ReadOnlyFile:
    """A SQLite file and its state when it was opened."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError.because(
                f"The database {str(path)!r} does not exist", "database", label="", value=str(path), code="missing_file"
            )
        self._path = path
        self._before = self._state()
        self._immutable = not (_holds_any(Path(f"{path}-wal")) or Path(f"{path}-shm").exists())

    def connect(self) -> sqlite3.Connection:
        """Return a connection that cannot write."""
        how = "immutable=1" if self._immutable else "mode=ro"
        address = f"file:{quote(str(self._path.absolute()))}?{how}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, check_same_thread=False)

    def check_unchanged(self) -> None:
        """Raise Unavailable if a file that was opened as immutable has changed."""
        if self._immutable and self._state() != self._before:
            raise Unavailable(f"the database {str(self._path)!r} changed while it was read: try again")

    def _state(self) -> tuple[int, ...]:
        status = os.stat(self._path)
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _holds_any(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
