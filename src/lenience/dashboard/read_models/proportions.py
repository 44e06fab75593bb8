"""Proportions with their uncertainty: 95% intervals of a rate, of a difference and of a ratio of two rates."""

from __future__ import annotations

import math

from lenience.core.bounds import Bounds

Z = 1.959963984540054  # the 97.5% point of the normal law


def rate_interval(hits: int, total: int) -> Bounds:
    """Wilson's interval of a rate.

    >>> found = rate_interval(8, 10)
    >>> round(found.lower, 4), round(found.upper, 4)
    (0.4902, 0.9433)
    """
    if total == 0:
        return Bounds(0.0, 1.0)
    rate, weight = hits / total, Z * Z / total
    middle = (rate + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * math.sqrt(rate * (1 - rate) / total + weight / (4 * total))
    return Bounds(middle - half if hits > 0 else 0.0, middle + half if hits < total else 1.0)


def difference_interval(hits: int, total: int, other_hits: int, other_total: int) -> Bounds:
    """Newcombe's interval of a rate less another, made of Wilson's two.

    >>> found = difference_interval(56, 70, 48, 80)
    >>> round(found.lower, 4), round(found.upper, 4)
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
    """The interval of a rate over another, by the normal law of its logarithm.

    Half a hit is added on either side where one has none: a logarithm must be finite.

    >>> found = ratio_interval(30, 100, 60, 100)
    >>> round(found.lower, 3), round(found.upper, 3)
    (0.356, 0.702)
    """
    if total == 0 or other_total == 0:
        return Bounds(0.0, math.inf)
    more = 0.5 if 0 in (hits, other_hits) else 0.0
    a, n, b, m = hits + more, total + more, other_hits + more, other_total + more
    spread = Z * math.sqrt(max(1 / a - 1 / n + 1 / b - 1 / m, 0.0))
    middle = a / n / (b / m)
    low = 0.0 if hits == 0 else middle * math.exp(-spread)
    return Bounds(low, middle * math.exp(spread))
