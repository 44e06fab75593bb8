"""Slow, obvious computations that the fast ones are tested against."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from scipy.special import betaincc


def knowing(n: float, s: float, c: float) -> float:
    """E(p − c)⁺ under Beta(s, n − s)."""
    if s <= 0 or s >= n:
        return max(s / n - c, 0.0)
    return float(s / n * betaincc(s + 1, n - s, c) - c * betaincc(s, n - s, c))


def triangle(n0: float, s0: float, c: float, gamma: float, rows: int) -> list[tuple[list[float], list[float]]]:
    """Lower and upper Ṽ at every state of the first ``rows`` rows, by a plain double loop."""
    lower = [max((s0 + j) / (n0 + rows) - c, 0.0) / (1 - gamma) for j in range(rows + 1)]
    upper = [knowing(n0 + rows, s0 + j, c) / (1 - gamma) for j in range(rows + 1)]
    result = []
    for k in range(rows - 1, -1, -1):
        low, high = [], []
        for j in range(k + 1):
            p = (s0 + j) / (n0 + k)
            low.append(p - c + gamma * (p * lower[j + 1] + (1 - p) * lower[j]))
            high.append(p - c + gamma * (p * upper[j + 1] + (1 - p) * upper[j]))
        result.append((low, high))
        lower = [max(v, 0.0) for v in low]
        upper = [max(v, 0.0) for v in high]
    return result[::-1]


def continuation(n0: float, s0: float, c: float, gamma: float, rows: int) -> tuple[float, float]:
    """Lower and upper Ṽ at (n₀, s₀) by whole rows: the triangle again, fast enough for thousands of rows."""
    j = np.arange(rows + 1)
    lower = np.maximum((s0 + j) / (n0 + rows) - c, 0.0) / (1 - gamma)
    upper = np.array([knowing(n0 + rows, s0 + i, c) for i in j]) / (1 - gamma)
    go_lower, go_upper = lower, upper
    for k in range(rows - 1, -1, -1):
        p = (s0 + j[: k + 1]) / (n0 + k)
        go_lower = p - c + gamma * (p * lower[1 : k + 2] + (1 - p) * lower[: k + 1])
        go_upper = p - c + gamma * (p * upper[1 : k + 2] + (1 - p) * upper[: k + 1])
        lower, upper = np.maximum(go_lower, 0.0), np.maximum(go_upper, 0.0)
    return float(go_lower[0]), float(go_upper[0])


def precise_continuation(n0: float, s0: float, c: float, gamma: float, rows: int) -> Any:
    """Ṽ at (n₀, s₀) in 40 digits, from the lower start: exact to γ^rows."""
    with mpmath.workdps(40):
        n, s, cost, g = (mpmath.mpf(x) for x in (n0, s0, c, gamma))
        value = [max((s + j) / (n + rows) - cost, mpmath.mpf(0)) / (1 - g) for j in range(rows + 1)]
        go = value
        for k in range(rows - 1, -1, -1):
            go = []
            for j in range(k + 1):
                p = (s + j) / (n + k)
                go.append(p - cost + g * (p * value[j + 1] + (1 - p) * value[j]))
            value = [max(v, mpmath.mpf(0)) for v in go]
        return go[0]


def horizon_value(n0: float, s0: float, c: float, gamma: float, horizon: int) -> float:
    """The best total over ``horizon`` individuals, free to reject and resume: by time and belief."""
    # value[k][j]: k accepted so far; rejecting keeps (k, j) and uses up one individual.
    value = [[0.0] * (k + 1) for k in range(horizon + 1)]
    for left in range(1, horizon + 1):
        fresh = [row[:] for row in value]
        for k in range(horizon - left + 1):
            for j in range(k + 1):
                p = (s0 + j) / (n0 + k)
                accept = p - c + gamma * (p * value[k + 1][j + 1] + (1 - p) * value[k + 1][j])
                fresh[k][j] = max(accept, gamma * value[k][j])
        value = fresh
    return value[0][0]


def late_values(
    n0: float, s0: float, c: float, arrivals: float, rate: float, resolve: float, rows: int, cap: int
) -> tuple[Any, Any, list[list[tuple[float, float]]]]:
    """Lower and upper values at (n₀, s₀) by number pending when labels come late: all states, no band, in V itself.

    The last item holds, for the first state by number pending below the cap, bounds of what accepting gains over
    rejecting.
    """
    g = arrivals / rate
    j = np.arange(rows + 1)
    good = (s0 + j) / (n0 + rows)
    lower = np.tile(np.maximum(good - c, 0.0) * g, (cap + 1, 1))
    upper = np.tile(np.array([knowing(n0 + rows, s0 + i, c) for i in j]) * g, (cap + 1, 1))
    gains: list[list[tuple[float, float]]] = []
    for k in range(rows - 1, -1, -1):
        p = (s0 + j[: k + 1]) / (n0 + k)
        late_low = p * lower[:, 1 : k + 2] + (1 - p) * lower[:, : k + 1]
        late_high = p * upper[:, 1 : k + 2] + (1 - p) * upper[:, : k + 1]
        low, high = np.empty((cap + 1, k + 1)), np.empty((cap + 1, k + 1))
        gain = []
        for m in range(cap, -1, -1):
            labels = m * resolve
            wait_low = labels * late_low[m - 1] if m else 0.0 * p
            wait_high = labels * late_high[m - 1] if m else 0.0 * p
            reject_low, reject_high = wait_low / (rate + labels), wait_high / (rate + labels)
            if m == cap:
                accept_low = (arrivals * (p - c) + wait_low) / (rate + labels)
                accept_high = (arrivals * (p - c + late_high[cap]) + wait_high) / (rate + arrivals + labels)
            else:
                accept_low = (arrivals * (p - c + low[m + 1]) + wait_low) / (rate + arrivals + labels)
                accept_high = (arrivals * (p - c + high[m + 1]) + wait_high) / (rate + arrivals + labels)
                gain.append(
                    (
                        float(low[m + 1][0] + p[0] - c - reject_high[0]),
                        float(high[m + 1][0] + p[0] - c - reject_low[0]),
                    )
                )
            low[m], high[m] = np.maximum(accept_low, reject_low), np.maximum(accept_high, reject_high)
        lower, upper, gains = low, high, [gain[::-1]]
    return lower[:, 0], upper[:, 0], gains


def precise_put(
    n0: float, s0: float, c: float, gamma: float, rows: int, finite: bool = False
) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Q and γ E Q at (n₀, s₀) in 40 digits; ``rows`` ahead nothing more is learnt, or (finite) nobody is left."""
    with mpmath.workdps(40):
        n, s, cost, g = (mpmath.mpf(x) for x in (n0, s0, c, gamma))
        zero = mpmath.mpf(0)
        put = [zero if finite else max(cost - (s + j) / (n + rows), zero) for j in range(rows + 1)]
        go = put
        for k in range(rows - 1, -1, -1):
            weight = sum(g**i for i in range(rows - k)) if finite else 1
            means = [(s + j) / (n + k) for j in range(k + 1)]
            go = [g * (p * put[j + 1] + (1 - p) * put[j]) for j, p in enumerate(means)]
            put = [max(go[j], weight * (cost - p)) for j, p in enumerate(means)]
        return put[0], go[0]


