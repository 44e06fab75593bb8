"""What the service refuses over HTTP, and how it says so: one problem, one sentence, on both databases."""

from __future__ import annotations

import pickle
from typing import Any

import httpx
import pytest

from lenience import Client, ServiceError
from serving import SPEC

JSON = {"Content-Type": "application/json"}
CSV = {"Content-Type": "text/csv"}
DECIDE = "/v1/policies/cards/decisions"
NOBODY = "0" * 36  # an id that no decision has


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "field"),
    [
        ("/v1/policies/cards/decisions", {"segment": "nobody"}, 400, "unknown_name", "segment"),
        ("/v1/policies/cards/decisions", {}, 400, "missing", "segment"),
        ("/v1/policies/cards/decisions", {"segment": 1}, 400, "invalid_value", "segment"),
        ("/v1/policies/cards/decisions", {"segment": "x" * 201}, 400, "invalid_value", "segment"),
        (
            "/v1/policies/cards/decisions",
            {"segment": "young", "reference": "a\u0000b"},
            400,
            "invalid_value",
            "reference",
        ),
        ("/v1/policies/cards/decisions", {"segment": "young", "colour": 1}, 400, "unknown_field", "colour"),
        ("/v1/policies/cards/decisions", {"features": {"x": 1}}, 400, "unknown_field", "features"),
        ("/v1/policies/none/decisions", {"segment": "a"}, 404, "unknown_policy", "policy"),
        ("/v1/policies/b%00d/decisions", {"segment": "a"}, 400, "invalid_value", "name"),
        ("/v1/policies/cards/decisions/batch", {"decisions": []}, 400, "invalid_value", "decisions"),
        ("/v1/policies/cards/decisions/batch", {"decisions": [{}] * 1001}, 400, "invalid_value", "decisions"),
        ("/v1/decisions/none/outcome", {"outcome": "success"}, 404, "unknown_decision", "id"),
        (
            "/v1/decisions/n%00ne/override",
            {"decision": "accept", "by": "b", "reason": "r"},
            404,
            "unknown_decision",
            "id",
        ),
        ("/v1/policies/cards/rollout", {"version": 1}, 400, "missing", "percent"),
        ("/v1/policies/cards/rollout", {"percent": 101}, 400, "invalid_value", "percent"),
        ("/v1/policies/cards/rollout", {"percent": 10, "version": 1}, 409, "version_state", "state"),
        ("/v1/policies/cards/rollout", {"percent": 0}, 409, "version_state", "percent"),
        (f"/v1/decisions/{NOBODY}/review", {"decision": "accept", "reason": "r"}, 404, "unknown_decision", "id"),
        (f"/v1/decisions/{NOBODY}/review", {"decision": "wait", "reason": "r"}, 400, "invalid_value", "decision"),
        (f"/v1/decisions/{NOBODY}/review", {"decision": "accept"}, 400, "missing", "reason"),
        ("/v1/policies", {**SPEC, "referral": {}}, 400, "missing", "referral.amount_above"),
        ("/v1/policies", {**SPEC, "referral": {"accuracy": 0.4}}, 400, "invalid_value", "referral.accuracy"),
        (
            "/v1/policies",
            {**SPEC, "referral": {"amount_above": 9}},
            400,
            "conflicting_fields",
            "referral.amount_above",
        ),
        ("/v1/erasures", {"policy": "cards"}, 400, "missing", "reference"),
        ("/v1/decisions/none/erasure", {}, 404, "unknown_decision", "id"),
        (f"/v1/decisions/{NOBODY}/erasure", {"reason": "asked"}, 400, "unknown_field", "reason"),
        (f"/v1/decisions/{NOBODY}/expiry", {"outcome": "failure"}, 400, "unknown_field", "outcome"),
        ("/v1/policies/cards/decisions?dry=1", {"segment": "young"}, 400, "unknown_field", "dry"),
        (f"/v1/decisions/{NOBODY}/outcome", {"outcome": "success"}, 404, "unknown_decision", "id"),
        (f"/v1/decisions/{NOBODY}/outcome", {"outcome": "maybe"}, 400, "invalid_value", "outcome"),
        ("/v1/outcomes/batch", {"outcomes": [{"id": NOBODY, "outcome": "success"}]}, 404, "unknown_decisions", None),
        ("/v1/outcomes/batch", {"outcomes": [{"outcome": "success"}]}, 400, "missing", "outcomes[0].id"),
        (
            "/v1/policies",
            {**SPEC, "objective": {"type": "discounted", "cost": 1.2, "discount": 0.9}},
            400,
            "invalid_value",
            "objective.cost",
        ),
        (
            "/v1/policies",
            {**SPEC, "objective": {"type": "discounted", "cost": "0.8", "discount": 0.9}},
            400,
            "invalid_value",
            "objective.cost",
        ),
        ("/v1/policies/cards/activate", {"version": "1"}, 400, "invalid_value", "version"),
        (
            "/v1/outcomes/batch",
            {"outcomes": [{"id": "a", "outcome": "good"}, {"id": "b", "outcome": "success"}, {"id": "c"}]},
            400,
            "invalid_value",
            "outcomes[0].outcome",
        ),
        (
            "/v1/policies",
            {**SPEC, "objective": {"type": "discounted", "cost": 0.8}},
            400,
            "missing",
            "objective.discount",
        ),
        ("/v1/policies", {**SPEC, "prior": {"n": 2, "s": 3}}, 400, "invalid_value", "prior.s"),
        ("/v1/policies", {**SPEC, "segments": ["a", "a"]}, 400, "duplicate", "segments"),
        (
            "/v1/policies",
            {**SPEC, "segments": [{"name": "a", "share": 0.7}, {"name": "b", "share": 0.7}]},
            400,
            "invalid_value",
            "segments",
        ),
        ("/v1/policies", {**SPEC, "features": [{"name": "x", "edges": [1]}]}, 400, "unknown_name", "segments"),
        ("/v1/policies", {**SPEC, "history": {"c": {"successes": 1, "failures": 1}}}, 400, "unknown_name", "history"),
        (
            "/v1/policies",
            {**SPEC, "objective": {"type": "discounted", "cost": 0.8, "discount": 0.99999999999}},
            400,
            "too_large",
            "segments",
        ),
        ("/v1/policies/cards/activate", {"version": 9}, 404, "unknown_version", "version"),
        ("/v1/policies/cards/shadow", {"version": 1}, 409, "version_state", "state"),
        ("/v1/policies/cards/shadow", {"replaces": 1}, 400, "unknown_field", "replaces"),
    ],
)
def test_what_is_rejected_and_how(
    http: httpx.Client, path: str, body: Any, status: int, code: str, field: str | None
) -> None:
    answer = http.post(path, json=body)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert (problem["code"], problem.get("field")) == (code, field)
    assert len(problem["detail"].splitlines()) == 1
    assert "Traceback" not in answer.text


