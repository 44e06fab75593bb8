"""The curve of thresholds that pages show, fitted to certified thresholds and stored with a table.

A table shows a threshold only to within one observation. With a strong prior and few new outcomes that is too coarse.
So c_n is computed at a few belief sizes, and n (c − c_n), which changes slowly in log n, is stored as a series.
"""

from __future__ import annotations

import math
from functools import lru_cache

from lenience.objectives.discounted import Discounted
from lenience.solvers.stopping.leniency_curve import leniency_series

MOST_VOLUME = 5_000.0  # discounted individuals; beyond it the curve is extrapolated, not computed
NODES = 12
SIZE = 1_000.0  # observations covered by the curve; beyond it one observation hardly matters


def fitted_curve(problem: Discounted, n: float) -> tuple[list[float], float]:
    """Return n (c − c_n) as a series and the largest n it covers, for display only: decisions use the table.

    For large volumes the curve is extrapolated in the logarithm of the volume from two smaller ones. At four times the
    largest solved volume, with a cost of 0.8, the threshold was off by 1.4 points at n = 2 and by a quarter of a point
    from n = 20 on.
    """
    if problem.discount == 0:
        return [], 0.0
    reach = max(SIZE, 4 * n)
    far = math.log(problem.volume / MOST_VOLUME)
    if far <= 0:
        return list(_series(problem, n, reach)), reach
    least, most = (Discounted(problem.cost, volume / (1 + volume)) for volume in (MOST_VOLUME / 4, MOST_VOLUME))
    pairs = zip(_series(most, n, reach), _series(least, n, reach), strict=True)
    return [a + (a - b) * far / math.log(4) for a, b in pairs], reach


@lru_cache(maxsize=256)
def _series(problem: Discounted, low: float, high: float) -> tuple[float, ...]:
    return tuple(leniency_series(problem, low, high, NODES, 5e-4))
