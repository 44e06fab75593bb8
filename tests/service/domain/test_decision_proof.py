"""The proof of one decision, checked with the public key alone: what it shows, and what breaks it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lenience.service.domain.chain import commitment, genesis, link
from lenience.service.domain.decision_proof import DecisionProof, PersonalProof, leaf_data, verify_decision
from lenience.service.domain.events import Decided, Event, Expired, Imported, write
from lenience.service.domain.merkle import leaf_hash, node_hash
from lenience.service.domain.signed_note import Checkpoint, InvalidNoteError, SigningKey

KEY = SigningKey.create("test-log")
TIME = "2026-01-01T00:00:00Z"
OTHER = leaf_hash(b"another event")
PERSONAL = PersonalProof("salt", "application 7", None)
COUNTS: dict[str, Any] = {"arrivals": 1, "accepted": 1, "pending": 1, "successes": 0, "failures": 0}
DECIDED = Decided(
    at=5, actor="a", id="d", version=1, decision="accept", rule="above_break_even", limit=None, probability=1.0,
    threshold=0.5, reason="Accept.", personal=commitment("salt", "application 7", None), **COUNTS,
)  # fmt: skip
IMPORTED = Imported(
    at=6, actor="a", id="d", source=1, position=0, decided_at=2, decision="reject", status="rejected", **COUNTS
)


def proof_of(event: Event, personal: PersonalProof | None = None) -> DecisionProof:
    """The proof for the first of two leaves."""
    previous, text = genesis("cards", "young"), write(event)
    leaf = leaf_hash(leaf_data(genesis("cards", "young"), 1, link(previous, text)))
    note = KEY.sign(Checkpoint("test-log", 2, node_hash(leaf, OTHER), TIME).text)
    return DecisionProof("d", "cards", "young", 1, previous, text, personal, 0, 2, [OTHER.hex()], note)


def test_what_a_proof_shows() -> None:
    shown = verify_decision(proof_of(DECIDED, PERSONAL), KEY.public)
    assert (shown.decision, shown.policy, shown.segment, shown.choice) == ("d", "cards", "young", "accept")
    assert (shown.rule, shown.decided_at, shown.reference) == ("above_break_even", 5, "application 7")
    assert (shown.log, shown.log_size, shown.logged_by) == ("test-log", 2, TIME)
    assert verify_decision(proof_of(DECIDED), KEY.public).reference is None
    past = verify_decision(proof_of(IMPORTED), KEY.public)
    assert (past.rule, past.choice, past.decided_at) == ("imported", "reject", 6)


def test_another_event_is_no_decision() -> None:
    for event in (Expired(at=1, actor="a", decision="d"), msgspec.structs.replace(DECIDED, id="e")):
        with pytest.raises(InvalidNoteError, match="not the decision d"):
            verify_decision(proof_of(event), KEY.public)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"personal": PersonalProof("salt", "application 8", None)}, "personal data"),
        ({"path": [OTHER.hex()[:-2]]}, "not in the log"),
        ({"path": ["xyz"]}, "cannot be read"),
        ({"event": "{}"}, "cannot be read"),
        ({"event": write(msgspec.structs.replace(DECIDED, at=6))}, "not in the log"),
        ({"segment": "old"}, "not in the log"),
        ({"index": 1}, "not in the log"),
        ({"sequence": 2}, "not in the log"),
        ({"size": 3}, "the checkpoint has 2 events"),
    ],
)
def test_whatever_is_changed_is_noticed(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidNoteError, match=words):
        verify_decision(msgspec.structs.replace(proof_of(DECIDED, PERSONAL), **changes), KEY.public)


def test_a_checkpoint_that_somebody_holds_must_be_the_same_log() -> None:
    proof = proof_of(DECIDED)
    assert verify_decision(proof, KEY.public, proof.checkpoint).log_size == 2
    longer = KEY.sign(Checkpoint("test-log", 3, bytes(32), TIME).text)
    with pytest.raises(InvalidNoteError, match="size=3"):
        verify_decision(proof, KEY.public, longer)
    rewritten = KEY.sign(Checkpoint("test-log", 2, bytes(32), TIME).text)
    with pytest.raises(InvalidNoteError, match="rewritten"):
        verify_decision(proof, KEY.public, rewritten)
    with pytest.raises(InvalidNoteError, match="has not signed"):
        verify_decision(proof, SigningKey.create("test-log").public)
