"""Versions that are solved in the background: progress, cancellation, and clients that disconnect."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from apart import awaited
from lenience.dashboard.app import create_app
from lenience.service.commands import solve_process
from lenience.service.domain.problems import Conflict
from lenience.service.domain.solved_tables import solve
from lenience.service.domain.specification import PolicySpecification, SegmentProblem
from lenience.service.http.service import Service
from serving import SPEC, sqlite_file

SHARES = (0.4, 0.3, 0.2, 0.1)
WANTED = {**SPEC, "segments": [{"name": f"s{i}", "share": share} for i, share in enumerate(SHARES)]}
ASYNC = {"Prefer": "respond-async"}


class Gate:
    """A solver that waits before each segment until it may go on."""

    def __init__(self) -> None:
        self.solve = solve
        self.begun = threading.Semaphore(0)
        self.open = threading.Semaphore(0)
        self.solved = 0

    def __call__(self, segment: SegmentProblem) -> str:
        self.begun.release()
        assert self.open.acquire(timeout=10)
        self.solved += 1
        return self.solve(segment)

    async def segment_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=10)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made = Gate()
    monkeypatch.setattr(solve_process, "solve", made)
    return made


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def ended(client: httpx.AsyncClient, place: str) -> Any:
    for _ in range(500):
        answer = (await client.get(place)).json()
        if answer["state"] in ("done", "failed", "cancelled"):
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError(answer)


def test_a_version_is_solved_in_the_background_with_progress(tmp_path: Path, gate: Gate) -> None:
    app: Any = create_app(sqlite_file(tmp_path))

    async def follow() -> None:
        async with client_of(app) as client:
            started = await client.post("/v1/policies", json=WANTED, headers=ASYNC)
            assert started.status_code == 202
            place = started.headers["Location"]
            assert place == f"/v1/solves/{started.json()['id']}"
            await gate.segment_begun()
            gate.open.release()
            await gate.segment_begun()
            halfway = (await client.get(place)).json()
            assert (halfway["state"], halfway["solved"], halfway["segments"]) == ("solving", 1, 4)
            assert halfway["version"] is None
            assert (await client.get("/v1/policies")).json()["policies"] == []  # others are answered meanwhile
            gate.open.release(3)
            done = await ended(client, place)
            assert (done["state"], done["solved"], done["policy"]) == ("done", 4, "cards")
            assert (done["version"]["version"], done["version"]["state"]) == (1, "draft")
            listed = (await client.get("/v1/solves")).json()["solves"]
            assert [one["id"] for one in listed] == [done["id"]]
            assert len((await client.get("/v1/policies/cards")).json()["segments"]) == 4
            missing = await client.get(f"/v1/solves/{'0' * 32}")
            assert (missing.status_code, missing.json()["code"]) == (404, "unknown_solve")

    awaited(follow())
    awaited(app.app.state.service.stop())


def test_a_solve_is_cancelled_between_two_segments(tmp_path: Path, gate: Gate) -> None:
    app: Any = create_app(sqlite_file(tmp_path))

    async def cancel() -> None:
        async with client_of(app) as client:
            place = (await client.post("/v1/policies", json=WANTED, headers=ASYNC)).headers["Location"]
            await gate.segment_begun()
            stopping = await client.delete(place)
            assert (stopping.status_code, stopping.json()["state"]) == (200, "cancelling")
            gate.open.release(4)
            assert (await ended(client, place))["state"] == "cancelled"
            assert gate.solved == 1
            assert (await client.get("/v1/policies")).json()["policies"] == []
            assert (await client.delete(place)).json()["state"] == "cancelled"  # it stays so

    awaited(cancel())
    awaited(app.app.state.service.stop())


def test_the_dashboard_shows_the_progress(tmp_path: Path, gate: Gate) -> None:
    app: Any = create_app(sqlite_file(tmp_path))

    async def follow() -> None:
        async with client_of(app) as client:
            first, second = [
                (await client.post("/v1/policies", json={**WANTED, "name": name}, headers=ASYNC)).json()["id"]
                for name in ("cards", "loans")
            ]
            await gate.segment_begun()
            gate.open.release()
            await gate.segment_begun()
            shown = (await client.get(f"/solves/{first}")).text
            assert "Solved 1 of 4 segments" in shown
            assert 'value="1" max="4"' in shown
            waiting = (await client.get(f"/solves/{second}")).text
            assert "Waiting for another version" in waiting
            token = re.search(r'name="(\w+)" value="([^"]+)"', waiting)
            assert token is not None
            stopped = await client.post(f"/solves/{second}/cancel", data={token[1]: token[2]})
            assert (stopped.status_code, stopped.headers["Location"]) == (303, f"/solves/{second}")
            gate.open.release(3)
            for identity in (first, second):
                await ended(client, f"/v1/solves/{identity}")
            assert "Nothing was saved" in (await client.get(f"/solves/{second}/live")).text
            live = await client.get(f"/solves/{first}/live")
            assert live.headers["HX-Redirect"] == f"/solves/{first}"
            finished = await client.get(f"/solves/{first}")
            assert finished.headers["Location"] == "/policies/cards?version=1"

    awaited(follow())
    awaited(app.app.state.service.stop())


def test_a_solve_that_fails_says_why(tmp_path: Path) -> None:
    app: Any = create_app(sqlite_file(tmp_path))
    huge = {**WANTED, "objective": {"type": "discounted", "cost": 0.8, "discount": 1 - 1e-13}}

    async def fail() -> None:
        async with client_of(app) as client:
            place = (await client.post("/v1/policies", json=huge, headers=ASYNC)).headers["Location"]
            answer = await ended(client, place)
            assert answer["state"] == "failed"
            assert answer["problem"]
            plain = await client.post("/v1/policies", json=huge)
            assert (plain.status_code, plain.json()["detail"]) == (400, answer["problem"])

    awaited(fail())
    awaited(app.app.state.service.stop())


def test_a_solve_stops_when_the_last_client_disconnects(tmp_path: Path, gate: Gate) -> None:
    specification = msgspec.convert(WANTED, PolicySpecification)

    async def leave() -> None:
        service = Service(sqlite_file(tmp_path))
        await service.start()
        first, second = (asyncio.create_task(service.solve_version(specification)) for _ in range(2))
        await gate.segment_begun()
        first.cancel()
        await asyncio.sleep(0.01)
        gate.open.release()
        await gate.segment_begun()  # the other client still waits, so the solve goes on
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        again = asyncio.create_task(service.solve_version(specification))  # does not join the cancelled solve
        gate.open.release(9)
        solved = await again
        assert len(solved.segments) == 4
        assert gate.solved == 2 + 4
        await service.stop()

    awaited(leave())


def test_only_so_many_solves_wait(tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.service.http.background_solves.MOST", 2)
    specification = msgspec.convert(WANTED, PolicySpecification)

    async def crowd() -> None:
        service = Service(sqlite_file(tmp_path))
        await service.start()
        sender: Any = None
        solves = [service.solve_in_background(specification, sender) for _ in range(2)]
        with pytest.raises(Conflict) as refused:
            service.solve_in_background(specification, sender)
        assert refused.value.code == "too_many_solves"
        for each in solves:
            service.solves.cancel(each.id)
        gate.open.release(4)
        await asyncio.gather(*(each.task for each in solves), return_exceptions=True)
        assert [each.state for each in solves] == ["cancelled"] * 2
        await service.stop()

    awaited(crowd())
