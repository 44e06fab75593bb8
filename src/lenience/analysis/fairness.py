"""Fairness by segment and group: who is accepted, early and late, who is wrongly rejected, and what constraints cost.

Nothing here is simulated. If the true success rates are known (in a simulation or a study), the policy of a segment is
walked forward at its true p. This gives the probability that each member is accepted and that the policy rejects the
segment for good. If they are unknown, the walk is averaged over the belief and gives expected values. Groups are sums
of their segments, weighted by the shares of the segments.

Early against late. The paper calls it "sequence unfairness": early members get the benefit of the doubt. Early is the
first half of the discounted future of the segment (members before γ_x^i falls to one half); late is the rest. Every
probability has proved bounds (:mod:`lenience.analysis.long_run`).

You can set two constraints, each with its exact cost in value:

- a floor on exploration, :class:`WithFloor`: never stop for good, but accept with at least a probability π_min;
- a cap on exposure, :class:`WithExposureCap`: after ``cap`` acceptances a segment stops exploring, and only p̂ > c is
  accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.analysis.characteristics import MOST_ROWS
from lenience.analysis.evaluate import evaluate
from lenience.analysis.limited_offers import OffersWithExposureCap, OffersWithFloor
from lenience.analysis.long_run import FIRST_ROWS, MOST_AVERAGED, long_run
from lenience.analysis.offer_runs import ROWS, long_run_doubt, long_run_offers
from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.protocols import OfferRule, Policy
from lenience.core.validation import having, listed, mapped, real, whole
from lenience.policies.beliefs.offers import offers_of
from lenience.segments.policies import SegmentPolicies
from lenience.segments.segments import Segment

MOST_OFFER_ROWS = 10_000  # of an evaluation with offers: some ten seconds


class FateBounds(msgspec.Struct, frozen=True):
    """Proved bounds of the probabilities of a :class:`SegmentFate`, which has their midpoints.

    Parameters
    ----------
    accepted : Bounds
        The probability that a member is accepted, over the whole discounted future.
    early : Bounds
        The same in the first half of the discounted future.
    late : Bounds
        The same in the second half.
    ever : Bounds
        The probability that acceptance never stops.
    shut_out : Bounds or None
        The probability of being wrongly rejected; None if p is (almost) certainly not above c.

    Examples
    --------
    >>> from lenience import Discounted, Segments
    >>> policies = Segments.of({"all": 1.0}, Discounted(0.8, 0.99), Belief(2, 1)).solve()
    >>> [fate] = segment_fates(policies, {"all": 0.7}, tolerance=1e-6)
    >>> fate.bounds.accepted.width < 1e-6, fate.bounds.ever.upper < 1e-9
    (True, True)
    """

    accepted: Bounds
    early: Bounds
    late: Bounds
    ever: Bounds
    shut_out: Bounds | None


class SegmentFate(msgspec.Struct, frozen=True):
    """What a policy does to one segment, at its true p or, if that is unknown, averaged over the belief.

    Parameters
    ----------
    name : str
        The name of the segment.
    group : str
        Its group.
    share : float
        Its share of all arrivals.
    p : float or None
        Its true success probability, or None if unknown.
    cost : float
        Its break-even success rate.
    deserving : float
        The probability that acceptance pays (p > c); 0 or 1 if p is known.
    starts : bool
        Whether the policy ever accepts.
    accepted : float
        The probability that a member is accepted, over the whole discounted future.
    early : float
        The same in the first half of the discounted future.
    late : float
        The same in the second half.
    ever : float
        The probability that acceptance never stops.
    shut_out : float or None
        The probability of being wrongly rejected: that the policy rejects the segment for good if p > c; None if p is
        (almost) certainly not above c.
    bounds : FateBounds
        Proved bounds of these probabilities.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience.segments.segments import Segments
    >>> policies = Segments.of({"large": 0.95, "small": 0.05}, Discounted(0.8, 0.99), Belief(2, 1)).solve()
    >>> large, small = segment_fates(policies, {"large": 0.9, "small": 0.9}, rows=500)
    >>> large.starts, round(large.accepted, 2), small.starts, round(small.shut_out, 2)
    (True, 0.74, False, 1.0)
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
    bounds: FateBounds

    @property
    def deserves(self) -> bool:
        """Whether acceptance is known to pay: p is above the cost."""
        return self.p is not None and self.p > self.cost


