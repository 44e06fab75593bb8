"""The guided form for a new policy, as a browser walks it: against a service that runs."""

from __future__ import annotations

import html
import io
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lenience
from lenience.core.belief import Belief
from lenience.history.beliefs import beliefs_of_history
from lenience.simulation import LoanBook
from new_policies import CSV, HEADING, OBJECTIVE, Browser, alert
from serving import Served


def test_from_a_file_to_an_active_policy_with_the_beliefs_of_its_history(
    clerk: Browser, forms: Served, tmp_path: Path
) -> None:
    answers = clerk.uploaded(CSV.encode())
    assert answers["segment"] == ["region"]
    assert answers["accepted"] == ["approved"]
    assert answers["outcome_means"] == ["yes:1", "no:0"]
    assert answers["time"] == ["decided"]
    beliefs = clerk.http.get("/new/beliefs", params=answers)
    assert "1 row not used: an outcome on a rejection." in beliefs.text
    assert "1 row not used: no segment." in beliefs.text
    assert "37 of 43 past applicants (86%)" in beliefs.text
    assert "1 of 3 segments has no outcome" in beliefs.text
    shown = clerk.http.get("/new/objective", params={**clerk.answers(beliefs), "model": "own"})
    answers = {**clerk.answers(shown), **OBJECTIVE}
    panel = clerk.http.get("/new/starting", params=answers).text
    assert all(words in panel for words in ("1 start", "2 never", "accept", "never starts"))
    check = clerk.http.get("/new/check", params=answers)
    assert "This is a new policy." in check.text
    assert "not carried over" not in check.text
    money = {"known": "money", "gain": "250.5", "loss": "750", "outcome_means": ["yes:1", "no:0"]}
    young = clerk.http.get("/new/check", params={**answers, **money, "maturity": "25", "as_of": "2024-03-31"}).text
    assert "4 pending outcomes in the file are not carried over" in young
    assert "1,000.5 in your currency: a success earns 250.5, a failure loses 750." in young
    answers = clerk.answers(check)
    tested = " ".join(clerk.http.get("/new/past", params=answers).text.split())
    assert "only the <strong>18 outcomes known by 2024-01-19</strong>" in tested
    assert "the <strong>19 past applicants since then</strong>" in tested
    assert "The 6 applicants rejected in the past in that time have no outcome" in tested
    undated = clerk.http.get("/new/past", params={**answers, "time": ""}).text
    assert "The back-test needs dates" in html.unescape(undated)
    tested = clerk.http.get("/new/past", params={**answers, "cold": "true"}).text
    assert "the 37 past applicants with a known outcome" in tested
    assert "The 6 applicants rejected in the past have no outcome" in tested
    made = clerk.post("/new/create", **answers, state="active")
    with forms.client() as client:
        origin = client.policy("loans")["versions"][-1]["origin"]
    assert (origin["file"], origin["digest"]) == ("past.csv", sha256(CSV.encode()).hexdigest())
    assert (origin["rows"], origin["left_out"], origin["columns"]["segment"]) == (43, 2, "region")
    assert (made.status_code, made.headers["location"]) == (303, "/policies/loans?version=1")

    file = tmp_path / "past.csv"
    file.write_text(CSV)
    history = lenience.fit_history(file, "region", "approved", "repaid", "decided")
    with forms.client() as client:
        policy = client.policy("loans")
    assert policy["state"] == "active"
    told = policy["specification"]["segments"]
    assert {one["name"]: Belief(**one["prior"]) for one in told} == history.beliefs()
    assert {one["name"]: one["share"] for one in told} == history.shares()
    # The file is used up: the form cannot be sent twice.
    again = clerk.post("/new/create", **answers, state="active")
    assert again.status_code == 404
    assert "has been deleted" in again.text
    # The same name again becomes its next version, and the page says so.
    answers = {**clerk.uploaded(CSV.encode()), **OBJECTIVE, "model": "shared"}
    assert "This becomes version 2" in clerk.http.get("/new/check", params=answers).text
    made = clerk.post("/new/create", **answers, state="draft")
    assert made.headers["location"] == "/policies/loans?version=2"
    with forms.client() as client:
        assert client.policy("loans")["version"] == 1
        priors = [one["prior"] for one in client.policy("loans", 2)["specification"]["segments"]]
    counted = list(history.segments)
    sizes, good = lenience.models.Shared(3).priors([row.n for row in counted], [row.s for row in counted])
    assert [one["n"] for one in priors] == pytest.approx([a + row.n for a, row in zip(sizes, counted, strict=True)])
    assert [one["s"] for one in priors] == pytest.approx([a + row.s for a, row in zip(good, counted, strict=True)])


