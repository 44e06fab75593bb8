"""One break-even and a prior that may be wrong: rows of the lattice of new outcomes, without an end or discounting.

After k outcomes with j successes, p̂(k, j) is the mean of the mixture. It rises with j, and one more success never
lowers it, so the least j with p̂ ≥ c rises by 0 or 1 a row.

Over H individuals without discounting, rejecting is final for any prior (Bradt, Johnson and Karlin 1956 need only that
outcomes are exchangeable). So H − k individuals are left after k acceptances, and

    V_k(j) = max(0, p̂ − c + p̂ V_{k+1}(j+1) + (1 − p̂) V_{k+1}(j)),     V_H = 0.

A policy that accepts from a number of successes on has the same recursion, with its decision for the maximum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.mixture_belief import MixtureBelief
from lenience.solvers.offers.posterior_means import write_means
from lenience.solvers.offers.solve import components


def even_rows(prior: Belief | MixtureBelief, cost: float, rows: int, strictly: bool = False) -> NDArray[np.int64]:
    """Return for k = 0, …, rows − 1 the least number of successes with p̂ ≥ cost (or p̂ > cost); k + 1 if none has."""
    mixture, log_start, _ = components(prior)
    return np.asarray(_even_rows(mixture, log_start, cost, rows, strictly))


def undiscounted_values(
    prior: Belief | MixtureBelief, cost: float, horizon: int, accept_from: NDArray[np.int64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the value of the optimum over ``horizon`` individuals, and of each policy in the lines of a table.

    Line i of ``accept_from`` has for each number of outcomes how many successes are enough. The error is rounding only.
    """
    mixture, log_start, _ = components(prior)
    values = _values(mixture, log_start, cost, horizon, np.ascontiguousarray(accept_from, dtype=np.int64))
    return float(values[0]), np.asarray(values[1:])


@compiled
def _even_rows(
    mixture: NDArray[np.float64], log_start: NDArray[np.float64], cost: float, rows: int, strictly: bool
) -> NDArray[np.int64]:
    """Walk along the boundary p̂ = cost."""
    least = np.zeros(rows, dtype=np.int64)
    numbers = np.arange(rows + 1).astype(np.float64)
    mean = np.zeros(rows + 1)
    rest = np.zeros(rows + 1)
    j = 0
    for k in range(rows):
        while j <= k:
            write_means(k, j, j, mixture, log_start, numbers, mean, rest)
            if mean[j] > cost or (mean[j] == cost and not strictly):
                break
            j += 1
        least[k] = j
    return least


@compiled
def _values(
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    cost: float,
    horizon: int,
    accept_from: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the values at the start: the optimum's, then those of the policies."""
    count = accept_from.shape[0]
    value = np.zeros((count + 1, horizon + 2))
    numbers = np.arange(horizon + 1).astype(np.float64)
    mean = np.zeros(horizon + 1)
    rest = np.zeros(horizon + 1)
    for k in range(horizon - 1, -1, -1):
        write_means(k, 0, k, mixture, log_start, numbers, mean, rest)
        for j in range(k + 1):
            later = mean[j] * value[0, j + 1] + rest[j] * value[0, j]
            value[0, j] = max(mean[j] - cost + later, 0.0)
        for i in range(count):
            own = value[i + 1]
            least = min(accept_from[i, k], k + 1)
            own[:least] = 0.0
            for j in range(least, k + 1):
                own[j] = mean[j] - cost + mean[j] * own[j + 1] + rest[j] * own[j]
    return value[:, 0].copy()
