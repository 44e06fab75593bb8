"""cost_of_ignoring: what the segments of late labels lose if one decides as if labels came at once.

Blind to what is pending, the policy for labels that come at once accepts everyone until the first labels return. Both
values are before the next arrival, from the same belief with nothing pending, and exact for exponential delays.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from lenience.analysis.delay import BLIND, baselines, evaluate_pending
from lenience.core.errors import TooLargeError
from lenience.segments.exposure_limits import Exposure

TOLERANCE = 1e-3  # of the value of the blind, relative
MOST_UPDATES = 2e8  # of the evaluation of one segment: about a second
ALL_SECONDS = 20.0  # that all evaluations may take, by the clock


class Ignored(msgspec.Struct, frozen=True):
    """What a segment earns with its exposure limits and blind to what is pending; nothing where that takes too long."""

    segment: str
    limited: float
    blind: float | None


def cost_of_ignoring(rows: Iterable[Exposure]) -> list[Ignored]:
    """Of each segment that has a limit and may start, what looking at what is pending earns, the small ones first.

    >>> from lenience import Belief, Delayed, Segments, exposure_limits
    >>> whole = Delayed(cost=0.8, arrivals=20, discount_rate=0.5, label_delay=0.25)
    >>> [row] = cost_of_ignoring(exposure_limits(Segments.of({"new": 1.0}, whole, Belief(3, 2))))
    >>> print(f"{row.segment}: {row.limited:.3f} with limits, {row.blind:.3f} blind to what is pending")
    new: 0.622 with limits, 0.422 blind to what is pending
    """
    until = time.monotonic() + ALL_SECONDS
    result = []
    for row in sorted(rows, key=lambda row: row.objective.volume):
        if row.policy is None or row.unlimited:
            continue
        limited, blind = row.policy.value(row.belief).midpoint, None
        if time.monotonic() < until:
            baseline = baselines(row.objective, row.belief, caps=())[BLIND]
            try:
                blind = evaluate_pending(baseline, row.objective, row.belief, TOLERANCE, MOST_UPDATES).midpoint
            except TooLargeError:
                blind = None
        result.append(Ignored(row.name, limited, blind))
    return result
