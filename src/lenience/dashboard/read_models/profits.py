"""Profit in money, for policies with offers: realised, expected from what is pending, at risk, and by month.

Realised profit is exact: the gain of each success minus the loss of each failure, as the decisions store them. It is
summed over the whole table once. After that, only the outcomes since the last time are read from the log.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock

import msgspec
from sqlalchemy import Connection, func, literal_column, select

from lenience.core.money import Money
from lenience.dashboard.read_models.policy_status import PolicyStatus, SegmentStatus
from lenience.service.domain.events import Corrected, Observed, read
from lenience.service.domain.state import realised_profit
from lenience.service.storage import schema

DAY = 86_400 * 1_000_000  # microseconds
MOST_EVENTS = 2_000  # events that are read one by one; more are summed over the table again


class Realised(msgspec.Struct):
    """The known outcomes of a segment with an offer, by the month of their decision (such as "2026-11")."""

    months: dict[str, float] = {}
    outcomes: int = 0

    def add(self, at: int, profit: float, outcomes: int) -> None:
        """Add outcomes of decisions that were made at a time (in microseconds)."""
        month = month_of(at)
        self.months[month] = self.months.get(month, 0.0) + profit
        self.outcomes += outcomes


class Profit(msgspec.Struct, frozen=True):
    """The profit of a segment or a policy.

    ``realised`` is what ``outcomes`` known outcomes have earned. ``expected`` is the expected profit of the pending
    ones, ``at_risk`` what they lose if all fail. ``unpriced`` is the number of known outcomes without an offer, from
    versions with one break-even. They are in no sum.
    """

    realised: float
    outcomes: int
    expected: float
    at_risk: float
    pending: int
    unpriced: int
    months: Mapping[str, float]


class PolicyProfit(msgspec.Struct, frozen=True):
    """The profit of a policy, by segment and in total."""

    money: Money
    segments: dict[str, Profit]
    total: Profit


class ProfitCache:
    """A cache of realised profits: the sums of each segment, up to a position in its log."""

    def __init__(self) -> None:
        self._realised: dict[int, tuple[int, Realised]] = {}
        self._lock = Lock()

    def of(self, connection: Connection, policy: PolicyStatus) -> PolicyProfit | None:
        """Return the profit of a policy, or None if its version has no offers."""
        if not policy.has_offers:
            return None
        pending = _pending(connection, [segment.chain for segment in policy.segments])
        profits = {
            segment.name: _profit(segment, self._of_segment(connection, segment), pending.get(segment.chain, (0.0, 0)))
            for segment in policy.segments
        }
        return PolicyProfit(policy.money, profits, total(list(profits.values())))

    def _of_segment(self, connection: Connection, segment: SegmentStatus) -> Realised:
        with self._lock:
            length, before = self._realised.get(segment.chain, (-1, Realised()))
        if length == segment.length:
            return before
        new = segment.length - length
        if length < 0 or new < 0 or new > MOST_EVENTS:
            after = sum_realised(connection, segment.chain)
        else:
            after = Realised(dict(before.months), before.outcomes)
            _add_events(connection, segment.chain, length, after)
        with self._lock:
            self._realised[segment.chain] = (segment.length, after)
        return after


def total(profits: Sequence[Profit]) -> Profit:
    """Return the sum of several profits."""
    months: dict[str, float] = {}
    for profit in profits:
        for month, earned in profit.months.items():
            months[month] = months.get(month, 0.0) + earned
    return Profit(
        realised=math.fsum(profit.realised for profit in profits),
        outcomes=sum(profit.outcomes for profit in profits),
        expected=math.fsum(profit.expected for profit in profits),
        at_risk=math.fsum(profit.at_risk for profit in profits),
        pending=sum(profit.pending for profit in profits),
        unpriced=sum(profit.unpriced for profit in profits),
        months=dict(sorted(months.items())),
    )


def month_of(at: int) -> str:
    """Return the month (UTC) of a time in microseconds.

    >>> month_of(1_700_000_000_000_000)
    '2023-11'
    """
    return datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m")


def sum_realised(connection: Connection, chain: int) -> Realised:
    """Sum the realised profit of a segment over all its decisions."""
    table = schema.decision
    # A literal, not a bound parameter: PostgreSQL must see that the grouped expression is the selected one.
    day = (table.c.at - table.c.at % literal_column(str(DAY))).label("day")
    gains, losses = func.sum(table.c.amount - table.c.amount * table.c.cost), func.sum(table.c.amount * table.c.cost)
    query = (
        select(day, table.c.status, gains.label("gain"), losses.label("loss"), func.count().label("outcomes"))
        .where(table.c.chain_id == chain, table.c.amount.is_not(None), table.c.status.in_(("success", "failure")))
        .group_by(day, table.c.status)
        .order_by(day)
    )
    realised = Realised()
    for row in connection.execute(query):
        realised.add(row.day, row.gain if row.status == "success" else -row.loss, row.outcomes)
    return realised


def _add_events(connection: Connection, chain: int, length: int, realised: Realised) -> None:
    """Add the outcomes and corrections in the log of a segment after a position."""
    events, table = schema.event, schema.decision
    query = (
        select(events.c.body, table.c.at, table.c.amount, table.c.cost)
        .join(table, table.c.id == events.c.about)
        .where(events.c.chain_id == chain, events.c.seq > length, table.c.amount.is_not(None))
    )
    for row in connection.execute(query.order_by(events.c.seq)):
        event = read(row.body)
        if isinstance(event, Observed):
            realised.add(row.at, realised_profit(event.outcome, row.amount, row.cost) or 0.0, 1)
        elif isinstance(event, Corrected):
            after = realised_profit(event.outcome, row.amount, row.cost) or 0.0
            before = realised_profit(event.before, row.amount, row.cost) or 0.0
            realised.add(row.at, after - before, 0)


def _pending(connection: Connection, chains: list[int]) -> dict[int, tuple[float, int]]:
    """Return the amount at stake and the number of the pending outcomes with an offer, by chain."""
    table = schema.decision
    query = (
        select(table.c.chain_id, func.sum(table.c.amount).label("amount"), func.count(table.c.amount).label("number"))
        .where(table.c.status == schema.PENDING, table.c.chain_id.in_(chains), table.c.amount.is_not(None))
        .group_by(table.c.chain_id)
    )
    return {row.chain_id: (row.amount, row.number) for row in connection.execute(query)}


def _profit(segment: SegmentStatus, realised: Realised, pending: tuple[float, int]) -> Profit:
    amount, number = pending
    counts = segment.counts
    return Profit(
        realised=math.fsum(realised.months.values()),
        outcomes=realised.outcomes,
        # Each pending offer is expected to earn a(p̂ − c), and the losses a c are what is at risk.
        expected=amount * segment.rule.basis(counts).rate - counts.at_risk if number else 0.0,
        at_risk=counts.at_risk,
        pending=number,
        unpriced=counts.successes + counts.failures - realised.outcomes,
        months=realised.months,
    )
