"""The decision: a pure function of a segment's rule, its counts and the offers. The audit calls the same function.

Where amounts differ, the offer with the largest expected profit is decided: it is accepted if the profit and the value
of the label are above 0. A cap in money leaves out the offers whose loss does not fit any more.

If all segments share a capacity, its price is charged for what an acceptance uses, and limits over all segments are
checked last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.decision_reasons import ABOVE as ABOVE
from lenience.core.decision_reasons import BELOW as BELOW
from lenience.core.decision_reasons import LEARNING as LEARNING
from lenience.core.offers import Offer
from lenience.service.domain.capacity_price import CapacityBody
from lenience.service.domain.events import Decision
from lenience.service.domain.fair_version import FairnessBody
from lenience.service.domain.horizon_offer_tables import HorizonOfferTable
from lenience.service.domain.offer_tables import Label, OfferTable
from lenience.service.domain.overall import OVERALL, OverallLimits, OverallUse
from lenience.service.domain.pooled_models import Borrowed, PooledModel
from lenience.service.domain.pooled_tables import PooledTable
from lenience.service.domain.solved_tables import SolvedTable

FLOOR, LIMIT, CAP, OVER = "exploration_floor", "exposure_limit", "exposure_cap", "horizon_over"
LOSS_CAP, CAPACITY = "exposure_cap_amount", "capacity"
# The rules of rejections for a limit that makes room again. Applicants who are alike are then treated differently.
FULL = frozenset({LIMIT, CAP, LOSS_CAP, CAPACITY, *OVERALL})


@dataclass(slots=True)
class Counts:
    """The counts of a segment: arrivals, accepted, pending, successes and failures.

    ``at_risk`` is what the segment loses if all its pending outcomes fail, in money. It is 0 without offers. If open
    loans count according to their age, ``open`` of them count as ``open_outcomes``, of which ``open_successes`` are
    successes. ``borrowed`` is what a segment borrows from the others, if the version's model pools them. If old
    outcomes count less, ``forgotten_outcomes`` of them do not count any more, of which ``forgotten_successes`` are
    successes.
    """

    arrivals: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0
    at_risk: float = 0.0
    open: int = 0
    open_outcomes: float = 0.0
    open_successes: float = 0.0
    borrowed: Borrowed | None = None
    forgotten_outcomes: float = 0.0
    forgotten_successes: float = 0.0

    @property
    def good(self) -> float:
        """The successes that count, with those for which open loans count and those that are borrowed."""
        if self.borrowed is not None:
            return self.successes + self.borrowed.successes
        known = max(self.successes - self.forgotten_successes, 0.0) if self.forgotten_outcomes else self.successes
        return known + self.open_successes if self.open else known

    @property
    def bad(self) -> float:
        """The failures that count, with those for which open loans count and those that are borrowed."""
        if self.borrowed is not None:
            return self.failures + self.borrowed.outcomes - self.borrowed.successes
        known: float = self.failures
        if self.forgotten_outcomes:
            known = max(known - (self.forgotten_outcomes - self.forgotten_successes), 0.0)
        return known + self.open_outcomes - self.open_successes if self.open else known


def with_borrowed(model: PooledModel | None, counts: Mapping[str, Counts]) -> dict[str, Counts]:
    """Return the counts of all segments with what each borrows from the others under a model."""
    if model is None:
        return dict(counts)
    state = model.start({name: (own.successes, own.failures) for name, own in counts.items()})
    return {
        name: replace(own, borrowed=model.borrowed(state, name)) if name in model.names else own
        for name, own in counts.items()
    }


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

    decision: Decision
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
        "known",
        "labels",
        "left",
        "limit",
        "open",
        "optimum",
        "rate",
        "reasons",
        "successes",
        "table",
        "threshold",
    )

    def __init__(
        self,
        table: SolvedTable,
        cap: int | None,
        successes: float,
        failures: float,
        open_loans: int = 0,
        borrows: bool = False,
    ) -> None:
        self.table, self.successes, self.failures, self.open = table, successes, failures, open_loans
        self.known = 0  # the segment's own outcomes
        self.left = table.left if isinstance(table, HorizonOfferTable) else None  # applicants
        self.belief = table.belief(successes, failures)
        self.threshold = table.threshold(successes, failures)
        self.optimum = optimum = table.limit(successes, failures)
        self.limit = optimum if cap is None else cap if optimum is None else min(optimum, cap)
        self.above = self.belief.s > table.cost * self.belief.n
        self.rate = self.belief.mean
        if isinstance(table, OfferTable):
            self.rate = table.rate(successes, failures)
            self.above = self.rate > table.cost
        elif borrows and optimum is not None:
            # Limits and thresholds are interpolated apart from each other. Neither may contradict the other.
            self.threshold = max(self.threshold, self.rate) if optimum == 0 else min(self.threshold, self.rate)
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
    capacity: CapacityBody | None = None  # the price of what an acceptance uses
    overall: OverallLimits | None = None  # limits over all segments of the version
    past_outcomes: float = 0.0  # real outcomes that the prior holds
    waiting_list: bool = False  # whether applicants wait, instead of being rejected, if only a limit is reached
    fairness: FairnessBody | None = None  # the shift of the break-even by a fairness limit
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
            same = previous.successes == counts.good and previous.failures == counts.bad
            if isinstance(self.table, HorizonOfferTable):
                same = same and previous.left == self.table.left_after(counts.arrivals)
            # Texts mention the number of open loans, and the segment's own outcomes.
            if same and previous.open == counts.open and previous.known == counts.successes + counts.failures:
                return previous
        borrows = counts.borrowed is not None
        basis = DecisionBasis(
            self.table_after(counts), self.exposure_cap, counts.good, counts.bad, counts.open, borrows
        )
        basis.known = counts.successes + counts.failures
        last[:] = [basis]
        return basis

    def table_after(self, counts: Counts) -> SolvedTable:
        """Return the table as it holds now.

        A horizon with borrowed evidence depends on the number of own outcomes, and one with offers on the applicants.
        """
        table = self.table
        if isinstance(table, HorizonOfferTable):
            return table.after(counts.arrivals)
        return table.after(counts.successes + counts.failures) if isinstance(table, PooledTable) else table

    def belief(self, counts: Counts) -> Belief:
        """Return the prior plus the outcomes."""
        return self.basis(counts).belief

    def limit(self, counts: Counts) -> int | None:
        """Return how many outcomes may be pending when one more is accepted: the smaller of optimal limit and cap."""
        return self.basis(counts).limit

    @property
    def break_even(self) -> float:
        """The break-even success rate without the shift by a price or a fairness limit, which the table's cost has."""
        shifting = self.capacity or self.fairness
        return self.table.cost if shifting is None else shifting.costs.get(self.name, self.table.cost)

    @property
    def price(self) -> float:
        """The price of the capacity that all segments share, for one acceptance or for one unit of money."""
        return 0.0 if self.capacity is None else self.capacity.price

    def charge(self, offer: Offer) -> float:
        """Return the price of the capacity that accepting an offer uses."""
        return 0.0 if self.capacity is None else self.capacity.charge(offer)

    def net_profit(self, offer: Offer, rate: float) -> float:
        """Return what an offer is expected to earn after the price of its capacity."""
        return offer.expected_profit(rate) - self.charge(offer)

    def best_offer(self, choices: Sequence[Offer], rate: float) -> Offer:
        """Return the offer that is expected to earn most at a success rate, the first one of equals."""
        return max(choices, key=lambda one: self.net_profit(one, rate))

    def largest_amount(self, cost: float, counts: Counts) -> float:
        """Return the largest amount at stake that is accepted at a break-even, caps aside: infinity if any is."""
        gap, worth = cost - self.basis(counts).rate, self.label(counts).worth
        if self.capacity is not None:
            in_money = self.capacity.capacity.loss is not None
            gap, worth = (gap + self.price * cost, worth) if in_money else (gap, worth - self.price)
        if gap > 0.0:
            return max(worth / gap, 0.0)
        return math.inf if gap < 0.0 or worth > 0.0 else 0.0

    def decide(
        self, counts: Counts, draw: float, choices: Sequence[Offer] = (), use: OverallUse | None = None
    ) -> Verdict:
        """Accept or reject the next individual. ``draw`` in [0, 1) settles the exploration floor.

        ``choices`` are the offers of which one can be made. Without any, all offers of the version can be. Where all
        have one cost, they do not matter. ``use`` is what all segments have used. Without it, limits over all segments
        do not matter, as for a shadow version.
        """
        if isinstance(self.table, OfferTable) and self.table.offers is not None:
            return self.with_waiting_list(self._decide_offer(counts, draw, choices or self.table.choices, use))
        verdict = self._decide(counts, draw)
        full = None if use is None or self.overall is None else self.overall.full(use)
        if full is not None and verdict.decision == "accept":
            verdict = verdict._replace(decision="reject", rule=full, probability=0.0)
        return self.with_waiting_list(verdict)

    def without_capacity(self, verdict: Verdict) -> Verdict:
        """Return the verdict on an individual that would be accepted, but is not among the chosen ones of its batch."""
        return self.with_waiting_list(verdict._replace(decision="reject", rule=CAPACITY, probability=0.0))

    def with_waiting_list(self, verdict: Verdict) -> Verdict:
        """Put the individual on the waiting list if there is one, and if only a limit stands in the way."""
        if not self.waiting_list or verdict.rule not in FULL:
            return verdict
        return verdict._replace(decision="wait")

    def _decide(self, counts: Counts, draw: float) -> Verdict:
        """Decide where all have one cost."""
        now = self.basis(counts)
        limit, threshold = now.limit, now.threshold
        if self._over(counts):
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

    def _over(self, counts: Counts) -> bool:
        """Return whether the horizon is over: of applicants, or of acceptances where stopping is final."""
        horizon = self.table.horizon
        if horizon is None:
            return False
        return (counts.arrivals if isinstance(self.table, HorizonOfferTable) else counts.accepted) >= horizon

    def label(self, counts: Counts) -> Label:
        """Return what one more outcome is worth for later decisions. The table must be one for offers."""
        now = self.basis(counts)
        assert isinstance(now.table, OfferTable)
        label = now.labels.get(counts.pending)
        if label is None:
            label = now.labels[counts.pending] = now.table.label(counts.good, counts.bad, counts.pending)
        return label

    def _decide_offer(self, counts: Counts, draw: float, choices: Sequence[Offer], use: OverallUse | None) -> Verdict:
        """Decide where amounts differ."""
        now, cap, worth = self.basis(counts), self.exposure_cap, self.label(counts).worth
        best = self.best_offer(choices, now.rate)
        profit = self.net_profit(best, now.rate)
        if self._over(counts):
            return self._verdict("reject", OVER, 0.0, best, counts)
        full = None if use is None or self.overall is None else self.overall.full(use)
        if profit + worth > 0.0:
            if cap is not None and counts.pending >= cap:
                return self._verdict("reject", CAP, 0.0, best, counts)
            if full is not None:
                return self._verdict("reject", full, 0.0, best, counts)
            fitting = self._fitting(counts, choices, use)
            if best not in fitting:
                smaller = self.best_offer(fitting, now.rate) if fitting else None
                if smaller is None or self.net_profit(smaller, now.rate) + worth <= 0.0:
                    return self._verdict("reject", self._exceeded(counts, best, use), 0.0, best, counts)
                best = smaller
            above = self.net_profit(best, now.rate) > 0.0
            return self._verdict("accept", ABOVE if above else LEARNING, 1.0, best, counts)
        assert isinstance(now.table, OfferTable)
        if counts.pending and profit + now.table.label(counts.good, counts.bad).worth > 0.0:
            return self._verdict("reject", LIMIT, 0.0, best, counts)  # it is accepted again when outcomes arrive
        # The floor keeps a segment open only where no offer is accepted any more, so that it learns nothing.
        open_now = now.optimum == 0 and full is None and (cap is None or counts.pending < cap)
        floor = self.exploration_floor if open_now else 0.0
        fitting = self._fitting(counts, choices, use) if floor > 0 else ()
        if not fitting:
            return self._verdict("reject", BELOW, 0.0, best, counts)
        best = self.best_offer(fitting, now.rate)
        if draw < floor:
            return self._verdict("accept", FLOOR, floor, best, counts)
        return self._verdict("reject", BELOW, floor, best, counts)

    def _fitting(self, counts: Counts, choices: Sequence[Offer], use: OverallUse | None) -> Sequence[Offer]:
        """Return the offers whose loss the caps in money still allow."""
        cap = self.exposure_cap_amount
        if cap is not None:
            choices = [one for one in choices if counts.at_risk + one.loss <= cap]
        return choices if use is None or self.overall is None else self.overall.fitting(use, choices)

    def _exceeded(self, counts: Counts, offer: Offer, use: OverallUse | None) -> str:
        """Return the limit in money that leaves an offer out."""
        cap = self.exposure_cap_amount
        if use is None or self.overall is None or (cap is not None and counts.at_risk + offer.loss > cap):
            return LOSS_CAP
        return self.overall.exceeded(use, offer) or LOSS_CAP

    def _verdict(self, decision: Decision, rule: str, probability: float, offer: Offer, counts: Counts) -> Verdict:
        assert isinstance(self.table, OfferTable)
        label, rate, cap = self.label(counts), self.basis(counts).rate, self.exposure_cap
        optimum = self.table.exposure_limit(offer, counts.good, counts.bad)
        return Verdict(
            decision,
            rule,
            optimum if cap is None else cap if optimum is None else min(optimum, cap),
            probability,
            min(max(offer.cost + (self.charge(offer) - label.worth) / offer.amount, 0.0), 1.0),
            offer,
            offer.expected_profit(rate),
            label.bounds,
        )
