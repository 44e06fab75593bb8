"""Money: one way to show amounts."""

from __future__ import annotations

import math

import pytest

from lenience import Discounted, InputError, Money, Offers
from lenience.core.bounds import Bounds
from lenience.core.money import _cents


@pytest.mark.parametrize(
    ("money", "value", "text"),
    [
        (Money(), 0.5, "0.5"),
        (Money(), 1234.4, "1,234"),
        (Money(), -12.345, "−12.3"),
        (Money(), -1e-12, "0"),
        (Money(), 0.000012, "0.000012"),
        (Money(), math.inf, "inf"),
        (Money(1.0), 0.1229, "0.123"),
        (Money(6400, "$"), 1.0, "$6,400"),
        (Money(6400, "$"), -1.0, "−$6,400"),
        (Money(1, "€"), 99.994, "€99.99"),
        (Money(1, "€"), 99.996, "€100"),
        (Money(1, "€"), 7.0, "€7"),
        (Money(1, "€"), -0.004, "€0"),
        (Money(1, "USD"), 1234.5, "USD 1,234"),
        (Money(1, " CHF "), 3.25, "CHF 3.25"),
        (Money(1, "$U"), 3.25, "$U 3.25"),
        (Money(99, "$"), 0.1234, "$12.22"),
        (Money(100, "$"), 0.1234, "$12"),
        (Money(0.02, "$"), 0.5, "$0.0100"),
        (Money(1000, "$", yearly=0.1), 12.0, "$1,200"),
    ],
)
def test_amounts(money: Money, value: float, text: str) -> None:
    assert money.format(value) == text


def test_the_unit_is_gain_plus_loss() -> None:
    money = Money.from_gain_and_loss(gain=400, loss=6000, currency="EUR")
    assert (money.unit, money.currency, money.known) == (6400.0, "EUR", True)
    assert money.amount(-0.0) == 0.0
    assert math.copysign(1.0, money.amount(-0.0)) == 1.0


def test_bounds_are_scaled_with_the_unit() -> None:
    assert Money(1000, "$").format_bounds(Bounds(-1.5, -1.5)) == "−$1,500.00"
    assert Money(1000, "USD").format_bounds(Bounds(1.0, 1.002)) == "USD 1,001.00 ± USD 1.00"
    assert Money(1000, "$").format_bounds(Bounds(1.0, 1.0 + 1e-8)) == "$1,000.00 ± $0.01"
    assert Money(1000, "$").format_bounds(Bounds(1.000001, 1.000001)) == "$1,000.00 ± $0.01"
    assert Money(10).format_bounds(Bounds(1.0, math.inf)) == "[10.0, inf]"
    assert Money(1000, "$U").format_bounds(Bounds(-1.5, -1.5)) == "−$U 1,500.00"
    assert Money(1000, "R").format_bounds(Bounds(-1.5, -1.5)) == "−R 1,500.00"


@pytest.mark.parametrize(
    ("money", "value", "text"),
    [
        (Money(), 999.4, "999"),
        (Money(), 999.5, "1,000"),
        (Money(), 0.0001234, "0.000123"),
        (Money(), 0.0000004, "0"),
        (Money(), -math.inf, "−inf"),
        (Money(), 0.0, "0"),
        (Money(100, "$"), 0.0512, "$5"),  # a unit of 100 or more: cents only below 1
        (Money(100, "$"), 0.00512, "$0.51"),
        (Money(100, "$"), 0.01, "$1"),
        (Money(99, "$"), 0.0512, "$5.07"),
        (Money(1, "$"), 99.994, "$99.99"),
        (Money(1, "$"), 99.996, "$100"),
        (Money(1, "$"), 100.4, "$100"),
        (Money(1, "$"), 0.3, "$0.30"),
        (Money(0.5, "$"), 0.246, "$0.123"),  # a unit below 1 has more decimals
        (Money(0.1, "$"), 0.246, "$0.025"),
        (Money(0.09, "$"), 0.246, "$0.0221"),
        (Money(2, "$", yearly=0.5), -3.5, "−$3.50"),
    ],
)
def test_digits_of_amounts(money: Money, value: float, text: str) -> None:
    assert money.format(value) == text


