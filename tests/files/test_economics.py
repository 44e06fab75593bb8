"""Economics: gains and losses of rows, from columns or values, with the conventions for rates and terms."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.files.economics import Economics, GainsAndLosses, parse_number
from rejections import rejected

LOAN: dict[str, Any] = {"amount": 1000.0, "rate": 0.12, "term": 3.0}


def read_loan(field: str, value: object, **units: Any) -> list[tuple[float, float]]:
    """Return gain and loss of a loan with one value as a cell of a column, and as a value for all rows."""
    in_column = Economics(**{**LOAN, field: "cell", **units}).read({"cell": [value]})
    for_all = Economics(**{**LOAN, field: value, **units}).read({"other": [1]})
    return [(float(rows.gain[0]), float(rows.loss[0])) for rows in (in_column, for_all)]


def assert_loan(results: list[tuple[float, float]], offer: Offer) -> None:
    for result in results:
        assert result == pytest.approx((offer.gain, offer.loss), rel=1e-12)


@pytest.mark.parametrize(
    ("value", "rate"),
    [("12%", 0.12), ("12.5 %", 0.125), (" 7.97% ", 0.0797), (0.12, 0.12), ("0.12", 0.12), ("150%", 1.5)],
)
def test_a_rate_is_a_fraction_or_has_a_percent_sign(value: object, rate: float) -> None:
    assert_loan(read_loan("rate", value), Offer.from_loan(1000, rate, 3))


@pytest.mark.parametrize("value", ["1,234.5%", "high", True, math.inf, 0, "0%", -0.1, "1_0%", dt.date(2025, 1, 1)])
def test_other_rates_are_rejected(value: object) -> None:
    with rejected("rate", "invalid_value"):
        Economics(amount=1, rate="rate", term=3).read({"rate": ["0.1", value]})


def test_a_column_of_rates_may_have_decimal_commas() -> None:
    read = Economics(amount=1000, rate="rate", term=3).read({"rate": ["12,5%", "0,12"]}).gain
    assert read.tolist() == pytest.approx([Offer.from_loan(1000, rate, 3).gain for rate in (0.125, 0.12)])


def test_a_rate_of_12_needs_its_unit() -> None:
    loan = Economics(amount=1000, rate="rate", term=3)
    for cell in (12, "12", 1, 1.0):
        with rejected("rate_unit", "missing"):
            loan.read({"rate": [0.1, cell]})
    with pytest.raises(InputError, match="such as '12%'"):
        Economics(amount=1000, rate=12, term=3).read({"rate": [1]})
    notes: list[str] = []
    rows = Economics(amount=1000, rate="rate", term=3, rate_unit="percent").read({"rate": [12, "20%"]}, notes=notes)
    wanted = [Offer.from_loan(1000, 0.12, 3).gain, Offer.from_loan(1000, 0.2, 3).gain]
    np.testing.assert_allclose(rows.gain, wanted, rtol=1e-12)
    assert notes == ["Numbers in rate are read as percents: 12 is 12%."]


def test_errors_say_how_to_write_a_number() -> None:
    with pytest.raises(InputError, match=r"Write 0\.125"):
        Economics(amount=1, rate="0,125", term=1).read({"rate": ["0,125"]})
    with pytest.raises(InputError, match="gain must be an amount of money above 0"):
        Economics(gain="$5,000", loss=1).read({"gain": ["$5,000"]})
    with pytest.raises(InputError, match="Leave the comma out"):  # the other comma is a decimal comma
        Economics(gain="gain", loss=1).read({"gain": ["5,000", "12,5"]})


@pytest.mark.parametrize(
    ("cells", "numbers", "said"),
    [
        (["$1,200.50", " 3,400", "USD 900", "5200"], [1200.5, 3400, 900, 5200], "commas separate thousands"),
        (["1.200,50 €", "3400", "7,5"], [1200.5, 3400, 7.5], "decimal comma"),
        (["1 200.50", "1\u00a0300", "1'400"], [1200.5, 1300, 1400], ""),
    ],
)
def test_amounts_as_people_write_them(cells: list[str], numbers: list[float], said: str) -> None:
    notes: list[str] = []
    assert Economics(gain="won", loss=1).read({"won": cells}, notes=notes).gain.tolist() == numbers
    assert said in " ".join(notes)
    assert bool(notes) == bool(said)


def test_a_funding_rate_may_be_0_and_a_loss_given_default_may_be_1() -> None:
    for funding in ("0", "0%", 0):
        assert_loan(read_loan("funding_rate", funding), Offer.from_loan(1000, 0.12, 3))
    for lost, share in ((1, 1.0), ("60%", 0.6), (Decimal("0.6"), 0.6)):
        loan = Economics(**LOAN, loss_given_default="lost").read({"lost": [lost]})
        assert loan.loss.tolist() == [pytest.approx(1000 * share)]
    for wrong in (0, "-5%"):
        with rejected("loss_given_default", "invalid_value"):
            Economics(**LOAN, loss_given_default="lost").read({"lost": [wrong]})
    with rejected("rate_unit", "missing"):
        Economics(**LOAN, loss_given_default="lost").read({"lost": [60]})
    with rejected("funding_rate", "invalid_value"):
        Economics(**LOAN, funding_rate=4).read({"other": [1]})


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
    assert_loan(read_loan("term", value), Offer.from_loan(1000, 0.12, years))


@pytest.mark.parametrize("value", ["36 weeks", "long", 0, -1, "months", "3,5"])
def test_other_terms_are_rejected(value: object) -> None:
    with rejected("term", "invalid_value"):
        Economics(amount=1, rate=0.1, term="term").read({"term": ["3", value]})


def test_a_term_that_may_be_in_months_needs_its_unit() -> None:
    for cell in (60, "120"):
        with rejected("term_unit", "missing"):
            Economics(amount=1, rate=0.1, term="term").read({"term": [3, cell]})
    assert_loan(read_loan("term", 36, term_unit="months"), Offer.from_loan(1000, 0.12, 3))


def test_money_may_have_a_currency_sign() -> None:
    assert_loan(read_loan("amount", " $ 2500.50"), Offer.from_loan(2500.5, 0.12, 3))
    for cell in (0, "-3", "1_000", "ten"):
        with rejected("amount", "invalid_value"):
            Economics(amount="amount", rate=0.1, term=3).read({"amount": [cell]})
    assert parse_number("amount", "1_000") is None
    assert parse_number("amount", "nan") is None


def test_a_gain_far_from_the_loss_is_rejected() -> None:
    with pytest.raises(InputError, match="row 2: gain and loss must be below 1e\\+15") as caught:
        Economics(gain="gain", loss=1).read({"gain": [1, 1e12]})
    assert caught.value.code == "invalid_value"


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
    with pytest.raises(InputError, match="row 3, column 'rate': rate must be"):
        Economics(amount=100, rate="rate", term=1).read({"rate": ["0.1", "none", "low"]}, np.array([True, False, True]))
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
def test_the_fields_must_describe_gains_and_losses_in_one_way(given: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        Economics(**given)
    assert caught.value.code == code


def test_no_option_is_no_economics() -> None:
    assert Economics.from_options(gain=None, amount=None) is None
    assert Economics.from_options(gain=1.0, loss=2.0) == Economics(gain=1.0, loss=2.0)
    with rejected("currency", "missing"):
        Economics.from_options(gain=None, currency="$")


def test_columns_whose_names_differ_only_in_case() -> None:
    rows = Economics(gain="Rate", loss="rate").read({"Rate": ["1", "2"], "rate": [3, 4.5]})
    assert (rows.gain.tolist(), rows.loss.tolist()) == ([1.0, 2.0], [3.0, 4.5])
    with pytest.raises(InputError, match="row 2, column 'rate': loss must not be missing"):
        Economics(gain="Rate", loss="rate").read({"Rate": ["1", "2"], "rate": [3, None]})


def test_no_row_is_needed() -> None:
    rows = Economics(gain="gain", loss=1).read({"gain": ["", "?"]}, np.zeros(2, dtype=np.bool_))
    assert np.isnan(rows.gain).all()
    assert np.isnan(rows.loss).all()


def test_many_rows_become_few_offers() -> None:
    rng = np.random.default_rng(0)
    rows = GainsAndLosses(rng.uniform(1, 2, 20_000), rng.uniform(3, 9, 20_000))
    few = rows.offers(most=9)
    assert len(few.amount) <= 9
    assert few.mean_amount == pytest.approx(rows.amount.mean())
