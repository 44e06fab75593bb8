"""Keys, roles and the open door: what needs a key, what a role may do, and that nothing else gets in."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from lenience import Client, InputError, ServiceError
from rejections import rejected
from serving import SPEC, audited, serving, sqlite_file

Run = Any


def lenience(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lenience", *words], capture_output=True, text=True, timeout=60)


def make_key(run: Run, database: str, *roles: str, days: str | None = None) -> dict[str, Any]:
    chosen = [word for role in roles for word in ("--role", role)]
    more = [] if days is None else ["--days", days]
    code, out, err = run("keys", "create", "--database", database, "--label", " ".join(roles), *chosen, *more, "--json")
    assert code == 0, err
    key: dict[str, Any] = json.loads(out)
    return key


def soon_refused(client: Client) -> None:
    """A running service notices within a few seconds."""
    status = 0
    for _ in range(60):
        try:
            client.policies()
        except ServiceError as error:
            status = error.status
            break
        time.sleep(0.1)
    assert status == 401


def test_keys_and_roles(run: Run, database: str) -> None:
    with serving(database) as served:
        with served.client() as anyone:
            anyone.create_policy(SPEC)
            anyone.activate("cards")
            # The first key closes the door; a running service notices by itself.
            made = {role: make_key(run, database, role) for role in ("admin", "decide", "outcome", "read")}
            soon_refused(anyone)
        clients = {role: served.client(key["key"]) for role, key in made.items()}
        decision = clients["decide"].decide("cards", "young")["id"]
        allowed: dict[str, Any] = {
            "decide": lambda client: client.decide("cards", "old"),
            "outcome": lambda client: client.outcome(decision, "success"),
            "read": lambda client: client.policy("cards"),
            "admin": lambda client: client.shadow("cards", client.create_policy(SPEC)["version"]),
        }
        for role, client in clients.items():
            for needed, act in allowed.items():
                if role in (needed, "admin"):
                    act(client)
                else:
                    with pytest.raises(ServiceError, match=f"403: the key {made[role]['id']} does not have the role"):
                        act(client)
        admin_key = made["admin"]["key"]
        wrong = [None, "lk_x_y", admin_key[:-1], admin_key + "x", "lk_" + made["read"]["id"] + "_" + admin_key[-43:]]
        for key in wrong:
            with served.client(key) as stranger, pytest.raises(ServiceError, match="401"):
                stranger.policies()
        told = httpx.get(f"{served.url}/v1/policies", headers={"Authorization": "Basic abc"})
        assert (told.status_code, told.headers["www-authenticate"]) == (401, "Bearer")
        assert httpx.get(f"{served.url}/metrics").status_code == 401
        assert httpx.get(f"{served.url}/health").status_code == 200
        assert httpx.get(f"{served.url}/ready").status_code == 200
        _, out, err = run("keys", "revoke", "--database", database, made["read"]["id"], "--json")
        assert err == ""
        assert json.loads(out) == {"revoked": made["read"]["id"]}
        soon_refused(clients["read"])
        for client in clients.values():
            client.close()
    listed = json.loads(run("keys", "list", "--database", database, "--json")[1])["keys"]
    assert {key["id"]: key["valid"] for key in listed}[made["read"]["id"]] is False
    secrets = [key["key"].split("_", 2)[2] for key in made.values()]
    assert not any(secret in json.dumps(listed) for secret in secrets)
    if not database.startswith("postgresql"):
        stored = b"".join(path.read_bytes() for path in Path(database).parent.glob(f"{Path(database).name}*"))
        assert not any(secret.encode() in stored for secret in secrets), "a secret is stored"
    assert audited(database)["findings"] == []


def test_expired_keys_do_not_work(run: Run, tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    key = make_key(run, database, "read", days="0.00002")  # under two seconds
    time.sleep(2)
    with serving(database) as served, served.client(key["key"]) as client, pytest.raises(ServiceError, match="expired"):
        client.policies()


def test_other_addresses_need_keys(run: Run, tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    refused = lenience("serve", "--host", "0.0.0.0", "--port", "0", "--database", database)
    assert refused.returncode == 2
    assert "--host" in refused.stderr
    assert "lenience keys create" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    key = make_key(run, database, "admin")
    with (
        serving(database, "--host", "0.0.0.0") as served,
        Client(f"http://127.0.0.1:{served.port}", key=key["key"], retries=0) as client,
    ):
        assert client.policies() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("serve", "--database", "mysql://x/y"), "--database"),
        (("serve", "--port", "99999"), "99999 is not in the range"),
        (("serve", "--workers", "2", "--database", "FILE"), "--workers"),
        (("serve", "--database", "postgresql://nobody@127.0.0.1:1/none"), "the database is unavailable"),
        (("audit", "--database", "FILE"), "does not exist"),
        (("audit", "--database", "FILE", "--expect", "/nowhere"), "--expect"),
        (
            ("keys", "create", "--database", "FILE", "--label", "x", "--role", "king"),
            "--role",
        ),
        (("keys", "create", "--database", "FILE", "--label", "", "--role", "read"), "--label"),
        (("keys", "revoke", "--database", "FILE", "nothing"), "There is no database"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*[str(tmp_path / "new.db") if word == "FILE" else word for word in words])
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with serving(sqlite_file(tmp_path)) as served:
        found = lenience("serve", "--port", str(served.port), "--database", sqlite_file(tmp_path))
    assert found.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {served.port}" in found.stderr


def test_audit_in_words_and_its_exit_code(run: Run, tmp_path: Path) -> None:
    import sqlite3

    database = sqlite_file(tmp_path)
    with serving(database) as served, served.client() as client:
        client.create_policy(SPEC)
        client.activate("cards")
        client.decide("cards", "young")
    kept = tmp_path / "audit.json"
    kept.write_text(run("audit", "--database", database, "--json")[1])
    code, out, _ = run("audit", "--database", database, "--expect", str(kept))
    assert code == 0
    assert out.startswith("Everything holds: 4 events in 4 chains, 1 decision recomputed.")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE decision SET status = 'success'")
    connection.close()
    code, out, _ = run("audit", "--database", database)
    assert code == 1
    assert "status: success in the table, pending in the log" in out
    assert "1 finding:" in out


def test_retries_are_safe_because_of_the_keys() -> None:
    """A client whose answers are lost half of the time: each call is decided once."""
    import httpx as transport

    answered: dict[str, bytes] = {}
    tries: list[str] = []

    def flaky(request: transport.Request) -> transport.Response:
        key = request.headers["Idempotency-Key"]
        tries.append(key)
        first = key not in answered
        answered.setdefault(key, json.dumps({"id": str(len(answered))}).encode())
        if first:
            raise transport.ReadError("the answer was lost")
        if tries.count(key) == 2:
            return transport.Response(503, json={"detail": "not now"})
        return transport.Response(201, json=json.loads(answered[key]))

    client = Client("http://test", retries=3)
    client._http = transport.Client(base_url="http://test", transport=transport.MockTransport(flaky))
    assert [client.decide("cards")["id"] for _ in range(3)] == ["0", "1", "2"]
    assert len(tries) == 9
    assert len(set(tries)) == 3
    client.close()


def test_a_service_that_is_not_there_is_said_to_be_missing_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("lenience.client.client.time.sleep", waits.append)
    with Client("http://127.0.0.1:1") as nowhere:
        with pytest.raises(ServiceError) as told:
            nowhere.policies()
        assert nowhere.ready() is False
    assert str(told.value) == (
        "no service answers at http://127.0.0.1:1 ([Errno 111] Connection refused): "
        "start it with lenience serve, or check the address and the port"
    )
    assert (told.value.status, len(waits)) == (0, 2)
    with Client("http://no-such-host.invalid:8000") as unknown, pytest.raises(ServiceError, match="the host of http"):
        unknown.policies()


def test_a_service_that_has_answered_is_tried_again_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("lenience.client.client.time.sleep", waits.append)

    def answer(request: httpx.Request) -> httpx.Response:
        if answers:
            return answers.pop()
        raise httpx.ConnectError("[Errno 111] Connection refused")

    answers = [httpx.Response(200, json={"policies": []})]
    with Client("http://test", retries=4) as client:
        client._http = httpx.Client(base_url="http://test", transport=httpx.MockTransport(answer))
        assert client.policies() == []
        with pytest.raises(ServiceError, match="the service at http://test can no longer be reached"):
            client.policies()
    assert len(waits) == 4


@pytest.mark.parametrize("status", [200, 302, 404])
def test_something_else_that_answers_is_no_service(status: int) -> None:
    page = httpx.Response(status, html="<p>another site</p>")
    with Client("http://test") as client:
        client._http = httpx.Client(base_url="http://test", transport=httpx.MockTransport(lambda request: page))
        with pytest.raises(ServiceError, match=rf"^{status}: http://test does not answer as a decision service"):
            client.policies()


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "ftp://x", "http://", "http://h:99999", "http://h:0", "", None, "http://h/v1", "http://[x"],
)
def test_a_mistaken_address_is_refused_at_once(url: Any) -> None:
    with rejected("url"):
        Client(url)


def test_names_and_ids_of_the_client_are_parts_of_an_address() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        return httpx.Response(404, json={"detail": "there is no decision"})

    with Client("http://test") as client:
        client._http = httpx.Client(base_url="http://test", transport=httpx.MockTransport(answer))
        for identity in ("a/b?c", "none"):
            with pytest.raises(ServiceError, match="404: there is no decision"):
                client.decision(identity)
        with pytest.raises(InputError, match="identity must be a text that is not empty, not ''"):
            client.decision("")
    assert asked == ["/v1/decisions/a%2Fb%3Fc", "/v1/decisions/none"]
