"""Decide rows of features: accept iff p̂ is above the minimum rate c_n at the row's own discount.

:mod:`lenience.policies.features.effective_discount` says how people like x are weighed, and
:mod:`lenience.solvers.stopping.threshold_table` holds the minimum rates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.gaussian import belief_size
from lenience.models.hypotheses import liken, mixed, mixed_roughly, project_all
from lenience.policies.features.effective_discount import lenient, own_discount, q_and_h
from lenience.policies.features.label_worth import counts_as, label_worth
from lenience.solvers.stopping.threshold_table import look_up


@compiled
def decide_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    R: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    pending: NDArray[np.float64],
    pending_m: NDArray[np.float64],
    pending_v: NDArray[np.float64],
    waiting: int,
    gammas: NDArray[np.float64],
    chances: NDArray[np.float64],
    explore: float,
    cost: float,
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Decide rows in turn. Write accepted, propensity, p̂, n, γ′, c_n and the effective pending of each.

    Four more columns serve exposure limits: q, the share of the leniency that is left, the effective pending of those
    who are not above the break-even, and what a label is worth if nothing is pending.
    ``pending`` has room for those accepted here, after the ``waiting`` rows that it holds, with their log-odds.
    """
    several, size = means.shape
    m, v, p, s = np.empty((4, several))
    U = np.empty((several, size))
    deviation, reference_rate = np.empty((2, R.shape[0]))
    costs, stakes = np.full((R.shape[0], 1), cost), np.ones((R.shape[0], 1))
    pending_p, pending_s = np.empty((2, pending.shape[0], several))
    rates, spreads = np.empty((2, pending.shape[0]))
    for k in range(waiting):
        rates[k], spreads[k] = mixed_roughly(weights, pending_m[k], pending_v[k], pending_p[k], pending_s[k])
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean, variance = mixed(weights, m, v, p, s)
        n = belief_size(mean, variance)
        q, h, left, free, alike = q_and_h(
            weights, m, v, U, p, s, R, reference_m, reference_v, cost, reference_rate, deviation
        )
        rough, spread = mixed_roughly(weights, m, v, p, s)
        near = 0.0
        below = 0.0
        for k in range(waiting):
            like = liken(
                pending[k], pending_v[k], pending_p[k], pending_s[k], rates[k], spreads[k],
                weights, v, U, p, s, rough, spread,
            )  # fmt: skip
            near += like
            if rates[k] <= cost:
                below += like
        discount = own_discount(gammas[i], q, h)
        worth, alone = math.inf, math.inf
        if free > 0.0:
            own = counts_as(alike)
            worth = label_worth(
                deviation, reference_rate, costs, stakes, own, mean, math.sqrt(variance), n, near, free, gammas[i]
            )
            alone = worth
            if near > 0.0 and mean <= cost:
                alone = label_worth(
                    deviation, reference_rate, costs, stakes, own, mean, math.sqrt(variance), n, 0.0, free, gammas[i]
                )
        threshold = lenient(cost, look_up(cost, n0, n_step, g0, g_step, f, n + near, discount), left, worth)
        propensity = 1.0 if mean > cost or mean > threshold else explore
        taken = chances[i] < propensity
        out[i, 0] = 1.0 if taken else 0.0
        out[i, 1] = propensity
        out[i, 2] = mean
        out[i, 3] = n
        out[i, 4] = discount
        out[i, 5] = threshold
        out[i, 6] = near
        out[i, 7] = q
        out[i, 8] = left
        out[i, 9] = below
        out[i, 10] = alone
        if taken:
            pending[waiting] = X[i]
            pending_v[waiting], pending_p[waiting], pending_s[waiting] = v, p, s
            rates[waiting], spreads[waiting] = rough, spread
            waiting += 1
