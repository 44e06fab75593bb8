"""Read policies, decisions with their explanations, and pages of decisions."""

from __future__ import annotations

import math
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, false, func, select

from lenience.policies.features.explanation import evidence_in_words
from lenience.service.domain.answers import (
    CapacityView,
    DecisionEntry,
    DecisionsPage,
    DecisionView,
    HistoryEntry,
    ImportedFrom,
    ModelAnswer,
    OfferAnswer,
    PoliciesAnswer,
    PolicyEntry,
    PolicyView,
    SegmentView,
    ShadowView,
    VersionView,
    WaitingEntry,
    WaitingPage,
    choice_of,
    fairness_view,
    offer_answer,
)
from lenience.service.domain.clock import DAY, iso_time, now
from lenience.service.domain.events import (
    Corrected,
    Decided,
    Erased,
    Imported,
    Observed,
    Overridden,
    StatusReported,
    read,
)
from lenience.service.domain.feature_cells import unknown_value_warnings
from lenience.service.domain.feature_rule import (
    applicant_belief,
    applicant_principal_reasons,
    what_would_change_applicant,
)
from lenience.service.domain.identity import first_id
from lenience.service.domain.imported_rows import imported_reason
from lenience.service.domain.monitored import NOTHING_MONITORED
from lenience.service.domain.monitoring import MonitoringReport
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.open_loans import decode_open_loans, with_open_loans
from lenience.service.domain.overall import OverallUse, period_name
from lenience.service.domain.problems import Conflict, NotFound, unknown_decision
from lenience.service.domain.reason_parts import evidence_words
from lenience.service.domain.reasons import overruled, principal_reasons, what_would_change
from lenience.service.domain.review_report import ReviewReport
from lenience.service.domain.rule import Counts, SegmentRule, with_borrowed
from lenience.service.domain.solved_tables import SolvedTable
from lenience.service.domain.state import realised_profit
from lenience.service.domain.statements import stated_counts, stated_verdict
from lenience.service.domain.version_warnings import beyond_table_warnings
from lenience.service.queries.applicant_explanation import NOT_EXPLAINED, explain_applicant, state_now
from lenience.service.queries.model_report import ModelReport, read_model_report
from lenience.service.queries.monitoring import read_monitoring
from lenience.service.queries.rejections import RejectionsAnswer, read_rejections
from lenience.service.queries.reviews import QueueOrder, ReferralsPage, read_referrals, read_review_report
from lenience.service.queries.rollouts import RolloutAnswer, compare_rollout
from lenience.service.queries.shadow_versions import ShadowsAnswer, compare_shadows
from lenience.service.storage import schema
from lenience.service.storage.arriving_offers import drift_warnings
from lenience.service.storage.import_records import read_imports
from lenience.service.storage.ledger import read_overall_use
from lenience.service.storage.monitored_rows import read_monitored
from lenience.service.storage.policy_cache import PolicyCache, PolicyRecord, Version
from lenience.service.storage.references import few, under
from lenience.service.storage.store import Store
from lenience.service.storage.version_records import read_version_records

PAGE = 100
VALUES_SECONDS = 5.0  # for the values of a policy's segments
CACHED_REPORTS = 50
HOUR = 3_600_000_000  # microseconds
RECENT = HOUR // 6
Report = TypeVar("Report")


class ReportCache(Generic[Report]):
    """Reports by policy and version, each valid for one state of the policy."""

    def __init__(self) -> None:
        self._stored: dict[tuple[int, int], tuple[object, Report]] = {}

    def of(self, key: tuple[int, int], state: object, compute: Callable[[], Report]) -> Report:
        """Return the stored report if the state is the same, otherwise compute it."""
        before = self._stored.get(key)
        if before is not None and before[0] == state:
            return before[1]
        report = compute()
        if len(self._stored) >= CACHED_REPORTS:
            self.clear()
        self._stored[key] = (state, report)
        return report

    def clear(self) -> None:
        """Forget all reports."""
        self._stored.clear()


class Filters(msgspec.Struct, frozen=True):
    """The conditions that select decisions."""

    policy: str | None = None
    segment: str | None = None
    decision: str | None = None
    status: str | None = None
    reference: str | None = None
    since: int | None = None
    until: int | None = None


