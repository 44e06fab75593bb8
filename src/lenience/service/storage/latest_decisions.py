"""Read the latest decisions of a policy with their events, outcomes and stored features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from lenience.service.domain.events import Decided, read
from lenience.service.storage import schema


class LatestDecision(NamedTuple):
    """A decision of the policy: its segment, its status, its event, and the features as stored."""

    id: str
    segment: str
    chain: int
    status: str
    event: Decided
    inputs: str | None  # None if there are none, or if they were erased
    seq: int = 0  # the number of the event in the chain

    @property
    def accepted(self) -> bool:
        """Whether the decision in force accepts, after overrides."""
        return self.status in (schema.PENDING, schema.SUCCESS, schema.FAILURE, schema.EXPIRED)

    @property
    def success(self) -> bool | None:
        """The outcome, None if it is not known."""
        return {schema.SUCCESS: True, schema.FAILURE: False}.get(self.status)


def latest_decisions(
    connection: Connection,
    segments: Mapping[str, int],
    most: int,
    *,
    oldest: bool = False,
    statuses: Sequence[str] | None = None,
) -> list[LatestDecision]:
    """Return the latest decisions of a policy, the newest first, or its oldest ones, the oldest first.

    Imported decisions, which no version made, and those that were decided again are left out.

    Parameters
    ----------
    connection : Connection
        A transaction.
    segments : mapping
        The chain of each segment.
    most : int
        How many decisions are read.
    oldest : bool, default False
        Whether to read the oldest instead of the latest.
    statuses : sequence of str, optional
        Read only decisions with one of these statuses.
    """
    names = {chain: segment for segment, chain in segments.items()}
    table, events, personal = schema.decision, schema.event, schema.personal
    place = (events.c.chain_id == table.c.chain_id) & (events.c.seq == table.c.seq)
    beside = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
    where = table.c.chain_id.in_(list(names)) & table.c.source.is_(None) & (table.c.status != schema.REPLACED)
    if statuses is not None:
        where &= table.c.status.in_(statuses)
    # The subquery takes the newest by the index alone, before events and features are read.
    chosen = select(table.c.id).where(where).order_by(table.c.id if oldest else table.c.id.desc()).limit(most)
    query = (
        select(table.c.id, table.c.chain_id, table.c.status, table.c.seq, events.c.body, personal.c.details)
        .join_from(table, events, place)
        .outerjoin(personal, beside)
        .where(table.c.id.in_(chosen))
        .order_by(table.c.id if oldest else table.c.id.desc())
    )
    decisions = []
    for row in connection.execute(query):
        event = read(row.body)
        if isinstance(event, Decided):
            own = (row.id, names[row.chain_id], row.chain_id)
            decisions.append(LatestDecision(*own, row.status, event, row.details, row.seq))
    return decisions
