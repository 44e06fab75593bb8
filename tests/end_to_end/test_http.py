"""The service over HTTP, as a user runs it: `lenience serve`, on both databases."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from lenience import Client, Offer, ServiceError
from serving import LATE, OFFERS, SPEC, Served, serving

CSV = {"Content-Type": "text/csv"}
RARE: dict[str, Any] = {**SPEC, "name": "rare", "segments": [{"name": "few", "share": 0.04}, "many"]}


def test_the_whole_road(client: Client) -> None:
    decision = client.decide("cards", segment="old", reference="application 17")
    assert decision["decision"] == "accept"
    assert decision["reason"].startswith("Accept: the expected success rate is 50%")
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


def test_offers_over_http(client: Client, http: httpx.Client) -> None:
    client.create_policy({"name": "amounts", "objective": OFFERS, "constraints": {"exposure_cap_amount": 2000}})
    client.activate("amounts")
    large = {"amount": 10_000, "rate": 0.12, "term": 3, "loss_given_default": 0.6, "funding_rate": 0.04}
    decision = client.decide("amounts", offers=[Offer(500, 0.8), large])
    assert (decision["decision"], decision["offer"]["amount"]) == ("accept", 500)
    assert decision["reason"].startswith("Offer $500 instead of $7,329: the expected success rate is 50%")
    assert decision["label_value"]["lower"] > -decision["expected_profit"] > 0
    assert client.outcome(decision["id"], "success")["profit"] == pytest.approx(100)
    assert client.decision(decision["id"])["profit"] == pytest.approx(100)
    (segment,) = client.policy("amounts")["segments"]
    assert segment["at_risk"] == 0
    assert segment["largest_amount"] > 500
    assert client.policy("amounts")["specification"]["objective"]["offers"]["currency"] == "$"
    batch = client.decide_batch("amounts", [{"offer": {"gain": 100, "loss": 400}}, {"offer": large}])
    assert [each["decision"] for each in batch] == ["accept", "reject"]
    ranked = client.rank("amounts", [{"offer": {"amount": 100 * i, "cost": 0.3}} for i in range(1, 5)], capacity=1)
    assert (ranked["order"], ranked["chosen"]) == ([3, 2, 1, 0], 1)
    assert [each["decision"] for each in ranked["decisions"]] == ["reject", "reject", "reject", "accept"]
    with pytest.raises(ServiceError, match="capacity or budget must be given"):
        client.rank("amounts", [{"offer": {"amount": 100, "cost": 0.3}}])
    with pytest.raises(ServiceError, match="offer must be given") as caught:
        client.decide("amounts")
    assert (caught.value.status, caught.value.code, caught.value.field) == (400, "missing", "offer")
    with pytest.raises(ServiceError, match="one break-even for all") as caught:
        client.decide("cards", "young", offer=Offer(500, 0.8))
    assert (caught.value.status, caught.value.code) == (400, "unsupported_offers")
    answer = http.post("/v1/policies/amounts/decisions", json={"offer": {"amount": 5, "gain": 1, "loss": 1}})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["field"]) == (400, "conflicting_fields", "offer.amount")
    heading = next(csv.reader(io.StringIO(http.get("/v1/decisions.csv").text)))
    assert heading[-8:-3] == ["offers", "offer_amount", "expected_profit", "label_value", "profit"]


def test_who_waits_is_decided_again_over_http(client: Client, http: httpx.Client) -> None:
    client.create_policy({**SPEC, "name": "few", "constraints": {"exposure_cap": 1}, "waiting_list": True})
    client.activate("few")
    first, second = client.decide("few", "old"), client.decide("few", "old", reference="second")
    assert (first["decision"], second["decision"]) == ("accept", "wait")
    client.outcome(first["id"], "success")
    (entry,) = client.waiting("few")["waiting"]
    assert (entry["id"], entry["accepts"], entry["reference"]) == (second["id"], True, "second")
    assert [each["id"] for each in http.get("/v1/decisions?status=waiting&policy=few").json()["decisions"]] == [
        second["id"]
    ]
    page = http.get(f"/decisions/{second['id']}").text
    assert "Waiting" in page
    assert f"/decisions/{second['id']}/again" in page
    assert "status=waiting" in http.get("/policies/few").text
    again = client.decide_again(second["id"])
    assert (again["decision"], again["again"]) == ("accept", second["id"])
    assert f"/decisions/{again['id']}" in http.get(f"/decisions/{second['id']}").text
    with pytest.raises(ServiceError) as caught:
        client.decide_again(second["id"])
    assert (caught.value.status, caught.value.code) == (409, "decision_not_waiting")


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
    assert other.json()["detail"] == "this Idempotency-Key was already used for a different request"
    outcome = f"/v1/decisions/{first.json()['id']}/outcome"
    one = http.post(outcome, json={"outcome": "success"}, headers={"Idempotency-Key": "k-2"})
    two = http.post(outcome, json={"outcome": "success"}, headers={"Idempotency-Key": "k-2"})
    assert one.content == two.content
    assert http.post(outcome, json={"outcome": "failure"}, headers={"Idempotency-Key": "k-2"}).status_code == 409


def test_batches_exports_and_imports(
    client: Client, http: httpx.Client, served: Served, tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    client.create_policy({**SPEC, "name": "batch", "constraints": {"exposure_cap": 5}})
    client.activate("batch")
    made = client.decide_batch("batch", [{"segment": "young"}] * 8)
    assert [one["decision"] for one in made] == ["accept"] * 5 + ["reject"] * 3
    assert client.outcomes({made[0]["id"]: "success", made[1]["id"]: "failure"})["recorded"] == 2
    body = f"id,outcome\n{made[2]['id']},success\n{made[7]['id']},success\nunknown,failure\n"
    answer = http.post("/v1/outcomes/import", content=body, headers=CSV).json()
    assert (answer["recorded"], [one["status"] for one in answer["problems"]]) == (1, [409, 404])
    # A file of more lines than one request may have: repeats count once, and lines that cannot be are named.
    lines = [f"{made[0]['id']};repaid"] * 1_500 + ["x;0", f"{made[3]['id']}; ", f"{made[3]['id']};soon", "y"]
    (tmp_path / "paid.csv").write_text("id;outcome\n" + "\n".join([*lines, f"{made[1]['id']};1"]))
    code, out, err = run("outcomes", str(tmp_path / "paid.csv"), "--url", served.url)
    assert (code, out) == (
        2,
        "1,505 lines read: 0 outcomes recorded, 1,500 recorded before, 1 without an outcome yet, 4 rejected.\n",
    )
    said = [
        "line 1,502: there is no decision 'x'",
        "line 1,504: outcome must be success or failure, or a word for one such as repaid, default, 1 or 0, not 'soon'",
        "line 1,505: there must be 2 values, not 1",
        f"line 1,506: the decision {made[1]['id']} has the outcome failure already: if that was wrong, POST its",
    ]
    assert all(line.startswith(words) for line, words in zip(err.splitlines(), said, strict=True))
    own = [client.decide("cards", "young", reference=f"loan {number}")["id"] for number in (1, 1, 2, 3, 4)]
    lines = [
        "loan 1;gut",
        "loan 2;gut",
        "loan 3;gut",
        "loan 3;weg",
        "loan 4;läuft",
        "loan 5;gut",
        "loan 6;??",
        "loan 7;??",
    ]
    (tmp_path / "own.csv").write_bytes("\n".join(["Nr;Status", *lines]).encode("cp1252"))
    given = ("--url", served.url, "--reference", "Nr", "--outcome", "Status", "--success", "gut")
    code, out, err = run("outcomes", str(tmp_path / "own.csv"), *given, "--failure", "weg", "--pending", "läuft")
    assert (code, out) == (2, "8 lines read: 1 outcome recorded, 1 without an outcome yet, 6 rejected.\n")
    twice = "line 4 says success of 'loan 3' and line 5 says failure: neither was recorded"
    assert err.splitlines() == [
        f"line 2: reference 'loan 1': 2 accepted decisions have this reference: give their ids ({own[0]}, {own[1]})",
        f"2 lines, the first line 4: {twice}",
        "line 7: no accepted decision has the reference 'loan 5'",
        "2 lines, the first line 8: Status must be success or failure, or a word for one such as repaid, "
        "default, 1 or 0, not '??'",
    ]
    assert [client.decision(one)["status"] for one in own[2:]] == ["success", "pending", "pending"]
    code, _, err = run("outcomes", str(tmp_path / "own.csv"), *given, "--failure", "wegg")
    assert (code, err) == (2, "lenience: 'wegg' does not occur in Status. Did you mean 'weg'?\n")
    (tmp_path / "good.csv").write_text("Nr,Status\nloan 2,gut\n")  # no failure that night: the same command works
    code, out, _ = run("outcomes", str(tmp_path / "good.csv"), *given, "--failure", "weg")
    assert (code, out) == (0, "1 line read: 0 outcomes recorded, 1 recorded before.\n")
    code, _, err = run("outcomes", str(tmp_path / "good.csv"), "--url", served.url, "--outcome", "Status")
    assert code == 2
    assert "--id" in err
    assert "--reference" in err
    # The batch carries the references: one request for each thousand.
    asked: list[str] = []
    client._http.event_hooks["request"].append(lambda request: asked.append(request.url.path))
    found = client.import_outcomes([("loan 2", 1)] * 1_500 + [("loan 9", 1)], reference_column="number")
    assert asked == ["/v1/outcomes/batch"] * 2
    assert (found.repeated, found.problems) == (1_500, ("row 1,501: no accepted decision has the reference 'loan 9'",))
    found = client.import_outcomes([("loan 9", 1)], reference_column="number")
    assert found.problems == ("row 1: no accepted decision has the reference 'loan 9'",)
    answer = http.post("/v1/outcomes/import", content="reference,outcome\nloan 4,success\n", headers=CSV).json()
    assert (answer["recorded"], client.outcomes({"loan 4": "success"}, by_reference=True)["repeated"]) == (1, 1)
    found = client.import_outcomes([(f"none {i}", 1) for i in range(25)])
    assert (found.refused, found.problems[0]) == (25, "row 1: there is no decision 'none 0'")
    assert found.describe().endswith("there is no decision 'none 19'\nand 5 more")
    # The data of a person, or of long ago, is counted first and erased when that is confirmed.
    at = ("--url", served.url)
    code, out, _ = run("erase", "--reference", "loan 1", *at)
    assert (code, out) == (0, "2 decisions would lose personal data for good. Add --yes to erase it.\n")
    assert client.decision(own[0])["reference"] == "loan 1"
    code, out, _ = run("erase", "--reference", "loan 1", "--policy", "cards", "--yes", *at)
    assert (code, out) == (0, "Erased the personal data of 2 decisions. The log stays complete.\n")
    assert run("erase", "--reference", "loan 1", "--yes", *at)[1] == "No matching decision has personal data.\n"
    assert [client.decision(one)["reference"] for one in own] == [None, None, "loan 2", "loan 3", "loan 4"]
    code, out, _ = run("erase", "--older-than", "1", "--json", *at)
    assert (code, json.loads(out)) == (0, {"found": 0, "erased": 0})
    assert client.erase_where(older_than_days=0, policy="cards") >= 3
    code, _, err = run("erase", "--older-than", "0", "--policy", "none", *at)
    assert (code, err) == (2, "lenience: 404: the policy 'none' does not exist.\n")
    for wrong in (
        "",
        "id,outcome\n",
        "a,b\n1,2\n",
        "id,outcome\nx,maybe\n",
        "id,outcome\n\xff,success\n".encode("latin1"),
    ):
        assert http.post("/v1/outcomes/import", content=wrong, headers=CSV).status_code == 400
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
    assert "Another process" in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


def test_the_example_of_the_document_runs(served: Served) -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    example = (
        example.replace("cards", "example").replace("http://127.0.0.1:8000", served.url).replace(', key="lk_…"', "")
    )
    exec(compile(example, "docs/service.md", "exec"), names)
    assert names["decision"]["segment"] == "score below 600"
