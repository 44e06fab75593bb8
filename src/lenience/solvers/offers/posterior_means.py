"""Posterior means on the lattice of new outcomes, for a prior that is a mixture of Beta distributions.

After k labels, j of them successes, component i is Beta(a_i + j, b_i + k − j), and its weight is in proportion to
w_i B(a_i + j, b_i + k − j)/B(a_i, b_i).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled


@compiled
def component_weights(
    k: int, j: int, mixture: NDArray[np.float64], log_start: NDArray[np.float64], weights: NDArray[np.float64]
) -> None:
    """Write the posterior weights of the mixture's components after k labels, j of them successes."""
    count = mixture.shape[0]
    if count == 1:
        weights[0] = 1.0
        return
    largest = -math.inf
    for i in range(count):
        a = mixture[i, 1] + j
        b = mixture[i, 2] + (k - j)
        weights[i] = log_start[i] + math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        largest = max(largest, weights[i])
    total = 0.0
    for i in range(count):
        weights[i] = math.exp(weights[i] - largest)
        total += weights[i]
    for i in range(count):
        weights[i] /= total


@compiled
def write_means(
    k: int,
    first: int,
    last: int,
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    index: NDArray[np.float64],
    mean: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    """Write p̂ and 1 − p̂ of the states ``first`` to ``last`` of row k. ``index[j]`` is j as a floating-point number."""
    count = mixture.shape[0]
    if count == 1:
        s0 = mixture[0, 1]
        f0 = mixture[0, 2]
        inverse = 1.0 / (s0 + f0 + k)
        top = float(k)
        for i in range(np.uint64(first), np.uint64(last + 1)):
            mean[i] = (s0 + index[i]) * inverse
            rest[i] = (f0 + (top - index[i])) * inverse
        return
    weights = np.empty(count)
    for j in range(first, last + 1):
        if j % 64 == 0 or j == first:
            component_weights(k, j, mixture, log_start, weights)
        else:
            # One success more and one failure less multiplies each weight by (a + j − 1)/(b + k − j).
            total = 0.0
            for i in range(count):
                weights[i] *= (mixture[i, 1] + (j - 1)) / (mixture[i, 2] + (k - j))
                total += weights[i]
            for i in range(count):
                weights[i] /= total
        up = 0.0
        down = 0.0
        for i in range(count):
            n = mixture[i, 1] + mixture[i, 2] + k
            up += weights[i] * ((mixture[i, 1] + j) / n)
            down += weights[i] * ((mixture[i, 2] + (k - j)) / n)
        mean[j] = up
        rest[j] = down
