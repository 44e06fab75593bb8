"""Learn again after the correction of an old label, from the stored state before it.

What a model knows is a fold over the labels in the order of the policy's chain. The correction of a label replaces it
in its old place, and all labels since are learnt again. The result does not depend on the state from which that starts,
so an auditor can start from another one and must find the same bits.

States are stored at least every :data:`~lenience.service.storage.model_states.SNAPSHOT_EVERY` events. A stored state
that holds the wrong label is *revised*: its place now also has the state with the right label, from which the next
correction can start, and the log has its digest. The state as it was stays, because the log has its digest too. Where
several states lie close together, one is revised, and the others are no start any more.

The work is bounded: a label more than :data:`RELEARNT` events old, or one after which an applicant's features were
erased, is corrected by multiplying the likelihood (:meth:`FeatureRule.correct_row`). Such a correction is a step of its
own in the order, like a label.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select

from lenience.service.domain.events import Learned
from lenience.service.domain.feature_models import FeatureModel, FeatureState
from lenience.service.storage import schema
from lenience.service.storage.model_states import policy_events, read_all_inputs
from lenience.service.storage.store import Store

RELEARNT = 10_000  # events of the policy's chain that are learnt again at most; logs depend on it, so never lower it
UNUSABLE = ""  # in the place of a revised state that was not computed


class Checkpoint(NamedTuple):
    """The state of a model after an event of the policy's chain, with the corrections of later events."""

    seq: int
    state: FeatureState
    logged: str  # the digest in the log after that event


class Correction(NamedTuple):
    """A correction that is not written yet: the decision, and its right outcome."""

    decision: str
    success: bool


@dataclass(slots=True)
class _Step:
    """A label, or a correction that multiplied the likelihood, with its right outcome."""

    seq: int
    decision: str
    success: bool
    multiplies: bool
    taught: bool  # False if it changed nothing, e.g. because the features were erased before


def relearn(
    connection: Connection,
    chain: int,
    number: int,
    model: FeatureModel,
    start: Checkpoint,
    until: int,
    places: Collection[int] = (),
    correction: Correction | None = None,
    erased: Collection[str] = (),
) -> dict[int, FeatureState] | None:
    """Return the states of a version after events of the policy's chain, with labels as they were corrected since.

    Parameters
    ----------
    connection : Connection
        A transaction. All events but that of the correction are written.
    chain : int
        The policy's chain.
    number : int
        The version.
    model : FeatureModel
        Its model.
    start : Checkpoint
        A state before the corrected label.
    until : int
        The last event to learn. Its state is in the result.
    places : collection of int
        Earlier events whose states are wanted too.
    correction : Correction, optional
        The correction that is made now.
    erased : collection of str
        Decisions whose features are erased by this transaction.

    Returns
    -------
    dict or None
        The states by event, or None if features were erased that are needed.
    """
    steps = _steps(connection, chain, number, start, until, correction)
    inputs = read_all_inputs(connection, [step.decision for step in steps if step.taught])
    rule, since = start.state.rule.copy(), start.state.since
    states: dict[int, FeatureState] = {}
    wanted = sorted((place for place in places if place < until), reverse=True)
    for step in steps:
        while wanted and wanted[-1] < step.seq:
            states[wanted.pop()] = FeatureState(rule.copy(), since)
        if not step.taught:
            continue
        text = None if step.decision in erased else inputs.get(step.decision)
        if text is None:
            return None
        learn = rule.correct_row if step.multiplies else rule.observe_row
        learn(model.row(text), step.success)
    for place in wanted:
        states[place] = FeatureState(rule.copy(), since)
    states[until] = FeatureState(rule, since)
    return states


def _steps(
    connection: Connection, chain: int, number: int, start: Checkpoint, until: int, correction: Correction | None
) -> list[_Step]:
    """Return what is learnt after a checkpoint, with the right outcomes."""
    steps: list[_Step] = []
    first: dict[str, _Step] = {}  # the label of each decision
    logged = start.logged
    for seq, event in policy_events(connection, chain, start.seq, until):
        if not isinstance(event, Learned):
            continue
        digest = dict(event.states).get(number, logged)
        if event.relearnt:
            if event.decision in first:  # otherwise the checkpoint has the right outcome
                first[event.decision].success = event.successes > 0
        else:
            step = _Step(seq, event.decision, event.successes > 0, event.is_correction, digest != logged)
            steps.append(step)
            if not event.is_correction:
                first[event.decision] = step
        logged = digest
    if correction is not None:
        first[correction.decision].success = correction.success
    return steps


def checkpoint_before(
    connection: Connection, policy: int, number: int, model: FeatureModel, before: int
) -> Checkpoint | None:
    """Return the newest stored state of a version before an event, with later corrections, or None."""
    table = schema.model_state
    own = (table.c.policy_id == policy) & (table.c.version == number) & (table.c.seq < before)
    usable = table.c.revised.is_(None) | (table.c.revised != UNUSABLE)
    row = connection.execute(select(table).where(own & usable).order_by(table.c.seq.desc()).limit(1)).one_or_none()
    if row is None:
        return None
    return Checkpoint(row.seq, model.restore(row.revised or row.body), model.digest_of(row.body))


def usable_places(connection: Connection, policy: int, number: int, first: int) -> list[int]:
    """Return the events from one on after which a state is stored from which labels can be learnt again."""
    table = schema.model_state
    own = (table.c.policy_id == policy) & (table.c.version == number) & (table.c.seq >= first)
    usable = table.c.revised.is_(None) | (table.c.revised != UNUSABLE)
    return list(connection.scalars(select(table.c.seq).where(own & usable).order_by(table.c.seq)))


def spread_out(places: Iterable[int], apart: int) -> list[int]:
    """Return the first of those places that lie close together.

    >>> spread_out([3, 4, 9, 11, 12, 25], 10)
    [3, 11, 25]
    """
    chosen: dict[int, int] = {}
    for place in sorted(places):
        chosen.setdefault(place // apart, place)
    return list(chosen.values())


def revise(
    store: Store,
    connection: Connection,
    policy: int,
    number: int,
    places: Sequence[int],
    states: Mapping[int, FeatureState],
) -> None:
    """Store the states with corrections at these places, or that there is none."""
    table = schema.model_state
    here = (table.c.policy_id == policy) & (table.c.version == number) & table.c.seq.in_(places)
    rows = [
        (*row[:5], states[row.seq].encode() if row.seq in states else UNUSABLE)
        for row in connection.execute(select(table).where(here)).all()
    ]
    connection.execute(table.delete().where(here))  # database users may insert and delete these rows, but not update
    store.insert(connection, table, rows)


def is_outdated(
    connection: Connection, chain: int, since: int, seq: int, first_label: Callable[[str], int | None]
) -> bool:
    """Return whether a label up to an event was corrected later, and learnt again by a version.

    Parameters
    ----------
    connection : Connection
        A transaction.
    chain : int
        The policy's chain.
    since : int
        The event from which the version has learnt.
    seq : int
        The event.
    first_label : callable
        Returns the event of a decision's first label.
    """
    for _, event in policy_events(connection, chain, seq, seq + RELEARNT):  # corrections reach back so far at most
        if isinstance(event, Learned) and event.relearnt and since < (first_label(event.decision) or 0) <= seq:
            return True
    return False
