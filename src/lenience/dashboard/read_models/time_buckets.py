"""Counts over time: arrivals and acceptances per time bucket.

A decision's id begins with its time, so a time range is a range of the primary key. Imported decisions have their own
dates, which may be before the policy.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, func, literal_column, select

from lenience.service.domain.clock import DAY, now
from lenience.service.domain.events import Overridden, read
from lenience.service.domain.identity import first_id
from lenience.service.storage import schema

MOST_BUCKETS = 24
HOUR, WEEK = 3_600, 7 * 86_400  # seconds
WIDTHS = [60, 300, 900, HOUR, 3 * HOUR, 6 * HOUR, 24 * HOUR, WEEK, 4 * WEEK, 12 * WEEK, 52 * WEEK]  # seconds
LATE = 5_000_000  # microseconds within which a transaction with an earlier time may still arrive
CACHE_SIZE = 100  # policies


class TimeBucket(msgspec.Struct, frozen=True):
    """The arrivals and acceptances of one chain in a time bucket."""

    chain: int
    start: int  # microseconds
    arrivals: int
    accepted: int


def span(connection: Connection, chains: list[int]) -> tuple[int, int] | None:
    """Return the times of the first and the last decision of some chains, to the millisecond."""
    table = schema.decision
    rows = []
    for chain in chains:
        # Two index look-ups, however long the chain. One query for both would read all of it.
        ends = [select(end(table.c.id)).where(table.c.chain_id == chain) for end in (func.min, func.max)]
        first, last = connection.execute(select(*(end.scalar_subquery() for end in ends))).one()
        if first is not None:
            rows.append((time_of(first), time_of(last)))
    return (min(first for first, _ in rows), max(last for _, last in rows)) if rows else None


def time_of(identity: str) -> int:
    """Return the time (in microseconds, to the millisecond) at which a decision's id begins.

    >>> time_of("018bcfe5-6800-7000-8000-000000000000")
    1700000000000000
    """
    return int(identity[:8] + identity[9:13], 16) * 1000


def width_for(first: int, last: int, most: int = MOST_BUCKETS) -> int:
    """Return the smallest round width (in microseconds) that divides a span into at most ``most`` buckets."""
    for seconds in WIDTHS:
        if (last - first) / 1e6 / seconds < most:
            return seconds * 1_000_000
    return WIDTHS[-1] * 1_000_000


def read_time_buckets(connection: Connection, chains: list[int], since: int, width: int) -> list[TimeBucket]:
    """Return arrivals and acceptances of chains since a time, in buckets of a width (in microseconds)."""
    if width % DAY == 0:
        return _read_daily(connection, chains, since, width // DAY)
    table = schema.decision
    # A literal, not a bound parameter: PostgreSQL must see that the grouped expression is the selected one.
    start = (table.c.at - table.c.at % literal_column(str(width))).label("start")
    query = (
        select(table.c.chain_id, start, func.count().label("arrivals"), func.sum(table.c.accepted).label("accepted"))
        .where(table.c.id >= first_id(since), table.c.chain_id.in_(chains))
        .group_by(table.c.chain_id, start)
        .order_by(start)
    )
    return [TimeBucket(row.chain_id, row.start, row.arrivals, int(row.accepted)) for row in connection.execute(query)]


def _read_daily(connection: Connection, chains: list[int], since: int, days: int) -> list[TimeBucket]:
    """Return arrivals and acceptances in buckets of whole days, from the daily totals."""
    table = schema.daily_total
    start = (table.c.day - table.c.day % literal_column(str(days))).label("start")
    sums = (func.sum(table.c.number).label("number"), func.sum(table.c.accepted).label("accepted"))
    query = (
        select(table.c.chain_id, start, *sums)
        .where(table.c.chain_id.in_(chains), table.c.day >= since // DAY, table.c.number > 0)
        .group_by(table.c.chain_id, start)
        .order_by(start)
    )
    rows = connection.execute(query)
    return [TimeBucket(row.chain_id, row.start * DAY, int(row.number), int(row.accepted)) for row in rows]


def overrides(connection: Connection, chains: list[int]) -> dict[int, tuple[int, int]]:
    """Return how many decisions of each chain are accepted, and how many rejected, only because of an override."""
    table = schema.event
    query = select(table.c.chain_id, table.c.about, table.c.body).where(table.c.chain_id.in_(chains), schema.OVERRIDE)
    last: dict[tuple[int, str], str | None] = {}
    for chain, about, body in connection.execute(query.order_by(table.c.chain_id, table.c.seq)):
        event = read(body)
        assert isinstance(event, Overridden)
        if event.review:  # the policy has left it to a person
            continue
        # Each override reverses the one before, so a second one restores the policy's decision.
        last[chain, about] = None if last.get((chain, about)) else event.choice
    counts: dict[int, tuple[int, int]] = {}
    for (chain, _), choice in last.items():
        up, down = counts.get(chain, (0, 0))
        counts[chain] = (up + (choice == "accept"), down + (choice == "reject"))
    return counts


class TimeBucketCache:
    """A cache of arrivals and acceptances by time bucket: past buckets of less than a day are counted once.

    Only an override can change a past decision, and only an import can add one, so the cache is valid until the next.
    """

    def __init__(self) -> None:
        self._cache: dict[tuple[int, ...], tuple[object, int, list[TimeBucket]]] = {}

    def buckets(self, connection: Connection, chains: list[int], since: int, width: int) -> list[TimeBucket]:
        """Return the same as :func:`read_time_buckets`."""
        if width % DAY == 0:  # from totals, which need no cache
            return read_time_buckets(connection, chains, since, width)
        events = schema.event
        last = select(events.c.chain_id, func.max(events.c.seq)).where(events.c.chain_id.in_(chains), schema.OVERRIDE)
        key = tuple(chains)
        imported = select(func.sum(schema.chain.c.imported)).where(schema.chain.c.id.in_(chains))
        overridden = sorted(map(tuple, connection.execute(last.group_by(events.c.chain_id))))
        same = (since, width, overridden, connection.execute(imported).scalar())
        before, until, buckets = self._cache.get(key, (None, since, []))
        if before != same:
            until, buckets = since, []
        buckets = buckets + read_time_buckets(connection, chains, until, width)
        over = now() - LATE
        over -= over % width
        if len(self._cache) > CACHE_SIZE:
            self._cache.clear()
        self._cache[key] = (same, max(over, since), [bucket for bucket in buckets if bucket.start < over])
        return buckets
