"""Interim statuses and the own dates of outcomes: on both databases, and audited after each test."""

from __future__ import annotations

import pytest

from engines import Engine
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.problems import BadRequest, Conflict
from lenience.service.domain.receipts import make_sender


def test_an_interim_status_changes_no_count(engine: Engine) -> None:
    engine.create()
    made = engine.decide()["id"]
    answer = engine.outcome(made, "late")
    assert (answer["status"], answer["reported"], answer["recorded"]) == ("pending", "late", True)
    assert engine.counts() == (2, 1, 1)
    assert engine.outcome(made, "late")["recorded"] is False
    assert engine.outcome(made, "current")["reported"] == "current"
    assert engine.outcome(made, "success")["reported"] is None
    with pytest.raises(Conflict) as error:
        engine.outcome(made, "late")
    assert error.value.code == "decision_not_pending"
    kinds = [(one.kind, one.outcome) for one in engine.queries.decision(made).history][1:]
    assert kinds == [("status", "late"), ("status", "current"), ("outcome", "success")]


def test_an_outcome_has_its_own_date(engine: Engine) -> None:
    engine.create()
    made = engine.decide()["id"]
    today = iso_time(now())[:10]
    for wrong in ("2020-01-01", "2999-01-01", "soon"):
        with pytest.raises(BadRequest) as error:
            engine.outcome(made, "success", outcome_at=wrong)
        assert error.value.field == "outcome_at"
    answer = engine.outcome(made, "success", outcome_at=today)
    assert answer["outcome_at"] == f"{today}T00:00:00.000000Z"
    assert engine.queries.decision(made).outcome_at == answer["outcome_at"]
    assert engine.outcome(made, "success")["recorded"] is False


def test_statuses_and_dates_in_a_batch(engine: Engine) -> None:
    engine.create()
    first, second, third = (engine.decide()["id"] for _ in range(3))
    today = iso_time(now())[:10]
    items = [
        OutcomeItem(id=first, outcome="late"),
        OutcomeItem(id=first, outcome="success", outcome_at=today),
        OutcomeItem(id=second, outcome="failure", outcome_at="2020-01-01"),
        OutcomeItem(id=third, outcome="current"),
    ]
    answer = engine.call(RecordOutcomes(make_sender("tester", None, "", ""), items))
    assert (answer["recorded"], [one["position"] for one in answer["problems"]]) == (3, [2])
    assert engine.counts() == (3, 2, 2)
    assert engine.queries.decision(third).reported == "current"
