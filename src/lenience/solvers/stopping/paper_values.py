"""The paper's own computation: V^N(n, p̂) on p̂ = 0, 1/n, …, 1, for a given N, and its error.

V^N(N+1, p̂) = V*(∞, p̂) = max(p̂ − c, 0)/(1−γ), then the recursion for V* down to n = 1. It is a lower bound of V*
(Proposition 3). Started instead from the value of one who knows p, E(p − c)⁺/(1−γ), the same recursion gives an
upper bound: the difference is the error that the paper leaves to future work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import TooLargeError, refusal
from lenience.core.validation import check_cost, check_discount, listed, whole
from lenience.solvers.stopping.clairvoyant import gain_of_knowing

MOST_ROWS = 50_000


class PaperTable(msgspec.Struct, frozen=True, eq=False):
    """The rows that were asked for: ``values[n]`` is V^N(n, 0), V^N(n, 1/n), …, V^N(n, 1)."""

    N: int
    values: dict[int, np.ndarray[Any, np.dtype[np.float64]]]
    upper: dict[int, np.ndarray[Any, np.dtype[np.float64]]]
    proved_through: int  # every decision 1(Ṽ > 0) is proved optimal for n up to this

    def rates(self, n: int) -> NDArray[np.float64]:
        """The p̂ at which row n is computed."""
        return np.arange(n + 1) / n

    def error(self, n: int) -> float:
        """How far V^N(n, ·) can be from the optimum: the largest gap to the upper bound."""
        return float(np.max(self.upper[n] - self.values[n]))


def paper_values(cost: float, discount: float, rows: Iterable[int], N: int = 1000) -> PaperTable:
    """V^N(n, ·) for the n in ``rows``, N + 1 included, as in the paper's Figure 1.

    >>> table = paper_values(cost=0.8, discount=0.99, rows=[10, 100, 1001])
    >>> table.values[10].round(3)[6:]
    array([ 0.   ,  0.563,  3.92 , 10.748, 20.   ])
    >>> table.error(10) < 1e-6, table.proved_through
    (True, 746)
    """
    c, gamma = check_cost(cost), check_discount(discount)
    last = whole("N", N, least=1)
    if last > MOST_ROWS:
        raise TooLargeError(
            f"N = {last:,} means {last**2 / 2:.2g} states in full rows; at most {MOST_ROWS:,} rows are allowed "
            "(Discounted.solve computes only the band that matters and goes much further)"
        )
    wanted = sorted(set(listed("rows", rows, "a list of whole numbers")))
    for n in wanted:
        if n != whole("rows", n, least=1) or n > last + 1:
            raise refusal("rows", n, f"whole numbers from 1 to N + 1 = {last + 1}")
    good = np.arange(last + 2, dtype=np.float64)
    lower = np.maximum(good / (last + 1) - c, 0.0) / (1.0 - gamma)
    upper = gain_of_knowing(float(last + 1), good, c) / (1.0 - gamma)
    values: dict[int, NDArray[np.float64]] = {}
    uppers: dict[int, NDArray[np.float64]] = {}
    slack = 8.0 * 2.0**-53 / (1.0 - gamma) ** 2
    proved = last
    for n in range(last + 1, 0, -1):
        if n <= last:
            go_lower = step(lower, n, c, gamma)
            go_upper = step(upper, n, c, gamma)
            if np.any((go_lower - slack <= 0.0) & (go_upper + slack > 0.0)):
                proved = n - 1
            lower, upper = np.maximum(go_lower, 0.0), np.maximum(go_upper, 0.0)
        if n in wanted:
            values[n], uppers[n] = lower.copy(), upper.copy()
    return PaperTable(last, values, uppers, proved)


@compiled
def step(value: NDArray[np.float64], n: int, cost: float, discount: float) -> NDArray[np.float64]:
    """Ṽ(n, ·) from V(n+1, ·)."""
    result = np.empty(n + 1)
    for j in range(n + 1):
        p = j / n
        result[j] = p - cost + discount * (p * value[j + 1] + (1.0 - p) * value[j])
    return result
