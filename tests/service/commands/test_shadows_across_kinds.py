"""Versions by segments in shadow of one that decides by features: what they see, their audit, and the comparison."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from engines import SQLITE, Engine, Json
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.events import Decided, SegmentsSeen, read, write
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.segment_counts import SegmentCounts
from lenience.service.domain.specification import ONLY_SEGMENT
from lenience.service.storage import schema

OBJECTIVE: Json = {"type": "discounted", "cost": 0.7, "discount": 0.99}
LOGISTIC: Json = {
    "type": "logistic",
    "columns": [
        {"name": "income", "minimum": 0, "maximum": 100},
        {"name": "region", "type": "category", "values": ["north", "south"]},
    ],
}
CELLS: Json = {"features": [{"name": "region", "values": ["north"]}], "segments": []}
OWN: Json = {"segments": ["young", "old"], "objective": OBJECTIVE}
SHARED: Json = {**OWN, "model": {"type": "shared"}}


def _features(engine: Engine, **changes: Any) -> Json:
    return engine.create(segments=[], objective=OBJECTIVE, model=LOGISTIC, **changes)


def _person(rng: random.Random) -> Json:
    return {"income": round(rng.uniform(0, 100), 1), "region": rng.choice(["north", "south", " north"])}


def _live(engine: Engine, rng: random.Random, rounds: int) -> list[tuple[str, str | None]]:
    """Decide, record, correct, override and erase at random; return the ids and the segments that were named."""
    made: list[tuple[str, str | None]] = []
    for _ in range(rounds):
        segment = rng.choice(["young", "old", None])
        decision = engine.decide(segment, features=_person(rng))
        made.append((decision["id"], segment))
        if decision["decision"] == "accept":
            fate = rng.random()
            if fate < 0.6:
                engine.outcome(decision["id"], rng.choice(["success", "success", "failure"]))
            elif fate < 0.7:
                engine.give_up(decision["id"])
            elif fate < 0.8:
                engine.override(decision["id"], "reject")
            if fate < 0.2:
                outcome = engine.queries.decision(decision["id"]).status
                engine.correct(decision["id"], "failure" if outcome == "success" else "success")
            if fate > 0.9 or fate < 0.1:
                engine.erase(decision["id"])
        elif rng.random() < 0.5:
            engine.override(decision["id"], "accept")
    return made


def _events(engine: Engine) -> list[tuple[int, Any]]:
    with engine.store.read() as connection:
        chain = connection.scalar(select(schema.chain.c.id).where(schema.chain.c.segment == ONLY_SEGMENT))
        events = schema.event
        rows = connection.execute(
            select(events.c.seq, events.c.body).where(events.c.chain_id == chain).order_by(events.c.seq)
        )
        return [(row.seq, read(row.body)) for row in rows]


def _decided(engine: Engine) -> list[Decided]:
    return [event for _, event in _events(engine) if isinstance(event, Decided)]


def test_versions_by_segments_follow_a_version_by_features(engine: Engine) -> None:
    """Their counts are those of the applicants of each segment, with the outcomes of the time before."""
    engine.create(**OWN)
    for i in range(6):
        before = engine.decide("young" if i % 2 else "old")
        if i < 5:
            engine.outcome(before["id"], "success")
    _features(engine)
    for version in (OWN, SHARED, {**CELLS, "objective": OBJECTIVE}):
        made = engine.create(activate=False, **version)
        engine.state("cards", "shadow", made["version"])
    rng = random.Random(3)
    made_first = _live(engine, rng, 16)
    engine.outcome(before["id"], "failure")  # of a decision by segments, late
    made_all = [*made_first, *_live(engine, rng, 9)]
    engine.registry.forget()  # as after a restart
    made_all += _live(engine, rng, 4)
    assert engine.audit().findings == []
    status = {one: engine.queries.decision(one) for one, _ in made_all}
    last = engine.decide("young", features={"income": 50, "region": "north"})
    shadows = {one.version: one for one in _decided(engine)[-1].shadows}
    for number, names in ((3, {"young"}), (4, {"young"})):
        own = [status[one].status for one, segment in made_all if segment in names]
        kinds = Counter(own)
        counts = shadows[number].counts
        assert counts is not None
        assert counts.arrivals == len(own) + 3
        assert counts.successes == kinds["success"] + 2 + (before["segment"] != "young")
        assert counts.failures == kinds["failure"] + (before["segment"] == "young")
        assert counts.pending == kinds["pending"]
    cell = shadows[5]
    assert cell.segment == "region=north"
    assert cell.counts is not None
    assert cell.counts.arrivals + 1 == sum("region=north" in str(one.shadows) for one in _decided(engine))
    assert engine.queries.decision(last["id"]).shadows[0].segment == "young"
    comparisons = {one.version: one for one in engine.queries.shadows("cards").shadows}
    without = sum(segment is None for _, segment in made_all)
    assert [comparisons[number].not_compared for number in (3, 4, 5)] == [without, without, 0]
    assert comparisons[3].decisions == len(made_all) + 1 - without
    assert {one.estimates_of for one in comparisons[3].expected} == {2, 3}
    assert "not compared" in comparisons[3].unknown


@SQLITE
def test_a_segment_shadow_learns_what_an_active_one_would(engine: Engine) -> None:
    """The verdict in shadow is that of the same version, if it were active with the same outcomes."""
    _features(engine)
    engine.create(activate=False, **OWN)
    engine.state("cards", "shadow", 2)
    engine.create(name="twin", **OWN)
    rng = random.Random(5)
    for _ in range(30):
        segment, features = rng.choice(["young", "old"]), _person(rng)
        decision = engine.decide(segment, features=features)
        twin = engine.decide(segment, policy="twin")
        shadow = _decided(engine)[-1].shadows[0]
        assert (shadow.decision, shadow.rule, shadow.threshold) == (twin["decision"], twin["rule"], twin["threshold"])
        if twin["decision"] != decision["decision"]:
            engine.override(twin["id"], decision["decision"])
        if decision["decision"] == "accept":
            outcome = rng.choice(["success", "failure"])
            engine.outcome(decision["id"], outcome)
            engine.outcome(twin["id"], outcome)


@SQLITE
def test_a_segment_next_to_features_must_exist(engine: Engine) -> None:
    _features(engine)
    person = {"income": 50, "region": "north"}
    with pytest.raises(BadRequest, match="takes no segment"):
        engine.decide("young", features=person)
    engine.create(activate=False, **OWN)
    assert "also needs a segment" in engine.state("cards", "shadow", 2)["warnings"][-1]
    with pytest.raises(BadRequest, match="'young', 'old'"):
        engine.decide("yuong", features=person)
    assert engine.decide("young", features=person)["segment"] == ONLY_SEGMENT


def _forge(engine: Engine, change: Any) -> None:
    """Change events of the chain of decisions by features, with hashes that fit."""
    with engine.store.write() as connection:
        row = connection.execute(select(schema.chain).where(schema.chain.c.segment == ONLY_SEGMENT)).one()
        events, head = schema.event, genesis("cards", ONLY_SEGMENT)
        for one in connection.execute(select(events).where(events.c.chain_id == row.id).order_by(events.c.seq)).all():
            text = write(change(read(one.body)))
            head = link(head, text)
            own = (events.c.chain_id == row.id) & (events.c.seq == one.seq)
            connection.execute(update(events).where(own).values(body=text, hash=head))
        connection.execute(update(schema.chain).where(schema.chain.c.id == row.id).values(head=head))


def _with_shadow(event: Any, **changes: Any) -> Any:
    if not isinstance(event, Decided) or not any(one.segment for one in event.shadows):
        return event
    shadows = tuple(msgspec.structs.replace(one, **changes) for one in event.shadows)
    return msgspec.structs.replace(event, shadows=shadows)


@SQLITE
def test_tampering_with_a_segment_shadow_is_found(engine: Engine) -> None:
    engine.create(**OWN)
    engine.outcome(engine.decide("young")["id"], "success")
    _features(engine)
    engine.create(activate=False, objective=OBJECTIVE, **CELLS)
    engine.create(activate=False, **OWN)
    engine.state("cards", "shadow", 3)
    engine.state("cards", "shadow", 4)
    _live(engine, random.Random(1), 8)
    with engine.store.read() as connection:
        row = schema.chain.c.segment == ONLY_SEGMENT
        stored = connection.scalar(select(schema.chain.c.shadow_segments).where(row))
    assert engine.audit().findings == []
    chain = update(schema.chain).where(schema.chain.c.segment == ONLY_SEGMENT)
    with engine.store.write() as connection:
        connection.execute(chain.values(shadow_segments='{"decided":{"3":{"young":[9,9,9,9,9,0.0]}}}'))
    assert any("for versions in shadow" in one.what for one in engine.audit().findings)
    with engine.store.write() as connection:
        connection.execute(chain.values(shadow_segments=stored))
    originals = [event for _, event in _events(engine)]

    def said(event: Any) -> Any:
        if not isinstance(event, SegmentsSeen):
            return event
        return msgspec.structs.replace(event, chains=tuple((n, at, SegmentCounts(7)) for n, at, _ in event.chains))

    forgeries = [
        (lambda event: _with_shadow(event, counts=SegmentCounts(1, 1, 0, 1, 0)), "do not follow"),
        (lambda event: _with_shadow(event, threshold=0.123), "is not what version"),
        (lambda event: _with_shadow(event, segment="region=other"), "are not those of the segment"),
        (said, "differ from the log of that segment"),
    ]
    for forgery, what in forgeries:
        _forge(engine, forgery)
        assert any(what in one.what for one in engine.audit().findings), what
        again = iter(originals)
        _forge(engine, lambda event, again=again: next(again))
        assert engine.audit().findings == []
