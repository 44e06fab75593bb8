"""Replays where amounts and break-evens differ, against one cost and against the policies' own decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Discounted, FeaturePolicy, FiniteHorizon, Offer, Offers, replay
from lenience.core.errors import InputError
from lenience.core.offer_rows import OfferRows
from lenience.files.economics import GainsAndLosses
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.cells import Cells
from lenience.policies.features.baselines import AlwaysRule, GreedyRule
from lenience.reports.replay_report import (
    describe_best,
    describe_columns,
    describe_full_information,
    describe_replay,
    write_replay_report,
)
from lenience.simulation.full_information import full_information_offers
from lenience.simulation.replay import ONE_BREAK_EVEN, OURS, default_policies, late
from lenience.simulation.replay_draws import draw
from lenience.simulation.replay_runs import _prepared, _run_any

Rows = NDArray[np.float64]


def world(rows: int = 300, seed: int = 0) -> tuple[Rows, Rows, OfferRows]:
    """Draw features, outcomes and an offer for each row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = (rng.random(rows) < 1 / (1 + np.exp(-0.8 - 1.5 * X[:, 0]))).astype(float)
    columns = rng.choice([200.0, 1000.0, 4000.0], rows), rng.choice([0.6, 0.7, 0.8], rows)
    return X, y, OfferRows.of(columns, rows, POPULATION)


POPULATION = Offers([200, 1000, 4000] * 3, [0.6] * 3 + [0.7] * 3 + [0.8] * 3, currency="$")
GOAL = Discounted(offers=POPULATION, discount=0.95)
NAMES = list(default_policies(GOAL))


@pytest.mark.parametrize("goal", [GOAL, FiniteHorizon(offers=POPULATION, horizon=60)], ids=["discounted", "horizon"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != ONE_BREAK_EVEN])
def test_the_compiled_loop_decides_as_the_policy_itself(name: str, goal: Discounted | FiniteHorizon) -> None:
    X, y, stakes = world()
    policy = default_policies(goal)[name]
    run = _prepared(policy, X, y, goal, 60, stakes)
    for seed, warm in ((0, 0), (1, 15)):
        chance = draw(seed, len(y), 60, warm)
        quick, slow = np.zeros(60, dtype=np.bool_), np.zeros(60, dtype=np.bool_)
        run(chance, quick)
        _run_any(policy, X, y, goal, chance, slow, stakes)
        assert np.array_equal(quick, slow)
    assert quick.any()


def test_one_offer_for_all_earns_its_amount_times_what_one_cost_earns() -> None:
    X, y, _ = world()
    plain, offered = Discounted(cost=0.7, discount=0.95), Discounted(offers=Offers([500], [0.7]), discount=0.95)
    first = replay(X, y, plain, seeds=4, arrivals=80, warm=5)
    second = replay(X, y, offered, seeds=4, arrivals=80, warm=5, offers=([500.0] * len(y), 0.7))
    third = replay(X, y, offered, seeds=4, arrivals=80, warm=5)  # Every arrival brings the same offer.
    for result in first.policies:
        for other in (second, third):
            np.testing.assert_allclose(other[result.policy].discounted, 500 * result.discounted, rtol=1e-12)
            np.testing.assert_allclose(other[result.policy].total, 500 * result.total, rtol=1e-12)
            assert other[result.policy].accepted == result.accepted
    assert second.known == pytest.approx(500 * first.known)
    np.testing.assert_allclose(second.full_information.discounted, 500 * first.full_information.discounted)
    np.testing.assert_allclose(second[ONE_BREAK_EVEN].discounted, second[OURS].discounted)


def test_rewards_are_those_of_the_rows() -> None:
    X, y, stakes = world()
    result = replay(X, y, GOAL, {"always": AlwaysRule(None, GOAL)}, seeds=2, arrivals=30, offers=stakes)
    for seed in range(2):
        order = draw(seed, len(y), 30, 0).order
        earned = stakes.amount[order] * (y[order] - stakes.cost[order])
        assert result["always"].total[seed] == pytest.approx(earned.sum())
        assert result["always"].discounted[seed] == pytest.approx(earned @ 0.95 ** np.arange(30))
    best = BayesianLogistic().fit(*_shuffled(X, y)).beliefs(X)[1] > stakes.cost
    known = [
        (best * stakes.amount * (y - stakes.cost))[draw(seed, len(y), 30, 0).order] @ 0.95 ** np.arange(30)
        for seed in range(2)
    ]
    assert result.known == pytest.approx(np.mean(known))


