"""Store model states before features are erased, so that the audit can go on after labels that it cannot learn again.

The log holds a digest of a model's state after each label. An auditor learns a label again from the features. When they
are erased, the state after the label is stored instead: the auditor checks its digest and continues from there. Of
several erased labels in a row only the state after the last one is needed.

The state after a label is computed from the stored state before it. One is stored every
:data:`~lenience.service.storage.model_states.SNAPSHOT_EVERY` labels, so an erasure learns at most as many again. If
a label before it was corrected since, later corrections cannot start from that state
(:mod:`~lenience.service.storage.relearning`), and its row says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from sqlalchemy import Connection, select

from lenience.service.domain.events import Learned, read
from lenience.service.domain.feature_models import FeatureModel, FeatureState
from lenience.service.storage import schema
from lenience.service.storage.model_states import first_label, policy_events, read_inputs, read_label, stored_state
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.relearning import UNUSABLE, is_outdated

FEW = 10  # events that are read to find the next label

StateRow = tuple[int, int, int, int, str, str | None]


def states_after_erased(
    connection: Connection,
    registry: PolicyCache,
    policy: int,
    decisions: Collection[str],
    without_features: Collection[int] = (),
) -> Iterator[StateRow]:
    """Yield the states to store before the features of a policy's decisions are deleted.

    Parameters
    ----------
    connection : Connection
        The transaction, which has written its events.
    registry : PolicyCache
        The policies.
    policy : int
        The policy.
    decisions : collection of str
        The decisions whose features are erased.
    without_features : collection of int
        Events of the policy's chain that label one of these decisions after its erasure, in the same transaction. The
        features are still stored, but the models have not learned from them.
    """
    events, chains = schema.event, schema.chain
    own = select(chains.c.id).where((chains.c.policy_id == policy) & chains.c.segment.is_(None))
    about = events.c.about.in_(list(decisions)) & events.c.chain_id.in_(own)
    labels: dict[int, list[int]] = {}  # by version
    chain = 0
    for row in connection.execute(select(events.c.chain_id, events.c.seq, events.c.body).where(about)):
        event = read(row.body)
        if isinstance(event, Learned) and row.seq not in without_features:
            chain = row.chain_id
            for number, _ in event.states:
                labels.setdefault(number, []).append(row.seq)
    for number, seqs in sorted(labels.items()):
        model = registry.version(connection, policy, number).feature_model
        if model is not None:
            place = (policy, chain, number)
            yield from _states(connection, place, model, sorted(seqs), decisions, without_features)


def _states(
    connection: Connection,
    place: tuple[int, int, int],
    model: FeatureModel,
    seqs: list[int],
    erased: Collection[str],
    without_features: Collection[int],
) -> Iterator[StateRow]:
    policy, chain, number = place
    at, state = 0, None
    for seq in seqs:
        if _next_is_erased(connection, place, seq, erased, without_features):
            continue
        stored, text = stored_state(connection, policy, number, seq)
        if stored == seq:
            continue
        if state is None or stored > at:
            at, state = stored, model.restore(text)
        state = _learn_until(connection, (chain, number), model, state, (at, seq), without_features)
        at = seq
        outdated = is_outdated(connection, chain, state.since, seq, partial(first_label, connection, chain))
        yield policy, number, seq, 1, state.encode(), UNUSABLE if outdated else None


def _learn_until(
    connection: Connection,
    place: tuple[int, int],
    model: FeatureModel,
    state: FeatureState,
    between: tuple[int, int],
    without_features: Collection[int],
) -> FeatureState:
    """Return the state after an event, from that after an earlier one."""
    chain, number = place
    for seq, event in policy_events(connection, chain, *between):
        if isinstance(event, Learned) and number in dict(event.states) and seq not in without_features:
            state = model.learn(state, read_label(connection, chain, event, needs_inputs=True))
    return state


def _next_is_erased(
    connection: Connection,
    place: tuple[int, int, int],
    seq: int,
    erased: Collection[str],
    without_features: Collection[int],
) -> bool:
    """Return whether a stored state follows before any label that an auditor can learn, so that none is needed here.

    A label that came after its features were erased has changed nothing, and no state was stored for it.
    """
    policy, chain, number = place
    events, states = schema.event, schema.model_state
    while True:
        query = select(events.c.seq, events.c.body).where((events.c.chain_id == chain) & (events.c.seq > seq))
        rows = connection.execute(query.order_by(events.c.seq).limit(FEW)).all()
        for row in rows:
            event = read(row.body)
            if not isinstance(event, Learned) or number not in dict(event.states):
                continue
            if row.seq not in without_features and read_inputs(connection, event.decision) is not None:
                return event.decision in erased  # its own state is stored, or one that follows
            stored = (states.c.policy_id == policy) & (states.c.version == number) & (states.c.seq == row.seq)
            if connection.execute(select(states.c.seq).where(stored)).one_or_none() is not None:
                return True
        if len(rows) < FEW:
            return False
        seq = rows[-1].seq
