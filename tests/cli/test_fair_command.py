"""lenience fair, and the same in the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Discounted, InputError, Segments, fair_optimum
from lenience.analysis import EqualOpportunity, Floors, Parity

Run = Any
Rejection = Callable[..., InputError]

COUNTS = {  # by band and sex: accepted and repaid, accepted and not, rejected
    ("low", "f"): (6, 6, 18),
    ("low", "m"): (3, 3, 4),
    ("high", "f"): (9, 1, 2),
    ("high", "m"): (26, 4, 8),
    ("high", ""): (1, 0, 3),
}
COLUMNS = ("--accepted", "approved", "--outcome", "repaid")
BLIND = ("--segment", "band", "--group", "sex", *COLUMNS)
AWARE = ("--segment", "band", "--segment", "sex", "--group", "sex", "--decide-by-protected", *COLUMNS)
GOAL = ("--cost", "0.7", "--discount", "0.9")


@pytest.fixture
def loans(tmp_path: Path) -> str:
    lines = ["band,sex,approved,repaid"]
    for (band, sex), (good, bad, rejected) in COUNTS.items():
        lines += [f"{band},{sex},1,1"] * good + [f"{band},{sex},1,0"] * bad + [f"{band},{sex},0,"] * rejected
    path = tmp_path / "loans.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def expected_segments() -> tuple[Segments, dict[str, dict[str, float]]]:
    """The bands as segments, and the share of each sex, counted by hand."""
    arrivals, labels, successes = {"high": 54, "low": 40}, {"high": 41, "low": 18}, {"high": 36, "low": 9}
    beliefs = {band: Belief(2 + labels[band], 1 + successes[band]) for band in arrivals}
    segments = Segments.of({band: n / 94 for band, n in arrivals.items()}, Discounted(0.7, 0.9), beliefs)
    return segments, {"high": {"f": 12 / 54, "m": 38 / 54}, "low": {"f": 30 / 40, "m": 10 / 40}}


@pytest.mark.parametrize(
    ("words", "constraint"),
    [
        (("--within", "0.1"), Parity(0.1)),
        (("--within", "0.1", "--raise-only"), Parity(0.1, raise_only=True)),
        (("--constraint", "opportunity"), EqualOpportunity(0.05)),
        (("--constraint", "floor", "--floor", "0.5", "--floor-group", "f"), Floors({"f": 0.5})),
    ],
)
def test_the_command_computes_what_the_library_does(
    run: Run, loans: str, words: tuple[str, ...], constraint: Any
) -> None:
    code, out, err = run("fair", loans, *BLIND, *GOAL, *words, "--points", "2", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    result = fair_optimum(*expected_segments(), constraint)
    assert answer["value"]["lower"] == pytest.approx(result.value.lower, abs=1e-9)
    assert [row["group"] for row in answer["groups"]] == ["f", "m"]
    assert answer["groups"][0]["acceptance"]["lower"] == pytest.approx(result.groups[0].acceptance.lower, abs=1e-9)
    assert answer["group_aware"] is False
    assert answer["without_group"] == 4
    assert answer["rows"] == 94
    assert answer["lowered"] == [row.group for row in result.lowered]
    assert [row["name"] for row in answer["segments"]] == ["high", "low"]
    if isinstance(constraint, Floors):
        assert answer["curve"] == []
    else:
        assert answer["curve"][0]["within"] == 0
        assert answer["curve"][0]["value"]["lower"] >= answer["curve"][0]["value_raise_only"]["lower"] - 1e-9
        assert set(answer["curve"][0][constraint.measure]) == {"f", "m"}


def test_deciding_by_the_group_is_marked_and_warned_of(run: Run, loans: str) -> None:
    code, out, _ = run("fair", loans, *AWARE, *GOAL, "--within", "0", "--points", "0", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["group_aware"] is True
    assert len(answer["segments"]) == 4  # the row without a sex is in no segment
    code, out, _ = run("fair", loans, *AWARE, *GOAL, "--within", "0", "--points", "0")
    assert code == 0
    assert "not legal advice" in out.replace("\n", " ")
    assert "Warning:" in out


def test_the_text_shows_money_groups_and_prices(run: Run, loans: str, tmp_path: Path) -> None:
    figure = tmp_path / "price.png"
    money = ("--gain", "300", "--loss", "700", "--currency", "$", "--discount", "0.9")
    code, out, err = run("fair", loans, *BLIND, *money, "--points", "3", "--figure", str(figure))
    assert (code, err) == (0, "")
    assert "$" in out
    assert "4 applicants have no group" in out
    for heading in ("Groups", "Segments", "The price of fairness"):
        assert heading in out
    assert figure.stat().st_size > 10_000


def test_fico_by_name_with_and_without_the_group(run: Run) -> None:
    words = ("--cost", "0.8", "--discount", "0.99", "--bands", "3", "--points", "0", "--json")
    code, out, _ = run("fair", "fico", *words)
    assert code == 0
    aware = json.loads(out)
    assert (len(aware["segments"]), aware["group_aware"], aware["rows"]) == (12, True, None)
    code, out, _ = run("fair", "fico", "--segment", "band", "--group", "race", *words, "--evidence", "50")
    assert code == 0
    blind = json.loads(out)
    assert (len(blind["segments"]), blind["group_aware"]) == (3, False)
    assert [row["group"] for row in blind["groups"]] == ["white", "black", "hispanic", "asian"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--segment", "band", *COLUMNS, *GOAL), "--group"),
        (("--group", "sex", "--accepted", "approved", *GOAL), "--segment"),
        (("--segment", "band", "--group", "gender", *COLUMNS, *GOAL), "--group"),
        ((*BLIND, *GOAL, "--within", "2"), "--within"),
        ((*BLIND, *GOAL, "--floor", "0.5"), "--floor"),
        ((*BLIND, *GOAL, "--constraint", "floor"), "--constraint"),
        ((*BLIND, *GOAL, "--constraint", "floor", "--floor", "0.5", "--raise-only"), "--constraint"),
        ((*BLIND, *GOAL, "--constraint", "floor", "--floor", "0.5", "--floor-group", "x"), "--floor-group"),
        ((*BLIND, *GOAL, "--points", "1"), "--points"),
        ((*BLIND, *GOAL, "--figure", "price.bmp"), "--figure"),
        ((*BLIND, *GOAL, "--figure", "price.png", "--points", "0"), "--figure"),
        ((*BLIND, *GOAL, "--bands", "3"), "--evidence"),
        ((*BLIND, "--cost", "0.7"), "--discount"),
        ((*BLIND, "--gain", "band", "--loss", "700", "--discount", "0.9"), "--gain"),
    ],
)
def test_invalid_options_name_the_option(rejection: Rejection, loans: str, words: tuple[str, ...], field: str) -> None:
    assert rejection("fair", loans, *words).field == field


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--segment", "sex"), "--segment"),
        (("--segment", "race"), "--segment"),
        (("--group", "band"), "--segment"),
        (("--accepted", "x"), "--accepted"),
        (("--bands", "0"), "--bands"),
        (("--evidence", "0"), "--evidence"),
        (("--arrivals", "last-year"), "--arrivals"),
    ],
)
def test_invalid_options_of_fico_name_the_option(rejection: Rejection, words: tuple[str, ...], field: str) -> None:
    assert rejection("fair", "fico", *words, *GOAL).field == field


def test_the_report_has_the_price_of_fairness(run: Run, loans: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    common = ("report", loans, "--segment", "band", *COLUMNS, *GOAL, "--output", str(page))
    code, out, _ = run(*common, "--fair", "parity", "--fair-group", "sex", "--within", "0.1", "--json")
    assert code == 0
    answer = json.loads(out)["fair"]
    result = fair_optimum(*expected_segments(), Parity(0.1))
    assert answer["value"]["lower"] == pytest.approx(result.value.lower, abs=1e-9)
    text = page.read_text()
    assert "<h2>The price of fairness</h2>" in text
    section = text.split("<h2>The price of fairness</h2>")[1].split("<h2>")[0]
    assert section.count("<svg") == 3
    assert "not legal advice" in section


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--within", "0.1"), "--fair-group"),
        (("--fair", "parity"), "--fair"),
        (("--fair", "parity", "--fair-group", "gender"), "--group"),
        (("--fair", "parity", "--fair-group", "sex", "--within", "3"), "--within"),
        (("--fair", "parity", "--fair-group", "sex", "--label-delay", "1"), "--fair"),
    ],
)
def test_the_report_rejects_invalid_options(
    rejection: Rejection, loans: str, words: tuple[str, ...], field: str, tmp_path: Path
) -> None:
    error = rejection("report", loans, "--segment", "band", *COLUMNS, *GOAL, "-o", str(tmp_path / "x.html"), *words)
    assert error.field == field
