"""Bayesian logistic regression against slow and obvious computations, and at its edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit

from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.gaussian import belief_size, mode_after, moments, rough_moments
from lenience.models.logistic_design import LogisticDesign
from lenience.models.rank_columns import find_rank_columns
from rejections import rejected

Rows = NDArray[np.float64]


def world(rows: int, features: int, seed: int = 0) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, (rng.random(rows) < expit(X @ rng.normal(size=features))).astype(float)


@given(st.floats(-8, 8), st.floats(0.01, 100))
def test_moments_against_adaptive_integration(m: float, v: float) -> None:
    def density(z: float) -> float:
        return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    mean = quad(lambda z: float(expit(m + math.sqrt(v) * z)) * density(z), -12, 12, limit=200)[0]
    second = quad(lambda z: (float(expit(m + math.sqrt(v) * z)) - mean) ** 2 * density(z), -12, 12, limit=200)[0]
    found, variance = moments(m, v)
    assert found == pytest.approx(mean, abs=2e-3)
    assert variance == pytest.approx(second, rel=0.05, abs=1e-6)
    assert belief_size(found, variance) > 0  # the delta method's would be negative for large v


@given(st.floats(-20, 20), st.floats(0, 50), st.sampled_from([0.0, 1.0]), st.floats(0.1, 5))
def test_mode_solves_its_equation(m: float, v: float, y: float, weight: float) -> None:
    a = mode_after(m, v, y, weight)
    assert a == pytest.approx(m + v * weight * (y - float(expit(a))), abs=1e-8)


def test_one_label_gives_the_exact_moments() -> None:
    X = np.array([[0.7, -1.2]])
    model = BayesianLogistic(1.65, 6.6, standardise=False).prepare(X).learn(X, [1])
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(400_000, 3)) * np.sqrt([1.65, 3.3, 3.3])
    weights = expit(draws @ np.array([1.0, 0.7, -1.2]))
    mean = np.average(draws, axis=0, weights=weights)
    assert model.mean_ == pytest.approx(mean, abs=0.012)
    assert model.covariance_ == pytest.approx(np.cov(draws.T, aweights=weights), abs=0.03)


def test_hypotheses_are_weighed_by_how_well_they_foresaw_the_labels() -> None:
    X, y = np.array([[1.5, 0.2], [-1.0, 0.8], [1.2, -1.1]]), np.array([1.0, 0.0, 1.0])
    model = BayesianLogistic((0.5, 2.0), (1.0, 20.0), (0.3, -0.4), standardise=False).prepare(X).learn(X, y)
    rng = np.random.default_rng(0)
    evidence, means, rates = [], [], []
    for around, spread, centre in ((0.5, 1.0, 0.3), (2.0, 20.0, -0.4)):
        draws = rng.normal(size=(400_000, 3)) * np.sqrt([around, spread / 2, spread / 2]) + np.array([centre, 0, 0])
        p = expit(draws[:, :1] + draws[:, 1:] @ X.T)
        likelihood = np.prod(np.where(y == 1, p, 1 - p), axis=1)
        evidence.append(likelihood.mean())
        means.append(np.average(draws, axis=0, weights=likelihood))
        rates.append(np.average(p[:, 0], weights=likelihood))
    weights = np.array(evidence) / sum(evidence)
    assert model.weights_ == pytest.approx(weights, abs=0.01)
    assert model.mean_ == pytest.approx(weights @ np.array(means), abs=0.05)
    assert model.beliefs(X[:1])[1][0] == pytest.approx(weights @ np.array(rates), abs=0.01)


def test_the_moments_of_the_coefficients_are_those_of_the_mixture() -> None:
    X, y = world(40, 3)
    model = BayesianLogistic((0.5, 2.0), (1.0, 20.0), (0.3, -0.4)).fit(X, y)
    mean = sum(w * m for w, m in zip(model.weights_, model.means_, strict=True))
    second = sum(
        w * (C + np.outer(m, m)) for w, m, C in zip(model.weights_, model.means_, model.covariances_, strict=True)
    )
    assert model.mean_ == pytest.approx(mean)
    assert model.covariance_ == pytest.approx(second - np.outer(mean, mean))


def test_hypotheses_start_with_the_weights_given() -> None:
    X = np.eye(3)
    assert BayesianLogistic().prepare(X).weights_.tolist() == [0.15, 0.6, 0.25]
    assert BayesianLogistic(feature_variance=(1.0, 2.0)).prepare(X).weights_.tolist() == [0.5, 0.5]
    given = BayesianLogistic(feature_variance=(1.0, 2.0), hypothesis_weights=(1.0, 3.0))
    assert given.prepare(X).weights_.tolist() == [0.25, 0.75]


def test_the_belief_is_the_mixtures() -> None:
    X, y = world(40, 3)
    model = BayesianLogistic().fit(X, y)
    m, v = model.log_odds(X[:1])
    rng = np.random.default_rng(1)
    which = rng.choice(5, size=400_000, p=model.weights_)
    p = expit(m[0, which] + np.sqrt(v[0, which]) * rng.normal(size=400_000))
    n, mean = model.beliefs(X[:1])
    assert mean[0] == pytest.approx(p.mean(), abs=0.002)
    assert n[0] == pytest.approx(p.mean() * (1 - p.mean()) / p.var() - 1, rel=0.02)


@given(st.floats(-6, 6), st.floats(0.01, 60))
def test_the_rough_moments_are_near(m: float, v: float) -> None:
    mean, variance = moments(m, v)
    near, about = rough_moments(m, v)
    assert near == pytest.approx(mean, abs=0.02)
    assert 0.6 * variance < about < 1.5 * variance + 1e-6


def test_how_much_the_features_matter_is_learnt() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    nothing = (rng.random(400) < 0.7).astype(float)
    everything = (X @ np.array([6.0, -6.0, 3.0, 0.0]) > 0).astype(float)
    something = (rng.random(400) < expit(X @ np.array([1.2, -1.2, 0.5, 0.0]))).astype(float)
    for which, labels in enumerate((nothing, something, everything)):
        assert BayesianLogistic(bent_variance=()).fit(X, labels).weights_[which] > 0.9
        straight, bent = np.split(BayesianLogistic().fit(X, labels).weights_, [3])
        assert straight.sum() > bent.sum()


def test_bends_are_learnt_where_there_are_any() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    middling = (rng.random(600) < expit(2.0 - 2.0 * X[:, 0] ** 2)).astype(float)
    model = BayesianLogistic().fit(X, middling)
    assert model.weights_[3:].sum() > 0.99
    low, middle, high = model.predict_proba([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])[:, 1]
    assert middle > 0.8 > 0.4 > max(low, high)


def test_the_prior_of_the_population_is_the_same_under_every_hypothesis() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4000, 30))
    model = BayesianLogistic().prepare(X)
    z = model.design(X)
    for k in range(5):
        drawn = rng.normal(size=(300, z.shape[1])) * np.sqrt(np.diag(model.covariances_[k]))
        rates = expit(drawn @ z.T).mean(axis=1)
        assert np.var(np.log(rates / (1 - rates))) == pytest.approx(0.46, rel=0.25)


def test_many_labels_come_near_the_refitted_posterior() -> None:
    X, y = world(2000, 4, seed=2)
    model = BayesianLogistic(1.65, 6.6).fit(X, y)
    z = model.design(X)
    prior = np.array([1.65, *[6.6 / 4] * 4])

    def loss(beta: Rows) -> float:
        return float(0.5 * (beta**2 / prior).sum() + np.log1p(np.exp(-(2 * y - 1) * (z @ beta))).sum())

    best = minimize(loss, np.zeros(5), tol=1e-10).x
    error = np.sqrt(np.diag(model.covariance_))
    assert np.all(np.abs(model.mean_ - best) < 2.0 * error)
    assert np.corrcoef(z @ model.mean_, z @ best)[0, 1] > 0.999


def test_rows_one_by_one_come_near_what_they_teach_together() -> None:
    X, y = world(60, 5)
    together = BayesianLogistic().prepare(X).learn(X, y)
    single = BayesianLogistic().prepare(X)
    for i in range(60):
        single.learn(X[i : i + 1], y[i : i + 1])
    n, mean = together.beliefs(X)
    assert np.all(np.abs(single.beliefs(X)[1] - mean) < np.sqrt(mean * (1 - mean) / (n + 1)))


def test_the_covariance_stays_symmetric_and_positive_after_many_labels() -> None:
    X, y = world(300, 6)
    model = BayesianLogistic().prepare(X)
    for _ in range(100):
        model.learn(X, y)
    assert model.labels_ == 30_000
    assert model.covariance_ == pytest.approx(model.covariance_.T, abs=1e-12)
    assert np.linalg.eigvalsh(model.covariance_).min() > 0
    n, mean = model.beliefs(X)
    assert np.all((n >= 0.05) & (n <= 3e4) & (mean > 0) & (mean < 1))


def test_without_features_it_is_a_count() -> None:
    # One cell: log-odds with variance π²/3 is p about uniform, and n grows by about one a label.
    model = BayesianLogistic.for_cells().prepare([[1.0]])
    n, mean = model.beliefs([[1.0]])
    assert mean[0] == pytest.approx(0.5)
    assert n[0] == pytest.approx(2.0, abs=0.25)
    model.learn(np.ones((40, 1)), np.tile([1, 1, 0, 1], 10))
    n, mean = model.beliefs([[1.0]])
    assert mean[0] == pytest.approx(31 / 42, abs=0.015)
    assert n[0] == pytest.approx(42, rel=0.15)


def test_one_hot_cells_do_not_learn_from_each_other() -> None:
    model = BayesianLogistic.for_cells().prepare(np.eye(3))
    before = model.beliefs(np.eye(3))
    model.learn([[1, 0, 0]] * 5, [1] * 5)
    after = model.beliefs(np.eye(3))
    assert after[1][0] > before[1][0]
    assert after[1][1:] == pytest.approx(before[1][1:])
    assert model.likeness(np.eye(3), np.eye(3)) == pytest.approx(np.eye(3))


def test_edges() -> None:
    X = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])  # the second feature never varies
    model = BayesianLogistic(bent_variance=()).prepare(X)
    n, mean = model.beliefs(X)
    assert np.all(np.isfinite(n))
    assert np.all((mean > 0) & (mean < 1))
    model.learn(X, [1, 1, 1])  # one class only
    n, mean = model.beliefs([[2.0, 5.0], [2.0, 6.0], [np.nan, np.nan], [1e12, 5.0]])
    assert np.all(np.isfinite(n) & (n > 0))
    assert np.all((mean > 0.5) & (mean < 1))
    assert mean[2] == pytest.approx(mean[0], abs=1e-12)  # a missing value is the mean of its feature
    assert mean[1] != mean[0]  # a value never seen counts
    nothing = BayesianLogistic().prepare([[np.nan], [np.nan]])
    assert np.isfinite(nothing.beliefs([[np.nan]])[0][0])


def test_certainty_is_bounded() -> None:
    assert belief_size(0.5, 0.0) == 3e4
    assert belief_size(0.0, 0.0) == 3e4
    assert belief_size(0.5, 0.25) == 0.05


def test_likeness_is_the_share_of_variance_that_would_go() -> None:
    X, y = world(50, 4)
    model = BayesianLogistic().fit(X, y)
    like = model.likeness(X[:5], X[:5])
    assert np.diag(like) == pytest.approx(1.0)
    assert like == pytest.approx(like.T)
    assert np.all((like >= 0) & (like <= 1))
    model = BayesianLogistic(1.65, 6.6).fit(X, y)
    like = model.likeness(X[:5], X[:5])
    # Knowing everything at row 0 (a label of enormous weight) takes ρ² of the variance at row 1.
    z = model.design(X[:2])
    u = model.covariance_ @ z[0]
    v0, v1 = z[0] @ u, z[1] @ model.covariance_ @ z[1]
    assert like[0, 1] == pytest.approx((z[1] @ u) ** 2 / (v0 * v1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"intercept_variance": 0}, ("intercept_variance", "invalid_value")),
        ({"feature_variance": -1}, ("feature_variance", "invalid_value")),
        ({"intercept_mean": math.nan}, ("intercept_mean", "invalid_value")),
        ({"limit": 0}, ("limit", "invalid_value")),
        ({"feature_variance": ()}, ("feature_variance", "length_mismatch")),
        ({"feature_variance": (1.0, 0.0)}, ("feature_variance", "invalid_value")),
        ({"intercept_mean": (0.0, 1.0)}, ("intercept_mean", "length_mismatch")),
        ({"hypothesis_weights": (1.0, 2.0)}, ("hypothesis_weights", "length_mismatch")),
        ({"hypothesis_weights": (1.0, 0.0, 2.0), "bent_variance": ()}, ("hypothesis_weights", "invalid_value")),
        ({"bent_variance": (1.0, -1.0)}, ("bent_variance", "invalid_value")),
    ],
)
def test_bad_options(options: dict[str, Any], message: tuple[str, str]) -> None:
    with rejected(*message):
        BayesianLogistic(**options).prepare([[1.0]])


@pytest.mark.parametrize("outcomes", [[2, 0], ["a", "b"], [0.5, 1], [1]])
def test_bad_outcomes(outcomes: list[Any]) -> None:
    with rejected("outcomes", "invalid_value" if len(outcomes) == 2 else "length_mismatch"):
        BayesianLogistic().prepare([[1.0], [2.0]]).learn([[1.0], [2.0]], outcomes)


@pytest.mark.parametrize("intercept", [True, False])
def test_standardised_columns_are_those_of_the_design(intercept: bool) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2)) ** 2
    ranks = find_rank_columns(X, 2)
    bent = ranks.of(X)
    design = LogisticDesign(
        X.mean(axis=0), X.std(axis=0), 3.0, intercept, ranks, bent.mean(axis=0), bent.std(axis=0)
    )  # fmt: skip
    first = int(intercept)
    expected = np.clip(
        np.column_stack(((X - X.mean(axis=0)) / X.std(axis=0), (bent - bent.mean(axis=0)) / bent.std(axis=0))), -3, 3
    )
    assert design.standardised(X) == pytest.approx(expected)
    assert design.rows(X)[:, first:] == pytest.approx(expected)
    assert design.width == first + 2 + ranks.width
    assert np.all(design.rows(X)[:, :first] == 1.0)


def test_the_size_of_a_belief_ends_with_the_table() -> None:
    for size in (0.4, 12.0, 3e4 - 0.5, 3e4 + 0.5, 1e12):
        found = belief_size(0.3, 0.21 / (size + 1.0))
        assert found == pytest.approx(min(size, 3e4), rel=1e-9)
        assert found <= 3e4
