"""The exact value of any policy that decides by the belief, including stochastic policies.

With acceptance probability π(n, s), the paper's equation for V^Π is

    V^π = π/(1 − γ + γπ) · (p̂ − c + γ [p̂ V^π(n+1, s+1) + (1−p̂) V^π(n+1, s)]),

a monotone contraction. Beyond the last row no policy earns more than the best policy that knows p, and none loses more
than the worst policy that knows p, which accepts exactly if p < c:

    −E(c − p)⁺/(1−γ) ≤ V^π ≤ E(p − c)⁺/(1−γ).

The recursion from both bounds therefore encloses V^π. The rounding error is absolute: at most 12 roundings per row of
numbers below 1/(1−γ). The bounds allow 16·2⁻⁵³/(1−γ)² in total, or 16·2⁻⁵³·m² with m individuals to come.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.bounds import Bounds
from lenience.core.compiled import compiled
from lenience.core.errors import TooLargeError
from lenience.core.protocols import Policy, acceptance_of
from lenience.solvers.stopping.clairvoyant import gain_of_knowing

MOST_STATES = 4e9  # about a minute on one core
UNIT = 2.0**-53


def evaluate_discounted(policy: Policy, n: float, s: float, cost: float, discount: float, tolerance: float) -> Bounds:
    """Return bounds of the policy's discounted value from the belief (n, s) on."""
    scale = 1.0 / (1.0 - discount)
    rounding = 16.0 * UNIT * scale * scale
    target = max(tolerance, 4.0 * rounding)
    rows = 1 if discount == 0.0 else math.ceil(math.log(max(scale / target, 2.0)) / -math.log(discount)) + 1
    _check_effort(rows * (rows / 2.0), f"{rows:,} rows at discount {discount!r}")
    good = s + np.arange(rows + 1, dtype=np.float64)
    gain = gain_of_knowing(n + rows, good, cost)
    upper = gain * scale * (1.0 + 1e-12) + 1e-14
    lower = (np.minimum(good / (n + rows), 1.0) - cost) * scale - upper
    for k in range(rows - 1, -1, -1):
        probability = acceptance_of(policy, n + k, good[: k + 1])
        _step_back(lower, probability, n + k, s, n - s + k, cost, discount)
        _step_back(upper, probability, n + k, s, n - s + k, cost, discount)
    return Bounds(float(lower[0]) - rounding, float(upper[0]) + rounding)


def evaluate_horizon(policy: Policy, n: float, s: float, cost: float, discount: float, horizon: int) -> Bounds:
    """Return bounds of the policy's value over ``horizon`` individuals from the belief (n, s) on.

    A policy that never randomises accepts every individual until it stops for good, so the states (accepted, successes)
    form a triangle. If it randomises, the time differs from the number accepted, and the states form a pyramid.
    """
    rounding = 16.0 * UNIT * float(horizon) ** 2
    _check_effort(horizon * (horizon / 2.0), f"a horizon of {horizon:,}")
    good = s + np.arange(horizon + 1, dtype=np.float64)
    value = np.zeros(horizon + 1)
    mixed = False
    for k in range(horizon - 1, -1, -1):
        probability = acceptance_of(policy, n + k, good[: k + 1])
        mixed = mixed or bool(np.any((probability > 0.0) & (probability < 1.0)))
        if mixed:
            break
        _step_back(value, probability, n + k, s, n - s + k, cost, discount)
    if mixed:
        _check_effort(horizon**3 / 6.0, f"a stochastic policy over a horizon of {horizon:,}")
        table = np.zeros((horizon, horizon))
        for k in range(horizon):
            table[k, : k + 1] = acceptance_of(policy, n + k, good[: k + 1])
        value = _evaluate_pyramid(table, n, s, n - s, cost, discount)
    return Bounds(float(value[0]) - rounding, float(value[0]) + rounding)


@compiled
def _step_back(
    value: NDArray[np.float64],
    probability: NDArray[np.float64],
    n: float,
    s0: float,
    failures: float,
    cost: float,
    discount: float,
) -> None:
    """Compute one row of the recursion in place; ``failures`` is n − s₀."""
    for j in range(probability.size):
        accept = probability[j]
        if accept <= 0.0:
            value[j] = 0.0
            continue
        p = (s0 + j) / n
        q = (failures - j) / n
        later = discount * (p * value[j + 1] + q * value[j])
        value[j] = accept / (1.0 - discount + discount * accept) * (p - cost + later)


@compiled
def _evaluate_pyramid(
    table: NDArray[np.float64], n0: float, s0: float, f0: float, cost: float, discount: float
) -> NDArray[np.float64]:
    """Return the values of the states (number accepted k, successes j) at the first individual, for k = 0."""
    horizon = table.shape[0]
    value = np.zeros((horizon + 1, horizon + 1))
    for time in range(horizon - 1, -1, -1):
        # k ascends, so that row k + 1 still holds the values of the next time.
        for k in range(time + 1):
            n = n0 + k
            for j in range(k + 1):
                accept = table[k, j]
                p = (s0 + j) / n
                q = (f0 + (k - j)) / n
                accepted_value = p - cost + discount * (p * value[k + 1, j + 1] + q * value[k + 1, j])
                value[k, j] = accept * accepted_value + (1.0 - accept) * discount * value[k, j]
    first: NDArray[np.float64] = value[0]
    return first


def _check_effort(states: float, what: str) -> None:
    """Raise TooLargeError if an evaluation has too many states."""
    if states > MOST_STATES:
        raise TooLargeError(
            f"Evaluating {what}",
            seconds=states * 5e-9,
            allowed_seconds=MOST_STATES * 5e-9,
            size=states,
            allowed_size=MOST_STATES,
            unit="states",
            field="policy",
            hint="Simulate it instead.",
        )
