"""A fairness limit of a version: the best policy that keeps it, solved and stored with the version.

The best policy under such a limit is the optimal policy of each segment at a shifted break-even
(:mod:`lenience.analysis.fair_optimum`). Where two break-evens tie, one of them is drawn with the seed of the
specification when the version is solved. The limit holds for expected rates under the version's priors, over the
discounted future, and on average over that draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta

from lenience.analysis.fair_constraints import EqualOpportunity, Floors, Parity
from lenience.core.bounds import Bounds
from lenience.core.formatting import percent
from lenience.service.domain import limits

if TYPE_CHECKING:
    from lenience.analysis.fair_optimum import FairOptimum
    from lenience.segments.segments import Segments
    from lenience.service.domain.solved_tables import SolvedTable
    from lenience.service.domain.specification import PolicySpecification, SegmentProblem

LOWEST, HIGHEST = 1e-9, 1.0 - 1e-9  # break-evens at which everyone and nobody is accepted
CLOSE = 1e-5  # differences of rates that rounding explains


class FairnessLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A limit on the acceptance rates of groups, and who belongs to the groups."""

    constraint: Annotated[
        Parity | EqualOpportunity | Floors, Meta(description="What the acceptance rates of the groups must keep")
    ]
    groups: Annotated[
        dict[limits.SegmentName, limits.SegmentName | dict[limits.SegmentName, Annotated[float, Meta(ge=0, le=1)]]],
        Meta(
            max_length=limits.SEGMENTS,
            description="The share of each group in each segment, or the one group of a segment",
        ),
    ]
    seed: Annotated[int, Meta(ge=0, le=2**53, description="The seed of the draw between break-evens that tie")] = 0


class MixedCost(msgspec.Struct, frozen=True, array_like=True):
    """A break-even of a segment, and the probability that it is drawn."""

    cost: float
    probability: float


class GroupRates(msgspec.Struct, frozen=True):
    """The expected acceptance rates of a group, with and without the limit. Later applicants count less.

    ``opportunity`` is the rate of those who would succeed.
    """

    group: str
    share: float
    acceptance: Bounds
    acceptance_without: Bounds
    opportunity: Bounds
    opportunity_without: Bounds


class FairnessBody(msgspec.Struct, frozen=True, tag="fairness", tag_field="kind"):
    """A fair optimum as it is stored.

    ``value`` encloses what the best policy under the limit earns, and ``unlimited`` the optimum without it.
    """

    limit: FairnessLimit
    costs: dict[str, float]  # the break-even of each segment before the shift
    policies: dict[str, list[MixedCost]]
    drawn: dict[str, float]  # the break-even that each segment is solved at
    group_aware: bool
    value: Bounds
    unlimited: Bounds
    groups: list[GroupRates]

    def shift(self, segment: str) -> float:
        """Return by how much the limit raises the break-even of a segment; below 0 if it lowers it."""
        return self.drawn[segment] - self.costs[segment]


def solve_fairness(specification: PolicySpecification, problems: Sequence[SegmentProblem]) -> FairnessBody | None:
    """Return the best policy under the fairness limit of a version, or None if it has no such limit."""
    from lenience.analysis.fair_optimum import fair_optimum

    limit = specification.fairness
    if not limit:
        return None
    result = fair_optimum(_segments(specification, problems), limit.groups, limit.constraint)
    policies = {row.name: [MixedCost(one.cost, one.probability) for one in row.policies] for row in result.segments}
    return FairnessBody(
        limit=limit,
        costs={one.name: one.problem.cost for one in problems},
        policies=policies,
        drawn=_draw(policies, limit.seed),
        group_aware=result.group_aware,
        value=result.value,
        unlimited=result.unconstrained,
        groups=_rates(result),
    )


def at_fair_cost(problem: SegmentProblem, body: FairnessBody | None) -> SegmentProblem:
    """Return a segment's problem at the break-even that the fairness limit shifts it to."""
    if body is None:
        return problem
    return msgspec.structs.replace(problem, problem=problem.problem.with_cost(body.drawn[problem.name]))


