"""The commands that start from past decisions."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lenience import InputError

Run = Any
Rejection = Callable[..., InputError]


LOANS = """region,approved,repaid
north,1,yes
north,1,no
north,1,yes
south,1,
south,0,
island,0,yes
"""


def test_fit_and_report(run: Run, tmp_path: Path) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text(LOANS)
    columns = ("--segment", "region", "--accepted", "approved", "--outcome", "repaid")
    code, out, _ = run("fit", str(loans), *columns, "--cost", "0.5", "--discount", "0.9", "--json")
    assert code == 0
    answer = json.loads(out)
    found = {row["segment"]: row for row in answer["segments"]}
    assert found["north"]["belief"] == {"n": 5.0, "s": 3.0}
    assert found["north"]["accept"] is True
    assert found["south"]["pending"] == 1
    assert sum(answer["bad"].values()) == 1
    code, out, _ = run("fit", str(loans), *columns, "--model", "shared")
    assert code == 0
    assert "1 row not used: an outcome on a rejection." in out
    code, _, err = run("fit", str(loans), *columns, "--strict")
    assert code == 2
    assert "outcome on a rejection" in err
    page = tmp_path / "report.html"
    code, out, _ = run("report", str(loans), *columns, "--cost", "0.5", "--discount", "0.9", "--output", str(page))
    assert code == 0
    assert "north" in page.read_text()
    assert run("report", str(loans), *columns)[0] == 2
    for name in ("nothing.csv", "no*.parquet"):
        code, _, err = run("fit", name, *columns)
        assert (code, err) == (2, f"lenience: source must be a file that exists, not '{name}'\n")
    code, _, err = run("fit", str(loans), *columns, "--cost", "0.5")
    assert (code, err) == (2, "lenience: Give --discount, or --arrivals with --discount-rate\n")


BOOK = ("--segment", "grade", "--accepted", "granted", "--outcome", "status")
DATED = (*BOOK, "--time", "decided", "--outcome-time", "closed")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of loans, of which half are open, granted over four years."""
    import csv

    from lenience.simulation import LoanBook

    columns = LoanBook({"A": 0.92, "B": 0.75}, loans=400).draw(seed=2)
    path = tmp_path_factory.mktemp("book") / "loans.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


def test_pending_count_by_age(run: Run, book: str) -> None:
    decide = ("--cost", "0.7", "--arrivals", "last-year", "--discount-rate", "0.1", "--json")
    code, out, _ = run("fit", book, *DATED, "--maturing", *decide)
    assert code == 0
    answer = json.loads(out)
    beliefs = {row["segment"]: row["belief"]["s"] / row["belief"]["n"] for row in answer["segments"]}
    assert beliefs["A"] == pytest.approx(0.92, abs=0.04)
    assert beliefs["B"] == pytest.approx(0.75, abs=0.06)
    assert answer["immaturity"] is None
    assert answer["timing"]["ages"][0] == 0
    assert answer["last_year"] == sum(row["recent"] for row in answer["segments"])
    assert "last-year" not in (answer["warning"] or "")
    assert sum(row["volume"] for row in answer["segments"]) == pytest.approx(answer["last_year"] / 0.1, rel=0.01)


