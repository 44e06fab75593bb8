"""95% intervals of a rate, of the difference of two rates and of their ratio."""

from __future__ import annotations

import math

from lenience.core.bounds import Bounds
from lenience.core.intervals import wilson_interval

CONFIDENCE = 0.95


def rate_interval(hits: int, total: int) -> Bounds:
    """Compute Wilson's interval of a rate.

    >>> interval = rate_interval(8, 10)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.4902, 0.9433)
    """
    return wilson_interval(hits, total, CONFIDENCE)


def difference_interval(hits: int, total: int, other_hits: int, other_total: int) -> Bounds:
    """Compute Newcombe's interval of a rate minus another rate. It combines the Wilson intervals of the two.

    >>> interval = difference_interval(56, 70, 48, 80)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.0524, 0.3339)
    """
    if total == 0 or other_total == 0:
        return Bounds(-1.0, 1.0)
    one, other = hits / total, other_hits / other_total
    mine, theirs = rate_interval(hits, total), rate_interval(other_hits, other_total)
    return Bounds(
        one - other - math.hypot(one - mine.lower, theirs.upper - other),
        one - other + math.hypot(mine.upper - one, other - theirs.lower),
    )


def ratio_interval(hits: int, total: int, other_hits: int, other_total: int) -> Bounds:
    """Compute the interval of a rate divided by another rate, from the normal distribution of its logarithm.

    Where a side has no hits, half a hit is added to both sides, because a logarithm must be finite. SciPy's
    ``relative_risk`` uses the same method but gives no upper end there.

    >>> interval = ratio_interval(30, 100, 60, 100)
    >>> round(interval.lower, 3), round(interval.upper, 3)
    (0.356, 0.702)
    """
    from scipy.special import ndtri

    if total == 0 or other_total == 0:
        return Bounds(0.0, math.inf)
    more = 0.5 if 0 in (hits, other_hits) else 0.0
    a, n, b, m = hits + more, total + more, other_hits + more, other_total + more
    spread = float(ndtri(0.5 + 0.5 * CONFIDENCE)) * math.sqrt(max(1 / a - 1 / n + 1 / b - 1 / m, 0.0))
    middle = a / n / (b / m)
    low = 0.0 if hits == 0 else middle * math.exp(-spread)
    return Bounds(low, middle * math.exp(spread))
