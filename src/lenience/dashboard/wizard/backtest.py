"""Back-test: past applicants with known outcomes, decided again by the new policy.

The policy starts from the given beliefs and meets the applicants in order of arrival. It learns an outcome only if it
accepts, and after the delay if there is one. The decision rule is the service's own. Applicants who were rejected in
the past have no outcome and cannot be tested. The comparison shows what the policy would have saved and missed among
those who were accepted, not whom else it would have accepted.

:func:`halved` divides the applicants for an out-of-sample back-test: the beliefs use only outcomes that were known when
the later half began.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.history.past_rows import KnownOutcome
from lenience.service.domain.rule import CAP, LIMIT, LOSS_CAP, Counts, SegmentRule, Verdict, at_risk_after
from lenience.service.domain.solved_tables import OFFER_ROWS, Effort, load, solve
from lenience.service.domain.specification import PolicySpecification, SegmentProblem

SECONDS = 25.0  # spent on solving
LATE_TOLERANCE = 0.01  # of values with late outcomes; decisions lose at most that compared with the optimum
SEED = 1  # of the random draws for an exploration floor


class OutcomeTally(msgspec.Struct):
    """A number of acceptances and of successes, and what they earned: in money with offers, otherwise in units."""

    accepted: int = 0
    successes: int = 0
    earned: float = 0.0

    def add(self, success: bool, earned: float) -> None:
        """Add an acceptance."""
        self.accepted += 1
        self.successes += success
        self.earned += earned

    @property
    def failures(self) -> int:
        """The number of failures."""
        return self.accepted - self.successes


class SegmentBacktest(msgspec.Struct, frozen=True):
    """A segment, actual and with the new policy. ``stopped_after`` counts acceptances before a final stop."""

    name: str
    past: OutcomeTally
    new: OutcomeTally
    stopped_after: int | None
    held_back: int = 0  # rejected because the exposure limit was reached


class Backtest(msgspec.Struct, frozen=True):
    """All segments, the course of the earnings, and the number of segments that took too long to solve."""

    segments: list[SegmentBacktest]
    course: list[tuple[int, float, float]]  # applicants, value of the past, value of the new policy
    left_out: int

    @property
    def past(self) -> OutcomeTally:
        """The actual tally."""
        return _sum([segment.past for segment in self.segments])

    @property
    def new(self) -> OutcomeTally:
        """The tally of the new policy."""
        return _sum([segment.new for segment in self.segments])

    @property
    def held_back(self) -> int:
        """The number of rejections caused only by the exposure limit."""
        return sum(segment.held_back for segment in self.segments)

    @property
    def past_value(self) -> float:
        """The actual earnings."""
        return sum(segment.past.earned for segment in self.segments)

    @property
    def new_value(self) -> float:
        """The earnings of the new policy."""
        return sum(segment.new.earned for segment in self.segments)


class _BacktestWalk:
    """One segment on its way through the past."""

    def __init__(self, rule: SegmentRule, delay: float) -> None:
        self.rule, self.delay = rule, delay
        self.counts = Counts()
        self.pending: deque[tuple[float, bool, float]] = deque()  # when the outcome is known, the outcome, its loss
        self.past, self.new = OutcomeTally(), OutcomeTally()
        self.stopped_after: int | None = None
        self.held_back = 0

    def meet(self, applicant: KnownOutcome, at: float, draw: float, offer: Offer | None = None) -> bool:
        """Learn the outcomes known by now, decide about an applicant, and return whether it was accepted."""
        counts = self.counts
        while self.pending and self.pending[0][0] <= at:
            self._learn(*self.pending.popleft()[1:])
        counts.arrivals += 1
        verdict = self.rule.decide(counts, draw, () if offer is None else (offer,))
        loss = 0.0 if offer is None else offer.loss
        earned = self.earned(applicant, offer)
        self.past.add(applicant.success, earned)
        taken = verdict.decision == "accept"
        if taken:
            counts.accepted += 1
            counts.pending += 1
            counts.at_risk = at_risk_after(counts.at_risk, loss, counts.pending)
            self.new.add(applicant.success, earned)
            self.stopped_after = None
            if self.delay:
                self.pending.append((at + self.delay, applicant.success, loss))
            else:
                self._learn(applicant.success, loss)
        elif verdict.rule in (LIMIT, CAP, LOSS_CAP):
            self.held_back += 1
        elif self._stopped(verdict) and not counts.pending and self.stopped_after is None:
            self.stopped_after = counts.accepted
        return taken

    def earned(self, applicant: KnownOutcome, offer: Offer | None) -> float:
        """Return what an applicant earns if accepted: in money with an offer, otherwise in units of gain + loss."""
        if offer is None:
            return applicant.success - self.rule.table.cost
        return offer.gain if applicant.success else -offer.loss

    def _stopped(self, verdict: Verdict) -> bool:
        """Return whether no further applicant is accepted. With offers, a better one might be."""
        return verdict.limit == 0 if verdict.offer is None else self.rule.basis(self.counts).optimum == 0

    def _learn(self, success: bool, loss: float) -> None:
        self.counts.pending -= 1
        self.counts.at_risk = at_risk_after(self.counts.at_risk, -loss, self.counts.pending)
        if success:
            self.counts.successes += 1
        else:
            self.counts.failures += 1


def backtest(
    specification: PolicySpecification,
    priors: dict[str, Belief],
    known: Sequence[KnownOutcome],
    seconds: float = SECONDS,
    points: int = 200,
    offers: Mapping[int, Offer] | None = None,
) -> Backtest:
    """Decide the known outcomes again with the policy from the given priors, segment by segment.

    ``offers`` are those of the applicants by their position in the file, where amounts differ. Applicants without one
    are left out.
    """
    if offers is not None:
        known = [applicant for applicant in known if applicant.place in offers]
    outcomes: dict[str, int] = {}
    for applicant in known:
        outcomes[applicant.segment] = outcomes.get(applicant.segment, 0) + 1
    until = time.monotonic() + seconds
    walks: dict[str, _BacktestWalk] = {}
    problems = {problem.name: problem for problem in specification.problems()}
    for name in sorted(outcomes, key=lambda name: -outcomes[name]):
        if name in problems and time.monotonic() < until:
            rule = _rule(msgspec.structs.replace(problems[name], prior=priors[name]), outcomes[name])
            if rule is not None:
                objective = specification.objective
                walks[name] = _BacktestWalk(rule, objective.label_delay)
    chance = Random(SEED)
    yearly = specification.objective.arrivals or 1.0
    course = [(0, 0.0, 0.0)]
    actual = new = 0.0
    applicants = [applicant for applicant in known if applicant.segment in walks]
    each = max(len(applicants) // points, 1)
    for i, applicant in enumerate(applicants, 1):
        walk = walks[applicant.segment]
        # Without dates, applicants are assumed to arrive evenly, at the yearly rate of the objective.
        at = applicant.place / yearly if applicant.years is None else applicant.years
        offer = None if offers is None else offers[applicant.place]
        earned = walk.earned(applicant, offer)
        actual += earned
        if walk.meet(applicant, at, chance.random(), offer):
            new += earned
        if i % each == 0 or i == len(applicants):
            course.append((i, actual, new))
    rows = [
        SegmentBacktest(name, walk.past, walk.new, walk.stopped_after, walk.held_back) for name, walk in walks.items()
    ]
    return Backtest(rows, course, len(outcomes) - len(walks))


def halved(known: Sequence[KnownOutcome], wait: float = 0.0) -> tuple[Sequence[KnownOutcome], Sequence[KnownOutcome]]:
    """Return the outcomes known when the later half of the applicants began, and that later half.

    An outcome is known ``wait`` years after the decision. Applicants of the same moment stay together.

    >>> past = [KnownOutcome("all", True, years, 0) for years in (0.0, 0.1, 0.4, 0.5, 0.5, 0.9)]
    >>> [[applicant.years for applicant in half] for half in halved(past, wait=0.2)]
    [[0.0, 0.1], [0.5, 0.5, 0.9]]
    """
    if not known or known[0].years is None:
        return (), ()
    begins = known[len(known) // 2].years
    assert begins is not None
    at = [applicant.years or 0.0 for applicant in known]
    return known[: bisect_right(at, begins - wait, hi=bisect_left(at, begins))], known[bisect_left(at, begins) :]


def _rule(problem: SegmentProblem, outcomes: int) -> SegmentRule | None:
    """Return the rule of a segment for a number of outcomes, or None if solving takes too long."""
    try:
        rows = outcomes + 1
        text = solve(
            problem,
            Effort(
                rows,
                late_tolerance=LATE_TOLERANCE,
                late_rows=rows,
                seconds=SECONDS / 5,
                limit=False,
                offer_rows=min(rows, OFFER_ROWS),
            ),
        )
    except InputError:
        return None
    table = load(text)
    caps = (problem.exposure_cap, problem.exploration_floor, problem.exposure_cap_amount)
    return SegmentRule(problem.name, problem.share, table, "", *caps)


def _sum(tallies: Sequence[OutcomeTally]) -> OutcomeTally:
    return OutcomeTally(
        sum(tally.accepted for tally in tallies),
        sum(tally.successes for tally in tallies),
        sum(tally.earned for tally in tallies),
    )
