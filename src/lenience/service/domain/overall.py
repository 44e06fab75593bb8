"""Limits over all segments of a policy: acceptances or losses per month or year, and what may be open at once.

The chain of a segment knows nothing of other segments, so the counters of these limits are in the policy's own chain. A
decision under such limits locks that chain too. It logs the number of the last event it saw there, and an acceptance
appends an event with the new counters. So the audit can recompute every counter that a decision saw, and the limits
hold exactly.

Months and years are those of UTC. An acceptance uses capacity in the month in which it is made. An outcome does not
give it back. A person who overrides an acceptance gives it back to the month that it was taken from.

A version without such limits counts nothing. So when a version with limits becomes active, it counts what versions
without limits have accepted since the last activation of one with limits: the acceptances that stand, each in the month
of its decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.core.offers import Offer

Period: TypeAlias = Literal["month", "year"]
PERIODS = {"month": 12, "year": 1}  # how many a year has

PERIOD_CAPACITY = "period_capacity"
OVERALL_CAP, OVERALL_LOSS_CAP = "overall_exposure_cap", "overall_exposure_cap_amount"
OVERALL = (PERIOD_CAPACITY, OVERALL_CAP, OVERALL_LOSS_CAP)  # the rules of rejections for a limit over all segments


class Capacity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The capacity that all segments of a policy share: acceptances, or losses if all of them fail."""

    acceptances: (
        Annotated[int, Meta(ge=1, le=10**9, description="The most acceptances in a period, over all segments")] | None
    ) = None
    loss: (
        Annotated[
            float,
            Meta(
                ge=1e-9,
                le=1e15,
                description="The most that the acceptances of a period may lose if all fail, over all segments",
            ),
        ]
        | None
    ) = None
    per: Annotated[Period, Meta(description="The period: a calendar month or year in UTC")] = "month"

    def __post_init__(self) -> None:
        if (self.acceptances is None) == (self.loss is None):
            raise InputError.because(
                "must have either acceptances or loss",
                "capacity",
                hint='Such as {"acceptances": 40, "per": "month"}.',
                code="missing" if self.loss is None else "conflicting_fields",
            )

    @property
    def limit(self) -> float:
        """The most that a period may use."""
        return float(self.acceptances or self.loss or 0.0)

    @property
    def per_year(self) -> float:
        """The most that a year may use."""
        return self.limit * PERIODS[self.per]

    def use(self, offer: Offer | None) -> float:
        """Return what an acceptance uses."""
        return 1.0 if self.loss is None or offer is None else offer.loss


class OverallUse(msgspec.Struct, frozen=True, array_like=True):
    """What all segments of a policy have used and have open.

    ``month`` counts months since the year 0. The next fields are the acceptances, and the losses if all of them fail,
    of that month and of its year. ``pending`` and ``at_risk`` are as in the counts of a segment, over all of them.
    """

    month: int = 0
    accepted: int = 0
    loss: float = 0.0
    accepted_in_year: int = 0
    loss_in_year: float = 0.0
    pending: int = 0
    at_risk: float = 0.0

    def at(self, time: int) -> OverallUse:
        """Return the use as of a time: a new month or year starts at 0. A clock that is behind changes nothing."""
        month = month_of(time)
        if month <= self.month:
            return self
        new_year = month // 12 > self.month // 12
        return OverallUse(
            month,
            0,
            0.0,
            0 if new_year else self.accepted_in_year,
            0.0 if new_year else self.loss_in_year,
            self.pending,
            self.at_risk,
        )

    def after(self, time: int, change: UseChange) -> OverallUse:
        """Return the use after a change at a time."""
        now = self.at(time)
        pending = now.pending + change.pending
        same_month = change.month in (0, now.month)
        same_year = same_month or change.month // 12 == now.month // 12
        return OverallUse(
            now.month,
            max(now.accepted + change.accepted, 0) if same_month else now.accepted,
            max(now.loss + change.accepted * change.loss, 0.0) if same_month else now.loss,
            max(now.accepted_in_year + change.accepted, 0) if same_year else now.accepted_in_year,
            max(now.loss_in_year + change.accepted * change.loss, 0.0) if same_year else now.loss_in_year,
            pending,
            max(now.at_risk + change.pending * change.loss, 0.0) if pending > 0 else 0.0,
        )

    def with_earlier(self, earlier: Iterable[tuple[int, float]]) -> OverallUse:
        """Return the use with acceptances that no limit has counted: their times and losses, in any order."""
        months = [(month_of(time), loss) for time, loss in earlier]
        in_month = [loss for month, loss in months if month == self.month]
        in_year = [loss for month, loss in months if month // 12 == self.month // 12]
        return msgspec.structs.replace(
            self,
            accepted=self.accepted + len(in_month),
            loss=self.loss + math.fsum(in_month),
            accepted_in_year=self.accepted_in_year + len(in_year),
            loss_in_year=self.loss_in_year + math.fsum(in_year),
        )

    def used(self, capacity: Capacity) -> float:
        """Return what the period of a capacity has used."""
        if capacity.loss is None:
            return self.accepted if capacity.per == "month" else self.accepted_in_year
        return self.loss if capacity.per == "month" else self.loss_in_year


class UseChange(msgspec.Struct, frozen=True, array_like=True):
    """One more or one fewer acceptance, and outcome pending, with the loss of its offer.

    ``month`` is the month that an acceptance was charged to if it is taken back, otherwise 0.
    """

    accepted: int
    pending: int
    loss: float
    month: int = 0


class OverallLimits(msgspec.Struct, frozen=True):
    """The limits of a version over all its segments."""

    capacity: Capacity | None = None
    cap: int | None = None  # outcomes pending
    cap_amount: float | None = None  # what the pending outcomes lose if all fail

    def full(self, use: OverallUse) -> str | None:
        """Return the limit that allows no acceptance at all, or None."""
        if self.cap is not None and use.pending >= self.cap:
            return OVERALL_CAP
        capacity = self.capacity
        if capacity is not None and capacity.loss is None and use.used(capacity) >= capacity.limit:
            return PERIOD_CAPACITY
        return None

    def exceeded(self, use: OverallUse, offer: Offer) -> str | None:
        """Return the limit that an offer's loss would exceed, or None."""
        if self.cap_amount is not None and use.at_risk + offer.loss > self.cap_amount:
            return OVERALL_LOSS_CAP
        capacity = self.capacity
        if capacity is not None and capacity.loss is not None and use.used(capacity) + offer.loss > capacity.limit:
            return PERIOD_CAPACITY
        return None

    def fitting(self, use: OverallUse, offers: Iterable[Offer]) -> Sequence[Offer]:
        """Return the offers whose loss the limits still allow."""
        return [one for one in offers if self.exceeded(use, one) is None]


def month_of(time: int) -> int:
    """Return the number of months since the year 0 of a time in microseconds.

    >>> month_of(0) == 1970 * 12
    True
    """
    date = datetime.fromtimestamp(time / 1e6, UTC)
    return date.year * 12 + date.month - 1


def period_name(per: Period, month: int) -> str:
    """Return a month, or its year, as in ISO 8601.

    >>> period_name("month", 1970 * 12), period_name("year", 1970 * 12)
    ('1970-01', '1970')
    """
    return f"{month // 12:04}-{month % 12 + 1:02}" if per == "month" else f"{month // 12:04}"
