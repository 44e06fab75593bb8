"""Upgrade a database to the newest schema, from an empty database or any earlier schema."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from lenience.core.errors import InputError

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations inside the transaction of this connection."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@cache
def newest() -> str:
    """Return the revision that this software needs."""
    head = _scripts().get_current_head()
    assert head is not None
    return head


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database, or None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return revision


def refuse_others(connection: Connection, revision: str | None) -> None:
    """Raise InputError if a database has tables that are not ours."""
    if revision is None:
        tables = sorted(inspect(connection).get_table_names())
        if tables:
            shown = ", ".join(tables[:3]) + (", …" if len(tables) > 3 else "")
            raise InputError.because(
                f"has tables of another application ({shown})",
                "database",
                label="this database",
                hint="Use a separate database for lenience.",
                code="schema_mismatch",
            )


def refuse_newer(revision: str | None, name: str) -> None:
    """Raise InputError if a newer version of the software wrote the database."""
    if revision is not None and revision != newest() and revision not in _known():
        raise InputError.because(
            f"has schema {revision}, which this version of lenience does not know",
            "database",
            label=f"the database {name}",
            value=revision,
            hint="A newer version wrote it. Install that version.",
            code="schema_mismatch",
        )


def _known() -> set[str]:
    return {script.revision for script in _scripts().walk_revisions()}


@cache
def _scripts() -> ScriptDirectory:
    """Return the migrations. Alembic compiles each file anew whenever it lists them."""
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config
