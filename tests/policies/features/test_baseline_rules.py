"""The baselines with features, by one interface."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from feature_worlds import GOAL, world
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.bootstrap import Bootstrap
from lenience.policies.features.baselines import (
    AlwaysRule,
    ConsequentialRule,
    EpsilonRule,
    GreedyRule,
    LinearUpperBoundRule,
    OptimismRule,
    ThompsonRule,
    UpperBoundRule,
)
from rejections import rejected

BASELINES = [
    AlwaysRule, ConsequentialRule, EpsilonRule, GreedyRule, LinearUpperBoundRule, OptimismRule, ThompsonRule,
    UpperBoundRule,
]  # fmt: skip


@pytest.mark.parametrize("kind", BASELINES, ids=lambda kind: kind.__name__)
def test_baselines_have_the_same_interface(kind: Any) -> None:
    X, y = world()
    policy = kind(objective=GOAL, random_state=0).fit(X, np.where(np.arange(300) < 40, y, np.nan))
    chances = np.random.default_rng(1).random(40)
    accepted = 0
    for i, chance in zip(range(40, 80), chances, strict=True):
        propensity = float(policy.propensity(X[i : i + 1])[0])
        assert 0.0 <= propensity <= 1.0
        taken = policy.decide(X[i : i + 1], None, np.array([chance]))
        assert taken.tolist() == [chance < propensity]
        assert policy.log_[-1].propensity == propensity
        assert policy.pending_ == taken[0]
        policy.observe(X[i : i + 1], taken, y[i : i + 1])
        assert policy.pending_ == 0
        accepted += int(taken[0])
    assert len(policy.log_) == 40
    assert [decision.accepted for decision in policy.log_].count(True) == accepted > 0
    assert clone(policy).get_params() == policy.get_params()


@pytest.mark.parametrize("kind", BASELINES, ids=lambda kind: kind.__name__)
def test_baselines_learn_from_outcomes(kind: Any) -> None:
    X, _ = world()
    same, ones = np.repeat(X[:1], 300, axis=0), np.ones(300)
    bad = kind(objective=GOAL, random_state=0).fit(X)
    bad.observe(same, ones, np.zeros(300))
    least = {AlwaysRule: 1.0, EpsilonRule: 0.1}.get(kind, 0.0)
    assert bad.propensity(X[:1])[0] == pytest.approx(least, abs=0.05)
    good = kind(objective=GOAL, random_state=0).fit(X)
    good.observe(same, ones, ones)
    assert good.propensity(X[:1])[0] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", [GreedyRule, EpsilonRule, ThompsonRule, UpperBoundRule, OptimismRule, AlwaysRule])
def test_rules_work_on_any_model(kind: Any) -> None:
    X, y = world()
    policy = kind(Bootstrap(LogisticRegression(), copies=5, random_state=0), GOAL, random_state=0).fit(X, y)
    assert policy.propensity(X[y == 1]).mean() >= policy.propensity(X[y == 0]).mean()


def test_rules_by_hand() -> None:
    X, _ = world()
    cost = 0.7
    start = BayesianLogistic(feature_variance=(6.0, 40.0), intercept_mean=0.0)
    ms, vs = clone(start).prepare(X).log_odds(X[:1])
    edge = math.log(cost / (1 - cost))
    thompson = ThompsonRule(start, GOAL).fit(X).propensity(X[:1])[0]
    rng = np.random.default_rng(0)
    which = rng.choice(2, size=200_000)
    draws = ms[0, which] + np.sqrt(vs[0, which]) * rng.normal(size=200_000)
    m, v = [ms[0].mean()], [vs[0].mean() + ms[0].var()]
    assert thompson == pytest.approx(np.mean(draws > edge), abs=0.005)
    assert GreedyRule(start, GOAL, burn_in=3).fit(X).decide(X[:5]).tolist() == [True] * 3 + [False] * 2
    wide = UpperBoundRule(start, GOAL, width=(edge - m[0]) / math.sqrt(v[0]) + 1e-6).fit(X).propensity(X[:1])[0]
    narrow = UpperBoundRule(start, GOAL, width=(edge - m[0]) / math.sqrt(v[0]) - 1e-6).fit(X).propensity(X[:1])[0]
    assert (wide, narrow) == (1.0, 0.0)
    assert OptimismRule(start, GOAL, weight=0.0).fit(X).propensity(X[:1])[0] == 0.0
    assert EpsilonRule(start, GOAL, epsilon=0.25).fit(X).propensity(X[:1])[0] == 0.25
    assert LinearUpperBoundRule(start, GOAL).fit(X).propensity(X[:1])[0] == 1.0
    consequential = ConsequentialRule(start, GOAL).fit(X)
    assert consequential.propensity(X[:1])[0] == 1.0  # θ = 0 accepts
    consequential.observe(np.repeat(X[:1], 50, axis=0), np.ones(50), np.zeros(50))
    assert consequential.propensity(X[:1])[0] < 0.5


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (GreedyRule, "burn_in"),
        (EpsilonRule, "epsilon"),
        (ThompsonRule, "scale"),
        (UpperBoundRule, "width"),
        (OptimismRule, "weight"),
    ],
)
def test_parameters_are_at_least_0(kind: Any, field: str) -> None:
    X, _ = world()
    start = BayesianLogistic(feature_variance=(6.0, 40.0), intercept_mean=0.0)  # more likely than not below the cost
    none = kind(start, GOAL, **{field: 0}).fit(X)
    some = kind(start, GOAL, **{field: 0.5}).fit(X)
    assert none.propensity(X[:1])[0] == 0.0
    assert none.propensity(X[:1])[0] <= some.propensity(X[:1])[0] <= 1.0
    with rejected(field):
        kind(start, GOAL, **{field: -0.1}).fit(X).propensity(X[:1])


def test_epsilon_is_at_most_1() -> None:
    X, _ = world()
    assert EpsilonRule(None, GOAL, epsilon=1).fit(X).propensity(X[:1])[0] == 1.0
    with rejected("epsilon"):
        EpsilonRule(None, GOAL, epsilon=1.1).fit(X).propensity(X[:1])