def test_immature_outcomes_and_old_volumes_are_warnings(run: Run, book: str) -> None:
    code, out, _ = run("fit", book, *DATED, "--cost", "0.7", "--arrivals", "50", "--discount-rate", "0.1", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["immaturity"]["expected_rate"] > answer["immaturity"]["known_rate"] + 0.03
    assert "--arrivals last-year" in answer["warning"]
    code, out, _ = run("fit", book, *DATED)
    assert "--maturing" in out
    code, out, _ = run("fit", book, *BOOK, "--time", "decided")
    assert "--outcome-time" in out


def test_maturing_needs_dates(rejection: Rejection, book: str) -> None:
    assert rejection("fit", book, *BOOK, "--maturing").fields == ("--maturing", "--time")
    assert rejection("fit", book, *BOOK, "--maturing", "--time", "decided").fields == ("--maturing", "--outcome-time")
    assert rejection("fit", book, *DATED, "--maturing", "--maturity", "30").code == "conflicting_fields"
    assert rejection("fit", book, *BOOK, "--outcome-time", "closed").fields == ("--outcome-time", "--time")
    decide = ("--cost", "0.7", "--discount-rate", "0.1", "--arrivals")
    assert rejection("fit", book, *BOOK, *decide, "many").field == "--arrivals"
    assert rejection("fit", book, *BOOK, *decide, "last-year").fields == ("--arrivals", "--time")


SCORED = "race,band,approved,repaid\n" + "".join(
    f"{race},{band},{int(band >= least)},{'' if band < least else int(i < good)}\n"
    for race, least, many in (("x", 30, 40), ("y", 60, 4))
    for band in (10, 30, 60, 90)
    for i, good in ((i, many * band / 100) for i in range(many))
)


def test_groups_models_truths_and_constraints(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loans, truths, page = tmp_path / "loans.csv", tmp_path / "truths.csv", tmp_path / "report.html"
    loans.write_text(SCORED)
    truths.write_text("race,band,p\n" + "".join(f"{r},{b},{b / 100}\n" for r in "xy" for b in (10, 30, 60, 90)))
    given = ["--segment", "race", "--segment", "band", "--accepted", "approved", "--outcome", "repaid"]
    given += ["--decide-by-protected"]
    given += ["--group", "race", "--cost", "0.55", "--discount", "0.98"]
    code, out, _ = run("fit", str(loans), *given, "--score", "band", "--model", "curve", "--json")
    assert code == 0
    fitted = json.loads(out)
    means = {row["segment"]: row["belief"]["s"] / row["belief"]["n"] for row in fitted["segments"]}
    assert means["y / 10"] < means["y / 30"] < 0.5  # never accepted: the curve says what to expect
    assert fitted["warning"].startswith("the past accepted nobody in 3 of 8 segments")
    assert {row["group"] for row in fitted["segments"]} == {"x", "y"}
    outset = {(row["model"], row["group"]): row for row in fitted["shut_out_at_outset"]}
    assert {model for model, _ in outset} == {"own", "jeffreys", "shared", "curve"}
    assert outset["own", "x"]["segments"] == 4
    code, out, _ = run("fit", str(loans), *given, "--model", "pooled-history")
    assert code == 0
    assert "pooled over 8 cells" in " ".join(out.split())
    assert "4 segments never start; of the 2 above the break-even, " in out
    asked = ["--truths", str(truths), "--floor", "0.1", "--floor-group", "y", "--cap", "3", "--output", str(page)]
    code, out, _ = run("report", str(loans), *given, "--model", "history", *asked, "--json")
    assert code == 0
    found = json.loads(out)
    groups = {row["group"]: row for row in found["groups"]}
    assert groups["x"]["deserving_segments"] == groups["y"]["deserving_segments"] == 2
    # Band 30 of x is known to be bad and is rejected; that of y was never tried and has the benefit of the doubt.
    assert groups["x"]["false_rejection"] > groups["y"]["false_rejection"] > 0
    assert all(cost >= 0 for cost in found["constraints"].values())
    text = page.read_text()
    for words in ("Outcomes by group", "Segments that each model rejects", "accept at least 10%", "explore at most 3"):
        assert words in text
    assert f"file <b>{loans}</b>; model <b>history</b>; break-even <b>55%</b>; discount <b>0.98</b>" in text
    monkeypatch.setattr("lenience.solvers.stopping.evaluation.MOST_STATES", 10)
    large = ["--arrivals", "5", "--discount-rate", "0.1", "--floor", "0.1", "--cap", "3", "--output", str(page)]
    code, out, _ = run("report", str(loans), *given[:-2], *large)
    assert code == 0
    assert "accept at least 10% was not computed: Evaluating" in out
    text = page.read_text()
    assert text.count("The cost of this constraint was not computed: Evaluating") == 2
    assert "arrivals a year <b>5</b>; yearly interest rate <b>10%</b>" in text
    truths.write_text("race,band,p\nx,10,0.5\n")
    for extra in (
        ["--group", "region"],
        ["--model", "curve"],
        ["--truths", str(truths)],
        ["--score", "race", "--model", "curve"],
    ):
        code, _, err = run("report", str(loans), *given, *extra, "--output", str(page))
        assert (code, err.count("\n")) == (2, 1), extra


def test_brackets_in_names_are_printed_as_they_are(run: Run, tmp_path: Path) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text(LOANS.replace("north", "[a]").replace("south", "[/a] :smile:"))
    columns = ("--segment", "region", "--accepted", "approved", "--outcome", "repaid")
    code, out, _ = run("fit", str(loans), *columns)
    assert code == 0
    assert "[a] " in out
    assert "[/a] :smile:" in out


COLUMNS = ("--segment", "region", "--accepted", "approved", "--outcome", "repaid")


def test_a_past_that_chose_is_told(run: Run, tmp_path: Path) -> None:
    loans, page = tmp_path / "loans.csv", tmp_path / "report.html"
    loans.write_text(LOANS)
    told = "Selective labels: Only 4 of 5 past applicants (80%)"
    code, out, _ = run("fit", str(loans), *COLUMNS)
    assert code == 0
    assert told in out
    assert "1 / 2" in out  # of the south's
    code, out, _ = run("report", str(loans), *COLUMNS, "--cost", "0.5", "--discount", "0.9", "--output", str(page))
    assert code == 0
    assert told in out
    assert "4 of 5 past applicants (80%)" in page.read_text()
    assert "Compared with today: Keeping today's acceptance rates would earn " in out
    assert "<td>1 / 2</td>" in page.read_text()
    loans.write_text("region,approved,repaid\nnorth,1,1\n")
    assert "Selective labels" not in run("fit", str(loans), *COLUMNS)[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--segment", "region", "--accepted", "approved", "--outcome", "approved"),
            "--outcome and --accepted must be different columns; both are 'approved'",
        ),
        ((*COLUMNS, "--segment", "region"), "--segment must name different columns; 'region' is there twice"),
        ((*COLUMNS, "--segment", "repaid"), "--outcome and --segment must be different columns; both are 'repaid'"),
    ],
)
def test_a_column_has_one_role(run: Run, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text(LOANS)
    assert run("fit", str(loans), *options) == (2, "", f"lenience: {said}\n")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.csv", bytes(range(256)) * 9, "the file is not a CSV in UTF-8. Save it as “CSV UTF-8”, or as Parquet."),
        ("a.csv", b"a\x00b\n", "the file is not a CSV: it contains binary data"),
        (
            "a.csv",  # cut off
            LOANS.encode() + b"north,1",
            "the file cannot be read as CSV at line 8, which has fewer values than the heading's 3",
        ),
        ("a.parquet", b"PAR1 and no more", "the file starts like Parquet but cannot be read: it may be cut off"),
        (
            "a.csv",  # with a line that has a value too many
            LOANS.encode() + b"north,1,yes\n" * 30_000 + b"north,1,yes,no\n",
            "the file cannot be read as CSV at line 30,008, which has more values than the heading's 3",
        ),
        ("a.parquet", LOANS.encode(), "the file is not Parquet, as its name says"),
        ("a.csv.gz", LOANS.encode(), "it is not compressed as its ending .gz says, or it is cut off"),
        ("a.csv.zst", LOANS.encode(), "it is not compressed as its ending .zst says, or it is cut off"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "the file is empty"),
    ],
)
def test_damaged_files_are_told_in_a_sentence(run: Run, tmp_path: Path, name: str, content: bytes, said: str) -> None:
    loans = tmp_path / name
    loans.write_bytes(content)
    assert run("fit", str(loans), *COLUMNS) == (2, "", f"lenience: source '{loans}' cannot be read: {said}\n")


