"""What happens to a decision afterwards: outcome, correction, expiry, override, erasure. Each counts exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta
from sqlalchemy import select

from lenience.service import limits, schema
from lenience.service.answers import (
    ExpiryAnswer,
    OutcomeAnswer,
    OutcomeProblem,
    OutcomesAnswer,
    Status,
    outcome_answer,
)
from lenience.service.command import Answer, Receipt, Sender, encoder, keep, receipt
from lenience.service.events import (
    Choice,
    Corrected,
    Erased,
    Event,
    Expired,
    Observed,
    Outcome,
    Overridden,
    Repeated,
)
from lenience.service.ledger import ChainState, DecisionState, Ledger, Personal
from lenience.service.problems import Conflict, NotFound, Problem
from lenience.service.rule import Counts, SegmentRule


class OutcomeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What became of an accepted individual."""

    outcome: Outcome


class OverrideRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Decided otherwise by a person, by role, with the reason."""

    decision: Choice
    by: limits.Role
    reason: limits.Note


class OutcomeItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An outcome of a batch."""

    id: Annotated[str, Meta(max_length=36, pattern=limits.PLAIN)]
    outcome: Outcome


class OutcomesRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several outcomes."""

    outcomes: Annotated[list[OutcomeItem], Meta(min_length=1, max_length=limits.BATCH)]


class ExpiryRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Give up the outcomes of decisions older than so many days."""

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
        """The one."""
        return (self.decision,)

    def resolve(self, ledger: Ledger) -> None:
        """Refuse a decision that there is not."""
        if self.decision not in ledger.chain_of:
            raise NotFound(f"there is no decision {self.decision!r}")

    def chains(self, ledger: Ledger) -> list[int]:
        """The chain of the decision's segment."""
        return [ledger.chain_of[self.decision]]

    def run(self, ledger: Ledger) -> Answer:
        """Change the decision."""
        chain = ledger.chains[ledger.chain_of[self.decision]]
        state = ledger.decisions[self.decision]
        planned = self._plan(ledger, state)
        counts = planned.counts_after(chain.counts)
        policy, rule = _rule(ledger, chain, state)
        after = msgspec.structs.replace(
            _answer(state, policy, rule, counts, planned.recorded),
            status=planned.status,
            decision=planned.choice,
        )
        answer = Answer(200, encoder.encode(after))
        if not planned.recorded and self.sender.key is None:
            return answer
        given = receipt(self.sender, answer)
        seq = ledger.append(chain, planned.event(ledger, self.sender, given))
        planned.apply(ledger, chain, state, seq)
        keep(ledger, self.sender, given, chain.id, seq, answer)
        return answer

    def _plan(self, ledger: Ledger, state: DecisionState) -> Plan:
        if self.kind == "outcome":
            assert self.outcome is not None
            return plan_outcome(state, self.outcome)
        if self.kind == "correction":
            assert self.outcome is not None
            return _plan_correction(state, self.outcome)
        if self.kind == "override":
            assert self.override is not None
            return _plan_override(state, self.override)
        if self.kind == "expiry":
            return plan_expiry(state)
        return Plan(state, _as_status(state.status), _choice(state), "erasure", recorded=True)


