"""Warn if known outcomes alone are biased: failures and successes become known at different ages.

With the dates of outcomes, the timing curves say how far off the rates are (:func:`compare_with_pending`). With the
dates of decisions only, old decisions, which nearly all have an outcome, are compared with all of them
(:func:`compare_with_old_decisions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lenience.core.belief import Belief
from lenience.core.formatting import even_percent, percent
from lenience.history.ages import CAME, CountedAges, count_ages
from lenience.history.counts import Clock
from lenience.history.maturing import FLAT, Maturing
from lenience.history.statuses import GivenWords
from lenience.models.maturing import TimingCurves

if TYPE_CHECKING:
    from lenience.history.segment_history import SegmentHistory

NOTABLE = 0.01  # a smaller difference of rates is not worth a warning
MOST_PENDING = 0.05  # of decisions that count as complete
LEAST_KNOWN = 30  # outcomes of decisions that count as complete
CLOSED = 0.05  # a maturity is suggested at which at most this share of either kind is still open


class Immaturity(msgspec.Struct, frozen=True):
    """How far known outcomes alone are from what is expected in the end.

    Parameters
    ----------
    pending_share : float
        The share of the accepted whose outcome is not known yet.
    known_rate : float
        The success rate of the known outcomes.
    expected_rate : float or None
        The expected success rate of all accepted; None if it cannot be told.
    maturity : float or None
        Days after which nearly all outcomes are known; None if no decision is that old.
    failures_after, successes_after : float or None
        Days after which half of the failures, and half of the successes, are known; None without dates of outcomes.
    segment : str
        The segment with the largest difference; empty without dates of outcomes.
    segment_known, segment_expected : float
        The rates of this segment.

    Examples
    --------
    >>> print(Immaturity(0.3, 0.68, 0.79, 1095.0).describe())
    30% of the accepted are pending. Decisions older than 1,095 days, of which nearly all have an outcome, have a \
success rate of 79.0%; all known outcomes have 68.0%. Failures probably become known earlier than successes, so recent \
decisions look worse than they are.
    """

    pending_share: float
    known_rate: float
    expected_rate: float | None = None
    maturity: float | None = None
    failures_after: float | None = None
    successes_after: float | None = None
    segment: str = ""
    segment_known: float = 0.0
    segment_expected: float = 0.0

    @property
    def dated(self) -> bool:
        """Whether the dates of outcomes were used."""
        return bool(self.segment)

    def describe(self) -> str:
        """Describe how far off the rates are.

        Returns
        -------
        str
            A few sentences.

        Examples
        --------
        >>> print(Immaturity(0.6, 0.68).describe())
        60% of the accepted are pending, and no decisions are so old that nearly all have an outcome. If failures \
