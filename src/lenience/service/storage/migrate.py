"""Bring a database to the newest schema, from an empty one or from any earlier schema."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from lenience.core.errors import InputError

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection, revision: str = "head") -> None:
    """Run the migrations that are missing, inside the transaction of this connection."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def newest() -> str:
    """The revision this software works with."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def revision_of(connection: Connection) -> str | None:
    """The revision a database is at; nothing if it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def refuse_others(connection: Connection, revision: str | None) -> None:
    """Refuse a database that has no schema of ours, and is not empty."""
    if revision is None:
        tables = sorted(inspect(connection).get_table_names())
        if tables:
            shown = ", ".join(tables[:3]) + (", …" if len(tables) > 3 else "")
            raise InputError(f"this database holds other tables ({shown}): give lenience one of its own")


def refuse_newer(revision: str | None, name: str) -> None:
    """Refuse a database that a newer version of the software has written."""
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if revision is not None and revision not in known:
        raise InputError(
            f"the database {name} has schema {revision}, which this version of lenience does not know: it was written "
            "by a newer one, which must be installed to use it"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config
