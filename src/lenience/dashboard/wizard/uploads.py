"""Files stored between the steps of a form: private, for an hour after their last use, under a secret name.

All processes on one machine share the folder, so any of them can answer the next step. It is in a directory where every
user can create folders, so it is used only if it belongs to this user alone.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from lenience.core.errors import InputError
from lenience.service.domain.problems import NotFound

SECONDS = 3600.0
MOST = 32  # files; a new one replaces the one that was not used for longest
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}\Z")


def folder() -> Path:
    """Return the private folder, created if it does not exist."""
    owner = os.getuid() if hasattr(os, "getuid") else None
    place = Path(tempfile.gettempdir()) / f"lenience-uploads-{'mine' if owner is None else owner}"
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    mine = owner is None or (status.st_uid == owner and stat.S_IMODE(status.st_mode) == 0o700)
    if not stat.S_ISDIR(status.st_mode) or not mine:
        raise InputError.because(
            f"must belong to this user alone; {str(place)!r} does not",
            "uploads",
            label="the folder for uploads",
            value=str(place),
            code="unreadable_file",
        )
    return place


def new_place(kind: str) -> tuple[str, Path]:
    """Return a new token and the path of its file. Files older than an hour are deleted."""
    place = folder()
    files = []
    for path in place.iterdir():
        try:
            files.append((path.stat().st_mtime, path))
        except FileNotFoundError:
            continue  # another process has just removed it
    files.sort(reverse=True)
    for i, (written, path) in enumerate(files):
        if i >= MOST - 1 or written < time.time() - SECONDS:
            path.unlink(missing_ok=True)
    token = secrets.token_urlsafe(24)
    return token, place / f"{token}.{kind}"


def find(token: str) -> Path:
    """Return the file of a token."""
    if TOKEN.match(token):
        for kind in ("parquet", "json", "policy"):
            path = folder() / f"{token}.{kind}"
            try:
                if path.stat().st_mtime >= time.time() - SECONDS:
                    os.utime(path)
                    return path
            except FileNotFoundError:
                continue
    raise NotFound(
        "the uploaded file has been deleted. An upload is deleted after an hour, or when its policy is created (see "
        "the overview). To create another policy, start again at New policy"
    )


def remove(token: str) -> None:
    """Delete the file of a token if it still exists."""
    with suppress(NotFound):
        find(token).unlink(missing_ok=True)
