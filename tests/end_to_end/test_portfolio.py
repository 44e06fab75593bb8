"""Import a portfolio with the client and the command line, on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from lenience import Client, InputError, ServiceError
from lenience.client.portfolio_import import PortfolioColumns, PortfolioWords, read_portfolio
from serving import SPEC, Served

FILE = """nr;issued;grade;got it;status;closed
7;31.12.2020;young;yes;Fully Paid;2021-06-30
3;05.01.2019;young;yes;Charged Off;2019-09-01
9;2021-03-01;old;yes;Current;
4;2021-02-01;young;yes;Late (31-120 days);
5;2021-02-01;young;no;;
"""
COLUMNS = PortfolioColumns("issued", "status", ("grade",), "nr", "got it", "closed")
OPTIONS = (
    *("--date", "issued", "--outcome", "status", "--segment", "grade", "--reference", "nr", "--accepted", "got it"),
    *("--outcome-date", "closed", "--late", "Late (31-120 days)"),
)


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    path = tmp_path / "loans.csv"
    path.write_text(FILE)
    return path


def test_a_file_is_read_in_the_order_of_its_dates(loans: Path) -> None:
    portfolio = read_portfolio(loans, COLUMNS, PortfolioWords(late=("Late (31-120 days)",)))
    assert [row["reference"] for row in portfolio.rows] == ["3", "7", "4", "5", "9"]
    assert portfolio.rows[0] == {
        "decided_at": "2019-01-05",
        "outcome": "failure",
        "outcome_at": "2019-09-01",
        "reference": "3",
        "segment": "young",
    }
    assert portfolio.rows[3] == {
        "decided_at": "2021-02-01",
        "decision": "reject",
        "reference": "5",
        "segment": "young",
    }
    source = portfolio.source
    assert (source["file"], source["rows"], source["left_out"]) == ("loans.csv", 5, 0)
    assert (source["first"], source["last"], source["columns"]["outcome_at"]) == ("2019-01-05", "2021-03-01", "closed")
    assert source["settings"] == {"late": "Late (31-120 days)"}
    loans.write_text("issued;status\n06/01/2011;1\n07/01/2011;0\n")
    with pytest.raises(InputError, match="ambiguous"):
        read_portfolio(loans, PortfolioColumns("issued", "status"))
    source = read_portfolio(loans, PortfolioColumns("issued", "status"), dates="mdy").source
    assert (source["settings"], source["last"]) == ({"dates": "mdy"}, "2011-07-01")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("8;soon;young;yes;Fully Paid;", "issued must be a date"),
        ("8;2999-01-01;young;yes;Fully Paid;", "future"),
        ("8;2021-03-01;young;yes;sold;", "word for an outcome"),
        ("8;2021-03-01;young;maybe;Fully Paid;", "accepted or rejected"),
        ("8;2021-03-01;young;yes;Fully Paid;2020-01-01", "before issued"),
        ("7;2021-03-01;young;yes;Fully Paid;", "unique"),
        (";2021-03-01;young;yes;Fully Paid;", "empty"),
    ],
)
def test_rows_that_cannot_be_read_are_named_or_left_out(loans: Path, line: str, said: str) -> None:
    loans.write_text(f"{FILE}{line}\n")
    words = PortfolioWords(late=("Late (31-120 days)",))
    with pytest.raises(InputError, match=said) as error:
        read_portfolio(loans, COLUMNS, words)
    assert "line 7" in str(error.value)
    portfolio = read_portfolio(loans, COLUMNS, words, leave_out=True)
    assert (len(portfolio.rows), portfolio.source["left_out"]) == (5, 1)
    assert list(portfolio.source["why_left_out"].values()) == [1]


def test_a_word_or_column_that_does_not_occur(loans: Path) -> None:
    with pytest.raises(InputError, match="does not occur"):
        read_portfolio(loans, COLUMNS, PortfolioWords(late=("late (31-120)",)))
    with pytest.raises(InputError, match="grades"):
        read_portfolio(loans, COLUMNS._replace(segment=("grades",)))


def test_the_command_imports_and_repeats(
    client: Client,
    http: httpx.Client,
    served: Served,
    loans: Path,
    run: Callable[..., tuple[int, str, str]],
) -> None:
    client.create_policy({**SPEC, "name": "taken-over"})
    given = ("import", str(loans), "--url", served.url, "--policy", "taken-over", *OPTIONS)
    code, out, _ = run(*given, "--dry-run")
    assert (code, out) == (0, "Import 1: 5 decisions would be recorded.\n")
    assert client.policy("taken-over")["imports"] == []
    assert run(*given)[:2] == (0, "Import 1: 5 decisions recorded.\n")
    code, out, _ = run(*given, "--json")
    assert (code, json.loads(out)["repeated"]) == (0, 5)
    (one,) = client.policy("taken-over")["imports"]
    assert (one["successes"], one["failures"], one["pending"], one["complete"]) == (1, 1, 2, True)
    assert one["columns"]["decided_at"] == "issued"
    client.activate("taken-over")
    assert client.outcomes({"4": "success"}, by_reference=True)["recorded"] == 1
    assert client.decide("taken-over", "young")["belief"] == {"n": 5, "s": 3}
    late = client.import_outcomes([{"id": "9", "outcome": "late", "day": ""}], reference_column="id", date_column="day")
    assert late.recorded == 1
    (entry,) = client.decisions(policy="taken-over", reference="9")
    assert (entry["reported"], entry["imported"]) == ("late", True)
    assert http.get("/policies/taken-over").status_code == 200
    assert http.get(f"/decisions/{entry['id']}").status_code == 200
    code, _, err = run(*given[:-2], "--pending", "Late (31-120 days)")
    assert code == 2
    assert "source.settings" in err


def test_an_unknown_segment_stops_the_import_before_anything_is_recorded(client: Client, loans: Path) -> None:
    client.create_policy({**SPEC, "name": "one-segment", "segments": ["young"]})
    with pytest.raises(ServiceError) as error:
        client.import_portfolio(
            "one-segment",
            loans,
            date="issued",
            outcome="status",
            segment="grade",
            accepted="got it",
            late=["Late (31-120 days)"],
        )
    assert (error.value.status, error.value.code) == (400, "unknown_name")
    assert client.policy("one-segment")["imports"] == []