def code_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    problem = answer.json()
    return answer.status_code, problem["code"], problem.get("field")


def test_too_large_is_refused(http: httpx.Client) -> None:
    answer = http.post("/v1/policies/cards/decisions", content=b"[" + b" " * 5_000_000 + b"]", headers=JSON)
    assert code_of(answer) == (413, "too_large", None)
    answer = http.post("/v1/policies/cards/decisions", content=b"{", headers=JSON)
    assert code_of(answer) == (400, "invalid_json", "body")
    refused = http.delete("/v1/policies/cards")
    assert code_of(refused) == (405, "method_not_allowed", None)
    assert "GET, OPTIONS" in refused.json()["detail"]
    assert code_of(http.get("/v1/decisions?after=zzz")) == (400, "invalid_value", "after")
    assert code_of(http.get("/v1/nothing")) == (404, "not_found", None)
    refused = http.get("/v1/decisions", params={"since": "yesterday"})
    assert code_of(refused) == (400, "invalid_value", "since")
    assert refused.json()["value"] == "yesterday"
    assert "2026-01-31T00:00:00Z" in refused.json()["allowed"]
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
        assert code_of(answer) == (400, "unknown_field", "polcy")
    allowed = http.get("/v1/decisions.csv?polcy=x").json()["allowed"]
    assert allowed == "policy, segment, decision, status, since, until"
    assert "allowed" not in http.get("/v1/policies?polcy=x").json()
    twice = http.get("/v1/decisions?policy=cards&policy=none")
    assert code_of(twice) == (400, "duplicate", "policy")
    assert http.get("/v1/decisions?policy=cards&limit=2").status_code == 200
    limited = http.get("/v1/decisions?limit=2000")
    assert code_of(limited) == (400, "invalid_value", "limit")
    assert limited.json()["allowed"] == "a whole number of at most 1,000"
    assert http.get("/?unknown=1").status_code == 200  # the dashboard's pages may be linked to with anything