def test_pending_outcomes_count_by_age(clerk: Browser) -> None:
    """The warning offers it, the figures show it, and the policy starts with these beliefs."""
    columns = LoanBook({"A": 0.9, "B": 0.7}, loans=300).draw(seed=1)
    rows = zip(*({**columns, "granted": ["yes"] * 600}.values()), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    answers = clerk.uploaded("\n".join([",".join(columns), *lines]).encode())
    assert (answers["time"], answers["outcome_time"]) == (["decided"], ["closed"])
    assert "maturing" not in answers
    shown = clerk.http.get("/new/beliefs", params=answers)
    assert "Immature outcomes." in shown.text
    [offer] = re.findall(r'href="(/new/beliefs[^"]*maturing=yes)"', shown.text)
    matured = clerk.http.get(html.unescape(offer))
    assert "Immature outcomes." not in matured.text
    assert matured.text.count('aria-label="When outcomes become known') == 2  # wide and narrow
    answers = clerk.answers(matured)
    assert answers["maturing"] == ["yes"]
    history = lenience.fit_history(
        columns, "grade", "granted", "status", "decided", outcome_time="closed", maturing="learn"
    )
    objective = clerk.http.get("/new/objective", params={**answers, "model": "own"})
    assert clerk.answers(objective)["arrivals"] == [str(history.last_year)]
    made = clerk.post("/new/create", **{**clerk.answers(objective), **OBJECTIVE, "name": "aged"}, state="draft")
    assert made.status_code == 303, made.text
    specification = clerk.http.get("/v1/policies/aged?version=1").json()["specification"]
    priors = {one["name"]: Belief(**one["prior"]) for one in specification["segments"]}
    assert priors == history.beliefs()


def test_maturing_needs_both_dates(clerk: Browser, uploaded: dict[str, Any]) -> None:
    everyone = {"accepted": "*everyone*", "segment": "approved"}  # so that the region is free for another role
    for change, field in (
        ({"maturing": "yes"}, "outcome_time"),
        ({"maturing": "yes", "outcome_time": "decided", "time": ""}, "outcome_time"),
        ({"maturing": "yes", "outcome_time": "region", "maturity": "30", **everyone}, "maturity"),
    ):
        shown = clerk.http.get("/new/beliefs", params={**uploaded, **change})
        assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', shown.text), field


def test_an_excel_file_with_ambiguous_dates(clerk: Browser) -> None:
    book = openpyxl.Workbook()
    book.active.append(["nothing here"])
    sheet = book.create_sheet("Loans")
    for row in [
        HEADING.strip().split(","),
        *([name, "yes", i % 2, f"0{1 + i % 9}/0{1 + i % 7}/2024"] for i, name in enumerate(["north", "south"] * 20)),
    ]:
        sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    sent = clerk.http.post(
        "/new/file",
        data={"token": clerk.token, "sheet": "Loans"},
        files={"file": ("past.xlsx", content.getvalue())},
    )
    assert sent.status_code == 303, alert(sent)
    answers = clerk.answers(clerk.http.get(sent.headers["location"]))
    assert answers["time"] == ["decided"]
    asked = clerk.http.get("/new/beliefs", params=answers)
    assert (asked.status_code, "Choose whether the day or the month comes first" in alert(asked)) == (400, True)
    assert re.search(r'name="dates"[^>]*aria-invalid="true"', asked.text)
    for order, last in (("mdy", "2024-09"), ("dmy", "2024-07")):
        shown = clerk.http.get("/new/beliefs", params={**answers, "dates": order})
        assert f"Counted as of {last}" in shown.text
    wrong = clerk.http.post(
        "/new/file", data={"token": clerk.token, "sheet": "Loan"}, files={"file": ("past.xlsx", content.getvalue())}
    )
    assert (wrong.status_code, "Did you mean" in alert(wrong)) == (400, True)


def test_a_heading_that_is_repeated_is_no_segment(clerk: Browser) -> None:
    lines = CSV.splitlines(keepends=True)
    answers = clerk.uploaded("".join([*lines[:5], HEADING, *lines[5:], HEADING]).encode())
    assert "bad:repaid" not in answers["outcome_means"]
    shown = clerk.http.get("/new/beliefs", params=answers).text
    assert "2 rows left out: they repeat the heading." in shown
    assert "<dt>Segments</dt><dd>3" in re.sub(r"\s*<(?=d)", "<", shown)


def test_dates_that_cannot_be_do_not_stretch_the_years(clerk: Browser) -> None:
    days = [f"{2021 + i // 366}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(1098)]
    rows = [f"north,yes,{i % 2},{day}\n" for i, day in enumerate(days)]
    odd = [f"north,yes,1,{day}\n" for day in ("2062-05-01", "1970-01-01", "1970-01-01")]
    answers = {**clerk.uploaded((HEADING + "".join([*rows, *odd])).encode()), "model": "own"}
    shown = clerk.answers(clerk.http.get("/new/objective", params=answers))
    assert float(shown["arrivals"][0]) == pytest.approx(366, rel=0.03)
    # Counted as of a day, the later rows are left out, and the back-test leaves them out too.
    answers = {**answers, **OBJECTIVE, "as_of": "2021-12-31"}
    assert "left out: decided after 2021-12-31." in clerk.http.get("/new/beliefs", params=answers).text
    assert (
        "the 368 past applicants with a known outcome"
        in clerk.http.get("/new/past", params={**answers, "cold": "true"}).text
    )


def test_what_a_lenders_columns_mean_is_guessed(clerk: Browser) -> None:
    days = ["2024-01-05", "05.01.2024", "n/a", "2024-02-30", "2024-03-01T08:00"]
    rows = [f"{'fm'[i % 2]},{day},north,yes,{i % 2},1980-01-01\n" for i, day in enumerate(days * 300)]
    heading = "gender,application_date,region,approved,repaid,date_of_birth\n"
    sent = clerk.upload((heading + "".join(rows)).encode())
    shown = clerk.http.get(sent.headers["location"])
    answers = clerk.answers(shown)
    assert (answers["segment"], answers["group"], answers["time"]) == (["region"], [""], ["application_date"])
    assert "in the first 1,000 rows" in shown.text
    assert "never decided by" not in shown.text
    assert clerk.http.get("/new/beliefs", params=answers).status_code == 200
    by_gender = {**answers, "segment": ["gender"]}
    assert "Decisions would differ by gender" in alert(clerk.http.get("/new/beliefs", params=by_gender))
    allowed = {**by_gender, "decide_by_protected": "yes", **OBJECTIVE, "name": "by-gender"}
    assert clerk.http.get("/new/beliefs", params=allowed).status_code == 200
    assert clerk.post("/new/create", **allowed, state="draft").status_code == 303
    made = clerk.http.get("/v1/policies/by-gender?version=1").json()["specification"]
    assert (made["decide_by_protected"], made["protected"]) == (True, ["gender"])


def test_a_score_in_bands_opens_the_curve(clerk: Browser, tmp_path: Path) -> None:
    rates = {"300-499": 3, "500-649": None, "650-850": 9, "n/a": 5}
    rows = [f"{band},{'no' if good is None else 'yes'},{'' if good is None else int(i < good)}\n"
            for band, good in rates.items() for i in range(10)]  # fmt: skip
    text = "score_band,approved,repaid\n" + "".join(rows)
    answers = clerk.uploaded(text.replace("n/a", "300-499").encode())
    assert (answers["segment"], answers["score"]) == (["score_band"], ["score_band"])
    created = {**answers, **OBJECTIVE, "model": "curve", "name": "banded"}
    assert clerk.post("/new/create", **created, state="draft").status_code == 303
    file = tmp_path / "past.csv"
    file.write_text(text.replace("n/a", "300-499"))
    history = lenience.fit_history(file, "score_band", "approved", "repaid")
    wanted = beliefs_of_history(history, "curve", score=["score_band"]).beliefs
    told = clerk.http.get("/v1/policies/banded?version=1").json()["specification"]["segments"]
    assert {one["name"]: one["prior"]["s"] for one in told} == pytest.approx({k: b.s for k, b in wanted.items()})
    refused = clerk.http.get("/new/beliefs", params={**clerk.uploaded(text.encode()), "score": "score_band"})
    assert "or a band such as '20 to 50', not 'n/a'" in alert(refused)


def test_a_score_that_is_cut_into_bands_is_sent_as_a_number(clerk: Browser, forms: Served) -> None:
    rows = "".join(f"{500 + i},{'ns'[i % 2]},{int(i % 9 > 0)}\n" for i in range(100))
    answers = clerk.uploaded(("score,region,repaid\n" + rows).encode())
    assert answers["bands:score"] == ["5"]  # usual for many different numbers, once the column is ticked
    shown = clerk.http.get("/new/bands", params={**answers, "of": "score", "bands:score": "2"}).text
    assert "makes 2 bands" in shown
    assert all(name in html.unescape(shown) for name in ("score<550", "score>=550"))
    told = clerk.http.get("/new/bands", params={**answers, "of": "score", "bands:score": "x"}).text
    assert "must be a number of bands" in html.unescape(told)
    answers = {**answers, **OBJECTIVE, "name": "cut", "segment": ["score", "region"], "bands:score": "550,"}
    check = clerk.http.get("/new/check", params=answers)
    assert '"features": {"score": 550, "region": "n"}' in html.unescape(check.text)
    assert "share of one applicant" in clerk.http.get("/new/beliefs", params=answers).text
    made = clerk.post("/new/create", **clerk.answers(check), state="active")
    assert made.status_code == 303, made.text
    with forms.client() as client:
        decided = client.decide("cut", features={"score": 549.5, "region": "s"})
    assert decided["segment"] == "score<550, region=s"
    assert (decided["belief"]["n"], decided["cost"]) == (27, 0.8)
    again = clerk.uploaded(("score,region,repaid\n" + rows).encode())
    cut = {"segment": ["score", "region"], "name": "cut", "bands:score": "550,"}
    assert "new to cut" not in clerk.http.get("/new/check", params={**again, **OBJECTIVE, **cut}).text
    cut["bands:score"] = "550, 580"
    told = clerk.http.get("/new/check", params={**again, **OBJECTIVE, **cut}).text
    assert "6 of 9 segments are new to cut" in told  # the lowest band is the same
    page = clerk.http.get("/policies/cut").text
    assert 'name="feature:score"' in page
    sent = clerk.post("/policies/cut/decide", **{"feature:score": "612", "feature:region": "n"})
    seen = clerk.http.get(sent.headers["location"]).text
    assert "score&gt;=550, region=n" in seen
    wrong = clerk.post("/policies/cut/decide", **{"feature:score": "high", "feature:region": "n"})
    assert wrong.status_code == 400
    assert re.search(
        r'name="feature:score"[^>]* value="high" aria-invalid="true" aria-describedby="hand-wrong"', wrong.text
    )
    assert 'role="alert">Score must be a number that is finite, not &#39;high&#39;.</small>' in wrong.text
    assert "<option selected>n</option>" in wrong.text
    once = {"feature:score": "612", "feature:region": "n", "reference": "application 9"}
    assert clerk.post("/policies/cut/decide", **once).status_code == 303
    twice = clerk.post("/policies/cut/decide", **once)
    assert (twice.status_code, "already decided at" in twice.text, "<strong>accept" in twice.text) == (
        409,
        True,
        True,
    )
    kept = clerk.answers(httpx.Response(200, text=twice.text))
    assert (kept["reference"], kept["feature:score"]) == (["application 9"], ["612"])
    assert clerk.post("/policies/cut/decide", **once, again=kept["again"][0]).status_code == 303


def test_half_of_the_days_until_an_outcome_is_certain_is_taken_for_their_mean(
    clerk: Browser, uploaded: dict[str, Any]
) -> None:
    answers = {**uploaded, "maturity": "20", "model": "own"}
    shown = clerk.http.get("/new/objective", params=answers)
    filled = clerk.answers(shown)
    assert (filled["delay"], "10 is half of the 20 days of step 2" in shown.text) == (["10"], True)
    assert clerk.http.get("/new/check", params={**filled, **OBJECTIVE}).status_code == 200
    assert "never" not in re.findall('placeholder="([^"]*)"', shown.text)
    late = {**answers, **OBJECTIVE, "future": "yearly", "arrivals": "90", "rate": "0.5", "delay": "20", "name": "late"}
    panel = " ".join(clerk.http.get("/new/starting", params=late).text.split())
    assert "each of 3 segments takes up to about 60 seconds to solve" in panel
    assert "expire after 60 days" in panel
    check = " ".join(clerk.http.get("/new/check", params=late).text.split())
    assert "<dt>Outcomes expire after</dt><dd>60 days" in check
    assert "uses the whole history" in check
    assert "each of the 3 segments takes up to about 60 seconds" in check
    # What the form filled in stands in no one's way who takes a discount instead, and once emptied it stays empty.
    assert clerk.http.get("/new/check", params={**late, **OBJECTIVE, "usual": "20"}).status_code == 200
    again = clerk.http.get("/new/objective", params={**late, "delay": ""})
    assert clerk.answers(again)["delay"] == [""]


def test_a_hundred_thousand_rows_of_parquet(clerk: Browser) -> None:
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
    answers = clerk.uploaded(sink.getvalue())
    assert answers["outcome_means"] == ["yes:true", "no:false"]
    answers = {**answers, **OBJECTIVE, "model": "curve", "name": "wide"}
    shown = clerk.http.get("/new/beliefs", params=answers)
    assert "100,000" in shown.text
    assert f"{int(accepted.sum()):,}" in shown.text
    assert (
        f"the {int(accepted.sum()):,} past applicants"
        in clerk.http.get("/new/past", params={**answers, "cold": "true"}).text
    )


def test_without_history(clerk: Browser, forms: Served) -> None:
    refused = clerk.post("/new/segments", segments="a 60")
    assert (refused.status_code, "Type “a, 60” if 60% is the share" in alert(refused)) == (400, True)
    sent = clerk.post("/new/segments", segments="old, 75 %\nnew", expected="70", worth="10")
    assert sent.headers["location"].startswith("/new/objective?file=")
    answers = {**clerk.answers(clerk.http.get(sent.headers["location"])), **OBJECTIVE, "name": "by-hand"}
    assert "/new/past" not in clerk.http.get("/new/check", params=answers).text
    assert clerk.http.get("/new/columns", params=answers).status_code == 400
    made = clerk.post("/new/create", **answers, state="active")
    assert made.status_code == 303, made.text
    with forms.client() as client:
        told = client.policy("by-hand")["specification"]["segments"]
    assert [(one["name"], one["share"], one["prior"]) for one in told] == [
        ("old", 0.75, {"n": 10.0, "s": 7.0}),
        ("new", 0.25, {"n": 10.0, "s": 7.0}),
    ]
