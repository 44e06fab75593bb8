"""What an incremental audit starts from: the events that a checkpoint holds, each proved by the Merkle tree.

A checkpoint states the root of the tree over the first events of the log. It was audited before, so what its events
state is right. The last event of a chain in the tree is proved to be there, and its hash covers all events of the chain
before it. The events of an earlier decision that a later event changes are proved one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from lenience.service.domain.chain import link
from lenience.service.domain.decision_proof import leaf_data
from lenience.service.domain.events import Decided, Event, Imported, readable_event
from lenience.service.domain.merkle import complete_root, inclusion_proof, leaf_hash, verify_inclusion
from lenience.service.domain.signed_note import Checkpoint
from lenience.service.queries.log_tree_check import TREE, chain_names
from lenience.service.storage import schema
from lenience.service.storage.log_tree import HASH, WIDTH, WIDTH_BITS, LogTree, read_runs

Report = Callable[[str, str], None]
AT_A_TIME = 50  # events that are read to find the last decision before a place


class Start(NamedTuple):
    """Where the recomputation of a chain starts: the last event that the checkpoint holds."""

    length: int
    head: str


@dataclass(slots=True)
class CheckedLog:
    """The first events of a log, as a checkpoint has them."""

    connection: Connection
    checkpoint: Checkpoint
    report: Report
    tree: LogTree = field(init=False)
    names: dict[int, str] = field(init=False)
    starts: dict[int, Start] = field(default_factory=dict)  # by chain; other chains are recomputed in full
    holds: bool = False  # whether the log begins with the events of the checkpoint

    def __post_init__(self) -> None:
        self.tree, self.names = LogTree(self.connection), chain_names(self.connection)
        self.holds = self._holds()
        if self.holds:
            self._find_starts()
            self._check_later_leaves()

    def _holds(self) -> bool:
        size = self.checkpoint.size
        where = f"your checkpoint of {size} events of {self.checkpoint.time}"
        if size > self.tree.size:
            self.report(where, f"the log has only {self.tree.size} events now: its end was cut off")
        elif self.tree.root(size) != self.checkpoint.root:
            self.report(where, "the first events of the log are not those that were signed: the log was rewritten")
        else:
            return True
        return False

    def _find_starts(self) -> None:
        last: dict[int, tuple[int, int]] = {}  # the last event of each chain in the checkpoint, and its leaf
        for run in read_runs(self.connection):
            inside = min(run.size, self.checkpoint.size - run.start)
            if inside > 0 and run.chain in self.names:
                last[run.chain] = (run.first_seq + inside - 1, run.start + inside - 1)
        events = schema.event
        for chain, (seq, index) in last.items():
            own = (events.c.chain_id == chain) & (events.c.seq == seq)
            digest = self.connection.execute(select(events.c.hash).where(own)).scalar_one_or_none()
            until = (events.c.chain_id == chain) & (events.c.seq <= seq)
            number = self.connection.execute(select(func.count()).select_from(events).where(until)).scalar_one()
            if number != seq:
                self.report(f"chain {chain}", f"{seq - number:,} of its first {seq:,} events are missing")
            elif digest is not None and self.proved(chain, seq, digest, index):
                self.starts[chain] = Start(seq, digest)
            else:
                self.report(f"event {seq} of chain {chain}", "it is not the event that the checkpoint holds")

    def proved(self, chain: int, seq: int, digest: str, index: int | None = None) -> bool:
        """Return whether the tree of the checkpoint holds an event with this hash at this place."""
        if index is None:
            index = self.tree.index_of(chain, seq)
        if index is None or index >= self.checkpoint.size:
            return False
        path = inclusion_proof(index, self.checkpoint.size, self.tree.subtree)
        leaf = leaf_hash(leaf_data(self.names[chain], seq, digest))
        return verify_inclusion(leaf, index, self.checkpoint.size, path, self.checkpoint.root)

    def _check_later_leaves(self) -> None:
        """Compare the leaves after the checkpoint with their events, and the nodes above them with each other."""
        size, events = self.checkpoint.size, schema.event
        for run in read_runs(self.connection):
            skipped = max(size - run.start, 0)
            if skipped >= run.size:
                continue
            first, end = run.first_seq + skipped, run.first_seq + run.size
            inside = (events.c.chain_id == run.chain) & (events.c.seq >= first) & (events.c.seq < end)
            rows = self.connection.execute(select(events.c.seq, events.c.hash).where(inside)).all()
            wrong = [
                seq
                for seq, digest in rows
                if self.tree.subtree(0, run.start + seq - run.first_seq)
                != leaf_hash(leaf_data(self.names.get(run.chain, ""), seq, digest))
            ]
            if wrong or len(rows) != end - first:
                self.report(TREE, f"its leaves {run.start + skipped} to {run.start + run.size - 1} differ from events")
        below = size >> WIDTH_BITS  # tiles that the checkpoint fills
        level, tiles = 0, self.tree.size >> WIDTH_BITS
        while tiles:
            for position in range(below, tiles):
                stored = self.tree.subtree(WIDTH_BITS * (level + 1), position)
                if stored != complete_root(_split(self.tree.tile(level, position))):
                    self.report(TREE, f"tile {position // WIDTH} of level {level + 1} differs from those below it")
            level, below, tiles = level + 1, below >> WIDTH_BITS, tiles >> WIDTH_BITS

    def first_counted(self, chain: int, start: Start) -> tuple[int, str, Decided | Imported] | None:
        """Return the last event up to a start that states the counts before it: its number, the hash before, itself.

        The hashes from there to the start, which is proved, show that it is genuine.
        """
        events, before = schema.event, start.length + 1
        while before > 1:
            earlier = (events.c.chain_id == chain) & (events.c.seq < before)
            query = select(events.c.seq, events.c.body).where(earlier).order_by(events.c.seq.desc()).limit(AT_A_TIME)
            rows = self.connection.execute(query).all()
            for seq, body in rows:
                event = readable_event(str(body))
                if isinstance(event, Decided | Imported):
                    return seq, self.hash_before(chain, seq), event
            if not rows:
                break
            before = rows[-1].seq
        return None

    def hash_before(self, chain: int, seq: int) -> str:
        """Return the stored hash before an event."""
        events = schema.event
        own = (events.c.chain_id == chain) & (events.c.seq == seq - 1)
        return str(self.connection.execute(select(events.c.hash).where(own)).scalar() or self.names[chain])

    def events_of(self, chain: int, decision: str, before: int) -> list[tuple[int, Event]] | None:
        """Return the events of an earlier decision before a place, each proved, or None if there is no such decision.

        A finding is reported if one of them is not in the checkpoint.
        """
        decisions, events = schema.decision, schema.event
        own = (decisions.c.id == decision) & (decisions.c.chain_id == chain)
        first = self.connection.execute(select(decisions.c.seq).where(own)).scalar_one_or_none()
        if first is None or first >= before:
            return None
        columns = (events.c.seq, events.c.body, events.c.hash, events.c.chain_id)
        place = (events.c.chain_id == chain) & (events.c.seq == first)
        rows: list[Any] = [*self.connection.execute(select(*columns).where(place))]
        later = self.connection.execute(select(*columns).where(events.c.about == decision)).all()
        rows += sorted(
            (row for row in later if row.chain_id == chain and row.seq < before), key=lambda row: int(row.seq)
        )
        known: list[tuple[int, Event]] = []
        for row in rows:
            event = readable_event(str(row.body))
            genuine = link(self.hash_before(chain, row.seq), str(row.body)) == row.hash
            if event is None or not genuine or not self.proved(chain, row.seq, row.hash):
                self.report(f"event {row.seq} of chain {chain}", "it is not the event that the checkpoint holds")
                return None
            known.append((row.seq, event))
        return known or None


def _split(hashes: bytes) -> list[bytes]:
    return [hashes[i : i + HASH] for i in range(0, len(hashes), HASH)]
