"""The Gittins index of a Beta belief: the cost at which the value of accepting is exactly 0.

Accepting is optimal at a belief exactly if its index exceeds the cost. Ṽ falls in c with a slope of at most −1, because
the first acceptance alone costs c. So the index is a root that :func:`lenience.solvers.stopping.root.enclose_root`
encloses. It is at least p̂, where Ṽ ≥ 0, and at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, TooLargeError
from lenience.core.validation import check_discount, check_tolerance, floats
from lenience.solvers.stopping.root import enclose_root
from lenience.solvers.stopping.solve import solve_discounted

MOST_WORK = 1e10  # indices × (1 − γ)^−1.5: about an hour on two cores


def gittins_index(belief: Belief, discount: float, tolerance: float = 1e-9) -> Bounds:
    """Return the Gittins index of a belief: accept exactly if it exceeds the cost.

    Parameters
    ----------
    belief : Belief
        What is known of the success probability.
    discount : float
        The discount factor from one individual to the next, from 0 to below 1.
    tolerance : float
        The largest error of the index.

    Returns
    -------
    Bounds
        Proved bounds of the index.

    Examples
    --------
    >>> print(gittins_index(Belief(2, 1), discount=0.99))
    0.869859994... ± ...
    """
    check_prior(belief, "belief")
    return enclose_index(belief.n, belief.s, check_discount(discount), check_tolerance(tolerance))


def gittins_table(
    alpha: ArrayLike, beta: ArrayLike, discount: float, tolerance: float = 1e-4
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the Gittins indices of Beta(alpha, beta), for arrays that broadcast together.

    Parameters
    ----------
    alpha : array_like
        The first parameters: successes, including the prior's.
    beta : array_like
        The second parameters: failures, including the prior's.
    discount : float
        The discount factor from one individual to the next, from 0 to below 1.
    tolerance : float
        The largest error of an index.

    Returns
    -------
    tuple of ndarray
        Lower and upper bounds.

    Raises
    ------
    InputError
        If a parameter is negative or not finite, or both are 0.
    TooLargeError
        If the indices would take more than about an hour.

    Examples
    --------
    >>> lower, upper = gittins_table([[1], [2], [3]], [[1, 2, 3]], discount=0.9, tolerance=1e-6)
    >>> ((lower + upper) / 2).round(4)
    array([[0.7029, 0.5001, 0.3796],
           [0.8001, 0.6346, 0.5163],
           [0.8452, 0.7072, 0.601 ]])
    """
    a, b = np.broadcast_arrays(floats("alpha", alpha), floats("beta", beta))
    if not (np.all(np.isfinite(a) & np.isfinite(b)) and np.all((a >= 0) & (b >= 0) & (a + b > 0))):
        raise InputError(("alpha", "beta"), allowed="finite numbers of at least 0 that are not both 0")
    check_work(a.size, check_discount(discount))
    pairs = [(float(x + y), float(x)) for x, y in zip(a.flat, b.flat, strict=True)]
    indices = enclose_indices(pairs, check_discount(discount), check_tolerance(tolerance))
    lower = np.array([bounds.lower for bounds in indices]).reshape(a.shape)
    upper = np.array([bounds.upper for bounds in indices]).reshape(a.shape)
    return lower, upper


def check_work(count: int, discount: float) -> None:
    """Raise TooLargeError if computing the indices would take unreasonably long."""
    if count * (1.0 - discount) ** -1.5 > MOST_WORK:
        raise TooLargeError(
            f"This request at discount {discount!r}",
            size=count,
            allowed_size=math.floor(MOST_WORK * (1.0 - discount) ** 1.5),
            unit="indices",
            field=("alpha", "beta"),
            value=count,
            hint="Compute them in several calls.",
        )


def enclose_index(n: float, s: float, discount: float, tolerance: float, guess: float | None = None) -> Bounds:
    """Return bounds of the Gittins index of Beta(s, n − s)."""
    mean = s / n
    if mean in (0.0, 1.0):
        return Bounds(mean, mean)
    least, most = math.nextafter(mean, 0.0), math.nextafter(mean, 1.0)  # s/n is rounded
    if discount == 0.0:
        return Bounds(least, most)

    def loss(cost: float) -> Bounds:
        if cost >= 1.0:
            return Bounds(1.0 - mean, 1.0 - mean)
        worth = solve_discounted(n, s, cost, discount, 1, tolerance / 4).continuation
        return Bounds(-worth.upper, -worth.lower)

    return enclose_root(loss, least, 1.0, _guess(n, mean, discount) if guess is None else guess, tolerance)


def enclose_indices(beliefs: Iterable[tuple[float, float]], discount: float, tolerance: float) -> list[Bounds]:
    """Return bounds of the indices of many beliefs (n, s), on all cores: the kernel releases Python's lock."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(lambda belief: enclose_index(belief[0], belief[1], discount, tolerance), beliefs))


def _guess(n: float, mean: float, discount: float) -> float:
    """Return the approximation of Brezzi and Lai (2002): the index of a Brownian motion with unknown drift."""
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
