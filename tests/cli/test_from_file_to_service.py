"""One path: sample, fit, check, serve. No policy is written by hand."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from engines import Engine
from lenience import Discounted, FeaturePolicy, fit_history
from lenience.cli import COMMANDS, GROUPS, cli
from lenience.cli.serve import prepare
from lenience.data import sample_loans
from serving import serving

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
COLUMNS = (
    "--accepted",
    "approved",
    "--outcome",
    "status",
    "--pending",
    "Current",
    "--pending",
    "Late",
    "--cost",
    "0.75",
)
TIMED = ("--arrivals", "1000", "--discount-rate", "0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("path")


@pytest.fixture
def loans(run: Run, folder: Path) -> str:
    path = folder / "loans.csv"
    if not path.exists():
        code, _, err = run("sample", str(path), "--rows", "1500")
        assert code == 0, err
    return str(path)


@pytest.fixture
def policy(run: Run, loans: str, folder: Path) -> str:
    path = folder / "loans-policy.json"
    if not path.exists():
        code, _, err = run("fit", loans, "--segment", "grade", *COLUMNS, *TIMED, "--output", str(path))
        assert code == 0, err
    return str(path)


def test_the_sample_is_what_its_description_says() -> None:
    loans = sample_loans(4000, seed=3)
    assert loans == sample_loans(4000, seed=3)
    assert loans != sample_loans(4000, seed=4)
    accepted = [i for i, word in enumerate(loans["approved"]) if word == "yes"]
    assert all((loans["status"][i] == "") == (loans["approved"][i] == "no") for i in range(4000))
    assert all(bool(loans["closed"][i]) == (loans["status"][i] in ("Fully Paid", "Charged Off")) for i in range(4000))
    low = [i for i in range(4000) if loans["score"][i] < 640]
    assert 0.01 < sum(loans["approved"][i] == "yes" for i in low) / len(low) < 0.08
    assert all(loans["approved"][i] == "yes" for i in range(4000) if loans["score"][i] >= 640)
    rates = {}
    for grades in ("AB", "D"):
        known = [loans["status"][i] for i in accepted if loans["grade"][i] in grades and loans["closed"][i]]
        rates[grades] = known.count("Fully Paid") / len(known)
    assert rates["AB"] > rates["D"] + 0.1


def test_a_file_that_exists_is_kept(run: Run, loans: str) -> None:
    before = Path(loans).read_text(encoding="utf-8")
    code, _, err = run("sample", loans, "--rows", "10")
    assert code == 2
    assert "--replace" in err
    assert Path(loans).read_text(encoding="utf-8") == before


def test_check_says_who_is_accepted(run: Run, policy: str) -> None:
    code, out, err = run("check", policy, "--json")
    assert code == 0, err
    answer = json.loads(out)
    rows = {row["segment"]: row for row in answer["segments"]}
    assert set(rows) == set("ABCDEF")
    assert rows["A"]["starts"] is True
    assert rows["A"]["success_rate"] > rows["A"]["break_even"] == 0.75
    accepted = sum(row["share"] * row["share_accepted"] for row in rows.values())
    assert answer["accepted_at_start"] == pytest.approx(accepted)
    code, out, _ = run("check", policy)
    assert code == 0
    assert f"about {100 * accepted:.0f} are accepted" in out


def console_commands(page: str) -> list[list[str]]:
    """The lenience commands in the console blocks of a page, as a shell would split them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line.removeprefix("$ "), comments=True)[1:] for line in lines if line.startswith("$ lenience ")]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/lender.md"])
def test_every_console_command_is_valid(page: str) -> None:
    commands = console_commands(page)
    assert [words[0] for words in commands][-1] == "serve"
    for name, *words in commands:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.path.exists", lambda path: True)
            command.make_context(name, list(words))


