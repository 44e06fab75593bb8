"""lenience keys: create, list and revoke API keys, and replace the secret of the dashboard's sessions."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lenience.cli.options import console, json_option, known, print_json, table
from lenience.cli.serve import database_option, require_service
from lenience.core.errors import InputError
from lenience.core.validation import real
from lenience.files.unreadable import begins

if TYPE_CHECKING:
    from lenience.service.storage.store import Store


@click.group(short_help="Create, list and revoke the API keys of a service.")
def keys() -> None:
    """Create, list and revoke API keys, replace the secret of the dashboard's sessions, and show the key of the log.

    An API key has roles (decide, outcome, read, admin) and may expire. Only its hash is stored.

    As soon as a key exists, every request needs one. A running service notices within about a second. Each command has
    --json.

    \b
    Example:
      lenience keys create --database decisions.db --label scoring --role decide --role outcome --days 365
      lenience keys list --database decisions.db --json
      lenience keys revoke --database decisions.db 3f9a1c0b2d4e
      lenience keys rotate-secret --database decisions.db
      lenience keys log-key --database decisions.db
    """


@keys.command()
@database_option
@click.option("--label", required=True, help="What the key is for.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    shell_complete=known("lenience.service.commands.keys", "ROLES"),
    help="decide, outcome, read or admin; may be repeated.",
)
@click.option("--days", type=float, help="How many days it is valid; by default until it is revoked.")
@json_option
def create(database: str, label: str, roles: tuple[str, ...], days: float | None, as_json: bool) -> None:
    """Create a key. It is shown only once.

    \b
    Example:
      lenience keys create --label scoring --role decide
    """
    require_service()
    from lenience.service.commands.keys import check_label, check_roles, create_key
    from lenience.service.domain.clock import iso_time, now

    expires = None if days is None else now() + int(real("days", days, above=0, most=36_500) * 86_400 * 1_000_000)
    check_roles(roles)
    check_label(label)
    with opened(database, "make") as store:
        identity, key = create_key(store, label, roles, expires, actor())
    if as_json:
        print_json({"id": identity, "key": key, "expires_at": None if expires is None else iso_time(expires)})
    else:
        click.echo(key)
        click.echo(f"This is key {identity}. Store it safely: it is shown only now.", err=True)


@keys.command("list")
@database_option
@json_option
def list_(database: str, as_json: bool) -> None:
    """List the keys, without their secrets.

    \b
    Example:
      lenience keys list --database decisions.db
    """
    require_service()
    from lenience.service.commands.keys import list_keys
    from lenience.service.domain.clock import iso_time, now

    with opened(database, "read") as store:
        keys_listed = list_keys(store)
    rows: list[dict[str, object]] = [
        {
            "id": key.id,
            "label": key.label,
            "roles": list(key.roles),
            "created_at": iso_time(key.created_at),
            "expires_at": None if key.expires_at is None else iso_time(key.expires_at),
            "valid": key.valid(now()),
        }
        for key in keys_listed
    ]
    if as_json:
        print_json({"keys": rows})
        return
    grid = table()
    for heading in ("id", "label", "roles", "created", "expires", "valid"):
        grid.add_column(heading)
    for row in rows:
        shown = " ".join(row["roles"]) if isinstance(row["roles"], list) else ""
        expires = str(row["expires_at"] or "never")
        grid.add_row(
            str(row["id"]), str(row["label"]), shown, str(row["created_at"]), expires, "yes" if row["valid"] else "no"
        )
    console().print(grid)


@keys.command()
@database_option
@click.argument("identity", metavar="ID")
@json_option
def revoke(database: str, identity: str, as_json: bool) -> None:
    """Make a key invalid from now on.

    \b
    Example:
      lenience keys revoke 3f9a1c0b2d4e
    """
    require_service()
    from lenience.service.commands.keys import key_id, list_keys, revoke_key
    from lenience.service.domain.clock import now

    with opened(database, "change") as store:
        identity = key_id(identity)
        revoke_key(store, identity, actor())
        if not any("admin" in key.roles and key.valid(now()) for key in list_keys(store)):
            click.echo("No key with the role admin is left. Create one with lenience keys create.", err=True)
    if as_json:
        print_json({"revoked": identity})
    else:
        click.echo(f"The key {identity} is no longer valid.")


@keys.command("log-key")
@database_option
@click.option("--new", is_flag=True, help="Print a new private key instead, for LENIENCE_LOG_KEY or for a witness.")
@json_option
def log_key(database: str, new: bool, as_json: bool) -> None:
    """Print the public key of the log. Whoever verifies decisions needs it, from a source that they trust.

    With SQLite the private key is in the file DATABASE.log-key, which the first start of the service creates. Keep a
    copy of it in a safe place. With PostgreSQL, set LENIENCE_LOG_KEY.

    \b
    Example:
      lenience keys log-key --database decisions.db
      lenience keys log-key --new
    """
    require_service()
    from lenience.service.domain.signed_note import SigningKey
    from lenience.service.storage.log_key import read_log_key

    if new:
        key = SigningKey.create()
        shown = {"private": key.text, "public": key.public.text}
    else:
        with opened(database, "read") as store:
            stored = read_log_key(store.url)
        if stored is None:
            raise InputError.because(
                "has no log key yet",
                "database",
                value=database,
                hint="With SQLite, start lenience serve once. With PostgreSQL, set LENIENCE_LOG_KEY.",
                code="missing_file",
            )
        shown = {"public": stored.public.text}
    if as_json:
        print_json(shown)
    else:
        click.echo(shown.get("private", shown["public"]))


@keys.command("rotate-secret")
@database_option
@click.option("--end-sessions", is_flag=True, help="End all sessions now, e.g. because the secret has leaked.")
@json_option
def rotate_secret(database: str, end_sessions: bool, as_json: bool) -> None:
    """Replace the secret that signs the dashboard's sessions. A running service notices within about a second.

    With SQLite the secret is in the file DATABASE.secret. Sessions signed with the old one stay valid until they
    expire, at most 12 hours. With PostgreSQL, set LENIENCE_SESSION_SECRET=NEW,OLD and restart the service.

    \b
    Example:
      lenience keys rotate-secret --database decisions.db
      lenience keys rotate-secret --database decisions.db --end-sessions
    """
    require_service()
    from lenience.service.storage import session_secrets

    with opened(database, "read") as store:
        session_secrets.rotate_secret(store.url, end_sessions=end_sessions)
    if as_json:
        print_json({"rotated": True, "sessions_ended": end_sessions})
    elif end_sessions:
        click.echo("The secret is replaced. All sessions of the dashboard have ended.")
    else:
        hours = session_secrets.SESSION_HOURS
        click.echo(f"The secret is replaced. Sessions signed with the old one expire within {hours} hours.")


@contextmanager
def opened(database: str, purpose: Literal["read", "change", "make"], *, check_schema: bool = True) -> Iterator[Store]:
    """Open the database for a moment, even while a service runs; with "make", create it if it does not exist."""
    from lenience.service.storage.store import Store

    with problems_as_errors(), closing(Store(database, reading=purpose == "read")) as store:
        file = Path(str(store.url.database)) if store.sqlite else None
        if file is not None and file.is_file() and purpose != "make" and begins(file) != b"SQLi":
            raise InputError("database", database, "the database of a service", code="invalid_file")
        if purpose == "make":
            if store.upgrade(only_empty=True):
                made = "Created the database" if store.sqlite else "Created lenience's tables in"
                click.echo(f"{made} {store.name}.", err=True)
        elif file is not None and not file.exists():
            raise InputError.because(
                f"There is no database {database!r}", "database", label="", value=database, code="missing_file"
            )
        if check_schema:
            store.check_schema()
        yield store


@contextmanager
def problems_as_errors() -> Iterator[None]:
    """Turn a problem with the database into an InputError with everything that the operator needs to know."""
    from lenience.service.domain.problems import Problem

    try:
        yield
    except Problem as problem:
        raise InputError.because(problem.full_detail, "database", label="", code="database_unusable") from None


def actor() -> str:
    """Return the user of this machine, whom the log names as the key's creator."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"
