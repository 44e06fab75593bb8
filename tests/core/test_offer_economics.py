"""Offer and Offers: gains, losses, loans, menus, averages and compression, by hand and by plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Offer, Offers
from lenience.core.offers import MOST_OFFERS, _cut, compress_with_error, describe_offers, interest
from rejections import rejected

MENUS = Offers.draw([Offers.menu([1, 3, 2], [0.5, 0.7, 0.9]), Offer(8, 0.25)], share=[3, 1])


def test_an_offer_by_hand() -> None:
    offer = Offer(1000, 0.8)
    assert (offer.gain, offer.loss) == (200, 800)
    assert offer.expected_profit(0.9) == pytest.approx(100)
    assert offer.expected_profit(0.7) == pytest.approx(-100)
    assert Offer.from_gain_and_loss(30, 10) == Offer(40, 0.25)


@pytest.mark.parametrize(("rate", "years"), [(0.12, 1), (0.3, 5), (0.01, 0.5), (0.06, 30)])
def test_interest_is_that_of_a_schedule_of_payments(rate: float, years: float) -> None:
    """Pay off a loan month by month: with the right payment, nothing is left."""
    months = round(12 * years)
    payment = (1 + interest(rate, years)) / months
    left = 1.0
    for _ in range(months):
        left = left * (1 + rate / 12) - payment
    assert abs(left) < 1e-9
    assert interest(0, years) == 0


def test_a_loan_by_hand() -> None:
    offer = Offer.from_loan(2000, 0.12, 3, loss_given_default=0.6, funding_rate=0.04)
    assert offer.gain == pytest.approx(2000 * (interest(0.12, 3) - interest(0.04, 3)))
    assert offer.loss == pytest.approx(1200)
    assert Offer.from_loan(2000, 0.12, 3).loss == pytest.approx(2000)
    assert Offer.from_loan(2000, 0.12, 3).gain == pytest.approx(2000 * interest(0.12, 3))
    loans = Offers.from_loans([2000, 500], [0.12, 0.3], 3, 0.6, 0.04, share=[1, 3])
    assert loans.share == (0.25, 0.75)
    assert loans.amount[0] == pytest.approx(offer.amount)
    assert loans.cost[0] == pytest.approx(offer.cost)
    second = Offer.from_loan(500, 0.3, 3, 0.6, 0.04)
    assert (loans.amount[1], loans.cost[1]) == pytest.approx((second.amount, second.cost))


def test_menus_and_their_averages() -> None:
    assert MENUS.menus == (0, 0, 0, 1)
    assert MENUS.share == (0.75, 0.25)
    assert MENUS.menu_count == 2
    assert [one.amount for one in MENUS.offers_of(0)] == [1, 3, 2]
    assert MENUS.offers_of(1) == [Offer(8, 0.25)]
    assert MENUS.mean_amount == 0.75 * 3 + 0.25 * 8
    assert MENUS.mean_cost == pytest.approx((0.75 * 3 * 0.7 + 0.25 * 8 * 0.25) / (0.75 * 3 + 0.25 * 8))
    for rate in (0.1, 0.45, 0.55, 0.72, 0.85, 1.0):
        first = max(0, rate - 0.5, 3 * (rate - 0.7), 2 * (rate - 0.9))
        assert MENUS.profit_if_known(rate) == pytest.approx(0.75 * first + 0.25 * max(0, 8 * (rate - 0.25)))
    assert not MENUS.single
    assert Offers([3], [0.5]).single
    assert Offers([3, 4], [0.5, 0.5]).menu_of == (0, 1)
    assert Offers([3, 4], [0.5, 0.5], menus=[0, 1]) == Offers([3, 4], [0.5, 0.5])
    assert Offers([3, 4], [0.5, 0.5]).share == (0.5, 0.5)
    assert Offers([3, 4], [0.5, 0.5], [0.25, 0.75]).share == (0.25, 0.75)
    assert Offers([1, 1], [0.5, 0.5], [0, 2]).share == (0, 1)
    assert Offers.menu([1, 2], [0.5, 0.5], "EUR").currency == "EUR"


def test_a_mean_cost_stays_inside_the_open_interval() -> None:
    assert Offers([1], [1e-12]).mean_cost == 1e-9
    top = math.nextafter(1.0, 0.0)
    assert Offers([1, 3], [top, top]).mean_cost == top
    assert Offers([18, 57, 28], [top, top, top]).mean_cost == top  # its quotient is rounded to 1


@pytest.mark.parametrize(
    ("menus", "code"), [([1, 1], "invalid_value"), ([0, 2], "invalid_value"), ([0], "length_mismatch")]
)
def test_invalid_menus(menus: list[int], code: str) -> None:
    with rejected("menus", code):
        Offers([1, 2], [0.5, 0.5], menus=menus)


def test_lengths() -> None:
    Offers([1.0] * MOST_OFFERS, [0.5] * MOST_OFFERS)
    with rejected("amount"):
        Offers([1.0] * (MOST_OFFERS + 1), [0.5] * (MOST_OFFERS + 1))
    with rejected("share", "length_mismatch"):
        Offers([1, 2, 3], [0.5, 0.5, 0.5], [0.5, 0.3, 0.2], [0, 0, 1])
    with rejected("share"):
        Offers([1, 2], [0.5, 0.5], [-0.5, 1.5])


@pytest.mark.parametrize(
    ("field", "value"), [("amount", 0), ("cost", 0), ("cost", 1), ("amount", math.inf), ("amount", "x")]
)
def test_invalid_offers(field: str, value: object) -> None:
    with rejected(field):
        Offer(**{"amount": 1, "cost": 0.5, field: value})  # type: ignore[arg-type]
    with rejected(field):
        Offers(**{"amount": [1], "cost": [0.5], field: [value]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [("amount", 0), ("rate", 0), ("term", 0), ("loss_given_default", 0), ("funding_rate", -0.1), ("funding_rate", 0.1)],
)
def test_invalid_loans(field: str, value: float) -> None:
    with rejected(field):
        Offer.from_loan(**{"amount": 1, "rate": 0.1, "term": 1, field: value})


def test_gains_and_losses_in_columns() -> None:
    offers = Offers.from_gains_and_losses([1, 3], 1, share=[3, 1])
    assert offers == Offers([2, 4], [0.5, 0.25], [0.75, 0.25])
    with pytest.raises(ValueError, match="row 2") as caught:
        Offers.from_gains_and_losses([1, 0, -1], [1, 1, 1])
    assert "0" in str(caught.value)
    with rejected("loss"):
        Offers.from_gains_and_losses([1, 2], [1, math.inf])
    with rejected("share", "length_mismatch"):
        Offers.from_gains_and_losses([1, 2], [1, 1], share=[1])


def pairs_of(offers: Offers) -> list[tuple[float, float]]:
    return [(Offer(a, c).gain, Offer(a, c).loss) for a, c in zip(offers.amount, offers.cost, strict=True)]


@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 10, 16])
def test_compression_keeps_means_and_its_error_is_a_bound(most: int) -> None:
    rng = np.random.default_rng(most)
    gain, loss, weight = rng.lognormal(3, 1, 60), rng.lognormal(4, 1, 60), rng.random(60)
    few, error = compress_with_error(gain, loss, weight, most)
    assert len(few.amount) == most  # with 60 different offers of similar weight, no part is empty
    assert sum(share * one for share, (one, _) in zip(few.share, pairs_of(few), strict=True)) == pytest.approx(
        weight @ gain / weight.sum()
    )
    assert sum(share * one for share, (_, one) in zip(few.share, pairs_of(few), strict=True)) == pytest.approx(
        weight @ loss / weight.sum()
    )
    many = Offers.from_gains_and_losses(gain, loss, weight)
    nearest = sum(
        share * min(max(abs(g - g2), abs(b - b2)) for g2, b2 in pairs_of(few))
        for share, (g, b) in zip(many.share, pairs_of(many), strict=True)
    )
    # The cheapest way to move shares costs at least the nearest offers, and at most the parts that were chosen.
    assert nearest - 1e-9 <= many.compression_error(few) <= error + 1e-9
    assert many.compress(most).amount == pytest.approx(few.amount)
    for rate in np.linspace(0.05, 0.95, 19):
        lost = many.profit_if_known(rate) - few.profit_if_known(rate)
        assert -1e-9 <= lost <= error + 1e-9


def test_compression_by_hand() -> None:
    """Four break-evens and two sizes in two bands by break-even, each with two bands of the amount."""
    costs, amounts = np.array([0.2, 0.3, 0.7, 0.8] * 2), np.array([1.0] * 4 + [10.0] * 4)
    few, error = compress_with_error(amounts * (1 - costs), amounts * costs, np.ones(8), 4)
    assert few.amount == pytest.approx([1, 10, 1, 10])
    assert few.cost == pytest.approx([0.25, 0.25, 0.75, 0.75])
    assert few.share == pytest.approx([0.25] * 4)
    assert error == pytest.approx((0.05 + 0.5) / 2)  # each break-even moves by 0.05
    five = compress_with_error(amounts * (1 - costs), amounts * costs, np.ones(8), 5)[0]
    assert len(five.amount) == 5
    assert sum(cost < 0.5 for cost in five.cost) == 3  # the first band has the odd one


def test_offers_that_are_alike_are_not_compressed() -> None:
    few, error = compress_with_error(np.array([1.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0]), 2)
    assert (few.amount, few.share, error) == ((2, 4), (0.5, 0.5), 0)
    with rejected("most"):
        Offers([1, 2], [0.5, 0.5]).compress(0)
    with rejected("menus"):
        MENUS.compress(2)


def test_compression_by_weight() -> None:
    """Half of the weight is on one offer: it stands alone in its band."""
    offers = Offers([1, 2, 3, 4], [0.5] * 4, [0.5, 0.2, 0.2, 0.1])
    few = offers.compress(2)
    assert few.amount == pytest.approx([(0.5 * 1) / 0.5, (0.2 * 2 + 0.2 * 3 + 0.1 * 4) / 0.5])
    assert few.share == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("offers", "text"),
    [
        (Offers([500], [0.8], currency="$"), "1 offer of $500 at stake, break-even success rate 80%"),
        (
            Offers([500, 5000], [0.8, 0.75], currency="$"),
            "2 offers of $500 to $5,000 at stake, break-even success rates 75% to 80%",
        ),
        (Offers.menu([1, 2], [0.8, 0.8]), "a choice of 2 offers of 1 to 2 at stake, break-even success rate 80%"),
        (MENUS, "2 menus of 4 offers of 1 to 8 at stake, break-even success rates 25% to 90%"),
    ],
)
def test_offers_in_words(offers: Offers, text: str) -> None:
    assert describe_offers(offers) == text


def test_everyone_is_in_a_part_also_without_weight() -> None:
    for weights in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 5.0, 0.0, 0.0], [0.1, 0.2, 0.3, 1e9]):
        for parts in (1, 2, 3, 4, 7):
            cut = _cut(np.array([3, 1, 0, 2]), np.array(weights), parts)
            assert np.concatenate(cut).tolist() == [3, 1, 0, 2]
            assert len(cut) <= parts
    assert [part.tolist() for part in _cut(np.arange(4), np.ones(4), 2)] == [[0, 1], [2, 3]]


def test_as_many_offers_as_are_allowed_stay_as_they_are() -> None:
    gain, loss, weight = np.array([10.0, 20.0, 30.0]), np.array([40.0, 30.0, 20.0]), np.array([100.0, 1.0, 1.0])
    offers, error = compress_with_error(gain, loss, weight, most=3)
    assert error == 0.0
    assert sorted(zip(offers.amount, offers.cost, strict=True)) == [(50.0, 0.4), (50.0, 0.6), (50.0, 0.8)]
