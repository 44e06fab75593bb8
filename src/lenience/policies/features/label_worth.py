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
CELLS = 128  # of the table of ψ, for each standard deviation


def _tabulated() -> NDArray[np.float64]:
    """Return ψ(z) and its derivative −Φ(−z) at equal steps from 0 to ``FAR``, the derivative times the step."""
    z = [i / CELLS for i in range(int(FAR * CELLS) + 1)]
    tail = [0.5 * math.erfc(each / math.sqrt(2.0)) for each in z]
    density = [math.exp(-0.5 * each * each) / math.sqrt(2.0 * math.pi) for each in z]
    return np.array([[d - each * t, -t / CELLS] for each, d, t in zip(z, density, tail, strict=True)])


TABLE: NDArray[np.float64] = _tabulated()


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
    rows, offers = costs.shape
    # The rows whose decision can change at all: their distance, standard deviation and stake. Few are left.
    gaps, spreads, shares = np.empty((3, 2 * rows * offers))
    count = 0
    for r in range(rows):
        for o in range(offers):
            if stakes[r, o] <= 0.0:
                continue
            gap = abs(rate[r] - costs[r, o])
            if gap < FAR * deviation[r]:
                gaps[count], spreads[count], shares[count] = gap, deviation[r], stakes[r, o]
                count += 1
            if own > 0.0:
                gap, stake = abs(mean - costs[r, o]), own / rows * stakes[r, o]
                if count > 0 and gaps[count - 1] == gap and spreads[count - 1] == own_deviation:
                    shares[count - 1] += stake  # the same break-even as in the line before
                elif gap < FAR * own_deviation:
                    gaps[count], spreads[count], shares[count] = gap, own_deviation, stake
                    count += 1
    if count == 0:
        return 0.0
    total = np.zeros(BATCHES.size)
    for i in range(TIMES.size):
        anyway = pending + free * TIMES[i] * coming
        before = gained(gaps, spreads, shares, count, math.sqrt(anyway / (n + anyway)))
        for b in range(BATCHES.size):
            labels = anyway + BATCHES[b]
            after = gained(gaps, spreads, shares, count, math.sqrt(labels / (n + labels)))
            total[b] += TIME_WEIGHTS[i] * (after - before)
    best = 0.0
    for b in range(BATCHES.size):
        best = max(best, float(total[b] / BATCHES[b]))
    return float(coming * best / rows)


@compiled
def gained(
    gaps: NDArray[np.float64],
    spreads: NDArray[np.float64],
    shares: NDArray[np.float64],
    count: int,
    resolved: float,
) -> float:
    """Return the sum of B over rows, each times its stake, if labels resolve this part of the standard deviations."""
    total = 0.0
    for r in range(count):
        total += shares[r] * changed(gaps[r], spreads[r] * resolved)
    return total


@compiled
def counts_as(likeness: float) -> float:
    """Return how many rows x itself counts as, if its likeness with the reference rows adds up to this."""
    return max(1.0 - likeness, 0.0)


@compiled
def changed(gap: float, deviation: float) -> float:
    """Return B: what a normal deviation of the estimate earns at a distance from the break-even.

    ψ is interpolated by cubic polynomials with its own values and derivatives at the nodes, to within 4·10⁻¹².
    """
    if gap >= FAR * deviation:
        return 0.0
    z = gap / deviation * CELLS
    cell = int(z)
    t = z - cell
    low, high = TABLE[cell, 0], TABLE[cell + 1, 0]
    down, next_down = TABLE[cell, 1], TABLE[cell + 1, 1]
    rise = high - low
    bend, twist = 3.0 * rise - 2.0 * down - next_down, down + next_down - 2.0 * rise
    return float(deviation * (low + t * (down + t * (bend + t * twist))))
