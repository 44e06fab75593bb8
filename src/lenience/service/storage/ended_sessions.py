"""Dashboard sessions that were ended early and attempts to sign in that were used, until they would have expired.

A session is a signed cookie and is not stored itself (see lenience.dashboard.session). The database stores only which
sessions are no longer valid, so that every process of the service sees it.
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
    """Return the digest that stands for a session in the database."""
    return sha256(session.encode()).hexdigest()


def end_session(store: Store, session: str, until: int) -> bool:
    """End a session that would have been valid until a time in microseconds. Return whether it had not ended before."""
    values = {"session": digest_of(session), "until": until}
    with suppress(IntegrityError), store.write() as connection:
        connection.execute(insert(schema.signed_out).values(values))
        return True
    return False


def ended_sessions(store: Store) -> frozenset[str]:
    """Return the digests of ended sessions."""
    with store.read() as connection:
        return frozenset(connection.execute(select(schema.signed_out.c.session)).scalars())


def forget_ended(store: Store) -> None:
    """Delete the records of sessions that have expired."""
    with store.write() as connection:
        connection.execute(delete(schema.signed_out).where(schema.signed_out.c.until < now()))
