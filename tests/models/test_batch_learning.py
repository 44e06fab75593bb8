"""Histories learnt at once: against integration on a grid, in any order, with weights, from any prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from lenience import Discounted, FeaturePolicy
from lenience.models import batch_learning
from lenience.models.batch_learning import _update_sites, grouped, learn_batch
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.bootstrap import Bootstrap
from lenience.models.cells import Cells
from lenience.models.hypotheses import learn_rows
from lenience.models.neighbours import Neighbours

Rows = NDArray[np.float64]


def learnt(X: Rows, y: Rows, mean: Rows, covariance: Rows, weights: Rows | None = None) -> tuple[Rows, Rows]:
    means, covariances = mean[None].copy(), covariance[None].copy()
    learn_batch(X, y, np.ones(len(y)) if weights is None else weights, np.ones(1), means, covariances)
    return means[0], covariances[0]


def on_a_grid(X: Rows, y: Rows, mean: Rows, covariance: Rows) -> tuple[Rows, Rows, float]:
    """Return the posterior's moments and the marginal likelihood, by adding up a fine grid in two dimensions."""
    side = np.linspace(-7, 7, 161)
    z = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    beta = mean + z @ np.linalg.cholesky(covariance).T
    log = -0.5 * (z**2).sum(axis=1) + log_expit((2 * y - 1)[:, None] * (X @ beta.T)).sum(axis=0)
    density = np.exp(log - log.max())
    total = density.sum()
    centre = density @ beta / total
    away = beta - centre
    evidence = np.log(total) + log.max() + 2 * np.log(side[1] - side[0]) - np.log(2 * np.pi)
    return centre, (away * density[:, None]).T @ away / total, float(evidence)


@pytest.mark.parametrize("count", [4, 60])
def test_against_integration_on_a_grid(count: int) -> None:
    rng = np.random.default_rng(count)
    X = np.column_stack((np.ones(count), rng.normal(size=count)))
    y = np.sort((rng.random(count) < expit(X @ [0.5, 1.5])).astype(float))
    priors = [(np.array([0.3, 0.0]), np.diag([0.5, 0.3])), (np.array([-0.4, 0.2]), np.array([[2.0, 0.7], [0.7, 8.0]]))]
    weights, evidence = np.array([0.3, 0.7]), []
    means, covariances = np.array([m for m, _ in priors]), np.array([c for _, c in priors])
    learn_batch(X, y, np.ones(count), weights, means, covariances)
    for k, prior in enumerate(priors):
        centre, spread, likelihood = on_a_grid(X, y, *prior)
        evidence.append(likelihood)
        error = np.sqrt(np.diag(spread))
        assert np.all(np.abs(means[k] - centre) < 0.03 * error)
        assert np.all(np.abs(covariances[k] - spread) < 0.08 * np.outer(error, error))
    posterior = np.array([0.3, 0.7]) * np.exp(np.array(evidence) - max(evidence))
    assert weights == pytest.approx(posterior / posterior.sum(), abs=0.005)


def test_a_confident_prior_far_from_the_labels() -> None:
    beta = np.linspace(-20, 20, 20_001)
    log = -0.5 * (beta - 12.0) ** 2 / 0.6 + 500 * log_expit(-beta)
    density = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    centre = density @ beta
    error = np.sqrt(density @ (beta - centre) ** 2)
    mean, covariance = learnt(np.ones((500, 1)), np.zeros(500), np.array([12.0]), np.array([[0.6]]))
    assert abs(mean[0] - centre) < 0.05 * error
    assert np.sqrt(covariance[0, 0]) == pytest.approx(error, rel=0.05)


def test_one_label_is_learnt_as_by_the_single_pass() -> None:
    X, y, weights = np.array([[1.0, 0.7, -1.2]]), np.ones(1), np.array([0.4])
    beliefs = []
    for learn in (learn_rows, learn_batch):
        share, means = np.array([0.5, 0.5]), np.array([[0.2, 0.0, 0.0], [0.2, 0.1, 0.0]])
        covariances = np.array([np.eye(3), 4.0 * np.eye(3)])
        learn(X, y, weights, share, means, covariances)
        beliefs.append(np.concatenate((share, means.ravel(), covariances.ravel())))
    assert beliefs[0] == pytest.approx(beliefs[1], abs=1e-9)


