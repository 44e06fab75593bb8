"""Large bodies: linear work, limits before memory, and an event loop that answers others meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import scipy.special

from apart import awaited
from lenience.dashboard.app import create_app
from lenience.service.commands.lifecycle import solve_version
from lenience.service.commands.outcomes import OutcomesRequest
from lenience.service.domain import limits
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http import bodies, decisions, large_bodies
from lenience.service.http.bodies import decoded
from lenience.service.http.large_bodies import process_body
from serving import SPEC, sqlite_file

JSON, CSV = {"Content-Type": "application/json"}, {"Content-Type": "text/csv"}


class CountedName(str):
    """A field's name that counts how often names are compared or hashed."""

    work = 0

    def __eq__(self, other: object) -> bool:
        CountedName.work += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        CountedName.work += 1
        return str.__hash__(self)


def work_of(count: int) -> int:
    """Return the comparisons and hashes with which a repeated last field is found."""
    names = [f"field{i}" for i in range(count)]
    CountedName.work = 0
    with pytest.raises(BadRequest, match=f"field{count - 1} appears twice"):
        bodies._once([(CountedName(name), 0) for name in [*names, names[-1]]])
    return CountedName.work


def test_the_search_for_a_repeated_field_is_linear() -> None:
    assert work_of(4_000) < 2.5 * work_of(2_000) < 100_000


def test_only_the_first_invalid_entries_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[str] = []
    explain = bodies.explain

    def counting(place: str, *about: Any) -> Any:
        explained.append(place)
        return explain(place, *about)

    monkeypatch.setattr(bodies, "explain", counting)
    body = b'{"outcomes": [' + b",".join([b"1"] * 50_000) + b"]}"
    with pytest.raises(BadRequest, match=r"^1,000 of the first 1,000 entries of outcomes are invalid: ") as caught:
        decoded(body, OutcomesRequest)
    assert len(explained) == limits.BATCH
    assert len(caught.value.detail) < 5_000
    good = {"id": "a", "outcome": "success"}
    later = json.dumps({"outcomes": [good] * 1_500 + [1]}).encode()
    with pytest.raises(BadRequest, match=r"outcomes\[1500\] must be an object"):
        decoded(later, OutcomesRequest)


def test_history_has_at_most_as_many_entries_as_segments() -> None:
    past = {f"s{i}": {"successes": 1, "failures": 1} for i in range(limits.SEGMENTS + 1)}
    with pytest.raises(BadRequest, match="history must be an object of at most 1,000 entries, not of 1,001"):
        decoded(json.dumps({**SPEC, "history": past}).encode(), PolicySpecification)


