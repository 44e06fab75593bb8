"""Sessions of the dashboard that were ended before their time: kept until they would have ended by themselves.

A session is a signed cookie, and nothing is stored of it (see lenience.dashboard.session); so what is stored is
which of them
no longer count, for every process of the service to see.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from lenience.service.domain.clock import now
from lenience.service.storage import schema
from lenience.service.storage.store import Store


def digest_of(session: str) -> str:
    """What stands for a session in the database."""
    return sha256(session.encode()).hexdigest()


def end_session(store: Store, session: str, until: int) -> None:
    """Let a session count no more; it would have counted until a time in microseconds."""
    values = {"session": digest_of(session), "until": until}
    with suppress(IntegrityError), store.write() as connection:  # it may have been ended twice
        connection.execute(insert(schema.signed_out).values(values))


def ended_sessions(store: Store) -> frozenset[str]:
    """The digests of those that count no more."""
    with store.read() as connection:
        return frozenset(connection.execute(select(schema.signed_out.c.session)).scalars())


def forget_ended(store: Store) -> None:
    """Forget those that are over anyway."""
    with store.write() as connection:
        connection.execute(delete(schema.signed_out).where(schema.signed_out.c.until < now()))
