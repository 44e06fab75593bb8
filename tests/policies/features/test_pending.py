"""Policies with features while labels are pending: limits, late labels, writing off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from feature_worlds import cells, world
from lenience import Belief, Delayed, Discounted, FeaturePolicy
from lenience.core.errors import InputError
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.cells import Cells
from lenience.models.neighbours import Neighbours
from lenience.policies.features.base import _known
from lenience.policies.features.logistic_rule import ExposureLimits
from lenience.policies.features.outcome_matching import UnmatchedOutcomeWarning
from lenience.policies.features.policy import NeverStartsWarning
from rejections import rejected


def test_a_batch_counts_its_own_pending() -> None:
    X = np.ones((400, 1))
    policy = FeaturePolicy(BayesianLogistic.for_cells(), Discounted(0.7, 0.99)).fit(X)
    taken = policy.decide(X)
    # The benefit of the doubt is for some, not for all who come before the first label.
    assert 2 <= taken.sum() < 60
    assert np.array_equal(taken, np.sort(taken)[::-1])
    assert policy.log_[int(taken.sum())].pending == pytest.approx(taken.sum())
    plain = FeaturePolicy(Cells(), Discounted(0.7, 0.99)).fit(X).decide(X)
    assert 2 <= plain.sum() < 60


def test_pending_labels_are_heard_or_written_off() -> None:
    X = np.ones((200, 1))
    policy = FeaturePolicy(Cells(), Discounted(0.7, 0.99), expire_after=5.0).fit(X)
    first = policy.decide(X, time=0.0).sum()
    assert not policy.decide(X[:1], time=4.0)[0]  # all are still pending
    assert policy.decide(X[:1], time=6.0)[0]  # and now given up
    assert policy.pending_ == 1
    assert first > 1
    policy.observe(X[:1], [True], [1])
    assert policy.pending_ == 0


class Limits:
    """An exposure limit as a solved problem with late labels has it: by belief on the prior's lattice."""

    prior = Belief(2, 1)

    def __init__(self) -> None:
        self.asked: list[tuple[float, float]] = []

    def exposure(self, n: float, s: float) -> int:
        self.asked.append((n, s))
        return 3


@pytest.mark.parametrize("exposure", [3, Limits()], ids=["number", "solved"])
def test_exposure_limits(exposure: Any) -> None:
    X = np.vstack([np.tile([1.0, 0.0], (50, 1)), np.tile([0.0, 1.0], (50, 1))])
    policy = FeaturePolicy(Cells(), Discounted(0.7, 0.995), exposure=exposure).fit(X)
    taken = policy.decide(X)
    assert taken[:50].sum() == taken[50:].sum() == 3  # those pending in one cell do not block the other
    if isinstance(exposure, Limits):
        assert set(exposure.asked) == {(2.0, 1.0)}


LATE = Delayed(cost=0.7, arrivals=40, discount_rate=0.1, label_delay=0.5)


def test_with_late_labels_cells_are_decided_by_their_own_exposure_limits() -> None:
    """Two cells, half and a quarter of the arrivals, against ExposurePolicy itself, label by label."""
    X = cells({0: 50, 1: 25, 2: 25})
    policy = FeaturePolicy(Cells(), LATE, refresh=False).fit(X)
    own = [LATE.for_share(share).solve(Belief(2, 1), tolerance=1e-4) for share in (0.5, 0.25)]
    beliefs, waiting = [Belief(2, 1), Belief(2, 1)], [0, 0]
    rng = np.random.default_rng(2)
    held = same = 0
    for _ in range(400):
        cell = int(rng.integers(2))
        row = np.eye(3)[cell][None]
        accepted = bool(policy.decide(row, time=0.0)[0])
        same += accepted == own[cell].accepts(beliefs[cell], waiting[cell])
        limit = own[cell].limit(beliefs[cell])
        held += not accepted and limit is not None and limit > 0
        waiting[cell] += accepted
        if waiting[cell] and rng.random() < 0.4:  # one of them is heard of
            outcome = bool(rng.random() < 0.62)
            policy.observe(row, [True], [outcome])
            beliefs[cell], waiting[cell] = beliefs[cell].observe(outcome), waiting[cell] - 1
        assert policy.pending_ == sum(waiting)
    assert held > 5  # some were rejected for what was pending alone
    assert same >= 385  # interpolated limits may be off by a few percent


