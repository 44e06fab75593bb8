"""Decisions with features against plain loops over the formulas of the documentation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from feature_worlds import world
from lenience import Belief, Delayed, Discounted, FeaturePolicy
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.gaussian import moments, rough_moments
from lenience.models.neighbours import Neighbours
from lenience.policies.features.base import single_gaussian
from lenience.policies.features.baseline_rules import (
    ALWAYS,
    EPSILON,
    GREEDY,
    OPTIMISM,
    THOMPSON,
    UCB,
    acceptance,
    beta_acceptance,
)
from lenience.policies.features.effective_discount import helped, left, own_discount
from lenience.policies.features.label_worth import changed
from lenience.policies.features.logistic_rule import ExposureLimits, limits_apply
from lenience.solvers.stopping.threshold import enclose_threshold

Rows = NDArray[np.float64]
COST, DISCOUNT = 0.7, 0.995


def test_rates_of_people_like_x_by_hand() -> None:
    assert own_discount(0.9, 0.2, 0.05) == pytest.approx(0.18 / (0.1 + 0.18 + 0.05))
    assert left(0.2, 0.3) == pytest.approx(math.sqrt(1 + 0.45) - math.sqrt(0.45))
    assert helped(0.5, 3.0, 2.0) == pytest.approx(0.5 * math.exp(-0.5 * (6.0 - 2.0)))
    assert helped(0.5, 1.0, 4.0) == 0.5  # nearer to the break-even than x itself


def mixtures() -> list[tuple[Rows, Rows, Rows]]:
    rng = np.random.default_rng(4)
    result = [
        (rng.dirichlet(np.ones(size)), rng.normal(0.8, 1.0, size), rng.exponential(1.0, size) + 0.01)
        for size in (1, 2, 3)
        for _ in range(15)
    ]
    # Log-odds that are known for sure.
    result += [(np.array([0.4, 0.6]), np.array([low, high]), np.zeros(2)) for low, high in ((0.0, 2.0), (2.0, 3.0))]
    return result


def test_rules_on_log_odds() -> None:
    edge = math.log(COST / (1 - COST))
    seen = set()
    for weights, m, v in mixtures():
        centre = float(weights @ m)
        spread = float(weights @ (v + m**2)) - centre**2
        rate = sum(w * moments(*pair)[0] for w, *pair in zip(weights, m, v, strict=True))
        for scale in (1.0, 0.3):
            sigma = scale * np.sqrt(v)
            tails = [float(a > edge) if b == 0 else norm.sf(edge, a, b) for a, b in zip(m, sigma, strict=True)]
            assert acceptance(THOMPSON, scale, weights, m, v, 0, COST) == pytest.approx(float(weights @ tails))
        for width in (0.2, 1.0):
            expected = float(centre + width * math.sqrt(max(spread, 0.0)) > edge)
            assert acceptance(UCB, width, weights, m, v, 0, COST) == expected
            seen.add((UCB, expected))
            hoped = brentq(lambda a, c=centre, s=spread, w=width: a - c - s * w * (1 - float(expit(a))), -60.0, 60.0)
            assert acceptance(OPTIMISM, width, weights, m, v, 0, COST) == float(hoped > edge)
            seen.add((OPTIMISM, float(hoped > edge)))
        above = float(rate > COST)
        assert acceptance(GREEDY, 3.0, weights, m, v, 2, COST) == 1.0
        assert acceptance(GREEDY, 3.0, weights, m, v, 3, COST) == above
        assert acceptance(EPSILON, 0.2, weights, m, v, 0, COST) == max(above, 0.2)
        assert acceptance(ALWAYS, 0.0, weights, m, v, 0, COST) == 1.0
        seen.add((GREEDY, above))
    assert seen == {(rule, value) for rule in (UCB, OPTIMISM, GREEDY) for value in (0.0, 1.0)}


@pytest.mark.parametrize(("mean", "n"), [(0.5, 3.0), (0.69, 10.0), (0.71, 200.0), (0.6, 50.0), (0.7, 7.0)])
def test_rules_on_beliefs(mean: float, n: float) -> None:
    for scale in (1.0, 0.5, 2.0):
        size = n / scale**2
        expected = Belief(size, mean * size).exceeds(COST)
        assert beta_acceptance(THOMPSON, scale, mean, n, 0, COST) == pytest.approx(expected)
        deviation = math.sqrt(mean * (1 - mean) / (n + 1))
        assert beta_acceptance(UCB, scale, mean, n, 0, COST) == float(mean + scale * deviation > COST)
        assert beta_acceptance(OPTIMISM, scale, mean, n, 0, COST) == float((mean * n + scale) / (n + scale) > COST)
    above = float(mean > COST)
    assert beta_acceptance(THOMPSON, 0.0, mean, n, 0, COST) == above
    assert beta_acceptance(GREEDY, 3.0, mean, n, 2, COST) == 1.0
    assert beta_acceptance(GREEDY, 3.0, mean, n, 3, COST) == above
    assert beta_acceptance(EPSILON, 0.2, mean, n, 0, COST) == max(above, 0.2)
    assert beta_acceptance(ALWAYS, 0.0, mean, n, 0, COST) == 1.0


def test_what_a_changed_decision_earns_is_the_integral() -> None:
    rng = np.random.default_rng(1)
    for gap, deviation in zip(rng.uniform(0.0, 0.3, 200), rng.exponential(0.1, 200) + 1e-6, strict=True):
        z = gap / deviation
        exact = deviation * (norm.pdf(z) - z * norm.sf(z)) if z < 5.0 else 0.0
        assert changed(gap, deviation) == pytest.approx(exact, abs=1e-11 * deviation)
    assert changed(0.0, 0.2) == pytest.approx(0.2 / math.sqrt(2.0 * math.pi))
    assert changed(np.nextafter(1.0, 0.0), 0.2) == pytest.approx(0.2 * (norm.pdf(5.0) - 5.0 * norm.sf(5.0)), abs=1e-12)


def share_left(q: float, free: float) -> float:
    return math.sqrt(1 + 0.3 * free / q) - math.sqrt(0.3 * free / q)


def threshold_at(policy: FeaturePolicy, n: float, discount: float, share: float) -> float:
    return COST - share * (COST - float(policy.table_.threshold(n, discount)))


def worth_of_label(
    rows: list[tuple[float, float, float]], x: tuple[float, float], n: float, pending: float, free: float, gamma: float
) -> float:
    """What a label is worth: the best mean gain per label of 1, 4, 16 or 64 over rows of (likeness, p̂, variance).

    ``x`` is the p̂ and variance of x itself, which counts as a row if there are few like it.
    """
    own = max(1.0 - sum(like for like, _, _ in rows), 0.0)

    def gained(labels: float, like: float, mean: float, variance: float) -> float:
        moved = math.sqrt(like * variance * labels / (n + labels))
        d = mean - COST
        if moved * 5 <= abs(d):  # too far to change a decision
            return 0.0
        return float(d * norm.cdf(d / moved) + moved * norm.pdf(d / moved)) - max(d, 0.0)

    coming = gamma / (1 - gamma)
    times, weights = np.polynomial.laguerre.laggauss(3)
    worth = []
    for k in (1, 4, 16, 64):
        total = 0.0
        for time, weight in zip(times, weights, strict=True):
            anyway = pending + free * time * coming
            total += weight * sum(gained(anyway + k, *row) - gained(anyway, *row) for row in rows)
            total += weight * own * (gained(anyway + k, 1.0, *x) - gained(anyway, 1.0, *x))
        worth.append(coming * total / len(rows) / k)
    return max(worth)


def likeness(model: BayesianLogistic, x: Rows, r: Rows) -> tuple[float, float, float]:
    """The likeness of two rows, and the rough mean and variance at the second."""
    across = mean_x = mean_r = second_x = second_r = 0.0
    parts = []
    for weight, b, covariance in zip(model.weights_, model.means_, model.covariances_, strict=True):
        p, s = rough_moments(float(b @ x), float(x @ covariance @ x))
        rp, rs = rough_moments(float(b @ r), float(r @ covariance @ r))
        correlation = float(x @ covariance @ r) / math.sqrt(float(x @ covariance @ x) * float(r @ covariance @ r))
        mean_x, mean_r = mean_x + weight * p, mean_r + weight * rp
        second_x, second_r = second_x + weight * (s + p * p), second_r + weight * (rs + rp * rp)
        parts.append((weight, p, rp, correlation * math.sqrt(s * rs)))
    for weight, p, rp, together in parts:
        across += weight * (together + (p - mean_x) * (rp - mean_r))
    variance_x, variance_r = second_x - mean_x**2, second_r - mean_r**2
    return min(across**2 / (variance_x * variance_r), 1.0), mean_r, variance_r


@pytest.mark.parametrize("explore", [0.0, 0.15])
def test_logistic_decisions_are_the_formulas(explore: float) -> None:
    X, y = world(rows=120)
    policy = FeaturePolicy(
        BayesianLogistic((1.0, 3.0), (4.0, 12.0), (0.6, 0.2), hypothesis_weights=(1.0, 2.0)),
        Discounted(COST, DISCOUNT), reference=25, refresh=False, explore=explore, random_state=0,
    ).fit(X[:80], np.where(np.arange(80) < 4, y[:80], np.nan))  # fmt: skip
    model: Any = policy.model_
    design, reference = model.design(X[80:]), model.design(policy.reference_)
    chances = np.random.default_rng(1).random(40)
    waiting: list[Rows] = []
    bound = set()
    for batch in (range(12), range(12, 40)):  # those of the first batch are pending in the second
        policy.decide(X[[80 + i for i in batch]], None, chances[list(batch)])
    kinds = set()
    for i, decision in enumerate(policy.log_):
        x = design[i]
        rate = variance = 0.0
        each = [
            moments(float(b @ x), float(x @ covariance @ x))
            for b, covariance in zip(model.means_, model.covariances_, strict=True)
        ]
        rate = sum(w * p for w, (p, _) in zip(model.weights_, each, strict=True))
        variance = sum(w * (s + (p - rate) ** 2) for w, (p, s) in zip(model.weights_, each, strict=True))
        n = rate * (1 - rate) / variance - 1
        _, rough, spread = likeness(model, x, x)
        own = (rough - COST) ** 2 / spread
        q = h = 0.0
        rows = [likeness(model, x, r) for r in reference]
        for like, mean, around in rows:
            if mean > COST:
                h += like * around / (mean * (1 - mean) + around)
            else:
                q += like * math.exp(-0.5 * max((mean - COST) ** 2 / around / like - own, 0.0))
        q, h = min(max(q, 1.0) / 25, 1.0), h / 25
        resolved = spread / (rough * (1 - rough) + spread)
        discount = DISCOUNT * q / (1 - DISCOUNT + DISCOUNT * q + h)
        near = sum(likeness(model, x, row)[0] for row in waiting)
        threshold = threshold_at(policy, n + near, discount, share_left(q, h / resolved))
        worth = worth_of_label(rows, (rate, variance), n, near, h / resolved, DISCOUNT)
        bound.add(COST - worth > threshold)
        threshold = max(threshold, COST - worth)
        propensity = 1.0 if rate > min(threshold, COST) else explore
        assert [decision.mean, decision.n] == pytest.approx([rate, n])
        assert [decision.discount, decision.pending] == pytest.approx([discount, near], abs=1e-9)
        assert decision.threshold == pytest.approx(threshold)
        assert decision.propensity == propensity
        assert decision.accepted == (chances[i] < propensity)
        if decision.accepted:
            waiting.append(x)
        kinds.add((decision.mean > COST, decision.accepted))
    assert len(kinds) == 3
    assert True in bound  # what a label is worth decides


@pytest.mark.parametrize("exposure", [None, 0.3])
def test_decisions_with_any_model_are_the_formulas(exposure: float | None) -> None:
    X, y = world(rows=120)
    policy = FeaturePolicy(
        Neighbours(0.7, Belief(3, 2)), Discounted(COST, DISCOUNT), reference=25, refresh=False, explore=0.1,
        exposure=exposure, random_state=0,
    ).fit(X[:80], np.where(np.arange(80) < 30, y[:80], np.nan))  # fmt: skip
    model: Any = policy.model_
    chances = np.random.default_rng(1).random(40)
    for batch in (range(12), range(12, 40)):
        policy.decide(X[[80 + i for i in batch]], None, chances[list(batch)])
    size, rate = model.beliefs(policy.reference_)
    n, mean = model.beliefs(X[80:])
    waiting: list[int] = []
    held = 0
    for i, decision in enumerate(policy.log_):
        x = X[80 + i : 81 + i]
        own = (mean[i] - COST) ** 2 * (n[i] + 1) / (mean[i] * (1 - mean[i]))
        q = free = 0.0
        rows = []
        for r in range(25):
            like = float(model.likeness(x, policy.reference_[r : r + 1])[0, 0])
            rows.append((like, float(rate[r]), float(rate[r] * (1 - rate[r]) / (size[r] + 1))))
            if rate[r] > COST:
                free += like * (n[i] + 2) / (size[r] + 2)
            else:
                distance = (rate[r] - COST) ** 2 * (size[r] + 1) / (rate[r] * (1 - rate[r]))
                q += like * math.exp(-0.5 * max(distance / like - own, 0.0))
        q, free = min(max(q, 1.0) / 25, 1.0), free / 25
        discount = DISCOUNT * q / (1 - DISCOUNT + DISCOUNT * q + free / (n[i] + 2))
        near = sum(float(model.likeness(x, X[80 + j : 81 + j])[0, 0]) for j in waiting)
        counted = n[i] + (near if exposure is None else 0.0)
        threshold = threshold_at(policy, counted, discount, share_left(q, free))
        if free > 0:
            itself = mean[i], mean[i] * (1 - mean[i]) / (n[i] + 1)
            threshold = max(threshold, COST - worth_of_label(rows, itself, n[i], counted - n[i], free, DISCOUNT))
        accept = mean[i] > COST or (mean[i] > threshold and (exposure is None or near < exposure))
        held += mean[i] <= COST and mean[i] > threshold and not accept
        assert decision.threshold == pytest.approx(threshold)
        assert [decision.discount, decision.pending] == pytest.approx([discount, near], abs=1e-9)
        assert decision.propensity == (1.0 if accept else 0.1)
        assert decision.accepted == (chances[i] < decision.propensity)
        if decision.accepted:
            waiting.append(i)
    assert (held > 0) == (exposure is not None)


def limits_of(policy: FeaturePolicy) -> ExposureLimits:
    return ExposureLimits(policy.objective, policy.table_, policy.exposure, policy.arrivals_)


def test_exposure_limits_are_those_at_the_nearest_belief() -> None:
    X, _ = world(rows=60)
    solved = Delayed(COST, 40, 0.3, 0.5).solve(Belief(2, 1), tolerance=1e-4)
    policy = FeaturePolicy(objective=Discounted(COST, DISCOUNT), exposure=solved, random_state=0).fit(X)
    for n, mean in ((1.0, 0.5), (2.4, 0.5), (9.6, 0.61), (9.6, 0.999), (9.6, 0.001), (30.2, 0.66)):
        k = max(round(n - 2), 0)
        j = min(max(round(mean * (2 + k) - 1), 0), k)
        assert limits_of(policy).limit(n, mean, 0.3) == float(solved.exposure(2 + k, 1 + j))
    late = Delayed(COST, 40, 0.3, 0.5)
    own = FeaturePolicy(objective=late, random_state=0).fit(X)
    for q, mean in ((0.3, 0.6), (0.4, 0.66), (1.0, 0.68)):  # its own belief, not one of a lattice
        certified = late.for_share(q).enclose(Belief(6.0, 6.0 * mean), tolerance=1e-3)[1]
        assert limits_of(own).limit(6.0, mean, q) == pytest.approx(certified, abs=1.5)
    assert limits_apply(policy.objective, policy.exposure)
    assert limits_apply(own.objective, own.exposure)
    plain = FeaturePolicy(objective=Discounted(COST, DISCOUNT), random_state=0).fit(X)
    assert not limits_apply(plain.objective, plain.exposure)
    assert limits_of(plain).limit(6.0, 0.6, 0.3) == math.inf


def test_tables_hold_certified_thresholds() -> None:
    X, _ = world(rows=60)
    policy = FeaturePolicy(objective=Discounted(COST, DISCOUNT), random_state=0).fit(X)
    for n, discount in ((1.0, 0.5), (12.0, 0.9), (300.0, 0.97)):
        exact = enclose_threshold(Discounted(COST, discount), n, 1e-6).midpoint
        assert float(policy.table_.threshold(n, discount)) == pytest.approx(exact, abs=0.01 * (COST - exact))


def test_the_newest_arrivals_replace_the_oldest_reference_rows() -> None:
    X, _ = world(rows=60)
    policy = FeaturePolicy(objective=Discounted(COST, DISCOUNT), reference=5, random_state=0).fit(X[:20])
    first = policy.reference_.copy()
    policy.decide(X[20:23])
    assert np.array_equal(policy.reference_, np.vstack([X[20:23], first[3:]]))
    policy.decide(X[23:27])
    assert np.array_equal(policy.reference_, np.vstack([X[25:27], X[22:25]]))
    few = FeaturePolicy(objective=Discounted(COST, DISCOUNT), reference=5, random_state=0).fit(X[:3])
    few.decide(X[20:23])
    assert np.array_equal(few.reference_, np.vstack([X[22:23], X[1:3], X[20:22]]))


def test_baselines_start_from_one_hypothesis_centred_on_the_cost() -> None:
    model = single_gaussian(COST).prepare(np.eye(3))
    assert model.weights_.tolist() == [1.0]
    assert model.mean_[0] == pytest.approx(math.log(COST / (1 - COST)))
    assert np.diag(model.covariance_) == pytest.approx([1.65, 2.2, 2.2, 2.2])
