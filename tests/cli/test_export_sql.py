"""lenience fit --output and lenience export-sql: from a file of loans to SQL that decides."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lenience.service.domain.specification import PolicySpecification

Run = Callable[..., tuple[int, str, str]]
FIT = ("--segment", "region", "--accepted", "approved", "--outcome", "repaid", "--arrivals", "500", "--discount-rate")
RATES = {"north": 0.92, "south": 0.6, "mid, east": 0.79}


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(8)
    rows = ["region,approved,repaid,gain,loss"]
    for name, rate in RATES.items():
        for _ in range(60):
            good, amount = int(rng.random() < rate), rng.choice([100, 1000])
            rows.append(f'"{name}",1,{good},{amount / 4},{amount}')
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return str(path)


def test_from_a_file_to_sql_that_decides(run: Run, loans: str, tmp_path: Path) -> None:
    policy, sql = tmp_path / "My loans.json", tmp_path / "policy.sql"
    code, out, err = run("fit", loans, *FIT, "0.1", "--cost", "0.8", "--output", str(policy), "--json")
    assert code == 0, err
    fitted = json.loads(out)
    assert fitted["output"] == str(policy)
    posted = msgspec.json.decode(policy.read_bytes(), type=PolicySpecification)
    assert posted.name == "My-loans"
    assert [one.prior for one in posted.problems()] == [
        msgspec.convert(row["belief"], type(posted.prior)) for row in fitted["segments"]
    ]
    assert posted.past_outcomes_by_segment(RATES) == dict.fromkeys(RATES, 60.0)
    words = ("export-sql", str(policy), "--dialect", "sqlite", "--segment", "region", "--output", str(sql))
    assert run(*words)[:2] == (0, "")
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE applicants (region TEXT)")
        base.executemany("INSERT INTO applicants VALUES (?)", [(name,) for name in (*RATES, "nowhere")])
        found = {row[0]: row[1] for row in base.execute(sql.read_text(encoding="utf-8"))}
    wanted = {row["segment"]: "accept" if row["accept"] else "reject" for row in fitted["segments"]}
    assert found == {**wanted, "nowhere": None}
    assert set(wanted.values()) == {"accept", "reject"}


def test_offers_are_written_with_each_segment(run: Run, loans: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    options = ("--gain", "gain", "--loss", "loss", "--currency", "€", "--doubt", "0.1", "--output", str(policy))
    code, out, err = run("fit", loans, *FIT, "0.1", *options)
    assert code == 0, err
    assert str(policy) in out.replace("\n", "")
    posted = msgspec.json.decode(policy.read_bytes(), type=PolicySpecification)
    assert posted.objective.offers is not None
    assert posted.objective.offers.currency == "€"
    assert posted.doubt == 0.1
    assert {amount for one in posted.problems() for amount in one.problem.offers.amount} == {125.0, 1250.0}  # type: ignore[union-attr]
    words = ("export-sql", str(policy), "--dialect", "duckdb", "--segment", "region", "--amount", "a", "--cost", "c")
    code, out, err = run(*words, "--json")
    assert code == 0, err
    assert "label_value" in json.loads(out)["sql"]


def test_late_outcomes_are_kept_and_not_exported(run: Run, loans: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    code, _, err = run("fit", loans, *FIT, "0.1", "--cost", "0.8", "--label-delay", "0.5", "--output", str(policy))
    assert code == 0, err
    assert msgspec.json.decode(policy.read_bytes(), type=PolicySpecification).objective.label_delay == 0.5
    code, _, err = run("export-sql", str(policy), "--dialect", "duckdb")
    assert code == 2
    assert "late" in err


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"name": "a"}', "\x00"])
def test_a_file_that_is_no_policy(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.json"
    path.write_text(text, encoding="utf-8")
    code, _, err = run("export-sql", str(path), "--dialect", "duckdb")
    assert code == 2
    assert "policy.json" in err
    assert "Traceback" not in err


def test_without_a_break_even_there_is_no_policy(run: Run, loans: str, tmp_path: Path) -> None:
    code, _, err = run("fit", loans, *FIT[:6], "--output", str(tmp_path / "policy.json"))
    assert code == 2
    assert "--cost" in err
