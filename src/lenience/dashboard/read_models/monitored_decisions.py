"""Count the decisions of a policy by monitored attribute and segment, over time, with outcomes and money."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, case, func, literal_column, select

from lenience.analysis.monitored_groups import JOINED, UNKNOWN, GroupCounts, attribute_sets
from lenience.dashboard.read_models.policy_status import PolicyStatus
from lenience.dashboard.read_models.time_buckets import span, width_for
from lenience.service.storage import schema
from lenience.service.storage.monitored_rows import monitored_names

MOST_COUNTED = 200_000  # decisions, the newest; counting millions would take too long for a page
CACHE_SIZE = 50


class MonitoredDecisions(msgspec.Struct, frozen=True):
    """The counts of a policy's decisions by group and segment."""

    attributes: tuple[str, ...]
    cells: dict[tuple[str, str], GroupCounts]
    first_accepted: dict[str, int]
    buckets: dict[tuple[str, int], tuple[int, int]]  # accepted and arrivals, by group and start of the time bucket
    width: int  # of a time bucket, in microseconds
    limited: bool  # whether older decisions are left out


def attribute_choices(connection: Connection, chain: int) -> list[tuple[str, ...]]:
    """Return what groups can be made of: each monitored attribute, each pair, and all of them if there are three."""
    return attribute_sets(list(monitored_names(connection, chain)))


class MonitoredCache:
    """A cache of the counts. They are valid until an event is added to a chain of the policy."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, tuple[str, ...]], tuple[object, MonitoredDecisions]] = {}

    def read(self, connection: Connection, status: PolicyStatus, attributes: tuple[str, ...]) -> MonitoredDecisions:
        """Return the same as :func:`read_monitored_decisions`."""
        lengths = select(schema.chain.c.length).where(schema.chain.c.id == status.record.monitored)
        state = (connection.execute(lengths).scalar(), tuple((one.chain, one.length) for one in status.segments))
        key = (status.name, attributes)
        before = self._cache.get(key)
        if before is not None and before[0] == state:
            return before[1]
        if len(self._cache) > CACHE_SIZE:
            self._cache.clear()
        counted = read_monitored_decisions(connection, status, attributes)
        self._cache[key] = (state, counted)
        return counted


def read_monitored_decisions(
    connection: Connection, status: PolicyStatus, attributes: Sequence[str]
) -> MonitoredDecisions:
    """Count the decisions of a policy's segments by the values of attributes. A missing value makes a group unknown."""
    segments = {segment.chain: segment.name for segment in status.segments}
    ends = span(connection, list(segments))
    width = width_for(*ends) if ends else 1
    oldest = _oldest(connection, list(segments))
    rows = connection.execute(_query(list(segments), attributes, width, oldest))
    cells: dict[tuple[str, str], GroupCounts] = {}
    first: dict[str, int] = {}
    buckets: dict[tuple[str, int], tuple[int, int]] = {}
    for row in rows:
        values = row[: len(attributes)]
        group = UNKNOWN if None in values else JOINED.join(values)
        accepted = row.number if row.accepted else 0
        early = row.number if row.early else 0
        counts = GroupCounts(
            arrivals=row.number,
            accepted=accepted,
            successes=row.number if row.status == schema.SUCCESS else 0,
            failures=row.number if row.status == schema.FAILURE else 0,
            early_arrivals=early,
            early_accepted=accepted if row.early else 0,
            amounts=row.amounts if row.accepted else 0,
            amount=float(row.amount or 0.0) if row.accepted else 0.0,
            amount_squares=float(row.amount_squares or 0.0) if row.accepted else 0.0,
            profits=row.profits,
            profit=float(row.profit or 0.0),
            profit_squares=float(row.profit_squares or 0.0),
        )
        place = (group, segments[row.chain_id])
        cells[place] = cells.get(place, GroupCounts()) + counts
        if row.accepted and group != UNKNOWN:
            first[group] = min(first.get(group, row.first), row.first)
        yes, all_of_them = buckets.get((group, row.start), (0, 0))
        buckets[group, row.start] = (yes + accepted, all_of_them + row.number)
    return MonitoredDecisions(tuple(attributes), cells, first, buckets, width, oldest is not None)


def _oldest(connection: Connection, chains: list[int]) -> str | None:
    """Return the id from which decisions are counted, or None if all are."""
    table = schema.decision
    query = select(table.c.id).where(table.c.chain_id.in_(chains)).order_by(table.c.id.desc())
    return connection.execute(query.offset(MOST_COUNTED).limit(1)).scalar()


def _query(chains: list[int], attributes: Sequence[str], width: int, oldest: str | None) -> Any:
    table = schema.decision
    joined: Any = table
    values = []
    for name in attributes:
        own = schema.monitored.alias()
        joined = joined.outerjoin(own, (own.c.decision == table.c.id) & (own.c.name == name))
        values.append(own.c.value)
    labels = [value.label(f"value{i}") for i, value in enumerate(values)]
    where = table.c.chain_id.in_(chains) & (table.c.status != schema.REPLACED)
    if oldest is not None:
        where &= table.c.id > oldest
    gain = case(
        (table.c.status == schema.SUCCESS, table.c.amount * (1 - table.c.cost)),
        (table.c.status == schema.FAILURE, -table.c.amount * table.c.cost),
    )
    # A literal, not a bound parameter: PostgreSQL must see that the grouped expression is the selected one.
    start = table.c.at - table.c.at % literal_column(str(width))
    inner = (
        select(
            *labels,
            table.c.chain_id,
            table.c.accepted,
            table.c.status,
            table.c.amount,
            gain.label("gain"),
            start.label("start"),
            func.row_number().over(partition_by=values, order_by=table.c.id).label("place"),
            func.count().over(partition_by=values).label("size"),
        )
        .select_from(joined)
        .where(where)
        .subquery()
    )
    early = case((2 * inner.c.place <= inner.c.size, 1), else_=0).label("early")
    grouped = [inner.c[label.name] for label in labels]
    keys = [*grouped, inner.c.chain_id, inner.c.accepted, inner.c.status, inner.c.start, early]
    return select(
        *keys,
        func.count().label("number"),
        func.count(inner.c.amount).label("amounts"),
        func.sum(inner.c.amount).label("amount"),
        func.sum(inner.c.amount * inner.c.amount).label("amount_squares"),
        func.count(inner.c.gain).label("profits"),
        func.sum(inner.c.gain).label("profit"),
        func.sum(inner.c.gain * inner.c.gain).label("profit_squares"),
        func.min(inner.c.place).label("first"),
    ).group_by(*grouped, inner.c.chain_id, inner.c.accepted, inner.c.status, inner.c.start, literal_column("early"))
