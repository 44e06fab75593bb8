"""The leniency for "people like x": how soon a label at x pays, and what comes for free.

The homogeneous problem has one discount γ from one individual to the next. With features the next individual is not
like x, and others teach about x. Two rates, per arrival, over a reference set of M rows r (features only, no labels):

    q = max(1, Σ_{r: p̂_r ≤ c} ρ²(x, r) · min{1, e^{−(k_r/ρ² − k_x)/2}}) / M   others a label at x would help to decide
    φ = Σ_{r: p̂_r > c} ρ²(x, r) · g_r/g_x / M                                 labels at x's worth that come for free

ρ² is the likeness of x and r (:mod:`lenience.models.feature_model`). k = (p̂ − c)²/variance is the distance from the
break-even in standard errors, squared. Labels at x can resolve at most a share ρ² of the variance at r, so they would
have to move r by k_r/ρ² such errors to change its decision. Rows far below the break-even, or unlike x, hardly count.
g = 1/(n + 2) is the share of the variance that one label resolves. Rows above the break-even are accepted anyway, and
their labels teach about x without exploring. Then

    γ′ = γ q / (1 − γ + γ q + h),  h = φ g_x
    threshold = c − left · (c − c_n(γ′)),  left = √(1 + a) − √a,  a = 0.3 φ/q

γ′ is x's effective discount if people like x are a share q of the arrivals (thinning; q = 1 without features, the
segment's share with one-hot cells). h adds to the discounting because uncertainty that disappears by itself at rate h
is worth exploring only for a limited time. Moreover, where labels come for free, rejecting is not final: the policy can
wait for them and accept later. The share of the leniency that is then ``left`` is √(1 + φ/q) − √(φ/q) in the limit of
many small steps (docs/proofs.md). The factor 0.3 instead of 1 fits the problem of one population with free labels,
which has an exact solution (:mod:`research.free_labels`). With cells, and without features, φ = 0 and all of the
leniency is left. Where φ > 0, the label must also be worth its cost by a count over the reference rows, so that the
threshold is at least c − W (:mod:`lenience.policies.features.label_worth`).

Offers. If amounts and prices differ, each reference row stands for (a, c, w): the offers that such people bring, with
their shares w. Then, with 1[…] for what holds and S for the stake,

    q = Σ_r Σ_w w ρ² · min{1, e^{−(k_r(c)/ρ² − k_x(c))/2}} · 1[p̂_r ≤ c or p̂_x > c] / M
    S = the same sum with weights w a instead of w, divided by it: what people like x have at stake on average
    φ = Σ_r Σ_w w ρ² · g_r/g_x · 1[p̂_r > c ≥ p̂_x] / M

A label at x helps r in proportion to what r has at stake. A label of r comes for free where r is accepted anyway but x
is not. Where both are, the recursion for offers counts it already. The label at x is worth S · I(n, p̂, γ′) for offers
with a mean amount of 1. Where labels come for free, less leniency is left: I as a function of p̂ shrinks towards the
break-even κ that the label informs, in value and in width, to left · I(n, κ + (p̂ − κ)/left, γ′). κ is the mean of the
population's break-evens, each weighted by its amount and by the density of p there, N(p̂, p̂(1 − p̂)/(n + 1)). If all
bring the same offer, κ = c and this is the threshold above.

Late labels with offers. With m similar acceptances pending, the label is worth at most S · D(n, p̂, m), the worth of one
more pending label in the problem of people like x, who arrive at the rate qλ
(:mod:`lenience.solvers.offers.late_label_table`). This m leaves out labels that count as free already: a pending
acceptance k counts for the share w of the offers without p̂_k > c ≥ p̂_x. If all bring the same offer, S = 1 and D falls
to the expected loss c − p̂ exactly at the exposure limit of x. On cells everyone pending has p̂_k = p̂_x, so all count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled

NEGLIGIBLE = 150.0  # e^−75 and less is lost in rounding
WAITING = 0.3  # fitted to the exact solution for one population with free labels


@compiled
def own_discount(gamma: float, q: float, h: float) -> float:
    """Return γ′ = γq/(1 − γ + γq + h)."""
    return gamma * q / (1.0 - gamma + gamma * q + h)


@compiled
def left(q: float, free: float) -> float:
    """Return the share of the leniency that is left where ``free`` labels come for free per arrival."""
    a = WAITING * free / q
    return math.sqrt(1.0 + a) - math.sqrt(a)


@compiled
def lenient(cost: float, threshold: float, share: float, worth: float = math.inf) -> float:
    """Return the threshold with a share of its leniency, and never more leniency than a label is worth."""
    return cost - min(share * (cost - threshold), worth)


@compiled
def stretched(mean: float, n: float, left: float, kink: NDArray[np.float64], slope: NDArray[np.float64]) -> float:
    """Return κ + (p̂ − κ)/left, from 0 to 1: where to look up what a label is worth if a share of leniency is left."""
    if left >= 1.0:
        return mean
    variance = max(mean * (1.0 - mean) / (n + 1.0), 1e-12)
    nearest = math.inf
    for i in range(kink.size):
        nearest = min(nearest, (kink[i] - mean) ** 2)
    total = 0.0
    centre = 0.0
    for i in range(kink.size):
        weight = slope[i] * math.exp(-0.5 * ((kink[i] - mean) ** 2 - nearest) / variance)
        total += weight
        centre += weight * kink[i]
    centre /= total
    return min(max(centre + (mean - centre) / left, 0.0), 1.0)


@compiled
def explored_share(
    rate: float, mean: float, cost: NDArray[np.float64], start: NDArray[np.int64], share: NDArray[np.float64]
) -> float:
    """Return how much a pending acceptance with success rate ``rate`` counts as one that did not come for free.

    Menu k has the offers ``start[k]`` to ``start[k+1]`` − 1.
    """
    free = 0.0
    for menu in range(share.size):
        least = np.min(cost[start[menu] : start[menu + 1]])
        if rate > least >= mean:
            free += share[menu]
    return max(1.0 - free, 0.0)


@compiled
def helped(likeness: float, distance: float, own_distance: float) -> float:
    """Return how much someone below the break-even counts as one of the people like x."""
    if likeness <= 0.0:
        return 0.0
    further = distance / likeness - own_distance
    if further <= 0.0:
        return likeness
    return likeness * math.exp(-0.5 * further) if further < NEGLIGIBLE else 0.0


@compiled
def shares(
    likeness: NDArray[np.float64],
    mean: NDArray[np.float64],
    distance: NDArray[np.float64],
    resolved: NDArray[np.float64],
    own_distance: float,
    own_resolved: float,
    cost: float,
) -> tuple[float, float, float, float]:
    """Return q, h, the share of the leniency left and φ at x, from the likeness, p̂, k and g of reference rows."""
    q = 0.0
    h = 0.0
    rows = likeness.size
    for r in range(rows):
        if mean[r] > cost:
            h += likeness[r] * resolved[r]
        else:
            q += helped(likeness[r], distance[r], own_distance)
    return rates(q, h, rows, own_resolved)


@compiled
def rates(q: float, h: float, rows: int, own_resolved: float) -> tuple[float, float, float, float]:
    """Return q, h, the share of the leniency that is left and φ, from the sums over the reference rows."""
    q = min(max(q, 1.0) / rows, 1.0)
    h /= rows
    free = h / own_resolved
    return q, h, left(q, free), free


@compiled
def offer_rates(
    q: float, stake: float, h: float, rows: int, own_resolved: float
) -> tuple[float, float, float, float, float]:
    """Return q, h, the share of the leniency that is left, φ and the stake, from the sums over the reference rows."""
    # x itself counts as one of the people like x, and brings what the population brings.
    own = max(1.0 - q, 0.0)
    mean_stake = (stake + own) / (q + own)
    q, h, left, free = rates(q, h, rows, own_resolved)
    return q, h, left, free, mean_stake


@compiled
def offer_shares(
    likeness: NDArray[np.float64],
    rate: NDArray[np.float64],
    precision: NDArray[np.float64],
    resolved: NDArray[np.float64],
    mean: float,
    rough: float,
    own_precision: float,
    own_resolved: float,
    shares: NDArray[np.float64],
    stakes: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> tuple[float, float, float, float, float]:
    """Return q, h, the share of the leniency that is left, φ and the stake at x with offers.

    ``mean`` is the success rate at x, and ``rough`` the one that distances from break-evens are measured from, like
    ``rate`` of the reference rows. ``precision`` is 1/variance. ``shares``, ``stakes`` (share times amount) and
    ``costs`` have a line of offers for each reference row.
    """
    q = 0.0
    stake = 0.0
    h = 0.0
    rows = likeness.size
    for r in range(rows):
        for o in range(shares.shape[1]):
            if shares[r, o] == 0.0:
                continue
            c = costs[r, o]
            if rate[r] > c >= mean:
                h += shares[r, o] * likeness[r] * resolved[r]
            else:
                counted = helped(likeness[r], (rate[r] - c) ** 2 * precision[r], (rough - c) ** 2 * own_precision)
                q += shares[r, o] * counted
                stake += stakes[r, o] * counted
    return offer_rates(q, stake, h, rows, own_resolved)
