"""What strangers can ask for costs the database little, however often they ask."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from apart import awaited
from lenience.dashboard.app import create_app
from lenience.service.commands import keys
from lenience.service.commands.keys import create_key
from lenience.service.domain.problems import Unavailable
from serving import sqlite_file

MANY = 20


async def ask(app: Any, path: str, headers: dict[str, str], begun: threading.Event) -> list[int]:
    """Send many requests at once, the others when the first has begun to be answered; return their statuses."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        tasks = [asyncio.create_task(client.get(path, headers=headers)) for _ in range(MANY)]
        await asyncio.to_thread(begun.wait, 10)
        return [(await task).status_code for task in tasks]


@pytest.mark.parametrize("fails", [False, True])
def test_concurrent_questions_for_readiness_share_one_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    app: Any = create_app(sqlite_file(tmp_path))
    begun = threading.Event()
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        begun.set()
        threading.Event().wait(0.5)  # long enough for all of them to ask
        if fails:
            raise Unavailable("not now")

    monkeypatch.setattr(app.app.state.service.store, "check_readable", check)
    statuses = awaited(ask(app, "/ready", {}, begun))
    awaited(app.app.state.service.stop())
    assert statuses == [503 if fails else 200] * MANY
    assert len(checks) == 1


def test_many_unknown_keys_cost_one_read_of_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app: Any = create_app(sqlite_file(tmp_path))
    service = app.app.state.service
    create_key(service.store, "owner", ("admin",), None, "test")
    service.keyring.refresh()
    service.keyring._read_at -= 60
    begun = threading.Event()
    reads: list[None] = []
    list_keys = keys.list_keys

    def counted(store: Any) -> Any:
        reads.append(None)
        begun.set()
        threading.Event().wait(0.1)
        return list_keys(store)

    monkeypatch.setattr(keys, "list_keys", counted)
    monkeypatch.setattr(keys, "FRESH", 30.0)
    statuses = awaited(ask(app, "/v1/policies", {"Authorization": "Bearer lk_0123456789ab_wrong"}, begun))
    awaited(service.stop())
    assert statuses == [401] * MANY
    assert len(reads) == 1
