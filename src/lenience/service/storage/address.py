"""The address of a database, checked before anything connects to it or prints it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from lenience.core.errors import InputError

DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")


def database_url(database: str) -> URL:
    """Return the address of a database: a file's path, sqlite:///path or postgresql://user:password@host/name.

    >>> database_url("decisions.db").drivername, database_url("postgresql://localhost/lenience").drivername
    ('sqlite', 'postgresql+psycopg')
    >>> database_url("postgresql://me:p@ss@localhost/lenience")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: database must have only one @, before the host. In a password, write %40 for @.
    """
    try:
        url = make_url(database) if "://" in database else URL.create("sqlite", database=database)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.drivername in DRIVERS:
            url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        url = None
    if url is None or url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError("database", allowed="a file's path, sqlite:///path or postgresql://user@host/name")
    if url.drivername not in DRIVERS:
        raise InputError.because(
            f"must not name a driver: write postgresql://user@host/name, not {url.drivername}://",
            "database",
            value=url.drivername,
        )
    if url.get_backend_name() == "sqlite":
        _check_file(url)
    else:
        _check_server(database, url)
    return url


def _check_file(url: URL) -> None:
    if url.database in (None, "", ":memory:"):
        raise InputError("database", allowed="a file (a database in memory would lose all decisions)")
    if Path(str(url.database)).is_dir():
        raise InputError.because(
            f"must be a file; {str(url.database)!r} is a folder", "database", value=str(url.database), allowed="a file"
        )
    folder = Path(str(url.database)).absolute().parent
    if not folder.is_dir():
        raise InputError("database", str(folder), "in a folder that exists", code="missing_file")


def _check_server(database: str, url: URL) -> None:
    from psycopg.pq import Conninfo

    # An unescaped @ in the password would make the rest of it part of the host.
    if database.count("@") > ((url.username, url.password) != (None, None)):
        raise InputError.because(
            "must have only one @, before the host", "database", hint="In a password, write %40 for @."
        )
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    for name in url.query:
        if name not in known:
            raise InputError(
                "database",
                name,
                "one that libpq knows, such as sslmode",
                label="an option of database",
                code="unknown_name",
            )
