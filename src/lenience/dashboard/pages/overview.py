"""The overview: what was earned, what is at risk, what needs a decision, and what has changed."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, get, post
from markupsafe import Markup
from sqlalchemy import select

from lenience.core.money import Money
from lenience.dashboard.figures import profit as profit_figure
from lenience.dashboard.figures.volumes import bars
from lenience.dashboard.read_models.audits import Audits, AuditStatus, audit_status
from lenience.dashboard.read_models.earnings import Earnings, read_earnings
from lenience.dashboard.read_models.exposure import LimitUse, limit_uses
from lenience.dashboard.read_models.notices import (
    Change,
    Notice,
    attention,
    changes_since,
    decisions_needed,
    read_oldest_pending,
    read_queues,
)
from lenience.dashboard.read_models.policy_status import PolicyStatus, read_policy_status
from lenience.dashboard.read_models.profits import PolicyProfit, Profit, policy_profit, total
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import TimeBucketCache, span, width_for
from lenience.dashboard.rendering import natural, page, part, redirect
from lenience.dashboard.session import checked_form
from lenience.service.domain.clock import DAY, now
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.alert_states import read_alerts
from lenience.service.storage.policy_cache import PolicyRecord

Req = Request[Any, Any, Any]
MOST_ROWS = 20  # segments in the table of profits


class ProfitRow(msgspec.Struct, frozen=True):
    """The profit of a segment in the table of all policies."""

    policy: str
    segment: str
    profit: Profit


class CurrencyProfit(msgspec.Struct, frozen=True):
    """The profit of all policies with offers in one currency, and the segments that matter most."""

    money: Money
    total: Profit
    rows: list[ProfitRow]
    more: int  # segments that are left out
    pictures: list[Markup]


class Overview(msgspec.Struct, frozen=True):
    """The content of the overview. ``earned`` and ``expected`` are about the policies with one break-even, in units."""

    policies: list[PolicyStatus]
    drafts: list[PolicyRecord]
    earnings: Earnings
    pending: int
    earned: float
    expected: float  # earnings of the pending acceptances
    decisions: list[Notice]  # that somebody has to make
    attention: list[Notice]
    changes: list[Change]
    limits: list[LimitUse]
    profits: dict[str, PolicyProfit]  # of the policies with offers, by name
    currencies: list[CurrencyProfit]
    audit: AuditStatus

    @property
    def imported(self) -> int:
        """The number of decisions that were imported."""
        return sum(segment.imported for policy in self.policies for segment in policy.segments)

    @property
    def unit_policies(self) -> list[PolicyStatus]:
        """The policies with one break-even, whose values are in units of gain + loss."""
        return [policy for policy in self.policies if not policy.has_offers]

    @property
    def decided(self) -> int:
        """How many applicants all policies have decided."""
        return sum(policy.totals.arrivals for policy in self.policies)

    def closest_limit(self, currency: str) -> LimitUse | None:
        """Return the limit in a currency of which most is used."""
        return next((use for use in self.limits if use.money.currency == currency), None)


@get("/", include_in_schema=False)
async def overview(request: Req) -> Response[bytes]:
    """Show the overview."""
    service: Service = request.app.state.service
    glance = await service.ask(lambda: read_overview(service))
    return page(request, "overview.html", glance=glance, expected={})


@get("/overview/live", include_in_schema=False)
async def live(request: Req) -> Response[bytes]:
    """Refresh the overview, including values that need a solver."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects

    def ask() -> dict[str, Any]:
        glance = read_overview(service)
        return {"glance": glance, "expected": {policy.name: _expected(policy, prospects) for policy in glance.policies}}

    return part(request, "glance.html", **await service.ask(ask))


@get("/overview/volumes", include_in_schema=False)
async def volumes(request: Req) -> Response[bytes]:
    """Show arrivals and acceptances over time, of all policies."""
    service: Service = request.app.state.service
    return part(
        request, "volumes.html", pictures=await service.ask(lambda: draw_volumes(service, request.app.state.tallies))
    )


