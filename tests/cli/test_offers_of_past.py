"""lenience fit and report with amounts, prices and doubt."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lenience import InputError, Offer

Run = Any
Rejection = Callable[..., InputError]

LOANS = """grade,approved,repaid,amount,interest,term,won,lost
A,1,yes,5000,8%,36 months,300,3000
A,1,yes,12000,7.5%,36 months,700,7000
A,1,no,3000,9%,60 months,500,2000
A,0,,20000,8%,36 months,1500,12000
B,1,yes,1000,18%,36 months,300,600
B,0,,9000,21%,60 months,2000,5000
B,1,no,2500,19%,36 months,600,1500
C,0,,800,29%,36 months,400,500
C,0,,15000,28%,60 months,9000,9000
C,1,,600,30%,36 months,200,400
C,1,yes,600,none,36 months,,400
"""
COLUMNS = ("--segment", "grade", "--accepted", "approved", "--outcome", "repaid")
TIMES = ("--arrivals", "200", "--discount-rate", "0.1")
LOAN = ("--amount", "amount", "--rate", "interest", "--term", "term", "--loss-given-default", "0.6",
        "--funding-rate", "3%", "--currency", "$")  # fmt: skip


@pytest.fixture
def loans(tmp_path: Path) -> str:
    path = tmp_path / "loans.csv"
    path.write_text(LOANS)
    return str(path)


def test_fit_loans(run: Run, loans: str) -> None:
    code, out, _ = run("fit", loans, *COLUMNS, *LOAN, *TIMES, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["bad"]["economics"] == 1
    rows = {row["segment"]: row for row in answer["segments"]}
    made = [
        Offer.from_loan(amount, rate, term, 0.6, 0.03)
        for amount, rate, term in ((5000, 0.08, 3), (12000, 0.075, 3), (3000, 0.09, 5), (20000, 0.08, 3))
    ]
    assert sorted(rows["A"]["offers"]["amount"]) == pytest.approx(sorted(one.amount for one in made))
    assert rows["A"]["offers"]["currency"] == "$"
    assert rows["A"]["error"] == 0
    total = sum(one.amount for one in made)
    assert rows["A"]["break_even"] == pytest.approx(sum(one.loss for one in made) / total)
    assert rows["A"]["accepted_gain"] == pytest.approx(sum(one.gain for one in made[:3]) / 3)
    assert 0 < rows["A"]["share_accepted"] < 1
    assert rows["A"]["largest_amount"] > 0
    assert "offers are accepted, up to $" in rows["A"]["reason"]
    code, out, _ = run("fit", loans, *COLUMNS, *LOAN, *TIMES)
    assert code == 0
    assert "1 row not used: no valid gain and loss, e.g. interest 'none' (1)." in out
    assert "accept 25%" in out
    assert "$6,852" in out


def test_fit_gains_and_losses(run: Run, loans: str) -> None:
    code, out, _ = run("fit", loans, *COLUMNS, "--gain", "won", "--loss", "lost", "--discount", "0.99", "--json")
    assert code == 0
    [first, *_] = json.loads(out)["segments"]
    assert sorted(first["offers"]["amount"]) == pytest.approx([2500, 3300, 7700, 13500])
    # One number and one column.
    code, out, _ = run("fit", loans, *COLUMNS, "--gain", "won", "--loss", "1000", "--discount", "0.99", "--json")
    [first, *_] = json.loads(out)["segments"]
    assert sorted(first["offers"]["amount"]) == pytest.approx([1300, 1500, 1700, 2500])
    # Two numbers are one break-even for all, as before.
    code, out, _ = run("fit", loans, *COLUMNS, "--gain", "100", "--loss", "300", "--discount", "0.99", "--json")
    answer = json.loads(out)
    assert answer["unit"]["amount"] == 400
    assert "economics" not in answer["bad"]
    assert "offers" not in answer["segments"][0]


def test_report_in_money(run: Run, loans: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, out, _ = run("report", loans, *COLUMNS, *LOAN, *TIMES, "--group", "grade", "--output", str(page), "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["than_now"]["amounts"] == "in $ per year"
    rows = {row["segment"]: row for row in answer["than_now"]["segments"]}
    # Keeping today's share of A: three of four accepted, each earning 0.6 · gain − 0.4 · loss on average.
    made = [Offer.from_loan(*loan, 0.6, 0.03) for loan in ((5000, 0.08, 3), (12000, 0.075, 3), (3000, 0.09, 5))]
    mean = sum(0.6 * one.gain - 0.4 * one.loss for one in made) / 3
    assert rows["A"]["as_now"] == pytest.approx(0.75 * 0.4 * 200 * mean, rel=1e-6)
    assert rows["A"]["proposed"] > max(rows["A"]["as_now"], 0)
    assert rows["A"]["now"] == "accept 25% of offers"
    text = page.read_text()
    assert "largest amount now" in text
    assert "mean amount at stake" in text
    code, out, _ = run("report", loans, *COLUMNS, *LOAN, *TIMES, "--output", str(page))
    assert code == 0
    assert "Keeping today's acceptance rates would earn −$" in out


def test_a_smaller_first_offer_by_group(run: Run, tmp_path: Path) -> None:
    """Rare segments start only with a tenth of the amount, and the page counts them by group."""
    lines = ["group,band,approved,repaid,won,lost"]
    lines += ["X,1,1,yes,200,800"] * 9 + ["X,1,1,no,200,800"] + ["X,2,0,,200,800"] * 300
    lines += ["Y,1,1,yes,200,800", "Y,1,0,,200,800"]
    path, page = tmp_path / "loans.csv", tmp_path / "report.html"
    path.write_text("\n".join(lines))
    code, out, _ = run(
        "report", str(path), "--segment", "group", "--segment", "band", "--group", "group", "--accepted", "approved",
        "--outcome", "repaid", "--gain", "won", "--loss", "lost", "--discount", "0.99", "--output", str(page),
    )  # fmt: skip
    assert code == 0, out
    assert "A smaller first offer" in page.read_text()


def test_doubt(run: Run, loans: str) -> None:
    options = ("--cost", "0.7", "--discount", "0.999", "--prior", "60,18", "--json")
    sure = json.loads(run("fit", loans, *COLUMNS, *options)[1])["segments"]
    doubting = json.loads(run("fit", loans, *COLUMNS, *options, "--doubt", "0.6")[1])["segments"]
    assert [row["accept"] for row in sure] == [False] * 3
    assert doubting[0]["accept"]


@pytest.mark.parametrize(
    ("options", "field", "code"),
    [
        (("--gain", "won"), "--loss", "missing"),
        (("--amount", "amount", "--rate", "interest"), "--term", "missing"),
        (("--amount", "amount", "--rate", "interest", "--term", "36"), "--term-unit", "missing"),
        (("--amount", "amount", "--rate", "12", "--term", "3"), "--rate", "invalid_value"),
        (("--amount", "amount", "--rate", "lost", "--term", "3"), "--rate-unit", "missing"),
        (("--amount", "volume", "--rate", "interest", "--term", "3"), "--amount", "unknown_name"),
        (("--cost", "0.7", "--amount", "amount", "--rate", "interest", "--term", "3"), "--cost", "conflicting_fields"),
        (("--cost", "0.8", "--term-unit", "months"), "--term-unit", "missing"),
    ],
)
def test_what_does_not_fit(rejection: Rejection, loans: str, options: tuple[str, ...], field: str, code: str) -> None:
    error = rejection("fit", loans, *COLUMNS, *options, *TIMES)
    assert (error.field, error.code) == (field, code)


def test_constraints_and_groups_in_money(run: Run, loans: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    grouped = ("--group", COLUMNS[1], "--output", str(page), "--json")
    code, out, _ = run(
        "report", loans, *COLUMNS, *LOAN, "--discount", "0.98", "--floor", "0.05", "--cap", "3", *grouped
    )
    assert code == 0
    answer = json.loads(out)
    assert len(answer["constraints"]) == 2
    assert all(cost is not None and cost >= -1e-6 for cost in answer["constraints"].values())
    assert all(0 <= row["acceptance"] <= 1 for row in answer["groups"])
    assert "Outcomes by group" in page.read_text(encoding="utf-8")


def test_report_with_a_prior_that_may_be_wrong(run: Run, rejection: Rejection, loans: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    given = ("--cost", "0.5", "--discount", "0.8", "--prior", "4,3", "--output", str(page))
    words = ("report", loans, *COLUMNS, *given)
    code, doubtful, _ = run(*words, "--doubt", "0.2", "--json")
    assert code == 0
    assert json.loads(doubtful)["groups"][0]["acceptance"] > 0
    assert "with probability 20%" in page.read_text()
    for limit in (("--floor", "0.05"), ("--cap", "3")):
        error = rejection(*words, "--doubt", "0.2", *limit)
        assert (error.code, error.fields[0]) == ("conflicting_fields", limit[0])


def test_late_outcomes_with_amounts_and_doubt(run: Run, loans: str, tmp_path: Path) -> None:
    page = tmp_path / "late.html"
    late = ("--arrivals", "20", "--discount-rate", "0.5", "--label-delay", "0.5")
    code, out, _ = run("fit", loans, *COLUMNS, *LOAN, *late, "--json")
    assert code == 0
    rows = {row["segment"]: row["late"] for row in json.loads(out)["segments"]}
    assert rows["C"]["pending"] == 1
    for row in rows.values():
        assert row["by_offer"]
        limits = [math.inf if one["limit"] is None else one["limit"] for one in row["by_offer"]]
        assert row["unlimited"] == (max(limits) == math.inf)
    code, out, _ = run("fit", loans, *COLUMNS, *LOAN, *late)
    assert code == 0
    assert "Small amounts have larger limits" in " ".join(out.split())
    code, out, _ = run("report", loans, *COLUMNS, *LOAN, *late, "--output", str(page), "--json")
    assert code == 0
    assert json.loads(out)["value"] > 0
    assert "Delayed outcomes" in page.read_text(encoding="utf-8")
    sure, doubtful = (
        json.loads(run("fit", loans, *COLUMNS, "--cost", "0.7", "--prior", "20,8", *late, *doubt, "--json")[1])
        for doubt in ((), ("--doubt", "0.6"))
    )
    assert [row["late"]["limit"] for row in sure["segments"]] == [0, 0, 0]
    assert any(row["late"]["limit"] != 0 for row in doubtful["segments"])
