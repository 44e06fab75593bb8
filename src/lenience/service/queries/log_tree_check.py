"""Check the Merkle tree of the log: every leaf against its event, every tile, and every checkpoint.

The operator could rewrite all chains, the tree and the checkpoints in the database together. A checkpoint that somebody
else holds shows it: the root of the first events then differs from the root that was signed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, and_, func, select

from lenience.service.domain.decision_proof import leaf_data
from lenience.service.domain.merkle import leaf_hash
from lenience.service.domain.signed_note import Checkpoint, InvalidNoteError, split_note
from lenience.service.storage import schema
from lenience.service.storage.log_tree import LogTree, TileBuilder, chain_name, read_runs

Report = Callable[[str, str], None]
TREE = "the tree of the log"
AT_A_TIME = 2_000


def check_log_tree(connection: Connection, report: Report, held: Sequence[Checkpoint] = ()) -> None:
    """Report what is wrong with the tree, and with checkpoints in the database or in somebody else's hands."""
    size = _check_leaves(connection, report)
    if size is None:
        return
    tree = LogTree(connection)
    for row in connection.execute(select(schema.log_checkpoint).order_by(schema.log_checkpoint.c.size)).all():
        where = f"the checkpoint of {row.size} events"
        try:
            stated = Checkpoint.read(split_note(row.note)[0])
        except InvalidNoteError as error:
            report(where, str(error))
            continue
        if stated.size != row.size or row.size > size or tree.root(row.size) != stated.root:
            report(where, "its root is not that of the first events of the log")
    for checkpoint in held:
        where = f"your checkpoint of {checkpoint.size} events of {checkpoint.time}"
        if checkpoint.size > size:
            report(where, f"the log has only {size} events now: its end was cut off, or it is another log")
        elif tree.root(checkpoint.size) != checkpoint.root:
            report(where, "the first events of the log are not those that were signed: the log was rewritten")


def _check_leaves(connection: Connection, report: Report) -> int | None:
    """Compute the tree again from the events. Return its size, or None if it is damaged, so that it has no roots."""
    names, lengths = _chains(connection)
    builder, size, sealed = TileBuilder(), 0, dict.fromkeys(names, 0)
    events = schema.event
    tiles, whole = 0, True
    for run in list(read_runs(connection)):
        if run.start != size or run.chain not in names or run.first_seq != sealed[run.chain] + 1:
            report(TREE, f"its leaves from {run.start} on are not the next events of a chain")
            return None
        inside = and_(
            events.c.chain_id == run.chain, events.c.seq >= run.first_seq, events.c.seq < run.first_seq + run.size
        )
        query = select(events.c.seq, events.c.hash).where(inside).order_by(events.c.seq)
        count = 0
        for seq, digest in connection.execute(query.execution_options(yield_per=AT_A_TIME)):
            count += 1
            for level, position, hashes in builder.add(leaf_hash(leaf_data(names[run.chain], seq, digest))):
                tiles += 1
                whole &= _compare(connection, report, level, position, hashes)
        if count != run.size:
            report(
                TREE, f"{run.size - count} events of its leaves {run.start} to {run.start + run.size - 1} are missing"
            )
            return None
        size += run.size
        sealed[run.chain] += run.size
    for level, position, hashes in builder.rest():
        tiles += 1
        whole &= _compare(connection, report, level, position, hashes)
    stored = connection.execute(select(func.count()).select_from(schema.log_tile)).scalar_one()
    if stored != tiles:
        report(TREE, f"it has {stored} tiles of hashes, but {tiles} follow from the events")
    noted = {row.chain_id: row.length for row in connection.execute(select(schema.log_chain))}
    for chain, length in sealed.items():
        if noted.get(chain, 0) != length or length > lengths[chain]:
            report(TREE, f"it notes {noted.get(chain, 0)} events of chain {chain}, but has {length}")
    return size if whole else None


def _chains(connection: Connection) -> tuple[dict[int, str], dict[int, int]]:
    """Return the genesis hash and the length of each chain."""
    chains, policies = schema.chain, schema.policy
    owner = func.coalesce(chains.c.policy_id, chains.c.monitors)
    query = select(chains.c.id, chains.c.length, chains.c.segment, chains.c.monitors, policies.c.name).outerjoin(
        policies, policies.c.id == owner
    )
    names, lengths = {}, {}
    for chain, length, segment, monitors, policy in connection.execute(query):
        names[chain] = chain_name(policy, segment, None if monitors is None else policy)
        lengths[chain] = length
    return names, lengths


def chain_names(connection: Connection) -> dict[int, str]:
    """Return the genesis hash of each chain, which names it."""
    return _chains(connection)[0]


def _compare(connection: Connection, report: Report, level: int, position: int, hashes: bytes) -> bool:
    """Return whether a stored tile is the one that follows from the events, and report it otherwise."""
    table = schema.log_tile
    own = (table.c.level == level) & (table.c.position == position)
    stored = connection.execute(select(table.c.hashes).where(own)).scalar_one_or_none()
    same = stored is not None and bytes(stored) == hashes
    if not same:
        report(TREE, f"tile {position} of level {level} differs from the events")
    return same