class GroupFate(msgspec.Struct, frozen=True):
    """What a policy does to a group: its segments together, weighted by their shares.

    Parameters
    ----------
    group : str
        The group.
    share : float
        Its share of all arrivals.
    segments : int
        The number of its segments.
    deserving_segments : float
        The number of segments worth accepting (p > c); the expected number if true rates are unknown.
    deserving : float
        The probability that the segment of a member is worth accepting.
    acceptance : float
        The probability that a member is accepted, over the whole discounted future.
    early : float
        The same in the first half of the discounted future.
    late : float
        The same in the second half.
    false_rejection : float or None
        The share rejected of those who would succeed; None if true rates are unknown.
    false_acceptance : float or None
        The share accepted of those who would fail; None if true rates are unknown.
    shut_out : float or None
        The probability that the policy rejects a member's segment for good if it is worth accepting; None if no segment
        is.
    never_start : int
        The number of segments in which nobody is ever accepted.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience.segments.segments import Segments
    >>> cells = Segments.of({"a": 0.95, "b": 0.05}, Discounted(0.8, 0.99), Belief(2, 1), {"a": "A", "b": "B"})
    >>> fates = group_fates(segment_fates(cells.solve(), {"a": 0.9, "b": 0.9}, rows=500))
    >>> [(fate.group, round(fate.acceptance, 2), round(fate.shut_out, 2)) for fate in fates]
    [('A', 0.74, 0.27), ('B', 0.0, 1.0)]
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


GROWING_SECONDS = 0.5  # to solve a longer table, by the solver's estimate
SURELY = 1e-9  # below this probability of p > c a segment counts as not worth accepting
FATES = "the result of segment_fates"


def segment_fates(
    policies: SegmentPolicies,
    truths: Mapping[str, float] | None = None,
    rows: int | None = None,
    tolerance: float | None = None,
) -> list[SegmentFate]:
    """Compute exactly what the policies do to each segment.

    Parameters
    ----------
    policies : SegmentPolicies
        The solved segments, as returned by ``Segments.solve()``. The objective must be ``Discounted``. With offers, a
        member is accepted if any offer is made to it, and a segment is worth accepting above the lowest break-even.
    truths : mapping of str to float, optional
        The true success rate of every segment; by default results are averaged over the beliefs.
    rows : int, optional
        The number of acceptances to follow; by default as many as the tolerance needs, at most 100,000 (8,000 if the
        true rates are unknown). If a longer table would take seconds to solve, only those of the table are followed.
        With offers or a prior that may be wrong, at most those of the table.
    tolerance : float, optional
        The largest width of the bounds, unless that needs more rows; by default 0.0001, and 0.01 if the true rates are
        unknown.

    Returns
    -------
    list of SegmentFate
        One row per segment, with bounds.

    Raises
    ------
    InputError
        If a true success rate is missing or invalid, an objective is not discounted, or a segment with offers has a
        mixture for a prior.
    TooLargeError
        If a segment with offers has more than 420 members in the first half of its discounted future.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience import Segments
    >>> cells = Segments.of({"many": 0.9, "few": 0.1}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> for fate in segment_fates(cells.solve(), {"many": 0.9, "few": 0.9}):
    ...     print(fate.name, fate.starts, round(fate.early, 3), round(fate.late, 3), round(fate.shut_out, 3))
    many True 0.754 0.73 0.27
    few False 0.0 0.0 1.0
    """
    having("policies", policies, "segments", "solved segments, the result of Segments.solve()")
    if truths is not None:
        mapped("truths", truths, "a mapping of true success rates by segment")
    followed = None if rows is None else whole("rows", rows, least=1, most=MOST_ROWS)
    narrow = None if tolerance is None else real("tolerance", tolerance, above=0)
    result = []
    for cell in policies.segments:
        p = None
        if truths is not None:
            if cell.name not in truths:
                raise InputError.because(
                    f"must have a success rate for every segment; {cell.name!r} is missing",
                    "truths",
                    value=cell.name,
                    code="missing",
                )
            p = real(f"truth of {cell.name}", truths[cell.name], least=0, most=1)
        result.append(_fate(cell, policies[cell.name], p, followed, narrow))
    return result


def _fate(cell: Segment, policy: Policy, p: float | None, rows: int | None, tolerance: float | None) -> SegmentFate:
    """Compute what a policy does to one segment."""
    own = cell.own
    if not (own.stationary if own.offers is None else own.horizon is None and not own.label_delay):
        raise InputError("objective", own, "a Discounted objective")
    prior = cell.prior.simplified if isinstance(cell.prior, MixtureBelief) else cell.prior
    cost = own.cost if own.offers is None else min(own.offers.cost)
    if own.offers is None and isinstance(prior, Belief):
        if rows is None and own.solve_seconds(prior, MOST_AVERAGED) > GROWING_SECONDS:
            rows = max(getattr(policy, "rows", FIRST_ROWS) - 1, 1)
        run = long_run(policy, p, own, prior, tolerance, rows)
    else:
        table: Any = policy
        wanted = max(FIRST_ROWS, math.ceil(ROWS * own.discounted_count)) if rows is None else rows
        followed = max(min(wanted, int(table.certificate.rows) - 1), 1)
        if isinstance(prior, MixtureBelief) and own.offers is None:
            run = long_run_doubt(table, p, own, prior, followed)
        else:
            run = long_run_offers(table, p, own, offers_of(own), check_prior(prior), followed)
    deserving = prior.exceeds(cost) if p is None else float(p > cost)
    shut_out = None
    if run.shut_out is not None and deserving > SURELY:
        shut_out = Bounds(min(run.shut_out.lower / deserving, 1.0), min(run.shut_out.upper / deserving, 1.0))
    bounds = FateBounds(run.accepted, run.early, run.late, run.ever, shut_out)
    return SegmentFate(
        name=cell.name,
        group=cell.group,
        share=cell.share,
        p=p,
        cost=cost,
        deserving=deserving,
        starts=run.starts,
        accepted=bounds.accepted.midpoint if run.starts else 0.0,
        early=bounds.early.midpoint if run.starts else 0.0,
        late=bounds.late.midpoint if run.starts else 0.0,
        ever=bounds.ever.midpoint,
        shut_out=None if shut_out is None else shut_out.midpoint,
        bounds=bounds,
    )


def group_fates(fates: list[SegmentFate]) -> list[GroupFate]:
    """Combine the results of segments by group.

    Parameters
    ----------
    fates : list of SegmentFate
        The results, as returned by :func:`segment_fates`.

    Returns
    -------
    list of GroupFate
        One row per group: acceptance early and late, errors, and who is wrongly rejected.

    Raises
    ------
    InputError
        If ``fates`` holds anything else.

    Examples
    --------
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
        members = [fate for fate in fates if fate.group == group]
        share = np.array([fate.share for fate in members])
        truths = [fate.p for fate in members]
        p = None if None in truths else np.array(truths, dtype=np.float64)
        early, late = np.array([fate.early for fate in members]), np.array([fate.late for fate in members])
        accepted = np.array([fate.accepted for fate in members])
        shut_outs = [(fate.share * fate.deserving, fate.shut_out) for fate in members if fate.shut_out is not None]
        weight = math.fsum(weight for weight, _ in shut_outs)
        result.append(
            GroupFate(
                group=group,
                share=float(share.sum()),
                segments=len(members),
                deserving_segments=math.fsum(fate.deserving for fate in members),
                deserving=_mean(np.array([fate.deserving for fate in members]), share),
                acceptance=_mean(accepted, share),
                early=_mean(early, share),
                late=_mean(late, share),
                false_rejection=None if p is None else 1.0 - _mean(accepted, share * p),
                false_acceptance=None if p is None else _mean(accepted, share * (1.0 - p)),
                shut_out=math.fsum(part * shut for part, shut in shut_outs) / weight if weight else None,
                never_start=sum(not fate.starts for fate in members),
            )
        )
    return result


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Return the weighted mean, 0 if all weights are 0."""
    total = float(weight.sum())
    return float(values @ weight) / total if total else 0.0


class WithFloor:
    """A policy that never stops for good: where it would reject, it accepts with a small probability.

    Parameters
    ----------
    policy : Policy
        The policy without the constraint.
    floor : float
        The least probability of acceptance, above 0 and at most 1.

    Examples
    --------
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
        """Return the probability of acceptance at many beliefs at once, at least the floor.

        Parameters
        ----------
        n : array_like
            The sizes of the beliefs.
        s : array_like
            Their successes.

        Returns
        -------
        ndarray
            The probabilities.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> WithFloor(policy, floor=0.05).acceptance(10, [6, 7])
        array([0.05, 1.  ])
        """
        return np.maximum(self.policy.acceptance(n, s), self.floor)

    def stop_floor(self, n: float) -> float:
        """Return −1: the policy never stops.

        Parameters
        ----------
        n : float
            The size of the belief.

        Returns
        -------
        float
            −1, because there is no rate at which nobody is accepted.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> policy.stop_floor(10), WithFloor(policy, floor=0.05).stop_floor(10)
        (0.6, -1.0)
        """
        return -1.0

    def to_json(self) -> str:
        """Return the constraint and the policy under it as JSON text, for the record.

        Returns
        -------
        str
            A JSON object.

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> WithFloor(Greedy(0.8), floor=0.05).to_json()
        '{"type":"with_floor","floor":0.05,"policy":{"type":"greedy","cost":0.8}}'
        """
        return f'{{"type":"with_floor","floor":{self.floor!r},"policy":{self.policy.to_json()}}}'

    def __repr__(self) -> str:
        return f"WithFloor({self.policy!r}, floor={self.floor:g})"


class WithExposureCap:
    """A policy that stops exploring after a number of acceptances: from then on it accepts only if p̂ > c.

    Parameters
    ----------
    policy : Policy
        The policy without the constraint.
    prior : Belief
        The belief at the start.
    cost : float
        The break-even success rate.
    cap : int
        The number of acceptances after which exploration ends.

    Examples
    --------
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
        """The cost, above which both the policy and the rule after the cap accept."""
        return max(self.policy.stop_ceiling, self.cost)

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of acceptance at many beliefs at once: the policy's before the cap, then 1(p̂ > c).

        Parameters
        ----------
        n : array_like
            The sizes of the beliefs.
        s : array_like
            Their successes.

        Returns
        -------
        ndarray
            The probabilities.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> capped = WithExposureCap(policy, cost=0.8, cap=5, prior=Belief(2, 1))
        >>> capped.acceptance(6, 4), capped.acceptance(10, [7, 9])
        (array(1.), array([0., 1.]))
        """
        size, good = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        exploring = size < self.prior.n + self.cap - 0.5
        # Evaluate the policy only if some belief is before the cap; callers that pass one row at a time never mix.
        inner = self.policy.acceptance(n, s) if np.any(exploring) else np.zeros(size.shape)
        return np.where(exploring, inner, (good > self.cost * size).astype(np.float64))

    def stop_floor(self, n: float) -> float:
        """Return a rate at or below which nobody is accepted.

        Parameters
        ----------
        n : float
            The size of the belief.

        Returns
        -------
        float
            The rate of the policy before the cap, and the cost after it.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> capped = WithExposureCap(policy, cost=0.8, cap=5, prior=Belief(2, 1))
        >>> capped.stop_floor(4), capped.stop_floor(10)
        (0.5, 0.8)
        """
        return self.policy.stop_floor(n) if n < self.prior.n + self.cap - 0.5 else self.cost

    def to_json(self) -> str:
        """Return the constraint and the policy under it as JSON text, for the record.

        Returns
        -------
        str
            A JSON object.
        """
        return f'{{"type":"with_exposure_cap","cap":{self.cap},"policy":{self.policy.to_json()}}}'

    def __repr__(self) -> str:
        return f"WithExposureCap({self.policy!r}, cap={self.cap})"


class ConstraintCost(msgspec.Struct, frozen=True):
    """What a constraint costs a segment, in units of the total value.

    Parameters
    ----------
    name : str
        The name of the segment.
    group : str
        Its group.
    optimum : Bounds
        The value without the constraint.
    constrained : Bounds
        The value with the constraint.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience.segments.segments import Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.8, 0.98), Belief(2, 1), {"a": "A", "b": "B"})
    >>> [row] = cost_of_floor(cells.solve(), {"B": 0.05})
    >>> row.name, round(row.cost.midpoint, 3)
    ('b', 0.268)
    """

    name: str
    group: str
    optimum: Bounds
    constrained: Bounds

    @property
    def cost(self) -> Bounds:
        """The optimal value minus the value with the constraint."""
        return Bounds(self.optimum.lower - self.constrained.upper, self.optimum.upper - self.constrained.lower)


def cost_of_floor(
    policies: SegmentPolicies, floors: Mapping[str, float], tolerance: float = 1e-6
) -> list[ConstraintCost]:
    """Compute the exact cost of a floor on exploration for each segment of some groups.

    Parameters
    ----------
    policies : SegmentPolicies
        The solved segments.
    floors : mapping of str to float
        The least probability of acceptance, by group.
    tolerance : float, optional
        The largest error of a value.

    Returns
    -------
    list of ConstraintCost
        One row per segment of these groups.

    Raises
    ------
    InputError
        If a group is unknown or a floor is invalid.
    TooLargeError
        If a segment is too large to evaluate.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience import Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.8, 0.98), Belief(2, 1), {"a": "A", "b": "B"})
    >>> for row in cost_of_floor(cells.solve(), {"B": 0.05}):
    ...     print(row.name, row.optimum.upper, row.cost)
    b 0.0 0.2684762... ± ...
    """
    for group in floors:
        if group not in policies.segments.groups:
            raise InputError.unknown_name("group", group, policies.segments.groups)
    limited: dict[str, Policy | OfferRule] = {}
    for cell in policies.segments:
        if cell.group in floors:
            own, floor = policies[cell.name], floors[cell.group]
            limited[cell.name] = (
                WithFloor(own, floor)
                if cell.objective.offers is None
                else OffersWithFloor(own, check_prior(cell.prior), floor)
            )
    return _costs(policies, limited, tolerance)


def cost_of_exposure_cap(
    policies: SegmentPolicies, caps: Mapping[str, int], tolerance: float = 1e-6
) -> list[ConstraintCost]:
    """Compute the exact cost of a cap on exposure for some segments.

    Parameters
    ----------
    policies : SegmentPolicies
        The solved segments.
    caps : mapping of str to int
        The number of acceptances after which exploration ends, by segment.
    tolerance : float, optional
        The largest error of a value.

    Returns
    -------
    list of ConstraintCost
        One row per segment.

    Raises
    ------
    InputError
        If a segment is unknown or a cap is invalid.
    TooLargeError
        If a segment is too large to evaluate.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience import Segments
    >>> cells = Segments.of({"a": 0.9, "b": 0.1}, Discounted(0.8, 0.98), Belief(2, 1))
    >>> [row] = cost_of_exposure_cap(cells.solve(), {"a": 3})
    >>> row.name, row.cost.lower > 0
    ('a', True)
    """
    cells = policies.segments
    limited: dict[str, Policy | OfferRule] = {}
    for name, cap in caps.items():
        prior, own = check_prior(cells[name].prior), policies[name]
        limited[name] = (
            WithExposureCap(own, prior, cells[name].own.cost, cap)
            if cells[name].objective.offers is None
            else OffersWithExposureCap(own, prior, cap)
        )
    return _costs(policies, limited, tolerance)


def _costs(
    policies: SegmentPolicies, limited: Mapping[str, Policy | OfferRule], tolerance: float
) -> list[ConstraintCost]:
    """Compute the costs, the largest segment first, so that a segment that is too large fails at once."""
    order = sorted(limited, key=lambda name: -policies.segments[name].share)
    costs = {name: _cost(policies.segments[name], policies, limited[name], tolerance) for name in order}
    return [costs[name] for name in limited]


def _cost(
    cell: Segment, policies: SegmentPolicies, constrained: Policy | OfferRule, tolerance: float
) -> ConstraintCost:
    """Compute the value of a segment under a constraint."""
    if cell.objective.offers is not None:
        _check_rows(cell.own.discount, tolerance)
    value = evaluate(constrained, cell.own, check_prior(cell.prior), tolerance)
    weight, unit = cell.weight, 1.0 if cell.objective.offers is None else cell.objective.offers.mean_amount
    # Values below 0 are possible here.
    scaled = Bounds(weight * value.lower - 1e-12 * unit, weight * value.upper + 1e-12 * unit)
    return ConstraintCost(cell.name, cell.group, policies.segment_value(cell.name), scaled)


def _check_rows(discount: float, tolerance: float) -> None:
    """Raise TooLargeError if evaluating a constraint on offers would take minutes."""
    rows = 1.0 if discount == 0.0 else math.log(0.5 * tolerance * (1.0 - discount)) / math.log(discount)
    if rows > MOST_OFFER_ROWS:
        raise TooLargeError(
            "The cost of a constraint on a segment with offers",
            size=rows,
            allowed_size=MOST_OFFER_ROWS,
            unit="rows",
            field="objective",
            hint="Divide the segment, give it one break-even, or use a larger tolerance.",
        )
