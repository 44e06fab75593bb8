"""Formulas of the baseline rules: the acceptance probability of each, from the log-odds or from a Beta belief.

Every rule works with any model of beliefs. L is the break-even log(c/(1 − c)).

- GREEDY: accept iff p̂ > c. A burn-in accepts the first few regardless of p̂.
- EPSILON: the same, and the others with probability ε.
- THOMPSON: draw the log-odds and accept if above L: probability Φ((m − L)/√v) (Laplace's Gaussian; ``scale`` times √v).
- UCB: accept iff m + width·√v > L (GLM-UCB in the log-odds).
- OPTIMISM: pretend that x was accepted and succeeded, and accept iff it would then be above L (PLOT, Pacchiano et al.
  2021, with one pseudo-label of the given weight and the model updated instead of retrained).

Studies also compare two rules that this module has no formula for: LENIENT, the policy itself, and WITHOUT_LOOK_AHEAD,
which accepts above the threshold even where the label is not worth its cost
(:mod:`lenience.policies.features.label_worth`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.gaussian import mode_after, moments

GREEDY, EPSILON, THOMPSON, UCB, OPTIMISM, LINEAR_UCB, CONSEQUENTIAL, ALWAYS, LENIENT, WITHOUT_LOOK_AHEAD = range(10)


@compiled
def acceptance(
    rule: int,
    parameter: float,
    weights: NDArray[np.float64],
    m: NDArray[np.float64],
    v: NDArray[np.float64],
    accepted: int,
    cost: float,
) -> float:
    """Return the probability with which a rule accepts, at log-odds N(m_k, v_k) with weights w_k.

    ``accepted`` is the number of acceptances so far. UCB and OPTIMISM use the mixture's mean and variance.
    """
    if rule == ALWAYS:
        return 1.0
    break_even = math.log(cost / (1.0 - cost))
    if rule == THOMPSON:
        chance = 0.0
        for k in range(m.size):
            spread = parameter * math.sqrt(v[k])
            if spread > 0.0:
                chance += weights[k] * 0.5 * math.erfc((break_even - m[k]) / (spread * math.sqrt(2.0)))
            elif m[k] > break_even:
                chance += weights[k]
        return chance
    centre = 0.0
    for k in range(m.size):
        centre += weights[k] * m[k]
    if rule in (UCB, OPTIMISM):
        spread = 0.0
        for k in range(m.size):
            spread += weights[k] * (v[k] + (m[k] - centre) ** 2)
        hoped = centre + parameter * math.sqrt(spread) if rule == UCB else mode_after(centre, spread, 1.0, parameter)
        return 1.0 if hoped > break_even else 0.0
    p = 0.0
    for k in range(m.size):
        p += weights[k] * moments(m[k], v[k])[0]
    if p > cost:
        return 1.0
    if rule == GREEDY:
        return 1.0 if accepted < parameter else 0.0
    return parameter if rule == EPSILON else 0.0


def beta_acceptance(rule: int, parameter: float, mean: float, n: float, accepted: int, cost: float) -> float:
    """Return the same at a Beta belief, for models without log-odds.

    >>> round(beta_acceptance(THOMPSON, 1.0, 0.7, 10.0, 0, 0.8), 4)
    0.2618
    """
    if rule == THOMPSON:
        from lenience.core.belief import Belief

        size = n / parameter**2 if parameter > 0 else math.inf
        return Belief(size, min(mean * size, size)).exceeds(cost) if size < math.inf else float(mean > cost)
    if rule == UCB:
        return float(mean + parameter * math.sqrt(mean * (1.0 - mean) / (n + 1.0)) > cost)
    if rule == OPTIMISM:
        return float((mean * n + parameter) / (n + parameter) > cost)
    if rule == ALWAYS or mean > cost:
        return 1.0
    if rule == GREEDY:
        return float(accepted < parameter)
    return parameter if rule == EPSILON else 0.0
