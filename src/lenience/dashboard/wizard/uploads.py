"""Files that are kept between the steps of a form: private, for an hour, under a name that nobody can guess.

All processes of one machine share the folder, so it does not matter which of them answers the next step. It lies where
anyone may make folders, so it is used only if it belongs to this user alone.
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
MOST = 16  # files at once: the oldest goes
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}\Z")


def folder() -> Path:
    """The private folder, made if it is not there."""
    owner = os.getuid() if hasattr(os, "getuid") else None
    place = Path(tempfile.gettempdir()) / f"lenience-uploads-{'mine' if owner is None else owner}"
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    mine = owner is None or (found.st_uid == owner and stat.S_IMODE(found.st_mode) == 0o700)
    if not stat.S_ISDIR(found.st_mode) or not mine:
        raise InputError.because(
            f"must belong to this user alone; {str(place)!r} does not",
            "uploads",
            label="the folder for uploads",
            value=str(place),
            code="unreadable_file",
        )
    return place


def new_place(kind: str) -> tuple[str, Path]:
    """A token, and the path under which its file is to be kept; what is over an hour old goes."""
    place = folder()
    kept = []
    for path in place.iterdir():
        try:
            kept.append((path.stat().st_mtime, path))
        except FileNotFoundError:
            continue  # another process has just removed it
    kept.sort(reverse=True)
    for i, (written, path) in enumerate(kept):
        if i >= MOST - 1 or written < time.time() - SECONDS:
            path.unlink(missing_ok=True)
    token = secrets.token_urlsafe(24)
    return token, place / f"{token}.{kind}"


def find(token: str) -> Path:
    """The file of a token."""
    if TOKEN.match(token):
        for kind in ("parquet", "json"):
            path = folder() / f"{token}.{kind}"
            try:
                if path.stat().st_mtime >= time.time() - SECONDS:
                    return path
            except FileNotFoundError:
                continue
    raise NotFound(
        "this file is not kept any more: an upload is kept for an hour, and until its policy is made, which is then on "
        "the overview; for another, begin again at New policy"
    )


def remove(token: str) -> None:
    """Throw a file away, where it is still there."""
    with suppress(NotFound):
        find(token).unlink(missing_ok=True)
