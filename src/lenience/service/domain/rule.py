"""The decision: a pure function of a segment's rule, its counts and the offers. The audit calls the same function.

Where amounts differ, the offer with the largest expected profit is decided: it is accepted if the profit and the value
of the label are above 0. A cap in money leaves out the offers whose loss does not fit any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.offers import Offer
from lenience.service.domain.events import Choice
from lenience.service.domain.offer_tables import Label, OfferTable
from lenience.service.domain.solved_tables import SolvedTable

ABOVE, LEARNING, FLOOR = "above_break_even", "worth_learning", "exploration_floor"
BELOW, LIMIT, CAP, OVER = "below_threshold", "exposure_limit", "exposure_cap", "horizon_over"
LOSS_CAP, CAPACITY = "exposure_cap_amount", "capacity"


@dataclass(slots=True)
class Counts:
    """The counts of a segment: arrivals, accepted, pending, successes and failures.

    ``at_risk`` is what the segment loses if all its pending outcomes fail, in money. It is 0 without offers.
    """

    arrivals: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0
    at_risk: float = 0.0


def at_risk_after(at_risk: float, change: float, pending: int) -> float:
    """Return the money at risk after a change. Nothing is at risk where nothing is pending, without rounding.

    >>> at_risk_after(800.0, 400.0, pending=2), at_risk_after(0.1 + 0.2, -0.3, pending=0)
    (1200.0, 0.0)
    """
    return max(at_risk + change, 0.0) if pending > 0 else 0.0


class Verdict(NamedTuple):
    """A decision and its grounds. ``limit`` is None if any number of outcomes may be pending.

    Where amounts differ, ``offer`` is the one that is made, or that would be made if it were not rejected.
    ``threshold`` is then the least success rate at which it is accepted.
    """

    decision: Choice
    rule: str
    limit: int | None
    probability: float
    threshold: float
    offer: Offer | None = None
    expected_profit: float | None = None
    label_value: Bounds | None = None


class DecisionBasis:
    """Everything that follows from a segment's outcomes alone. It is computed when they change, not per decision."""

    __slots__ = (
        "above",
        "belief",
        "evidence",
        "failures",
        "labels",
        "limit",
        "optimum",
        "rate",
        "reasons",
        "successes",
        "threshold",
    )

    def __init__(self, table: SolvedTable, cap: int | None, successes: int, failures: int) -> None:
        self.successes, self.failures = successes, failures
        self.belief = table.belief(successes, failures)
        self.threshold = table.threshold(successes, failures)
        self.optimum = optimum = table.limit(successes, failures)
        self.limit = optimum if cap is None else cap if optimum is None else min(optimum, cap)
        self.above = self.belief.s > table.cost * self.belief.n
        self.rate = self.belief.mean
        if isinstance(table, OfferTable):
            self.rate = table.rate(successes, failures)
            self.above = self.rate > table.cost
        self.labels: dict[int, Label] = {}  # by the number of pending outcomes
        self.evidence: str | None = None  # the text about it
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
    exposure_cap_amount: float | None = None
    _last: list[DecisionBasis] = field(default_factory=list, repr=False, compare=False)

    @property
    def needs_offer(self) -> bool:
        """Whether a request must hold an offer: amounts differ, and not everybody has the same choice."""
        return isinstance(self.table, OfferTable) and self.table.offers is not None and not self.table.one_menu

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

    def decide(self, counts: Counts, draw: float, choices: Sequence[Offer] = ()) -> Verdict:
        """Accept or reject the next individual. ``draw`` in [0, 1) settles the exploration floor.

        ``choices`` are the offers of which one can be made. Without any, all offers of the version can be. Where all
        have one cost, they do not matter.
        """
        if isinstance(self.table, OfferTable) and self.table.offers is not None:
            return self._decide_offer(counts, draw, choices or self.table.choices)
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

    def label(self, counts: Counts) -> Label:
        """Return what one more outcome is worth for later decisions. The table must be one for offers."""
        assert isinstance(self.table, OfferTable)
        labels = self.basis(counts).labels
        label = labels.get(counts.pending)
        if label is None:
            label = labels[counts.pending] = self.table.label(counts.successes, counts.failures, counts.pending)
        return label

    def _decide_offer(self, counts: Counts, draw: float, choices: Sequence[Offer]) -> Verdict:
        """Decide where amounts differ."""
        now, cap, worth = self.basis(counts), self.exposure_cap, self.label(counts).worth
        best = best_offer(choices, now.rate)
        profit = best.expected_profit(now.rate)
        if profit + worth > 0.0:
            if cap is not None and counts.pending >= cap:
                return self._verdict("reject", CAP, 0.0, best, counts)
            fitting = self._fitting(counts, choices)
            if best not in fitting:
                smaller = best_offer(fitting, now.rate) if fitting else None
                if smaller is None or smaller.expected_profit(now.rate) + worth <= 0.0:
                    return self._verdict("reject", LOSS_CAP, 0.0, best, counts)
                best = smaller
            above = best.expected_profit(now.rate) > 0.0
            return self._verdict("accept", ABOVE if above else LEARNING, 1.0, best, counts)
        assert isinstance(self.table, OfferTable)
        if counts.pending and profit + self.table.label(counts.successes, counts.failures).worth > 0.0:
            return self._verdict("reject", LIMIT, 0.0, best, counts)  # it is accepted again when outcomes arrive
        # The floor keeps a segment open only where no offer is accepted any more, so that it learns nothing.
        floor = self.exploration_floor if now.optimum == 0 and (cap is None or counts.pending < cap) else 0.0
        fitting = self._fitting(counts, choices) if floor > 0 else ()
        if not fitting:
            return self._verdict("reject", BELOW, 0.0, best, counts)
        best = best_offer(fitting, now.rate)
        if draw < floor:
            return self._verdict("accept", FLOOR, floor, best, counts)
        return self._verdict("reject", BELOW, floor, best, counts)

    def _fitting(self, counts: Counts, choices: Sequence[Offer]) -> Sequence[Offer]:
        """Return the offers whose loss the cap in money still allows."""
        cap = self.exposure_cap_amount
        return choices if cap is None else [one for one in choices if counts.at_risk + one.loss <= cap]

    def _verdict(self, decision: Choice, rule: str, probability: float, offer: Offer, counts: Counts) -> Verdict:
        assert isinstance(self.table, OfferTable)
        label, rate, cap = self.label(counts), self.basis(counts).rate, self.exposure_cap
        optimum = self.table.exposure_limit(offer, counts.successes, counts.failures)
        return Verdict(
            decision,
            rule,
            optimum if cap is None else cap if optimum is None else min(optimum, cap),
            probability,
            min(max(offer.cost - label.worth / offer.amount, 0.0), 1.0),
            offer,
            offer.expected_profit(rate),
            label.bounds,
        )


def without_capacity(verdict: Verdict) -> Verdict:
    """Return the rejection of an individual that would be accepted, but is not among the chosen ones of its batch."""
    return verdict._replace(decision="reject", rule=CAPACITY, probability=0.0)


def best_offer(choices: Sequence[Offer], rate: float) -> Offer:
    """Return the offer with the largest expected profit at a success rate, the first one of equals."""
    return max(choices, key=lambda one: one.expected_profit(rate))
