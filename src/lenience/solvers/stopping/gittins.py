"""The Gittins index of a Beta belief: the cost at which accepting is worth exactly nothing.

One accepts at a belief exactly if its index exceeds the cost. Ṽ falls in c with a slope of at most −1 (the first
acceptance alone costs c), so the index is a root that :func:`lenience.solvers.stopping.root.enclose_root` encloses;
it is at least p̂, where Ṽ ≥ 0, and at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

from lenience.core.bounds import Bounds
from lenience.solvers.stopping.root import enclose_root
from lenience.solvers.stopping.solve import solve_discounted


def enclose_index(n: float, s: float, discount: float, tolerance: float, guess: float | None = None) -> Bounds:
    """Bounds of the Gittins index of Beta(s, n − s)."""
    mean = s / n
    if mean in (0.0, 1.0):
        return Bounds(mean, mean)
    least, most = math.nextafter(mean, 0.0), math.nextafter(mean, 1.0)  # s/n is rounded
    if discount == 0.0:
        return Bounds(least, most)

    def loss(cost: float) -> Bounds:
        if cost >= 1.0:
            return Bounds(1.0 - mean, 1.0 - mean)
        found = solve_discounted(n, s, cost, discount, 1, tolerance / 4).continuation
        return Bounds(-found.upper, -found.lower)

    return enclose_root(loss, least, 1.0, _guess(n, mean, discount) if guess is None else guess, tolerance)


def enclose_indices(beliefs: Iterable[tuple[float, float]], discount: float, tolerance: float) -> list[Bounds]:
    """Bounds of the indices of many beliefs (n, s), on all cores: the kernel does not hold Python's lock."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(lambda belief: enclose_index(belief[0], belief[1], discount, tolerance), beliefs))


def _guess(n: float, mean: float, discount: float) -> float:
    """Brezzi and Lai's (2002) approximation by the index of a Brownian motion with unknown drift."""
    variance = mean * (1.0 - mean)
    ratio = 1.0 / ((n + 1.0) * -math.log(discount))
    if ratio <= 0.2:
        boundary = math.sqrt(ratio / 2.0)
    elif ratio <= 1.0:
        boundary = 0.49 - 0.11 / math.sqrt(ratio)
    elif ratio <= 5.0:
        boundary = 0.63 - 0.26 / math.sqrt(ratio)
    elif ratio <= 15.0:
        boundary = 0.77 - 0.58 / math.sqrt(ratio)
    else:
        boundary = math.sqrt(2.0 * math.log(ratio) - math.log(math.log(ratio)) - math.log(16.0 * math.pi))
    guess = mean + math.sqrt(variance / (n + 1.0)) * boundary
    return min(max(guess, mean + 1e-9 * (1.0 - mean)), 1.0 - 0.05 * (1.0 - mean))
