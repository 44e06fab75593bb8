"""The compiled online loop of :mod:`lenience.simulation.replay_engine` where amounts and break-evens differ.

Every rule decides each arrival at the arrival's own break-even. Amounts are in units of the mean amount at stake.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.gaussian import belief_size, project, sigmoid
from lenience.models.hypotheses import (
    absorb_all,
    compared_rows,
    follow_label,
    liken,
    mixed,
    mixed_roughly,
    project_all,
    project_rows,
)
from lenience.policies.features.baseline_rules import CONSEQUENTIAL, LENIENT, LINEAR_UCB, acceptance
from lenience.policies.features.effective_discount import offer_shares, own_discount, stretched
from lenience.policies.features.label_worth import counts_as, label_worth
from lenience.simulation.replay_engine import learn_own
from lenience.solvers.offers.label_table import look_up_label


@compiled
def run_offers_online(
    rule: int,
    parameter: float,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    amounts: NDArray[np.float64],
    costs: NDArray[np.float64],
    order: NDArray[np.int64],
    warm: NDArray[np.int64],
    chances: NDArray[np.float64],
    reference: NDArray[np.int64],
    weights0: NDArray[np.float64],
    means0: NDArray[np.float64],
    covariances0: NDArray[np.float64],
    mean_cost: float,
    gammas: NDArray[np.float64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    grid: NDArray[np.float64],
    cell: NDArray[np.int64],
    f: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    refresh: bool,
    full_information: bool,
    accepted: NDArray[np.bool_],
) -> None:
    """Write which arrivals of ``order`` (rows of the design X) are accepted.

    The belief given has learnt the rows ``warm``. Rules with a model of their own learn these rows here.
    The arguments from ``amount`` to ``slope`` are the table of label values, for the rule LENIENT.
    """
    several, size = means0.shape
    weights = weights0.copy()
    means = means0.copy()
    covariances = covariances0.copy()
    m, v, p, s, shift, shrink = np.empty((6, several))
    U = np.empty((several, size))
    u = np.empty(size)
    theta = np.zeros(size)
    inverse = np.eye(size)
    own_model = rule in (LINEAR_UCB, CONSEQUENTIAL)
    if own_model:
        for i in warm:
            learn_own_offer(rule, parameter, X[i], y[i], 1.0, mean_cost, mean_cost, theta, inverse, u)
    rows = reference.size
    R = X[reference]
    columns = np.ascontiguousarray(R.T)
    reference_m, reference_v = np.empty((2, rows, several))
    project_rows(R, means, covariances, reference_m, reference_v)
    shares = np.ones((rows, 1))
    stakes, break_evens = np.empty((2, rows, 1))
    dot, like, deviation, precision, resolved = np.empty((5, rows))
    for r in range(rows):
        stakes[r, 0] = amounts[reference[r]]
        break_evens[r, 0] = costs[reference[r]]
    oldest = 0
    taken = 0
    for t in range(order.size):
        i = order[t]
        x = X[i]
        c = costs[i]
        if rule == LINEAR_UCB:
            centre, spread = project(x, theta, inverse, u)
            propensity = 1.0 if centre + parameter * math.sqrt(spread) > c else 0.0
        elif rule == CONSEQUENTIAL:
            odds = own_odds(x, theta, c, mean_cost)
            propensity = 1.0 if odds >= 0.0 else sigmoid(odds)
        else:
            project_all(x, means, covariances, m, v, U)
            if rule == LENIENT:
                mean, variance = mixed(weights, m, v, p, s)
                propensity = 1.0
                if mean <= c:
                    n = belief_size(mean, variance)
                    others = compared_rows(columns, weights, reference_m, reference_v, rows)
                    rough, spread = mixed_roughly(weights, m, v, p, s)
                    liken(others, rows, weights, v, U, p, s, rough, spread, dot, like)
                    for r in range(rows):
                        precision[r] = 1.0 / others.spread[r]
                        resolved[r] = others.spread[r] / (others.rate[r] * (1.0 - others.rate[r]) + others.spread[r])
                        deviation[r] = math.sqrt(like[r] * others.spread[r])
                    q, h, left, free, stake = offer_shares(
                        like, others.rate, precision, resolved, mean, rough, 1.0 / spread,
                        spread / (rough * (1.0 - rough) + spread), shares, stakes, break_evens,
                    )  # fmt: skip
                    label = stake * left * look_up_label(
                        amount, cost, start, share, n0, n_step, g0, g_step, grid, cell, f, n,
                        stretched(mean, n, left, kink, slope), own_discount(gammas[t], q, h),
                    )  # fmt: skip
                    if free > 0.0:
                        worth = label_worth(
                            deviation, others.rate, break_evens, stakes, counts_as(like.sum()), mean,
                            math.sqrt(variance), n, 0.0, free, gammas[t],
                        )  # fmt: skip
                        label = min(label, worth)
                    propensity = 1.0 if amounts[i] * (mean - c) + parameter * label > 0.0 else 0.0
            else:
                propensity = acceptance(rule, parameter, weights, m, v, taken, c)
        accepted[t] = chances[t] < propensity
        taken += accepted[t]
        if accepted[t] or full_information:
            if own_model:
                learn_own_offer(rule, parameter, x, y[i], amounts[i], c, mean_cost, theta, inverse, u)
            else:
                absorb_all(y[i], 1.0, m, v, U, weights, means, covariances, shift, shrink)
                if rule == LENIENT:
                    follow_label(columns, U, shift, shrink, reference_m, reference_v)
        if refresh and rule == LENIENT:
            columns[:, oldest] = x
            stakes[oldest, 0] = amounts[i]
            break_evens[oldest, 0] = c
            project_all(x, means, covariances, reference_m[oldest], reference_v[oldest], U)
            oldest = (oldest + 1) % rows


@compiled
def own_odds(x: NDArray[np.float64], theta: NDArray[np.float64], cost: float, mean_cost: float) -> float:
    """Return θ'x, less by how much the log-odds of the break-even are above those of the mean break-even."""
    odds = math.log(mean_cost / (1.0 - mean_cost)) - math.log(cost / (1.0 - cost))
    for j in range(x.size):
        odds += theta[j] * x[j]
    return odds


@compiled
def learn_own_offer(
    rule: int,
    parameter: float,
    x: NDArray[np.float64],
    y: float,
    amount: float,
    cost: float,
    mean_cost: float,
    theta: NDArray[np.float64],
    inverse: NDArray[np.float64],
    u: NDArray[np.float64],
) -> None:
    """Learn one label: the ridge regression of LinUCB, or a gradient step of consequential learning."""
    if rule == LINEAR_UCB:
        learn_own(rule, parameter, x, y, cost, theta, inverse, u)
        return
    odds = own_odds(x, theta, cost, mean_cost)
    p = sigmoid(odds)
    propensity = max(1.0 if odds >= 0.0 else p, 0.05)
    step = parameter * (amount * (y - cost)) * p * (1.0 - p) / propensity
    for j in range(x.size):
        theta[j] += step * x[j]
