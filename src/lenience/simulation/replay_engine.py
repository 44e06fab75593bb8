"""The compiled online loop: one policy with the default model meets one sequence of individuals.

It performs the decide and observe steps of :class:`~lenience.policies.features.policy.FeaturePolicy` and its baselines
in one kernel, for outcomes that come at once. A test compares it with the decisions of the policies themselves. Random
numbers come from outside (one uniform number per arrival), so every policy meets the same arrivals and outcomes.
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
from lenience.policies.features.baseline_rules import (
    CONSEQUENTIAL,
    LENIENT,
    LINEAR_UCB,
    WITHOUT_LOOK_AHEAD,
    acceptance,
)
from lenience.policies.features.effective_discount import lenient, own_discount, shares
from lenience.policies.features.label_worth import counts_as, label_worth
from lenience.solvers.stopping.threshold_table import look_up


@compiled
def run_online(
    rule: int,
    parameter: float,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    order: NDArray[np.int64],
    warm: NDArray[np.int64],
    chances: NDArray[np.float64],
    reference: NDArray[np.int64],
    weights0: NDArray[np.float64],
    means0: NDArray[np.float64],
    covariances0: NDArray[np.float64],
    cost: float,
    gammas: NDArray[np.float64],
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    refresh: bool,
    full_information: bool,
    accepted: NDArray[np.bool_],
) -> None:
    """Write which arrivals of ``order`` (rows of the design X) are accepted.

    The belief given has learnt the rows ``warm``. Rules with a model of their own learn these rows here.
    ``parameter`` is the parameter of the rule; for LENIENT and WITHOUT_LOOK_AHEAD it scales the leniency (1: in full).
    With ``full_information`` the model also sees the outcomes of the rejected, which no policy does
    (:mod:`lenience.simulation.full_information`).
    """
    several, size = means0.shape
    weights = weights0.copy()
    means = means0.copy()
    covariances = covariances0.copy()
    m, v, p, s, shift, shrink = np.empty((6, several))
    U = np.empty((several, size))
    u = np.empty(size)
    # The state of LinUCB and consequential learning, which do not use the default model.
    theta = np.zeros(size)
    inverse = np.eye(size)
    own_model = rule in (LINEAR_UCB, CONSEQUENTIAL)
    explores = rule in (LENIENT, WITHOUT_LOOK_AHEAD)
    if own_model:
        for i in warm:
            learn_own(rule, parameter, X[i], y[i], cost, theta, inverse, u)
    rows = reference.size
    R = X[reference]
    columns = np.ascontiguousarray(R.T)
    reference_m, reference_v = np.empty((2, rows, several))
    dot, like, deviation, distance, resolved = np.empty((5, rows))
    costs, stakes = np.full((rows, 1), cost), np.ones((rows, 1))
    project_rows(R, means, covariances, reference_m, reference_v)
    oldest = 0
    taken = 0
    for t in range(order.size):
        x = X[order[t]]
        outcome = y[order[t]]
        if rule == LINEAR_UCB:
            centre, spread = project(x, theta, inverse, u)
            propensity = 1.0 if centre + parameter * math.sqrt(spread) > cost else 0.0
        elif rule == CONSEQUENTIAL:
            centre = 0.0
            for j in range(size):
                centre += theta[j] * x[j]
            propensity = 1.0 if centre >= 0.0 else sigmoid(centre)
        else:
            project_all(x, means, covariances, m, v, U)
            if explores:
                mean, variance = mixed(weights, m, v, p, s)
                propensity = 1.0
                if mean <= cost:
                    others = compared_rows(columns, weights, reference_m, reference_v, rows)
                    rough, spread = mixed_roughly(weights, m, v, p, s)
                    liken(others, rows, weights, v, U, p, s, rough, spread, dot, like)
                    for r in range(rows):
                        distance[r] = (others.rate[r] - cost) ** 2 / others.spread[r]
                        resolved[r] = others.spread[r] / (others.rate[r] * (1.0 - others.rate[r]) + others.spread[r])
                        deviation[r] = math.sqrt(like[r] * others.spread[r])
                    q, h, left, free = shares(
                        like, others.rate, distance, resolved, (rough - cost) ** 2 / spread,
                        spread / (rough * (1.0 - rough) + spread), cost,
                    )  # fmt: skip
                    discount = own_discount(gammas[t], q, h)
                    n = belief_size(mean, variance)
                    threshold = look_up(cost, n0, n_step, g0, g_step, f, n, discount)
                    worth = math.inf
                    if free > 0.0 and rule == LENIENT:
                        worth = label_worth(
                            deviation, others.rate, costs, stakes, counts_as(like.sum()), mean, math.sqrt(variance), n,
                            0.0, free, gammas[t],
                        )  # fmt: skip
                    propensity = 1.0 if mean > lenient(cost, threshold, parameter * left, worth) else 0.0
            else:
                propensity = acceptance(rule, parameter, weights, m, v, taken, cost)
        accepted[t] = chances[t] < propensity
        taken += accepted[t]
        if accepted[t] or full_information:
            if own_model:
                learn_own(rule, parameter, x, outcome, cost, theta, inverse, u)
            else:
                absorb_all(outcome, 1.0, m, v, U, weights, means, covariances, shift, shrink)
                if explores:
                    follow_label(columns, U, shift, shrink, reference_m, reference_v)
        if refresh and explores:
            columns[:, oldest] = x
            project_all(x, means, covariances, reference_m[oldest], reference_v[oldest], U)
            oldest = (oldest + 1) % rows


@compiled
def learn_own(
    rule: int,
    parameter: float,
    x: NDArray[np.float64],
    y: float,
    cost: float,
    theta: NDArray[np.float64],
    inverse: NDArray[np.float64],
    u: NDArray[np.float64],
) -> None:
    """Learn one label: update the ridge regression of LinUCB, or take a gradient step of consequential learning."""
    size = x.size
    if rule == LINEAR_UCB:
        m, v = project(x, theta, inverse, u)
        for i in range(size):
            theta[i] += u[i] * (y - m) / (1.0 + v)
            scaled = u[i] / (1.0 + v)
            for j in range(size):
                inverse[i, j] -= scaled * u[j]
        return
    m = 0.0
    for j in range(size):
        m += theta[j] * x[j]
    p = sigmoid(m)
    propensity = max(1.0 if m >= 0.0 else p, 0.05)
    step = parameter * (y - cost) * p * (1.0 - p) / propensity
    for j in range(size):
        theta[j] += step * x[j]
