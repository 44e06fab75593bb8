"""The price of the capacity that all segments of a version share, solved and stored with the version.

The price raises the break-evens, so that the capacity goes to the applicants who are worth most
(:mod:`lenience.segments.capacity`). It keeps the capacity on average over the discounted future. The limit of each
month is kept exactly, by a counter (:mod:`lenience.service.domain.overall`).

The upper bound. In calendar periods of length T with the limit A, the use of a policy is at most that of spending each
period's limit at its start. If the first period ends at once, that is A + A/(1 − e^(−rT)) in discounted capacity. With
late outcomes the price and the bound are those of the problem without delay, which earns at least as much.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.offers import Offer
from lenience.objectives.discounted import Discounted
from lenience.service.domain.offer_tables import OfferTable, PromptOfferTable
from lenience.service.domain.overall import PERIODS, Capacity
from lenience.service.domain.specification import PolicySpecification, SegmentProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lenience.segments.segments import Segments
    from lenience.service.domain.solved_tables import SolvedTable

HIGHEST = 1.0 - 1e-9  # break-even at which nobody is accepted
TOLERANCE = 2e-3  # of the price, relative to the largest price that could matter


class CapacityBody(msgspec.Struct, frozen=True, tag="capacity", tag_field="kind"):
    """The price of a capacity as it is stored, in the unit of the version's values.

    ``bound`` is an upper bound of what any policy earns that keeps the limit of each period, and ``unlimited`` encloses
    the optimum without the limit. Both are discounted and seen from the first arrival.
    """

    capacity: Capacity
    price: float
    bound: float
    unlimited: Bounds
    costs: dict[str, float]  # the break-even of each segment that has one, before the price is added

    def charge(self, offer: Offer) -> float:
        """Return the price of what accepting an offer uses."""
        return self.price * self.capacity.use(offer)


def price_capacity(specification: PolicySpecification, problems: list[SegmentProblem]) -> CapacityBody | None:
    """Return the price of a version's capacity, or None if it has no capacity, or no arrivals to compare it with."""
    from lenience.segments.capacity import capacity_price

    capacity = specification.capacity
    if not capacity or specification.objective.arrivals is None:
        return None
    cells = _segments(specification, problems)
    try:
        acceptances, loss = _limits(capacity)
        result = capacity_price(cells, acceptances=acceptances, loss=loss, tolerance=TOLERANCE)
        bound = _bound(specification, capacity, cells, result.price)
    except TooLargeError as error:
        raise error.with_fields(dict.fromkeys(error.fields, "segments")) from None
    costs = {one.name: one.problem.cost for one in problems if one.problem.offers is None}
    return CapacityBody(capacity, result.price, bound, result.unlimited, costs)


def price_differences(
    specification: PolicySpecification, body: CapacityBody | None, tables: Mapping[str, SolvedTable]
) -> list[str]:
    """Return how the stored price of a version differs from its specification and its tables, for the audit.

    The bound is computed again at the stored price: by duality every price gives one.
    """
    capacity = specification.capacity
    if not capacity or specification.objective.arrivals is None:
        return [] if body is None else ["it has the price of a capacity that it does not have"]
    if body is None or body.capacity != capacity:
        return ["its capacity has no price"]
    problems = specification.problems()
    bound = _bound(specification, capacity, _segments(specification, problems), body.price)
    differences = []
    if body.costs != {one.name: one.problem.cost for one in problems if one.problem.offers is None}:
        differences.append("its break-evens before the price differ from its specification")
    if not math.isclose(bound, body.bound, rel_tol=1e-9):
        differences.append(f"its upper bound is {body.bound!r}, and {bound!r} if it is computed again")
    for problem in problems:
        expected, table = at_price(problem, body), tables[problem.name]
        if isinstance(table, PromptOfferTable) and table.offers is not None:
            same = expected.charges == table.charges
        else:  # Late outcomes of offers are valued without the charges.
            same = (isinstance(table, OfferTable) and table.offers is not None) or expected.problem.cost == table.cost
        if not same:
            differences.append(f"segment {problem.name!r} was not solved at the price of the capacity")
    return differences


def _limits(capacity: Capacity) -> tuple[float | None, float | None]:
    """Return the acceptances and the losses that a year may have."""
    return (capacity.per_year, None) if capacity.loss is None else (None, capacity.per_year)


def _bound(specification: PolicySpecification, capacity: Capacity, cells: Segments, price: float) -> float:
    """Return the upper bound for calendar periods."""
    from lenience.segments.capacity import capacity_bound

    rate, period = specification.objective.discount_rate or 0.0, 1.0 / PERIODS[capacity.per]
    at_starts = capacity.limit * (1.0 + 1.0 / -math.expm1(-rate * period))
    even = capacity.per_year / (rate * specification.objective.discount)
    more = max(at_starts - even, 0.0)
    acceptances, loss = _limits(capacity)
    return capacity_bound(cells, price, acceptances=acceptances, loss=loss, more=more, tolerance=TOLERANCE)


def _segments(specification: PolicySpecification, problems: list[SegmentProblem]) -> Segments:
    """Return the segments as if outcomes came at once."""
    from lenience.segments.segments import Segment, Segments

    overall = specification.objective
    cells = []
    for one in problems:
        own = one.problem
        at_once = Discounted(
            own.cost, arrivals=overall.arrivals, discount_rate=overall.discount_rate, offers=own.offers
        )
        cells.append(Segment(one.name, one.share, at_once, one.prior))
    return Segments(cells)


def at_price(problem: SegmentProblem, body: CapacityBody | None) -> SegmentProblem:
    """Return a segment's problem at the price of the capacity: with a raised break-even, or with a charge by offer."""
    if body is None or body.price == 0.0:
        return problem
    own = problem.problem
    if own.offers is not None:
        each = zip(own.offers.amount, own.offers.cost, strict=True)
        charges = tuple(body.charge(Offer(amount, cost)) for amount, cost in each)
        return msgspec.structs.replace(problem, charges=charges)
    return msgspec.structs.replace(problem, problem=own.with_cost(min(own.cost + body.price, HIGHEST)))
