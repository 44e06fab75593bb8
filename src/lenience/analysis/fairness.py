"""Fairness: who is accepted, who is shut out for good, early against late, by group, exactly; and what constraints
cost.

Nothing here is simulated. Where the truths are known (a simulation, a replay, a study) a segment's policy is walked
forward at its true p, which gives the probability that each of its members is accepted and that the segment is shut
out for good. Where they are not, the walk is averaged over what is believed of p: what is to be expected. Groups are
sums of their segments, weighted by the segments' shares.

Early against late. The paper's "sequence unfairness": early members enjoy the benefit of the doubt. Early is the first
half of the discounted future of the segment (the members before γ_x^i falls to one half), late is the rest.

Constraints a user may set, each with its exact cost in value:
- a floor on exploration, :class:`WithFloor`: never stop for good, but accept with at least a probability π_min;
- a cap on exposure, :class:`WithExposureCap`: after so many acceptances a segment's exploration is over, and only p̂ >
c is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.analysis.characteristics import characteristics
from lenience.analysis.evaluate import evaluate
from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, refusal
from lenience.core.protocols import Policy
from lenience.core.validation import having, listed, mapped, real, whole
from lenience.segments.policies import SegmentPolicies
from lenience.segments.segments import Segment

ROWS = 4000


class SegmentFate(msgspec.Struct, frozen=True):
    """What a policy does to one segment, at its true p or, where that is not known, averaged over the belief.

    ``deserving`` is the probability that it deserves acceptance (p > c), 0 or 1 where p is known; ``shut_out`` that it
    is shut out for good if it does, nothing where it (almost) surely does not; ``accepted`` the probability that a
    member is accepted, over the whole discounted future, ``early`` and ``late`` in its first and second half; ``ever``
    the probability that acceptance goes on for ever.
    """

    name: str
    group: str
    share: float
    p: float | None
    cost: float
    deserving: float
    starts: bool
    accepted: float
    early: float
    late: float
    ever: float
    shut_out: float | None

    @property
    def deserves(self) -> bool:
        """Whether acceptance is known to pay: p above the cost."""
        return self.p is not None and self.p > self.cost


class GroupFate(msgspec.Struct, frozen=True):
    """A group's segments together, weighted by their shares.

    ``acceptance`` is over the whole discounted future; ``false_rejection`` is the share of those who would succeed
    that is rejected, ``false_acceptance`` the share of those who would fail that is accepted (nothing where truths are
    not known); ``deserving`` is the probability that a member's segment deserves acceptance, ``shut_out`` that it is
    shut out for good if it does, nothing where none does. ``segments``, ``deserving_segments`` (expected, where truths
    are not known) and ``never_start`` count segments.
    """

    group: str
    share: float
    segments: int
    deserving_segments: float
    deserving: float
    acceptance: float
    early: float
    late: float
    false_rejection: float | None
    false_acceptance: float | None
    shut_out: float | None
    never_start: int


SURELY = 1e-9  # a probability below which nobody is taken to deserve acceptance
FATES = "what segment_fates returned"


def segment_fates(
    policies: SegmentPolicies, truths: Mapping[str, float] | None = None, rows: int = ROWS
) -> list[SegmentFate]:
    """The fate of every segment at its true success probability, or (without truths) averaged over what is believed of
    it, exactly (up to ``rows`` acceptances).

    >>> from lenience import Discounted
    >>> from lenience import Segments
    >>> cells = Segments.of({"many": 0.9, "few": 0.1}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> for fate in segment_fates(cells.solve(), {"many": 0.9, "few": 0.9}):
    ...     print(fate.name, fate.starts, round(fate.early, 3), round(fate.late, 3), round(fate.shut_out, 3))
    many True 0.754 0.73 0.27
    few False 0.0 0.0 1.0
    """
    having("policies", policies, "segments", "solved segments, as of Segments.solve()")
    if truths is not None:
        mapped("truths", truths, "a mapping of true success rates by segment")
    result = []
    for cell in policies.segments:
        p = None
        if truths is not None:
            if cell.name not in truths:
                raise InputError(f"truths must be given for every segment, and {cell.name!r} has none")
            p = real(f"truth of {cell.name}", truths[cell.name], least=0, most=1)
        result.append(_fate(cell, policies[cell.name], p, whole("rows", rows, least=10)))
    return result


def _fate(cell: Segment, policy: Policy, p: float | None, rows: int) -> SegmentFate:
    own = cell.own
    if not own.stationary:
        raise refusal("objective", own, "a Discounted objective")
    found = characteristics(policy, p=p, objective=own, belief=cell.prior, rows=rows)
    going = 1.0 - np.cumsum(found.stops_at)  # the i-th member is accepted if no stop came before it
    weight = own.discount ** np.arange(rows)
    half = weight > 0.5
    # Beyond the rows the last probability stands.
    rest = own.discount**rows / (1.0 - own.discount)
    early = float(weight[half] @ going[half] / weight[half].sum())
    late = float((weight[~half] @ going[~half] + rest * going[-1]) / (weight[~half].sum() + rest))
    deserving = cell.prior.exceeds(own.cost) if p is None else float(p > own.cost)
    shut_out = None
    if found.shut_out is not None and deserving > SURELY:
        shut_out = min(found.shut_out.midpoint / deserving, 1.0)
    return SegmentFate(
        name=cell.name,
        group=cell.group,
        share=cell.share,
        p=p,
        cost=own.cost,
        deserving=deserving,
        starts=bool(going[0] > 0.0),
        accepted=float(weight @ going + rest * going[-1]) * (1.0 - own.discount),
        early=early,
        late=late,
        ever=1.0 - found.stops.midpoint,
        shut_out=shut_out,
    )


def group_fates(fates: list[SegmentFate]) -> list[GroupFate]:
    """By group: acceptance, early and late, errors against the truth, who is shut out.

    >>> from lenience import Discounted
    >>> from lenience import Segments
    >>> cells = Segments.of({"a": 0.9, "b": 0.1}, Discounted(0.8, 0.99), Belief(2, 1), {"a": "A", "b": "B"})
    >>> [(row.group, round(row.shut_out, 3)) for row in group_fates(segment_fates(cells.solve(), {"a": 0.9, "b": 0.9}))]
    [('A', 0.27), ('B', 1.0)]
    """
    result = []
    for fate in listed("fates", fates, FATES):
        having("fates", fate, "shut_out", FATES)
    for group in dict.fromkeys(fate.group for fate in fates):
        mine = [fate for fate in fates if fate.group == group]
        share = np.array([fate.share for fate in mine])
        p = None if any(fate.p is None for fate in mine) else np.array([fate.p for fate in mine], dtype=np.float64)
        early, late = np.array([fate.early for fate in mine]), np.array([fate.late for fate in mine])
        accepted = np.array([fate.accepted for fate in mine])
        worthy = [(fate.share * fate.deserving, fate.shut_out) for fate in mine if fate.shut_out is not None]
        weight = math.fsum(weight for weight, _ in worthy)
        result.append(
            GroupFate(
                group=group,
                share=float(share.sum()),
                segments=len(mine),
                deserving_segments=math.fsum(fate.deserving for fate in mine),
                deserving=_mean(np.array([fate.deserving for fate in mine]), share),
                acceptance=_mean(accepted, share),
                early=_mean(early, share),
                late=_mean(late, share),
                false_rejection=None if p is None else 1.0 - _mean(accepted, share * p),
                false_acceptance=None if p is None else _mean(accepted, share * (1.0 - p)),
                shut_out=math.fsum(part * shut for part, shut in worthy) / weight if weight else None,
                never_start=sum(not fate.starts for fate in mine),
            )
        )
    return result


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    total = float(weight.sum())
    return float(values @ weight) / total if total else 0.0


class WithFloor:
    """A policy that never stops for good: where it would reject, it accepts with probability ``floor``.

    >>> from lenience import Discounted
    >>> policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    >>> WithFloor(policy, 0.05).acceptance([10, 10], [6, 7])
    array([0.05, 1.  ])
    """

    stop_ceiling = 0.0

    def __init__(self, policy: Policy, floor: float) -> None:
        self.policy = policy
        self.floor = real("floor", floor, above=0, most=1)

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """The probability of acceptance at many beliefs at once, at least the floor."""
        return np.maximum(self.policy.acceptance(n, s), self.floor)

    def stop_floor(self, n: float) -> float:
        """It never stops."""
        return -1.0

    def to_json(self) -> str:
        """The constraint and the policy under it as JSON text, for the record."""
        return f'{{"type":"with_floor","floor":{self.floor!r},"policy":{self.policy.to_json()}}}'

    def __repr__(self) -> str:
        return f"WithFloor({self.policy!r}, floor={self.floor:g})"


class WithExposureCap:
    """A policy whose exploration ends after ``cap`` acceptances: from then on only p̂ > c is accepted.

    >>> from lenience import Discounted
    >>> policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    >>> WithExposureCap(policy, Belief(2, 1), cost=0.8, cap=5).acceptance([6, 7], [4, 5])
    array([1., 0.])
    """

    def __init__(self, policy: Policy, prior: Belief, cost: float, cap: int) -> None:
        self.policy = policy
        self.prior = prior
        self.cost = cost
        self.cap = whole("cap", cap)

    @property
    def stop_ceiling(self) -> float:
        """The cost: above it both the policy and the rule after the cap accept."""
        return max(self.policy.stop_ceiling, self.cost)

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """The policy's probability before the cap, 1(p̂ > c) from there on."""
        size, good = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        exploring = size < self.prior.n + self.cap - 0.5
        # One row at a time is the policy's quick way; rows on both sides of the cap never mix there.
        inner = self.policy.acceptance(n, s) if np.any(exploring) else np.zeros(size.shape)
        return np.where(exploring, inner, (good > self.cost * size).astype(np.float64))

    def stop_floor(self, n: float) -> float:
        """The cost after the cap, the policy's own before."""
        return self.policy.stop_floor(n) if n < self.prior.n + self.cap - 0.5 else self.cost

    def to_json(self) -> str:
        """The constraint and the policy under it as JSON text, for the record."""
        return f'{{"type":"with_exposure_cap","cap":{self.cap},"policy":{self.policy.to_json()}}}'

    def __repr__(self) -> str:
        return f"WithExposureCap({self.policy!r}, cap={self.cap})"


class ConstraintCost(msgspec.Struct, frozen=True):
    """What a constraint costs a segment, in units of the whole's value: the optimum, the value under it, the
    difference."""

    name: str
    group: str
    optimum: Bounds
    constrained: Bounds

    @property
    def cost(self) -> Bounds:
        """What the constraint costs."""
        return Bounds(self.optimum.lower - self.constrained.upper, self.optimum.upper - self.constrained.lower)


def cost_of_floor(
    policies: SegmentPolicies, floors: Mapping[str, float], tolerance: float = 1e-6
) -> list[ConstraintCost]:
    """The exact cost of a floor on exploration for each segment of the groups named.

    >>> from lenience import Discounted
    >>> from lenience import Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.8, 0.98), Belief(2, 1), {"a": "A", "b": "B"})
    >>> for row in cost_of_floor(cells.solve(), {"B": 0.05}):
    ...     print(row.name, row.optimum.upper, row.cost)
    b 0.0 0.2684762... ± ...
    """
    for group in floors:
        if group not in policies.segments.groups:
            raise refusal("group", group, f"one of {', '.join(policies.segments.groups)}")
    limited = {
        cell.name: WithFloor(policies[cell.name], floors[cell.group])
        for cell in policies.segments
        if cell.group in floors
    }
    return _costs(policies, limited, tolerance)


def cost_of_exposure_cap(
    policies: SegmentPolicies, caps: Mapping[str, int], tolerance: float = 1e-6
) -> list[ConstraintCost]:
    """The exact cost of a cap on exposure for each segment named."""
    cells = policies.segments
    limited = {
        name: WithExposureCap(policies[name], cells[name].prior, cells[name].own.cost, cap)
        for name, cap in caps.items()
    }
    return _costs(policies, limited, tolerance)


def _costs(policies: SegmentPolicies, limited: Mapping[str, Policy], tolerance: float) -> list[ConstraintCost]:
    """The largest segment first: if one is too large to evaluate, that is known at once."""
    order = sorted(limited, key=lambda name: -policies.segments[name].share)
    found = {name: _cost(policies.segments[name], policies, limited[name], tolerance) for name in order}
    return [found[name] for name in limited]


def _cost(cell: Segment, policies: SegmentPolicies, constrained: Policy, tolerance: float) -> ConstraintCost:
    value = evaluate(constrained, cell.own, cell.prior, tolerance)
    weight = cell.weight
    scaled = Bounds(weight * value.lower - 1e-12, weight * value.upper + 1e-12)  # a value below 0 is allowed here
    return ConstraintCost(cell.name, cell.group, policies.segment_value(cell.name), scaled)
