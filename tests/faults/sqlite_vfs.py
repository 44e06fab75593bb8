"""A layer under the SQLite that Python's own driver uses: each read, write and sync first asks the simulated disk.

SQLite reaches its files through a table of functions, the VFS. This one is a copy of the default table, with the
functions that a disk can fail replaced. It becomes the default while a simulation runs, so the engine opens its files
as always. Files outside the simulation are not affected.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from random import Random

from faults.disk import Disk, DiskFile
from faults.scheduler import Killed

OK, FULL, CANNOT_OPEN = 0, 13, 14
READ_ERROR, WRITE_ERROR, SYNC_ERROR, TRUNCATE_ERROR, DELETE_ERROR = (10 | code << 8 for code in (1, 3, 4, 6, 10))

Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
Randomness = CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)
Sleep = CFUNCTYPE(c_int, c_void_p, c_int)
Close = CFUNCTYPE(c_int, c_void_p)
Transfer = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)  # read and write
Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class Methods(Structure):
    """``sqlite3_io_methods``: the functions of an open file."""

    _fields_ = (
        ("version", c_int),
        ("close", Close),
        ("read", Transfer),
        ("write", Transfer),
        ("truncate", Truncate),
        ("sync", Sync),
        *((f"other_{i}", c_void_p) for i in range(13)),
    )


class Vfs(Structure):
    """``sqlite3_vfs``: the functions that open and delete files."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", Open),
        ("delete", Delete),
        *((f"other_{i}", c_void_p) for i in range(6)),
        ("randomness", Randomness),
        ("sleep", Sleep),
        *((f"last_{i}", c_void_p) for i in range(6)),
    )


class FaultyVfs:
    """The layer. :attr:`disk` says what fails; without a disk nothing does."""

    def __init__(self) -> None:
        self.disk: Disk | None = None
        self.random = Random(0)
        self._library = ctypes.CDLL(_sqlite3.__file__)  # finds the functions of the library that the driver uses
        find = self._library.sqlite3_vfs_find
        find.restype, find.argtypes = POINTER(Vfs), [c_char_p]
        self._parent: Vfs = find(None).contents
        self._vfs = Vfs()
        ctypes.memmove(ctypes.addressof(self._vfs), ctypes.addressof(self._parent), ctypes.sizeof(Vfs))
        self._vfs.name, self._vfs.next = b"faulty", None
        self._vfs.open, self._vfs.delete = Open(self._open), Delete(self._delete)
        self._vfs.randomness, self._vfs.sleep = Randomness(self._randomness), Sleep(self._sleep)
        self._paths: dict[int, str] = {}  # of the open files, by address
        self._tables: dict[int, tuple[Methods, Methods]] = {}  # ours and the original's, by the original's address

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make it the default while the block runs."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        try:
            yield
        finally:
            self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
            self._library.sqlite3_vfs_register(ctypes.byref(self._parent), 1)

    def restart_randomness(self, random: Random) -> None:
        """Let SQLite draw its random numbers from here."""
        self.random = random
        self._library.sqlite3_randomness(0, None)

    def _open(self, vfs: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        path = "" if name is None else os.fsdecode(ctypes.string_at(name))
        disk = self.disk
        inside = disk is not None and disk.concerns(path)
        if inside and disk is not None and disk.scheduler.dead:
            ctypes.cast(file, POINTER(c_void_p))[0] = None
            return CANNOT_OPEN
        code = int(self._parent.open(vfs, name, file, flags, out))
        methods = ctypes.cast(file, POINTER(c_void_p))
        if code == OK and inside and methods[0]:
            self._paths[file] = path
            methods[0] = ctypes.addressof(self._table(methods[0])[0])
        return code

    def _table(self, address: int) -> tuple[Methods, Methods]:
        """Return our table for the original at an address, and the original."""
        if address not in self._tables:
            original, own = Methods.from_address(address), Methods()
            ctypes.memmove(ctypes.addressof(own), address, ctypes.sizeof(Methods))
            close, read, write = original.close, original.read, original.write
            truncate = original.truncate

            def do_close(file: int) -> int:
                self._paths.pop(file, None)
                return int(close(file))

            def do_read(file: int, buffer: int, size: int, offset: int) -> int:
                if self._fault("read", file, offset, size) is not None:
                    return READ_ERROR
                return int(read(file, buffer, size, offset))

            def do_write(file: int, buffer: int, size: int, offset: int) -> int:
                fault = self._fault("write", file, offset, size)
                if fault == "full":
                    return FULL
                if fault in ("killed", "error"):
                    return WRITE_ERROR
                part = size if fault is None else self.random.randrange(size)
                code = int(write(file, buffer, part, offset)) if part else OK
                if code == OK and part:
                    known = self._file(file)
                    if known is not None:
                        known.writes.append((offset, ctypes.string_at(buffer, part)))
                return code if fault is None else WRITE_ERROR

            def do_truncate(file: int, size: int) -> int:
                if self._fault("truncate", file, size) is not None:
                    return TRUNCATE_ERROR
                code = int(truncate(file, size))
                known = self._file(file)
                if code == OK and known is not None:
                    known.writes.append((-1 - size, b""))
                return code

            def do_sync(file: int, flags: int) -> int:
                fault = self._fault("sync", file)
                if fault is not None:
                    if fault != "killed" and self.disk is not None:
                        self.disk.fail_sync(self._paths[file])
                    return SYNC_ERROR
                if self.disk is not None:
                    self.disk.sync(self._paths[file])
                return OK

            own.close, own.read, own.write = Close(do_close), Transfer(do_read), Transfer(do_write)
            own.truncate, own.sync = Truncate(do_truncate), Sync(do_sync)
            self._tables[address] = own, original
        return self._tables[address]

    def _fault(self, operation: str, file: int, offset: int = 0, size: int = 0) -> str | None:
        disk = self.disk
        if disk is None:
            return None
        return disk.meets(operation, self._paths[file], offset, size)  # type: ignore[arg-type]

    def _file(self, file: int) -> DiskFile | None:
        return None if self.disk is None else self.disk.file(self._paths[file])

    def _delete(self, vfs: int, name: bytes, sync_folder: int) -> int:
        path, disk = os.fsdecode(name), self.disk
        if disk is not None and disk.concerns(path):
            if disk.meets("delete", path) is not None:
                return DELETE_ERROR
            disk.delete(path)
        return int(self._parent.delete(vfs, name, sync_folder))

    def _randomness(self, vfs: int, size: int, buffer: int) -> int:
        ctypes.memmove(buffer, self.random.randbytes(size), size)
        return size

    def _sleep(self, vfs: int, microseconds: int) -> int:
        if self.disk is not None:
            try:
                self.disk.scheduler.sleep(microseconds / 1e6)
            except Killed:
                return microseconds
            return microseconds
        return int(self._parent.sleep(vfs, microseconds))
