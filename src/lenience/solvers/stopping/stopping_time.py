"""When a boundary stops: E γ^T and E γ^T p̂_T, from which a policy's acceptance, successes and value follow.

The model. From the belief (n, s) the walk is at (n + k, s + j) after k acceptances, and a step succeeds with the
probability p̂ of its belief. A boundary accepts at the states j ≥ least[k] and stops for good below. Let T be the number
of acceptances before it stops. Every arrival before T is accepted and none after it, so

    E Σ γ^i t_i     = (1 − E γ^T)/(1 − γ),                    the discounted number accepted,
    E Σ γ^i t_i y_i = (p̂ − E γ^T p̂_T)/(1 − γ),               the discounted number of successes,

the second because p̂ is a martingale: after T a policy that continued would have p̂_T successes per arrival. The value at
the cost c is the second minus c times the first.

The recursion. M₀ = E γ^T and M₁ = E γ^T p̂_T are 1 and p̂ where the boundary stops, and γ times the mean of the next
row's values elsewhere. After the last row the boundary may be any that rejects no belief with a mean above ``ceiling``.

Guarantees. The bounds hold for every such continuation, and count rounding.

- Every term is positive. A row adds a relative error of at most 8 roundings, below the 10⁻¹⁵ allowed for it.
- After the last row 0 ≤ M₁ ≤ M₀ ≤ P(p̂ ever falls to the ceiling) ≤ e^(−2(n+1)δ²), where p̂ − ceiling = δ > 0. This is
  Doob's inequality for the submartingale e^(−θp̂), because a Beta belief of size n is sub-Gaussian with the variance
  proxy 1/(4(n+1)) (Marchal and Arbel 2017). The third array, ``open_``, carries this bound back to the first row.
- M₀ does not rise with s: the walk from the larger s stays above the other and stops later. So at a fixed s it does not
  rise towards earlier rows either, and the last dropped state bounds all states above the band.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.bounds import Bounds
from lenience.core.compiled import compiled

ROUNDING = 1e-15  # relative margin per row
DROP = 1e-13  # states above the band with a smaller M₀ are dropped


class StoppingTime(NamedTuple):
    """Bounds of what is discounted away by stopping."""

    discounted: Bounds  # E γ^T: the share of the discounted future that is rejected
    mean: Bounds  # E γ^T p̂_T: its expected success rate times this share


def stopping_time(
    n: float, s: float, ceiling: float, discount: float, least: NDArray[np.int64], drop: float = DROP
) -> StoppingTime:
    """Return bounds of E γ^T and E γ^T p̂_T for a boundary from the belief (n, s).

    >>> from lenience import Belief, Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1), rows=2000)
    >>> time = stopping_time(2, 1, 0.8, 0.99, policy.accept_from)
    >>> accepted, succeeded = 1 - time.discounted.midpoint, 0.5 - time.mean.midpoint
    >>> round(accepted, 4), round((succeeded - 0.8 * accepted) / 0.01, 6)
    (0.1752, 1.029167)
    """
    share, mean, open_ = _carry_back(n, s, n - s, ceiling, discount, np.ascontiguousarray(least, np.int64), drop)
    margin = ROUNDING * (least.size + 2)
    down, up = 1.0 - margin, 1.0 + margin
    return StoppingTime(
        Bounds(share * down, min((share + open_) * up, 1.0)), Bounds(mean * down, min((mean + open_) * up, 1.0))
    )


@compiled
def _carry_back(
    n0: float, s0: float, f0: float, ceiling: float, gamma: float, least: NDArray[np.int64], drop: float
) -> tuple[float, float, float]:
    """Return lower values of M₀ and M₁ at the first state, and by how much each may be larger."""
    rows = least.size
    if least[0] > 0:
        return 1.0, s0 / n0, 0.0
    n = n0 + rows
    bottom = max(least[rows - 1], 0)
    top = bottom
    while top < rows:
        above = (s0 + top) / n - ceiling
        if above > 0.0 and math.exp(-2.0 * (n + 1.0) * above * above) < drop:
            break
        top += 1
    size = rows + 3
    index = np.arange(size).astype(np.float64)
    one = np.uint64(1)  # Offsets are unsigned, because the compiler does not vectorise the inner loop with signed ones.
    stopped, mean, open_ = np.zeros(size), np.zeros(size), np.zeros(size)
    for j in range(bottom, top + 1):
        above = (s0 + j) / n - ceiling
        open_[j] = math.exp(-2.0 * (n + 1.0) * above * above) * (1.0 + 1e-12) if above > 0.0 else 1.0
    above_band = open_[top] if top < rows else 0.0
    next_least = bottom  # No state of the last row stops.
    for k in range(rows - 1, -1, -1):
        first = max(least[k], 0)
        for j in range(first, min(next_least, k + 2)):
            stopped[j] = 1.0
            mean[j] = (s0 + j) / (n0 + (k + 1))
            open_[j] = 0.0
        top = max(top, next_least - 1)
        if top <= k:
            stopped[top + 1] = mean[top + 1] = 0.0
            open_[top + 1] = above_band
        else:
            top = k
        scale = gamma / (n0 + k)
        row = float(k)
        for j in range(np.uint64(first), np.uint64(top + 1)):
            s = s0 + index[j]
            f = (row - index[j]) + f0
            stopped[j] = (s * stopped[j + one] + f * stopped[j]) * scale
            mean[j] = (s * mean[j + one] + f * mean[j]) * scale
            open_[j] = (s * open_[j + one] + f * open_[j]) * scale
        while top > first + 2 and stopped[top] + open_[top] < drop:
            above_band = stopped[top] + open_[top]
            top -= 1
        next_least = first
    return stopped[0], mean[0], open_[0]
