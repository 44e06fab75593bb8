"""The events of the log: what happened, with all that determined it, each written once as JSON text.

A chain's identity (policy and segment) is in its genesis and is not repeated in its events. Times are microseconds
since 1970 (UTC). Personal data is never in an event: only a salted commitment to it, which can be checked while the
data stands beside the log and means nothing once it is erased.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Choice: TypeAlias = Literal["accept", "reject"]
Outcome: TypeAlias = Literal["success", "failure"]
State: TypeAlias = Literal["draft", "shadow", "active", "retired"]


class Shadow(msgspec.Struct, frozen=True, array_like=True):
    """What a version that does not rule would have decided."""

    version: int
    decision: Choice
    rule: str
    limit: int | None
    probability: float
    threshold: float


class _Event(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True, gc=False):
    at: int
    actor: str
    receipt: str | None = None  # commitment to the answer given under an idempotency key


class Decided(_Event, frozen=True, tag="decision", kw_only=True, gc=False):
    """A decision and all that determined it: with the version's table these reproduce it."""

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


class Observed(_Event, frozen=True, tag="outcome", kw_only=True):
    """The outcome of an acceptance."""

    decision: str
    outcome: Outcome


class Repeated(_Event, frozen=True, tag="repeat", kw_only=True):
    """Something reported again that was recorded already: it changes nothing, and is noted for its receipt."""

    decision: str


class Corrected(_Event, frozen=True, tag="correction", kw_only=True):
    """A later truth that replaces an earlier one."""

    decision: str
    before: Outcome
    outcome: Outcome


class Expired(_Event, frozen=True, tag="expiry", kw_only=True):
    """An outcome that has not come and has expired."""

    decision: str


class Overridden(_Event, frozen=True, tag="override", kw_only=True):
    """Decided otherwise by a person; the reason stands beside the log."""

    decision: str
    choice: Choice
    by: str
    personal: str


class Erased(_Event, frozen=True, tag="erasure", kw_only=True):
    """The personal data of a decision was erased on request."""

    decision: str


class PolicyCreated(_Event, frozen=True, tag="policy", kw_only=True):
    """A policy, by name (in the system's chain)."""

    name: str


class VersionCreated(_Event, frozen=True, tag="version", kw_only=True):
    """A version of a policy, by the digests of what it is (in the policy's chain)."""

    number: int
    specification: str
    segments: str
    names: tuple[str, ...]


class StateChanged(_Event, frozen=True, tag="state", kw_only=True):
    """A version's new state (in the policy's chain); the revision tells processes that they must look again."""

    number: int
    state: State
    revision: int


class KeyCreated(_Event, frozen=True, tag="key", kw_only=True):
    """An API key, by the hash of its secret (in the system's chain)."""

    id: str
    label: str
    secret_hash: str
    roles: str
    expires_at: int | None


class KeyRevoked(_Event, frozen=True, tag="key_revoked", kw_only=True):
    """An API key that is no longer valid."""

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
    """The event as the text that is hashed and stored."""
    return _encoder.encode(event).decode()


def read(text: str | bytes) -> Event:
    """The event of a stored text.

    >>> read(write(Expired(at=1, actor="local", decision="d"))).decision
    'd'
    """
    return _decoder.decode(text)
