"""Effects whose direction is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from lenience.models.bayesian_logistic import BayesianLogistic
from rejections import rejected

GRID = np.linspace(-2.0, 2.0, 41)


def world(seed: int, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and outcomes; success rises a little with the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, (rng.random(rows) < expit(0.2 * X[:, 0] + X[:, 1])).astype(float)


def course(model: BayesianLogistic) -> NDArray[np.float64]:
    """Return the success rate along the first feature."""
    rows = np.column_stack((GRID, np.zeros(len(GRID)), np.zeros(len(GRID))))
    rates: NDArray[np.float64] = model.beliefs(rows)[1]
    return rates


@pytest.mark.parametrize("sign", [1, -1])
def test_the_prior_follows_the_direction(sign: int) -> None:
    X, _ = world(0, 300)
    model = BayesianLogistic(monotonic_cst=[sign, 0, 0]).prepare(X)
    assert np.all(sign * np.diff(course(model)) > 0)
    assert model.weights_ == pytest.approx(BayesianLogistic().prepare(X).weights_)
    open_ = np.column_stack((np.zeros(41), GRID, np.zeros(41)))
    assert model.beliefs(open_)[1] == pytest.approx(BayesianLogistic().prepare(X).beliefs(open_)[1], abs=0.05)


def test_few_labels_do_not_turn_the_direction() -> None:
    falls = straight = 0
    for seed in range(12):
        X, y = world(seed, 30)
        straight += bool(np.any(np.diff(course(BayesianLogistic().fit(X, y))) < -1e-3))
        model = BayesianLogistic(monotonic_cst=[1, 0, 0]).fit(X, y)
        falls += bool(np.any(np.diff(course(model)) < -1e-3))
    assert straight >= 4
    assert falls <= 1


def test_one_coefficient_is_the_truncated_normal() -> None:
    model = BayesianLogistic(1e-6, 3.0, 0.0, standardise=False, bent_variance=(), monotonic_cst=[1]).prepare(
        [[0.0], [1.0]]
    )
    sd = np.sqrt(3.0)
    assert model.means_[0, 1] == pytest.approx(sd * np.sqrt(2.0 / np.pi), rel=0.02)
    assert model.covariances_[0, 1, 1] == pytest.approx(3.0 * (1.0 - 2.0 / np.pi), rel=0.05)


@pytest.mark.parametrize("given", [[1], [1, 0, 2], "up", [0.5, 0, 0]])
def test_bad_directions(given: Any) -> None:
    with rejected("monotonic_cst", "invalid_value"):
        BayesianLogistic(monotonic_cst=given).prepare(np.zeros((4, 3)))


def test_weights_of_hypotheses_after_labels_are_shares_of_what_the_labels_say() -> None:
    X, y = world(3, 60)
    model = BayesianLogistic(monotonic_cst=[1, 0, 0]).fit(X, y)
    prior = BayesianLogistic(monotonic_cst=[1, 0, 0]).prepare(X).weights_
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.weights_ != pytest.approx(prior, abs=1e-3)
    # A direction that the labels confirm says little: the weights are near those without it.
    assert model.weights_ == pytest.approx(BayesianLogistic().fit(X, y).weights_, abs=0.1)
