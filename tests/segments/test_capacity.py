"""The price of a limited capacity, against plain recursions and a grid of prices."""

from __future__ import annotations

from functools import cache

import pytest

from lenience import Belief, Delayed, Discounted, InputError, MixtureBelief, Offer, Offers, Segments
from lenience.segments import capacity_bound, capacity_price
from lenience.segments.capacity import _PricedSegment
from lenience.solvers.offers.solve import solve_offers

DISCOUNT, ROWS = 0.8, 50  # the rows beyond change values by less than 1e-8
SHARES = {"a": 0.6, "b": 0.4}
PRIORS = {"a": Belief(9, 7), "b": Belief(3, 2)}


def plain(n: float, s: float, cost: float, discount: float) -> tuple[float, float]:
    """Return what the optimum earns and the discounted number it accepts, by the paper's equation."""

    @cache
    def value(k: int, j: int) -> tuple[float, float]:
        mean = (s + j) / (n + k)
        if k == ROWS:
            return max(mean - cost, 0.0) / (1 - discount), float(mean > cost) / (1 - discount)
        (up, many), (down, few) = value(k + 1, j + 1), value(k + 1, j)
        accepting = mean - cost + discount * (mean * up + (1 - mean) * down)
        if accepting <= 0:
            return 0.0, 0.0
        return accepting, 1 + discount * (mean * many + (1 - mean) * few)

    return value(0, 0)


def charged(
    price: float, costs: dict[str, float], amounts: dict[str, float], money: bool = False
) -> tuple[float, float]:
    """Return what both segments earn after paying a price, and the capacity that they use."""
    earned = used = 0.0
    for name, share in SHARES.items():
        wait = 1 - DISCOUNT + DISCOUNT * share
        own, weight, amount = DISCOUNT * share / wait, share / wait, amounts[name]
        use = amount if money else 1.0
        cost = costs[name] + price * use / amount
        value, count = plain(PRIORS[name].n, PRIORS[name].s, cost, own) if cost < 1 else (0.0, 0.0)
        earned += weight * amount * value
        used += weight * use * count
    return earned, used


def segments(costs: dict[str, float]) -> Segments:
    return Segments.of(SHARES, {name: Discounted(cost, DISCOUNT) for name, cost in costs.items()}, PRIORS)


@pytest.mark.parametrize(
    ("limit", "money", "amounts"),
    [
        (0.05, False, {"a": 1.0, "b": 1.0}),
        (0.4, False, {"a": 1.0, "b": 1.0}),
        (0.4, False, {"a": 1.0, "b": 3.0}),
        (0.7, True, {"a": 1.0, "b": 3.0}),
    ],
)
def test_the_price_is_the_minimum_of_the_dual(limit: float, money: bool, amounts: dict[str, float]) -> None:
    costs = {"a": 0.7, "b": 0.6}
    capacity = limit / (1 - DISCOUNT)
    prices = [i / 200 for i in range(241)]
    dual = [charged(price, costs, amounts, money)[0] + price * capacity for price in prices]
    lowest = dual.index(min(dual))
    given = {"money": limit} if money else {"acceptances": limit}
    result = capacity_price(segments(costs), amounts=amounts, **given)
    assert result.binds
    assert result.capacity == pytest.approx(capacity)
    assert prices[lowest - 1] <= result.price <= prices[lowest + 1]
    # Every point of the grid is an upper bound, and the least is near the optimum.
    assert result.value.lower <= dual[lowest] + 1e-7
    assert dual[lowest] - 0.005 * capacity <= result.value.upper <= dual[lowest] + 1e-7
    assert result.value.width < 1e-4
    for name, cost in result.break_even.items():
        assert cost == pytest.approx(costs[name] + result.price * (1.0 if money else 1 / amounts[name]))


def test_the_shifted_policies_keep_the_capacity() -> None:
    costs, ones = {"a": 0.7, "b": 0.6}, {"a": 1.0, "b": 1.0}
    for share in (0.1, 0.3, 0.5, 0.7):
        result = capacity_price(segments(costs), acceptances=share)
        earned, used = charged(result.price, costs, ones)
        assert result.used.lower - 1e-7 <= used <= result.used.upper + 1e-7
        assert used <= result.capacity
        # They earn no more than the bound, and a slightly lower price uses too much.
        assert earned + result.price * used <= result.value.upper + 1e-7
        assert charged(result.price - 0.001, costs, ones)[1] > result.capacity


