"""One path: sample, fit, check, serve. No policy is written by hand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import Engine
from lenience import FeaturePolicy
from lenience.cli import COMMANDS, GROUPS, cli
from lenience.cli.serve import prepare
from lenience.data import sample_loans
from serving import serving

Run = Callable[..., tuple[int, str, str]]
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


def versions(database: str) -> dict[int, str]:
    with sqlite3.connect(database) as base:
        return dict(base.execute("SELECT number, state FROM version"))


def test_the_service_starts_with_the_file(policy: str, run: Run, tmp_path: Path) -> None:
    database = str(tmp_path / "decisions.db")
    with serving(database, "--policy", policy) as service, service.client() as client:
        assert client.decide("loans-policy", segment="A")["decision"] == "accept"
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