def fairness_differences(
    specification: PolicySpecification, body: FairnessBody | None, tables: Mapping[str, SolvedTable]
) -> list[str]:
    """Return how the stored fair optimum of a version differs from its specification and tables, for the audit.

    The rates of the groups are computed again from the stored break-evens, without searching for the optimum again.
    """
    from lenience.analysis.fair_optimum import FairPolicy, evaluate_fairness

    limit = specification.fairness
    if not limit:
        return [] if body is None else ["it has a fair optimum without a fairness limit"]
    if body is None or body.limit != limit:
        return ["its fairness limit has no solution, or another one"]
    problems = specification.problems()
    differences = []
    if body.costs != {one.name: one.problem.cost for one in problems}:
        differences.append("its break-evens before the fairness limit differ from its specification")
    if body.drawn != _draw(body.policies, limit.seed):
        differences.append("its break-evens are not those that its seed draws")
    odd = [name for name, table in tables.items() if table.cost != body.drawn[name]]
    differences += [f"segment {name!r} was not solved at the break-even of the fairness limit" for name in odd]
    policies = {
        name: tuple(FairPolicy(one.cost, one.probability) for one in mixed) for name, mixed in body.policies.items()
    }
    again = evaluate_fairness(_segments(specification, problems), policies, limit.groups, limit.constraint)
    if again.violation > CLOSE:
        differences.append(f"its break-evens miss the fairness limit by {again.violation:g}")
    if not all(_same(one, other) for one, other in zip(body.groups, _rates(again), strict=True)):
        differences.append("the acceptance rates of its groups differ from those of its break-evens")
    return differences


def fairness_warnings(body: FairnessBody | None) -> list[str]:
    """Return the warnings about a fairness limit: who decides by group, and whose rate it lowers."""
    if body is None:
        return []
    warnings = []
    if body.group_aware:
        warnings.append(
            "This version decides by group: every segment belongs to one group, and its break-even depends on the "
            "group. For credit, and for other decisions about people, the law of many countries forbids this even if "
            "it helps a disadvantaged group. Ask a lawyer first. With the shares of the groups in each segment, "
            "decisions depend on the segment alone."
        )
    lowered = [row for row in body.groups if row.acceptance.upper < row.acceptance_without.lower - 1e-6]
    if lowered:
        each = ", ".join(
            f"{row.group} from {percent(row.acceptance_without.midpoint)} to {percent(row.acceptance.midpoint)}"
            for row in lowered
        )
        warnings.append(
            f"The fairness limit lowers expected acceptance rates: {each}. Floors, or raise_only, raise rates only."
        )
    return warnings


def _draw(policies: Mapping[str, Sequence[MixedCost]], seed: int) -> dict[str, float]:
    """Draw a break-even for each segment, segments in the order of their names."""
    random = np.random.default_rng(seed)
    drawn = {}
    for name in sorted(policies):
        mixed = policies[name]
        place = int(random.choice(len(mixed), p=[one.probability for one in mixed])) if len(mixed) > 1 else 0
        drawn[name] = min(max(mixed[place].cost, LOWEST), HIGHEST)
    return drawn


def _segments(specification: PolicySpecification, problems: Sequence[SegmentProblem]) -> Segments:
    from lenience.objectives.discounted import Discounted
    from lenience.segments.segments import Segment, Segments

    discount = specification.objective.discount
    return Segments(
        [Segment(one.name, one.share, Discounted(one.problem.cost, discount), one.prior) for one in problems]
    )


def _rates(result: FairOptimum) -> list[GroupRates]:
    return [
        GroupRates(
            row.group, row.share, row.acceptance, row.acceptance_without, row.opportunity, row.opportunity_without
        )
        for row in result.groups
    ]


def _same(one: GroupRates, other: GroupRates) -> bool:
    rates = (
        (one.acceptance, other.acceptance),
        (one.acceptance_without, other.acceptance_without),
        (one.opportunity, other.opportunity),
        (one.opportunity_without, other.opportunity_without),
    )
    near = all(abs(a.midpoint - b.midpoint) <= CLOSE for a, b in rates)
    return one.group == other.group and abs(one.share - other.share) <= CLOSE and near
