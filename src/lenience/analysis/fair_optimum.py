"""fair_optimum: the best policy under a fairness constraint, its price, and who pays.

The mathematics is in :mod:`lenience.analysis.fair_search`. In short, the best policy under a limit on the groups' rates
is the optimal policy of each segment at a shifted cost, or a mixture of two such policies at a tie.

Groups enter in one of two ways. *Group-aware*: each segment belongs to one group, so decisions differ by group.
*Group-blind*: segments have members of several groups, in known shares. Decisions depend on the segment alone, and the
shift of a segment is the mean over its members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.analysis.fair_constraints import Constraint, EqualOpportunity, Floors, Limits, Measure, Parity, limits_of
from lenience.analysis.fair_search import FairSearch, FairSolution, Mixture, weighted_sum
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import check_tolerance, listed, mapped, real, whole
from lenience.segments.segments import Segments
from lenience.segments.shifted_costs import common_discount, segment_problems

Groups = Mapping[str, str | Mapping[str, float]]
GROUPS = "a mapping of segments to a group, or to the share of each group"


class FairPolicy(msgspec.Struct, frozen=True):
    """A policy of a segment's mixture: the optimal one at a shifted cost.

    Parameters
    ----------
    cost
        The break-even at which the policy is optimal, from 0 (accepts everyone) to 1 (accepts nobody).
    probability
        The probability that it is drawn at the start.
    """

    cost: float
    probability: float


class FairSegment(msgspec.Struct, frozen=True):
    """What a fair optimum does to a segment.

    Parameters
    ----------
    name
        The name of the segment.
    share
        Its share of all arrivals.
    cost
        Its break-even success rate.
    expected_success
        Its expected success rate.
    policies
        The policies at shifted costs: one, or several of which one is drawn at the start.
    acceptance, acceptance_without
        The share of its members that are accepted, with and without the constraint. Later members count less.
    value, value_without
        What it earns, with and without the constraint.
    """

    name: str
    share: float
    cost: float
    expected_success: float
    policies: tuple[FairPolicy, ...]
    acceptance: Bounds
    acceptance_without: Bounds
    value: Bounds
    value_without: Bounds


class FairGroup(msgspec.Struct, frozen=True):
    """What a fair optimum does to a group, and what it did without the constraint.

    Parameters
    ----------
    group
        The name of the group.
    share
        Its share of all arrivals.
    acceptance, acceptance_without
        The share of its members that are accepted, with and without the constraint. Later members count less.
    opportunity, opportunity_without
        The same share of those who would succeed.
    value, value_without
        What its members earn, with and without the constraint.
    """

    group: str
    share: float
    acceptance: Bounds
    acceptance_without: Bounds
    opportunity: Bounds
    opportunity_without: Bounds
    value: Bounds
    value_without: Bounds

    @property
    def change(self) -> float:
        """By how much the constraint changes the acceptance rate; below 0 if it lowers it."""
        return self.acceptance.midpoint - self.acceptance_without.midpoint


class FairOptimum(msgspec.Struct, frozen=True):
    """The best policy under a fairness constraint, with proved bounds.

    Parameters
    ----------
    constraint
        The constraint.
    value
        Bounds of the optimum. The policies of ``segments`` earn at least the lower bound. No policy that keeps the
        constraint earns more than the upper bound.
    unconstrained
        Bounds of the optimum without the constraint.
    violation
        By how much the policies may break the constraint, at most: the precision of the computation.
    group_aware
        Whether each segment has members of one group only, so that decisions differ by group.
    groups
        The groups, with and without the constraint.
    segments
        The segments, with their policies.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of(
    ...     {"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)}, {"a": "A", "b": "B"}
    ... )
    >>> result = fair_optimum(cells, constraint=Parity(within=0.1))
    >>> result.violation < 1e-6, result.group_aware, [group.group for group in result.lowered]
    (True, True, ['A'])
    """

    constraint: Constraint
    value: Bounds
    unconstrained: Bounds
    violation: float
    group_aware: bool
    groups: tuple[FairGroup, ...]
    segments: tuple[FairSegment, ...]

    @property
    def price(self) -> Bounds:
        """Bounds of what the constraint costs."""
        lower = self.unconstrained.lower - self.value.upper
        return Bounds(max(lower, 0.0), max(self.unconstrained.upper - self.value.lower, 0.0))

    @property
    def lowered(self) -> list[FairGroup]:
        """The groups whose acceptance rate the constraint lowers: levelling down."""
        return [group for group in self.groups if group.acceptance.upper < group.acceptance_without.lower - 1e-6]

    @property
    def raised(self) -> list[FairGroup]:
        """The groups whose acceptance rate the constraint raises."""
        return [group for group in self.groups if group.acceptance.lower > group.acceptance_without.upper + 1e-6]

    @property
    def inversion(self) -> tuple[FairSegment, FairSegment] | None:
        """Two segments of which the constraint favours the weaker one the most, or None.

        The first is accepted more often than the second, although it is less likely to succeed at the same break-even.
        Without the constraint it is the other way round. This happens if decisions may not see the group.
        """
        cost, mean, after, before = np.array(
            [
                (row.cost, row.expected_success, row.acceptance.midpoint, row.acceptance_without.midpoint)
                for row in self.segments
            ]
        ).T
        worst, pair = 1e-6, None
        for strong, row in enumerate(self.segments):
            weaker = (mean < mean[strong]) & (cost == cost[strong]) & (before < before[strong])
            excess = np.where(weaker, after - after[strong], 0.0)
            weak = int(excess.argmax())
            if excess[weak] > worst:
                worst, pair = float(excess[weak]), (self.segments[weak], row)
        return pair

    def spread(self, measure: Measure = "acceptance") -> float:
        """Return the difference between the highest and the lowest rate of a group.

        Parameters
        ----------
        measure : {"acceptance", "opportunity"}
            Which rate.

        Returns
        -------
        float
            The difference, from 0 to 1.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Segments
        >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
        >>> result = fair_optimum(cells, {"a": "A", "b": "B"}, Parity(within=0.2))
        >>> round(result.spread(), 6), round(result.spread("opportunity"), 2)
        (0.2, 0.15)
        """
        rates = [(group.acceptance if measure == "acceptance" else group.opportunity).midpoint for group in self.groups]
        return max(rates) - min(rates)

    def draw(self, seed: int) -> dict[str, float]:
        """Draw one policy for each segment, as the mixture requires at the start.

        Parameters
        ----------
        seed : int
            The seed of the draw. Keep it, so that the draw can be checked.

        Returns
        -------
        dict of str to float
            The break-even of each segment: its optimal policy at this cost is the policy to follow. 0 accepts everyone
            and 1 nobody.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Segments
        >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
        >>> result = fair_optimum(cells, {"a": "A", "b": "B"}, Floors({"B": 0.3}))
        >>> costs = result.draw(seed=1)
        >>> costs["a"], round(costs["b"], 2)
        (0.7, 0.62)
        """
        random = np.random.default_rng(whole("seed", seed))
        return {
            row.name: row.policies[
                int(random.choice(len(row.policies), p=[policy.probability for policy in row.policies]))
            ].cost
            for row in self.segments
        }


class PriceOfFairness(msgspec.Struct, frozen=True):
    """The price of fairness: what the optimum earns against how far apart the groups may be.

    Parameters
    ----------
    points
        The optima if higher rates may fall and lower ones may rise, from the strictest limit to the loosest.
    raising
        The optima at the same limits if rates may only rise.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
    >>> curve = price_of_fairness(cells, {"a": "A", "b": "B"}, within=[0, 0.3])
    >>> [round(point.value.midpoint, 2) for point in curve.points]
    [1.78, 2.74]
    >>> [round(point.value.midpoint, 2) for point in curve.raising]
    [0.49, 2.42]
    """

    points: tuple[FairOptimum, ...]
    raising: tuple[FairOptimum, ...]

    @property
    def measure(self) -> Measure:
        """The rate that is limited."""
        return self.points[0].constraint.measure

    @property
    def within(self) -> list[float]:
        """The largest difference between groups, by point."""
        return [_within(point.constraint) for point in self.points]


def fair_optimum(
    segments: Segments,
    groups: Groups | None = None,
    constraint: Constraint | None = None,
    *,
    amounts: Mapping[str, float] | None = None,
    tolerance: float = 1e-6,
) -> FairOptimum:
    """Return the best policy under a fairness constraint, with a proof and a comparison by group.

    The rates are expected values under the beliefs, over the whole discounted future. A mixture keeps the constraint on
    average over its draw.

    Parameters
    ----------
    segments : Segments
        The segments, with Discounted objectives of one discount and one break-even each.
    groups : mapping, optional
        The group of each segment (group-aware), or the share of each group in it (group-blind), e.g.
        ``{"north": {"women": 0.4, "men": 0.6}}``. Shares of a segment add up to at most 1; the rest is in no group. By
        default the groups of the segments.
    constraint : Parity, EqualOpportunity or Floors, optional
        What the groups' rates must keep. By default ``Parity(within=0.05)``.
    amounts : mapping, optional
        The amount at stake (gain plus loss) of each segment. By default 1.
    tolerance : float
        How close the bounds of the value are, per arrival, and how precise the rates are.

    Returns
    -------
    FairOptimum
        The shifted costs of the segments, bounds of the value, and the rates by group.

    Raises
    ------
    InputError
        If the segments have offers or other objectives, or if groups, constraint or amounts do not fit them.
    TooLargeError
        If a segment is too large to solve.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
    >>> result = fair_optimum(cells, {"a": "A", "b": "B"}, Parity(within=0))
    >>> for row in result.groups:
    ...     print(row.group, round(row.acceptance_without.midpoint, 3), round(row.acceptance.midpoint, 3))
    A 0.793 0.481
    B 0.0 0.481

    Decisions that see only the segment, which has members of both groups:

    >>> mix = {"a": {"A": 0.8, "B": 0.2}, "b": {"A": 0.3, "B": 0.7}}
    >>> blind = fair_optimum(cells, mix, Parity(within=0.1))
    >>> blind.group_aware, round(blind.spread(), 3)
    (False, 0.1)
    """
    rule = _check_constraint(Parity(0.05) if constraint is None else constraint)
    return _Study(segments, groups, amounts, tolerance).solve(rule)


def evaluate_fairness(
    segments: Segments,
    policies: Mapping[str, Sequence[FairPolicy]],
    groups: Groups | None = None,
    constraint: Constraint | None = None,
    *,
    tolerance: float = 1e-6,
) -> FairOptimum:
    """Return what given break-evens do to the groups, and by how much they miss a constraint.

    It checks a solution that somebody else computed. Nothing is searched for.

    Parameters
    ----------
    segments : Segments
        The segments, as for :func:`fair_optimum`.
    policies : mapping of str to sequence of FairPolicy
        The break-evens of each segment, with the probability that each is drawn.
    groups : mapping, optional
        The groups, as for :func:`fair_optimum`.
    constraint : Parity, EqualOpportunity or Floors, optional
        The constraint to check. By default ``Parity(within=0.05)``.
    tolerance : float
        The precision, as for :func:`fair_optimum`.

    Returns
    -------
    FairOptimum
        Rates and values of these policies. The bounds of ``value`` enclose what they earn, not the optimum.

    Raises
    ------
    InputError
        If an argument is invalid, or a segment has no policy.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
    >>> own = {"a": [FairPolicy(0.7, 1)], "b": [FairPolicy(0.7, 1)]}
    >>> result = evaluate_fairness(cells, own, {"a": "A", "b": "B"}, Parity(within=0.1))
    >>> round(result.spread(), 3), round(result.violation, 3)
    (0.793, 0.693)
    """
    rule = _check_constraint(Parity(0.05) if constraint is None else constraint)
    return _Study(segments, groups, None, tolerance).evaluate(rule, policies)


def price_of_fairness(
    segments: Segments,
    groups: Groups | None = None,
    measure: Measure = "acceptance",
    within: Sequence[float] | None = None,
    *,
    points: int = 11,
    amounts: Mapping[str, float] | None = None,
    tolerance: float = 1e-6,
) -> PriceOfFairness:
    """Return what the optimum earns against how far apart the groups' rates may be.

    Parameters
    ----------
    segments : Segments
        The segments, as for :func:`fair_optimum`.
    groups : mapping, optional
        The groups, as for :func:`fair_optimum`.
    measure : {"acceptance", "opportunity"}
        Which rate is limited: that of all members, or of those who would succeed.
    within : sequence of float, optional
        The largest differences. By default ``points`` of them, from 0 to the difference without a constraint.
    points : int
        The number of differences if they are not given, at least 2.
    amounts : mapping, optional
        The amount at stake of each segment. By default 1.
    tolerance : float
        The precision, as for :func:`fair_optimum`.

    Returns
    -------
    PriceOfFairness
        The optima at each difference, once with rates that may rise and fall, and once with rates that only rise.

    Raises
    ------
    InputError
        If an argument is invalid, as for :func:`fair_optimum`.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.98), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
    >>> curve = price_of_fairness(cells, {"a": "A", "b": "B"}, within=[0, 0.2, 0.4])
    >>> [round(point.price.midpoint, 2) for point in curve.points]
    [1.39, 0.72, 0.21]
    """
    kinds: dict[str, type[Parity] | type[EqualOpportunity]] = {"acceptance": Parity, "opportunity": EqualOpportunity}
    if measure not in kinds:
        raise InputError("measure", measure, "'acceptance' or 'opportunity'")
    kind, count = kinds[measure], whole("points", points, least=2)
    study = _Study(segments, groups, amounts, tolerance)
    if within is None:
        rates = [rate.midpoint for rate in study.rates_without(measure)]
        limits = sorted({float(limit) for limit in np.linspace(0.0, max(rates) - min(rates), count)})
    else:
        limits = sorted({kind(limit).within for limit in listed("within", within, "a list of differences")})
    if not limits:
        raise InputError("within", within, "at least one difference")
    # From the loosest to the strictest, each search starts with the policies of the one before.
    results = {
        raising: [study.solve(kind(limit, raise_only=raising)) for limit in reversed(limits)]
        for raising in (False, True)
    }
    return PriceOfFairness(tuple(reversed(results[False])), tuple(reversed(results[True])))


class _Study:
    """Segments and groups as numbers, and the search over them."""

    def __init__(
        self, segments: Segments, groups: Groups | None, amounts: Mapping[str, float] | None, tolerance: float
    ) -> None:
        common_discount(segments)
        self.names, self.mix = _mix(segments, groups)
        problems = segment_problems(segments, amounts, "fair_optimum")
        self.search = FairSearch(problems, self.mix, check_tolerance(tolerance))
        self.without = self.search.best_without()
        self._rates: dict[Measure, list[Bounds]] = {}

    def rates_without(self, measure: Measure) -> list[Bounds]:
        """Return the rates of the groups without a constraint."""
        if measure not in self._rates:
            self._rates[measure] = self.search.group_rates(measure, self.without.mixtures)
        return self._rates[measure]

    def solve(self, constraint: Constraint) -> FairOptimum:
        """Return the optimum under a constraint."""
        if len(self.names) < 2 and not isinstance(constraint, Floors):
            raise InputError("groups", self.names, "at least two groups")
        if constraint.measure == "opportunity" and not self.search.weights("opportunity").any(axis=0).all():
            raise InputError("groups", self.names, "groups of which somebody is expected to succeed")
        limits = limits_of(constraint, self.names, self.rates_without(constraint.measure))
        return self._result(constraint, limits, self.search.solve(limits, constraint.measure))

    def evaluate(self, constraint: Constraint, policies: Mapping[str, Sequence[FairPolicy]]) -> FairOptimum:
        """Return what given policies do under a constraint."""
        mixtures = []
        for x, problem in enumerate(self.search.problems):
            if problem.name not in policies:
                raise InputError.because(
                    f"must be given for every segment; it is missing for {problem.name!r}", "policies", code="missing"
                )
            own = policies[problem.name]
            mixtures.append(
                Mixture(tuple(self.search.at_cost(x, one.cost) for one in own), tuple(one.probability for one in own))
            )
        limits = limits_of(constraint, self.names, self.rates_without(constraint.measure))
        earned = self.search.earned(mixtures)
        return self._result(constraint, limits, FairSolution(mixtures, earned, earned.upper, np.zeros(len(self.names))))

    def _result(self, constraint: Constraint, limits: Limits, solution: FairSolution) -> FairOptimum:
        rates = self.search.group_rates(constraint.measure, solution.mixtures)
        most = max(solution.most, solution.earned.lower)
        return FairOptimum(
            constraint=constraint,
            value=Bounds(solution.earned.lower, most),
            unconstrained=Bounds(self.without.earned.lower, max(self.without.most, self.without.earned.lower)),
            violation=limits.violation(rates) if limits.bound.size else 0.0,
            group_aware=bool(np.all(self.mix.max(axis=1) > 1.0 - 1e-12)),
            groups=self._groups(solution),
            segments=self._segments(solution),
        )

    def _segments(self, solution: FairSolution) -> tuple[FairSegment, ...]:
        rows = []
        for problem, mixture, before in zip(
            self.search.problems, solution.mixtures, self.without.mixtures, strict=True
        ):
            policies = tuple(
                FairPolicy(float(policy.cost), probability)
                for policy, probability in zip(mixture.policies, mixture.probabilities, strict=True)
            )
            acceptance, acceptance_without = (
                each.mean([policy.acceptance for policy in each.policies]) for each in (mixture, before)
            )
            value, value_without = (
                each.mean([policy.earns(problem) for policy in each.policies]) for each in (mixture, before)
            )
            rows.append(
                FairSegment(
                    problem.name, problem.share, problem.cost, problem.prior.mean, policies, acceptance,
                    acceptance_without, value, value_without,
                )
            )  # fmt: skip
        return tuple(rows)

    def _groups(self, solution: FairSolution) -> tuple[FairGroup, ...]:
        acceptance = self.search.group_rates("acceptance", solution.mixtures)
        opportunity = self.search.group_rates("opportunity", solution.mixtures)
        rows = self._segments(solution)
        shares = np.array([row.share for row in rows])
        return tuple(
            FairGroup(
                name,
                float(shares @ self.mix[:, g]),
                acceptance[g],
                self.rates_without("acceptance")[g],
                opportunity[g],
                self.rates_without("opportunity")[g],
                weighted_sum(self.mix[:, g], [row.value for row in rows]),
                weighted_sum(self.mix[:, g], [row.value_without for row in rows]),
            )
            for g, name in enumerate(self.names)
        )


def _check_constraint(constraint: object) -> Constraint:
    if not isinstance(constraint, Parity | EqualOpportunity | Floors):
        raise InputError("constraint", constraint, "a constraint, such as Parity(within=0.05)")
    return constraint


def _within(constraint: Constraint) -> float:
    assert not isinstance(constraint, Floors)
    return constraint.within


def _mix(segments: Segments, groups: Groups | None) -> tuple[list[str], NDArray[np.float64]]:
    """Return the groups, and the share of each in each segment."""
    given: Groups = {cell.name: cell.group for cell in segments} if groups is None else mapped("groups", groups, GROUPS)
    for name in given:
        if name not in segments:
            raise InputError.unknown_name("groups", name, segments.names, "the segments")
    shares = []
    for cell in segments:
        if cell.name not in given:
            raise InputError.because(
                f"must be given for every segment; it is missing for {cell.name!r}",
                "groups",
                value=cell.name,
                code="missing",
            )
        shares.append(_shares(cell.name, given[cell.name]))
    names = list(dict.fromkeys(group for own in shares for group, share in own.items() if share > 0.0))
    if not names:
        raise InputError("groups", groups, GROUPS, hint="Give groups=, or segments that have groups.")
    return names, np.array([[own.get(group, 0.0) for group in names] for own in shares])


def _shares(segment: str, given: object) -> dict[str, float]:
    """Return the share of each group in a segment."""
    if isinstance(given, str):
        return {given: 1.0} if given else {}
    label = f"groups of {segment}"
    if not isinstance(given, Mapping):
        raise InputError("groups", given, "a group, or the share of each group", label=label)
    shares = {
        str(group): real("groups", share, least=0, most=1, label=f"share of {group} in {segment}")
        for group, share in given.items()
    }
    together = sum(shares.values())
    if together > 1.0 + 1e-9:
        raise InputError("groups", together, "shares that add up to at most 1", label=label)
    return shares
