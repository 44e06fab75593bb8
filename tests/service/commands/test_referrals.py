"""Refer: a person decides, the outcome teaches like others, and the log proves both."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import delete, update

from engines import SQLITE, Engine, rewrite
from lenience.service.commands.expire_referrals import ExpireReferrals
from lenience.service.domain.clock import DAY
from lenience.service.domain.events import Decided, Event
from lenience.service.domain.problems import Conflict
from lenience.service.domain.receipts import Sender, make_sender
from lenience.service.domain.referral import SETTLED
from lenience.service.queries.reading import Filters
from lenience.service.storage import schema
from serving import sqlite_file

NEAR: dict[str, Any] = {"referral": {"near_minimum": 0.4}}
COLUMNS = [{"name": "income", "minimum": 0, "maximum": 100}]


def test_a_person_decides_and_the_outcome_teaches(engine: Engine) -> None:
    engine.create(**NEAR)
    made = [engine.decide(reference=f"person {i}", monitored={"sex": "f"}) for i in range(3)]
    assert {(one["decision"], one["rule"]) for one in made} == {("refer", "near_minimum")}
    assert engine.counts() == (2, 1, 0)
    with pytest.raises(Conflict) as refused:
        engine.outcome(made[0]["id"], "success")
    assert refused.value.code == "decision_not_accepted"
    with pytest.raises(Conflict) as refused:
        engine.override(made[0]["id"], "accept")
    assert refused.value.code == "decision_referred"
    accepted = engine.review(made[0]["id"], "accept", "met the owner")
    assert (accepted["status"], accepted["decision"], accepted["pending"]) == ("pending", "accept", 1)
    assert engine.review(made[1]["id"], "reject")["status"] == "rejected"
    with pytest.raises(Conflict) as refused:
        engine.review(made[1]["id"], "accept")
    assert refused.value.code == "decision_not_referred"
    engine.outcome(made[0]["id"], "success")
    assert engine.counts() == (3, 2, 0)
    view = engine.queries.decision(made[0]["id"])
    assert [entry.kind for entry in view.history] == ["decision", "review", "outcome"]
    assert (view.history[1].reason, view.overridden, view.monitored) == ("met the owner", False, {"sex": "f"})
    report = engine.queries.reviews("cards")
    assert (report.referred, report.decided, report.waiting, report.disagreed) == (3, 2, 1, 1)
    assert engine.audit().whole
    engine.erase(made[0]["id"])
    assert engine.queries.decision(made[0]["id"]).history[1].reason is None
    assert engine.audit().whole


@SQLITE
def test_the_queue_shows_what_the_policy_thinks(engine: Engine) -> None:
    engine.create(**NEAR)
    made = [engine.decide(segment, reference=segment) for segment in ("young", "old", "young")]
    page = engine.queries.referrals("cards", None, 2)
    assert [one.id for one in page.referrals] == [one["id"] for one in made[:2]]
    assert (page.waiting, page.next) == (3, made[1]["id"])
    assert [one.id for one in engine.queries.referrals(None, page.next, 2).referrals] == [made[2]["id"]]
    first = page.referrals[0]
    assert (first.rate, first.evidence, first.would, first.reference) == (0.5, 0, "accept", "young")
    assert first.minimum == made[0]["threshold"]
    assert first.expected_profit == pytest.approx(0.5 - 0.8)
    assert engine.queries.referrals("cards", None, 3, "worth").next is None
    for decision, number in (("refer", 3), ("reject", 0), ("accept", 0)):
        assert len(engine.queries.page(Filters(decision=decision), None, 9).decisions) == number


def test_evidence_ends_referrals(engine: Engine) -> None:
    engine.create(referral={"evidence_below": 2})
    for _ in range(2):
        made = engine.decide()
        assert made["rule"] == "evidence_below"
        engine.review(made["id"], "accept")
        engine.outcome(made["id"], "success")
    assert engine.decide()["decision"] == "accept"
    assert engine.audit().whole


@SQLITE
def test_applicants_with_features_are_referred(engine: Engine) -> None:
    engine.create(segments=[], model={"type": "logistic", "columns": COLUMNS}, referral={"near_minimum": 0.5})
    made = engine.decide(None, features={"income": 90})
    assert made["decision"] == "refer"
    engine.review(made["id"], "accept")
    engine.outcome(made["id"], "success")
    assert engine.queries.referrals("cards", None, 9).referrals == []
    assert engine.audit().whole


@pytest.fixture
def timed(tmp_path: Any) -> Any:
    time = [1000 * DAY]
    engine = Engine(sqlite_file(tmp_path), clock=lambda: time[0])
    yield engine, time
    engine.close()


def test_a_daily_capacity_goes_where_a_review_is_worth_most(timed: Any) -> None:
    engine, time = timed
    segments = [{"name": "young", "prior": {"n": 20, "s": 15.8}}, {"name": "old", "prior": {"n": 20, "s": 14}}]
    engine.create(referral={"daily_capacity": 2}, segments=segments)
    first = [engine.decide(segment)["decision"] for segment in ("young", "young", "old", "old", "old")]
    assert first == ["refer", "refer", "reject", "reject", "reject"]  # nothing is known yet: who comes first
    time[0] += DAY + SETTLED
    second = [engine.decide(segment)["decision"] for segment in ("young", "old", "old", "old")]
    assert second == ["accept", "refer", "refer", "reject"]  # a review of an old applicant is worth more
    time[0] += DAY
    assert [engine.decide(segment)["decision"] for segment in ("young", "old")] == ["accept", "refer"]
    assert engine.audit().findings == []
    day = schema.referral.c.rule == "daily_capacity"
    with engine.store.write() as connection:
        connection.execute(delete(schema.referral).where(day))
    assert engine.audit().findings


def test_a_case_lapses_if_nobody_decides_it(timed: Any) -> None:
    engine, time = timed
    engine.create(referral={"near_minimum": 0.4, "expire_after_days": 3})
    made = engine.decide()
    expire = ExpireReferrals(Sender("expiry"), "cards")
    time[0] += 2 * DAY
    assert engine.call(expire)["expired"] == 0
    time[0] += 2 * DAY
    assert engine.call(expire)["expired"] == 1
    assert engine.queries.decision(made["id"]).status == "lapsed"
    with pytest.raises(Conflict):
        engine.review(made["id"], "accept")
    assert engine.queries.reviews("cards").lapsed == 1
    assert engine.override(made["id"], "accept")["status"] == "pending"  # late, but a person may
    assert engine.audit().findings == []


@SQLITE
def test_a_referral_of_one_version_in_rollout(engine: Engine) -> None:
    engine.create()
    engine.create(activate=False, **NEAR)
    engine.roll_out(50)
    made = [engine.decide(reference=f"person {i}") for i in range(12)]
    assert {(one["policy_version"], one["decision"]) for one in made} == {(1, "accept"), (2, "refer")}
    for one in made:
        if one["decision"] == "refer":
            engine.review(one["id"], "accept")
            engine.outcome(one["id"], "failure")
    comparison = engine.queries.rollout("cards").rollout
    assert comparison is not None
    assert comparison.differently == sum(one["decision"] == "refer" for one in made)
    assert engine.audit().whole


@SQLITE
@pytest.mark.parametrize("column", ["at", "rule", "would", "worth", "chain_id"])
def test_the_audit_notices_a_changed_referral(free_engine: Engine, column: str) -> None:
    engine = free_engine
    engine.create(**NEAR)
    made = engine.decide()
    row = schema.referral.c.decision == made["id"]
    changed = {"at": 5, "rule": "amount_above", "would": "reject", "worth": 9.0, "chain_id": 1}[column]
    with engine.store.write() as connection:
        connection.execute(update(schema.referral).where(row).values({column: changed}))
    assert any(made["id"] in finding.where for finding in engine.audit().findings)


def changed_review(event: Event, **changes: Any) -> Event:
    """Change what the first decision states about a review."""
    if not isinstance(event, Decided) or event.arrivals:
        return event
    assert event.review is not None
    return msgspec.structs.replace(event, review=msgspec.structs.replace(event.review, **changes))


@SQLITE
@pytest.mark.parametrize("changes", [{"worth": 0.5}, {"price": 0.001}, {"used": 1}])
def test_the_audit_recomputes_what_a_review_was_worth(free_engine: Engine, changes: dict[str, Any]) -> None:
    engine = free_engine
    engine.create(referral={"daily_capacity": 2})
    assert engine.decide()["decision"] == "refer"
    rewrite(engine, "young", lambda event: changed_review(event, **changes))
    assert [finding for finding in engine.audit().findings if "tree" not in finding.where]


@SQLITE
def test_the_audit_notices_a_case_that_was_kept_from_people(free_engine: Engine) -> None:
    engine = free_engine
    engine.create(**NEAR)
    made = engine.decide()

    def keep(event: Event) -> Event:
        if not isinstance(event, Decided) or event.referral is None:
            return event
        ground = event.referral
        return msgspec.structs.replace(event, decision=ground.would, rule=ground.rule, referral=None)

    rewrite(engine, "young", keep)
    with engine.store.write() as connection:
        connection.execute(delete(schema.referral))
        row = schema.decision.c.id == made["id"]
        connection.execute(update(schema.decision).where(row).values(accepted=1, status=schema.PENDING))
        chain = schema.chain.c.segment == "young"
        connection.execute(update(schema.chain).where(chain).values(accepted=1, pending=1))
    assert any("a person decides it" in finding.what for finding in engine.audit().findings)


@SQLITE
def test_a_repeated_review_is_answered_from_the_log(engine: Engine) -> None:
    from lenience.service.commands.outcomes import Change, ReviewRequest

    engine.create(**NEAR)
    made = engine.decide()
    asked = ReviewRequest("accept", "fine")

    def send() -> Any:
        return engine.call(Change(make_sender("tester", "once", "review", asked), made["id"], "review", review=asked))

    assert send() == send()
    assert engine.counts()[2] == 1
    assert engine.audit().whole


@SQLITE
def test_a_batch_refers_no_more_than_the_capacity(engine: Engine) -> None:
    segments = [{"name": "young", "prior": {"n": 20, "s": 15.8}}]
    engine.create(referral={"daily_capacity": 2}, segments=segments)
    first, second = engine.batch(["young"] * 4), engine.batch(["young"] * 2)
    assert [one["decision"] == "refer" for one in (*first, *second)] == [True, True, False, False, False, False]
    assert engine.audit().findings == []


def test_some_cases_lapse_at_a_time(timed: Any) -> None:
    engine, time = timed
    engine.create(referral={"near_minimum": 0.4, "expire_after_days": 3})
    for _ in range(3):
        engine.decide()
    expire = ExpireReferrals(Sender("expiry"), "cards", 2)
    time[0] += 3 * DAY
    assert engine.call(expire) == {"expired": 0, "more": False}
    time[0] += DAY
    answer = engine.writer.call(expire)
    assert (answer.status, msgspec.json.decode(answer.body)) == (200, {"expired": 2, "more": True})
    assert engine.call(expire) == {"expired": 1, "more": False}
    assert engine.call(expire) == {"expired": 0, "more": False}
    assert engine.audit().findings == []
