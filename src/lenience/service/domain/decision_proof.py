"""The proof that a decision is in the log: everything that is needed to check it without the service.

The event's hash follows from its text and the hash before it. The leaf names the chain of the decision's policy and
segment, the place of the event and its hash. The path leads from the leaf to the root that the checkpoint states, and
the checkpoint is signed. So nobody can change the text, the place or the time without breaking a hash or a signature.
"""

from __future__ import annotations

import msgspec

from lenience.service.domain.chain import commitment, genesis, link
from lenience.service.domain.events import Decided, Imported, read
from lenience.service.domain.merkle import leaf_hash, verify_inclusion
from lenience.service.domain.signed_note import Checkpoint, InvalidNoteError, PublicKey, verify_note


class PersonalProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Personal data of a decision, with the salt that shows that the event commits to it."""

    salt: str
    reference: str | None
    details: str | None


class DecisionProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proof of one decision. ``event`` is the exact text in the log, and ``path`` has the hashes up to the root."""

    decision: str
    policy: str
    segment: str
    sequence: int
    previous: str
    event: str
    personal: PersonalProof | None
    index: int
    size: int
    path: list[str]
    checkpoint: str


class ProvedDecision(msgspec.Struct, frozen=True):
    """What a valid proof shows."""

    decision: str
    policy: str
    segment: str
    choice: str
    rule: str
    decided_at: int  # microseconds since 1970
    log: str
    log_size: int
    logged_by: str  # the time of the checkpoint
    reference: str | None


def leaf_data(chain_name: str, seq: int, event_hash: str) -> bytes:
    """Return the data of a leaf: the genesis hash that names the chain, the place in it, and the event's hash."""
    return f"{chain_name} {seq} {event_hash}".encode()


def verify_decision(proof: DecisionProof, key: PublicKey, checkpoint: str | None = None) -> ProvedDecision:
    """Check a proof with nothing but the public key of the log.

    Parameters
    ----------
    proof : DecisionProof
        The proof.
    key : PublicKey
        The public key of the log, from a source that you trust.
    checkpoint : str, optional
        A checkpoint that you hold, e.g. from a witness. The proof must be for exactly this one.

    Returns
    -------
    ProvedDecision
        What the proof shows.

    Raises
    ------
    InvalidNoteError
        If something does not hold, with the reason.
    """
    stated = verify_note(proof.checkpoint, key)
    if checkpoint is not None:
        held = verify_note(checkpoint, key)
        if held.size != proof.size:
            raise InvalidNoteError(
                f"the proof is for {proof.size:,} events and your checkpoint for {held.size:,}: download the proof "
                f"with ?size={held.size}"
            )
        stated = _same(stated, held)
    if stated.size != proof.size:
        raise InvalidNoteError(f"the checkpoint has {stated.size:,} events, the proof is for {proof.size:,}")
    digest = link(proof.previous, proof.event)
    leaf = leaf_hash(leaf_data(genesis(proof.policy, proof.segment), proof.sequence, digest))
    try:
        path = [bytes.fromhex(each) for each in proof.path]
        event = read(proof.event)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidNoteError("its path or its event cannot be read") from None
    if not verify_inclusion(leaf, proof.index, proof.size, path, stated.root):
        raise InvalidNoteError("the decision is not in the log of this checkpoint, or was changed")
    if not isinstance(event, Decided | Imported) or event.id != proof.decision:
        raise InvalidNoteError(f"the event is not the decision {proof.decision}")
    own = proof.personal
    if own is not None and commitment(own.salt, own.reference, own.details) != event.personal:
        raise InvalidNoteError("the personal data is not what the event commits to")
    return ProvedDecision(
        decision=event.id,
        policy=proof.policy,
        segment=proof.segment,
        choice=event.decision,
        rule=event.rule if isinstance(event, Decided) else "imported",
        decided_at=event.at,
        log=stated.origin,
        log_size=stated.size,
        logged_by=stated.time,
        reference=None if own is None else own.reference,
    )


def _same(stated: Checkpoint, held: Checkpoint) -> Checkpoint:
    if stated.root != held.root:
        raise InvalidNoteError("two checkpoints of the same size have different roots: the log was rewritten")
    return held
