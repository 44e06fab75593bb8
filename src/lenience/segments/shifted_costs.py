"""Segments whose costs a Lagrange multiplier shifts: what both a limited capacity and a fair optimum are made of.

If a constraint on the whole population is linear in the acceptances (or successes) of its segments, Lagrange turns it
into a charge or a subsidy for each acceptance. A segment at this price is its own problem again, at a shifted cost, and
segments add up. This module holds segments as numbers, and solves one at any cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import mapped, real
from lenience.segments.segments import Segment, Segments, plain_belief
from lenience.solvers.stopping.solve import solve_discounted
from lenience.solvers.stopping.stopping_time import stopping_time

SEGMENTS = "Segments with Discounted objectives, such as Segments.of(shares, Discounted(0.8, 0.99), prior)"


class SegmentProblem(NamedTuple):
    """A segment as numbers."""

    name: str
    prior: Belief
    cost: float
    discount: float  # the segment's own
    share: float
    weight: float  # of its own value in the value of the whole
    amount: float  # what is at stake: gain plus loss

    @property
    def scale(self) -> float:
        """The weight of the segment's own value, in units of reward, in the value of the whole."""
        return self.weight * self.amount


class ShiftedPolicy(NamedTuple):
    """The optimal policy of a segment at another cost, and how long it goes on accepting."""

    cost: float  # from 0, which accepts everyone, to 1, which accepts nobody
    value: Bounds  # of the best policy at this cost, in units of reward
    rejected: Bounds  # E γ^T: the share of the discounted future after the policy stops
    rejected_success: Bounds  # E γ^T p̂_T: the same, times the expected success rate there

    def earns(self, problem: SegmentProblem) -> Bounds:
        """Return bounds of what the policy earns at the segment's own cost, in units of the whole.

        The policy accepts everyone until it stops: (p̂ − c)/(1 − γ) less what it would have earned after stopping.
        """
        mean, cost = problem.prior.mean, problem.cost
        slack = 1e-15 * (mean + cost)
        factor = problem.scale / (1.0 - problem.discount)
        lower = mean - cost + cost * self.rejected.lower - self.rejected_success.upper - slack
        upper = mean - cost + cost * self.rejected.upper - self.rejected_success.lower + slack
        return Bounds(lower * factor, upper * factor)

    @property
    def acceptance(self) -> Bounds:
        """Bounds of the share of the segment's members that are accepted, where later ones count less."""
        return Bounds(1.0 - self.rejected.upper, 1.0 - self.rejected.lower)

    def opportunity(self, problem: SegmentProblem) -> Bounds:
        """Return bounds of the same share of those who would succeed."""
        mean = problem.prior.mean
        if mean <= 0.0:
            return self.acceptance  # It counts nothing: nobody would succeed.
        lost = self.rejected_success
        return Bounds(max(1.0 - lost.upper / mean * (1.0 + 4e-16), 0.0), min(1.0 - lost.lower / mean, 1.0))


def common_discount(segments: Segments) -> float:
    """Return the discount of all segments, after checking their objectives."""
    if not isinstance(segments, Segments) or not all(cell.objective.stationary for cell in segments):
        raise InputError("segments", segments, SEGMENTS)
    discounts = {cell.objective.discount for cell in segments}
    if len(discounts) > 1:
        raise InputError("segments", sorted(discounts), "segments with the same discount")
    return discounts.pop()


def amount_at_stake(cell: Segment, amounts: Mapping[str, float] | None) -> float:
    """Return the amount at stake of a segment without offers; 1 if none are given."""
    if amounts is None:
        return 1.0
    stakes = mapped("amounts", amounts, "a mapping of segments to amounts")
    if cell.name not in stakes:
        raise InputError.because(
            f"must be given for every segment; it is missing for {cell.name!r}",
            "amounts",
            value=cell.name,
            code="missing",
        )
    return real("amounts", stakes[cell.name], above=0, label=f"amount of {cell.name}")


def segment_problems(segments: Segments, amounts: Mapping[str, float] | None, feature: str) -> list[SegmentProblem]:
    """Return the segments as numbers; raise InputError if one has offers, a mixture, or no amount."""
    problems = []
    for cell in segments:
        own, prior = cell.own, plain_belief(cell, feature)
        amount = amount_at_stake(cell, amounts)
        problems.append(SegmentProblem(cell.name, prior, own.cost, own.discount, cell.share, cell.weight, amount))
    return problems


class ShiftedCosts:
    """Solve segments at other costs, each problem once.

    Parameters
    ----------
    precision : float
        How precisely shares of the discounted future are known, and values as shares of what everyone could earn.
    """

    def __init__(self, precision: float) -> None:
        self.precision = precision
        self._policies: dict[tuple[Belief, float, float], ShiftedPolicy] = {}

    def policy(self, problem: SegmentProblem, cost: float) -> ShiftedPolicy:
        """Return the best policy at a cost, which may be outside of 0 to 1."""
        key = (problem.prior, problem.discount, cost)
        if key not in self._policies:
            self._policies[key] = _trivial(problem, cost) or self._solve(problem, cost)
        return self._policies[key]

    def _solve(self, problem: SegmentProblem, cost: float) -> ShiftedPolicy:
        n, s, discount = problem.prior.n, problem.prior.s, problem.discount
        rows = 1 if discount == 0.0 else math.ceil(math.log(self.precision) / math.log(discount)) + 1
        solved = solve_discounted(n, s, cost, discount, rows, self.precision / (1.0 - discount))
        time = stopping_time(n, s, cost, discount, solved.accept_from, 0.01 * self.precision)
        return ShiftedPolicy(cost, solved.value, time.discounted, time.mean)


def _trivial(problem: SegmentProblem, cost: float) -> ShiftedPolicy | None:
    """Return the policy at a cost at which everyone or nobody is accepted, or None at any other."""
    mean = problem.prior.mean
    if cost >= 1.0:
        return ShiftedPolicy(1.0, Bounds(0.0, 0.0), Bounds(1.0, 1.0), Bounds(mean, mean))
    if cost <= 0.0:
        value = (mean - cost) / (1.0 - problem.discount)
        bounds = Bounds(value * (1.0 - 1e-15), value * (1.0 + 1e-15))
        return ShiftedPolicy(0.0, bounds, Bounds(0.0, 0.0), Bounds(0.0, 0.0))
    return None


def total(parts: Iterable[Bounds]) -> Bounds:
    """Return bounds of a sum, rounded outwards."""
    known = list(parts)
    lower, upper = math.fsum(part.lower for part in known), math.fsum(part.upper for part in known)
    return Bounds(lower - 4e-16 * abs(lower), upper + 4e-16 * abs(upper))