def precise_late_puts(
    n0: float, s0: float, c: float, arrivals: float, rate: float, resolve: float, rows: int, cap: int
) -> list[mpmath.mpf]:
    """Q by number pending at (n₀, s₀) in 40 digits when labels come late: all states, from the lower start."""
    with mpmath.workdps(40):
        n, s, cost, lam, r, mu = (mpmath.mpf(x) for x in (n0, s0, c, arrivals, rate, resolve))
        zero, g = mpmath.mpf(0), mpmath.mpf(arrivals) / mpmath.mpf(rate)
        last = [g * max(cost - (s + j) / (n + rows), zero) for j in range(rows + 1)]
        planes = [last] * (cap + 1)
        for k in range(rows - 1, -1, -1):
            means = [(s + j) / (n + k) for j in range(k + 1)]
            fresh: list[list[mpmath.mpf]] = [[] for _ in range(cap + 1)]
            for m in range(cap, -1, -1):
                under = planes[max(m - 1, 0)]
                for j, p in enumerate(means):
                    label = m * mu * (p * under[j + 1] + (1 - p) * under[j])
                    reject = (lam * (cost - p) + label) / (r + m * mu)
                    accept = label / (r + m * mu) if m == cap else (lam * fresh[m + 1][j] + label) / (r + lam + m * mu)
                    fresh[m].append(max(accept, reject))
            planes = fresh
        return [plane[0] for plane in planes]


