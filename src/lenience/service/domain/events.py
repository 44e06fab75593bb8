"""The events of the log: each records what happened and everything that determined it, as JSON text.

The genesis hash of a chain names its policy and segment, so the events do not repeat them. Times are microseconds since
1970 (UTC). Events never hold personal data, only a salted commitment to it. The commitment can be checked while the
data is stored beside the log, and reveals nothing after the data is erased.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.offers import Offer
from lenience.service.domain.feature_models import Applicant
from lenience.service.domain.overall import OverallUse, UseChange
from lenience.service.domain.pooled_models import Borrowed
from lenience.service.domain.segment_counts import SegmentCounts

Choice: TypeAlias = Literal["accept", "reject"]
# wait: only a limit stands in the way; refer: a person decides
Decision: TypeAlias = Literal["accept", "reject", "wait", "refer"]
Outcome: TypeAlias = Literal["success", "failure"]
Interim: TypeAlias = Literal["late", "current"]  # statuses of an accepted individual whose outcome is pending
State: TypeAlias = Literal["draft", "shadow", "rollout", "active", "retired"]


class Shadow(msgspec.Struct, frozen=True, array_like=True):
    """The decision that a shadow version would have made."""

    version: int
    decision: Decision
    rule: str
    limit: int | None
    probability: float
    threshold: float
    offer: Offer | None = None
    expected_profit: float | None = None
    label_value: Bounds | None = None
    borrowed: Borrowed | None = None  # under the model of the shadow version
    applicant: Applicant | None = None  # under the model of the shadow version, if it decides by features
    segment: str | None = None  # under the shadow version, if it decides by segments and the decision is by features
    counts: SegmentCounts | None = None  # of that segment, as the shadow version saw them


class Rank(msgspec.Struct, frozen=True):
    """The place of an individual in a ranked batch, and the index that it was ranked by."""

    place: int
    size: int
    index: float


class ReferralGround(msgspec.Struct, frozen=True, array_like=True):
    """Why a person decides: the rule, what the policy would answer by which rule of its own, and a review's worth."""

    by: str  # amount_above, evidence_below, near_minimum or daily_capacity
    would: Choice
    rule: str
    worth: float


class ReviewWorth(msgspec.Struct, frozen=True, array_like=True):
    """What a review of an applicant is worth, what it had to be worth that day, and how many were referred before."""

    worth: float
    price: float
    used: int


class _Event(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True, gc=False):
    at: int
    actor: str
    receipt: str | None = None  # commitment to the answer given under an idempotency key


class Decided(_Event, frozen=True, tag="decision", kw_only=True, gc=False):
    """A decision and everything that determined it: with the version's table, it can be reproduced.

    ``offers`` are those of the request, ``offer`` is the one that is made or rejected. ``at_risk`` is what the segment
    would have lost before this decision if all its pending outcomes had failed.
    """

    id: str
    version: int
    arrivals: int
    accepted: int
    pending: int
    successes: int
    failures: int
    decision: Decision
    rule: str
    limit: int | None
    probability: float
    threshold: float
    reason: str
    personal: str | None = None
    shadows: tuple[Shadow, ...] = ()
    offers: tuple[Offer, ...] = ()
    offer: Offer | None = None
    expected_profit: float | None = None
    label_value: Bounds | None = None
    at_risk: float | None = None  # absent if nothing is
    rank: Rank | None = None
    overall: OverallUse | None = None  # what all segments had used, where limits over all of them matter
    overall_at: int | None = None  # the last event of the policy's chain before the decision
    open: tuple[int, float, float] | None = None  # open loans, and the outcomes and successes as which they count
    forgotten: tuple[float, float] | None = None  # known outcomes and successes that do not count any more
    again: str | None = None  # the waiting decision of the same applicant that this one replaces
    model_at: int | None = None  # the event of the policy's chain whose model state the decision used
    borrowed: Borrowed | None = None  # evidence from other segments, by that state
    applicant: Applicant | None = None  # the estimate by the applicant's features, by that state
    referral: ReferralGround | None = None  # why a person decides
    review: ReviewWorth | None = None  # where the version refers within a daily capacity
    unfit: int | None = None  # the version in rollout that could not decide it: the request lacks what it needs


