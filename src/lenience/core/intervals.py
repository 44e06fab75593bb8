"""Confidence intervals of a success rate."""

from __future__ import annotations

from functools import lru_cache

from lenience.core.bounds import Bounds


@lru_cache(maxsize=16_384)
def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Bounds:
    """Compute Wilson's score interval of a success rate with SciPy.

    Parameters
    ----------
    successes : int
        The number of successes.
    trials : int
        The number of trials. With none, the interval is from 0 to 1.
    confidence : float, default 0.95
        The probability with which the interval covers the true rate.

    Returns
    -------
    Bounds
        The lower and upper end. Without a success the lower end is 0; without a failure the upper end is 1.

    Examples
    --------
    >>> interval = wilson_interval(8, 10)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.4902, 0.9433)
    """
    from scipy.stats import binomtest

    if trials == 0:
        return Bounds(0.0, 1.0)
    # The interval does not depend on the tested rate. SciPy computes the p-value eagerly, and at the observed rate
    # it knows it without a search, which makes the call several times faster.
    result = binomtest(successes, trials, successes / trials)
    ends = result.proportion_ci(confidence, method="wilson")
    return Bounds(float(ends.low), float(ends.high))