@pytest.mark.parametrize(
    ("money", "value", "decimals", "text"),
    [
        (Money(), 1234.567, 1, "1,234.6"),
        (Money(), -0.04, 1, "0.0"),
        (Money(), -0.06, 1, "−0.1"),
        (Money(1), 1234.567, 1, "1,235"),  # money ignores the decimals
        (Money(1, "$"), 1.5, 0, "$1.50"),
    ],
)
def test_given_decimals_are_those_of_units(money: Money, value: float, decimals: int, text: str) -> None:
    assert money.format(value, decimals) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "+$500"), (-0.5, "−$500"), (0.0, "$0"), (1e-9, "$0"), (1e-5, "+$0.01"), (-1e-9, "$0")]
)
def test_changes_have_a_sign(value: float, text: str) -> None:
    assert Money(1000, "$").format_change(value) == text


@pytest.mark.parametrize(
    ("mean", "lower", "upper", "text"),
    [
        (1.5, 1.0, 2.0, "$1,500 ± $500"),
        (1.5, 1.5, 1.5, "$1,500"),
        (1.5, -math.inf, 2.0, "$1,500"),
        (1.509, 1.0, 2.0, "$1,509 ± $500"),  # up to 2% of half the width from the middle
        (1.511, 1.0, 2.0, "$1,511 [$1,000, $2,000]"),
        (1.489, 1.0, 2.0, "$1,489 [$1,000, $2,000]"),
        (-1.5, -2.0, -1.0, "−$1,500 ± $500"),
        (60.5, 60.0, 61.0, "$60,500 ± $500"),
        (60.3, 60.0, 61.0, "$60,300 [$60,000, $61,000]"),
    ],
)
def test_intervals(mean: float, lower: float, upper: float, text: str) -> None:
    assert Money(1000, "$").format_interval(mean, lower, upper) == text


def test_what_is_proved_is_rounded_up() -> None:
    assert Money(1000, "$").format_bounds(Bounds(1.0, 1.00002)) == "$1,000.01 ± $0.01"
    assert Money(1000, "$").format_bounds(Bounds(1.0, 1.00003)) == "$1,000.01 ± $0.02"
    assert Money(1000, "$").format_bounds(Bounds(1.000018, 1.000018)) == "$1,000.02 ± $0.01"
    assert Money(1000, "$").format_bounds(Bounds(2.0, 2.0)) == "$2,000.00"
    assert Money(0.01, "$").format_bounds(Bounds(1.0, 1.0)) == "$0.0100"
    assert Money(0.01, "$").format_error(0.011) == "$0.0002"
    assert Money(1, "EUR").format_error(0.05) == "EUR 0.05"
    assert Money(1, "EUR").format_error(0.0501) == "EUR 0.06"
    assert Money(1, "EUR").format_error(0.0500000001) == "EUR 0.05"  # rounding is not rounded up
    assert Money(1000).format_error(0.001234) == "1.2"


def test_sizes_of_gains_and_losses() -> None:
    assert Money.from_gain_and_loss(1e12, 1e12).unit == 2e12
    for gain, loss, field in [(0, 1, "gain"), (1, 0, "loss"), (1.1e12, 1, "gain"), (1, 1.1e12, "loss")]:
        with pytest.raises(InputError) as error:
            Money.from_gain_and_loss(gain, loss)
        assert error.value.field == field
    assert Money(1000, "$", 0.5).per_year(None) == Money(1000, "$")
    assert Money(1000, "$").per_year(0.25).amount(2) == 500
    assert not Money().known
    with pytest.raises(InputError):
        Money(1, yearly=0)


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"unit": 0}, "unit", "invalid_value"),
        ({"unit": 1, "yearly": -1}, "yearly", "invalid_value"),
        ({"currency": "$"}, "currency", "missing"),
        ({"unit": 1, "currency": 3}, "currency", "invalid_value"),
    ],
)
def test_invalid_fields(fields: dict[str, float], field: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        Money(**fields)  # type: ignore[arg-type]
    assert (error.value.field, error.value.code) == (field, code)


def test_an_objective_knows_its_money() -> None:
    assert Discounted(cost=0.8, discount=0.99).money == Money()
    offers = Offers([1000], [0.8], currency="$")
    assert Discounted(offers=offers, discount=0.99).money == Money(1.0, "$")


def test_an_amount_that_rounds_up_to_a_whole_number_has_no_cents() -> None:
    assert _cents(100.0 - 0.005, 2) == "100"
    assert _cents(99.99, 2) == "99.99"
