"""The Merkle tree: published vectors of RFC 6962, and every proof of small trees against plain recursion."""

from __future__ import annotations

from hashlib import sha256

import pytest

from lenience.service.domain.merkle import (
    EMPTY,
    complete_root,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    tree_root,
    verify_consistency,
    verify_inclusion,
)

# The eight leaves and the roots of the trees of 1 to 8 of them that implementations of Certificate Transparency share.
LEAVES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = {  # (leaf, size) counted from 1, and the published path
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (3, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
}
CONSISTENCY = {
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


class Leaves:
    """Complete subtrees of leaves in memory."""

    def __init__(self, data: list[bytes]) -> None:
        self.hashes = [leaf_hash(each) for each in data]

    def __call__(self, level: int, position: int) -> bytes:
        part = self.hashes[position << level : (position + 1) << level]
        assert len(part) == 1 << level  # only complete subtrees may be asked for
        return complete_root(part)


def plain_root(data: list[bytes]) -> bytes:
    """The definition of RFC 6962, word for word."""
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\0" + data[0]).digest()
    k = 1
    while 2 * k < len(data):
        k *= 2
    return sha256(b"\1" + plain_root(data[:k]) + plain_root(data[k:])).digest()


def test_the_published_roots() -> None:
    assert EMPTY == tree_root(0, Leaves([])) == plain_root([])
    for size, root in enumerate(ROOTS, 1):
        assert tree_root(size, Leaves(LEAVES)).hex() == root == plain_root(LEAVES[:size]).hex()


def test_the_published_proofs() -> None:
    for (leaf, size), path in INCLUSION.items():
        assert [each.hex() for each in inclusion_proof(leaf - 1, size, Leaves(LEAVES))] == path
    for (first, second), path in CONSISTENCY.items():
        assert [each.hex() for each in consistency_proof(first, second, Leaves(LEAVES))] == path


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 14, 16, 21, 33])
def test_every_proof_verifies_and_no_changed_one_does(size: int) -> None:
    data = [str(i).encode() for i in range(size)]
    leaves, root = Leaves(data), plain_root(data)
    for index in range(size):
        path = inclusion_proof(index, size, leaves)
        leaf = leaves.hashes[index]
        assert verify_inclusion(leaf, index, size, path, root)
        assert not verify_inclusion(leaf_hash(b"other"), index, size, path, root)
        assert not verify_inclusion(leaf, index, size, [*path, root], root)
        assert not path or not verify_inclusion(leaf, index, size, path[:-1], root)
        for wrong in {index - 1, index + 1, index ^ 1} - {index}:
            assert not verify_inclusion(leaf, wrong, size, path, root)
    for first in range(1, size + 1):
        path, old = consistency_proof(first, size, leaves), plain_root(data[:first])
        assert verify_consistency(first, size, path, old, root)
        rewritten = plain_root([b"changed", *data[1:first]])
        assert not verify_consistency(first, size, path, rewritten, root)
        assert not verify_consistency(first, size, [*path, root], old, root)
        for i in range(len(path)):
            changed = [*path[:i], EMPTY, *path[i + 1 :]]
            assert not verify_consistency(first, size, changed, old, root)
        assert first == size or not verify_consistency(first, size, [], old, root)
        assert not verify_consistency(first, size, path, old, EMPTY)
    assert not verify_consistency(0, size, [], EMPTY, root)
    assert not verify_consistency(size + 1, size, [], root, root)
