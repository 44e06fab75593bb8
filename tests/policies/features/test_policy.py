"""FeaturePolicy: its limits, its batches and late labels, and scikit-learn's conventions."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from feature_worlds import GOAL, cells, world
from lenience import Belief, Discounted, FeaturePolicy, FiniteHorizon
from lenience.cli import cli
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.bootstrap import Bootstrap
from lenience.models.cells import Cells
from lenience.models.neighbours import Neighbours
from lenience.policies.features.baselines import GreedyRule, LinearUpperBoundRule
from lenience.policies.features.policy import NeverStartsWarning
from lenience.policies.features.reference_set import ReferenceLogOdds
from rejections import rejected


@pytest.mark.parametrize("model", [BayesianLogistic.for_cells(), Cells()], ids=["logistic", "cells"])
def test_on_one_hot_cells_the_discount_is_the_segments_own(model: Any) -> None:
    X = cells({0: 60, 1: 30, 2: 10})
    policy = FeaturePolicy(model, Discounted(0.6, 0.99), refresh=False).fit(X)
    for cell, share in ((0, 0.6), (1, 0.3), (2, 0.1)):
        policy.decide(X[X[:, cell] == 1][:1])
        segment = 0.99 * share / (1 - 0.99 + 0.99 * share)
        assert policy.log_[-1].discount == pytest.approx(segment, abs=1e-9)


def test_on_cells_it_decides_as_the_segmented_policy() -> None:
    X = cells({0: 60, 1: 30, 2: 10})
    prior, goal = Belief(2, 1), Discounted(0.6, 0.99)
    policy = FeaturePolicy(Cells(prior), goal, refresh=False).fit(X)
    own = [Discounted(0.6, 0.99 * q / (0.01 + 0.99 * q)).solve(prior) for q in (0.6, 0.3, 0.1)]
    beliefs = [prior] * 3
    rng = np.random.default_rng(5)
    rejected = 0
    for _ in range(600):
        cell = int(rng.choice(3, p=[0.6, 0.3, 0.1]))
        row = np.eye(3)[cell][None]
        threshold = own[cell].threshold(beliefs[cell].n, 1e-6).midpoint
        if abs(beliefs[cell].mean - threshold) < 0.01 * (0.6 - threshold):
            continue  # nearer than the table's interpolation can tell
        accepted = bool(policy.decide(row)[0])
        assert accepted == own[cell].accepts(beliefs[cell])
        rejected += not accepted
        if accepted:
            outcome = bool(rng.random() < (0.3, 0.55, 0.65)[cell])
            policy.observe(row, [True], [outcome])
            beliefs[cell] = beliefs[cell].observe(outcome)
    assert rejected > 0


def test_without_features_everyone_is_alike() -> None:
    X = np.ones((50, 1))
    for model in (BayesianLogistic.for_cells(), Cells()):
        policy = FeaturePolicy(model, Discounted(0.6, 0.97)).fit(X)
        policy.decide(X[:1])
        assert policy.log_[0].discount == pytest.approx(0.97)


def test_the_compiled_path_is_the_plain_one() -> None:
    X, y = world()
    policy = FeaturePolicy(objective=GOAL, refresh=False).fit(X).use_reference(X[:100])
    policy.observe(X[:60], np.ones(60), y[:60])
    chances = np.ones(40)
    decisions = policy._rule().decide(X[60:100], policy._designed_pending(), 0, chances)
    quick = np.array([(each.accepted, each.propensity, each.mean, each.n, each.discount) for each in decisions])
    slow = policy._decide_any(X[60:100], chances, np.full(40, 0.99))
    below = quick[:, 2] < 0.7
    assert below.any()
    assert quick[:, 2:4] == pytest.approx(slow[:, 2:4])
    # The people like x are seen in closed form by one and by quadrature by the other: close, not equal.
    assert np.mean(quick[:, 0] == slow[:, 0]) > 0.9
    assert np.corrcoef(quick[below, 4], slow[below, 4])[0, 1] > 0.95


def test_it_learns_only_from_the_accepted() -> None:
    X, y = world()
    policy = FeaturePolicy(objective=GOAL).fit(X)
    before = policy.model_.mean_.copy()
    policy.observe(X[:20], np.zeros(20), y[:20])
    assert np.array_equal(policy.model_.mean_, before)
    unread: list[Any] = [1, "unknown", None]  # the rejected's outcome is not even read
    policy.observe(X[:3], [True, False, True], unread)
    assert policy.model_.labels_ == policy.labels_ == 1
    assert FeaturePolicy(objective=GOAL).fit(X, np.full(300, np.nan)).labels_ == 0  # nobody's outcome is known


def test_decisions_are_logged_with_their_propensity() -> None:
    X, y = world(600)
    policy = FeaturePolicy(objective=GOAL, explore=0.2, random_state=3).fit(X)
    for i in range(0, 600, 20):
        rows = X[i : i + 20]
        taken = policy.decide(rows)
        policy.observe(rows, taken, y[i : i + 20])
    log = policy.log_
    assert [decision.arrival for decision in log] == list(range(600))
    assert {decision.propensity for decision in log} == {0.2, 1.0}
    lot = [decision.accepted for decision in log if decision.propensity == 0.2]
    assert 0.1 < np.mean(lot) < 0.3
    assert all(decision.accepted for decision in log if decision.propensity == 1.0)
    for decision in log:
        assert decision.discount is not None
        assert decision.threshold is not None
        assert decision.propensity == 1.0 or decision.mean <= decision.threshold <= 0.7


def test_one_at_a_time_and_heard_at_once_is_what_batches_without_pending_are() -> None:
    X, y = world()
    single = FeaturePolicy(objective=GOAL).fit(X)
    for i in range(80):
        if single.decide(X[i : i + 1])[0]:
            single.observe(X[i : i + 1], [True], y[i : i + 1])
    assert single.pending_ == 0
    assert single.model_.labels_ == single.accepted_ > 0


@pytest.mark.parametrize("model", [BayesianLogistic(), Neighbours(), Bootstrap(GaussianNB(), copies=5)], ids=repr)
def test_where_success_is_likely_nothing_blocks(model: Any) -> None:
    X, _ = world()
    policy = FeaturePolicy(model, Discounted(0.5, 0.9), exposure=1).fit(X, np.ones(300))
    assert policy.decide(X).all()


def test_a_finite_horizon_ends_without_exploring() -> None:
    X = np.ones((30, 1))
    policy = FeaturePolicy(BayesianLogistic.for_cells(), FiniteHorizon(0.6, 30)).fit(X)
    policy.observe(X[:1], [True], [1])
    policy.observe(X[:2], [True, True], [0, 0])
    discounts = []
    for i in range(30):
        policy.decide(X[:1])
        discounts.append(policy.log_[i].discount)
    assert discounts[0] == pytest.approx(1 - 1 / 30)
    assert discounts[-1] == 0.0
    assert np.all(np.diff(np.array(discounts, dtype=float)) <= 0)
    assert policy.log_[-1].threshold == pytest.approx(0.6)


def test_pipelines_and_column_transformers_in_front() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"age": rng.normal(40, 10, 200), "job": rng.choice(["clerk", "cook", "none"], 200), "debt": rng.random(200)}
    )
    y = (rng.random(200) < 0.5 + 0.3 * (frame["job"] == "cook")).astype(int)
    front = ColumnTransformer(
        [
            ("numbers", make_pipeline(StandardScaler(), SplineTransformer(n_knots=4)), ["age", "debt"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["job"]),
        ]
    )
    policy = FeaturePolicy(make_pipeline(front, BayesianLogistic()), Discounted(0.6, 0.99)).fit(frame)
    taken = policy.decide(frame[:50])
    assert taken.dtype == np.bool_
    policy.observe(frame[:50], taken, y[:50].to_numpy())
    assert policy.model_.labels_ == taken.sum() > 0
    unseen = frame[:1].assign(job="pilot")  # a category that was never seen
    assert 0 < policy.predict_proba(unseen)[0, 1] < 1
    squares = make_pipeline(PolynomialFeatures(2, include_bias=False), BayesianLogistic())
    X, labels = world()
    assert FeaturePolicy(squares, GOAL).fit(X, labels).predict(X).mean() > 0.2


def test_a_pipeline_of_three_steps_transforms_twice() -> None:
    """The last step is the model, and all steps before it are the transformer."""
    X, labels = world()
    scaled = PolynomialFeatures(2, include_bias=False).fit_transform(StandardScaler().fit_transform(X))
    three = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), BayesianLogistic())
    policy = FeaturePolicy(three, GOAL).fit(X, labels)
    plain = FeaturePolicy(BayesianLogistic(), GOAL).fit(scaled, labels)
    assert isinstance(policy.model_, BayesianLogistic)
    assert policy.predict_proba(X[:40]) == pytest.approx(plain.predict_proba(scaled[:40]))
    alone = FeaturePolicy(make_pipeline(BayesianLogistic()), GOAL).fit(X, labels)
    assert alone.transformer_ is None


def test_a_prior_left_open_is_about_the_objectives_cost() -> None:
    X = np.random.default_rng(0).normal(size=(200, 12))
    goal = Discounted(0.85, 0.99)
    open_, own = (FeaturePolicy(model, goal, random_state=0).fit(X) for model in (BayesianLogistic(), None))
    assert np.array_equal(open_.decide(X), own.decide(X))
    assert own.accepted_ > 0
    piped = FeaturePolicy(make_pipeline(StandardScaler(), BayesianLogistic()), goal).fit(X)
    assert piped.decide(X).any()
    assert piped.model.steps[-1][1].get_params()["intercept_mean"] is None
    assert clone(piped.model_).prepare(X).beliefs(X)[1] == pytest.approx(0.5)  # alone it knows of no cost
    assert FeaturePolicy(Neighbours(), goal).fit(X).decide(X[:1])[0]
    assert Cells().centre_on(0.85).prepare(X).beliefs(X)[1] == pytest.approx(0.5)  # as the segmented policy has it


def test_who_would_accept_nobody_is_told_at_the_start() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 12)), np.ones(40)
    goal = Discounted(0.85, 0.99)
    facts = r"none of the 40 reference rows.*Neighbours.* 50%.* 85%.*prior=Belief\(2, 1\.7\)"
    with pytest.warns(NeverStartsWarning, match=facts) as caught:
        never = FeaturePolicy(Neighbours(prior=Belief(2, 1)), goal).fit(X)
    assert not never.decide(X).any()
    assert caught[0].filename == __file__
    with pytest.warns(NeverStartsWarning, match="its intercept_mean"):
        FeaturePolicy(BayesianLogistic(intercept_mean=0.0), goal).fit(X)
    for policy, outcomes in (  # no warning, which would be an error
        (FeaturePolicy(Neighbours(prior=Belief(2, 1)), goal, explore=0.05), None),
        (FeaturePolicy(Neighbours(prior=Belief(2, 1)), goal), y),
    ):
        policy.fit(X, outcomes)


def test_text_is_refused_by_its_column_and_names_cells() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [30, 40, 50, 30], "land": ["DE", "FR", None, "DE"], "job": ["cook"] * 4})
    for refused in (
        lambda: FeaturePolicy(objective=GOAL).fit(frame),
        lambda: BayesianLogistic().fit(frame, [0, 1, 0, 1]),
    ):
        with rejected("X") as caught:
            refused()
        assert caught.value.value == ["land", "job"]
        assert "ColumnTransformer" in str(caught.value.hint)
    policy = FeaturePolicy(Cells(), GOAL).fit(frame)
    policy.observe(frame, [True] * 4, [1, 1, 1, 0])
    n, _ = policy.beliefs(pandas.DataFrame({"age": [30, 50, 30], "land": ["DE", None, "XX"], "job": ["cook"] * 3}))
    assert n.tolist() == [4, 3, 2]
    land = pandas.DataFrame({"land": pandas.Series(["DE", None, "inf", "nan"], dtype="string")})
    assert Cells().prepare(land).learn(land, [1] * 4).beliefs(land)[0].tolist() == [3] * 4
    mixed: Any = [[1, "a"], [2, "a"]]
    assert Cells().prepare([["1", "a"]]).learn([["1", "a"]], [1]).beliefs(mixed)[0].tolist() == [3, 2]


def test_the_log_as_a_frame(tmp_path: Path) -> None:
    X, y = world(200)
    policy = FeaturePolicy(objective=GOAL, explore=0.6, random_state=0).fit(X)
    taken = policy.decide(X)
    policy.observe(X[:190], taken[:190], y[:190])
    frame = policy.log_frame(X, backend="pandas")
    assert list(frame.columns)[:5] == ["x0", "x1", "x2", "arrival", "accepted"]
    assert frame["propensity"].tolist() == [decision.propensity for decision in policy.log_]
    known = taken & (np.arange(200) < 190)
    assert np.array_equal(frame["outcome"].notna(), known)
    assert np.array_equal(frame["outcome"][known], y[known])
    assert np.array_equal(frame[["x0", "x1", "x2"]], X)
    file = tmp_path / "log.csv"
    policy.observe(X[190:], taken[190:], y[190:])
    policy.log_frame(X, backend="pandas").to_csv(file, index=False)
    asked = ["offpolicy", str(file), "--cost", "0.7", "--score", "x0", "--at-least", "-1", "--features", "x0,x1"]
    answer = CliRunner().invoke(cli, asked)
    assert "from 200 arrivals" in answer.output
    with rejected("X", "length_mismatch"):
        policy.log_frame(X[:10])
    with rejected("X", "duplicate"):
        policy.log_frame(frame[["mean", "n"]])


def test_parameters_and_clones() -> None:
    policy = FeaturePolicy(BayesianLogistic(feature_variance=2.0), GOAL, reference=50)
    copy = clone(policy)
    assert copy.get_params()["model__feature_variance"] == 2.0
    assert copy.set_params(model__feature_variance=3.0).model.feature_variance == 3.0
    assert policy.model.feature_variance == 2.0
    assert "reference=50" in repr(policy)
    for options in ParameterGrid({"reference": [10, 20], "explore": [0.0, 0.1]}):
        clone(policy).set_params(**options).fit(world()[0]).decide(world()[0][:5])


class WithoutLabels(FeaturePolicy):
    """The checks fit to labels of three classes, or to real numbers; outcomes are 0 and 1, and optional."""

    def fit(self, X: Any, y: Any = None, offers: Any = None) -> WithoutLabels:
        return super().fit(X)


class GreedyWithoutLabels(GreedyRule):
    def fit(self, X: Any, y: Any = None, offers: Any = None) -> GreedyWithoutLabels:
        return super().fit(X)


@pytest.mark.parametrize("kind", [WithoutLabels, GreedyWithoutLabels], ids=lambda kind: kind.__name__)
def test_scikit_learns_own_checks(kind: Any) -> None:
    failed, passed = [], 0
    for estimator, check in estimator_checks_generator(kind(objective=Discounted(0.5, 0.9))):
        try:
            check(estimator)
            passed += 1
        except SkipTest:
            continue
        except Exception as error:
            failed.append(f"{check.func.__name__}: {error}")
    assert not failed, "\n".join(failed)
    assert passed >= 35


def test_explanations() -> None:
    X, y = world(600)
    policy = FeaturePolicy(objective=GOAL).fit(X, y)
    words = [explanation.summary for explanation in policy.explain(X[:60])]
    assert {text.split(":")[0] for text in words} == {"Accept", "Reject"}
    cold = FeaturePolicy(objective=GOAL).fit(X).explain(X[:1])[0].summary
    assert "worth the risk" in cold
    holed = X[:1].copy()
    holed[0, 1] = np.nan
    assert ", without the missing feature x1, " in policy.explain(holed)[0].summary
    assert "missing" not in words[0]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"objective": None}, "objective"),
        ({"objective": GOAL, "model": LogisticRegression()}, "model"),
        ({"objective": GOAL, "reference": 0}, "reference"),
        ({"objective": GOAL, "explore": 2}, "explore"),
        ({"objective": GOAL, "exposure": -1}, "exposure"),
        ({"objective": GOAL, "expire_after": -1}, "expire_after"),
    ],
)
def test_bad_options(options: dict[str, Any], field: str) -> None:
    with rejected(field) as caught:
        FeaturePolicy(**options).fit([[1.0], [2.0]])
    if field == "model":
        assert "Bootstrap(LogisticRegression())" in str(caught.value.hint)


def test_outcomes_that_pandas_calls_missing_stay_pending() -> None:
    pandas = pytest.importorskip("pandas")
    X, _ = world()
    policy = FeaturePolicy(objective=GOAL).fit(X)
    taken = policy.decide(X[:3])
    policy.observe(X[:3], pandas.Series(taken, dtype="boolean"), pandas.Series([True, None, False], dtype="boolean"))
    assert (policy.labels_, policy.pending_) == (2, 1)
    with rejected("accepted"):
        policy.observe(X[:3], pandas.Series([True, None, False], dtype="boolean"), [1, 1, 1])


def test_bad_calls() -> None:
    X, y = world()
    with pytest.raises(NotFittedError):
        FeaturePolicy(objective=GOAL).decide(X)
    policy = FeaturePolicy(objective=GOAL).fit(X)
    with pytest.raises(ValueError, match="features"):
        policy.decide(X[:, :2])
    with rejected("accepted"):
        policy.observe(X[:2], [1, 2], [0, 1])
    with rejected("outcomes", "length_mismatch"):
        policy.observe(X[:2], [1, 1], y[:3])
    with rejected("outcomes"):
        policy.observe(X[:2], [1, 1], [0, 7])
    with rejected("model"):
        LinearUpperBoundRule(Cells(), GOAL).fit(X)


def test_without_exploration_a_rejection_never_turns() -> None:
    """Not even for a draw of exactly 0."""
    X, _ = world()
    with pytest.warns(NeverStartsWarning):
        policy = FeaturePolicy(BayesianLogistic(), Discounted(0.95, 0.5), explore=0.0).fit(X)
    decisions = policy._rule().decide(X[:50], policy._designed_pending(), 0, np.zeros(50))
    rejected_rows = [each for each in decisions if each.propensity == 0.0]
    assert rejected_rows
    assert not any(each.accepted for each in rejected_rows)


def test_reference_rows_follow_single_labels_under_known_directions() -> None:
    X, y = world(80, seed=3)
    model = BayesianLogistic(monotonic_cst=[1] + [0] * (X.shape[1] - 1))
    policy = FeaturePolicy(model, GOAL).fit(X)
    for i in range(20):
        if policy.decide(X[i : i + 1])[0]:
            policy.observe(X[i : i + 1], [True], y[i : i + 1])
            fresh = ReferenceLogOdds(policy.model_.belief_, policy.reference_)
            assert policy._projected().v == pytest.approx(fresh.v, abs=1e-9)
    assert policy.model_.labels_ > 2


@pytest.mark.parametrize("explore", [0.0, 0.1])
def test_a_large_batch_is_decided_as_one_row_after_the_other(explore: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads weigh the rows of a large batch. Every number in the log must have the bits of single decisions."""
    monkeypatch.setattr("lenience.policies.features.logistic_rule.CHUNK", 16)
    monkeypatch.setattr("lenience.policies.features.logistic_rule.MANY", 32)
    X, y = world()
    goal = FiniteHorizon(0.6, 500, 0.99)  # the discount differs from row to row
    together = FeaturePolicy(objective=goal, explore=explore, refresh=False, random_state=1).fit(X[:100], y[:100])
    chances = np.random.default_rng(2).random(120)
    single = deepcopy(together)
    together.decide(X[100:110], chances=chances[:10])  # some are pending when the batch comes
    together.decide(X[110:220], chances=chances[10:])
    for i, row in enumerate(X[100:220]):
        single.decide(row[None], chances=chances[i : i + 1])
    assert together.log_ == single.log_
    assert 10 < together.accepted_ < 110
    assert any(decision.accepted and decision.mean <= 0.6 for decision in together.log_) == (explore > 0)
    assert max(decision.pending or 0.0 for decision in together.log_) > 5


