"""What outcomes have earned and how many applicants were decided: today, yesterday, this month and the periods before.

Both come from totals by day (``outcome_day`` and ``daily_total``), so that the number of decisions does not matter. An
outcome counts on the day on which it arrived. Money of different currencies is never added up, and neither is money
with the units of policies that have one break-even. Days and months are those of UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, case, func, select

from lenience.dashboard.read_models.policy_status import PolicyStatus
from lenience.service.storage import schema
from lenience.service.storage.ledger import NO_VERSION

WEEK = 7  # days before yesterday that a day is compared with
FIRST = date(1970, 1, 1)
PARTS = ("number", "successes", "amounts", "money")


class Span(NamedTuple):
    """Days from the first to the last, in days since 1970."""

    first: int
    last: int


class Earned(msgspec.Struct):
    """What the outcomes of a period have earned, in one currency or in units, and how many they are."""

    amount: float = 0.0
    outcomes: int = 0
    successes: int = 0

    def add(self, other: Earned) -> None:
        """Add what others have earned."""
        self.amount += other.amount
        self.outcomes += other.outcomes
        self.successes += other.successes


class Decided(msgspec.Struct):
    """How many applicants were decided on a day, and accepted."""

    decisions: int = 0
    accepted: int = 0

    @property
    def acceptance(self) -> float | None:
        """The share accepted, None without a decision."""
        return self.accepted / self.decisions if self.decisions else None


class ChainChange(NamedTuple):
    """What has happened in a segment since the start of yesterday."""

    arrivals: int = 0
    accepted: int = 0
    outcomes: int = 0
    successes: int = 0


class Earnings(msgspec.Struct, frozen=True):
    """Earnings by period: of each currency (the key) and in units (the key None), and of each policy."""

    by_currency: dict[str | None, dict[str, Earned]]
    by_policy: dict[str, dict[str, Earned]]
    yesterday: Decided
    today: Decided
    changes: Mapping[int, ChainChange]  # since the start of yesterday, by chain
    compared_until: str  # the last day of the previous month that this month is compared with

    def of(self, currency: str | None, period: str) -> Earned:
        """Return the earnings of a period in a currency; None for units."""
        return self.by_currency.get(currency, {}).get(period) or Earned()

    def of_policy(self, policy: str, period: str) -> Earned:
        """Return the earnings of a policy in a period."""
        return self.by_policy[policy][period]


def spans(at: int) -> dict[str, Span]:
    """Return the periods of a time in microseconds.

    ``last_month`` has the days of the previous month up to the same day of the month, so that both can be compared.

    >>> {name: span.last - span.first + 1 for name, span in spans(1_774_000_000_000_000).items()}
    {'today': 1, 'yesterday': 1, 'week': 7, 'month': 20, 'last_month': 20}
    """
    today = datetime.fromtimestamp(at // 1_000_000, UTC).date()
    first = today.replace(day=1)
    end_before = first - timedelta(days=1)
    before = end_before.replace(day=1)
    same_day = end_before.replace(day=min(today.day, end_before.day))
    number = _number(today)
    return {
        "today": Span(number, number),
        "yesterday": Span(number - 1, number - 1),
        "week": Span(number - 1 - WEEK, number - 2),
        "month": Span(_number(first), number),
        "last_month": Span(_number(before), _number(same_day)),
    }


def read_earnings(connection: Connection, policies: Sequence[PolicyStatus], at: int) -> Earnings:
    """Read what outcomes have earned and who was decided, up to a time in microseconds."""
    periods = spans(at)
    chains = {segment.chain: (policy, segment) for policy in policies for segment in policy.segments}
    by_policy = {policy.name: {name: Earned() for name in periods} for policy in policies}
    by_currency: dict[str | None, dict[str, Earned]] = {}
    arrived: dict[int, tuple[int, int]] = {}
    for row in connection.execute(_outcomes(list(chains), periods)):
        policy, segment = chains[row.chain_id]
        currency = policy.money.currency if policy.has_offers else None
        sums = by_currency.setdefault(currency, {name: Earned() for name in periods})
        for name in periods:
            # PostgreSQL returns sums of whole numbers as Decimal.
            number, successes, amounts = (int(getattr(row, f"{name}_{part}") or 0) for part in PARTS[:3])
            money = float(getattr(row, f"{name}_{PARTS[3]}") or 0)
            if policy.has_offers:
                earned = Earned(money, amounts, successes)
            else:
                even = segment.rule.break_even
                earned = Earned(successes * (1.0 - even) - (number - successes) * even, number, successes)
            by_policy[policy.name][name].add(earned)
            sums[name].add(earned)
        arrived[row.chain_id] = (
            int(row.yesterday_number + row.today_number),
            int(row.yesterday_successes + row.today_successes),
        )
    yesterday, today = Decided(), Decided()
    came: dict[int, tuple[int, int]] = {}
    start = periods["yesterday"].first
    for row in connection.execute(_decisions(list(chains), start)):
        into = today if row.day > start else yesterday
        number, accepted = int(row.number), int(row.accepted)
        into.decisions += number
        into.accepted += accepted
        before = came.get(row.chain_id, (0, 0))
        came[row.chain_id] = before[0] + number, before[1] + accepted
    changes = {
        chain: ChainChange(*came.get(chain, (0, 0)), *arrived.get(chain, (0, 0))) for chain in {**came, **arrived}
    }
    until = (FIRST + timedelta(days=periods["last_month"].last)).isoformat()
    return Earnings(by_currency, by_policy, yesterday, today, changes, until)


def _outcomes(chains: list[int], periods: Mapping[str, Span]) -> Select[Any]:
    """Return the query of outcomes by chain, with a sum for each period."""
    table = schema.outcome_day
    columns = {
        "number": table.c.number,
        "successes": table.c.successes,
        "amounts": table.c.amounts,
        "money": table.c.gain - table.c.loss,
    }
    sums = [
        func.sum(case((table.c.day.between(span.first, span.last), column), else_=0)).label(f"{name}_{part}")
        for name, span in periods.items()
        for part, column in columns.items()
    ]
    first = min(span.first for span in periods.values())
    where = table.c.chain_id.in_(chains) & (table.c.day >= first)
    return select(table.c.chain_id, *sums).where(where).group_by(table.c.chain_id)


def _decisions(chains: list[int], since: int) -> Select[Any]:
    """Return the query of decisions of the policies themselves by chain and day, since a day."""
    table = schema.daily_total
    own = (table.c.version != NO_VERSION) & (table.c.status != schema.REPLACED)
    where = table.c.chain_id.in_(chains) & (table.c.day >= since) & own
    number, accepted = func.sum(table.c.number).label("number"), func.sum(table.c.accepted).label("accepted")
    return select(table.c.chain_id, table.c.day, number, accepted).where(where).group_by(table.c.chain_id, table.c.day)


def _number(day: date) -> int:
    return (day - FIRST).days
