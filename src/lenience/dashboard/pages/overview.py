"""The overview: all policies, today's decisions, and what needs attention."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, get, post
from markupsafe import Markup
from sqlalchemy import func, select

from lenience.core.money import Money
from lenience.dashboard.figures import profit as profit_figure
from lenience.dashboard.figures.volumes import bars
from lenience.dashboard.read_models.audits import Audits, audit_status
from lenience.dashboard.read_models.policy_status import PolicyStatus, read_policy_status
from lenience.dashboard.read_models.profits import PolicyProfit, Profit, policy_profit, total
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import (
    PastCountsCache,
    TimeBucketCache,
    imported_since,
    midnight,
    span,
    time_of,
    width_for,
)
from lenience.dashboard.rendering import ago, count, natural, page, part, redirect, signed
from lenience.dashboard.session import checked_form
from lenience.segments.starting import known_to_lose
from lenience.service.domain.clock import now
from lenience.service.domain.overall import OVERALL, PERIOD_CAPACITY
from lenience.service.domain.reason_parts import again_text
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyRecord

Req = Request[Any, Any, Any]
MOST_ROWS = 20  # segments in the table of profits


class Today(msgspec.Struct):
    """What happened since midnight (UTC)."""

    decisions: int = 0
    accepted: int = 0
    outcomes: int = 0
    successes: int = 0

    @property
    def acceptance(self) -> float | None:
        """The share accepted."""
        return self.accepted / self.decisions if self.decisions else None


class Notice(msgspec.Struct, frozen=True):
    """A notice that needs attention, and a link."""

    kind: str  # wait, reject or overdue: the colour of its mark
    text: str
    link: str


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
    today: Today
    pending: int
    earned: float
    expected: float  # earnings of the pending acceptances
    attention: list[Notice]
    profits: dict[str, PolicyProfit]  # of the policies with offers, by name
    currencies: list[CurrencyProfit]

    @property
    def imported(self) -> int:
        """The number of decisions that were imported."""
        return sum(segment.imported for policy in self.policies for segment in policy.segments)

    @property
    def in_units(self) -> bool:
        """Whether a policy has one break-even, so that its values are in units of gain + loss."""
        return any(not policy.has_offers for policy in self.policies) or not self.policies

    @property
    def expected_text(self) -> str:
        """What the pending outcomes are expected to earn, in each currency and in units."""
        parts = [one.money.format_change(one.total.expected) for one in self.currencies]
        if self.in_units:
            units = signed(self.expected)
            parts.append(f"{units} units" if parts else units)
        return " and ".join(parts)


@get("/", include_in_schema=False)
async def overview(request: Req) -> Response[bytes]:
    """Show the overview."""
    service: Service = request.app.state.service
    past: PastCountsCache = request.app.state.past
    glance, audit = await service.ask(lambda: (read_overview(service, past), audit_status(service)))
    return page(request, "overview.html", glance=glance, expected={}, audit=audit)


@get("/overview/live", include_in_schema=False)
async def live(request: Req) -> Response[bytes]:
    """Refresh the overview, including values that need a solver."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects

    def ask() -> dict[str, Any]:
        glance = read_overview(service, request.app.state.past)
        expected = {policy.name: _expected(policy, prospects) for policy in glance.policies}
        return {"glance": glance, "expected": expected, "audit": audit_status(service)}

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


