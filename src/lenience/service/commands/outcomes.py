"""Changes of a decision: outcome, correction, expiry, override, erasure. Each counts exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta
from sqlalchemy import select

from lenience.core.errors import InputError
from lenience.service.commands.transitions import OverrideRequest as OverrideRequest
from lenience.service.commands.transitions import (
    Transition,
    plan_correction,
    plan_expiry,
    plan_nothing,
    plan_outcome,
    plan_override,
)
from lenience.service.domain import limits
from lenience.service.domain.answers import ExpiryAnswer, OutcomeProblem, OutcomesAnswer, outcome_answer
from lenience.service.domain.events import Outcome, Repeated
from lenience.service.domain.problems import UNKNOWN_DECISIONS, NotFound, Problem, not_one, unknown_decision
from lenience.service.domain.receipts import NO_RECEIPT, CommandAnswer, Sender, WriteCounts, encoder, make_receipt
from lenience.service.domain.rule import SegmentRule
from lenience.service.domain.state import ChainState, DecisionState, realised_profit
from lenience.service.storage import schema
from lenience.service.storage.command import store_answer
from lenience.service.storage.ledger import Ledger


class OutcomeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of an accepted individual."""

    outcome: Outcome


class OutcomeItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An outcome of a batch, for the decision with this id or the one accepted decision with this reference."""

    id: Annotated[str, Meta(max_length=limits.DECISION, pattern=limits.PLAIN)] | None = None
    reference: limits.Reference | None = None
    outcome: Outcome

    def __post_init__(self) -> None:
        if (self.id is None) == (self.reference is None):
            fields = ("id", "reference")
            raise InputError.because("must be given", fields, label="either id or reference", code="missing")


class OutcomesRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several outcomes."""

    outcomes: Annotated[list[OutcomeItem], Meta(min_length=1, max_length=limits.BATCH)]


class ExpiryRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let outcomes expire whose decisions are older than this number of days."""

    older_than_days: Annotated[float, Meta(ge=0, le=36_500)]


Kind: TypeAlias = Literal["outcome", "correction", "override", "erasure", "expiry"]


@dataclass(frozen=True, slots=True)
class Change:
    """The command that changes one decision."""

    sender: Sender
    decision: str
    kind: Kind
    outcome: Outcome | None = None
    override: OverrideRequest | None = None

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decision to change."""
        return (self.decision,)

    def resolve(self, ledger: Ledger) -> None:
        """Raise NotFound if the decision does not exist."""
        if self.decision not in ledger.chain_of:
            raise unknown_decision(self.decision)

    def chains(self, ledger: Ledger) -> list[int]:
        """The chain of the decision's segment."""
        return [ledger.chain_of[self.decision]]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Change the decision."""
        chain = ledger.chains[ledger.chain_of[self.decision]]
        state = ledger.decisions[self.decision]
        planned = self._plan(ledger, state)
        counts = planned.counts_after(chain.counts)
        policy, rule = _rule(ledger, chain, state)
        after = msgspec.structs.replace(
            outcome_answer(state, policy, rule, counts, planned.recorded),
            status=planned.status,
            decision=planned.choice,
            profit=realised_profit(planned.status, state.amount, state.cost),
        )
        made = WriteCounts(outcomes=int(planned.recorded and self.kind == "outcome"))
        answer = CommandAnswer(200, encoder.encode(after), made)
        if not planned.recorded and self.sender.key is None:
            return answer
        carry_out(ledger, self.sender, [(chain, planned)], answer)
        return answer

    def _plan(self, ledger: Ledger, state: DecisionState) -> Transition:
        if self.kind == "outcome":
            assert self.outcome is not None
            return plan_outcome(state, self.outcome)
        if self.kind == "correction":
            assert self.outcome is not None
            return plan_correction(state, self.outcome)
        if self.kind == "override":
            assert self.override is not None
            return plan_override(state, self.override)
        if self.kind == "expiry":
            return plan_expiry(state)
        return plan_nothing(state, "erasure", recorded=bool(ledger.unerased([state])))


@dataclass(frozen=True, slots=True)
class RecordOutcomes:
    """The command that records many outcomes. Invalid ones are reported and do not affect the others."""

    sender: Sender
    items: list[OutcomeItem]

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2 * len(self.items)

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
        """Return the chains of all segments concerned."""
        return [ledger.chain_of[decision] for decision in self._known(ledger)]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Record the outcomes in order."""
        known = self._known(ledger)
        ledger.read_decisions(known)
        problems: list[OutcomeProblem] = []
        plans: list[tuple[ChainState, Transition]] = []
        planned: dict[str, str] = {}  # status of a decision after earlier items of this batch
        repeated = 0
        for position, item in enumerate(self.items):
            try:
                state = self._decision(ledger, item)
                plan = plan_outcome(state, item.outcome, planned.get(state.id, state.status))
            except Problem as problem:
                problems.append(OutcomeProblem(position, item.id, problem.status, problem.detail, problem.code))
                continue
            if plan.recorded:
                planned[state.id] = plan.status
                plans.append((ledger.chains[state.chain], plan))
            else:
                repeated += 1
        answer = CommandAnswer(
            200, encoder.encode(OutcomesAnswer(len(plans), repeated, problems)), WriteCounts(outcomes=len(plans))
        )
        if not plans and self.sender.key is not None:
            state = ledger.decisions[known[0]]
            plans.append((ledger.chains[state.chain], plan_nothing(state, "repeat", recorded=False)))
        carry_out(ledger, self.sender, plans, answer)
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

    def _decision(self, ledger: Ledger, item: OutcomeItem) -> DecisionState:
        """Return the decision of an item, or raise a Problem."""
        if item.reference is not None:
            states = [ledger.decisions[decision] for decision in ledger.referred[item.reference]]
            accepted = [state for state in states if state.status != schema.REJECTED]
            if len(accepted) != 1:
                raise not_one([state.id for state in accepted])
            return accepted[0]
        assert item.id is not None
        if item.id not in ledger.decisions:
            raise unknown_decision(item.id)
        return ledger.decisions[item.id]