def test_dates_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text("region,approved,repaid,day\nn,1,1,2024-01-31\nn,1,1,\nn,1,0,31.02.2024\nn,1,0,soon\nn,1,0,soon\n")
    code, out, _ = run("fit", str(loans), *COLUMNS, "--time", "day")
    assert code == 0
    warning = " ".join(out.split("\n")[1:4])
    assert warning.startswith("Warning: 4 rows not used: no date that can be read")
    assert "not 'soon', '31.02.2024')" in warning
    loans.write_text("region,approved,repaid,day\nn,1,1,soon\n")
    for more in ((), ("--maturity", "3"), ("--as-of", "31.12.2024")):
        code, _, err = run("fit", str(loans), *COLUMNS, "--time", "day", *more)
        assert (code, "time 'day' has no date that can be read, e.g. 'soon'" in err) == (2, True)


def test_an_ambiguous_date_asks_and_a_repeated_column_blocks_nothing(run: Run, tmp_path: Path) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text("region,approved,repaid,day,note,Note\nn,1,1,06/01/2011,a,b\nn,1,0,07/01/2011,a,b\n")
    given = ("fit", str(loans), *COLUMNS, "--time", "day")
    code, _, err = run(*given)
    assert (code, "--dates mdy" in err) == (2, True)
    for order, last in (("mdy", "2011-07-01"), ("dmy", "2011-01-07")):
        code, out, _ = run(*given, "--dates", order)
        assert (code, f"Counted as of {last}." in out, "'note (1)'" in out) == (0, True, True)
    code, _, err = run(*given[:-1], "note", "--dates", "mdy")
    assert (code, "note (1)" in err) == (2, True)
    assert run(*given[:-2], "--dates", "mdy")[0] == 2  # --dates needs --time


