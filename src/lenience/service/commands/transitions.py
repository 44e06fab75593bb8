"""Transitions of a decision, planned before anything changes, so that a rejected request changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from lenience.core.errors import InputError
from lenience.service.domain import limits
from lenience.service.domain.answers import Status, choice_of
from lenience.service.domain.clock import check_order, iso_time, read_time
from lenience.service.domain.events import (
    Choice,
    Corrected,
    Decision,
    Erased,
    Event,
    Expired,
    Interim,
    Observed,
    Outcome,
    Overridden,
    Repeated,
    StatusReported,
)
from lenience.service.domain.problems import BadRequest, Conflict
from lenience.service.domain.receipts import Receipt, Sender
from lenience.service.domain.rule import Counts, at_risk_after
from lenience.service.domain.shadow_segments import Change
from lenience.service.domain.state import ChainState, DecisionState, Personal
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger


class ReviewRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision of a person on a referred case, the reason, and the person's role."""

    decision: Choice
    reason: limits.Note
    by: limits.Role = "reviewer"


class OverrideRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An override by a person: the new decision, the person's role and the reason."""

    decision: Choice
    by: limits.Role
    reason: limits.Note


@dataclass(frozen=True, slots=True)
class Transition:
    """A planned event, and its effect on the decision and on the counts of its segment."""

    state: DecisionState
    status: Status
    choice: Decision
    kind: str
    recorded: bool
    successes: int = 0
    failures: int = 0
    pending: int = 0
    accepted: int = 0
    before: Outcome | None = None
    override: OverrideRequest | None = None
    personal: Personal | None = None
    reported: Interim | None = None
    own_date: int | None = None  # of the outcome or the interim status, as the sender gave it

    def counts_after(self, counts: Counts) -> Counts:
        """Return the segment's counts after the transition."""
        pending = counts.pending + self.pending
        return Counts(
            counts.arrivals,
            counts.accepted + self.accepted,
            pending,
            counts.successes + self.successes,
            counts.failures + self.failures,
            at_risk_after(counts.at_risk, self.pending * self.state.loss, pending),
        )

    @property
    def reported_after(self) -> str | None:
        """The interim status after the transition. Only a pending decision has one."""
        if self.kind == "status":
            return self.reported
        return None if self.recorded and self.kind != "erasure" else self.state.reported

    @property
    def outcome_at_after(self) -> int | None:
        """The own date of the outcome after the transition, if one was given."""
        given = self.recorded and self.kind in ("outcome", "correction") and self.own_date is not None
        return self.own_date if given else self.state.outcome_at

    def event(self, ledger: Ledger, sender: Sender, receipt: Receipt) -> Event:
        """Return the event to log."""
        at, actor, decision, digest = ledger.now, sender.actor, self.state.id, receipt.digest
        if not self.recorded:
            return Repeated(at=at, actor=actor, decision=decision, receipt=digest)
        if self.kind == "outcome":
            assert self.status in ("success", "failure")
            own = self.own_date
            return Observed(at=at, actor=actor, decision=decision, outcome=self.status, outcome_at=own, receipt=digest)
        if self.kind == "status":
            assert self.reported is not None
            own = self.own_date
            return StatusReported(
                at=at, actor=actor, decision=decision, status=self.reported, status_at=own, receipt=digest
            )
        if self.kind == "correction":
            assert self.status in ("success", "failure")
            assert self.before is not None
            return Corrected(
                at=at,
                actor=actor,
                decision=decision,
                before=self.before,
                outcome=self.status,
                outcome_at=self.own_date,
                receipt=digest,
            )
        if self.kind == "expiry":
            return Expired(at=at, actor=actor, decision=decision, receipt=digest)
        if self.kind == "override":
            assert self.override is not None
            assert self.personal is not None
            assert self.choice in ("accept", "reject")
            return Overridden(
                at=at,
                actor=actor,
                decision=decision,
                choice=self.choice,
                by=self.override.by,
                personal=self.personal.commitment,
                review=self.state.status == schema.REFERRED,
                receipt=digest,
            )
        return Erased(at=at, actor=actor, decision=decision, receipt=digest)

    def apply(self, ledger: Ledger, chain: ChainState, seq: int) -> None:
        """Apply the transition to the ledger."""
        if not self.recorded:
            return
        state = self.state
        chain.counts = self.counts_after(chain.counts)
        change = Change(0, self.accepted, self.pending, self.successes, self.failures, state.loss)
        ledger.count_shadow_segments(chain, state.seq, change)
        if self.pending < 0 and chain.open_loans is not None:
            chain.open_loans.settle(state.seq)
        state.status = self.status
        state.accepted = self.choice == "accept"
        state.changed = True
        state.reported, state.outcome_at = self.reported_after, self.outcome_at_after
        if self.pending:
            ledger.note_pending(chain.id, state.id, pending=self.pending > 0)
        if self.kind == "erasure":
            ledger.erase_personal(state, seq)
        if self.personal is not None:
            ledger.add_personal(chain.id, seq, self.personal)


