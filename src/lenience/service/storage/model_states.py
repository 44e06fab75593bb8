"""Read the states of the models that learn from every outcome of a policy.

The newest stored state and the labels after it in the policy's chain give the state now. A process keeps the states of
its last transaction and reads only what other processes have added since.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from lenience.service.domain.events import Learned, read
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import ModelStates, PolicyRecord

SNAPSHOT_EVERY = 1_000  # labels after which a state is stored: a start learns at most as many again
AT_A_TIME = 5_000


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
    models = record.learning
    if known is None or known.revision != record.revision:
        stored = {number: _stored(connection, record.id, number) for number in models}
        starts = {number: seq for number, (seq, _) in stored.items()}
        states = {number: models[number].restore(text) for number, (_, text) in stored.items()}
        at = min(starts.values(), default=0)
    else:
        starts, states, at = dict.fromkeys(models, known.at), dict(known.states), known.at
    events = schema.event
    query = select(events.c.seq, events.c.body).where((events.c.chain_id == record.chain) & (events.c.seq > at))
    for row in connection.execute(query.order_by(events.c.seq).execution_options(yield_per=AT_A_TIME)):
        at = row.seq
        event = read(row.body)
        if isinstance(event, Learned):
            for number, model in models.items():
                if at > starts[number]:
                    states[number] = model.learn(states[number], event.segment, event.successes, event.failures)
    return ModelStates(record.revision, at, states)


def _stored(connection: Connection, policy: int, version: int) -> tuple[int, str]:
    """Return the newest stored state of a version, and the event after which it holds."""
    table = schema.model_state
    own = (table.c.policy_id == policy) & (table.c.version == version)
    row = connection.execute(
        select(table.c.seq, table.c.body).where(own).order_by(table.c.seq.desc()).limit(1)
    ).one_or_none()
    if row is None:
        raise RuntimeError(f"version {version} has no stored model state: run lenience audit")
    return row.seq, row.body


def segment_outcomes(connection: Connection, policy: int) -> dict[str, tuple[int, int]]:
    """Return the successes and failures of each segment of a policy."""
    table = schema.chain
    query = select(table.c.segment, table.c.successes, table.c.failures).where(table.c.policy_id == policy)
    return {row.segment: (row.successes, row.failures) for row in connection.execute(query) if row.segment is not None}
