"""Which segments a smaller first offer opens.

A rare segment may never start, because its volume does not pay for what learning costs at the full amount. A starter
offer, a fraction of the amount at the same break-even, costs that much less and teaches the same. So it opens segments
that would otherwise stay closed. Where offers differ, every applicant may get a fraction of what was applied for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lenience.core.errors import InputError
from lenience.core.offers import Offer, Offers
from lenience.core.validation import having, listed, real
from lenience.policies.beliefs.offers import offers_of
from lenience.segments.segments import Segment, Segments
from lenience.segments.starting import SEGMENTS, first_policy, segment_starts


class StarterOffer(msgspec.Struct, frozen=True):
    """Say with which offers a segment starts.

    Parameters
    ----------
    name
        The segment.
    group
        The group it belongs to.
    starts
        Whether it starts at the full amount.
    starts_small
        Whether it starts if a fraction of the amount may be offered first.
    largest
        The largest fraction of the amount at which it starts, 1 if it starts at the full amount; 0 if it does not
        start even at the smallest fraction.
    """

    name: str
    group: str
    starts: bool
    starts_small: bool
    largest: float


def starter_offers(
    segments: Segments | Iterable[Segment], fraction: float = 0.1, smallest: float = 1e-3
) -> list[StarterOffer]:
    """Return for each segment whether it starts at the full amount, and with a starter offer.

    Parameters
    ----------
    segments : Segments or iterable of Segment
        The segments, with a discounted objective.
    fraction : float, optional
        The starter offer, as a fraction of the full amount; above 0 and below 1.
    smallest : float, optional
        The smallest fraction to try when the largest one is searched for.

    Returns
    -------
    list of StarterOffer
        One for each segment.

    Examples
    --------
    >>> from lenience import Belief, Discounted
    >>> cells = Segments.of({"many": 0.9, "few": 0.1}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> for row in starter_offers(cells):
    ...     print(row.name, row.starts, row.starts_small, round(row.largest, 2))
    many True True 1.0
    few False True 0.23
    """
    part = real("fraction", fraction, above=0, below=1)
    least = real("smallest", smallest, above=0, below=1)
    rows = []
    for cell in listed("segments", segments, SEGMENTS):
        having("segments", cell, "objective", SEGMENTS)
        if not cell.objective.stationary:
            raise InputError("objective", cell.objective, "a Discounted objective, whose labels come at once")
        if segment_starts(cell):
            rows.append(StarterOffer(cell.name, cell.group, True, True, 1.0))
            continue
        largest = _largest(cell, least)
        rows.append(StarterOffer(cell.name, cell.group, False, largest >= part or _starts(cell, part), largest))
    return rows


class StarterGroup(msgspec.Struct, frozen=True):
    """Count the segments of a group that a starter offer opens.

    Parameters
    ----------
    group
        The group.
    segments
        The number of segments that are counted: all, or those worth accepting if true success rates are given.
    start
        How many of them start at the full amount.
    start_small
        How many start if a fraction of the amount may be offered first.

    Examples
    --------
    >>> StarterGroup("A", segments=6, start=2, start_small=5).opened
    3
    """

    group: str
    segments: int
    start: int
    start_small: int

    @property
    def opened(self) -> int:
        """How many segments the starter offer opens."""
        return self.start_small - self.start


def starter_groups(
    segments: Segments, truths: Mapping[str, float] | None = None, fraction: float = 0.1
) -> list[StarterGroup]:
    """Return, by group, how many segments start at the full amount and with a starter offer.

    Parameters
    ----------
    segments : Segments
        The segments, with a discounted objective.
    truths : mapping, optional
        The true success rate by segment. With it, only segments worth accepting are counted: those above the
        break-even of accepting everyone.
    fraction : float, optional
        The starter offer, as a fraction of the full amount; above 0 and below 1.

    Returns
    -------
    list of StarterGroup
        One for each group.

    Raises
    ------
    InputError
        If the objective is not discounted, or a true success rate is missing.

    Examples
    --------
    >>> from lenience import Belief, Discounted
    >>> groups = {"many": "A", "few": "B"}
    >>> cells = Segments.of({"many": 0.9, "few": 0.1}, Discounted(0.8, 0.99), Belief(2, 1), groups)
    >>> [(row.group, row.start, row.start_small) for row in starter_groups(cells)]
    [('A', 1, 1), ('B', 0, 1)]
    """
    having("segments", segments, "groups", SEGMENTS)
    part = real("fraction", fraction, above=0, below=1)
    counts = {group: [0, 0, 0] for group in segments.groups}
    for cell in segments:
        if not cell.objective.stationary:
            raise InputError("objective", cell.objective, "a Discounted objective, whose labels come at once")
        if truths is not None and cell.name not in truths:
            raise InputError.because(
                f"must have a success rate for every segment; {cell.name!r} is missing",
                "truths",
                value=cell.name,
                code="missing",
            )
        if truths is not None and truths[cell.name] <= cell.break_even:
            continue
        full = segment_starts(cell)
        for i, counted in enumerate((True, full, full or _starts(cell, part))):
            counts[cell.group][i] += counted
    return [StarterGroup(group, *numbers) for group, numbers in counts.items()]


def _largest(cell: Segment, smallest: float) -> float:
    """Return the largest fraction at which a segment starts, to a hundredth of itself; 0 if the smallest does not."""
    if not _starts(cell, smallest):
        return 0.0
    low, high = smallest, 1.0
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _starts(cell, middle) else (low, middle)
    return low


def _starts(cell: Segment, fraction: float) -> bool:
    """Return whether a segment starts where this fraction of each amount may be offered, too."""
    offers = with_starter(offers_of(cell.objective), fraction)
    policy = first_policy(cell.own.with_offers(offers), cell.prior)
    return bool(policy.share_accepted(cell.prior) > 0.0)


def with_starter(offers: Offers, fraction: float) -> Offers:
    """Return offers where a fraction of each amount may be offered, too.

    Parameters
    ----------
    offers : Offers
        The offers.
    fraction : float
        The fraction of the amount, at the same break-even.

    Returns
    -------
    Offers
        One menu for each menu of ``offers``.

    Examples
    --------
    >>> with_starter(Offers([1000, 5000], [0.8, 0.7]), 0.1).amount
    (100.0, 1000.0, 500.0, 5000.0)
    """
    menus = []
    for menu in range(offers.menu_count):
        full = offers.offers_of(menu)
        both = [*(Offer(fraction * one.amount, one.cost) for one in full), *full]
        menus.append(Offers.menu([one.amount for one in both], [one.cost for one in both]))
    return msgspec.structs.replace(Offers.draw(menus, list(offers.share)), currency=offers.currency)
