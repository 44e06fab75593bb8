"""Ledger: one transaction's working copy of the chains it has locked, and the rows it will write.

Chains are locked in the order of their ids, so that processes cannot deadlock. They are read once, changed in memory by
one command after the other, and written once at the end, whatever the number of commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, func, select

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.service.domain.chain import link
from lenience.service.domain.clock import DAY, iso_time, now
from lenience.service.domain.events import (
    Decided,
    Decision,
    Erased,
    Event,
    Imported,
    Learned,
    Monitored,
    Overridden,
    ReferralGround,
    SegmentsSeen,
    StateChanged,
    UseChanged,
    decision_of,
    read,
    write,
)
from lenience.service.domain.feature_models import FeatureModel, FeatureState, PendingApplicants
from lenience.service.domain.monitored import NOTHING_MONITORED, MonitoredValues
from lenience.service.domain.open_loans import decode_open_loans, encode_open_loans
from lenience.service.domain.overall import OverallUse, UseChange, month_of
from lenience.service.domain.pooled_models import ModelLabel
from lenience.service.domain.rule import Counts
from lenience.service.domain.segment_counts import SegmentCounts
from lenience.service.domain.shadow_segments import Change, OwnChain, ShadowSegments, segments_of
from lenience.service.domain.state import ChainState, DecisionState, Personal
from lenience.service.storage import schema
from lenience.service.storage.daily_totals import CountedDecision, DailyTotals
from lenience.service.storage.erased_labels import states_after_erased
from lenience.service.storage.expected_applicants import ExpectedCommands
from lenience.service.storage.model_states import SNAPSHOT_EVERY, first_label, read_inputs, read_model_states
from lenience.service.storage.monitored_rows import delete_monitored, monitored_rows, read_monitored
from lenience.service.storage.monitored_totals import MonitoredTotals, delete_empty
from lenience.service.storage.outcome_days import OutcomeDays
from lenience.service.storage.policy_cache import (
    ModelState,
    ModelStates,
    PendingRows,
    PolicyCache,
    PolicyRecord,
    Version,
)
from lenience.service.storage.references import referred
from lenience.service.storage.relearning import (
    RELEARNT,
    Correction,
    checkpoint_before,
    relearn,
    revise,
    spread_out,
    usable_places,
)
from lenience.service.storage.statements import Statement
from lenience.service.storage.store import Store

Item = TypeVar("Item")
AT_A_TIME = 10  # events that are read to find what all segments have used: usually the last one says it
NO_VERSION = 0  # of an imported decision, which no version made
_COUNTS = ("arrivals", "accepted", "pending", "successes", "failures", "at_risk")
_CHAIN = ("revision", "length", "head", *_COUNTS, "imported", "open_loans", "shadow_segments")
_CHANGED = ("status", "accepted", "reported", "outcome_at")
_ANSWER = ("key", "request", "status", "answer")


@dataclass(slots=True)
class Ledger:
    """The working copy. :meth:`flush` writes it."""

    store: Store
    connection: Connection
    registry: PolicyCache
    now: int = field(default_factory=now)
    chains: dict[int, ChainState] = field(default_factory=dict)
    decisions: dict[str, DecisionState] = field(default_factory=dict)
    chain_of: dict[str, int] = field(default_factory=dict)  # by decision
    referred: dict[str, list[str]] = field(default_factory=dict)  # decisions by reference, oldest first
    overall: dict[int, OverallUse] = field(default_factory=dict)  # what all segments use, by the policy's chain
    monitored: dict[str, MonitoredValues] = field(default_factory=dict)  # by decision, as far as they were read or set
    referred_today: dict[int, int] = field(default_factory=dict)  # within the daily capacity, by policy
    models: dict[int, ModelStates] = field(default_factory=dict)  # by policy, with the labels of this transaction
    expected: ExpectedCommands = field(default_factory=ExpectedCommands)
    _model_chains: set[int] = field(default_factory=set)  # policies' chains whose lengths are read with the locks
    _model_lengths: dict[int, int] = field(default_factory=dict)  # of these chains
    _segments_seen: set[int] = field(default_factory=set)  # chains for which the segments' own chains were read
    _locked_models: set[int] = field(default_factory=set)  # policies whose models no other process can change
    _snapshots: list[tuple[Any, ...]] = field(default_factory=list)
    _inputs: dict[str, str] = field(default_factory=dict)  # features of the decisions of this transaction
    _locked_lengths: dict[int, int] = field(default_factory=dict)  # of the chains when they were locked
    _pending_changes: dict[int, list[tuple[str, bool]]] = field(default_factory=dict)  # by chain: who came or went
    _pending_rows: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)  # by chain and version
    _feature_versions: dict[tuple[int, int], Version] = field(default_factory=dict)
    _time: str = ""
    _events: list[tuple[Any, ...]] = field(default_factory=list)
    _decisions: list[tuple[Any, ...]] = field(default_factory=list)
    _personal: list[tuple[Any, ...]] = field(default_factory=list)
    _referrals: list[tuple[Any, ...]] = field(default_factory=list)
    _idempotency: list[tuple[Any, ...]] = field(default_factory=list)
    _erased: list[tuple[DecisionState, int]] = field(default_factory=list)
    _monitored: dict[str, int] = field(default_factory=dict)  # the chain of each decision whose attributes changed
    _stored_monitored: set[str] = field(default_factory=set)  # decisions that had attributes before
    _daily: DailyTotals = field(default_factory=DailyTotals)  # changes of the totals by this transaction
    _outcome_days: OutcomeDays = field(default_factory=OutcomeDays)
    _made: dict[str, CountedDecision] = field(default_factory=dict)  # decisions of this transaction
    _before: dict[str, CountedDecision] = field(default_factory=dict)  # decisions that were read, as they were
    _attributes: dict[str, dict[str, str]] = field(default_factory=dict)  # of the decisions that were read

    @property
    def time(self) -> str:
        """The time of this transaction as ISO 8601."""
        if not self._time:
            self._time = iso_time(self.now)
        return self._time

    def lock(self, ids: Iterable[int]) -> None:
        """Lock chains and read them."""
        wanted = sorted(set(ids) - self.chains.keys())
        if wanted:
            (rows,) = self.store.run(self.connection, [self.store.statements.lock(schema.chain, wanted)])
            self._hold_chains(rows)

    def lock_and_read(
        self,
        chains: Iterable[int],
        decisions: Iterable[str],
        keys: Iterable[str],
        waiting: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Lock chains, then read decisions of theirs and the answers stored under keys, in one round trip.

        Return the rows of the answers. ``waiting`` is called if another process holds a chain.
        """
        statements, locked = self.store.statements, sorted(set(chains) - self.chains.keys())
        locks = [statements.lock(schema.chain, locked)] if locked else []
        reads, attributes = self._decision_statements(decisions)
        lengths = statements.select(schema.chain, ("id", "length"), "id", list(self._model_chains))
        answers = statements.select(schema.idempotency, _ANSWER, "key", list(set(keys)))
        together = [*locks, *reads, *attributes, *lengths, *answers]
        results = iter(self.store.run(self.connection, together, waiting=waiting))
        for rows in islice(results, len(locks)):
            self._hold_chains(rows)
        for rows in islice(results, len(reads)):
            self._hold_decisions(rows)
        for rows in islice(results, len(attributes)):
            self._hold_attributes(rows)
        for rows in islice(results, len(lengths)):
            self._model_lengths.update((row[0], row[1]) for row in rows)
        return [row for rows in results for row in rows]

    def find(self, decisions: Iterable[str], waiting: Callable[[], None] | None = None) -> None:
        """Find the chains of decisions. A decision never changes its chain, so no lock is needed."""
        wanted = list(set(decisions) - self.chain_of.keys())
        statements = self.store.statements.select(schema.decision, ("id", "chain_id"), "id", wanted)
        for rows in self.store.run(self.connection, statements, waiting=waiting):
            self.chain_of.update((row[0], row[1]) for row in rows)

    def read_decisions(self, ids: Iterable[str]) -> None:
        """Read decisions whose chains are locked."""
        reads, attributes = self._decision_statements(ids)
        results = iter(self.store.run(self.connection, [*reads, *attributes]))
        for rows in islice(results, len(reads)):
            self._hold_decisions(rows)
        for rows in results:
            self._hold_attributes(rows)

    def _decision_statements(self, ids: Iterable[str]) -> tuple[list[Statement], list[Statement]]:
        """Return the statements that read decisions, and those that read their monitored attributes for the totals."""
        wanted = list(set(ids) - self.decisions.keys())
        select = self.store.statements.select
        return (
            select(schema.decision, (), "id", wanted),
            select(schema.monitored, ("decision", "name", "value"), "decision", wanted),
        )

    def _hold_attributes(self, rows: Sequence[Any]) -> None:
        for decision, name, value in rows:
            self._attributes.setdefault(decision, {})[name] = value

    def _hold_chains(self, rows: Sequence[Any]) -> None:
        for row in rows:
            place = (row[0], row[1], row[2], row[3], row[4], row[5])
            loans = decode_open_loans(row[13])
            self._locked_lengths[row[0]] = row[4]
            self.chains[row[0]] = ChainState(
                *place,
                counts=Counts(*row[6:12]),
                imported=row[12],
                open_loans=loans,
                shadow_segments=ShadowSegments.decode(row[15]),
            )

    def _hold_decisions(self, rows: Sequence[Any]) -> None:
        for row in rows:
            self.decisions[row[0]] = DecisionState(
                *(row[0], row[1], row[2], row[3], row[4], bool(row[5]), row[6]),
                amount=row[7],
                cost=row[8],
                source=row[9],
                reported=row[10],
                outcome_at=row[11],
            )
            self._before[row[0]] = CountedDecision(row[1], row[3], row[4], bool(row[5]), row[6], row[7], row[8])

    def find_references(self, references: Iterable[str]) -> None:
        """Find the decisions with these references, and their chains."""
        wanted = list(set(references) - self.referred.keys())
        for some in _parts(wanted):
            self.referred.update((reference, []) for reference in some)
            for reference, decision, chain in referred(self.connection, some):
                self.referred[reference].append(decision)
                self.chain_of[decision] = chain
        for reference in wanted:
            self.referred[reference].sort()

    def append(self, chain: ChainState, event: Event) -> int:
        """Append an event to a locked chain and return its sequence number."""
        text = write(event)
        chain.head = head = link(chain.head, text)
        chain.length = seq = chain.length + 1
        chain.changed = True
        self._events.append((chain.id, seq, text, head, decision_of(event)))
        return seq

    def see_segments(self, record: PolicyRecord, chain: ChainState, actor: str) -> None:
        """Log what has changed in the segments' own chains, once in a transaction.

        Versions by segments in shadow of a decision by features count those chains too.
        """
        if chain.id in self._segments_seen:
            return
        self._segments_seen.add(chain.id)
        if chain.shadow_segments is None:
            chain.shadow_segments = ShadowSegments()
        names = ("id", "segment", "length", *_COUNTS)
        statements = self.store.statements.select(schema.chain, names, "policy_id", [record.id])
        rows = [row for part in self.store.run(self.connection, statements) for row in part]
        own = ((row[1], OwnChain(row[2], SegmentCounts(*row[3:]))) for row in rows if row[1] and row[0] != chain.id)
        changed = chain.shadow_segments.read_chains(sorted(own))
        if changed:
            chains = tuple((name, length, counts) for name, (length, counts) in changed)
            self.append(chain, SegmentsSeen(at=self.now, actor=actor, chains=chains))

    def count_shadow_segments(self, chain: ChainState, decision: int, change: Change) -> None:
        """Count an event about the decision at a place of a chain, for versions by segments in shadow."""
        if chain.shadow_segments is None:
            return
        new = [text for of, seq, text, _, _ in self._events if (of, seq) == (chain.id, decision)]
        if not new:
            events = schema.event
            query = select(events.c.body).where((events.c.chain_id == chain.id) & (events.c.seq == decision))
            new = list(self.connection.execute(query).scalars())
        event = read(new[0])
        if isinstance(event, Decided):
            chain.shadow_segments.change(segments_of(event.shadows), change)

    def open_decisions(self, chain: int) -> list[int]:
        """Return the times of the decisions of a locked chain that are pending, also those of this transaction."""
        table = schema.decision
        query = select(table.c.id, table.c.at).where(table.c.chain_id == chain, table.c.status == schema.PENDING)
        pending: dict[str, int] = {row[0]: row[1] for row in self.connection.execute(query)}
        pending.update((row[0], row[4]) for row in self._decisions if row[1] == chain and row[6] == schema.PENDING)
        for state in self.decisions.values():
            if state.chain == chain and state.changed:
                pending.pop(state.id, None)
                if state.status == schema.PENDING:
                    pending[state.id] = state.at
        return list(pending.values())

    def known_outcomes(self, chain: int) -> Counter[tuple[int, bool]]:
        """Return the number of known outcomes of a locked chain, by the day of the decision and whether they succeeded.

        Those of this transaction count too.
        """
        table, outcomes = schema.decision, (schema.SUCCESS, schema.FAILURE)
        changed = {state.id: state for state in self.decisions.values() if state.chain == chain and state.changed}
        day = (table.c.at // DAY).label("day")
        where = (table.c.chain_id == chain) & table.c.status.in_(outcomes)
        query = select(day, table.c.status, func.count()).where(where).group_by(day, table.c.status)
        known: Counter[tuple[int, bool]] = Counter()
        for at, status, number in self.connection.execute(query):
            known[int(at), status == schema.SUCCESS] += number
        for some in _parts(list(changed)):
            stored = select(day, table.c.status).where(where & table.c.id.in_(some))
            for at, status in self.connection.execute(stored):
                known[int(at), status == schema.SUCCESS] -= 1
        for row in self._decisions:
            if row[1] == chain and row[6] in outcomes and row[0] not in changed:
                known[row[4] // DAY, row[6] == schema.SUCCESS] += 1
        for state in changed.values():
            if state.status in outcomes:
                known[state.at // DAY, state.status == schema.SUCCESS] += 1
        return known

    def unwritten(self, chain: int) -> Iterator[Event]:
        """Yield the events that commands of this transaction have appended to a chain."""
        return (read(text) for own, _, text, _, _ in self._events if own == chain)

    def add_decision(
        self, identity: str, chain: int, seq: int, version: int, decision: Decision, offer: Offer | None = None
    ) -> None:
        """Add the row of a new decision, which no other command of this transaction can refer to."""
        status, accepted = schema.NEW_STATUS[decision], int(decision == "accept")
        amount, cost = (None, None) if offer is None else (offer.amount, offer.cost)
        row = (identity, chain, seq, version, self.now, accepted, status, amount, cost, None, None, None)
        self._decisions.append(row)
        made = self._made[identity] = CountedDecision(chain, version, self.now, accepted == 1, status, amount, cost)
        self._daily.count(made)

    def add_referral(self, chain: ChainState, decision: str, ground: ReferralGround) -> None:
        """Add the row of a decision that is left to a person."""
        self._referrals.append((decision, chain.id, chain.policy_id, self.now, ground.by, ground.would, ground.worth))

    def add_imported(self, event: Imported, chain: int, seq: int, reference: str | None) -> None:
        """Add the row of an imported decision. Later commands of this transaction find it by id and by reference."""
        amount, cost = (None, None) if event.offer is None else (event.offer.amount, event.offer.cost)
        accepted = int(event.decision == "accept")
        place = (event.id, chain, seq, NO_VERSION, event.decided_at, accepted, event.status)
        self._decisions.append((*place, amount, cost, event.source, event.reported, event.outcome_at))
        self.chain_of[event.id] = chain
        self.decisions[event.id] = DecisionState(
            *(event.id, chain, seq, NO_VERSION, event.decided_at, accepted == 1, event.status),
            amount=amount,
            cost=cost,
            source=event.source,
            reported=event.reported,
            outcome_at=event.outcome_at,
        )
        made = CountedDecision(chain, NO_VERSION, event.decided_at, accepted == 1, event.status, amount, cost)
        self._made[event.id] = made
        self._daily.count(made)
        if reference is not None and reference in self.referred:
            self.referred[reference].append(event.id)

    def add_personal(self, chain: int, seq: int, data: Personal, decision: str | None = None) -> None:
        """Store personal data beside the log, at the position of the event that commits to it."""
        if decision is not None and data.details is not None:
            self._inputs[decision] = data.details
        self._personal.append((chain, seq, *data))

    def read_monitored(self, decisions: Iterable[str]) -> None:
        """Read the monitored attributes of decisions. The chain that commits to them is locked."""
        wanted = list(set(decisions) - self.monitored.keys())
        for part in _parts(wanted):
            stored = read_monitored(self.connection, part)
            self._stored_monitored.update(stored)
            self.monitored.update((decision, stored.get(decision, NOTHING_MONITORED)) for decision in part)

    def set_monitored(
        self, chain: ChainState, actor: str, decision: str, values: dict[str, str], receipt: str | None = None
    ) -> int:
        """Log and store all monitored attributes of a decision, and return the event's sequence number."""
        data = MonitoredValues.of(values)
        event = Monitored(
            at=self.now,
            actor=actor,
            decision=decision,
            names=tuple(data.values),
            personal=data.commitment,
            receipt=receipt,
        )
        self.monitored[decision], self._monitored[decision] = data, chain.id
        return self.append(chain, event)

    def erase_monitored(self, chain: ChainState, actor: str, decision: str) -> None:
        """Erase the monitored attributes of a decision, if it has any."""
        self.read_monitored([decision])
        if self.monitored[decision].values:
            self.append(chain, Erased(at=self.now, actor=actor, decision=decision))
            self.monitored[decision], self._monitored[decision] = NOTHING_MONITORED, chain.id

    def overall_use(self, chain: ChainState) -> OverallUse:
        """Return what all segments of a policy have used and have open now, by its own locked chain."""
        if chain.id not in self.overall:
            self.overall[chain.id] = read_overall_use(self.connection, chain.id)
        return self.overall[chain.id].at(self.now)

    def change_use(self, chain: ChainState, actor: str, decision: str, change: UseChange) -> None:
        """Log a change of what all segments of a policy have used and have open."""
        after = self.overall_use(chain).after(self.now, change)
        self.append(chain, UseChanged(at=self.now, actor=actor, decision=decision, change=change, after=after))
        self.overall[chain.id] = after

    def load_policy(self, name: str) -> PolicyRecord:
        """Load the state of a policy, as this transaction sees it: also after it has changed the state itself."""
        record = self.registry.load(self.connection, name)
        own = self.chains.get(record.chain)
        if own is not None:  # its row is written at the end of the transaction
            record.revision = own.revision
        return record

    def expect_models(self, record: PolicyRecord) -> None:
        """Read with the locks whether the models of a policy have learnt since the last transaction."""
        if record.learning:
            self._model_chains.add(record.chain)

    def model_states(self, record: PolicyRecord) -> ModelStates:
        """Return the states of the models of a policy: those now committed, with the labels of this transaction."""
        known = self.models.get(record.id)
        if known is None or known.revision != record.revision:
            cached, length = self.registry.model_states.get(record.id), self._model_lengths.get(record.chain)
            if cached is None or cached.revision != record.revision or cached.at != length:
                cached = read_model_states(self.connection, record, cached)
            known = self.models[record.id] = cached
        return known

    def label_of(self, record: PolicyRecord, state: DecisionState, segment: str, good: int, bad: int) -> ModelLabel:
        """Return what the models of a policy learn from a change of a decision's outcome."""
        label = ModelLabel(segment, good, bad)
        if not record.by_features:
            return label
        inputs, learnt_at = self.inputs_of(state.id), None
        if label.is_correction and inputs is not None:
            own = (
                (seq, read(text)) for of, seq, text, _, about in self._events if (of, about) == (record.chain, state.id)
            )
            new = [seq for seq, event in own if isinstance(event, Learned) and not event.is_correction]
            learnt_at = new[0] if new else first_label(self.connection, record.chain, state.id)
        return label._replace(inputs=inputs, learnt_at=learnt_at)

    def inputs_of(self, decision: str) -> str | None:
        """Return the stored features of a decision, or None if it has none or they were erased."""
        if any(state.id == decision for state, _ in self._erased):
            return None
        return self._inputs.get(decision) or read_inputs(self.connection, decision)

    def note_pending(self, chain: int, decision: str, *, pending: bool) -> None:
        """Note that a decision of a chain has become pending, or is no longer pending or known by its features."""
        self._pending_changes.setdefault(chain, []).append((decision, pending))
        for (of, number), rows in self._pending_rows.items():
            if of == chain:
                self._change_row(rows, self._feature_versions[of, number], decision, pending=pending)

    def _change_row(self, rows: dict[str, Any], version: Version, decision: str, *, pending: bool) -> None:
        if not pending:
            rows.pop(decision, None)
            return
        inputs = self.inputs_of(decision)
        if inputs is not None:
            assert version.feature_model is not None
            with suppress(InputError):  # features of a time when the policy had other columns
                rows[decision] = version.feature_model.row(inputs)

    def pending_rows(self, chain: ChainState, version: Version) -> PendingApplicants:
        """Return the rows of the pending applicants of a locked chain whose features are known, oldest first."""
        key = (chain.id, version.number)
        rows = self._pending_rows.get(key)
        if rows is None:
            self._feature_versions[key] = version
            cached = self.registry.pending_rows.get(key)
            if cached is not None and cached.length == self._locked_lengths[chain.id]:
                rows = dict(cached.rows)
            else:
                rows = {}
                table, personal = schema.decision, schema.personal
                place = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
                query = (
                    select(table.c.id, personal.c.details)
                    .join(personal, place)
                    .where(
                        (table.c.chain_id == chain.id)
                        & (table.c.status == schema.PENDING)
                        & personal.c.details.is_not(None)
                    )
                )
                assert version.feature_model is not None
                for row in self.connection.execute(query.order_by(table.c.id)).all():
                    with suppress(InputError):
                        rows[row.id] = version.feature_model.row(row.details)
            for decision, pending in self._pending_changes.get(chain.id, ()):
                self._change_row(rows, version, decision, pending=pending)
            self._pending_rows[key] = rows
        return PendingApplicants(chain.id, rows)

    def learn(self, record: PolicyRecord, actor: str, decision: str, label: ModelLabel) -> None:
        """Let the models of a policy learn a label, and log their states after it."""
        self.lock([record.chain])
        chain = self.chains[record.chain]
        known = self.model_states(record)
        if record.id not in self._locked_models:  # other processes may have added labels before the lock
            known = read_model_states(self.connection, record, known)
            self._locked_models.add(record.id)
        relearnt, revised = self._relearn(record, known, decision, label) if label.is_correction else ({}, ())
        after = {
            number: relearnt.get(number) or model.learn(known.states[number], label)  # type: ignore[arg-type]
            for number, model in record.learning.items()
        }
        event = Learned(
            at=self.now,
            actor=actor,
            decision=decision,
            segment=label.segment,
            successes=label.successes,
            failures=label.failures,
            states=tuple((number, state.digest()) for number, state in sorted(after.items())),
            relearnt=bool(relearnt),
            revised=revised,
        )
        seq = self.append(chain, event)
        self.models[record.id] = ModelStates(record.revision, seq, after)
        due = seq // SNAPSHOT_EVERY > known.at // SNAPSHOT_EVERY
        for number, state in after.items():
            # Nobody can go on from an earlier state to one that was learnt again, so it is stored.
            if due or number in relearnt:
                by_features = record.learning[number].by_features
                self.add_model_state(record.id, number, seq, state.encode(), kept=by_features)

    def _relearn(
        self, record: PolicyRecord, known: ModelStates, decision: str, label: ModelLabel
    ) -> tuple[dict[int, FeatureState], tuple[tuple[int, int, str], ...]]:
        """Learn again what came after a label that is corrected now. Return nothing if that cannot be.

        Return the new states, and the digests of the stored states that were revised. Only models with features learn
        again, and only those that have learnt the wrong label.
        """
        chain, wrong = self.chains[record.chain], label.learnt_at
        models = {
            number: model
            for number, model in record.learning.items()
            if isinstance(model, FeatureModel) and wrong is not None and wrong > _since(known.states[number])
        }
        if wrong is None or label.inputs is None or not models or chain.length + 1 - wrong > RELEARNT:
            return {}, ()
        self._write_rows()
        erased = {state.id for state, _ in self._erased}
        correction = Correction(decision, label.successes > 0)
        learnt: dict[int, dict[int, FeatureState]] = {}
        places = {number: usable_places(self.connection, record.id, number, wrong) for number in models}
        for number, model in models.items():
            start = checkpoint_before(self.connection, record.id, number, model, wrong)
            if start is None or not model.accepts(label.inputs):
                return {}, ()
            some = spread_out(places[number], SNAPSHOT_EVERY)
            states = relearn(*(self.connection, chain.id, number, model, start, chain.length, some, correction, erased))
            if states is None:
                return {}, ()
            learnt[number] = states
        after, revised = dict[int, FeatureState](), list[tuple[int, int, str]]()
        for number, states in learnt.items():
            after[number] = states[chain.length]
            kept = {place: states[place] for place in spread_out(places[number], SNAPSHOT_EVERY)}
            revise(self.store, self.connection, record.id, number, places[number], kept)
            revised += [(number, place, state.digest()) for place, state in kept.items()]
        return after, tuple(revised)

    def add_model_state(self, policy: int, version: int, seq: int, text: str, *, kept: bool) -> None:
        """Store the state of a version's model after an event of the policy's chain."""
        self._snapshots.append((policy, version, seq, int(kept), text, None))

    def publish(self) -> None:
        """Keep what the next transaction can use. Call it after the commit."""
        self.registry.model_states.update(self.models)
        for key, rows in self._pending_rows.items():
            self.registry.pending_rows[key] = PendingRows(self.chains[key[0]].length, rows)
        for key, cached in list(self.registry.pending_rows.items()):
            chain = self.chains.get(key[0])
            changes = self._pending_changes.get(key[0], [])
            if chain is None or key in self._pending_rows or cached.length != self._locked_lengths[chain.id]:
                continue
            if not any(pending for _, pending in changes):  # who became pending is read again
                for decision, _ in changes:
                    cached.rows.pop(decision, None)
                self.registry.pending_rows[key] = PendingRows(chain.length, cached.rows)

    def charged_month(self, chain: ChainState, decision: str) -> int | None:
        """Return the month that an acceptance was charged to, or None if it was made without such limits."""
        events = schema.event
        query = select(events.c.body).where((events.c.about == decision) & (events.c.chain_id == chain.id))
        texts = [*self.connection.execute(query.order_by(events.c.seq)).scalars()]
        texts += [text for of, _, text, _, about in self._events if of == chain.id and about == decision]
        charged = [event for event in map(read, texts) if isinstance(event, UseChanged) and event.change.accepted]
        return charged[-1].after.month if charged and charged[-1].change.accepted > 0 else None

    def uncounted_acceptances(self, record: PolicyRecord) -> list[tuple[int, float]]:
        """Return the times and losses of acceptances that no limit over all segments has counted.

        They are those of versions without such limits since the last activation of a version with limits.
        """
        openings = self._openings(record.chain)
        counted = openings[-1].lengths if openings else {}
        unlimited = {number for number in record.states if not self._limited(record, number)}
        after = {chain: counted.get(name, 0) for name, chain in record.segments.items()}
        table = schema.decision
        columns = (table.c.id, table.c.chain_id, table.c.seq, table.c.version, table.c.at, table.c.accepted)
        found: dict[str, DecisionState] = {}
        for chain in after:
            query = select(*columns, table.c.status, table.c.amount, table.c.cost).where(
                (table.c.chain_id == chain) & (table.c.accepted == 1) & (table.c.seq > after[chain])
            )
            found.update((row[0], _decision_state(row)) for row in self.connection.execute(query))
        # What commands of this transaction have decided or changed is not in the database yet.
        found.update((row[0], _decision_state(row)) for row in self._decisions)
        found.update((state.id, state) for state in self.decisions.values() if state.changed)
        return [
            (state.at, state.loss)
            for state in found.values()
            if state.accepted and state.version in unlimited and state.seq > after.get(state.chain, state.seq)
        ]

    def _limited(self, record: PolicyRecord, number: int) -> bool:
        """Return whether a version has limits over all segments."""
        return self.registry.version(self.connection, record.id, number).overall is not None

    def opening_month(self, record: PolicyRecord, segment: str, state: DecisionState) -> int | None:
        """Return the month in which an acceptance was counted when a version with limits became active, or None."""
        if state.version == NO_VERSION or self._limited(record, state.version):
            return None
        before = 0
        for opening in self._openings(record.chain):
            until = opening.lengths.get(segment, 0)
            if before < state.seq <= until:
                return month_of(state.at) if opening.counted else None
            before = until
        return None

    def _openings(self, chain: int) -> list[StateChanged]:
        """Return the events of a policy's chain by which versions with limits over all segments became active."""
        events = schema.event
        states = (events.c.chain_id == chain) & events.c.body.startswith('{"kind":"state"')
        texts = [*self.connection.execute(select(events.c.body).where(states).order_by(events.c.seq)).scalars()]
        texts += [text for of, _, text, _, _ in self._events if of == chain]
        changes = [event for event in map(read, texts) if isinstance(event, StateChanged)]
        return [event for event in changes if event.overall is not None]

    def erase_personal(self, state: DecisionState, seq: int) -> None:
        """Erase a decision's personal data up to an event: its own, and the reasons of overrides."""
        self._erased.append((state, seq))
        self.note_pending(state.chain, state.id, pending=False)

    def unerased(self, states: Sequence[DecisionState]) -> list[DecisionState]:
        """Return the decisions whose personal data was not erased, or was added since: by an override, or monitored."""
        written: list[tuple[str, int, str]] = []
        for some in _parts(states):
            query = _about(some, schema.event.c.about, schema.event.c.chain_id, schema.event.c.body)
            written += [(row[0], row[1], row[2]) for row in self.connection.execute(query)]
        # The events of this transaction are not in the database yet.
        own = {state.id: state.chain for state in states}
        written += [(about, chain, text) for chain, _, text, _, about in self._events if about in own]
        events = ((about, read(text)) for about, chain, text in written if chain == own[about])
        last = {about: event for about, event in events if isinstance(event, Erased | Overridden)}
        self.read_monitored(own)
        return [
            state for state in states if not isinstance(last.get(state.id), Erased) or self.monitored[state.id].values
        ]

    def add_answer(self, key: str, request: str, salt: str, chain: int, seq: int, status: int, answer: str) -> None:
        """Store the answer given under an idempotency key."""
        self._idempotency.append((key, request, salt, chain, seq, status, answer, self.now))

    @property
    def erases(self) -> bool:
        """Whether this transaction erases personal data."""
        return bool(self._erased)

    def flush(self, *, commit: bool = False, sent: Callable[[], None] | None = None) -> None:
        """Write everything. The transaction's commit makes it durable.

        Parameters
        ----------
        commit : bool
            Whether nothing follows, so that PostgreSQL can commit in the same round trip.
        sent : callable, optional
            Called when everything is on its way, before the commit.
        """
        store, connection, statements = self.store, self.connection, self.store.statements
        monitored = self._count_changes()
        delete_monitored(connection, [decision for decision in self._monitored if decision in self._stored_monitored])
        attributes = ((decision, chain, self.monitored[decision]) for decision, chain in self._monitored.items())
        writes = [
            *statements.insert(schema.event, self._events),
            *statements.insert(schema.decision, self._decisions),
            *statements.insert(schema.personal, self._personal),
            *statements.insert(schema.referral, self._referrals),
            *statements.insert(schema.monitored, monitored_rows(attributes)),
            *statements.insert(schema.model_state, self._new_snapshots()),
            # Sorted by key, so that two processes with the same keys wait for each other without a deadlock.
            *statements.insert(schema.idempotency, sorted(self._idempotency)),
            *statements.update(schema.chain, "id", _CHAIN, self._changed_chains()),
            *statements.update(schema.decision, "id", _CHANGED, self._changed_decisions()),
            *statements.add(schema.daily_total, self._daily.rows()),
            *statements.add(schema.outcome_day, self._outcome_days.rows()),
            *statements.add(schema.monitored_total, monitored.rows()),
            *statements.add(schema.monitored_day, monitored.day_rows()),
        ]
        if self._erased or self._stored_monitored:
            store.run(connection, writes)
            writes = []
            self._store_erased_states()
            self._delete_erased()
            if self._stored_monitored:
                delete_empty(connection, {chain for chain, _, _ in monitored.cells}, set(self._monitored.values()))
        store.run(connection, writes, commit=commit, sent=sent)

    def _count_changes(self) -> MonitoredTotals:
        """Count in the totals how decisions and monitored attributes have changed.

        Decisions of this transaction are in the daily totals already, with the status in which they were made.
        """
        changed: dict[str, CountedDecision] = {}
        for state in self.decisions.values():
            if state.changed:
                before = self._made.get(state.id) or self._before[state.id]
                if (state.status, state.accepted) != (before.status, before.accepted):
                    after = before._replace(status=state.status, accepted=state.accepted)
                    changed[state.id] = after
                    self._daily.count(before, -1)
                    self._daily.count(after)
                    self._outcome_days.change(self.now, before, after)
        totals = MonitoredTotals()
        if not self._monitored and not any(identity in self._attributes for identity in changed):
            return totals
        self.read_decisions(identity for identity in self._monitored if identity not in self._made)
        for identity in {**changed, **self._monitored}:
            earlier, values = self._before.get(identity), self._attributes.get(identity)
            own = self._monitored.get(identity)
            chain = self._owner(earlier or self._made[identity]).monitored if own is None else own
            if earlier is not None and values:
                totals.count(earlier, chain, values, -1)
            later = changed.get(identity) or earlier or self._made[identity]
            values = values if own is None else self.monitored[identity].values
            if values:
                totals.count(later, chain, values)
        self.lock(totals.changes_days)
        return totals

    def _owner(self, decision: CountedDecision) -> PolicyRecord:
        """Return the policy of a decision."""
        return self.registry.owner_of(self.connection, decision.chain)

    def _changed_chains(self) -> list[tuple[Any, ...]]:
        return [
            (
                *(chain.revision, chain.length, chain.head),
                *(chain.counts.arrivals, chain.counts.accepted, chain.counts.pending),
                *(chain.counts.successes, chain.counts.failures, chain.counts.at_risk, chain.imported),
                encode_open_loans(chain.open_loans),
                None if chain.shadow_segments is None else chain.shadow_segments.encode(),
                chain.id,
            )
            for chain in self.chains.values()
            if chain.changed
        ]

    def _changed_decisions(self) -> list[tuple[Any, ...]]:
        return [
            (state.status, int(state.accepted), state.reported, state.outcome_at, state.id)
            for state in self.decisions.values()
            if state.changed
        ]

    def _write_rows(self) -> None:
        """Write the events, decisions, personal data and model states so far, because they are read again."""
        statements = self.store.statements
        writes = [
            *statements.insert(schema.event, self._events),
            *statements.insert(schema.decision, self._decisions),
            *statements.insert(schema.personal, self._personal),
            *statements.insert(schema.model_state, self._new_snapshots()),
        ]
        self.store.run(self.connection, writes)
        for rows in (self._events, self._decisions, self._personal, self._snapshots):
            rows.clear()

    def _store_erased_states(self) -> None:
        """Store the model states that take the place of erased features."""
        by_policy: dict[int, set[str]] = {}
        for state, _ in self._erased:
            policy = self.chains[state.chain].policy_id
            if policy is not None:
                by_policy.setdefault(policy, set()).add(state.id)
        for policy, decisions in by_policy.items():
            unlearned = self._labels_after_erasure(decisions)
            for part in _parts(sorted(decisions)):
                rows = list(
                    states_after_erased(self.connection, self.registry, policy, decisions & set(part), unlearned)
                )
                self.store.insert(self.connection, schema.model_state, rows)

    def _labels_after_erasure(self, decisions: set[str]) -> set[int]:
        """Return the events of this transaction that label decisions after their erasure, by their places."""
        events = ((seq, about, read(text)) for _, seq, text, _, about in self._events if about in decisions)
        erased: set[str] = set()
        labels: set[int] = set()
        for seq, about, event in events:
            if isinstance(event, Erased):
                erased.add(about)
            elif isinstance(event, Learned) and about in erased:
                labels.add(seq)
        return labels

    def _new_snapshots(self) -> list[tuple[Any, ...]]:
        """Return the model states to store. One replaces the earlier ones of its version, if the audit needs none."""
        table = schema.model_state
        for policy, version in {row[:2] for row in self._snapshots}:
            own = (table.c.policy_id == policy) & (table.c.version == version)
            self.connection.execute(table.delete().where(own & (table.c.kept == 0)))
        newest = {row[:2]: row[2] for row in self._snapshots}
        return [row for row in self._snapshots if row[3] or row[2] == newest[row[:2]]]

    def _delete_erased(self) -> None:
        """Delete erased personal data: that of the decisions, and that of events before the erasure."""
        until = {state.id: seq for state, seq in self._erased}
        own = {state.id: state.chain for state, _ in self._erased}
        places: dict[int, list[int]] = {}
        for some in _parts([state for state, _ in self._erased]):
            for state in some:
                places.setdefault(state.chain, []).append(state.seq)
            query = _about(some, schema.event.c.about, schema.event.c.chain_id, schema.event.c.seq)
            # A decision that replaces an erased one has personal data of its own.
            for about, chain, seq in self.connection.execute(query.where(schema.LATER_EVENT)):
                if chain == own[about] and seq < until[about]:
                    places[chain].append(seq)
        personal = schema.personal
        for chain, seqs in places.items():
            for part in _parts(seqs):
                rows = (personal.c.chain_id == chain) & personal.c.seq.in_(part)
                self.connection.execute(personal.delete().where(rows))


def _since(state: ModelState) -> int:
    """Return the event from which a model with features has learnt."""
    assert isinstance(state, FeatureState)
    return state.since


def read_overall_use(connection: Connection, chain: int) -> OverallUse:
    """Return what all segments of a policy have used and have open, by the last event of its chain that says so."""
    events = schema.event
    before = 1 << 62
    while True:
        earlier = (events.c.chain_id == chain) & (events.c.seq < before)
        query = select(events.c.seq, events.c.body).where(earlier).order_by(events.c.seq.desc()).limit(AT_A_TIME)
        rows = connection.execute(query).all()
        for row in rows:
            event = read(row.body)
            if isinstance(event, UseChanged):
                return event.after
            if isinstance(event, StateChanged) and event.overall is not None:
                return event.overall
        if len(rows) < AT_A_TIME:
            return OverallUse()
        before = rows[-1].seq


def _decision_state(row: Sequence[Any]) -> DecisionState:
    """Return a decision from the first columns of its row."""
    identity, chain, seq, version, at, accepted, status, amount, cost = row[:9]
    return DecisionState(identity, chain, seq, version, at, bool(accepted), status, amount=amount, cost=cost)


def _about(states: Sequence[DecisionState], *columns: ColumnElement[Any]) -> Select[Any]:
    """Return the query for the events about decisions, in order."""
    events = schema.event
    return select(*columns).where(events.c.about.in_([state.id for state in states])).order_by(events.c.seq)


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Divide items into parts that fit into a statement."""
    for start in range(0, len(items), 500):
        yield items[start : start + 500]