def read_overview(service: Service, past: PastCountsCache) -> Overview:
    """Read everything the overview shows in one transaction."""
    with service.store.read() as connection:
        names = sorted(connection.execute(select(schema.policy.c.name)).scalars(), key=natural)
        statuses = [read_policy_status(service, connection, name) for name in names]
        policies = [status for status in statuses if status.record.active is not None]
        today = Today()
        since = midnight()
        for policy in policies:
            imported = imported_since(connection, policy.record.chain, since)
            today.decisions -= imported.arrivals
            today.accepted -= imported.accepted
            today.successes -= imported.successes
            today.outcomes -= imported.successes + imported.failures
            for segment in policy.segments:
                before = past.counts(connection, segment.chain, since)
                counts = segment.counts
                today.decisions += counts.arrivals - before.arrivals
                today.accepted += counts.accepted - before.accepted
                today.successes += counts.successes - before.successes
                today.outcomes += counts.successes + counts.failures - before.successes - before.failures
        by_policy = {policy.name: policy_profit(connection, policy) for policy in policies}
        oldest = _oldest_pending(connection, [segment.chain for policy in policies for segment in policy.segments])
    in_money = {name: profit for name, profit in by_policy.items() if profit is not None}
    in_units = [policy for policy in policies if policy.name not in in_money]
    return Overview(
        policies=policies,
        drafts=[status.record for status in statuses if status.record.active is None],
        today=today,
        pending=sum(policy.totals.pending for policy in policies),
        earned=sum(policy.earned for policy in in_units),
        expected=sum(policy.expected for policy in in_units),
        attention=[notice for policy in policies for notice in attention(policy, oldest)],
        profits=in_money,
        currencies=by_currency(in_money),
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


def attention(policy: PolicyStatus, oldest: dict[int, int]) -> list[Notice]:
    """Return the notices about a policy: limits reached, segments stopped, outcomes overdue."""
    link = f"/policies/{policy.name}"
    notices = []
    full = [segment.name for segment in policy.segments if segment.full]
    if full:
        verb = "is" if len(full) == 1 else "are"
        text = f"{policy.name}: {_named(full)} {verb} at the exposure limit. New applicants wait for outcomes."
        notices.append(Notice("wait", text, link))
    waiting = next((segment for segment in policy.segments if segment.verdict.rule in OVERALL), None)
    if waiting is not None:
        kind, limits = waiting.verdict.rule, policy.version.overall
        period = limits.capacity.per if limits is not None and limits.capacity is not None else ""
        reached = (
            f"this {period}'s capacity is used" if kind == PERIOD_CAPACITY else "the cap of all segments is reached"
        )
        notices.append(Notice("wait", f"{policy.name}: {reached}. {again_text(waiting.rule, kind)}", link))
    never_started = [segment for segment in policy.segments if segment.never_started]
    losing = [segment.name for segment in never_started if known_to_lose(segment.belief, segment.cost)]
    if losing:
        what = "never started: almost certainly a loss"
        notices.append(Notice("reject", f"{policy.name}: {_named(losing)} {what}.", link))
    rare = [segment.name for segment in never_started if segment.name not in losing]
    if rare:
        what = "never started: too few applicants are expected for a first acceptance to pay"
        notices.append(Notice("reject", f"{policy.name}: {_named(rare)} {what}.", link))
    stopped = [segment for segment in policy.segments if segment.stopped and not segment.never_started]
    for pending, more in ((False, " for good"), (True, "; pending outcomes may still reopen it")):
        shut = [segment.name for segment in stopped if (segment.counts.pending > 0) is pending]
        if shut:
            verb = "has" if len(shut) == 1 else "have"
            notices.append(Notice("reject", f"{policy.name}: {_named(shut)} {verb} been stopped{more}.", link))
    late = _overdue(policy, oldest)
    if late:
        notices.append(Notice("overdue", late, f"/decisions?policy={policy.name}&status=pending"))
    return notices


def _overdue(policy: PolicyStatus, oldest: dict[int, int]) -> str:
    """Return a notice if an outcome has been pending for two thirds of the time until it expires."""
    days = policy.version.specification.expiry_days
    times = [oldest[segment.chain] for segment in policy.segments if segment.chain in oldest]
    if days is None or not times:
        return ""
    waited = (now() - min(times)) / 1e6
    if waited < days * 86_400 * 2 / 3:
        return ""
    return f"{policy.name}: an outcome has been pending for {ago(waited)}. It expires after {count(days)} days."


def _oldest_pending(connection: Any, chains: list[int]) -> dict[int, int]:
    table = schema.decision
    oldest = {}
    for chain in chains:  # one index look-up for each: a query for all of them would read all pending decisions
        first = select(func.min(table.c.id)).where(table.c.status == schema.PENDING, table.c.chain_id == chain)
        identity = connection.execute(first).scalar()
        if identity is not None:
            oldest[chain] = time_of(identity)
    return oldest


def _named(names: list[str]) -> str:
    if len(names) == 1:
        return f"the segment “{names[0]}”"
    shown = ", ".join(f"“{name}”" for name in names[:3])
    return f"{len(names):,} segments ({shown}{' …' if len(names) > 3 else ''})"


HANDLERS = [overview, live, volumes, start_audit]
