"""The kernels of Bayesian logistic regression: a Gaussian belief that learns one label at a time.

The model. logit p(x) = βᵀx with β ~ N(μ, Σ), so the log-odds at x are N(m, v), m = μᵀx, v = xᵀΣx, u = Σx.

A label y at x. Its likelihood depends only on the log-odds a at x, so the exact moments of the posterior follow from
those of one number. Let m′ and v′ be the mean and variance of N(a; m, v) σ(a)^y σ(−a)^(1−y), by the quadrature
described below. Then

    μ ← μ + u (m′ − m)/v,        Σ ← Σ − u uᵀ (v − v′)/v²,

and the Gaussian with these moments is the prior of the next label (assumed-density filtering). A label takes O(d²)
work, however many came before. If labels come in a random order, a rate of s in n is learnt as (s + 1)/(n + 2) up to
about 0.01. Sorted labels (all successes first) would give larger errors, so labels that come together are learnt in
another way (:mod:`lenience.models.batch_learning`). An expansion at the mode (Laplace) would be as fast, but it pulls
rates near 0 or 1 towards ½ by another 0.01, which is a lot if the cost is 0.95.

The belief at x has the mean and variance of σ(N(m, v)), by Gauss–Hermite quadrature with 24 nodes, or by 65 evenly
spaced nodes if v is above 12 (errors below 0.001 up to v = 100). The Beta belief with these moments has n = p̂(1 −
p̂)/variance − 1. The delta method (variance ≈ (p̂(1 − p̂))² v) is not an option: it gives n < 0 for large v, which is
the case at the start.

All arithmetic here is strict, so that a sequence of labels gives the same bits on every machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled
from lenience.core.portable_exp import portable_exp
from lenience.models.quadrature import EVEN_NODES, EVEN_WEIGHTS, HERMITE_NODES, HERMITE_WEIGHTS

SMALLEST, LARGEST = 0.05, 3e4  # the range of belief sizes, which is that of the table of thresholds
STEPS = 60
WIDE = 12.0  # variance of the log-odds above which Hermite's nodes are too far apart to resolve the step of σ


@exactly_compiled
def sigmoid(a: float) -> float:
    """Return 1/(1 + e^−a) without overflow."""
    if a >= 0.0:
        return 1.0 / (1.0 + portable_exp(-a))
    e = portable_exp(a)
    return e / (1.0 + e)


@exactly_compiled
def sigmoids(m: float, root: float, nodes: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write σ(m + root · node) at each node, with the bits of :func:`sigmoid`, in a loop that has no branches."""
    for k in range(nodes.size):
        a = m + root * nodes[k]
        e = portable_exp(-abs(a))
        out[k] = (1.0 if a >= 0.0 else e) / (1.0 + e)


@exactly_compiled
def moments(m: float, v: float) -> tuple[float, float]:
    """Return the mean and variance of σ(N(m, v)).

    The variance is a sum of squared deviations from σ(m), so that rounding does not destroy a small one.
    """
    if v <= 0.0:
        return sigmoid(m), 0.0
    nodes, weights = (HERMITE_NODES, HERMITE_WEIGHTS) if v <= WIDE else (EVEN_NODES, EVEN_WEIGHTS)
    centre = sigmoid(m)
    rates = np.empty(nodes.size)
    sigmoids(m, math.sqrt(v), nodes, rates)
    first = 0.0
    second = 0.0
    for k in range(nodes.size):
        off = rates[k] - centre
        first += weights[k] * off
        second += weights[k] * off * off
    return centre + first, max(second - first * first, 0.0)


@exactly_compiled
def rough_moments(m: float, v: float) -> tuple[float, float]:
    """Approximate :func:`moments` in closed form: the mean to within 0.02, the variance to within 50%.

    One decision compares an individual with about a hundred others, so this must be fast.
    """
    slope = 1.0 / math.sqrt(1.0 + math.pi * v / 8.0)
    p = sigmoid(m * slope)
    spread = p * (1.0 - p)
    # The first approximation is good for a large v, the second for a small one.
    return p, spread * min(1.0 - slope, spread * v / (1.0 + spread * v))


@exactly_compiled
def belief_size(mean: float, variance: float) -> float:
    """Return the n of the Beta belief with this mean and variance, limited to the table of thresholds."""
    spread = mean * (1.0 - mean)
    if variance * (LARGEST + 1.0) <= spread:
        return LARGEST
    return max(spread / variance - 1.0, SMALLEST)


