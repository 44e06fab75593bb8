"""Changes of a decision: outcome, correction, expiry, override, erasure. Each counts exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType
from sqlalchemy import select

from lenience.core.errors import InputError
from lenience.service.commands.transitions import OverrideRequest as OverrideRequest
from lenience.service.commands.transitions import ReviewRequest as ReviewRequest
from lenience.service.commands.transitions import (
    Transition,
    own_date_of,
    plan_correction,
    plan_expiry,
    plan_nothing,
    plan_outcome,
    plan_override,
    plan_review,
    plan_status,
)
from lenience.service.domain import limits
from lenience.service.domain.answers import ExpiryAnswer, OutcomeProblem, OutcomesAnswer, outcome_answer
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import Interim, Outcome, Repeated
from lenience.service.domain.open_loans import with_open_loans
from lenience.service.domain.overall import UseChange
from lenience.service.domain.pooled_models import Borrowed, ModelLabel, PooledState
from lenience.service.domain.problems import UNKNOWN_DECISIONS, NotFound, Problem, not_one, unknown_decision
from lenience.service.domain.receipts import NO_RECEIPT, CommandAnswer, Sender, WriteCounts, encoder, make_receipt
from lenience.service.domain.rule import SegmentRule
from lenience.service.domain.state import ChainState, DecisionState, realised_profit
from lenience.service.storage import schema
from lenience.service.storage.command import store_answer
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.model_states import segment_outcomes
from lenience.service.storage.policy_cache import PolicyRecord, Version

OwnDate: TypeAlias = Annotated[limits.Date, Meta(description="When it happened; today if missing")] | UnsetType | None


class CorrectionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The right outcome of an accepted individual. A date is not encoded where it is not given."""

    outcome: Outcome
    outcome_at: OwnDate = UNSET


class OutcomeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of an accepted individual, or its interim status: late, or current (open and not late)."""

    outcome: Outcome | Interim
    outcome_at: OwnDate = UNSET


class OutcomeItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An outcome of a batch, for the decision with this id or the one accepted decision with this reference."""

    id: Annotated[str, Meta(max_length=limits.DECISION, pattern=limits.PLAIN)] | None = None
    reference: limits.Reference | None = None
    outcome: Outcome | Interim
    outcome_at: OwnDate = UNSET

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


Kind: TypeAlias = Literal["outcome", "correction", "override", "review", "erasure", "expiry"]


@dataclass(frozen=True, slots=True)
class Change:
    """The command that changes one decision."""

    sender: Sender
    decision: str
    kind: Kind
    outcome: Outcome | Interim | None = None
    override: OverrideRequest | None = None
    outcome_at: str | None = None
    review: ReviewRequest | None = None

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
        """The chain of the decision's segment, and the policy's own if it counts for all segments.

        An erasure also takes the chain of the policy's monitored attributes.
        """
        chain = ledger.chain_of[self.decision]
        erased = [ledger.registry.owner_of(ledger.connection, chain).monitored] if self.kind == "erasure" else []
        return [*erased, *with_policies(ledger, [chain])]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Change the decision."""
        chain = ledger.chains[ledger.chain_of[self.decision]]
        state = ledger.decisions[self.decision]
        planned = self._plan(ledger, state)
        record, version, rule = _rule(ledger, chain, state)
        loans = copy(chain.open_loans)
        if loans is not None and planned.pending < 0:
            loans.settle(state.seq)
        counts = with_open_loans(planned.counts_after(chain.counts), loans, version.number)
        if version.model is not None:
            counts = replace(counts, borrowed=_borrowed_after(ledger, record, version, rule.name, planned))
        after = msgspec.structs.replace(
            outcome_answer(state, record.name, rule, counts, planned.recorded),
            status=planned.status,
            decision=planned.choice,
            profit=realised_profit(planned.status, state.amount, state.cost),
            reported=planned.reported_after,
            outcome_at=None if planned.outcome_at_after is None else iso_time(planned.outcome_at_after),
        )
        made = WriteCounts(outcomes=int(planned.recorded and self.kind == "outcome"))
        answer = CommandAnswer(200, encoder.encode(after), made)
        if not planned.recorded and self.sender.key is None:
            return answer
        carry_out(ledger, self.sender, [(chain, planned)], answer)
        return answer

    def _plan(self, ledger: Ledger, state: DecisionState) -> Transition:
        if self.kind in ("outcome", "correction"):
            assert self.outcome is not None
            return plan_report(state, self.outcome, self.outcome_at, ledger.now, correction=self.kind == "correction")
        if self.kind == "override":
            assert self.override is not None
            return plan_override(state, self.override)
        if self.kind == "review":
            assert self.review is not None
            return plan_review(state, self.review)
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
        """Return the chains of all segments concerned, and of the policies that count for all segments."""
        return with_policies(ledger, [ledger.chain_of[decision] for decision in self._known(ledger)])

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
                status = planned.get(state.id, state.status)
                plan = plan_report(state, item.outcome, item.outcome_at or None, ledger.now, status)
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
            accepted = [state for state in states if state.accepted]
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
        ledger.load_policy(self.policy)

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
        if not due:
            log_no_change(ledger, self.sender, ledger.chains[record.chain], answer)
        return answer


def log_no_change(ledger: Ledger, sender: Sender, own: ChainState, answer: CommandAnswer) -> None:
    """Log a request that changed nothing in the policy's own chain, if its answer is stored under a key."""
    if sender.key is not None:
        receipt = make_receipt(sender, answer)
        seq = ledger.append(own, Repeated(at=ledger.now, actor=sender.actor, decision="", receipt=receipt.digest))
        store_answer(ledger, sender, receipt, own.id, seq, answer)