@post("/audit", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def start_audit(request: Req) -> Response[bytes]:
    """Start an audit of the whole log in a separate process."""
    await checked_form(request)
    audits: Audits = request.app.state.audits
    await audits.start(request.app.state.service)
    return redirect("/", "The audit has started. It recomputes the whole log in a separate process.")


def _expected(policy: PolicyStatus, prospects: Prospects) -> float | None:
    """Return the expected future value, or None if a segment's value is not known in time."""
    values = [prospect.value for prospect in prospects.of(policy.segments).values()]
    return (
        None
        if None in values or len(values) < len(policy.segments)
        else sum(value.midpoint for value in values if value is not None)
    )


def read_overview(service: Service) -> Overview:
    """Read everything the overview shows in one transaction."""
    audit, at = audit_status(service), now()
    with service.store.read() as connection:
        names = sorted(connection.execute(select(schema.policy.c.name)).scalars(), key=natural)
        statuses = [read_policy_status(service, connection, name) for name in names]
        policies = [status for status in statuses if status.record.active is not None]
        chains = [segment.chain for policy in policies for segment in policy.segments]
        earnings = read_earnings(connection, policies, at)
        by_policy = {policy.name: policy_profit(connection, policy) for policy in policies}
        queues, oldest = read_queues(connection, chains), read_oldest_pending(connection, chains)
        alerts = read_alerts(connection)
        changes = changes_since(connection, policies, earnings.changes, alerts, (at // DAY - 1) * DAY)
    in_money = {name: profit for name, profit in by_policy.items() if profit is not None}
    in_units = [policy for policy in policies if policy.name not in in_money]
    drafts = [status.record for status in statuses if status.record.active is None]
    return Overview(
        policies=policies,
        drafts=drafts,
        earnings=earnings,
        pending=sum(policy.totals.pending for policy in policies),
        earned=sum(policy.earned for policy in in_units),
        expected=sum(policy.expected for policy in in_units),
        decisions=decisions_needed(policies, drafts, audit, queues, oldest, alerts),
        attention=[notice for policy in policies for notice in attention(policy)],
        changes=changes,
        limits=limit_uses(policies),
        profits=in_money,
        currencies=by_currency(in_money),
        audit=audit,
    )


def by_currency(profits: dict[str, PolicyProfit]) -> list[CurrencyProfit]:
    """Add up the profits of policies with the same currency, and list the segments with the most money in them."""
    currencies = []
    for currency in sorted({profit.money.currency for profit in profits.values()}):
        same = {name: profit for name, profit in profits.items() if profit.money.currency == currency}
        rows = [
            ProfitRow(name, segment, one)
            for name, profit in same.items()
            for segment, one in profit.segments.items()
            if one.outcomes or one.pending
        ]
        largest = sorted(rows, key=lambda row: -(abs(row.profit.realised) + row.profit.at_risk))[:MOST_ROWS]
        money = next(iter(same.values())).money
        sums = total([profit.total for profit in same.values()])
        pictures = profit_figure.pictures(sums.months, money) if sums.months else []
        currencies.append(CurrencyProfit(money, sums, largest, len(rows) - len(largest), pictures))
    return currencies


def draw_volumes(service: Service, tallies: TimeBucketCache) -> list[Markup]:
    """Draw the bars of all chains together, or nothing if there is no decision."""
    with service.store.read() as connection:
        table = schema.chain
        chains = list(connection.execute(select(table.c.id).where(table.c.segment.is_not(None))).scalars())
        ends = span(connection, chains) if chains else None
        if ends is None:
            return []
        width = width_for(*ends)
        rows = tallies.buckets(connection, chains, ends[0], width)
    totals: dict[int, tuple[int, int]] = {}
    for row in rows:
        arrivals, accepted = totals.get(row.start, (0, 0))
        totals[row.start] = (arrivals + row.arrivals, accepted + row.accepted)
    return bars([(start, *counts) for start, counts in sorted(totals.items())], width)


HANDLERS = [overview, live, volumes, start_audit]
