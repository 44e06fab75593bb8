"""A corrected label is learnt again in its old place; the slow way learns all labels again from the start."""

from __future__ import annotations

import random
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from sqlalchemy import select, text

from engines import Engine, Json
from lenience.policies import FeatureRule
from lenience.service.domain.events import Learned, read
from lenience.service.queries import model_recomputation
from lenience.service.queries.audit import audit_connection
from lenience.service.storage import ledger, relearning, schema
from serving import Postgres, sqlite_file

COLUMNS: list[Json] = [{"name": "x", "minimum": 0, "maximum": 1}]
POLICY: Json = {
    "name": "applicants",
    "segments": [],
    "objective": {"type": "discounted", "cost": 0.5, "discount": 0.999},
    "model": {"type": "logistic", "columns": COLUMNS},
    "constraints": {"exploration_floor": 0.9},  # so that there are labels
}


class Label(NamedTuple):
    decision: str
    x: float
    success: bool


class Life:
    """A policy with its labels, as the tests know them."""

    def __init__(self, engine: Engine, seed: int = 0) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.start = FeatureRule.from_state(b64decode(engine.queries.model("applicants").state))
        self.labels: list[Label] = []

    def label(self, number: int = 1) -> None:
        wanted = len(self.labels) + number
        while len(self.labels) < wanted:
            x, success = round(self.rng.random(), 3), self.rng.random() < 0.8
            decision = self.engine.decide(None, policy="applicants", features={"x": x}, reference="someone")
            if decision["decision"] == "accept":
                self.engine.outcome(decision["id"], "success" if success else "failure")
                self.labels.append(Label(decision["id"], x, success))

    def correct(self, which: int) -> None:
        decision, x, success = self.labels[which]
        self.engine.correct(decision, "failure" if success else "success")
        self.labels[which] = Label(decision, x, not success)

    def learnt(self) -> str:
        """The state after all labels as they are known now, one after the other from the start."""
        rule = self.start.copy()
        for label in self.labels:
            rule.observe({"x": label.x}, label.success)
        return rule.state_hash()

    @property
    def stored(self) -> str:
        return self.engine.queries.model("applicants").digest


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    monkeypatch.setattr(ledger, "SNAPSHOT_EVERY", 5)
    monkeypatch.setattr(model_recomputation, "SNAPSHOT_EVERY", 3)  # an auditor may start from other states
    engine = Engine(sqlite_file(tmp_path))
    engine.create(**POLICY)
    yield Life(engine)
    engine.close()


def corrections(engine: Engine) -> list[bool]:
    """Whether each correction was learnt again."""
    with engine.store.read() as connection:
        bodies = connection.scalars(select(schema.event.c.body).order_by(schema.event.c.chain_id, schema.event.c.seq))
        events = [event for event in map(read, bodies) if isinstance(event, Learned)]
    return [event.relearnt for event in events if event.is_correction]


def within(monkeypatch: pytest.MonkeyPatch, events: int) -> None:
    """Let only labels of the last few events be learnt again."""
    for module in (ledger, relearning, model_recomputation):
        monkeypatch.setattr(module, "RELEARNT", events)


def test_corrections_in_any_order_are_as_if_the_labels_had_been_right(life: Life) -> None:
    for _ in range(6):
        life.label(life.rng.randint(1, 7))
        for _ in range(life.rng.randint(0, 3)):
            life.correct(life.rng.randrange(len(life.labels)))
            assert life.stored == life.learnt()
        if life.rng.random() < 0.5:
            life.engine.close()
            life.engine = Engine(life.engine.database)
            assert life.stored == life.learnt()
    assert corrections(life.engine)
    assert all(corrections(life.engine))
    report = life.engine.audit()
    assert (report.findings, report.labels_not_recomputed) == ([], 0)


def test_old_labels_multiply_the_likelihood(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, 10)
    life.label(14)
    life.correct(1)  # too old
    assert life.stored != life.learnt()
    life.label(2)
    life.correct(12)
    life.correct(0)
    life.label(3)
    life.correct(12)  # back again
    # The slow way: a correction of an old label is a step of its own, in its place.
    slow, old = life.start.copy(), [label._replace(success=not label.success) for label in life.labels[:2]]
    for i, label in enumerate(life.labels):
        slow.observe({"x": label.x}, label.success if i > 1 else old[i].success)
        if i == 13:
            slow.correct_row(slow.encode({"x": life.labels[1].x}), life.labels[1].success)
        if i == 15:
            slow.correct_row(slow.encode({"x": life.labels[0].x}), life.labels[0].success)
    assert life.stored == slow.state_hash()
    assert corrections(life.engine) == [False, True, False, True]
    assert life.engine.audit().findings == []


