"""capacity_price: the price of an acceptance where all segments share a limited capacity.

The model. Segments earn Σ γ^i a_x (y_i − c_x) over the accepted, where a_x is the amount at stake. An acceptance in
segment x uses u_x of the capacity: 1 if the number of acceptances is limited, a_x if money is. The capacity limits the
expected discounted use, E Σ γ^i u_x ≤ B.

The limit B. If every arrival adds the same share b to what may be used, then B = b(1 + γ + γ² + …) = b/(1 − γ). With Λ
arrivals and A acceptances per unit of time, b = A/Λ. For Poisson arrivals and a discount rate r, γ = Λ/(Λ + r), so
B = A/(rγ). That is the rate A over all time, A/r, as seen from the first arrival, like all values of
:class:`~lenience.Segments`. If the use never runs ahead of this rate, N_i ≤ b(i + 1) after each arrival i, then
Σ γ^i u = (1 − γ) Σ γ^i N_i ≤ B. So the bound below also holds for a limit that must be kept at every moment.

The price. By Lagrange, charge a price λ ≥ 0 for each unit of capacity. Segment x then earns a_x(y − c_x) − λu_x, which
is its own problem with the break-even c_x + λu_x/a_x. For every λ,

    D(λ) = Σ_x w_x a_x V_x(c_x + λu_x/a_x) + λB

is an upper bound of the optimum. D is convex, because each V_x is a maximum over policies of lines in the cost. The
slope of D at λ is B minus the use of an optimal policy at this price, so at the minimum the use is B. If it jumps over
B there, drawing one of the two policies at the start uses exactly B. So the minimum of D is the optimum.

Guarantees. The solver encloses V_x, and therefore D. Chords of a convex function bound it from below outside of their
ends. So three prices around the minimum enclose the optimum, and differences of ΣwaV enclose the use: that of a price
is at most the slope to its left, and at least the slope to its right. The price that is returned is so much above the
minimum that its use is proved to be at most B.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import check_tolerance, mapped, real
from lenience.segments.segments import Segments, plain_belief
from lenience.solvers.stopping.solve import solve_discounted

SEGMENTS = "Segments with Discounted objectives, such as Segments.of(shares, Discounted(0.8, 0.99), prior)"


class CapacityPrice(msgspec.Struct, frozen=True):
    """The price of a limited capacity, and what the optimum earns under it.

    Amounts are discounted and seen from the first arrival. They are in money if amounts were given, and otherwise in
    units of reward.

    Parameters
    ----------
    price
        What each unit of capacity is worth: an acceptance, or one unit of money. 0 if the capacity suffices for all.
    break_even
        The shifted break-even of each segment. Each segment's optimal policy at this cost keeps the capacity. A
        break-even of 1 or more accepts nobody.
    capacity
        The discounted capacity.
    used
        The discounted capacity that the policies at ``break_even`` are expected to use, at most ``capacity``.
    value
        Bounds of what the best policy under the limit earns. The upper bound holds for every policy that keeps it.
    unlimited
        Bounds of what the best policy earns without the limit.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.6, "b": 0.4}, Discounted(0.7, 0.95), {"a": Belief(9, 7), "b": Belief(5, 4)})
    >>> result = capacity_price(cells, acceptances=0.3)
    >>> result.binds, round(result.price, 3)
    (True, 0.137)
    """

    price: float
    break_even: dict[str, float]
    capacity: float
    used: Bounds
    value: Bounds
    unlimited: Bounds

    @property
    def binds(self) -> bool:
        """Whether the capacity limits what is earned."""
        return self.price > 0.0


class _PricedSegment(NamedTuple):
    """A segment as numbers: its problem, the scale of its value, and what an acceptance uses of the capacity."""

    name: str
    prior: Belief
    cost: float
    discount: float
    scale: float  # weight × amount: of its own value in the value of the whole
    use: float  # weight × use: of its own acceptances in the capacity that is used
    shift: float  # of the break-even, for a price of 1


class _Dual(NamedTuple):
    """What the segments earn at a price after paying it, and D, which adds the price of the whole capacity."""

    price: float
    earned: Bounds
    total: Bounds


def capacity_price(
    segments: Segments,
    *,
    acceptances: float | None = None,
    money: float | None = None,
    arrivals: float | None = None,
    amounts: Mapping[str, float] | None = None,
    tolerance: float = 1e-6,
) -> CapacityPrice:
    """Return the price of a limited capacity that all segments share, and bounds of what the optimum earns under it.

    The limit is on the average over the discounted future: a month may use more than its part if others use less.

    Parameters
    ----------
    segments : Segments
        The segments, with Discounted objectives of one discount.
    acceptances : float, optional
        How many may be accepted per unit of time, above 0. Without arrivals, the share of the arrivals instead.
    money : float, optional
        How much money may be put at stake per unit of time, instead of ``acceptances``. Without arrivals, per arrival.
    arrivals : float, optional
        Arrivals in the same unit of time, all segments together. By default those of the objectives, if they have any.
    amounts : mapping, optional
        The amount at stake (gain plus loss) of each segment. By default 1.
    tolerance : float
        The precision of the price, relative to the largest price that could matter.

    Returns
    -------
    CapacityPrice
        The price, the shifted break-evens, and bounds of the optimum.

    Raises
    ------
    InputError
        If the segments have other objectives, a number is out of range, or a segment lacks an amount.

    Examples
    --------
    Of 100 applicants a month, 30 may be accepted:

    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.6, "b": 0.4}, Discounted(0.7, 0.95), {"a": Belief(9, 7), "b": Belief(5, 4)})
    >>> result = capacity_price(cells, acceptances=30, arrivals=100)
    >>> {name: round(cost, 3) for name, cost in result.break_even.items()}
    {'a': 0.837, 'b': 0.837}
    >>> round(result.value.upper, 3), round(result.unlimited.midpoint, 3)
    (0.955, 1.966)

    A capacity that suffices for all has no price:

    >>> capacity_price(cells, acceptances=100, arrivals=100).price
    0.0
    """
    tolerance = check_tolerance(tolerance)
    discount = _common_discount(segments)
    per_arrival = _per_arrival(segments, acceptances, money, arrivals)
    cells = _cells(segments, amounts, money is not None)
    capacity = per_arrival / (1.0 - discount)
    largest = max((1.0 - cell.cost) / cell.shift for cell in cells)  # At this price nobody is accepted.
    least = -0.5 * min(cell.cost / cell.shift for cell in cells)

    def dual(price: float) -> _Dual:
        return _charge(cells, price, capacity, 1e-3 * tolerance)

    step = tolerance * largest
    free = dual(0.0)
    used = _used(dual(max(-step, least)), free, dual(step), cells)
    price, value = 0.0, free.earned
    if used.upper > capacity * (1.0 + 1e-12):
        minimum = dual(_minimum(lambda at: dual(at).total.midpoint, largest, step))
        before, after = _around(dual, minimum, step, least, largest)
        price, value = after.price, _enclose_minimum(before, minimum, after)
        used = _used(minimum, after, dual(after.price + (after.price - minimum.price)), cells)
    break_even = {cell.name: cell.cost + price * cell.shift for cell in cells}
    return CapacityPrice(price, break_even, capacity, used, value, free.earned)


def _common_discount(segments: Segments) -> float:
    """Return the discount of all segments, after checking their objectives."""
    if not isinstance(segments, Segments) or not all(cell.objective.stationary for cell in segments):
        raise InputError("segments", segments, SEGMENTS)
    discounts = {cell.objective.discount for cell in segments}
    if len(discounts) > 1:
        raise InputError("segments", sorted(discounts), "segments with the same discount")
    return discounts.pop()


def _per_arrival(segments: Segments, acceptances: float | None, money: float | None, arrivals: float | None) -> float:
    """Return the capacity that each arrival adds."""
    if (acceptances is None) == (money is None):
        raise InputError.because(
            "Give either acceptances or money",
            ("acceptances", "money"),
            label="",
            code="missing" if money is None else "conflicting_fields",
        )
    field, given = ("acceptances", acceptances) if money is None else ("money", money)
    limit = real(field, given, above=0)
    if arrivals is None:
        known = {cell.objective.arrivals for cell in segments}
        arrivals = known.pop() if len(known) == 1 else None
    if arrivals is not None:
        return limit / real("arrivals", arrivals, above=0)
    if money is None and limit > 1.0:
        hint = "For a number per unit of time, give arrivals in the same unit too."
        raise InputError(field, given, "a share of the arrivals, at most 1", hint=hint)
    return limit


def _cells(segments: Segments, amounts: Mapping[str, float] | None, uses_money: bool) -> list[_PricedSegment]:
    """Return the segments as numbers."""
    stakes = None if amounts is None else mapped("amounts", amounts, "a mapping of segments to amounts")
    cells = []
    for cell in segments:
        if stakes is not None and cell.name not in stakes:
            raise InputError.because(
                f"must be given for every segment; it is missing for {cell.name!r}",
                "amounts",
                value=cell.name,
                code="missing",
            )
        label = f"amount of {cell.name}"
        amount = 1.0 if stakes is None else real("amounts", stakes[cell.name], above=0, label=label)
        use = amount if uses_money else 1.0
        prior = plain_belief(cell, "capacity_price")
        own = cell.own
        cells.append(
            _PricedSegment(
                cell.name, prior, own.cost, own.discount, cell.weight * amount, cell.weight * use, use / amount
            )
        )
    return cells


def _charge(cells: list[_PricedSegment], price: float, capacity: float, tolerance: float) -> _Dual:
    """Solve the segments at a price."""
    known: dict[tuple[Belief, float, float], Bounds] = {}
    parts = []
    for cell in cells:
        cost = cell.cost + price * cell.shift
        if cost >= 1.0:
            continue
        key = (cell.prior, cost, cell.discount)
        if key not in known:
            known[key] = solve_discounted(cell.prior.n, cell.prior.s, cost, cell.discount, 1, tolerance).value
        if known[key].upper > 0.0:
            parts.append(known[key].scaled(cell.scale))
    earned = _sum(parts)
    return _Dual(price, earned, _sum([*parts, Bounds(price * capacity, price * capacity)]))


def _minimum(function: Callable[[float], float], largest: float, precision: float) -> float:
    """Return where a convex function of the price is smallest."""
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(function, bounds=(0.0, largest), method="bounded", options={"xatol": precision}).x)


def _around(
    dual: Callable[[float], _Dual], minimum: _Dual, step: float, least: float, largest: float
) -> tuple[_Dual, _Dual]:
    """Return prices on both sides of the minimum at which D is proved to be no smaller than there."""
    before = after = minimum
    width = step
    while after.total.lower < minimum.total.upper and after.price < largest:
        after = dual(min(minimum.price + width, largest))
        width *= 2.0
    width = step
    while before.price > 0.0 and (before is minimum or before.total.lower < minimum.total.upper):
        before = dual(max(minimum.price - width, 0.0))
        width *= 2.0
    return (dual(max(-step, least)) if before is minimum else before), after


def _enclose_minimum(before: _Dual, middle: _Dual, after: _Dual) -> Bounds:
    """Return bounds of the minimum of D over the prices that are not negative.

    D is no smaller than in the middle outside of the three prices. Between them the chord from the other side, extended
    over the middle, is below D.
    """
    left, right = middle.price - max(before.price, 0.0), after.price - middle.price
    low = middle.total.lower

    def extended(chord: _Dual, over: float) -> float:
        return low - (chord.total.upper - low) * over / abs(middle.price - chord.price)

    upper = min(before.total.upper if before.price >= 0.0 else math.inf, middle.total.upper, after.total.upper)
    lower = min(low, extended(before, right), extended(after, left))
    return Bounds(lower - 1e-15 * abs(lower), upper)


def _used(before: _Dual, at: _Dual, after: _Dual, cells: list[_PricedSegment]) -> Bounds:
    """Return bounds of the capacity that is used at a price, from the slopes to its left and its right."""
    everybody = math.fsum(cell.use / (1.0 - cell.discount) for cell in cells)
    slope_before = (before.earned.upper - at.earned.lower) / (at.price - before.price)
    slope_after = (at.earned.lower - after.earned.upper) / (after.price - at.price)
    upper = min(slope_before, everybody)
    return Bounds(min(max(slope_after, 0.0), upper), upper)


def _sum(parts: list[Bounds]) -> Bounds:
    """Return bounds of a sum, rounded outwards."""
    lower, upper = math.fsum(part.lower for part in parts), math.fsum(part.upper for part in parts)
    return Bounds(lower - 4e-16 * abs(lower), upper + 4e-16 * abs(upper))
