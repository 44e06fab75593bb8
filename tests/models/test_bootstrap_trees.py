"""Boosted trees as a belief: cold starts that do not stop, and warm starts from a history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from lenience import Discounted, FeaturePolicy
from lenience.models.bootstrap import Bootstrap
from lenience.models.neighbours import Neighbours

Rows = NDArray[np.float64]


def world(rows: int, seed: int) -> tuple[Rows, Rows, Rows]:
    """Draw rows of which those in the middle mostly succeed, which no straight line finds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    p = np.where(np.abs(X[:, 0]) < 0.7, 0.95, 0.35)
    return X, (rng.random(rows) < p).astype(float), p


def boosted(kind: str) -> Any:
    if kind == "LightGBM":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMClassifier(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1)
    return HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=8, random_state=0)


def test_neighbours_give_the_belief_until_trees_split() -> None:
    X, y, _ = world(300, 0)
    model = Bootstrap(DecisionTreeClassifier(min_samples_leaf=20), copies=5, random_state=0).prepare(X)
    near = Neighbours().prepare(X)
    model.learn(X[:30], y[:30])
    near.learn(X[:30], y[:30])
    assert model.fitted_.all()
    assert not model.varies_.any()
    assert np.allclose(model.beliefs(X), near.beliefs(X))
    model.learn(X[30:], y[30:])
    assert model.varies_.all()
    assert not np.allclose(model.beliefs(X), near.learn(X[30:], y[30:]).beliefs(X))


def test_a_classifier_that_never_tells_rows_apart_leaves_it_to_neighbours() -> None:
    X, y, _ = world(200, 1)
    model = Bootstrap(DummyClassifier(strategy="prior"), copies=5, random_state=0).fit(X, y)
    assert np.allclose(model.beliefs(X[:20]), Neighbours().fit(X, y).beliefs(X[:20]))


@pytest.mark.parametrize("seed", range(3))
def test_a_cold_start_does_not_stop(seed: int) -> None:
    X, y, p = world(300, seed)
    trees = DecisionTreeClassifier(min_samples_leaf=15, max_leaf_nodes=6, random_state=0)
    model = Bootstrap(trees, copies=5, every=0.2, random_state=seed)
    policy = FeaturePolicy(model, Discounted(cost=0.8, discount=0.999), random_state=0).fit(X)
    accepted = np.zeros(300, dtype=bool)
    for i in range(300):
        accepted[i] = policy.decide(X[i : i + 1])[0]
        policy.observe(X[i : i + 1], accepted[i : i + 1], y[i : i + 1])
    late = slice(200, 300)
    good, bad = accepted[late][p[late] > 0.8].mean(), accepted[late][p[late] < 0.8].mean()
    assert good > 0.3
    assert good > bad + 0.2


@pytest.mark.parametrize("kind", ["LightGBM", "HistGradientBoosting"])
def test_a_warm_start_from_a_history(kind: str) -> None:
    X, y, p = world(500, 4)
    X[::17, 1] = np.nan  # Boosted trees accept missing values.
    known = y.copy()
    known[::5] = np.nan  # outcomes that are not known
    policy = FeaturePolicy(Bootstrap(boosted(kind), copies=5, random_state=0), Discounted(cost=0.7, discount=0.99))
    policy.fit(X[:400], known[:400])
    accepted = policy.decide(X[400:])
    assert accepted[p[400:] > 0.7].mean() > 0.85
    assert accepted[p[400:] < 0.7].mean() < 0.25
    policy.observe(X[400:], accepted, y[400:])
    assert policy.labels_ == 320 + accepted.sum()


def test_votes_are_remembered_until_the_copies_change() -> None:
    X, y, _ = world(200, 5)
    model: Any = Bootstrap(DecisionTreeClassifier(min_samples_leaf=20), copies=5, random_state=0).prepare(X)
    model.learn(X[:150], y[:150])
    first = model.beliefs(X)
    assert np.array_equal(model._votes(X), model._computed(X))
    assert np.array_equal(first, model.beliefs(X))
    model.learn(X[150:], y[150:])  # a third more: all copies are refitted
    assert np.array_equal(model._votes(X), model._computed(X))
    assert not np.array_equal(first, model.beliefs(X))
