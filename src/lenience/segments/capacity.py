"""capacity_price: the price of an acceptance where all segments share a limited capacity.

The model. Segments earn Σ γ^i a(y_i − c) over the accepted, where a is the amount at stake and c the break-even of the
offer, one for the whole segment or one for each arrival. An acceptance uses u of the capacity: 1 if the number of
acceptances is limited, a if the money at stake is, and ac if the loss is that all acceptances together could make. The
capacity limits the expected discounted use, E Σ γ^i u ≤ B.

The limit B. If every arrival adds the same share b to what may be used, then B = b(1 + γ + γ² + …) = b/(1 − γ). With Λ
arrivals and A acceptances per unit of time, b = A/Λ. For Poisson arrivals and a discount rate r, γ = Λ/(Λ + r), so
B = A/(rγ). That is the rate A over all time, A/r, as seen from the first arrival, like all values of
:class:`~lenience.Segments`. If the use never runs ahead of this rate, N_i ≤ b(i + 1) after each arrival i, then
Σ γ^i u = (1 − γ) Σ γ^i N_i ≤ B. So the bound below also holds for a limit that must be kept at every moment. A limit
for each month lets the use run ahead of the rate within the month; :func:`capacity_bound` can count that too.

The price. By Lagrange, charge a price λ ≥ 0 for each unit of capacity. An acceptance then earns a(y − c) − λu, so it
has the break-even c + λu/a. For every λ,

    D(λ) = Σ_x w_x V_x(λ) + λB

is an upper bound of the optimum, where V_x(λ) is the value of segment x at these break-evens. D is convex, because each
V_x is a maximum over policies of lines in λ. The slope of D at λ is B minus the use of an optimal policy at this price,
so at the minimum the use is B. If it jumps over B there, drawing one of the two policies at the start uses exactly B.
So the minimum of D is the optimum.

Guarantees. The solver encloses V_x, and therefore D. Chords of a convex function bound it from below outside of their
ends. So three prices around the minimum enclose the optimum, and differences of ΣwV enclose the use: that of a price
is at most the slope to its left, and at least the slope to its right. The price that is returned is so much above the
minimum that its use is proved to be at most B.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offer, Offers
from lenience.core.validation import check_tolerance, real
from lenience.segments.segments import Segment, Segments
from lenience.segments.shifted_costs import amount_at_stake, common_discount, total
from lenience.solvers.offers.solve import solve_offers
from lenience.solvers.stopping.solve import solve_discounted

HIGHEST = 1.0 - 1e-9  # break-even of an offer that never pays

Limited: TypeAlias = Literal["acceptances", "money", "loss"]


def capacity_use(limited: Limited, offer: Offer) -> float:
    """Return what accepting an offer uses of a capacity.

    Parameters
    ----------
    limited : str
        What is limited: "acceptances", "money" (the amount at stake) or "loss" (what a failure loses).
    offer : Offer
        The offer.

    Returns
    -------
    float
        1, the amount at stake, or the loss of a failure.

    Examples
    --------
    >>> [capacity_use(limited, Offer(1000, 0.75)) for limited in ("acceptances", "money", "loss")]
    [1.0, 1000.0, 750.0]
    """
    return 1.0 if limited == "acceptances" else offer.amount if limited == "money" else offer.loss


class CapacityPrice(msgspec.Struct, frozen=True):
    """The price of a limited capacity, and what the optimum earns under it.

    Amounts are discounted and seen from the first arrival. They are in money if amounts or offers were given, and
    otherwise in units of reward.

    Parameters
    ----------
    price
        What each unit of capacity is worth: an acceptance, or one unit of money. 0 if the capacity suffices for all.
    break_even
        The shifted break-even of each segment (with offers, that of accepting everyone). Each segment's optimal policy
        at this cost keeps the capacity. A break-even of 1 or more accepts nobody.
    capacity
        The discounted capacity.
    used
        The discounted capacity that the policies at ``break_even`` are expected to use, at most ``capacity``.
    value
        Bounds of what the best policy under the limit earns. The upper bound holds for every policy that keeps it.
    unlimited
        Bounds of what the best policy earns without the limit.
    limited
        What the capacity limits: "acceptances", "money" (at stake) or "loss" (if all acceptances fail).

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
    limited: Limited = "acceptances"

    @property
    def binds(self) -> bool:
        """Whether the capacity limits what is earned."""
        return self.price > 0.0

    def charge(self, offer: Offer) -> float:
        """Return the price of the capacity that accepting an offer uses.

        Parameters
        ----------
        offer : Offer
            The offer.

        Returns
        -------
        float
            The price of its capacity, in the unit of the amount. Accept it if it earns more than that.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Offers, Segments
        >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.7], currency="$")
        >>> cells = Segments.of({"a": 1.0}, Discounted(offers=loans, discount=0.95), Belief(9, 7))
        >>> result = capacity_price(cells, acceptances=0.3)
        >>> round(result.charge(Offer(500, 0.8))) == round(result.price)
        True
        """
        return self.price * capacity_use(self.limited, offer)

    def shifted(self, offers: Offers) -> Offers:
        """Return offers with the break-evens at which the price of their capacity is earned.

        Parameters
        ----------
        offers : Offers
            The offers of a segment.

        Returns
        -------
        Offers
            The same amounts. A break-even of 1 or more becomes one just below 1, because such an offer never pays.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Offers, Segments
        >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.7], currency="$")
        >>> cells = Segments.of({"a": 1.0}, Discounted(offers=loans, discount=0.95), Belief(9, 7))
        >>> [round(cost, 3) for cost in capacity_price(cells, acceptances=0.3).shifted(loans).cost]
        [1.0, 0.78]
        """
        given = [Offer(amount, cost) for amount, cost in zip(offers.amount, offers.cost, strict=True)]
        costs = tuple(min(one.cost + self.charge(one) / one.amount, HIGHEST) for one in given)
        return msgspec.structs.replace(offers, cost=costs)