def test_the_optimum_is_reached_by_drawing_one_of_two_prices() -> None:
    costs, ones = {"a": 0.7, "b": 0.6}, {"a": 1.0, "b": 1.0}
    result = capacity_price(segments(costs), acceptances=0.4)
    low, high = result.price - 1e-4, result.price
    (poor, few), (rich, many) = charged(high, costs, ones), charged(low, costs, ones)
    chance = (result.capacity - few) / (many - few)
    earned = chance * (rich + low * many) + (1 - chance) * (poor + high * few)
    assert result.value.lower - 1e-3 <= earned <= result.value.upper + 1e-7
    assert earned == pytest.approx(result.value.upper, abs=2e-4)


@pytest.mark.parametrize("tolerance", [0.3, 0.1, 0.03, 0.01, 1e-3])
def test_coarse_prices_have_valid_bounds(tolerance: float) -> None:
    cells = segments({"a": 0.7, "b": 0.6})
    for share in (0.05, 0.2, 0.4, 0.6):
        fine = capacity_price(cells, acceptances=share)
        coarse = capacity_price(cells, acceptances=share, tolerance=tolerance)
        assert coarse.value.lower <= fine.value.upper
        assert coarse.value.upper >= fine.value.lower
        assert coarse.price >= fine.price - 1e-5
        assert coarse.used.upper <= coarse.capacity
        used = charged(coarse.price, {"a": 0.7, "b": 0.6}, {"a": 1.0, "b": 1.0})[1]
        assert coarse.used.lower - 1e-7 <= used <= coarse.used.upper + 1e-7


def test_a_capacity_that_suffices_has_no_price() -> None:
    costs = {"a": 0.7, "b": 0.6}
    used = charged(0.0, costs, {"a": 1.0, "b": 1.0})[1] * (1 - DISCOUNT)
    for share in (1.001 * used, 1.0):
        result = capacity_price(segments(costs), acceptances=share)
        assert (result.price, result.binds) == (0.0, False)
        assert result.break_even == costs
        assert result.value == result.unlimited
    assert result.unlimited.midpoint == pytest.approx(segments(costs).solve().value().midpoint, abs=1e-8)
    tight = capacity_price(segments(costs), acceptances=0.99 * used)
    assert tight.binds
    assert tight.value.upper < result.unlimited.lower


def test_everybody_may_be_accepted_where_everybody_is() -> None:
    cells = Segments.of({"good": 1.0}, Discounted(0.2, 0.9), Belief(1000, 900))
    assert capacity_price(cells, acceptances=50, arrivals=50).price == 0.0


def test_a_rate_is_a_share_of_the_arrivals() -> None:
    cells = segments({"a": 0.7, "b": 0.6})
    by_share = capacity_price(cells, acceptances=0.4)
    assert capacity_price(cells, acceptances=40, arrivals=100) == by_share
    assert capacity_price(cells, acceptances=0.2, arrivals=0.5) == by_share
    with pytest.raises(InputError, match="above 0"):
        capacity_price(cells, acceptances=0.2, arrivals=0)
    timed = {name: Discounted(cost, arrivals=100, discount_rate=25) for name, cost in {"a": 0.7, "b": 0.6}.items()}
    per_year = capacity_price(Segments.of(SHARES, timed, PRIORS), acceptances=40)
    assert per_year.price == pytest.approx(by_share.price, abs=1e-6)
    assert per_year.capacity == pytest.approx(40 / 25 / 0.8)


def test_bad_input() -> None:
    cells = segments({"a": 0.7, "b": 0.6})
    with pytest.raises(InputError, match="acceptances, money and loss") as error:
        capacity_price(cells)
    assert error.value.code == "missing"
    with pytest.raises(InputError, match="acceptances, money and loss"):
        capacity_price(cells, acceptances=0.1, money=3)
    with pytest.raises(InputError, match="share of the arrivals") as error:
        capacity_price(cells, acceptances=40)
    assert error.value.field == "acceptances"
    with pytest.raises(InputError, match="above 0"):
        capacity_price(cells, acceptances=0)
    with pytest.raises(InputError, match="missing for 'b'"):
        capacity_price(cells, acceptances=0.1, amounts={"a": 1})
    late = Segments.of(SHARES, Delayed(0.7, arrivals=50, discount_rate=0.1, label_delay=1), PRIORS)
    with pytest.raises(InputError, match="Discounted"):
        capacity_price(late, acceptances=0.1)
    mixed = Segments.of(SHARES, {"a": Discounted(0.7, 0.9), "b": Discounted(0.7, 0.8)}, PRIORS)
    with pytest.raises(InputError, match="same discount"):
        capacity_price(mixed, acceptances=0.1)


