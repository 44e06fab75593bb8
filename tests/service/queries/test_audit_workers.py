"""An audit in several processes finds exactly what an audit in one process finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from engines import Engine
from lenience.service.queries import audit as audit_module
from lenience.service.queries.audit import audit
from lenience.service.queries.audit_workers import usable_workers
from portfolios import import_rows, rows_of
from serving import sqlite_file


def test_processes_find_what_one_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "usable_workers", lambda workers, events: workers or 1)
    engine = Engine(sqlite_file(tmp_path))
    try:
        engine.create()
        made = [engine.decide(segment, reference="one", monitored={"sex": "f"})["id"] for segment in ("young", "old")]
        engine.outcome(made[0], "success")
        import_rows(engine, rows_of(6))
        assert audit(engine.store, workers=1).whole
        with engine.store.write() as connection:
            connection.execute(text("UPDATE event SET body = replace(body, 'accept', 'reject') WHERE seq = 1"))
            connection.execute(text("UPDATE decision SET status = 'success' WHERE status = 'pending'"))
            connection.execute(text("UPDATE monitored SET value = 'm'"))
            connection.execute(text("UPDATE daily_total SET number = number + 1"))
            connection.execute(text("UPDATE idempotency SET answer = 'other'"))
            connection.execute(text("UPDATE personal SET reference = 'another'"))
        one, two = audit(engine.store, workers=1), audit(engine.store, workers=2)
        assert len(one.findings) > 10
        assert sorted(map(repr, one.findings)) == sorted(map(repr, two.findings))
        assert (one.heads, one.decisions) == (two.heads, two.decisions)
    finally:
        engine.close()


def test_short_logs_need_no_processes() -> None:
    assert usable_workers(8, 100) == 1
    assert usable_workers(8, 10**6) == 8
    assert usable_workers(None, 10**6) >= 1
