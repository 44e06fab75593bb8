"""What a decision-maker who knows p would gain: E(p − c)⁺ under a Beta belief.

E(p − c)⁺ = p̂ P(Beta(s+1, n−s) > c) − c P(Beta(s, n−s) > c), and E(c − p)⁺ = E(p − c)⁺ − (p̂ − c).
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray


@overload
def gain_of_knowing(n: float, s: float, cost: float) -> float: ...
@overload
def gain_of_knowing(n: float | NDArray[np.float64], s: NDArray[np.float64], cost: float) -> NDArray[np.float64]: ...
def gain_of_knowing(
    n: float | NDArray[np.float64], s: float | NDArray[np.float64], cost: float
) -> float | NDArray[np.float64]:
    """Return E(p − c)⁺ for beliefs (n, s), including certain ones (s = 0 or s = n).

    >>> round(gain_of_knowing(2.0, 1.0, 0.8), 12)
    0.02
    """
    from scipy.special import betainc, betaincc

    sizes, good = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
    bad = sizes - good
    mean = good / sizes
    open_ = (good > 0) & (bad > 0)
    a = np.where(open_, good, 1.0)
    b = np.where(open_, bad, 1.0)
    # Compute the smaller tail, which loses no digits; the other follows from E(p − c)⁺ − E(c − p)⁺ = p̂ − c.
    above = mean * betaincc(a + 1, b, cost) - cost * betaincc(a, b, cost)
    below = cost * betainc(a, b, cost) - mean * betainc(a + 1, b, cost)
    gain = np.where(mean < cost, above, below + (mean - cost))
    result = np.where(open_, np.maximum(gain, 0.0), np.maximum(mean - cost, 0.0))
    return float(result) if result.ndim == 0 else result