LOANS = Offers(amount=[0.2, 1, 4], cost=[0.75, 0.7, 0.72], share=[0.5, 0.3, 0.2])
MENUS = Offers.draw([Offers.menu(amount=[0.1, 1.0], cost=[0.7, 0.75]), Offer(2.0, 0.6)], share=[0.7, 0.3])


def plain_offers(
    prior: Belief | MixtureBelief, offers: Offers, discount: float, charges: list[float], uses: list[float]
) -> tuple[float, float]:
    """Return what the optimum earns and the capacity it uses, from the accepted set that is best at each belief."""
    after = MixtureBelief.of(prior).after
    menus = [[o for o, of in enumerate(offers.menu_of) if of == menu] for menu in range(offers.menu_count)]

    @cache
    def value(k: int, j: int) -> tuple[float, float]:
        mean = after(k, j).mean
        best: list[tuple[float, float, float]] = []
        for menu, share in zip(menus, offers.share, strict=True):
            gains = [(offers.amount[o] * (mean - offers.cost[o]) - charges[o], uses[o]) for o in menu]
            best.append((*max(gains), share))
        earned = used = (0.0, 0.0)
        if k < ROWS:
            (up, many), (down, few) = value(k + 1, j + 1), value(k + 1, j)
            earned, used = (mean * up + (1 - mean) * down, 0.0), (mean * many + (1 - mean) * few, 0.0)
        results = [(0.0, 0.0)]
        chosen = gain = use = 0.0
        for own, each, share in sorted(best, reverse=True):
            chosen, gain, use = chosen + share, gain + share * own, use + share * each
            learns = chosen if k < ROWS else 0.0
            wait = 1 - discount + discount * learns
            results.append(((gain + discount * learns * earned[0]) / wait, (use + discount * learns * used[0]) / wait))
        return max(results)

    return value(0, 0)


@pytest.mark.parametrize("prior", [Belief(5, 3.4), MixtureBelief.doubt(Belief(4, 2.8), 0.2)])
@pytest.mark.parametrize("offers", [LOANS, MENUS])
def test_charges_raise_the_break_evens_even_above_one(prior: Belief | MixtureBelief, offers: Offers) -> None:
    for price in (0.0, 0.02, 0.06, 0.15):  # a charge of 0.06 leaves the small offer to its label alone
        charges = [price] * len(offers.amount)
        expected, _ = plain_offers(prior, offers, 0.85, charges, charges)
        solution = solve_offers(prior, offers, 0.85, 1, 1e-9, charges=charges)
        assert solution.value.lower - 1e-6 <= expected <= solution.value.upper + 1e-12


def test_no_offer_pays_at_a_high_price() -> None:
    solution = solve_offers(Belief(5, 3.4), LOANS, 0.85, 4, 1e-9, charges=[10.0] * 3)
    assert (solution.value.upper, solution.label_value.upper, len(solution.rows)) == (0.0, 0.0, 4)


@pytest.mark.parametrize("limited", ["acceptances", "money", "loss"])
def test_the_price_with_offers_is_the_minimum_of_the_dual(limited: str) -> None:
    offers = {"a": LOANS, "b": MENUS}
    objectives = {name: Discounted(offers=own, discount=DISCOUNT) for name, own in offers.items()}
    limits = {"acceptances": 0.3, "money": 0.3, "loss": 0.25}
    acceptances, money, loss = (limit if name == limited else None for name, limit in limits.items())
    cells = Segments.of(SHARES, objectives, PRIORS)
    result = capacity_price(cells, acceptances=acceptances, money=money, loss=loss)
    assert result.binds
    assert result.limited == limited

    def charged_offers(price: float) -> tuple[float, float]:
        earned = used = 0.0
        for name, share in SHARES.items():
            wait = 1 - DISCOUNT + DISCOUNT * share
            each = [Offer(a, c) for a, c in zip(offers[name].amount, offers[name].cost, strict=True)]
            uses = [{"acceptances": 1.0, "money": one.amount, "loss": one.loss}[limited] for one in each]
            own = plain_offers(PRIORS[name], offers[name], DISCOUNT * share / wait, [price * use for use in uses], uses)
            earned, used = earned + share / wait * own[0], used + share / wait * own[1]
        return earned, used

    duals = {price: charged_offers(price) for price in (0.9 * result.price, result.price, 1.1 * result.price)}
    totals = [earned + price * result.capacity for price, (earned, _) in duals.items()]
    assert min(totals) == pytest.approx(totals[1], abs=1e-4)
    assert result.value.lower - 1e-7 <= totals[1] + 1e-6
    assert totals[1] <= result.value.upper + 1e-4
    # What the shifted policies use is proved to fit, and a lower price uses too much.
    assert duals[result.price][1] <= result.capacity + 1e-6
    assert result.used.lower - 1e-6 <= duals[result.price][1] <= result.used.upper + 1e-6
    assert duals[0.9 * result.price][1] > result.capacity
    assert result.charge(Offer(2.0, 0.5)) == pytest.approx(result.price * {"money": 2.0}.get(limited, 1.0))


