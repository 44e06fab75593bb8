"""lenience rank."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Offer
from lenience.segments import rank, value_batch

Run = Any
ROWS = [
    ("Ann", "new", 0, 0, 500, 0.8),
    ("Bob", "new", 0, 0, 5000, 0.8),
    ("Cem", "old", 40, 34, 1000, 0.8),
    ("Dan", "old", 40, 34, 2000, 0.9),
    ("Eve", "old", 40, 34, 3000, 0.75),
    ("Fay", "new", 0, 0, 600, 0.8),
]
HEADING = "who,segment,known,repaid,amount,even"
COLUMNS = ("--segment", "segment", "--observations", "known", "--successes", "repaid", "--discount", "0.99")
OFFER = ("--amount", "amount", "--cost", "even")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return written(tmp_path, [",".join(map(str, row)) for row in ROWS])


def written(folder: Path, lines: list[str], heading: str = HEADING) -> str:
    path = folder / "applicants.csv"
    path.write_text("\n".join([heading, *lines]) + "\n")
    return str(path)


def by_library(capacity: int | None, money: float | None, prior: Belief) -> Any:
    beliefs = {row[1]: Belief(prior.n + row[2], prior.s + row[3]) for row in ROWS}
    offers = [Offer(row[4], row[5]) for row in ROWS]
    batch = value_batch([row[0] for row in ROWS], [row[1] for row in ROWS], offers, beliefs, 0.99)
    return rank(batch.applicants, capacity, money, batch.label_values)


@pytest.mark.parametrize(("capacity", "money"), [(2, None), (None, 4000.0), (2, 3500.0), (None, None)])
def test_the_command_chooses_as_the_library_does(
    run: Run, file: str, capacity: int | None, money: float | None
) -> None:
    limits = [] if capacity is None else ["--capacity", str(capacity)]
    limits += [] if money is None else ["--money", str(money)]
    code, out, err = run("rank", file, *COLUMNS, *OFFER, "--id", "who", "--prior", "4,2.4", *limits, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    result = by_library(capacity, money, Belief(4, 2.4))
    rows = answer["rows"]
    assert [row["id"] for row in rows if row["decision"] == "accept"] == [one.name for one in result.chosen]
    assert [row["rank"] for row in rows[: len(result.chosen)]] == list(range(1, len(result.chosen) + 1))
    assert [row["index"] for row in rows if row["decision"] == "accept"] == [one.index for one in result.chosen]
    assert {row["id"] for row in rows if row["decision"] == "reject"} == {one.name for one in result.rejected}
    assert (answer["index"], answer["bound"], answer["money_used"]) == (result.index, result.bound, result.money)
    assert result.chosen
    assert result.rejected


def test_the_table_and_the_output_file(run: Run, file: str, tmp_path: Path) -> None:
    target = tmp_path / "ranked.csv"
    words = (*COLUMNS, *OFFER, "--id", "who", "--capacity", "2", "--currency", "$", "--output", str(target))
    code, out, _ = run("rank", file, *words)
    assert code == 0
    assert "Accept 2 of 6 applicants." in out
    assert "$3,000" in out
    result = by_library(2, None, Belief(2, 1))
    with target.open(newline="") as written_file:
        rows = list(csv.DictReader(written_file))
    assert len(rows) == 6
    assert [row["who"] for row in rows[:2]] == [one.name for one in result.chosen]
    assert [row["decision"] for row in rows[:2]] == ["accept", "accept"]
    assert [row["rank"] for row in rows] == ["1", "2", "", "", "", ""]
    assert float(rows[0]["index"]) == result.chosen[0].index
    assert rows[0]["amount"] == "3000"
    # A ranking can be ranked again.
    code, out, _ = run("rank", str(target), *COLUMNS, *OFFER, "--id", "who", "--capacity", "2", "--json")
    assert code == 0
    assert [row["id"] for row in json.loads(out)["rows"][:2]] == [one.name for one in result.chosen]


def test_gains_and_losses_and_numbers_for_all(run: Run, tmp_path: Path, file: str) -> None:
    code, out, _ = run("rank", file, *COLUMNS, "--gain", "100", "--loss", "amount", "--json")
    assert code == 0
    (row,) = [row for row in json.loads(out)["rows"] if row["id"] == "1"]
    assert (row["amount"], row["cost"]) == (600, pytest.approx(500 / 600))
    code, out, _ = run("rank", file, *COLUMNS, "--amount", "amount", "--cost", "0.8", "--json")
    assert code == 0
    assert {row["cost"] for row in json.loads(out)["rows"]} == {0.8}


def test_money_counts_what_is_lent(run: Run, tmp_path: Path) -> None:
    lines = ["Ann,old,40,36,1000,0.8,900", "Bob,old,40,36,1000,0.8,300", "Cem,old,40,36,1000,0.8,350"]
    path = written(tmp_path, lines, HEADING + ",lent")
    words = (*COLUMNS, *OFFER, "--id", "who", "--lent", "lent", "--money", "700", "--json")
    code, out, _ = run("rank", path, *words)
    assert code == 0
    answer = json.loads(out)
    assert [row["id"] for row in answer["rows"] if row["decision"] == "accept"] == ["Bob", "Cem"]
    assert answer["money_used"] == 650


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ((*OFFER, "--capacity", "0"), ("--capacity", "at least 1", "0")),
        ((*OFFER, "--capacity", "-3"), ("--capacity", "at least 1")),
        ((*OFFER, "--money", "0"), ("--money", "above 0")),
        (("--amount", "amont", "--cost", "even"), ("--amount", "amont", "Did you mean 'amount'?")),
        (("--amount", "amount"), ("--amount with --cost", "--gain with --loss")),
        ((*OFFER, "--gain", "3", "--loss", "4"), ("--amount with --cost",)),
        (("--amount", "amount", "--cost", "1.5"), ("--cost", "strictly between 0 and 1", "1.5")),
        ((*OFFER, "--id", "name"), ("--id", "name", "the columns")),
        ((*OFFER, "--lent", "amount"), ("--lent", "--money")),
        ((*OFFER, "--output", "ranked.txt"), ("--output", ".csv")),
        ((*OFFER, "--output", "/nowhere/ranked.csv"), ("--output", "folder")),
        ((*OFFER, "--arrivals", "50"), ("--discount",)),
    ],
)
def test_bad_options(run: Run, file: str, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    code, out, err = run("rank", file, *COLUMNS, *words)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    for part in parts:
        assert part in err


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("Gil,new,0,0,much,0.8", ("line 4", "'amount'", "'much'")),
        ("Gil,new,0,0,,0.8", ("line 4", "'amount'")),
        ('Gil,new,0,0,"5,000",0.8', ("line 4", "'amount'", "5000")),
        ("Gil,new,0,0,-5,0.8", ("line 4", "'amount'", "above 0")),
        ("Gil,new,0,0,500,80", ("line 4", "'even'", "strictly between 0 and 1")),
        ("Gil,newer,3,4,500,0.8", ("line 4", "repaid", "at most 3")),
        ("Gil,new,-1,0,500,0.8", ("line 4", "'known'", "at least 0")),
        ("Gil,new,5,4,500,0.8", ("line 4", "'new'", "0 of 0", "4 of 5")),
    ],
)
def test_bad_rows_name_the_line(run: Run, tmp_path: Path, line: str, parts: tuple[str, ...]) -> None:
    good = ",".join(map(str, ROWS[0]))
    path = written(tmp_path, [good, "", line])
    code, out, err = run("rank", path, *COLUMNS, *OFFER, "--capacity", "2")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    for part in parts:
        assert part in err


def test_missing_file(run: Run) -> None:
    code, out, err = run("rank", "nothing.csv", *COLUMNS, *OFFER)
    assert (code, out) == (2, "")
    assert "nothing.csv" in err
