"""Define the answers of the service, as they appear in JSON and in the OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.data_origin import PolicyOrigin
from lenience.core.offers import Offer
from lenience.service.domain.alerts import Alert
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import Decision, State
from lenience.service.domain.fair_version import FairnessBody, GroupRates
from lenience.service.domain.feature_models import Applicant
from lenience.service.domain.feature_rule import applicant_belief, applicant_principal_reasons, applicant_reason
from lenience.service.domain.reason_parts import PrincipalReason
from lenience.service.domain.reasons import reasons
from lenience.service.domain.rule import Counts, SegmentRule, Verdict
from lenience.service.domain.specification import PolicySpecification
from lenience.service.domain.state import DecisionState

Status: TypeAlias = Literal[
    "pending", "success", "failure", "expired", "rejected", "waiting", "replaced", "referred", "lapsed"
]
Reported: TypeAlias = Literal["late", "current"]


class OfferAnswer(msgspec.Struct, frozen=True, gc=False):
    """An offer: the amount at stake, the break-even, what a success earns and what a failure loses."""

    amount: float
    cost: float
    gain: float
    loss: float


class DecisionAnswer(msgspec.Struct, frozen=True, gc=False):
    """A decision. Counts and belief are those before this decision was counted.

    Where amounts differ, ``offer`` is the one to make, or the one that is rejected. ``expected_profit`` is its own,
    ``label_value`` is what its outcome is worth for later decisions, both in money. All three are null otherwise.

    A decision to ``wait`` is neither: only a limit stands in the way, and the individual can be decided again.
    ``again`` is the waiting decision that this one replaces.

    A decision to ``refer`` is left to a person. ``rule`` says why, and the reason what the policy would answer.
    """

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Decision
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
    warnings: list[str]  # about feature values that the policy does not list
    offer: OfferAnswer | None = None
    expected_profit: float | None = None
    label_value: Bounds | None = None
    again: str | None = None


class DecisionsAnswer(msgspec.Struct, frozen=True):
    """Decisions, in the order of the request."""

    decisions: list[DecisionAnswer]


class RankAnswer(msgspec.Struct, frozen=True):
    """Decisions of a ranked batch, in the order of the request.

    ``order`` has their positions, the best first, and ``index`` what accepting each is worth. ``chosen`` is how many
    had capacity. ``total`` is the sum of their indices, which no choice that fits can raise above ``bound``.
    """

    decisions: list[DecisionAnswer]
    order: list[int]
    index: list[float]
    chosen: int
    total: float
    bound: float


class OutcomeAnswer(msgspec.Struct, frozen=True):
    """A decision after a change (outcome, correction, expiry, override, erasure), with the segment's belief.

    ``profit`` is what the outcome has earned, in money. It is null without an outcome or an offer. ``reported`` is the
    interim status of a pending decision (late or current), and ``outcome_at`` the own date of the outcome, if given.
    """

    id: str
    policy: str
    segment: str
    decision: Decision
    status: Status
    recorded: bool  # false if it was recorded before
    belief: Belief
    pending: int
    profit: float | None
    reported: Reported | None = None
    outcome_at: str | None = None


class OutcomeProblem(msgspec.Struct, frozen=True):
    """An outcome of a batch that could not be recorded, with the reason."""

    position: int
    id: str | None  # None if the request gave a reference
    status: int
    detail: str
    code: str


class OutcomesAnswer(msgspec.Struct, frozen=True):
    """The result of a batch of outcomes: how many were recorded or repeated, and the problems."""

    recorded: int
    repeated: int
    problems: list[OutcomeProblem]


class ExpiryAnswer(msgspec.Struct, frozen=True):
    """How many outcomes expired, and whether more may be due."""

    expired: int
    more: bool


class MonitoredAnswer(msgspec.Struct, frozen=True):
    """The names of a decision's monitored attributes after a change, and whether it changed anything.

    Their values are personal data, and answers may be stored for a while. GET the decision to see them.
    """

    id: str
    policy: str
    attributes: list[str]
    recorded: bool


class ErasureAnswer(msgspec.Struct, frozen=True):
    """How many decisions had personal data, how many were erased, and the id to continue after."""

    found: int
    erased: int
    next: str | None


class VersionAnswer(msgspec.Struct, frozen=True):
    """A version of a policy that was created or changed."""

    name: str
    version: int
    state: State
    segments: list[str]
    warnings: list[str]
    changed: bool = True  # false if it was in that state before
    replaced: int | None = None  # the version that was active until then
    percent: float | None = None  # of applicants that it decides, while it is rolled out


SolveState: TypeAlias = Literal["waiting", "solving", "done", "failed", "cancelling", "cancelled"]


class SolveAnswer(msgspec.Struct, frozen=True):
    """A version that is solved in the background: how many of its segments are solved, and the version when it is done.

    ``segments`` is 0 while the solve waits for others. ``problem`` says why it failed.
    """

    id: str
    policy: str
    state: SolveState
    solved: int
    segments: int
    version: VersionAnswer | None = None
    problem: str | None = None


class SolvesAnswer(msgspec.Struct, frozen=True):
    """The versions that are solved in the background, the newest first."""

    solves: list[SolveAnswer]


class SegmentView(msgspec.Struct, frozen=True):
    """A segment now: its counts and belief, and the decision for the next individual.

    ``evidence`` says in words what the belief rests on. ``imported`` of the arrivals were imported as past decisions.

    ``volume`` is the number of members still to come, each weighted by its discount. ``volume_to_start`` is the
    smallest volume at which a first acceptance pays under the version's prior (if outcomes came without delay). It is
    null if no volume up to a million is enough. Both are null for an objective with a horizon.

    Where amounts differ, ``accepts`` and ``threshold`` are about the offer of the version that is best now. ``cost`` is
    the break-even of accepting everyone. ``label_value`` is what one more outcome is worth. ``largest_amount`` is the
    largest amount that is accepted at that ``cost`` (null if any is). ``share_accepted`` is the share of arrivals with
    an offer that is accepted, and ``at_risk`` what the pending outcomes lose if all fail.
    """

    name: str
    share: float
    belief: Belief
    evidence: str
    arrivals: int
    accepted: int
    pending: int
    imported: int
    accepts: bool
    threshold: float
    limit: int | None
    cost: float
    volume: float | None
    volume_to_start: float | None
    value: Bounds | None
    proved: bool
    certificate: str
    label_value: Bounds | None
    largest_amount: float | None
    share_accepted: float | None
    at_risk: float | None


class VersionView(msgspec.Struct, frozen=True):
    """A version in a list. ``percent`` is the share of applicants that it decides while it is rolled out."""

    version: int
    state: State
    percent: float | None = None


class StateEntry(msgspec.Struct, frozen=True):
    """A change of a version's state: when, by whom, whether four eyes were required, and why.

    ``percent`` is the share of applicants that a version in rollout decides.
    """

    state: State
    at: str
    by: str
    four_eyes: bool
    reason: str
    percent: float | None = None


class VersionRecord(VersionView, frozen=True, kw_only=True):
    """A version with its author, its approver, and where it comes from.

    ``created_by`` and ``activated_by`` are actors of the log. All decisions of ``proved`` of the ``segments`` are
    proved optimal. It is null in logs of earlier releases. ``specification`` is the SHA-256 digest of the version's
    specification, and ``changes`` are the changes of its state, the first one first.
    """

    created_at: str | None
    created_by: str | None
    activated_at: str | None
    activated_by: str | None
    four_eyes: bool
    segments: int
    proved: int | None
    software: str
    specification: str
    description: str
    origin: PolicyOrigin | None
    changes: list[StateEntry]


class CapacityView(msgspec.Struct, frozen=True):
    """The limits over all segments of a version, and what is used of them now.

    ``used`` is what the ``period`` (a month or a year) has used of the ``limit``: acceptances, or losses if all of them
    fail. ``price`` is what one unit of it is worth. ``bound`` is an upper bound of what any policy earns that keeps the
    limit, and ``unlimited`` what the best policy earns without it, both discounted, at the version's prior. The price
    and both values are null without arrivals to compare the capacity with.
    """

    period: str | None
    limit: float | None
    used: float | None
    price: float | None
    bound: float | None
    unlimited: Bounds | None
    exposure_cap: int | None
    exposure_cap_amount: float | None
    pending: int
    at_risk: float


class FairnessView(msgspec.Struct, frozen=True):
    """The fairness limit of a version, and what it does to each group, as expected when the version was solved.

    ``value`` and ``unlimited`` are what the best policies with and without the limit earn, discounted.
    """

    limit: str
    group_aware: bool
    value: Bounds
    unlimited: Bounds
    groups: list[GroupRates]


class ImportView(msgspec.Struct, frozen=True):
    """An imported portfolio: where it came from, and how much of it has arrived.

    ``received`` of its ``rows`` have arrived. ``recorded`` of them became decisions of the policy. The others were
    there already. ``left_out`` rows of the file were not sent.
    """

    number: int
    file: str
    digest: str
    rows: int
    received: int
    recorded: int
    accepted: int
    pending: int
    successes: int
    failures: int
    complete: bool
    left_out: int
    why_left_out: dict[str, int]
    columns: dict[str, str]
    settings: dict[str, str]
    first: str | None
    last: str | None
    model: str
    software: str
    not_in_prior: bool
    imported_at: str
    imported_by: str


class ImportProblem(msgspec.Struct, frozen=True):
    """A row of an import that could not be recorded, with the reason."""

    position: int
    status: int
    detail: str
    code: str


class ImportAnswer(msgspec.Struct, frozen=True):
    """The result of a batch of an import.

    ``recorded`` rows are new, ``repeated`` ones were there before, and of ``outcomes`` decisions that were there only
    the outcome or the interim status is new. ``received`` of ``rows`` have arrived with all batches so far.
    """

    number: int
    recorded: int
    outcomes: int
    repeated: int
    problems: list[ImportProblem]
    received: int
    rows: int
    complete: bool


class PolicyView(msgspec.Struct, frozen=True):
    """A policy with its versions and the segments of the version shown (the active one, else the newest).

    ``warnings`` name segments whose arriving offers are no longer those that the version was solved for. ``overall``
    has the limits over all segments, or null if the version has none. ``imports`` are the portfolios of past decisions
    that were imported.
    """

    name: str
    created_at: str
    versions: list[VersionRecord]
    version: int
    state: State
    specification: PolicySpecification
    segments: list[SegmentView]
    warnings: list[str]
    overall: CapacityView | None
    imports: list[ImportView]
    fairness: FairnessView | None


class ModelAnswer(msgspec.Struct, frozen=True):
    """What the model of a version knows now: the state in base64, its SHA-256, and the event after which it holds."""

    policy: str
    version: int
    at: int
    digest: str
    state: str


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
    """The decision that a shadow version would have made."""

    version: int
    decision: Decision
    rule: str
    threshold: float
    limit: int | None
    probability: float
    offer: OfferAnswer | None
    expected_profit: float | None
    segment: str | None = None  # under the shadow version, if the decision is by features and the shadow by segments


class HistoryEntry(msgspec.Struct, frozen=True):
    """One event in the history of a decision."""

    kind: str
    at: str
    actor: str
    sequence: int
    hash: str
    outcome: str | None = None
    choice: str | None = None
    by: str | None = None
    reason: str | None = None
    own_date: str | None = None  # of an outcome, an interim status or an imported decision
    decision: str | None = None  # the later decision that replaced this one, or the decision itself


class ImportedFrom(msgspec.Struct, frozen=True):
    """The source of an imported decision: the file, its digest, the number of the import, and the row in it."""

    number: int
    file: str
    digest: str
    position: int


ContributionsAt: TypeAlias = Literal["decision", "now"]


class FeatureContribution(msgspec.Struct, frozen=True):
    """What a feature adds to the log-odds of success, compared with typical applicants. A missing value is null."""

    feature: str
    value: float | str | None
    log_odds: float


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with its explanation and its history.

    The fields are those of the answer to the decision. An imported decision was not made by the policy: it has the
    version 0, and what a policy would have computed is null.

    ``contributions`` are what the applicant's features add to the log-odds of success, the largest first, by what the
    model knew at the time (``contributions_at`` is "decision"), or by what it knows now if that state cannot be
    computed any more ("now"). They add up to ``log_odds`` minus ``reference_log_odds``, those of typical applicants.
    ``evidence`` says in words what the estimate rests on.
    """

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Decision
    rule: str
    reason: str
    principal_reasons: list[PrincipalReason]
    probability: float | None
    belief: Belief | None
    pending: int
    limit: int | None
    threshold: float | None
    cost: float | None
    decided_at: str
    warnings: list[str]
    offer: OfferAnswer | None
    expected_profit: float | None
    label_value: Bounds | None
    status: Status
    reported: Reported | None
    outcome_at: str | None
    imported: ImportedFrom | None
    profit: float | None
    offers: list[OfferAnswer]
    overridden: bool
    value: Bounds | None
    value_of_continuing: Bounds | None
    would_have_changed: list[str]
    contributions: list[FeatureContribution]
    contributions_at: ContributionsAt | None  # None if there are none
    log_odds: float | None
    reference_log_odds: float | None
    evidence: str | None
    shadows: list[ShadowView]
    reference: str | None
    features: dict[str, float | str | None] | None
    monitored: dict[str, str]
    erased: bool
    history: list[HistoryEntry]
    again: str | None  # the waiting decision that this one replaces
    replaced_by: str | None  # the later decision that replaces this one


