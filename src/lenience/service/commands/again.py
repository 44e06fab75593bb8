"""Decide a waiting individual again, when outcomes, a new month or a new version may have made room."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from sqlalchemy import select

from lenience.core.offers import Offer
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.rollout_assignment import Assignment
from lenience.service.domain.events import Decided, read
from lenience.service.domain.problems import Conflict, unknown_decision
from lenience.service.domain.receipts import CommandAnswer, Sender
from lenience.service.domain.shadow_segments import segments_of
from lenience.service.domain.state import DecisionState
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord


@dataclass(slots=True)
class DecideAgain(Decide):
    """The command that decides a waiting individual again. It has arrived before, so it is not counted twice."""

    waiting: str = ""
    _segment: str = ""
    _made: tuple[Offer, ...] = ()  # the offers of the earlier request
    _named: str | None = None  # the segment that versions in shadow saw, if the request is by features

    @classmethod
    def of(cls, sender: Sender, waiting: str) -> DecideAgain:
        """Return the command for a waiting decision."""
        return cls(sender, "", [], True, waiting=waiting)

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 4

    @property
    def decisions(self) -> tuple[str, ...]:
        """The waiting decision."""
        return (self.waiting,)

    @property
    def _again(self) -> str | None:
        return self.waiting

    def resolve(self, ledger: Ledger) -> None:
        """Load the policy, and the segment and the offers of the earlier request."""
        if self.waiting not in ledger.chain_of:
            raise unknown_decision(self.waiting)
        chain, events, decisions = schema.chain, schema.event, schema.decision
        query = select(chain.c.policy_id, chain.c.segment, events.c.body).join_from(
            decisions, chain, decisions.c.chain_id == chain.c.id
        )
        own = (events.c.chain_id == decisions.c.chain_id) & (events.c.seq == decisions.c.seq)
        row = ledger.connection.execute(query.join(events, own).where(decisions.c.id == self.waiting)).one()
        first = read(row.body)
        self.policy = ledger.registry.name_of(ledger.connection, row.policy_id)
        self._segment, self._made = row.segment, first.offers if isinstance(first, Decided) else ()
        shadows = segments_of(first.shadows) if isinstance(first, Decided) else {}
        self._named = next(iter(shadows.values()), None)
        self.requests, self._now, self._ids = [DecisionRequest()], ledger.now, []
        self._place(ledger.load_policy(self.policy))

    def _place(self, record: PolicyRecord) -> list[int]:
        if self._located is None or self._located[0] is not record:
            if self._segment not in record.ruling().rules:
                raise Conflict(
                    f"the active version of the policy {self.policy!r} has no segment {self._segment!r}",
                    code="unknown_segment",
                )
            self._choices = [record.choices(self._segment, self._made)]
            self._arms = None
            if record.rollout is not None:
                self._draw_ids(1)
                self._arms = Assignment(self.policy, record.rollout.number, record.percent, [self._segment])
                self._arms.place_again(record, self.requests[0], self._made, self.waiting)
            self._located = (record, [record.segments[self._segment]])
        return self._located[1]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Decide again. The earlier decision is replaced."""
        state = ledger.decisions[self.waiting]
        if state.status != schema.WAITING:
            detail = f"the decision {self.waiting} is {state.status}, not waiting"
            raise Conflict(detail, code="decision_not_waiting")
        self.requests = [self._request(ledger, state)]
        record = ledger.registry.known(self.policy)
        assert record is not None
        if record.ruling().feature_model is not None and self.requests[0].features is None:
            raise Conflict(
                f"the features of the decision {self.waiting} are erased, so it cannot be decided again",
                code="features_erased",
            )
        self._located = None
        self._place(record)
        self._tidy(record)
        self._note_attributes(ledger)
        answer = Decide.run(self, ledger)
        state.status, state.changed = schema.REPLACED, True
        return answer

    def _note_attributes(self, ledger: Ledger) -> None:
        """Note the monitored attributes of the earlier decision, so that the new one has them too."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        ledger.lock([record.monitored])
        ledger.read_monitored([self.waiting])
        attributes = ledger.monitored[self.waiting].values
        self._monitored = {0: dict(attributes)} if attributes else {}

    def _request(self, ledger: Ledger, state: DecisionState) -> DecisionRequest:
        """Return the earlier request, without what was erased since."""
        personal = schema.personal
        own = (personal.c.chain_id == state.chain) & (personal.c.seq == state.seq)
        row = ledger.connection.execute(select(personal).where(own)).one_or_none()
        if row is None or not ledger.unerased([state]):
            return DecisionRequest(segment=self._segment)
        features = None if row.details is None else msgspec.json.decode(row.details)
        return DecisionRequest(self._named if features else self._segment, row.reference, features)
