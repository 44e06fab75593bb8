"""Which segments a smaller first offer opens.

A rare segment may never start, because its volume does not pay for what learning costs at the full amount. A starter
offer, a fraction of the amount at the same break-even, costs that much less and teaches the same. So it opens segments
that would otherwise stay closed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lenience.core.errors import InputError
from lenience.core.objective import one_break_even
from lenience.core.offers import Offers
from lenience.core.validation import having, listed, real
from lenience.segments.segments import Segment, Segments
from lenience.segments.starting import SEGMENTS
from lenience.solvers.offers.solve import solve_offers

FINE = 1e-9


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
        one_break_even(cell.objective, "starter_offers")
        if cell.own.starts(cell.prior):
            rows.append(StarterOffer(cell.name, cell.group, True, True, 1.0))
            continue
        largest = _largest(cell, least)
        rows.append(StarterOffer(cell.name, cell.group, False, largest >= part or _starts(cell, part), largest))
    return rows


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
    """Return whether a segment starts where this fraction of the amount may be offered, too."""
    cost, own = cell.objective.cost, cell.own
    menu = Offers.menu((fraction, 1.0), (cost, cost))
    label = solve_offers(cell.prior, menu, own.discount, 1, FINE).label_value
    return fraction * (cell.prior.mean - cost) + label.lower > 0.0