class DecisionEntry(msgspec.Struct, frozen=True):
    """A decision in a list."""

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Decision
    status: Status
    decided_at: str
    reported: Reported | None = None
    imported: bool = False


class WaitingEntry(msgspec.Struct, frozen=True):
    """A waiting individual, and whether it would be accepted now: null if that depends on its features."""

    id: str
    segment: str
    rule: str
    waiting_since: str
    accepts: bool | None
    offer: OfferAnswer | None
    reference: str | None


class WaitingPage(msgspec.Struct, frozen=True):
    """The individuals that wait, longest first, and the id after which the next page starts."""

    waiting: list[WaitingEntry]
    next: str | None


class DecisionsPage(msgspec.Struct, frozen=True):
    """A page of decisions, oldest first, and the id after which the next page starts."""

    decisions: list[DecisionEntry]
    next: str | None


class MessageAnswer(msgspec.Struct, frozen=True):
    """A message of a webhook: how often it was sent, when it was delivered, and the error of the last attempt."""

    id: str
    type: str
    created_at: str
    attempts: int
    delivered_at: str | None
    error: str | None
    given_up: bool


class WebhookAnswer(msgspec.Struct, frozen=True):
    """A webhook with the kinds of alerts that it gets, and its latest messages."""

    id: str
    url: str
    kinds: list[str]
    created_at: str
    messages: list[MessageAnswer] = []