def _shuffled(X: Rows, y: Rows) -> tuple[Rows, Rows]:
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def test_a_model_that_sees_every_outcome_uses_the_break_even_of_each_row() -> None:
    X, y, stakes = world()
    chances = [draw(seed, len(y), 40, 10) for seed in range(2)]
    accepted = full_information_offers(X, y, stakes.cost, POPULATION, chances)
    for run, chance in enumerate(chances):
        model = BayesianLogistic.for_cost(POPULATION.mean_cost).prepare(X).learn(X[chance.warm], y[chance.warm])
        for t, i in enumerate(chance.order):
            assert accepted[run, t] == (model.beliefs(X[i : i + 1])[1][0] > stakes.cost[i])
            model.learn(X[i : i + 1], y[i : i + 1])
    assert 0 < accepted.mean() < 1


def test_amounts_and_prices_pay_where_one_break_even_ignores_them() -> None:
    X, y, _ = world(500)
    rng = np.random.default_rng(1)
    columns = rng.choice([200.0, 4000.0], 500), rng.choice([0.4, 0.9], 500)
    goal = Discounted(offers=Offers([200, 4000] * 2, [0.4, 0.4, 0.9, 0.9]), discount=0.97)
    names = (OURS, ONE_BREAK_EVEN, "always")
    policies = {name: policy for name, policy in default_policies(goal).items() if name in names}
    result = replay(X, y, goal, policies, seeds=60, arrivals=150, offers=columns)
    lead, half = result[ONE_BREAK_EVEN].behind(result[OURS])
    assert lead > half > 0
    assert result[OURS].mean > result["always"].mean


def test_other_models_late_labels_and_own_objectives_work() -> None:
    X, y, stakes = world(80)
    cells = np.round(X[:, :1])
    goal = late(GOAL, 5)
    assert goal.offers == POPULATION
    policies = {
        "cells": FeaturePolicy(Cells(), goal),
        "explores": FeaturePolicy(None, goal, explore=0.2),
        "alike": GreedyRule(None, Discounted(cost=0.7, discount=0.95), burn_in=3),
    }
    result = replay(cells, y, goal, policies, seeds=2, arrivals=25, offers=stakes)
    assert 0 < result["cells"].accepted <= 1
    assert 0 < result["explores"].accepted <= 1
    assert 0 < result["alike"].accepted <= 1


def test_the_report_is_in_money(tmp_path: Path) -> None:
    X, y, stakes = world()
    names = (OURS, ONE_BREAK_EVEN, "always")
    policies = {name: policy for name, policy in default_policies(GOAL).items() if name in names}
    result = replay(X, y, GOAL, policies, seeds=3, arrivals=40, offers=stakes)
    mean = result[OURS].mean
    assert f"{'−' if mean < 0 else ''}${abs(mean):,.0f}" in str(result)
    assert "would earn $" in describe_full_information(result)
    assert "9 offers of $200 to $4,000 at stake" in describe_replay(result)
    assert "too few to tell" in describe_best(result)
    page = write_replay_report(result, tmp_path / "replay.html", "Loans").read_text(encoding="utf-8")
    assert "$" in page
    assert "own break-even" in describe_columns(result)
    assert result.summary()[0]["discounted"] == mean
    plain = replay(
        X, y, Discounted(0.7, 0.95), {"greedy": GreedyRule(None, Discounted(0.7, 0.95))}, seeds=1, arrivals=5
    )
    assert "gain + loss" in describe_columns(plain)


def test_gains_and_losses_of_a_file_are_offers() -> None:
    X, y, stakes = world()
    rows = GainsAndLosses(stakes.amount * (1 - stakes.cost), stakes.amount * stakes.cost)
    policies = {"greedy": GreedyRule(None, GOAL, burn_in=5)}
    one = replay(X, y, GOAL, policies, seeds=2, arrivals=30, offers=rows)
    two = replay(X, y, GOAL, policies, seeds=2, arrivals=30, offers=stakes)
    np.testing.assert_allclose(one["greedy"].discounted, two["greedy"].discounted)


def test_wrong_offers_are_rejected() -> None:
    X, y, stakes = world(30)
    for objective, offers, code in (
        (GOAL, None, "missing"),
        (GOAL, ([1.0, 2.0], 0.5), "length_mismatch"),
        (GOAL, Offers.menu([1, 2], [0.5, 0.6]), "missing"),  # which of them was made?
        (Discounted(0.7, 0.95), stakes, "unsupported_offers"),
        (Discounted(0.7, 0.95), Offer(1, 0.5), "unsupported_offers"),
    ):
        with pytest.raises(InputError) as caught:
            replay(X, y, objective, seeds=1, arrivals=3, offers=offers)
        assert caught.value.code == code
        assert caught.value.field in ("offers", "amount", "made")
