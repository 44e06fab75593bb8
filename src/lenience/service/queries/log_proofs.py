"""Proofs about the log, from its Merkle tree: the newest checkpoint, inclusion of a decision, and consistency."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from lenience.service.domain.answers import CheckpointAnswer, ConsistencyAnswer
from lenience.service.domain.chain import genesis
from lenience.service.domain.clock import iso_time
from lenience.service.domain.decision_proof import DecisionProof, PersonalProof
from lenience.service.domain.merkle import consistency_proof, inclusion_proof
from lenience.service.domain.problems import BadRequest, Conflict, unknown_decision
from lenience.service.storage import schema
from lenience.service.storage.log_tree import LogTree, latest_checkpoint
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store

NO_KEY = (
    "the log has no signed checkpoint. With PostgreSQL, set LENIENCE_LOG_KEY to a key that lenience keys log-key --new "
    "prints"
)


class LogProofs:
    """Proofs, each from one consistent state of the database."""

    def __init__(self, store: Store, registry: PolicyCache) -> None:
        self._store = store
        self._registry = registry

    def checkpoint(self) -> CheckpointAnswer:
        """Return the newest signed checkpoint."""
        with self._store.read() as connection:
            row = _newest(connection)
        return CheckpointAnswer(row.size, iso_time(row.at), row.note)

    def consistency(self, first: int, second: int) -> ConsistencyAnswer:
        """Return the proof that the log of ``second`` events begins with that of ``first`` events."""
        with self._store.read() as connection:
            tree = LogTree(connection)
            if not 1 <= first <= second <= tree.size:
                allowed = f"sizes with 1 ≤ first ≤ second ≤ {tree.size}"
                raise BadRequest(f"first and second must be {allowed}", code="invalid_value", allowed=allowed)
            path = consistency_proof(first, second, tree.subtree)
        return ConsistencyAnswer(first, second, [each.hex() for each in path])

    def decision(self, identity: str, size: int | None = None) -> DecisionProof:
        """Return the proof that a decision is in the log, for the newest checkpoint or for a smaller size.

        For another size than that of the newest checkpoint, the verifier must hold a checkpoint of that size.
        """
        decisions, chains, events = schema.decision, schema.chain, schema.event
        with self._store.read() as connection:
            row = connection.execute(select(decisions).where(decisions.c.id == identity)).one_or_none()
            if row is None:
                raise unknown_decision(identity)
            newest = _newest(connection)
            wanted = newest.size if size is None else size
            tree = LogTree(connection)
            index = tree.index_of(row.chain_id, row.seq)
            if index is None or index >= wanted or wanted > tree.size:
                raise Conflict(f"the decision {identity} is not among the first {wanted} events", code="not_in_log")
            chain = connection.execute(select(chains).where(chains.c.id == row.chain_id)).one()
            near = (events.c.chain_id == row.chain_id) & events.c.seq.in_([row.seq - 1, row.seq])
            rows = {each.seq: each for each in connection.execute(select(events).where(near))}
            policy = self._registry.name_of(connection, chain.policy_id)
            personal = _personal(connection, row.chain_id, row.seq)
            path = inclusion_proof(index, wanted, tree.subtree)
            note = newest.note if wanted == newest.size else _stored_note(connection, wanted) or newest.note
        before = rows.get(row.seq - 1)
        return DecisionProof(
            decision=identity,
            policy=policy,
            segment=chain.segment,
            sequence=row.seq,
            previous=genesis(policy, chain.segment) if before is None else before.hash,
            event=rows[row.seq].body,
            personal=personal,
            index=index,
            size=wanted,
            path=[each.hex() for each in path],
            checkpoint=note,
        )


def _newest(connection: Connection) -> Any:
    row = latest_checkpoint(connection)
    if row is None:
        raise Conflict(NO_KEY, code="no_checkpoint")
    return row


def _stored_note(connection: Connection, size: int) -> str | None:
    table = schema.log_checkpoint
    note: str | None = connection.execute(select(table.c.note).where(table.c.size == size)).scalar_one_or_none()
    return note


def _personal(connection: Connection, chain: int, seq: int) -> PersonalProof | None:
    table = schema.personal
    own = (table.c.chain_id == chain) & (table.c.seq == seq)
    row = connection.execute(select(table).where(own)).one_or_none()
    return None if row is None else PersonalProof(row.salt, row.reference, row.details)
