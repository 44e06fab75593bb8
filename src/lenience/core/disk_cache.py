"""Keep computed tables on disk, in the user's cache folder, so that the next process does not compute them again.

A file holds the arrays of one table. Its name is a hash of everything that the table depends on: what it is, its
parameters and the source code that computes it. So a new version of the code never reads an old table. Files are
written beside their place and then moved there, so that another process sees either the whole file or none. A file that
is damaged, or that cannot be read or written, is ignored, and the table is computed.

``LENIENCE_CACHE`` names another folder; ``LENIENCE_CACHE=off`` switches the cache off.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from lenience.core.settings import CACHE

OFF = "off"
MOST_BYTES = 200_000_000  # of all files together; the oldest are removed first
ENDING = ".table"
DIGEST = 32  # bytes at the start of a file

Arrays = Sequence[NDArray[Any]]


def cache_folder() -> Path | None:
    """Return the folder of the cache; None if it is switched off or there is no home folder."""
    given = os.environ.get(CACHE)
    if given is not None and given.strip():
        return None if given.strip().lower() == OFF else Path(given)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "lenience"


def cached_arrays(
    kind: str, parameters: str, sources: Sequence[str], compute: Callable[[], Arrays]
) -> list[NDArray[Any]]:
    """Return arrays from the cache, or compute and store them.

    Parameters
    ----------
    kind : str
        What the arrays are, such as "thresholds".
    parameters : str
        What they are computed from, exactly.
    sources : sequence of str
        The files with the code that computes them.
    compute : callable
        Returns the arrays.

    Returns
    -------
    list of ndarray
        The arrays, which must not be changed.
    """
    folder = cache_folder()
    if folder is None:
        return list(compute())
    name = sha256("\n".join((kind, parameters, *map(fingerprint, sources))).encode()).hexdigest()
    path = folder / f"{kind}-{name[:32]}{ENDING}"
    known = _read(path)
    if known is None:
        known = list(compute())
        _write(path, known)
    return known


@lru_cache(maxsize=64)
def fingerprint(source: str) -> str:
    """Return a hash of a source file, or of its name where there is no file."""
    try:
        return sha256(Path(source).read_bytes()).hexdigest()
    except OSError:
        return source


def _read(path: Path) -> list[NDArray[Any]] | None:
    """Return the arrays of a file; None if there is no such file or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        return None
    try:
        with np.load(BytesIO(content[DIGEST:]), allow_pickle=False) as stored:
            return [stored[f"arr_{i}"] for i in range(len(stored.files))]
    except (ValueError, KeyError, EOFError, BadZipFile):
        return None


def _write(path: Path, arrays: Arrays) -> None:
    """Write arrays to a file, and remove the oldest files if there are too many. Failures are ignored."""
    buffer = BytesIO()
    np.savez(buffer, *arrays)
    content = buffer.getvalue()
    if len(content) > MOST_BYTES:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(sha256(content).digest() + content)
            os.replace(beside, path)
        except OSError:
            Path(beside).unlink(missing_ok=True)
            return
        _make_room(path.parent)


def _make_room(folder: Path) -> None:
    """Remove the oldest tables until all together are small enough."""
    files = [(each.stat(), each) for each in folder.glob(f"*{ENDING}")]
    total = 0
    for about, each in sorted(files, key=lambda file: file[0].st_mtime, reverse=True):
        total += about.st_size
        if total > MOST_BYTES:
            each.unlink(missing_ok=True)
