"""200 clients at once: no limit exceeded, no outcome counted twice, no update lost; on several processes too."""

from __future__ import annotations

import asyncio
import json
import os
import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import select

from apart import awaited
from lenience import Client
from lenience.policies import FeatureRule
from lenience.service.domain.events import Learned, read
from lenience.service.storage import schema
from lenience.service.storage.store import Store
from serving import BY_FEATURES, LATE, SPEC, Postgres, Served, audited, runs, serving, sqlite_file

CLIENTS = 200
LABELS = int(os.environ.get("LABELS", "60"))  # applicants at once; the larger, the more labels race
Call = tuple[str, Any, dict[str, str]]


@pytest.fixture(params=["sqlite", "postgresql, two processes"])
def addresses(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[str]]]:
    """A database, and the addresses of the services on it."""
    if request.param == "sqlite":
        database = sqlite_file(tmp_path_factory.mktemp("many"))
        with serving(database) as one:
            prepare(one)
            yield database, [one.url]
    else:
        server: Postgres = request.getfixturevalue("postgres")
        database = server.database()
        with serving(database) as one, serving(database) as two:
            prepare(one)
            yield database, [one.url, two.url]


def prepare(served: Served) -> None:
    with served.client() as client:
        for specification in (
            SPEC,
            LATE,
            {**SPEC, "name": "capped", "constraints": {"exposure_cap": 7}, "segments": []},
        ):
            client.create_policy(specification)
            client.activate(specification["name"])


class Answered:
    """An answer, as it came over the wire."""

    def __init__(self, raw: bytes) -> None:
        self.status_code = int(raw[9:12])
        self.content = raw.partition(b"\r\n\r\n")[2]

    def json(self) -> Any:
        return json.loads(self.content)


