"""Open databases by their address; errors are one sentence and never show the password."""

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
    """Return the engine at an address; raise InputError if its file does not exist (the engine would create it)."""
    import ibis

    scheme, shown = _scheme(address), _without_password(address)
    if scheme in FILES:
        _check_file(address, scheme)
    elif "://" not in address or not hasattr(ibis, scheme):
        raise InputError("connection", shown, f"an address such as {SUCH}")
    try:
        return ibis.connect(address)
    except Exception as error:  # each engine's driver has its own exceptions, and may not be installed
        raise InputError.because(
            f"cannot be opened: {_first_line(error)}",
            "connection",
            label=f"connection {shown!r}",
            value=shown,
            code="address_unusable",
        ) from error


def table_of(backend: Any, source: str) -> ir.Table:
    """Return a table by its name, e.g. ``loans`` or ``schema.loans``."""
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
    """Raise InputError if the file does not exist.

    For Ibis sqlite://path is relative to the working directory, and sqlite:///path to the root.
    """
    path = address.partition("://")[2].partition("?")[0] if "://" in address else address
    if path in ("", ":memory:") or path.startswith(("md:", "motherduck:")) or Path(path).is_file():
        return
    relative = path.lstrip("/")
    is_relative = path != relative and Path(relative).is_file()
    hint = f"For the file in this folder write {scheme}://{relative}" if is_relative else None
    raise InputError.because(
        f"must be a database that exists; there is no file {path!r}",
        "connection",
        value=path,
        hint=hint,
        code="missing_file",
    )


def _without_password(address: str) -> str:
    """Return an address with the password replaced by asterisks.

    Examples
    --------
    >>> _without_password("postgresql://me:secret@localhost/loans"), _without_password("loans.db")
    ('postgresql://me:***@localhost/loans', 'loans.db')
    """
    before, at, host = address.rpartition("@")
    head, colon, _ = before.partition("://")[2].partition(":")
    return f"{address.partition('://')[0]}://{head}:***@{host}" if at and colon else address


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
