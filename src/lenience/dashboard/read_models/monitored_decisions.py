"""Count the decisions of a policy by monitored attribute and segment, over time, with outcomes and money.

All counts come from totals that the service maintains (:mod:`lenience.service.storage.monitored_totals`). Only what
depends on the order of decisions within a day is read from the decisions of that day: the first half of a group, and
its first acceptance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, literal_column, select

from lenience.analysis.monitored_groups import JOINED, UNKNOWN, GroupCounts, attribute_sets
from lenience.dashboard.read_models.policy_status import PolicyStatus
from lenience.dashboard.read_models.time_buckets import span, width_for
from lenience.service.domain.clock import DAY
from lenience.service.domain.identity import first_id
from lenience.service.storage import schema
from lenience.service.storage.monitored_totals import values_of

CACHE_SIZE = 50
LATER_ID = 60_000_000  # microseconds by which an id may be later than its decision
AT_A_TIME = 500  # decisions of a day


class MonitoredDecisions(msgspec.Struct, frozen=True):
    """The counts of a policy's decisions by group and segment."""

    attributes: tuple[str, ...]
    cells: dict[tuple[str, str], GroupCounts]
    first_accepted: dict[str, int]
    early: dict[str, tuple[int, int]]  # arrivals and acceptances in the first half of each group
    buckets: dict[tuple[str, int], tuple[int, int]]  # accepted and arrivals, by group and start of the time bucket
    width: int  # of a time bucket, in microseconds


class GroupDay(NamedTuple):
    """The arrivals and acceptances of a group on a day."""

    day: int
    arrivals: int
    accepted: int


def attribute_choices(connection: Connection, chains: Sequence[int]) -> list[tuple[str, ...]]:
    """Return what groups can be made of: each monitored attribute, each pair, and all of them if there are three."""
    table = schema.monitored_total
    query = select(table.c.attributes).where(table.c.chain_id.in_(chains), table.c.number > 0).distinct()
    names = {name for text in connection.execute(query).scalars() for name in values_of(text) or ()}
    return attribute_sets(sorted(names))


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
    cells, groups = _cells(connection, segments, attributes)
    days = _days(connection, status.record.monitored, groups)
    ends = span(connection, list(segments))
    width = width_for(*ends) if ends else 1
    if width >= DAY:
        buckets: dict[tuple[str, int], tuple[int, int]] = {}
        for group, some in days.items():
            for one in some:
                start = one.day * DAY - one.day * DAY % width
                yes, everyone = buckets.get((group, start), (0, 0))
                buckets[group, start] = (yes + one.accepted, everyone + one.arrivals)
    else:
        buckets = _short_buckets(connection, list(segments), attributes, width)
    reader = _DayReader(connection, list(segments), attributes)
    return MonitoredDecisions(
        attributes=tuple(attributes),
        cells=cells,
        first_accepted=_first_accepted(reader, days),
        early=_early(reader, days),
        buckets=buckets,
        width=width,
    )


def _cells(
    connection: Connection, segments: Mapping[int, str], attributes: Sequence[str]
) -> tuple[dict[tuple[str, str], GroupCounts], dict[str, str]]:
    """Return the counts by group and segment, and the group of each key of attributes.

    Decisions whose group is unknown are what all decisions have more than those of the known groups.
    """
    table, daily = schema.monitored_total, schema.daily_total
    cells: dict[tuple[str, str], GroupCounts] = {}
    groups: dict[str, str] = {}
    for row in connection.execute(select(table).where(table.c.chain_id.in_(list(segments)), table.c.number > 0)):
        group = groups.get(row.key)
        if group is None:
            values = values_of(row.attributes) or {}
            known = all(name in values for name in attributes)
            group = groups[row.key] = JOINED.join(values[name] for name in attributes) if known else UNKNOWN
        if group != UNKNOWN and row.status != schema.REPLACED:
            place = (group, segments[row.chain_id])
            cells[place] = cells.get(place, GroupCounts()) + _counts(row)
    known_of = {
        name: sum((cell for (_, segment), cell in cells.items() if segment == name), GroupCounts())
        for name in segments.values()
    }
    sums = (func.sum(daily.c.number).label("number"), func.sum(daily.c.accepted).label("accepted"))
    query = select(daily.c.chain_id, daily.c.status, *sums).where(
        daily.c.chain_id.in_(list(segments)), daily.c.status != schema.REPLACED
    )
    everyone: dict[str, GroupCounts] = {}
    for row in connection.execute(query.group_by(daily.c.chain_id, daily.c.status)):
        name, number = segments[row.chain_id], int(row.number)
        good, bad = number * (row.status == schema.SUCCESS), number * (row.status == schema.FAILURE)
        everyone[name] = everyone.get(name, GroupCounts()) + GroupCounts(number, int(row.accepted), good, bad)
    for name, all_of_them in everyone.items():
        known_ones = known_of[name]
        if all_of_them.arrivals > known_ones.arrivals:
            cells[UNKNOWN, name] = GroupCounts(
                all_of_them.arrivals - known_ones.arrivals,
                all_of_them.accepted - known_ones.accepted,
                all_of_them.successes - known_ones.successes,
                all_of_them.failures - known_ones.failures,
            )
    return cells, groups


def _counts(row: Any) -> GroupCounts:
    success, failure = row.status == schema.SUCCESS, row.status == schema.FAILURE
    accepted, known = bool(row.accepted), success or failure
    return GroupCounts(
        arrivals=row.number,
        accepted=row.accepted,
        successes=row.number if success else 0,
        failures=row.number if failure else 0,
        amounts=row.amounts if accepted else 0,
        amount=row.amount if accepted else 0.0,
        amount_squares=row.amount_squares if accepted else 0.0,
        profits=row.amounts if known else 0,
        profit=row.amount - row.loss if success else -row.loss if failure else 0.0,
        profit_squares=row.profit_squares if known else 0.0,
    )


