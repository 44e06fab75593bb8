"""The kernels of the models against integrals, linear algebra and plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm
from sklearn.naive_bayes import GaussianNB

from lenience import Belief
from lenience.models.bootstrap import Bootstrap, _typical_ratio
from lenience.models.curve import Curve
from lenience.models.gaussian import (
    absorb,
    belief_size,
    design_rows,
    mode_after,
    moments,
    project,
    rough_moments,
    sigmoid,
    tilted,
    weighted_sum,
)
from lenience.models.hypotheses import LEAST_WEIGHT, absorb_all, learn_rows, liken_rows, mixed, predict_rows
from lenience.models.neighbours import Neighbours
from lenience.models.quadrature import EVEN_NODES, EVEN_WEIGHTS, HERMITE_NODES, HERMITE_WEIGHTS
from lenience.models.shared import Shared, beta_likelihood, fit_beta

Rows = NDArray[np.float64]
LABELS = [(0.0, 1.0), (1.0, 1.0), (0.0, 2.5), (1.0, 0.4)]


def under_normal(function: Callable[[float], float], m: float, v: float) -> float:
    """The mean of a function of N(m, v), by adaptive integration."""
    root = math.sqrt(v)

    def integrand(z: float) -> float:
        return function(m + root * z) * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    around = sorted({-10.0, min(max(-m / root, -10.0), 10.0), 10.0})
    pieces = [quad(integrand, left, right, limit=400, epsabs=1e-13)[0] for left, right in itertools.pairwise(around)]
    return float(sum(pieces))


def test_the_sigmoid_does_not_overflow() -> None:
    for a in (-800.0, -30.0, -1.5, 0.0, 1.5, 30.0, 800.0):
        assert sigmoid(a) == pytest.approx(float(expit(a)), rel=1e-14, abs=0.0)


@pytest.mark.parametrize("m", [-4.0, -0.7, 0.0, 1.3, 5.0])
@pytest.mark.parametrize(
    ("v", "error"), [(0.05, 1e-11), (0.5, 1e-8), (2.0, 2e-5), (11.9, 1.5e-3), (12.1, 5e-4), (90.0, 1e-3)]
)
def test_moments_are_those_of_the_logistic_normal(m: float, v: float, error: float) -> None:
    mean = under_normal(lambda a: float(expit(a)), m, v)
    variance = under_normal(lambda a: (float(expit(a)) - mean) ** 2, m, v)
    computed = moments(m, v)
    assert computed[0] == pytest.approx(mean, abs=error)
    assert computed[1] == pytest.approx(variance, abs=error)
    assert moments(m, 0.0) == (sigmoid(m), 0.0)
    assert moments(m, 1e-18)[1] > 0.0


@pytest.mark.parametrize("m", [-4.0, -0.7, 0.0, 1.3])
@pytest.mark.parametrize(("v", "error"), [(0.05, 1e-9), (2.0, 2e-4), (40.0, 0.01)])
@pytest.mark.parametrize(("y", "weight"), LABELS)
def test_a_label_tilts_the_log_odds(m: float, v: float, error: float, y: float, weight: float) -> None:
    def likelihood(a: float) -> float:
        return math.pow(float(expit(a if y else -a)), weight)

    total = under_normal(likelihood, m, v)
    mean = under_normal(lambda a: a * likelihood(a), m, v) / total
    variance = under_normal(lambda a: (a - mean) ** 2 * likelihood(a), m, v) / total
    computed = tilted(m, v, y, weight)
    assert computed[0] == pytest.approx(total, rel=error, abs=error)
    assert computed[1] == pytest.approx(mean, abs=error * math.sqrt(v) * 5)
    assert computed[2] == pytest.approx(variance, rel=10 * error)
    assert computed[2] <= v


def test_rough_moments_have_their_limits() -> None:
    for m in (-3.0, 2.0, 4.0):
        p = sigmoid(m)
        # Small variances by the delta method, large ones as a step at 0.
        mean, variance = rough_moments(m, 1e-6)
        assert mean == pytest.approx(p, abs=1e-6)
        assert variance == pytest.approx((p * (1 - p)) ** 2 * 1e-6, rel=1e-5)
        mean, variance = rough_moments(m, 1e6)
        assert mean == pytest.approx(0.5, abs=0.002)
        assert variance == pytest.approx(0.25, abs=0.002)
        assert rough_moments(m, 3.0)[0] == pytest.approx(sigmoid(m / math.sqrt(1 + 3 * math.pi / 8)), rel=1e-14)


def test_the_size_of_a_belief_is_that_of_its_beta() -> None:
    for n, mean in ((0.2, 0.3), (2.0, 0.5), (500.0, 0.97), (2.9e4, 0.6)):
        assert belief_size(mean, mean * (1 - mean) / (n + 1)) == pytest.approx(n, rel=1e-9)
    assert belief_size(0.3, 0.21 / 30001.0) == 3e4
    assert belief_size(0.3, 0.21 / 30000.0) == pytest.approx(29999.0, rel=1e-9)
    assert belief_size(0.3, 0.21 / 1.01) == 0.05


@pytest.mark.parametrize("m", [-30.0, -2.0, 0.4, 25.0])
@pytest.mark.parametrize("v", [0.01, 1.0, 900.0])
@pytest.mark.parametrize(("y", "weight"), LABELS)
def test_the_mode_after_a_label(m: float, v: float, y: float, weight: float) -> None:
    def gap(a: float) -> float:
        return a - m - v * weight * (y - float(expit(a)))

    root = brentq(gap, m - v * weight - 1, m + v * weight + 1, xtol=1e-13, rtol=1e-14)
    assert mode_after(m, v, y, weight) == pytest.approx(root, rel=1e-9, abs=1e-9)


def gaussian_belief(seed: int, size: int = 4) -> tuple[Rows, Rows]:
    """A mean and a covariance of no special form."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(size, size))
    return rng.normal(size=size), half @ half.T + 0.1 * np.eye(size)