def test_what_each_would_get_alone_is_the_same_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.policies.features.logistic_rule.CHUNK", 16)
    monkeypatch.setattr("lenience.policies.features.logistic_rule.MANY", 32)
    X, y = world()
    policy = FeaturePolicy(objective=FiniteHorizon(0.6, 50, 0.99), explore=0.05).fit(X[:100], y[:100])
    policy.decide(X[:20])
    alone = [policy.propensity(row[None])[0] for row in X[100:160]]
    assert policy.propensity(X[100:160]).tolist() == alone
    assert set(alone) == {0.05, 1.0}


def test_the_log_odds_of_the_reference_rows_stay_up_to_date() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3))
    policy = FeaturePolicy(objective=Discounted(cost=0.5, discount=0.99), reference=30).fit(X[:50])
    for i in range(50, 150):
        row = X[i : i + 1]
        if policy.decide(row)[0]:
            policy.observe(row, [True], [float(rng.random() < 0.6)])
    assert policy._log_odds is not None
    fresh = ReferenceLogOdds(policy.model_.belief_, policy.reference_)
    assert np.array_equal(policy._log_odds.design, fresh.design)
    assert policy._log_odds.m == pytest.approx(fresh.m, abs=1e-9)
    assert policy._log_odds.v == pytest.approx(fresh.v, abs=1e-9)
    policy.observe(X[:3], [True] * 3, [1, 0, 1])  # several labels at once
    assert policy.beliefs(X[:1])[0][0] > 0
    again = policy._projected()
    assert again.m == pytest.approx(ReferenceLogOdds(policy.model_.belief_, policy.reference_).m, abs=1e-12)
