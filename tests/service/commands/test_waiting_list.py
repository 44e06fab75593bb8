"""The waiting list: who is left out by a limit alone waits, and is decided again when there is room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import update

from engines import SQLITE, Engine
from lenience.policies.features.decision import Decision
from lenience.service.commands.again import DecideAgain
from lenience.service.domain.feature_models import Applicant
from lenience.service.domain.feature_rule import decide_applicant
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import Conflict, NotFound
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.rule import Counts, SegmentRule
from lenience.service.storage import schema
from serving import OFFERS

CAPPED: dict[str, Any] = {"constraints": {"exposure_cap": 1}, "waiting_list": True}


def again(engine: Engine, decision: str, key: str | None = None) -> dict[str, Any]:
    return engine.call(DecideAgain.of(make_sender("tester", key, decision, None), decision))


def test_an_applicant_waits_and_is_accepted_when_a_place_is_free(engine: Engine) -> None:
    engine.create(**CAPPED)
    first = engine.decide(reference="first")
    second = engine.decide(reference="second")
    assert (first["decision"], second["decision"], second["rule"]) == ("accept", "wait", "exposure_cap")
    assert engine.queries.decision(second["id"]).status == "waiting"
    (entry,) = engine.queries.waiting("cards", None, 10).waiting
    assert (entry.id, entry.segment, entry.reference, entry.accepts) == (second["id"], "young", "second", False)

    engine.outcome(first["id"], "success")
    assert engine.queries.waiting("cards", None, 10).waiting[0].accepts
    new = again(engine, second["id"])
    assert (new["decision"], new["again"]) == ("accept", second["id"])
    assert not engine.queries.waiting("cards", None, 10).waiting
    old, view = engine.queries.decision(second["id"]), engine.queries.decision(new["id"])
    assert (old.decision, old.status, old.replaced_by) == ("wait", "replaced", new["id"])
    assert (view.again, view.reference, view.replaced_by) == (second["id"], "second", None)
    # Who waited has arrived once, although decided twice.
    assert engine.queries.policy("cards").segments[0].arrivals == 2
    assert engine.audit().whole


@SQLITE
def test_waiting_again_makes_the_newest_decision_the_one_that_waits(engine: Engine) -> None:
    engine.create(**CAPPED)
    engine.decide()
    waiting = engine.decide()
    new = again(engine, waiting["id"], key="once")
    assert new["decision"] == "wait"
    assert again(engine, waiting["id"], key="once") == new  # a repeated request changes nothing
    with pytest.raises(Conflict) as refused:
        again(engine, waiting["id"])
    assert refused.value.code == "decision_not_waiting"
    assert [entry.id for entry in engine.queries.waiting("cards", None, 10).waiting] == [new["id"]]
    assert engine.audit().whole


@SQLITE
def test_only_a_waiting_decision_is_decided_again(engine: Engine) -> None:
    engine.create(constraints={"exposure_cap": 1})  # without a waiting list
    engine.decide()
    rejected = engine.decide()
    assert rejected["decision"] == "reject"
    with pytest.raises(Conflict):
        again(engine, rejected["id"])
    with pytest.raises(NotFound):
        again(engine, "00000000-0000-7000-8000-000000000000")
    assert "treated differently" in rejected["principal_reasons"][0]["text"]


@SQLITE
def test_a_waiting_decision_has_no_outcome_and_a_person_can_settle_it(engine: Engine) -> None:
    engine.create(**CAPPED)
    engine.decide()
    one, two = engine.decide(), engine.decide()
    with pytest.raises(Conflict) as refused:
        engine.outcome(one["id"], "success")
    assert refused.value.code == "decision_not_accepted"
    assert engine.override(one["id"], "reject")["status"] == "rejected"
    assert engine.override(two["id"], "accept")["status"] == "pending"
    assert engine.counts()[2] == 2
    with pytest.raises(Conflict):
        again(engine, two["id"])
    assert not engine.queries.waiting("cards", None, 10).waiting
    assert engine.audit().whole


@SQLITE
def test_a_replaced_decision_cannot_be_overridden(engine: Engine) -> None:
    engine.create(**CAPPED)
    engine.decide()
    waiting = engine.decide()
    again(engine, waiting["id"])
    with pytest.raises(Conflict) as refused:
        engine.override(waiting["id"], "accept")
    assert refused.value.code == "decided_again"


@SQLITE
def test_a_rejection_on_the_record_does_not_wait(engine: Engine) -> None:
    engine.create(objective={"type": "discounted", "cost": 0.95, "discount": 0.5}, waiting_list=True)
    made = engine.decide()
    assert (made["decision"], made["rule"]) == ("reject", "below_threshold")


@SQLITE
def test_offers_that_do_not_fit_wait(engine: Engine) -> None:
    engine.create(objective=OFFERS, constraints={"exposure_cap_amount": 450}, waiting_list=True)
    offer = OfferRequest(amount=500, cost=0.8)
    first, second = engine.decide(offer=offer), engine.decide(offer=offer)
    assert (first["decision"], second["decision"], second["rule"]) == ("accept", "wait", "exposure_cap_amount")
    engine.outcome(first["id"], "success")
    new = again(engine, second["id"])
    assert (new["decision"], new["offer"]["amount"]) == ("accept", 500)
    assert engine.audit().whole


def test_erasing_the_waiting_decision_keeps_the_data_of_the_later_one(engine: Engine) -> None:
    engine.create(**CAPPED)
    engine.decide()
    waiting = engine.decide(reference="mine")
    new = again(engine, waiting["id"])
    engine.erase(waiting["id"])
    assert engine.queries.decision(waiting["id"]).erased
    assert engine.queries.decision(new["id"]).reference == "mine"
    engine.erase(new["id"])
    later = again(engine, new["id"])
    assert engine.queries.decision(later["id"]).reference is None
    assert engine.audit().whole


@SQLITE
def test_the_audit_notices_a_waiting_decision_that_was_changed(engine: Engine) -> None:
    engine.create(**CAPPED)
    engine.decide()
    waiting = engine.decide()
    row = schema.decision.c.id == waiting["id"]
    with engine.store.write() as connection:
        connection.execute(update(schema.decision).where(row).values(status=schema.REJECTED))
    (finding,) = engine.audit().findings
    assert waiting["id"] in finding.where
    with engine.store.write() as connection:
        connection.execute(update(schema.decision).where(row).values(status=schema.WAITING))


@SQLITE
def test_applicants_with_features_wait_and_are_decided_again_by_their_features(engine: Engine) -> None:
    columns = [{"name": "income", "minimum": 0, "maximum": 100}]
    objective = {"type": "discounted", "cost": 0.5, "discount": 0.99}
    engine.create(segments=[], objective=objective, model={"type": "logistic", "columns": columns}, **CAPPED)
    first = engine.decide(None, features={"income": 80}, reference="first")
    second = engine.decide(None, features={"income": 90}, reference="second")
    third = engine.decide(None, features={"income": 70})
    assert [each["decision"] for each in (first, second, third)] == ["accept", "wait", "wait"]
    assert [entry.accepts for entry in engine.queries.waiting("cards", None, 10).waiting] == [None, None]
    engine.outcome(first["id"], "success")
    new = again(engine, second["id"])
    assert new["decision"] == "accept"
    assert engine.queries.decision(new["id"]).features == {"income": 90}
    engine.erase(third["id"])
    with pytest.raises(Conflict) as refused:
        again(engine, third["id"])
    assert refused.value.code == "features_erased"
    assert engine.audit().whole


@pytest.mark.parametrize(("waiting_list", "decision"), [(True, "wait"), (False, "reject")])
def test_an_exposure_limit_of_a_model_makes_applicants_wait(waiting_list: bool, decision: str) -> None:
    # An estimate between the minimum and the break-even that is rejected: too many similar ones are pending.
    made = Decision(0, False, 0.0, 0.6, 9.0, 0.9, 0.5, 4.0)
    model = SimpleNamespace(decide=lambda *_: made, objective=SimpleNamespace(horizon=None, cost=0.7))
    table = cast(Any, SimpleNamespace(offers=None))
    rule = SegmentRule("all", 1.0, table, "digest", None, 0.0, waiting_list=waiting_list)
    verdict, applicant = decide_applicant(
        rule, cast(Any, model), cast(Any, None), None, cast(Any, None), Counts(), 0.5, ()
    )
    assert (verdict.rule, verdict.decision) == ("exposure_limit", decision)
    assert applicant == Applicant(9.0, 0.6, 0.9, 4.0)
