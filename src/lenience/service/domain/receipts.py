"""Who sent a command, under which idempotency key, what was answered, and the receipt that the log holds of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from lenience.service.domain.chain import commitment
from lenience.service.domain.identity import random_hex

encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a command, and the key that makes it safe to send again."""

    actor: str
    key: str | None = None  # digest of the actor and the Idempotency-Key
    request: str = ""  # digest of what was asked


@dataclass(frozen=True, slots=True)
class WriteCounts:
    """What a command wrote that is counted: decisions of a policy, or outcomes."""

    policy: str = ""
    accepted: int = 0
    rejected: int = 0
    outcomes: int = 0


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """An answer as it is sent and, under a key, kept."""

    status: int
    body: bytes
    made: WriteCounts = field(default=WriteCounts(), compare=False)  # not kept: to repeat an answer makes nothing


def make_sender(actor: str, key: str | None, path: str, body: object) -> Sender:
    """The sender of a request with an optional Idempotency-Key."""
    if key is None:
        return Sender(actor)
    digest = sha256(path.encode() + b"\0" + encoder.encode(body)).hexdigest()
    return Sender(actor, sha256(f"{actor}\0{key}".encode()).hexdigest(), digest)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The commitment to an answer that an event carries, and the salt to check it with."""

    salt: str
    digest: str | None


NO_RECEIPT = Receipt("", None)


def make_receipt(sender: Sender, answer: CommandAnswer) -> Receipt:
    """A receipt for an answer under a key; none without a key."""
    if sender.key is None:
        return NO_RECEIPT
    salt = random_hex(32)
    return Receipt(salt, receipt_digest(salt, sender.key, sender.request, answer.status, answer.body.decode()))


def receipt_digest(salt: str, key: str, request: str, status: int, answer: str) -> str:
    """What the log holds of an answer."""
    return commitment(salt, key, request, str(status), answer)
