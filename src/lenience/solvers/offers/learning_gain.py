"""Bound from above what can still be gained by learning: knowing p at once, or a free label from every arrival.

Both bounds are sums over the kinks κ of φ(p) = Σ b (p − κ)⁺, the reward of an arrival where p is known.

- Knowing p adds Σ b E(p − κ)⁺ − φ(p̂).
- Suppose that every arrival brings its label, also where it is rejected. Then one accepts what pays at once, and the
  t-th arrival earns E φ(p̂_t), where p̂_t is the mean after t labels. With T geometric, P(T = t) = (1 − γ)γ^t, such
  labels add X_free = E φ(p̂_T) − φ(p̂).

What free labels add at one kink is bounded in :mod:`lenience.solvers.stopping.free_labels`. For a mixture of Beta
distributions, knowing the component adds more, and then each component has its own bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.offers.posterior_means import component_weights
from lenience.solvers.stopping.band import put_above
from lenience.solvers.stopping.free_labels import decay_rate, free_label_part


@compiled
def distance_above(mean: float, kink: float) -> float:
    """Return p̂ − κ, nearer to 0 by more than the rounding of p̂, because bounds fall with the distance from the kink."""
    above = mean - kink
    return math.copysign(max(abs(above) - 1e-15, 0.0), above)


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
        variance = mean * ((mixture[0, 2] + (k - j)) / n) / (n + 1.0)
        for m in range(kink.size):
            total += slope[m] * put_above(abs(distance_above(mean, kink[m])), n, variance)
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
            variance = own * ((mixture[i, 2] + (k - j)) / n) / (n + 1.0)
            part = put_above(abs(distance_above(own, kink[m])), n, variance)
            gain += weights[i] * (part + max(kink[m] - own, 0.0))
        total += slope[m] * (max(gain - max(kink[m] - mean, 0.0), 0.0) + 1e-15)
    return total * (1.0 + 1e-12)


@compiled
def decay_rates(gamma: float, kink: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rate β of each kink, in the first line for means above it and in the second for means below it."""
    rates = np.zeros((2, kink.size))
    for i in range(kink.size):
        rates[0, i] = decay_rate(gamma, kink[i], 1.0 - kink[i])
        rates[1, i] = decay_rate(gamma, 1.0 - kink[i], kink[i])
    return rates


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
    mean_error: float,
) -> float:
    """Bound X_free from above at the state of k labels and j successes; ``rates`` are from :func:`decay_rates`.

    ``mean_error`` bounds the error of a mixture's posterior mean by that of its weights.
    """
    count = mixture.shape[0]
    total = 0.0
    if count == 1:
        n = mixture[0, 1] + mixture[0, 2] + k
        mean = (mixture[0, 1] + j) / n
        spread = mean * ((mixture[0, 2] + (k - j)) / n)
        for m in range(kink.size):
            above = distance_above(mean, kink[m])
            total += slope[m] * free_label_part(above, spread, n, kink[m], h, rates[0, m], rates[1, m])
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
            spread = own * ((mixture[i, 2] + (k - j)) / n)
            above = distance_above(own, kink[m])
            part = free_label_part(above, spread, n, kink[m], h, rates[0, m], rates[1, m])
            gain += weights[i] * (part + max(kink[m] - own, 0.0))
        total += slope[m] * (max(gain - max(kink[m] - mean, 0.0), 0.0) + 1e-15 + 2.0 * mean_error)
    return total * (1.0 + 1e-12)
