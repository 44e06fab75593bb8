"""The key that signs checkpoints of the log. Like the secrets of sessions, it is never in the database.

It comes from the environment variable ``LENIENCE_LOG_KEY``, or, with SQLite, from a file beside the database with the
ending ``.log-key`` that only its owner can read. The first start creates it. Without a key (PostgreSQL without the
variable) the log is sealed but checkpoints are not signed, so decisions have no proofs.
"""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import URL

from lenience.core.errors import InputError
from lenience.core.settings import LOG_KEY
from lenience.service.domain.signed_note import SigningKey
from lenience.service.storage.private_file import PrivateFile


def read_log_key(url: URL, *, create: bool = False) -> SigningKey | None:
    """Return the key of a database's log, or None if it has none.

    Parameters
    ----------
    url : URL
        The address of the database.
    create : bool
        Whether to create the file of a SQLite database if it does not exist.

    Raises
    ------
    InputError
        If the key is invalid, or if other users can read its file.
    """
    given = os.environ.get(LOG_KEY)
    if given is not None:
        return SigningKey.read(given)
    path = log_key_file(url)
    if path is None:
        return None
    file = PrivateFile(path, "the key that signs the log", "replace the key and tell all who verify the log")
    if not path.exists():
        if not create:
            return None
        file.create(f"{SigningKey.create().text}\n".encode())
    try:
        return SigningKey.read(file.read()[1].decode())
    except (UnicodeDecodeError, InputError) as error:
        if isinstance(error, InputError) and error.code == "unreadable_file":
            raise
        raise file.unusable(
            "is damaged", "Restore it from a backup. A new key starts a new log for those who verify it."
        ) from None


def log_key_file(url: URL) -> Path | None:
    """Return the file with the key of a SQLite database, the same for every link to the database."""
    return Path(f"{Path(str(url.database)).resolve()}.log-key") if url.get_backend_name() == "sqlite" else None
