"""lenience solve --doubt: a prior that may be wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lenience import Belief, Delayed, Discounted, FiniteHorizon, MixtureBelief

Run = Any


@pytest.mark.parametrize(
    ("prior", "doubt", "cost", "value"),
    [
        ("5,1", "0.5", "0.8", 0.1238187),
        ("5,1", "0.5", "0.7", 1.2698106),
        ("5,1", "0.2", "0.8", 0.0),
        ("5,1", "0.2", "0.7", 0.1071330),
        ("4,2.7", "0.1", "0.8", 1.9350376),
        ("4,2.7", "0.1", "0.7", 5.9685808),
    ],
)
def test_known_values(run: Run, prior: str, doubt: str, cost: str, value: float) -> None:
    words = ("--prior", prior, "--doubt", doubt, "--cost", cost, "--discount", "0.99", "--rows", "2")
    code, out, _ = run("solve", *words, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["value"]["lower"] - 1e-7 <= value <= answer["value"]["upper"] + 1e-7
    assert answer["accept"] is (value > 0)
    assert answer["prior"]["weights"] == pytest.approx([1 - float(doubt), float(doubt)])
    if value > 0:  # accepting is worth the value
        assert answer["continuation"]["lower"] == pytest.approx(value, abs=1e-6)
    else:
        assert answer["continuation"]["upper"] <= 0


@pytest.mark.parametrize("horizon", [None, 30])
def test_thresholds_are_those_of_the_library(run: Run, horizon: int | None) -> None:
    future = ("--discount", "0.95") if horizon is None else ("--horizon", str(horizon))
    words = ("--prior", "4,2.8", "--doubt", "0.3", "--cost", "0.7", "--rows", "12")
    code, out, _ = run("solve", *words, *future, "--json")
    assert code == 0
    answer = json.loads(out)
    prior = MixtureBelief.doubt(Belief(4, 2.8), 0.3)
    objective = Discounted(0.7, 0.95) if horizon is None else FiniteHorizon(0.7, horizon)
    policy = objective.solve(prior)
    for row in answer["thresholds"][:12]:
        count = row["outcomes"]
        accepted = [policy.accepts(prior.after(count, successes)) for successes in range(count + 1)]
        assert accepted == sorted(accepted)  # more successes are never worse
        assert row["accept_from"] == (accepted.index(True) if any(accepted) else None)
        if horizon is None:
            assert policy.least_accepted(count) == row["accept_from"]


def test_less_doubt_is_nearer_to_the_prior(run: Run) -> None:
    words = ("solve", "--prior", "4,2.8", "--cost", "0.8", "--discount", "0.99", "--rows", "2", "--json")
    values = []
    for doubt in ("0.5", "0.01", "0.000001"):
        _, out, _ = run(*words, "--doubt", doubt)
        values.append(json.loads(out)["value"]["lower"])
    _, out, _ = run(*words)
    sure = json.loads(out)["value"]["lower"]
    assert abs(values[0] - sure) > abs(values[1] - sure) > abs(values[2] - sure)
    assert values[2] == pytest.approx(sure, abs=1e-4)


def test_text_is_in_money(run: Run) -> None:
    money = ("--gain", "200", "--loss", "800", "--currency", "$")
    code, out, _ = run("solve", "--prior", "4,2.8", "--doubt", "0.2", *money, "--discount", "0.99")
    assert code == 0
    text = " ".join(out.split())
    assert "Value at the prior: $2,320.59 ± $0.01" in text
    assert "The expected loss is $140" in text
    assert "prior n = 4, s = 2.8 (80%) or n = 2, s = 1 (20%)" in text


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("solve", "--cost", "0.8", "--discount", "0.9", "--doubt", "0.2", "--segment", "a=0.5"), "--segment"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--doubt", "0"), "doubt must be"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--doubt", "1.5"), "doubt must be"),
        (("threshold", "--cost", "0.8", "--discount", "0.9", "--doubt", "0.2"), "--doubt"),
        (("simulate", "--cost", "0.8", "--doubt", "0.2", "--world", "segments:shares=1+1"), "--doubt"),
        (("simulate", "--cost", "0.8", "--doubt", "1"), "doubt must be"),
        (("characteristics", "--cost", "0.8", "--discount", "0.9", "--doubt", "0.2", "--greedy"), "--greedy"),
        (("characteristics", "--offer", "5@0.8", "--discount", "0.9", "--doubt", "0.2"), "--offer"),
        (("simulate", "--offer", "5@0.8", "--doubt", "0.2"), "--offer"),
        (("gittins", "--discount", "0.9", "--doubt", "0.2"), "--doubt"),
    ],
)
def test_doubt_is_rejected_where_it_cannot_be_used(run: Run, words: tuple[str, ...], part: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert part in err


def test_simulated_optimum_earns_its_exact_value(run: Run) -> None:
    words = ("--prior", "5,1", "--doubt", "0.5", "--cost", "0.7", "--horizon", "200", "--discount", "0.98")
    code, out, _ = run("simulate", *words, "--policy", "greedy", "--replications", "4000", "--seed", "3", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["reference"] == "optimum"
    rows = {(row["policy"], row["metric"]): row for row in answer["summary"]}
    prior = MixtureBelief.doubt(Belief(5, 1), 0.5)
    exact = FiniteHorizon(0.7, 200, 0.98).solve(prior).value(prior).midpoint
    best = rows["optimum", "discounted"]
    assert abs(best["mean"] - exact) < 2 * (best["upper"] - best["lower"])  # four standard errors
    assert exact > 0.1
    # Without doubt, the prior is not worth a first acceptance.
    assert rows["optimum without doubt", "accepted"]["mean"] == 0
    assert rows["optimum", "accepted"]["mean"] > 1


def test_the_world_draws_from_the_prior_or_a_flat_one() -> None:
    from lenience.core.counter_rng import replication_keys
    from lenience.simulation import FromPrior

    keys = replication_keys(seed=5, first=0, count=20_000)
    sure = FromPrior(Belief(200, 20)).fixed_rates(keys)
    assert (sure > 0.3).mean() == 0
    doubted = FromPrior(Belief(200, 20), doubt=0.4).fixed_rates(keys)
    assert (doubted > 0.3).mean() == pytest.approx(0.4 * 0.7, abs=0.02)
    assert (doubted[doubted > 0.3]).mean() == pytest.approx(0.65, abs=0.02)
    assert (doubted == sure).mean() == pytest.approx(0.6, abs=0.02)


def test_characteristics_average_to_the_value(run: Run) -> None:
    words = ("--prior", "4,2.8", "--doubt", "0.2", "--cost", "0.7", "--discount", "0.9", "--rows", "200")
    code, out, _ = run("characteristics", *words, "--json")
    assert code == 0
    *at_rates, average = json.loads(out)["characteristics"]
    assert [row["p"] for row in at_rates] == pytest.approx([0.35, 0.7, 0.85])
    prior = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
    value = Discounted(0.7, 0.9).solve(prior).value(prior).midpoint
    assert average["reward"]["lower"] - 1e-8 <= value <= average["reward"]["upper"] + 1e-8


LATE = ("delay", "--cost", "0.7", "--arrivals", "10", "--discount-rate", "0.5", "--label-delay", "0.5")


def test_exposure_limits_for_a_prior_that_may_be_wrong(run: Run) -> None:
    words = (*LATE, "--prior", "4,2.4", "--doubt", "0.3", "--cap", "2")
    code, out, _ = run(*words, "--json")
    assert code == 0
    answer = json.loads(out)
    prior = MixtureBelief.doubt(Belief(4, 2.4), 0.3)
    policy = Delayed(0.7, 10, 0.5, 0.5).solve(prior, tolerance=1e-4)
    assert answer["limit"] == policy.limit(prior) > 0
    assert answer["prior"]["weights"] == pytest.approx([0.7, 0.3])
    assert all(row["limit"] == policy.limit(prior.after(row["outcomes"], row["successes"])) for row in answer["limits"])
    by_policy = {row["policy"]: row["value"]["upper"] for row in answer["values"]}
    assert set(by_policy) == {"exposure limit", "blind to pending", "greedy", "cap 2", "wait for every label"}
    assert max(by_policy.values()) == by_policy["exposure limit"] > 0
    code, out, _ = run(*words, "--gain", "30", "--loss", "70", "--currency", "$")
    assert code == 2  # --cost and --gain
    code, out, _ = run("delay", "--gain", "30", "--loss", "70", "--currency", "$", *words[3:])
    assert code == 0
    assert "$" in out
    assert "no limit" in out


@pytest.mark.parametrize("option", [("--horizon", "20"), ("--applicants", "3"), ("--figure", "x.png")])
def test_what_late_labels_do_not_have_with_doubt(run: Run, option: tuple[str, str]) -> None:
    code, _, error = run(*LATE, "--doubt", "0.2", *option)
    assert code == 2
    assert option[0] in error
    assert "--doubt" in error


def test_regret_of_a_prior_that_may_be_wrong(run: Run) -> None:
    words = ("regret", "--cost", "0.5", "--prior", "10,3", "--horizon", "60")
    regrets = {}
    for doubt in ((), ("--doubt", "0.4")):
        code, out, _ = run(*words, *doubt, "--json")
        assert code == 0
        answer = json.loads(out)
        regrets[len(doubt)] = {row["policy"]: row["regret"] for row in answer["rows"]}
    assert ("weights" in answer["prior"]) is True
    assert regrets[2]["optimal"] > regrets[0]["optimal"]
    code, out, _ = run(*words, "--doubt", "0.4")
    assert code == 0
    assert "(40%)" in " ".join(out.split())
