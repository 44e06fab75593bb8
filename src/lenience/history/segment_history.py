"""SegmentHistory: the past of one segment, as counts."""

from __future__ import annotations

import msgspec

from lenience.history.economics import SegmentEconomics

SEPARATOR = " / "  # between the values of several segment columns


class SegmentHistory(msgspec.Struct, frozen=True):
    """The past of one segment: how many applied, how many were accepted, and their outcomes.

    Parameters
    ----------
    segment : str
        The name of the segment.
    arrivals : int
        The number of applicants, including rejected ones.
    accepted : int
        The number of accepted applicants.
    labels : int
        The number of accepted applicants with a mature outcome.
    successes : int
        How many of the labels are successes.
    pending : int
        The number of accepted applicants whose outcome is missing or not mature.
    n : float
        The labels, weighted by age if a half-life was given.
    s : float
        The successes, weighted by age if a half-life was given.
    values : tuple of str
        The values of the segment columns.
    expired : int
        How many of the pending have been without an outcome for longer than ``expire_after``.
    economics : SegmentEconomics, optional
        The offers of the applicants, if gain and loss or the terms of loans were given.
    recent : int
        How many of the applicants arrived in the twelve months before the date of the count; 0 without dates.

    Examples
    --------
    >>> from lenience import fit_history
    >>> past = {"region": ["north", "north"], "accepted": [1, 1], "repaid": [1, None]}
    >>> [north] = fit_history(past, segment="region", accepted="accepted", outcome="repaid").segments
    >>> north.arrivals, north.labels, north.successes, north.pending
    (2, 1, 1, 1)
    """

    segment: str
    arrivals: int
    accepted: int
    labels: int
    successes: int
    pending: int
    n: float
    s: float
    values: tuple[str, ...] = ()
    expired: int = 0
    economics: SegmentEconomics | None = None
    recent: int = 0

    @property
    def out(self) -> int:
        """The number of labels that are still expected."""
        return self.pending - self.expired

    @property
    def rate(self) -> float | None:
        """The success rate of the labels; None without labels."""
        return self.successes / self.labels if self.labels else None
