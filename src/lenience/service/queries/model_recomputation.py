"""Recompute the states of models that learn from all outcomes of a policy, and what decisions took from them.

A label is learnt again from the applicant's features. If they were erased, the state that the erasure has stored takes
the place of the result: its digest must be the one in the log. Such labels, and decisions that rest on erased features,
are counted, because they cannot be recomputed. So are corrections after which everything since the wrong label was
learnt again (:mod:`lenience.service.storage.relearning`), if features of a label in between were erased.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from lenience.core.errors import InputError
from lenience.service.domain.chain import draw, genesis
from lenience.service.domain.events import Decided, Event, Learned, Shadow, StateChanged, readable_event
from lenience.service.domain.feature_models import FeatureModel, FeatureState, PendingApplicants
from lenience.service.domain.feature_rule import NO_DRAW, consistent, decide_applicant, same_verdict
from lenience.service.domain.pooled_models import Borrowed, ModelLabel, PooledModel, PooledState
from lenience.service.domain.rule import Counts
from lenience.service.domain.specification import ONLY_SEGMENT
from lenience.service.domain.statements import stated_counts, stated_verdict
from lenience.service.storage import schema
from lenience.service.storage.model_states import SNAPSHOT_EVERY
from lenience.service.storage.policy_cache import LIVE, ModelState, Version
from lenience.service.storage.relearning import RELEARNT, UNUSABLE, Checkpoint, relearn

AT_A_TIME = 2_000
KINDS = ('{"kind":"label"', '{"kind":"state"')
END = 1 << 62


class StateUse(NamedTuple):
    """Where a decision says that it used a model's state."""

    at: int  # the event of the policy's chain after which the state held
    where: str
    segment: str
    chain: int
    seq: int
    version: int
    borrowed: Borrowed | None  # None for a model with features
    timeline: int  # how many changes of the pending applicants came before


@dataclass(slots=True)
class PendingTimeline:
    """Who became pending in a segment and who no longer was, in order, and the design of those who are."""

    chain: int = 0
    changes: list[tuple[str, int, bool]] = field(default_factory=list)  # decision, its event, whether it is pending
    done: int = 0
    pending: dict[str, int] = field(default_factory=dict)
    rows: dict[tuple[int, str], Any] = field(default_factory=dict)  # by version and decision

    def advance(self, until: int) -> None:
        """Go on to a place of the timeline."""
        for decision, seq, pending in self.changes[self.done : until]:
            if pending:
                self.pending[decision] = seq
            else:
                self.pending.pop(decision, None)
        self.done = max(self.done, until)


