"""The counts of a segment as a value that is logged and stored."""

from __future__ import annotations

from typing import NamedTuple


class SegmentCounts(NamedTuple):
    """The counts of a segment. ``at_risk`` is what it loses if all its pending outcomes fail, in money."""

    arrivals: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0
    at_risk: float = 0.0

    def and_those(self, other: SegmentCounts) -> SegmentCounts:
        """Return the sums of the counts."""
        return SegmentCounts(
            self.arrivals + other.arrivals,
            self.accepted + other.accepted,
            self.pending + other.pending,
            self.successes + other.successes,
            self.failures + other.failures,
            self.at_risk + other.at_risk,
        )