def test_a_weight_counts_equal_labels() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 2, 20).astype(float)
    weights = rng.integers(0, 4, 20).astype(float)
    repeated = np.repeat(np.arange(20), weights.astype(int))
    counted = learnt(X, y, np.zeros(2), np.eye(2), weights)
    listed = learnt(X[repeated], y[repeated], np.zeros(2), np.eye(2))
    assert counted[0] == pytest.approx(listed[0], abs=1e-9)
    assert counted[1] == pytest.approx(listed[1], abs=1e-9)
    assert len(grouped(X[repeated], y[repeated], np.ones(len(repeated))).y) == (weights > 0).sum()
    nothing = learnt(X, y, np.zeros(2), np.eye(2), np.zeros(20))
    assert nothing[0].tolist() == [0.0, 0.0]
    assert nothing[1].tolist() == np.eye(2).tolist()


def test_large_batches_are_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50).astype(float)
    whole = learnt(X, y, np.zeros(3), np.eye(3))
    monkeypatch.setattr(batch_learning, "ROWS_AT_ONCE", 7)
    parts = learnt(X, y, np.zeros(3), np.eye(3))
    assert parts[0] == pytest.approx(whole[0], abs=1e-9)
    assert parts[1] == pytest.approx(whole[1], abs=1e-9)


def test_rows_of_zeros_weigh_hypotheses_and_teach_nothing_else() -> None:
    weights, means, covariances = np.array([0.5, 0.5]), np.zeros((2, 1)), np.array([[[1.0]], [[2.0]]])
    learn_batch(np.zeros((5, 1)), np.ones(5), np.ones(5), weights, means, covariances)
    assert weights.tolist() == [0.5, 0.5]
    assert means.tolist() == [[0.0], [0.0]]
    assert covariances.ravel() == pytest.approx([1.0, 2.0])


MODELS = [
    BayesianLogistic(),
    Cells(),
    Neighbours(),
    Neighbours(most=150),
    Bootstrap(GaussianNB(), copies=8, random_state=0),
    Bootstrap(SGDClassifier(loss="log_loss", random_state=0), copies=8, random_state=0),
    Bootstrap(DecisionTreeClassifier(max_depth=2, random_state=0), copies=8, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("way", ["fit", "learn"])
def test_the_order_of_a_history_does_not_matter(model: Any, way: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3)).round(1)
    y = (rng.random(400) < expit(1.0 + 2.0 * X[:, 0] - X[:, 1])).astype(float)
    beliefs = []
    for order in (np.arange(400), np.argsort(y), np.argsort(-y), np.argsort(X[:, 0]), rng.permutation(400)):
        if way == "fit":
            model.fit(X[order], y[order])
        else:
            model.prepare(X).learn(X[:1], y[:1]).learn(X[order], y[order])
        beliefs.append(model.beliefs(X[:50]))
    n, mean = beliefs[0]
    claimed = np.sqrt(mean * (1 - mean) / (n + 1))
    for size, rate in beliefs[1:]:
        assert np.all(np.abs(rate - mean) < 1e-4 * claimed)  # 0.1 is what users may rely on
        assert size == pytest.approx(n, rel=1e-4)


def test_a_policy_accepts_the_same_whatever_the_order_of_its_history() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 4))
    y = (rng.random(600) < expit(0.4 + X @ [1.5, -1.0, 0.0, 0.0])).astype(float)
    rates = []
    for order in (np.argsort(y), np.argsort(-y), rng.permutation(600)):
        policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99), random_state=0)
        policy.fit(X[order], y[order]).use_reference(X[:100])
        rates.append(policy.accepts(X).mean())
    assert len(set(rates)) == 1
    assert 0.4 < rates[0] < 0.7


def test_single_labels_continue_from_the_history() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    y = (rng.random(200) < expit(X[:, 0])).astype(float)
    model = BayesianLogistic(bent_variance=()).fit(X, y)
    n, mean = model.beliefs(X[:1])
    for _ in range(10):
        model.learn(X[:1], [1])
    later, higher = model.beliefs(X[:1])
    assert higher[0] > mean[0]
    assert later[0] > n[0]
    assert model.labels_ == 210


def test_rows_of_almost_zeros_teach_nothing() -> None:
    y, weight, centre, m = (np.array([value, value]) for value in (1.0, 2.0, 0.3, 0.0))
    precision, pull, evidence = np.zeros(2), np.zeros(2), np.zeros(2)
    _update_sites(y, weight, centre, m, np.array([1e-15, 0.5]), 1.0, precision, pull, evidence)
    assert (precision[0], pull[0]) == (0.0, 0.0)
    assert evidence[0] == pytest.approx(-2 * np.log1p(np.exp(-0.3)))
    assert precision[1] > 0.1
    assert pull[1] > 0.1