GERMAN = """Nr;Datum;Punkte;genehmigt;Status
1;31.01.2021;1.603,7;ja;zurückgezahlt
2;28.02.2021;603,7;ja;ausgefallen
3;31.03.2021;500;nein;
4;30.04.2021;500;Ja;läuft noch
5;31.05.2021;500;ja;zurückgezahlt
"""
GERMAN_COLUMNS = [
    *("--segment", "Punkte", "--accepted", "genehmigt", "--outcome", "Status", "--time", "Datum"),
    *("--accepted-value", "ja", "--rejected-value", "nein", "--success", "zurückgezahlt"),
]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_file_of_a_german_spreadsheet(run: Run, rejection: Rejection, tmp_path: Path, encoding: str) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_bytes(GERMAN.encode(encoding))
    given = (*GERMAN_COLUMNS, "--failure", "ausgefallen", "--pending", "läuft noch", "--as-of", "30.04.2021")
    code, out, _ = run("fit", str(loans), *given, "--maturity", "60", "--model", "curve", "--score", "Punkte", "--json")
    assert code == 0
    found = json.loads(out)
    rows = {row["segment"]: (row["accepted"], row["arrivals"], row["labels"]) for row in found["segments"]}
    assert rows == {"1603.7": (1, 1, 1), "603.7": (1, 1, 1), "500": (1, 2, 0)}
    assert found["later"] == 1
    assert "Punkte: numbers with a decimal comma, '1.603,7' read as 1603.7." in found["description"]
    assert ("cp1252" in found["description"]) == (encoding == "cp1252")
    for extra, suggestion in (
        (("--failure", "ausgefalen"), "'ausgefalen' does not occur in Status. Did you mean 'ausgefallen'?"),
        (("--accepted-value", "x"), "'x' does not occur in genehmigt. The values are 'ja', 'nein'."),
    ):
        code, _, err = run("fit", str(loans), *GERMAN_COLUMNS, *extra)
        assert (code, suggestion in err) == (2, True), err
    for extra, fields, value in (
        (("--pending", "zurückgezahlt"), ("--success", "--pending"), "zurückgezahlt"),
        (("--maturity", "999"), ("--maturity",), 999),
        (("--as-of", "gestern"), ("--as-of",), "gestern"),
    ):
        error = rejection("fit", str(loans), *GERMAN_COLUMNS, *extra)
        assert (error.fields, error.value) == (fields, value)


def test_what_is_left_out_for_its_words_is_named_with_its_bias(run: Run, tmp_path: Path) -> None:
    loans = tmp_path / "loans.csv"
    rows = [f"{i},n,{'ja' if i % 7 else 'yes'},{'running' if i % 2 else 'repaid'}" for i in range(28)]
    loans.write_text("\n".join(["id,region,approved,repaid", *rows, rows[-1]]) + "\n")
    said = " ".join(run("fit", str(loans), *COLUMNS)[1].split())
    assert "25 rows not used: neither accepted nor rejected: 'ja' (25)." in said
    assert "2 rows not used: an outcome that is neither success nor failure: 'running' (2)." in said
    assert "biased: say which values mean accepted or rejected, and which success, failure or not known yet." in said
    assert "1 row is an exact copy" in said
    assert "If these values of approved mean what their words say, type --accepted-value ja." in said
    assert "If these values of repaid mean what their words say, type --pending running." in said
    said = run("fit", str(loans), *COLUMNS, "--accepted-value", "ja", "--pending", "running")[1]
    assert "29 rows read, 29 used: 14 labels and 15 pending in 1 segment." in said
    assert "biased" not in said
    assert "Type" not in said
    loans.write_text("region,approved,repaid\nn,ja,nein\nn,doch wohl,ja\n")
    code, _, err = run("fit", str(loans), *COLUMNS)
    assert code == 2
    assert err.endswith("Type --accepted-value 'doch wohl' or --rejected-value 'doch wohl'.\n")
    assert "type --accepted-value ja." in err
    loans.write_text("region,approved,repaid\nn,1,nein\nn,1,ja\nn,1,\n")
    said = " ".join(run("fit", str(loans), *COLUMNS)[1].split())
    assert "type --success ja --failure nein." in said


