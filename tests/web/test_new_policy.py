"""The guided form for a new policy, as a browser walks it: against a service that runs."""

from __future__ import annotations

import html
import http.client
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lenience
from lenience.belief import Belief
from lenience.model.of_history import beliefs_of_history
from new_policies import CSV, HEADING, OBJECTIVE, Browser
from serving import Served, serving, sqlite_file


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("new")
    kept = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)  # where the service keeps uploads
    try:
        with serving(sqlite_file(folder)) as running:
            yield running
    finally:
        os.environ.pop("TMPDIR")
        if kept is not None:
            os.environ["TMPDIR"] = kept


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Browser]:
    made = Browser(served.url)
    yield made
    made.http.close()


@pytest.fixture(scope="module")
def uploaded(browser: Browser) -> dict[str, Any]:
    """The answers after a good file was uploaded."""
    return browser.uploaded(CSV.encode())


def _alert(response: httpx.Response) -> str:
    found = re.search(r'<p class="trouble" role="alert"[^>]*>(.*?)</p>', response.text, re.S)
    return html.unescape(found[1]) if found else ""


def test_from_a_file_to_an_active_policy_with_the_beliefs_of_its_history(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    answers = browser.uploaded(CSV.encode())
    assert answers["segment"] == ["region"]
    assert answers["accepted"] == ["approved"]
    assert answers["outcome_means"] == ["yes:1", "no:0"]
    assert answers["time"] == ["decided"]
    beliefs = browser.http.get("/new/beliefs", params=answers)
    assert "1 row not used: an outcome on a rejection." in beliefs.text
    assert "1 row not used: no segment." in beliefs.text
    assert "The past chose whom to accept: 37 of 43 (86 %)" in beliefs.text
    assert "1 of 3 segments has no outcome at all" in beliefs.text
    shown = browser.http.get("/new/objective", params={**browser.answers(beliefs), "model": "independent"})
    answers = {**browser.answers(shown), **OBJECTIVE}
    panel = browser.http.get("/new/starting", params=answers).text
    assert all(words in panel for words in ("1 start", "2 never", "accept", "never starts"))
    check = browser.http.get("/new/check", params=answers)
    assert "A new policy." in check.text
    assert "awaited outcome" not in check.text
    money = {"known": "money", "gain": "250.5", "loss": "750", "outcome_means": ["yes:1", "no:0"]}
    young = browser.http.get("/new/check", params={**answers, **money, "maturity": "25", "as_of": "2024-03-31"}).text
    assert "4 awaited outcomes of the past do not count against the limits" in young
    assert "1,000.5 in your money: a success earns 250.5, a failure loses 750." in young
    answers = browser.answers(check)
    replayed = " ".join(browser.http.get("/new/past", params=answers).text.split())
    assert "beliefs from the <strong>18 outcomes known by 2024-01-19</strong> alone" in replayed
    assert "deciding the <strong>19 past applicants since</strong>" in replayed
    assert "The 6 whom the past rejected in that time have no outcome" in replayed
    undated = browser.http.get("/new/past", params={**answers, "time": ""}).text
    assert "rows have no date (step 2), so they cannot be divided" in html.unescape(undated)
    replayed = browser.http.get("/new/past", params={**answers, "cold": "true"}).text
    assert "The 37 past applicants with a known outcome" in replayed
    assert "The 6 whom the past rejected have no outcome" in replayed
    made = browser.post("/new/create", **answers, state="active")
    assert (made.status_code, made.headers["location"]) == (303, "/policies/loans?version=1")

    file = tmp_path / "past.csv"
    file.write_text(CSV)
    history = lenience.fit_history(file, "region", "approved", "repaid", "decided")
    with served.client() as client:
        policy = client.policy("loans")
    assert policy["state"] == "active"
    told = policy["specification"]["segments"]
    assert {one["name"]: Belief(**one["prior"]) for one in told} == history.beliefs()
    assert {one["name"]: one["share"] for one in told} == history.shares()
    # The file is used up: the form cannot be sent twice.
    again = browser.post("/new/create", **answers, state="active")
    assert again.status_code == 404
    assert "not kept any more" in again.text
    # The same name again becomes its next version, and the page says so.
    answers = {**browser.uploaded(CSV.encode()), **OBJECTIVE, "model": "shared"}
    assert "this becomes its version 2" in browser.http.get("/new/check", params=answers).text
    made = browser.post("/new/create", **answers, state="draft")
    assert made.headers["location"] == "/policies/loans?version=2"
    with served.client() as client:
        assert client.policy("loans")["version"] == 1
        priors = [one["prior"] for one in client.policy("loans", 2)["specification"]["segments"]]
    counted = list(history.segments)
    sizes, good = lenience.Shared(3).priors([row.n for row in counted], [row.s for row in counted])
    assert [one["n"] for one in priors] == pytest.approx([a + row.n for a, row in zip(sizes, counted, strict=True)])
    assert [one["s"] for one in priors] == pytest.approx([a + row.s for a, row in zip(good, counted, strict=True)])


def test_a_heading_that_is_repeated_is_no_segment(browser: Browser) -> None:
    lines = CSV.splitlines(keepends=True)
    answers = browser.uploaded("".join([*lines[:5], HEADING, *lines[5:], HEADING]).encode())
    assert "bad:repaid" not in answers["outcome_means"]
    shown = browser.http.get("/new/beliefs", params=answers).text
    assert "2 rows left out: the heading once more." in shown
    assert "<dt>Segments</dt><dd>3" in re.sub(r"\s*<(?=d)", "<", shown)


def test_dates_that_cannot_be_do_not_stretch_the_years(browser: Browser) -> None:
    days = [f"{2021 + i // 366}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(1098)]
    rows = [f"north,yes,{i % 2},{day}\n" for i, day in enumerate(days)]
    odd = [f"north,yes,1,{day}\n" for day in ("2062-05-01", "1970-01-01", "1970-01-01")]
    answers = {**browser.uploaded((HEADING + "".join([*rows, *odd])).encode()), "model": "independent"}
    shown = browser.answers(browser.http.get("/new/objective", params=answers))
    assert float(shown["arrivals"][0]) == pytest.approx(366, rel=0.03)
    # Counted as of a day, the later rows are left out, and the replay leaves them out too.
    answers = {**answers, **OBJECTIVE, "as_of": "2021-12-31"}
    assert "left out: decided after 2021-12-31." in browser.http.get("/new/beliefs", params=answers).text
    assert (
        "The 368 past applicants with a known outcome"
        in browser.http.get("/new/past", params={**answers, "cold": "true"}).text
    )


def test_what_a_lenders_columns_mean_is_guessed(browser: Browser) -> None:
    days = ["2024-01-05", "05.01.2024", "n/a", "2024-02-30", "2024-03-01T08:00"]
    rows = [f"{'fm'[i % 2]},{day},north,yes,{i % 2},1980-01-01\n" for i, day in enumerate(days * 300)]
    heading = "gender,application_date,region,approved,repaid,date_of_birth\n"
    sent = browser.upload((heading + "".join(rows)).encode())
    shown = browser.http.get(sent.headers["location"])
    answers = browser.answers(shown)
    assert (answers["segment"], answers["group"], answers["time"]) == (["region"], [""], ["application_date"])
    assert "in the first 1,000 rows" in shown.text
    assert "never decided by" not in shown.text
    assert "may be unlawful" in shown.text
    assert browser.http.get("/new/beliefs", params=answers).status_code == 200


def test_a_score_in_bands_opens_the_curve(browser: Browser, tmp_path: Path) -> None:
    rates = {"300-499": 3, "500-649": None, "650-850": 9, "n/a": 5}
    rows = [f"{band},{'no' if good is None else 'yes'},{'' if good is None else int(i < good)}\n"
            for band, good in rates.items() for i in range(10)]  # fmt: skip
    text = "score_band,approved,repaid\n" + "".join(rows)
    answers = browser.uploaded(text.replace("n/a", "300-499").encode())
    assert (answers["segment"], answers["score"]) == (["score_band"], ["score_band"])
    created = {**answers, **OBJECTIVE, "model": "curve", "name": "banded"}
    assert browser.post("/new/create", **created, state="draft").status_code == 303
    file = tmp_path / "past.csv"
    file.write_text(text.replace("n/a", "300-499"))
    history = lenience.fit_history(file, "score_band", "approved", "repaid")
    wanted = beliefs_of_history(history, "curve", score=["score_band"]).beliefs
    told = browser.http.get("/v1/policies/banded?version=1").json()["specification"]["segments"]
    assert {one["name"]: one["prior"]["s"] for one in told} == pytest.approx({k: b.s for k, b in wanted.items()})
    refused = browser.http.get("/new/beliefs", params={**browser.uploaded(text.encode()), "score": "score_band"})
    assert "or bands such as '300-499', and the segment 'n/a' has none" in _alert(refused)


def test_a_score_that_is_cut_into_bands_is_sent_as_a_number(browser: Browser, served: Served) -> None:
    rows = "".join(f"{500 + i},{'ns'[i % 2]},{int(i % 9 > 0)}\n" for i in range(100))
    answers = browser.uploaded(("score,region,repaid\n" + rows).encode())
    assert answers["bands:score"] == ["5"]  # usual for many different numbers, once the column is ticked
    shown = browser.http.get("/new/bands", params={**answers, "of": "score", "bands:score": "2"}).text
    assert "would make 2 bands" in shown
    assert all(name in html.unescape(shown) for name in ("score<550", "score>=550"))
    told = browser.http.get("/new/bands", params={**answers, "of": "score", "bands:score": "x"}).text
    assert "must be how many there are to be" in html.unescape(told)
    answers = {**answers, **OBJECTIVE, "name": "cut", "segment": ["score", "region"], "bands:score": "550,"}
    check = browser.http.get("/new/check", params=answers)
    assert '"features": {"score": 550, "region": "n"}' in html.unescape(check.text)
    assert "share of one applicant" in browser.http.get("/new/beliefs", params=answers).text
    made = browser.post("/new/create", **browser.answers(check), state="active")
    assert made.status_code == 303, made.text
    with served.client() as client:
        decided = client.decide("cut", features={"score": 549.5, "region": "s"})
    assert decided["segment"] == "score<550, region=s"
    assert (decided["belief"]["n"], decided["cost"]) == (27, 0.8)
    again = browser.uploaded(("score,region,repaid\n" + rows).encode())
    cut = {"segment": ["score", "region"], "name": "cut", "bands:score": "550,"}
    assert "new to cut" not in browser.http.get("/new/check", params={**again, **OBJECTIVE, **cut}).text
    cut["bands:score"] = "550, 580"
    told = browser.http.get("/new/check", params={**again, **OBJECTIVE, **cut}).text
    assert "6 of its 9 segments are new to cut" in told  # the lowest band is the same
    page = browser.http.get("/policies/cut").text
    assert 'name="feature:score"' in page
    sent = browser.post("/policies/cut/decide", **{"feature:score": "612", "feature:region": "n"})
    seen = browser.http.get(sent.headers["location"]).text
    assert "score&gt;=550, region=n" in seen
    wrong = browser.post("/policies/cut/decide", **{"feature:score": "high", "feature:region": "n"})
    assert wrong.status_code == 400
    assert re.search(
        r'name="feature:score"[^>]* value="high" aria-invalid="true" aria-describedby="hand-wrong"', wrong.text
    )
    assert 'role="alert">Score must be a number that is finite, not &#39;high&#39;.</small>' in wrong.text
    assert "<option selected>n</option>" in wrong.text
    once = {"feature:score": "612", "feature:region": "n", "reference": "application 9"}
    assert browser.post("/policies/cut/decide", **once).status_code == 303
    twice = browser.post("/policies/cut/decide", **once)
    assert (twice.status_code, "Decided before at" in twice.text, "as <strong>accept" in twice.text) == (
        409,
        True,
        True,
    )
    kept = browser.answers(httpx.Response(200, text=twice.text))
    assert (kept["reference"], kept["feature:score"]) == (["application 9"], ["612"])
    assert browser.post("/policies/cut/decide", **once, again=kept["again"][0]).status_code == 303


def test_a_form_of_another_site_is_refused(browser: Browser) -> None:
    for path in ("/new/file", "/new/segments", "/new/create"):
        assert browser.http.post(path, data={"token": "no", "segments": "a"}).status_code == 403, path
    assert browser.http.post("/new/file", files={"file": ("a.csv", CSV.encode())}).status_code == 403


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \n", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "not a CSV in UTF-8"),
        ("gr\xf6\xdfe,a\n1,2\n".encode("latin-1"), "not a CSV in UTF-8"),
        (b"a,b\n\x00,1\n", "the file is no CSV"),
        (b"PK\x03\x04rest", "an Excel workbook"),
        (b"PAR1 and then nothing", "begins as Parquet"),
        (b"just one column\n1\n2\n", "only one column"),
        (b"a,b,a\n1,2,3\n", "'a' is there twice"),
        (b"a,,b\n1,2,3\n", "column 2 has none"),
        (b"region,approved,repaid\n", "no rows below it"),
        (
            b"a,b,c\n" + b"1,2,3\n" * 50 + b"1,2,3,4,5\n" + b"1,2,3\n" * 50,
            "at line 52, which has more values than the heading's 3",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(browser: Browser, content: bytes, said: str) -> None:
    answer = browser.upload(content, "odd <name>.csv")
    assert answer.status_code == 400
    assert said in _alert(answer)
    assert _alert(answer).count(".") - _alert(answer).count(".csv") == 1
    assert "<name>" not in answer.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"segment": "nowhere"}, "The file has no column 'nowhere'"),
        ({"segment": ()}, "Choose at least one column"),
        ({"outcome": ""}, "Choose the column that says what became of the accepted"),
        ({"outcome": "region"}, "cannot mean two things"),
        ({"outcome_means": ("yes:1", "yes:0")}, "which value of 'repaid' means a failure"),
        ({"outcome_means": ("yes:7", "no:8")}, "No outcome is known"),
        ({"accepted_means": ("bad:yes",)}, "means that someone was accepted"),
        ({"maturity": "nan"}, "The days until an outcome is certain must be a number"),
        ({"maturity": "30", "time": ""}, "Choose the column of the date"),
        ({"as_of": "soon"}, "The date of the count must be a date such as 2024-12-31, not 'soon'"),
        ({"as_of": "2024-03-01", "time": ""}, "Choose the column of the date"),
        ({"maturity": "9999"}, "No outcome is known"),
        ({"group": "approved"}, "has members of 2 groups"),
        ({"score": "approved"}, "must hold numbers"),
        ({"model": "curve"}, "A curve needs a score"),
        ({"model": "magic"}, "The model must be one of"),
        ({"cost": "nan"}, "The break-even success rate in per cent must be"),
        ({"cost": ""}, "The break-even success rate in per cent is missing"),
        ({"known": "money", "gain": "0", "loss": "5"}, "The gain of a success must be a number above 0"),
        ({"discount": "1"}, "The discount must be a number from 0 to below 1"),
        ({"future": "yearly", "arrivals": "-1", "rate": "10"}, "The number of applicants a year must be"),
        ({"delay": "90"}, "need applicants and a discount rate a year"),
        ({"floor": "100"}, "The exploration floor in per cent must be"),
        ({"cap": "1.5"}, "must be a whole number"),
        ({"expiry": "0"}, "must be a number above 0"),
        ({"name": ""}, "Give the policy a name"),
        ({"name": "../etc"}, "Letters, digits, dots"),
        ({"name": "my new cards"}, "no spaces: 'my new cards' could be 'my-new-cards'"),
        ({"cost": "0.85"}, "would be 0.85 %: type 85 for 85 %, or 0.85 % if that is meant"),
        ({"floor": "0.05"}, "would be 0.05 %: type 5 for 5 %"),
        ({"future": "yearly", "arrivals": "9", "rate": "0.05"}, "would be 0.05 %: type 5 for 5 %"),
        ({"future": "yearly", "arrivals": "9", "rate": "1000"}, "100 % is the most; type 10 for 10 % a year"),
    ],
)
def test_an_answer_that_cannot_be_used_gets_a_sentence(
    browser: Browser, uploaded: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    params = {name: value for name, value in {**uploaded, **OBJECTIVE, **change}.items() if value}
    answer = browser.http.get("/new/check", params=params)
    assert answer.status_code == 400, answer.text
    assert said in _alert(answer)
    if change.get("model") or change.get("name") or "cost" in change:
        refused = browser.post("/new/create", **params, state="active")
        assert refused.status_code == 400
        assert said in _alert(refused)


def test_half_of_the_days_until_an_outcome_is_certain_is_taken_for_their_mean(
    browser: Browser, uploaded: dict[str, Any]
) -> None:
    answers = {**uploaded, "maturity": "20", "model": "independent"}
    shown = browser.http.get("/new/objective", params=answers)
    filled = browser.answers(shown)
    assert (filled["delay"], "10 is half of the 20 of step 2" in shown.text) == (["10"], True)
    assert browser.http.get("/new/check", params={**filled, **OBJECTIVE}).status_code == 200
    assert "never" not in re.findall('placeholder="([^"]*)"', shown.text)
    late = {**answers, **OBJECTIVE, "future": "yearly", "arrivals": "90", "rate": "0.5", "delay": "20", "name": "late"}
    panel = " ".join(browser.http.get("/new/starting", params=late).text.split())
    assert "each segment (3 in all) takes up to about 60 seconds to solve" in panel
    assert "given up after 60 days" in panel
    check = " ".join(browser.http.get("/new/check", params=late).text.split())
    assert "<dt>Outcomes given up after</dt><dd>60 days" in check
    assert "starts from all of the history" in check
    assert "60 seconds for each segment, of which there are 3" in check
    # What the form filled in stands in no one's way who takes a discount instead, and once emptied it stays empty.
    assert browser.http.get("/new/check", params={**late, **OBJECTIVE, "usual": "20"}).status_code == 200
    again = browser.http.get("/new/objective", params={**late, "delay": ""})
    assert browser.answers(again)["delay"] == [""]


def test_a_policy_too_large_to_solve_says_what_to_change(browser: Browser) -> None:
    late = {"future": "yearly", "arrivals": "1e9", "rate": "1", "delay": "900", "name": "late"}
    answers = {**browser.uploaded(CSV.encode()), **OBJECTIVE, **late}
    refused = browser.post("/new/create", **answers, state="draft")
    assert refused.status_code == 400
    said = _alert(refused)
    assert "Type fewer applicants a year, fewer days until outcomes are known or a higher discount rate here" in said
    assert "ask for" not in said


def test_a_file_that_is_not_known_gets_a_page(browser: Browser) -> None:
    for token in ("", "A" * 32, "../../etc/passwd", "x" * 5000):
        for step in ("columns", "beliefs", "objective", "check", "starting", "past", "values"):
            answer = browser.http.get(f"/new/{step}", params={"file": token})
            assert answer.status_code in (400, 404), (step, token)
            assert "Internal" not in answer.text


def test_more_segments_than_the_service_allows_are_refused_and_a_thousand_are_not(browser: Browser) -> None:
    def many(count: int) -> bytes:
        return (HEADING + "".join(f"r{i},yes,{i % 2},2024-01-01\n" for i in range(count))).encode()

    answers = {**browser.uploaded(many(1_001)), "segment": "region"}
    answer = browser.http.get("/new/beliefs", params=answers)
    assert answer.status_code == 400
    assert "1,001 segments by 'region', and a policy may have 1,000" in _alert(answer)
    answers = {**browser.uploaded(many(1_000)), "segment": "region"}
    answer = browser.http.get("/new/beliefs", params=answers)
    assert answer.status_code == 200
    assert "The largest 100 of 1,000 segments are shown" in answer.text
    listed = browser.post("/new/segments", segments="\n".join(f"s{i}" for i in range(1_001)))
    assert "A policy may have 1,000 segments" in _alert(listed)


def test_hostile_names_stay_text(browser: Browser, served: Served) -> None:
    column, segment = "<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>'; DROP TABLE past; --"
    quoted = segment.replace('"', '""')
    text = f'{column},took,repaid\n"{quoted}",1,1\n"{quoted}",1,0\nplain,0,\n'
    answers = {**browser.uploaded(text.encode()), "segment": column, "accepted": "took", "name": "odd"}
    answers["accepted_means"] = ["yes:1", "no:0"]
    answers = {**answers, **OBJECTIVE, "name": "odd"}
    for step in ("columns", "values", "beliefs", "objective", "starting", "check", "past"):
        shown = browser.http.get(f"/new/{step}", params=answers)
        assert shown.status_code == 200, shown.text
        assert "<script>alert" not in shown.text
        assert "<img src=x" not in shown.text
    made = browser.post("/new/create", **answers, state="active")
    assert made.status_code == 303, made.text
    with served.client() as client:
        assert segment in [one["name"] for one in client.policy("odd")["specification"]["segments"]]


def test_uploads_may_be_larger_than_other_requests_up_to_a_limit(browser: Browser, served: Served) -> None:
    def announced(path: str, kind: str, size: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        connection.putrequest("POST", path)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
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
    assert browser.upload(padded.encode()).status_code == 303


def test_a_hundred_thousand_rows_of_parquet(browser: Browser) -> None:
    rows = 100_000
    rng = np.random.default_rng(5)
    accepted = rng.random(rows) < 0.7
    outcome = [bool(good) if taken else None for taken, good in zip(accepted, rng.random(rows) < 0.8, strict=True)]
    region = rng.choice(["a", "b", "c"], rows)
    score = rng.normal(600, 50, rows)
    score[::100] = np.nan
    table = pa.table({"region": region, "accepted": accepted, "repaid": outcome, "score": score})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    answers = browser.uploaded(sink.getvalue())
    assert answers["outcome_means"] == ["yes:true", "no:false"]
    answers = {**answers, **OBJECTIVE, "model": "curve", "name": "wide"}
    shown = browser.http.get("/new/beliefs", params=answers)
    assert "100,000" in shown.text
    assert f"{int(accepted.sum()):,}" in shown.text
    assert (
        f"The {int(accepted.sum()):,} past applicants"
        in browser.http.get("/new/past", params={**answers, "cold": "true"}).text
    )


def test_a_small_file_with_very_many_rows_is_refused(browser: Browser) -> None:
    sink = io.BytesIO()
    flags = pa.array(np.ones(3_000_001, dtype=bool))
    pq.write_table(pa.table({"accepted": flags, "repaid": flags, "region": flags}), sink)
    assert len(sink.getvalue()) < 1 << 20
    answer = browser.upload(sink.getvalue())
    assert answer.status_code == 400
    assert "3,000,001 rows and 3 columns" in _alert(answer)


def test_without_history(browser: Browser, served: Served) -> None:
    refused = browser.post("/new/segments", segments="a 60")
    assert (refused.status_code, "Write “a, 60” if 60 % is the share" in _alert(refused)) == (400, True)
    sent = browser.post("/new/segments", segments="old, 75 %\nnew", expected="70", worth="10")
    assert sent.headers["location"].startswith("/new/objective?file=")
    answers = {**browser.answers(browser.http.get(sent.headers["location"])), **OBJECTIVE, "name": "by-hand"}
    assert "/new/past" not in browser.http.get("/new/check", params=answers).text
    assert browser.http.get("/new/columns", params=answers).status_code == 400
    made = browser.post("/new/create", **answers, state="active")
    assert made.status_code == 303, made.text
    with served.client() as client:
        told = client.policy("by-hand")["specification"]["segments"]
    assert [(one["name"], one["share"], one["prior"]) for one in told] == [
        ("old", 0.75, {"n": 10.0, "s": 7.0}),
        ("new", 0.25, {"n": 10.0, "s": 7.0}),
    ]
