"""Find the decisions made under a reference of the sender.

The query goes from the index on references to the events, which are found by their position in the log. Finding a
decision directly by the position of its event would scan all decisions of a chain for each match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, exists, select

from lenience.service.domain.events import Decided, Imported, read
from lenience.service.storage import schema

FEW = 1_000  # decisions of one reference that are looked up, one by one


class Referred(NamedTuple):
    """A decision that was made under a reference."""

    reference: str
    decision: str
    chain: int


def referred(connection: Connection, references: Sequence[str], most: int | None = None) -> list[Referred]:
    """Return the decisions made under one of these references, unordered, at most ``most``."""
    events, personal = schema.event, schema.personal
    place = (events.c.chain_id == personal.c.chain_id) & (events.c.seq == personal.c.seq)
    query = select(personal.c.reference, events.c.body, events.c.chain_id).join(events, place)
    matches = []
    for reference, body, chain in connection.execute(query.where(personal.c.reference.in_(references)).limit(most)):
        event = read(body)
        assert isinstance(event, Decided | Imported)  # only decisions have references
        matches.append(Referred(reference, event.id, chain))
    return matches


def few(connection: Connection, reference: str) -> list[Referred] | None:
    """Return the decisions made under this reference, or None if there are many."""
    matches = referred(connection, [reference], FEW + 1)
    return matches if len(matches) <= FEW else None


def under(reference: str) -> ColumnElement[bool]:
    """Return the condition that a decision was made under this reference, for references with many decisions."""
    table, personal = schema.decision, schema.personal
    place = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
    return exists().where(place & (personal.c.reference == reference))