class CreatedWebhook(msgspec.Struct, frozen=True):
    """A new webhook, with the secret that signs its messages. It is shown once."""

    id: str
    url: str
    kinds: list[str]
    created_at: str
    secret: str


class WebhooksAnswer(msgspec.Struct, frozen=True):
    """All webhooks."""

    webhooks: list[WebhookAnswer]


class AlertsAnswer(msgspec.Struct, frozen=True):
    """The alerts that have begun and not ended, the oldest first."""

    alerts: list[Alert]


class CheckpointAnswer(msgspec.Struct, frozen=True):
    """A signed checkpoint of the log: how many events it had at a time, and the note that is signed."""

    size: int
    time: str
    note: str


class ConsistencyAnswer(msgspec.Struct, frozen=True):
    """The proof that the log of ``second`` events begins with that of ``first`` events: hashes in hexadecimal."""

    first: int
    second: int
    path: list[str]


class Health(msgspec.Struct, frozen=True):
    """Whether the service runs or is ready."""

    status: str
    version: str


class ProblemAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="The kind of problem; codes do not change between versions")]
    field: Annotated[str, Meta(description="The invalid field, if there is one")] | None = None
    value: Annotated[Any, Meta(description="The value given in the field, if it can be repeated")] = UNSET
    allowed: Annotated[str, Meta(description="What is allowed in the field")] | None = None


