"""The hash chain: each event's hash covers its own text and the hash of the previous event.

hash_i = SHA-256(hash_{i−1} ‖ text_i), starting from a genesis hash that names the chain. Changing, removing, inserting
or moving an event breaks the chain at that place. Cutting off the end or rewriting the whole chain leaves a consistent
chain. To detect that, keep the heads of an audit elsewhere and pass them to ``lenience audit --expect``.
"""

from __future__ import annotations

from hashlib import sha256


def genesis(policy: str | None, segment: str | None) -> str:
    """Return the hash before the first event of a chain (of a segment, of a policy, or of the system)."""
    return sha256(f"lenience\0{policy or ''}\0{segment or ''}".encode()).hexdigest()


def monitored_genesis(policy: str) -> str:
    """Return the hash before the first event of the chain of a policy's monitored attributes."""
    return sha256(f"lenience\0monitored\0{policy}".encode()).hexdigest()


def link(previous: str, text: str | bytes) -> str:
    """Return the hash of an event from the previous hash and the event's text, or its text in UTF-8.

    >>> first = link(genesis("cards", "young"), '{"kind": "decision"}')
    >>> link(first, "{}") == link(genesis("cards", "old"), "{}")
    False
    """
    return sha256(previous.encode() + (text if isinstance(text, bytes) else text.encode())).hexdigest()


def commitment(salt: str, *parts: str | None) -> str:
    """Return a salted digest that proves a content without revealing it."""
    content = "\0".join(["\1" if part is None else f"\2{part}" for part in parts])
    return sha256((salt + content).encode()).hexdigest()


def draw(previous: str, identity: str) -> float:
    """Return a number in [0, 1) that nobody can choose and anybody can check, from the chain's head and an id.

    >>> 0 <= draw(genesis("cards", None), "some decision") < 1
    True
    """
    return int(sha256(f"draw{previous}{identity}".encode()).hexdigest()[:13], 16) / 16**13
