"""Late labels with a known number of arrivals: the optimum by plain dynamic programming.

With h arrivals left, m labels pending, p̂ = p̂(k, j) after k labels of which j are successes, and rates λ, μ, r of
arrivals, of each pending label and of the discount,

    (r + λ + mμ) V_h(k, j, m) = λ max{ V_{h−1}(k, j, m),  p̂ − c + V_{h−1}(k, j, m+1) } + mμ R,
    R = p̂ V_h(k+1, j+1, m−1) + (1 − p̂) V_h(k+1, j, m−1),

and V_0 = 0: labels that come after the last arrival are of no use. V is the value before the next event. Nothing is cut
off, so the recursion is exact but for rounding. It never follows more than k + m ≤ H − h accepted individuals.

States are stored by the number accepted a = k + m, then by k, then by j. With h fixed and a rising, V_h may overwrite
V_{h−1}: only a and a + 1 are read. There are about H⁴/24 updates and H³/6 numbers.

Any prior fits that gives p̂(k, j), a mixture of beliefs as well.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.compiled import compiled
from lenience.core.mixture_belief import MixtureBelief

NO_LIMIT = np.iinfo(np.int16).max  # in a table of limits: every number pending that is followed is accepted
SECONDS_AN_UPDATE = 3.3e-9  # on one core
MOST_MEMORY = 5e8  # bytes


class HorizonSolution(NamedTuple):
    """Hold the value at the prior and the exposure limits of a problem with a horizon.

    The limits of h arrivals left and k labels begin at ``starts[h] + k (k + 1)/2``, one for each number of successes.
    They are ``NO_LIMIT`` where every number pending that the solver follows is accepted.
    """

    values: list[Bounds]  # at the prior, by number pending
    limits: NDArray[np.int16]
    starts: NDArray[np.int64]
    most: int  # labels that are known or pending, at most, when no arrival is left

    def limit(self, left: int, k: int, j: int) -> int:
        """Return the limit after k labels, j of them successes, or the largest number pending that was followed."""
        limit = int(self.limits[self.starts[left] + k * (k + 1) // 2 + j])
        return limit if limit != NO_LIMIT else self.most - left - k + 1


def horizon_seconds(horizon: int, pending: int = 0) -> float:
    """Estimate the seconds of a solve on one core; infinite if it would need too much memory.

    >>> horizon_seconds(100) < 0.1, horizon_seconds(10_000)
    (True, inf)
    """
    most = horizon + pending
    if 10.0 * most**3 / 6.0 > MOST_MEMORY:
        return math.inf
    return SECONDS_AN_UPDATE * (most**4 - pending**4) / 24.0


def means_of(prior: Belief | MixtureBelief, rows: int) -> NDArray[np.float64]:
    """Return p̂ after k labels of which j are successes, at position k (k + 1)/2 + j, for k below ``rows``.

    >>> means_of(Belief(2, 1), 2)
    array([0.5       , 0.33333333, 0.66666667])
    """
    from lenience.solvers.offers.posterior_means import write_means
    from lenience.solvers.offers.solve import components

    mixture, log_start, _ = components(prior)
    numbers = np.arange(rows + 1, dtype=np.float64)
    means = np.empty(rows * (rows + 1) // 2)
    row, rest = np.empty(rows + 1), np.empty(rows + 1)
    for k in range(rows):
        write_means(k, 0, k, mixture, log_start, numbers, row, rest)
        means[k * (k + 1) // 2 : (k + 1) * (k + 2) // 2] = row[: k + 1]
    return means


def solve_late_horizon(
    prior: Belief | MixtureBelief,
    cost: float,
    arrivals: float,
    rate: float,
    resolve: float,
    horizon: int,
    pending: int = 0,
) -> HorizonSolution:
    """Solve a problem with late labels and a known number of arrivals.

    Parameters
    ----------
    prior
        What is known of the success probability at the start.
    cost
        The break-even success rate.
    arrivals, rate, resolve
        λ, r and μ per unit of time; r may be 0.
    horizon
        The number of arrivals to come.
    pending
        The largest number of labels that may be pending at the start.

    Returns
    -------
    HorizonSolution
        The values before the first arrival, and the limits.

    Examples
    --------
    >>> solution = solve_late_horizon(Belief(2, 1), 0.7, 50.0, 0.0, 10.0, horizon=100)
    >>> print(round(solution.values[0].midpoint, 4))
    3.0272
    """
    most = horizon + pending
    means = means_of(prior, most + 1)
    # Limits are needed for k ≤ pending + H − h labels when h arrivals are left.
    sizes = np.array([0] + [(most - h + 1) * (most - h + 2) // 2 for h in range(1, horizon + 1)])
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)[:-1].astype(np.int64)))
    limits = np.full(int(sizes.sum()), NO_LIMIT, dtype=np.int16)
    values = run_horizon(means, cost, arrivals, rate, resolve, horizon, pending, limits, starts)
    # Every step rounds a few times, and no value is above the number of arrivals.
    slack = 1e-15 * 8.0 * (horizon + most) * horizon
    bounds = [Bounds(max(value - slack, 0.0), value + slack) for value in values.tolist()]
    return HorizonSolution(bounds, limits, starts, most)


@compiled
def run_horizon(
    means: NDArray[np.float64],
    cost: float,
    arrivals: float,
    rate: float,
    resolve: float,
    horizon: int,
    pending: int,
    limits: NDArray[np.int16],
    starts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Run the recursion, write the limits, and return the values with 0 to ``pending`` labels pending at the start."""
    most = horizon + pending
    begin = np.zeros(most + 3, dtype=np.int64)  # where the states with a accepted begin
    for a in range(most + 2):
        begin[a + 1] = begin[a] + (a + 1) * (a + 2) // 2
    value = np.zeros(begin[most + 1])
    for h in range(1, horizon + 1):
        for a in range(most - h + 1):
            for k in range(a, -1, -1):
                m = a - k
                labels = m * resolve
                divisor = 1.0 / (rate + arrivals + labels)
                row = k * (k + 1) // 2
                here = np.uint64(begin[a] + row)
                more = np.uint64(begin[a + 1] + row)
                after = np.uint64(begin[a] + row + k + 1)
                first = np.uint64(row)
                limit = np.uint64(starts[h] + row)
                pend = np.int16(m)
                if m == 0:
                    for j in range(np.uint64(k + 1)):
                        reject = value[here + j]
                        accept = means[first + j] - cost + value[more + j]
                        limits[limit + j] = min(limits[limit + j], pend if accept <= reject else np.int16(NO_LIMIT))
                        value[here + j] = arrivals * divisor * max(accept, reject)
                else:
                    for j in range(np.uint64(k + 1)):
                        p = means[first + j]
                        reject = value[here + j]
                        accept = p - cost + value[more + j]
                        limits[limit + j] = min(limits[limit + j], pend if accept <= reject else np.int16(NO_LIMIT))
                        one = np.uint64(1)
                        label = p * value[after + j + one] + (1.0 - p) * value[after + j]
                        value[here + j] = divisor * (arrivals * max(accept, reject) + labels * label)
    return value[begin[: pending + 1]]
