"""What the guided form for a new policy refuses, and how it says so: against a service that runs."""

from __future__ import annotations

import http.client
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from new_policies import CSV, HEADING, OBJECTIVE, Browser, alert
from serving import Served


def test_a_form_of_another_site_is_refused(clerk: Browser) -> None:
    for path in ("/new/file", "/new/segments", "/new/create"):
        assert clerk.http.post(path, data={"token": "no", "segments": "a"}).status_code == 403, path
    assert clerk.http.post("/new/file", files={"file": ("a.csv", CSV.encode())}).status_code == 403


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \n", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "not a CSV in UTF-8"),
        ("gr\xf6\xdfe\x81,a\n1,2\n".encode("latin-1"), "not a CSV in UTF-8"),
        (b"a,b\n\x00,1\n", "the file is not a CSV"),
        (b"PK\x03\x04rest", "an archive"),
        (b"PAR1 and then nothing", "starts like Parquet"),
        (b"just one column\n1\n2\n", "only one column"),
        (b"a,,b\n1,2,3\n", "column 2 has none"),
        (b"region,approved,repaid\n", "no rows"),
        (
            b"a,b,c\n" + b"1,2,3\n" * 50 + b"1,2,3,4,5\n" + b"1,2,3\n" * 50,
            "at line 52, which has more values than the heading's 3",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(clerk: Browser, content: bytes, said: str) -> None:
    answer = clerk.upload(content, "odd <name>.csv")
    assert answer.status_code == 400
    assert said in alert(answer)
    assert alert(answer).endswith((".", "”."))
    assert "<name>" not in answer.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"segment": "nowhere"}, "not 'nowhere'"),
        ({"segment": ()}, "Choose at least one column"),
        ({"outcome": ""}, "Choose the column with the outcome"),
        ({"outcome": "region"}, "is chosen twice"),
        ({"outcome_means": ("yes:1", "yes:0")}, "which value of 'repaid' means failure"),
        ({"outcome_means": ("yes:7", "no:8")}, "No outcome is known"),
        ({"accepted_means": ("bad:yes",)}, "means accepted"),
        ({"maturity": "nan"}, "The days until an outcome is final must be a number"),
        ({"maturity": "30", "time": ""}, "Choose the date of the decision"),
        ({"as_of": "soon"}, "The date of the count must be a date such as 2024-12-31, not 'soon'"),
        ({"as_of": "2024-03-01", "time": ""}, "Choose the date of the decision"),
        ({"maturity": "9999"}, "A maturity of 9999 days"),
        ({"group": "approved"}, "has members of 2 groups"),
        ({"score": "approved"}, "must hold numbers"),
        ({"model": "curve"}, "A curve needs a score"),
        ({"model": "magic"}, "The model must be one of"),
        ({"cost": "nan"}, "The break-even success rate in percent must be"),
        ({"cost": ""}, "The break-even success rate in percent is missing"),
        ({"known": "money", "gain": "0", "loss": "5"}, "The gain per success must be a number above 0"),
        ({"discount": "1"}, "The discount must be a number from 0 to below 1"),
        ({"future": "yearly", "arrivals": "-1", "rate": "10"}, "The number of applicants per year must be"),
        ({"delay": "90"}, "the discount rate per year"),
        ({"floor": "100"}, "The exploration floor in percent must be"),
        ({"cap": "1.5"}, "must be a whole number"),
        ({"expiry": "0"}, "must be a number above 0"),
        ({"name": ""}, "Give the policy a name"),
        ({"name": "../etc"}, "letters, digits, dots"),
        ({"name": "my new cards"}, "Try 'my-new-cards'"),
        ({"cost": "0.85"}, "would be 0.85%. Type 85 for 85%"),
        ({"floor": "0.05"}, "would be 0.05%. Type 5 for 5%"),
        ({"future": "yearly", "arrivals": "9", "rate": "0.05"}, "would be 0.05%. Type 5 for 5%"),
        ({"future": "yearly", "arrivals": "9", "rate": "1000"}, "Type 10 for 10% per year"),
    ],
)
def test_an_answer_that_cannot_be_used_gets_a_sentence(
    clerk: Browser, uploaded: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    params = {name: value for name, value in {**uploaded, **OBJECTIVE, **change}.items() if value}
    answer = clerk.http.get("/new/check", params=params)
    assert answer.status_code == 400, answer.text
    assert said in alert(answer)
    if change.get("model") or change.get("name") or "cost" in change:
        refused = clerk.post("/new/create", **params, state="active")
        assert refused.status_code == 400
        assert said in alert(refused)


def test_a_policy_too_large_to_solve_says_what_to_change(clerk: Browser) -> None:
    large = {"future": "yearly", "arrivals": "1e11", "rate": "1", "name": "large"}
    answers = {**clerk.uploaded(CSV.encode()), **OBJECTIVE, **large}
    refused = clerk.post("/new/create", **answers, state="draft")
    assert refused.status_code == 400
    said = alert(refused)
    assert "Divide the largest segment into smaller ones." in said
    assert "larger tolerance" not in said  # the form cannot ask the solver for it


def test_a_file_that_is_not_known_gets_a_page(clerk: Browser) -> None:
    for token in ("", "A" * 32, "../../etc/passwd", "x" * 5000):
        for step in ("columns", "beliefs", "objective", "check", "starting", "past", "values"):
            answer = clerk.http.get(f"/new/{step}", params={"file": token})
            assert answer.status_code in (400, 404), (step, token)
            assert "Internal" not in answer.text


def test_more_segments_than_the_service_allows_are_refused_and_a_thousand_are_not(clerk: Browser) -> None:
    def many(count: int) -> bytes:
        return (HEADING + "".join(f"r{i},yes,{i % 2},2024-01-01\n" for i in range(count))).encode()

    answers = {**clerk.uploaded(many(1_001)), "segment": "region"}
    answer = clerk.http.get("/new/beliefs", params=answers)
    assert answer.status_code == 400
    assert "1,001 segments by 'region'; a policy has at most 1,000" in alert(answer)
    answers = {**clerk.uploaded(many(1_000)), "segment": "region"}
    answer = clerk.http.get("/new/beliefs", params=answers)
    assert answer.status_code == 200
    assert "the largest 100 of 1,000 segments" in answer.text
    listed = clerk.post("/new/segments", segments="\n".join(f"s{i}" for i in range(1_001)))
    assert "A policy has at most 1,000 segments" in alert(listed)


def test_hostile_names_stay_text(clerk: Browser, forms: Served) -> None:
    column, segment = "<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>'; DROP TABLE past; --"
    quoted = segment.replace('"', '""')
    text = f'{column},took,repaid\n"{quoted}",1,1\n"{quoted}",1,0\nplain,0,\n'
    answers = {**clerk.uploaded(text.encode()), "segment": column, "accepted": "took", "name": "odd"}
    answers["accepted_means"] = ["yes:1", "no:0"]
    answers = {**answers, **OBJECTIVE, "name": "odd"}
    for step in ("columns", "values", "beliefs", "objective", "starting", "check", "past"):
        shown = clerk.http.get(f"/new/{step}", params=answers)
        assert shown.status_code == 200, shown.text
        assert "<script>alert" not in shown.text
        assert "<img src=x" not in shown.text
    made = clerk.post("/new/create", **answers, state="active")
    assert made.status_code == 303, made.text
    with forms.client() as client:
        assert segment in [one["name"] for one in client.policy("odd")["specification"]["segments"]]


def test_uploads_may_be_larger_than_other_requests_up_to_a_limit(clerk: Browser, forms: Served) -> None:
    def announced(path: str, kind: str, size: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", forms.port, timeout=20)
        connection.putrequest("POST", path)
        cookie = "; ".join(f"{name}={value}" for name, value in clerk.http.cookies.items())
        for name, value in (("Content-Type", kind), ("Content-Length", str(size)), ("Cookie", cookie)):
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    status, text = announced("/new/file", "multipart/form-data; boundary=x", 65 << 20)
    assert status == 413
    assert "The file is larger than 64 MB" in text
    assert announced("/new/segments", "application/x-www-form-urlencoded", 5 << 20)[0] == 413
    padded = CSV.replace("north,", "north" + " " * 170_000 + ",")
    assert len(padded) > 4 << 20
    assert clerk.upload(padded.encode()).status_code == 303


def test_a_small_file_with_very_many_rows_is_refused(clerk: Browser) -> None:
    sink = io.BytesIO()
    flags = pa.array(np.ones(3_000_001, dtype=bool))
    pq.write_table(pa.table({"accepted": flags, "repaid": flags, "region": flags}), sink)
    assert len(sink.getvalue()) < 1 << 20
    answer = clerk.upload(sink.getvalue())
    assert answer.status_code == 400
    assert "3,000,001 rows and 3 columns" in alert(answer)
