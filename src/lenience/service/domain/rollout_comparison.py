"""Compare a version that is rolled out with the active one, in profit per applicant.

The hash assigns applicants at random: applicant i to the version in rollout with probability q. Beside each decision
the log has what the other version would have decided at that moment. Where both decide the same, they earn the same,
whoever decided, so only applicants whom the versions treat differently say something about the difference. With the
profit Y of an applicant (0 if rejected), the difference of profits per applicant is the mean of

    X = Y/q  if the version in rollout decided, −Y/(1 − q) if the active version did, and 0 if both decide the same,

whatever q was at the time: the mean of X is exactly the difference, also while the rollout is ramped up. What both have
in common is C, the mean profit of applicants whom both decide the same. The profit of a version per applicant is C plus
its own part.

The interval is a confidence sequence (:mod:`lenience.core.confidence_sequence`): it holds at any time, so people may
look at it every day. An outcome that is pending counts as its expected profit, by the estimates of either version: once
all by those of the active version and once all by those of the other, and the interval covers both. Its variance, and
the error of the estimates, which is taken to be the same for all applicants of a segment, widen the interval.

Both versions learn from the outcomes of both. So the comparison is about their decisions at equal knowledge. It says
nothing about which of them would have learnt more alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.confidence_sequence import observations_until, radius
from lenience.core.formatting import count, counted
from lenience.core.money import Money

LEAST = 30  # applicants; with fewer there is no interval
LEAST_OUTCOMES = 10  # known outcomes of applicants whom the versions treat differently
ERROR = 0.1  # the probability that the interval ever misses the difference
NORMAL = 1.6449  # of a two-sided 90% interval
RolloutVerdict: TypeAlias = Literal["too_early", "same", "better", "worse"]


class Estimated(NamedTuple):
    """The expected success rate of an applicant under a version, and how many outcomes it is worth."""

    mean: float
    n: float


class RolloutApplicant(NamedTuple):
    """An applicant of a rollout. ``profit`` is what the outcome has earned, None if it is not known."""

    segment: str
    share: float  # of applicants whom the version in rollout decides, at that time
    rolled_out: bool
    differs: bool  # whether the versions decide differently
    accepted: bool
    profit: float | None
    amount: float
    cost: float
    active: Estimated
    rollout: Estimated

    @property
    def weight(self) -> float:
        """What one unit of its profit adds to the sum of X."""
        if not self.differs:
            return 0.0
        return 1.0 / self.share if self.rolled_out else -1.0 / (1.0 - self.share)


class RolloutArm(msgspec.Struct, frozen=True):
    """The applicants whom one version decided.

    ``profit`` is what the known outcomes have earned. ``per_applicant`` is the estimated profit per applicant if the
    version decided everybody, with pending outcomes at their expected profit.
    """

    version: int
    applicants: int
    accepted: int
    outcomes: int
    pending: int
    profit: float
    per_applicant: float


class RolloutComparison(msgspec.Struct, frozen=True):
    """A version in rollout, compared with the active one.

    Profits are in the currency of the offers, or in units of gain + loss if it is null. ``difference`` is how much more
    the version in rollout earns per applicant. The ``interval`` contains it at all times at once with probability 90%,
    so one may look as often as one likes. It is null with fewer than 30 applicants. ``differently`` counts applicants
    whom the versions treat differently, and ``outcomes`` and ``pending`` are about them alone. ``needed`` is how many
    more applicants decide the comparison if the difference stays as it is.
    """

    version: int
    active: int
    percent: float
    currency: str | None
    since: str
    applicants: int
    differently: int
    outcomes: int
    pending: int
    arms: list[RolloutArm]
    difference: float
    interval: Bounds | None
    needed: int | None
    verdict: RolloutVerdict
    sentence: str
    left_out: int  # applicants whom the version in rollout could not decide


class _Difference(NamedTuple):
    """The estimated difference by the estimates of one version, and how uncertain it is."""

    mean: float
    deviation: float  # of one X
    error: float  # of the estimates of pending applicants

    def half(self, size: int) -> float:
        """Return half of the interval."""
        return radius(size, self.deviation, ERROR) + NORMAL * self.error


def compare_rollout_applicants(
    applicants: Sequence[RolloutApplicant],
    versions: tuple[int, int],
    percent: float,
    since: str,
    money: Money,
    left_out: int = 0,
) -> RolloutComparison:
    """Compare the version in rollout with the active one.

    Parameters
    ----------
    applicants : sequence of RolloutApplicant
        Those of the rollout.
    versions : tuple of int
        The number of the active version and of the version in rollout.
    percent : float
        The share of applicants of the version in rollout now.
    since : str
        When the rollout started.
    money : Money
        How to show profits.
    left_out : int, default 0
        How many applicants the version in rollout could not decide.

    Examples
    --------
    >>> def loan(i):
    ...     estimates = Estimated(0.7, 20), Estimated(0.8, 20)
    ...     good = i % 5 > 0  # the active version rejects them
    ...     return RolloutApplicant(
    ...         "all", 0.5, i % 2 > 0, True, i % 2 > 0, (0.3 if good else -0.7) if i % 2 else None, 1, 0.7, *estimates
    ...     )
    >>> result = compare_rollout_applicants([loan(i) for i in range(4000)], (1, 2), 50, "2026-01-01", Money())
    >>> round(result.difference, 3), result.verdict
    (0.1, 'better')
    """
    # With everybody in one arm there is nothing to compare with.
    compared = [one for one in applicants if 0.0 < one.share < 1.0]
    size = len(compared)
    differing = [one for one in compared if one.differs]
    both = [_difference(compared, [getattr(one, name) for one in compared]) for name in ("active", "rollout")]
    difference = math.fsum(one.mean for one in both) / 2.0
    interval = None
    if size >= LEAST:
        halves = [one.half(size) for one in both]
        interval = Bounds(
            min(one.mean - half for one, half in zip(both, halves, strict=True)),
            max(one.mean + half for one, half in zip(both, halves, strict=True)),
        )
    known = sum(one.accepted and one.profit is not None for one in differing)
    pending = sum(one.accepted and one.profit is None for one in differing)
    verdict = _verdict(interval, size, len(differing), known)
    needed = None
    deviation = max(one.deviation for one in both)
    if verdict == "too_early" and difference and deviation:
        total = observations_until(difference, deviation, ERROR)
        needed = None if total is None else max(total - size, 0)
    arms = [_arm(compared, number, rolled_out=number == versions[1]) for number in versions]
    return RolloutComparison(
        version=versions[1],
        active=versions[0],
        percent=percent,
        currency=money.currency if money.known else None,
        since=since,
        applicants=size,
        differently=len(differing),
        outcomes=known,
        pending=pending,
        arms=arms,
        difference=difference,
        interval=interval,
        needed=needed,
        verdict=verdict,
        sentence=_sentence(verdict, versions, size, difference, interval, needed, known, pending, money),
        left_out=left_out,
    )


def _expected(one: RolloutApplicant, estimate: Estimated) -> float:
    """Return the profit of an applicant: known, or expected by an estimate while the outcome is pending."""
    if not one.accepted:
        return 0.0
    return one.amount * (estimate.mean - one.cost) if one.profit is None else one.profit


def _difference(applicants: Sequence[RolloutApplicant], estimates: Sequence[Estimated]) -> _Difference:
    """Return the mean of X by one version's estimates of pending outcomes."""
    size = max(len(applicants), 1)
    values = [one.weight * _expected(one, by) for one, by in zip(applicants, estimates, strict=True)]
    mean = math.fsum(values) / size
    squares = math.fsum((value - mean) ** 2 for value in values)
    by_segment: dict[str, float] = {}
    unknown = 0.0
    for one, by in zip(applicants, estimates, strict=True):
        if one.accepted and one.profit is None and one.differs:
            at_stake, spread = one.weight * one.amount, by.mean * (1.0 - by.mean)
            unknown += at_stake**2 * spread
            error = at_stake * math.sqrt(spread / (by.n + 1.0))
            by_segment[one.segment] = by_segment.get(one.segment, 0.0) + error
    deviation = math.sqrt((squares + unknown) / max(size - 1, 1))
    return _Difference(mean, deviation, math.hypot(*by_segment.values()) / size if by_segment else 0.0)


