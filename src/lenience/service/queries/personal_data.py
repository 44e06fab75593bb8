"""Find decisions that still have personal data, for a command that erases it.

A search for old decisions among millions takes a while. Each request therefore looks at a limited number of
decisions, and says where the next one continues.
"""

from __future__ import annotations

from sqlalchemy import exists, select

from lenience.service.domain import limits
from lenience.service.queries.reading import Filters, Queries
from lenience.service.storage import schema

SEARCH_SIZE = 10_000  # decisions, at most, in one request
DAY = 86_400 * 1_000_000  # in microseconds; the clocks of several machines differ by less


def decisions_with_personal_data(queries: Queries, filters: Filters, after: str | None) -> tuple[list[str], str | None]:
    """Find decisions that still have personal data, oldest first, and the id to continue after if there may be more."""
    table, personal, events = schema.decision, schema.personal, schema.event
    start = table.c.id > (after or "")
    with queries.store.read() as connection:
        query = queries.matching(connection, filters).where(start)
        last = None
        if filters.reference is None:  # a decision with a reference has personal data
            window = select(table.c.id, table.c.at).where(start).order_by(table.c.id).offset(SEARCH_SIZE - 1).limit(1)
            last = connection.execute(window).one_or_none()
            place = (personal.c.chain_id == events.c.chain_id) & (personal.c.seq == events.c.seq)
            overridden = select(events.c.about).join(personal, place).where(schema.OVERRIDE)
            own = exists().where((personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq))
            monitored = exists().where(schema.monitored.c.decision == table.c.id)
            query = query.where(own | monitored | table.c.id.in_(overridden))
        if last is not None:
            query = query.where(table.c.id <= last.id)
        rows = connection.execute(query.order_by(table.c.id).limit(limits.BATCH + 1)).all()
    ids = [row.id for row in rows[: limits.BATCH]]
    if len(rows) > limits.BATCH:
        return ids, ids[-1]
    if last is None or (filters.until is not None and last.at > filters.until + DAY):  # ids sort by time
        return ids, None
    return ids, last.id
