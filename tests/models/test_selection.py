"""What the choices of the past say about those whose outcome is not known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.rank_columns import find_rank_columns
from lenience.models.selection import Selection, _sample, _strength, find_selection, prior_of_columns
from lenience.objectives.discounted import Discounted
from lenience.policies.features.policy import FeaturePolicy

Rows = NDArray[np.float64]


def past(seed: int, rows: int = 800) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Return features, outcomes, and whom an earlier rule accepted, by a score that is near the truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    score = X @ np.array([1.0, 0.8, -0.6, 0.0, 0.0])
    y = (rng.random(rows) < expit(1.0 + score)).astype(float)
    return X, y, score + 0.3 * rng.normal(size=rows) > 0


def test_the_index_follows_the_earlier_rule() -> None:
    X, _, accepted = past(0)
    selection = find_selection(X, accepted)
    assert selection is not None
    assert selection.strength > 0.8
    columns = selection.columns(X)
    score = X @ np.array([1.0, 0.8, -0.6, 0.0, 0.0])
    assert np.corrcoef(columns[:, 0], score)[0, 1] > 0.95
    depth = columns[:, 1:].sum(axis=1)
    assert depth[score > 0.5].max() == 0.0  # where labels are, there is nothing to extrapolate
    assert depth[score < -1.5].min() > 1.5
    # One ramp after the other, deeper and deeper.
    assert np.all(np.diff(columns[:, 1:], axis=1) <= 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_sample_of_labels_says_nothing(seed: int) -> None:
    X, y, _ = past(seed)
    known = np.random.default_rng(seed).random(len(X)) < 0.2
    assert find_selection(X, known) is None
    plain = BayesianLogistic().prepare(X).learn(X[known], y[known])
    told = BayesianLogistic().past_choices(known).prepare(X).learn(X[known], y[known])
    assert np.array_equal(plain.means_, told.means_)


@pytest.mark.parametrize("labels", [0, 5, 795, 800])
def test_few_or_all_labels_have_no_index(labels: int) -> None:
    X = past(0)[0]
    assert find_selection(X, np.arange(len(X)) < labels) is None


def test_beliefs_about_the_rejected_are_wider_and_lower() -> None:
    X, y, accepted = past(1)
    far = X @ np.array([1.0, 0.8, -0.6, 0.0, 0.0]) < -1.0
    naive = BayesianLogistic(selection=False).past_choices(accepted).prepare(X).learn(X[accepted], y[accepted])
    careful = BayesianLogistic().past_choices(accepted).prepare(X).learn(X[accepted], y[accepted])
    n, mean = naive.beliefs(X[far])
    size, rate = careful.beliefs(X[far])
    assert np.median(size) < 0.75 * np.median(n)
    assert rate.mean() < mean.mean()
    inside = X @ np.array([1.0, 0.8, -0.6, 0.0, 0.0]) > 0.5
    assert np.abs(careful.beliefs(X[inside])[1] - naive.beliefs(X[inside])[1]).max() < 0.1


def test_labels_of_the_rejected_correct_the_columns() -> None:
    X, _, accepted = past(2)
    model = BayesianLogistic().past_choices(accepted).prepare(X).learn(X[accepted], np.ones(accepted.sum()))
    rejected = X[~accepted]
    before = model.beliefs(rejected)
    model.learn(rejected[::2], np.ones(len(rejected[::2])))
    after = model.beliefs(rejected)
    assert after[1].mean() > max(before[1].mean(), 0.97)
    assert np.median(after[0]) > 2 * np.median(before[0])


def test_claimed_errors_hold_for_the_rejected() -> None:
    """Over several histories the mean belief about the rejected is about as far off as it claims."""
    naive, careful = list[float](), list[float]()
    for seed in range(8):
        X, y, accepted = past(10 + seed)
        truth = expit(1.0 + X @ np.array([1.0, 0.8, -0.6, 0.0, 0.0]))[~accepted].mean()
        for scores, use in ((naive, False), (careful, True)):
            model = BayesianLogistic(selection=use).past_choices(accepted).prepare(X).learn(X[accepted], y[accepted])
            rng = np.random.default_rng(seed)
            which = rng.choice(len(model.weights_), size=200, p=model.weights_)
            drawn = np.array([rng.multivariate_normal(model.means_[k], model.covariances_[k]) for k in which])
            rates = expit(drawn @ model.design(X[~accepted]).T).mean(axis=1)
            scores.append((rates.mean() - truth) / rates.std())
    assert np.sqrt(np.mean(np.square(careful))) < 1.3
    assert np.sqrt(np.mean(np.square(naive))) > np.sqrt(np.mean(np.square(careful)))


def test_a_policy_tells_its_model_whose_outcome_is_known() -> None:
    X, y, accepted = past(3)
    policy = FeaturePolicy(objective=Discounted(cost=0.7, discount=0.99)).fit(X, np.where(accepted, y, np.nan))
    assert policy.model_.selection_ is not None
    assert FeaturePolicy(objective=Discounted(cost=0.7, discount=0.99)).fit(X, y).model_.selection_ is None
    assert FeaturePolicy(objective=Discounted(cost=0.7, discount=0.99)).fit(X).model_.selection_ is None


def test_ranks_count_the_rows_below() -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.gamma(1.0, 3.0, size=(5000, 1)), 1)
    values[::7] = 0.0
    columns = find_rank_columns(values, 1)
    assert columns.kind.tolist() == [0, 1, 2]
    got = columns.of(values)
    below = np.array([np.mean(values < v) + np.mean(values == v) / 2 for v in values[:50, 0]])
    assert got[:50, 0] == pytest.approx(below, abs=0.01)
    assert got[:, 1] == pytest.approx((got[:, 0] - 0.5) ** 2)
    assert np.array_equal(got[:, 2], values[:, 0] == 0.0)
    assert columns.of(np.array([[-1.0], [1e9]]))[:, 0].tolist() == [0.0, 1.0]


def test_two_values_and_reserved_columns_do_not_bend() -> None:
    X = np.column_stack((np.arange(50.0) % 2, np.arange(50.0), np.arange(50.0)))
    assert find_rank_columns(X, 2).source.tolist() == [1, 1]
    assert find_rank_columns(X[:, :1], 1).width == 0


def test_the_columns_are_interpolated_along_the_index() -> None:
    points, score, depth = np.array([-2.0, -0.5, 0.0, 0.0, 3.0]), np.arange(5.0) ** 2, np.array([1.0, 0.7, 0.3, 0.1, 0])
    selection = Selection(np.array([0.5, -2.0]), points, score, depth, 0.6)
    Z = np.array([[0.0, 1.3], [0.0, 0.9], [1.0, 0.35], [0.3, 0.2], [-2.0, -1.2], [3.0, -0.1], [4.0, -3.0], [2.0, -1.0]])
    index = Z @ np.array([0.5, -2.0])
    columns = selection.columns(Z)
    assert columns[:, 0] == pytest.approx(np.interp(index, points, score))
    deep = 4 * np.interp(index, points, depth)
    for k in range(4):
        assert columns[:, 1 + k] == pytest.approx(0.6 * np.clip(deep - k, 0.0, 1.0))
    assert selection.width == columns.shape[1] == 5


def test_the_index_is_ranked_and_its_edge_leaves_a_twentieth_of_the_labels() -> None:
    X, _, accepted = past(1)
    selection = find_selection(X, accepted)
    assert selection is not None
    index = X @ selection.weights
    ranks = (np.arange(401) + 0.5) / 401
    assert selection.points == pytest.approx(np.quantile(index, ranks))
    assert selection.score == pytest.approx(selection.strength * norm.ppf(ranks))
    assert selection.depth[0] == 1.0
    assert np.all(np.diff(selection.depth) <= 0)
    beyond = selection.points[selection.depth > 0]
    assert np.mean(index[accepted] < beyond[-1]) == pytest.approx(0.05, abs=0.01)
    edge = np.flatnonzero(selection.depth > 0)[-1]
    assert selection.depth[: edge + 1] == pytest.approx(np.linspace(1, selection.depth[edge], edge + 1))
    assert selection.depth[edge] < 2 / edge


@pytest.mark.parametrize("shift", [0.1, 0.5, 2.0, 40.0])
def test_the_strength_is_the_gini_coefficient_less_two_standard_errors(shift: float) -> None:
    rng = np.random.default_rng(2)
    labelled = np.arange(300) < 120
    predicted = rng.normal(size=300) + shift * labelled
    gini = 2 * roc_auc_score(labelled, predicted) - 1
    error = 2 * 2 * math.sqrt(301 / (12 * 120 * 180))
    assert _strength(predicted, labelled) == pytest.approx(max((gini - error) / (1 - error), 0.0))


def test_the_prior_of_the_columns() -> None:
    mean, variance = prior_of_columns()
    assert (mean[0], variance[0]) == (1.0, 1.0)
    assert (mean[1:].sum(), variance[1:].sum()) == (-0.5, 1.0)
    assert np.ptp(mean[1:]) == np.ptp(variance[1:]) == 0.0


def test_as_many_rows_of_each_kind_as_an_index_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.concatenate([np.full((20, 1), 3.0), np.full((30, 1), -3.0)]) + np.linspace(0, 1, 50)[:, None]
    assert find_selection(X, np.arange(50) < 20) is not None
    assert find_selection(X[1:], np.arange(49) < 19) is None
    assert find_selection(-X, np.arange(50) >= 20) is not None
    monkeypatch.setattr("lenience.models.selection.MOST_ROWS", 7)
    rows = _sample(np.arange(50) < 20)
    assert (len(rows), (rows < 20).sum()) == (14, 7)
    assert rows.tolist() == sorted(set(rows.tolist()))


def test_ranks_between_and_beyond_the_stored_values() -> None:
    X = np.array([[0.0], [0.0], [1.0], [4.0], [4.0], [9.0]])
    columns = find_rank_columns(X, 1)
    rank, square, zero = columns.of(np.array([[0.0], [0.5], [1.0], [3.0], [4.0], [8.9], [9.0], [-0.1], [9.1]])).T
    expected = np.interp([0, 0.5, 1, 3, 4, 8.9, 9], [0, 1, 4, 9], [1 / 6, 2.5 / 6, 4 / 6, 5.5 / 6])
    assert rank.tolist() == pytest.approx([*expected, 0.0, 1.0])
    assert square == pytest.approx((rank - 0.5) ** 2)
    assert zero.tolist() == [1.0, *[0.0] * 8]


def test_many_values_keep_their_ranks_nearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.models.rank_columns.MOST_VALUES", 20)
    X = np.sort(np.random.default_rng(0).normal(size=(501, 1)), axis=0)
    columns = find_rank_columns(X, 1)
    assert columns.start.tolist() == [0, 20, 40]
    assert (columns.values[0], columns.values[19]) == (X[0, 0], X[-1, 0])
    assert columns.of(X)[:, 0] == pytest.approx((np.arange(501) + 0.5) / 501, abs=0.026)


@pytest.mark.parametrize(("zeros", "flagged"), [(2, False), (3, True), (97, True), (98, False)])
def test_zeros_have_a_column_unless_they_are_rare_or_nearly_everything(zeros: int, flagged: bool) -> None:
    X = np.where(np.arange(100) < zeros, 0.0, np.arange(100.0))[:, None]
    assert (2 in find_rank_columns(X, 1).kind) == flagged
    assert 2 not in find_rank_columns(X, 1, np.array([1])).kind
