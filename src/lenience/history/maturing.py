"""Open loans of past decisions: how old they are, and what that says about each segment.

:mod:`lenience.history.ages` counts them by age. The timing curves are learnt from the same counts
(:func:`~lenience.models.timing.learn_timing`) or given.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.formatting import counted, percent
from lenience.models.maturing import Known, TimingCurves, mature_belief

FLAT = Belief(2, 1)
UNRESOLVED = 0.1  # a larger share of loans whose outcome cannot be learnt is a warning


class OpenLoans(msgspec.Struct, frozen=True):
    """The open loans of a segment by age.

    Parameters
    ----------
    ages : tuple of float
        Days since the decision.
    counts : tuple of float
        The number of open loans of each age, weighted by age if a half-life was given.

    Examples
    --------
    >>> OpenLoans((10.0, 40.0), (2.0, 1.0)).counts
    (2.0, 1.0)
    """

    ages: tuple[float, ...]
    counts: tuple[float, ...]


class Maturing(msgspec.Struct, frozen=True):
    """When outcomes arrive, and the open loans of each segment.

    Parameters
    ----------
    curves : TimingCurves
        The shares of successes and failures that are still open at each age.
    open_loans : dict of str to OpenLoans
        The open loans by segment.
    applied : bool
        Whether beliefs include what open loans say. If not, the curves only show how immature the outcomes are.

    Examples
    --------
    >>> curves = TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0))
    >>> maturing = Maturing(curves, {"north": OpenLoans((100.0,), (20.0,))}, True)
    >>> round(maturing.belief("north", Belief(10, 8)).mean, 3)
    0.896
    """

    curves: TimingCurves
    open_loans: dict[str, OpenLoans]
    applied: bool

    def belief(self, segment: str, belief: Known) -> Known:
        """Return the belief about a segment after its open loans.

        Parameters
        ----------
        segment : str
            The segment.
        belief : Belief or MixtureBelief
            The belief from the prior and the known outcomes.

        Returns
        -------
        Belief or MixtureBelief
            The belief that includes the open loans.

        Examples
        --------
        >>> Maturing(TimingCurves((0,), (1,), (1,)), {}, True).belief("north", Belief(10, 8))
        Belief(n=10.0, s=8.0)
        """
        loans = self.open_loans.get(segment)
        return belief if loans is None else _remembered(belief, loans, self.curves)

    def effective_counts(self, segment: str, n: float, s: float) -> tuple[float, float]:
        """Return the outcomes and successes that say as much as a segment's known outcomes and open loans together.

        Parameters
        ----------
        segment : str
            The segment.
        n, s : float
            Its known outcomes, and how many of them are successes.

        Returns
        -------
        tuple of float
            Outcomes and successes; not whole numbers.

        Examples
        --------
        >>> Maturing(TimingCurves((0,), (1,), (1,)), {}, True).effective_counts("north", 10, 8)
        (10.0, 8.0)
        """
        after = self.belief(segment, Belief(FLAT.n + n, FLAT.s + s))
        good, bad = max(after.alpha - FLAT.alpha, 0.0), max(after.beta - FLAT.beta, 0.0)
        return good + bad, good

    def mean_delay(self, rate: float) -> float:
        """Return the mean days from a decision to its outcome, the pending included.

        The mean over known outcomes alone is too short: those that take long are still pending.

        Parameters
        ----------
        rate : float
            The success rate.

        Returns
        -------
        float
            Days. Outcomes that take longer than the source shows count with the longest time that it shows.

        Examples
        --------
        >>> Maturing(TimingCurves((0, 100, 300), (1, 1, 0), (1, 0, 0)), {}, True).mean_delay(0.75)
        250.0
        """
        curves = self.curves
        shares = zip(curves.ages, curves.ages[1:], curves.success_open, curves.failure_open, strict=False)
        return sum((until - age) * (rate * good + (1.0 - rate) * bad) for age, until, good, bad in shares)

    def describe(self) -> list[str]:
        """Describe how long outcomes take, and what cannot be learnt.

        Returns
        -------
        list of str
            One sentence or more in each line.

        Examples
        --------
        >>> curves = TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0), successes=90, failures=10, still_open=40)
        >>> Maturing(curves, {}, True).describe()
        ['Half of the failures are known after 90 days, half of the successes after 365 days.']
        """
        failures, successes = self.half_known
        lines = [
            f"Half of the failures are known after {_days(failures)}, half of the successes after {_days(successes)}."
        ]
        if self.curves.unresolved > UNRESOLVED:
            longer = (
                f"{percent(self.curves.unresolved, 0)} of all loans stay open longer than {self.curves.ages[-1]:,.0f} "
                "days, the longest that this source shows."
            )
            if len(self.open_loans) > 1:
                lines.append(
                    f"{longer} Only the differences between segments say how many of them succeed, so check these "
                    "rates against older loans."
                )
            else:
                lines.append(
                    f"{longer} Nothing here says how many of them succeed, so the rate may be up to "
                    f"{100 * self.curves.unresolved / 2:.0f} points higher or lower. Add older loans, or segments "
                    "whose rates differ."
                )
        return lines

    @property
    def half_known(self) -> tuple[float | None, float | None]:
        """The days after which half of the failures and half of the successes are known; None if that is longer."""
        curves = self.curves
        failures, successes = (
            next((age for age, share in zip(curves.ages, shares, strict=True) if share <= 0.5), None)
            for shares in (curves.failure_open, curves.success_open)
        )
        return failures, successes


@lru_cache(maxsize=10_000)
def _remembered(belief: Any, loans: OpenLoans, curves: TimingCurves) -> Any:
    """Return the belief after open loans; several models and pages need the same one."""
    return mature_belief(belief, loans.ages, curves, loans.counts)


def _days(days: float | None) -> str:
    """Name a number of days; None is longer than the data show."""
    return "a time longer than the source shows" if days is None else counted(round(days), "day")