def test_the_commands_of_the_readme_run_as_printed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the last one, which would serve: its file is checked."""
    monkeypatch.chdir(tmp_path)
    import_module("lenience.reports.segment_report")  # before it could import what replaces the function here
    monkeypatch.setattr("lenience.segments.starting.shut_out_at_outset", lambda *values: [])  # takes seconds
    for words in console_commands("README.md"):
        if words[0] == "serve":
            assert words == ["serve", "--policy", "policy.json"]
            break
        code, out, err = run(*words)
        assert code == 0, err
    assert "The expected profit on these 100 is $" in out
    assert (tmp_path / "report.html").exists()
    answer = json.loads(run("check", "policy.json", "--json")[1])
    rows = {row["segment"]: row for row in answer["segments"]}
    assert answer["currency"] == "$"
    assert answer["profit_per_year"] > 100_000
    assert rows["A"]["profit_per_applicant"] > 0 > rows["F"]["profit_per_applicant"]
    total = sum(row["share"] * row["profit_per_applicant"] for row in rows.values())
    assert answer["profit_per_applicant"] == pytest.approx(total)


def test_check_names_the_loss_of_a_segment_that_never_starts(run: Run, tmp_path: Path) -> None:
    past = {"grade": ["A"] * 40 + ["F"] * 60, "in": [1] * 100, "good": [1] * 40 + [0] * 60, "won": [20] * 100}
    history = fit_history(past, "grade", "in", "good", gain="won", loss=80, currency="$")
    objective = Discounted(offers=history.offers_of_all(), arrivals=50, discount_rate=0.1)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(history.specification("loans", objective)), encoding="utf-8")
    rows = {row["segment"]: row for row in json.loads(run("check", str(path), "--json")[1])["segments"]}
    assert (rows["F"]["starts"], rows["F"]["profit_per_applicant"]) == (False, 0)
    assert rows["A"]["profit_per_applicant"] == pytest.approx(100 * (41 / 42) - 80)
    lost = 80 - 100 * (1 / 62)
    assert f"would lose ${lost:.2f} an applicant" in " ".join(run("check", str(path))[1].split())


def versions(database: str) -> dict[int, str]:
    query = "SELECT number, state FROM version JOIN policy ON policy.id = version.policy_id WHERE name != 'from-python'"
    with sqlite3.connect(database) as base:
        return dict(base.execute(query))


def test_the_service_starts_with_the_file(policy: str, loans: str, run: Run, tmp_path: Path) -> None:
    database = str(tmp_path / "decisions.db")
    with serving(database, "--policy", policy) as service, service.client() as client:
        assert client.decide("loans-policy", segment="A")["decision"] == "accept"
        # A running service takes the policy of a history from Python.
        history = fit_history(loans, "grade", "approved", "status", pending=["Current", "Late"])
        client.create_policy(history.specification("from-python", Discounted(0.75, 0.99)))
        client.activate("from-python")
        assert client.decide("from-python", segment="A")["decision"] == "accept"
    prepare("127.0.0.1", database, 1, policy_file=policy)  # the next start finds the same policy and changes nothing
    assert versions(database) == {1: "active"}
    document = json.loads(Path(policy).read_text(encoding="utf-8"))
    document["objective"]["cost"] = 0.995
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document), encoding="utf-8")
    prepare("127.0.0.1", database, 1, policy_file=str(changed))
    assert versions(database) == {1: "retired", 2: "active"}
    for _ in range(2):
        prepare("127.0.0.1", database, 1, policy_file=policy, activate=False)  # --four-eyes: somebody else activates
        assert versions(database) == {1: "retired", 2: "active", 3: "draft"}
    code, _, err = run("audit", "--database", database)
    assert code == 0, err


def test_a_policy_with_features_is_checked_and_made_active(run: Run, loans: str, tmp_path: Path) -> None:
    path, database = tmp_path / "by-features.json", str(tmp_path / "decisions.db")
    words = ("--model", "logistic", "--feature", "score", "--feature", "purpose", *COLUMNS, *TIMED)
    assert run("fit", loans, *words, "--output", str(path))[0] == 0
    code, out, err = run("check", str(path), "--json")
    assert code == 0, err
    assert json.loads(out)["features"] == ["score", "purpose"]
    assert 0 < json.loads(out)["accepted_at_start"] < 1
    prepare("127.0.0.1", database, 1, policy_file=str(path))
    assert versions(database) == {1: "active"}
    engine = Engine(database)
    for applicant in ({"score": 790, "purpose": "car"}, {"score": 510, "purpose": "business"}):
        answer = engine.decide(None, policy="by-features", features=applicant)
        assert (answer["decision"] == "accept") == bool(FeaturePolicy.load(path).accepts([applicant])[0])
    engine.close()


def test_a_bad_policy_file_stops_the_service(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text("{}", encoding="utf-8")
    for words in (("check", str(path)), ("serve", "--policy", str(path), "--database", str(tmp_path / "d.db"))):
        code, _, err = run(*words)
        assert code == 2
        assert "policy.json" in err


def test_help_lists_every_command_once_by_purpose(run: Run) -> None:
    assert list(GROUPS) == ["Start here", "Decide", "Data", "Compare", "Operate", "Research"]
    assert len(GROUPS["Start here"]) == 5
    assert len(COMMANDS) == sum(len(group) for group in GROUPS.values())
    _, out, _ = run("--help")
    places = [out.index(f"\n{heading}:") for heading in GROUPS]
    assert places == sorted(places)
    for name in COMMANDS:
        assert f"\n  {name} " in out
        assert cli.get_command(None, name) is not None  # type: ignore[arg-type]
