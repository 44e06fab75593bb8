"""What is going to happen to a decision, planned before anything is changed, so that a refusal changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from lenience.service.commands.command import Receipt, Sender
from lenience.service.domain import limits
from lenience.service.domain.answers import Status
from lenience.service.domain.events import (
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
from lenience.service.domain.problems import Conflict
from lenience.service.domain.rule import Counts
from lenience.service.storage import schema
from lenience.service.storage.ledger import ChainState, DecisionState, Ledger, Personal


class OverrideRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Decided otherwise by a person, by role, with the reason."""

    decision: Choice
    by: limits.Role
    reason: limits.Note


@dataclass(frozen=True, slots=True)
class Plan:
    """The event that is to come, and what it does to the decision and to its segment's counts."""

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
    personal: Personal | None = None

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

    def apply(self, ledger: Ledger, chain: ChainState, seq: int) -> None:
        """Let it happen."""
        if not self.recorded:
            return
        state = self.state
        chain.counts = self.counts_after(chain.counts)
        state.status = self.status
        state.accepted = self.choice == "accept"
        state.changed = True
        if self.kind == "erasure":
            ledger.erase_personal(state, seq)
        if self.personal is not None:
            ledger.add_personal(chain.id, seq, self.personal)


def plan_outcome(state: DecisionState, outcome: Outcome, status: str | None = None) -> Plan:
    """The outcome of an acceptance; one that expired may still come."""
    now = state.status if status is None else status
    if now == schema.REJECTED:
        raise Conflict(f"the decision {state.id} is to reject, so it has no outcome: override it to accept first")
    if now == outcome:
        return Plan(state, outcome, "accept", "outcome", recorded=False)
    if now in (schema.SUCCESS, schema.FAILURE):
        raise Conflict(
            f"the decision {state.id} has the outcome {now} already: if that was wrong, POST its /correction"
        )
    good = outcome == "success"
    waited = -1 if now == schema.PENDING else 0
    return Plan(state, outcome, "accept", "outcome", True, successes=good, failures=not good, pending=waited)


def plan_expiry(state: DecisionState) -> Plan:
    """An outcome that expires: it teaches nothing, and is no longer awaited."""
    if state.status == schema.EXPIRED:
        return Plan(state, "expired", "accept", "expiry", recorded=False)
    if state.status != schema.PENDING:
        raise Conflict(f"the decision {state.id} is not pending but {state.status}")
    return Plan(state, "expired", "accept", "expiry", True, pending=-1)


def plan_correction(state: DecisionState, outcome: Outcome) -> Plan:
    """A later truth: one more success and one failure less, or the other way round."""
    if state.status not in (schema.SUCCESS, schema.FAILURE):
        raise Conflict(f"the decision {state.id} has no outcome to correct: it is {state.status}")
    if state.status == outcome:
        return Plan(state, outcome, "accept", "correction", recorded=False)
    step = 1 if outcome == "success" else -1
    before: Outcome = "failure" if outcome == "success" else "success"
    return Plan(state, outcome, "accept", "correction", True, successes=step, failures=-step, before=before)


def plan_override(state: DecisionState, request: OverrideRequest) -> Plan:
    """Decided otherwise by a person: an acceptance is awaited, a rejection is awaited no more."""
    choice = request.decision
    if choice == choice_of(state):
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


def plan_nothing(state: DecisionState, kind: str, *, recorded: bool) -> Plan:
    """Something that leaves the decision and the counts as they are."""
    return Plan(state, status_of(state), choice_of(state), kind, recorded)


def choice_of(state: DecisionState) -> Choice:
    """What is decided, as it stands."""
    return "accept" if state.accepted else "reject"


def status_of(state: DecisionState) -> Status:
    """What became of it, as it stands."""
    return state.status  # type: ignore[return-value]
