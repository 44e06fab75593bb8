"""The sender of a command, its idempotency key, the answer, and the receipt of the answer in the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from lenience.service.domain.chain import commitment
from lenience.service.domain.identity import random_hex

encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a command, and the key that makes it safe to repeat."""

    actor: str
    key: str | None = None  # digest of the actor and the Idempotency-Key
    request: str = ""  # digest of the request


@dataclass(frozen=True, slots=True)
class WriteCounts:
    """What a command wrote, for the metrics: decisions of a policy, or outcomes."""

    policy: str = ""
    accepted: int = 0
    rejected: int = 0
    outcomes: int = 0
    referred: int = 0  # decisions that were left to a person


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """An answer as it is sent, and stored if the command had an idempotency key."""

    status: int
    body: bytes
    made: WriteCounts = field(default=WriteCounts(), compare=False)  # not stored: repeating an answer writes nothing


def make_sender(actor: str, key: str | None, path: str, body: object, *, secret: bool = False) -> Sender:
    """Return the sender of a request with an optional Idempotency-Key.

    The digest of a ``secret`` request covers the key too. Its content could be guessed from a digest of the body alone.
    """
    if key is None:
        return Sender(actor)
    text = path.encode() + b"\0" + encoder.encode(body)
    if secret:  # the key itself is not stored, so nobody can guess short personal data from the digest
        text = key.encode() + b"\0" + text
    digest = sha256(text).hexdigest()
    return Sender(actor, sha256(f"{actor}\0{key}".encode()).hexdigest(), digest)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The commitment to an answer that an event carries, and the salt that verifies it."""

    salt: str
    digest: str | None


NO_RECEIPT = Receipt("", None)


def make_receipt(sender: Sender, answer: CommandAnswer) -> Receipt:
    """Return the receipt for an answer, empty if the command has no key."""
    if sender.key is None:
        return NO_RECEIPT
    salt = random_hex(32)
    return Receipt(salt, receipt_digest(salt, sender.key, sender.request, answer.status, answer.body.decode()))


def receipt_digest(salt: str, key: str, request: str, status: int, answer: str) -> str:
    """Return the digest of an answer that the log holds."""
    return commitment(salt, key, request, str(status), answer)