def peak_of(body: bytes) -> int:
    """Return the most bytes of memory in use while a CSV body is rejected."""
    tracemalloc.start()
    with pytest.raises(BadRequest) as caught:
        decisions.read_csv(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.code == "too_large"
    return peak


def test_a_csv_with_many_columns_is_rejected_before_its_rows_are_read() -> None:
    heading = ",".join(f"c{i}" for i in range(20_000))
    few, many = (peak_of((heading + "\n" + "1\n" * rows).encode()) for rows in (10, 20_000))
    assert few < 20_000_000
    assert many < 1.5 * few


def test_a_csv_with_many_rows_is_rejected_at_the_first_row_too_many() -> None:
    lines: list[str] = []

    def reading() -> Any:
        for i in range(100_000):
            lines.append(f"{i},success\n")
            yield lines[-1]

    import csv

    with pytest.raises(BadRequest, match="at most 1,000 rows"):
        decisions._csv_rows(csv.reader(reading()))
    assert len(lines) == limits.BATCH + 2  # the heading, the rows, and one too many


class Gate:
    """A step of the service that waits until /health was answered. On the event loop it would wait in vain."""

    def __init__(self, step: Callable[..., Any]) -> None:
        self.step = step
        self.begun, self.answered = threading.Event(), threading.Event()
        self.passed = False

    def __call__(self, *about: Any) -> Any:
        self.begun.set()
        self.passed = self.answered.wait(10)
        return self.step(*about)


async def health_meanwhile(app: Any, gate: Gate, path: str, body: bytes, headers: dict[str, str]) -> int:
    """Post a body, ask for /health once its processing has begun, and return the status of the post."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        posting = asyncio.create_task(client.post(path, content=body, headers=headers))
        await asyncio.to_thread(gate.begun.wait, 10)
        assert (await client.get("/health")).status_code == 200
        gate.answered.set()
        return (await posting).status_code


@pytest.mark.parametrize(
    ("path", "body", "headers", "module", "name"),
    [
        ("/v1/outcomes/batch", b'{"outcomes": [' + b" " * 100_000 + b"]}", JSON, bodies, "decoded"),
        ("/v1/outcomes/import", b"id,outcome\n" + b"a,b\n" * 20_000, CSV, decisions, "read_csv"),
        (f"/v1/decisions/{'0' * 36}/erasure", b" " * 100_000 + b"[]", JSON, bodies, "decoded"),
    ],
)
def test_health_answers_while_a_large_body_is_processed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: bytes,
    headers: dict[str, str],
    module: Any,
    name: str,
) -> None:
    app: Any = create_app(sqlite_file(tmp_path))
    gate = Gate(getattr(module, name))
    monkeypatch.setattr(module, name, gate)
    status = awaited(health_meanwhile(app, gate, path, body, headers))
    awaited(app.app.state.service.stop())
    assert gate.passed
    assert status == 400


class LeavingClient:
    """A request whose client disconnects once the work has begun, and work that then waits until the service knows."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.checks = 0

    async def receive(self) -> dict[str, str]:
        await asyncio.to_thread(self.begun.wait, 10)
        return {"type": "http.disconnect"}

    def check(self) -> None:
        """Check for the client as the service does, but not before its disconnection is known."""
        self.checks += 1
        self.begun.set()
        large_bodies._current.left.wait(10)
        large_bodies.stop_if_disconnected()


GOOD = {"id": "a", "outcome": "success"}


@pytest.mark.parametrize(
    ("body", "work", "module"),
    [
        (json.dumps({"outcomes": [GOOD] * 2_000}).encode(), lambda body: decoded(body, OutcomesRequest), bodies),
        (b"id,outcome\n" + b"someone,success\n" * 900 + b" " * 40_000, decisions.read_csv, decisions),
    ],
)
def test_work_on_a_large_body_stops_when_the_client_disconnects(
    monkeypatch: pytest.MonkeyPatch, body: bytes, work: Callable[[bytes], Any], module: Any
) -> None:
    client: Any = LeavingClient()
    monkeypatch.setattr(module, "stop_if_disconnected", client.check)
    ended = threading.Event()

    def watched(content: bytes) -> Any:
        try:
            return work(content)
        finally:
            ended.set()

    with pytest.raises(BadRequest, match="the client disconnected"):
        awaited(process_body(client, body, watched))
    assert ended.wait(10)
    assert client.checks == 1


def test_a_body_that_waits_is_not_processed_after_its_client_disconnected() -> None:
    free = threading.Event()
    blocking = [large_bodies._threads.submit(free.wait, 10) for _ in range(2)]
    client: Any = LeavingClient()
    client.begun.set()
    processed: list[bytes] = []
    with pytest.raises(BadRequest, match="the client disconnected"):
        awaited(process_body(client, b" " * 40_000, processed.append))
    free.set()
    assert all(future.result() for future in blocking)
    assert large_bodies._threads.submit(lambda: list(processed)).result() == []


def test_the_check_of_an_absurd_objective_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """This policy of 200 bytes once took half a minute and 350 MB to be rejected. Now it is estimated."""
    objective = {"type": "delayed", "cost": 0.9999999999999999, "arrivals": 4e11, "discount_rate": 5e11}
    body = json.dumps({"name": "a", "objective": {**objective, "label_delay": 0.3}}).encode()
    values = 0
    gammainc = scipy.special.gammainc

    def counting(a: Any, x: Any) -> Any:
        nonlocal values
        values += np.size(a)
        return gammainc(a, x)

    monkeypatch.setattr(scipy.special, "gammainc", counting)
    tracemalloc.start()
    try:
        [table] = solve_version(decoded(body, PolicySpecification)).tables.values()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < len(table) < 100_000
    assert values < 10_000
    assert peak < 100_000_000
