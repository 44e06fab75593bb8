"""The way a belief has come: read off the log, which carries the running counts in every decision.

A path is drawn over log n, so its points are taken evenly in the logarithm of the place in the log: a hundred look-ups
by key for a segment, whether the log holds a thousand events or a billion.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from lenience.service.storage import schema

POINTS = 150


class Step(msgspec.Struct, frozen=True):
    """The counts of a segment before a decision."""

    at: int
    arrivals: int
    accepted: int
    pending: int
    successes: int
    failures: int


_decoder = msgspec.json.Decoder(Step)  # of a decision's event only what a step needs


def belief_path(connection: Connection, chain: int, length: int, points: int = POINTS) -> list[Step]:
    """Steps of a segment's chain, from its first decision to its last, at most so many."""
    if length == 0:
        return []
    places = sorted({round(length ** (i / (points - 1))) for i in range(points)})
    events = schema.event
    where = (events.c.chain_id == chain) & events.c.seq.in_(places) & events.c.about.is_(None)
    rows = connection.execute(select(events.c.body).where(where).order_by(events.c.seq))
    return [_decoder.decode(row.body) for row in rows]
