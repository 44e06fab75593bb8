"""Compare the clock of this machine with that of the database server before the service starts."""

from __future__ import annotations

from sqlalchemy import text

from lenience.core.errors import InputError
from lenience.core.settings import CLOCK_STEP
from lenience.service.domain.clock import allowed_step, now
from lenience.service.storage.store import Store


def check_clock(store: Store) -> None:
    """Raise InputError if the clock of this machine and that of the PostgreSQL server differ too much.

    Several machines may write to one log, and its times must be comparable. SQLite has no other clock to compare.
    """
    if store.sqlite:
        return
    with store.read() as connection:
        query = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
        server = int(connection.execute(query).scalar_one())
    seconds = (now() - server) / 1e6
    if abs(seconds) > allowed_step():
        ahead = "ahead of" if seconds > 0 else "behind"
        raise InputError.because(
            f"The clock of this machine is {abs(seconds):,.0f} seconds {ahead} the clock of the database server",
            "database",
            label="",
            value=round(seconds),
            hint=f"Correct the clock. {CLOCK_STEP} sets the allowed difference ({allowed_step():g} seconds).",
            code="database_unusable",
        )
