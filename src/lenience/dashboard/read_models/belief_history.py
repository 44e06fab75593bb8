"""The history of a segment's belief, read from the running counts in the logged decisions.

A path is drawn over log n, so its points are spaced evenly in the logarithm of the position in the log. That takes
about a hundred look-ups by key per segment, however long the log is.
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
    """Return at most ``points`` steps of a segment's chain, from its first decision to its last."""
    if length == 0:
        return []
    places = sorted({round(length ** (i / (points - 1))) for i in range(points)})
    events = schema.event
    where = (events.c.chain_id == chain) & events.c.seq.in_(places) & events.c.about.is_(None)
    rows = connection.execute(select(events.c.body).where(where, schema.STATES_COUNTS).order_by(events.c.seq))
    return [_decoder.decode(row.body) for row in rows]
