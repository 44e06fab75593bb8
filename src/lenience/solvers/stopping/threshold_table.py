"""A table of thresholds c_n(c, γ) over (log n, log 1/(1 − γ)), for decisions that cannot wait for a solve.

With features, every individual has its own belief size n and its own discount, so each decision needs a different
threshold. The table holds thresholds at nodes (:mod:`lenience.solvers.stopping.threshold_column`) and interpolates

    f(n, γ) = log[ (c − c_n) / (γ c_n) ]   in   (log n, g),   g = log 1/(1 − γ),

which is smooth. As n → 0, one label reveals p: c_n → c(1 − γ)/(1 − γ + γ(1 − c)) and f → log(1 − c) + g. As n → ∞,
leniency fades like B/n, and f falls by 1 per unit of log n. A cubic spline through the nodes is tabulated on a grid
that is fine enough for bilinear look-up, so a decision costs a few multiplications.

Guarantees: none is proved. :func:`measured_error` measures the error against certified thresholds
(docs/features-method.md has the figures). Below n = 0.05 and above n = 3·10⁴ the nearest n of the table is used. Beyond
γ = 0.99999, f is continued along a straight line in g.

A table depends on its cost and its number of columns alone, not on the tables before it, so that every process decides
alike. It is kept on disk (:mod:`lenience.core.disk_cache`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.compiled import compiled
from lenience.core.disk_cache import cached_arrays
from lenience.core.validation import check_cost, real
from lenience.solvers.stopping import threshold_column
from lenience.solvers.stopping.solve import DiscountedProblem
from lenience.solvers.stopping.threshold import enclose_threshold

SMALLEST, LARGEST = 0.05, 3e4  # the belief sizes n of the table
LEAST_DISCOUNT = 0.02  # below it, leniency is γ times a function of n only
MOST_DISCOUNT = 0.99999
N_NODES = 22
G_STEP = 0.42  # distance between nodes in g
FINE = 8  # grid lines of the look-up from one node to the next


class ThresholdTable(NamedTuple):
    """f on a grid: rows are log n from ``n0`` by ``n_step``, columns are g from ``g0`` by ``g_step``."""

    cost: float
    n0: float
    n_step: float
    g0: float
    g_step: float
    f: NDArray[np.float64]

    def threshold(self, n: ArrayLike, discount: ArrayLike) -> NDArray[np.float64]:
        """Return c_n at belief sizes and discounts that broadcast.

        >>> threshold_table(0.8, 0.99).threshold([1, 10, 100], 0.99).round(2)
        array([0.22, 0.65, 0.78])
        """
        sizes, discounts = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(discount, dtype=np.float64))
        result = np.empty(sizes.shape)
        for at in np.ndindex(sizes.shape):
            result[at] = look_up(
                self.cost, self.n0, self.n_step, self.g0, self.g_step, self.f, float(sizes[at]), float(discounts[at])
            )
        return result


@compiled
def look_up(
    cost: float,
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    n: float,
    discount: float,
) -> float:
    """Return c_n by bilinear interpolation of f. It is never above the cost, and equal to it if γ = 0."""
    if discount <= 0.0:
        return cost
    rows, columns = f.shape
    i = (math.log(max(n, 1e-300)) - n0) / n_step
    i = min(max(i, 0.0), rows - 1.0)
    j = (-math.log1p(-discount) - g0) / g_step
    j = max(j, 0.0)
    row = min(int(i), rows - 2)
    column = min(int(j), columns - 2)
    s = i - row
    t = j - column  # above 1 beyond the table, where f continues as a straight line
    low = f[row, column] + s * (f[row + 1, column] - f[row, column])
    high = f[row, column + 1] + s * (f[row + 1, column + 1] - f[row, column + 1])
    return cost / (1.0 + discount * math.exp(low + t * (high - low)))


def threshold_table(cost: float, most_discount: float) -> ThresholdTable:
    """Return the table for a cost and all discounts up to a largest one, at least 0.9.

    >>> threshold_table(0.8, 0.85) is threshold_table(0.8, 0.9)
    True
    """
    c = check_cost(cost)
    highest = -math.log1p(-min(max(real("most_discount", most_discount, least=0, below=1), 0.9), MOST_DISCOUNT))
    columns = math.ceil((highest + math.log1p(-LEAST_DISCOUNT)) / G_STEP - 1e-9) + 1
    return _table(c, columns)


@lru_cache(maxsize=32)
def _table(cost: float, columns: int) -> ThresholdTable:
    """Return a table from the disk, or build it."""
    sources = (__file__, threshold_column.__file__)
    fine_n, fine_g, f = cached_arrays("thresholds", f"{cost.hex()} {columns}", sources, lambda: _build(cost, columns))
    return ThresholdTable(
        cost, float(fine_n[0]), float(fine_n[1] - fine_n[0]), float(fine_g[0]), float(fine_g[1] - fine_g[0]), f
    )


def _build(cost: float, columns: int) -> tuple[NDArray[np.float64], ...]:
    """Compute the nodes, fit the spline and tabulate it: the grid in log n, the grid in g, and f."""
    from scipy.interpolate import RectBivariateSpline

    log_n = np.linspace(math.log(SMALLEST), math.log(LARGEST), N_NODES)
    g0 = -math.log1p(-LEAST_DISCOUNT)
    f = np.array([_column(cost, g0 + G_STEP * column) for column in range(columns)]).T
    g = g0 + G_STEP * np.arange(columns)
    spline = RectBivariateSpline(log_n, g, f, s=0)
    rows, lines = FINE * (N_NODES - 1) + 1, FINE * (columns - 1) + 1
    fine_n, fine_g = np.linspace(log_n[0], log_n[-1], rows), np.linspace(g[0], g[-1], lines)
    return fine_n, fine_g, np.ascontiguousarray(spline(fine_n, fine_g))


def _column(cost: float, g: float) -> NDArray[np.float64]:
    """Return f at the nodes in n for one discount."""
    discount = -math.expm1(-g)
    sizes = np.exp(np.linspace(math.log(SMALLEST), math.log(LARGEST), N_NODES))
    thresholds = threshold_column.thresholds_at(cost, discount, sizes)
    return np.log((cost - thresholds) / (discount * thresholds))


def measured_error(cost: float, most_discount: float, points: int = 200, seed: int = 0) -> float:
    """Return the largest error of interpolated thresholds at random n and γ within the table.

    The error is relative to the smaller of c − c_n and c_n: 0.01 means 1% of the leniency.
    """
    table = threshold_table(cost, most_discount)
    rng = np.random.default_rng(seed)
    worst = 0.0
    highest = -math.log1p(-min(most_discount, MOST_DISCOUNT))
    for _ in range(points):
        n = math.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST)))
        discount = -math.expm1(-rng.uniform(-math.log1p(-LEAST_DISCOUNT), highest))
        quick = float(table.threshold(n, discount))
        scale = min(quick, cost - quick)
        proved = enclose_threshold(DiscountedProblem(cost, discount), n, 1e-4 * scale, quick).midpoint
        worst = max(worst, abs(quick - proved) / min(proved, cost - proved))
    return worst