def plan_outcome(
    state: DecisionState, outcome: Outcome, status: str | None = None, own_date: int | None = None
) -> Transition:
    """Plan the outcome of an acceptance. An expired outcome may still be recorded."""
    now = state.status if status is None else status
    if now in (schema.WAITING, schema.REPLACED, schema.REFERRED, schema.LAPSED):
        raise Conflict(
            f"the decision {state.id} is {now}, not an acceptance, so it has no outcome", code="decision_not_accepted"
        )
    if now == schema.REJECTED:
        raise Conflict(
            f"the decision {state.id} is to reject, so it has no outcome: override it to accept first",
            code="decision_rejected",
        )
    if now == outcome:
        if own_date is not None and state.outcome_at is not None and own_date != state.outcome_at:
            raise Conflict(
                f"the outcome of the decision {state.id} is recorded with the date {iso_time(state.outcome_at)[:10]}",
                code="outcome_recorded",
                field="outcome_at",
            )
        return Transition(state, outcome, "accept", "outcome", recorded=False)
    if now in (schema.SUCCESS, schema.FAILURE):
        raise Conflict(
            f"the decision {state.id} has the outcome {now} already: if that was wrong, POST its /correction",
            code="outcome_recorded",
        )
    good = outcome == "success"
    pending = -1 if now == schema.PENDING else 0
    return Transition(
        *(state, outcome, "accept", "outcome", True),
        successes=good,
        failures=not good,
        pending=pending,
        own_date=own_date,
    )


def plan_status(
    state: DecisionState, reported: Interim, status: str | None = None, own_date: int | None = None
) -> Transition:
    """Plan an interim status of a pending acceptance. It changes no count."""
    now = state.status if status is None else status
    if now != schema.PENDING:
        raise Conflict(
            f"the decision {state.id} is {now}, not pending, so it cannot become {reported}",
            code="decision_not_pending",
        )
    recorded = state.reported != reported
    return Transition(state, "pending", "accept", "status", recorded, reported=reported, own_date=own_date)


def own_date_of(state: DecisionState, text: str | None, now: int) -> int | None:
    """Return the own date of an outcome in microseconds, or raise BadRequest if it cannot be that of the decision."""
    if text is None:
        return None
    try:
        at = read_time("outcome_at", text)
        check_order("outcome_at", at, state.at, now)
    except InputError as error:
        raise BadRequest.of(error) from None
    return at


def plan_expiry(state: DecisionState) -> Transition:
    """Plan the expiry of an outcome. It counts neither as success nor as failure, and is no longer pending.

    A referred case lapses: nobody has decided it.
    """
    if state.status == schema.EXPIRED:
        return Transition(state, "expired", "accept", "expiry", recorded=False)
    if state.status in (schema.REFERRED, schema.LAPSED):
        return Transition(state, "lapsed", "refer", "expiry", recorded=state.status == schema.REFERRED)
    if state.status != schema.PENDING:
        raise Conflict(f"the decision {state.id} is {state.status}, not pending", code="decision_not_pending")
    return Transition(state, "expired", "accept", "expiry", True, pending=-1)


def plan_correction(state: DecisionState, outcome: Outcome, own_date: int | None = None) -> Transition:
    """Plan a correction: one success more and one failure less, or the reverse."""
    if state.status not in (schema.SUCCESS, schema.FAILURE):
        raise Conflict(f"the decision {state.id} has no outcome to correct: it is {state.status}", code="no_outcome")
    if state.status == outcome:
        return Transition(state, outcome, "accept", "correction", recorded=False)
    step = 1 if outcome == "success" else -1
    before: Outcome = "failure" if outcome == "success" else "success"
    return Transition(
        *(state, outcome, "accept", "correction", True),
        successes=step,
        failures=-step,
        before=before,
        own_date=own_date,
    )


def plan_review(state: DecisionState, request: ReviewRequest) -> Transition:
    """Plan the decision of a person on a referred case."""
    if state.status != schema.REFERRED:
        raise Conflict(
            f"the decision {state.id} is {state.status}, so no person has to decide it", code="decision_not_referred"
        )
    person = OverrideRequest(request.decision, request.by, request.reason)
    step = int(request.decision == "accept")
    return Transition(
        *(state, "pending" if step else "rejected", request.decision, "override", True),
        pending=step,
        accepted=step,
        override=person,
        personal=Personal.of(None, request.reason),
    )


def plan_override(state: DecisionState, request: OverrideRequest) -> Transition:
    """Plan an override: an accepted decision becomes rejected and not pending, or the reverse."""
    choice = request.decision
    if state.status == schema.REFERRED:
        raise Conflict(
            f"the decision {state.id} waits for a person: POST its /review instead of an override",
            code="decision_referred",
        )
    if state.status == schema.REPLACED:
        raise Conflict(f"the decision {state.id} was decided again: override the later one", code="decided_again")
    if choice == choice_of(state.accepted, state.status):
        raise Conflict(f"the decision {state.id} is already to {choice}", code="already_decided")
    personal = Personal.of(None, request.reason)
    if choice == "accept":
        return Transition(
            state, "pending", choice, "override", True, pending=1, accepted=1, override=request, personal=personal
        )
    if state.status not in (schema.PENDING, schema.EXPIRED, schema.WAITING, schema.LAPSED):
        raise Conflict(
            f"the decision {state.id} has an outcome ({state.status}), so it can no longer be overridden",
            code="outcome_recorded",
        )
    pending, accepted = -1 if state.status == schema.PENDING else 0, -1 if state.accepted else 0
    return Transition(
        *(state, "rejected", choice, "override", True),
        pending=pending,
        accepted=accepted,
        override=request,
        personal=personal,
    )


def plan_nothing(state: DecisionState, kind: str, *, recorded: bool) -> Transition:
    """Plan a transition that leaves the decision and the counts unchanged."""
    return Transition(state, status_of(state), choice_of(state.accepted, state.status), kind, recorded)


def status_of(state: DecisionState) -> Status:
    """Return the current status."""
    return state.status  # type: ignore[return-value]
