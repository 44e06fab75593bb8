"""Monitored attributes: no decision changes with them, and they can be corrected and erased."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from engines import Engine
from lenience import InputError
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.monitor import MonitorMany
from lenience.service.domain.monitored import MonitoredItem
from lenience.service.domain.problems import BadRequest, NotFound
from lenience.service.domain.receipts import make_sender
from lenience.service.storage import schema
from serving import sqlite_file

ATTRIBUTES = st.dictionaries(st.sampled_from(["sex", "age_band", "race"]), st.sampled_from("abcd"), max_size=3)
STEPS = st.lists(
    st.tuples(st.sampled_from(["young", "old"]), ATTRIBUTES, ATTRIBUTES, st.sampled_from(["success", "failure", ""])),
    min_size=1,
    max_size=25,
)
FLOOR = {"exploration_floor": 0.4}  # so that decisions depend on draws
_names = itertools.count()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    """Two engines: one that is given attributes, and one that is not."""
    folder = tmp_path_factory.mktemp("monitored")
    both = Engine(sqlite_file(folder), clock=lambda: 10**15), Engine(sqlite_file(folder), clock=lambda: 10**15)
    yield both
    for engine in both:
        assert engine.audit().whole
        engine.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_no_decision_changes_with_them(
    pair: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch, steps: list[Any]
) -> None:
    name, start = f"p{next(_names)}", 1000 * next(_names)
    logs = []
    for engine, monitors in zip(pair, (True, False), strict=True):
        numbers = itertools.count(start)
        with monkeypatch.context() as patch:
            patch.setattr(
                "lenience.service.commands.decide.new_id_and_salt",
                lambda now, numbers=numbers: (f"{next(numbers):036x}", "0" * 32),
            )
            engine.create(name=name, objective={"type": "discounted", "cost": 0.8, "discount": 0.9}, constraints=FLOOR)
            answers = []
            for segment, first, later, outcome in steps:
                more = {"monitored": first} if monitors and first else {}
                answer = engine.decide(segment, name, reference="R-1", **more)
                answers.append(answer)
                if monitors and later:
                    engine.monitor(answer["id"], dict(later))
                if outcome and answer["decision"] == "accept":
                    engine.outcome(answer["id"], outcome)
        with engine.store.read() as connection:
            policy = engine.registry.load(connection, name)
            query = select(schema.event).where(schema.event.c.chain_id.in_(policy.segments.values()))
            events = {tuple(row)[1:] for row in connection.execute(query)}
        logs.append((answers, events))
    # The same answers, and the same events with the same hashes in the chains that decisions are made from.
    assert logs[0] == logs[1]


def test_a_batch_takes_them_and_a_decision_shows_them(engine: Engine) -> None:
    engine.create()
    asked = [DecisionRequest("young", monitored={"sex": " f "}), DecisionRequest("old")]
    sender = make_sender("tester", None, "", "")
    first, second = engine.call(Decide(sender, "cards", asked, False))["decisions"]
    assert engine.queries.decision(first["id"]).monitored == {"sex": "f"}
    assert engine.queries.decision(second["id"]).monitored == {}


def test_a_waiting_applicant_keeps_them(engine: Engine) -> None:
    engine.create(constraints={"exposure_cap": 1}, waiting_list=True)
    first = engine.decide()["id"]
    waiting = engine.decide(monitored={"sex": "f"})
    assert waiting["decision"] == "wait"
    engine.outcome(first, "success")
    again = engine.call(DecideAgain.of(make_sender("tester", None, "", ""), waiting["id"]))
    assert again["decision"] == "accept"
    assert engine.queries.decision(again["id"]).monitored == {"sex": "f"}


def test_they_are_added_corrected_and_removed(engine: Engine) -> None:
    engine.create()
    made = engine.decide()["id"]
    assert engine.monitor(made, {"sex": "f", "race": "x"})["attributes"] == ["race", "sex"]
    assert engine.monitor(made, {"sex": "m", "age_band": "25-34"})["recorded"] is True
    assert engine.queries.decision(made).monitored == {"age_band": "25-34", "race": "x", "sex": "m"}
    assert engine.monitor(made, {"sex": "m"})["recorded"] is False
    assert engine.monitor(made, {"race": None})["attributes"] == ["age_band", "sex"]
    assert engine.monitor(made, {"sex": None, "age_band": None})["attributes"] == []
    with engine.store.read() as connection:
        assert connection.execute(select(schema.monitored)).all() == []


def test_a_key_makes_it_safe_to_repeat(engine: Engine) -> None:
    engine.create()
    made = engine.decide()["id"]
    first = engine.monitor(made, {"sex": "f"}, key="k")
    assert engine.monitor(made, {"sex": "f"}, key="k") == first
    with engine.store.read() as connection:
        stored = connection.execute(select(schema.idempotency.c.answer)).scalars().all()
    assert len(stored) == 1
    assert '"f"' not in stored[0]  # values are personal data, and stored answers are not erased


def test_erasure_removes_values_and_salts(engine: Engine) -> None:
    engine.create()
    kept = engine.decide(monitored={"sex": "f"})["id"]
    made = engine.decide(monitored={"sex": "f"})["id"]
    engine.erase(engine.decide(reference="nobody monitored")["id"])
    assert engine.erase(made)["recorded"] is True
    assert engine.queries.decision(made).monitored == {}
    with engine.store.read() as connection:
        assert {row.decision for row in connection.execute(select(schema.monitored))} == {kept}
    assert engine.audit().whole
    assert engine.erase(made)["recorded"] is False
    engine.monitor(made, {"sex": "m"})  # collected again: personal data again
    assert engine.erase(made)["recorded"] is True
    assert engine.queries.decision(made).monitored == {}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({" ": "f"}, "invalid_value"),
        ({"sex": "  "}, "invalid_value"),
        ({"sex": "f", "sex ": "m"}, "duplicate"),
        ({str(i): "x" for i in range(9)}, "too_large"),
    ],
)
def test_invalid_ones_are_rejected(engine: Engine, changes: dict[str, str | None], code: str) -> None:
    engine.create()
    with pytest.raises(BadRequest) as problem:
        engine.monitor(engine.decide()["id"], changes)
    assert problem.value.code == code
    assert problem.value.field == "monitored"


def test_the_decision_must_exist(engine: Engine) -> None:
    engine.create()
    with pytest.raises(NotFound):
        engine.monitor("0" * 36, {"sex": "f"})


PROTECTED: list[dict[str, Any]] = [
    {"segments": [], "features": [{"name": "sex", "values": ["f", "m"]}]},
    {"segments": ["race=a", "race=b"]},
    {"segments": [], "features": [{"name": "Post code", "values": ["1"]}], "protected": ["post_code"]},
]


@pytest.mark.parametrize("changes", PROTECTED)
def test_a_version_decides_by_them_only_if_it_may(engine: Engine, changes: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as problem:
        engine.create(**changes)
    assert problem.value.code == "decides_by_protected"
    assert "decide_by_protected" in problem.value.detail
    made = engine.create(**changes, decide_by_protected=True)
    assert made["warnings"][0].startswith("Decisions differ by")


def test_a_version_that_says_so_is_warned_of_whatever_its_names(engine: Engine) -> None:
    made = engine.create(segments=["f", "m"], protected=["sex"], decide_by_protected=True)
    assert made["warnings"][0].startswith("Decisions differ by sex.")


def test_a_version_cannot_decide_by_what_is_monitored(engine: Engine) -> None:
    engine.create()
    engine.decide(monitored={"region": "north"})
    by_region: dict[str, Any] = {"segments": [], "features": [{"name": "region", "values": ["north"]}]}
    by_group: dict[str, Any] = {"segments": [{"name": "young", "group": "North"}, "old"]}
    for changes in (by_region, by_group):
        with pytest.raises(BadRequest) as problem:
            engine.create(**changes)
        assert problem.value.code == "decides_by_protected"
    engine.create(**by_group, decide_by_protected=True)
    other = engine.create(name="other", **by_region)
    assert other["warnings"] == [] or "region" not in other["warnings"][0]
    with pytest.raises(BadRequest) as problem:
        engine.decide(None, "other", features={"region": "north"}, monitored={"Region": "north"})
    assert problem.value.code == "decides_by_protected"


def test_a_model_with_features_does_not_see_them_either(engine: Engine) -> None:
    columns = [{"name": "income", "minimum": 0, "maximum": 100}]
    engine.create(segments=[], model={"type": "logistic", "columns": columns})
    made = engine.decide(None, features={"income": 40}, monitored={"sex": "f"})["id"]
    assert engine.queries.decision(made).monitored == {"sex": "f"}
    with pytest.raises(BadRequest) as problem:
        engine.decide(None, features={"income": 40}, monitored={"Income": "high"})
    assert problem.value.code == "decides_by_protected"
    with pytest.raises(BadRequest):
        engine.monitor(made, {"income": "high"})


def test_erased_values_are_in_no_file(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    value = "a value that nobody else has"
    made = engine.decide(monitored={"sex": value})["id"]
    engine.erase(made)
    files = [path for path in tmp_path.iterdir() if value.encode() in path.read_bytes()]
    assert files == []
    assert engine.audit().whole
    engine.close()


def test_many_decisions_get_attributes_at_once(engine: Engine) -> None:
    engine.create()
    ids = [engine.decide("young", reference=f"R-{i}")["id"] for i in range(3)]
    twice = [engine.decide("old", reference="R-twice")["id"] for _ in range(2)]

    def send(*items: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        asked = [MonitoredItem(**item) for item in items]
        return engine.call(MonitorMany(make_sender("tester", key, "", asked, secret=True), asked))

    items: list[dict[str, Any]] = [
        {"id": ids[0], "monitored": {"sex": " f"}},
        {"reference": "R-1", "monitored": {"sex": "m", "age_band": "18-34"}},
        {"id": ids[0], "monitored": {"race": "x"}},
        {"id": ids[1], "monitored": {"age_band": None}},
        {"id": "no such decision", "monitored": {"sex": "f"}},
        {"reference": "R-twice", "monitored": {"sex": "f"}},
        {"reference": "nobody's", "monitored": {"sex": "f"}},
        {"id": ids[2], "monitored": {"sex": " "}},
    ]
    answer = send(*items, key="once")
    assert (answer["recorded"], answer["repeated"]) == (4, 0)
    assert [(one["position"], one["status"]) for one in answer["problems"]] == [(4, 404), (5, 409), (6, 404), (7, 400)]
    assert [engine.queries.decision(one).monitored for one in ids] == [{"race": "x", "sex": "f"}, {"sex": "m"}, {}]
    assert send(*items, key="once") == answer
    assert send(*items[:2])["recorded"] == 1, "the second one has an age band again"
    assert send(items[0], key="again")["repeated"] == 1
    with pytest.raises(NotFound):
        send({"id": "no such decision", "monitored": {"sex": "f"}})
    assert engine.queries.decision(twice[0]).monitored == {}
    engine.erase(ids[0])
    assert engine.audit().findings == []


def test_many_items_name_one_decision_each() -> None:
    for wrong in ({}, {"id": "a", "reference": "b"}):
        with pytest.raises(InputError) as error:
            MonitoredItem(**wrong, monitored={"sex": "f"})
        assert error.value.code == "missing"
