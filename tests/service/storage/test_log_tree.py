"""The Merkle tree of the log in the database: its tiles, its checkpoints, and what an audit finds."""

from __future__ import annotations

import random
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine, delete, select, text, update

from engines import SQLITE, Engine
from lenience.core.errors import InputError
from lenience.service.commands.seal import SealLog
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.decision_proof import DecisionProof, PersonalProof, leaf_data, verify_decision
from lenience.service.domain.merkle import leaf_hash, verify_consistency
from lenience.service.domain.problems import BadRequest, Conflict, NotFound
from lenience.service.domain.signed_note import (
    Checkpoint,
    InvalidNoteError,
    SigningKey,
    verify_note,
)
from lenience.service.queries.audit import audit
from lenience.service.queries.log_proofs import LogProofs
from lenience.service.storage import log_tree, schema
from lenience.service.storage.address import database_url
from lenience.service.storage.log_key import log_key_file, read_log_key
from lenience.service.storage.log_tree import LogTree, TileBuilder, has_unsealed

KEY = SigningKey.create("test-log")


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of four hashes, so that a few events fill several levels."""
    monkeypatch.setattr(log_tree, "WIDTH_BITS", 2)
    monkeypatch.setattr(log_tree, "WIDTH", 4)


def seal(engine: Engine, key: SigningKey | None = KEY) -> None:
    command = SealLog(key)
    while command.more:
        engine.writer.call(command)


def proofs(engine: Engine) -> LogProofs:
    return LogProofs(engine.store, engine.registry)


def leaves(engine: Engine) -> list[bytes]:
    """The leaves in the order of the runs, from the events themselves."""
    with engine.store.read() as connection:
        chains = {row.id: row for row in connection.execute(select(schema.chain))}
        names = {row.id: row.name for row in connection.execute(select(schema.policy))}
        hashes = {(row.chain_id, row.seq): row.hash for row in connection.execute(select(schema.event))}
        runs = connection.execute(select(schema.log_run).order_by(schema.log_run.c.start)).all()
    result = []
    for run in runs:
        chain = chains[run.chain_id]
        owner = names.get(chain.policy_id or chain.monitors or 0)
        name = log_tree.chain_name(owner, chain.segment, owner if chain.monitors else None)
        for seq in range(run.first_seq, run.first_seq + run.size):
            result.append(leaf_hash(leaf_data(name, seq, hashes[run.chain_id, seq])))
    return result


def plain_root(hashes: list[bytes]) -> bytes:
    """The definition, from the hashes of the leaves."""
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while 2 * k < len(hashes):
        k *= 2
    return sha256(b"\1" + plain_root(hashes[:k]) + plain_root(hashes[k:])).digest()


def test_the_tree_of_the_database_is_the_tree_of_its_events(small_tiles: None, engine: Engine) -> None:
    engine.create()
    source = random.Random(7)
    sizes = []
    for _ in range(12):
        for _ in range(source.randrange(1, 6)):
            engine.decide(source.choice(["young", "old"]), reference=str(source.random()))
        seal(engine)
        with engine.store.read() as connection:
            tree = LogTree(connection)
            expected = leaves(engine)
            assert tree.size == len(expected)
            for size in {1, tree.size // 2, tree.size - 1, tree.size}:
                assert tree.root(size) == plain_root(expected[:size])
            assert not has_unsealed(connection)
        sizes.append(tree.size)
    for first, second in pairwise(sizes):
        path = [bytes.fromhex(each) for each in proofs(engine).consistency(first, second).path]
        with engine.store.read() as connection:
            tree = LogTree(connection)
            assert verify_consistency(first, second, path, tree.root(first), tree.root(second))
    report = engine.audit()
    assert report.whole
    assert report.events == sizes[-1]


def test_full_tiles_of_many_leaves() -> None:
    data = [leaf_hash(str(i).encode()) for i in range(700)]
    memory = create_engine("sqlite://")
    schema.metadata.create_all(memory)
    builder, tiles = TileBuilder(), dict[tuple[int, int], bytes]()
    with memory.begin() as connection:
        tree = LogTree(connection)
        assert tree.size == 0
        for start, end in pairwise((0, 1, 255, 256, 300, 699, 700)):
            tree._append(data[start:end])
            assert tree.size == end
            assert tree.root() == plain_root(data[:end])
            for leaf in data[start:end]:
                tiles |= {(level, place): hashes for level, place, hashes in builder.add(leaf)}
        for size in (1, 2, 255, 256, 257, 511, 513, 640):
            assert tree.root(size) == plain_root(data[:size])
        tiles |= {(level, place): hashes for level, place, hashes in builder.rest()}
        stored = connection.execute(select(schema.log_tile)).all()
    memory.dispose()
    assert {(row.level, row.position): row.hashes for row in stored} == tiles
    assert {place: len(hashes) // 32 for place, hashes in tiles.items()} == {
        (0, 0): 256, (0, 1): 256, (0, 2): 188, (1, 0): 2
    }  # fmt: skip


@SQLITE
def test_a_large_backlog_is_sealed_in_parts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogTree.append_new, "__defaults__", (7,))
    engine.create()
    for _ in range(20):
        engine.decide()
    seal(engine)
    with engine.store.read() as connection:
        assert LogTree(connection).size == sum(engine_length(engine))
        assert connection.execute(select(schema.log_run)).all()[-1].size <= 7
    assert engine.audit().whole


@SQLITE
def test_a_busy_service_does_not_seal_after_each_transaction(engine: Engine) -> None:
    engine.create()
    engine.decide()
    command = SealLog(KEY)
    engine.writer.call(command)
    assert not command.more  # what others write meanwhile waits for the next second


def engine_length(engine: Engine) -> list[int]:
    with engine.store.read() as connection:
        return list(connection.scalars(select(schema.chain.c.length)))


@SQLITE
def test_a_decision_is_proved_with_the_public_key_alone(engine: Engine) -> None:
    engine.create()
    made = [engine.decide("young" if i % 2 else "old", reference=f"application {i}") for i in range(9)]
    seal(engine)
    for one in made:
        proof = proofs(engine).decision(one["id"])
        shown = verify_decision(proof, KEY.public)
        assert (shown.decision, shown.choice, shown.segment) == (one["id"], one["decision"], one["segment"])
        assert shown.log_size == proof.size
        assert shown.reference == f"application {made.index(one)}"
    changes: list[dict[str, Any]] = [
        {"event": proof.event.replace('"accept"', '"reject"')},
        {"segment": "young" if proof.segment == "old" else "old"},
        {"sequence": proof.sequence + 1},
        {"index": proof.index - 1},
        {"previous": genesis("cards", "young")},
        {"path": proof.path[:-1]},
        {"path": ["xyz"]},
        {"size": proof.size - 1},
        {"decision": made[0]["id"]},
        {"personal": PersonalProof("0" * 32, "somebody else", None)},
        {"checkpoint": proof.checkpoint.replace("test-log", "best-log")},
        {"checkpoint": KEY.sign(Checkpoint("test-log", proof.size, b"\0" * 32, "2026-01-01T00:00:00Z").text)},
    ]
    for change in changes:
        with pytest.raises(InvalidNoteError):
            verify_decision(msgspec.structs.replace(proof, **change), KEY.public)
    with pytest.raises(InvalidNoteError):
        verify_decision(proof, SigningKey.create("test-log").public)


@SQLITE
def test_the_proof_for_a_checkpoint_that_somebody_holds(engine: Engine) -> None:
    engine.create()
    first = engine.decide()
    seal(engine)
    held = proofs(engine).checkpoint()
    for _ in range(5):
        later = engine.decide()
    seal(engine)
    proof = proofs(engine).decision(first["id"])
    with pytest.raises(InvalidNoteError, match=f"size={held.size}"):
        verify_decision(proof, KEY.public, held.note)
    earlier = msgspec.structs.replace(proofs(engine).decision(first["id"], held.size), checkpoint=held.note)
    assert verify_decision(earlier, KEY.public, held.note).log_size == held.size
    with pytest.raises(Conflict) as refused:
        proofs(engine).decision(later["id"], held.size)
    assert refused.value.code == "not_in_log"
    with pytest.raises(NotFound):
        proofs(engine).decision("00000000-0000-7000-8000-000000000000")
    with pytest.raises(BadRequest):
        proofs(engine).consistency(5, 10**6)


@SQLITE
def test_erasing_keeps_the_proof_without_personal_data(engine: Engine) -> None:
    engine.create()
    made = engine.decide(reference="mine")
    engine.erase(made["id"])
    seal(engine)
    proof = proofs(engine).decision(made["id"])
    assert proof.personal is None
    assert verify_decision(proof, KEY.public).reference is None


@SQLITE
def test_without_a_key_there_is_no_checkpoint(engine: Engine) -> None:
    engine.create()
    made = engine.decide()
    seal(engine, key=None)
    with pytest.raises(Conflict) as refused:
        proofs(engine).decision(made["id"])
    assert refused.value.code == "no_checkpoint"
    assert engine.audit().whole


def test_a_log_rewritten_from_the_start_is_detected_by_an_older_checkpoint(engine: Engine) -> None:
    engine.create()
    for i in range(6):
        engine.decide(reference=f"application {i}")
    seal(engine)
    held = verify_note(proofs(engine).checkpoint().note, KEY.public)
    engine.decide()
    seal(engine)
    assert audit(engine.store, held=[held]).whole
    # The operator changes who asked for the last decision, and computes every hash again: of the chain, of the tree,
    # and of the checkpoint, which the operator can sign.
    with engine.store.write() as connection:
        events = schema.event
        chain = connection.execute(select(schema.chain).where(schema.chain.c.segment == "young")).one()
        rows = connection.execute(select(events).where(events.c.chain_id == chain.id).order_by(events.c.seq)).all()
        head, bodies = genesis("cards", "young"), []
        for row in rows:
            body = row.body.replace('"actor":"tester"', '"actor":"nobody"')
            head = link(head, body)
            bodies.append((row.seq, body, head))
        for seq, body, digest in bodies:
            own = (events.c.chain_id == chain.id) & (events.c.seq == seq)
            connection.execute(update(events).where(own).values(body=body, hash=digest))
        connection.execute(update(schema.chain).where(schema.chain.c.id == chain.id).values(head=head))
        for table in (schema.log_run, schema.log_chain, schema.log_tile, schema.log_checkpoint):
            connection.execute(delete(table))
    seal(engine)
    assert engine.audit().whole  # nothing in the database is inconsistent
    (finding,) = audit(engine.store, held=[held]).findings
    assert "rewritten" in finding.what
    longer = Checkpoint(held.origin, held.size + 100, held.root, held.time)
    (finding,) = audit(engine.store, held=[longer]).findings
    assert "cut off" in finding.what


@SQLITE
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE log_tile SET hashes = (SELECT hashes FROM log_tile WHERE level = 1) WHERE level = 0",
            "tile 0",
        ),
        ("DELETE FROM log_tile WHERE level = 1", "tile"),
        ("DELETE FROM log_run WHERE start = 0", "not the next events"),
        ("UPDATE log_run SET size = size + 1 WHERE start = (SELECT max(start) FROM log_run)", "missing"),
        ("UPDATE log_chain SET length = length - 1", "it notes"),
        ("UPDATE log_checkpoint SET note = replace(note, 'time', 'lime')", "not the checkpoint"),
        ("UPDATE log_checkpoint SET size = size - 1", "its root is not"),
    ],
)
def test_the_audit_finds_changes_of_the_tree(small_tiles: None, engine: Engine, statement: str, words: str) -> None:
    engine.create()
    for i in range(10):
        engine.decide("young" if i % 2 else "old")
    seal(engine)
    saved = {}
    with engine.store.read() as connection:
        for table in (schema.log_run, schema.log_chain, schema.log_tile, schema.log_checkpoint):
            saved[table] = [dict(row._mapping) for row in connection.execute(select(table))]
    with engine.store.write() as connection:
        connection.execute(text(statement))
    assert any(words in finding.what for finding in engine.audit().findings)
    with engine.store.write() as connection:  # the engine is audited when the test ends
        for table, rows in saved.items():
            connection.execute(delete(table))
            connection.execute(table.insert(), rows)


@SQLITE
def test_one_checkpoint_of_each_hour_stays(engine: Engine) -> None:
    hour = 3_600_000_000
    with engine.store.write() as connection:
        for size, at in ((3, 10), (5, hour - 1), (8, hour), (9, 2 * hour - 1), (11, 2 * hour)):
            log_tree.store_checkpoint(connection, size, at, "note")
        stored = list(connection.scalars(select(schema.log_checkpoint.c.size).order_by(schema.log_checkpoint.c.size)))
        assert log_tree.latest_checkpoint(connection).size == 11
        connection.execute(delete(schema.log_checkpoint))
    assert stored == [5, 9, 11]


def test_the_key_is_in_a_private_file_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database_url(str(tmp_path / "log.db"))
    assert read_log_key(url) is None
    made = read_log_key(url, create=True)
    assert made is not None
    assert read_log_key(url) == made
    path = log_key_file(url)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(InputError, match="owner"):
        read_log_key(url)
    path.chmod(0o600)
    path.write_text("PRIVATE+KEY+x")
    with pytest.raises(InputError, match="damaged"):
        read_log_key(url)
    monkeypatch.setenv("LENIENCE_LOG_KEY", KEY.text)
    assert read_log_key(url) == KEY


@SQLITE
def test_proofs_are_small(engine: Engine) -> None:
    engine.create()
    made = [engine.decide() for _ in range(40)]
    seal(engine)
    proof = proofs(engine).decision(made[-1]["id"])
    assert isinstance(proof, DecisionProof)
    assert len(proof.path) <= proof.size.bit_length()
