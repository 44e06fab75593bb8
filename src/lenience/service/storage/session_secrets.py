"""The secrets that sign the sessions of the dashboard. They are never in the database, its backups or its log.

Whoever can read the database must not be able to sign a session, so the secrets have a place of their own:

1. the environment variable ``LENIENCE_SESSION_SECRET``, if it is set: one secret, or several separated by commas;
2. with SQLite, a file beside the database with the ending ``.secret`` that only its owner can read. The first start
   creates it;
3. otherwise a random secret that ends with the process. (``lenience serve`` passes one to all processes it starts.)

The first secret signs, and all of them verify. Rotation puts a new secret first. The old one verifies until the last
session that it signed has expired.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from sqlalchemy import URL

from lenience.core.errors import InputError
from lenience.core.settings import SESSION_SECRET
from lenience.service.storage.private_file import PrivateFile, state_of

SESSION_HOURS = 12  # a session is valid for this long at most
SHORTEST = 32  # characters of a secret in the environment

log = logging.getLogger("lenience.service")


class StoredSecret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret in the file.

    Parameters
    ----------
    secret
        64 random hexadecimal digits.
    replaced_at
        When another secret took its place, in seconds since 1970. None for the one that signs.
    """

    secret: str
    replaced_at: float | None = None

    def verifies(self, at: float) -> bool:
        """Return whether a session that this secret signed may still be valid."""
        return self.replaced_at is None or at < self.replaced_at + SESSION_HOURS * 3600


class SessionSecrets:
    """The secrets of a running service.

    Parameters
    ----------
    url
        The address of the database, which says where the file with the secrets is.

    Raises
    ------
    InputError
        If the file cannot be used, or other users can read it, or a secret in the environment is too short.
    """

    def __init__(self, url: URL) -> None:
        self._stored: list[StoredSecret]
        self._path: Path | None = None
        self._stamp: tuple[int, int] | None = None
        given = os.environ.get(SESSION_SECRET)
        if given is not None:
            self._stored = [StoredSecret(secret) for secret in _given_secrets(given)]
        elif (path := secret_file(url)) is not None:
            self._path = path
            if not path.exists():
                _file(path).create(_encoded([_new_secret()]))
            self._stamp, self._stored = _read(path)
        else:
            self._stored = [_new_secret()]

    @property
    def signing(self) -> bytes:
        """The secret that signs new sessions."""
        return self._stored[0].secret.encode()

    @property
    def verifying(self) -> tuple[bytes, ...]:
        """The secrets whose sessions are valid, the newest first."""
        at = time.time()
        return tuple(stored.secret.encode() for stored in self._stored if stored.verifies(at))

    def refresh(self) -> None:
        """Read the file again if it has changed. If it cannot be read, log an error and use the secrets in memory."""
        if self._path is None:
            return
        stamp = None
        with suppress(OSError):
            stamp = state_of(os.stat(self._path))
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._stamp, self._stored = _read(self._path)
        except InputError as error:
            log.error("the session secrets cannot be read", extra={"fields": {"cause": str(error)}})


def secret_file(url: URL) -> Path | None:
    """Return the file with the secrets of a SQLite database, the same for every link to the database."""
    return Path(f"{Path(str(url.database)).resolve()}.secret") if url.get_backend_name() == "sqlite" else None


def rotate_secret(url: URL, *, end_sessions: bool = False) -> None:
    """Replace the secret of a SQLite database's sessions. A running service notices within about a second.

    Parameters
    ----------
    url
        The address of the database.
    end_sessions
        End all sessions now, e.g. because the secret has leaked. Otherwise they end when they expire.

    Raises
    ------
    InputError
        If the secret is not in a file, or the file cannot be used.
    """
    path = secret_file(url)
    if path is None or os.environ.get(SESSION_SECRET) is not None:
        raise InputError.because(
            f"The secret of these sessions is not in a file. It is in the environment variable {SESSION_SECRET}",
            "database",
            label="",
            hint="Put a new secret before the old one, separated by a comma, and restart the service.",
        )
    old = [] if end_sessions or not path.exists() else _read(path)[1]
    at = time.time()
    replaced = [msgspec.structs.replace(stored, replaced_at=stored.replaced_at or at) for stored in old]
    _file(path).replace(_encoded([_new_secret(), *(stored for stored in replaced if stored.verifies(at))]))


def _new_secret() -> StoredSecret:
    return StoredSecret(secrets.token_hex(32))


def _given_secrets(given: str) -> list[str]:
    """Return the secrets of the environment variable.

    >>> _given_secrets("0123456789abcdef0123456789abcdef, fedcba9876543210fedcba9876543210")
    ['0123456789abcdef0123456789abcdef', 'fedcba9876543210fedcba9876543210']
    >>> _given_secrets("secret")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: LENIENCE_SESSION_SECRET must be at least 32 characters, or several such secrets ...
    """
    parts = [part.strip() for part in given.split(",")]
    if any(len(part) < SHORTEST for part in parts):
        allowed = f"at least {SHORTEST} characters, or several such secrets separated by commas"
        hint = "Create one: python -c 'import secrets; print(secrets.token_hex(32))'"
        raise InputError(SESSION_SECRET, allowed=allowed, hint=hint)
    return parts


def _read(path: Path) -> tuple[tuple[int, int], list[StoredSecret]]:
    """Return the state of the file and its secrets."""
    state, content = _file(path).read()
    try:
        stored = msgspec.json.decode(content, type=list[StoredSecret])
    except msgspec.DecodeError:
        stored = []
    if not stored or any(len(one.secret) < SHORTEST for one in stored):
        raise _file(path).unusable("is damaged", "Delete it; the next start creates a new one.")
    return state, stored


def _file(path: Path) -> PrivateFile:
    return PrivateFile(path, "the secret of the sessions", "lenience keys rotate-secret --end-sessions")


def _encoded(stored: list[StoredSecret]) -> bytes:
    return json.dumps(msgspec.to_builtins(stored), indent=1).encode()
