"""What an open loan already says: it has survived to its age, and failures and successes arrive at different times.

The model. A loan succeeds with probability p. S₁(t) is the share of the successes, S₀(t) the share of the failures,
that are still open at age t. A loan that is open at age t therefore has the likelihood p S₁(t) + (1 − p) S₀(t). All
open loans of a segment change Beta(a, b) to the density

    f(p) ∝ p^(a−1) (1 − p)^(b−1) Π_i (p S₁(t_i) + (1 − p) S₀(t_i)),

and the belief after them is the Beta with the same mean and variance. A young loan (S₁ = S₀) changes nothing. If
failures come first, an old one (S₀ near 0) counts nearly as a success. The belief is computed from the known outcomes
and the ages of today: an older loan replaces what it said yesterday, and the order of the loans does not matter.

The integral. In x = log(p/(1 − p)) the density has a single peak, because (log f)′/(p(1 − p)) = a/p − b/(1 − p) +
Σ (S₁ − S₀)/(S₀ + p(S₁ − S₀)) falls in p. Newton's steps, kept inside a shrinking interval, find the peak x* and its
width σ. The trapezoidal rule in u with x = x* + σ sinh u then converges exponentially: narrow peaks and long tails both
fit on about a hundred points. The number of steps is fixed, so the same input gives the same bits on the same kind of
machine. Mean and variance are exact to 10⁻⁷, and to 10⁻⁴ in the extreme: beliefs worth less than one outcome and
thousands of open loans.

Uncertain curves. Curves that were learnt from data have ``alternatives``: equally likely curves instead of them. The
mean and variance then include the differences between the alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.validation import listed, real, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Rows = NDArray[np.float64]

Known = TypeVar("Known", Belief, MixtureBelief)

STEPS = 12  # to the peak; it need not be exact
NEGLIGIBLE = 45.0  # in logarithms: what is left out is below 10⁻¹⁹ of the peak
COARSE, FINE = 1.0, 0.1  # steps in u: to find where the density is, and to integrate
FURTHEST = 14.0  # the largest u: 600,000 widths from the peak


class OpenShares(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One pair of curves: the shares that are still open at each age of :class:`TimingCurves`.

    Parameters
    ----------
    success_open : sequence of float
        The share of the successes that are still open at each age.
    failure_open : sequence of float
        The share of the failures that are still open at each age.

    Examples
    --------
    >>> OpenShares((1.0, 0.9, 0.0), (1.0, 0.2, 0.0)).failure_open
    (1.0, 0.2, 0.0)
    """

    success_open: tuple[float, ...]
    failure_open: tuple[float, ...]

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            msgspec.structs.force_setattr(self, field, _check_shares(field, getattr(self, field)))