async def at_once(urls: list[str], calls: list[Call]) -> list[Answered]:
    """All calls, each over a connection of its own; all are connected before the first is sent."""
    ports = [int(url.rsplit(":", 1)[1]) for url in urls]
    connected = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", ports[i % len(ports)]) for i in range(len(calls)))
    )

    async def one(call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answered:
        path, body, headers = call
        content = json.dumps(body).encode()
        head = {"Host": "localhost", "Content-Type": "application/json", "Connection": "close", **headers}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        writer.write("\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content)
        raw = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        await writer.wait_closed()
        return Answered(raw)

    return await asyncio.gather(*(one(call, *ends) for call, ends in zip(calls, connected, strict=True)))


def test_200_clients_at_once(addresses: tuple[str, list[str]]) -> None:
    database, urls = addresses

    def send(*calls: Call) -> list[Answered]:
        return awaited(at_once(urls, list(calls)))

    def decisions(policy: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        answers = send(*[(f"/v1/policies/{policy}/decisions", body, {})] * CLIENTS)
        assert {answer.status_code for answer in answers} == {201}
        return [answer.json() for answer in answers]

    # The limit of late labels at the prior is 2, the cap is 7: of 200 at once so many are accepted, not one more.
    for policy, limit in (("loans", 2), ("capped", 7)):
        made = decisions(policy, {})
        accepted = [one for one in made if one["decision"] == "accept"]
        assert len(accepted) == limit
        assert sorted(one["pending"] for one in accepted) == list(range(limit))

    # 200 acceptances; then each outcome is sent by several clients at once, and counts once.
    made = decisions("cards", {"segment": "young"})
    assert len({one["id"] for one in made}) == CLIENTS
    assert sorted(one["pending"] for one in made) == list(range(CLIENTS))
    some = [one["id"] for one in made[:50]]
    answers = send(*[(f"/v1/decisions/{one}/outcome", {"outcome": "success"}, {}) for one in some * 4])
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["recorded"] for answer in answers) == 50
    contradictions: list[Call] = [
        (f"/v1/decisions/{one['id']}/outcome", {"outcome": outcome}, {})
        for one in made[50:100]
        for outcome in ("success", "failure", "success", "failure")
    ]
    statuses = [answer.status_code for answer in send(*contradictions)]
    assert set(statuses) == {200, 409}
    young = next(one for one in httpx.get(f"{urls[0]}/v1/policies/cards").json()["segments"] if one["name"] == "young")
    assert young["belief"]["n"] == 2 + 100
    assert young["pending"] == 100

    # One key from 200 clients: one decision.
    body = {"segment": "old", "reference": "once"}
    same = send(*[("/v1/policies/cards/decisions", body, {"Idempotency-Key": "one for all"})] * CLIENTS)
    assert len({answer.content for answer in same}) == 1
    old = next(one for one in httpx.get(f"{urls[0]}/v1/policies/cards").json()["segments"] if one["name"] == "old")
    assert old["arrivals"] == 1

    # A new version takes over in the middle of decisions.
    change: Call = ("/v1/policies", {**SPEC, "prior": {"n": 4, "s": 2}}, {})
    assert send(change)[0].status_code == 201
    calls: list[Call] = [("/v1/policies/cards/decisions", {"segment": "young"}, {})] * CLIENTS
    calls[100] = ("/v1/policies/cards/activate", {"version": 2}, {})
    answers = send(*calls)
    assert {answer.status_code for answer in answers} == {200, 201}
    assert send(calls[0])[0].json()["policy_version"] == 2

    report = audited(database)
    assert report["findings"] == []
    assert report["decisions"] == 2 * CLIENTS + CLIENTS + 1 + CLIENTS - 1 + 1


def test_labels_of_many_clients_have_one_order(addresses: tuple[str, list[str]]) -> None:
    """A policy by features on all processes: each outcome is learnt once, and all decide by the same state."""
    database, urls = addresses
    with Client(urls[0]) as client:
        client.create_policy(BY_FEATURES)
        client.activate("applicants")
    slow = FeatureRule.from_state(b64decode(httpx.get(f"{urls[0]}/v1/policies/applicants/model").json()["state"]))

    def send(path: str, bodies: list[Any]) -> list[Answered]:
        return awaited(at_once(urls, [(path.format(body.pop("at", "")), body, {}) for body in bodies]))

    people = [{"features": {"income": 20 + i % 80, "region": "north"}} for i in range(LABELS)]
    made = [answer.json() for answer in send("/v1/policies/applicants/decisions", people)]
    accepted = [one["id"] for one in made if one["decision"] == "accept"]
    assert len(accepted) > LABELS // 10
    # Each outcome is sent to all processes at once; then every third one is corrected, while others are decided.
    reports = [{"at": one, "outcome": "success"} for one in accepted * 2]
    answers = send("/v1/decisions/{}/outcome", reports)
    assert sum(answer.json()["recorded"] for answer in answers) == len(accepted)
    wrong = accepted[::3]
    awaited(
        at_once(
            urls,
            [(f"/v1/decisions/{one}/correction", {"outcome": "failure"}, {}) for one in wrong]
            + [("/v1/policies/applicants/decisions", {"features": {"income": 50}}, {})] * 20,
        )
    )
    states = [httpx.get(f"{url}/v1/policies/applicants/model").json() for url in urls for _ in range(2)]
    assert len({state["digest"] for state in states}) == 1
    rule = FeatureRule.from_state(b64decode(states[0]["state"]))
    assert rule.labels == len(accepted), "no label was lost or learnt twice"
    # The slow way: learn the labels again in the order of the log, each with its last outcome.
    features = {one["id"]: person["features"] for one, person in zip(made, people, strict=True)}
    for decision in labels_of(database):
        slow.observe(features[decision], decision not in wrong)
    assert slow.state_hash() == states[0]["digest"]
    assert audited(database)["findings"] == []


def labels_of(database: str) -> list[str]:
    """The decisions of the labels in the order in which they were learnt."""
    store = Store(database, reading=True)
    events = schema.event
    with store.read() as connection:
        bodies = connection.scalars(
            select(events.c.body).where(events.c.body.startswith('{"kind":"label"')).order_by(events.c.seq)
        )
        found = [event for event in map(read, bodies) if isinstance(event, Learned) and not event.is_correction]
    store.close()
    return [event.decision for event in found]


def test_several_processes_on_one_port(postgres: Postgres) -> None:
    database = postgres.database()
    with serving(database, "--workers", "2") as served:
        prepare(served)
        calls: list[Call] = [("/v1/policies/capped/decisions", {}, {})] * CLIENTS
        answers = [answer.json() for answer in awaited(at_once([served.url], calls))]
        assert sum(one["decision"] == "accept" for one in answers) == 7
        # Whichever process is asked, its metrics are those of all.
        for _ in range(4):
            told = httpx.get(f"{served.url}/metrics").text
            for decision, count in (("accept", 7), ("reject", CLIENTS - 7)):
                assert f'lenience_decisions_total{{decision="{decision}",policy="capped"}} {count}.0' in told
            assert "lenience_commands_total" in told
        # Killed without warning, it leaves nobody behind who would go on serving.
        workers = psutil.Process(served.process.pid).children(recursive=True)
        served.kill()
        for _ in range(200):
            left = [worker for worker in workers if runs(worker)]
            if not left:
                break
            time.sleep(0.1)
        assert len(workers) >= 2
        assert left == []
    assert audited(database)["findings"] == []