def late_horizon_values(
    prior: Any, c: float, arrivals: float, rate: float, resolve: float, horizon: int, pending: int
) -> tuple[list[float], dict[tuple[int, int, int], int]]:
    """Values at a prior by number pending, and limits by (left, k, j), over ``horizon`` arrivals with late labels."""
    most = horizon + pending
    value: dict[tuple[int, int, int, int], float] = {}
    limits: dict[tuple[int, int, int], int] = {}
    for left in range(1, horizon + 1):
        for k in range(most - left, -1, -1):
            for j in range(k + 1):
                p = prior.after(k, j).mean if hasattr(prior, "after") else (prior.s + j) / (prior.n + k)
                for m in range(most - left - k + 1):
                    reject = value.get((left - 1, k, j, m), 0.0)
                    accept = p - c + value.get((left - 1, k, j, m + 1), 0.0)
                    total = arrivals * max(accept, reject)
                    if m:
                        up, down = value[left, k + 1, j + 1, m - 1], value[left, k + 1, j, m - 1]
                        total += m * resolve * (p * up + (1 - p) * down)
                    value[left, k, j, m] = total / (rate + arrivals + m * resolve)
                    if accept <= reject:
                        limits.setdefault((left, k, j), m)
                limits.setdefault((left, k, j), most - left - k + 1)
    return [value[horizon, 0, 0, m] for m in range(pending + 1)], limits


def fair_program(
    segments: list[tuple[float, float, float, float, float]],
    rates: np.ndarray[Any, np.dtype[np.float64]],
    rows: int,
    within: float | None = None,
    floors: list[float] | None = None,
    successes: bool = False,
) -> tuple[float, list[float]]:
    """The best utility and the groups' rates under a fairness constraint, over all policies at once.

    A linear program over occupation measures: the variable of a state is the discounted number of acceptances there,
    by any policy, also one that pauses or draws lots. In the last row nothing more is learnt. A segment is n, s, cost,
    discount and the weight of its value. ``rates`` has the weight of each segment in the rate of each group.
    """
    from scipy.optimize import linprog
    from scipy.sparse import lil_array, vstack

    states = [(x, k, j) for x in range(len(segments)) for k in range(rows) for j in range(k + 1)]
    place = {state: i for i, state in enumerate(states)}
    inflow = lil_array((len(states), len(states)))
    reward, arrived = np.zeros(len(states)), np.zeros(len(states))
    groups = np.zeros((rates.shape[1], len(states)))
    for (x, k, j), i in place.items():
        n, s, cost, gamma, weight = segments[x]
        mean = (s + j) / (n + k)
        reward[i] = weight * (mean - cost)
        counted = mean / (s / n) if successes else 1.0
        groups[:, i] = rates[x] * (1 - gamma) * counted
        last = k == rows - 1
        inflow[i, i] = 1 - gamma if last else 1.0
        arrived[i] = float(k == 0)
        if not last:
            inflow[place[x, k + 1, j + 1], i] -= gamma * mean
            inflow[place[x, k + 1, j], i] -= gamma * (1 - mean)
    above, limits = [], []
    for g in range(len(groups)):
        if floors is not None:
            above.append(-groups[g])
            limits.append(-floors[g])
        for h in range(len(groups)):
            if within is not None and g != h:
                above.append(groups[g] - groups[h])
                limits.append(within)
    exactly = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    program = vstack([inflow.tocsr(), *above])
    answer = linprog(-reward, program, np.append(arrived, limits), method="highs", options=exactly)
    return float(-answer.fun), [float(row @ answer.x) for row in groups]