class _PricedSegment(NamedTuple):
    """A segment as numbers: its problem, the scale of its value, and what its acceptances use of the capacity."""

    name: str
    prior: Belief | MixtureBelief
    offers: Offers
    uses: tuple[float, ...]  # of each offer
    discount: float
    weight: float

    @property
    def everybody(self) -> float:
        """What is used if everybody is accepted at the offer that uses most."""
        most = [0.0] * self.offers.menu_count
        for menu, use in zip(self.offers.menu_of, self.uses, strict=True):
            most[menu] = max(most[menu], use)
        use = math.fsum(share * each for share, each in zip(self.offers.share, most, strict=True))
        return self.weight * use / (1.0 - self.discount)

    @property
    def largest_price(self) -> float:
        """The least price at which no offer ever pays."""
        return max(amount * (1.0 - cost) / use for amount, cost, use in self._terms)

    @property
    def least_price(self) -> float:
        """A price below 0 at which all break-evens are still above 0."""
        return -0.5 * min(amount * cost / use for amount, cost, use in self._terms)

    @property
    def _terms(self) -> list[tuple[float, float, float]]:
        return list(zip(self.offers.amount, self.offers.cost, self.uses, strict=True))

    def break_even(self, price: float) -> float:
        """Return the break-even of accepting everyone at the largest offer of each menu."""
        offers, use = self.offers, 0.0
        for menu, share in enumerate(offers.share):
            largest = max((i for i, of in enumerate(offers.menu_of) if of == menu), key=lambda i: offers.amount[i])
            use += share * self.uses[largest]
        return offers.mean_cost + price * use / offers.mean_amount

    def value(self, price: float, tolerance: float) -> Bounds:
        """Return what the segment earns after paying a price; the tolerance is in units of the mean amount."""
        offers = self.offers
        if offers.single and isinstance(self.prior, Belief):
            cost = offers.cost[0] + price * self.uses[0] / offers.amount[0]
            if cost >= 1.0:
                return Bounds(0.0, 0.0)
            solution = solve_discounted(self.prior.n, self.prior.s, cost, self.discount, 1, tolerance)
            return solution.value.scaled(offers.amount[0])
        charges = tuple(price * use for use in self.uses)
        return solve_offers(self.prior, offers, self.discount, 1, tolerance, charges=charges).value


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
    loss: float | None = None,
    arrivals: float | None = None,
    amounts: Mapping[str, float] | None = None,
    tolerance: float = 1e-6,
) -> CapacityPrice:
    """Return the price of a limited capacity that all segments share, and bounds of what the optimum earns under it.

    The limit is on the average over the discounted future: a month may use more than its part if others use less.

    Parameters
    ----------
    segments : Segments
        The segments, with Discounted objectives of one discount. They may have offers, and priors that are mixtures.
    acceptances : float, optional
        How many may be accepted per unit of time, above 0. Without arrivals, the share of the arrivals instead.
    money : float, optional
        How much money may be put at stake per unit of time, instead of ``acceptances``. Without arrivals, per arrival.
    loss : float, optional
        How much the acceptances per unit of time may lose if all of them fail, instead. Without arrivals, per arrival.
    arrivals : float, optional
        Arrivals in the same unit of time, all segments together. By default those of the objectives, if they have any.
    amounts : mapping, optional
        The amount at stake (gain plus loss) of each segment with one break-even. By default 1.
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

    With offers, values and the price are in money:

    >>> from lenience import Offers
    >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.7], currency="$")
    >>> timed = Discounted(offers=loans, arrivals=120, discount_rate=0.1)
    >>> result = capacity_price(Segments.of({"a": 1.0}, timed, Belief(9, 7)), loss=30_000)
    >>> round(result.price, 2), round(result.value.upper)
    (0.3, 100866)

    A capacity that suffices for all has no price:

    >>> capacity_price(cells, acceptances=100, arrivals=100).price
    0.0
    """
    tolerance = check_tolerance(tolerance)
    problem = _Problem.of(segments, (acceptances, money, loss), arrivals, amounts, tolerance)
    cells, limited, capacity, _ = problem
    dual = problem.dual
    largest = max(cell.largest_price for cell in cells)
    least = max(cell.least_price for cell in cells)
    step = tolerance * largest
    free = dual(0.0)
    used = _used(dual(max(-step, least)), free, dual(step), cells)
    price, value = 0.0, free.earned
    if used.upper > capacity * (1.0 + 1e-12):
        minimum = dual(_minimum(lambda at: dual(at).total.midpoint, largest, step))
        before, after = _around(dual, minimum, step, least, largest)
        price, value = after.price, _enclose_minimum(before, minimum, after)
        used = _used(minimum, after, dual(after.price + (after.price - minimum.price)), cells)
    break_even = {cell.name: cell.break_even(price) for cell in cells}
    return CapacityPrice(price, break_even, capacity, used, value, free.earned, limited)


