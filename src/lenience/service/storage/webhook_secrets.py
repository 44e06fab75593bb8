"""The secret from which the secrets of webhooks are derived. Like that of sessions, it is never in the database.

It comes from the environment variable ``LENIENCE_WEBHOOK_SECRET``, or, with SQLite, from a file beside the database
with the ending ``.webhook-secret`` that only its owner can read. The first webhook creates it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sqlalchemy import URL

from lenience.core.errors import InputError
from lenience.core.settings import WEBHOOK_SECRET
from lenience.service.storage.private_file import PrivateFile

SHORTEST = 32  # characters of a secret in the environment


def read_webhook_secret(url: URL, *, create: bool = False) -> bytes | None:
    """Return the secret of a database's webhooks, or None if it has none.

    Parameters
    ----------
    url : URL
        The address of the database.
    create : bool
        Whether to create the file of a SQLite database if it does not exist.

    Raises
    ------
    InputError
        If the secret is too short, or if other users can read its file.
    """
    given = os.environ.get(WEBHOOK_SECRET)
    if given is not None:
        if len(given) < SHORTEST:
            raise InputError(WEBHOOK_SECRET, allowed=f"a secret of at least {SHORTEST} characters")
        return given.encode()
    path = webhook_secret_file(url)
    if path is None:
        return None
    file = PrivateFile(path, "the secret of the webhooks", "remove the file and create the webhooks again")
    if not path.exists():
        if not create:
            return None
        file.create(secrets.token_hex(32).encode())
    return file.read()[1].strip()


def webhook_secret_file(url: URL) -> Path | None:
    """Return the file with the secret of a SQLite database, the same for every link to the database."""
    backend = url.get_backend_name()
    return Path(f"{Path(str(url.database)).resolve()}.webhook-secret") if backend == "sqlite" else None
