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

One decision compares x with a hundred rows or more. What depends on the rows alone is computed once
(:class:`ComparedRows`), and the loops run over the rows, which the compiler can vectorise. Each row still has its own
sums in the same order, so that the likeness has the same bits however many rows are compared.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled
from lenience.core.portable_exp import portable_exp
from lenience.models.gaussian import absorb, belief_size, moments, project, rough_moments, weighted_sum

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


class ComparedRows(NamedTuple):
    """Rows that individuals are compared with, one column for each, with room for more.

    ``columns`` is their design and ``rate`` and ``spread`` the rough mean and variance of p. ``centred`` is p_k − p̂ and
    ``scale`` is √(s_k/v_k), with a line for each hypothesis.
    """

    columns: NDArray[np.float64]
    centred: NDArray[np.float64]
    scale: NDArray[np.float64]
    rate: NDArray[np.float64]
    spread: NDArray[np.float64]


@exactly_compiled
def compared_rows(
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    count: int,
) -> ComparedRows:
    """Return rows to compare with, of which the first ``count`` are known by their log-odds (a line for each row)."""
    several, capacity = weights.size, columns.shape[1]
    centred, scale = np.empty((2, several, capacity))
    rate, spread = np.empty((2, capacity))
    rows = ComparedRows(columns, centred, scale, rate, spread)
    p, s = np.empty((2, several))
    for r in range(count):
        mean, variance = mixed_roughly(weights, m[r], v[r], p, s)
        describe_row(rows, r, v[r], p, s, mean, variance)
    return rows


@exactly_compiled
def describe_row(
    rows: ComparedRows,
    at: int,
    v: NDArray[np.float64],
    p: NDArray[np.float64],
    s: NDArray[np.float64],
    mean: float,
    variance: float,
) -> None:
    """Write what a comparison needs to know of a row, from :func:`mixed_roughly`; not its design."""
    rows.rate[at] = mean
    rows.spread[at] = variance
    for k in range(p.size):
        rows.centred[k, at] = p[k] - mean
        rows.scale[k, at] = math.sqrt(s[k] / v[k]) if v[k] > 0.0 else 0.0


@exactly_compiled
def liken(
    rows: ComparedRows,
    count: int,
    weights: NDArray[np.float64],
    v: NDArray[np.float64],
    U: NDArray[np.float64],
    p: NDArray[np.float64],
    s: NDArray[np.float64],
    mean: float,
    variance: float,
    dot: NDArray[np.float64],
    like: NDArray[np.float64],
) -> None:
    """Write the likeness of x and the first ``count`` rows. p, s, mean and variance come from :func:`mixed_roughly`.

    ``dot`` is overwritten.
    """
    for r in range(count):
        like[r] = 0.0
    for k in range(weights.size):
        apart = weights[k] * (p[k] - mean)
        centred, scale = rows.centred[k], rows.scale[k]
        for r in range(count):
            like[r] += apart * centred[r]
        if weights[k] > NEGLIGIBLE and v[k] > 0.0:
            weighted_sum(rows.columns, U[k], count, dot)
            own = weights[k] * math.sqrt(s[k] / v[k])
            for r in range(count):
                like[r] += own * scale[r] * dot[r]
    spread = rows.spread
    for r in range(count):
        like[r] = min(like[r] * like[r] / max(variance * spread[r], 1e-300), 1.0)


@exactly_compiled
def follow_label(
    columns: NDArray[np.float64],
    U: NDArray[np.float64],
    shift: NDArray[np.float64],
    shrink: NDArray[np.float64],
    row_m: NDArray[np.float64],
    row_v: NDArray[np.float64],
) -> None:
    """Move m and v of rows, whose design is given by column, after a label with u = Σx before it.

    m_r ← m_r + rᵀu · shift and v_r ← v_r − (rᵀu)² · shrink under each hypothesis.
    """
    rows = columns.shape[1]
    dot = np.empty(rows)
    for k in range(shift.size):
        weighted_sum(columns, U[k], rows, dot)
        for r in range(rows):
            row_m[r, k] += dot[r] * shift[k]
            row_v[r, k] = max(row_v[r, k] - dot[r] * dot[r] * shrink[k], 0.0)


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
    row_m, row_v = np.empty((2, R.shape[0], several))
    dot = np.empty(R.shape[0])
    project_rows(R, means, covariances, row_m, row_v)
    rows = compared_rows(np.ascontiguousarray(R.T), weights, row_m, row_v, R.shape[0])
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean, variance = mixed_roughly(weights, m, v, p, s)
        liken(rows, R.shape[0], weights, v, U, p, s, mean, variance, dot, out[i])
