"""lenience fit with features: a policy from a file of past decisions, as a file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from lenience import FeaturePolicy, Offer

Run = Any
COLUMNS = ("--accepted", "approved", "--outcome", "repaid", "--cost", "0.8", "--discount", "0.99")


def rows(seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    out = []
    for i in range(300):
        income, pd, purpose = rng.lognormal(8, 0.5), rng.beta(2, 8), str(rng.choice(["car", "home"]))
        approved = income > 2200
        good = rng.random() < expit(1.5 + (np.log(income) - 8) - 4 * (pd - 0.2))
        out.append(
            {
                "loan_id": f"L{i:04}", "date": f"2024-01-{1 + i % 28:02}", "income": f"{income:.0f}",
                "pd": f"{pd:.3f}" if i % 20 else "", "purpose": purpose, "branch": str(1 + i % 3),
                "amount": str(1000 * (1 + i % 3)), "approved": "yes" if approved else "no",
                "repaid": ("yes" if good else "no") if approved and i % 7 else "",
            }
        )  # fmt: skip
    return out


def written(path: Path, lines: list[dict[str, Any]]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return str(path)


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("loans") / "loans.csv", rows())


def fitted(run: Run, source: str, *options: str) -> dict[str, Any]:
    code, out, err = run("fit", source, *COLUMNS, *options, "--json")
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_one_gain_and_loss_make_a_policy_in_money(run: Run, loans: str, tmp_path: Path) -> None:
    path = str(tmp_path / "money.json")
    given = ("--model", "logistic", "--feature", "income", "--gain", "10", "--loss", "40", "--currency", "$")
    code, out, err = run(
        "fit", loans, *given, "--accepted", "approved", "--outcome", "repaid", "--discount", "0.9", "--output", path
    )
    assert code == 0, err
    assert "--feature-range income=" in out
    assert json.loads(Path(path).read_text())["objective"]["offers"]["currency"] == "$"
    checked = json.loads(run("check", path, "--json")[1])
    rule = FeaturePolicy.load(path).to_rule()
    decided = rule.decide_many(rule.reference)
    profits = [one.mean * 10 - (1 - one.mean) * 40 if one.accepted else 0 for one in decided]
    assert checked["profit_per_applicant"] == pytest.approx(sum(profits) / len(profits))
    assert checked["currency"] == "$"


def test_a_logistic_policy_is_fitted_and_written(run: Run, loans: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    answer = fitted(run, loans, "--model", "logistic", "--category", "branch", "--output", str(path))
    taken = [line for line in rows() if line["approved"] == "yes"]
    known = [line for line in taken if line["repaid"]]
    assert (answer["rows"], answer["accepted"], answer["labels"]) == (300, len(taken), len(known))
    assert [column["name"] for column in answer["columns"]] == ["income", "pd", "purpose", "branch", "amount"]
    assert [column.get("type", "number") for column in answer["columns"]][2:] == ["category", "category", "number"]
    assert answer["left_out"] == ["loan_id", "date"]
    assert sum(band["labels"] for band in answer["bands"]) == len(known)
    assert sum(band["labels"] * band["observed"] for band in answer["bands"]) == pytest.approx(
        sum(line["repaid"] == "yes" for line in known)
    )
    policy = FeaturePolicy.load(path)
    assert policy.to_rule().state_hash() == answer["state_hash"]
    assert policy.labels_ == len(known)
    origin = json.loads(path.read_text())["origin"]
    assert (origin["file"], origin["rows"], origin["labels"]) == ("loans.csv", 300, len(known))
    assert (origin["settings"]["success"], origin["settings"]["pending"]) == ("yes", "(empty)")
    assert policy.model_.selection_ is not None  # income decided who was approved
    poor, rich = ({"income": income, "purpose": "car"} for income in (500, 9000))
    n, mean = policy.beliefs([poor, rich])
    assert mean[0] < mean[1]
    assert n[0] < n[1]  # nobody like the first was approved
    assert policy.accepts([rich])[0]


def test_the_order_of_rows_does_not_matter(run: Run, loans: str, tmp_path: Path) -> None:
    options = ("--model", "logistic", "--feature", "income", "--feature", "purpose")
    shuffled = [rows()[i] for i in np.random.default_rng(1).permutation(300)]
    other = written(tmp_path / "shuffled.csv", shuffled)
    assert fitted(run, loans, *options)["state_hash"] == fitted(run, other, *options)["state_hash"]


@pytest.mark.parametrize("model", ["logistic", "calibrated"])
def test_monitored_columns_are_measured_and_not_used(run: Run, tmp_path: Path, model: str) -> None:
    lines = [{**line, "sex": ("f", "m", "")[i % 3]} for i, line in enumerate(rows()) if line["pd"]]
    source = written(tmp_path / "loans.csv", lines)
    options = ("--score", "pd") if model == "calibrated" else ("--category", "branch")
    answer = fitted(run, source, "--model", model, *options, "--monitor", "sex")
    [by_sex] = answer["monitored"]
    women = [line for line in lines if line["sex"] == "f"]
    group = next(one for one in by_sex["groups"] if one["name"] == "f")
    assert group["counts"]["arrivals"] == len(women)
    assert group["counts"]["successes"] == sum(line["repaid"] == "yes" for line in women)
    assert group["acceptance"]["value"] == pytest.approx(np.mean([line["approved"] == "yes" for line in women]))
    assert by_sex["unknown"]["arrivals"] == sum(line["sex"] == "" for line in lines)
    assert "sex" not in [column["name"] for column in answer["columns"]]
    if model == "logistic":
        others = [{key: value for key, value in line.items() if key != "sex"} for line in lines]
        plain = fitted(run, written(tmp_path / "plain.csv", others), "--model", model, *options)
        assert plain["state_hash"] == answer["state_hash"]
        code, _, err = run(
            "fit", source, *COLUMNS, "--model", model, "--feature", "sex", "--feature", "income", "--monitor", "sex"
        )
        assert (code, "--decide-by-protected" in err) == (2, True)
        code, out, _ = run("fit", source, *COLUMNS, "--model", model, *options, "--monitor", "sex")
        assert (code, "Past decisions by sex" in out) == (0, True)
        code, _, err = run("fit", source, *COLUMNS, "--model", model, "--monitor", "race")
        assert (code, "race" in err) == (2, True)


def test_a_score_is_calibrated(run: Run, tmp_path: Path) -> None:
    lines = [line for line in rows() if line["pd"]]
    source, path = written(tmp_path / "loans.csv", lines), tmp_path / "policy.json"
    options = ("--model", "calibrated", "--score", "pd", "--segment", "purpose", "--output", str(path))
    answer = fitted(run, source, *options, "--trust", "50")
    assert [(column["name"], column.get("required", False)) for column in answer["columns"]] == [
        ("pd", True), ("purpose", False),
    ]  # fmt: skip
    policy = FeaturePolicy.load(path)
    low, high = policy.beliefs([{"pd": 0.05, "purpose": "car"}, {"pd": 0.6, "purpose": "car"}])[1]
    assert low > high
    trusting = fitted(run, source, *options, "--trust", "1e9")
    assert trusting["state_hash"] != answer["state_hash"]
    same = FeaturePolicy.load(path).beliefs([{"pd": 0.25, "purpose": "car"}])[1]
    assert same == pytest.approx([0.75], abs=1e-3)


def test_amounts_that_differ_make_offers(run: Run, loans: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    code, _, err = run(
        "fit", loans, "--accepted", "approved", "--outcome", "repaid", "--model", "logistic", "--feature", "income",
        "--amount", "amount", "--rate", "0.2", "--term", "1", "--currency", "$", "--discount", "0.9",
        "--output", str(path),
    )  # fmt: skip
    assert code == 0, err
    policy = FeaturePolicy.load(path)
    assert policy.objective.offers is not None
    assert policy.accepts([{"income": 9000}], Offer(1200, 0.8)).shape == (1,)


def test_words_and_table_are_printed(run: Run, loans: str) -> None:
    code, out, _ = run("fit", loans, *COLUMNS, "--model", "logistic", "--feature", "income")
    assert code == 0
    assert "300 applicants" in out
    assert "would be accepted now" in out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--model", "logistic", "--feature", "incme"), "incme"),
        (("--model", "logistic", "--feature", "repaid"), "repaid"),
        (("--model", "calibrated"), "--score"),
        (("--model", "calibrated", "--score", "purpose"), "purpose"),
        (("--model", "calibrated", "--score", "income"), "income"),
        (("--model", "logistic", "--score", "pd"), "--score"),
        (("--model", "logistic", "--trust", "3"), "--trust"),
        (("--model", "logistic", "--maturity", "3"), "--maturity"),
        (("--model", "logistic", "--output", "no/folder/policy.json"), "policy.json"),
        (("--segment", "purpose", "--output", "no/folder/policy.json"), "policy.json"),
        ((), "--segment"),
    ],
)
def test_mistakes_are_named(run: Run, loans: str, options: tuple[str, ...], named: str) -> None:
    code, _, err = run("fit", loans, *COLUMNS, *options)
    assert code == 2
    assert named in err
    assert "Traceback" not in err


def test_a_model_with_features_needs_a_break_even(run: Run, loans: str) -> None:
    code, _, err = run("fit", loans, "--accepted", "approved", "--outcome", "repaid", "--model", "logistic")
    assert (code, "--cost" in err) == (2, True)
    code, _, err = run(
        "fit", loans, "--accepted", "purpose", "--outcome", "repaid", "--model", "logistic", "--cost", "0.8",
        "--discount", "0.9",
    )  # fmt: skip
    assert (code, "--accepted-value" in err) == (2, True)
