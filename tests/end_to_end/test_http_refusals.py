"""What the service refuses over HTTP, and how it says so: one problem, one sentence, on both databases."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lenience import Client
from serving import SPEC


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
        ("/v1/policies/cards/activate", {"version": 1}, 409, "is active, so it cannot become active"),
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
    answer = http.post("/v1/policies/cards/decisions", content=b"[" + b" " * 5_000_000 + b"]")
    assert (answer.status_code, answer.json()["detail"]) == (413, "the request is larger than is allowed")
    assert http.post("/v1/policies/cards/decisions", content=b"{").status_code == 400
    assert http.delete("/v1/policies/cards").status_code == 405
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
    answer = http.post("/v1/outcomes/import", content="id,outcome\n" + "\n".join(lines) + "\n")
    told = answer.json()["detail"]
    assert answer.status_code == 400
    assert told.startswith(
        "nothing was recorded, for of 22 rows 21 cannot be read: "
        "line 4: outcome must be success or failure, not 'good'; "
        "line 5: outcome must be success or failure, not ''; line 6: "
    )
    assert told.endswith("; line 23: outcome must be success or failure, not 'bad'; and 1 more like these")
    assert client.decision(made)["status"] == "pending"


def test_what_is_wrong_is_said_with_what_is_allowed(http: httpx.Client) -> None:
    def told(path: str, body: bytes) -> tuple[int, str]:
        sent = http.post(path, content=body, headers={"Content-Type": "application/json"})
        return sent.status_code, sent.json()["detail"]

    assert told(f"/v1/decisions/{'0' * 36}/outcome", b'{"outcome": "Success"}') == (
        400,
        "outcome must be success or failure, not 'Success'",
    )
    assert told("/v1/policies", b"") == (400, "body must be JSON, and it is empty")
    assert told("/v1/policies", b"[" * 100_000) == (400, "the body is nested too deeply")