@pytest.mark.parametrize("x", [[0.5, -1.0, 2.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
@pytest.mark.parametrize(("y", "weight"), LABELS)
def test_a_label_moves_the_gaussian_along_its_covariance(x: list[float], y: float, weight: float) -> None:
    mean, covariance = gaussian_belief(1)
    row, u = np.array(x), np.full(4, 7.0)
    m, v = project(row, mean, covariance, u)
    assert m == pytest.approx(float(mean @ row))
    assert v == pytest.approx(float(row @ covariance @ row))
    assert u == pytest.approx(covariance @ row)
    after_mean, after_covariance = mean.copy(), covariance.copy()
    likelihood, shift, shrink = absorb(y, weight, m, v, u, after_mean, after_covariance)
    if v == 0.0:  # nothing to learn from a row of zeros: its rate is known to be ½
        assert likelihood == pytest.approx(0.5**weight)
        assert shift == shrink == 0.0
        assert np.array_equal(after_mean, mean)
        return
    total, new_m, new_v = tilted(m, v, y, weight)
    assert likelihood == total
    assert after_mean == pytest.approx(mean + u * (new_m - m) / v)
    assert after_covariance == pytest.approx(covariance - np.outer(u, u) * (v - new_v) / v**2)
    # At x itself the new mean and variance are those of the label.
    assert after_mean @ row == pytest.approx(new_m)
    assert row @ after_covariance @ row == pytest.approx(new_v)


def test_a_negative_variance_by_rounding_counts_as_none() -> None:
    u = np.empty(2)
    assert project(np.array([1.0, 1.0]), np.zeros(2), np.array([[-1e-17, 0.0], [0.0, 0.0]]), u)[1] == 0.0
    mean, covariance = np.zeros(1), np.zeros((1, 1))
    assert absorb(0.0, 2.0, 1.5, 0.0, np.zeros(1), mean, covariance)[0] == pytest.approx(float(expit(-1.5)) ** 2)
    assert absorb(1.0, 2.0, 1.5, 0.0, np.zeros(1), mean, covariance)[0] == pytest.approx(float(expit(1.5)) ** 2)


def test_rows_are_standardised_filled_and_bounded() -> None:
    X = np.array([[3.0, np.nan, -1e9], [5.0, 7.0, 1e9]])
    out = np.full((2, 5), -7.0)
    design_rows(X, np.array([1.0, 2.0, 0.0]), np.array([2.0, 10.0, 1.0]), 8.0, 2, out)
    assert out.tolist() == [[1.0, 1.0, 1.0, 0.0, -8.0], [1.0, 1.0, 2.0, 0.5, 8.0]]


def test_a_mixture_has_the_moments_of_its_hypotheses() -> None:
    weights = np.array([0.2, 0.5, 0.3])
    m, v = np.array([-1.0, 0.5, 2.0]), np.array([0.3, 4.0, 1.0])
    p, s = np.empty(3), np.empty(3)
    mean, variance = mixed(weights, m, v, p, s)
    each = [moments(*pair) for pair in zip(m, v, strict=True)]
    assert [*zip(p, s, strict=True)] == each
    assert mean == pytest.approx(sum(w * one[0] for w, one in zip(weights, each, strict=True)))
    second = sum(w * (one[1] + one[0] ** 2) for w, one in zip(weights, each, strict=True))
    assert variance == pytest.approx(second - mean**2)


def test_a_hypothesis_that_fails_keeps_the_least_weight() -> None:
    weights = np.array([0.5, 0.5])
    means, covariances = np.array([[30.0], [-30.0]]), np.full((2, 1, 1), 1e-6)
    learn_rows(np.ones((3, 1)), np.zeros(3), np.ones(3), weights, means, covariances)
    assert weights[0] == pytest.approx(LEAST_WEIGHT, rel=1e-5)
    assert weights.sum() == pytest.approx(1.0, abs=1e-15)
    learn_rows(np.ones((1, 1)), np.ones(1), np.ones(1), weights, means, covariances)
    assert weights[0] > 0.99


def test_weights_are_multiplied_by_the_likelihood_of_a_label() -> None:
    weights = np.array([0.25, 0.75])
    m, v, U = np.array([1.0, -2.0]), np.array([0.5, 3.0]), np.array([[0.5], [3.0]])
    means, covariances = np.array([[1.0], [-2.0]]), np.array([[[0.5]], [[3.0]]])
    likelihoods = np.array([tilted(1.0, 0.5, 1.0, 1.0)[0], tilted(-2.0, 3.0, 1.0, 1.0)[0]])
    shift, shrink = np.empty(2), np.empty(2)
    absorb_all(1.0, 1.0, m, v, U, weights, means, covariances, shift, shrink)
    expected = np.array([0.25, 0.75]) * likelihoods
    assert weights == pytest.approx(expected / expected.sum())
    assert means[:, 0] == pytest.approx(m + U[:, 0] * shift)


@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_sums_over_lines_have_the_bits_of_a_plain_loop(size: int) -> None:
    rng = np.random.default_rng(size)
    lines, factors = rng.normal(size=(size, 7)), rng.normal(size=size)
    factors[:4] *= size != 4  # four that are skipped
    result = np.full(7, np.nan)
    weighted_sum(lines, factors, 6, result)
    for r in range(6):
        total = 0.0
        for j in range(size):
            total += float(lines[j, r]) * float(factors[j])
        assert result[r] == total
    assert np.isnan(result[6])


@pytest.mark.parametrize("count", [1, 3])
def test_likeness_and_beliefs_of_rows(count: int) -> None:
    rng = np.random.default_rng(count)
    weights = rng.dirichlet(np.ones(count))
    beliefs = [gaussian_belief(seed, 3) for seed in range(count)]
    means, covariances = np.array([one[0] for one in beliefs]), np.array([one[1] for one in beliefs])
    X, R = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    likeness, mean, n = np.empty((4, 5)), np.empty(4), np.empty(4)
    liken_rows(X, R, weights, means, covariances, likeness)
    predict_rows(X, weights, means, covariances, mean, n)

    def rough(row: Rows) -> tuple[Rows, Rows]:
        pairs = [rough_moments(float(b @ row), float(row @ c @ row)) for b, c in beliefs]
        return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])

    for i, x in enumerate(X):
        p, s = rough(x)
        exact = [moments(float(b @ x), float(x @ c @ x)) for b, c in beliefs]
        centre = sum(w * one[0] for w, one in zip(weights, exact, strict=True))
        spread = sum(w * (one[1] + (one[0] - centre) ** 2) for w, one in zip(weights, exact, strict=True))
        assert mean[i] == pytest.approx(centre)
        assert n[i] == pytest.approx(centre * (1 - centre) / spread - 1)
        for r, row in enumerate(R):
            rp, rs = rough(row)
            correlations = np.array([x @ c @ row / math.sqrt((x @ c @ x) * (row @ c @ row)) for _, c in beliefs])
            across = weights @ (correlations * np.sqrt(s * rs) + (p - weights @ p) * (rp - weights @ rp))
            variances = [weights @ (a + b**2) - (weights @ b) ** 2 for a, b in ((s, p), (rs, rp))]
            assert likeness[i, r] == pytest.approx(min(across**2 / (variances[0] * variances[1]), 1.0), rel=1e-9)


def counts(seed: int, cells: int, rate: tuple[float, float], most: int = 60) -> tuple[Rows, Rows]:
    """Labels and successes of cells whose rates are drawn from a Beta distribution."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, most, cells)
    return n.astype(float), rng.binomial(n, rng.beta(*rate, cells)).astype(float)


def penalised(n: Rows, s: Rows, u: float, v: float) -> float:
    """The log-likelihood of a shared prior, by a plain sum of log-gammas."""
    size = math.exp(v)
    a = size * float(expit(u))
    b = size - a
    total = -0.5 * u**2 / 1.1**2 - 0.5 * (v - math.log(5)) ** 2
    for labels, good in zip(n, s, strict=True):
        bad = labels - good
        total += math.lgamma(a + good) + math.lgamma(b + bad) - math.lgamma(size + labels)
        total -= math.lgamma(a) + math.lgamma(b) - math.lgamma(size)
    return total


@pytest.mark.parametrize(
    ("cells", "rate", "most"), [(3, (8.0, 2.0), 9), (40, (1.0, 3.0), 60), (25, (0.3, 0.2), 400), (8, (60.0, 2.0), 3000)]
)
def test_a_shared_prior_counts_the_doubt_about_its_mean(cells: int, rate: tuple[float, float], most: int) -> None:
    n, s = counts(cells, cells, rate, most)
    peak = np.array([0.0, math.log(5.0)])
    spread = fit_beta(n, s, peak)
    height = beta_likelihood(n, s, peak[0], peak[1])
    assert height == pytest.approx(penalised(n, s, peak[0], peak[1]), rel=1e-12)
    h = 1e-3
    steps = np.array([[penalised(n, s, peak[0] + i * h, peak[1] + j * h) for j in (-1, 0, 1)] for i in (-1, 0, 1)])
    # The gradient vanishes, and the spread is the inverse curvature's.
    assert steps[2, 1] - steps[0, 1] == pytest.approx(0.0, abs=4 * h * 1e-3)
    assert steps[1, 2] - steps[1, 0] == pytest.approx(0.0, abs=4 * h * 1e-3)
    huu = (steps[2, 1] - 2 * steps[1, 1] + steps[0, 1]) / h**2
    hvv = (steps[1, 2] - 2 * steps[1, 1] + steps[1, 0]) / h**2
    huv = (steps[2, 2] - steps[2, 0] - steps[0, 2] + steps[0, 0]) / (4 * h * h)
    assert spread == pytest.approx(-np.linalg.inv([[huu, huv], [huv, hvv]])[0, 0], rel=1e-3)
    mean = under_normal(lambda a: float(expit(a)), peak[0], spread)
    around = under_normal(lambda a: (float(expit(a)) - mean) ** 2, peak[0], spread)
    inside = under_normal(lambda a: float(expit(a) * expit(-a)), peak[0], spread) / (math.exp(peak[1]) + 1)
    size, good = Shared(cells, strongest=1e9).priors(n, s)
    assert size == pytest.approx(np.full(cells, mean * (1 - mean) / (around + inside) - 1), rel=1e-4)
    assert good / size == pytest.approx(np.full(cells, mean), rel=1e-6)
    strongest = 0.5 * float(size[0])
    assert Shared(cells, strongest=strongest).priors(n, s)[0].tolist() == [strongest] * cells


@pytest.mark.parametrize("cap", [3.0, 1e9])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_curve_hands_every_cell_its_cavity(cap: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, groups = rng.normal(size=(9, 2)), [*"ababcabca"]
    model = Curve(scores, groups, cap=cap, slope=0.7, group_variance=0.8)
    z = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    effects = np.array([[float(group == name) for name in "abc"] for group in groups])
    assert model.design == pytest.approx(np.hstack([np.ones((9, 1)), z, effects]))
    assert model.mean.tolist() == [0.0, 0.7, 0.7, 0.0, 0.0, 0.0]
    assert 1 / model.precision == pytest.approx(np.array([1.65, 0.825, 0.825, 0.8, 0.8, 0.8]))
    n = rng.integers(0, 40, 9).astype(float)
    n[[0, 4]] = 0.0
    s = rng.binomial(n.astype(int), expit(1.5 * z[:, 0])).astype(float)
    mode = model.coefficients(n, s)
    eta = model.design @ mode
    p = expit(eta)
    gradient = model.design.T @ (s - n * p) - model.precision * (mode - model.mean)
    assert gradient == pytest.approx(np.zeros(6), abs=1e-6)
    size, good = model.priors(n, s)
    for i in range(9):
        others = np.where(np.arange(9) == i, 0.0, n * p * (1 - p))
        # Without the cell's own labels: the curvature without its term, and one Newton step from the mode.
        precision = np.diag(model.precision) + model.design.T @ (others[:, None] * model.design)
        covariance = np.linalg.inv(precision)
        a = model.design[i]
        v = float(a @ covariance @ a)
        m = float(eta[i] - a @ covariance @ a * (s[i] - n[i] * p[i]))
        mean, variance = moments(m, v) if v < 2 else (under_normal(lambda t: float(expit(t)), m, v), 0.0)
        if variance == 0.0:
            variance = under_normal(lambda t, mean=mean: (float(expit(t)) - mean) ** 2, m, v)  # type: ignore[misc]
        transferred = mean * (1 - mean) / variance - 1
        assert size[i] == pytest.approx(min(max(transferred, 0.05), cap), rel=2e-3)
        assert good[i] / size[i] == pytest.approx(mean, abs=2e-4)


def test_scores_that_do_not_vary_and_single_groups_have_no_effect() -> None:
    model = Curve(np.column_stack([np.full(3, 4.0), [1.0, 2.0, 3.0]]), ["one"] * 3, rising=False)
    assert model.design.shape == (3, 3)
    assert model.design[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert model.mean.tolist() == [0.0, 0.0, 0.0]


def test_neighbours_are_weighted_by_a_gaussian_kernel() -> None:
    rng = np.random.default_rng(0)
    X, y, weights = (
        rng.normal(size=(30, 3)) * [1.0, 5.0, 0.1] + 2.0,
        rng.integers(0, 2, 30).astype(float),
        rng.random(30),
    )
    model = Neighbours(bandwidth=0.8, prior=Belief(3, 1), most=20).prepare(X)
    for batch in (slice(10), slice(10, 30)):
        model.partial_fit(X[batch], y[batch], sample_weight=weights[batch])
    at = rng.normal(size=(4, 3)) + 2.0
    n, mean = model.beliefs(at)
    like = model.likeness(at, X)
    for i in range(4):
        total, good = 3.0, 1.0
        for j in range(30):
            distance = sum(((at[i, k] - X[j, k]) / X[:, k].std()) ** 2 for k in range(3))
            near = math.exp(-0.5 * distance / 3 / 0.8**2)
            assert like[i, j] == pytest.approx(near**2, rel=1e-9, abs=1e-14)
            if j >= 10:  # the newest 20
                total += weights[j] * near
                good += weights[j] * near * y[j]
        assert n[i] == pytest.approx(total)
        assert mean[i] == pytest.approx(good / total)


def test_the_ratio_of_typical_rows() -> None:
    rng = np.random.default_rng(0)
    # Ratios that vary no more than those of 12 copies do by chance: ν is as large as it gets.
    same = rng.chisquare(11, 200_000) / 11 * 0.04
    usual, freedom = _typical_ratio(same, 12)
    assert usual == pytest.approx(0.04, rel=0.01)
    assert freedom == pytest.approx(204.0)
    # True ratios drawn from a scaled inverse χ² of 9 degrees of freedom.
    varied = same * 7 / rng.chisquare(9, 200_000)
    usual, freedom = _typical_ratio(varied, 12)
    assert usual == pytest.approx(0.04, rel=0.02)
    assert freedom == pytest.approx(9.0, rel=0.1)
    assert _typical_ratio(np.zeros(5), 12) == (0.0, 4.0)


def test_copies_are_pooled_with_typical_rows() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(float)
    model: Any = Bootstrap(GaussianNB(), copies=8, prior=Belief(4, 3), random_state=0).prepare(X).learn(X, y)
    at = rng.normal(size=(6, 2))
    n, mean = model.beliefs(at)
    least = 0.5 / 91

    def votes(rows: Rows) -> Rows:
        copies = [member.predict_proba(rows)[:, 1] for member in model.members_]
        return np.asarray(np.clip(np.array(copies), least, 1 - least))

    def ratios(rows: Rows) -> tuple[Rows, Rows]:
        each = votes(rows)
        centre = each.sum(axis=0) / 8
        return centre, ((each - centre) ** 2).sum(axis=0) / 7 / (centre * (1 - centre))

    usual, freedom = _typical_ratio(ratios(X)[1], 8)
    centre, ratio = ratios(at)
    pooled = ((freedom - 2) * usual + 7 * ratio) / (freedom + 5)
    size = np.clip(1 / pooled - 1, 0.0, 90.0)
    assert n == pytest.approx(size + 4)
    assert mean == pytest.approx((size * centre + 3) / (size + 4))
    # Likeness: squared correlations over the copies, less what 8 copies have by chance.
    raw_at, raw_x = (np.array([member.predict_proba(rows)[:, 1] for member in model.members_]) for rows in (at, X))
    like = model.likeness(at, X)
    for i in range(6):
        for j in range(0, 90, 10):
            squared = np.corrcoef(raw_at[:, i], raw_x[:, j])[0, 1] ** 2
            assert like[i, j] == pytest.approx(max((squared - 1 / 7) / (1 - 1 / 7), 0.0), abs=1e-9)


@pytest.mark.parametrize("start", [-9.0, 7.0])
def test_the_curve_is_climbed_from_far_away(start: float) -> None:
    """Full Newton steps overshoot from there; the mode is where the plain one-dimensional search finds it."""
    from scipy.optimize import minimize_scalar

    from lenience.models.curve import climb, log_posterior

    design, n, s = np.ones((1, 1)), np.array([50.0]), np.array([20.0])
    mean, precision = np.zeros(1), np.full(1, 0.01)
    b = np.array([start])
    climb(design, n, s, mean, precision, b)
    best = minimize_scalar(lambda x: -log_posterior(design, n, s, mean, precision, np.array([x])), bounds=(-5, 5))
    assert b[0] == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_curve_is_climbed_in_a_few_newton_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near the mode every step is a full one, so that the error is squared each time."""
    from lenience.models import curve

    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(8), rng.normal(size=(8, 2))])
    n = rng.integers(5, 60, 8).astype(float)
    s = rng.binomial(n.astype(int), expit(design @ [0.3, 1.0, -0.5])).astype(float)
    mean, precision = np.zeros(3), np.array([0.5, 1.0, 2.0])
    monkeypatch.setattr(curve, "STEPS", 7)
    b = mean.copy()
    getattr(curve.climb, "py_func", curve.climb)(design, n, s, mean, precision, b)
    gradient = design.T @ (s - n * expit(design @ b)) - precision * (b - mean)
    assert gradient == pytest.approx(np.zeros(3), abs=1e-5)


@pytest.mark.parametrize("m", [-3.0, 0.4, 2.5])
@pytest.mark.parametrize("v", [0.01, 1.0, 4.0])
@pytest.mark.parametrize(("y", "weight"), LABELS)
def test_a_mode_is_reached_in_a_few_newton_steps(
    m: float, v: float, y: float, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halving the interval would take about forty."""
    from lenience.models import gaussian

    monkeypatch.setattr(gaussian, "STEPS", 8)
    root = getattr(mode_after, "py_func", mode_after)(m, v, y, weight)
    assert root - m == pytest.approx(v * weight * (y - float(expit(root))), rel=1e-9, abs=1e-9)


def test_the_listed_nodes_and_weights_are_those_of_gauss_and_hermite() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    assert pytest.approx(nodes, rel=1e-12) == HERMITE_NODES
    assert pytest.approx(weights / math.sqrt(2 * math.pi), rel=1e-9) == HERMITE_WEIGHTS
    assert pytest.approx(np.linspace(-8, 8, 65)) == EVEN_NODES
    assert pytest.approx(norm.pdf(EVEN_NODES) / 4, rel=1e-12) == EVEN_WEIGHTS
