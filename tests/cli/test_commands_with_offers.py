"""lenience simulate and lenience characteristics with --offer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lenience import Belief, Discounted, FiniteHorizon, Offers, characteristics, compare_policies
from lenience.policies import GreedyOffers
from lenience.simulation import FromPrior

Run = Any
TWO = ("--offer", "500@0.8@3", "--offer", "5000@0.7@1")
OFFERS = Offers([500, 5000], [0.8, 0.7], [3, 1])


def test_simulate(run: Run) -> None:
    given = ("--discount", "0.95", "--horizon", "80", "--replications", "60", "--workers", "1", "--seed", "3")
    code, out, _ = run("simulate", *TWO, *given, "--json")
    assert code == 0
    answer = json.loads(out)
    rows = {(row["policy"], row["metric"]): row for row in answer["summary"]}
    assert answer["reference"] == "optimum"
    assert {name for name, _ in rows} == {
        "optimum",
        "greedy",
        "policy for each break-even",
        "same policy for all",
        "always accept",
    }
    same = compare_policies(
        {"greedy": GreedyOffers()}, FromPrior(Belief(2, 1)), offers=OFFERS, discount=0.95, horizon=80,
        replications=60, seed=3, workers=1,
    )  # fmt: skip
    for name in ("optimum", "greedy"):
        assert rows[name, "discounted"]["mean"] == same.estimate(name, "discounted").mean
    code, out, _ = run("simulate", *TWO, *given, "--currency", "$", "--policy", "greedy-offers", "--policy", "greedy")
    assert code == 0
    assert "$" in out
    assert "greedy-offers" in out
    assert "money" in out


def test_characteristics(run: Run) -> None:
    code, out, _ = run("characteristics", *TWO, "--discount", "0.9", "--p", "0.85", "--rows", "300", "--json")
    assert code == 0
    first, averaged = json.loads(out)["characteristics"]
    policy = Discounted(offers=OFFERS, discount=0.9).solve(Belief(2, 1))
    exact = characteristics(policy, 0.85, rows=300)
    assert first["reward"] == {"lower": exact.reward.lower, "upper": exact.reward.upper}
    assert exact.offer_acceptance is not None
    assert [one["lower"] for one in first["offer_acceptance"]] == [one.lower for one in exact.offer_acceptance]
    assert averaged["p"] is None
    code, out, _ = run("characteristics", *TWO, "--horizon", "20", "--greedy", "--json")
    assert code == 0
    last = json.loads(out)["characteristics"][-1]
    exact = characteristics(GreedyOffers(), None, FiniteHorizon(offers=OFFERS, horizon=20), Belief(2, 1))
    assert last["accepted"]["lower"] == exact.accepted.lower
    code, out, _ = run("characteristics", *TWO, "--horizon", "20", "--currency", "$")
    assert code == 0
    assert "$5,000" in out
    assert "wrongly rejected (p > 0.7)" in out


def test_doubt_needs_one_break_even(run: Run) -> None:
    code, out, err = run("simulate", *TWO, "--doubt", "0.2")
    assert (code, out) == (2, "")
    assert "--doubt" in err


@pytest.mark.parametrize("command", ["simulate", "characteristics"])
@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--cost", "0.8", *TWO), "--offer"),
        (("--gain", "1", "--loss", "4", *TWO), "--offer"),
        (("--choose", "--cost", "0.8"), "--choose"),
        (("--offer", "500"), "--offer"),
        ((), "--cost"),
    ],
)
def test_bad_input(run: Run, command: str, words: tuple[str, ...], option: str) -> None:
    code, out, err = run(command, *words, "--discount", "0.9")
    assert (code, out) == (2, "")
    assert option in err
    assert len(err.strip().splitlines()) == 1
