"""Databases by their address: opened and asked for a table, and what is wrong in a sentence without the password."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lenience.core.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir

FILES = ("sqlite", "duckdb")
SUCH = "postgresql://user@host/base, sqlite:///path, duckdb:///path or another engine of Ibis"


def connect(address: str) -> Any:
    """The engine at an address; a file that is not there is refused, for an engine would make an empty one."""
    import ibis

    scheme, shown = _scheme(address), _without_password(address)
    if scheme in FILES:
        _check_file(address, scheme)
    elif "://" not in address or not hasattr(ibis, scheme):
        raise InputError("connection", shown, f"an address such as {SUCH}")
    try:
        return ibis.connect(address)
    except Exception as error:  # every engine's driver has its own kinds, and may not be installed
        raise InputError.because(
            f"cannot be opened: {_first_line(error)}",
            "connection",
            label=f"connection {shown!r}",
            value=shown,
            code="address_unusable",
        ) from error


def table_of(backend: Any, source: str) -> ir.Table:
    """A table by its name, perhaps with that of its schema before."""
    from ibis.common.exceptions import TableNotFound

    schema, _, name = source.rpartition(".")
    try:
        table: ir.Table = backend.table(name, database=schema or None)
    except TableNotFound as error:
        raise InputError("source", source, "the name of a table of this connection", code="unknown_name") from error
    except Exception as error:
        raise InputError.because(
            f"cannot be read from this connection: {_first_line(error)}",
            "source",
            label=f"source {source!r}",
            value=source,
            code="unreadable_file",
        ) from error
    return table


def _scheme(address: str) -> str:
    if "://" in address:
        return urlsplit(address).scheme.replace("postgresql", "postgres")
    return {".duckdb": "duckdb", ".db": "sqlite", ".sqlite": "sqlite"}.get(Path(address).suffix, "")


def _check_file(address: str, scheme: str) -> None:
    """The file must be there: for Ibis sqlite://path is one from here, and sqlite:///path one from the root."""
    named = address.partition("://")[2].partition("?")[0] if "://" in address else address
    if named in ("", ":memory:") or named.startswith(("md:", "motherduck:")) or Path(named).is_file():
        return
    here = named.lstrip("/")
    hint = f"For the file here write {scheme}://{here}" if named != here and Path(here).is_file() else None
    raise InputError.because(
        f"must be a database that exists; there is no file {named!r}",
        "connection",
        value=named,
        hint=hint,
        code="missing_file",
    )


def _without_password(address: str) -> str:
    """An address as it may be shown.

    >>> _without_password("postgresql://me:secret@localhost/loans"), _without_password("loans.db")
    ('postgresql://me:***@localhost/loans', 'loans.db')
    """
    before, at, host = address.rpartition("@")
    head, colon, _ = before.partition("://")[2].partition(":")
    return f"{address.partition('://')[0]}://{head}:***@{host}" if at and colon else address


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