@dataclass(slots=True)
class ModelRecomputation:
    """The recomputation of a policy's models. First the segments' events are added, then the policy's are walked."""

    label: str
    report: Callable[[str, str], None]
    labels_not_recomputed: int = 0
    decisions_not_recomputed: int = 0
    starts: list[StateChanged] = field(default_factory=list)  # events from which a model starts to learn
    _outcomes: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)  # by segment and event
    _changes: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)  # of outcomes, by decision
    _uses: list[StateUse] = field(default_factory=list)
    _timelines: dict[str, PendingTimeline] = field(default_factory=dict)  # by segment
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)  # of decisions with personal data
    _learnt: dict[str, int] = field(default_factory=dict)  # changes that models have learnt, by decision
    _first_labels: dict[str, int] = field(default_factory=dict)  # where the first outcome of a decision was learnt
    _broken: set[int] = field(default_factory=set)  # versions whose states do not follow from the labels
    _final: dict[str, tuple[int, int]] = field(default_factory=dict)  # the outcomes of each segment at the end
    _models: dict[int, PooledModel | FeatureModel] = field(default_factory=dict)
    _versions: Mapping[int, Version] = field(default_factory=dict)
    _states: dict[int, ModelState | None] = field(default_factory=dict)  # None after erased labels, until one is stored
    _digests: dict[tuple[int, int], tuple[str, int]] = field(
        default_factory=dict
    )  # digest and start, by version, event
    _since: dict[int, int] = field(default_factory=dict)  # the event from which a version learns
    _chain: int = 0  # of the policy
    _checkpoints: dict[int, list[Checkpoint]] = field(default_factory=dict)  # from which labels can be learnt again
    _corrections: dict[int, list[tuple[int, int, dict[int, str]]]] = field(
        default_factory=dict
    )  # by version: event, event of the wrong label, and digests of the stored states that were revised

    def add(self, event: Event) -> None:
        """Add an event of the policy's chain, before the segments' events."""
        if isinstance(event, StateChanged) and event.model is not None:
            self.starts.append(event)

    def add_segment_event(self, segment: str, seq: int, decision: str | None, before: Counts, after: Counts) -> None:
        """Add an event of a segment's chain: how it changed the outcomes."""
        if not self.starts:
            return
        good, bad = after.successes - before.successes, after.failures - before.failures
        if (good or bad) and decision is not None:
            self._changes.setdefault(decision, []).append((segment, good, bad))
        if any(start.lengths.get(segment) == seq for start in self.starts):
            self._outcomes[segment, seq] = after.successes, after.failures
        self._final[segment] = after.successes, after.failures

    def add_personal(self, decision: str, chain: int, seq: int) -> None:
        """Add the place of a decision with personal data, which may hold its features."""
        if self.starts:
            self._places[decision] = chain, seq

    def add_pending(self, segment: str, decision: str, *, pending: bool) -> None:
        """Add that a decision became pending, or is no longer pending or known by its features."""
        place = self._places.get(decision)
        if place is not None:
            line = self._timelines.setdefault(segment, PendingTimeline())
            line.changes.append((decision, place[1], pending))

    def add_decision(
        self,
        where: str,
        segment: str,
        place: tuple[int, int],
        event: Decided,
        versions: Callable[[int], Version | None],
    ) -> None:
        """Add what a decision, and its shadows, took from a model's state."""
        decided: list[Decided | Shadow] = [event, *event.shadows]
        line = self._timelines.get(segment)
        if line is None:
            line = self._timelines[segment] = PendingTimeline()
        line.chain = place[0]
        for one in decided:
            version = versions(one.version)
            if version is None or version.live is None:
                if one.borrowed is not None or one.applicant is not None:
                    self.report(where, f"version {one.version} has no model that it could use")
                continue
            if version.model is not None and segment not in version.rules:
                continue
            missing = one.borrowed is None if version.model is not None else one.applicant is None
            if missing or event.model_at is None:
                self.report(where, f"it does not say which model state version {one.version} used")
            else:
                use = (event.model_at, where, segment, *place, one.version, one.borrowed, len(line.changes))
                self._uses.append(StateUse(*use))

    def finish(self, connection: Connection, policy: int, chain: int, versions: Mapping[int, Version]) -> None:
        """Walk the policy's chain again: recompute each state, and compare it with what the log and the rows hold."""
        self._versions = versions
        self._chain = chain
        self._models = {number: version.live for number, version in versions.items() if version.live is not None}
        self._uses.sort(key=lambda use: use.at)  # those of a segment stay in their order
        self._uses.reverse()
        if self._models:
            events = schema.event
            after = 0
            while True:
                where = (events.c.chain_id == chain) & (events.c.seq > after)
                query = select(events.c.seq, events.c.body).where(where).order_by(events.c.seq).limit(AT_A_TIME)
                rows = connection.execute(query).all()
                for row in rows:
                    event = readable_event(row.body) if str(row.body).startswith(KINDS) else None
                    if event is not None:
                        self._check_uses(connection, row.seq)
                        self._apply(connection, policy, row.seq, event)
                if len(rows) < AT_A_TIME:
                    break
                after = rows[-1].seq
        self._check_uses(connection, END)
        self._check_end()
        self._check_rows(connection, policy)

    def _apply(self, connection: Connection, policy: int, seq: int, event: Event) -> None:
        """Recompute the states after an event of the policy's chain."""
        where = f"event {seq} of {self.label}"
        if isinstance(event, StateChanged):
            self._state_changed(where, seq, event)
        elif isinstance(event, Learned):
            self._match(where, event)
            stated = dict(event.states)
            if stated.keys() != self._states.keys():
                self.report(where, "it names other versions than those that learn")
            label = ModelLabel(event.segment, event.successes, event.failures)
            erased = False
            if any(self._models[number].by_features for number in self._states):
                inputs, erased = self._inputs(connection, event.decision)
                label = label._replace(inputs=inputs, learnt_at=self._first_labels.get(event.decision))
            if not label.is_correction:
                self._first_labels.setdefault(event.decision, seq)
            for number in list(self._states):
                digest = stated.get(number, "")
                self._digests[number, seq] = digest, self._since[number]
                place = (policy, number, seq)
                if event.relearnt and self._relearns(number, label):
                    self._relearn(connection, place, where, label.learnt_at or 0, event, digest)
                else:
                    self._learn(connection, place, where, label, digest, erased=erased)
                self._keep(number, seq)

    def _relearns(self, number: int, label: ModelLabel) -> bool:
        """Return whether a version has learnt again what came after a label: it has features, and learnt the label."""
        learnt_at = label.learnt_at or 0
        return label.is_correction and self._models[number].by_features and learnt_at > self._since[number]

    def _relearn(
        self, connection: Connection, place: tuple[int, int, int], where: str, wrong: int, event: Learned, digest: str
    ) -> None:
        """Recompute the state of a version after a correction for which everything since was learnt again."""
        _, number, seq = place
        model = self._models[number]
        assert isinstance(model, FeatureModel)
        if seq - wrong > RELEARNT:
            self._break(number, where, f"it learns labels again that are more than {RELEARNT:,} events old")
        revised = {at: new for version, at, new in event.revised if version == number}
        self._corrections.setdefault(number, []).append((seq, wrong, revised))
        known = self._checkpoints.setdefault(number, [])
        later = [one.seq for one in known if one.seq >= wrong]
        start = next((one for one in reversed(known) if one.seq < wrong), None)
        states = None
        if start is not None:
            states = relearn(connection, self._chain, number, model, start, seq, {*later, *revised})
        if states is None:
            self._take_stored(connection, place, model, digest)
            return
        self._checkpoints[number] = [one for one in known if one.seq < wrong]
        for at in later:
            self._checkpoints[number].append(Checkpoint(at, states[at], self._digests[number, at][0]))
        self._states[number] = states[seq]
        if states[seq].digest() != digest or any(states[at].digest() != new for at, new in revised.items()):
            self._break(number, where, f"the model state of version {number} does not follow from the labels")

    def _keep(self, number: int, seq: int) -> None:
        """Keep a state now and then, from which labels can be learnt again."""
        state = self._states[number]
        known = self._checkpoints.setdefault(number, [])
        if not isinstance(state, FeatureState) or (known and seq - known[-1].seq < SNAPSHOT_EVERY):
            return
        known.append(Checkpoint(seq, state, self._digests[number, seq][0]))
        while len(known) > 1 and known[1].seq < seq - RELEARNT:
            known.pop(0)

    def _learn(
        self,
        connection: Connection,
        place: tuple[int, int, int],
        where: str,
        label: ModelLabel,
        digest: str,
        *,
        erased: bool,
    ) -> None:
        """Recompute the state of one version after a label, or take the stored one if the features were erased."""
        _, number, _ = place
        model: Any = self._models[number]
        before: Any = self._states[number]
        if model.by_features and erased and (before is None or before.digest() != digest):
            self._take_stored(connection, place, model, digest)
            return
        if before is None:
            self._break(number, where, f"the model state of version {number} before it was not stored")
            self._states[number] = self._stored(connection, place, model, digest)
            return
        after = model.learn(before, label)
        self._states[number] = after
        if after.digest() != digest:
            self._break(number, where, f"the model state of version {number} does not follow from the labels")

    def _take_stored(
        self, connection: Connection, place: tuple[int, int, int], model: FeatureModel, digest: str
    ) -> None:
        """Take a stored state where features were erased. Nobody can learn again from a state before it."""
        self.labels_not_recomputed += 1
        self._states[place[1]] = self._stored(connection, place, model, digest)
        self._checkpoints[place[1]] = []

    def _break(self, number: int, where: str, what: str) -> None:
        """Report the first state of a version that is wrong. All later ones follow from it."""
        if number not in self._broken:
            self._broken.add(number)
            self.report(where, what)

    def _stored(
        self, connection: Connection, place: tuple[int, int, int], model: FeatureModel, digest: str
    ) -> FeatureState | None:
        """Return the stored state after a label, if its digest is the one in the log."""
        table = schema.model_state
        policy, number, seq = place
        own = (table.c.policy_id == policy) & (table.c.version == number) & (table.c.seq == seq)
        text = connection.execute(select(table.c.body).where(own)).scalar_one_or_none()
        try:
            if text is None or model.digest_of(text) != digest:
                return None
            return model.restore(text)
        except (InputError, ValueError):
            return None

    def _inputs(self, connection: Connection, decision: str) -> tuple[str | None, bool]:
        """Return the features of a decision, and whether they were erased."""
        place = self._places.get(decision)
        if place is None:
            return None, False
        personal = schema.personal
        own = (personal.c.chain_id == place[0]) & (personal.c.seq == place[1])
        row = connection.execute(select(personal.c.details).where(own)).one_or_none()
        return (None, True) if row is None else (row.details, False)

    def _state_changed(self, where: str, seq: int, event: StateChanged) -> None:
        """Start or end the learning of a version."""
        number = event.number
        if number not in self._models:
            return
        if event.state not in LIVE:
            self._states.pop(number, None)
        elif number not in self._states:
            if event.model is None:
                self.report(where, f"it does not say from which state the model of version {number} starts")
            outcomes = {
                segment: self._outcomes.get((segment, length), (0, 0)) for segment, length in event.lengths.items()
            }
            start = self._models[number].start(outcomes, seq)
            self._states[number], self._since[number] = start, seq
            self._digests[number, seq] = event.model or "", seq
            self._checkpoints.pop(number, None)
            self._keep(number, seq)
            if event.model is not None and start.digest() != event.model:
                self.report(where, f"the model of version {number} starts from another state than it should")

    def _match(self, where: str, event: Learned) -> None:
        """Check that a label is a change of an outcome in the segment's own chain."""
        change = (event.segment, event.successes, event.failures)
        changes = self._changes.get(event.decision, [])
        at = self._learnt.get(event.decision, 0)
        while at < len(changes) and changes[at] != change:
            at += 1  # outcomes before the version started to learn
        if at == len(changes):
            self.report(where, f"the log of the segment does not hold this outcome of the decision {event.decision}")
        self._learnt[event.decision] = at + 1

    def _check_uses(self, connection: Connection, before: int) -> None:
        """Compare what decisions before an event of the policy's chain took with the states at that time."""
        while self._uses and self._uses[-1].at < before:
            use = self._uses.pop()
            model = self._models.get(use.version)
            if model is None or use.version not in self._states:
                self.report(use.where, f"the model of version {use.version} was not learning at that time")
                continue
            state = self._states[use.version]
            if isinstance(model, FeatureModel):
                assert state is None or isinstance(state, FeatureState)
                self._check_applicant(connection, use, model, state)
                continue
            assert isinstance(state, PooledState)
            assert use.borrowed is not None
            borrowed = model.borrowed(state, use.segment)
            if not borrowed.close_to(use.borrowed):
                self.report(
                    use.where,
                    f"it borrows evidence worth {use.borrowed.outcomes:g} ({use.borrowed.successes:g} successes) from "
                    f"other segments, but the model state gives {borrowed.outcomes:g} ({borrowed.successes:g})",
                )

    def _check_applicant(
        self, connection: Connection, use: StateUse, model: FeatureModel, state: FeatureState | None
    ) -> None:
        """Decide an applicant again by its features, or count that they were erased."""
        events = schema.event
        own = (events.c.chain_id == use.chain) & (events.c.seq == use.seq)
        event = readable_event(connection.execute(select(events.c.body).where(own)).scalar_one())
        assert isinstance(event, Decided)
        one = event if event.version == use.version else next(s for s in event.shadows if s.version == use.version)
        assert one.applicant is not None
        version, stated = self._versions[use.version], stated_verdict(one)
        if not consistent(stated, one.applicant, version.specification.objective):
            self.report(use.where, "the decision does not follow from its own estimate")
        line = self._timelines[use.segment]
        line.advance(use.timeline)
        inputs, _ = self._inputs(connection, event.id)
        if inputs is None or state is None:
            self.decisions_not_recomputed += 1
            return
        erased = []

        def pending() -> PendingApplicants:
            rows = self._pending(connection, line, use.version, model)
            erased.append(rows is None)
            return PendingApplicants(use.chain, rows or {})

        rule = version.rules[ONLY_SEGMENT]
        chance = draw(self._hash_before(connection, use), event.id) if rule.exploration_floor > 0 else NO_DRAW
        overall = event.overall if one is event else None
        counts = stated_counts(event)
        verdict, applicant = decide_applicant(
            *(rule, model, state, model.row(inputs), pending, counts, chance, event.offers, overall)
        )
        if any(erased):
            self.decisions_not_recomputed += 1
        elif not applicant.close_to(one.applicant) or not same_verdict(verdict, stated):
            self.report(
                use.where,
                f"it states an expected success rate of {one.applicant.mean:.6g} (evidence {one.applicant.n:.6g}) and "
                f"{stated.decision}, but version {use.version} gives {applicant.mean:.6g} ({applicant.n:.6g}) and "
                f"{verdict.decision}",
            )

    def _pending(
        self, connection: Connection, line: PendingTimeline, version: int, model: FeatureModel
    ) -> dict[str, Any] | None:
        """Return the rows of the applicants that were pending, or None if features of one were erased since."""
        rows: dict[str, Any] = {}
        for decision in line.pending:
            key = (version, decision)
            if key not in line.rows:
                inputs, erased = self._inputs(connection, decision)
                line.rows[key] = None if not model.accepts(inputs) else model.row(inputs or "")
                if erased:
                    line.rows[key] = False
            row = line.rows[key]
            if row is False:
                return None
            if row is not None:
                rows[decision] = row
        for key in [key for key in line.rows if key[1] not in line.pending]:
            del line.rows[key]
        return rows

    def _hash_before(self, connection: Connection, use: StateUse) -> str:
        """Return the hash before the event of a decision."""
        events, chains = schema.event, schema.chain
        before = (events.c.chain_id == use.chain) & (events.c.seq == use.seq - 1)
        stored = connection.execute(select(events.c.hash).where(before)).scalar_one_or_none()
        if stored is not None:
            return str(stored)
        query = select(schema.policy.c.name, chains.c.segment).join(chains, chains.c.policy_id == schema.policy.c.id)
        row = connection.execute(query.where(chains.c.id == use.chain)).one()
        return genesis(row.name, row.segment)

    def _is_revision(self, model: Any, row: Any, since: int) -> bool:
        """Return whether a stored state has the revision that the log says: that of the last correction before it."""
        expected: str | None = None
        corrections = self._corrections.get(row.version, [])
        for seq, wrong, revised in corrections[bisect_right(corrections, row.seq, key=itemgetter(0)) :]:
            if seq - row.seq > RELEARNT:
                break
            if since < wrong <= row.seq:
                expected = revised.get(row.seq, UNUSABLE)
        if expected is None or expected == UNUSABLE or row.revised is None:
            return bool(row.revised == expected)
        try:
            same = model.digest_of(str(row.revised)) == expected
        except ValueError:
            return False
        return same and str(row.revised).startswith(f"{since}:")

    def _check_end(self) -> None:
        """Compare the last state of each model with the outcomes of the segments, so that no label is missing."""
        for number, state in self._states.items():
            model = self._models[number]
            if state is None:
                self._break(number, f"version {number} of {self.label}", "the state after erased labels is missing")
            elif isinstance(model, PooledModel):
                assert isinstance(state, PooledState)
                expected = model.start(self._final)
                if (state.successes, state.failures) != (expected.successes, expected.failures):
                    self.report(
                        self.label, f"the model of version {number} has not learnt the outcomes of its segments"
                    )

    def _check_rows(self, connection: Connection, policy: int) -> None:
        """Compare stored states with the digests in the log. A model that learns needs one to start from."""
        table = schema.model_state
        stored: set[tuple[int, int]] = set()
        for row in connection.execute(select(table).where(table.c.policy_id == policy)).all():
            where = f"model state {row.seq} of version {row.version} of {self.label}"
            model = self._models.get(row.version)
            digest, since = self._digests.get((row.version, row.seq), ("", -1))
            stored.add((row.version, row.seq))
            try:
                right = model is not None and model.digest_of(str(row.body)) == digest
                if isinstance(model, FeatureModel):
                    right = right and str(row.body).partition(":")[0] == str(since)
            except ValueError:
                right = False
            if not right:
                self.report(where, "it differs from the digest in the log")
            if not self._is_revision(model, row, since):
                self.report(where, "its state with later corrections does not follow from the labels")
            if model is not None and row.kept != int(model.by_features):
                self.report(where, "it is marked as another kind of state than it is")
        versions = {version for version, _ in stored}
        for number in self._states.keys() - versions:
            self.report(f"version {number} of {self.label}", "its model has no stored state")
        for number, seq in self._since.items():
            if self._models[number].by_features and (number, seq) not in stored:
                self.report(f"version {number} of {self.label}", "the state from which its model starts is not stored")
