"""What a stranger, another site or a spreadsheet could misuse: sign-in, OPTIONS, exports and the description."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lenience.core.spreadsheets import harmless
from lenience.dashboard.attempt_limit import ADDRESSES, ATTEMPTS, WINDOW, AttemptLimit
from lenience.dashboard.pages.sign_in import _inside
from lenience.service.commands.keys import create_key
from lenience.service.storage.store import Store
from serving import SPEC, Served, serving, sqlite_file

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A service with a key that may do everything, and the key."""
    database = sqlite_file(tmp_path_factory.mktemp("locked"))
    with serving(database) as served:
        with served.client() as client:
            client.create_policy(SPEC)
            client.activate("cards")
        store = Store(database)
        _, key = create_key(store, "owner", ("admin",), None, "test")
        store.close()
        yield served, key


@pytest.mark.parametrize(
    "address",
    [
        "/\t/evil.example",
        "/\n/evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/a\\..\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/\u2028",
        "/decisions?segment=\u00fc",
        "/\r\nSet-Cookie: a=b",
        " /decisions",
        "",
    ],
)
def test_sign_in_leads_to_this_service_only(locked: tuple[Served, str], address: str) -> None:
    served, key = locked
    assert _inside(address) == "/"
    with httpx.Client(base_url=served.url) as http:
        form = http.get("/sign-in", params={"next": address})
        assert form.status_code == 200
        assert 'name="next" value="/"' in form.text
        answer = http.post("/sign-in", data={"key": key, "next": address})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_an_encoded_address_of_this_service_is_kept() -> None:
    for address in ("/", "/decisions?segment=a%20b&status=pending", "/policies/cards?version=1#value"):
        assert _inside(address) == address


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({}, 303),
    ],
)
def test_another_site_cannot_sign_a_visitor_in(
    locked: tuple[Served, str], headers: dict[str, str], status: int
) -> None:
    served, key = locked
    answer = httpx.post(f"{served.url}/sign-in", data={"key": key}, headers=headers)
    assert answer.status_code == status
    assert ("set-cookie" in answer.headers) is (status == 303)


def test_a_page_sends_its_own_origin_with_its_forms(locked: tuple[Served, str]) -> None:
    served, key = locked
    policy = httpx.get(f"{served.url}/sign-in").headers["referrer-policy"]
    assert policy == "same-origin"  # with no-referrer a browser sends Origin: null
    own = httpx.post(f"{served.url}/sign-in", data={"key": key}, headers={"Origin": served.url})
    assert own.status_code == 303


def test_the_sign_in_form_is_small(locked: tuple[Served, str]) -> None:
    answer = httpx.post(f"{locked[0].url}/sign-in", data={"key": "x" * 20_000})
    assert answer.status_code == 413


def test_failed_attempts_to_sign_in_are_limited(empty: Served) -> None:
    store = Store(empty.database)
    _, key = create_key(store, "reader", ("read",), None, "test")
    store.close()
    with httpx.Client(base_url=empty.url) as http:
        for _ in range(3):  # success clears the count
            for _ in range(ATTEMPTS // 2):
                assert http.post("/sign-in", data={"key": "lk_wrong"}).status_code == 401
            assert http.post("/sign-in", data={"key": key}).status_code == 303
        statuses = [http.post("/sign-in", data={"key": "lk_wrong"}).status_code for _ in range(ATTEMPTS + 2)]
        assert statuses == [401] * ATTEMPTS + [429] * 2
        blocked = http.post("/sign-in", data={"key": key})
        assert blocked.status_code == 429
        assert 1 <= int(blocked.headers["retry-after"]) <= WINDOW
        assert "Too many failed attempts. Try again in " in blocked.text
        assert http.get("/v1/policies", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_attempts_are_forgotten_after_a_while_and_memory_is_bounded() -> None:
    at = 0.0
    limit = AttemptLimit(clock=lambda: at)
    for i in range(ATTEMPTS):
        at = float(i)
        limit.record("192.0.2.1")
    assert limit.seconds_to_wait("192.0.2.1") == WINDOW - at
    assert limit.seconds_to_wait("192.0.2.2") == 0
    at = WINDOW + 0.5
    assert limit.seconds_to_wait("192.0.2.1") == 0
    for i in range(ATTEMPTS):
        limit.record(f"2001:db8::{i:x}")
    assert limit.seconds_to_wait("2001:db8::ffff") == WINDOW  # one network
    for i in range(2 * ADDRESSES):
        limit.record(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}")
    assert len(limit._attempts) == ADDRESSES


def test_options_is_answered_at_every_address(locked: tuple[Served, str]) -> None:
    served, _ = locked
    paths: dict[str, Any] = httpx.get(f"{served.url}/openapi.json").json()["paths"]
    assert len(paths) >= 20
    with httpx.Client(base_url=served.url) as http:
        for path in paths:
            answer = http.options(path.replace("{name}", "cards").replace("{identity}", "0" * 36))
            assert answer.status_code == 204, path
            assert "OPTIONS" in answer.headers["allow"], path
    assert "unforeseen" not in served.logged()


def test_the_description_says_which_objects_reject_unknown_fields(locked: tuple[Served, str]) -> None:
    schemas = httpx.get(f"{locked[0].url}/openapi.json").json()["components"]["schemas"]
    strict = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    assert {name for name in schemas if name.endswith("Request")} <= strict
    objects = {"PolicySpecification", "SegmentSpec", "Belief", "Feature", "Record", "Constraints", "OutcomeItem"}
    assert objects | {"Discounted", "FiniteHorizon", "Delayed"} <= strict
    assert "ProblemAnswer" not in strict  # an answer may get new fields


def test_an_unknown_field_of_a_prior_is_rejected(http: httpx.Client) -> None:
    answer = http.post("/v1/policies", json={**SPEC, "name": "odd", "prior": {"n": 2, "s": 1, "weight": 3}})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_field")
    assert answer.json()["field"] == "prior.weight"


@pytest.mark.parametrize(
    "value",
    [
        *(
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "\u00a0=1",
            "\u3000@x",
            "\ufeff=1",
            "\u200b=1",
        ),
        *("\u200b=1", "＝1+1", "＋1", "－1", "＠x", " ＝1"),
    ],
)
def test_a_spreadsheet_runs_no_cell_of_an_export(value: str) -> None:
    assert harmless(value) == f"'{value}"


def test_ordinary_cells_are_exported_as_they_are() -> None:
    for value in ("north", "score 600..700", " north", "a=b", "1", "", None, 0.5, 3):
        assert harmless(value) == value


def test_a_client_that_disconnects_in_the_middle_is_no_error_of_the_service(tmp_path: Path) -> None:
    with serving(sqlite_file(tmp_path)) as served:
        for path in ("/v1/policies", "/sign-in"):
            with socket.create_connection(("127.0.0.1", served.port)) as connection:
                kind = "application/json" if path.startswith("/v1") else "application/x-www-form-urlencoded"
                lines = (f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{served.port}", f"Content-Type: {kind}")
                connection.sendall("\r\n".join([*lines, "Content-Length: 1000", "", "{"]).encode())
        statuses: list[str] = []
        for _ in range(100):
            counted = httpx.get(f"{served.url}/metrics").text
            statuses = re.findall(r'lenience_requests_total\{method="POST".*status="(\d+)"\} 1.0', counted)
            if len(statuses) == 2:
                break
        assert statuses == ["400"] * 2
        assert "unforeseen" not in served.logged()