class Imported(_Event, frozen=True, tag="imported", kw_only=True, gc=False):
    """A past decision of an imported portfolio, with what is known of its outcome. No version of the policy made it.

    The counts are those of the segment before it. ``source`` is the number of the import and ``position`` the place of
    the row in it. ``decided_at`` and ``outcome_at`` are the row's own dates, while ``at`` is the time of the import.
    """

    id: str
    source: int
    position: int
    decided_at: int
    arrivals: int
    accepted: int
    pending: int
    successes: int
    failures: int
    decision: Choice
    status: str  # pending, success, failure, expired or rejected
    reported: Interim | None = None
    outcome_at: int | None = None
    offer: Offer | None = None
    at_risk: float | None = None
    personal: str | None = None


class SegmentsSeen(_Event, frozen=True, tag="segments_seen", kw_only=True):
    """How versions by segments in shadow see the segments' own chains: name, length and counts of those that changed.

    It is in the chain of the decisions by features.
    """

    chains: tuple[tuple[str, int, SegmentCounts], ...]


class OpenLoansCounted(_Event, frozen=True, tag="open_loans", kw_only=True):
    """What the open loans of a segment say at their age, counted before the first decision of a day.

    ``ages`` is a digest of the number of open loans of each age. ``evidence`` is, for each version with timing curves,
    its number and the outcomes and successes as which the open loans count.
    """

    number: int
    ages: str
    evidence: tuple[tuple[int, float, float], ...]
    forgotten: tuple[tuple[int, float, float], ...] = ()  # the same of what each version that forgets has forgotten


class Observed(_Event, frozen=True, tag="outcome", kw_only=True):
    """The outcome of an accepted individual, and its own date if the sender gave one."""

    decision: str
    outcome: Outcome
    outcome_at: int | None = None


class StatusReported(_Event, frozen=True, tag="status", kw_only=True):
    """The interim status of an accepted individual whose outcome is pending."""

    decision: str
    status: Interim
    status_at: int | None = None


class Repeated(_Event, frozen=True, tag="repeat", kw_only=True):
    """A request that changed nothing because it was recorded before. It is logged for its receipt."""

    decision: str


class Corrected(_Event, frozen=True, tag="correction", kw_only=True):
    """A corrected outcome that replaces an earlier one."""

    decision: str
    before: Outcome
    outcome: Outcome
    outcome_at: int | None = None


class Expired(_Event, frozen=True, tag="expiry", kw_only=True):
    """An outcome that has not arrived and is no longer expected, or a referred case that nobody has decided."""

    decision: str


class Overridden(_Event, frozen=True, tag="override", kw_only=True):
    """An override by a person, or the decision of a person on a referred case. The reason is stored beside the log."""

    decision: str
    choice: Choice
    by: str
    personal: str
    review: bool = False  # whether the case was referred to a person


class Erased(_Event, frozen=True, tag="erasure", kw_only=True):
    """The personal data of a decision was erased on request."""

    decision: str


class Monitored(_Event, frozen=True, tag="monitored", kw_only=True):
    """All monitored attributes of a decision from now on (in the chain of the policy's monitored attributes)."""

    decision: str
    names: tuple[str, ...]  # of the attributes; their values are stored beside the log
    personal: str  # the commitment to them


class PolicyCreated(_Event, frozen=True, tag="policy", kw_only=True):
    """A new policy, by name (in the system's chain)."""

    name: str


class VersionCreated(_Event, frozen=True, tag="version", kw_only=True):
    """A new version of a policy, by the digests of its content (in the policy's chain)."""

    number: int
    specification: str
    segments: str
    names: tuple[str, ...]
    decides_by_protected: tuple[str, ...] = ()  # protected attributes that it was allowed to decide by
    software: str = ""  # that solved it; empty in logs of earlier releases
    proved: int | None = None  # segments whose decisions are all proved optimal; None in logs of earlier releases


class StateChanged(_Event, frozen=True, tag="state", kw_only=True):
    """The new state of a version (in the policy's chain). The revision tells processes to reload the policy.

    Where the version has limits over all segments, ``overall`` is what they have used and have open when it becomes
    active, and ``lengths`` the numbers of events in the chains of the segments at that time. It includes acceptances by
    versions without such limits if ``counted``; events of earlier releases do not. Where its model learns from all
    segments, ``model`` and ``lengths`` say from which state it starts. Where a rollout starts, changes or ends,
    ``lengths`` say from which decisions on, and ``percent`` is the share of applicants that the version decides.
    """

    number: int
    state: State
    revision: int
    overall: OverallUse | None = None
    lengths: dict[str, int] = {}
    counted: bool = False  # whether acceptances by versions without limits count in ``overall``
    model: str | None = None  # the digest of the model state from which the version starts to learn
    four_eyes: bool = False  # whether it had to be activated by somebody other than its author
    reason: str = ""  # why, in the words of the actor
    percent: float | None = None  # of applicants, while the version is rolled out


