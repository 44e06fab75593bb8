"""Outcomes in batches and expiry, with the status, the counts and the problems of each answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engines import Engine, Json
from lenience.service.commands.outcomes import Change, Expire, OutcomeItem, RecordOutcomes
from lenience.service.domain.problems import Problem
from lenience.service.domain.receipts import CommandAnswer, make_sender
from lenience.service.storage.command import Command


def sent(engine: Engine, command: Command) -> tuple[CommandAnswer, Json]:
    answer = engine.writer.call(command)
    body: Json = msgspec.json.decode(answer.body)
    return answer, body


def recorded(engine: Engine, items: list[OutcomeItem], key: str | None = None) -> tuple[CommandAnswer, Json]:
    return sent(engine, RecordOutcomes(make_sender("tester", key, "", items), items))


def test_a_batch_counts_what_is_new_repeated_and_wrong(engine: Engine) -> None:
    engine.create(prior={"n": 10, "s": 9})
    first, second, third = (engine.decide(reference=f"loan {i}")["id"] for i in range(3))
    items: list[Any] = [
        OutcomeItem(outcome="success", id=first),
        OutcomeItem(outcome="failure", reference="loan 1"),
        OutcomeItem(outcome="success", id=first),  # again
        OutcomeItem(outcome="failure", id=first),  # the opposite
        OutcomeItem(outcome="success", id="d_nobody"),
        OutcomeItem(outcome="success", reference="nobody"),
    ]
    answer, body = recorded(engine, items)
    assert answer.status == 200
    assert answer.made.outcomes == 2
    assert (body["recorded"], body["repeated"]) == (2, 1)
    assert [(one["position"], one["status"]) for one in body["problems"]] == [(3, 409), (4, 404), (5, 404)]
    assert engine.counts() == (12, 10, 1)
    again, body = recorded(engine, items[:2], key="once")
    assert (again.status, again.made.outcomes) == (200, 0)
    assert (body["recorded"], body["repeated"]) == (0, 2)
    assert recorded(engine, items[:2], key="once")[1] == body
    assert engine.counts() == (12, 10, 1)
    assert second != third
    with pytest.raises(Problem) as caught:
        recorded(engine, [OutcomeItem(outcome="success", id="d_nobody")])
    assert caught.value.status == 404


def test_one_change_answers_200_and_counts_an_outcome_once(engine: Engine) -> None:
    engine.create(prior={"n": 10, "s": 9})
    decision = engine.decide()["id"]
    for recorded_before in (False, True):
        change = Change(make_sender("tester", None, "", ""), decision, "outcome", "success")
        answer, _ = sent(engine, change)
        assert answer.status == 200
        assert answer.made.outcomes == int(not recorded_before)
        assert engine.counts() == (11, 10, 0)


def test_outcomes_expire_oldest_first_and_at_most_so_many(engine: Engine) -> None:
    engine.create(prior={"n": 10, "s": 9})
    made = [engine.decide()["id"] for _ in range(3)]
    late = 1 << 62
    answers = []
    for key in (None, None, "once", "once"):
        answer, body = sent(engine, Expire(make_sender("tester", key, "", ""), "cards", late, 2))
        assert answer.status == 200
        answers.append(body)
        if len(answers) == 1:
            status = {one.id: one.status for one in (engine.queries.decision(identity) for identity in made)}
            assert sorted(status.values()) == ["expired", "expired", "pending"]
            assert status[max(made)] == "pending"
    assert [body["expired"] for body in answers] == [2, 1, 0, 0]
    assert [body["more"] for body in answers] == [True, False, False, False]
    assert engine.counts() == (10, 9, 0)
