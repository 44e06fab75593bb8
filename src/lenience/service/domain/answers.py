"""What the service answers, as it appears in JSON and in the OpenAPI description."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.service.domain.events import Choice, State
from lenience.service.domain.reasons import PrincipalReason, reasons
from lenience.service.domain.rule import Counts, SegmentRule, Verdict
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage.ledger import DecisionState

Status: TypeAlias = Literal["pending", "success", "failure", "expired", "rejected"]


class DecisionAnswer(msgspec.Struct, frozen=True, gc=False):
    """A decision. ``pending``, ``belief`` and the rest are as they were when it was made, before it counted itself."""

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Choice
    rule: str
    reason: str
    principal_reasons: list[PrincipalReason]
    probability: float
    belief: Belief
    pending: int
    limit: int | None
    threshold: float
    cost: float
    decided_at: str
    warnings: list[str]  # of values that the policy does not know


class DecisionsAnswer(msgspec.Struct, frozen=True):
    """Decisions, in the order asked."""

    decisions: list[DecisionAnswer]


class OutcomeAnswer(msgspec.Struct, frozen=True):
    """A decision after an outcome, a correction, an expiry, an override or an erasure; the segment's belief now."""

    id: str
    policy: str
    segment: str
    decision: Choice
    status: Status
    recorded: bool  # false if it was known already
    belief: Belief
    pending: int


class OutcomeProblem(msgspec.Struct, frozen=True):
    """An outcome of a batch that was not recorded, and why."""

    position: int
    id: str | None  # not if it was given by reference
    status: int
    detail: str


class OutcomesAnswer(msgspec.Struct, frozen=True):
    """What became of a batch of outcomes."""

    recorded: int
    repeated: int
    problems: list[OutcomeProblem]


class ExpiryAnswer(msgspec.Struct, frozen=True):
    """How many outcomes expired, and whether there may be more."""

    expired: int
    more: bool


class ErasureAnswer(msgspec.Struct, frozen=True):
    """Of how many decisions with personal data it was erased, and after which one to go on, if there may be more."""

    found: int
    erased: int
    next: str | None


class VersionAnswer(msgspec.Struct, frozen=True):
    """A version of a policy that was made or changed."""

    name: str
    version: int
    state: State
    segments: list[str]
    warnings: list[str]
    changed: bool = True  # not if it was so already
    replaced: int | None = None  # the version that ruled until then


class SegmentView(msgspec.Struct, frozen=True):
    """A segment as it stands: what is known, and what is done with the next individual.

    ``volume`` is the number of members still to come, each at its discount, and ``volume_to_start`` the volume from
    which on the version's prior is worth a first acceptance (with late labels: if they came at once). It is nothing
    where no volume up to a million is enough; neither is there with a horizon.
    """

    name: str
    share: float
    belief: Belief
    arrivals: int
    accepted: int
    pending: int
    accepts: bool
    threshold: float
    limit: int | None
    cost: float
    volume: float | None
    volume_to_start: float | None
    value: Bounds | None
    proved: bool
    certificate: str


class VersionView(msgspec.Struct, frozen=True):
    """A version in a list."""

    version: int
    state: State


class PolicyView(msgspec.Struct, frozen=True):
    """A policy with its versions, and the segments of the one that is shown (the active, or else the newest)."""

    name: str
    created_at: str
    versions: list[VersionView]
    version: int
    state: State
    specification: PolicySpecification
    segments: list[SegmentView]


class PolicyEntry(msgspec.Struct, frozen=True):
    """A policy in a list."""

    name: str
    created_at: str
    active: int | None
    versions: list[VersionView]


class PoliciesAnswer(msgspec.Struct, frozen=True):
    """All policies, by name."""

    policies: list[PolicyEntry]


class ShadowView(msgspec.Struct, frozen=True):
    """What a shadow version would have decided."""

    version: int
    decision: Choice
    rule: str
    threshold: float
    limit: int | None
    probability: float


class HistoryEntry(msgspec.Struct, frozen=True):
    """An event of a decision's life."""

    kind: str
    at: str
    actor: str
    sequence: int
    hash: str
    outcome: str | None = None
    choice: str | None = None
    by: str | None = None
    reason: str | None = None


class DecisionView(DecisionAnswer, frozen=True):
    """A decision, explained: as it was answered, and what came after."""

    status: Status
    overridden: bool
    value: Bounds | None
    value_of_continuing: Bounds | None
    would_have_changed: list[str]
    shadows: list[ShadowView]
    reference: str | None
    features: dict[str, float | str] | None
    erased: bool
    history: list[HistoryEntry]


class DecisionEntry(msgspec.Struct, frozen=True):
    """A decision in a list."""

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Choice
    status: Status
    decided_at: str


class DecisionsPage(msgspec.Struct, frozen=True):
    """A page of decisions, oldest first, and where the next begins."""

    decisions: list[DecisionEntry]
    next: str | None


class Health(msgspec.Struct, frozen=True):
    """Whether the service runs, or is ready."""

    status: str
    version: str


class ProblemAnswer(msgspec.Struct, frozen=True):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


def decision_answer(
    policy: str,
    version: int,
    rule: SegmentRule,
    counts: Counts,
    verdict: Verdict,
    identity: str,
    at: str,
    warnings: list[str],
) -> DecisionAnswer:
    """The answer to a decision; counts are those before it."""
    why, principal = reasons(rule, counts, verdict)
    return DecisionAnswer(
        id=identity,
        policy=policy,
        policy_version=version,
        segment=rule.name,
        decision=verdict.decision,
        rule=verdict.rule,
        reason=why,
        principal_reasons=principal,
        probability=verdict.probability,
        belief=rule.belief(counts),
        pending=counts.pending,
        limit=verdict.limit,
        threshold=verdict.threshold,
        cost=rule.table.cost,
        decided_at=at,
        warnings=warnings,
    )


def outcome_answer(
    state: DecisionState, policy: str, rule: SegmentRule, counts: Counts, recorded: bool
) -> OutcomeAnswer:
    """The answer to an outcome; counts are those after it."""
    return OutcomeAnswer(
        id=state.id,
        policy=policy,
        segment=rule.name,
        decision="accept" if state.accepted else "reject",
        status=state.status,  # type: ignore[arg-type]
        recorded=recorded,
        belief=rule.belief(counts),
        pending=counts.pending,
    )
