"""What a label at x is worth for later decisions, by looking ahead over the reference rows.

The threshold c_n treats people like x as one population with one success rate. With many features this promises too
much: a label at x resolves only a part of what is unknown about others, and labels of those who are accepted anyway
would have taught much of it. So where labels come for free, the label at x must also pay by this count.

Suppose that k labels like the one at x come now, and φ such labels come for free with every arrival. After t arrivals
the estimate at a reference row r has moved by a normal deviation with variance

    τ²(j) = ρ² s_r · j/(n + j),      j = k + φt   (without exploring: j = φt)

ρ² s_r is the part of the variance at r that labels at x can resolve (:mod:`lenience.models.feature_model`), and
j/(n + j) the part of it that j labels resolve, as with counts. A row whose estimate is a distance d from the break-even
then earns more, because its decision can change, by

    B(j) = τ ψ(d/τ),      ψ(z) = φ(z) − z Φ(−z)

With N = γ/(1 − γ) individuals to come, discounted, k labels are worth V(k) = N · E_t mean_r [B_r(k + φt) − B_r(φt)],
with t exponential with mean N. One label is worth W = max_k V(k)/k: if a single label cannot change a decision, several
may. x is accepted below the break-even only if W > c − p̂. W assumes that all k labels are bought, while a policy may
stop early, so it is rather too small. ``python -m research exploration`` measures what exploring earns by this rule.

x itself counts as one reference row where the others, by their ρ², do not add up to one: like q, which is at least 1/M.

Offers. A row stands for the offers that such people bring: its gain is a(p − c), so B counts a times its share.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled

BATCHES: NDArray[np.float64] = np.array([1.0, 4.0, 16.0, 64.0])  # values of k
# Gauss–Laguerre: means over an exponential time.
_times, _weights = np.polynomial.laguerre.laggauss(3)
TIMES: NDArray[np.float64] = _times
TIME_WEIGHTS: NDArray[np.float64] = _weights
FAR = 5.0  # standard deviations from the break-even at which a decision does not change


@compiled
def label_worth(
    deviation: NDArray[np.float64],
    rate: NDArray[np.float64],
    costs: NDArray[np.float64],
    stakes: NDArray[np.float64],
    own: float,
    mean: float,
    own_deviation: float,
    n: float,
    pending: float,
    free: float,
    gamma: float,
) -> float:
    """Return W at an x with success rate ``mean``, standard deviation ``own_deviation`` and belief size n.

    ``deviation`` is ρ√s of each reference row and ``rate`` its estimate; ``costs`` and ``stakes`` (amount times share)
    have one column per offer. ``own`` is how many rows x itself counts as, which brings what the others bring.
    ``pending`` labels like x's are to come in any case, and ``free`` is φ.
    """
    if gamma <= 0.0:
        return 0.0
    coming = gamma / max(1.0 - gamma, 1e-9)
    rows = rate.size
    best = 0.0
    for b in range(BATCHES.size):
        k = BATCHES[b]
        total = 0.0
        for i in range(TIMES.size):
            without = pending + free * TIMES[i] * coming
            before, after = math.sqrt(without / (n + without)), math.sqrt((without + k) / (n + without + k))
            for r in range(rows):
                for o in range(costs.shape[1]):
                    if stakes[r, o] <= 0.0:
                        continue
                    gap = abs(rate[r] - costs[r, o])
                    gain = changed(gap, deviation[r] * after) - changed(gap, deviation[r] * before)
                    if own > 0.0:
                        gap = abs(mean - costs[r, o])
                        alone = changed(gap, own_deviation * after) - changed(gap, own_deviation * before)
                        gain += own / rows * alone
                    total += TIME_WEIGHTS[i] * stakes[r, o] * gain
        best = max(best, total / k)
    return coming * best / rows


@compiled
def counts_as(likeness: float) -> float:
    """Return how many rows x itself counts as, if its likeness with the reference rows adds up to this."""
    return max(1.0 - likeness, 0.0)


@compiled
def changed(gap: float, deviation: float) -> float:
    """Return B: what a normal deviation of the estimate earns at a distance from the break-even."""
    if gap >= FAR * deviation:
        return 0.0
    z = gap / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return deviation * (density - z * 0.5 * math.erfc(z / math.sqrt(2.0)))
