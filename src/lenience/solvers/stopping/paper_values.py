"""The paper's own computation: V^N(n, p̂) on p̂ = 0, 1/n, …, 1, for a given N, and its error.

It starts from V^N(N+1, p̂) = V*(∞, p̂) = max(p̂ − c, 0)/(1−γ) and applies the recursion for V* down to n = 1. The
result is a lower bound of V* (Proposition 3). The same recursion gives an upper bound if it starts from the value of
knowing p, E(p − c)⁺/(1−γ). The difference bounds the error, which the paper leaves to future work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import InputError, TooLargeError
from lenience.core.validation import check_cost, check_discount, listed, whole
from lenience.solvers.stopping.clairvoyant import gain_of_knowing

MOST_ROWS = 50_000


class PaperTable(msgspec.Struct, frozen=True, eq=False):
    """The requested rows of the paper's computation, with upper bounds.

    Parameters
    ----------
    N
        The last row of the recursion.
    values
        By n, the values V^N(n, 0), V^N(n, 1/n), …, V^N(n, 1). They are lower bounds of the optimum.
    upper
        By n, upper bounds of the optimum at the same rates.
    proved_through
        The largest n up to which every decision 1(Ṽ > 0) is proved optimal.

    Examples
    --------
    >>> paper_values(cost=0.8, discount=0.99, rows=[10], N=100).proved_through < 100
    True
    """

    N: int
    values: dict[int, np.ndarray[Any, np.dtype[np.float64]]]
    upper: dict[int, np.ndarray[Any, np.dtype[np.float64]]]
    proved_through: int

    def rates(self, n: int) -> NDArray[np.float64]:
        """Return the success rates p̂ at which row n is computed.

        Parameters
        ----------
        n : int
            The row.

        Returns
        -------
        ndarray of float
            0, 1/n, …, 1.

        Examples
        --------
        >>> paper_values(cost=0.8, discount=0.99, rows=[4], N=100).rates(4)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        return np.arange(n + 1) / n

    def error(self, n: int) -> float:
        """Return a bound of the error of V^N(n, ·): the largest gap to the upper bound.

        Parameters
        ----------
        n : int
            The row.

        Returns
        -------
        float
            The largest gap.

        Examples
        --------
        >>> paper_values(cost=0.8, discount=0.9, rows=[4], N=100).error(4) < 1e-3
        True
        """
        return float(np.max(self.upper[n] - self.values[n]))


def paper_values(cost: float, discount: float, rows: Iterable[int], N: int = 1000) -> PaperTable:
    """Return V^N(n, ·) for some n, as in the paper's Figure 1.

    Parameters
    ----------
    cost : float
        The break-even success rate, strictly between 0 and 1.
    discount : float
        The discount factor from one individual to the next, from 0 to below 1.
    rows : iterable of int
        The n to return, from 1 to N + 1.
    N : int
        The last row of the recursion.

    Returns
    -------
    PaperTable
        The rows and their errors.

    Raises
    ------
    InputError
        If a row is not a whole number from 1 to N + 1.
    TooLargeError
        If N is above 50,000.

    Examples
    --------
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
            f"A table with N = {last:,}",
            size=last,
            allowed_size=MOST_ROWS,
            unit="full rows",
            field="N",
            value=last,
            hint="Use Discounted.solve, which computes only the band that matters.",
        )
    wanted = sorted(set(listed("rows", rows, "a list of whole numbers")))
    for n in wanted:
        if n != whole("rows", n, least=1) or n > last + 1:
            raise InputError("rows", n, f"whole numbers from 1 to N + 1 = {last + 1}")
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
    """Return Ṽ(n, ·) from V(n+1, ·)."""
    result = np.empty(n + 1)
    for j in range(n + 1):
        p = j / n
        result[j] = p - cost + discount * (p * value[j + 1] + (1.0 - p) * value[j])
    return result
