"""Read the states of the models that learn from every outcome of a policy.

The newest stored state and the labels after it in the policy's chain give the state now. A process keeps the states of
its last transaction and reads only what other processes have added since. Features of applicants are read beside the
log; those that were erased are needed no more, because the erasure has stored the state after their label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select

from lenience.service.domain.events import Learned, read
from lenience.service.domain.pooled_models import ModelLabel
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import ModelState, ModelStates, PolicyRecord

SNAPSHOT_EVERY = 1_000  # events of the policy's chain after which a state is stored: a start learns at most as many
AT_A_TIME = 5_000
INPUTS_AT_A_TIME = 500


def read_model_states(connection: Connection, record: PolicyRecord, known: ModelStates | None) -> ModelStates:
    """Return the states of a policy's models after the last committed event of its chain.

    Parameters
    ----------
    connection : Connection
        A transaction.
    record : PolicyRecord
        The policy as it is now.
    known : ModelStates or None
        States that are known already.

    Returns
    -------
    ModelStates
        The states now.
    """
    models: dict[int, Any] = dict(record.learning)
    if known is None or known.revision != record.revision:
        stored = {number: stored_state(connection, record.id, number) for number in models}
        starts = {number: seq for number, (seq, _) in stored.items()}
        states: dict[int, ModelState] = {number: models[number].restore(text) for number, (_, text) in stored.items()}
        at = min(starts.values(), default=0)
    else:
        starts, states, at = dict.fromkeys(models, known.at), dict(known.states), known.at
    needs_inputs = any(model.by_features for model in models.values())
    for seq, event in policy_events(connection, record.chain, at):
        at = seq
        if isinstance(event, Learned):
            label = read_label(connection, record.chain, event, needs_inputs=needs_inputs)
            for number, model in models.items():
                if at > starts[number]:
                    relearnt = state_at(connection, record.id, number, seq) if event.relearnt else None
                    states[number] = model.learn(states[number], label) if relearnt is None else model.restore(relearnt)
    return ModelStates(record.revision, at, states)


def policy_events(connection: Connection, chain: int, after: int, until: int = 1 << 62) -> Iterator[tuple[int, Any]]:
    """Yield the events of a policy's chain after a place, up to another one."""
    events = schema.event
    place = (events.c.chain_id == chain) & (events.c.seq > after) & (events.c.seq <= until)
    while True:
        query = select(events.c.seq, events.c.body).where(place & (events.c.seq > after))
        rows = connection.execute(query.order_by(events.c.seq).limit(AT_A_TIME)).all()
        for row in rows:
            after = row.seq
            yield row.seq, read(row.body)
        if len(rows) < AT_A_TIME:
            return


def read_label(connection: Connection, chain: int, event: Learned, *, needs_inputs: bool) -> ModelLabel:
    """Return what models learn from an event of a policy's chain."""
    label = ModelLabel(event.segment, event.successes, event.failures)
    if not needs_inputs:
        return label
    inputs = read_inputs(connection, event.decision)
    learnt_at = first_label(connection, chain, event.decision) if label.is_correction and inputs is not None else None
    return label._replace(inputs=inputs, learnt_at=learnt_at)


def read_inputs(connection: Connection, decision: str) -> str | None:
    """Return the stored features of a decision, or None if it has none or they were erased."""
    table, personal = schema.decision, schema.personal
    place = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
    query = select(personal.c.details).join(table, place).where(table.c.id == decision)
    return connection.execute(query).scalar_one_or_none()


def read_all_inputs(connection: Connection, decisions: Sequence[str]) -> dict[str, str]:
    """Return the stored features of those decisions that have any, by decision."""
    table, personal = schema.decision, schema.personal
    place = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
    query = select(table.c.id, personal.c.details).join(personal, place).where(personal.c.details.is_not(None))
    inputs: dict[str, str] = {}
    for start in range(0, len(decisions), INPUTS_AT_A_TIME):
        some = table.c.id.in_(decisions[start : start + INPUTS_AT_A_TIME])
        inputs.update((row[0], row[1]) for row in connection.execute(query.where(some)))
    return inputs


def first_label(connection: Connection, chain: int, decision: str) -> int | None:
    """Return where the first outcome of a decision was learnt, or None if it was not."""
    events = schema.event
    about = (events.c.about == decision) & (events.c.chain_id == chain)
    for row in connection.execute(select(events.c.seq, events.c.body).where(about).order_by(events.c.seq)):
        event = read(row.body)
        if isinstance(event, Learned) and not event.is_correction:
            return int(row.seq)
    return None


def stored_state(connection: Connection, policy: int, version: int, until: int = 1 << 62) -> tuple[int, str]:
    """Return the newest stored state of a version up to an event, and the event after which it holds."""
    stored = last_state(connection, policy, version, until)
    if stored is None:
        raise RuntimeError(f"version {version} has no stored model state: run lenience audit")
    return stored


def last_state(connection: Connection, policy: int, version: int, until: int = 1 << 62) -> tuple[int, str] | None:
    """Return the same, or None if nothing is stored."""
    table = schema.model_state
    own = (table.c.policy_id == policy) & (table.c.version == version) & (table.c.seq <= until)
    query = select(table.c.seq, table.c.body).where(own).order_by(table.c.seq.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.seq, row.body)


def state_at(connection: Connection, policy: int, version: int, seq: int) -> str | None:
    """Return the stored state of a version after exactly this event, or None."""
    table = schema.model_state
    own = (table.c.policy_id == policy) & (table.c.version == version) & (table.c.seq == seq)
    return connection.execute(select(table.c.body).where(own)).scalar_one_or_none()


def segment_outcomes(connection: Connection, policy: int) -> dict[str, tuple[int, int]]:
    """Return the successes and failures of each segment of a policy."""
    table = schema.chain
    query = select(table.c.segment, table.c.successes, table.c.failures).where(table.c.policy_id == policy)
    return {row.segment: (row.successes, row.failures) for row in connection.execute(query) if row.segment is not None}