BANDS = (("300-499", 30), ("500-599", 5), ("600-699", 35))


def test_report_says_what_it_needs(run: Run, tmp_path: Path) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text(LOANS)
    floor = ("--cost", "0.5", "--discount", "0.9", "--floor", "0.05", "--floor-group", "nort")
    code, _, err = run("report", str(loans), *COLUMNS, *floor)
    assert code == 2
    assert "--group" in err
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lenience.history.past.believe", None)  # nothing is made of the counts before
        code, _, err = run(
            "report", str(loans), *COLUMNS, *floor, "--group", "region", "--output", str(tmp_path / "x.html")
        )
    said = "lenience: --floor-group must be one of north, south, not 'nort'. Did you mean 'north'?\n"
    assert (code, err) == (2, said)
    for given in ((), ("--gain", "400"), ("--cost", "0.5", "--gain", "400", "--loss", "400")):
        code, _, err = run("report", str(loans), *COLUMNS, *given, "--discount", "0.9")
        assert (code, err) == (2, "lenience: Give either --cost, or --gain with --loss\n")


def test_report_says_by_how_much_better_than_now(run: Run, tmp_path: Path) -> None:
    loans, page = tmp_path / "loans.csv", tmp_path / "report.html"
    rows = [f"{band},{int(i < 40)},{'' if i >= 40 else int(i < good)}" for band, good in BANDS for i in range(50)]
    loans.write_text("\n".join(["region,approved,repaid", *rows]))
    given = ("--gain", "500", "--loss", "500", "--arrivals", "30", "--discount-rate", "0.1", "--output", str(page))
    code, out, _ = run("report", str(loans), *COLUMNS, *given, "--json")
    assert code == 0
    found = json.loads(out)
    now = found["than_now"]
    # A third of 30 a year come in each segment, 80% of them are accepted, each worth 1,000 (p̂ − ½).
    expected = {band: 30 / 3 * 0.8 * 1000 * ((1 + good) / 42 - 0.5) for band, good in BANDS}
    assert {row["segment"]: row["as_now"] for row in now["segments"]} == pytest.approx(expected)
    assert now["as_now"] == pytest.approx(sum(expected.values()))
    assert now["amounts"] == "in your currency per year"
    assert all(row["proposed"] > max(row["as_now"], 0) - 1e-6 for row in now["segments"])
    assert [row["accept"] for row in now["segments"]] == [True, False, True]
    uneven = "decisions along region go up and down (300-499 accept, 500-599 reject, 600-699 accept)"
    assert found["warning"].startswith(uneven)
    text = page.read_text()
    assert "Compared with today" in text
    assert "80.0% → accept" in text
    scored = ("--model", "curve", "--score", "region", "--cost", "0.5", "--discount", "0.9")
    assert "up and down" not in run("fit", str(loans), *COLUMNS, *scored)[1]


def test_without_the_extra_for_history_it_is_said_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for package in ("duckdb", "ibis"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "past.csv").write_text("region,accepted,repaid\nnorth,1,1\n")
    columns = ["--segment", "region", "--accepted", "accepted", "--outcome", "repaid"]
    for command in ("fit", "report"):
        more = ["--cost", "0.8", "--discount", "0.9"] if command == "report" else []
        code, _, err = run(command, str(tmp_path / "past.csv"), *columns, *more)
        assert (code, len(err.strip().splitlines())) == (2, 1)
        assert "pip install 'lenience[history]'" in err
