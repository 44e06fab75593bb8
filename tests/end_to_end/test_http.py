"""The service over HTTP, as a user runs it: `lenience serve`, on both databases."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lenience import Client, ServiceError
from serving import LATE, SPEC, Postgres, Served, audited, serving, sqlite_file

RARE: dict[str, Any] = {**SPEC, "name": "rare", "segments": [{"name": "few", "share": 0.04}, "many"]}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with one policy, for all tests of this file."""
    if request.param == "sqlite":
        database = sqlite_file(tmp_path_factory.mktemp("http"))
    else:
        server: Postgres = request.getfixturevalue("postgres")
        database = server.database()
    with serving(database, "--log-requests") as made:
        with made.client() as client:
            client.create_policy(SPEC)
            client.activate("cards")
        yield made
        report = audited(database)
        assert report["findings"] == []


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as made:
        yield made


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url) as made:
        yield made


def test_the_whole_road(client: Client) -> None:
    decision = client.decide("cards", segment="old", reference="application 17")
    assert decision["decision"] == "accept"
    assert decision["reason"].startswith("Accept: 50 % are expected to succeed, by what was believed beforehand")
    assert (decision["belief"], decision["pending"], decision["probability"]) == ({"n": 2, "s": 1}, 0, 1)
    assert decision["policy_version"] == 1
    answer = client.outcome(decision["id"], "success")
    assert answer["belief"] == {"n": 3, "s": 2}
    view = client.decision(decision["id"])
    assert view["reference"] == "application 17"
    assert view["value_of_continuing"]["lower"] > 0
    assert [entry["kind"] for entry in view["history"]] == ["decision", "outcome"]
    segment = next(one for one in client.policy("cards")["segments"] if one["name"] == "old")
    assert (segment["belief"], segment["pending"], segment["accepts"]) == ({"n": 3, "s": 2}, 0, True)
    assert segment["value"]["lower"] > view["value"]["lower"]
    assert segment["proved"] is True
    client.correct(decision["id"], "failure")
    client.override(client.decide("cards", "old")["id"], "accept", "head of credit", "a good reason")
    client.erase(decision["id"])
    assert client.decision(decision["id"])["erased"] is True
    assert "cards" in {one["name"] for one in client.policies()}


def test_answers_of_a_post(http: httpx.Client) -> None:
    answer = http.post("/v1/policies/cards/decisions", json={"segment": "young"})
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json"
    for name, value in (
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
    ):
        assert answer.headers[name] == value
    assert "server" not in answer.headers
    assert http.get("/health").json()["status"] == "ok"
    assert http.get("/ready").json()["status"] == "ready"


def test_the_header_makes_a_post_safe_to_send_again(http: httpx.Client) -> None:
    sent: dict[str, Any] = {"url": "/v1/policies/cards/decisions", "headers": {"Idempotency-Key": "k-1"}}
    first = http.post(json={"segment": "young"}, **sent)
    again = http.post(json={"segment": "young"}, **sent)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    other = http.post(json={"segment": "old"}, **sent)
    assert other.status_code == 409
    assert other.json()["detail"] == "this Idempotency-Key was used before with another request"
    outcome = f"/v1/decisions/{first.json()['id']}/outcome"
    one = http.post(outcome, json={"outcome": "success"}, headers={"Idempotency-Key": "k-2"})
    two = http.post(outcome, json={"outcome": "success"}, headers={"Idempotency-Key": "k-2"})
    assert one.content == two.content
    assert http.post(outcome, json={"outcome": "failure"}, headers={"Idempotency-Key": "k-2"}).status_code == 409


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


