"""How a policy stands now: of each segment what is known, what is done next, what it has earned, what is pending.

Nothing here is solved: a decision is looked up in the stored table. What takes a solve (the value still to come, the
probability of being shut out) is in :mod:`lenience.dashboard.read_models.prospects`, asked for after the page is there.
"""

from __future__ import annotations

import math
from functools import cached_property

import msgspec
from sqlalchemy import Connection, func, select

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.dashboard.rendering import natural
from lenience.service.domain.problems import NotFound
from lenience.service.domain.reasons import reason
from lenience.service.domain.rule import (
    ABOVE,
    BELOW,
    CAP,
    FLOOR,
    LEARNING,
    LIMIT,
    OVER,
    Counts,
    SegmentRule,
    Verdict,
)
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyRecord, Version

# What is done with the next individual, in a word and in the colour of its mark.
NEXT = {
    ABOVE: ("accept", "accept"),
    LEARNING: ("accept to learn", "learn"),
    FLOOR: ("accept a few", "learn"),
    BELOW: ("stopped", "reject"),
    LIMIT: ("wait", "wait"),
    CAP: ("wait", "wait"),
    OVER: ("over", "reject"),
}


class SegmentStatus(msgspec.Struct, frozen=True, dict=True):
    """A segment as it stands."""

    name: str
    group: str | None
    rule: SegmentRule
    counts: Counts
    verdict: Verdict
    chain: int
    length: int

    @cached_property
    def belief(self) -> Belief:
        """What is known."""
        return self.rule.belief(self.counts)

    @cached_property
    def interval(self) -> Bounds:
        """Where the success rate lies, with probability 90%."""
        return self.belief.interval(0.9)

    @property
    def cost(self) -> float:
        """The break-even success rate."""
        return self.rule.table.cost

    @property
    def next(self) -> str:
        """What is done with the next individual, in a word."""
        if self.verdict.rule == BELOW and self.verdict.probability > 0:
            return "accept a few"
        return NEXT[self.verdict.rule][0]

    @property
    def mark(self) -> str:
        """The kind of mark for it."""
        if self.verdict.rule == BELOW and self.verdict.probability > 0:
            return "learn"
        return NEXT[self.verdict.rule][1]

    @property
    def why(self) -> str:
        """The reason, in words."""
        return reason(self.rule, self.counts, self.verdict)

    @property
    def stopped(self) -> bool:
        """Whether its boundary rejects everyone, and there is no floor. Outcomes that are pending (of a person's
        override, or where they come late) may still open it again; without any it is stopped for good."""
        return self.verdict.rule == BELOW and self.verdict.probability == 0

    @property
    def never_started(self) -> bool:
        """Whether it was shut out before its first member was accepted."""
        return self.stopped and self.counts.accepted == 0

    @property
    def full(self) -> bool:
        """Whether its exposure limit or cap is reached."""
        return self.verdict.rule in (LIMIT, CAP)

    @property
    def margin(self) -> float:
        """How far the belief is above its threshold, in standard deviations of the belief."""
        return (self.belief.mean - self.verdict.threshold) / math.sqrt(max(self.belief.variance, 1e-12))

    @property
    def earned(self) -> float:
        """What the known outcomes have earned: 1 − c each success, −c each failure."""
        return self.counts.successes * (1 - self.cost) - self.counts.failures * self.cost

    @property
    def awaited(self) -> float:
        """What the pending acceptances are expected to earn."""
        return self.counts.pending * (self.belief.mean - self.cost)

    @property
    def acceptance(self) -> float | None:
        """The share of its members that was accepted."""
        return self.counts.accepted / self.counts.arrivals if self.counts.arrivals else None


class PolicyStatus(msgspec.Struct, frozen=True, dict=True):
    """A policy as it stands, under one of its versions."""

    record: PolicyRecord
    version: Version
    segments: list[SegmentStatus]

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.record.name

    @property
    def state(self) -> str:
        """The state of the version shown."""
        return self.record.states[self.version.number]

    @cached_property
    def totals(self) -> Counts:
        """All segments together."""
        mine = [segment.counts for segment in self.segments]
        return Counts(
            sum(one.arrivals for one in mine),
            sum(one.accepted for one in mine),
            sum(one.pending for one in mine),
            sum(one.successes for one in mine),
            sum(one.failures for one in mine),
        )

    @property
    def earned(self) -> float:
        """What the known outcomes have earned."""
        return sum(segment.earned for segment in self.segments)

    @property
    def awaited(self) -> float:
        """What the pending acceptances are expected to earn."""
        return sum(segment.awaited for segment in self.segments)

    def segment(self, name: str | None) -> SegmentStatus:
        """A segment by name; without one that which is nearest its boundary, for what is known of it."""
        if name is not None:
            for segment in self.segments:
                if segment.name == name:
                    return segment
            raise NotFound(f"the policy {self.name!r} has no segment {name!r}")
        return min(self.segments, key=lambda one: (one.stopped, abs(one.margin), -one.counts.arrivals))


def policy_names(service: Service) -> list[str]:
    """The names of all policies, in order."""
    with service.store.read() as connection:
        return sorted(connection.execute(select(schema.policy.c.name)).scalars(), key=natural)


def ranked_policies(service: Service) -> list[PolicyRecord]:
    """All policies, those that rule first, and of them those with the most decisions."""
    with service.store.read() as connection:
        table = schema.chain
        sums = select(table.c.policy_id, func.sum(table.c.arrivals)).group_by(table.c.policy_id)
        came = {identity: int(arrivals) for identity, arrivals in connection.execute(sums)}
        names = connection.execute(select(schema.policy.c.name).order_by(schema.policy.c.name)).scalars()
        records = [service.registry.load(connection, name) for name in names]
    return sorted(records, key=lambda one: (one.active is None, -came.get(one.id, 0)))


def read_policy_status(service: Service, connection: Connection, name: str, number: int | None = None) -> PolicyStatus:
    """A policy under the version asked for, the active one, or the newest."""
    record = service.registry.load(connection, name)
    shown = number or (record.active.number if record.active else max(record.states))
    if shown not in record.states:
        raise NotFound(f"the policy {name!r} has no version {shown}")
    version = service.registry.version(connection, record.id, shown)
    table = schema.chain
    columns = (table.c.segment, table.c.id, table.c.length, table.c.arrivals, table.c.accepted, table.c.pending)
    query = select(*columns, table.c.successes, table.c.failures).where(table.c.policy_id == record.id)
    rows = {row.segment: row for row in connection.execute(query)}
    groups = version.specification.groups
    segments = []
    for segment, rule in version.rules.items():
        row = rows[segment]
        counts = Counts(row.arrivals, row.accepted, row.pending, row.successes, row.failures)
        # A draw of 1: what is certain, not what the exploration floor may add.
        verdict = rule.decide(counts, 1.0)
        segments.append(SegmentStatus(segment, groups.get(segment), rule, counts, verdict, row.id, row.length))
    return PolicyStatus(record, version, segments)