@dataclass(frozen=True, slots=True)
class RecordOutcomes:
    """The command that records many outcomes; those that cannot be are reported, and do not hinder the others."""

    sender: Sender
    items: list[OutcomeItem]

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2 * len(self.items)

    @property
    def decisions(self) -> list[str]:
        """All of them."""
        return [item.id for item in self.items]

    def resolve(self, ledger: Ledger) -> None:
        """Refuse if there is none of the decisions."""
        if not any(item.id in ledger.chain_of for item in self.items):
            raise NotFound("there is none of these decisions")

    def chains(self, ledger: Ledger) -> list[int]:
        """The chains of all segments concerned."""
        return [ledger.chain_of[item.id] for item in self.items if item.id in ledger.chain_of]

    def run(self, ledger: Ledger) -> Answer:
        """Record them in order."""
        found = ledger.chain_of
        problems: list[OutcomeProblem] = []
        plans: list[tuple[ChainState, Plan]] = []
        ahead: dict[str, str] = {}  # what an earlier item of this batch makes of a decision
        repeated = 0
        for position, item in enumerate(self.items):
            if item.id not in found:
                problems.append(OutcomeProblem(position, item.id, 404, f"there is no decision {item.id!r}"))
                continue
            state = ledger.decisions[item.id]
            try:
                plan = plan_outcome(state, item.outcome, ahead.get(item.id, state.status))
            except Problem as problem:
                problems.append(OutcomeProblem(position, item.id, problem.status, problem.detail))
                continue
            if plan.recorded:
                ahead[item.id] = plan.status
                plans.append((ledger.chains[found[item.id]], plan))
            else:
                repeated += 1
        answer = Answer(200, encoder.encode(OutcomesAnswer(len(plans), repeated, problems)))
        if not plans and self.sender.key is not None:
            known = next(item.id for item in self.items if item.id in found)
            state = ledger.decisions[known]
            nothing = Plan(state, _as_status(state.status), _choice(state), "repeat", recorded=False)
            plans.append((ledger.chains[found[known]], nothing))
        given = receipt(self.sender, answer)
        for i, (chain, plan) in enumerate(plans):
            last = i == len(plans) - 1
            seq = ledger.append(chain, plan.event(ledger, self.sender, given if last else Receipt("", None)))
            plan.apply(ledger, chain, plan.state, seq)
            if last:
                keep(ledger, self.sender, given, chain.id, seq, answer)
        return answer


@dataclass(frozen=True, slots=True)
class Expire:
    """The command that gives up outcomes that have not come, the oldest first, so many at a time."""

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
        """Not known beforehand."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Know the policy."""
        ledger.registry.load(ledger.connection, self.policy)

    def chains(self, ledger: Ledger) -> list[int]:
        """The policy's segments; its own chain too, which notes a request that found nothing."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        return [record.chain, *record.segments.values()]

    def run(self, ledger: Ledger) -> Answer:
        """Give them up."""
        table = schema.decision
        record = ledger.registry.known(self.policy)
        assert record is not None
        where = (table.c.status == schema.PENDING) & (table.c.at < self.before)
        where &= table.c.chain_id.in_(list(record.segments.values()))
        # What this transaction has changed already is not in the database yet.
        found = ledger.connection.execute(select(table.c.id).where(where).order_by(table.c.id).limit(self.most)).all()
        ledger.read_decisions(row.id for row in found)
        states = [ledger.decisions[row.id] for row in found]
        due = [state for state in states if state.status == schema.PENDING]
        answer = Answer(200, encoder.encode(ExpiryAnswer(len(due), len(found) == self.most)))
        given = receipt(self.sender, answer)
        for i, state in enumerate(due):
            plan = plan_expiry(state)
            chain = ledger.chains[state.chain]
            last = i == len(due) - 1
            seq = ledger.append(chain, plan.event(ledger, self.sender, given if last else Receipt("", None)))
            plan.apply(ledger, chain, state, seq)
            if last:
                keep(ledger, self.sender, given, chain.id, seq, answer)
        if not due and self.sender.key is not None:
            own = ledger.chains[record.chain]
            seq = ledger.append(
                own, Repeated(at=ledger.now, actor=self.sender.actor, decision="", receipt=given.digest)
            )
            keep(ledger, self.sender, given, own.id, seq, answer)
        return answer


@dataclass(frozen=True, slots=True)
class Plan:
    """What is going to happen to a decision: made before anything is changed, so that a refusal changes nothing."""

    state: DecisionState
    status: Status
    choice: Choice
    kind: str
    recorded: bool
    successes: int = 0
    failures: int = 0
    pending: int = 0
    accepted: int = 0
    before: Outcome | None = None
    override: OverrideRequest | None = None
    personal: Personal | None = field(default=None)

    def counts_after(self, counts: Counts) -> Counts:
        """The segment's counts once it has happened."""
        return Counts(
            counts.arrivals,
            counts.accepted + self.accepted,
            counts.pending + self.pending,
            counts.successes + self.successes,
            counts.failures + self.failures,
        )

    def event(self, ledger: Ledger, sender: Sender, given: Receipt) -> Event:
        """The event that says so."""
        at, actor, decision, digest = ledger.now, sender.actor, self.state.id, given.digest
        if not self.recorded:
            return Repeated(at=at, actor=actor, decision=decision, receipt=digest)
        if self.kind == "outcome":
            assert self.status in ("success", "failure")
            return Observed(at=at, actor=actor, decision=decision, outcome=self.status, receipt=digest)
        if self.kind == "correction":
            assert self.status in ("success", "failure")
            assert self.before is not None
            return Corrected(
                at=at, actor=actor, decision=decision, before=self.before, outcome=self.status, receipt=digest
            )
        if self.kind == "expiry":
            return Expired(at=at, actor=actor, decision=decision, receipt=digest)
        if self.kind == "override":
            assert self.override is not None
            assert self.personal is not None
            return Overridden(
                at=at,
                actor=actor,
                decision=decision,
                choice=self.choice,
                by=self.override.by,
                personal=self.personal.commitment,
                receipt=digest,
            )
        return Erased(at=at, actor=actor, decision=decision, receipt=digest)

    def apply(self, ledger: Ledger, chain: ChainState, state: DecisionState, seq: int) -> None:
        """Let it happen."""
        if not self.recorded:
            return
        chain.counts = self.counts_after(chain.counts)
        state.status = self.status
        state.accepted = self.choice == "accept"
        state.changed = True
        if self.kind == "erasure":
            ledger.erase_personal(state)
        if self.personal is not None:
            ledger.add_personal(chain.id, seq, self.personal)