def capacity_bound(
    segments: Segments,
    price: float,
    *,
    acceptances: float | None = None,
    money: float | None = None,
    loss: float | None = None,
    arrivals: float | None = None,
    amounts: Mapping[str, float] | None = None,
    more: float = 0.0,
    tolerance: float = 1e-6,
) -> float:
    """Return an upper bound of what any policy earns that keeps a capacity: D(λ) at a price, whatever the price is.

    It is one solve for each segment, so it checks the result of :func:`capacity_price` quickly.

    Parameters
    ----------
    segments : Segments
        The segments, with Discounted objectives of one discount.
    price : float
        The price of a unit of capacity, at least 0. At that of :func:`capacity_price` the bound is lowest.
    acceptances, money, loss, arrivals, amounts
        The capacity, as for :func:`capacity_price`.
    more : float
        Discounted capacity beyond that, at least 0.
    tolerance : float
        The precision of the values, relative to the price of the capacity.

    Returns
    -------
    float
        The upper bound, seen from the first arrival.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> cells = Segments.of({"a": 0.6, "b": 0.4}, Discounted(0.7, 0.95), {"a": Belief(9, 7), "b": Belief(5, 4)})
    >>> price = capacity_price(cells, acceptances=0.3).price
    >>> [round(capacity_bound(cells, at, acceptances=0.3), 3) for at in (0.0, price, 0.2)]
    [1.966, 0.955, 1.2]
    """
    problem = _Problem.of(segments, (acceptances, money, loss), arrivals, amounts, check_tolerance(tolerance))
    at = problem.dual(real("price", price, least=0))
    return at.total.upper + at.price * real("more", more, least=0)


