"""Recompute a chain: every hash, count and decision, and the rows that the other tables must hold."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import UNSET
from sqlalchemy import ColumnElement, Connection, LargeBinary, cast, select
from sqlalchemy.exc import DBAPIError

from lenience.core.bounds import Bounds
from lenience.core.offers import Offer
from lenience.service.domain.chain import commitment, draw, link
from lenience.service.domain.clock import DAY, iso_time
from lenience.service.domain.events import (
    Corrected,
    Decided,
    Erased,
    Event,
    Expired,
    Imported,
    Observed,
    OpenLoansCounted,
    Overridden,
    Repeated,
    SegmentsSeen,
    StatusReported,
    decision_of,
    readable_event,
)
from lenience.service.domain.forgetting import forgotten
from lenience.service.domain.imported_rows import count_imported
from lenience.service.domain.open_loans import (
    OpenEvidence,
    OpenLoans,
    ages_digest,
    same,
    weigh,
    with_forgotten,
    with_open_loans,
)
from lenience.service.domain.overall import OverallUse
from lenience.service.domain.problems import Damaged
from lenience.service.domain.rule import CAPACITY, Counts, at_risk_after
from lenience.service.domain.statements import stated_counts, stated_verdict
from lenience.service.queries.imported_tally import ImportedTally
from lenience.service.queries.incremental import CheckedLog, Start
from lenience.service.queries.model_recomputation import ModelRecomputation
from lenience.service.queries.overall_recomputation import Opening, OverallRecomputation
from lenience.service.queries.referral_recomputation import ReferralRecomputation
from lenience.service.queries.rollout_recomputation import RolloutRecomputation
from lenience.service.queries.shadow_recomputation import OwnChains, ShadowSegmentsRecomputation
from lenience.service.queries.totals_check import check_daily_totals, check_outcome_days
from lenience.service.storage import schema
from lenience.service.storage.daily_totals import CountedDecision, DailyTotals
from lenience.service.storage.ledger import NO_VERSION
from lenience.service.storage.outcome_days import OutcomeDays
from lenience.service.storage.policy_cache import Version
from lenience.service.storage.store import as_problem

Report = Callable[[str, str], None]
AT_A_TIME = 2_000
IMPORTED = {  # the statuses that an imported decision can have
    "accept": (schema.PENDING, schema.SUCCESS, schema.FAILURE, schema.EXPIRED),
    "reject": (schema.REJECTED,),
}

OVERRIDABLE = {  # the statuses from which a person can override a decision
    "accept": (schema.REJECTED, schema.WAITING, schema.LAPSED),
    "reject": (schema.PENDING, schema.EXPIRED, schema.WAITING, schema.LAPSED),
}


def walk(
    connection: Connection, chain: int, start: str, label: str, report: Report, after: int = 0
) -> Iterator[tuple[int, str, Event, str]]:
    """Yield the events of a chain: the number, the hash, the event and the hash before it.

    Report breaks where they are, and continue. With ``after``, begin after this event, whose hash is ``start``.
    """
    events = schema.event
    # SQLite gives texts as bytes, which are hashed and decoded as they are.
    body = cast(events.c.body, LargeBinary) if connection.dialect.name == "sqlite" else events.c.body
    query = select(events.c.seq, body, events.c.hash, events.c.about).where(events.c.chain_id == chain)
    query = query.where(events.c.seq > after) if after else query
    previous, expected = start, after + 1
    try:
        with connection.execute(query.order_by(events.c.seq).execution_options(yield_per=AT_A_TIME)) as rows:
            for seq, text, digest, names in rows:
                if seq != expected:
                    late = seq > expected
                    what = f"events {expected} to {seq - 1} are missing" if late else "out of order"
                    report(f"event {seq} of {label}", what)
                    expected = seq
                if link(previous, text) != digest:
                    report(f"event {seq} of {label}", "its hash does not follow from its text and the event before it")
                event = readable_event(text)
                if event is None:
                    what = "its text cannot be read, so the events after it are checked without it"
                    report(f"event {seq} of {label}", what)
                else:
                    about = decision_of(event)
                    if names != about:
                        report(f"event {seq} of {label}", f"its row names the decision {names!r}, not {about!r}")
                    yield seq, digest, event, previous
                previous = str(digest)
                expected += 1
    except DBAPIError as error:
        damage = damage_of(error)
        if damage is None:
            raise
        first = _first_unreadable(connection, chain, expected)
        report(f"event {first} of {label}", f"it cannot be read, nor can events after it be checked: {damage}")
        raise ReportedDamage from error


def _first_unreadable(connection: Connection, chain: int, start: int) -> int:
    """Return the position of the first event that cannot be read. Rows are read in groups, so it follows the last."""
    if connection.dialect.name == "sqlite":  # elsewhere an error ends the transaction
        events = schema.event
        for seq in range(start, start + AT_A_TIME):
            try:
                connection.execute(select(events).where((events.c.chain_id == chain) & (events.c.seq == seq))).all()
            except DBAPIError:
                return seq
    return start


class ReportedDamage(Exception):  # noqa: N818  (it is not an error of the audit)
    """Rows that cannot be read. The finding is reported already."""


def damage_of(error: DBAPIError | sqlite3.DatabaseError) -> str | None:
    """Describe the damage that an error of the driver reports, or return None if it reports something else."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    problem = as_problem(error)
    if isinstance(problem, Damaged):
        return problem.detail
    if state in ("XX001", "XX002", "58030"):  # a damaged table or index, or a block that cannot be read
        return f"PostgreSQL reports damage ({str(getattr(error, 'orig', error)).splitlines()[0]})"
    return "PostgreSQL reports an invalid text" if state == "22021" else None


