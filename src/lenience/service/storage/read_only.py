"""A SQLite file that is only read: by an audit, say, of a copy that nobody may write, in a folder nobody may write to.

A file in WAL mode is not read without ado: SQLite makes two files beside it (-wal, -shm), even for a reader, and cannot
where the folder is read-only. Where neither is there nobody has the file open, and all of it is in the one file: then
it is read as *immutable*, which makes nothing and locks nothing. Should a service start meanwhile, its writes go to a
-wal first, and to the file later: a file that is as it was when it was opened was read as one state. If it is not, the
reading is refused. Where one of them is there, SQLite reads both, beside the service that writes.
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
    """The file, and how it was when it was first looked at."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError.because(
                f"There is no database {str(path)!r}", "database", label="", value=str(path), code="missing_file"
            )
        self._path = path
        self._before = self._state()
        self._immutable = not (_holds_any(Path(f"{path}-wal")) or Path(f"{path}-shm").exists())

    def connect(self) -> sqlite3.Connection:
        """A connection that can change nothing."""
        how = "immutable=1" if self._immutable else "mode=ro"
        address = f"file:{quote(str(self._path.absolute()))}?{how}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, check_same_thread=False)

    def check_unchanged(self) -> None:
        """Refuse what was read of an immutable file that has changed."""
        if self._immutable and self._state() != self._before:
            raise Unavailable(f"the database {str(self._path)!r} was written to while it was read: try again")

    def _state(self) -> tuple[int, ...]:
        status = os.stat(self._path)
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _holds_any(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
