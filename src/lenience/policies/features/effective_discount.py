"""The leniency for "people like x": how soon a label at x pays, and what comes for free.

The homogeneous problem knows one discount γ from one individual to the next. With features the next individual is not
like x, and others teach about x. Two rates, per arrival, over a reference set of M rows r (features only, no labels):

    q = max(1, Σ_{r: p̂_r ≤ c} ρ²(x, r) · min{1, e^{−(k_r/ρ² − k_x)/2}}) / M   others a label at x would help to decide
    φ = Σ_{r: p̂_r > c} ρ²(x, r) · g_r/g_x / M                                 labels at x's worth that come for free

ρ² is the likeness of x and r (:mod:`lenience.models.feature_model`); k = (p̂ − c)²/variance says how many standard
errors,
squared, someone is from the break-even. All that labels at x can teach about r is a share ρ² of the variance at
r, so r is k_r/ρ² such errors from being decided by them: those far below the break-even, or little like x, do not
count. g = 1/(n + 2) is the share of the variance that a label resolves: those above the break-even are accepted
anyway, and their labels teach about x without exploring. Then

    γ′ = γ q / (1 − γ + γ q + h),  h = φ g_x
    threshold = c − left · (c − c_n(γ′)),  left = √(1 + a) − √a,  a = 0.3 φ/q

γ′ is x's own discount if people like it are a share q of the arrivals (thinning; q = 1 without features, the segment's
share on one-hot cells), with h as a second reason why waiting is not lost: uncertainty that goes away by itself at rate
h is worth exploring only for so long. And where labels come for free, to reject is not to stop: one may wait for them
and come back. What is ``left`` of the leniency then is √(1 + φ/q) − √(φ/q) in the limit of many small steps
(docs/proofs.md); 0.3 instead of 1 fits the problem of one population with free labels, which has an exact answer
(:mod:`research.free_labels`). On cells, and without features, φ = 0 and all is left.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.hypotheses import liken, mixed_roughly

WAITING = 0.3


@compiled
def own_discount(gamma: float, q: float, h: float) -> float:
    """γ′ = γq/(1 − γ + γq + h)."""
    return gamma * q / (1.0 - gamma + gamma * q + h)


@compiled
def left(q: float, free: float) -> float:
    """The share of the leniency that is left where so many labels come for free, per arrival."""
    a = WAITING * free / q
    return math.sqrt(1.0 + a) - math.sqrt(a)


@compiled
def lenient(cost: float, threshold: float, share: float) -> float:
    """The threshold with a share of its leniency."""
    return cost - share * (cost - threshold)


@compiled
def helped(likeness: float, distance: float, own_distance: float) -> float:
    """How far someone below the break-even counts as one of the people like x."""
    if likeness <= 0.0:
        return 0.0
    return likeness * min(1.0, math.exp(-0.5 * (distance / likeness - own_distance)))


@compiled
def shares(
    likeness: NDArray[np.float64],
    mean: NDArray[np.float64],
    distance: NDArray[np.float64],
    resolved: NDArray[np.float64],
    own_distance: float,
    own_resolved: float,
    cost: float,
) -> tuple[float, float, float]:
    """q, h and what is left at an x, from the likeness to each reference row, and its p̂, k and g."""
    q = 0.0
    h = 0.0
    rows = likeness.size
    for r in range(rows):
        if mean[r] > cost:
            h += likeness[r] * resolved[r]
        else:
            q += helped(likeness[r], distance[r], own_distance)
    return rates(q, h, rows, own_resolved)


@compiled
def rates(q: float, h: float, rows: int, own_resolved: float) -> tuple[float, float, float]:
    """q, h and what is left of the leniency, from the sums over the reference rows."""
    q = min(max(q, 1.0) / rows, 1.0)
    h /= rows
    return q, h, left(q, h / own_resolved)


@compiled
def q_and_h(
    weights: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    U: NDArray[np.float64],
    p: NDArray[np.float64],
    s: NDArray[np.float64],
    R: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    cost: float,
) -> tuple[float, float, float]:
    """The same at an x with log-odds N(m, v) and U = Σx under the hypotheses of a logistic regression, in one pass.

    Overwrites p and s.
    """
    q = 0.0
    h = 0.0
    rows = R.shape[0]
    mean, variance = mixed_roughly(weights, m, v, p, s)
    own = (mean - cost) ** 2 / variance
    row_p, row_s = np.empty((2, m.size))
    for r in range(rows):
        rate, spread = mixed_roughly(weights, reference_m[r], reference_v[r], row_p, row_s)
        like = liken(R[r], reference_v[r], row_p, row_s, rate, spread, weights, v, U, p, s, mean, variance)
        if rate > cost:
            h += like * spread / (rate * (1.0 - rate) + spread)
        else:
            q += helped(like, (rate - cost) ** 2 / spread, own)
    return rates(q, h, rows, variance / (mean * (1.0 - mean) + variance))