def decision_answer(
    policy: str,
    version: int,
    rule: SegmentRule,
    counts: Counts,
    verdict: Verdict,
    identity: str,
    at: str,
    warnings: list[str],
    choices: Sequence[Offer] = (),
    again: str | None = None,
    applicant: Applicant | None = None,
    lowered_by: Mapping[str, str] | None = None,
) -> DecisionAnswer:
    """Return the answer to a decision. ``counts`` are those before it.

    ``applicant`` is the estimate by features, and ``lowered_by`` the features that speak most against the applicant,
    each with a sentence.
    """
    cost = rule.break_even if verdict.offer is None else verdict.offer.cost
    if applicant is None:
        why, principal = reasons(rule, counts, verdict, choices)
    else:
        why = applicant_reason(rule, applicant, verdict, counts, cost)
        principal = applicant_principal_reasons(rule, applicant, verdict, cost, lowered_by or {})
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
        belief=rule.belief(counts) if applicant is None else applicant_belief(applicant),
        pending=counts.pending,
        limit=verdict.limit,
        threshold=verdict.threshold,
        cost=cost,
        decided_at=at,
        warnings=warnings,
        offer=offer_answer(verdict.offer),
        expected_profit=verdict.expected_profit,
        label_value=verdict.label_value,
        again=again,
    )


