"""What the service refuses over HTTP, and how it says so: one problem, one sentence, on both databases."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lenience import Client
from serving import SPEC

JSON = {"Content-Type": "application/json"}
CSV = {"Content-Type": "text/csv"}


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        ("/v1/policies/cards/decisions", {"segment": "nobody"}, 400, "segment must be one of 'young', 'old'"),
        ("/v1/policies/cards/decisions", {}, 400, "segment must be given: one of 'young', 'old'"),
        ("/v1/policies/cards/decisions", {"segment": 1}, 400, "segment must be text or null, not 1"),
        ("/v1/policies/cards/decisions", {"segment": "x" * 201}, 400, "segment"),
        ("/v1/policies/cards/decisions", {"segment": "young", "reference": "a\u0000b"}, 400, "reference"),
        ("/v1/policies/cards/decisions", {"segment": "young", "colour": 1}, 400, "colour"),
        ("/v1/policies/none/decisions", {"segment": "a"}, 404, "there is no policy 'none'"),
        ("/v1/policies/b%00d/decisions", {"segment": "a"}, 400, "name"),
        ("/v1/policies/cards/decisions/batch", {"decisions": []}, 400, "decisions"),
        ("/v1/policies/cards/decisions/batch", {"decisions": [{}] * 1001}, 400, "decisions"),
        ("/v1/decisions/none/outcome", {"outcome": "success"}, 404, "there is no decision 'none'"),
        (
            "/v1/decisions/n%00ne/override",
            {"decision": "accept", "by": "b", "reason": "r"},
            404,
            "there is no decision",
        ),
        ("/v1/erasures", {"policy": "cards"}, 400, "reference or older_than_days must be given"),
        ("/v1/decisions/none/erasure", {}, 404, "there is no decision 'none'"),
        ("/v1/decisions/" + "0" * 36 + "/erasure", {"reason": "asked"}, 400, "reason is no field here"),
        ("/v1/decisions/" + "0" * 36 + "/expiry", {"outcome": "failure"}, 400, "outcome is no field here"),
        (
            "/v1/policies/cards/decisions?dry=1",
            {"segment": "young"},
            400,
            "'dry' is no query parameter of this address",
        ),
        ("/v1/decisions/" + "0" * 36 + "/outcome", {"outcome": "success"}, 404, "there is no decision"),
        (
            "/v1/decisions/" + "0" * 36 + "/outcome",
            {"outcome": "maybe"},
            400,
            "must be success or failure, not 'maybe'",
        ),
        ("/v1/policies", {**SPEC, "objective": {"type": "discounted", "cost": 1.2, "discount": 0.9}}, 400, "cost"),
        (
            "/v1/policies",
            {**SPEC, "objective": {"type": "discounted", "cost": "0.8", "discount": 0.9}},
            400,
            "objective.cost must be a number, not '0.8'",
        ),
        ("/v1/policies/cards/activate", {"version": "1"}, 400, "version must be a whole number or null, not '1'"),
        (
            "/v1/outcomes/batch",
            {"outcomes": [{"id": "a", "outcome": "good"}, {"id": "b", "outcome": "success"}, {"id": "c"}]},
            400,
            "2 entries of outcomes cannot be read: outcomes[0].outcome must be success or failure, not 'good'; "
            "outcomes[2].outcome must be given",
        ),
        ("/v1/policies", {**SPEC, "objective": {"type": "discounted", "cost": 0.8}}, 400, "either discount, or both"),
        ("/v1/policies", {**SPEC, "prior": {"n": 2, "s": 3}}, 400, "s must be a number from 0 to n = 2"),
        ("/v1/policies", {**SPEC, "segments": ["a", "a"]}, 400, "'a' is there twice"),
        (
            "/v1/policies",
            {**SPEC, "segments": [{"name": "a", "share": 0.7}, {"name": "b", "share": 0.7}]},
            400,
            "shares",
        ),
        (
            "/v1/policies",
            {**SPEC, "features": [{"name": "x", "edges": [1]}]},
            400,
            "must be cells of these, such as 'x<1'",
        ),
        ("/v1/policies", {**SPEC, "history": {"c": {"successes": 1, "failures": 1}}}, 400, "'c' is none of them"),
        (
            "/v1/policies",
            {**SPEC, "objective": {"type": "discounted", "cost": 0.8, "discount": 0.99999999999}},
            400,
            "s to solve",
        ),
        ("/v1/policies/cards/activate", {"version": 9}, 404, "has no version 9"),
        ("/v1/policies/cards/shadow", {"version": 1}, 409, "is active, so it cannot become shadow"),
        ("/v1/policies/cards/shadow", {"replaces": 1}, 400, "replaces is no field here"),
    ],
)
def test_what_is_refused_and_how(http: httpx.Client, path: str, body: Any, status: int, detail: str) -> None:
    answer = http.post(path, json=body)
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (answer.status_code, told["status"]) == (status, status)
    assert detail in told["detail"]
    assert "Traceback" not in answer.text


def test_too_large_is_refused(http: httpx.Client) -> None:
    answer = http.post("/v1/policies/cards/decisions", content=b"[" + b" " * 5_000_000 + b"]", headers=JSON)
    assert (answer.status_code, answer.json()["detail"]) == (
        413,
        "the request is larger than the 4 MiB that are allowed",
    )
    assert http.post("/v1/policies/cards/decisions", content=b"{", headers=JSON).status_code == 400
    refused = http.delete("/v1/policies/cards")
    assert (refused.status_code, refused.json()["detail"]) == (
        405,
        "this address does not take DELETE, but GET, OPTIONS",
    )
    assert "after must be the id of a decision, not 'zzz'" in http.get("/v1/decisions?after=zzz").json()["detail"]
    assert http.get("/v1/nothing").status_code == 404
    refused = http.get("/v1/decisions", params={"since": "yesterday"})
    told = "since must be a date such as 2026-01-31 or a time such as 2026-01-31T00:00:00Z, not 'yesterday'"
    assert (refused.status_code, refused.json()["detail"]) == (400, told)
    http.post("/v1/policies/cards/decisions", json={"segment": "young"})
    for since, until, some in (("2020-01-01", "2199-12-31", True), ("2020-01-01T00:00:00Z", "2020-01-02", False)):
        found = http.get("/v1/decisions", params={"since": since, "until": until}).json()["decisions"]
        assert bool(found) == some
    assert http.get("/v1/decisions", params={"policy": "none"}).status_code == 404


def test_a_slip_in_a_query_parameter_is_refused(http: httpx.Client) -> None:
    for path in (
        "decisions",
        "decisions.csv",
        "decisions.parquet",
        "policies",
        "policies/cards",
        f"decisions/{'0' * 36}",
    ):
        answer = http.get(f"/v1/{path}", params={"polcy": "cards"})
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), path
        assert answer.json()["detail"].startswith("'polcy' is no query parameter of this address: it has ")
    assert (
        "it has policy, segment, decision, status, since, until"
        in http.get("/v1/decisions.csv?polcy=x").json()["detail"]
    )
    assert "it has none" in http.get("/v1/policies?polcy=x").json()["detail"]
    twice = http.get("/v1/decisions?policy=cards&policy=none")
    assert (twice.status_code, twice.json()["detail"]) == (400, "the query parameter 'policy' must be given once")
    assert http.get("/v1/decisions?policy=cards&limit=2").status_code == 200
    assert "limit must be a whole number of at most 1,000, not '2000'" in http.get("/v1/decisions?limit=2000").text
    assert http.get("/?unknown=1").status_code == 200  # the dashboard's pages may be linked to with anything


def test_every_line_that_cannot_be_read_is_named_and_nothing_recorded(client: Client, http: httpx.Client) -> None:
    made = client.decide("cards", "young")["id"]
    lines = [f"{made},success", "", '"x",good', "y", *["z,bad"] * 19]
    answer = http.post("/v1/outcomes/import", content="id,outcome\n" + "\n".join(lines) + "\n", headers=CSV)
    told = answer.json()["detail"]
    assert answer.status_code == 400
    assert told.startswith(
        "nothing was recorded, for of 22 rows 21 cannot be read: "
        "line 4: outcome must be success or failure, not 'good'; "
        "line 5: outcome must be success or failure, not ''; line 6: "
    )
    assert told.endswith("; line 23: outcome must be success or failure, not 'bad'; and 1 more like these")
    assert client.decision(made)["status"] == "pending"


@pytest.mark.parametrize(
    ("headers", "status", "detail"),
    [
        ({"Host": "evil.example:8000"}, 403, "without API keys the service answers only under 127.0.0.1 or localhost"),
        ({"Origin": "https://evil.example"}, 403, "without API keys the service answers no page of another site"),
        ({"Origin": "null"}, 403, "without API keys the service answers no page of another site"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "without API keys the service answers no page of another site"),
        (
            {"Content-Type": "text/plain"},
            415,
            "the Content-Type of the body must be application/json, not 'text/plain'",
        ),
        ({"Content-Type": ""}, 415, "the Content-Type of the body must be application/json, and it is not given"),
        ({"Content-Encoding": "gzip"}, 415, "the body must not be packed, and its Content-Encoding is 'gzip'"),
    ],
)
def test_what_a_page_of_another_site_could_send_is_refused(
    http: httpx.Client, headers: dict[str, str], status: int, detail: str
) -> None:
    sent: dict[str, Any] = {"url": "/v1/policies/cards/decisions", "content": b'{"segment": "young"}'}
    answer = http.post(headers={**JSON, **headers}, **sent)
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)
    own = {"Content-Type": "Application/JSON; charset=utf-8", "Origin": str(http.base_url).rstrip("/")}
    assert http.post(headers=own, **sent).status_code == 201


def test_what_is_wrong_is_said_with_what_is_allowed(http: httpx.Client) -> None:
    def told(path: str, body: bytes) -> tuple[int, str]:
        sent = http.post(path, content=body, headers=JSON)
        return sent.status_code, sent.json()["detail"]

    assert told(f"/v1/decisions/{'0' * 36}/outcome", b'{"outcome": "Success"}') == (
        400,
        "outcome must be success or failure, not 'Success'",
    )
    assert told("/v1/policies", b'{"name": "a", "objective": {"type": "discounted", "cost": 1e400}}') == (
        400,
        "objective.cost must be a number below 1.8e308 in size",
    )
    assert told("/v1/policies/cards/decisions", b'{"segment": 1' + b"0" * 5_000 + b"}")[0] == 400
    assert told("/v1/policies/cards/decisions", b'{"segment": "old", "segment": "young"}') == (
        400,
        "segment is there twice",
    )
    for path, body, said in (
        ("cards", rb'{"segment": "\ud800"}', "body must be text in Unicode, and it has half a surrogate pair"),
        ("cards", b'{"segment": "\xff"}', "body must be in UTF-8 (invalid start byte"),
    ):
        status, detail = told(f"/v1/policies/{path}/decisions", body)
        assert (status, detail[: len(said)]) == (400, said)
    assert told("/v1/policies", b"") == (400, "body must be JSON, and it is empty")
    assert told("/v1/policies", b"[" * 100_000) == (400, "the body is nested too deeply")
