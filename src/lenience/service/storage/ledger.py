"""Ledger: one transaction's working copy of the chains it has locked, and the rows it will write.

Chains are locked in the order of their ids, so that processes cannot deadlock. They are read once, changed in memory by
one command after the other, and written once at the end, whatever the number of commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, select

from lenience.core.offers import Offer
from lenience.service.domain.chain import link
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.events import Decided, Erased, Event, Overridden, read, write
from lenience.service.domain.rule import Counts
from lenience.service.domain.state import ChainState, DecisionState, Personal
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.references import referred
from lenience.service.storage.store import Store

Item = TypeVar("Item")
_CHAIN = ("revision", "length", "head", "arrivals", "accepted", "pending", "successes", "failures", "at_risk")


@dataclass(slots=True)
class Ledger:
    """The working copy. :meth:`flush` writes it."""

    store: Store
    connection: Connection
    registry: PolicyCache
    now: int = field(default_factory=now)
    chains: dict[int, ChainState] = field(default_factory=dict)
    decisions: dict[str, DecisionState] = field(default_factory=dict)
    chain_of: dict[str, int] = field(default_factory=dict)  # by decision
    referred: dict[str, list[str]] = field(default_factory=dict)  # decisions by reference, oldest first
    _time: str = ""
    _events: list[tuple[Any, ...]] = field(default_factory=list)
    _decisions: list[tuple[Any, ...]] = field(default_factory=list)
    _personal: list[tuple[Any, ...]] = field(default_factory=list)
    _idempotency: list[tuple[Any, ...]] = field(default_factory=list)
    _erased: list[tuple[DecisionState, int]] = field(default_factory=list)

    @property
    def time(self) -> str:
        """The time of this transaction as ISO 8601."""
        if not self._time:
            self._time = iso_time(self.now)
        return self._time

    def lock(self, ids: Iterable[int]) -> None:
        """Lock chains and read them."""
        wanted = sorted(set(ids) - self.chains.keys())
        if not wanted:
            return
        for row in self.store.lock(self.connection, schema.chain, wanted):
            self.chains[row[0]] = ChainState(row[0], row[1], row[2], row[3], row[4], row[5], Counts(*row[6:]))

    def find(self, decisions: Iterable[str]) -> None:
        """Find the chains of decisions. A decision never changes its chain, so no lock is needed."""
        wanted = list(set(decisions) - self.chain_of.keys())
        for part in _parts(wanted):
            query = select(schema.decision.c.id, schema.decision.c.chain_id).where(schema.decision.c.id.in_(part))
            self.chain_of.update((row[0], row[1]) for row in self.connection.execute(query))

    def find_references(self, references: Iterable[str]) -> None:
        """Find the decisions with these references, and their chains."""
        wanted = list(set(references) - self.referred.keys())
        for some in _parts(wanted):
            self.referred.update((reference, []) for reference in some)
            for reference, decision, chain in referred(self.connection, some):
                self.referred[reference].append(decision)
                self.chain_of[decision] = chain
        for reference in wanted:
            self.referred[reference].sort()

    def read_decisions(self, ids: Iterable[str]) -> None:
        """Read decisions whose chains are locked."""
        wanted = list(set(ids) - self.decisions.keys())
        for part in _parts(wanted):
            query = select(schema.decision).where(schema.decision.c.id.in_(part))
            for row in self.connection.execute(query):
                self.decisions[row[0]] = DecisionState(
                    row[0], row[1], row[2], row[3], row[4], bool(row[5]), row[6], amount=row[7], cost=row[8]
                )

    def append(self, chain: ChainState, event: Event) -> int:
        """Append an event to a locked chain and return its sequence number."""
        text = write(event)
        chain.head = head = link(chain.head, text)
        chain.length = seq = chain.length + 1
        chain.changed = True
        about = None if isinstance(event, Decided) else getattr(event, "decision", None) or None
        self._events.append((chain.id, seq, text, head, about))
        return seq

    def add_decision(
        self, identity: str, chain: int, seq: int, version: int, accepted: bool, offer: Offer | None = None
    ) -> None:
        """Add the row of a new decision, which no other command of this transaction can refer to."""
        status = schema.PENDING if accepted else schema.REJECTED
        amount, cost = (None, None) if offer is None else (offer.amount, offer.cost)
        self._decisions.append((identity, chain, seq, version, self.now, int(accepted), status, amount, cost))

    def add_personal(self, chain: int, seq: int, data: Personal) -> None:
        """Store personal data beside the log, at the position of the event that commits to it."""
        self._personal.append((chain, seq, *data))

    def erase_personal(self, state: DecisionState, seq: int) -> None:
        """Erase a decision's personal data up to an event: its own, and the reasons of overrides."""
        self._erased.append((state, seq))

    def unerased(self, states: Sequence[DecisionState]) -> list[DecisionState]:
        """Return the decisions whose personal data was not erased, or was added since by an override."""
        written: list[tuple[str, str]] = []
        for some in _parts(states):
            query = _about(some, schema.event.c.about, schema.event.c.body)
            written += [(row[0], row[1]) for row in self.connection.execute(query)]
        # The events of this transaction are not in the database yet.
        ids = {state.id for state in states}
        written += [(about, text) for _, _, text, _, about in self._events if about in ids]
        events = ((about, read(text)) for about, text in written)
        last = {about: event for about, event in events if isinstance(event, Erased | Overridden)}
        return [state for state in states if not isinstance(last.get(state.id), Erased)]

    def add_answer(self, key: str, request: str, salt: str, chain: int, seq: int, status: int, answer: str) -> None:
        """Store the answer given under an idempotency key."""
        self._idempotency.append((key, request, salt, chain, seq, status, answer, self.now))

    @property
    def erases(self) -> bool:
        """Whether this transaction erases personal data."""
        return bool(self._erased)

    def flush(self) -> None:
        """Write everything. The transaction's commit makes it durable."""
        store, connection = self.store, self.connection
        store.insert(connection, schema.event, self._events)
        store.insert(connection, schema.decision, self._decisions)
        store.insert(connection, schema.personal, self._personal)
        # Sorted by key, so that two processes with the same keys wait for each other without a deadlock.
        store.insert(connection, schema.idempotency, sorted(self._idempotency))
        chains = [
            (
                *(chain.revision, chain.length, chain.head),
                *(chain.counts.arrivals, chain.counts.accepted, chain.counts.pending),
                *(chain.counts.successes, chain.counts.failures, chain.counts.at_risk, chain.id),
            )
            for chain in self.chains.values()
            if chain.changed
        ]
        store.update(connection, schema.chain, "id", _CHAIN, chains)
        changed = [(state.status, int(state.accepted), state.id) for state in self.decisions.values() if state.changed]
        store.update(connection, schema.decision, "id", ("status", "accepted"), changed)
        self._delete_erased()

    def _delete_erased(self) -> None:
        """Delete erased personal data: that of the decisions, and that of events before the erasure."""
        until = {state.id: seq for state, seq in self._erased}
        places: dict[int, list[int]] = {}
        for some in _parts([state for state, _ in self._erased]):
            for state in some:
                places.setdefault(state.chain, []).append(state.seq)
            query = _about(some, schema.event.c.about, schema.event.c.chain_id, schema.event.c.seq)
            for about, chain, seq in self.connection.execute(query):
                if seq < until[about]:
                    places[chain].append(seq)
        personal = schema.personal
        for chain, seqs in places.items():
            for part in _parts(seqs):
                rows = (personal.c.chain_id == chain) & personal.c.seq.in_(part)
                self.connection.execute(personal.delete().where(rows))


def _about(states: Sequence[DecisionState], *columns: ColumnElement[Any]) -> Select[Any]:
    """Return the query for the events about decisions, in order."""
    events = schema.event
    return select(*columns).where(events.c.about.in_([state.id for state in states])).order_by(events.c.seq)


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Divide items into parts that fit into a statement."""
    for start in range(0, len(items), 500):
        yield items[start : start + 500]