def _days(connection: Connection, chain: int, groups: Mapping[str, str]) -> dict[str, list[GroupDay]]:
    """Return the arrivals and acceptances of each known group by day, in order."""
    table = schema.monitored_day
    sums: dict[tuple[str, int], list[int]] = {}
    rows = connection.execute(select(table).where(table.c.chain_id == chain, table.c.number > 0))
    for row in rows:
        group = groups.get(row.key, UNKNOWN)
        if group != UNKNOWN:
            day = sums.setdefault((group, row.day), [0, 0])
            day[0] += row.number
            day[1] += row.accepted
    days: dict[str, list[GroupDay]] = {}
    for (group, day_number), (arrivals, accepted) in sorted(sums.items()):
        days.setdefault(group, []).append(GroupDay(day_number, arrivals, accepted))
    return days


def _first_accepted(reader: _DayReader, days: Mapping[str, Sequence[GroupDay]]) -> dict[str, int]:
    """Return the place of the first accepted applicant of each group, counted from 1."""
    first: dict[str, int] = {}
    for group, some in days.items():
        before = 0
        for one in some:
            if one.accepted:
                # If everyone of the day was accepted, the first one was.
                place = 1 if one.accepted == one.arrivals else reader.first_accepted(one.day, group)
                first[group] = before + place
                break
            before += one.arrivals
    return first


def _early(reader: _DayReader, days: Mapping[str, Sequence[GroupDay]]) -> dict[str, tuple[int, int]]:
    """Return the arrivals and acceptances in the first half of each group: whole days, then a part of the next."""
    early: dict[str, tuple[int, int]] = {}
    for group, some in days.items():
        half = sum(one.arrivals for one in some) // 2
        arrivals = accepted = 0
        for one in some:
            if arrivals + one.arrivals > half:
                accepted += reader.accepted_of_first(one.day, group, half - arrivals) if half > arrivals else 0
                break
            arrivals += one.arrivals
            accepted += one.accepted
        early[group] = (half, accepted)
    return early


class _DayReader:
    """Reads the decisions of single days in order, with their groups: each once, and only as far as it is needed."""

    def __init__(self, connection: Connection, chains: Sequence[int], attributes: Sequence[str]) -> None:
        self._connection, self._chains, self._attributes = connection, chains, attributes
        self._known: dict[int, tuple[list[tuple[str, int]], Iterator[tuple[str, int]]]] = {}  # rows so far, the others

    def first_accepted(self, day: int, group: str) -> int:
        """Return the place of the first accepted applicant of a group among those of a day, counted from 1."""
        place = 0
        for name, accepted in self._rows(day):
            place += name == group
            if accepted and name == group:
                break
        return max(place, 1)

    def accepted_of_first(self, day: int, group: str, count: int) -> int:
        """Return how many of the first applicants of a group on a day were accepted."""
        own = (accepted for name, accepted in self._rows(day) if name == group)
        return sum(islice(own, count))

    def _rows(self, day: int) -> Iterator[tuple[str, int]]:
        known, others = self._known.setdefault(day, ([], self._read(day)))
        yield from known
        for row in others:
            known.append(row)
            yield row

    def _read(self, day: int) -> Iterator[tuple[str, int]]:
        table = schema.decision
        joined, values = _joined(self._attributes)
        start, end = day * DAY, (day + 1) * DAY
        where = table.c.id.between(first_id(start), first_id(end + LATER_ID)) & table.c.at.between(start, end - 1)
        where &= table.c.chain_id.in_(self._chains) & (table.c.status != schema.REPLACED)
        query = select(table.c.accepted, *values).select_from(joined).where(where).order_by(table.c.id)
        for accepted, *own in self._connection.execute(query.execution_options(yield_per=AT_A_TIME)):
            yield UNKNOWN if None in own else JOINED.join(own), accepted


def _short_buckets(
    connection: Connection, chains: Sequence[int], attributes: Sequence[str], width: int
) -> dict[tuple[str, int], tuple[int, int]]:
    """Count decisions by group in time buckets of less than a day. All decisions are then of the last days."""
    table = schema.decision
    joined, values = _joined(attributes)
    labels = [value.label(f"value{i}") for i, value in enumerate(values)]
    # A literal, not a bound parameter: PostgreSQL must see that the grouped expression is the selected one.
    start = (table.c.at - table.c.at % literal_column(str(width))).label("start")
    query = (
        select(start, func.count().label("number"), func.sum(table.c.accepted).label("accepted"), *labels)
        .select_from(joined)
        .where(table.c.chain_id.in_(chains), table.c.status != schema.REPLACED)
        .group_by(start, *values)
    )
    buckets: dict[tuple[str, int], tuple[int, int]] = {}
    for begin, number, accepted, *own in connection.execute(query):
        if None not in own:
            buckets[JOINED.join(own), begin] = (int(accepted), number)
    return buckets


def _joined(attributes: Sequence[str]) -> tuple[Any, list[Any]]:
    """Return the decisions joined with the values of their attributes, and the columns of the values."""
    joined: Any = schema.decision
    values = []
    for name in attributes:
        own = schema.monitored.alias()
        joined = joined.outerjoin(own, (own.c.decision == schema.decision.c.id) & (own.c.name == name))
        values.append(own.c.value)
    return joined, values
