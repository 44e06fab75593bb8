"""Single decisions of one transaction are computed together, and come out as one transaction for each."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines import Engine, Json
from lenience.service.commands import decide as decide_command
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.outcomes import Change
from lenience.service.domain.feature_models import FeatureModel
from lenience.service.domain.receipts import CommandAnswer, make_sender
from lenience.service.storage.command import Command
from lenience.service.storage.writer import QueuedCommand
from serving import sqlite_file

HORIZON: Json = {"type": "horizon", "cost": 0.7, "horizon": 60}  # the number of arrivals matters
MODEL: Json = {
    "type": "logistic",
    "columns": [
        {"name": "income", "minimum": 0, "maximum": 100},
        {"name": "region", "type": "category", "values": ["north", "south"]},
    ],
}


def _single(features: Json, key: str | None = None) -> Decide:
    request = DecisionRequest(features=features)
    return Decide(make_sender("tester", key, "decide", request), "cards", [request], True)


def _people(seed: int) -> list[Json]:
    rng = random.Random(seed)
    return [{"income": rng.uniform(0, 100), "region": rng.choice(["north", "south", "west"])} for _ in range(12)]


def _commands(first: str) -> list[Command]:
    """Decisions, a label between them, a repeated request, which arrives only once, and an invalid one."""
    people = _people(4)
    label = Change(make_sender("tester", None, "", ""), first, "outcome", "failure")
    singles: list[Command] = [_single(one) for one in people[:3]]
    repeated = [people[5], people[5], people[0]]  # the last one has the key of another request
    more: list[Command] = [*(_single(one, key="same") for one in repeated), *(_single(one) for one in people[1:])]
    return [*singles, label, *more, _single({"income": -1}), *(_single(one) for one in people[6:9])]


def test_a_transaction_of_singles_decides_as_one_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    decide_each = FeatureModel.decide_each

    def counting(self: FeatureModel, state: Any, rows: Any, *more: Any) -> Any:
        computed.append(len(rows))
        return decide_each(self, state, rows, *more)

    monkeypatch.setattr(FeatureModel, "decide_each", counting)
    answers: list[list[Json | str]] = []
    for together in (True, False):
        ids = (str(uuid.UUID(int=i)) for i in range(1000))
        monkeypatch.setattr(decide_command, "new_id_and_salt", lambda now, ids=ids: (next(ids), "0" * 32))
        engine = Engine(sqlite_file(tmp_path), clock=lambda: 1_700_000_000_000_000)
        engine.create(segments=[], objective=HORIZON, model=MODEL)
        first = engine.call(_single({"income": 90, "region": "north"}))["id"]
        commands = [QueuedCommand(one, lambda result: None) for one in _commands(first)]
        computed.clear()
        parts = [commands] if together else [[one] for one in commands]
        results = [result for part in parts for result in engine.writer._write(part)]
        if together:
            assert len(computed) <= 5 < sum(computed)
        else:
            assert set(computed) == {1}
        answers.append(
            [msgspec.json.decode(one.body) if isinstance(one, CommandAnswer) else str(one) for one in results]
        )
        assert engine.audit().findings == []
        engine.close()
    assert answers[0] == answers[1]
    assert sum(isinstance(one, str) for one in answers[0]) == 2  # invalid, and a key for two different requests


def test_a_process_sees_labels_of_another_one(tmp_path: Path) -> None:
    """What a process has learnt serves the next transaction only while the log has no new label."""
    engine = Engine(sqlite_file(tmp_path))
    engine.create(segments=[], objective=HORIZON, model=MODEL)
    people = _people(5)
    made = [engine.call(_single(one)) for one in people]
    before = dict(engine.registry.model_states)
    accepted = next(one["id"] for one in made if one["decision"] == "accept")
    engine.outcome(accepted, "failure")
    fresh = engine.call(_single(people[0]))
    engine.registry.model_states.clear()
    engine.registry.model_states.update(before)  # as in a process that has not written the label
    assert engine.call(_single(people[0]))["belief"] == fresh["belief"] != made[0]["belief"]
    engine.close()
