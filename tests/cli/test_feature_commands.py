"""The commands for individuals with features."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from lenience import FiniteHorizon, InputError
from lenience.cli import cli

Run = Any
Rejection = Callable[..., InputError]


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["income,job,sex,repaid"]
    for _ in range(120):
        income = rng.normal(3, 1)
        lines.append(
            f"{income:.3f},{rng.choice(['cook', 'clerk'])},{rng.choice(['f', 'm'])},{int(rng.random() < 0.3 * income)}"
        )
    file = tmp_path / "loans.csv"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    lines = ["score,accepted,propensity,outcome"]
    for _ in range(800):
        score = rng.random()
        e = 0.9 if score > 0.5 else 0.2
        taken = rng.random() < e
        lines.append(f"{score:.4f},{int(taken)},{e},{int(rng.random() < score) if taken else ''}")
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines))
    return file


def test_replay_json_with_figure_and_report(run: Run, loans: Path, tmp_path: Path) -> None:
    code, out, err = run(
        "replay", str(loans), "--outcome", "repaid", "--features", "income,job", "--group", "sex", "--cost", "0.7",
        "--discount", "0.95", "--seeds", "3", "--figure", str(tmp_path / "f.svg"), "--report", str(tmp_path / "r.html"),
        "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["features"] == ["income", "job=cook"]
    assert answer["columns"] == ["income", "job"]
    assert answer["rows"] == answer["individuals"]
    assert answer["policies"][0]["policy"] == "lenience"
    assert set(answer["policies"][0]["by_group"]) == {"f", "m"}
    assert answer["policies"][0]["behind"] == 0
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    assert "<table>" in (tmp_path / "r.html").read_text()


def test_replay_with_late_labels(run: Run, rejection: Rejection, loans: Path) -> None:
    words = ("replay", str(loans), "--outcome", "repaid", "--features", "income", "--cost", "0.7", "--seeds", "2")
    more = ("--individuals", "40", "--json")
    code, out, err = run(*words, "--discount", "0.95", *more)
    assert (code, err) == (0, "")
    code, late, err = run(*words, "--discount", "0.95", "--label-delay", "15", *more)
    assert (code, err) == (0, "")
    soon, slow = json.loads(out)["policies"], json.loads(late)["policies"]
    assert soon[-1]["policy"] == "always"
    assert soon[-1]["discounted"] == pytest.approx(slow[-1]["discounted"])  # who waits for no label loses nothing
    assert soon[0]["discounted"] != slow[0]["discounted"]
    assert run(*words, "--discount", "0.95", "--label-delay", "0", *more)[1] == out
    error = rejection(*words, "--discount", "0.95", "--label-delay", "-1")
    assert (error.field, error.value) == ("--label-delay", -1)
    error = rejection(*words, "--horizon", "50", "--label-delay", "5")
    assert (error.field, error.value) == ("objective", FiniteHorizon(cost=0.7, horizon=50))


def test_replay_table(run: Run, loans: Path) -> None:
    first, *lines = loans.read_text().splitlines()
    cells = [f"customer {i},{line}" for i, line in enumerate(lines)]
    cells.append(f"a rejected one,{lines[0].rpartition(',')[0]},")
    assert first.endswith(",repaid")
    loans.write_text("\n".join([f"name,{first}", *cells]) + "\n")
    page = loans.with_suffix(".html")
    code, out, _ = run(
        "replay", str(loans), "--outcome", "repaid", "--success", "1", "--cost", "0.6", "--horizon", "30",
        "--seeds", "2", "--warm", "5", "--report", str(page), "--group", "sex",
    )  # fmt: skip
    assert code == 0
    used = f"Only the {len(lines):,} of {len(lines) + 1:,} rows with a known outcome are used"
    for text in (" ".join(out.split()), page.read_text()):
        assert used in text
        assert "to use them): name." in text
        assert "The group sex is not a feature" in text
    assert "total reward, not discounted" in page.read_text()
    assert "5 outcomes are known at the start" in out
    assert "Thompson" in out
    assert "120 individuals, 2 features, break-even 60%" in out
    assert "2 runs are too few to tell whether another policy is ahead of lenience" in " ".join(out.split())
    assert "--seeds" not in page.read_text()


def test_replay_in_order_of_dates_without_open_loans(
    run: Run, rejection: Rejection, loans: Path, tmp_path: Path
) -> None:
    first, *lines = loans.read_text().splitlines()
    words = {"0": "Charged Off", "1": "Fully Paid"}
    rows = []
    for i, line in enumerate(lines):
        before, _, outcome = line.rpartition(",")
        status = "Current" if i % 5 == 4 else words[outcome]
        rows.append(f"{before},{status},{i % 12 + 1:02}/{i % 28 + 1:02}/2011")
    loans.write_text("\n".join([first.replace("repaid", "status,issued"), *rows]) + "\n")
    given: tuple[str, ...] = ("replay", str(loans), "--outcome", "status", "--cost", "0.6", "--discount", "0.9")
    given += ("--seeds", "2")
    error = rejection(*given, "--features", "income")
    assert (error.field, error.value) == ("--outcome", "Current")
    given += ("--features", "income", "--pending", "current", "--in-order")
    assert rejection(*given).fields == ("--time", "--in-order")
    assert rejection(*given[:-1], "--dates", "mdy").field == "--dates"
    files = {kind: str(tmp_path / f"out.{kind}") for kind in ("csv", "parquet", "svg", "html")}
    written = ("--decisions", files["csv"], "--figure", files["svg"], "--report", files["html"])
    code, out, _ = run(*given, "--time", "issued", *written, "--json")
    assert code == 0
    answer = json.loads(out)
    assert (answer["rows"], answer["individuals"], answer["arrivals"]) == (120, 96, 48)
    assert [each["period"] for each in answer["periods"]] == [f"2011-{month:02}" for month in range(1, 13)]
    assert set(answer["periods"][0]["reward"]) == {each["policy"] for each in answer["policies"]}
    assert "Over time" in Path(files["html"]).read_text()
    heading, *decided = Path(files["csv"]).read_text().splitlines()
    assert heading.startswith("run,arrival,row,outcome,lenience,")
    assert len(decided) == 2 * 48
    for line in decided:
        _, _, row, outcome = line.split(",")[:4]
        assert rows[int(row) - 1].split(",")[3] == {"1": "Fully Paid", "0": "Charged Off"}[outcome]
    code, out, _ = run(*given, "--time", "issued", "--dates", "mdy", "--decisions", files["parquet"])
    assert (code, "at the start (2011-01)" in " ".join(out.split())) == (0, True)
    assert rejection(*given, "--time", "issued", "--decisions", "out.txt").field == "--decisions"


def test_offpolicy_leaves_open_cases_to_the_closed(run: Run, rejection: Rejection, log: Path) -> None:
    heading, *lines = log.read_text().splitlines()
    words = {"1": "good", "0": "bad", "": "never"}
    rows = [f"{line.rpartition(',')[0]},{words[line.rpartition(',')[2]]}" for line in lines]
    rows = [row.replace(",good", ",running") if i % 7 == 0 else row for i, row in enumerate(rows)]
    log.write_text("\n".join([heading, *rows]) + "\n")
    given = ("offpolicy", str(log), "--cost", "0.6", "--score", "score", "--at-least", "0.5", "--json")
    assert (rejection(*given).field, rejection(*given).value) == ("--outcome", "running")
    code, out, _ = run(*given, "--pending", "running")
    assert code == 0
    answer = json.loads(out)
    assert answer["pending"] == sum(",running" in row for row in rows) > 20
    assert "have no outcome yet" in answer["statement"]


def test_offpolicy_json(run: Run, log: Path) -> None:
    code, out, err = run(
        "offpolicy", str(log), "--cost", "0.6", "--score", "score", "--at-least", "0.7", "--features", "score", "--json"
    )
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["gain"]["lower"] > 0
    assert answer["doubly_robust"]["value"] == pytest.approx(0.3 * (0.85 - 0.6), abs=0.03)
    assert "would have earned more" in answer["statement"]


def test_rejections_of_a_log(run: Run, rejection: Rejection, log: Path) -> None:
    given = ("rejections", str(log), "--cost", "0.6")
    assert rejection(*given).fields == ("--propensity", "--alike")
    assert rejection(*given, "--alike", "--by-people", "nobody").value == "nobody"
    code, out, _ = run(*given, "--propensity", "propensity", "--days", "365", "--json")
    answer = json.loads(out)
    (only,) = answer["segments"]
    assert (code, only["basis"], len(only["random"]["days"])) == (0, "random", 2)
    assert only["interval"]["lower"] < only["rate"] < only["interval"]["upper"]
    code, out, _ = run("rejections", str(log), "--gain", "40", "--loss", "60", "--currency", "$", "--alike")
    assert code == 0
    assert "of 100" in out
    assert "$" in out


def test_offpolicy_table(run: Run, log: Path) -> None:
    code, out, _ = run("offpolicy", str(log), "--cost", "0.6", "--proposed", "propensity")
    assert code == 0
    assert "inverse propensity" in out
    assert "doubly robust" not in out


def test_offpolicy_asks_what_a_missing_score_means(run: Run, rejection: Rejection, log: Path) -> None:
    heading, *lines = log.read_text().splitlines()
    emptied = [f",{line.partition(',')[2]}" if i % 10 == 0 else line for i, line in enumerate(lines)]
    log.write_text("\n".join([heading, *emptied]))
    words = ("offpolicy", str(log), "--cost", "0.6", "--score", "score", "--at-least", "0.7")
    error = rejection(*words)
    assert (error.field, error.code, error.value) == ("--score", "missing", 80)
    answers = {}
    for meaning, sentence in (
        ("reject", "Without score and rejected by the proposal: 80 of 800 rows (10%)."),
        ("accept", "Without score and accepted by the proposal: 80 of 800 rows (10%)."),
        ("leave-out", "Without score and left out: 80 of 800 rows (10%)."),
    ):
        assert sentence in run(*words, "--without-score", meaning)[1]
        answers[meaning] = json.loads(run(*words, "--without-score", meaning, "--features", "score", "--json")[1])
        assert answers[meaning]["without_score"] == 80
    assert [answer["arrivals"] for answer in answers.values()] == [800, 800, 720]
    assert answers["accept"]["accepted"] == pytest.approx(answers["reject"]["accepted"] + 0.1)


REPLAY = ("replay", "LOANS", "--outcome", "repaid", "--cost", "0.5", "--discount", "0.9")
LOG = ("offpolicy", "LOG", "--cost", "0.6")


@pytest.mark.parametrize(
    ("words", "field", "code"),
    [
        (("replay", "none.csv", *REPLAY[2:]), "data", "missing_file"),
        (("replay", "LOANS", "--outcome", "paid", *REPLAY[4:]), "column", "unknown_name"),
        (("replay", "LOANS", "--outcome", "job", *REPLAY[4:]), "--outcome", "invalid_value"),
        (REPLAY[:6], "--discount", "missing"),
        ((*REPLAY, "--figure", "f.gif"), "--figure", "invalid_value"),
        ((*REPLAY, "--report", "/nowhere/r.html"), "--report", "missing_file"),
        ((*REPLAY, "--features", "job,job"), "--features", "duplicate"),
        ((*LOG, "--proposed", "score", "--without-score", "accept"), "--without-score", "missing"),
        ((*LOG, "--score", "score", "--at-least", "nan"), "--at-least", "invalid_value"),
        (LOG, "--proposed", "missing"),
        ((*LOG, "--proposed", "nothing"), "column", "unknown_name"),
        ((*LOG, "--proposed", "propensity", "--features", "xx"), "column", "unknown_name"),
        ((*LOG, "--proposed", "score", "--propensity", "outcome"), "--propensity", "invalid_value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(
    run: Run, rejection: Rejection, loans: Path, log: Path, words: tuple[str, ...], field: str, code: str
) -> None:
    places = {"LOANS": str(loans), "LOG": str(log)}
    command = [places.get(word, word) for word in words]
    error = rejection(*command)
    assert (error.field, error.code) == (field, code)
    exit_code, out, err = run(*command)
    assert (exit_code, out) == (2, "")
    assert err == f"lenience: {' '.join(str(error).split())}\n"


def test_a_misspelt_column_is_corrected(run: Run, loans: Path) -> None:
    words = ("replay", str(loans), "--outcome", "paid", "--cost", "0.5", "--discount", "0.9")
    assert "not 'paid'. Did you mean 'repaid'?" in run(*words)[2]


def test_a_log_without_overlap_is_rejected(rejection: Rejection, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    rows = "\n".join(f"{i % 2},{i % 2},{i % 2},{'1' if i % 2 else ''}" for i in range(100))
    file.write_text(f"score,accepted,propensity,outcome\n{rows}")
    error = rejection("offpolicy", str(file), "--cost", "0.6", "--score", "score", "--at-least", "0")
    assert (error.field, error.code, error.value) == ("--propensity", "insufficient_data", 0.5)


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """Write loans with amounts, rates and terms."""
    rng = np.random.default_rng(0)
    lines = ["income,lent,interest,term,repaid"]
    for _ in range(150):
        income, repaid = rng.normal(3, 1), ""
        if rng.random() < 0.95:
            repaid = str(int(rng.random() < 0.3 * income))
        lent = rng.choice([1000, 5000]) if repaid else ""  # Rows without an outcome are not used.
        lines.append(f"{income:.3f},{lent},{rng.choice(['12%', '0.2'])},{rng.choice(['36 months', '5'])},{repaid}")
    file = tmp_path / "priced.csv"
    file.write_text("\n".join(lines))
    return file


LOAN = ("--amount", "lent", "--rate", "interest", "--term", "term", "--loss-given-default", "60%", "--currency", "$")


def test_replay_in_money(run: Run, priced: Path, tmp_path: Path) -> None:
    words = ("replay", str(priced), "--outcome", "repaid", "--features", "income", "--discount", "0.9", "--seeds", "2")
    page = tmp_path / "r.html"
    code, out, err = run(*words, *LOAN, "--funding-rate", "4%", "--individuals", "30", "--report", str(page), "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert [each["policy"] for each in answer["policies"]][:3] == ["lenience", "lenience, one break-even", "greedy"]
    assert answer["unit"] == {"gain": None, "loss": None, "amount": 1.0, "currency": "$"}
    assert "$" in page.read_text()
    code, out, err = run(*words, *LOAN, "--individuals", "30")
    assert (code, err) == (0, "")
    assert "at stake on average, break-even" in out
    assert "own break-even" in out


def test_replay_of_equal_offers_is_one_cost_times_the_amount(run: Run, loans: Path, tmp_path: Path) -> None:
    header, *lines = loans.read_text().splitlines()
    same = tmp_path / "same.csv"
    same.write_text("\n".join([f"{header},loses", *(f"{line},300" for line in lines)]))
    words = ("--outcome", "repaid", "--features", "income", "--discount", "0.9", "--seeds", "2", "--individuals", "30")
    plain = json.loads(run("replay", str(loans), *words, "--gain", "100", "--loss", "300", "--json")[1])
    rows = json.loads(run("replay", str(same), *words, "--gain", "100", "--loss", "loses", "--json")[1])
    before = {each["policy"]: each["discounted"] for each in plain["policies"]}
    after = {each["policy"]: each["discounted"] for each in rows["policies"]}
    for policy, reward in before.items():
        assert after[policy] == pytest.approx(plain["unit"]["amount"] * reward)


def test_offpolicy_in_money(run: Run, log: Path, tmp_path: Path) -> None:
    header, *lines = log.read_text().splitlines()
    same = tmp_path / "same.csv"
    same.write_text("\n".join([f"{header},loses", *(f"{line},300" for line in lines)]))
    words = ("--score", "score", "--at-least", "0.6", "--features", "score", "--gain", "100", "--currency", "$")
    plain = json.loads(run("offpolicy", str(log), *words, "--loss", "300", "--json")[1])
    code, out, err = run("offpolicy", str(same), *words, "--loss", "loses", "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)
    for name in ("logged", "inverse_propensity", "doubly_robust", "gain"):
        assert rows[name]["value"] == pytest.approx(400 * plain[name]["value"])
        assert rows[name]["upper"] == pytest.approx(400 * plain[name]["upper"])
    assert "$" in rows["statement"]
    assert rows["unit"]["amount"] == 1.0
    assert plain["unit"]["amount"] == 400.0
    code, out, err = run("offpolicy", str(same), *words, "--loss", "loses")
    assert (code, err) == (0, "")
    assert "$400 at stake on average" in out


def test_units_of_rates_and_terms(run: Run, rejection: Rejection, log: Path, priced: Path, tmp_path: Path) -> None:
    """Numbers without a unit need --rate-unit and --term-unit, and then mean what texts with a unit mean."""
    header, *lines = log.read_text().splitlines()
    file = tmp_path / "units.csv"
    names, cells = "lent,percent,rate,months,term", "1000,12,12%,36,36 months"
    file.write_text("\n".join([f"{header},{names}", *(f"{line},{cells}" for line in lines)]))
    words = ("offpolicy", str(file), "--score", "score", "--at-least", "0.6", "--amount", "lent")
    with_units = ("--rate", "percent", "--rate-unit", "percent", "--term", "months", "--term-unit", "months")
    code, numbers, err = run(*words, *with_units, "--json")
    assert (code, err) == (0, "Numbers in percent are read as percents: 12 is 12%.\n")
    assert numbers == run(*words, "--rate", "rate", "--term", "term", "--json")[1]
    error = rejection(*words, "--rate", "percent", "--term", "term")
    assert (error.field, error.code) == ("--rate-unit", "missing")
    error = rejection(*words, "--rate", "rate", "--term", "months")
    assert (error.field, error.code) == ("--term-unit", "missing")
    replay = ("replay", str(priced), "--outcome", "repaid", "--discount", "0.9", "--amount", "lent", "--rate", "15%")
    error = rejection(*replay, "--term", "36")
    assert (error.field, error.code) == ("--term-unit", "missing")


@pytest.mark.parametrize("command", ["report", "replay", "offpolicy"])
def test_all_commands_have_the_options_of_fit_for_gains_and_losses(command: str) -> None:
    def options(name: str) -> dict[str, str | None]:
        chosen = cli.get_command(click.Context(cli), name)
        assert chosen is not None
        return {one.opts[0]: one.help for one in chosen.params if isinstance(one, click.Option)}

    names = ("cost", "gain", "loss", "amount", "rate", "term", "loss-given-default", "funding-rate", "term-unit")
    for name in (*names, "rate-unit", "currency"):
        assert options(command)[f"--{name}"] == options("fit")[f"--{name}"]


def test_either_a_cost_or_gains_and_losses(rejection: Rejection, loans: Path, priced: Path, log: Path) -> None:
    words = ("replay", str(loans), "--outcome", "repaid", "--discount", "0.9")
    assert rejection(*words).code == "missing"
    assert rejection(*words, "--cost", "0.7", "--gain", "1", "--loss", "2").code == "conflicting_fields"
    assert rejection(*words, "--gain", "1").code == "missing"
    error = rejection(*words, "--gain", "profit", "--loss", "2")
    assert (error.field, error.code) == ("--gain", "unknown_name")
    error = rejection("replay", str(priced), "--outcome", "repaid", "--discount", "0.9", *LOAN, "--funding-rate", "4")
    assert error.field == "--funding-rate"
    score = ("--score", "score", "--at-least", "0.6")
    assert rejection("offpolicy", str(log), *score).code == "missing"
    assert rejection("offpolicy", str(log), *score, "--cost", "0.7", "--amount", "2").code == "conflicting_fields"
