"""The names of people who signed in with OpenID Connect, for pages.

The log names a person by issuer and subject, and it is permanent. The name and e-mail address are personal data, so
they are beside the log and are deleted some time after the last sign-in.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select

from lenience.service.domain.clock import now
from lenience.service.storage import schema
from lenience.service.storage.store import Store

KEEP_NAMES = 2 * 365 * 86_400 * 1_000_000  # microseconds after the last sign-in


def remember_person(store: Store, actor: str, label: str) -> None:
    """Store the name of somebody who signs in."""
    table = schema.person
    with store.write() as connection:
        connection.execute(delete(table).where(table.c.actor == actor))
        connection.execute(insert(table).values(actor=actor, label=label, seen_at=now()))


def forget_people(store: Store) -> None:
    """Delete the names of people who have not signed in for two years."""
    with store.write() as connection:
        connection.execute(delete(schema.person).where(schema.person.c.seen_at < now() - KEEP_NAMES))


def actor_names(connection: Connection, actors: Iterable[str]) -> dict[str, str]:
    """Return the names of actors of the log: people, and API keys by their label. Others have their own name."""
    known = sorted(set(actors))
    names = {actor: actor for actor in known}
    keys, people = schema.api_key, schema.person
    for row in connection.execute(select(keys.c.id, keys.c.label).where(keys.c.id.in_(known))):
        names[row.id] = f"{row.label} (key {row.id})"
    for row in connection.execute(select(people.c.actor, people.c.label).where(people.c.actor.in_(known))):
        names[row.actor] = row.label
    return names
