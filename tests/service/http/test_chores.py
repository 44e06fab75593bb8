"""What a running service does by itself: give up overdue outcomes, forget old idempotency keys, solve once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from apart import awaited
from engines import Engine
from lenience.dashboard.app import create_app
from lenience.service.commands.lifecycle import SolvedVersion, solve_version
from lenience.service.commands.solve_progress import SolveProgress
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http import service as running
from lenience.service.http.service import Service
from lenience.service.queries.audit import audit
from serving import SPEC, sqlite_file


def test_overdue_outcomes_are_given_up_and_old_answers_forgotten(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(database)
    engine.create(expire_after_days=1e-6)  # under a tenth of a second
    engine.create(name="patient")
    for i in range(3):
        engine.decide(key=f"key {i}")
    engine.decide(policy="patient")
    engine.close()
    time.sleep(0.2)
    service = Service(database)
    try:
        service.do_chores()
        pending = {
            name: sum(one.pending for one in service.queries.policy(name).segments) for name in ("cards", "patient")
        }
        assert pending == {"cards": 0, "patient": 1}
        with service.store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM idempotency")).scalar_one() == 3
        monkeypatch.setattr(running, "KEEP_ANSWERS", 0)
        service.do_chores()
        with service.store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM idempotency")).scalar_one() == 0
        assert audit(service.store).findings == []
    finally:
        service.writer.close()
        service.store.close()


def test_what_is_asked_for_again_while_it_is_solved_is_solved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[str] = []

    def slowly(specification: PolicySpecification, progress: SolveProgress) -> SolvedVersion:
        solved.append(specification.name)
        time.sleep(0.1)
        return solve_version(specification, progress)

    monkeypatch.setattr(running, "solve_version", slowly)
    cards, loans = (msgspec.convert({**SPEC, "name": name}, PolicySpecification) for name in ("cards", "loans"))

    async def several() -> list[str]:
        service = Service(sqlite_file(tmp_path))
        await service.start()
        found = await asyncio.gather(*(service.solve_version(one) for one in (cards, loans, cards)))
        found.append(await service.solve_version(cards))  # a later version is a new one
        await service.stop()
        return [one.specification.name for one in found]

    assert awaited(several()) == ["cards", "loans", "cards", "cards"]
    assert solved == ["cards", "loans", "cards"]


def test_the_application_uses_nothing_that_is_going_away(tmp_path: Path) -> None:
    made: Any = create_app(sqlite_file(tmp_path))  # a deprecation warning is an error in the tests
    awaited(made.app.state.service.stop())