def test_limits_are_those_of_an_individuals_own_belief() -> None:
    """From Belief(2, 1) nobody near 0.94 can be reached, and a limit of 0 there would stop everyone for good."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    late = Delayed(cost=0.967, arrivals=1, discount_rate=0.01, label_delay=20)
    policy = FeaturePolicy(objective=late, random_state=0).fit(X)
    n, mean = policy.beliefs(X)
    assert mean.max() < 0.967
    taken = policy.decide(X[:30], time=0.0)
    assert 2 <= taken.sum() < 30
    limits = ExposureLimits(late, policy.table_, None, 30)
    assert limits.limit(float(n[0]), float(mean[0]), 0.5) > 0.5
    assert limits.limit(float(n[0]), 0.4, 0.5) == 0.0  # so far below that no first label pays
    accepted = 0
    for i in range(150):
        yes = policy.decide(X[i : i + 1])
        accepted += int(yes[0])
        policy.observe(X[i : i + 1], yes, [1])
    assert accepted > 120


def test_only_explored_acceptances_fill_the_limit() -> None:
    X = np.array([[0.0], [1.0]] * 30)
    late = Delayed(cost=0.7, arrivals=40, discount_rate=0.1, label_delay=0.5)
    policy = FeaturePolicy(Neighbours(bandwidth=1.2), late, refresh=False).fit(X, [1, 0] * 30)
    below = policy.beliefs([[1.0]])[1] <= 0.7 < policy.beliefs([[0.0]])[1]
    assert below.all()
    assert policy.decide([[0.0]] * 20, time=0.0).all()
    assert (
        policy.propensity([[1.0]]).tolist()
        == FeaturePolicy(Neighbours(bandwidth=1.2), late, refresh=False)
        .fit(X, [1, 0] * 30)
        .propensity([[1.0]])
        .tolist()
    )
    assert policy._similar_pending(np.array([[1.0]]), explored=True)[0] == 0.0
    assert policy._similar_pending(np.array([[1.0]]), explored=False)[0] > 1.0


def test_limits_that_prevent_any_start_are_reported() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    rare = Delayed(cost=0.95, arrivals=0.5, discount_rate=1.0, label_delay=3)
    with pytest.warns(NeverStartsWarning, match=r"1\.5 arrivals late"):
        FeaturePolicy(objective=rare).fit(X)
    with pytest.warns(NeverStartsWarning, match="exposure="):
        FeaturePolicy(objective=Discounted(0.7, 0.99), exposure=0).fit(X)


def test_a_solved_exposure_policy_limits_what_is_pending() -> None:
    X, y = world()
    solved = LATE.solve(Belief(2, 1))
    policy = FeaturePolicy(None, Discounted(0.7, 0.99), exposure=solved, random_state=0).fit(
        X, np.where(np.arange(300) < 10, y, np.nan)
    )
    policy.decide(X[10:])
    below = [d for d in policy.log_ if d.mean <= 0.7]
    assert below
    blocked = 0
    for d in below:
        k = max(round(d.n - 2), 0)
        limit = int(solved.exposure(2 + k, 1 + min(max(round(d.mean * (2 + k) - 1), 0), k)))
        assert d.pending is not None
        assert d.threshold is not None
        assert d.accepted == (d.mean > d.threshold and d.pending < limit)
        blocked += d.mean > d.threshold and not d.accepted
    assert blocked > 0


def test_late_labels_are_written_off_after_three_mean_delays() -> None:
    X = np.ones((100, 1))
    policy = FeaturePolicy(Cells(), LATE).fit(X)
    first = int(policy.decide(X, time=0.0).sum())
    assert first == LATE.solve(Belief(2, 1), tolerance=1e-4).limit(Belief(2, 1))
    assert "wait for their outcomes" in policy.explain(X[:1])[0].summary
    assert not policy.decide(X[:1], time=1.5)[0]
    assert policy.decide(X, time=1.6).sum() == first  # nothing was learnt, and nothing is pending any more
    policy.observe(X[:1], [True], [0]).observe(X[:1], [True], [0])  # late, but heard
    assert policy.beliefs(X[:1])[0][0] == 4.0
    patient = FeaturePolicy(Cells(), LATE, expire_after=10.0).fit(X)
    patient.decide(X, time=0.0)
    assert not patient.decide(X[:1], time=9.0)[0]
    by_count = FeaturePolicy(Cells(), LATE).fit(X)  # without times: 40 arrivals a unit of time
    taken = [bool(by_count.decide(X[:1])[0]) for _ in range(100)]
    again = taken.index(True, first)
    assert again == math.ceil(1.5 * 40) + 1


def test_outcomes_with_arrivals_are_taken_once() -> None:
    X, y = world()
    policy = FeaturePolicy(objective=Discounted(0.7, 0.99)).fit(X[100:], y[100:])
    taken = policy.decide(X[:40])
    assert 0 < taken.sum() < 40
    ids = policy.latest_
    assert ids.tolist() == [decision.arrival for decision in policy.log_]
    first = policy.observe(X[:40], taken, y[:40], arrivals=ids).labels_
    believed = policy.beliefs(X)
    assert first == 200 + taken.sum()
    assert policy.pending_ == 0
    policy.observe(X[:40], taken, y[:40], arrivals=ids)  # a job that was retried
    assert policy.labels_ == first
    assert np.array_equal(policy.beliefs(X), believed)
    yes, no = int(np.flatnonzero(taken)[0]), int(np.flatnonzero(~taken)[0])
    for arrival, row, outcome, field, value in (
        (yes, yes, 1 - y[yes], "outcomes", 1 - y[yes]),
        (no, no, 1.0, "arrivals", no),
        (40, 40, 1.0, "arrivals", 40),
        (-1, 0, 1.0, "arrivals", -1),
    ):
        with rejected(field) as caught:
            policy.observe(X[[row]], [True], [outcome], arrivals=[arrival])
        assert caught.value.value == value
    policy.decide(X[yes : yes + 1])  # the same row once more, and accepted
    with rejected("X"):
        policy.observe(X[[no]], [True], [1], arrivals=[40])
    with rejected("arrivals", "length_mismatch"):
        policy.observe(X[:1], [True], [1], arrivals=[1, 2])
    assert policy.labels_ == first


def test_outcomes_without_arrivals_that_nobody_waits_for_are_told() -> None:
    X, y = world()
    policy = FeaturePolicy(objective=Discounted(0.7, 0.99)).fit(X)
    policy.observe(X[200:], np.ones(100), y[200:])  # a history
    taken = policy.decide(X[:40])
    kept = X[:40].copy()
    policy.observe(X[:40], taken, y[:40])
    with pytest.warns(UnmatchedOutcomeWarning, match=rf"repeated: {taken.sum()}\b"):
        policy.observe(kept, taken, y[:40])
    with pytest.warns(UnmatchedOutcomeWarning, match=f"rejected individuals: {(~taken).sum()}"):
        policy.observe(kept[~taken], np.ones((~taken).sum()), y[:40][~taken])
    assert policy.labels_ == 100 + taken.sum() + 40


def test_an_outcome_that_was_written_off_is_heard_once() -> None:
    X = np.array([[np.nan, 0.0], [1.0, 1.0]])
    policy = FeaturePolicy(Cells(), Discounted(0.7, 0.99), expire_after=5.0).fit(X)
    assert policy.decide(X[:1], time=0.0)[0]
    policy.decide(X[1:], time=9.0)
    assert policy.pending_ == 1
    late = np.array([[-np.nan, -0.0]])
    policy.observe(late, [True], [1])
    assert policy.outcomes_ == {0: 1.0}
    policy.observe(late, [True], [1], arrivals=[0])
    assert policy.labels_ == 1


@pytest.mark.parametrize("wrong", [2, 0.5, -1, [1]])
def test_an_outcome_is_0_or_1(wrong: Any) -> None:
    missing: Any = None
    assert _known([1, missing, 0], 3) == ([0, 2], [1.0, 0.0])
    assert _known([1, 0, 5], 3, [True, False, False]) == ([0], [1.0])
    with pytest.raises(InputError) as problem:
        _known([1, wrong, 0], 3)
    assert "outcomes" in problem.value.fields