class Queries:
    """Queries of the database. Each sees one consistent state."""

    def __init__(self, store: Store, registry: PolicyCache) -> None:
        self.store = store
        self.registry = registry
        self._reports = ReportCache[ModelReport]()
        self._rollouts = ReportCache[RolloutAnswer]()
        self._monitoring = ReportCache[MonitoringReport]()
        self._recent = ReportCache[MonitoringReport]()  # for alerts
        self._rejections = ReportCache[RejectionsAnswer]()

    def policies(self) -> PoliciesAnswer:
        """Return all policies."""
        with self.store.read() as connection:
            rows = connection.execute(select(schema.policy).order_by(schema.policy.c.name)).all()
            versions = connection.execute(
                select(*(schema.version.c[name] for name in ("policy_id", "number", "state", "percent"))).order_by(
                    schema.version.c.policy_id, schema.version.c.number
                )
            ).all()
        by_policy: dict[int, list[VersionView]] = {}
        for row in versions:
            by_policy.setdefault(row.policy_id, []).append(VersionView(row.number, row.state, row.percent))
        return PoliciesAnswer(
            [
                PolicyEntry(
                    row.name,
                    iso_time(row.created_at),
                    next((version.version for version in by_policy[row.id] if version.state == "active"), None),
                    by_policy[row.id],
                )
                for row in rows
            ]
        )

    def policy(self, name: str, number: int | None = None) -> PolicyView:
        """Return a policy and its segments under the given version, the active one, or else the newest."""
        with self.store.read() as connection:
            record, version = self._version(connection, name, number)
            shown = version.number
            chains = connection.execute(select(schema.chain).where(schema.chain.c.policy_id == record.id)).all()
            warnings = drift_warnings(connection, version.rules, record.segments)
            use = None if version.overall is None else read_overall_use(connection, record.chain).at(now())
            imports = read_imports(connection, record.chain)
            versions = read_version_records(connection, record)
        counts = {
            row.segment: with_open_loans(Counts(*row[6:12]), decode_open_loans(row.open_loans), shown) for row in chains
        }
        counts = with_borrowed(version.model, counts)
        imported = {row.segment: row.imported for row in chains}
        warnings += beyond_table_warnings(version.rules, counts)
        until = time.monotonic() + VALUES_SECONDS
        return PolicyView(
            name=name,
            created_at=iso_time(record.created_at),
            versions=versions,
            version=shown,
            state=record.states[shown],
            specification=version.specification,
            segments=[
                self._segment(version, segment, counts[segment], imported[segment], until, use)
                for segment in version.rules
            ],
            warnings=warnings,
            overall=None if use is None else capacity_view(version, use),
            imports=[one.view() for one in imports.values()],
            fairness=fairness_view(version.fairness),
        )

    def model(self, name: str, number: int | None = None) -> ModelAnswer:
        """Return what the model with features of the given version, or of the active one, knows now.

        A version that does not learn answers with the state that was stored last, or from which it would start.
        """
        with self.store.read() as connection:
            record, version = self._version(connection, name, number)
            shown, model = version.number, version.feature_model
            if model is None:
                raise Conflict(
                    f"version {shown} of {name!r} does not decide by features, so it has no model to download",
                    code="no_feature_model",
                )
            at, state = state_now(connection, record, shown, model, self.registry.model_states.get(record.id))
        return ModelAnswer(name, shown, at, state.digest(), b64encode(state.rule.state()).decode())

    def report(self, name: str, number: int | None = None) -> ModelReport:
        """Return how the given version, the active one, or else the newest does, over its latest decisions.

        A report is cached until an event is added to a chain of the policy.
        """
        with self.store.read() as connection:
            record, version = self._version(connection, name, number)
            known = self.registry.model_states.get(record.id)
            return self._reports.of(
                (record.id, version.number),
                _state_of(connection, record),
                lambda: read_model_report(connection, record, version, known),
            )

    def monitoring(self, name: str, number: int | None = None, *, recent: bool = False) -> MonitoringReport:
        """Return how the given version, the active one, or else the newest does, compared with what it expected.

        A report is cached until an event is added to a chain of the policy, for at most an hour. With ``recent``, one
        of the last ten minutes is good enough.
        """
        with self.store.read() as connection:
            record, version = self._version(connection, name, number)
            known, at = self.registry.model_states.get(record.id), now()
            state: object = (record.revision, at // RECENT) if recent else (_state_of(connection, record), at // HOUR)
            return (self._recent if recent else self._monitoring).of(
                (record.id, version.number),
                state,
                lambda: read_monitoring(connection, record, version, known, at),
            )

    def rejections(self, name: str) -> RejectionsAnswer:
        """Return how good the rejections of a policy are, under the active version or else the newest.

        The answer is cached until an event is added to a chain of the policy.
        """
        with self.store.read() as connection:
            record, version = self._version(connection, name, None)
            return self._rejections.of(
                (record.id, version.number),
                _state_of(connection, record),
                lambda: read_rejections(connection, record, version),
            )

    def shadows(self, name: str) -> ShadowsAnswer:
        """Return each shadow version of a policy, compared with the active one."""
        with self.store.read() as connection:
            return ShadowsAnswer(name, compare_shadows(connection, self.registry.load(connection, name)))

    def rollout(self, name: str) -> RolloutAnswer:
        """Return the version of a policy that is rolled out, compared with the active one.

        A comparison is cached until an event is added to a chain of the policy.
        """
        with self.store.read() as connection:
            record = self.registry.load(connection, name)
            if record.rollout is None:
                return RolloutAnswer(name, None)
            return self._rollouts.of(
                (record.id, record.rollout.number),
                _state_of(connection, record),
                lambda: RolloutAnswer(name, compare_rollout(connection, record)),
            )

    def referrals(self, name: str | None, after: str | None, size: int, order: QueueOrder = "oldest") -> ReferralsPage:
        """Return the cases of one policy, or of all, that wait for a person."""
        names = [name] if name is not None else [entry.name for entry in self.policies().policies]
        with self.store.read() as connection:
            records = [self.registry.load(connection, each) for each in names]
            return read_referrals(connection, self.registry, records, after, size, order)

    def reviews(self, name: str) -> ReviewReport:
        """Return how people decided the referred cases of a policy, and who was right."""
        with self.store.read() as connection:
            return read_review_report(connection, self.registry, self.registry.load(connection, name))

    def _version(self, connection: Connection, name: str, number: int | None) -> tuple[PolicyRecord, Version]:
        """Return a policy, and the given version, the active one, or else the newest."""
        record = self.registry.load(connection, name)
        shown = number or (record.active.number if record.active else max(record.states))
        if shown not in record.states:
            detail = f"the policy {name!r} has no version {shown}"
            raise NotFound(detail, code="unknown_version", field="version")
        return record, self.registry.version(connection, record.id, shown)

    def decision(self, identity: str) -> DecisionView:
        """Return a decision with its grounds, the value of continuing, and what would have changed it."""
        with self.store.read() as connection:
            row = connection.execute(select(schema.decision).where(schema.decision.c.id == identity)).one_or_none()
            if row is None:
                raise unknown_decision(identity)
            chain = connection.execute(
                select(schema.chain.c.policy_id, schema.chain.c.segment).where(schema.chain.c.id == row.chain_id)
            ).one()
            name = self.registry.name_of(connection, chain.policy_id)
            monitored = read_monitored(connection, [identity]).get(identity, NOTHING_MONITORED).values
            first, history, notes = self._history(connection, row.chain_id, row.seq, identity)
            if isinstance(first, Imported):
                started = read_imports(connection, self.registry.load(connection, name).chain)[first.source].started
                source = ImportedFrom(started.number, started.file, started.digest, first.position)
                return _imported_view(row, name, chain.segment, first, history, notes.get(row.seq), source, monitored)
            version = self.registry.version(connection, chain.policy_id, row.version)
            counts, verdict = stated_counts(first), stated_verdict(first)
            own = notes.get(row.seq)
            inputs = None if own is None else own.details
            explained = NOT_EXPLAINED
            if version.feature_model is not None and inputs is not None:
                record = self.registry.load(connection, name)
                known = self.registry.model_states.get(record.id)
                explained = explain_applicant(connection, record, version, first, inputs, known)
        rule = version.rules[chain.segment]
        cost = rule.break_even if first.offer is None else first.offer.cost
        applicant = first.applicant
        if applicant is None:
            value, continuing = rule.table_after(counts).value(counts.good, counts.bad, counts.pending)
            principal = principal_reasons(rule, counts, verdict)
            changes = what_would_change(rule, counts, verdict, first.offers)
        else:
            value, continuing = None, None
            principal = applicant_principal_reasons(rule, applicant, verdict, cost, explained.lowered_by)
            changes = [*explained.changes, *what_would_change_applicant(rule, applicant, verdict, cost)]
        features = None if inputs is None else msgspec.json.decode(inputs)
        return DecisionView(
            id=identity,
            policy=name,
            policy_version=row.version,
            segment=chain.segment,
            decision=choice_of(bool(row.accepted), row.status),
            rule=first.rule,
            reason=_reason_after_overrides(first.reason, history),
            principal_reasons=principal,
            probability=first.probability,
            belief=rule.belief(counts) if applicant is None else applicant_belief(applicant),
            pending=first.pending,
            limit=first.limit,
            threshold=first.threshold,
            cost=cost,
            decided_at=iso_time(first.at),
            warnings=_feature_warnings(version, features or {}),
            offer=offer_answer(first.offer),
            expected_profit=first.expected_profit,
            label_value=first.label_value,
            status=row.status,
            reported=row.reported,
            outcome_at=None if row.outcome_at is None else iso_time(row.outcome_at),
            imported=None,
            profit=realised_profit(row.status, row.amount, row.cost),
            offers=[OfferAnswer(each.amount, each.cost, each.gain, each.loss) for each in first.offers],
            overridden=any(entry.kind == "override" for entry in history),
            value=value,
            value_of_continuing=continuing,
            would_have_changed=changes,
            contributions=explained.contributions,
            contributions_at=explained.at,
            log_odds=explained.log_odds,
            reference_log_odds=explained.reference_log_odds,
            evidence=evidence_words(rule, counts) if applicant is None else evidence_in_words(applicant.n, "outcomes"),
            shadows=[
                ShadowView(
                    shadow.version,
                    shadow.decision,
                    shadow.rule,
                    shadow.threshold,
                    shadow.limit,
                    shadow.probability,
                    offer_answer(shadow.offer),
                    shadow.expected_profit,
                    shadow.segment,
                )
                for shadow in first.shadows
            ],
            reference=None if own is None else own.reference,
            features=features,
            monitored=monitored,
            erased=first.personal is not None and own is None,
            history=history,
            again=first.again,
            replaced_by=next((entry.decision for entry in history[1:] if entry.kind == "decision"), None),
        )

    def waiting(self, name: str, after: str | None, size: int) -> WaitingPage:
        """Return the individuals that wait for a place, longest first, and whether each would be accepted now."""
        decisions, events, personal = schema.decision, schema.event, schema.personal
        with self.store.read() as connection:
            record = self.registry.load(connection, name)
            where = (decisions.c.status == schema.WAITING) & decisions.c.chain_id.in_(list(record.segments.values()))
            if after is not None:
                where &= decisions.c.id > after
            at = (events.c.chain_id == decisions.c.chain_id) & (events.c.seq == decisions.c.seq)
            beside = (personal.c.chain_id == decisions.c.chain_id) & (personal.c.seq == decisions.c.seq)
            columns = (decisions.c.id, decisions.c.chain_id, decisions.c.at, events.c.body, personal.c.reference)
            joined = select(*columns).join_from(decisions, events, at).outerjoin(personal, beside)
            rows = connection.execute(joined.where(where).order_by(decisions.c.id).limit(size + 1)).all()
            chains = connection.execute(select(schema.chain).where(schema.chain.c.policy_id == record.id)).all()
            version = record.active
            limited = version is not None and version.overall is not None
            use = read_overall_use(connection, record.chain).at(now()) if limited else None
        by_chain = {row.id: row for row in chains}
        waiting = []
        for row in rows[:size]:
            chain, first = by_chain[row.chain_id], read(row.body)
            assert isinstance(first, Decided)
            rule = None if version is None else version.rules.get(chain.segment)
            accepts: bool | None = False
            if version is not None and version.feature_model is not None:
                accepts = None  # it depends on the applicant's features and on who is pending
            elif rule is not None and (first.offers or not rule.needs_offer):
                counts = Counts(*chain[6:12])
                counts = with_open_loans(counts, decode_open_loans(chain.open_loans), version.number if version else 0)
                accepts = rule.decide(counts, 1.0, first.offers, use).decision == "accept"
            offer = offer_answer(first.offer)
            since = iso_time(row.at)
            waiting.append(WaitingEntry(row.id, chain.segment, first.rule, since, accepts, offer, row.reference))
        return WaitingPage(waiting, waiting[-1].id if len(rows) > size else None)

    def page(self, filters: Filters, after: str | None, size: int, newest: bool = False) -> DecisionsPage:
        """Return a page of decisions, oldest first or newest first."""
        with self.store.read() as connection:
            rows = self.rows(connection, filters, after, size + 1, newest)
            names = self.chain_names(connection, [row.chain_id for row in rows])
        entries = [self.entry(row, names) for row in rows[:size]]
        return DecisionsPage(entries, entries[-1].id if len(rows) > size else None)

    def _segment(
        self, version: Version, name: str, counts: Counts, imported: int, until: float, use: OverallUse | None
    ) -> SegmentView:
        rule = version.rules[name]
        values = time.monotonic() < until  # later segments show no value if the time is over
        verdict = rule.decide(counts, 1.0, use=use)
        return SegmentView(
            name=name,
            share=rule.share,
            belief=rule.belief(counts),
            evidence=evidence_words(rule, counts),
            arrivals=counts.arrivals,
            accepted=counts.accepted,
            pending=counts.pending,
            imported=imported,
            accepts=verdict.decision == "accept",
            threshold=verdict.threshold,
            limit=verdict.limit,
            cost=rule.break_even,
            volume=rule.table_after(counts).volume,
            volume_to_start=_volume_to_start(rule.table) if values else None,
            value=rule.table_after(counts).value(counts.good, counts.bad, counts.pending)[0] if values else None,
            proved=rule.table.proved,
            certificate=rule.table.statement,
            **_about_offers(rule, counts),
        )

    def _history(
        self, connection: Connection, chain: int, seq: int, identity: str
    ) -> tuple[Decided | Imported, list[HistoryEntry], dict[int, Any]]:
        events = schema.event
        own = (events.c.chain_id == chain) & (events.c.seq == seq)
        # Without a condition on the chain, for which SQLite would read the whole chain instead of the index.
        later = connection.execute(select(events).where(events.c.about == identity)).all()
        rows = [
            connection.execute(select(events).where(own)).one(),
            *sorted((row for row in later if row.chain_id == chain), key=lambda row: int(row.seq)),
        ]
        personal = schema.personal
        where = (personal.c.chain_id == chain) & personal.c.seq.in_([row.seq for row in rows])
        notes = {row.seq: row for row in connection.execute(select(personal).where(where))}
        first = read(rows[0].body)
        assert isinstance(first, Decided | Imported)
        history = []
        for row in rows:
            event = read(row.body)
            entry = HistoryEntry(
                kind=event.__struct_config__.tag,  # type: ignore[arg-type]
                at=iso_time(event.at),
                actor=event.actor,
                sequence=row.seq,
                hash=row.hash,
            )
            if isinstance(event, Observed | Corrected):
                dated = None if event.outcome_at is None else iso_time(event.outcome_at)
                entry = msgspec.structs.replace(entry, outcome=event.outcome, own_date=dated)
            elif isinstance(event, StatusReported):
                dated = None if event.status_at is None else iso_time(event.status_at)
                entry = msgspec.structs.replace(entry, outcome=event.status, own_date=dated)
            elif isinstance(event, Imported):
                known = event.reported or (None if event.status == "rejected" else event.status)
                dated = iso_time(event.decided_at)
                entry = msgspec.structs.replace(entry, choice=event.decision, outcome=known, own_date=dated)
            elif isinstance(event, Overridden):
                note = notes.get(row.seq)
                reason = None if note is None else note.details
                kind = "review" if event.review else entry.kind
                entry = msgspec.structs.replace(entry, kind=kind, choice=event.choice, by=event.by, reason=reason)
            elif isinstance(event, Decided):
                entry = msgspec.structs.replace(entry, choice=event.decision, decision=event.id)
            elif isinstance(event, Erased):
                notes.pop(seq, None)
            history.append(entry)
        return first, history, notes

    def rows(
        self, connection: Connection, filters: Filters, after: str | None, size: int, newest: bool = False
    ) -> list[Any]:
        """Return one page of decisions as stored."""
        table = schema.decision
        query = self.matching(connection, filters)
        if after is not None:
            query = query.where(table.c.id < after if newest else table.c.id > after)
        return list(connection.execute(query.order_by(table.c.id.desc() if newest else table.c.id).limit(size)).all())

    def matching(self, connection: Connection, filters: Filters) -> Select[Any]:
        """Return the statement that selects the matching decisions."""
        table = schema.decision
        where: list[ColumnElement[bool]] = []
        chains = self._chains(connection, filters)
        ids = None if filters.reference is None else few(connection, filters.reference)
        if ids is not None:  # by id only: with a condition on chains too, SQLite would scan whole chains
            where.append(table.c.id.in_([match.decision for match in ids if chains is None or match.chain in chains]))
        elif chains is not None:
            where.append(table.c.chain_id.in_(chains))
        if ids is None and filters.reference is not None:
            where.append(under(filters.reference))
        if filters.decision is not None:
            left = table.c.status.in_((schema.REFERRED, schema.LAPSED))  # to a person, who has not decided
            if filters.decision == "refer":
                where.append(left)
            else:
                where.append(table.c.accepted == (1 if filters.decision == "accept" else 0))
            if filters.decision == "reject":
                where.append(~left)
        if filters.status is not None:
            where.append(table.c.status == filters.status)
            if filters.reference is None:
                where += self._days_with(connection, filters.status, chains)
        if filters.since is not None:
            where.append(table.c.at >= filters.since)
            where.append(table.c.id >= f"{max(filters.since // 1000 - 1, 0):012x}"[:8])
        if filters.until is not None:
            where.append(table.c.at < filters.until)
        return select(table).where(*where)

    def _days_with(self, connection: Connection, status: str, chains: list[int] | None) -> list[ColumnElement[bool]]:
        """Return conditions that a status implies by the daily totals: the days on which a decision has it.

        Without them a search for a rare status would read all decisions.
        """
        totals, table = schema.daily_total, schema.decision
        query = select(func.min(totals.c.day), func.max(totals.c.day)).where(
            totals.c.status == status, totals.c.number > 0
        )
        if chains is not None:
            query = query.where(totals.c.chain_id.in_(chains))
        first, last = connection.execute(query).one()
        if first is None:
            return [false()]
        # An id is never earlier than the time of its decision, but may be later.
        return [table.c.id >= first_id(first * DAY), table.c.at < (last + 1) * DAY]

    def _chains(self, connection: Connection, filters: Filters) -> list[int] | None:
        """Return the chains of the policy and segment in the filters, or None if neither is given."""
        if filters.policy is not None:
            segments = self.registry.load(connection, filters.policy).segments
            return [chain for segment, chain in segments.items() if filters.segment in (None, segment)]
        if filters.segment is None:
            return None
        table = schema.chain
        return list(connection.scalars(select(table.c.id).where(table.c.segment == filters.segment)))

    def chain_names(self, connection: Connection, chains: list[int]) -> dict[int, tuple[int, str, str]]:
        """Return the policy (id and name) and the segment of each chain."""
        wanted = list(set(chains))
        table = schema.chain
        rows = connection.execute(select(table.c.id, table.c.policy_id, table.c.segment).where(table.c.id.in_(wanted)))
        return {
            row.id: (row.policy_id, self.registry.name_of(connection, row.policy_id), row.segment) for row in rows.all()
        }

    def entry(self, row: Any, names: dict[int, tuple[int, str, str]]) -> DecisionEntry:
        """Return a decision as an entry of a list."""
        _, policy, segment = names[row.chain_id]
        return DecisionEntry(
            id=row.id,
            policy=policy,
            policy_version=row.version,
            segment=segment,
            decision=choice_of(bool(row.accepted), row.status),
            status=row.status,
            decided_at=iso_time(row.at),
            reported=row.reported,
            imported=row.source is not None,
        )


def _state_of(connection: Connection, record: PolicyRecord) -> tuple[Any, ...]:
    """Return what changes whenever an event is added to a chain of a policy."""
    table = schema.chain
    lengths = select(table.c.id, table.c.length).where(table.c.policy_id == record.id).order_by(table.c.id)
    return record.revision, tuple(connection.execute(lengths).all())


def capacity_view(version: Version, use: OverallUse) -> CapacityView:
    """Return the limits of a version over all segments, and what is used of them."""
    limits, price = version.overall, version.capacity
    assert limits is not None
    capacity = limits.capacity
    return CapacityView(
        period=None if capacity is None else period_name(capacity.per, use.month),
        limit=None if capacity is None else capacity.limit,
        used=None if capacity is None else use.used(capacity),
        price=None if price is None else price.price,
        bound=None if price is None else price.bound,
        unlimited=None if price is None else price.unlimited,
        exposure_cap=limits.cap,
        exposure_cap_amount=limits.cap_amount,
        pending=use.pending,
        at_risk=use.at_risk,
    )


def _imported_view(
    row: Any,
    policy: str,
    segment: str,
    event: Imported,
    history: list[HistoryEntry],
    personal: Any,
    source: ImportedFrom,
    monitored: dict[str, str],
) -> DecisionView:
    """Return the view of an imported decision."""
    reason = imported_reason(event)
    return DecisionView(
        id=row.id,
        policy=policy,
        policy_version=row.version,
        segment=segment,
        decision=choice_of(bool(row.accepted), row.status),
        rule="imported",
        reason=_reason_after_overrides(reason, history),
        principal_reasons=[],
        probability=None,
        belief=None,
        pending=event.pending,
        limit=None,
        threshold=None,
        cost=None if event.offer is None else event.offer.cost,
        decided_at=iso_time(row.at),
        warnings=[],
        offer=offer_answer(event.offer),
        expected_profit=None,
        label_value=None,
        status=row.status,
        reported=row.reported,
        outcome_at=None if row.outcome_at is None else iso_time(row.outcome_at),
        imported=source,
        profit=realised_profit(row.status, row.amount, row.cost),
        offers=[],
        overridden=any(entry.kind == "override" for entry in history),
        value=None,
        value_of_continuing=None,
        would_have_changed=[],
        contributions=[],
        contributions_at=None,
        log_odds=None,
        reference_log_odds=None,
        evidence=None,
        shadows=[],
        reference=None if personal is None else personal.reference,
        features=None if personal is None or personal.details is None else msgspec.json.decode(personal.details),
        monitored=monitored,
        erased=event.personal is not None and personal is None,
        history=history,
        again=None,
        replaced_by=None,
    )


def _about_offers(rule: SegmentRule, counts: Counts) -> dict[str, Any]:
    """Return the fields of a segment that are about its offers, null if all have one cost."""
    table = rule.table_after(counts)
    if not isinstance(table, OfferTable) or table.offers is None:
        return dict.fromkeys(("label_value", "largest_amount", "share_accepted", "at_risk"))
    label, largest = rule.label(counts), rule.largest_amount(table.cost, counts)
    return {
        "label_value": label.bounds,
        "largest_amount": largest if math.isfinite(largest) else None,
        "share_accepted": table.share_accepted(counts.good, counts.bad, counts.pending),
        "at_risk": counts.at_risk,
    }


def _feature_warnings(version: Version, features: dict[str, Any]) -> list[str]:
    """Return a warning for each value of a feature that the version does not know."""
    if version.feature_model is not None:
        return version.feature_model.warnings(features)
    return unknown_value_warnings(version.specification.features, features)


def _volume_to_start(table: SolvedTable) -> float | None:
    """Return the discounted volume at which a first acceptance pays, to a part in a thousand."""
    from lenience.segments.starting import starting_volume

    if table.volume is None or isinstance(table, OfferTable):
        return None
    needed = starting_volume(table.prior, table.cost, 1e-3).midpoint
    return needed if math.isfinite(needed) else None


def _reason_after_overrides(reason: str, history: list[HistoryEntry]) -> str:
    """Return the reason as given, preceded by the latest override."""
    last = next((entry for entry in reversed(history) if entry.kind in ("override", "review")), None)
    if last is None:
        return reason
    return overruled(reason, last.by or "", last.choice or "", review=last.kind == "review")