def test_batches_exports_and_imports(
    client: Client, http: httpx.Client, served: Served, tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    client.create_policy({**SPEC, "name": "batch", "constraints": {"exposure_cap": 5}})
    client.activate("batch")
    made = client.decide_batch("batch", [{"segment": "young"}] * 8)
    assert [one["decision"] for one in made] == ["accept"] * 5 + ["reject"] * 3
    assert client.outcomes({made[0]["id"]: "success", made[1]["id"]: "failure"})["recorded"] == 2
    body = f"id,outcome\n{made[2]['id']},success\n{made[7]['id']},success\nunknown,failure\n"
    answer = http.post("/v1/outcomes/import", content=body, headers={"content-type": "text/csv"}).json()
    assert (answer["recorded"], [one["status"] for one in answer["problems"]]) == (1, [409, 404])
    # A file of more lines than one request may have: repeats count once, and lines that cannot be are named.
    lines = [f"{made[0]['id']};repaid"] * 1_500 + ["x;0", f"{made[3]['id']}; ", f"{made[3]['id']};soon", "y"]
    (tmp_path / "paid.csv").write_text("id;outcome\n" + "\n".join([*lines, f"{made[1]['id']};1"]))
    code, out, err = run("outcomes", str(tmp_path / "paid.csv"), "--url", served.url)
    assert (code, out) == (
        2,
        "1,505 lines read: 0 outcomes recorded, 1,500 recorded before, 1 without an outcome yet, 4 refused.\n",
    )
    said = [
        "line 1,502: there is no decision 'x'",
        "line 1,504: outcome must be success or failure, or a word for one such as repaid, default, 1 or 0, not 'soon'",
        "line 1,505: there must be 2 values, not 1",
        f"line 1,506: the decision {made[1]['id']} has the outcome failure already: if that was wrong, POST its",
    ]
    assert all(line.startswith(words) for line, words in zip(err.splitlines(), said, strict=True))
    found = client.import_outcomes([(f"none {i}", 1) for i in range(25)])
    assert (found.refused, found.told[0]) == (25, "row 1: there is no decision 'none 0'")
    assert found.describe().endswith("there is no decision 'none 19'\nand 5 more")
    for wrong in (
        "",
        "id,outcome\n",
        "a,b\n1,2\n",
        "id,outcome\nx,maybe\n",
        "id,outcome\n\xff,success\n".encode("latin1"),
    ):
        assert http.post("/v1/outcomes/import", content=wrong).status_code == 400
    listed = list(client.decisions(policy="batch", status="pending"))
    assert [one["id"] for one in listed] == [made[3]["id"], made[4]["id"]]
    exported = http.get("/v1/decisions.csv", params={"policy": "batch"})
    assert exported.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert [row["id"] for row in rows] == [one["id"] for one in made]
    assert rows[5]["rule"] == "exposure_cap"
    # What a person decided otherwise says so, and what the policy had decided.
    client.override(made[5]["id"], "accept", by="head of risk", reason="she is known")
    again = http.get("/v1/decisions.csv?policy=batch&decision=accept").text
    assert "she is known" not in again
    told = list(csv.DictReader(io.StringIO(again)))
    assert [row["id"] for row in told] == [one["id"] for one in made[:6]]
    over = told[5]
    assert (over["policy_decision"], over["overridden"], over["overridden_by"]) == ("reject", "true", "head of risk")
    assert over["overridden_at"] > over["decided_at"]
    assert over["reason"] == client.decision(made[5]["id"])["reason"]
    assert (over["outcome_at"], told[0]["policy_decision"], told[0]["overridden"]) == ("", "accept", "false")
    assert told[0]["outcome_at"] > told[0]["decided_at"]
    assert (told[0]["cost"], told[0]["belief_n"], told[0]["belief_s"]) == ("0.8", "2.0", "1.0")
    assert len(http.get("/v1/decisions.csv?policy=batch&status=failure").text.splitlines()) == 2
    import pyarrow.parquet as pq

    file = http.get("/v1/decisions.parquet", params={"policy": "batch"})
    assert pq.read_table(io.BytesIO(file.content)).num_rows == 8
    assert http.get("/v1/decisions.csv", params={"policy": "none"}).status_code == 404
    expired = client.expire("batch", older_than_days=0)
    assert expired == {"expired": 3, "more": False}


def test_late_labels_have_a_limit(client: Client) -> None:
    client.create_policy(LATE)
    client.activate("loans")
    made = [client.decide("loans") for _ in range(3)]
    assert [one["decision"] for one in made] == ["accept", "accept", "reject"]
    assert made[2]["rule"] == "exposure_limit"
    assert made[2]["limit"] == 2
    assert [reason["code"] for reason in made[2]["principal_reasons"]] == [
        "exposure_limit_reached",
        "record_of_similar_applicants",
    ]
    assert client.decision(made[2]["id"])["would_have_changed"][0].startswith("1 fewer outcome pending")


def test_policies_warn_of_segments_that_never_start(client: Client) -> None:
    made = client.create_policy(RARE)
    assert "1 of 2 segments never starts ('few')" in made["warnings"][0]
    assert (
        client.activate("rare")["warnings"] == client.shadow("rare", client.create_policy(RARE)["version"])["warnings"]
    )
    assert client.activate("rare", 2)["warnings"] == made["warnings"]
    assert client.retire("rare")["warnings"] == []


def test_policies_warn_of_names_that_are_alike(client: Client) -> None:
    made = client.create_policy({**SPEC, "name": "alike", "segments": ["A", "b", "a "]})
    assert made["warnings"][0].startswith(
        "Segments whose names differ only by case or space are separate: 'A' and 'a '. "
    )
    assert client.activate("alike")["warnings"] == made["warnings"]


def test_history_gives_priors_and_rates_give_discounts(client: Client) -> None:
    objective = {"type": "discounted", "cost": 0.8, "arrivals": 99, "discount_rate": 1}
    history = {"young": {"successes": 90, "failures": 10}}
    client.create_policy({**SPEC, "name": "past", "objective": objective, "history": history})
    young, old = client.policy("past")["segments"]
    assert young["belief"] == {"n": 22, "s": 19}
    assert old["belief"] == {"n": 2, "s": 1}


def test_from_a_file_of_past_decisions_to_a_policy(client: Client, tmp_path: Path) -> None:
    past = tmp_path / "past.csv"
    rows: list[tuple[str, int, bool | None]] = [("north", 1, i % 10 > 0) for i in range(60)]
    rows += [("south", 1, i % 4 > 0) for i in range(40)]
    rows += [("east", 0, None)] * 20
    lines = [f"{region},{accepted},{'' if repaid is None else int(repaid)}" for region, accepted, repaid in rows]
    past.write_text("region,accepted,repaid\n" + "\n".join(lines) + "\n")
    columns = ["--segment", "region", "--accepted", "accepted", "--outcome", "repaid"]
    command = [sys.executable, "-m", "lenience", "fit", str(past), *columns, "--model", "shared", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    total = sum(row["arrivals"] for row in found["segments"])
    segments = [
        {"name": row["segment"], "share": row["arrivals"] / total, "prior": row["belief"]} for row in found["segments"]
    ]
    client.create_policy({**SPEC, "name": "from-file", "segments": segments})
    shown = {row["name"]: row["belief"] for row in client.policy("from-file")["segments"]}
    assert shown == {row["segment"]: pytest.approx(row["belief"]) for row in found["segments"]}
    counts = {
        row["segment"]: {"successes": row["successes"], "failures": row["labels"] - row["successes"]}
        for row in found["segments"]
    }
    names = list(counts)
    fitted = {"history": counts, "history_cap": 1e9, "history_model": "shared"}
    client.create_policy({**SPEC, "name": "fitted-here", "segments": names, **fitted})
    assert {row["name"]: row["belief"] for row in client.policy("fitted-here")["segments"]} == {
        name: pytest.approx(belief) for name, belief in shown.items()
    }


def test_metrics_and_logs_hold_no_personal_data(served: Served, client: Client, http: httpx.Client) -> None:
    client.decide("cards", "young", reference="Grace Hopper")
    with pytest.raises(ServiceError, match="404"):
        client.decide("hopper", "young", reference="Grace Hopper")
    text = http.get("/metrics").text
    assert 'lenience_decisions_total{decision="accept",policy="cards"}' in text
    assert "lenience_request_seconds_bucket" in text
    lines = [json.loads(line) for line in served.logged().splitlines()]
    requests = [line for line in lines if line["message"] == "request"]
    assert {line["route"] for line in requests} >= {"/v1/policies/{name}/decisions"}
    assert "Hopper" not in served.logged()
    assert "hopper" not in served.logged()


def test_a_second_writer_is_refused_on_sqlite(served: Served) -> None:
    database = served.database
    command = [sys.executable, "-m", "lenience", "serve", "--port", "0", "--database", str(database)]
    if str(database).startswith("postgresql"):
        with serving(str(database)) as other, other.client() as client:
            assert client.decide("cards", "young")["policy_version"] == 1
        return
    found = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert found.returncode == 2
    assert "another process" in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


def test_the_example_of_the_document_runs(served: Served) -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    example = example.replace("http://127.0.0.1:8000", served.url).replace(', key="lk_…"', "")
    exec(compile(example, "docs/service.md", "exec"), names)
    assert names["decision"]["segment"] == "young"


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
