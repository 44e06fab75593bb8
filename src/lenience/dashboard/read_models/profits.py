"""Profit in money, for policies with offers: realised, expected from what is pending, at risk, and by month.

Realised profit is the gain of each success minus the loss of each failure, as the decisions store them, each to a
millionth of the currency. The service maintains the sums (:mod:`lenience.service.storage.daily_totals`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from lenience.core.money import Money
from lenience.dashboard.read_models.policy_status import PolicyStatus, SegmentStatus
from lenience.service.storage import schema


class Realised(msgspec.Struct):
    """The known outcomes of a segment with an offer, by the month of their decision (such as "2026-11")."""

    months: dict[str, float] = {}
    outcomes: int = 0

    def add(self, month: str, profit: float, outcomes: int) -> None:
        """Add outcomes of decisions that were made in a month."""
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


def policy_profit(connection: Connection, policy: PolicyStatus) -> PolicyProfit | None:
    """Return the profit of a policy, or None if its version has no offers."""
    if not policy.has_offers:
        return None
    chains = [segment.chain for segment in policy.segments]
    pending, realised = _pending(connection, chains), _read_realised(connection, chains)
    profits = {
        segment.name: _profit(segment, realised.get(segment.chain, Realised()), pending.get(segment.chain, (0.0, 0)))
        for segment in policy.segments
    }
    return PolicyProfit(policy.money, profits, total(list(profits.values())))


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


def _read_realised(connection: Connection, chains: list[int]) -> dict[int, Realised]:
    """Return the realised profit of segments, from the daily totals."""
    table = schema.daily_total
    month = _month(connection, table.c.day).label("month")
    sums = (func.sum(table.c.amounts), func.sum(table.c.amount), func.sum(table.c.loss))
    query = (
        select(table.c.chain_id, month, table.c.status, *sums)
        .where(table.c.chain_id.in_(chains), table.c.amounts > 0, table.c.status.in_((schema.SUCCESS, schema.FAILURE)))
        .group_by(table.c.chain_id, month, table.c.status)
        .order_by(month, table.c.status)
    )
    realised: dict[int, Realised] = {}
    for chain, name, status, number, amount, loss in connection.execute(query):
        earned = amount - loss if status == schema.SUCCESS else -loss
        realised.setdefault(chain, Realised({}, 0)).add(name, earned, int(number))
    return realised


def _month(connection: Connection, day: ColumnElement[int]) -> ColumnElement[str]:
    """Return the month of a day, such as "2026-11"."""
    seconds = day * literal_column("86400")
    if connection.dialect.name == "sqlite":
        return func.strftime(literal_column("'%Y-%m'"), seconds, literal_column("'unixepoch'"))
    return func.to_char(func.timezone(literal_column("'UTC'"), func.to_timestamp(seconds)), literal_column("'YYYY-MM'"))


def _pending(connection: Connection, chains: list[int]) -> dict[int, tuple[float, int]]:
    """Return the amount at stake and the number of the pending outcomes with an offer, by chain."""
    table = schema.daily_total
    query = (
        select(table.c.chain_id, func.sum(table.c.amount).label("amount"), func.sum(table.c.amounts).label("number"))
        .where(table.c.status == schema.PENDING, table.c.chain_id.in_(chains), table.c.amounts > 0)
        .group_by(table.c.chain_id)
    )
    return {row.chain_id: (row.amount, int(row.number)) for row in connection.execute(query)}


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
