"""Notices of the overview: what needs a decision, what stands in the way now, and what has changed since yesterday."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select, text

from lenience.core.formatting import counted
from lenience.dashboard.read_models.audits import AuditStatus
from lenience.dashboard.read_models.earnings import ChainChange
from lenience.dashboard.read_models.policy_status import PolicyStatus, SegmentStatus
from lenience.dashboard.read_models.time_buckets import time_of
from lenience.dashboard.rendering import ago, count, moment
from lenience.segments.starting import known_to_lose
from lenience.service.commands.four_eyes import four_eyes_required
from lenience.service.domain.alerts import Alert
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.events import ImportStarted, StateChanged, VersionCreated, read
from lenience.service.domain.overall import OVERALL, PERIOD_CAPACITY
from lenience.service.domain.reason_parts import again_text
from lenience.service.domain.rule import BELOW, Counts
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyRecord

MONITORED = ("drift", "calibration")  # kinds of alerts that the page of monitoring explains
QUEUES = {schema.REFERRED: "the decision of a person", schema.WAITING: "a place"}
LATEST_EVENTS = 30  # of a policy's chain that are read
NO_BATCH = text("""substr(body, 1, 21) <> '{"kind":"import_rows"'""")


class Notice(msgspec.Struct, frozen=True):
    """A notice and a link. ``kind`` (wait, reject, overdue or plain) is the colour of its mark."""

    kind: str
    text: str
    link: str


class Change(msgspec.Struct, frozen=True):
    """Something that has changed, when (empty if the time is not known exactly), and a link."""

    at: str
    text: str
    link: str


def decisions_needed(
    policies: Sequence[PolicyStatus],
    drafts: Sequence[PolicyRecord],
    audit: AuditStatus,
    queues: Mapping[str, Mapping[int, int]],
    oldest: Mapping[int, int],
    alerts: Sequence[Alert],
) -> list[Notice]:
    """Return what somebody has to decide or do: failed audits, drafts, people who wait, overdue outcomes, alerts."""
    notices = []
    last = audit.last
    if last is not None and (last.report is None or not last.report.whole):
        notices.append(Notice("reject", f"The audit of {moment(last.at)} failed. See what it found.", "#audit"))
    for record in [*(policy.record for policy in policies), *drafts]:
        newest = max(record.states)
        if record.states[newest] == "draft" and (record.active is None or newest > record.active.number):
            who = " by somebody other than its author" if four_eyes_required() else ""
            what = f"{record.name}: version {newest} is a draft. Activate it{who}, or run it in shadow."
            notices.append(Notice("wait", what, f"/policies/{record.name}?version={newest}"))
    for policy in policies:
        for status, words in QUEUES.items():
            queue = sum(queues[status].get(segment.chain, 0) for segment in policy.segments)
            if queue:
                verb = "waits" if queue == 1 else "wait"
                what = f"{policy.name}: {counted(queue, 'applicant')} {verb} for {words}."
                waiting = f"/decisions?policy={policy.name}&status={status}"
                link = f"/reviews?policy={policy.name}" if status == schema.REFERRED else waiting
                notices.append(Notice("wait", what, link))
        late = _overdue(policy, oldest)
        if late:
            notices.append(Notice("overdue", late, f"/decisions?policy={policy.name}&status=pending"))
    for alert in alerts:
        if alert.kind in MONITORED:
            notices.append(Notice("wait", alert.sentence, f"/monitoring?policy={alert.policy}"))
    return notices


def attention(policy: PolicyStatus) -> list[Notice]:
    """Return the notices about a policy: limits reached, segments stopped or never started."""
    link = f"/policies/{policy.name}"
    notices = []
    full = [segment.name for segment in policy.segments if segment.full]
    if full:
        verb = "is" if len(full) == 1 else "are"
        what = f"{policy.name}: {_named(full)} {verb} at the exposure limit. New applicants wait for outcomes."
        notices.append(Notice("wait", what, link))
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
            what = f"{policy.name}: {_named(shut)} {verb} been stopped{more}."
            notices.append(Notice("reject", what, f"{link}/rejections"))
    return notices


def changes_since(
    connection: Connection,
    policies: Sequence[PolicyStatus],
    changed: Mapping[int, ChainChange],
    alerts: Sequence[Alert],
    since: int,
) -> list[Change]:
    """Return what has changed since a time, the start of yesterday: versions, imports, segments and alerts."""
    changes = []
    for policy in policies:
        link = f"/policies/{policy.name}"
        events = _events_since(connection, policy.record.chain, since)
        changes += [Change(iso_time(event.at), f"{policy.name}: {_words(event)}", link) for event in events]
        if not any(isinstance(event, StateChanged) for event in events):
            changes += _segments(policy, changed, link)
    begun = [alert for alert in alerts if alert.kind == "limit_reached" and alert.began_at >= iso_time(since)]
    changes += [Change(one.began_at, one.sentence, f"/policies/{one.policy}") for one in begun]
    return sorted(changes, key=lambda change: change.at or "~", reverse=True)


def read_queues(connection: Connection, chains: list[int]) -> dict[str, dict[int, int]]:
    """Return how many applicants of each chain wait, by status. Each status has an index of its own."""
    table, queues = schema.decision, dict[str, dict[int, int]]()
    for status in QUEUES:
        where = (table.c.status == status) & table.c.chain_id.in_(chains)
        rows = connection.execute(select(table.c.chain_id, func.count()).where(where).group_by(table.c.chain_id))
        queues[status] = {chain: int(number) for chain, number in rows}
    return queues


def read_oldest_pending(connection: Connection, chains: list[int]) -> dict[int, int]:
    """Return the time of the oldest pending decision of each chain that has one."""
    table, oldest = schema.decision, dict[int, int]()
    for chain in chains:
        # The first entry of a partial index. One query for all chains would read every pending decision.
        first = select(func.min(table.c.id)).where(table.c.status == schema.PENDING, table.c.chain_id == chain)
        identity = connection.execute(first).scalar()
        if identity is not None:
            oldest[chain] = time_of(identity)
    return oldest


def _overdue(policy: PolicyStatus, oldest: Mapping[int, int]) -> str:
    """Return a notice if an outcome has been pending for two thirds of the time until it expires."""
    days = policy.version.specification.expiry_days
    times = [oldest[segment.chain] for segment in policy.segments if segment.chain in oldest]
    if days is None or not times:
        return ""
    waited = (now() - min(times)) / 1e6
    if waited < days * 86_400 * 2 / 3:
        return ""
    expires = "expires" if waited < days * 86_400 else "should have expired"
    return f"{policy.name}: an outcome has been pending for {ago(waited)}. It {expires} after {count(days)} days."


def _events_since(connection: Connection, chain: int, since: int) -> list[Any]:
    events = schema.event
    query = select(events.c.body).where(events.c.chain_id == chain, events.c.about.is_(None)).where(NO_BATCH)
    found = [read(body) for body in connection.scalars(query.order_by(events.c.seq.desc()).limit(LATEST_EVENTS))]
    some = [one for one in found if isinstance(one, VersionCreated | StateChanged | ImportStarted) and one.at >= since]
    moved = {one.number for one in some if isinstance(one, StateChanged)}  # that a new version exists follows from it
    return [one for one in some if not isinstance(one, VersionCreated) or one.number not in moved]


def _words(event: VersionCreated | StateChanged | ImportStarted) -> str:
    if isinstance(event, VersionCreated):
        return f"version {event.number} was created."
    if isinstance(event, ImportStarted):
        return f"{counted(event.rows, 'past decision')} imported from {event.file}."
    if event.percent is not None:
        return f"version {event.number} was rolled out to {event.percent:g}% of applicants."
    return {
        "active": f"version {event.number} was activated.",
        "shadow": f"version {event.number} runs in shadow.",
        "retired": f"version {event.number} was retired.",
    }.get(event.state, f"version {event.number} became {event.state}.")


def _segments(policy: PolicyStatus, changed: Mapping[int, ChainChange], link: str) -> list[Change]:
    """Return the segments that have stopped or opened. A model that all segments share is left out."""
    if policy.version.model is not None or policy.version.feature_model is not None:
        return []
    stopped, opened = [], []
    for segment in policy.segments:
        if segment.chain in changed:
            before, after = _stopped_before(segment, changed[segment.chain]), segment.stopped
            if after and not before:
                stopped.append(segment.name)
            elif before and not after:
                opened.append(segment.name)
    changes = []
    for names, words, page in ((stopped, "stopped", f"{link}/rejections"), (opened, "opened again", link)):
        if names:
            verb = "has" if len(names) == 1 else "have"
            changes.append(Change("", f"{policy.name}: {_named(names)} {verb} {words}.", page))
    return changes


def _stopped_before(segment: SegmentStatus, change: ChainChange) -> bool:
    """Return whether the segment was stopped before a change of its counts."""
    now_ = segment.counts
    counts = Counts(
        max(now_.arrivals - change.arrivals, 0),
        max(now_.accepted - change.accepted, 0),
        max(now_.pending + change.outcomes - change.accepted, 0),
        max(now_.successes - change.successes, 0),
        max(now_.failures - (change.outcomes - change.successes), 0),
    )
    verdict = segment.rule.decide(counts, 1.0)
    return verdict.rule == BELOW and verdict.probability == 0


def _named(names: list[str]) -> str:
    if len(names) == 1:
        return f"the segment “{names[0]}”"
    shown = ", ".join(f"“{name}”" for name in names[:3])
    return f"{len(names):,} segments ({shown}{' …' if len(names) > 3 else ''})"
