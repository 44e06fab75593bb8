"""Economics: gains and losses of rows, from columns or values, with the conventions for rates and terms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.files.economics import (
    Economics,
    GainsAndLosses,
    read_funding_rate,
    read_money,
    read_rate,
    read_share,
    read_term,
)


@pytest.mark.parametrize(
    ("value", "rate"),
    [("12%", 0.12), ("12.5 %", 0.125), (" 7.97% ", 0.0797), (0.12, 0.12), ("0.12", 0.12), ("150%", 1.5)],
)
def test_a_rate_is_a_fraction_or_has_a_percent_sign(value: object, rate: float) -> None:
    assert read_rate("rate", value) == pytest.approx(rate, rel=1e-15)


@pytest.mark.parametrize("value", [12, "12", 1, 1.0, "12,5%", "high", True, math.nan, math.inf, 0, "0%", -0.1])
def test_other_rates_are_rejected(value: object) -> None:
    with pytest.raises(InputError) as caught:
        read_rate("rate", value)
    assert caught.value.field == "rate"


def test_a_rate_of_12_is_rejected_with_what_to_write() -> None:
    with pytest.raises(InputError, match=r'Write 0\.12 or "12%"'):
        read_rate("rate", 12)
    with pytest.raises(InputError, match=r"Write 0\.125"):
        read_rate("rate", "0,125")


def test_a_funding_rate_may_be_0_and_a_loss_given_default_may_be_1() -> None:
    assert read_funding_rate("funding_rate", "0") == 0.0
    assert read_funding_rate("funding_rate", "0%") == 0.0
    assert read_share("loss_given_default", 1) == 1.0
    assert read_share("loss_given_default", "60%") == 0.6
    for wrong in (60, 0, "-5%"):
        with pytest.raises(InputError):
            read_share("loss_given_default", wrong)
    with pytest.raises(InputError):
        read_funding_rate("funding_rate", 4)


@pytest.mark.parametrize(
    ("value", "years"),
    [
        (" 36 months", 3.0),
        ("36 mo", 3.0),
        ("60months", 5.0),
        (3, 3.0),
        ("0.5", 0.5),
        ("2 years", 2.0),
        ("60 years", 60),
    ],
)
def test_a_term_is_in_years_or_has_its_unit(value: object, years: float) -> None:
    assert read_term("term", value) == years


@pytest.mark.parametrize("value", [60, "120", "36 weeks", "long", 0, -1, "months", ""])
def test_other_terms_are_rejected(value: object) -> None:
    with pytest.raises(InputError) as caught:
        read_term("term", value)
    assert caught.value.field == "term"


def test_money_may_have_a_currency_sign_but_no_comma() -> None:
    assert read_money("amount", " $ 2500.50") == 2500.5
    with pytest.raises(InputError, match="Leave the comma out"):
        read_money("amount", "5,000")
    with pytest.raises(InputError):
        read_money("amount", 0)


def test_loans_are_those_of_an_offer() -> None:
    columns = {
        "asked": ["10000", "$2500", "700"],
        "int_rate": ["12%", "0.2", "36.5%"],
        "term": [" 36 months", "5", "6 months"],
        "lost": ["60%", "0.9", "1"],
    }
    economics = Economics(amount="asked", rate="int_rate", term="term", loss_given_default="lost", funding_rate="4%")
    rows = economics.read(columns)
    wanted = [
        Offer.from_loan(10_000, 0.12, 3, 0.6, 0.04),
        Offer.from_loan(2_500, 0.2, 5, 0.9, 0.04),
        Offer.from_loan(700, 0.365, 0.5, 1.0, 0.04),
    ]
    np.testing.assert_allclose(rows.gain, [one.gain for one in wanted], rtol=1e-12)
    np.testing.assert_allclose(rows.loss, [one.loss for one in wanted], rtol=1e-12)
    np.testing.assert_allclose(rows.cost, [one.cost for one in wanted], rtol=1e-12)
    np.testing.assert_allclose(rows.amount, [one.amount for one in wanted], rtol=1e-12)
    assert economics.columns(columns) == ["asked", "int_rate", "term", "lost"]
    plain = Economics(amount="asked", rate="int_rate", term="term").read(columns)
    np.testing.assert_allclose(plain.loss, [10_000, 2_500, 700])
    assert plain.gain[0] == pytest.approx(Offer.from_loan(10_000, 0.12, 3).gain)


def test_rows_that_are_not_needed_may_be_missing() -> None:
    columns = {"gain": ["10", "", "30"]}
    needed = np.array([True, False, True])
    rows = Economics(gain="gain", loss="5").read(columns, needed)
    assert rows.gain[needed].tolist() == [10.0, 30.0]
    assert rows.loss[needed].tolist() == [5.0, 5.0]
    assert np.isnan(rows.gain[1])
    assert np.isnan(rows.loss[1])
    assert rows.offers("$").currency == "$"
    assert len(rows.offers().amount) == 2
    with pytest.raises(InputError, match="row 2, column 'gain': gain must not be missing") as caught:
        Economics(gain="gain", loss=5).read(columns)
    assert caught.value.code == "missing"


def test_errors_name_the_row_and_the_column() -> None:
    with pytest.raises(InputError, match="row 2, column 'rate': rate must be"):
        Economics(amount=100, rate="rate", term=1).read({"rate": ["0.1", "12"]})
    with pytest.raises(InputError, match=r"row 2: funding_rate must be below the rate of 0\.03"):
        Economics(amount=100, rate="rate", term=1, funding_rate=0.04).read({"rate": ["0.1", "0.03"]})
    with pytest.raises(InputError, match="Did you mean 'interest'") as caught:
        Economics(gain="intrest", loss=1).read({"interest": ["1"]})
    assert caught.value.code == "unknown_name"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"gain": 1}, "missing"),
        ({"loss": 1}, "missing"),
        ({"amount": 1, "rate": 0.1}, "missing"),
        ({"funding_rate": 0.1}, "missing"),
        ({}, "missing"),
        ({"gain": 1, "loss": 1, "amount": 1}, "conflicting_fields"),
        ({"gain": 1, "rate": 0.1}, "conflicting_fields"),
    ],
)
def test_the_fields_must_describe_gains_and_losses_in_one_way(given: dict[str, float], code: str) -> None:
    with pytest.raises(InputError) as caught:
        Economics(**given)
    assert caught.value.code == code


def test_no_option_is_no_economics() -> None:
    assert Economics.from_options(gain=None, amount=None) is None
    assert Economics.from_options(gain=1.0, loss=2.0) == Economics(gain=1.0, loss=2.0)


def test_many_rows_become_few_offers() -> None:
    rng = np.random.default_rng(0)
    rows = GainsAndLosses(rng.uniform(1, 2, 20_000), rng.uniform(3, 9, 20_000))
    few = rows.offers(most=9)
    assert len(few.amount) <= 9
    assert few.mean_amount == pytest.approx(rows.amount.mean())
