"""lenience offers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lenience import Belief, Delayed, Discounted, FiniteHorizon, MixtureBelief, Offer, Offers

Run = Any
TWO = ("--offer", "0.1@0.8", "--offer", "1@0.8")


def test_a_choice_of_offers(run: Run) -> None:
    code, out, _ = run("offers", *TWO, "--choose", "--discount", "0.99", "--json")
    assert code == 0
    answer = json.loads(out)
    policy = Discounted(offers=Offers.menu([0.1, 1], [0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
    value = policy.value(Belief(2, 1))
    assert answer["value"] == {"lower": value.lower, "upper": value.upper}
    (decision,) = answer["decisions"]
    assert decision["accepted"] is True
    assert decision["offer"] == {"amount": 0.1, "cost": 0.8}
    assert answer["certificate"]["proved"] is True


def test_offers_with_shares_and_doubt(run: Run) -> None:
    given = ("--offer", "1@0.7@3", "--offer", "4@0.9@1", "--prior", "4,2.8", "--doubt", "0.2")
    code, out, _ = run("offers", *given, "--arrivals", "20", "--discount-rate", "0.2", "--json")
    assert code == 0
    answer = json.loads(out)
    prior = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
    offers = Offers([1, 4], [0.7, 0.9], [0.75, 0.25])
    policy = Discounted(offers=offers, arrivals=20, discount_rate=0.2).solve(prior)
    assert answer["value"]["lower"] == pytest.approx(policy.value(prior).lower, rel=1e-12)
    assert [one["accepted"] for one in answer["decisions"]] == [
        policy.accepts(prior, Offer(1, 0.7)),
        policy.accepts(prior, Offer(4, 0.9)),
    ]


def test_late_outcomes_give_a_limit_for_each_offer(run: Run) -> None:
    rates = ("--arrivals", "20", "--discount-rate", "0.5", "--label-delay", "0.5")
    code, out, _ = run("offers", *TWO, *rates, "--tolerance", "1e-5", "--json")
    assert code == 0
    answer = json.loads(out)
    problem = Delayed(offers=Offers([0.1, 1], [0.8, 0.8]), arrivals=20, discount_rate=0.5, label_delay=0.5)
    policy = problem.solve(Belief(2, 1), tolerance=1e-5)
    limits = [policy.limit(Belief(2, 1), Offer(amount, 0.8)) for amount in (0.1, 1)]
    assert [row["limit"] for row in answer["limits"]] == limits
    assert limits[0] > limits[1]
    code, out, _ = run("offers", *TWO, *rates, "--tolerance", "1e-5", "--currency", "$")
    assert code == 0
    assert "$0.10" in out


def test_many_arrivals_with_late_outcomes_are_estimated(run: Run) -> None:
    rates = ("--arrivals", "20000", "--discount-rate", "0.1", "--label-delay", "1")
    code, out, _ = run("offers", *TWO, *rates)
    assert code == 0
    assert "estimated" in out
    assert "too large to prove" in " ".join(out.split())


def test_a_known_number_of_arrivals(run: Run) -> None:
    code, out, _ = run("offers", *TWO, "--horizon", "40", "--json")
    assert code == 0
    answer = json.loads(out)
    policy = FiniteHorizon(offers=Offers([0.1, 1], [0.8, 0.8]), horizon=40).solve(Belief(2, 1))
    assert answer["value"]["lower"] == policy.value(Belief(2, 1)).lower
    assert [one["accepted"] for one in answer["decisions"]] == [True, False]
    code, out, _ = run("offers", *TWO, "--horizon", "40", "--currency", "$")
    assert code == 0
    assert "39 arrivals after this one" in " ".join(out.split())
    assert "end after 40 arrivals" in " ".join(out.split())


def test_amounts_are_printed_in_the_currency(run: Run) -> None:
    code, out, _ = run(
        "offers", "--offer", "500@0.8", "--offer", "5000@0.8", "--choose", "--discount", "0.99", "--currency", "$"
    )
    assert code == 0
    assert "$500" in out
    assert "$5,000" in out


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--offer", "500", "--discount", "0.9"), "--offer"),
        (("--offer", "500@much", "--discount", "0.9"), "--offer"),
        (("--offer", "1@0.8@1", "--offer", "1@0.8", "--discount", "0.9"), "--offer"),
        (("--offer", "1@0.8@1", "--choose", "--discount", "0.9"), "--offer"),
        (("--offer", "1@0.8"), "--discount"),
        (("--offer", "1@0.8", "--discount", "0.9", "--label-delay", "1"), "--label-delay"),
        (("--offer", "1@0.8", "--discount", "0.9", "--doubt", "2"), "--doubt"),
        (("--offer", "1@0.8", "--horizon", "9", "--label-delay", "1"), "--horizon"),
        (("--offer", "1@1.8", "--discount", "0.9"), "cost"),
    ],
)
def test_bad_input(run: Run, words: tuple[str, ...], option: str) -> None:
    code, out, err = run("offers", *words)
    assert (code, out) == (2, "")
    assert option in err
    assert len(err.strip().splitlines()) == 1