class TimingCurves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When outcomes arrive: the shares of the successes and of the failures that are still open at each age.

    Between two ages the shares stay those of the lower one, and after the last age those of the last one. If both
    shares are 0, a loan that is open nevertheless counts as nothing.

    Parameters
    ----------
    ages : sequence of float
        Ages in days, increasing, starting at 0.
    success_open : sequence of float
        The share of the successes still open at the end of each age: from 0 to 1, never increasing.
    failure_open : sequence of float
        The same share of the failures.
    alternatives : sequence of OpenShares
        Equally likely curves at the same ages, if the curves were learnt and are therefore uncertain.
    successes : int
        The number of successes from which the curves were learnt; 0 for curves that were given.
    failures : int
        The number of failures from which the curves were learnt.
    still_open : int
        The number of open loans from which the curves were learnt.
    unresolved : float
        The share of all loans that are open at the last age. What becomes of them cannot be learnt from the data.

    Raises
    ------
    InputError
        If ages do not increase from 0, or shares are not from 0 to 1, increase, or are not one for each age.

    Examples
    --------
    Half of the failures arrive within 90 days and all within a year; no loan is repaid before a year has passed:

    >>> curves = TimingCurves(ages=(0, 90, 365), success_open=(1, 1, 0), failure_open=(1, 0.5, 0))
    >>> curves.open_shares(100)
    (1.0, 0.5)
    """

    ages: tuple[float, ...]
    success_open: tuple[float, ...]
    failure_open: tuple[float, ...]
    alternatives: tuple[OpenShares, ...] = ()
    successes: int = 0
    failures: int = 0
    still_open: int = 0
    unresolved: float = 0.0

    def __post_init__(self) -> None:
        ages = tuple(
            real("ages", age, least=0) for age in listed("ages", self.ages, "a list of days, such as [0, 30, 365]")
        )
        if not ages or ages[0] != 0 or any(next_age <= age for age, next_age in pairwise(ages)):
            raise InputError("ages", self.ages, "days that start at 0 and increase, such as [0, 30, 365]")
        checked: dict[str, Any] = {"ages": ages}
        for field in ("success_open", "failure_open"):
            checked[field] = _check_shares(field, getattr(self, field))
        checked["alternatives"] = tuple(listed("alternatives", self.alternatives, "a list of OpenShares"))
        for pair in (self.success_open, self.failure_open):
            _check_length(pair, ages)
        for alternative in checked["alternatives"]:
            if not isinstance(alternative, OpenShares):
                raise InputError("alternatives", alternative, "OpenShares")
            _check_length(alternative.success_open, ages)
            _check_length(alternative.failure_open, ages)
        for field in ("successes", "failures", "still_open"):
            checked[field] = whole(field, getattr(self, field))
        checked["unresolved"] = real("unresolved", self.unresolved, least=0, most=1)
        for field, value in checked.items():
            msgspec.structs.force_setattr(self, field, value)

    @property
    def equally_likely(self) -> tuple[OpenShares, ...]:
        """The alternatives; without alternatives the curves themselves."""
        return self.alternatives or (OpenShares(self.success_open, self.failure_open),)

    def position(self, age: float) -> int:
        """Return the position of the last age that is not above an age.

        Parameters
        ----------
        age : float
            Days since the decision.

        Returns
        -------
        int
            A position in ``ages``.

        Examples
        --------
        >>> TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0)).position(91)
        1
        """
        from bisect import bisect_right

        return bisect_right(self.ages, real("age", age, least=0)) - 1

    def open_shares(self, age: float) -> tuple[float, float]:
        """Return the shares of the successes and of the failures that are still open at an age.

        Parameters
        ----------
        age : float
            Days since the decision.

        Returns
        -------
        tuple of float
            S₁ and S₀.

        Examples
        --------
        >>> TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0)).open_shares(90)
        (1.0, 0.5)
        """
        at = self.position(age)
        return self.success_open[at], self.failure_open[at]


def success_chance(rate: float | Belief | MixtureBelief, age: float, curves: TimingCurves) -> float:
    """Return the probability that a loan that is open at an age will succeed.

    Parameters
    ----------
    rate : float, Belief or MixtureBelief
        The success rate of the loan's segment, or what is known of it.
    age : float
        Days since the decision.
    curves : TimingCurves
        When outcomes arrive.

    Returns
    -------
    float
        The probability. It is the segment's rate if the curves say nothing about this age.

    Examples
    --------
    >>> curves = TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0))
    >>> round(success_chance(0.8, 100, curves), 3)
    0.889
    """
    p = rate.mean if isinstance(rate, Belief | MixtureBelief) else real("rate", rate, least=0, most=1)
    good, bad = curves.open_shares(age)
    total = p * good + (1.0 - p) * bad
    return p * good / total if total > 0.0 else p


def evidence_share(rate: float | Belief | MixtureBelief, age: float, curves: TimingCurves) -> float:
    """Return how much a loan that is open at an age counts, compared with a known outcome.

    This is the information (in Fisher's sense) about the success rate, as a share of that of a success if the loan
    has become more likely to succeed, and of a failure if it has become less likely.

    Parameters
    ----------
    rate : float, Belief or MixtureBelief
        The success rate of the loan's segment, or what is known of it; strictly between 0 and 1.
    age : float
        Days since the decision.
    curves : TimingCurves
        When outcomes arrive.

    Returns
    -------
    float
        A share from 0 (says nothing) to 1 (as good as a known outcome).

    Examples
    --------
    >>> curves = TimingCurves((0, 90, 180, 365), (1, 1, 1, 0), (1, 0.5, 0.01, 0))
    >>> [round(evidence_share(0.8, age, curves), 2) for age in (0, 90, 180)]
    [0.0, 0.2, 0.98]
    """
    given = rate.mean if isinstance(rate, Belief | MixtureBelief) else rate
    p = real("rate", given, above=0, below=1)
    moved = success_chance(p, age, curves) - p
    return (moved / (1.0 - p) if moved >= 0.0 else moved / p) ** 2


def mature_belief(belief: Known, open_ages: ArrayLike, curves: TimingCurves, counts: ArrayLike | None = None) -> Known:
    """Return what is known of a success rate if open loans count according to their ages.

    Parameters
    ----------
    belief : Belief or MixtureBelief
        The belief from the prior and the known outcomes. A certainty stays one.
    open_ages : array_like
        The ages of the open loans, in days. Their order does not matter.
    curves : TimingCurves
        When outcomes arrive.
    counts : array_like, optional
        The number of loans of each age; 1 by default. It need not be whole, e.g. if older loans count less.

    Returns
    -------
    Belief or MixtureBelief
        The belief with the mean and variance of the exact posterior; of a mixture each part, weighted by how well it
        predicted the open loans. ``after.n - belief.n`` is the evidence that the open loans add. It is negative if
        the loans contradict the belief, or the curves are too uncertain.

    Raises
    ------
    InputError
        If an age or a count is negative, or their numbers differ.

    Examples
    --------
    >>> curves = TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0))
    >>> after = mature_belief(Belief(10, 8), [5, 100, 200], curves)
    >>> round(after.mean, 4), round(after.n - Belief(10, 8).n, 2)
    (0.8156, 0.7)
    """
    grouped = group_open_loans(open_ages, curves, counts)
    if isinstance(belief, MixtureBelief):
        parts = [_mature(part, grouped, curves) for part in belief.beliefs]
        return belief.reweighted([part.belief for part in parts], [part.log_likelihood for part in parts])
    return _mature(belief, grouped, curves).belief


def group_open_loans(open_ages: ArrayLike, curves: TimingCurves, counts: ArrayLike | None = None) -> Rows:
    """Return the number of open loans at each age of the curves.

    Parameters
    ----------
    open_ages : array_like
        The ages of the open loans, in days.
    curves : TimingCurves
        When outcomes arrive.
    counts : array_like, optional
        The number of loans of each age; 1 by default.

    Returns
    -------
    ndarray
        One number for each of ``curves.ages``.

    Examples
    --------
    >>> group_open_loans([3, 95, 100], TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0)))
    array([1., 2., 0.])
    """
    import numpy as np

    ages = checked_numbers("open_ages", open_ages)
    weights = np.ones(ages.size) if counts is None else checked_numbers("counts", counts)
    if weights.size != ages.size:
        raise InputError.because(
            f"must have one entry for each of the {ages.size} ages, not {weights.size}",
            "counts",
            code="length_mismatch",
        )
    # Equal ages are added up in one order, so that the sum does not depend on the order of the loans.
    order = np.lexsort((weights, ages))
    at = np.searchsorted(np.array(curves.ages), ages[order], side="right") - 1
    return np.bincount(at, weights[order], minlength=len(curves.ages)).astype(np.float64)


class _Matured(NamedTuple):
    """A belief after open loans, and the logarithm of how likely they were."""

    belief: Belief
    log_likelihood: float


class _Moments(NamedTuple):
    """Mean of p and of 1 − p, variance, and log likelihood, under each pair of curves."""

    mean: Rows
    complement: Rows
    variance: Rows
    log_likelihood: Rows


def _mature(belief: Belief, counts: Rows, curves: TimingCurves) -> _Matured:
    """Match one Beta to the posterior, averaged over equally likely curves."""
    import numpy as np

    pairs = curves.equally_likely
    good = np.array([pair.success_open for pair in pairs])
    bad = np.array([pair.failure_open for pair in pairs])
    informative = (counts > 0) & (good != bad).any(axis=0)
    if belief.certain or not informative.any():
        return _Matured(belief, 0.0)
    result = _moments(belief, good[:, informative], bad[:, informative], counts[informative])
    mean, complement = float(result.mean.mean()), float(result.complement.mean())
    variance = float(result.variance.mean() + ((result.mean - mean) ** 2).mean())
    largest = float(result.log_likelihood.max())
    likelihood = largest + float(np.log(np.exp(result.log_likelihood - largest).mean()))
    n = mean * complement / variance - 1.0
    return _Matured(Belief.from_beta(mean * n, complement * n), likelihood)


def _moments(belief: Belief, good: Rows, bad: Rows, counts: Rows) -> _Moments:
    """Integrate the density under each pair of curves (rows) with open loans at each age (columns)."""
    import numpy as np
    from scipy.special import betaln, expit

    # Where both shares are 0 the loan says nothing; where one is 0 its outcome is known.
    nothing = (good == 0) & (bad == 0)
    good, bad = np.where(nothing, 1.0, good), np.where(nothing, 1.0, bad)
    known_good, known_bad = (good > 0) & (bad == 0), (good == 0) & (bad > 0)
    a = belief.alpha + (counts * known_good).sum(axis=1)
    b = belief.beta + (counts * known_bad).sum(axis=1)
    mixed = ~(known_good | known_bad)
    weight = np.where(mixed, counts, 0.0)
    certain_part = (counts * np.log(np.where(known_good, good, np.where(known_bad, bad, 1.0)))).sum(axis=1)
    good, bad = np.where(mixed, good, 1.0), np.where(mixed, bad, 1.0)
    size, total = a + b, weight.sum(axis=1)

    low, high = np.log(a / (b + total)), np.log((a + total) / b)  # all open loans fail, or all succeed
    peak = 0.5 * (low + high)
    for _ in range(STEPS):
        p = expit(peak)[:, None]
        chance = p * good / (p * good + (1.0 - p) * bad)
        pq = p * (1.0 - p)
        slope = a - size * p[:, 0] + (weight * (chance - p)).sum(axis=1)
        curvature = size * pq[:, 0] + (weight * (pq - chance * (1.0 - chance))).sum(axis=1)
        low, high = np.where(slope > 0.0, peak, low), np.where(slope > 0.0, high, peak)
        newton = peak + slope / np.where(curvature > 0.0, curvature, 1.0)
        safe = (curvature > 0.0) & (newton > low) & (newton < high)
        peak = np.where(safe, newton, 0.5 * (low + high))
    # Far from 0 the density can fall within one unit of x beside a long flat part: the step must see both.
    width = 1.0 / np.sqrt(np.maximum(curvature, 1.0))

    def log_density(u: Rows) -> tuple[Rows, Rows, Rows]:
        """Return p, 1 − p and the logarithm of the density in u, for each pair of curves."""
        x = peak[:, None] + width[:, None] * np.sinh(u)
        p, q = expit(x), expit(-x)
        logs = -a[:, None] * np.logaddexp(0.0, -x) - b[:, None] * np.logaddexp(0.0, x)
        open_part = np.log(p[:, None, :] * good[:, :, None] + q[:, None, :] * bad[:, :, None])
        logs += (weight[:, :, None] * open_part).sum(axis=1)
        return p, q, logs + np.log(np.cosh(u))

    coarse = np.arange(-FURTHEST, FURTHEST + COARSE, COARSE)
    _, _, logs = log_density(coarse)
    inside = np.flatnonzero((logs > logs.max(axis=1, keepdims=True) - NEGLIGIBLE).any(axis=0))
    nodes = np.arange(coarse[inside[0]] - COARSE, coarse[inside[-1]] + COARSE + FINE, FINE)
    p, q, logs = log_density(nodes)
    top = logs.max(axis=1, keepdims=True)
    mass = np.exp(logs - top)
    whole_mass = mass.sum(axis=1)
    mean, complement = (mass * p).sum(axis=1) / whole_mass, (mass * q).sum(axis=1) / whole_mass
    # Where p is close to 1, differences of 1 − p are more exact than those of p.
    distance = np.where(mean[:, None] < 0.5, p - mean[:, None], q - complement[:, None])
    variance = (mass * distance**2).sum(axis=1) / whole_mass
    likelihood = top[:, 0] + np.log(whole_mass * FINE * width) - betaln(belief.alpha, belief.beta) + certain_part
    return _Moments(mean, complement, variance, likelihood)


def _check_shares(field: str, value: object) -> tuple[float, ...]:
    """Return shares from 0 to 1 that never increase."""
    shares = tuple(real(field, share, least=0, most=1) for share in listed(field, value, "a list of shares"))
    if any(later > earlier for earlier, later in pairwise(shares)):
        raise InputError(field, value, "shares that never increase with age")
    return shares


def _check_length(shares: Sequence[float], ages: Sequence[float]) -> None:
    """Raise InputError if there is not one share for each age."""
    if len(shares) != len(ages):
        raise InputError.because(
            f"must have one share for each of the {len(ages)} ages, not {len(shares)}",
            ("success_open", "failure_open"),
            code="length_mismatch",
        )


def checked_numbers(field: str, values: ArrayLike) -> Rows:
    """Return finite numbers of at least 0 as a flat array."""
    import numpy as np

    from lenience.core.validation import floats

    numbers = floats(field, values).ravel()
    wrong = numbers[~(np.isfinite(numbers) & (numbers >= 0))]
    if wrong.size:
        raise InputError(field, float(wrong[0]), "numbers of at least 0")
    return numbers
