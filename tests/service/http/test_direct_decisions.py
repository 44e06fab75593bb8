"""One decision without the framework: the same answers, problems, headers, metrics and logs as with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apart import awaited
from lenience.dashboard.app import create_app
from lenience.service.commands.keys import create_key
from lenience.service.http.direct_decisions import TEMPLATE
from serving import SPEC, sqlite_file

DECIDE = "/v1/policies/cards/decisions"
JSON = {"Content-Type": "application/json"}
REQUESTS: dict[str, dict[str, Any]] = {
    "accepted": {"json": {"segment": "young", "reference": "application 7"}},
    "monitored": {"json": {"segment": "young", "monitored": {"sex": "f"}}},
    "unknown segment": {"json": {"segment": "nobody"}},
    "unknown policy": {"url": "/v1/policies/none/decisions", "json": {"segment": "young"}},
    "unknown field": {"json": {"segment": "young", "colour": 1}},
    "field twice": {"content": b'{"segment": "old", "segment": "young"}', "headers": JSON},
    "no JSON": {"content": b"{", "headers": JSON},
    "nested": {"content": b"[" * 30_000, "headers": JSON},
    "empty": {"content": b"", "headers": JSON},
    "large": {"json": {"segment": "x" * 40_000}},
    "too large": {"content": b" " * 5_000_000, "headers": JSON},
    "another type": {"content": b'{"segment": "young"}', "headers": {"Content-Type": "text/plain"}},
    "with charset": {
        "content": b'{"segment": "young"}',
        "headers": {"Content-Type": "application/json; charset=utf-8"},
    },
    "compressed": {"content": b'{"segment": "young"}', "headers": {**JSON, "Content-Encoding": "gzip"}},
    "query": {"url": f"{DECIDE}?a=1", "json": {"segment": "young"}},
    "another host": {"json": {"segment": "young"}, "headers": {"Host": "example.org"}},
    "another origin": {"json": {"segment": "young"}, "headers": {"Origin": "http://evil.example"}},
    "key": {"json": {"segment": "young"}, "headers": {"Idempotency-Key": "once"}},
    "key of another request": {"json": {"segment": "old"}, "headers": {"Idempotency-Key": "once"}},
    "long key": {"json": {"segment": "young"}, "headers": {"Idempotency-Key": "k" * 201}},
    "slash": {"url": f"{DECIDE}/", "json": {"segment": "young"}},
    "GET": {"method": "GET"},
}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Any]:
    app: Any = create_app(sqlite_file(tmp_path))

    async def create() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            assert (await client.post("/v1/policies", json=SPEC)).status_code == 201
            assert (await client.post("/v1/policies/cards/activate")).status_code == 200

    awaited(create())
    yield app
    awaited(app.app.state.service.stop())


def ask(app: Any, *requests: dict[str, Any], direct: bool = True) -> list[httpx.Response]:
    """The answers to requests, with or without the way around the framework."""

    async def go() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app if direct else Framework(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [await client.request(**{"method": "POST", "url": DECIDE, **request}) for request in requests]

    return awaited(go())


class Framework:
    """The same application without the way around the framework."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, *call: Any) -> None:
        direct, self.app.direct = self.app.direct, Never()
        try:
            await self.app(*call)
        finally:
            self.app.direct = direct


class Never:
    def matches(self, scope: Any) -> bool:
        return False


def comparable(answer: httpx.Response) -> tuple[int, dict[str, str], dict[str, Any]]:
    """An answer without what differs between two decisions."""
    body = answer.json()
    for name in ("id", "decided_at", "pending"):
        body.pop(name, None)
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return answer.status_code, headers, body


def test_answers_are_those_of_the_framework(app: Any) -> None:
    direct = ask(app, *REQUESTS.values())
    framework = ask(app, *REQUESTS.values(), direct=False)
    for name, one, other in zip(REQUESTS, direct, framework, strict=True):
        assert comparable(one) == comparable(other), name
    named = dict(zip(REQUESTS, direct, strict=True))
    assert named["key"].json()["id"] == dict(zip(REQUESTS, framework, strict=True))["key"].json()["id"]
    assert {name: answer.status_code for name, answer in named.items() if answer.status_code == 201}.keys() == {
        *("accepted", "monitored", "with charset", "key", "slash")
    }


def test_plain_requests_do_not_reach_the_framework(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    framework = app.direct._app

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])
        await framework(scope, receive, send)

    monkeypatch.setattr(app.direct, "_app", counting)
    ask(app, REQUESTS["accepted"], REQUESTS["key"], REQUESTS["unknown policy"])
    assert reached == []
    ask(app, REQUESTS["with charset"], REQUESTS["no JSON"])
    assert reached == [DECIDE] * 2


def test_keys_are_needed(app: Any) -> None:
    service = app.app.state.service
    keys = {role: create_key(service.store, role, (role,), None, "tester") for role in ("decide", "read")}
    service.keyring.refresh()
    request = REQUESTS["accepted"]
    sent = [request, *({**request, "headers": {"Authorization": f"Bearer {key}"}} for _, key in keys.values())]
    assert [answer.status_code for answer in ask(app, *sent)] == [401, 201, 403]
    with service.store.read() as connection:
        actors = connection.exec_driver_sql("SELECT body FROM event ORDER BY rowid DESC LIMIT 1").scalar_one()
    assert f'"actor":"{keys["decide"][0]}"' in actors


def test_requests_are_counted_and_logged(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    app.log_requests = True
    with caplog.at_level(logging.INFO, "lenience.access"):
        ask(app, REQUESTS["accepted"], REQUESTS["unknown policy"])
    logged = [record.fields for record in caplog.records if record.name == "lenience.access"]  # type: ignore[attr-defined]
    assert [(fields["route"], fields["status"]) for fields in logged] == [(TEMPLATE, 201), (TEMPLATE, 404)]
    counted = app.metrics.text(app.app.state.service.writer).decode()
    assert f'lenience_requests_total{{method="POST",route="{TEMPLATE}",status="201"}} 1.0' in counted


def test_an_unexpected_error_is_a_500_that_reveals_nothing(
    app: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr("lenience.service.commands.decide.Decide.resolve", broken)
    (answer,) = ask(app, REQUESTS["accepted"])
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "middle" not in answer.text
