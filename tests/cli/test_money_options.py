"""Gains and losses on the command line: amounts in money."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Any
MONEY = ("--gain", "200", "--loss", "800")
UNIT = {"gain": 200.0, "loss": 800.0, "amount": 1000.0, "currency": "$"}
SHORT = ("--horizon", "50", "--replications", "20")
LATE = ("--arrivals", "20", "--discount-rate", "0.5", "--label-delay", "0.25")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write past decisions with a score and propensities, and return the file's name."""
    path = tmp_path_factory.mktemp("money") / "past.csv"
    rng = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "score", "accepted", "propensity", "outcome"])
        for row in range(300):
            score, accepted = rng.random(), rng.random() < 0.5
            outcome = int(rng.random() < 0.6 + 0.3 * score) if accepted else ""
            writer.writerow([("north", "south")[row % 2], f"{score:.3f}", int(accepted), 0.5, outcome])
    return str(path)


def commands(past: str) -> list[tuple[str, ...]]:
    columns = ("--accepted", "accepted", "--outcome", "outcome")
    return [
        ("solve", "--discount", "0.95"),
        ("solve", "--horizon", "20"),
        ("solve", "--discount", "0.95", "--segment", "a=0.7", "--segment", "b=0.3"),
        ("threshold", "--discount", "0.95", "-n", "5", "--tolerance", "1e-6"),
        ("characteristics", "--discount", "0.9", "--rows", "100"),
        ("delay", *LATE, "--cap", "2"),
        ("regret", "--horizon", "20"),
        ("simulate", *SHORT, "--policy", "greedy"),
        ("offpolicy", past, "--score", "score", "--at-least", "0.5"),
        ("fit", past, "--segment", "region", *columns, "--discount", "0.95"),
    ]


NAMES = [" ".join(words[:2]) for words in commands("past.csv")]


@pytest.mark.parametrize("position", range(len(NAMES)), ids=NAMES)
def test_gain_and_loss_are_a_cost_with_a_unit(run: Run, past: str, position: int) -> None:
    words = commands(past)[position]
    code, out, _ = run(*words, *MONEY, "--currency", "$", "--json")
    assert code == 0
    in_money = json.loads(out)
    assert in_money.pop("unit") == pytest.approx(UNIT)
    code, out, _ = run(*words, "--cost", "0.8", "--json")
    assert code == 0
    in_units = json.loads(out)
    assert in_units.pop("unit") is None
    for answer in (in_money, in_units):  # texts show money, numbers do not change
        for text in ("explanation", "statement"):
            answer.pop(text, None)
        answer.get("certificate", {}).pop("statement", None)
        for row in answer.get("segments", []):
            row.pop("explanation", None)
    assert in_money == in_units


@pytest.mark.parametrize("position", [0, 1, 2, 4, 5, 6, 7, 8], ids=[NAMES[i] for i in (0, 1, 2, 4, 5, 6, 7, 8)])
def test_texts_show_money(run: Run, past: str, position: int) -> None:
    words = commands(past)[position]
    code, out, _ = run(*words, *MONEY, "--currency", "EUR")
    assert code == 0
    assert "EUR " in out
    assert "gain + loss" not in out
    assert "1 − c" not in out


def test_solve_prints_the_value_in_money(run: Run) -> None:
    code, out, _ = run("solve", "--discount", "0.99", *MONEY, "--currency", "$")
    assert code == 0
    out = " ".join(out.split())
    assert "expected to earn $1,029 in total" in out
    assert "A success earns $200 and a failure loses $800" in out
    assert "Value at the prior: $1,029.17 ± $0.01" in out


def test_simulated_rewards_are_scaled(run: Run) -> None:
    words = ("simulate", *SHORT, "--policy", "always-accept", "--world", "bernoulli:p=1.0")
    code, out, _ = run(*words, *MONEY, "--currency", "$")
    assert code == 0
    (line,) = (line for line in out.splitlines() if line.startswith(" constant"))
    assert "$10,000" in line  # fifty successes of $200


@pytest.mark.parametrize("figure", ["values", "thresholds", "characteristics", "regret"])
def test_figures_take_gain_and_loss(run: Run, tmp_path: Path, figure: str) -> None:
    path = tmp_path / "figure.svg"
    most = ("--most", "30") if figure in ("regret", "thresholds") else ()
    code, _, err = run("plot", figure, "--output", str(path), *MONEY, "--currency", "EUR", *most)
    assert (code, err.count("Traceback")) == (0, 0)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--cost", "0.8", "--gain", "200", "--loss", "800"), "either --cost, or --gain with --loss"),
        (("--gain", "200"), "either --cost, or --gain with --loss"),
        (("--loss", "200"), "either --cost, or --gain with --loss"),
        (("--cost", "0.8", "--currency", "$"), "--currency needs --gain and --loss"),
        (("--gain", "0", "--loss", "800"), "gain must be"),
        (("--gain", "200", "--loss", "nan"), "loss must be"),
    ],
)
def test_a_wrong_choice_of_options_is_rejected(run: Run, words: tuple[str, ...], part: str) -> None:
    code, out, err = run("solve", "--discount", "0.9", *words)
    assert (code, out) == (2, "")
    assert part in err
