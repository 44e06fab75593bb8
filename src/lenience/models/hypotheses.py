"""Several Gaussian beliefs side by side, weighted by how well each predicted the labels.

How much the features matter is unknown in advance. In some data they explain little, in others nearly everything, and
no single prior variance suits both. So several hypotheses run side by side, each a Gaussian belief
(:mod:`lenience.models.gaussian`) with its own prior. A label updates all of them and multiplies the weight of each by
the probability it gave to that label. This is the posterior over hypotheses, by their marginal likelihoods: the scale
of the prior is learnt without refitting.

The belief at x is the mixture. With p_k and s_k the mean and variance of p under hypothesis k and w_k its weight,

    p̂ = Σ w_k p_k,        variance = Σ w_k (s_k + (p_k − p̂)²).

The covariance of p at x and at r is Σ w_k (ρ_k √(s_k s_rk) + (p_k − p̂)(p_rk − p̂_r)), where ρ_k is the correlation of
the log-odds under k. The likeness is its square divided by both variances. With one hypothesis it is ρ².
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled
from lenience.core.portable_exp import portable_exp
from lenience.models.gaussian import absorb, belief_size, moments, project, rough_moments

LEAST_WEIGHT = 1e-6  # a floor, so that a hypothesis can always recover
NEGLIGIBLE = 1e-4


@exactly_compiled
def project_all(
    x: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    U: NDArray[np.float64],
) -> None:
    """Write m, v and u = Σx at x under every hypothesis."""
    for k in range(m.size):
        m[k], v[k] = project(x, means[k], covariances[k], U[k])


@exactly_compiled
def absorb_all(
    y: float,
    weight: float,
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    U: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    shift: NDArray[np.float64],
    shrink: NDArray[np.float64],
) -> None:
    """Learn a label at the x that m, v and U belong to; write the shift and shrink of each hypothesis."""
    total = 0.0
    for k in range(m.size):
        likelihood, shift[k], shrink[k] = absorb(y, weight, m[k], v[k], U[k], means[k], covariances[k])
        weights[k] *= likelihood
        total += weights[k]
    sum_of_weights = 0.0
    for k in range(m.size):
        weights[k] = max(weights[k] / total, LEAST_WEIGHT)
        sum_of_weights += weights[k]
    for k in range(m.size):
        weights[k] /= sum_of_weights


@exactly_compiled
def mixed(
    weights: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    p: NDArray[np.float64],
    s: NDArray[np.float64],
) -> tuple[float, float]:
    """Return p̂ and the variance of p at an x; write p and s of each hypothesis."""
    mean = 0.0
    for k in range(m.size):
        p[k], s[k] = moments(m[k], v[k])
        mean += weights[k] * p[k]
    variance = 0.0
    for k in range(m.size):
        variance += weights[k] * (s[k] + (p[k] - mean) ** 2)
    return mean, variance


@exactly_compiled
def mixed_roughly(
    weights: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    p: NDArray[np.float64],
    s: NDArray[np.float64],
) -> tuple[float, float]:
    """Approximate :func:`mixed` with :func:`~lenience.models.gaussian.rough_moments`, to compare x with others."""
    mean = 0.0
    second = 0.0
    for k in range(m.size):
        p[k], s[k] = rough_moments(m[k], v[k])
        mean += weights[k] * p[k]
        second += weights[k] * (s[k] + p[k] * p[k])
    return mean, max(second - mean * mean, 1e-12)


@exactly_compiled
def liken(
    row: NDArray[np.float64],
    row_v: NDArray[np.float64],
    row_p: NDArray[np.float64],
    row_s: NDArray[np.float64],
    row_mean: float,
    row_variance: float,
    weights: NDArray[np.float64],
    v: NDArray[np.float64],
    U: NDArray[np.float64],
    p: NDArray[np.float64],
    s: NDArray[np.float64],
    mean: float,
    variance: float,
) -> float:
    """Return the likeness of x and a row. Their p, s, mean and variance come from :func:`mixed_roughly`."""
    across = 0.0
    for k in range(weights.size):
        across += weights[k] * (p[k] - mean) * (row_p[k] - row_mean)
        if weights[k] > NEGLIGIBLE:
            dot = 0.0
            for i in range(row.size):
                dot += row[i] * U[k, i]
            across += weights[k] * dot * math.sqrt(s[k] * row_s[k] / max(v[k] * row_v[k], 1e-300))
    return min(across * across / max(variance * row_variance, 1e-300), 1.0)


@exactly_compiled
def learn_row(
    x: NDArray[np.float64],
    y: float,
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    shift: NDArray[np.float64],
    shrink: NDArray[np.float64],
    U: NDArray[np.float64],
) -> None:
    """Learn one label; write the shift and shrink of each hypothesis and u = Σx before it."""
    m, v = np.empty((2, weights.size))
    project_all(x, means, covariances, m, v, U)
    absorb_all(y, 1.0, m, v, U, weights, means, covariances, shift, shrink)


@exactly_compiled
def learn_rows(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    label_weights: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
) -> None:
    """Learn the labels of many rows, one after the other."""
    several, size = means.shape
    m, v, shift, shrink = np.empty((4, several))
    U = np.empty((several, size))
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        absorb_all(y[i], label_weights[i], m, v, U, weights, means, covariances, shift, shrink)


@exactly_compiled
def relabel_row(
    x: NDArray[np.float64],
    sign: float,
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    U: NDArray[np.float64],
) -> None:
    """Multiply every Gaussian by e^{sign · xᵀβ}, in place, so that a label at x becomes its opposite; write u = Σx."""
    several, size = means.shape
    m, v = np.empty((2, several))
    project_all(x, means, covariances, m, v, U)
    highest = -math.inf
    for k in range(several):
        highest = max(highest, sign * m[k] + 0.5 * v[k])
    total = 0.0
    for k in range(several):
        weights[k] *= portable_exp(sign * m[k] + 0.5 * v[k] - highest)
        total += weights[k]
        for j in range(size):
            means[k, j] += sign * U[k, j]
    sum_of_weights = 0.0
    for k in range(several):
        weights[k] = max(weights[k] / total, LEAST_WEIGHT)
        sum_of_weights += weights[k]
    for k in range(several):
        weights[k] /= sum_of_weights


@exactly_compiled
def project_rows(
    X: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
) -> None:
    """Write m and v of many rows, one column per hypothesis."""
    several, size = means.shape
    U = np.empty((several, size))
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m[i], v[i], U)


@exactly_compiled
def predict_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    mean: NDArray[np.float64],
    n: NDArray[np.float64],
) -> None:
    """Write p̂ and n of many rows."""
    several, size = means.shape
    m, v, p, s = np.empty((4, several))
    U = np.empty((several, size))
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean[i], variance = mixed(weights, m, v, p, s)
        n[i] = belief_size(mean[i], variance)


@exactly_compiled
def liken_rows(
    X: NDArray[np.float64],
    R: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write the likeness of each row of X and each row of R."""
    several, size = means.shape
    m, v, p, s = np.empty((4, several))
    U = np.empty((several, size))
    row_m, row_v, row_p, row_s = np.empty((4, R.shape[0], several))
    rates, spreads = np.empty((2, R.shape[0]))
    project_rows(R, means, covariances, row_m, row_v)
    for r in range(R.shape[0]):
        rates[r], spreads[r] = mixed_roughly(weights, row_m[r], row_v[r], row_p[r], row_s[r])
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean, variance = mixed_roughly(weights, m, v, p, s)
        for r in range(R.shape[0]):
            out[i, r] = liken(
                R[r], row_v[r], row_p[r], row_s[r], rates[r], spreads[r], weights, v, U, p, s, mean, variance
            )