@dataclass(slots=True)
class ExpectedDecision:
    """The expected content of a decision's row."""

    seq: int
    version: int
    at: int
    accepted: bool
    status: str
    amount: float | None = None
    cost: float | None = None
    source: int | None = None
    reported: str | None = None
    outcome_at: int | None = None

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns of the row after the id and the chain."""
        first = (self.seq, self.version, self.at, self.accepted, self.status)
        return (*first, self.amount, self.cost, self.source, self.reported, self.outcome_at)

    @property
    def loss(self) -> float:
        """What a failure loses, in money."""
        return 0.0 if self.amount is None or self.cost is None else self.amount * self.cost


@dataclass(slots=True)
class SegmentRecomputation:
    """The recomputation of a segment's chain."""

    label: str
    segment: str
    versions: Callable[[int], Version | None]
    report: Report
    follows: Report  # reports a finding that another one has caused
    counts: Counts = field(default_factory=Counts)
    expected_decisions: dict[str, ExpectedDecision] = field(default_factory=dict)
    commitments: dict[int, str] = field(default_factory=dict)  # commitments to personal data, by event
    beside: dict[str, list[int]] = field(default_factory=dict)  # events with personal data, by decision
    imported: dict[int, ImportedTally] = field(default_factory=dict)  # by the number of the import
    outcome_days: OutcomeDays = field(default_factory=OutcomeDays)
    open_loans: OpenLoans | None = None
    known: Counter[tuple[int, bool]] = field(default_factory=Counter)  # outcomes, by the day of the decision
    open_since: Counter[int] = field(default_factory=Counter)  # pending decisions, by their time
    length: int = 0
    head: str = ""
    chain: int = 0
    overall: OverallRecomputation | None = None  # of the policy's own chain
    overall_seen: int = 0  # the last event of it that a decision saw
    models: ModelRecomputation | None = None  # that learn from all segments
    rollouts: RolloutRecomputation | None = None  # of the policy's own chain
    referrals: ReferralRecomputation | None = None  # over all segments
    own_chains: OwnChains | None = None
    checked: CheckedLog | None = None  # the events that are known already, in an incremental audit
    first: int = 1  # the first event that is recomputed
    erased_at: list[int] = field(default_factory=list)  # events before it whose personal data was erased after it
    shadow_segments: ShadowSegmentsRecomputation = field(init=False)

    def __post_init__(self) -> None:
        self.shadow_segments = ShadowSegmentsRecomputation(self.report, self.versions)

    def run(self, connection: Connection, chain: int, start: str) -> None:
        """Recompute every event of the chain."""
        self.head, self.chain = start, chain
        shared = self._shares_state
        known = None if self.checked is None else self.checked.starts.get(chain)
        if known is not None and self.checked is not None:
            start = self._start_at(self.checked, known)
        for seq, digest, event, previous in walk(connection, chain, start, self.label, self.report, self.first - 1):
            self.length, self.head = seq, digest
            if known is not None and seq == known.length and digest != known.head:
                self.report(f"event {seq} of {self.label}", "it is not the event that the checkpoint holds")
            if not shared:
                self._apply(seq, event, previous)
                continue
            before = replace(self.counts)
            decision = event.id if isinstance(event, Decided | Imported) else getattr(event, "decision", None)
            was_pending = self._is_pending(decision)
            if self.models is not None and isinstance(event, Decided | Imported) and event.personal is not None:
                self.models.add_personal(event.id, chain, seq)
            self._apply(seq, event, previous)
            life = self.expected_decisions.get(decision or "")
            loss = 0.0 if life is None else life.loss
            self.shadow_segments.change(decision, before, self.counts, loss)
            if self.own_chains is not None:
                self.own_chains.check(self.segment, seq, self.counts)
            if self.models is not None and decision is not None:
                self.models.add_segment_event(self.segment, seq, decision, before, self.counts)
                is_pending = self._is_pending(decision)
                if is_pending != was_pending or isinstance(event, Erased):
                    self.models.add_pending(
                        self.segment, decision, pending=is_pending and not isinstance(event, Erased)
                    )
            if self.overall is not None:
                if isinstance(event, Imported):  # it uses no capacity of the policy, but may be open
                    before = replace(before, accepted=self.counts.accepted)
                self.overall.add_segment_event(self.segment, seq, decision, before, self.counts, loss)
                for opening in self.overall.openings_at(self.segment, seq):
                    self._count_earlier(opening)

    def _start_at(self, checked: CheckedLog, known: Start) -> str:
        """Start at the last decision that the checkpoint holds, which states the counts. Return the hash before it.

        Without a decision there, start at the first event.
        """
        counted = checked.first_counted(self.chain, known)
        if counted is None:
            return checked.names[self.chain]
        self.first, previous, event = counted
        self.counts = replace(stated_counts(event), open=0, open_outcomes=0.0, open_successes=0.0, borrowed=None)
        return previous

    def _life(self, decision: str) -> ExpectedDecision | None:
        """Return a decision. In an incremental audit, one that was made earlier follows from its proved events."""
        life = self.expected_decisions.get(decision)
        if life is None and self.checked is not None and self.first > 1:
            events = self.checked.events_of(self.chain, decision, self.first)
            if events is not None:
                life = self._replay(decision, events)
                self.expected_decisions[decision] = life
        return life

    def _replay(self, decision: str, events: Sequence[tuple[int, Event]]) -> ExpectedDecision:
        """Return a decision after its earlier events, which were audited before."""
        seq, event = events[0]
        assert isinstance(event, Decided | Imported)
        accepted = event.decision == "accept"
        if isinstance(event, Imported):
            first = (seq, NO_VERSION, event.decided_at, accepted, event.status)
            life = ExpectedDecision(*first, *_terms(event.offer), event.source, event.reported, event.outcome_at)
        else:
            status = schema.NEW_STATUS[event.decision]
            life = ExpectedDecision(seq, event.version, event.at, accepted, status, *_terms(event.offer))
        apart = SegmentRecomputation(self.label, self.segment, self.versions, _ignore, _ignore)
        apart.expected_decisions[decision] = life
        if event.personal is not None:
            apart.commit(seq, decision, event.personal)
        for place, later in events[1:]:
            if isinstance(later, Decided):
                life.status = schema.REPLACED
            else:
                apart._apply(place, later, "")
        self.beside[decision] = [place for place in apart.beside.get(decision, ()) if place < self.first]
        return life

    @property
    def _shares_state(self) -> bool:
        """Whether the policy has limits over all segments, or models that learn from all of them."""
        return (self.overall is not None and self.overall.in_use) or (
            self.models is not None and bool(self.models.starts)
        )

    def _count_earlier(self, opening: Opening) -> None:
        """Count the acceptances that stand when limits over all segments begin, if no such limit has counted them."""
        assert self.overall is not None
        counted = opening.counted.get(self.segment, 0)
        for identity, life in self.expected_decisions.items():
            if life.seq > counted and life.accepted and life.source is None:
                version = self.versions(life.version)
                if version is not None and version.overall is None:
                    self.overall.count_earlier(opening, identity, life.at, life.loss)

    def _is_pending(self, decision: str | None) -> bool:
        """Return whether a decision is pending."""
        life = self.expected_decisions.get(decision or "")
        return life is not None and life.status == schema.PENDING

    def _overall_use(self, where: str, event: Decided, version: Version) -> OverallUse | None:
        """Return what all segments had used before a decision, by the policy's chain, if its version has limits."""
        if self.overall is None or version.overall is None:
            return None
        if event.overall_at is None or event.overall_at < self.overall_seen:
            self.report(where, "it does not say what all segments had used, or says it out of order")
            return event.overall
        self.overall_seen = event.overall_at
        use = self.overall.use_after(event.overall_at, event.at)
        if use != event.overall:
            self.report(where, "what all segments had used differs from the log of the policy")
        if event.decision == "accept" and not self.overall.charged(event.id, event.overall_at + 1):
            self.report(where, "the acceptance is not counted in the log of the policy")
        return use

    def _apply(self, seq: int, event: Event, previous: str) -> None:
        where = f"event {seq} of {self.label}"
        if isinstance(event, Decided):
            self._decided(where, seq, event, previous)
            return
        if isinstance(event, Imported):
            self._imported(where, seq, event)
            return
        if isinstance(event, OpenLoansCounted):
            self._open_loans(where, seq, event)
            return
        if isinstance(event, SegmentsSeen):
            self.shadow_segments.see(event)
            return
        if isinstance(event, Repeated):
            return
        if not isinstance(event, Observed | StatusReported | Corrected | Expired | Overridden | Erased):
            self.report(where, f"a {type(event).__name__} event does not belong in a segment's chain")
            return
        life = self._life(event.decision)
        if life is None:
            self.report(where, f"there is no decision {event.decision} before it")
            return
        counts = self.counts
        if isinstance(event, Observed):
            if life.status not in (schema.PENDING, schema.EXPIRED):
                self.report(where, f"an outcome of a decision that is {life.status}")
                return
            self._settle(life)
            counts.successes += event.outcome == "success"
            counts.failures += event.outcome == "failure"
            self._change_outcome(event.at, life, event.outcome)
            self._date(where, life, event.outcome_at)
        elif isinstance(event, StatusReported):
            if life.status != schema.PENDING:
                self.report(where, f"an interim status of a decision that is {life.status}")
                return
            life.reported = event.status
        elif isinstance(event, Corrected):
            if life.status != event.before or event.before == event.outcome:
                self.report(where, f"a correction of {event.before} where the outcome is {life.status}")
                return
            step = 1 if event.outcome == "success" else -1
            counts.successes += step
            counts.failures -= step
            self._change_outcome(event.at, life, event.outcome)
            self._date(where, life, event.outcome_at)
        elif isinstance(event, Expired):
            if life.status == schema.REFERRED:  # nobody has decided it
                life.status = schema.LAPSED
                return
            if life.status != schema.PENDING:
                self.report(where, f"an expiry of a decision that is {life.status}")
                return
            self._settle(life)
            life.status = schema.EXPIRED
            life.reported = None
        elif isinstance(event, Overridden):
            self._overridden(where, seq, event, life)
        else:
            for at in self.beside.pop(event.decision, ()):
                if self.commitments.pop(at, None) is None:
                    self.erased_at.append(at)

    def _overridden(self, where: str, seq: int, event: Overridden, life: ExpectedDecision) -> None:
        accept = event.choice == "accept"
        if life.status not in ((schema.REFERRED,) if event.review else OVERRIDABLE[event.choice]):
            self.report(where, f"an override to {event.choice} of a decision that is {life.status}")
            return
        self.counts.accepted += accept - life.accepted
        if accept:
            self._change_pending(1, life)
        else:
            self._settle(life)
        life.accepted = accept
        life.status = schema.PENDING if accept else schema.REJECTED
        life.reported = None
        self.commit(seq, event.decision, event.personal)

    def _date(self, where: str, life: ExpectedDecision, outcome_at: int | None) -> None:
        """Note that a decision is no longer pending, and the own date of its outcome."""
        life.reported = None
        if outcome_at is not None:
            if outcome_at // DAY < life.at // DAY:
                self.report(where, "its outcome has a date before the decision")
            life.outcome_at = outcome_at

    def _change_outcome(self, at: int, life: ExpectedDecision, outcome: str) -> None:
        """Change the status of a decision to an outcome, which counts on the day of its event."""
        before = _counted(self.chain, life)
        self.outcome_days.change(at, before, before._replace(status=outcome))
        if life.status in (schema.SUCCESS, schema.FAILURE):
            self.known[life.at // DAY, life.status == schema.SUCCESS] -= 1
        self.known[life.at // DAY, outcome == schema.SUCCESS] += 1
        life.status = outcome

    def _settle(self, life: ExpectedDecision) -> None:
        """Count a decision as pending no longer, if it was."""
        if life.status == schema.PENDING:
            self._change_pending(-1, life)

    def _change_pending(self, change: int, life: ExpectedDecision) -> None:
        counts = self.counts
        counts.pending += change
        self.open_since[life.at] += change
        if change < 0 and self.open_loans is not None:
            self.open_loans.settle(life.seq)
        counts.at_risk = at_risk_after(counts.at_risk, change * life.loss, counts.pending)

    def _decided(self, where: str, seq: int, event: Decided, previous: str) -> None:
        counts = self._compare_counts(where, event)
        version = self.versions(event.version)
        if version is None or self.segment not in version.rules:
            self.follows(where, f"its policy version {event.version} does not exist for this segment")
        else:
            rule = version.rules[self.segment]
            use = self._overall_use(where, event, version)
            logged = stated_verdict(event)
            verdict = logged  # by features: recomputed with the policy's models
            if version.feature_model is None:
                chance = draw(previous, event.id) if rule.exploration_floor > 0 else 1.0
                verdict = rule.decide(counts, chance, event.offers, use)
            timed = [event.version] if version.specification.timing else []
            fading = [event.version] if version.specification.forgetting else []
            counted = self.open_loans is not None and self.open_loans.is_current(event.at, timed, fading)
            if (timed or fading) and not counted:
                self.report(where, "the open loans of the segment, or what is forgotten, were not counted on that day")
            if event.rank is not None and event.rule == CAPACITY and verdict.decision == "accept":
                verdict = rule.without_capacity(verdict)
            if verdict != logged:
                self.report(
                    where, describe_differences(logged, verdict, "in the log", f"by policy version {event.version}")
                )
            self._shadows(where, event, previous)
        if self.models is not None:
            self.models.add_decision(where, self.segment, (self.chain, seq), event, self.versions)
        if self.referrals is not None:
            self.referrals.check(where, (self.chain, self.segment), event, counts, version)
        if self.rollouts is not None:
            self.rollouts.check(where, self.segment, (self.chain, seq), event, self.versions)
        if event.id in self.expected_decisions:
            self.report(where, f"the decision {event.id} was made before")
        accepted, status = event.decision == "accept", schema.NEW_STATUS[event.decision]
        life = ExpectedDecision(seq, event.version, event.at, accepted, status, *_terms(event.offer))
        self.counts.arrivals += event.again is None
        if event.again is not None:
            self._replace(where, event.again)
        self.counts.accepted += accepted
        if accepted:
            self._change_pending(1, life)
        self.expected_decisions[event.id] = life
        self.shadow_segments.add(seq, event)
        if event.personal is not None:
            self.commit(seq, event.id, event.personal)

    def _replace(self, where: str, waiting: str) -> None:
        """Note that a waiting decision was decided again."""
        life = self._life(waiting)
        if life is None or life.status != schema.WAITING:
            self.report(where, f"it decides {waiting} again, which does not wait")
        else:
            life.status = schema.REPLACED

    def _open_loans(self, where: str, seq: int, event: OpenLoansCounted) -> None:
        """Count the open loans by age again, and compare what they say under each version."""
        ages: Counter[int] = Counter()
        for at, number in self.open_since.items():
            if number:
                ages[max(event.at - at, 0) // DAY] += number
        if (event.number, event.ages) != (ages.total(), ages_digest(ages)):
            self.report(where, f"it counts {event.number} open loans, or other ages than the events before it give")
        lost = self._forgotten(where, event)
        evidence = tuple(OpenEvidence(*one) for one in event.evidence)
        for stated in evidence:
            version = self.versions(stated.version)
            if version is None or self.segment not in version.rules or not version.specification.timing:
                self.follows(where, f"its policy version {stated.version} has no timing curves for this segment")
                continue
            counts = with_forgotten(self.counts, lost.get(stated.version))
            computed = weigh(version.rules[self.segment], version.specification.timing, counts, ages)
            if not same(stated, computed, event.number):
                difference = describe_differences(
                    stated, OpenEvidence(stated.version, *computed), "in the log", f"by version {stated.version}"
                )
                self.report(where, f"what open loans count as: {difference}")
        forgotten_now = tuple(lost.values()) if lost else UNSET
        self.open_loans = OpenLoans(event.at, seq, event.number, evidence, forgotten=forgotten_now)

    def _forgotten(self, where: str, event: OpenLoansCounted) -> dict[int, OpenEvidence]:
        """Compute again what versions have forgotten, and return what the event states."""
        lost = {one[0]: OpenEvidence(*one) for one in event.forgotten}
        for stated in lost.values():
            version = self.versions(stated.version)
            if version is None or self.segment not in version.rules or not version.specification.forgetting:
                self.follows(where, f"its policy version {stated.version} forgets nothing in this segment")
                continue
            half_life = version.specification.forgetting.half_life_days
            computed = forgotten(self.known, event.at // DAY, half_life)
            if not same(stated, computed, self.known.total()):
                difference = describe_differences(
                    stated, OpenEvidence(stated.version, *computed), "in the log", f"by version {stated.version}"
                )
                self.report(where, f"what is forgotten: {difference}")
        return lost

    def _imported(self, where: str, seq: int, event: Imported) -> None:
        """Count a decision that was imported. No version made it, so there is nothing else to recompute."""
        self._compare_counts(where, event)
        if event.id in self.expected_decisions:
            self.report(where, f"the decision {event.id} was made before")
        if event.status not in IMPORTED[event.decision] or event.decided_at > event.at:
            self.report(where, f"a decision to {event.decision} cannot be {event.status} or be made after its import")
        accepted = event.decision == "accept"
        first = (seq, NO_VERSION, event.decided_at, accepted, event.status)
        life = ExpectedDecision(*first, *_terms(event.offer), event.source, event.reported, event.outcome_at)
        count_imported(self.counts, event)
        self.open_since[event.decided_at] += event.status == schema.PENDING
        if event.status in (schema.SUCCESS, schema.FAILURE):
            self.known[event.decided_at // DAY, event.status == schema.SUCCESS] += 1
        self.imported.setdefault(event.source, ImportedTally()).add_row(event)
        self.expected_decisions[event.id] = life
        if event.personal is not None:
            self.commit(seq, event.id, event.personal)

    def _compare_counts(self, where: str, event: Decided | Imported) -> Counts:
        """Compare the counts that an event states with those of the events before it. Return those it states."""
        counts = self.counts
        if self.open_loans is None and _states(event, counts):
            return counts
        stated = stated_counts(event)
        if isinstance(event, Decided):
            counts = with_open_loans(counts, self.open_loans, event.version)
            counts = replace(counts, borrowed=event.borrowed)  # the policy's chain is compared with it later
        if stated != counts:
            self.report(where, f"it has {_counts_text(stated)}, but the events before it give {_counts_text(counts)}")
            self.counts = replace(
                stated,
                open=0,
                open_outcomes=0.0,
                open_successes=0.0,
                borrowed=None,
                forgotten_outcomes=0.0,
                forgotten_successes=0.0,
            )
        return stated

    def commit(self, seq: int, decision: str, personal: str) -> None:
        """Note that an event commits to personal data of a decision."""
        self.commitments[seq] = personal
        self.beside.setdefault(decision, []).append(seq)

    def _shadows(self, where: str, event: Decided, previous: str) -> None:
        for shadow in event.shadows:
            version = self.versions(shadow.version)
            if version is not None and version.feature_model is not None:
                continue  # recomputed with the policy's models
            if version is not None and shadow.segment is not None:
                self.shadow_segments.decide(where, event, shadow, version, previous)
                continue
            if version is None or self.segment not in version.rules:
                self.follows(where, f"its shadow version {shadow.version} does not exist for this segment")
                continue
            counts = with_open_loans(self.counts, self.open_loans, shadow.version)
            if shadow.borrowed is not None:
                counts = replace(counts, borrowed=shadow.borrowed)
            rule = version.rules[self.segment]
            chance = draw(previous, event.id) if rule.exploration_floor > 0 else 1.0
            verdict = rule.decide(counts, chance, event.offers)
            logged = stated_verdict(shadow)
            if verdict != logged:
                difference = describe_differences(logged, verdict, "in the log", f"by version {shadow.version}")
                self.report(where, f"its shadow, {difference}")

    def check_rows(self, connection: Connection, chain: int) -> None:
        """Compare the rows of decisions and personal data with the log.

        An incremental audit compares those of the decisions that were made or changed, and leaves out the totals.
        """
        if self.first > 1:
            self._check_some_decisions(connection, chain)
            self._check_personal(connection, chain)
            return
        self._check_decisions(connection, chain)
        self._check_personal(connection, chain)
        check_daily_totals(connection, chain, self.label, self._daily_totals(chain), self.report)
        check_outcome_days(connection, chain, self.label, self.outcome_days, self.report)

    def _daily_totals(self, chain: int) -> DailyTotals:
        """Count the decisions of the log by day, version and status."""
        totals = DailyTotals()
        for life in self.expected_decisions.values():
            totals.count(_counted(chain, life))
        return totals

    def _check_decisions(self, connection: Connection, chain: int) -> None:
        decisions = schema.decision
        seen: set[str] = set()
        query = select(decisions).where(decisions.c.chain_id == chain)
        for row in connection.execute(query.execution_options(yield_per=AT_A_TIME)):
            if row[0] in self.expected_decisions:
                seen.add(row[0])
            self._check_decision(row)
        # Compare with the rows themselves. A query for ids alone would be answered by an index.
        for identity in sorted(self.expected_decisions.keys() - seen)[:10]:
            self.report(f"decision {identity}", f"it is in the log of {self.label}, but its row is missing")

    def _check_decision(self, row: Any) -> None:
        """Compare the row of a decision with the log."""
        expected = self.expected_decisions.get(row[0])
        if expected is None:
            self.report(f"decision {row.id}", f"it is not in the log of {self.label}")
        elif expected.columns != row[2:] or (self.first > 1 and row.chain_id != self.chain):
            accepted = bool(row.accepted) if row.accepted in (0, 1) else row.accepted
            own = (row.amount, row.cost, row.source, row.reported, row.outcome_at)
            stored = ExpectedDecision(row.seq, row.version, row.at, accepted, row.status, *own)
            difference = describe_differences(stored, expected, "in the table", "in the log")
            if stored != expected or row.chain_id != self.chain:
                self.report(f"decision {row.id}", difference or "its row names another chain")

    def _check_some_decisions(self, connection: Connection, chain: int) -> None:
        """Compare the rows of the decisions that were made or changed since the checkpoint."""
        decisions, wanted = schema.decision, sorted(self.expected_decisions)
        made = [identity for identity, life in self.expected_decisions.items() if life.seq >= self.first]
        seen: set[str] = set()
        conditions: list[ColumnElement[bool]] = [
            decisions.c.id.in_(wanted[i : i + 500]) for i in range(0, len(wanted), 500)
        ]
        if made:  # also rows of new decisions that the log does not hold; ids are in the order of time
            newer = (decisions.c.chain_id == chain) & (decisions.c.id >= min(made)) & (decisions.c.seq >= self.first)
            conditions.append(newer & decisions.c.source.is_(None))
        for condition in conditions:
            for row in connection.execute(select(decisions).where(condition)):
                seen.add(row.id)
                self._check_decision(row)
        for identity in [one for one in wanted if one not in seen][:10]:
            self.report(f"decision {identity}", f"it is in the log of {self.label}, but its row is missing")

    def _check_personal(self, connection: Connection, chain: int) -> None:
        personal = schema.personal
        unmatched = dict(self.commitments)
        own = personal.c.seq >= self.first
        if self.erased_at:
            own |= personal.c.seq.in_(self.erased_at[:5_000])
        query = select(personal).where((personal.c.chain_id == chain) & own)
        for row in connection.execute(query.execution_options(yield_per=AT_A_TIME)):
            where = f"personal data at event {row.seq} of {self.label}"
            digest = unmatched.pop(row.seq, None)
            if digest is None:
                self.report(where, "no event commits to it, or it should have been erased")
            elif commitment(row.salt, row.reference, row.details) != digest:
                self.report(where, "it differs from what the event commits to")
            else:
                self.shadow_segments.check_features(where, row.seq, row.details)
                if self.rollouts is not None:
                    self.rollouts.check_reference((chain, row.seq), row.reference)
        for seq in sorted(unmatched)[:10]:
            self.report(f"personal data at event {seq} of {self.label}", "it is missing, but was not erased on request")
        if self.rollouts is not None:
            self.rollouts.finish_segment()


def _counted(chain: int, life: ExpectedDecision) -> CountedDecision:
    return CountedDecision(chain, life.version, life.at, life.accepted, life.status, life.amount, life.cost)


def _ignore(where: str, what: str) -> None:
    """Ignore a finding about events that were audited before."""


def _states(event: Decided | Imported, counts: Counts) -> bool:
    """Return whether an event states exactly these counts, and neither open loans nor borrowed evidence."""
    return (
        event.arrivals == counts.arrivals
        and event.successes == counts.successes
        and event.failures == counts.failures
        and event.pending == counts.pending
        and event.accepted == counts.accepted
        and (event.at_risk or 0.0) == counts.at_risk
        and (isinstance(event, Imported) or (event.open is None and event.borrowed is None))
    )


def _terms(offer: Offer | None) -> tuple[float | None, float | None]:
    return (None, None) if offer is None else (offer.amount, offer.cost)


def describe_differences(first: object, second: object, here: str, there: str) -> str:
    """Describe the fields in which two values of the same type differ.

    >>> row = ExpectedDecision(3, 1, 0, True, "failure")
    >>> describe_differences(row, ExpectedDecision(3, 1, 10**6, True, "success"), "in the table", "in the log")
    'at: 1970-01-01T00:00:00.000000Z in the table, 1970-01-01T00:00:01.000000Z in the log; status: failure in the ...'
    """
    names = getattr(first, "_fields", None) or getattr(first, "__struct_fields__", None) or type(first).__slots__  # type: ignore[attr-defined]
    differences = []
    for name in names:
        if getattr(first, name) != getattr(second, name):
            shown = [_shown(name, getattr(value, name)) for value in (first, second)]
            differences.append(f"{name}: {shown[0]} {here}, {shown[1]} {there}")
    return "; ".join(differences)


def _shown(name: str, value: object) -> str:
    if name == "at" and isinstance(value, int):
        return iso_time(value)
    if isinstance(value, Bounds):  # a forged one may have its ends the wrong way round
        return f"{value.lower!r} to {value.upper!r}"
    if isinstance(value, Offer):
        return f"{value.amount!r} at break-even {value.cost!r}"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _counts_text(counts: Counts) -> str:
    return (
        f"{counts.arrivals} arrivals, {counts.accepted} accepted, {counts.pending} pending, "
        f"{counts.successes} successes, {counts.failures} failures"
        f"{f', {counts.at_risk:g} at risk' if counts.at_risk else ''}"
        f"{f', {counts.open} open loans that count as {counts.open_outcomes:g}' if counts.open else ''}"
    )
