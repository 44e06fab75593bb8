"""The current status of a policy: the evidence, next decision, earnings and pending outcomes of each segment.

Nothing here needs a solver, because decisions are looked up in the stored table. Values that need one (expected value,
probability of wrongful rejection) are in :mod:`lenience.dashboard.read_models.prospects` and load after the page.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import msgspec
from sqlalchemy import Connection, func, select

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.formatting import percent
from lenience.core.money import UNITS, Money
from lenience.dashboard.read_models.accepted_offers import AcceptedOffers, accepted_offers
from lenience.dashboard.rendering import natural
from lenience.service.domain.clock import now
from lenience.service.domain.open_loans import decode_open_loans, with_open_loans
from lenience.service.domain.overall import OVERALL, OverallUse
from lenience.service.domain.problems import NotFound
from lenience.service.domain.reason_parts import evidence_words
from lenience.service.domain.reasons import reason
from lenience.service.domain.rule import (
    ABOVE,
    BELOW,
    CAP,
    FLOOR,
    LEARNING,
    LIMIT,
    LOSS_CAP,
    OVER,
    Counts,
    SegmentRule,
    Verdict,
    with_borrowed,
)
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.ledger import read_overall_use
from lenience.service.storage.policy_cache import PolicyCache, PolicyRecord, Version

# What happens to the next applicant, in a word, and the colour of its mark.
NEXT = {
    ABOVE: ("accept", "accept"),
    LEARNING: ("accept to learn", "learn"),
    FLOOR: ("accept a few", "learn"),
    BELOW: ("stopped", "reject"),
    LIMIT: ("wait", "wait"),
    CAP: ("wait", "wait"),
    LOSS_CAP: ("wait", "wait"),
    OVER: ("over", "reject"),
    **dict.fromkeys(OVERALL, ("wait", "wait")),
}


class SegmentStatus(msgspec.Struct, frozen=True, dict=True):
    """The current status of a segment."""

    name: str
    group: str | None
    rule: SegmentRule
    counts: Counts
    verdict: Verdict
    chain: int
    length: int
    imported: int = 0  # of its decisions

    @cached_property
    def belief(self) -> Belief:
        """The belief about its success rate."""
        return self.rule.belief(self.counts)

    @cached_property
    def interval(self) -> Bounds:
        """The 90% interval of the success rate."""
        return self.belief.interval(0.9)

    @cached_property
    def offers(self) -> AcceptedOffers | None:
        """Which offers it accepts now, or None if all applicants have one break-even."""
        return accepted_offers(self.rule, self.counts, self.verdict)

    @property
    def offers_differ(self) -> bool:
        """Whether there are several amounts or prices: otherwise the success rate alone decides."""
        return self.offers is not None and not self.offers.offers.single

    @property
    def cost(self) -> float:
        """The break-even success rate, with the price of a limited capacity: where they differ, the lowest one."""
        return self.rule.table.lowest_cost

    @property
    def next(self) -> str:
        """What happens to the next applicant, in a word."""
        if self.verdict.rule == BELOW and self.verdict.probability > 0:
            return "accept a few"
        if self.offers_differ and self.offers is not None and self.verdict.decision == "accept":
            if not self.rule.needs_offer and self.verdict.offer is not None:
                return f"offer {self.offers.money.format(self.verdict.offer.amount)}"
            if self.offers.share < 0.9995:
                return f"accept {percent(self.offers.share, 0)} of offers"
        return NEXT[self.verdict.rule][0]

    @property
    def mark(self) -> str:
        """The kind of mark that shows it."""
        if self.verdict.rule == BELOW and self.verdict.probability > 0:
            return "learn"
        return NEXT[self.verdict.rule][1]

    @property
    def why(self) -> str:
        """The reason for it: where applicants bring their own offers, which ones are accepted."""
        if self.offers is not None and self.rule.needs_offer and self.verdict.rule not in OVERALL:
            return self.offers.sentence
        return reason(self.rule, self.counts, self.verdict)

    @property
    def evidence(self) -> str:
        """What is known of it, in words."""
        return evidence_words(self.rule, self.counts)

    @property
    def stopped(self) -> bool:
        """Whether the boundary rejects everyone and there is no exploration floor.

        Pending outcomes (after an override, or with late outcomes) may reopen the segment. Without any it is stopped
        for good.
        """
        return self.verdict.rule == BELOW and self.verdict.probability == 0

    @property
    def never_started(self) -> bool:
        """Whether it stopped before its first acceptance."""
        return self.stopped and self.counts.accepted == 0

    @property
    def full(self) -> bool:
        """Whether its exposure limit or cap is reached."""
        return self.verdict.rule in (LIMIT, CAP, LOSS_CAP)

    @property
    def margin(self) -> float:
        """The distance of the belief above its threshold, in standard deviations of the belief."""
        return (self.belief.mean - self.verdict.threshold) / math.sqrt(max(self.belief.variance, 1e-12))

    @property
    def earned(self) -> float:
        """The earnings of the known outcomes: 1 − c for each success, −c for each failure."""
        own = self.rule.break_even
        return self.counts.successes * (1 - own) - self.counts.failures * own

    @property
    def expected(self) -> float:
        """The expected earnings of the pending acceptances."""
        return self.counts.pending * (self.belief.mean - self.rule.break_even)

    @property
    def acceptance(self) -> float | None:
        """The share of its members that was accepted."""
        return self.counts.accepted / self.counts.arrivals if self.counts.arrivals else None


class PolicyStatus(msgspec.Struct, frozen=True, dict=True):
    """The current status of a policy under one of its versions."""

    record: PolicyRecord
    version: Version
    segments: list[SegmentStatus]
    use: OverallUse | None = None  # what all segments have used, if the version has limits over all of them

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.record.name

    @property
    def money(self) -> Money:
        """How to show values: in the currency of the offers, or in units of gain + loss."""
        offers = self.version.specification.objective.offers
        return UNITS if offers is None else offers.money

    @property
    def has_offers(self) -> bool:
        """Whether amounts and break-evens differ."""
        return self.version.specification.objective.offers is not None

    @property
    def state(self) -> str:
        """The state of the version shown."""
        return self.record.states[self.version.number]

    @cached_property
    def totals(self) -> Counts:
        """The counts of all segments together."""
        all_counts = [segment.counts for segment in self.segments]
        return Counts(
            sum(counts.arrivals for counts in all_counts),
            sum(counts.accepted for counts in all_counts),
            sum(counts.pending for counts in all_counts),
            sum(counts.successes for counts in all_counts),
            sum(counts.failures for counts in all_counts),
            math.fsum(counts.at_risk for counts in all_counts),
        )

    @property
    def earned(self) -> float:
        """The earnings of the known outcomes."""
        return sum(segment.earned for segment in self.segments)

    @property
    def expected(self) -> float:
        """The expected earnings of the pending acceptances."""
        return sum(segment.expected for segment in self.segments)

    def segment(self, name: str | None) -> SegmentStatus:
        """Return a segment by name. Without a name, return the open segment with applicants nearest to its boundary."""
        if name is not None:
            for segment in self.segments:
                if segment.name == name:
                    return segment
            raise NotFound(f"the policy {self.name!r} has no segment {name!r}")
        return min(
            self.segments,
            key=lambda segment: (
                segment.verdict.rule == BELOW,  # an exploration floor may still accept a few
                segment.counts.arrivals == 0,  # nothing is to be seen there
                abs(segment.margin),
                -segment.counts.arrivals,
            ),
        )


def policy_names(service: Service) -> list[str]:
    """Return the names of all policies, sorted."""
    with service.store.read() as connection:
        return sorted(connection.execute(select(schema.policy.c.name)).scalars(), key=natural)


def ranked_policies(service: Service) -> list[PolicyRecord]:
    """Return all policies: active ones first, then by the number of decisions."""
    with service.store.read() as connection:
        table = schema.chain
        sums = select(table.c.policy_id, func.sum(table.c.arrivals)).group_by(table.c.policy_id)
        arrivals_of = {identity: int(arrivals) for identity, arrivals in connection.execute(sums)}
        names = connection.execute(select(schema.policy.c.name).order_by(schema.policy.c.name)).scalars()
        records = [service.registry.load(connection, name) for name in names]
    return sorted(records, key=lambda record: (record.active is None, -arrivals_of.get(record.id, 0)))


class WithPolicies(Protocol):
    """What knows the policies of a database: a service, or a reader of a database."""

    @property
    def registry(self) -> PolicyCache:
        """The policies."""


def read_policy_status(
    service: WithPolicies, connection: Connection, name: str, number: int | None = None
) -> PolicyStatus:
    """Read a policy under the given version, the active one, or else the newest."""
    record = service.registry.load(connection, name)
    shown = number or (record.active.number if record.active else max(record.states))
    if shown not in record.states:
        raise NotFound(f"the policy {name!r} has no version {shown}")
    version = service.registry.version(connection, record.id, shown)
    table = schema.chain
    columns = (table.c.segment, table.c.id, table.c.length, table.c.arrivals, table.c.accepted, table.c.pending)
    more = (table.c.successes, table.c.failures, table.c.at_risk, table.c.open_loans, table.c.imported)
    query = select(*columns, *more).where(table.c.policy_id == record.id)
    rows = {row.segment: row for row in connection.execute(query)}
    groups = version.specification.groups
    use = None if version.overall is None else read_overall_use(connection, record.chain).at(now())
    segments = []
    own = {
        segment: Counts(row.arrivals, row.accepted, row.pending, row.successes, row.failures, row.at_risk)
        for segment, row in rows.items()
        if segment is not None
    }
    own = with_borrowed(version.model, own)
    for segment, rule in version.rules.items():
        row = rows[segment]
        counts = with_open_loans(own[segment], decode_open_loans(row.open_loans), shown)
        # A draw of 1 leaves out acceptances by the exploration floor.
        verdict = rule.decide(counts, 1.0, use=use)
        place = (row.id, row.length, row.imported)
        segments.append(SegmentStatus(segment, groups.get(segment), rule, counts, verdict, *place))
    return PolicyStatus(record, version, segments, use)
