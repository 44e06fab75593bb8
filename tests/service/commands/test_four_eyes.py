"""Four eyes: where the operator requires it, the author of a version cannot activate it."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import select, update

from engines import SQLITE, Engine
from lenience.service.commands.lifecycle import ChangeState
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.events import StateChanged, read, write
from lenience.service.domain.problems import Conflict
from lenience.service.domain.receipts import make_sender
from lenience.service.storage import schema


@pytest.fixture
def required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LENIENCE_FOUR_EYES", "1")


def activate(engine: Engine, actor: str) -> None:
    engine.call(ChangeState(make_sender(actor, None, "", None), "cards", "active", None))


@SQLITE
def test_only_somebody_else_activates_a_version(required: None, engine: Engine) -> None:
    engine.create(activate=False)
    with pytest.raises(Conflict) as refused:
        activate(engine, "tester")
    assert refused.value.code == "four_eyes"
    engine.state("cards", "shadow")  # the author may do everything else
    activate(engine, "another")
    assert engine.decide()["decision"] == "accept"
    engine.state("cards", "retired")
    assert engine.audit().whole


@SQLITE
def test_without_the_rule_the_author_activates(engine: Engine) -> None:
    engine.create(activate=False)
    activate(engine, "tester")
    assert engine.audit().whole


@SQLITE
def test_the_audit_compares_both_actors(required: None, free_engine: Engine) -> None:
    engine = free_engine
    engine.create(activate=False)
    activate(engine, "another")
    with engine.store.write() as connection:
        chain = connection.execute(
            select(schema.chain).where(schema.chain.c.policy_id.is_not(None), schema.chain.c.segment.is_(None))
        ).one()
        rows = connection.execute(
            select(schema.event).where(schema.event.c.chain_id == chain.id).order_by(schema.event.c.seq)
        ).all()
        head = genesis("cards", None)
        for row in rows:
            event = read(row.body)
            if isinstance(event, StateChanged):
                assert event.four_eyes
                event = msgspec.structs.replace(event, actor="tester")
            body = write(event)
            head = link(head, body)
            own = (schema.event.c.chain_id == chain.id) & (schema.event.c.seq == row.seq)
            connection.execute(update(schema.event).where(own).values(body=body, hash=head))
        connection.execute(update(schema.chain).where(schema.chain.c.id == chain.id).values(head=head))
    (finding,) = engine.audit().findings
    assert "four eyes" in finding.what
