"""The thresholds that are shown: a curve through certified ones, stored with a table.

A table decides, and tells a threshold only to within one observation; with a sure prior and few outcomes since that is
no telling. So c_n is found at a few belief sizes, and n (c − c_n), which changes slowly in log n, is kept as a series.
"""

from __future__ import annotations

import math
from functools import lru_cache

from lenience.objectives.discounted import Discounted
from lenience.solvers.stopping.leniency_curve import leniency_series

MOST_VOLUME = 5_000.0  # discounted individuals up to which the curve of thresholds is computed, not continued
NODES = 12
SIZE = 1_000.0  # observations up to which there is a curve: from there on one observation is little


def fitted_curve(problem: Discounted, n: float) -> tuple[list[float], float]:
    """n (c − c_n) as a series, and up to which n, for showing a threshold; decisions use the table.

    Beyond a volume it is continued in the volume's logarithm from two smaller ones: at four times it, and a cost of
    0.8, the threshold was off by 1.4 points at n = 2 and by a quarter of a point from n = 20 on.
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
