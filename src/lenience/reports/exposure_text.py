"""Exposure limits of segments in sentences and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lenience.core.formatting import counted, duration, plural
from lenience.objectives.delayed import Delayed
from lenience.segments.exposure_limits import Exposure, OfferLimit

MOST_NAMED = 3  # segments without a computed limit that are named


def exposure_json(row: Exposure) -> dict[str, Any]:
    """Return one segment's limit for JSON. ``limit`` is null if there is none or if it was not computed."""
    return {
        "pending": row.pending,
        "limit": row.limit,
        "unlimited": row.unlimited,
        "proved": row.proved,
        "room": row.room,
        "now": row.now,
        **({"by_offer": [_offer_json(one) for one in row.by_offer]} if row.by_offer else {}),
        "not_computed": None if row.not_computed is None else str(row.not_computed),
    }


def _offer_json(one: OfferLimit) -> dict[str, Any]:
    """Return the limit of one offer for JSON."""
    return {"amount": one.offer.amount, "cost": one.offer.cost, "limit": one.limit, "proved": one.proved}


def limits_text(row: Exposure) -> str:
    """Return the limit of a segment as text: with offers, the smallest and the largest one of an offer.

    Examples
    --------
    >>> from lenience import Belief, Offers, Segments, exposure_limits
    >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.8])
    >>> late = Delayed(offers=loans, arrivals=20, discount_rate=0.5, label_delay=0.5)
    >>> [row] = exposure_limits(Segments.of({"all": 1.0}, late, Belief(2, 1)))
    >>> limits_text(row)
    '0 to 2'
    """
    if not row.by_offer or row.not_computed:
        return row.most
    limits = [math.inf if one.limit is None else one.limit for one in row.by_offer]
    mark = "" if row.proved else "~"
    ends = ["no limit" if end == math.inf else f"{mark}{end:,}" for end in (min(limits), max(limits))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def is_limited(row: Exposure) -> bool:
    """Return whether a segment, or one of its offers, has a limit."""
    return not row.unlimited or any(one.limit is not None for one in row.by_offer)


def describe_limits(objective: Delayed, rows: Sequence[Exposure], dated: bool) -> str:
    """Explain the limits, which outcomes count as pending, and which limits are estimates or unknown.

    Parameters
    ----------
    objective : Delayed
        The objective of a segment; only its delay is used.
    rows : sequence of Exposure
        The limits of the segments.
    dated : bool
        Whether the dates of the past decisions are known.

    Returns
    -------
    str
        The sentences.

    Examples
    --------
    >>> from lenience import Belief
    >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> row = Exposure("north", Belief(2, 1), late, 1, 2, False, True, 0.0)
    >>> print(describe_limits(late, [row], dated=True))
    Outcomes arrive after 1 year on average. The limit is the largest number of accepted applicants without an outcome
    that a segment should have at a time. At the limit, wait for an outcome before you accept again. A segment has no
    limit if its expected success rate is at or above the break-even. Pending: accepted, and no outcome yet. An outcome
    that is missing for more than 3 years is no longer expected.
    """
    age = duration(objective.expire_after or 0.0)
    sentences = [
        f"Outcomes arrive after {duration(objective.label_delay)} on average. The limit is the largest number of "
        "accepted applicants without an outcome that a segment should have at a time. At the limit, wait for an "
        "outcome before you accept again. A segment has no limit if its expected success rate is at or above the "
        "break-even. Pending: accepted, and no outcome yet.",
        f"An outcome that is missing for more than {age} is no longer expected."
        if dated
        else "Because the dates of the decisions are unknown, all missing outcomes count as pending.",
    ]
    if any(row.by_offer for row in rows):
        sentences.append("Small amounts have larger limits: the smallest and the largest one of an offer are shown.")
    if any(not row.proved and not row.not_computed for row in rows):
        sentences.append("~ marks an estimated limit: near it, accepting and rejecting are worth almost the same.")
    unknown = [row for row in rows if row.not_computed]
    if unknown:
        named = "; ".join(f"{row.name}: {row.not_computed}" for row in unknown[:MOST_NAMED])
        more = f"; and {len(unknown) - MOST_NAMED:,} more" if len(unknown) > MOST_NAMED else ""
        sentences.append(
            f"The {plural(len(unknown), 'limit')} of {counted(len(unknown), 'segment')} "
            f"{plural(len(unknown), 'was', 'were')} not computed ({named}{more})."
        )
    return " ".join(sentences)