@exactly_compiled
def mode_after(m: float, v: float, y: float, weight: float) -> float:
    """Return the root of a = m + v·weight·(y − σ(a)) by Newton's steps, with bisection if they do not converge.

    With a large v, Newton's steps alone can jump between both sides of the root for ever.
    """
    low = m - v * weight * (1.0 - y)
    high = m + v * weight * y
    a = m
    before = math.inf
    for _ in range(STEPS):
        p = sigmoid(a)
        gap = a - m - v * weight * (y - p)
        if gap > 0.0:
            high = a
        else:
            low = a
        step = a - gap / (1.0 + v * weight * p * (1.0 - p))
        if not low <= step <= high or abs(gap) > 0.5 * before:
            step = 0.5 * (low + high)
        before = abs(gap)
        if abs(step - a) <= 1e-12 * (1.0 + abs(a)):
            return step
        a = step
    return a


@exactly_compiled
def weighted_sum(
    lines: NDArray[np.float64], factors: NDArray[np.float64], count: int, out: NDArray[np.float64]
) -> None:
    """Write Σ_j factors[j] · lines[j] of the first ``count`` entries of each line, each sum in the order of j.

    Four lines at a time, so that each sum is loaded and stored a quarter as often. Four factors that are 0 are skipped:
    one-hot rows are mostly zeros, and so are columns that a hypothesis leaves out.
    """
    for r in range(count):
        out[r] = 0.0
    size = factors.size
    whole = size - size % 4
    for j in range(0, whole, 4):
        f0, f1, f2, f3 = factors[j], factors[j + 1], factors[j + 2], factors[j + 3]
        if f0 == 0.0 and f1 == 0.0 and f2 == 0.0 and f3 == 0.0:
            continue
        l0, l1, l2, l3 = lines[j], lines[j + 1], lines[j + 2], lines[j + 3]
        for r in range(count):
            out[r] = (((out[r] + l0[r] * f0) + l1[r] * f1) + l2[r] * f2) + l3[r] * f3
    for j in range(whole, size):
        line = lines[j]
        for r in range(count):
            out[r] += line[r] * factors[j]


@exactly_compiled
def project(
    x: NDArray[np.float64], mean: NDArray[np.float64], covariance: NDArray[np.float64], u: NDArray[np.float64]
) -> tuple[float, float]:
    """Return m and v at x, and write u = Σx."""
    size = x.size
    m = 0.0
    used = np.empty(size)
    for j in range(size):
        m += mean[j] * x[j]
        # The coefficients of columns that a hypothesis leaves out are certain.
        used[j] = x[j] if covariance[j, j] != 0.0 else 0.0
    weighted_sum(covariance, used, size, u)
    v = 0.0
    for i in range(size):
        v += u[i] * x[i]
    return m, max(v, 0.0)


@exactly_compiled
def tilted(m: float, v: float, y: float, weight: float) -> tuple[float, float, float]:
    """Return the likelihood of a label with a weight at N(m, v), and the mean and variance after it, by quadrature."""
    root = math.sqrt(v)
    nodes, weights = (HERMITE_NODES, HERMITE_WEIGHTS) if v <= WIDE else (EVEN_NODES, EVEN_WEIGHTS)
    total = 0.0
    first = 0.0
    second = 0.0
    for k in range(nodes.size):
        a = m + root * nodes[k]
        likelihood = sigmoid(a) if y > 0.5 else sigmoid(-a)
        if weight != 1.0:
            likelihood = likelihood**weight
        mass = weights[k] * likelihood
        total += mass
        first += mass * nodes[k]
        second += mass * nodes[k] * nodes[k]
    first /= total
    second = second / total - first * first
    # A log-concave likelihood never increases the variance, so rounding must not do so either.
    return total, m + root * first, v * min(max(second, 1e-9), 1.0)


@exactly_compiled
def absorb(
    y: float,
    weight: float,
    m: float,
    v: float,
    u: NDArray[np.float64],
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Learn a label at the x of m, v and u, and return its likelihood, (m′ − m)/v and (v − v′)/v²."""
    if v <= 0.0:
        p = sigmoid(m) if y > 0.5 else sigmoid(-m)
        return p**weight, 0.0, 0.0
    likelihood, after, spread = tilted(m, v, y, weight)
    shift = (after - m) / v
    shrink = (v - spread) / (v * v)
    size = u.size
    for i in range(size):
        if u[i] == 0.0:
            continue
        mean[i] += u[i] * shift
        row = covariance[i]
        for j in range(size):
            row[j] -= u[i] * u[j] * shrink  # in this order, which keeps the covariance symmetric to the last bit
    return likelihood, shift, shrink


@exactly_compiled
def design_rows(
    X: NDArray[np.float64],
    centre: NDArray[np.float64],
    scale: NDArray[np.float64],
    limit: float,
    first: int,
    out: NDArray[np.float64],
) -> None:
    """Write ``first`` columns of ones and the standardised rows, limited to ±``limit``, with missing values as 0."""
    for i in range(X.shape[0]):
        for j in range(first):
            out[i, j] = 1.0
        for j in range(X.shape[1]):
            z = (X[i, j] - centre[j]) / scale[j]
            if math.isnan(z):
                z = 0.0
            out[i, first + j] = min(max(z, -limit), limit)
