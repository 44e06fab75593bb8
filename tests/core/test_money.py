"""Money: one way to show amounts."""

from __future__ import annotations

import math

import pytest

from lenience import Discounted, InputError, Money, Offers
from lenience.core.bounds import Bounds


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
