"""Group commit: refusals, failures nobody foresaw, and a database that goes away, in the midst of others' commands."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from engines import SQLITE, Engine, _solved
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import ChangeState, CreateVersion
from lenience.service.commands.outcomes import Change
from lenience.service.commands.seal import SealLog
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.events import read
from lenience.service.domain.problems import NotFound, Unavailable
from lenience.service.domain.receipts import CommandAnswer, Sender, make_sender
from lenience.service.domain.signed_note import SigningKey
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.writer import QueuedCommand, Result, Writer
from serving import SPEC


@dataclass(frozen=True)
class Broken:
    """A command that fails in the middle, after it has appended something."""

    sender: Sender = field(default_factory=lambda: Sender("tester"))
    size: int = 1
    decisions: tuple[str, ...] = ()

    def resolve(self, ledger: Ledger) -> None:
        return

    def chains(self, ledger: Ledger) -> list[int]:
        return [1]

    def run(self, ledger: Ledger) -> CommandAnswer:
        from lenience.service.domain.events import PolicyCreated

        ledger.append(ledger.chains[1], PolicyCreated(at=1, actor="x", name="half"))
        raise ZeroDivisionError("in the middle")


def together(engine: Engine, *commands: Any) -> list[Result]:
    """The results of commands that are written in one transaction."""
    return engine.writer._write([QueuedCommand(command, lambda result: None) for command in commands])


def decide(policy: str = "cards", key: str | None = None) -> Decide:
    asked = DecisionRequest("young")
    return Decide(make_sender("tester", key, policy, asked), policy, [asked], True)


def test_a_refusal_or_a_failure_hinders_nobody_else(engine: Engine) -> None:
    engine.create()
    results = together(engine, decide(), decide("none"), Broken(), decide())
    assert [type(result) for result in results] == [CommandAnswer, NotFound, ZeroDivisionError, CommandAnswer]
    assert engine.counts() == (2, 1, 2)


def test_who_is_told_of_a_decision_can_read_it(engine: Engine) -> None:
    engine.create()
    seen: list[bool] = []

    def done(result: Result) -> None:
        assert isinstance(result, CommandAnswer)
        identity = msgspec.json.decode(result.body)["id"]
        with engine.store.read() as connection:
            found = connection.execute(text("SELECT 1 FROM decision WHERE id = :id"), {"id": identity}).scalar()
        seen.append(found == 1)

    for _ in range(50):
        engine.writer.submit(decide(), done)
    engine.call(decide())
    assert seen == [True] * 50
    assert engine.writer.batches < 50


def test_those_on_the_disk_are_told_though_the_next_transaction_fails(engine: Engine) -> None:
    engine.create()
    told: list[type] = []
    for command in (decide(), Broken(), decide()):
        engine.writer.submit(command, lambda result: told.append(type(result)))
    engine.writer.close()
    assert told == [CommandAnswer, ZeroDivisionError, CommandAnswer]


def test_one_key_twice_in_one_transaction(engine: Engine) -> None:
    engine.create()
    first, second = together(engine, decide(key="k"), decide(key="k"))
    assert first == second
    assert engine.counts() == (2, 1, 1)


def test_many_threads(engine: Engine) -> None:
    engine.create(constraints={"exposure_cap": 50})
    answers: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: answers.append(engine.decide())) for _ in range(80)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["pending"] for one in answers if one["decision"] == "accept") == list(range(50))
    assert len(answers) == 80
    assert engine.writer.batches < 80 + 5


def test_several_writers_on_postgresql(engine: Engine) -> None:
    if engine.store.sqlite:
        pytest.skip("SQLite has one writing process")
    engine.create(constraints={"exposure_cap": 25}, segments=["young", "old", "middle"])
    engines = [engine, *(Engine(engine.database) for _ in range(3))]
    answers: list[dict[str, Any]] = []

    def work(one: Engine, backwards: bool) -> None:
        names = ["young", "old", "middle"]
        for _ in range(10):
            answers.extend(one.batch(names[::-1] if backwards else names))

    threads = [threading.Thread(target=work, args=(one, bool(i % 2))) for i, one in enumerate(engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for segment in ("young", "old", "middle"):
        accepted = [one["pending"] for one in answers if one["segment"] == segment and one["decision"] == "accept"]
        assert sorted(accepted) == list(range(25))
    assert len(answers) == 120
    for one in engines[1:]:
        one.close()


def test_a_transaction_that_cannot_be_written_leaves_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create()
    before = engine.audit().digest

    def fail(self: Ledger, **options: Any) -> None:
        self.store.insert(self.connection, schema.event, self._events)
        self.connection.execute(text("SELECT * FROM nothing_of_this_name"))

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "flush", fail)
        with pytest.raises(Exception, match="nothing_of_this_name"):
            engine.decide()
    assert engine.audit().digest == before
    engine.decide()


def test_a_clock_that_is_set_back_takes_no_decision_out_of_its_order(
    engine: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create()
    made = [engine.decide()["id"] for _ in range(2)]
    engine.writer.close()
    monkeypatch.setattr("lenience.service.domain.identity._last", 0)  # another process
    ago = now() - 3_600_000_000
    engine.writer = Writer(engine.store, engine.registry, clock=lambda: ago)  # started since
    late = [engine.decide() for _ in range(3)]
    made += [one["id"] for one in late]
    assert made == sorted(made)
    assert late[0]["decided_at"] > iso_time(ago + 3_500_000_000)
    told = [record for record in caplog.records if "the clock was set back" in record.message]
    assert [record.levelname for record in told] == ["WARNING"]
    assert 3_590 < told[0].fields["seconds"] < 3_700  # type: ignore[attr-defined]


@SQLITE
@pytest.mark.parametrize("last", ["outcome", "checkpoint"])
def test_a_clock_that_is_set_back_before_a_start_takes_no_event_out_of_its_order(engine: Engine, last: str) -> None:
    """Also if the newest time in the log is not that of a decision."""
    engine.create()
    accepted = engine.decide()["id"]
    engine.writer.close()
    later = now() + 3_600_000_000
    engine.writer = Writer(engine.store, engine.registry, clock=lambda: later)
    if last == "outcome":
        engine.outcome(accepted, "success")
    else:
        engine.writer.call(SealLog(SigningKey.create()))
    engine.writer.close()
    engine.writer = Writer(engine.store, engine.registry)  # the clock was set back meanwhile
    engine.correct(accepted, "failure") if last == "outcome" else engine.outcome(accepted, "success")
    with engine.store.read() as connection:
        newest = [read(body) for body in connection.execute(text("SELECT body FROM event ORDER BY rowid")).scalars()][
            -1
        ]
    assert newest.at >= later


@SQLITE
@pytest.mark.parametrize("order", ["DAAB", "AADB", "DCAB"])
def test_no_decision_rests_on_an_activation_that_was_undone(engine: Engine, order: str) -> None:
    """A command that fails takes the others of its transaction with it. They run again, and the cache must not know."""
    engine.create()
    engine.create(activate=False)
    sender = make_sender("tester", None, "", "")
    create, activate = CreateVersion(sender, _solved[repr(SPEC)]), ChangeState(sender, "cards", "active", 2)
    commands = {"D": decide(), "A": activate, "B": Broken(), "C": create}
    results = together(engine, *(commands[each] for each in order))
    (made,) = (result for each, result in zip(order, results, strict=True) if each == "D")
    assert isinstance(made, CommandAnswer)
    assert msgspec.json.decode(made.body)["policy_version"] == (1 if order.startswith("D") else 2)


@SQLITE
@pytest.mark.parametrize("order", ["OSSO", "OSCO", "SSDO", "SOSO", "OSOS"])
def test_models_learn_in_a_transaction_that_changes_the_state_of_versions(engine: Engine, order: str) -> None:
    """S: make version 2 a shadow (again); O: an outcome; C: a new version; D: a decision."""
    model: Any = {"type": "shared"}
    engine.create(model=model)
    engine.create(model=model, activate=False)
    accepted = [engine.decide()["id"] for _ in range(order.count("O"))]
    sender = make_sender("tester", None, "", "")
    shadow = ChangeState(sender, "cards", "shadow", 2)
    new = CreateVersion(sender, _solved[repr({**SPEC, "model": model})])
    commands = [
        Change(sender, accepted.pop(), "outcome", "success")
        if each == "O"
        else {"S": shadow, "C": new, "D": decide()}[each]
        for each in order
    ]
    results = together(engine, *commands)
    assert [type(result) for result in results] == [CommandAnswer] * len(order)
    engine.decide()  # the fixture audits every state


def test_a_closed_writer_refuses(engine: Engine) -> None:
    engine.create()
    other = Writer(engine.store, engine.registry)
    other.close()
    with pytest.raises(Unavailable, match="is stopping"):
        other.call(decide())
