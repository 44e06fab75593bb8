"""Bound from above what can still be gained by learning: knowing p at once, or a free label from every arrival.

Both bounds are sums over the kinks κ of φ(p) = Σ b (p − κ)⁺, the reward of an arrival where p is known.

- Knowing p adds Σ b E(p − κ)⁺ − φ(p̂).
- Suppose that every arrival brings its label, also where it is rejected. Then one accepts what pays at once, and the
  t-th arrival earns E φ(p̂_t), where p̂_t is the mean after t labels. With T geometric, P(T = t) = (1 − γ)γ^t, and h =
  E T = γ/(1 − γ), such labels add X_free = E φ(p̂_T) − φ(p̂). This is less than what knowing p adds, and usually far
  less, because learning takes time.

There are three bounds for each kink, with d = |p̂ − κ|, and the smallest counts:

- The variance of p̂_t is v t/(n + t), where v = p̂(1 − p̂)/(n + 1). Scarf's bound ½(√(variance + d²) − d) is concave in
  the variance, and the variance is concave in t. So by Jensen's inequality T may be replaced by h.
- E(κ − p̂_t)⁺ ≤ E(κ − p)⁺, which has the tail of a sub-Gaussian p (Marchal and Arbel 2017).
- Above the kink the gain is P = E(κ − p̂_T)⁺, and P = γ E P′. There γ^t exp(−β(s − κn)) is a supermartingale if
  γ(κ e^(−β(1−κ)) + (1−κ) e^(βκ)) ≤ 1. So P ≤ C exp(−βnd) if C exp(−β(s − κn)) bounds P at the first mean that is not
  above κ. That mean is κ − o/n with o ≤ 1. Scarf's bound of P is at most S + o/n there, where S is half the root of the
  variance, so C = max(S, 1/(βn)) is enough. Later n is larger, and the bound of P is smaller. Below the kink successes
  and failures change places.

For a mixture of Beta distributions, knowing the component adds more, and then each component has its own bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.offers.posterior_means import component_weights
from lenience.solvers.stopping.band import put_above


@compiled
def known_gain(
    k: int,
    j: int,
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> float:
    """Bound from above what knowing p adds: Σ b E(p − κ)⁺ − φ(p̂), at the state of k labels and j successes."""
    count = mixture.shape[0]
    total = 0.0
    if count == 1:
        n = mixture[0, 1] + mixture[0, 2] + k
        mean = (mixture[0, 1] + j) / n
        variance = mean * (1.0 - mean) / (n + 1.0)
        for m in range(kink.size):
            total += slope[m] * put_above(abs(kink[m] - mean), n, variance)
        return total * (1.0 + 1e-12)
    weights = np.empty(count)
    component_weights(k, j, mixture, log_start, weights)
    mean = 0.0
    for i in range(count):
        mean += weights[i] * (mixture[i, 1] + j) / (mixture[i, 1] + mixture[i, 2] + k)
    for m in range(kink.size):
        gain = 0.0
        for i in range(count):
            n = mixture[i, 1] + mixture[i, 2] + k
            own = (mixture[i, 1] + j) / n
            below = kink[m] - own
            gain += weights[i] * (put_above(abs(below), n, own * (1.0 - own) / (n + 1.0)) + max(below, 0.0))
        total += slope[m] * (max(gain - max(kink[m] - mean, 0.0), 0.0) + 1e-15)
    return total * (1.0 + 1e-12)


@compiled
def decay_rates(gamma: float, kink: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rate β of each kink, in the first line for means above it and in the second for means below it."""
    rates = np.zeros((2, kink.size))
    fade = min(-math.log(gamma), 40.0) if gamma > 0.0 else 40.0
    for i in range(kink.size):
        for side in range(2):
            at = kink[i] if side == 0 else 1.0 - kink[i]
            rate = math.sqrt(2.0 * fade / max(at * (1.0 - at), 1e-6))
            while gamma * (at * math.exp(-rate * (1.0 - at)) + (1.0 - at) * math.exp(rate * at)) * (1.0 + 1e-13) > 1.0:
                rate *= 0.97
            rates[side, i] = rate
    return rates


@compiled
def free_label_part(mean: float, n: float, kink: float, h: float, above: float, below: float) -> float:
    """Bound what free labels add at one kink, for a Beta belief; ``above`` and ``below`` are the kink's rates."""
    part = h / ((n + h) * (n + 1.0))
    distance = abs(kink - mean)
    variance = mean * (1.0 - mean) * part
    scarf = 0.5 * variance / (math.sqrt(variance + distance * distance) + distance + 1e-300)
    rate = above if mean > kink else below
    fall = rate * n * distance
    fall_known = 2.0 * (n + 1.0) * distance * distance
    largest = max(0.5 * math.sqrt((kink * (1.0 - kink) + 1.0 / n) * part), 1.0 / (rate * n))
    if fall < fall_known:
        fall = fall_known
        largest = math.sqrt(0.125 * math.pi / (n + 1.0))
    # The exponential of a large number takes long, and only its order of magnitude matters there.
    return min(scarf, largest * (math.exp(-fall) if fall < 60.0 else 1e-26))


@compiled
def free_label_gain(
    k: int,
    j: int,
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    h: float,
    rates: NDArray[np.float64],
) -> float:
    """Bound X_free from above at the state of k labels and j successes; ``rates`` are from :func:`decay_rates`."""
    count = mixture.shape[0]
    total = 0.0
    if count == 1:
        n = mixture[0, 1] + mixture[0, 2] + k
        mean = (mixture[0, 1] + j) / n
        for m in range(kink.size):
            total += slope[m] * free_label_part(mean, n, kink[m], h, rates[0, m], rates[1, m])
        return total * (1.0 + 1e-12)
    weights = np.empty(count)
    component_weights(k, j, mixture, log_start, weights)
    mean = 0.0
    for i in range(count):
        mean += weights[i] * (mixture[i, 1] + j) / (mixture[i, 1] + mixture[i, 2] + k)
    for m in range(kink.size):
        gain = 0.0
        for i in range(count):
            n = mixture[i, 1] + mixture[i, 2] + k
            own = (mixture[i, 1] + j) / n
            part = free_label_part(own, n, kink[m], h, rates[0, m], rates[1, m])
            gain += weights[i] * (part + max(kink[m] - own, 0.0))
        total += slope[m] * (max(gain - max(kink[m] - mean, 0.0), 0.0) + 1e-15)
    return total * (1.0 + 1e-12)