def fairness_view(body: FairnessBody | None) -> FairnessView | None:
    """Return the fairness limit of a version, or None if it has none."""
    if body is None:
        return None
    words = body.limit.constraint.describe()
    return FairnessView(words, body.group_aware, body.value, body.unlimited, body.groups)


def choice_of(accepted: bool, status: str) -> Decision:
    """Return the current decision. A waiting one was replaced, accepted or rejected later, or still waits.

    >>> choice_of(True, "pending"), choice_of(False, "waiting"), choice_of(False, "rejected")
    ('accept', 'wait', 'reject')
    >>> choice_of(False, "referred"), choice_of(False, "lapsed")
    ('refer', 'refer')
    """
    if accepted:
        return "accept"
    return "wait" if status in ("waiting", "replaced") else "refer" if status in ("referred", "lapsed") else "reject"


def offer_answer(offer: Offer | None) -> OfferAnswer | None:
    """Return an offer as it is answered, or None if there is none."""
    return None if offer is None else OfferAnswer(offer.amount, offer.cost, offer.gain, offer.loss)


def outcome_answer(
    state: DecisionState, policy: str, rule: SegmentRule, counts: Counts, recorded: bool
) -> OutcomeAnswer:
    """Return the answer to an outcome. ``counts`` are those after it."""
    return OutcomeAnswer(
        id=state.id,
        policy=policy,
        segment=rule.name,
        decision=choice_of(state.accepted, state.status),
        status=state.status,  # type: ignore[arg-type]
        recorded=recorded,
        belief=rule.belief(counts),
        pending=counts.pending,
        profit=state.profit,
        reported=state.reported,  # type: ignore[arg-type]
        outcome_at=None if state.outcome_at is None else iso_time(state.outcome_at),
    )
