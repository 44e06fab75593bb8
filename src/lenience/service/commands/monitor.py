"""Add or correct the monitored attributes of one or many decisions. It changes no decision and no count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lenience.core.errors import InputError
from lenience.core.request_limits import MONITORED_ATTRIBUTES
from lenience.service.domain.answers import MonitoredAnswer, OutcomeProblem, OutcomesAnswer
from lenience.service.domain.events import Repeated
from lenience.service.domain.monitored import MonitoredItem, refuse_decided, strip_attributes
from lenience.service.domain.problems import (
    UNKNOWN_DECISIONS,
    BadRequest,
    NotFound,
    Problem,
    not_one_decision,
    unknown_decision,
)
from lenience.service.domain.protected import feature_names
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder, make_receipt
from lenience.service.storage.command import store_answer
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version


@dataclass(frozen=True, slots=True)
class Monitor:
    """The command that adds or corrects monitored attributes. Null removes one."""

    sender: Sender
    decision: str
    changes: dict[str, str | None]

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 1 + len(self.changes)

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decision that has them."""
        return (self.decision,)

    def resolve(self, ledger: Ledger) -> None:
        """Raise a Problem if the decision does not exist, or if its policy decides by one of the attributes."""
        if self.decision not in ledger.chain_of:
            raise unknown_decision(self.decision)
        _check(self._record(ledger), self.changes)

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chain of the policy's monitored attributes, and that of the segment, whose totals change.

        No event is added to the segment's chain.
        """
        return [self._record(ledger).monitored, ledger.chain_of[self.decision]]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Store the attributes, and log the commitment to all of them."""
        record = self._record(ledger)
        chain = ledger.chains[record.monitored]
        ledger.read_monitored([self.decision])
        before = ledger.monitored[self.decision].values
        after = _after(before, self.changes)
        recorded = after != before
        # The answer may be stored under a key, so it holds names and no values.
        body = MonitoredAnswer(self.decision, record.name, sorted(after), recorded)
        answer = CommandAnswer(200, encoder.encode(body))
        receipt = make_receipt(self.sender, answer)
        if recorded:
            seq = ledger.set_monitored(chain, self.sender.actor, self.decision, after, receipt.digest)
        elif self.sender.key is not None:
            actor = self.sender.actor
            event = Repeated(at=ledger.now, actor=actor, decision=self.decision, receipt=receipt.digest)
            seq = ledger.append(chain, event)
        else:
            return answer
        store_answer(ledger, self.sender, receipt, chain.id, seq, answer)
        return answer

    def _record(self, ledger: Ledger) -> PolicyRecord:
        return _record_of(ledger, self.decision)


@dataclass(frozen=True, slots=True)
class MonitorMany:
    """The command that adds or corrects the attributes of many decisions. Invalid items do not affect the others."""

    sender: Sender
    items: list[MonitoredItem]

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return sum(1 + len(item.monitored) for item in self.items)

    @property
    def decisions(self) -> list[str]:
        """The decisions given by id."""
        return [item.id for item in self.items if item.id is not None]

    def resolve(self, ledger: Ledger) -> None:
        """Find the decisions given by reference. Raise NotFound if no decision of the batch exists."""
        ledger.find_references(item.reference for item in self.items if item.reference is not None)
        if not self._known(ledger):
            raise NotFound("none of these decisions exists", code=UNKNOWN_DECISIONS)

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chains of the policies' monitored attributes, and those of the segments, whose totals change.

        No event is added to a segment's chain.
        """
        known = self._known(ledger)
        segments = {ledger.chain_of[decision] for decision in known}
        return [*{_record_of(ledger, decision).monitored for decision in known}, *segments]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Store the attributes in order. The last event carries the receipt of the answer."""
        known = self._known(ledger)
        ledger.read_monitored(known)
        planned: dict[str, dict[str, str]] = {}  # the attributes after earlier items of this batch
        problems: list[OutcomeProblem] = []
        repeated = 0
        for position, item in enumerate(self.items):
            try:
                decision = self._decision(ledger, item)
                _check(_record_of(ledger, decision), item.monitored)
                before = planned.get(decision, ledger.monitored[decision].values)
                after = _after(before, item.monitored)
            except Problem as problem:
                problems.append(OutcomeProblem(position, item.id, problem.status, problem.detail, problem.code))
                continue
            if after == before:
                repeated += 1
            else:
                planned[decision] = after
        recorded = len(self.items) - repeated - len(problems)
        # The answer may be stored under a key, so it holds no values.
        answer = CommandAnswer(200, encoder.encode(OutcomesAnswer(recorded, repeated, problems)))
        receipt = make_receipt(self.sender, answer)
        actor, changes = self.sender.actor, list(planned.items())
        for i, (decision, after) in enumerate(changes):
            chain = ledger.chains[_record_of(ledger, decision).monitored]
            digest = receipt.digest if i == len(changes) - 1 else None
            seq = ledger.set_monitored(chain, actor, decision, after, digest)
        if not changes:
            if self.sender.key is None:
                return answer
            chain = ledger.chains[_record_of(ledger, known[0]).monitored]
            event = Repeated(at=ledger.now, actor=actor, decision=known[0], receipt=receipt.digest)
            seq = ledger.append(chain, event)
        store_answer(ledger, self.sender, receipt, chain.id, seq, answer)
        return answer

    def _known(self, ledger: Ledger) -> list[str]:
        """Return the decisions that exist, including all that share a reference."""
        known: list[str] = []
        for item in self.items:
            if item.reference is not None:
                known += ledger.referred[item.reference]
            elif item.id in ledger.chain_of:
                known.append(item.id)
        return known

    def _decision(self, ledger: Ledger, item: MonitoredItem) -> str:
        """Return the decision of an item, or raise a Problem."""
        if item.reference is not None:
            decisions = ledger.referred[item.reference]
            if len(decisions) != 1:
                raise not_one_decision(decisions)
            return decisions[0]
        assert item.id is not None
        if item.id not in ledger.chain_of:
            raise unknown_decision(item.id)
        return item.id


def _record_of(ledger: Ledger, decision: str) -> PolicyRecord:
    """Return the policy of a decision."""
    return ledger.registry.owner_of(ledger.connection, ledger.chain_of[decision])


def _check(record: PolicyRecord, changes: Mapping[str, str | None]) -> None:
    """Raise BadRequest if an attribute is blank, or if the policy decides by it."""
    try:
        given = strip_attributes(changes)
        if record.active is not None:
            check_monitored(record, record.active, [name for name, value in given.items() if value is not None])
    except InputError as error:
        raise BadRequest.of(error) from None


def _after(before: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the attributes of a decision after changes, or raise BadRequest if they are too many."""
    after = {name: value for name, value in {**before, **strip_attributes(changes)}.items() if value is not None}
    if len(after) > MONITORED_ATTRIBUTES:
        allowed = f"at most {MONITORED_ATTRIBUTES} attributes for a decision"
        raise BadRequest(f"monitored must have {allowed}", code="too_large", field="monitored", allowed=allowed)
    return after


def check_monitored(record: PolicyRecord, version: Version, names: list[str]) -> None:
    """Raise InputError if a version decides by an attribute that is to be monitored, and is not allowed to."""
    specification = version.specification
    if not specification.decide_by_protected:
        refuse_decided(record.name, feature_names(specification), names)
