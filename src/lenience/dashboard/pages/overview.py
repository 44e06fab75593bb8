"""The overview: all policies at a glance, today's work, and what needs attention."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, get, post
from markupsafe import Markup
from sqlalchemy import func, select

from lenience.dashboard.figures.volumes import bars
from lenience.dashboard.read_models.audits import Audits, audit_status
from lenience.dashboard.read_models.policy_status import PolicyStanding, read_standing
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import Tallies, Then, midnight, span, time_of, width_for
from lenience.dashboard.rendering import ago, count, moved, natural, page, part
from lenience.dashboard.session import checked_form
from lenience.segments.starting import known_to_lose
from lenience.service.domain.clock import now
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyRecord

Req = Request[Any, Any, Any]


class Today(msgspec.Struct):
    """What has happened since midnight (UTC)."""

    decisions: int = 0
    accepted: int = 0
    outcomes: int = 0
    successes: int = 0

    @property
    def acceptance(self) -> float | None:
        """The share accepted."""
        return self.accepted / self.decisions if self.decisions else None


class Notice(msgspec.Struct, frozen=True):
    """Something that needs attention, and where to look."""

    kind: str  # wait, reject or overdue: the colour of its mark
    text: str
    link: str


class Glance(msgspec.Struct, frozen=True):
    """The overview's contents."""

    policies: list[PolicyStanding]
    drafts: list[PolicyRecord]
    today: Today
    pending: int
    earned: float
    awaited: float
    attention: list[Notice]


@get("/", include_in_schema=False)
async def overview(request: Req) -> Response[bytes]:
    """All policies at a glance."""
    service: Service = request.app.state.service
    glance, audit = await service.ask(lambda: (look(service, request.app.state.past), audit_status(service)))
    return page(request, "overview.html", glance=glance, expected={}, audit=audit)


@get("/overview/live", include_in_schema=False)
async def live(request: Req) -> Response[bytes]:
    """The same again, for a page that is open, with what takes a solve."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects

    def ask() -> dict[str, Any]:
        glance = look(service, request.app.state.past)
        expected = {one.name: _expected(one, prospects) for one in glance.policies}
        return {"glance": glance, "expected": expected, "audit": audit_status(service)}

    return part(request, "glance.html", **await service.ask(ask))


@get("/overview/volumes", include_in_schema=False)
async def volumes(request: Req) -> Response[bytes]:
    """How many came and were accepted over time, of all active policies."""
    service: Service = request.app.state.service
    return part(
        request, "volumes.html", pictures=await service.ask(lambda: draw_volumes(service, request.app.state.tallies))
    )


@post("/audit", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def start_audit(request: Req) -> Response[bytes]:
    """Replay the whole log, in a process of its own."""
    await checked_form(request)
    audits: Audits = request.app.state.audits
    await audits.start(request.app.state.service)
    return moved("/", "The audit has begun: it replays the whole log in a process of its own.")


def _expected(policy: PolicyStanding, prospects: Prospects) -> float | None:
    """The value still to come; nothing where a segment's could not be told in time."""
    values = [one.value for one in prospects.of(policy.segments).values()]
    return (
        None
        if None in values or len(values) < len(policy.segments)
        else sum(one.midpoint for one in values if one is not None)
    )


def look(service: Service, past: Then) -> Glance:
    """Everything the overview shows, in one state of the database."""
    with service.store.read() as connection:
        names = sorted(connection.execute(select(schema.policy.c.name)).scalars(), key=natural)
        all_ = [read_standing(service, connection, name) for name in names]
        policies = [one for one in all_ if one.record.active is not None]
        today = Today()
        since = midnight()
        for policy in policies:
            for segment in policy.segments:
                before = past.counts(connection, segment.chain, since)
                counts = segment.counts
                today.decisions += counts.arrivals - before.arrivals
                today.accepted += counts.accepted - before.accepted
                today.successes += counts.successes - before.successes
                today.outcomes += counts.successes + counts.failures - before.successes - before.failures
        oldest = _oldest_pending(connection, [one.chain for policy in policies for one in policy.segments])
    return Glance(
        policies=policies,
        drafts=[one.record for one in all_ if one.record.active is None],
        today=today,
        pending=sum(policy.totals.pending for policy in policies),
        earned=sum(policy.earned for policy in policies),
        awaited=sum(policy.awaited for policy in policies),
        attention=[notice for policy in policies for notice in attention(policy, oldest)],
    )


