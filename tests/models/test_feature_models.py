"""What every model with features must do, held to one checklist, and what each does of its own."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from lenience import Belief
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.bootstrap import Bootstrap
from lenience.models.cells import Cells
from lenience.models.feature_estimator import _classes
from lenience.models.feature_model import FeatureModel
from lenience.models.neighbours import Neighbours
from rejections import rejected

MODELS = [
    BayesianLogistic(),
    Cells(),
    Neighbours(),
    Bootstrap(copies=5, random_state=0),
    Bootstrap(GaussianNB(), copies=5, random_state=0),
]


# Of the bootstraps one whose classifier is quick: it is fitted thousands of times.
@pytest.mark.parametrize(
    "model", [BayesianLogistic(), Neighbours(), Bootstrap(GaussianNB(), copies=5, random_state=0)], ids=repr
)
def test_scikit_learns_own_checks(model: Any) -> None:
    failed = []
    for estimator, check in estimator_checks_generator(model):
        name = check.func.__name__
        if name in ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"):
            continue  # rows with a weight of 0 still scale the features
        try:
            check(estimator)
        except SkipTest:
            continue
        except Exception as error:
            failed.append(f"{name}: {error}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_checklist(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(80, 2)).astype(float)
    y = (rng.random(80) < 0.2 + 0.3 * X[:, 0]).astype(float)
    fresh = clone(model).prepare(X)
    assert isinstance(fresh, FeatureModel)
    for labels in (0, 1, 2, 80):
        n, mean = fresh.beliefs(X)
        assert n.shape == mean.shape == (80,)
        assert np.all(np.isfinite(n) & (n > 0)), labels
        assert np.all((mean > 0) & (mean < 1)), labels
        like = fresh.likeness(X[:4], X)
        assert like.shape == (4, 80)
        assert np.all((like >= 0) & (like <= 1 + 1e-12))
        assert np.all(like[:, :4].diagonal() > 0.99)
        fresh = clone(model).prepare(X)
        if labels:
            fresh.learn(X[:labels], y[:labels])
    # Labels sharpen the belief, and all-success labels raise it.
    n0, mean0 = clone(model).prepare(X).beliefs(X)
    sure = clone(model).prepare(X).learn(X, np.ones(80))  # one class only
    n1, mean1 = sure.beliefs(X)
    assert np.all(n1 > n0)
    assert np.all(mean1 > mean0)
    with rejected("outcomes"):
        fresh.learn(X[:2], [0, 3])


def test_cells_are_counts() -> None:
    X = [[0.0, 1.0]] * 10 + [[1.0, 0.0]] * 4
    model = Cells(Belief(1, 0.5)).prepare(X).learn(X, [1] * 7 + [0] * 3 + [0] * 4)
    n, mean = model.beliefs([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0], [9.0, 9.0], [np.nan, 1.0]])
    assert n.tolist() == [11, 5, 11, 1, 1]
    assert mean.tolist() == [7.5 / 11, 0.5 / 5, 7.5 / 11, 0.5, 0.5]
    assert model.likeness([[np.nan, 1.0]], [[np.nan, 1.0], [0.0, 1.0]]).tolist() == [[1.0, 0.0]]


def test_neighbours_count_by_nearness() -> None:
    X = np.array([[-1.0], [1.0]])
    model = Neighbours(bandwidth=0.3).prepare(X).learn(np.repeat(X, 50, axis=0), [0] * 50 + [1] * 50)
    n, mean = model.beliefs([[-1.0], [1.0], [30.0], [np.nan]])
    assert n[0] == pytest.approx(52, abs=0.1)
    assert mean[0] == pytest.approx(1 / 52, abs=1e-3)
    assert n[2] == pytest.approx(2)  # far from everything: the prior
    assert mean[2] == pytest.approx(0.5)
    short = Neighbours(most=10).prepare(X).learn(np.repeat(X, 50, axis=0), [0] * 50 + [1] * 50)
    assert len(short.rows_) == 10


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        GaussianNB(),
        SGDClassifier(loss="log_loss", average=True, alpha=0.01, random_state=0),
        DecisionTreeClassifier(min_samples_leaf=20),
        RandomForestClassifier(n_estimators=10, min_samples_leaf=10, random_state=0),
        KNeighborsClassifier(15),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_classifier_becomes_a_belief(classifier: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    y = (rng.random(400) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(float)
    model = Bootstrap(classifier, copies=10, random_state=1).prepare(X)
    for start in range(0, 400, 50):
        model.learn(X[start : start + 50], y[start : start + 50])
    ends = np.array([[-2.0, 0.0], [2.0, 0.0]])
    n, mean = model.beliefs(ends)
    assert mean[0] < 0.3 < 0.7 < mean[1]
    assert np.all(n <= 402)
    assert np.all(n > 2)


class WithoutWeights(GaussianNB):  # type: ignore[misc]
    """A classifier that goes on, but takes no weights."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        return super().partial_fit(X, y, classes)


def test_a_label_drawn_twice_is_told_twice_to_a_classifier_without_weights() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(float)
    ends = X[:5]
    told = [
        Bootstrap(classifier, copies=5, random_state=0).prepare(X).learn(X[:100], y[:100]).learn(X[100:], y[100:])
        for classifier in (GaussianNB(), WithoutWeights())
    ]
    assert told[1].beliefs(ends)[1] == pytest.approx(told[0].beliefs(ends)[1], rel=1e-6)


