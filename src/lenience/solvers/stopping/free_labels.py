"""Bound from above what a free label from every arrival would add, where an arrival earns (p − κ)⁺ if p is known.

Suppose that every arrival brings its label, also where it is rejected. Then one accepts what pays at once, and the t-th
arrival earns E(p̂_t − κ)⁺, where p̂_t is the mean after t labels. With T geometric, P(T = t) = (1 − γ)γ^t, and h = E T =
γ/(1 − γ), such labels add E(p̂_T − κ)⁺ − (p̂ − κ)⁺. This bounds what the labels of accepted individuals add. It is less
than what knowing p would add, and usually far less, because learning takes time.

There are three bounds, with d = |p̂ − κ|, and the smallest counts:

- The variance of p̂_t is v t/(n + t), where v = p̂(1 − p̂)/(n + 1). Scarf's bound ½(√(variance + d²) − d) is concave in
  the variance, and the variance is concave in t. So by Jensen's inequality T may be replaced by h.
- E(κ − p̂_t)⁺ ≤ E(κ − p)⁺, which has the tail of a sub-Gaussian p (Marchal and Arbel 2017).
- Above the kink the gain is P = E(κ − p̂_T)⁺, and P = γ E P′. There γ^t exp(−β(s − κn)) is a supermartingale if
  γ(κ e^(−β(1−κ)) + (1−κ) e^(βκ)) ≤ 1. So P ≤ C exp(−βnd) if C exp(−β(s − κn)) bounds P at the first mean that is not
  above κ. That mean is κ − o/n with o ≤ 1. Scarf's bound of P is at most S + o/n there, where S is half the root of the
  variance, so C = max(S, 1/(βn)) is enough, because e^(βo) ≥ 1 + βo. Later n is larger, and the bound of P is smaller.
  Below the kink successes and failures change places.
"""

from __future__ import annotations

import math

from lenience.core.compiled import compiled


@compiled
def decay_rate(gamma: float, kink: float, rest: float) -> float:
    """Return the rate β above a kink κ, where ``rest`` is 1 − κ. Below the kink, exchange the two.

    Return 0 if γ is so close to 1 that rounding hides every positive rate.
    """
    fade = min(-math.log(gamma), 40.0) if gamma > 0.0 else 40.0
    rate = math.sqrt(2.0 * fade / max(kink * rest, 1e-6))
    # The negation also holds where an exponential overflows to infinity or 0 × infinity is undefined.
    while not gamma * (kink * math.exp(-rate * rest) + rest * math.exp(rate * kink)) * (1.0 + 1e-13) <= 1.0:
        rate *= 0.97
        if rate < 1e-8:
            return 0.0
    return rate


@compiled
def free_label_tail(n: float, kink: float, h: float, rate: float) -> float:
    """Return the factor C of the exponential bound, for a belief of size n."""
    if rate == 0.0:
        return math.inf
    deviation = math.sqrt((kink * (1.0 - kink) + 1.0 / n) * h / ((n + h) * (n + 1.0)))
    return max(0.5 * deviation, 1.0 / (rate * n))


@compiled
def free_label_part(
    above: float, spread: float, n: float, kink: float, h: float, rate_above: float, rate_below: float
) -> float:
    """Bound what free labels add at one kink, for a Beta belief with p̂ − κ = ``above`` and p̂(1 − p̂) = ``spread``.

    The bound falls with the distance from the kink, so a caller that knows p̂ only roughly gives a smaller distance.
    """
    distance = abs(above)
    variance = spread * (h / ((n + h) * (n + 1.0)))
    scarf = 0.5 * variance / (math.sqrt(variance + distance * distance) + distance + 1e-300)
    rate = rate_above if above > 0.0 else rate_below
    fall = rate * n * distance
    fall_known = 2.0 * (n + 1.0) * distance * distance
    largest = free_label_tail(n, kink, h, rate)
    if fall < fall_known:
        fall = fall_known
        largest = math.sqrt(0.125 * math.pi / (n + 1.0))
    # The exponential of a large number takes long, and only its order of magnitude matters there.
    return min(scarf, largest * (math.exp(-fall) if fall < 60.0 else 1e-26))
