"""The Merkle tree over all events, as RFC 6962 defines it: its root, and proofs that anybody can check.

A leaf is hashed as SHA-256(0x00 ‖ data) and a node as SHA-256(0x01 ‖ left ‖ right). A tree of n leaves divides them at
the largest power of two below n. So the tree is a row of complete subtrees, which never change once they are full, and
a proof is a list of about log₂ n hashes:

- an *inclusion proof* shows that a leaf is at its place in the tree with a given root;
- a *consistency proof* shows that a tree begins with all leaves of an earlier one, in the same order.

The functions that build proofs ask for complete subtrees by level and position, wherever these are stored. The
functions that check proofs need nothing but the proof (RFC 9162, sections 2.1.3.2 and 2.1.4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

Subtree = Callable[[int, int], bytes]  # the root of the 2^level leaves from position · 2^level on

EMPTY = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node with two children."""
    return sha256(b"\1" + left + right).digest()


def complete_root(hashes: Sequence[bytes]) -> bytes:
    """Return the root of a complete subtree from the hashes of its 2^k leaves, or of subtrees of one size.

    >>> a, b = leaf_hash(b"a"), leaf_hash(b"b")
    >>> complete_root([a, b]) == node_hash(a, b)
    True
    """
    row = list(hashes)
    while len(row) > 1:
        row = [node_hash(row[i], row[i + 1]) for i in range(0, len(row), 2)]
    return row[0]


def tree_root(size: int, subtree: Subtree) -> bytes:
    """Return the root of the tree of the first ``size`` leaves."""
    return _root(0, size, subtree) if size else EMPTY


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """Return the proof that the leaf ``index`` is in the tree of the first ``size`` leaves."""
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_root(middle, end, subtree))
            end = middle
        else:
            path.append(_root(start, middle, subtree))
            start = middle
    return path[::-1]


def consistency_proof(first: int, second: int, subtree: Subtree) -> list[bytes]:
    """Return the proof that the tree of ``second`` leaves begins with the tree of ``first`` leaves."""
    path: list[bytes] = []
    start, end, whole = 0, second, True
    while first != end:
        middle = start + _split(end - start)
        if first <= middle:
            path.append(_root(middle, end, subtree))
            end = middle
        else:
            path.append(_root(start, middle, subtree))
            start, whole = middle, False
    if not whole:
        path.append(_root(start, end, subtree))
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Return whether a proof shows that a leaf, given by its hash, is in the tree."""
    if not 0 <= index < size:
        return False
    place, last, result = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            result = node_hash(sibling, result)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            result = node_hash(result, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and result == root


def verify_consistency(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Return whether a proof shows that the second tree begins with the first one."""
    if not 0 < first <= second:
        return False
    if first == second:
        return not path and first_root == second_root
    rest = list(path)
    if first & (first - 1) == 0:  # the first tree is a complete subtree of the second
        rest.insert(0, first_root)
    if not rest:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = rest[0]
    for sibling in rest[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and old == first_root and new == second_root


def _root(start: int, end: int, subtree: Subtree) -> bytes:
    """Return the root of the leaves from start up to end, where start is a multiple of the subtrees inside."""
    parts: list[bytes] = []
    while start < end:
        level = (end - start).bit_length() - 1
        parts.append(subtree(level, start >> level))
        start += 1 << level
    root = parts.pop()
    while parts:
        root = node_hash(parts.pop(), root)
    return root


def _split(size: int) -> int:
    """Return the largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)
