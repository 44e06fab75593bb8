"""Tables on disk: read by the next process, never half-written, and computed again when anything is wrong with them."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience.core import disk_cache
from lenience.core.disk_cache import cache_folder, cached_arrays
from lenience.solvers.stopping.threshold_table import _table, threshold_table

Arrays = list[NDArray[np.float64]]


class Counted:
    """Arrays, and how often they were computed."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Arrays:
        self.times += 1
        return [np.arange(6.0).reshape(2, 3), np.array([np.inf, -0.0])]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LENIENCE_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def fetch(compute: Counted, parameters: str = "1", kind: str = "numbers") -> Arrays:
    return cached_arrays(kind, parameters, (__file__,), compute)


def test_arrays_are_computed_once_and_come_back_bit_for_bit(folder: Path) -> None:
    compute = Counted()
    first, again = fetch(compute), fetch(compute)
    assert compute.times == 1
    assert [each.tobytes() for each in first] == [each.tobytes() for each in again]
    assert [each.shape for each in again] == [(2, 3), (2,)]
    fetch(compute, "2")
    fetch(compute, kind="others")
    assert compute.times == 3
    assert len(list(folder.iterdir())) == 3  # nothing half-written is left


def test_another_source_is_another_table(folder: Path, tmp_path: Path) -> None:
    compute, source = Counted(), tmp_path / "code.py"
    for text in ("x = 1", "x = 2", "x = 1"):
        source.write_text(text, "utf-8")
        disk_cache.fingerprint.cache_clear()
        cached_arrays("numbers", "1", (str(source),), compute)
    assert compute.times == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "another format"])
def test_a_damaged_file_is_computed_again(folder: Path, damage: str) -> None:
    compute = Counted()
    right = fetch(compute)
    (path,) = folder.iterdir()
    content = path.read_bytes()
    changed = content[:40] + bytes([content[40] ^ 1]) + content[41:]
    other = sha256(b"hello").digest() + b"hello"
    path.write_bytes({"cut": content[:-9], "changed": changed, "empty": b"", "another format": other}[damage])
    again = fetch(compute)
    assert compute.times == 2
    assert all(np.array_equal(one, two) for one, two in zip(right, again, strict=True))
    fetch(compute)
    assert compute.times == 2  # the damaged file was replaced


def test_a_folder_that_cannot_be_written_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder", "utf-8")
    monkeypatch.setenv("LENIENCE_CACHE", str(tmp_path / "file"))
    compute = Counted()
    assert len(fetch(compute)) == len(fetch(compute)) == 2
    assert compute.times == 2


def test_the_oldest_tables_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = Counted()
    fetch(compute)
    (first,) = folder.iterdir()
    monkeypatch.setattr(disk_cache, "MOST_BYTES", int(2.5 * first.stat().st_size))
    import os

    os.utime(first, (1, 1))
    fetch(compute, "2")
    assert first.exists()
    fetch(compute, "3")
    assert not first.exists()
    assert len(list(folder.iterdir())) == 2


def test_where_tables_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LENIENCE_CACHE", "off")
    assert cache_folder() is None
    compute = Counted()
    fetch(compute)
    fetch(compute)
    assert compute.times == 2
    monkeypatch.delenv("LENIENCE_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "lenience"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "lenience"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "lenience"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "lenience"


def test_a_table_of_thresholds_from_the_disk_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = threshold_table(0.37, 0.9)
    _table.cache_clear()
    built = threshold_table(0.37, 0.9)
    assert len(list(folder.iterdir())) == 1
    _table.cache_clear()
    monkeypatch.setattr("lenience.solvers.stopping.threshold_table._build", lambda *_: pytest.fail("built again"))
    stored = threshold_table(0.37, 0.9)
    assert stored[:5] == built[:5]
    assert stored.f.tobytes() == built.f.tobytes()
