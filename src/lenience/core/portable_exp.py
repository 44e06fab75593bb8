"""e^x with the same bits on every machine.

The exponential of the C library differs in the last bit between processors and versions. A model's state is hashed
after every label, and another machine must be able to repeat the computation, so its updates use only operations that
IEEE 754 defines exactly: sums, products, quotients, square roots and powers of 2. Here x = k log 2 + r with
|r| ≤ ½ log 2, and e^r is its Taylor polynomial of degree 13. The error is about one unit in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from lenience.core.compiled import exactly_compiled

# log 2 in two parts: the first has trailing zeros, so that its product with k is exact.
LOG2_HIGH, LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
PER_LOG2 = 1.4426950408889634
SMALLEST, LARGEST = -708.0, 709.0  # the result is a normal number in this range


@exactly_compiled
def portable_exp(x: float) -> float:
    """Return e^x: 0 for x below −708, infinity above 709.

    >>> portable_exp(0.0), portable_exp(-1000.0), abs(portable_exp(1.0) / math.e - 1.0) < 1e-15
    (1.0, 0.0, True)
    """
    if x < SMALLEST:
        return 0.0
    if x > LARGEST:
        return math.inf
    k = math.floor(x * PER_LOG2 + 0.5)
    r = x - k * LOG2_HIGH - k * LOG2_LOW
    e = 1.0 / 6227020800.0
    e = e * r + 1.0 / 479001600.0
    e = e * r + 1.0 / 39916800.0
    e = e * r + 1.0 / 3628800.0
    e = e * r + 1.0 / 362880.0
    e = e * r + 1.0 / 40320.0
    e = e * r + 1.0 / 5040.0
    e = e * r + 1.0 / 720.0
    e = e * r + 1.0 / 120.0
    e = e * r + 1.0 / 24.0
    e = e * r + 1.0 / 6.0
    e = e * r + 0.5
    e = e * r + 1.0
    e = e * r + 1.0
    # 2^k, by its bits.
    power: float = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return e * power
