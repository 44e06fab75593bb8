"""leniency_rate: how fast leniency fades with evidence.

As n grows, n (c − c_n) → B(c, γ) = Σ_{k≥1} (γ^k / k) E(kc − Bin(k, c))⁺. The reason: for large n the mean of the belief
moves like a random walk without drift, and B is the optimal stopping boundary of that walk (Spitzer's identity). De
Moivre's formula gives the expectation: E(kc − Bin(k, c))⁺ = (1 − c) m b(m; k, c), with the binomial probability b and
m = ⌊kc⌋ + 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lenience.core.errors import TooLargeError
from lenience.core.validation import check_cost, check_discount

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TERMS = 200_000_000
CHUNK = 1_000_000


def leniency_rate(cost: float, discount: float) -> float:
    """Return B(c, γ): after many observations n, the benefit of the doubt c − c_n is about B/n.

    Parameters
    ----------
    cost : float
        The break-even success rate, strictly between 0 and 1.
    discount : float
        The discount factor from one individual to the next, from 0 to below 1.

    Returns
    -------
    float
        The limit of n (c − c_n).

    Raises
    ------
    TooLargeError
        If the discount is so close to 1 that the sum has more than 200 million terms.

    Examples
    --------
    >>> round(leniency_rate(0.8, 0.99), 8)
    2.61800741
    """
    import numpy as np

    c = check_cost(cost)
    gamma = check_discount(discount)
    if gamma == 0:
        return 0.0
    # The k-th term is below γ^k √(c(1−c)/k)/2, so the terms that are left out sum to less than 1e-13.
    terms = math.ceil((30 - math.log1p(-gamma)) / -math.log(gamma))
    if terms > MOST_TERMS:
        raise TooLargeError(
            f"The sum at discount {discount!r}",
            size=terms,
            allowed_size=MOST_TERMS,
            unit="terms",
            field="discount",
            value=discount,
        )
    total = 0.0
    for start in range(1, terms + 1, CHUNK):
        k = np.arange(start, min(start + CHUNK, terms + 1), dtype=np.float64)
        m = np.floor(k * c) + 1
        total += float(np.sum(np.exp(k * math.log(gamma) + _log_binomial(k, m, c)) * (1 - c) * m / k))
    return total


def _log_binomial(k: NDArray[np.float64], m: NDArray[np.float64], c: float) -> NDArray[np.float64]:
    """Return log b(m; k, c) for m near kc. Loader's saddle-point expansion avoids cancelling large logarithms."""
    import numpy as np

    rest = np.maximum(k - m, 0.5)  # k = m is replaced at the end
    near = _stirling(k) - _stirling(m) - _stirling(rest) - _deviance(m, k * c) - _deviance(rest, k * (1 - c))
    return np.where(m == k, k * math.log(c), near + 0.5 * np.log(k / (2 * math.pi * m * rest)))


def _stirling(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the error of Stirling's approximation of log x!."""
    import numpy as np
    from scipy.special import gammaln

    small = gammaln(x + 1) - (x + 0.5) * np.log(x) + x - 0.5 * math.log(2 * math.pi)
    square = x * x
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / x
    return np.where(x < 30, small, series)


def _deviance(x: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x log(x/mean) + mean − x."""
    import numpy as np

    off = (x - mean) / mean
    return mean * ((1 + off) * np.log1p(off) - off)