def carry_out(
    ledger: Ledger, sender: Sender, plans: Sequence[tuple[ChainState, Transition]], answer: CommandAnswer
) -> None:
    """Apply transitions in order. The last event carries the receipt of the answer."""
    receipt = make_receipt(sender, answer)
    for i, (chain, plan) in enumerate(plans):
        last = i == len(plans) - 1
        seq = ledger.append(chain, plan.event(ledger, sender, receipt if last else NO_RECEIPT))
        plan.apply(ledger, chain, seq)
        if plan.recorded and plan.kind == "erasure":
            monitored = ledger.registry.owner_of(ledger.connection, chain.id).monitored
            ledger.lock([monitored])
            ledger.erase_monitored(ledger.chains[monitored], sender.actor, plan.state.id)
        if plan.recorded and (plan.pending or plan.accepted):
            _change_use(ledger, sender, chain, plan)
        if plan.recorded and (plan.successes or plan.failures):
            _, record = _policy(ledger, chain)
            if record.learning:
                change = (int(plan.successes), int(plan.failures))
                label = ledger.label_of(record, plan.state, chain.segment or "", *change)
                ledger.learn(record, sender.actor, plan.state.id, label)
        if last:
            store_answer(ledger, sender, receipt, chain.id, seq, answer)


def with_policies(ledger: Ledger, chains: list[int]) -> list[int]:
    """Return chains of segments with those of their policies that change too, as far as they are known.

    A policy's own chain counts what all its segments use, and orders the labels of models that learn from all of them.
    """
    owners = (ledger.registry.owner(chain) for chain in set(chains))
    own = {record.chain for record in owners if record is not None and _changes_policy(record)}
    return [*own, *chains]


def _changes_policy(record: PolicyRecord) -> bool:
    """Return whether an outcome changes the policy's own chain."""
    return bool(record.learning) or (record.active is not None and record.active.overall is not None)


def _change_use(ledger: Ledger, sender: Sender, chain: ChainState, plan: Transition) -> None:
    """Log what a transition changes over all segments, if the active version of the policy has limits there."""
    _, record = _policy(ledger, chain)
    if record.active is None or record.active.overall is None:
        return
    ledger.lock([record.chain])
    own = ledger.chains[record.chain]
    accepted, month = plan.accepted, 0
    if accepted < 0:
        charged = ledger.charged_month(own, plan.state.id)
        if charged is None and chain.segment is not None:
            charged = ledger.opening_month(record, chain.segment, plan.state)
        accepted, month = (0, 0) if charged is None else (accepted, charged)
    if accepted or plan.pending:
        change = UseChange(accepted, plan.pending, plan.state.loss, month)
        ledger.change_use(own, sender.actor, plan.state.id, change)


def _policy(ledger: Ledger, chain: ChainState) -> tuple[str, PolicyRecord]:
    """Return the policy of a segment's locked chain, as it is now."""
    assert chain.policy_id is not None
    name = ledger.registry.name_of(ledger.connection, chain.policy_id)
    record = ledger.registry.known(name)
    if record is None or record.revision != chain.revision:
        record = ledger.load_policy(name)
    return name, record


def plan_report(
    state: DecisionState,
    outcome: Outcome | Interim,
    outcome_at: str | None,
    now: int,
    status: str | None = None,
    *,
    correction: bool = False,
) -> Transition:
    """Plan an outcome, a correction or an interim status. ``status`` is that after earlier items of a batch."""
    own_date = own_date_of(state, outcome_at, now)
    if outcome == "late" or outcome == "current":
        return plan_status(state, outcome, status, own_date)
    return plan_correction(state, outcome, own_date) if correction else plan_outcome(state, outcome, status, own_date)


def _borrowed_after(ledger: Ledger, record: PolicyRecord, version: Version, segment: str, plan: Transition) -> Borrowed:
    """Return what a segment borrows after a transition."""
    model = version.model
    assert model is not None
    if version.number in record.learning:
        state = ledger.model_states(record).states[version.number]
        assert isinstance(state, PooledState)
    else:
        state = model.start(segment_outcomes(ledger.connection, record.id))
    if plan.recorded and (plan.successes or plan.failures):
        state = model.learn(state, ModelLabel(segment, plan.successes, plan.failures))
    return model.borrowed(state, segment)


def _rule(ledger: Ledger, chain: ChainState, state: DecisionState) -> tuple[PolicyRecord, Version, SegmentRule]:
    """Return the policy, and the version and rule for the answer's belief: the active, or the decision's."""
    assert chain.policy_id is not None
    assert chain.segment is not None
    _, record = _policy(ledger, chain)
    if record.active is not None and chain.segment in record.active.rules:
        return record, record.active, record.active.rules[chain.segment]
    numbers = [state.version] if state.version else sorted(record.states, reverse=True)  # it was imported
    versions = (ledger.registry.version(ledger.connection, chain.policy_id, number) for number in numbers)
    version = next(version for version in versions if chain.segment in version.rules)
    return record, version, version.rules[chain.segment]