def draw_volumes(service: Service, tallies: Tallies) -> list[Markup]:
    """The bars of all chains together; nothing while there is no decision."""
    with service.store.read() as connection:
        table = schema.chain
        chains = list(connection.execute(select(table.c.id).where(table.c.segment.is_not(None))).scalars())
        ends = span(connection, chains) if chains else None
        if ends is None:
            return []
        width = width_for(*ends)
        rows = tallies.stretches(connection, chains, ends[0], width)
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        arrivals, accepted = found.get(row.start, (0, 0))
        found[row.start] = (arrivals + row.arrivals, accepted + row.accepted)
    return bars([(start, *counts) for start, counts in sorted(found.items())], width)


def attention(policy: PolicyStanding, oldest: dict[int, int]) -> list[Notice]:
    """What of a policy needs attention: limits reached, segments shut out, labels overdue."""
    link = f"/policies/{policy.name}"
    found = []
    full = [one.name for one in policy.segments if one.full]
    if full:
        verb = "is" if len(full) == 1 else "are"
        text = f"{policy.name}: {_named(full)} {verb} at the exposure limit; new ones wait for outcomes."
        found.append(Notice("wait", text, link))
    losing = [one.name for one in policy.segments if one.never_started and known_to_lose(one.belief, one.cost)]
    if losing:
        what = "never started: by what is believed beforehand almost surely a loss"
        found.append(Notice("reject", f"{policy.name}: {_named(losing)} {what}.", link))
    never = [one.name for one in policy.segments if one.never_started and one.name not in losing]
    if never:
        what = "never started: too few will come, for what is believed, to be worth a first acceptance"
        found.append(Notice("reject", f"{policy.name}: {_named(never)} {what}.", link))
    stopped = [one for one in policy.segments if one.stopped and not one.never_started]
    for pending, more in ((False, " for good"), (True, "; outcomes that are pending may still change that")):
        shut = [one.name for one in stopped if (one.counts.pending > 0) is pending]
        if shut:
            verb = "has" if len(shut) == 1 else "have"
            found.append(Notice("reject", f"{policy.name}: {_named(shut)} {verb} been stopped{more}.", link))
    late = _overdue(policy, oldest)
    if late:
        found.append(Notice("overdue", late, f"/decisions?policy={policy.name}&status=pending"))
    return found


def _overdue(policy: PolicyStanding, oldest: dict[int, int]) -> str:
    """Labels that take longer than they should: the mean delay three times, or two thirds of the time they have."""
    days = policy.version.specification.expiry_days
    times = [oldest[one.chain] for one in policy.segments if one.chain in oldest]
    if days is None or not times:
        return ""
    waited = (now() - min(times)) / 1e6
    if waited < days * 86_400 * 2 / 3:
        return ""
    return f"{policy.name}: an outcome has been awaited for {ago(waited)}; it expires after {count(days)} days."


def _oldest_pending(connection: Any, chains: list[int]) -> dict[int, int]:
    table = schema.decision
    query = (
        select(table.c.chain_id, func.min(table.c.id).label("id"))
        .where(table.c.status == schema.PENDING, table.c.chain_id.in_(chains))
        .group_by(table.c.chain_id)
    )
    return {row.chain_id: time_of(row.id) for row in connection.execute(query)}


def _named(names: list[str]) -> str:
    if len(names) == 1:
        return f"the segment “{names[0]}”"
    shown = ", ".join(f"“{name}”" for name in names[:3])
    return f"{len(names):,} segments ({shown}{' …' if len(names) > 3 else ''})"


HANDLERS = [overview, live, volumes, start_audit]
