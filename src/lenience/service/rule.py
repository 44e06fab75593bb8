"""The decision itself: a pure function of a segment's rule and its counts. The audit runs the same function again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lenience.belief import Belief
from lenience.service.events import Choice
from lenience.service.tables import SolvedTable

ABOVE, LEARNING, FLOOR = "above_break_even", "worth_learning", "exploration_floor"
BELOW, LIMIT, CAP, OVER = "below_threshold", "exposure_limit", "exposure_cap", "horizon_over"


@dataclass(slots=True)
class Counts:
    """What is known of a segment: how many came, were accepted, are awaited, succeeded and failed."""

    arrivals: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0


class Verdict(NamedTuple):
    """A decision with what it rests on. ``limit`` is nothing where any number may be pending."""

    decision: Choice
    rule: str
    limit: int | None
    probability: float
    threshold: float


@dataclass(frozen=True, slots=True)
class SegmentRule:
    """What one version of a policy does in one segment."""

    name: str
    share: float
    table: SolvedTable
    digest: str
    exposure_cap: int | None
    exploration_floor: float

    def belief(self, counts: Counts) -> Belief:
        """The prior and the outcomes, exactly."""
        prior = self.table.prior
        return Belief(prior.n + counts.successes + counts.failures, prior.s + counts.successes)

    def limit(self, counts: Counts) -> int | None:
        """How many may be pending when one more is accepted: the optimum's limit, and the cap."""
        limit = self.table.limit(counts.successes, counts.failures)
        if self.exposure_cap is None:
            return limit
        return self.exposure_cap if limit is None else min(limit, self.exposure_cap)

    def decide(self, counts: Counts, draw: float) -> Verdict:
        """Accept or reject the next individual. ``draw`` in [0, 1) settles what the exploration floor leaves open."""
        table = self.table
        successes, failures = counts.successes, counts.failures
        threshold = table.threshold(successes, failures)
        if table.horizon is not None and counts.accepted >= table.horizon:
            return Verdict("reject", OVER, 0, 0.0, threshold)
        optimum = table.limit(successes, failures)
        cap = self.exposure_cap
        limit = optimum if cap is None else cap if optimum is None else min(optimum, cap)
        if limit is None or counts.pending < limit:
            prior = table.prior
            above = prior.s + successes > table.cost * (prior.n + successes + failures)
            return Verdict("accept", ABOVE if above else LEARNING, limit, 1.0, threshold)
        if optimum == 0:
            # Only where the optimum has stopped for good does the floor keep the segment open; a limit reached for
            # now opens again by itself.
            floor = self.exploration_floor
            if floor > 0 and (cap is None or counts.pending < cap):
                if draw < floor:
                    return Verdict("accept", FLOOR, limit, floor, threshold)
                return Verdict("reject", BELOW, limit, floor, threshold)
            return Verdict("reject", BELOW, limit, 0.0, threshold)
        reached_cap = optimum is None or counts.pending < optimum
        return Verdict("reject", CAP if reached_cap else LIMIT, limit, 0.0, threshold)