def test_features_erased_since_prevent_learning_again(life: Life) -> None:
    life.label(6)
    life.engine.erase(life.labels[3].decision)
    life.correct(1)  # the label of the erased one came later
    life.correct(4)
    assert corrections(life.engine) == [False, True]
    life.label(7)
    life.correct(8)
    life.engine.erase(life.labels[9].decision)  # learnt again by the last correction: nobody can repeat that
    life.label(2)
    life.correct(8)
    life.correct(14)
    assert corrections(life.engine) == [False, True, True, False, True]
    report = life.engine.audit()
    assert report.findings == []
    assert report.labels_not_recomputed == 3, "two labels, and the correction that learnt the second one again"


def test_no_correction_starts_from_a_state_that_an_earlier_one_has_outdated(life: Life) -> None:
    """The state after the erased label is stored as the log has it, with the wrong label before it."""
    life.label(4)
    life.correct(0)
    life.engine.erase(life.labels[1].decision)
    life.correct(2)
    assert corrections(life.engine) == [True, False]
    life.label(3)
    life.correct(5)
    assert corrections(life.engine) == [True, False, True]
    assert life.engine.audit().findings == []
    with life.engine.store.write() as connection:
        connection.execute(text("UPDATE model_state SET revised = NULL WHERE revised = ''"))
        assert any("model state" in finding.where for finding in audit_connection(connection, "test").findings)
        connection.rollback()


def test_many_corrections_store_few_states_to_start_from(life: Life) -> None:
    life.label(12)
    for i in (3, 5, 7, 4, 6, 3, 8, 2, 9):
        life.correct(i)
    assert life.stored == life.learnt()
    with life.engine.store.read() as connection:
        rows = connection.execute(select(schema.model_state)).all()
    assert len(rows) >= 10
    assert sum(row.revised != "" for row in rows) <= 6
    assert life.engine.audit().findings == []


def test_a_version_learns_again_only_what_it_had_learnt(life: Life) -> None:
    life.label(3)
    life.engine.create(**POLICY, activate=False)
    life.engine.state("applicants", "shadow", 2)
    start = FeatureRule.from_state(b64decode(life.engine.queries.model("applicants", 2).state))
    life.label(2)
    life.correct(1)
    life.correct(4)
    assert life.stored == life.learnt()
    for label in life.labels[3:]:
        start.observe({"x": label.x}, label.success)
    assert life.engine.queries.model("applicants", 2).digest == start.state_hash()
    assert life.engine.audit().findings == []


def test_another_process_goes_on_from_what_was_learnt_again(postgres: Postgres) -> None:
    database = postgres.emptied()
    one, two = Engine(database), Engine(database)
    one.create(**POLICY)
    life = Life(one)
    for i in range(3):
        life.label(3)
        life.engine = two if life.engine is one else one
        life.correct(2 * i)
    features: Any = {"x": 0.5}
    beliefs = [engine.decide(None, policy="applicants", features=features)["belief"] for engine in (one, two)]
    assert beliefs[0] == beliefs[1]
    assert life.stored == life.learnt()
    assert one.audit().findings == []
    two.close()
    one.close()


def test_a_forged_correction_is_found(life: Life) -> None:
    life.label(6)
    life.correct(2)
    rows = 0
    for statement in (
        "UPDATE model_state SET revised = body WHERE revised IS NOT NULL",
        "UPDATE model_state SET revised = NULL WHERE revised IS NOT NULL",
        "UPDATE model_state SET revised = '0' || revised WHERE revised IS NOT NULL",
        r"""UPDATE event SET body = replace(body, ',"relearnt"\:true', '') WHERE body LIKE '%relearnt%'""",
    ):
        with life.engine.store.write() as connection:
            rows += connection.execute(text(statement)).rowcount
            report = audit_connection(connection, "test")
            connection.rollback()
        where = "event" if "event" in statement else "model state"
        assert any(where in finding.where for finding in report.findings), statement
    assert rows >= 4


def test_an_event_without_the_field_is_written_as_before() -> None:
    event = Learned(at=1, actor="a", decision="d", segment="all", successes=1)
    assert b"relearnt" not in msgspec.json.encode(event)
