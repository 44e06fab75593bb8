"""The decision: a pure function of a segment's rule and counts. The audit calls the same function again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lenience.core.belief import Belief
from lenience.service.domain.events import Choice
from lenience.service.domain.solved_tables import SolvedTable

ABOVE, LEARNING, FLOOR = "above_break_even", "worth_learning", "exploration_floor"
BELOW, LIMIT, CAP, OVER = "below_threshold", "exposure_limit", "exposure_cap", "horizon_over"


@dataclass(slots=True)
class Counts:
    """The counts of a segment: arrivals, accepted, pending, successes and failures."""

    arrivals: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0


class Verdict(NamedTuple):
    """A decision and its grounds. ``limit`` is None if any number of outcomes may be pending."""

    decision: Choice
    rule: str
    limit: int | None
    probability: float
    threshold: float


class DecisionBasis:
    """Everything that follows from a segment's outcomes alone. It is computed when they change, not per decision."""

    __slots__ = ("above", "belief", "failures", "limit", "optimum", "reasons", "successes", "threshold")

    def __init__(self, table: SolvedTable, cap: int | None, successes: int, failures: int) -> None:
        prior = table.prior
        self.successes, self.failures = successes, failures
        self.belief = Belief(prior.n + successes + failures, prior.s + successes)
        self.threshold = table.threshold(successes, failures)
        self.optimum = optimum = table.limit(successes, failures)
        self.limit = optimum if cap is None else cap if optimum is None else min(optimum, cap)
        self.above = self.belief.s > table.cost * self.belief.n
        self.reasons: dict[tuple[str, int], Any] = {}  # texts of the reasons, by rule and number pending


@dataclass(frozen=True, slots=True)
class SegmentRule:
    """The rule of one version of a policy in one segment."""

    name: str
    share: float
    table: SolvedTable
    digest: str
    exposure_cap: int | None
    exploration_floor: float
    _last: list[DecisionBasis] = field(default_factory=list, repr=False, compare=False)

    def basis(self, counts: Counts) -> DecisionBasis:
        """Return what follows from the outcomes so far. The last result is cached."""
        last = self._last
        if last:
            previous = last[0]
            if previous.successes == counts.successes and previous.failures == counts.failures:
                return previous
        basis = DecisionBasis(self.table, self.exposure_cap, counts.successes, counts.failures)
        last[:] = [basis]
        return basis

    def belief(self, counts: Counts) -> Belief:
        """Return the prior plus the outcomes."""
        return self.basis(counts).belief

    def limit(self, counts: Counts) -> int | None:
        """Return how many outcomes may be pending when one more is accepted: the smaller of optimal limit and cap."""
        return self.basis(counts).limit

    def decide(self, counts: Counts, draw: float) -> Verdict:
        """Accept or reject the next individual. ``draw`` in [0, 1) settles the exploration floor."""
        now = self.basis(counts)
        limit, threshold = now.limit, now.threshold
        horizon = self.table.horizon
        if horizon is not None and counts.accepted >= horizon:
            return Verdict("reject", OVER, 0, 0.0, threshold)
        if limit is None or counts.pending < limit:
            return Verdict("accept", ABOVE if now.above else LEARNING, limit, 1.0, threshold)
        cap = self.exposure_cap
        if now.optimum == 0:
            # The floor keeps a segment open only where the optimum has stopped for good. A limit that is reached for
            # now opens again when outcomes arrive.
            floor = self.exploration_floor
            if floor > 0 and (cap is None or counts.pending < cap):
                if draw < floor:
                    return Verdict("accept", FLOOR, limit, floor, threshold)
                return Verdict("reject", BELOW, limit, floor, threshold)
            return Verdict("reject", BELOW, limit, 0.0, threshold)
        reached_cap = now.optimum is None or counts.pending < now.optimum
        return Verdict("reject", CAP if reached_cap else LIMIT, limit, 0.0, threshold)
