"""Thresholds c_n between belief sizes, for one problem: a Chebyshev series of n (c − c_n) in log n.

n (c − c_n) changes slowly in log n, so a short series through certified thresholds is accurate everywhere. This is the
only interpolation of thresholds at one discount: figures, the service and the forgetting policy all use it. Thresholds
at any discount come from :mod:`lenience.solvers.stopping.threshold_table`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.core.protocols import StoppingProblem

NODES = 16


def leniency_series(
    problem: StoppingProblem, low: float, high: float, nodes: int = NODES, tolerance: float = 1e-4
) -> list[float]:
    """Fit the series from one belief size to another.

    Parameters
    ----------
    problem
        The problem whose thresholds to interpolate.
    low, high
        The belief sizes n between which the series holds.
    nodes
        The number of certified thresholds, and of terms.
    tolerance
        The largest gap between the bounds of c_n at a node. A large n gets a smaller one.

    Returns
    -------
    list[float]
        The terms a_i of n (c − c_n) = Σ a_i T_i(x), with x from −1 at ``low`` to 1 at ``high``, linear in log n.
    """
    import numpy as np

    from lenience.solvers.stopping.threshold import enclose_threshold

    cost = problem.cost
    places = np.cos((2 * np.arange(nodes) + 1) * math.pi / (2 * nodes))[::-1]
    leniency: list[float] = []
    for place in places:
        size = low * math.exp((place + 1) / 2 * math.log(high / low))
        # n (c − c_n) changes slowly in log n, so guess by extrapolating the last two nodes.
        ahead = 2 * leniency[-1] - leniency[-2] if len(leniency) > 1 else None
        guess = None if ahead is None else max(cost - ahead / size, 0.5 * cost)
        close = min(tolerance, 100 * tolerance * cost * (1 - cost) / (1 + size))
        leniency.append(size * (cost - enclose_threshold(problem, size, close, guess).midpoint))
    return [float(term) for term in np.polynomial.chebyshev.chebfit(places, leniency, nodes - 1)]


def threshold_on_curve(cost: float, series: Sequence[float], low: float, high: float, n: float) -> float:
    """Return c_n on a curve. Beyond the end of the curve, n (c − c_n) is constant.

    The service stores this number with every decision and the audit computes it again, so not even the last digit may
    change.

    >>> round(threshold_on_curve(0.8, [2.0, 0.5], 1.0, 100.0, 10.0), 3)
    0.6
    """
    start, end = math.log(low), math.log(high)
    x = min(2 * (math.log(n) - start) / (end - start) - 1, 1.0)
    leniency: float = chebyshev_sum(series, x) / n
    return cost - leniency


def thresholds_on_curve(
    cost: float, series: Sequence[float], low: float, high: float, n: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return c_n on a curve at many n. Beyond the end of the curve, n (c − c_n) is constant."""
    import numpy as np

    x = np.minimum(2 * (np.log(n) - math.log(low)) / (math.log(high) - math.log(low)) - 1, 1.0)
    return np.asarray(cost - chebyshev_sum(series, x) / n, dtype=np.float64)


def chebyshev_sum(series: Sequence[float], x: Any) -> Any:
    """Return Σ a_i T_i(x) by Clenshaw's recurrence, for a number or an array.

    >>> chebyshev_sum([1.0, 2.0, 3.0], 0.5)  # 1 + 2x + 3(2x² − 1)
    0.5
    """
    b1: Any = 0.0
    b2: Any = 0.0
    for term in reversed(series[1:]):
        b1, b2 = 2 * x * b1 - b2 + term, b1
    return x * b1 - b2 + series[0]
