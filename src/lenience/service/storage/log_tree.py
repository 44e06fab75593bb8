"""The Merkle tree over the events of all chains, in the order in which the service seals them.

Decisions in different segments do not wait for each other, so events have no common order when they are written. The
tree gives them one afterwards: every second or so, one transaction appends the events that are not in the tree yet,
chain by chain, as runs of consecutive events. A leaf names the chain by its genesis hash, the place of the event in it,
and the hash of the event, which covers all events of the chain before it.

Hashes are stored in tiles of 256. Tile p of level 0 has the hashes of the leaves 256p to 256p + 255. Tile p of level
L + 1 has the roots of 256 full tiles of level L. The nodes between are computed from a tile when a proof needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, select

from lenience.service.domain.chain import genesis, monitored_genesis
from lenience.service.domain.decision_proof import leaf_data
from lenience.service.domain.merkle import complete_root, leaf_hash, tree_root
from lenience.service.storage import schema

WIDTH_BITS = 8
WIDTH = 1 << WIDTH_BITS  # hashes of a tile
HASH = 32  # bytes
AT_A_TIME = 5_000  # events that one transaction appends
HOUR = 3_600_000_000  # microseconds


class Run(NamedTuple):
    """Consecutive events of one chain that are consecutive leaves."""

    start: int
    chain: int
    first_seq: int
    size: int


def chain_name(policy: str | None, segment: str | None, monitors: str | None = None) -> str:
    """Return the genesis hash of a chain, which names it."""
    return genesis(policy, segment) if monitors is None else monitored_genesis(monitors)


class LogTree:
    """The tree as one transaction sees it.

    Parameters
    ----------
    connection : Connection
        The transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tiles: dict[tuple[int, int], bytes] = {}
        last = connection.execute(select(schema.log_run).order_by(schema.log_run.c.start.desc()).limit(1)).first()
        self.size: int = 0 if last is None else last.start + last.size

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the first leaves, by default of all."""
        return tree_root(self.size if size is None else size, self.subtree)

    def subtree(self, level: int, position: int) -> bytes:
        """Return the root of the 2^level leaves from position · 2^level on, all of which must be in the tree."""
        floor, inside = divmod(level, WIDTH_BITS)
        start = position << inside
        tile, offset = divmod(start, WIDTH)
        hashes = self._tile(floor, tile)
        return complete_root(_split(hashes)[offset : offset + (1 << inside)])

    def tile(self, level: int, position: int) -> bytes:
        """Return the hashes of a tile."""
        return self._tile(level, position)

    def index_of(self, chain: int, seq: int) -> int | None:
        """Return the leaf of an event, or None if it is not in the tree yet."""
        runs = schema.log_run
        own = (runs.c.chain_id == chain) & (runs.c.first_seq <= seq)
        row = self._connection.execute(select(runs).where(own).order_by(runs.c.first_seq.desc()).limit(1)).first()
        if row is None or seq >= row.first_seq + row.size:
            return None
        return int(row.start + seq - row.first_seq)

    def append_new(self, most: int = AT_A_TIME) -> bool:
        """Append events that are not in the tree yet, up to a number. Return whether there may be more."""
        chains, sealed, policies, events = schema.chain, schema.log_chain, schema.policy, schema.event
        owner, before = func.coalesce(chains.c.policy_id, chains.c.monitors), func.coalesce(sealed.c.length, 0)
        new = and_(events.c.chain_id == chains.c.id, events.c.seq > before, events.c.seq <= chains.c.length)
        name = (policies.c.name, chains.c.segment, chains.c.monitors)
        query = (
            select(chains.c.id, events.c.seq, events.c.hash, sealed.c.length, *name)
            .select_from(chains)
            .outerjoin(sealed, sealed.c.chain_id == chains.c.id)
            .outerjoin(policies, policies.c.id == owner)
            .join(events, new)
            .where(chains.c.length > before)
            .order_by(chains.c.id, events.c.seq)
            .limit(most)
        )
        leaves: list[bytes] = []
        runs: list[dict[str, int]] = []
        known: list[dict[str, int]] = []
        unknown: list[dict[str, int]] = []
        for chain, group in groupby(self._connection.execute(query).all(), key=itemgetter(0)):
            rows = list(group)
            _, first, _, length, policy, segment, monitors = rows[0]
            own = chain_name(policy, segment, None if monitors is None else policy)
            run = {"start": self.size + len(leaves), "chain_id": chain, "first_seq": first, "size": len(rows)}
            runs.append(run)
            (unknown if length is None else known).append({"chain_id": chain, "length": rows[-1][1]})
            leaves += [leaf_hash(leaf_data(own, row[1], row[2])) for row in rows]
        if runs:
            self._connection.execute(schema.log_run.insert(), runs)
        if unknown:
            self._connection.execute(sealed.insert(), unknown)
        if known:
            renamed = [{"of": row["chain_id"], "length": row["length"]} for row in known]
            self._connection.execute(sealed.update().where(sealed.c.chain_id == bindparam("of")), renamed)
        self._append(leaves)
        return len(leaves) == most

    def _append(self, leaves: Sequence[bytes]) -> None:
        """Append hashes of leaves, and the roots of the tiles that they fill to the levels above."""
        new, before, level = list(leaves), self.size, 0
        self.size += len(new)
        while new:
            position, offset = divmod(before, WIDTH)
            hashes = (self._tile(level, position) if offset else b"") + b"".join(new)
            full = []
            for start in range(0, len(hashes), WIDTH * HASH):
                tile = hashes[start : start + WIDTH * HASH]
                place = position + start // (WIDTH * HASH)
                self._write(level, place, tile, exists=start == 0 and offset > 0)
                if len(tile) == WIDTH * HASH:
                    full.append(complete_root(_split(tile)))
            new, before, level = full, before // WIDTH, level + 1

    def _tile(self, level: int, position: int) -> bytes:
        tile = self._tiles.get((level, position))
        if tile is None:
            own = (schema.log_tile.c.level == level) & (schema.log_tile.c.position == position)
            stored = self._connection.execute(select(schema.log_tile.c.hashes).where(own)).scalar_one()
            tile = self._tiles[level, position] = bytes(stored)
        return tile

    def _write(self, level: int, position: int, hashes: bytes, exists: bool) -> None:
        self._tiles[level, position] = hashes
        table = schema.log_tile
        if exists:
            own = (table.c.level == level) & (table.c.position == position)
            self._connection.execute(table.update().where(own).values(hashes=hashes))
        else:
            self._connection.execute(table.insert(), {"level": level, "position": position, "hashes": hashes})


def has_unsealed(connection: Connection) -> bool:
    """Return whether there are events that are not in the tree yet."""
    chains, sealed = schema.chain, schema.log_chain
    query = select(chains.c.id).outerjoin(sealed, sealed.c.chain_id == chains.c.id)
    new = chains.c.length > func.coalesce(sealed.c.length, 0)
    return connection.execute(query.where(new).limit(1)).first() is not None


class TileBuilder:
    """The tiles of a tree, computed from its leaves one after the other, for the audit."""

    def __init__(self) -> None:
        self._rows: list[list[bytes]] = []
        self._counts: list[int] = []  # full tiles by level

    def add(self, leaf: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Add a leaf, and yield the tiles that it fills: level, position and hashes."""
        level, value = 0, leaf
        while True:
            if level == len(self._rows):
                self._rows.append([])
                self._counts.append(0)
            row = self._rows[level]
            row.append(value)
            if len(row) < WIDTH:
                return
            yield level, self._counts[level], b"".join(row)
            value = complete_root(row)
            self._rows[level] = []
            self._counts[level] += 1
            level += 1

    def rest(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the tiles that are not full."""
        for level, (row, count) in enumerate(zip(self._rows, self._counts, strict=True)):
            if row:
                yield level, count, b"".join(row)


def read_runs(connection: Connection) -> Iterator[Run]:
    """Yield the runs of leaves in their order."""
    rows = connection.execute(
        select(schema.log_run).order_by(schema.log_run.c.start).execution_options(yield_per=1_000)
    )
    return (Run(*row) for row in rows)


def latest_checkpoint(connection: Connection) -> Any:
    """Return the row of the newest checkpoint, or None."""
    table = schema.log_checkpoint
    return connection.execute(select(table).order_by(table.c.size.desc()).limit(1)).first()


def store_checkpoint(connection: Connection, size: int, at: int, note: str) -> None:
    """Store a checkpoint. Of each past hour only the last one stays, because it proves what the others did."""
    table = schema.log_checkpoint
    last = latest_checkpoint(connection)
    if last is not None and last.at // HOUR == at // HOUR:
        connection.execute(table.delete().where(table.c.size == last.size))
    connection.execute(table.insert(), {"size": size, "at": at, "note": note})


def _split(hashes: bytes) -> list[bytes]:
    return [hashes[i : i + HASH] for i in range(0, len(hashes), HASH)]
