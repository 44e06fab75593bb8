"""Four eyes: where the operator requires it, a version is activated by somebody else than its author.

The requirement is a setting of the service (``lenience serve --four-eyes``), so that nobody who works through the
service can switch it off. An activation under it is marked in the log, and the audit compares both actors.
"""

from __future__ import annotations

import os

from sqlalchemy import select

from lenience.core.settings import FOUR_EYES
from lenience.service.domain.events import VersionCreated, read
from lenience.service.domain.problems import Conflict
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger


def four_eyes_required() -> bool:
    """Return whether a version needs somebody else than its author to be activated."""
    return os.environ.get(FOUR_EYES, "") == "1"


def check_four_eyes(ledger: Ledger, chain: int, number: int, actor: str) -> None:
    """Raise Conflict if the actor who activates a version is its author."""
    author = version_author(ledger, chain, number)
    if author == actor:
        hint = "Create an API key for each person" if actor == "local" else "Ask somebody with another key"
        raise Conflict(
            f"version {number} was created by {author!r} and must be activated by somebody else. {hint}",
            code="four_eyes",
        )


def version_author(ledger: Ledger, chain: int, number: int) -> str | None:
    """Return who created a version, by the log of its policy."""
    events = schema.event
    query = select(events.c.body).where(events.c.chain_id == chain, events.c.body.like('{"kind":"version"%'))
    for body in ledger.connection.scalars(query):
        event = read(body)
        if isinstance(event, VersionCreated) and event.number == number:
            return event.actor
    return next(
        (e.actor for e in ledger.unwritten(chain) if isinstance(e, VersionCreated) and e.number == number), None
    )
