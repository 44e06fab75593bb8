"""LoanBook: simulated loans with dates, of which the true repayment rates are known.

Loans are granted evenly over some days. A loan that will fail does so after a Gamma-distributed time. A loan that will
be repaid is prepaid at any time with some probability, and otherwise repaid at the end of its term. On the last day
some loans are still open, and more of the good ones than of the bad ones: known outcomes alone are biased.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import numpy as np

from lenience.core.validation import mapped, real, whole


class LoanBook(msgspec.Struct, frozen=True):
    """A portfolio of loans in segments with known repayment rates.

    Parameters
    ----------
    rates : dict of str to float
        The true repayment rate of each segment.
    loans : int, default 1000
        The number of loans granted in each segment.
    days : int, default 1500
        The number of days over which they were granted, up to ``last_day``.
    term : int, default 1095
        The term in days.
    prepaid : float, default 0.5
        The share of the repaid loans that are repaid early, evenly over the term.
    failure_days : float, default 460
        The mean time to a failure: 60 days without one, then a Gamma law of shape 2.
    last_day : date, default 2024-12-31
        The day on which the portfolio is looked at.

    Raises
    ------
    InputError
        If a rate or a share is not from 0 to 1, or a number of days is too small.

    Examples
    --------
    >>> past = LoanBook({"A": 0.9, "B": 0.7}, loans=1000).draw(seed=1)
    >>> list(past)
    ['grade', 'granted', 'status', 'decided', 'closed']
    >>> known = [status for status in past["status"] if status is not None]
    >>> round(known.count("repaid") / len(known), 2)  # 0.8 in the end
    0.73
    """

    rates: dict[str, float]
    loans: int = 1_000
    days: int = 1_500
    term: int = 1_095
    prepaid: float = 0.5
    failure_days: float = 460.0
    last_day: dt.date = dt.date(2024, 12, 31)

    def __post_init__(self) -> None:
        for name, rate in mapped("rates", self.rates, "repayment rates by segment").items():
            real("rates", rate, least=0, most=1, label=f"the rate of {name}")
        for field, least in (("loans", 1), ("days", 1), ("term", 61)):
            whole(field, getattr(self, field), least=least)
        real("prepaid", self.prepaid, least=0, most=1)
        real("failure_days", self.failure_days, above=60)

    def draw(self, seed: int) -> dict[str, list[Any]]:
        """Draw the loans, as columns of past decisions.

        Parameters
        ----------
        seed : int
            The seed of the random numbers.

        Returns
        -------
        dict of str to list
            The columns grade, granted (always true), status (repaid, default, or None if the loan is open), decided
            and closed (dates; None for open loans).

        Examples
        --------
        >>> book = LoanBook({"A": 0.9}, loans=3, days=10)
        >>> book.draw(seed=0)["status"]
        [None, None, None]
        """
        random = np.random.default_rng(seed)
        grade = np.repeat(list(self.rates), self.loans)
        size = grade.size
        age = random.integers(0, self.days, size)
        repaid = random.random(size) < np.repeat(list(self.rates.values()), self.loans)
        early = random.random(size) < self.prepaid
        success_days = np.where(early, random.uniform(60, self.term, size), self.term)
        failure_days = 60 + random.gamma(2.0, (self.failure_days - 60) / 2, size)
        takes = np.floor(np.where(repaid, success_days, failure_days)).astype(np.int64)
        known = takes <= age
        decided = [self.last_day - dt.timedelta(days=int(each)) for each in age]
        return {
            "grade": grade.tolist(),
            "granted": [True] * size,
            "status": [
                ("repaid" if good else "default") if is_known else None
                for good, is_known in zip(repaid, known, strict=True)
            ],
            "decided": decided,
            "closed": [
                day + dt.timedelta(days=int(days)) if is_known else None
                for day, days, is_known in zip(decided, takes, known, strict=True)
            ],
        }