@pytest.mark.parametrize(
    ("classifier", "filled"),
    [
        (LogisticRegression(), True),
        (GaussianNB(), True),
        (make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression()), False),
        (HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5), False),
    ],
    ids=lambda c: type(c).__name__,
)
def test_missing_values_are_filled_for_classifiers_that_do_not_take_them(classifier: Any, filled: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(float)
    X[::3, 1] = np.nan
    model = Bootstrap(classifier, copies=5, random_state=0).prepare(X).learn(X[:40], y[:40]).learn(X[40:], y[40:])
    n, mean = model.beliefs(X)
    assert np.all((n > 2) & (mean > 0) & (mean < 1))
    assert np.isnan(model.rows_).any() != filled
    if filled:
        at_mean = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        assert mean == pytest.approx(model.beliefs(at_mean)[1])


def test_incremental_classifiers_are_not_refitted() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(float)
    assert Bootstrap(GaussianNB(), copies=5, random_state=0).prepare(X).learn(X, y).incremental_
    slow = Bootstrap(LogisticRegression(), copies=5, random_state=0).prepare(X).learn(X[:50], y[:50])
    before = slow.members_[0]
    slow.learn(X[50:52], y[50:52])  # too few new labels to refit
    assert slow.members_[0] is before
    slow.learn(X[52:], y[52:])
    assert slow.members_[0] is not before


def test_few_labels_are_counted_by_nearness_and_no_copy_is_asked() -> None:
    model = Bootstrap(LogisticRegression(), copies=5, random_state=0).prepare([[0.0], [1.0]])
    model.learn([[0.0], [1.0], [1.0]], [1, 1, 1])
    near = Neighbours().prepare([[0.0], [1.0]]).learn([[0.0], [1.0], [1.0]], [1, 1, 1])
    assert np.array_equal(model.beliefs([[0.5]]), near.beliefs([[0.5]]))
    # Naive Bayes of one label at a time divides by 0: no warning (an error here), and rows are told apart at once.
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=40), rng.integers(0, 2, 40), 1e4 * rng.normal(size=40)))
    bayes = Bootstrap(GaussianNB(), copies=5, random_state=0).prepare(X)
    for i in range(25):
        bayes.learn(X[i : i + 1], [float(X[i, 0] > 0)])
        n, mean = bayes.beliefs(X)
        assert np.isfinite(n).all()
        assert np.isfinite(mean).all()
        assert mean.std() > 0.01
    assert bayes.fitted_.all()


def test_few_copies_that_agree_by_chance_are_not_sure() -> None:
    """Five copies of a logistic regression that is right: errors are what the belief says, whatever five agree on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    rate = 1 / (1 + np.exp(-(0.5 + 1.5 * X[:, 0] - X[:, 1])))
    y = (rng.random(800) < rate).astype(float)
    model = Bootstrap(LogisticRegression(), copies=5, random_state=0).prepare(X[:300]).learn(X[:300], y[:300])
    n, mean = model.beliefs(X[300:])
    errors = (rate[300:] - mean) / np.sqrt(mean * (1 - mean) / (n + 1))
    assert 0.6 < np.sqrt((errors**2).mean()) < 1.6
    assert n.max() < 302  # all labels and the prior, which one row in eight had
    alone = [model.beliefs(row[None])[0][0] for row in X[300:303]]
    assert n[:3] == pytest.approx(alone)  # a row's belief is its own, whoever is asked about with it
    with rejected("copies"):
        Bootstrap(copies=3).prepare(X)


def test_what_is_no_classifier_is_refused() -> None:
    with rejected("classifier"):
        Bootstrap(SGDClassifier(loss="hinge")).prepare([[1.0]])
    with rejected("y"):
        BayesianLogistic().fit([[1.0], [2.0]], ["a", "a"])
    with rejected("classes"):
        BayesianLogistic().fit([[1.0], [2.0]], [0, 1]).partial_fit([[1.0]], [2])


def test_weights_may_be_0_but_not_all_of_them() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 1, 0])
    some = BayesianLogistic().prepare(X).fit(X, y, sample_weight=[1, 0, 2, 0])
    same = BayesianLogistic().prepare(X).fit(X, np.array([0, 0, 1, 1]), sample_weight=[1, 0, 2, 0])
    other = BayesianLogistic().prepare(X).fit(X, y)
    assert some.predict_proba(X) == pytest.approx(same.predict_proba(X))
    assert some.predict_proba(X) != pytest.approx(other.predict_proba(X))
    for wrong in ([0, 0, 0, 0], [1, 1, 1, -1], [1, 1, 1], [1, 1, 1, np.nan]):
        with rejected("sample_weight"):
            BayesianLogistic().prepare(X).fit(X, y, sample_weight=wrong)


@pytest.mark.parametrize(
    ("draws", "enough"),
    [
        ([1, 1, 1, 1, 0], True),  # two labels of each class
        ([1, 3, 1, 0, 0], False),  # one failure
        ([1, 0, 1, 1, 0], False),  # one success
        ([1, 1, 1, 2, 1], True),
        ([0, 0, 0, 0, 0], False),
    ],
)
def test_a_copy_takes_part_from_two_labels_of_each_class_on(draws: list[int], enough: bool) -> None:
    model = Bootstrap(GaussianNB(), copies=5, random_state=0).prepare([[0.0], [1.0]])
    model.outcomes_ = np.array([1.0, 1.0, 0.0, 0.0, 1.0])
    model.draws_ = np.array([draws], dtype=float)
    assert model._enough(0) is enough


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([True, True], [False, True]),
        ([False], [False, True]),
        ([1, 1], [0, 1]),
        ([0.0], [0.0, 1.0]),
        ([3, 5, 3], [3, 5]),
        (["no", "yes"], ["no", "yes"]),
    ],
)
def test_outcomes_have_two_classes_even_if_one_was_seen(labels: list[Any], classes: list[Any]) -> None:
    found = _classes(np.array(labels))
    assert found.tolist() == classes
    assert found.dtype == np.array(labels).dtype
