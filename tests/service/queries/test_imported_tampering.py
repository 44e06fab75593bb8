"""Tampering with imports and with counts of open loans is found, also if the hashes are made to fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, select, update

from engines import Engine
from lenience.service.domain import identity
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.clock import DAY
from lenience.service.domain.events import Imported, ImportStarted, OpenLoansCounted, RowsImported, read, write
from lenience.service.queries.audit import audit_connection
from lenience.service.storage import schema
from portfolios import import_rows, rows_of

TIMING = {"ages": [0, 30, 365], "success_open": [1, 1, 0], "failure_open": [1, 0.5, 0]}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A policy with imported decisions, and with open loans that were counted on two days."""
    monkeypatch.setattr(identity, "_last", 0)
    time = [1_800_000_000_000_000]
    engine = Engine(f"{tmp_path}/log.db", lambda: time[0])
    engine.create(timing=TIMING)
    import_rows(engine, rows_of(20), size=10)
    engine.decide()
    time[0] += 40 * DAY
    engine.decide()
    assert engine.audit().findings == []
    yield engine
    engine.close()


def forged(engine: Engine, kind: type, **changes: Any) -> list[str]:
    """What the audit says if the last event of a kind is changed and all hashes are made to fit, then taken back."""
    with engine.store.write() as connection:
        _rewrite(connection, kind, lambda event: msgspec.structs.replace(event, **changes))
        findings = audit_connection(connection, "test").findings
        connection.rollback()
    return [f"{finding.where}: {finding.what}" for finding in findings]


def _rewrite(connection: Connection, kind: type, change: Callable[[Any], Any]) -> None:
    events, chains = schema.event, schema.chain
    rows = connection.execute(select(events).order_by(events.c.chain_id, events.c.seq)).all()
    last = [row for row in rows if isinstance(read(row.body), kind)][-1]
    chain = connection.execute(select(chains).where(chains.c.id == last.chain_id)).one()
    head = genesis("cards", chain.segment)
    for row in rows:
        if row.chain_id == last.chain_id:
            body = write(change(read(row.body))) if row.seq == last.seq else row.body
            head = link(head, body)
            where = (events.c.chain_id == row.chain_id) & (events.c.seq == row.seq)
            connection.execute(update(events).where(where).values(body=body, hash=head))
    connection.execute(update(chains).where(chains.c.id == last.chain_id).values(head=head))


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (Imported, {"status": "failure", "decision": "accept"}, "failures"),
        (Imported, {"arrivals": 99}, "99 arrivals"),
        (Imported, {"decided_at": 1_600_000_000_000_000}, "at:"),
        (Imported, {"source": 2}, "import 2"),
        (Imported, {"outcome_at": 1_700_000_000_000_000}, "outcome_at"),
        (RowsImported, {"recorded": 9}, "import 1"),
        (ImportStarted, {"number": 3}, "import 1"),
        (OpenLoansCounted, {"number": 0}, "open loans"),
        (OpenLoansCounted, {"ages": "0" * 64}, "open loans"),
        (OpenLoansCounted, {"evidence": ((1, 5.0, 5.0),)}, "what open loans count as"),
        (OpenLoansCounted, {"evidence": ()}, "not counted on that day"),
    ],
)
def test_a_forged_event_is_found(written: Engine, kind: type, changes: dict[str, Any], said: str) -> None:
    findings = forged(written, kind, **changes)
    assert any(said in finding for finding in findings), findings


def test_changed_rows_are_found(written: Engine) -> None:
    for table, column, value in (
        (schema.chain, "imported", 3),
        (schema.chain, "open_loans", '{"at":0}'),
        (schema.decision, "source", 2),
        (schema.decision, "reported", "current"),
        (schema.decision, "outcome_at", 1),
    ):
        with written.store.write() as connection:
            connection.execute(update(table).values({column: value}))
            assert audit_connection(connection, "test").findings, column
            connection.rollback()
