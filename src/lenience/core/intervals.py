"""Confidence intervals of a success rate."""

from __future__ import annotations

import math
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


def exact_interval(successes: float, trials: float, confidence: float = 0.95) -> Bounds:
    """Compute the exact (Clopper–Pearson) interval of a success rate.

    It covers the true rate at least as often as it says, however few trials there are. The counts need not be whole: a
    weighted sample counts as its effective size (the interval of Korn and Graubard).

    Parameters
    ----------
    successes : float
        The number of successes.
    trials : float
        The number of trials. With none, the interval is from 0 to 1.
    confidence : float, default 0.95
        The probability with which the interval covers the true rate.

    Returns
    -------
    Bounds
        The lower and upper end. Without a success the lower end is 0; without a failure the upper end is 1.

    Examples
    --------
    >>> interval = exact_interval(8, 10)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.4439, 0.9748)
    """
    from scipy.special import betaincinv

    if trials <= 0:
        return Bounds(0.0, 1.0)
    tail, failures = (1.0 - confidence) / 2.0, max(trials - successes, 0.0)
    lower = float(betaincinv(successes, failures + 1.0, tail)) if successes > 0 else 0.0
    upper = float(betaincinv(successes + 1.0, failures, 1.0 - tail)) if failures > 0 else 1.0
    return Bounds(lower, upper)


def anytime_interval(successes: float, trials: float, confidence: float = 0.95) -> Bounds:
    """Compute an interval of a success rate that holds whenever the trials stopped, for whatever reason.

    A policy stops accepting when outcomes are bad. The share of successes is then too low on average, and intervals for
    a fixed number of trials miss the true rate too often. This one is a confidence sequence: the average likelihood
    over Jeffreys' prior, divided by the likelihood of the true rate, is a martingale. By Ville's inequality it ever
    reaches 1/α with probability at most α. The rates where it has not are the interval.

    Parameters
    ----------
    successes : float
        The number of successes.
    trials : float
        The number of trials. With none, the interval is from 0 to 1.
    confidence : float, default 0.95
        The probability with which all intervals of the sequence cover the true rate.

    Returns
    -------
    Bounds
        The lower and upper end. It is wider than :func:`exact_interval`.

    Examples
    --------
    >>> interval = anytime_interval(8, 10)
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.3425, 0.9906)
    """
    from scipy.optimize import brentq
    from scipy.special import betaln, xlog1py, xlogy

    if trials <= 0:
        return Bounds(0.0, 1.0)
    failures = max(trials - successes, 0.0)
    least = betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5) + math.log1p(-confidence)

    def excess(rate: float) -> float:
        return float(xlogy(successes, rate) + xlog1py(failures, -rate) - least)

    # A small part of a success or failure, in a weighted sample, may exclude no rate at all.
    best, least_rate, most_rate = successes / trials, 1e-300, 1.0 - 2.0**-53
    lower = 0.0 if excess(least_rate) >= 0 else float(brentq(excess, least_rate, best, xtol=1e-12))
    upper = 1.0 if excess(most_rate) >= 0 else float(brentq(excess, best, most_rate, xtol=1e-12))
    return Bounds(lower, upper)