def _arm(applicants: Sequence[RolloutApplicant], number: int, *, rolled_out: bool) -> RolloutArm:
    own = [one for one in applicants if one.rolled_out == rolled_out]
    profits = [one.profit for one in own if one.accepted and one.profit is not None]
    accepted = sum(one.accepted for one in own)
    middle = [(_expected(one, one.active) + _expected(one, one.rollout)) / 2.0 for one in applicants]
    common = math.fsum(profit for one, profit in zip(applicants, middle, strict=True) if not one.differs)
    alone = math.fsum(
        abs(one.weight) * profit for one, profit in zip(applicants, middle, strict=True) if one.rolled_out == rolled_out
    )
    return RolloutArm(
        version=number,
        applicants=len(own),
        accepted=accepted,
        outcomes=len(profits),
        pending=accepted - len(profits),
        profit=math.fsum(profits),
        per_applicant=(common + alone) / max(len(applicants), 1),
    )


def _verdict(interval: Bounds | None, size: int, differing: int, known: int) -> RolloutVerdict:
    if interval is None:
        return "too_early"
    if differing == 0:
        return "same"
    if known < LEAST_OUTCOMES:
        return "too_early"
    return "better" if interval.lower > 0.0 else "worse" if interval.upper < 0.0 else "too_early"


def _sentence(
    verdict: RolloutVerdict,
    versions: tuple[int, int],
    size: int,
    difference: float,
    interval: Bounds | None,
    needed: int | None,
    known: int,
    pending: int,
    money: Money,
) -> str:
    active, rollout = versions
    if interval is None:
        return f"Too early to compare: {counted(size, 'applicant')} of {LEAST} so far."
    if verdict == "same":
        return f"Versions {rollout} and {active} have decided all {size:,} applicants the same way so far."
    unit = "" if money.known else " units of gain + loss"
    earns = (
        f"Version {rollout} earns {money.format(abs(difference))}{unit} {'more' if difference >= 0 else 'less'} per "
        f"applicant than version {active} (between {money.format(interval.lower)} and {money.format(interval.upper)})"
    )
    if verdict == "better":
        return f"{earns}. It is better: activate it, or ramp it up."
    if verdict == "worse":
        return f"{earns}. It is worse: roll it back."
    if known < LEAST_OUTCOMES:
        few = f"{counted(known, 'outcome is', 'outcomes are')} known of applicants whom the versions treat differently"
        return f"{earns}: too early to tell, because {few}, and {LEAST_OUTCOMES} are needed."
    if needed:
        return f"{earns}: too early to tell. About {count(float(_rounded(needed)))} more applicants are needed."
    if pending:
        return f"{earns}: too early to tell. {counted(pending, 'outcome is', 'outcomes are')} still pending."
    return f"{earns}: too early to tell. The difference is too small for the applicants who will come to decide it."


def _rounded(number: int) -> int:
    """Return a number with two digits."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return math.ceil(number / unit) * unit
