"""Files beside the database: they survive a power loss, and a disk that fails leaves nothing half-made."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from lenience.core.errors import InputError
from lenience.service.storage.private_file import PrivateFile


@pytest.mark.parametrize("write", [PrivateFile.create, PrivateFile.replace])
def test_the_name_of_a_new_file_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: object) -> None:
    """The key that signs the log was lost with the power, although checkpoints that it had signed were not."""
    synced: list[tuple[bool, bool]] = []
    file, original = PrivateFile(tmp_path / "key", "the key", ""), os.fsync

    def fsync(descriptor: int) -> None:
        original(descriptor)
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), file.path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write(file, b"secret")  # type: ignore[operator]
    assert synced == [(False, False), (True, True)]
    assert file.read()[1] == b"secret"


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_disk_that_fails_is_reported_and_leaves_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    calls = 0

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputError) as error:
        PrivateFile(tmp_path / "key", "the key", "").create(b"secret")
    assert error.value.code == "unreadable_file"
    assert {path.name for path in tmp_path.iterdir()} <= {"key"}
