"""Files that only their owner can read: secrets and keys that must not be in the database."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from lenience.core.errors import InputError, in_words

OWNER_ONLY = 0o600


class PrivateFile:
    """A file that only its owner can read.

    Parameters
    ----------
    path : Path
        Where it is.
    content : str
        What it holds, for error messages, such as "the secret of the sessions".
    leaked : str
        What to do if other users may have read it.
    field : str
        The option at fault if the file cannot be used.
    """

    def __init__(self, path: Path, content: str, leaked: str, field: str = "database") -> None:
        self.path = path
        self._content, self._leaked, self._field = content, leaked, field

    def read(self) -> tuple[tuple[int, int], bytes]:
        """Return the state of the file, which changes whenever it is replaced, and its content."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                content = file.read()
        except OSError as error:
            raise self.unusable(f"cannot be read: {in_words(error)}") from None
        if status.st_mode & 0o077:
            hint = f"Other users may know it. Run chmod 600 {self.path}, then {self._leaked}."
            raise self.unusable("must be readable by its owner alone", hint)
        return state_of(status), content

    def create(self, content: bytes) -> None:
        """Create the file, unless another process creates it at the same time."""
        new = self._written(content)
        try:
            with suppress(FileExistsError):
                os.link(new, self.path)
            os.unlink(new)
            sync_folder(self.path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(new)
            raise self.unusable(f"cannot be created: {in_words(error)}") from None

    def replace(self, content: bytes) -> None:
        """Replace the file. It keeps its owner, because an administrator may run this for a service."""
        new = self._written(content)
        with suppress(OSError):
            owner = (self.path if self.path.exists() else self.path.with_suffix("")).stat()
            os.chown(new, owner.st_uid, owner.st_gid)
        os.replace(new, self.path)
        sync_folder(self.path)

    def _written(self, content: bytes) -> str:
        """Return the path of a complete new file in the same folder, readable by its owner alone."""
        name = ""
        try:
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f"{self.path.name}.")
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), OWNER_ONLY)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if name:
                os.unlink(name)
            raise self.unusable(f"cannot be created: {in_words(error)}") from None
        return name

    def unusable(self, reason: str, hint: str | None = None) -> InputError:
        """Return the error that says why the file cannot be used."""
        label = f"the file {str(self.path)!r} with {self._content}"
        return InputError.because(reason, self._field, label=label, hint=hint, code="unreadable_file")


def state_of(status: os.stat_result) -> tuple[int, int]:
    """Return what changes whenever a file is replaced."""
    return status.st_ino, status.st_mtime_ns


def sync_folder(path: Path) -> None:
    """Put the name of a file on the disk. Without it, a power loss may take a new file away again."""
    descriptor = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
