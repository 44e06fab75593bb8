"""Exposure limits of segments in words and in JSON, for those who read them beside other facts of the segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lenience.core.formatting import counted, duration, plural
from lenience.objectives.delayed import Delayed
from lenience.segments.exposure_limits import Exposure

MOST_NAMED = 3  # segments whose limit was not computed


def told(row: Exposure) -> dict[str, Any]:
    """One segment for JSON: ``limit`` is null where there is none (``unlimited``) and where it was not computed."""
    return {
        "pending": row.pending,
        "limit": row.limit,
        "unlimited": row.unlimited,
        "proved": row.proved,
        "room": row.room,
        "now": row.now,
        "not_computed": row.not_computed,
    }


def describe_late(objective: Delayed, rows: Sequence[Exposure], dated: bool) -> str:
    """What the limits are, which outcomes count as pending, and what is not proved or not known.

    >>> from lenience import Belief
    >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> row = Exposure("north", Belief(2, 1), late, 1, 2, False, True, 0.0)
    >>> print(describe_late(late, [row], dated=True))
    Labels come after 1 year on average. At most out: how many acceptances without a label are worth having at once; no
    limit where the expected rate is not below the break-even. With as many pending, wait for a label. Pending:
    accepted, and no label that counts yet; a label that is missing for longer than 3 years is not awaited.
    """
    age = duration(objective.expire_after or 0.0)
    awaited = (
        f"a label that is missing for longer than {age} is not awaited"
        if dated
        else "without the dates of decisions, however old"
    )
    said = [
        f"Labels come after {duration(objective.label_delay)} on average. At most out: how many acceptances without a "
        "label are worth having at once; no limit where the expected rate is not below the break-even. With as many "
        f"pending, wait for a label. Pending: accepted, and no label that counts yet; {awaited}."
    ]
    if any(not row.proved and not row.not_computed for row in rows):
        said.append("~: not proved, as accepting and rejecting differ by less there than was computed.")
    unknown = [row for row in rows if row.not_computed]
    if unknown:
        named = "; ".join(f"{row.name}: {row.not_computed}" for row in unknown[:MOST_NAMED])
        more = f"; and {len(unknown) - MOST_NAMED:,} more" if len(unknown) > MOST_NAMED else ""
        said.append(
            f"The {plural(len(unknown), 'limit')} of {counted(len(unknown), 'segment')} "
            f"{plural(len(unknown), 'was', 'were')} not computed ({named}{more})."
        )
    return " ".join(said)
