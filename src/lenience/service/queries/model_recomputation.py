"""Recompute the states of models that learn from all outcomes of a policy, and what decisions took from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Connection, select

from lenience.service.domain.events import Decided, Event, Learned, Shadow, StateChanged, readable_event
from lenience.service.domain.pooled_models import Borrowed, PooledModel, PooledState
from lenience.service.domain.rule import Counts
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import Version

AT_A_TIME = 2_000
LIVE = ("shadow", "active")
KINDS = ('{"kind":"label"', '{"kind":"state"')


class StateUse(NamedTuple):
    """What a decision says that it took from a model's state."""

    at: int  # the event of the policy's chain after which the state held
    where: str
    segment: str
    version: int
    borrowed: Borrowed


@dataclass(slots=True)
class ModelRecomputation:
    """The recomputation of a policy's models. First the segments' events are added, then the policy's are walked."""

    label: str
    report: Callable[[str, str], None]
    starts: list[StateChanged] = field(default_factory=list)  # events from which a model starts to learn
    _outcomes: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)  # by segment and event
    _changes: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)  # of outcomes, by decision
    _uses: list[StateUse] = field(default_factory=list)
    _learnt: Counter[str] = field(default_factory=Counter)  # changes that models have learnt, by decision
    _broken: set[int] = field(default_factory=set)  # versions whose states do not follow from the labels
    _final: dict[str, tuple[int, int]] = field(default_factory=dict)  # the outcomes of each segment at the end

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

    def add_decision(self, where: str, segment: str, event: Decided, versions: Callable[[int], Version | None]) -> None:
        """Add what a decision, and its shadows, took from a model's state."""
        decided: list[Decided | Shadow] = [event, *event.shadows]
        for one in decided:
            version = versions(one.version)
            if version is None or version.model is None or segment not in version.rules:
                if one.borrowed is not None:
                    self.report(where, f"version {one.version} has no model to borrow evidence from")
            elif one.borrowed is None or event.model_at is None:
                self.report(where, f"it does not say which model state version {one.version} used")
            else:
                self._uses.append(StateUse(event.model_at, where, segment, one.version, one.borrowed))

    def finish(self, connection: Connection, policy: int, chain: int, versions: Mapping[int, Version]) -> None:
        """Walk the policy's chain again: recompute each state, and compare it with what the log and the rows hold."""
        models = {number: version.model for number, version in versions.items() if version.model is not None}
        self._uses.sort(key=lambda use: -use.at)
        states: dict[int, PooledState] = {}
        digests: dict[tuple[int, int], str] = {}  # by version and event
        if models:
            events = schema.event
            query = select(events.c.seq, events.c.body).where(events.c.chain_id == chain).order_by(events.c.seq)
            with connection.execute(query.execution_options(yield_per=AT_A_TIME)) as rows:
                for row in rows:
                    event = readable_event(row.body) if str(row.body).startswith(KINDS) else None
                    if event is not None:
                        self._check_uses(row.seq, models, states)
                        self._apply(row.seq, event, models, states, digests)
        self._check_uses(1 << 62, models, states)
        self._check_end(states, models)
        self._check_rows(connection, policy, states, digests)

    def _apply(
        self,
        seq: int,
        event: Event,
        models: Mapping[int, PooledModel],
        states: dict[int, PooledState],
        digests: dict[tuple[int, int], str],
    ) -> None:
        """Recompute the states after an event of the policy's chain."""
        where = f"event {seq} of {self.label}"
        if isinstance(event, StateChanged):
            self._state_changed(where, seq, event, models, states, digests)
        elif isinstance(event, Learned):
            self._match(where, event)
            stated = dict(event.states)
            if stated.keys() != states.keys():
                self.report(where, "it names other versions than those that learn")
            for number in states:
                states[number] = models[number].learn(states[number], event.segment, event.successes, event.failures)
                digests[number, seq] = stated.get(number, "")
                if states[number].digest() != stated.get(number) and number not in self._broken:
                    self._broken.add(number)  # all later states follow from this one
                    self.report(where, f"the model state of version {number} does not follow from the labels")

    def _state_changed(
        self,
        where: str,
        seq: int,
        event: StateChanged,
        models: Mapping[int, PooledModel],
        states: dict[int, PooledState],
        digests: dict[tuple[int, int], str],
    ) -> None:
        """Start or end the learning of a version."""
        number = event.number
        if number not in models:
            return
        if event.state not in LIVE:
            states.pop(number, None)
        elif number not in states:
            if event.model is None:
                self.report(where, f"it does not say from which state the model of version {number} starts")
            outcomes = {
                segment: self._outcomes.get((segment, length), (0, 0)) for segment, length in event.lengths.items()
            }
            states[number] = models[number].start(outcomes)
            digests[number, seq] = event.model or ""
            if event.model is not None and states[number].digest() != event.model:
                self.report(where, f"the model of version {number} starts from other outcomes than the segments have")

    def _match(self, where: str, event: Learned) -> None:
        """Check that a label is a change of an outcome in the segment's own chain."""
        change = (event.segment, event.successes, event.failures)
        changes = self._changes.get(event.decision, [])
        at = self._learnt[event.decision]
        while at < len(changes) and changes[at] != change:
            at += 1  # outcomes before the version started to learn
        if at == len(changes):
            self.report(where, f"the log of the segment does not hold this outcome of the decision {event.decision}")
        self._learnt[event.decision] = at + 1

    def _check_uses(self, before: int, models: Mapping[int, PooledModel], states: dict[int, PooledState]) -> None:
        """Compare what decisions before an event of the policy's chain took with the states at that time."""
        while self._uses and self._uses[-1].at < before:
            use = self._uses.pop()
            state = states.get(use.version)
            if state is None:
                self.report(use.where, f"the model of version {use.version} was not learning at that time")
                continue
            borrowed = models[use.version].borrowed(state, use.segment)
            if not borrowed.close_to(use.borrowed):
                self.report(
                    use.where,
                    f"it borrows evidence worth {use.borrowed.outcomes:g} ({use.borrowed.successes:g} successes) from "
                    f"other segments, but the model state gives {borrowed.outcomes:g} ({borrowed.successes:g})",
                )

    def _check_end(self, states: Mapping[int, PooledState], models: Mapping[int, PooledModel]) -> None:
        """Compare the last state of each model with the outcomes of the segments, so that no label is missing."""
        for number, state in states.items():
            expected = models[number].start(self._final)
            if (state.successes, state.failures) != (expected.successes, expected.failures):
                self.report(self.label, f"the model of version {number} has not learnt the outcomes of its segments")

    def _check_rows(
        self,
        connection: Connection,
        policy: int,
        states: Mapping[int, PooledState],
        digests: Mapping[tuple[int, int], str],
    ) -> None:
        """Compare stored states with the digests in the log. A model that learns needs one to start from."""
        table = schema.model_state
        stored = set()
        for row in connection.execute(select(table).where(table.c.policy_id == policy)):
            where = f"model state {row.seq} of version {row.version} of {self.label}"
            stored.add(row.version)
            if sha256(str(row.body).encode()).hexdigest() != digests.get((row.version, row.seq)):
                self.report(where, "it differs from the digest in the log")
            if row.kept != 0:
                self.report(where, "it is marked as one that the audit needs, and is not")
        for number in states.keys() - stored:
            self.report(f"version {number} of {self.label}", "its model has no stored state")
