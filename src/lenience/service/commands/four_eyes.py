"""Four eyes: where the operator requires it, a version is activated by somebody other than its author.

The requirement is a setting of the service (``lenience serve --four-eyes``), so that nobody who works through the
service can switch it off. An activation under it is marked in the log, and the audit compares both actors.
"""

from __future__ import annotations

import os

from sqlalchemy import Connection, select

from lenience.core.settings import FOUR_EYES
from lenience.service.commands.keys import LOCAL
from lenience.service.domain.events import VersionCreated, read
from lenience.service.domain.problems import Conflict
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.people import actor_names


def four_eyes_required() -> bool:
    """Return whether a version needs somebody other than its author to be activated."""
    return os.environ.get(FOUR_EYES, "") == "1"


def check_four_eyes(ledger: Ledger, chain: int, number: int, actor: str) -> None:
    """Raise Conflict if the actor who activates a version is its author."""
    author = version_author(ledger, chain, number)
    if author == actor:
        name = actor_names(ledger.connection, [actor])[actor]
        hint = (
            "Create an API key for each person, or set up sign-in with OpenID Connect"
            if actor == LOCAL
            else "Ask a colleague with the role admin"
        )
        raise Conflict(
            f"version {number} was created by {name} and must be activated by somebody else. {hint}", code="four_eyes"
        )


def version_author(ledger: Ledger, chain: int, number: int) -> str | None:
    """Return who created a version, by the log of its policy."""
    author = version_authors(ledger.connection, chain).get(number)
    if author is not None:
        return author
    return next(
        (e.actor for e in ledger.unwritten(chain) if isinstance(e, VersionCreated) and e.number == number), None
    )


def version_authors(connection: Connection, chain: int) -> dict[int, str]:
    """Return who created each version of a policy, by its log."""
    events = schema.event
    query = select(events.c.body).where(events.c.chain_id == chain, events.c.body.like('{"kind":"version"%'))
    created = (read(body) for body in connection.scalars(query))
    return {event.number: event.actor for event in created if isinstance(event, VersionCreated)}
