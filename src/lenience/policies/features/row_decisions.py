"""Decide rows of features: accept iff p̂ is above the minimum rate c_n at the row's own discount.

:mod:`lenience.policies.features.effective_discount` says how people like x are weighed, and
:mod:`lenience.solvers.stopping.threshold_table` holds the minimum rates.

A decision has two parts. The first compares x with the reference rows, and no decision about anyone else changes it.
So rows can be weighed in any order, also on several cores. The second compares x with those who are pending, among them
rows of the same batch. So it takes the rows in turn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.gaussian import belief_size
from lenience.models.hypotheses import (
    ComparedRows,
    compared_rows,
    describe_row,
    liken,
    mixed,
    mixed_roughly,
    project_all,
)
from lenience.policies.features.effective_discount import lenient, own_discount, shares
from lenience.policies.features.label_worth import counts_as, label_worth
from lenience.solvers.stopping.threshold_table import look_up


class WeighedRows(NamedTuple):
    """What the first part of a decision finds, with a line for each row.

    ``mean``, ``variance`` and ``n`` are the belief, and ``discount`` is γ′. ``rough`` and ``spread`` are the rough mean
    and variance of p, and v, p, s and U belong to the hypotheses (:mod:`lenience.models.hypotheses`). ``deviation`` has
    ρ√s of each reference row, and ``alike`` is Σρ².
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    n: NDArray[np.float64]
    discount: NDArray[np.float64]
    q: NDArray[np.float64]
    left: NDArray[np.float64]
    free: NDArray[np.float64]
    alike: NDArray[np.float64]
    rough: NDArray[np.float64]
    spread: NDArray[np.float64]
    v: NDArray[np.float64]
    p: NDArray[np.float64]
    s: NDArray[np.float64]
    U: NDArray[np.float64]
    deviation: NDArray[np.float64]
    reference_rate: NDArray[np.float64]


@compiled
def weigh_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    columns: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    gammas: NDArray[np.float64],
    cost: float,
) -> WeighedRows:
    """Return the first part of the decisions about rows. ``columns`` is the design of the reference rows by column."""
    count, several, size = X.shape[0], means.shape[0], means.shape[1]
    rows = columns.shape[1]
    reference = compared_rows(columns, weights, reference_m, reference_v, rows)
    mean, variance, n, discount, q, left, free, alike, rough, spread = np.empty((10, count))
    v, p, s = np.empty((3, count, several))
    U, deviation = np.empty((count, several, size)), np.empty((count, rows))
    m = np.empty(several)
    distance, resolved, like, dot = np.empty((4, rows))
    for r in range(rows):
        distance[r] = (reference.rate[r] - cost) ** 2 / reference.spread[r]
        resolved[r] = reference.spread[r] / (reference.rate[r] * (1.0 - reference.rate[r]) + reference.spread[r])
    for i in range(count):
        project_all(X[i], means, covariances, m, v[i], U[i])
        mean[i], variance[i] = mixed(weights, m, v[i], p[i], s[i])
        n[i] = belief_size(mean[i], variance[i])
        rough[i], spread[i] = mixed_roughly(weights, m, v[i], p[i], s[i])
        liken(reference, rows, weights, v[i], U[i], p[i], s[i], rough[i], spread[i], dot, like)
        for r in range(rows):
            deviation[i, r] = math.sqrt(like[r] * reference.spread[r])
        alike[i] = like.sum()
        q[i], h, left[i], free[i] = shares(
            like, reference.rate, distance, resolved, (rough[i] - cost) ** 2 / spread[i],
            spread[i] / (rough[i] * (1.0 - rough[i]) + spread[i]), cost,
        )  # fmt: skip
        discount[i] = own_discount(gammas[i], q[i], h)
    return WeighedRows(
        mean, variance, n, discount, q, left, free, alike, rough, spread, v, p, s, U, deviation, reference.rate
    )


@compiled
def decide_weighed(
    X: NDArray[np.float64],
    weighed: WeighedRows,
    weights: NDArray[np.float64],
    earlier: ComparedRows,
    waiting: int,
    gammas: NDArray[np.float64],
    chances: NDArray[np.float64],
    explore: float,
    limited: bool,
    cost: float,
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int:
    """Decide weighed rows in turn, and return how many are pending then.

    Write accepted, propensity, p̂, n, γ′, c_n and the effective pending of each. Four more columns serve exposure
    limits: q, the share of the leniency that is left, the effective pending of those who are not above the break-even,
    and, where rows are ``limited``, what a label is worth if nothing is pending.
    ``earlier`` has the ``waiting`` rows without an outcome, and room for those accepted here.
    """
    rows = weighed.deviation.shape[1]
    costs, stakes = np.full((rows, 1), cost), np.ones((rows, 1))
    dot, like = np.empty((2, earlier.rate.size))
    for i in range(X.shape[0]):
        mean, n, free, own = weighed.mean[i], weighed.n[i], weighed.free[i], counts_as(weighed.alike[i])
        v, p, s, U = weighed.v[i], weighed.p[i], weighed.s[i], weighed.U[i]
        rough, spread = weighed.rough[i], weighed.spread[i]
        liken(earlier, waiting, weights, v, U, p, s, rough, spread, dot, like)
        near = 0.0
        below = 0.0
        for k in range(waiting):
            near += like[k]
            if earlier.rate[k] <= cost:
                below += like[k]
        worth, alone = math.inf, math.inf
        if free > 0.0:
            own_deviation = math.sqrt(weighed.variance[i])
            worth = label_worth(
                weighed.deviation[i], weighed.reference_rate, costs, stakes, own, mean, own_deviation, n, near, free,
                gammas[i],
            )  # fmt: skip
            alone = worth
            if limited and near > 0.0 and mean <= cost:
                alone = label_worth(
                    weighed.deviation[i], weighed.reference_rate, costs, stakes, own, mean, own_deviation, n, 0.0, free,
                    gammas[i],
                )  # fmt: skip
        least = look_up(cost, n0, n_step, g0, g_step, f, n + near, weighed.discount[i])
        threshold = lenient(cost, least, weighed.left[i], worth)
        propensity = 1.0 if mean > cost or mean > threshold else explore
        taken = chances[i] < propensity
        out[i, 0] = 1.0 if taken else 0.0
        out[i, 1] = propensity
        out[i, 2] = mean
        out[i, 3] = n
        out[i, 4] = weighed.discount[i]
        out[i, 5] = threshold
        out[i, 6] = near
        out[i, 7] = weighed.q[i]
        out[i, 8] = weighed.left[i]
        out[i, 9] = below
        out[i, 10] = alone
        if taken:
            earlier.columns[:, waiting] = X[i]
            describe_row(earlier, waiting, v, p, s, rough, spread)
            waiting += 1
    return waiting


@compiled
def decide_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    columns: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    pending: NDArray[np.float64],
    pending_m: NDArray[np.float64],
    pending_v: NDArray[np.float64],
    waiting: int,
    gammas: NDArray[np.float64],
    chances: NDArray[np.float64],
    explore: float,
    limited: bool,
    cost: float,
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Decide rows in turn, both parts at once, and write what :func:`decide_weighed` does.

    ``pending`` is the design by column of the ``waiting`` rows without an outcome, with room for those accepted here,
    and their log-odds follow.
    """
    weighed = weigh_rows(X, weights, means, covariances, columns, reference_m, reference_v, gammas, cost)
    earlier = compared_rows(pending, weights, pending_m, pending_v, waiting)
    decide_weighed(
        X, weighed, weights, earlier, waiting, gammas, chances, explore, limited, cost, n0, n_step, g0, g_step, f, out
    )
