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

Choice: TypeAlias = Literal["accept", "reject"]
Outcome: TypeAlias = Literal["success", "failure"]
State: TypeAlias = Literal["draft", "shadow", "active", "retired"]


class Shadow(msgspec.Struct, frozen=True, array_like=True):
    """The decision that a shadow version would have made."""

    version: int
    decision: Choice
    rule: str
    limit: int | None
    probability: float
    threshold: float
    offer: Offer | None = None
    expected_profit: float | None = None
    label_value: Bounds | None = None


class Rank(msgspec.Struct, frozen=True):
    """The place of an individual in a ranked batch, and the index that it was ranked by."""

    place: int
    size: int
    index: float


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
    decision: Choice
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


class Observed(_Event, frozen=True, tag="outcome", kw_only=True):
    """The outcome of an accepted individual."""

    decision: str
    outcome: Outcome


class Repeated(_Event, frozen=True, tag="repeat", kw_only=True):
    """A request that changed nothing because it was recorded before. It is logged for its receipt."""

    decision: str


class Corrected(_Event, frozen=True, tag="correction", kw_only=True):
    """A corrected outcome that replaces an earlier one."""

    decision: str
    before: Outcome
    outcome: Outcome


class Expired(_Event, frozen=True, tag="expiry", kw_only=True):
    """An outcome that has not arrived and is no longer expected."""

    decision: str


class Overridden(_Event, frozen=True, tag="override", kw_only=True):
    """An override by a person. Its reason is stored beside the log."""

    decision: str
    choice: Choice
    by: str
    personal: str


class Erased(_Event, frozen=True, tag="erasure", kw_only=True):
    """The personal data of a decision was erased on request."""

    decision: str


class PolicyCreated(_Event, frozen=True, tag="policy", kw_only=True):
    """A new policy, by name (in the system's chain)."""

    name: str


class VersionCreated(_Event, frozen=True, tag="version", kw_only=True):
    """A new version of a policy, by the digests of its content (in the policy's chain)."""

    number: int
    specification: str
    segments: str
    names: tuple[str, ...]


class StateChanged(_Event, frozen=True, tag="state", kw_only=True):
    """The new state of a version (in the policy's chain). The revision tells processes to reload the policy."""

    number: int
    state: State
    revision: int


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


Event: TypeAlias = (
    Decided
    | Observed
    | Repeated
    | Corrected
    | Expired
    | Overridden
    | Erased
    | PolicyCreated
    | VersionCreated
    | StateChanged
    | KeyCreated
    | KeyRevoked
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
