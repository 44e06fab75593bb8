"""CalibratedScore against dense quadrature, at the limits of trust, and in worlds that its prior describes."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit

from lenience import Discounted, FeaturePolicy, InputError
from lenience.core.portable_log import portable_log
from lenience.models import CalibratedScore
from lenience.models.calibrated_score import default_scores

Rows = NDArray[np.float64]


def scores(count: int = 200, seed: int = 0) -> Rows:
    """Draw probabilities of failure, about 0.2 on average."""
    return np.asarray(expit(-1.4 + np.random.default_rng(seed).normal(size=(count, 1))))


def dense(model: CalibratedScore, at: Rows, labels: list[tuple[int, bool]]) -> tuple[Rows, Rows]:
    """Return mean and variance of p at two scores after labels there, by a dense grid over their log-odds."""
    Z = model.design(at)
    m, S = Z @ model.means_[0], Z @ model.covariances_[0] @ Z.T
    root = np.linalg.cholesky(S)
    e = np.linspace(-7.0, 7.0, 281)
    a, b = np.meshgrid(e, e, indexing="ij")
    eta = m[:, None, None] + np.einsum("ij,jkl->ikl", root, np.stack((a, b)))
    weight = -0.5 * (a**2 + b**2)
    for which, outcome in labels:
        weight = weight - np.logaddexp(0.0, -eta[which] if outcome else eta[which])
    mass = np.exp(weight - weight.max())
    mass /= mass.sum()
    p = expit(eta)
    mean = (p * mass).sum(axis=(1, 2))
    return mean, ((p - mean[:, None, None]) ** 2 * mass).sum(axis=(1, 2))


@pytest.mark.parametrize("trust", [0, 30, 300])
def test_beliefs_agree_with_dense_quadrature(trust: float) -> None:
    at = np.array([[0.1], [0.4]])
    labels = [(i % 2, i % 5 > 1) for i in range(25)]
    expected = dense(CalibratedScore(trust=trust).prepare(scores()), at, labels)
    outcomes = [outcome for _, outcome in labels]
    batch = CalibratedScore(trust=trust).prepare(scores()).learn(at[[i for i, _ in labels]], outcomes)
    single = CalibratedScore(trust=trust).prepare(scores())
    for which, outcome in labels:
        single.learn(at[[which]], [outcome])
    for model, near, close in ((batch, 0.002, 0.04), (single, 0.015, 0.12)):
        n, mean = model.beliefs(at)
        assert mean == pytest.approx(expected[0], abs=near)
        assert mean * (1.0 - mean) / (n + 1.0) == pytest.approx(expected[1], rel=close)


def test_prior_is_that_of_k_labels_that_agree_with_the_score() -> None:
    """Many labels that agree with the score exactly leave a vague prior with the information of so much trust."""
    pd = scores(60)
    vague = CalibratedScore(trust=0).prepare(pd)
    # Each score comes with both outcomes, weighted by their probability: 50 labels a score.
    X, y = np.repeat(pd, 2, axis=0), np.tile([0.0, 1.0], len(pd))
    weights = 50.0 * np.column_stack((pd[:, 0], 1.0 - pd[:, 0])).ravel()
    vague.partial_fit(X, y, sample_weight=weights)
    trusted = CalibratedScore(trust=50.0 * len(pd)).prepare(pd)
    assert vague.beliefs(pd)[1] == pytest.approx(trusted.beliefs(pd)[1], abs=0.01)
    assert vague.beliefs(pd)[0] == pytest.approx(trusted.beliefs(pd)[0], rel=0.15)


def test_full_trust_reproduces_the_score() -> None:
    pd = np.array([[0.003], [0.05], [0.3], [0.9]])
    model = CalibratedScore(trust=1e10).prepare(scores())
    for _ in range(20):
        model.learn(pd, [0, 1, 0, 1])
    assert model.predict_proba(pd)[:, 0] == pytest.approx(pd[:, 0], abs=1e-4)
    expected = CalibratedScore(trust=200).prepare(scores()).predict_proba(scores())[:, 0]
    assert np.abs(expected - scores()[:, 0]).mean() < 0.005  # before any label


def test_no_trust_learns_from_labels() -> None:
    rng = np.random.default_rng(1)
    pd = scores(3000, 2)
    truth = expit(-0.5 - 0.7 * logit(pd[:, 0]))  # too optimistic, and too steep
    model = CalibratedScore(trust=0).fit(pd, rng.random(3000) < truth)
    near = (pd[:, 0] > 0.05) & (pd[:, 0] < 0.6)
    assert np.abs(model.predict_proba(pd[near])[:, 1] - truth[near]).mean() < 0.03
    stubborn = CalibratedScore(trust=1e6).fit(pd, rng.random(3000) < truth)
    assert np.abs(stubborn.predict_proba(pd[near])[:, 1] - truth[near]).mean() > 0.05


def test_residual_along_the_score_is_learnt() -> None:
    """Scores in the middle are wrong, where a straight line cannot help."""
    rng = np.random.default_rng(3)
    pd = scores(8000, 4)
    middle = (pd[:, 0] > 0.15) & (pd[:, 0] < 0.25)
    truth = np.where(middle, 0.6, 1.0 - pd[:, 0])
    model = CalibratedScore(trust=50).fit(pd, rng.random(8000) < truth)
    assert model.predict_proba([[0.2]])[0, 1] < 0.7
    assert model.predict_proba([[0.05]])[0, 1] > 0.9


def test_segments_that_the_score_misses_are_learnt() -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack((scores(2000, 6), (rng.random(2000) < 0.3).astype(float)))
    truth = expit(-logit(X[:, 0]) - 1.0 * X[:, 1])
    model = CalibratedScore(trust=200).fit(X, rng.random(2000) < truth)
    effect = logit(model.predict_proba([[0.2, 0.0], [0.2, 1.0]])[:, 1])
    assert effect[0] - effect[1] == pytest.approx(1.0, abs=0.3)


def test_little_is_known_where_applicants_are_rare() -> None:
    X = np.column_stack((scores(500), np.arange(500) < 10, np.zeros(500)))
    model = CalibratedScore(trust=200).spare(1).prepare(X)
    common, rare, unseen = model.beliefs([[0.2, 0, 0], [0.2, 1, 0], [0.2, 0, 1]])[0].tolist()
    assert common > 2.0 * rare > rare > 0.9 * unseen
    assert model.beliefs([[0.2, 0, 0]])[0] > 1.3 * model.beliefs([[0.97, 0, 0]])[0]


def test_beliefs_are_calibrated_in_worlds_of_the_prior() -> None:
    rng = np.random.default_rng(7)
    pd, at = scores(), np.array([[0.02], [0.1], [0.2], [0.4], [0.8]])
    errors = []
    for world in range(60):
        model = CalibratedScore(trust=20).prepare(pd)
        b = rng.multivariate_normal(model.means_[0], model.covariances_[0])
        rows = scores(150, 100 + world)
        good = rng.random(len(rows)) < expit(model.design(rows) @ b)
        for row, outcome in zip(rows, good, strict=True):
            model.learn(row[None], [outcome])
        n, mean = model.beliefs(at)
        errors.append((expit(model.design(at) @ b) - mean) / np.sqrt(mean * (1.0 - mean) / (n + 1.0)))
    z = np.array(errors)
    assert np.sqrt((z**2).mean()) == pytest.approx(1.0, abs=0.12)
    assert np.abs(z.mean(axis=0)).max() < 0.4


def test_scales_of_scores_agree() -> None:
    pd = scores()
    failure = CalibratedScore().prepare(pd)
    success = CalibratedScore(scale="success").prepare(1.0 - pd)
    assert success.beliefs([[0.8]])[1] == pytest.approx(failure.beliefs([[0.2]])[1], abs=1e-9)
    points = 600.0 + 40.0 * logit(1.0 - pd)
    rising = CalibratedScore(scale="points").centre_on(0.8).prepare(points)
    falling = CalibratedScore(scale="points", higher_is_better=False).centre_on(0.8).prepare(-points)
    mean = rising.beliefs([[600.0], [640.0], [700.0]])[1]
    assert mean[0] < mean[1] < mean[2]
    assert falling.beliefs([[-600.0], [-640.0], [-700.0]])[1] == pytest.approx(mean, abs=1e-12)


def test_score_by_name_and_numbers_that_it_misses() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(8)
    frame = pandas.DataFrame({"debt": rng.lognormal(size=2000), "pd": scores(2000, 9)[:, 0]})
    truth = expit(-logit(frame["pd"]) - 0.5 * (frame["debt"] - 1.6))
    model = CalibratedScore(score="pd").fit(frame, rng.random(2000) < truth)
    low, high = (pandas.DataFrame({"debt": [debt], "pd": [0.2]}) for debt in (0.5, 5.0))
    assert model.predict_proba(low)[0, 1] > 0.8 > model.predict_proba(high)[0, 1] + 0.1
    with pytest.raises(InputError) as error:
        CalibratedScore(score="pdd").fit(frame, truth > 0.5)
    assert (error.value.field, error.value.code) == ("score", "unknown_name")


@pytest.mark.parametrize(
    ("options", "rows", "field"),
    [
        ({}, [[1.5], [0.2]], "score"),
        ({}, [[math.nan], [0.2]], "score"),
        ({"trust": -1}, [[0.1], [0.2]], "trust"),
        ({"scale": "default"}, [[0.1], [0.2]], "scale"),
        ({"score": 1}, [[0.1], [0.2]], "score"),
    ],
)
def test_invalid_scores_are_rejected(options: dict[str, Any], rows: Any, field: str) -> None:
    with pytest.raises(InputError) as error:
        CalibratedScore(**options).prepare(rows)
    assert error.value.field == field


def test_a_policy_explores_where_the_score_is_unsure() -> None:
    goal = Discounted(cost=0.8, discount=0.999)
    pd = expit(logit(scores(100)) + 2.0)  # few are above the break-even, so few labels come for free
    policy = FeaturePolicy(model=CalibratedScore(trust=5), objective=goal, refresh=False).fit(pd)
    below = np.array([[0.23], [0.6]])
    assert policy.predict_proba(below)[:, 1].max() < 0.8
    assert policy.accepts(below).tolist() == [True, False]
    certain = FeaturePolicy(model=CalibratedScore(trust=1e9), objective=goal, refresh=False).fit(pd)
    assert certain.accepts(below).tolist() == [False, False]


def test_default_scores_lie_around_the_break_even() -> None:
    assert np.median(default_scores(0.8)) == pytest.approx(0.2)
    assert default_scores(0.8, "success") == pytest.approx(1.0 - default_scores(0.8))


def test_portable_logarithm_is_accurate() -> None:
    for x in np.concatenate((np.geomspace(1e-7, 1e7, 300), [1.0, 2.0, 0.5])).tolist():
        exact = mpmath.log(mpmath.mpf(x))
        assert abs(mpmath.mpf(portable_log(x)) - exact) <= 4e-16 * max(abs(exact), 0.5)