def test_a_larger_capacity_has_a_larger_bound() -> None:
    cells = segments({"a": 0.7, "b": 0.6})
    result, larger = capacity_price(cells, acceptances=0.3), capacity_price(cells, acceptances=0.32)
    same = capacity_bound(cells, result.price, acceptances=0.3)
    assert result.value.upper - 1e-9 <= same <= result.value.upper + 1e-4
    more = capacity_bound(cells, result.price, acceptances=0.3, more=larger.capacity - result.capacity)
    assert larger.value.upper - 1e-9 <= more <= larger.value.upper + 0.01
    # Every price gives a bound, also a wrong one.
    for price in (0.0, 0.5 * result.price, 2 * result.price):
        assert capacity_bound(cells, price, acceptances=0.3) > result.value.upper


def test_amounts_are_for_segments_with_one_break_even() -> None:
    cells = Segments.of({"a": 1.0}, Discounted(offers=LOANS, discount=0.9), Belief(5, 4))
    with pytest.raises(InputError) as error:
        capacity_price(cells, acceptances=0.5, amounts={"a": 2.0})
    assert (error.value.field, error.value.code) == ("amounts", "conflicting_fields")


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_prices_and_values_are_in_the_unit_of_the_amounts(unit: float) -> None:
    cells = Segments.of(SHARES, Discounted(0.7, DISCOUNT), PRIORS)
    fine = capacity_price(cells, acceptances=0.3, tolerance=1e-8)
    result = capacity_price(cells, acceptances=0.3, amounts=dict.fromkeys(SHARES, unit), tolerance=1e-5)
    assert result.price == pytest.approx(unit * fine.price, abs=1e-4 * unit)
    assert result.value.lower <= unit * fine.value.upper
    assert result.value.upper >= unit * fine.value.lower
    assert result.value.width <= 1e-3 * unit
    assert result.unlimited.midpoint == pytest.approx(unit * fine.unlimited.midpoint, rel=1e-4)


@pytest.mark.parametrize("acceptances", [0.2, 0.5, 0.99])
def test_what_is_used_is_enclosed_closely(acceptances: float) -> None:
    cells = Segments.of(SHARES, Discounted(0.7, DISCOUNT), PRIORS)
    result = capacity_price(cells, acceptances=acceptances, tolerance=1e-6)
    at_price = charged(result.price, dict.fromkeys(SHARES, 0.7), dict.fromkeys(SHARES, 1.0))[1]
    assert result.used.lower - 1e-6 <= at_price <= result.used.upper + 1e-6
    # At a price the use jumps where a decision changes. Without a price it is known.
    if result.price == 0.0:
        assert result.used.lower > 0.97 * result.used.upper
    else:
        assert result.used.lower <= result.capacity * (1 + 1e-9)


def test_prices_and_uses_of_a_segment() -> None:
    menus = Offers.draw([Offers.menu([2, 8], [0.5, 0.75]), Offers.menu([4], [0.6])], share=[0.25, 0.75])
    segment = _PricedSegment("a", Belief(2, 1), menus, (1.0, 4.0, 2.0), 0.75, 0.5)
    assert segment.largest_price == pytest.approx(max(2 * 0.5 / 1, 8 * 0.25 / 4, 4 * 0.4 / 2))
    assert segment.least_price == pytest.approx(-0.5 * min(2 * 0.5 / 1, 8 * 0.75 / 4, 4 * 0.6 / 2))
    assert segment.everybody == pytest.approx(0.5 * (0.25 * 4 + 0.75 * 2) / 0.25)
    used, amount = 0.25 * 4 + 0.75 * 2, 0.25 * 8 + 0.75 * 4
    assert segment.break_even(0.3) == pytest.approx(menus.mean_cost + 0.3 * used / amount)
    single = _PricedSegment("b", Belief(4, 3), Offers([10], [0.5]), (4.0,), 0.9, 0.5)
    priced = Discounted(0.5 + 0.5 * 4 / 10, 0.9).enclose(Belief(4, 3), 1e-9)[0]
    value = single.value(0.5, 1e-9)
    assert (value.lower, value.upper) == pytest.approx((10 * priced.lower, 10 * priced.upper), abs=1e-6)
    assert single.value(1.25, 1e-9).upper == 0.0  # a break-even of 1