def plan_outcome(state: DecisionState, outcome: Outcome, status: str | None = None) -> Plan:
    """The outcome of an acceptance; one that was given up may still come."""
    now = state.status if status is None else status
    if now == schema.REJECTED:
        raise Conflict(f"the decision {state.id} was to reject, so it has no outcome (unless it is overridden)")
    if now == outcome:
        return Plan(state, outcome, "accept", "outcome", recorded=False)
    if now in (schema.SUCCESS, schema.FAILURE):
        raise Conflict(f"the decision {state.id} has the outcome {now} already: correct it if that was wrong")
    good = outcome == "success"
    waited = -1 if now == schema.PENDING else 0
    return Plan(state, outcome, "accept", "outcome", True, successes=good, failures=not good, pending=waited)


def plan_expiry(state: DecisionState) -> Plan:
    """An outcome that is given up: it teaches nothing, and is no longer awaited."""
    if state.status == schema.EXPIRED:
        return Plan(state, "expired", "accept", "expiry", recorded=False)
    if state.status != schema.PENDING:
        raise Conflict(f"the decision {state.id} is not pending but {state.status}")
    return Plan(state, "expired", "accept", "expiry", True, pending=-1)


def _plan_correction(state: DecisionState, outcome: Outcome) -> Plan:
    if state.status not in (schema.SUCCESS, schema.FAILURE):
        raise Conflict(f"the decision {state.id} has no outcome to correct: it is {state.status}")
    if state.status == outcome:
        return Plan(state, outcome, "accept", "correction", recorded=False)
    step = 1 if outcome == "success" else -1
    before: Outcome = "failure" if outcome == "success" else "success"
    return Plan(state, outcome, "accept", "correction", True, successes=step, failures=-step, before=before)


def _plan_override(state: DecisionState, request: OverrideRequest) -> Plan:
    choice = request.decision
    if choice == _choice(state):
        raise Conflict(f"the decision {state.id} is to {choice} already")
    personal = Personal.of(None, request.reason)
    if choice == "accept":
        return Plan(
            state, "pending", choice, "override", True, pending=1, accepted=1, override=request, personal=personal
        )
    if state.status not in (schema.PENDING, schema.EXPIRED):
        raise Conflict(f"the decision {state.id} has an outcome ({state.status}), so it cannot be overridden any more")
    waited = -1 if state.status == schema.PENDING else 0
    return Plan(
        state, "rejected", choice, "override", True, pending=waited, accepted=-1, override=request, personal=personal
    )


def _choice(state: DecisionState) -> Choice:
    return "accept" if state.accepted else "reject"


def _as_status(status: str) -> Status:
    return status  # type: ignore[return-value]


def _rule(ledger: Ledger, chain: ChainState, state: DecisionState) -> tuple[str, SegmentRule]:
    """The policy's name, and the rule whose prior the belief is told with: the active version's, or the decision's."""
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


def _answer(state: DecisionState, policy: str, rule: SegmentRule, counts: Counts, recorded: bool) -> OutcomeAnswer:
    return outcome_answer(state, policy, rule, counts, recorded)
