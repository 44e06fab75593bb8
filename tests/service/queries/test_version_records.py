"""What the log records about each version: origin, author, approver, reasons, software and what is proved."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from engines import SQLITE, Engine
from lenience.core.data_origin import SOFTWARE, PolicyOrigin
from lenience.service.commands.lifecycle import ChangeState
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.events import VersionCreated, read, write
from lenience.service.domain.receipts import encoder, make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage import schema
from serving import SPEC

ORIGIN: dict[str, Any] = {
    "file": "loans.csv", "digest": "0" * 64, "rows": 90, "left_out": 10, "why_left_out": {"no segment": 10},
    "columns": {"segment": "grade"}, "settings": {"success": "Fully Paid"}, "first": "2024-01-01",
    "last": "2024-12-31", "model": "own", "software": SOFTWARE, "economics": {"currency": "$"},
}  # fmt: skip


@SQLITE
def test_a_version_records_its_origin_author_and_approver(engine: Engine) -> None:
    engine.create(activate=False, origin=ORIGIN, description="Cards for everyone")
    for actor, state, reason in (("head of risk", "active", "Approved by the committee"), ("tester", "retired", "")):
        engine.call(ChangeState(make_sender(actor, None, "", None), "cards", state, 1, reason=reason))  # type: ignore[arg-type]
    engine.create(activate=False)
    first, second = engine.queries.policy("cards").versions
    assert first.origin == msgspec.convert(ORIGIN, PolicyOrigin)
    assert (first.created_by, first.activated_by) == ("tester", "head of risk")
    assert [(one.state, one.by, one.reason) for one in first.changes] == [
        ("active", "head of risk", "Approved by the committee"),
        ("retired", "tester", ""),
    ]
    assert (first.software, first.proved, first.segments) == (SOFTWARE, 2, 2)
    assert first.description == "Cards for everyone"
    assert (second.origin, second.activated_by, second.changes) == (None, None, [])
    assert engine.audit().whole


def test_a_specification_without_an_origin_keeps_its_digest() -> None:
    plain = msgspec.convert(SPEC, PolicySpecification)
    assert b"origin" not in encoder.encode(plain)
    assert b"origin" in encoder.encode(msgspec.convert({**SPEC, "origin": ORIGIN}, PolicySpecification))


@pytest.mark.parametrize(
    "changes", [{"digest": "abc"}, {"rows": -1}, {"file": ""}, {"first": "yesterday"}, {"author": "me"}]
)
def test_an_invalid_origin_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**SPEC, "origin": {**ORIGIN, **changes}}, PolicySpecification)


@SQLITE
def test_the_audit_finds_a_changed_origin_and_a_false_claim(free_engine: Engine) -> None:
    engine = free_engine
    engine.create(origin=ORIGIN)
    with engine.store.write() as connection:
        text = connection.execute(select(schema.version.c.specification)).scalar_one()
        connection.execute(update(schema.version).values(specification=text.replace("loans.csv", "other.csv")))
    assert any("specification" in finding.what for finding in engine.audit().findings)
    with engine.store.write() as connection:  # now a log that claims more proofs than the tables have
        connection.execute(update(schema.version).values(specification=text))
        chain = connection.execute(
            select(schema.chain).where(schema.chain.c.policy_id.is_not(None), schema.chain.c.segment.is_(None))
        ).one()
        head = genesis("cards", None)
        events = select(schema.event).where(schema.event.c.chain_id == chain.id).order_by(schema.event.c.seq)
        for row in connection.execute(events).all():
            event = read(row.body)
            if isinstance(event, VersionCreated):
                assert event.specification == sha256(text.encode()).hexdigest()
                event = msgspec.structs.replace(event, proved=3)
            head = link(head, write(event))
            own = (schema.event.c.chain_id == chain.id) & (schema.event.c.seq == row.seq)
            connection.execute(update(schema.event).where(own).values(body=write(event), hash=head))
        connection.execute(update(schema.chain).where(schema.chain.c.id == chain.id).values(head=head))
    assert any("proved" in finding.what for finding in engine.audit().findings)
