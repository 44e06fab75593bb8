"""What must hold after every schedule: the audit, and what clients were told against what the database holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
from sqlalchemy import select

from faults.image import CAP, LOSS_CAP, OVERALL_CAP
from faults.operations import MAKING, Operation, decisions_of
from lenience.service.domain.events import Corrected, Decided, Event, Expired, Observed, Overridden, read
from lenience.service.domain.problems import Problem
from lenience.service.domain.receipts import CommandAnswer, make_sender
from lenience.service.domain.signed_note import Checkpoint, InvalidNoteError, SigningKey, verify_note
from lenience.service.queries.audit import audit
from lenience.service.storage import schema
from lenience.service.storage.command import Command
from lenience.service.storage.store import Store

ABOUT = {"outcome": Observed, "correction": Corrected, "expiry": Expired, "override": Overridden, "review": Overridden}


@dataclass(frozen=True)
class LoggedDecision:
    """A decision in the log, with the reference beside it."""

    event: Decided
    chain: int
    seq: int
    reference: str | None


def check_answers(operations: list[Operation], first: Sequence[object], again: Sequence[object]) -> list[str]:
    """Check the answers to requests that were sent twice more: they must be the ones given before."""
    wrong: list[str] = []
    for operation, one, other in zip(operations, first, again, strict=True):
        label = f"{operation.name} ({operation.kind})"
        for answer in operation.answers:
            if answer != one:
                wrong.append(f"{label}: the key now gives {one!r}, it gave {answer!r}")
        if isinstance(one, CommandAnswer):
            if one != other:
                wrong.append(f"{label}: the key gives two answers")
            operation.answers.append(one)
        elif not isinstance(one, Problem):
            wrong.append(f"{label}: {one!r}")
    return wrong


def reusing_a_key(operation: Operation) -> Command:
    """Return another request under the key of an operation."""
    return operation.command(make_sender(operation.actor, operation.name, "another request", operation.body))


def check_reused(operation: Operation, result: object) -> list[str]:
    """Check the answer to another request under the key of an operation that was answered."""
    if isinstance(result, Problem) and result.code == "idempotency_key_reused":
        return []
    return [f"{operation.name}: its key for another request gives {result!r}"]


def check_audit(store: Store, notes: Sequence[str], key: SigningKey | None) -> list[str]:
    """Audit the log with the checkpoints that clients hold. Their times must follow their sizes."""
    wrong: list[str] = []
    held: list[Checkpoint] = []
    for note in notes:
        try:
            assert key is not None
            held.append(verify_note(note, key.public))
        except InvalidNoteError as error:
            wrong.append(f"a checkpoint that was given does not verify any longer: {error}")
    report = audit(store, held=held)
    wrong += [f"audit: {finding.where}: {finding.what}" for finding in report.findings]
    ordered = sorted(held, key=lambda checkpoint: (checkpoint.size, checkpoint.time))
    for one, other in pairwise(ordered):
        if one.time > other.time:
            wrong.append(f"the checkpoint of {other.size} events is older than that of {one.size} events")
        if one.size == other.size and one.root != other.root:
            wrong.append(f"there are two checkpoints of {one.size} events: the log forked")
    return wrong


def check_log(store: Store, operations: list[Operation]) -> list[str]:
    """Compare the log with what the clients know."""
    wrong: list[str] = []
    with store.read() as connection:
        events: list[tuple[int, int, Event]] = [
            (row.chain_id, row.seq, read(row.body))
            for row in connection.execute(select(schema.event).order_by(schema.event.c.chain_id, schema.event.c.seq))
        ]
        references = {(row.chain_id, row.seq): row.reference for row in connection.execute(select(schema.personal))}
        monitored = set(connection.execute(select(schema.monitored.c.decision)).scalars())
    decisions = {
        event.id: LoggedDecision(event, chain, seq, references.get((chain, seq)))
        for chain, seq, event in events
        if isinstance(event, Decided)
    }
    wrong += _times(events)
    wrong += _limits(decisions)
    erased = {identity for each in operations if each.kind in ("erasure", "erasures") for identity in each.about}
    for operation in operations:
        wrong += (f"{operation.name} ({operation.kind}): {what}" for what in _made(operation, decisions, erased))
    about: defaultdict[str, list[Event]] = defaultdict(list)
    for _, _, event in events:
        if isinstance(event, Observed | Corrected | Expired | Overridden):
            about[event.decision].append(event)
    for operation in operations:
        kind = ABOUT.get(operation.kind)
        recorded = any(msgspec.json.decode(answer.body).get("recorded") for answer in operation.answers)
        if kind is not None and recorded and not any(isinstance(event, kind) for event in about[operation.about[0]]):
            wrong.append(f"{operation.name} ({operation.kind}): it was acknowledged, but the log does not have it")
    changed = {
        identity for each in operations if each.kind in ("override", "review", "monitor") for identity in each.about
    }
    for operation in operations:
        if operation.kind in ("erasure", "erasures") and operation.answers:
            for identity in set(operation.about) - changed:
                decision = decisions[identity]
                if (decision.chain, decision.seq) in references or identity in monitored:
                    wrong.append(f"{operation.name}: personal data of {identity} is still there after its erasure")
    return wrong


def _times(events: list[tuple[int, int, Event]]) -> Iterator[str]:
    """Times never decrease within a chain, and ids sort as decisions were made."""
    latest: dict[int, tuple[int, str]] = {}
    for chain, seq, event in events:
        at, identity = latest.get(chain, (0, ""))
        if event.at < at:
            yield f"event {seq} of chain {chain} is {(at - event.at) / 1e6:.6f} s before the event before it"
        if isinstance(event, Decided):
            if event.id <= identity:
                yield f"decision {seq} of chain {chain} has an id that sorts before an earlier one"
            identity = event.id
        latest[chain] = max(at, event.at), identity


def _limits(decisions: dict[str, LoggedDecision]) -> Iterator[str]:
    """Nobody is accepted above a limit."""
    for decision in decisions.values():
        event = decision.event
        if event.decision == "accept":
            if event.pending >= CAP:
                yield f"{event.id} was accepted with {event.pending} pending, but {CAP} are allowed"
            use = event.overall
            if use is not None and event.offer is None and use.pending >= OVERALL_CAP:
                yield f"{event.id} was accepted with {use.pending} pending over all segments"
            if use is not None and event.offer is not None and use.at_risk + event.offer.loss > LOSS_CAP + 1e-6:
                yield f"{event.id} was accepted with {use.at_risk} at risk over all segments"
    replaced = Counter(each.event.again for each in decisions.values() if each.event.again is not None)
    for identity, times in replaced.items():
        if times > 1:
            yield f"{identity} was decided again {times} times"


def _made(operation: Operation, decisions: dict[str, LoggedDecision], erased: set[str]) -> Iterator[str]:
    """Every acknowledged decision is there, once; others are there entirely or not at all."""
    if operation.kind not in MAKING:
        return
    acknowledged = []
    for answer in operation.answers:
        ids = [each["id"] for each in decisions_of(msgspec.json.decode(answer.body))]
        acknowledged.append(tuple(ids))
        for identity in ids:
            if identity not in decisions:
                yield f"{identity} was acknowledged, but the log does not have it"
    if operation.kind == "again":
        return
    first = [each for each in decisions.values() if each.event.again is None]
    counts = Counter(each.reference for each in first if each.reference in operation.references)
    gone = {identity for ids in acknowledged for identity in ids} & erased
    if gone:  # without its reference it is not found
        return
    times = {counts[reference] for reference in operation.references}
    if len(times) > 1:
        yield f"only a part of it is there: {dict(counts)}"
    most = 1 if operation.keyed else operation.sent
    if max(times) > most:
        yield f"it is there {max(times)} times, but {most} were sent"
    if max(times) < len(set(acknowledged)):
        yield f"it was acknowledged {len(set(acknowledged))} times, but it is there {max(times)} times"


def check_files(folder: Path, operations: list[Operation]) -> list[str]:
    """After the service has stopped, erased personal data is in no file."""
    wrong: list[str] = []
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = {identity for each in operations if each.kind == "again" for identity in each.about}
    made: dict[str, str] = {}
    for operation in operations:
        once = operation.keyed or operation.sent == 1  # otherwise another decision has the same reference
        for answer in operation.answers if once else ():
            if operation.references:
                ids = [each["id"] for each in decisions_of(msgspec.json.decode(answer.body))]
                made.update(zip(ids, operation.references, strict=True))
    for operation in operations:
        if operation.kind in ("erasure", "erasures") and operation.answers:
            for identity in set(operation.about) - again:
                reference = made.get(identity, "")
                for name, content in files.items():
                    if reference and reference.encode() in content:
                        wrong.append(f"{operation.name}: {reference} was erased, but {name} still holds it")
    return wrong
