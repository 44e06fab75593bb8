"""Enclose the root of an increasing function that rises with a slope of at least 1.

Both the threshold c_n (Ṽ as a function of p̂, by Proposition 2) and the Gittins index (−Ṽ as a function of c) are such
roots. Because of the slope, one evaluation proves bounds of the root: if the value at x is in [l, u], the root is in
[x − u, x − l]. If the sign of the value is certain, it also shows on which side of x the root is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lenience.core.bounds import Bounds

ATTEMPTS = 200


def enclose_root(
    function: Callable[[float], Bounds],
    lower: float,
    upper: float,
    guess: float,
    tolerance: float,
    spread: float = math.inf,
) -> Bounds:
    """Return bounds of the root, which is between ``lower`` and ``upper`` and likely within ``spread`` of the guess.

    >>> bounds = enclose_root(lambda x: Bounds(x + x**3 - 1, x + x**3 - 1), 0.0, 1.0, 0.5, 1e-12)
    >>> bounds.width <= 1e-12, round(bounds.midpoint, 6)
    (True, 0.682328)
    """
    x = min(max(guess, lower), upper)
    previous: tuple[float, float] | None = None
    for _ in range(ATTEMPTS):
        value = function(x)
        if value.upper <= 0.0:
            lower, upper = max(lower, x), min(upper, _up(x - value.lower))
        elif value.lower >= 0.0:
            lower, upper = max(lower, _down(x - value.upper)), min(upper, x)
        else:
            # The root is within the uncertainty of the function, so no other x gives better bounds.
            return Bounds(max(lower, _down(x - value.upper)), min(upper, _up(x - value.lower)))
        if upper - lower <= tolerance:
            break
        at, y = x, value.midpoint
        slope = 1.0
        if previous is not None and previous[0] != x:
            slope = max(1.0, (y - previous[1]) / (x - previous[0]))
        # The slope may be in the thousands. Until a second point reveals it, do not move further than the likely error.
        x -= y / slope if previous is not None else math.copysign(min(abs(y), spread), y)
        previous = (at, y)
        if not lower < x < upper:
            x = 0.5 * (lower + upper)
    return Bounds(lower, upper)


def _up(number: float) -> float:
    return math.nextafter(number, math.inf)


def _down(number: float) -> float:
    return math.nextafter(number, -math.inf)