@dataclass(frozen=True, slots=True)
class Expire:
    """The command that lets missing outcomes expire, oldest first, at most ``most`` at a time."""

    sender: Sender
    policy: str
    before: int  # decisions made before this time, in microseconds
    most: int = limits.BATCH

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2 * self.most

    @property
    def decisions(self) -> tuple[str, ...]:
        """Empty, because they are not known in advance."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Load the policy."""
        ledger.registry.load(ledger.connection, self.policy)

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chains of the policy's segments, and its own, which logs a request without matches."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        return [record.chain, *record.segments.values()]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Let the outcomes expire."""
        table = schema.decision
        record = ledger.registry.known(self.policy)
        assert record is not None
        where = (table.c.status == schema.PENDING) & (table.c.at < self.before)
        where &= table.c.chain_id.in_(list(record.segments.values()))
        # Changes of this transaction are not in the database yet.
        rows = ledger.connection.execute(select(table.c.id).where(where).order_by(table.c.id).limit(self.most)).all()
        ledger.read_decisions(row.id for row in rows)
        states = [ledger.decisions[row.id] for row in rows]
        due = [state for state in states if state.status == schema.PENDING]
        answer = CommandAnswer(200, encoder.encode(ExpiryAnswer(len(due), len(rows) == self.most)))
        carry_out(ledger, self.sender, [(ledger.chains[state.chain], plan_expiry(state)) for state in due], answer)
        if not due and self.sender.key is not None:
            receipt = make_receipt(self.sender, answer)
            own = ledger.chains[record.chain]
            seq = ledger.append(
                own, Repeated(at=ledger.now, actor=self.sender.actor, decision="", receipt=receipt.digest)
            )
            store_answer(ledger, self.sender, receipt, own.id, seq, answer)
        return answer


def carry_out(
    ledger: Ledger, sender: Sender, plans: Sequence[tuple[ChainState, Transition]], answer: CommandAnswer
) -> None:
    """Apply transitions in order. The last event carries the receipt of the answer."""
    receipt = make_receipt(sender, answer)
    for i, (chain, plan) in enumerate(plans):
        last = i == len(plans) - 1
        seq = ledger.append(chain, plan.event(ledger, sender, receipt if last else NO_RECEIPT))
        plan.apply(ledger, chain, seq)
        if last:
            store_answer(ledger, sender, receipt, chain.id, seq, answer)


def _rule(ledger: Ledger, chain: ChainState, state: DecisionState) -> tuple[str, SegmentRule]:
    """Return the policy's name and the rule for the answer's belief: the active version's, or the decision's."""
    assert chain.policy_id is not None
    assert chain.segment is not None
    name = ledger.registry.name_of(ledger.connection, chain.policy_id)
    record = ledger.registry.known(name)
    if record is None or record.revision != chain.revision:
        record = ledger.registry.load(ledger.connection, name)
    if record.active is not None and chain.segment in record.active.rules:
        return name, record.active.rules[chain.segment]
    version = ledger.registry.version(ledger.connection, chain.policy_id, state.version)
    return name, version.rules[chain.segment]