def test_every_line_that_cannot_be_read_is_named_and_nothing_recorded(client: Client, http: httpx.Client) -> None:
    made = client.decide("cards", "young")["id"]
    lines = [f"{made},success", "", '"x",good', "y", *["z,bad"] * 19]
    answer = http.post("/v1/outcomes/import", content="id,outcome\n" + "\n".join(lines) + "\n", headers=CSV)
    told = answer.json()["detail"]
    assert answer.status_code == 400
    assert told.startswith(
        "nothing was recorded: 21 of 22 rows cannot be read: "
        "line 4: outcome must be success, failure, late or current, not 'good'; "
        "line 5: outcome must be success, failure, late or current, not ''; line 6: "
    )
    assert told.endswith(
        "; line 23: outcome must be success, failure, late or current, not 'bad'; and 1 more like these"
    )
    assert client.decision(made)["status"] == "pending"


@pytest.mark.parametrize(
    ("headers", "status", "code", "field"),
    [
        ({"Host": "evil.example:8000"}, 403, "forbidden", None),
        ({"Origin": "https://evil.example"}, 403, "forbidden", None),
        ({"Origin": "null"}, 403, "forbidden", None),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "forbidden", None),
        ({"Content-Type": "text/plain"}, 415, "unsupported_media_type", "Content-Type"),
        ({"Content-Type": ""}, 415, "unsupported_media_type", "Content-Type"),
        ({"Content-Encoding": "gzip"}, 415, "unsupported_media_type", "Content-Encoding"),
    ],
)
def test_what_a_page_of_another_site_could_send_is_refused(
    http: httpx.Client, headers: dict[str, str], status: int, code: str, field: str | None
) -> None:
    sent: dict[str, Any] = {"url": "/v1/policies/cards/decisions", "content": b'{"segment": "young"}'}
    answer = http.post(headers={**JSON, **headers}, **sent)
    assert code_of(answer) == (status, code, field)
    own = {"Content-Type": "Application/JSON; charset=utf-8", "Origin": str(http.base_url).rstrip("/")}
    assert http.post(headers=own, **sent).status_code == 201


@pytest.mark.parametrize(
    ("path", "body", "code", "field"),
    [
        (f"/v1/decisions/{NOBODY}/outcome", b'{"outcome": "Success"}', "invalid_value", "outcome"),
        (
            "/v1/policies",
            b'{"name": "a", "objective": {"type": "discounted", "cost": 1e400}}',
            "invalid_value",
            "objective.cost",
        ),
        (DECIDE, b'{"segment": 1' + b"0" * 5_000 + b"}", "invalid_value", "segment"),
        (DECIDE, b'{"segment": "old", "segment": "young"}', "duplicate", "segment"),
        (DECIDE, rb'{"segment": "\ud800"}', "invalid_json", "body"),
        (DECIDE, b'{"features": {"a": 1, "a": 2}}', "duplicate", "a"),
        (DECIDE, b'{"segment": "\xff"}', "invalid_json", "body"),
        (DECIDE, b"7[.\xff", "invalid_json", "body"),
        (DECIDE, b"7[.", "invalid_json", "body"),
        ("/v1/policies", b"", "invalid_json", "body"),
        ("/v1/policies", b"[" * 100_000, "invalid_json", "body"),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else None,
)
def test_a_body_that_cannot_be_read_has_a_code(
    http: httpx.Client, path: str, body: bytes, code: str, field: str
) -> None:
    assert code_of(http.post(path, content=body, headers=JSON)) == (400, code, field)


def test_a_problem_repeats_the_value_and_what_is_allowed(http: httpx.Client) -> None:
    problem = http.post(f"/v1/decisions/{NOBODY}/outcome", json={"outcome": "Success"}).json()
    assert problem == {
        "type": "about:blank",
        "title": "Bad request",
        "status": 400,
        "detail": "outcome must be success, failure, late or current, not 'Success'",
        "code": "invalid_value",
        "field": "outcome",
        "value": "Success",
        "allowed": "success, failure, late or current",
    }


def test_an_error_of_the_client_has_status_code_and_field(client: Client) -> None:
    with pytest.raises(ServiceError) as caught:
        client.decide("cards", "nobody")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.status, error.code, error.field) == (400, "unknown_name", "segment")
    with pytest.raises(ServiceError) as caught:
        client.outcome(NOBODY, "success")
    assert (caught.value.status, caught.value.code) == (404, "unknown_decision")
