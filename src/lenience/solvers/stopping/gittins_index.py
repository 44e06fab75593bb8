"""gittins_index: for which costs a population is worth accepting, given what is known of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, TooLargeError
from lenience.core.validation import check_discount, check_tolerance, floats

MOST_WORK = 1e10  # indices × (1 − γ)^−1.5: about an hour on two cores


def gittins_index(belief: Belief, discount: float, tolerance: float = 1e-9) -> Bounds:
    """The Gittins index of a belief: accept exactly if it exceeds the cost.

    >>> print(gittins_index(Belief(2, 1), discount=0.99))
    0.869859994... ± ...
    """
    from lenience.solvers.stopping.gittins import enclose_index

    check_prior(belief, "belief")
    return enclose_index(belief.n, belief.s, check_discount(discount), check_tolerance(tolerance))


def gittins_table(
    alpha: ArrayLike, beta: ArrayLike, discount: float, tolerance: float = 1e-4
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper bounds of the indices of Beta(alpha, beta), for arrays that broadcast together.

    >>> lower, upper = gittins_table([[1], [2], [3]], [[1, 2, 3]], discount=0.9, tolerance=1e-6)
    >>> ((lower + upper) / 2).round(4)
    array([[0.7029, 0.5001, 0.3796],
           [0.8001, 0.6346, 0.5163],
           [0.8452, 0.7072, 0.601 ]])
    """
    from lenience.solvers.stopping.gittins import enclose_indices

    a, b = np.broadcast_arrays(floats("alpha", alpha), floats("beta", beta))
    if not (np.all(np.isfinite(a) & np.isfinite(b)) and np.all((a >= 0) & (b >= 0) & (a + b > 0))):
        raise InputError(("alpha", "beta"), allowed="finite numbers of at least 0 that are not both 0")
    check_work(a.size, check_discount(discount))
    pairs = [(float(x + y), float(x)) for x, y in zip(a.flat, b.flat, strict=True)]
    found = enclose_indices(pairs, check_discount(discount), check_tolerance(tolerance))
    lower = np.array([bounds.lower for bounds in found]).reshape(a.shape)
    upper = np.array([bounds.upper for bounds in found]).reshape(a.shape)
    return lower, upper


def check_work(count: int, discount: float) -> None:
    """Refuse more indices than can be computed in reasonable time."""
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