class _Problem(NamedTuple):
    """The segments as numbers, and the capacity that they share."""

    cells: list[_PricedSegment]
    limited: Limited
    capacity: float
    precision: float  # of values, in units of the mean amount

    @classmethod
    def of(
        cls,
        segments: Segments,
        limits: tuple[float | None, float | None, float | None],
        arrivals: float | None,
        amounts: Mapping[str, float] | None,
        tolerance: float,
    ) -> _Problem:
        """Return the problem, after checking what was given."""
        discount = common_discount(segments)
        limited, given = _the_limit(*limits)
        cells = [_priced(cell, amounts, limited) for cell in segments]
        capacity = _per_arrival(segments, limited, given, arrivals) / (1.0 - discount)
        # Slopes are differences of values over steps of the price, so values need a share of step times capacity.
        accepted = capacity / max(max(cell.uses) for cell in cells)
        return cls(cells, limited, capacity, 1e-3 * tolerance * max(1.0, accepted))

    def dual(self, price: float) -> _Dual:
        """Solve the segments at a price."""
        return _charge(self.cells, price, self.capacity, self.precision)


def _the_limit(acceptances: float | None, money: float | None, loss: float | None) -> tuple[Limited, float]:
    """Return what is limited, and the limit."""
    limits: dict[Limited, float | None] = {"acceptances": acceptances, "money": money, "loss": loss}
    given: list[tuple[Limited, float]] = [(field, limit) for field, limit in limits.items() if limit is not None]
    if len(given) != 1:
        raise InputError.because(
            "Give one of acceptances, money and loss",
            tuple(limits),
            label="",
            code="conflicting_fields" if given else "missing",
        )
    field, limit = given[0]
    return field, real(field, limit, above=0)


def _per_arrival(segments: Segments, limited: Limited, limit: float, arrivals: float | None) -> float:
    """Return the capacity that each arrival adds."""
    if arrivals is None:
        known = {cell.objective.arrivals for cell in segments}
        arrivals = known.pop() if len(known) == 1 else None
    if arrivals is not None:
        return limit / real("arrivals", arrivals, above=0)
    if limited == "acceptances" and limit > 1.0:
        hint = "For a number per unit of time, give arrivals in the same unit too."
        raise InputError(limited, limit, "a share of the arrivals, at most 1", hint=hint)
    return limit


def _priced(cell: Segment, amounts: Mapping[str, float] | None, limited: Limited) -> _PricedSegment:
    """Return a segment as numbers."""
    offers = cell.objective.offers
    if offers is not None and amounts is not None:
        raise InputError.because(
            "must not be given for segments with offers, which have their own",
            "amounts",
            value=cell.name,
            code="conflicting_fields",
        )
    if offers is None:
        offers = Offers((amount_at_stake(cell, amounts),), (cell.objective.cost,))
    uses = tuple(capacity_use(limited, Offer(a, c)) for a, c in zip(offers.amount, offers.cost, strict=True))
    return _PricedSegment(cell.name, cell.prior, offers, uses, cell.own.discount, cell.weight)


def _charge(cells: list[_PricedSegment], price: float, capacity: float, tolerance: float) -> _Dual:
    """Solve the segments at a price."""
    known: dict[object, Bounds] = {}
    parts = []
    for cell in cells:
        key = (cell.prior, cell.offers, cell.discount)
        if key not in known:
            known[key] = cell.value(price, tolerance)
        if known[key].upper > 0.0:
            parts.append(known[key].scaled(cell.weight))
    earned = total(parts)
    return _Dual(price, earned, total([*parts, Bounds(price * capacity, price * capacity)]))


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
    everybody = math.fsum(cell.everybody for cell in cells)
    slope_before = (before.earned.upper - at.earned.lower) / (at.price - before.price)
    slope_after = (at.earned.lower - after.earned.upper) / (after.price - at.price)
    upper = min(slope_before, everybody)
    return Bounds(min(max(slope_after, 0.0), upper), upper)
