"""The hash chain: each event's hash covers its own text and the hash of the event before it.

hash_i = SHA-256(hash_{i−1} ‖ text_i), from a genesis that names the chain. Changing, removing, inserting or moving an
event breaks the chain at that place. Cutting off its end, or writing all of it anew, breaks nothing inside: against
that the heads are kept elsewhere (``lenience audit --expect``).
"""

from __future__ import annotations

from hashlib import sha256


def genesis(policy: str | None, segment: str | None) -> str:
    """The hash before the first event of a chain: a policy's segment, a policy's own life, or the system."""
    return sha256(f"lenience\0{policy or ''}\0{segment or ''}".encode()).hexdigest()


def link(previous: str, text: str) -> str:
    """The hash of the event that follows.

    >>> first = link(genesis("cards", "young"), '{"kind": "decision"}')
    >>> link(first, "{}") == link(genesis("cards", "old"), "{}")
    False
    """
    return sha256((previous + text).encode()).hexdigest()


def commitment(salt: str, *parts: str | None) -> str:
    """A salted digest that proves a content without giving it away; without the salt it cannot even be guessed at."""
    content = "\0".join(["\1" if part is None else f"\2{part}" for part in parts])
    return sha256((salt + content).encode()).hexdigest()


def draw(previous: str, identity: str) -> float:
    """A number in [0, 1) that nobody can choose and anybody can check: from the chain's head and the decision's id.

    >>> 0 <= draw(genesis("cards", None), "some decision") < 1
    True
    """
    return int(sha256(f"draw{previous}{identity}".encode()).hexdigest()[:13], 16) / 16**13