become known earlier than successes, the success rates are too low.
        """
        pending = f"{percent(self.pending_share, 0)} of the accepted are pending"
        if self.expected_rate is None:
            return (
                f"{pending}, and no decisions are so old that nearly all have an outcome. If failures become known "
                "earlier than successes, the success rates are too low."
            )
        low = self.expected_rate > self.known_rate
        rates = even_percent(self.known_rate), even_percent(self.expected_rate)
        if not self.dated:
            first, second = ("Failures", "successes") if low else ("Successes", "failures")
            return (
                f"{pending}. Decisions older than {self.maturity:,.0f} days, of which nearly all have an outcome, have "
                f"a success rate of {rates[1]}; all known outcomes have {rates[0]}. {first} probably become known "
                f"earlier than {second}, so recent decisions look {'worse' if low else 'better'} than they are."
            )
        return (
            f"Known outcomes alone make the success rates too {'low' if low else 'high'}: {self._timing()}. They show "
            f"{rates[0]}; with the pending counted by age it is {rates[1]}. The difference is largest in "
            f"{self.segment}: {even_percent(self.segment_known)} and {even_percent(self.segment_expected)}."
        )

    def _timing(self) -> str:
        """Say when half of the failures and of the successes are known."""
        times = [
            "later than that" if days is None else f"within {days:,.0f} days"
            for days in (self.failures_after, self.successes_after)
        ]
        return f"half of the failures are known {times[0]}, half of the successes {times[1]}"


def judge_maturity(
    rows: Sequence[SegmentHistory],
    query: tuple[Any, Any, Sequence[str], str, str, Clock, GivenWords],
    maturing: Literal["learn"] | TimingCurves | None,
    maturity: float | None,
    half_life: float | None,
    priced: bool,
) -> dict[str, Any]:
    """Return when outcomes arrive and whether known outcomes are immature, as fields of the history."""
    if maturing is None and (maturity or not any(row.pending for row in rows)):
        return {}
    ages = count_ages(*query, {row.values: row.segment for row in rows}, priced)
    dated = CAME in query[1].columns
    if maturing is None and not dated:
        return {"immaturity": compare_with_old_decisions(ages)}
    if maturing is None and not any(row.labels for row in rows):
        return {}
    curves = maturing if isinstance(maturing, TimingCurves) else ages.learn()
    counted_ages = Maturing(curves, ages.open_loans(half_life), applied=maturing is not None)
    if maturing is not None:
        return {"maturing": counted_ages}
    return {"maturing": counted_ages, "immaturity": compare_with_pending(rows, counted_ages)}


def compare_with_pending(rows: Sequence[SegmentHistory], maturing: Maturing) -> Immaturity | None:
    """Return how far known outcomes are from those that open loans let expect; None if the difference is small.

    Parameters
    ----------
    rows
        The counts of each segment.
    maturing
        The timing curves and the open loans.
    """
    labels, accepted = sum(row.labels for row in rows), sum(row.accepted for row in rows)
    if not labels or labels == accepted:
        return None
    known_rate = sum(row.successes for row in rows) / labels
    expected, worst = 0.0, ("", 0.0, 0.0)
    for row in rows:
        after = maturing.belief(row.segment, Belief(FLAT.n + row.labels, FLAT.s + row.successes))
        expected += row.accepted * after.mean
        if row.rate is not None and row.labels >= LEAST_KNOWN:
            worst = max(worst, (row.segment, row.rate, after.mean), key=lambda one: abs(one[2] - one[1]))
    rate = expected / accepted
    if max(abs(rate - known_rate), abs(worst[2] - worst[1])) < NOTABLE or not worst[0]:
        return None
    curves = maturing.curves
    old = (
        age
        for age, good, bad in zip(curves.ages, curves.success_open, curves.failure_open, strict=True)
        if max(good, bad) <= CLOSED
    )
    failures, successes = maturing.half_known
    return Immaturity(1 - labels / accepted, known_rate, rate, next(old, None), failures, successes, *worst)


def compare_with_old_decisions(ages: CountedAges) -> Immaturity | None:
    """Return how far all known outcomes are from those of old decisions; None if there is nothing to warn of.

    Parameters
    ----------
    ages
        Accepted applicants by their age at the date of the count.
    """
    total, good, bad = (sum(counts) for counts in (ages.still_open, ages.successes, ages.failures))
    known = good + bad
    pending_share = total / (total + known) if total + known else 0.0
    if not known or pending_share <= MOST_PENDING:
        return None
    by_age: dict[float, list[int]] = {}
    for age, *counts in zip(*ages[1:], strict=True):
        for i, count in enumerate(counts):
            by_age.setdefault(age, [0, 0, 0])[i] += count
    sums, complete = [0, 0, 0], None
    for age in sorted(by_age, reverse=True):
        sums = [a + b for a, b in zip(sums, by_age[age], strict=True)]
        labels = sums[0] + sums[1]
        if labels >= LEAST_KNOWN and sums[2] <= MOST_PENDING * (labels + sums[2]):
            complete = (age, sums[0] / labels, labels)
    if complete is None:
        return Immaturity(pending_share, good / known)
    age, rate, labels = complete
    noise = 2.0 * (rate * (1 - rate) / labels) ** 0.5
    if abs(rate - good / known) < max(NOTABLE, noise):
        return None
    return Immaturity(pending_share, good / known, rate, age)
