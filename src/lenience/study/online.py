"""The online loop, compiled: one policy with the default model meets one sequence of individuals.

It is decide, observe, decide, observe … of :class:`~lenience.policy.features.FeaturePolicy` and its rivals with
outcomes that come at once, in one kernel: a test holds it to the policies' own decisions, one by one. Chance comes from
outside (one uniform number an arrival), so that every policy meets the same arrivals, outcomes and luck.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.model.gaussian import absorb, belief_size, moments, project, sigmoid
from lenience.policy.people_like import own_discount, q_and_h, reference_rows
from lenience.policy.rules import CONSEQUENTIAL, LENIENT, LINEAR_UCB, acceptance
from lenience.solver.compiled import compiled
from lenience.solver.threshold_table import look_up


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
    mean0: NDArray[np.float64],
    covariance0: NDArray[np.float64],
    cost: float,
    gammas: NDArray[np.float64],
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    refresh: bool,
    accepted: NDArray[np.bool_],
) -> None:
    """Write who of ``order`` (rows of X, the design) is accepted, after the labels of the rows ``warm``."""
    size = X.shape[1]
    break_even = math.log(cost / (1.0 - cost))
    mean = mean0.copy()
    covariance = covariance0.copy()
    u = np.empty(size)
    # What LinUCB and consequential learning know instead.
    theta = np.zeros(size)
    inverse = np.eye(size)
    own_model = rule in (LINEAR_UCB, CONSEQUENTIAL)
    for i in warm:
        if own_model:
            learn_own(rule, parameter, X[i], y[i], cost, theta, inverse, u)
        else:
            m, v = project(X[i], mean, covariance, u)
            absorb(y[i], 1.0, m, v, u, mean, covariance)
    rows = reference.size
    R = np.empty((rows, size))
    for r in range(rows):
        R[r] = X[reference[r]]
    reference_m = np.empty(rows)
    reference_v = np.empty(rows)
    reference_rows(R, mean, covariance, reference_m, reference_v)
    oldest = 0
    taken = 0
    m = 0.0
    v = 0.0
    for t in range(order.size):
        x = X[order[t]]
        outcome = y[order[t]]
        if rule == LINEAR_UCB:
            m, v = project(x, theta, inverse, u)
            propensity = 1.0 if m + parameter * math.sqrt(v) > cost else 0.0
        elif rule == CONSEQUENTIAL:
            m = 0.0
            for j in range(size):
                m += theta[j] * x[j]
            propensity = 1.0 if m >= 0.0 else sigmoid(m)
        else:
            m, v = project(x, mean, covariance, u)
            if rule == LENIENT:
                p, variance = moments(m, v)
                propensity = 1.0
                if p <= cost:
                    q, h = q_and_h(m, v, u, R, reference_m, reference_v, cost, break_even)
                    discount = own_discount(gammas[t], q, h)
                    n = belief_size(p, variance)
                    propensity = 1.0 if p > look_up(cost, n0, n_step, g0, g_step, f, n, discount) else 0.0
            else:
                propensity = acceptance(rule, parameter, m, v, taken, cost)
        accepted[t] = chances[t] < propensity
        if accepted[t]:
            taken += 1
            if own_model:
                learn_own(rule, parameter, x, outcome, cost, theta, inverse, u)
            else:
                shift, shrink = absorb(outcome, 1.0, m, v, u, mean, covariance)
                if rule == LENIENT:
                    for r in range(rows):
                        row = R[r]
                        dot = 0.0
                        for j in range(size):
                            dot += row[j] * u[j]
                        reference_m[r] += dot * shift
                        reference_v[r] = max(reference_v[r] - dot * dot * shrink, 1e-12)
        if refresh and rule == LENIENT:
            R[oldest] = x
            reference_m[oldest], reference_v[oldest] = project(x, mean, covariance, u)
            reference_v[oldest] = max(reference_v[oldest], 1e-12)
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
    """A label for LinUCB (a ridge regression's rank-one update) or consequential learning (a gradient step)."""
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
