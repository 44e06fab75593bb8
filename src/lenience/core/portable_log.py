"""log x with the same bits on every machine: the root of e^y = x (:mod:`lenience.core.portable_exp`)."""

from __future__ import annotations

import numpy as np

from lenience.core.compiled import exactly_compiled
from lenience.core.portable_exp import LOG2_HIGH, LOG2_LOW, portable_exp


@exactly_compiled
def portable_log(x: float) -> float:
    """Return log x for x between 1e-300 and 1e300, by three of Halley's steps, which have cubic convergence.

    >>> portable_log(1.0), round(portable_log(10.0), 12)
    (0.0, 2.302585092994)
    """
    bits = np.float64(x).view(np.int64)
    k = (bits >> 52) - 1023
    share = x / np.int64((k + 1023) << 52).view(np.float64)  # from 1 to 2
    y = k * (LOG2_HIGH + LOG2_LOW) + (share - 1.0) * (1.0 - 0.3 * (share - 1.0))
    for _ in range(3):
        e = portable_exp(y)
        y += 2.0 * (x - e) / (x + e)
    return y
