"""Rollout: a stable share of applicants is decided by a new version next to the active one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from engines import SQLITE, Engine, rewrite
from lenience.core.offers import Offer
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.decide import DecisionRequest
from lenience.service.commands.ranking import DecideRanked
from lenience.service.commands.rollout import describes_rollout
from lenience.service.commands.rollout_assignment import Assignment
from lenience.service.domain.events import Decided, Event, StateChanged
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import Conflict
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.rollout import rollout_draw
from lenience.service.storage import schema
from serving import OFFERS

STRICT: dict[str, Any] = {"objective": {"type": "discounted", "cost": 0.95, "discount": 0.5}}
COLUMNS = [{"name": "income", "minimum": 0, "maximum": 100}]
LOGISTIC: dict[str, Any] = {"segments": [], "model": {"type": "logistic", "columns": COLUMNS}}


def two_versions(engine: Engine, **second: Any) -> None:
    engine.create()
    engine.create(activate=False, **(second or STRICT))


def versions(engine: Engine, names: list[str]) -> dict[str, int]:
    return {name: engine.decide(reference=name)["policy_version"] for name in names}


def test_a_stable_share_of_applicants_moves_in_one_direction(engine: Engine) -> None:
    two_versions(engine)
    assert engine.roll_out(30)["percent"] == 30
    names = [f"person {i}" for i in range(60)]
    first = versions(engine, names)
    assert first == {name: 2 if rollout_draw("cards", 2, name) < 0.3 else 1 for name in names}
    assert {1, 2} == set(first.values())
    made = engine.decide(reference=next(name for name, version in first.items() if version == 2))
    assert made["decision"] == "reject"  # the version in rollout asks for more
    assert engine.roll_out(60)["changed"]
    assert not engine.roll_out(60)["changed"]
    second = versions(engine, names)
    assert all(second[name] == 2 for name, version in first.items() if version == 2)
    assert sum(second.values()) > sum(first.values())
    assert engine.roll_out(100)["percent"] == 100
    assert set(versions(engine, names[:5]).values()) == {2}
    assert engine.roll_out(0)["state"] == "retired"
    assert set(versions(engine, names[:5]).values()) == {1}
    assert engine.roll_out(1, 2)["state"] == "rollout"
    assert engine.state("cards", "active", 2)["replaced"] == 1
    assert set(versions(engine, names[:5]).values()) == {2}
    listed = engine.queries.policies().policies[0].versions
    assert [(one.state, one.percent) for one in listed] == [("retired", None), ("active", None)]
    report = engine.audit()
    assert (report.whole, report.assignments_not_recomputed) == (True, 0)


@SQLITE
def test_the_decision_of_the_other_version_is_logged_beside(engine: Engine) -> None:
    two_versions(engine)
    engine.roll_out(50)
    for i in range(12):
        view = engine.queries.decision(engine.decide(reference=f"person {i}")["id"])
        (other,) = view.shadows
        answers = {view.policy_version: view.decision, other.version: other.decision}
        assert answers == {1: "accept", 2: "reject"}


@SQLITE
def test_without_a_reference_the_id_decides_and_a_waiting_applicant_keeps_its_draw(engine: Engine) -> None:
    capped: dict[str, Any] = {"constraints": {"exposure_cap": 1}, "waiting_list": True}
    engine.create(**capped)
    engine.create(activate=False, description="the same", **capped)
    engine.roll_out(50)
    first = engine.decide()
    waiting = [engine.decide() for _ in range(8)]
    assert {one["policy_version"] for one in waiting} == {1, 2}
    for one in (first, *waiting):
        assert one["policy_version"] == (2 if rollout_draw("cards", 2, one["id"]) < 0.5 else 1)
    for one in waiting:
        again = engine.call(DecideAgain.of(make_sender("tester", None, "", None), one["id"]))
        assert again["policy_version"] == one["policy_version"]
    assert engine.audit().whole


@SQLITE
def test_what_cannot_be_rolled_out(engine: Engine) -> None:
    engine.create(activate=False)
    with pytest.raises(Conflict) as refused:
        engine.roll_out(10)
    assert refused.value.code == "no_active_version"
    engine.state("cards", "active")
    with pytest.raises(Conflict) as refused:
        engine.roll_out(10)  # the active one
    assert refused.value.code == "version_state"
    engine.create(activate=False, **STRICT)
    engine.create(activate=False, description="third")
    with pytest.raises(Conflict) as refused:
        engine.roll_out(0, 2)
    assert refused.value.code == "version_state"
    engine.roll_out(10, 2)
    with pytest.raises(Conflict) as refused:
        engine.roll_out(10, 3)
    assert refused.value.code == "rollout_running"
    with pytest.raises(Conflict) as refused:
        engine.state("cards", "active", 3)
    assert refused.value.code == "rollout_running"
    engine.create(activate=False, constraints={"overall_exposure_cap": 9})
    engine.roll_out(0)
    with pytest.raises(Conflict) as refused:
        engine.roll_out(10, 4)
    assert refused.value.code == "rollout_limits"
    assert engine.audit().whole


@SQLITE
def test_four_eyes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    two_versions(engine)
    monkeypatch.setenv("LENIENCE_FOUR_EYES", "1")
    with pytest.raises(Conflict) as refused:
        engine.roll_out(10)
    assert refused.value.code == "four_eyes"
    engine.roll_out(10, actor="another")
    with pytest.raises(Conflict):
        engine.roll_out(50)
    assert engine.roll_out(0)["state"] == "retired"  # stopping needs nobody else
    assert engine.audit().whole


@SQLITE
def test_segments_that_a_version_does_not_have_stay_with_the_active_one(engine: Engine) -> None:
    two_versions(engine, segments=["young", "new"])
    made = engine.roll_out(100)
    assert any("old" in warning for warning in made["warnings"])
    assert [engine.decide(segment)["policy_version"] for segment in ("young", "old")] == [2, 1]
    assert engine.audit().whole


def test_both_versions_learn_from_all_outcomes(engine: Engine) -> None:
    engine.create(model={"type": "shared"})
    engine.create(activate=False, **LOGISTIC)
    made = engine.roll_out(50)
    assert any("income" in warning for warning in made["warnings"])
    assert not any("does not have these segments" in warning for warning in made["warnings"])
    decided = [engine.decide(reference=f"person {i}", features={"income": 10 * i}) for i in range(10)]
    assert {one["segment"] for one in decided} == {"young", "all"}
    for i, one in enumerate(decided):
        if one["decision"] == "accept":
            engine.outcome(one["id"], "success" if i % 3 else "failure")
    lacking = [engine.decide(reference=f"lacking {i}") for i in range(8)]
    assert {one["policy_version"] for one in lacking} == {1}
    comparison = engine.queries.rollout("cards").rollout
    assert comparison is not None
    assert (comparison.applicants, comparison.left_out) == (10, 8)
    engine.erase(decided[0]["id"])
    engine.roll_out(80)
    engine.decide(reference="later", features={"income": 5})
    report = engine.audit()
    assert (report.findings, report.assignments_not_recomputed) == ([], 1)


@SQLITE
def test_a_ranked_batch_stays_with_the_active_version(engine: Engine) -> None:
    engine.create(objective=OFFERS)
    engine.create(objective=OFFERS, activate=False, description="next")
    engine.roll_out(99)
    requests = [DecisionRequest("young", f"p{i}", offer=OfferRequest(amount=500, cost=0.6)) for i in range(4)]
    sender = make_sender("tester", None, "rank", requests)
    made = engine.call(DecideRanked(sender, "cards", requests, False, capacity=2))["decisions"]
    assert {one["policy_version"] for one in made} == {1}
    assert engine.audit().whole


@SQLITE
def test_the_audit_finds_an_applicant_in_the_wrong_arm(free_engine: Engine) -> None:
    engine = free_engine
    engine.create()
    engine.create(activate=False, description="decides the same")
    engine.roll_out(50)
    made = [engine.decide(reference=f"person {i}") for i in range(3)]

    def swap(event: Event) -> Event:
        if isinstance(event, Decided) and event.id == made[-1]["id"]:
            other = 3 - event.version
            shadows = (msgspec.structs.replace(event.shadows[0], version=event.version),)
            return msgspec.structs.replace(event, version=other, shadows=shadows)
        return event

    rewrite(engine, "young", swap)
    with engine.store.write() as connection:
        own = schema.decision.c.id == made[-1]["id"]
        connection.execute(update(schema.decision).where(own).values(version=3 - made[-1]["policy_version"]))
    found = [finding for finding in engine.audit().findings if finding.where.startswith("event 3")]
    assert len(found) == 1
    assert "should have decided it" in found[0].what


@SQLITE
def test_the_audit_finds_another_share(free_engine: Engine) -> None:
    engine = free_engine
    engine.create()
    engine.create(activate=False, description="decides the same")
    engine.roll_out(50)
    for i in range(20):
        engine.decide(reference=f"person {i}")
    with engine.store.write() as connection:
        connection.execute(update(schema.version).where(schema.version.c.number == 2).values(percent=10.0))
    (finding,) = [finding for finding in engine.audit().findings if "tree" not in finding.where]
    assert "version 2" in finding.where

    def less(event: Event) -> Event:
        changed = isinstance(event, StateChanged) and event.percent is not None
        return msgspec.structs.replace(event, percent=10.0) if changed else event

    rewrite(engine, None, less)
    assert any("should have decided it" in finding.what for finding in engine.audit().findings)


def test_which_changes_of_state_are_about_a_rollout() -> None:
    rolled_out: Any = SimpleNamespace(rollout=SimpleNamespace(number=2))
    nothing: Any = SimpleNamespace(rollout=None)
    assert describes_rollout(nothing, 2, "rollout")
    assert not describes_rollout(nothing, 2, "active")
    assert describes_rollout(rolled_out, 2, "retired")
    assert describes_rollout(rolled_out, 2, "active")
    assert not describes_rollout(rolled_out, 1, "retired")


@pytest.mark.parametrize("lacking", ["segment", "features", "offer", "nothing"])
def test_a_waiting_applicant_whom_the_version_cannot_decide(lacking: str) -> None:
    model = None if lacking != "features" else SimpleNamespace(takes=lambda given: "income" in given)
    rules = {} if lacking == "segment" else {"young": SimpleNamespace(needs_offer=lacking == "offer")}
    record: Any = SimpleNamespace(rollout=SimpleNamespace(rules=rules, feature_model=model))
    request = DecisionRequest("young", reference="a", features={"age": 3.0})
    assignment = Assignment("cards", 2, 100.0, ["young"])
    assignment.place_again(record, request, (), "waiting")
    assert (assignment.lacking, assignment.rolled_out) == ((set(), {0}) if lacking == "nothing" else ({0}, set()))
    assert assignment.unfit(0) == (None if lacking == "nothing" else 2)
    if lacking == "offer":
        with_offer = Assignment("cards", 2, 100.0, ["young"])
        with_offer.place_again(record, request, (Offer(100.0, 0.8),), "waiting")
        assert with_offer.rolled_out == {0}
    if lacking == "nothing":
        nobody = Assignment("cards", 2, 1e-9, ["young"])
        nobody.place_again(record, request, (), "waiting")
        assert (nobody.lacking, nobody.rolled_out) == (set(), set())
