"""Refer: the third answer. A person decides, by rule or where a review is worth most.

What a review is worth
----------------------
The policy expects the success rate p and accepts if p is above the minimum m, which has the value of the outcome in it:
an acceptance is worth a(p − m), with the amount a at stake. Let a person who looks at the case call a later success
good, and a later failure bad, with probability q (the accuracy). Among good calls the success rate is above p, among
bad ones below it. Accepting a good call is worth, in expectation and including the probability of the call,

    G = a( q·p·(1 − m) − (1 − q)(1 − p)·m ),    and a bad one    B = a( (1 − q)·p·(1 − m) − q(1 − p)·m ).

G + B = a(p − m), which is what accepting without a review is worth. Deciding after the call earns max(G, 0) +
max(B, 0), so a review is worth

    W = max(G, 0) + max(B, 0) − max(a(p − m), 0) ≥ 0.

It is 0 where no call changes the answer, i.e. far from the minimum, largest where p is near m, and grows with a.

Within a daily capacity
-----------------------
With room for K reviews a day, the policy refers those with the largest W. It cannot know who comes later today, so it
uses a price: the W that K applicants a day have reached in the last seven days. It refers whoever reaches the price
until K are referred. Without earlier decisions the price is 0, and the first K whose review is worth anything are
referred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.service.domain.clock import DAY

WINDOW = 7 * DAY  # over which the price is computed
SETTLED = DAY // 24  # before midnight: clocks of several machines differ by less
MOST = 5_000  # decisions for the price


class Referral(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which applicants a person decides: by any of the rules, and within a daily capacity where a review is worth most.

    The rules have no limit of their own: ``daily_capacity`` counts only those that no rule refers.
    """

    amount_above: (
        Annotated[float, Meta(gt=0, le=1e12, description="Refer offers with more than this at stake (gain + loss)")]
        | None
    ) = None
    evidence_below: (
        Annotated[float, Meta(gt=0, le=1e12, description="Refer estimates from fewer outcomes than this")] | None
    ) = None
    near_minimum: (
        Annotated[
            float,
            Meta(
                gt=0,
                lt=1,
                description="Refer if the expected success rate is this near to the minimum: 0.02 is 2 points",
            ),
        ]
        | None
    ) = None
    daily_capacity: (
        Annotated[
            int, Meta(ge=1, le=10**6, description="How many more to refer per day (UTC), where a review is worth most")
        ]
        | None
    ) = None
    accuracy: Annotated[
        float, Meta(gt=0.5, le=1, description="How often a person is right. The worth of a review depends on it")
    ] = 0.75
    expire_after_days: Annotated[
        float, Meta(gt=0, le=3_650, description="Days after which a case that nobody has decided lapses")
    ] = 14.0

    def __post_init__(self) -> None:
        rules = ("amount_above", "evidence_below", "near_minimum", "daily_capacity")
        if all(getattr(self, name) is None for name in rules):
            words = "amount_above, evidence_below, near_minimum or daily_capacity"
            raise InputError.because("must be given", rules, label=words, code="missing")


def review_worth(amount: float, rate: float, minimum: float, accuracy: float) -> float:
    """Return what a review is worth, by how often a person is right.

    Parameters
    ----------
    amount : float
        At stake: the gain of a success plus the loss of a failure.
    rate : float
        The expected success rate.
    minimum : float
        The success rate above which the policy accepts.
    accuracy : float
        The probability with which a person tells a later success from a later failure.

    Examples
    --------
    >>> [round(review_worth(1000, rate, 0.8, 0.75), 2) for rate in (0.5, 0.7, 0.8, 0.9, 0.95)]
    [0.0, 45.0, 80.0, 15.0, 0.0]
    """
    good = accuracy * rate * (1.0 - minimum) - (1.0 - accuracy) * (1.0 - rate) * minimum
    bad = (1.0 - accuracy) * rate * (1.0 - minimum) - accuracy * (1.0 - rate) * minimum
    return max(amount * (max(good, 0.0) + max(bad, 0.0) - max(rate - minimum, 0.0)), 0.0)


def price_of_review(worths: Sequence[float], days: float, capacity: int) -> float:
    """Return what a review must be worth so that the capacity would have been used by those who reach it.

    Parameters
    ----------
    worths : sequence of float
        What a review of each earlier applicant was worth.
    days : float
        In how many days they came.
    capacity : int
        Reviews a day.

    Examples
    --------
    >>> price_of_review([5.0, 1.0, 3.0, 2.0], 2.0, 1), price_of_review([5.0, 1.0], 2.0, 1)
    (3.0, 1.0)
    >>> price_of_review([5.0], 2.0, 1)
    0.0
    """
    room = int(capacity * days)
    return sorted(worths, reverse=True)[room - 1] if room <= len(worths) else 0.0


def window_of(at: int) -> tuple[int, int]:
    """Return the times between which decisions count for the price of the day of a time. It ends before the day.

    >>> window_of(10 * DAY + 5) == (10 * DAY - SETTLED - WINDOW, 10 * DAY - SETTLED)
    True
    """
    until = at // DAY * DAY - SETTLED
    return until - WINDOW, until


def price_of_day(earlier: Sequence[tuple[str, int, float]], at: int, capacity: int) -> float:
    """Return the price of a review on the day of a time.

    Parameters
    ----------
    earlier : sequence of tuple
        The id and the time of each decision of the window, and what its review was worth; the latest are enough.
    at : int
        The time.
    capacity : int
        Reviews a day.
    """
    since, until = window_of(at)
    latest = sorted((one for one in earlier if since <= one[1] < until), reverse=True)[:MOST]
    if not latest:
        return 0.0
    days = max((until - min(time for _, time, _ in latest)) / DAY, 1.0)
    return price_of_review([worth for _, _, worth in latest], days, capacity)
