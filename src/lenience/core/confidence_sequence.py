"""Confidence sequences: intervals for a mean that hold at all times at once, however often somebody looks.

An ordinary 90% interval misses the mean one time in ten *at one look*. Who looks every day and stops at the first
difference is wrong far more often. A confidence sequence misses it at *any* time with probability α at most, so one may
look daily and stop when it is decided.

The sequence is the asymptotic one of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (Time-uniform central limit theory
and asymptotic confidence sequences, Annals of Statistics 2024, Theorem 2.2): with t observations of standard deviation
σ, the mean lies within

    σ·√( 2(tρ² + 1)/(t²ρ²) · log(√(tρ² + 1)/α) )

of the average. It is the boundary of Robbins' normal mixture. ρ must not depend on the data; it decides at which t the
interval is tightest. As with the central limit theorem, the probability holds in the limit of many observations.
"""

from __future__ import annotations

import math

TIGHTEST_AT = 2_000  # observations
LONGEST = 10**9  # observations that are looked ahead


def radius(observations: float, deviation: float, error: float = 0.1, tightest_at: float = TIGHTEST_AT) -> float:
    """Return how far the mean can be from the average, at any time, except with probability ``error``.

    Parameters
    ----------
    observations : float
        How many there are.
    deviation : float
        Their standard deviation.
    error : float, default 0.1
        The probability that the mean is ever outside.
    tightest_at : float, default 2000
        The number of observations at which the interval is tightest.

    Examples
    --------
    >>> [round(radius(n, 1.0), 3) for n in (100, 2_000, 100_000)]
    [0.451, 0.062, 0.01]
    """
    if observations <= 0:
        return math.inf
    mixture = (-2.0 * math.log(error) + math.log(1.0 - 2.0 * math.log(error))) / tightest_at
    grown = observations * mixture + 1.0
    return deviation * math.sqrt(2.0 * grown / (observations**2 * mixture) * math.log(math.sqrt(grown) / error))


def observations_until(difference: float, deviation: float, error: float = 0.1) -> int | None:
    """Return how many observations exclude 0 if their average stays as it is. None if a thousand million do not.

    Parameters
    ----------
    difference : float
        The average.
    deviation : float
        The standard deviation of the observations.
    error : float, default 0.1
        The probability that the mean is ever outside the interval.

    Examples
    --------
    >>> enough = observations_until(0.1, 1.0)
    >>> radius(enough, 1.0) < 0.1 <= radius(enough - 1, 1.0)
    True
    """
    low, high = 0, 1
    while radius(high, deviation, error) >= abs(difference):
        low, high = high, 2 * high
        if high > LONGEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if radius(middle, deviation, error) < abs(difference):
            high = middle
        else:
            low = middle
    return high
