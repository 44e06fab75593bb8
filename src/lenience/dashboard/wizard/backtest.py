"""What would have happened: past applicants whose outcomes are known, decided again by the new policy.

The policy starts from the beliefs it is given and meets the applicants in the order in which they came; it learns an
outcome only if it accepts, after the label delay where there is one. The decision is the service's own. Those whom the
past rejected have no outcome and cannot be replayed: the comparison shows what the policy would have saved and missed
among those who were accepted, not whom else it would have accepted.

:func:`halved` divides the applicants for a replay out of sample: what was known when the later half began is all that
its beliefs may rest on.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from random import Random

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.dashboard.wizard.past_file import Known
from lenience.service.domain.rule import CAP, LIMIT, Counts, SegmentRule
from lenience.service.domain.solved_tables import Effort, load, solve
from lenience.service.domain.specification import PolicySpecification, SegmentProblem

SECONDS = 25.0  # spent on solving
LATE_TOLERANCE = 0.01  # of values where labels come late; decisions differ from the optimum's by no more than that
SEED = 1  # of the draws that an exploration floor needs


class Tally(msgspec.Struct):
    """Acceptances with their outcomes."""

    accepted: int = 0
    successes: int = 0

    def value(self, cost: float) -> float:
        """What they earned: 1 − c each success, −c each failure."""
        return self.successes - cost * self.accepted

    @property
    def failures(self) -> int:
        """Those that failed."""
        return self.accepted - self.successes


class Replayed(msgspec.Struct, frozen=True):
    """A segment as it was and as it would have been; ``stopped_after`` acceptances, if it was stopped for good."""

    name: str
    cost: float
    past: Tally
    new: Tally
    stopped_after: int | None
    held_back: int = 0  # rejected because as many as may be were pending


class Backtest(msgspec.Struct, frozen=True):
    """All segments, the course of the value for both, and how many segments there was no time to solve."""

    segments: list[Replayed]
    course: list[tuple[int, float, float]]  # applicants, value of the past, value of the new policy
    left_out: int

    @property
    def past(self) -> Tally:
        """What was done."""
        return _sum([one.past for one in self.segments])

    @property
    def new(self) -> Tally:
        """What would have been done."""
        return _sum([one.new for one in self.segments])

    @property
    def held_back(self) -> int:
        """Rejected for the exposure limit alone, while earlier outcomes were awaited."""
        return sum(one.held_back for one in self.segments)

    @property
    def past_value(self) -> float:
        """What it earned."""
        return sum(one.past.value(one.cost) for one in self.segments)

    @property
    def new_value(self) -> float:
        """What it would have earned."""
        return sum(one.new.value(one.cost) for one in self.segments)


class _Walk:
    """One segment on its way through the past."""

    def __init__(self, rule: SegmentRule, delay: float) -> None:
        self.rule, self.delay = rule, delay
        self.counts = Counts()
        self.awaited: deque[tuple[float, bool]] = deque()
        self.past, self.new = Tally(), Tally()
        self.stopped_after: int | None = None
        self.held_back = 0

    def meet(self, one: Known, at: float, draw: float) -> bool:
        """Decide one, and learn what is known by then; whether it was accepted."""
        counts = self.counts
        while self.awaited and self.awaited[0][0] <= at:
            self._learn(self.awaited.popleft()[1])
        counts.arrivals += 1
        verdict = self.rule.decide(counts, draw)
        self.past.accepted += 1
        self.past.successes += one.success
        taken = verdict.decision == "accept"
        if taken:
            counts.accepted += 1
            counts.pending += 1
            self.new.accepted += 1
            self.new.successes += one.success
            self.stopped_after = None
            if self.delay:
                self.awaited.append((at + self.delay, one.success))
            else:
                self._learn(one.success)
        elif verdict.rule in (LIMIT, CAP):
            self.held_back += 1
        elif verdict.limit == 0 and not counts.pending and self.stopped_after is None:
            self.stopped_after = counts.accepted
        return taken

    def _learn(self, success: bool) -> None:
        self.counts.pending -= 1
        if success:
            self.counts.successes += 1
        else:
            self.counts.failures += 1


def backtest(
    specification: PolicySpecification,
    priors: dict[str, Belief],
    known: Sequence[Known],
    seconds: float = SECONDS,
    points: int = 200,
) -> Backtest:
    """Replay the known outcomes under the policy from the priors given, segment by segment."""
    many: dict[str, int] = {}
    for one in known:
        many[one.segment] = many.get(one.segment, 0) + 1
    until = time.monotonic() + seconds
    walks: dict[str, _Walk] = {}
    problems = {problem.name: problem for problem in specification.problems()}
    for name in sorted(many, key=lambda name: -many[name]):
        if name in problems and time.monotonic() < until:
            rule = _rule(msgspec.structs.replace(problems[name], prior=priors[name]), many[name])
            if rule is not None:
                objective = specification.objective
                walks[name] = _Walk(rule, objective.label_delay)
    chance = Random(SEED)
    yearly = specification.objective.arrivals or 1.0
    course = [(0, 0.0, 0.0)]
    was = would = 0.0
    replayed = [one for one in known if one.segment in walks]
    each = max(len(replayed) // points, 1)
    for i, one in enumerate(replayed, 1):
        walk = walks[one.segment]
        # Without dates applicants are taken to come evenly, as many a year as the objective says.
        at = one.place / yearly if one.years is None else one.years
        earned = one.success - walk.rule.table.cost
        was += earned
        if walk.meet(one, at, chance.random()):
            would += earned
        if i % each == 0 or i == len(replayed):
            course.append((i, was, would))
    rows = [
        Replayed(name, walk.rule.table.cost, walk.past, walk.new, walk.stopped_after, walk.held_back)
        for name, walk in walks.items()
    ]
    return Backtest(rows, course, len(many) - len(walks))


def halved(known: Sequence[Known], wait: float = 0.0) -> tuple[Sequence[Known], Sequence[Known]]:
    """The outcomes that were known when the later half of the applicants began, and that half.

    An outcome is known ``wait`` years after the decision. Nobody is divided from those of the same moment.

    >>> past = [Known("all", True, years, 0) for years in (0.0, 0.1, 0.4, 0.5, 0.5, 0.9)]
    >>> [[one.years for one in half] for half in halved(past, wait=0.2)]
    [[0.0, 0.1], [0.5, 0.5, 0.9]]
    """
    if not known or known[0].years is None:
        return (), ()
    begins = known[len(known) // 2].years
    assert begins is not None
    at = [one.years or 0.0 for one in known]
    return known[: bisect_right(at, begins - wait, hi=bisect_left(at, begins))], known[bisect_left(at, begins) :]


def _rule(problem: SegmentProblem, outcomes: int) -> SegmentRule | None:
    """The segment's rule for so many outcomes; nothing where it cannot be solved in time."""
    try:
        rows = outcomes + 1
        text = solve(
            problem, Effort(rows, late_tolerance=LATE_TOLERANCE, late_rows=rows, seconds=SECONDS / 5, limit=False)
        )
    except InputError:
        return None
    table = load(text)
    return SegmentRule(problem.name, problem.share, table, "", problem.exposure_cap, problem.exploration_floor)


def _sum(tallies: Sequence[Tally]) -> Tally:
    return Tally(sum(one.accepted for one in tallies), sum(one.successes for one in tallies))