class Learned(_Event, frozen=True, tag="label", kw_only=True):
    """A change of a segment's outcomes that live models have learnt (in the policy's chain).

    ``states`` has the number of each version with such a model, and the digest of its state after this label. A
    correction is ``relearnt`` if models with features have learnt everything since the wrong label again. Otherwise
    they have multiplied the likelihood, as all corrections did before there was this field. ``revised`` has the stored
    states in between that now have the right label: the version, the event after which it held, and its new digest.
    """

    decision: str
    segment: str
    successes: int = 0
    failures: int = 0
    states: tuple[tuple[int, str], ...] = ()
    relearnt: bool = False
    revised: tuple[tuple[int, int, str], ...] = ()

    @property
    def is_correction(self) -> bool:
        """Whether it replaces an earlier outcome."""
        return self.successes * self.failures < 0


class UseChanged(_Event, frozen=True, tag="use", kw_only=True):
    """A change of what all segments have used and have open, and the result (in the policy's chain)."""

    decision: str
    change: UseChange
    after: OverallUse


class ImportStarted(_Event, frozen=True, tag="import", kw_only=True):
    """The provenance of an imported portfolio (in the policy's chain)."""

    number: int
    file: str
    digest: str  # SHA-256 of the file
    rows: int  # that are imported
    left_out: int  # rows of the file that are not
    why_left_out: dict[str, int] = {}
    columns: dict[str, str] = {}  # the file's column for each field
    settings: dict[str, str] = {}  # how the file was read, e.g. words for success
    first: str | None = None  # dates of the first and the last decision
    last: str | None = None
    model: str = ""  # where the policy's prior comes from
    software: str = ""
    not_in_prior: bool = False  # whether the sender states that no version's prior holds these outcomes


class RowsImported(_Event, frozen=True, tag="import_rows", kw_only=True):
    """A batch of an import (in the policy's chain): its place, and how many rows were new, and of what kind."""

    number: int
    first: int
    size: int
    recorded: int
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0


class KeyCreated(_Event, frozen=True, tag="key", kw_only=True):
    """A new API key, by the hash of its secret (in the system's chain)."""

    id: str
    label: str
    secret_hash: str
    roles: str
    expires_at: int | None


class KeyRevoked(_Event, frozen=True, tag="key_revoked", kw_only=True):
    """An API key that was revoked."""

    id: str


class WebhookCreated(_Event, frozen=True, tag="webhook", kw_only=True):
    """A new webhook (in the system's chain). Its address may hold a secret, so the log has its digest only."""

    id: str
    address: str
    kinds: tuple[str, ...]


class WebhookRemoved(_Event, frozen=True, tag="webhook_removed", kw_only=True):
    """A webhook that was removed."""

    id: str


Event: TypeAlias = (
    Decided
    | Imported
    | OpenLoansCounted
    | SegmentsSeen
    | Observed
    | StatusReported
    | Repeated
    | Corrected
    | Expired
    | Overridden
    | Erased
    | Monitored
    | PolicyCreated
    | VersionCreated
    | StateChanged
    | Learned
    | UseChanged
    | ImportStarted
    | RowsImported
    | KeyCreated
    | KeyRevoked
    | WebhookCreated
    | WebhookRemoved
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def write(event: Event) -> str:
    """Encode an event as the text that is hashed and stored."""
    return _encoder.encode(event).decode()


def read(text: str | bytes) -> Event:
    """Decode a stored event.

    >>> read(write(Expired(at=1, actor="local", decision="d"))).decision
    'd'
    """
    return _decoder.decode(text)


def readable_event(body: str | bytes) -> Event | None:
    """Return the event of a text, or None if the text is not one."""
    try:
        return read(body)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def decision_of(event: Event) -> str | None:
    """Return the earlier decision that an event is about. The event of a decision is about the one it replaces, if any.

    >>> decision_of(Expired(at=1, actor="local", decision="d"))
    'd'
    """
    if isinstance(event, Decided):
        return event.again
    return None if isinstance(event, Imported) else getattr(event, "decision", None) or None
