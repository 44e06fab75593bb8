"""The discount factor for "people like x": how soon a label at x pays, and what comes for free.

The homogeneous problem knows one discount γ from one individual to the next. With features the next individual is not
like x, and others teach about x. Two rates, per arrival, over a reference set of M rows r (features only, no labels):

    q = max(1, Σ_{r: p̂_r ≤ c} ρ²(x, r) · min{1, e^{−(k_r/ρ² − k_x)/2}}) / M   others a label at x would help to decide
    h = 2 Σ_{r: p̂_r > c} ρ²(x, r) · g_r / M                                   labels that come for free

ρ² is the likeness of x and r (:mod:`lenience.model.features`); k = (p̂ − c)²/variance says how many standard errors,
squared, someone is from the break-even. All that labels at x can teach about r is a share ρ² of the variance at
r, so r is k_r/ρ² such errors from being decided by them: those far below the break-even, or little like x, do not
count. g_r = 1/(n + 2) is the share of the variance at r that a label at r resolves: those above the break-even are
accepted anyway, and their labels teach about x without exploring. Then

    γ′ = γ q / (1 − γ + γ q + h):

x's own discount if people like it are a share q of the arrivals (thinning; q = 1 without features, the segment's share
on one-hot cells), with h as a second reason why waiting is not lost: uncertainty that goes away by itself at rate h is
worth exploring only for so long. The 2 is not derived (labels of those explored below the break-even come for free to x
as well, and h leaves them out); 1 to 5 do about as well, see docs/features.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.model.hypotheses import liken, mixed_roughly
from lenience.solver.compiled import compiled

FREE = 2.0


@compiled
def own_discount(gamma: float, q: float, h: float) -> float:
    """γ′ = γq/(1 − γ + γq + h)."""
    return gamma * q / (1.0 - gamma + gamma * q + h)


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
    cost: float,
) -> tuple[float, float]:
    """q and h at an x, from the likeness to each reference row, and its p̂, k and g."""
    q = 0.0
    h = 0.0
    rows = likeness.size
    for r in range(rows):
        if mean[r] > cost:
            h += likeness[r] * resolved[r]
        else:
            q += helped(likeness[r], distance[r], own_distance)
    return min(max(q, 1.0) / rows, 1.0), FREE * h / rows


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
) -> tuple[float, float]:
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
    return min(max(q, 1.0) / rows, 1.0), FREE * h / rows
