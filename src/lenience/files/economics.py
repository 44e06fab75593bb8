"""Read what each row of a file may gain and lose: from gains and losses, or from the terms of loans.

Every option names a column or gives one value for all rows. A name that is a column wins over a value. There are two
ways to describe a row:

- ``gain`` and ``loss``: what a success earns and what a failure loses, both above 0.
- ``amount``, ``rate`` and ``term`` of a loan that is repaid in equal monthly payments, with ``loss_given_default`` (the
  share of the amount that a default loses, by default 1) and ``funding_rate`` (by default 0).
  :meth:`lenience.core.offers.Offer.from_loan` has the formula.

Conventions, the same wherever loans are read:

- A **rate** is a fraction a year (0.12) or a text with a percent sign ("12%", "12.5 %"). A number of 1 or more is
  rejected, because 12 may mean 12% or 1,200%. The loss given default follows the same rule, except that it may be 1.
- A **term** is a number of years, or a text with its unit ("36 months", "3 years"). A number above 50 without a unit
  is rejected, because it is most likely in months.
- An **amount** of money is a plain number. A currency sign in front of it is ignored. Commas are rejected, because they
  may separate thousands or decimals.
- A missing or invalid value in a row that is needed raises an error that names the row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.offers import MONTHS, Offers
from lenience.files.vocabulary import how_to_write, is_missing

LONGEST_TERM = 50.0  # years; a larger number without a unit is most likely in months
LOAN = ("amount", "rate", "term", "loss_given_default", "funding_rate")
MONTH_WORDS = ("month", "months", "mo", "mos", "m")
YEAR_WORDS = ("year", "years", "yr", "yrs", "y")


class GainsAndLosses(NamedTuple):
    """What each row may gain and lose, in money. Rows that were not needed are NaN."""

    gain: NDArray[np.float64]
    loss: NDArray[np.float64]

    @property
    def amount(self) -> NDArray[np.float64]:
        """The amount at stake of each row: gain plus loss."""
        return self.gain + self.loss

    @property
    def cost(self) -> NDArray[np.float64]:
        """The break-even success rate of each row: loss/(gain + loss)."""
        return self.loss / (self.gain + self.loss)

    def offers(self, currency: str = "", most: int = 25) -> Offers:
        """Return the offers of the population: the rows, compressed to at most ``most`` offers.

        Parameters
        ----------
        currency : str, optional
            The sign or code that texts show amounts with.
        most : int, optional
            The largest number of offers.

        Returns
        -------
        Offers
            The offers with their shares. Rows that are NaN are left out.

        Examples
        --------
        >>> rows = GainsAndLosses(np.array([200.0, 100.0, 100.0]), np.array([800.0, 100.0, 100.0]))
        >>> few = rows.offers("$")
        >>> few.amount, few.cost, [round(share, 3) for share in few.share]
        ((200.0, 1000.0), (0.5, 0.8), [0.667, 0.333])
        """
        known = np.isfinite(self.gain) & np.isfinite(self.loss)
        few = Offers.from_gains_and_losses(self.gain[known], self.loss[known], most=most)
        return msgspec.structs.replace(few, currency=currency)


class Economics(msgspec.Struct, frozen=True):
    """Where to find what each row may gain and lose. Every field is the name of a column or one value for all rows.

    Parameters
    ----------
    gain : str or float, optional
        What a success earns.
    loss : str or float, optional
        What a failure loses.
    amount : str or float, optional
        The amount lent, instead of the gain and the loss.
    rate : str or float, optional
        The interest rate a year.
    term : str or float, optional
        The term in years, or with a unit.
    loss_given_default : str or float, optional
        The share of the amount that a default loses. By default 1.
    funding_rate : str or float, optional
        The rate a year at which the lender funds the loans. By default 0.

    Raises
    ------
    InputError
        If the fields do not describe gains and losses in one of the two ways.

    Examples
    --------
    >>> loans = {"asked": ["1000", "5000"], "rate": ["20%", "10%"], "months": ["36 months", "60 months"]}
    >>> rows = Economics(amount="asked", rate="rate", term="months", loss_given_default=0.6).read(loans)
    >>> rows.gain.round().tolist(), rows.loss.round().tolist()
    ([338.0, 1374.0], [600.0, 3000.0])
    """

    gain: str | float | None = None
    loss: str | float | None = None
    amount: str | float | None = None
    rate: str | float | None = None
    term: str | float | None = None
    loss_given_default: str | float | None = None
    funding_rate: str | float | None = None

    def __post_init__(self) -> None:
        of_loans = [name for name in LOAN if getattr(self, name) is not None]
        plain = [name for name in ("gain", "loss") if getattr(self, name) is not None]
        if plain and of_loans:
            raise InputError.because(
                f"Give either gain and loss, or the terms of loans ({', '.join(LOAN)}), not both",
                (*plain, *of_loans),
                label="",
                code="conflicting_fields",
            )
        needed = ("gain", "loss") if plain else ("amount", "rate", "term")
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            what = "gain and loss" if plain or not of_loans else "amount, rate and term"
            other = "" if plain or of_loans else ", or amount, rate and term"
            raise InputError.because(f"Give {what}{other}", missing, label="", code="missing")

    @classmethod
    def from_options(cls, **values: str | float | None) -> Economics | None:
        """Return what the options describe, or None if none of them was given.

        Parameters
        ----------
        **values
            The fields of the class.

        Returns
        -------
        Economics or None
            Where to find gains and losses.

        Examples
        --------
        >>> Economics.from_options(gain=None, loss=None) is None
        True
        """
        return None if all(value is None for value in values.values()) else cls(**values)

    def columns(self, columns: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the columns that the fields name.

        Parameters
        ----------
        columns : mapping of str to sequence
            The columns of the file.

        Returns
        -------
        list of str
            Their names.

        Examples
        --------
        >>> Economics(gain="interest", loss=800).columns({"interest": [200]})
        ['interest']
        """
        values = [getattr(self, name) for name in self.__struct_fields__]
        return [value for value in values if isinstance(value, str) and value in columns]

    def read(self, columns: Mapping[str, Sequence[Any]], rows: NDArray[np.bool_] | None = None) -> GainsAndLosses:
        """Return what each row may gain and lose.

        Parameters
        ----------
        columns : mapping of str to sequence
            The columns of the file.
        rows : ndarray of bool, optional
            The rows that are needed; by default all. Values of the others are not read.

        Returns
        -------
        GainsAndLosses
            The gain and the loss of each row.

        Raises
        ------
        InputError
            If a column does not exist, or a value in a row that is needed is missing or invalid.

        Examples
        --------
        >>> Economics(gain="interest", loss=800).read({"interest": ["200", "150"]}).loss.tolist()
        [800.0, 800.0]
        """
        count = len(next(iter(columns.values()), []))
        needed = np.ones(count, dtype=np.bool_) if rows is None else rows

        def read(field: str, reader: Callable[[str, object], float]) -> NDArray[np.float64]:
            return _column(field, getattr(self, field), columns, needed, reader)

        if self.gain is not None:
            return GainsAndLosses(read("gain", read_money), read("loss", read_money))
        lent, price, years = read("amount", read_money), read("rate", read_rate), read("term", read_term)
        lost = np.ones(count) if self.loss_given_default is None else read("loss_given_default", read_share)
        funding = np.zeros(count) if self.funding_rate is None else read("funding_rate", read_funding_rate)
        wrong = np.flatnonzero(needed & (funding >= price))
        if wrong.size:
            row = int(wrong[0])
            raise InputError(
                "funding_rate",
                float(funding[row]),
                f"below the rate of {price[row]:g}, or nothing is gained",
                place=f"row {row + 1:,}",
            )
        gain = lent * (interest(price, years) - interest(funding, years))
        return GainsAndLosses(gain, np.where(needed, lent * lost, np.nan))


def interest(rate: NDArray[np.float64], years: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the interest that loans of 1 pay in all, in equal monthly payments.

    Parameters
    ----------
    rate : ndarray
        The interest rate a year of each loan.
    years : ndarray
        The term of each loan.

    Returns
    -------
    ndarray
        The sum of the payments less 1.

    Examples
    --------
    >>> interest(np.array([0.12, 0.0]), np.array([1.0, 3.0])).round(6).tolist()
    [0.066185, 0.0]
    """
    monthly, payments = rate / MONTHS, years * MONTHS
    known = np.where(monthly > 0.0, monthly, 1.0)
    paid = known * payments / -np.expm1(-payments * np.log1p(known)) - 1.0
    result: NDArray[np.float64] = np.where(monthly > 0.0, paid, 0.0 * years)
    return result


def read_rate(field: str, value: object) -> float:
    """Read an interest rate a year, above 0: a fraction, or a text with a percent sign.

    Parameters
    ----------
    field : str
        What to name in an error.
    value : object
        The cell or the option.

    Returns
    -------
    float
        The rate as a fraction.

    Raises
    ------
    InputError
        If the value is no rate, or a number of 1 or more without a percent sign.

    Examples
    --------
    >>> read_rate("rate", "12.5 %"), read_rate("rate", 0.12), read_rate("rate", "120%")
    (0.125, 0.12, 1.2)
    >>> read_rate("rate", 12)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: rate must be a fraction a year below 1, or a text with a percent sign, not 12.
    Write 0.12 or "12%".
    """
    rate, percent = _fraction(field, value, "a fraction a year below 1, or a text with a percent sign")
    _check_fraction(field, value, rate, percent, "a fraction a year below 1, or a text with a percent sign", rate < 1.0)
    if rate <= 0.0:
        raise InputError(field, value, "a rate above 0")
    return rate


def read_funding_rate(field: str, value: object) -> float:
    """Read a funding rate as :func:`read_rate` does; it may be 0.

    Parameters
    ----------
    field : str
        What to name in an error.
    value : object
        The cell or the option.

    Returns
    -------
    float
        The rate as a fraction.

    Examples
    --------
    >>> read_funding_rate("funding_rate", "4%"), read_funding_rate("funding_rate", 0)
    (0.04, 0.0)
    """
    rate, _ = _fraction(field, value, "a fraction a year below 1, or a text with a percent sign")
    return 0.0 if rate == 0.0 else read_rate(field, value)


def read_share(field: str, value: object) -> float:
    """Read the loss given default: a fraction above 0 and at most 1, or a text with a percent sign.

    Parameters
    ----------
    field : str
        What to name in an error.
    value : object
        The cell or the option.

    Returns
    -------
    float
        The share as a fraction.

    Examples
    --------
    >>> read_share("loss_given_default", "60%"), read_share("loss_given_default", "1")
    (0.6, 1.0)
    """
    allowed = "a fraction of at most 1, or a text with a percent sign"
    share, percent = _fraction(field, value, allowed)
    _check_fraction(field, value, share, percent, allowed, share <= 1.0)
    if share <= 0.0:
        raise InputError(field, value, "a share above 0")
    return share


def read_term(field: str, value: object) -> float:
    """Read the term of a loan in years: a number of years, or a text with a unit.

    Parameters
    ----------
    field : str
        What to name in an error.
    value : object
        The cell or the option.

    Returns
    -------
    float
        The term in years.

    Raises
    ------
    InputError
        If the value is no term, or a number of more than 50 without a unit.

    Examples
    --------
    >>> read_term("term", " 36 months"), read_term("term", 3), read_term("term", "2.5 years")
    (3.0, 3.0, 2.5)
    >>> read_term("term", 60)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: term must be a number of years up to 50, or a text with its unit, not 60.
    Write "60 months" if it is in months, or "60 years".
    """
    parts = re.fullmatch(r"\s*(.*?)\s*([a-zA-Z]*)\s*", str(value))
    assert parts is not None
    unit = parts[2].lower()
    allowed = "a number of years up to 50, or a text with its unit"
    if unit and unit not in (*MONTH_WORDS, *YEAR_WORDS):
        raise InputError(field, value, allowed, hint='Write for instance 3 or "36 months".')
    term = _number(field, value, parts[1], allowed)
    if not unit and term > LONGEST_TERM:
        hint = f'Write "{term:g} months" if it is in months, or "{term:g} years".'
        raise InputError(field, value, allowed, hint=hint)
    if term <= 0.0:
        raise InputError(field, value, "a term above 0")
    return term / MONTHS if unit in MONTH_WORDS else term


def read_money(field: str, value: object) -> float:
    """Read an amount of money above 0; a currency sign in front of it is ignored.

    Parameters
    ----------
    field : str
        What to name in an error.
    value : object
        The cell or the option.

    Returns
    -------
    float
        The amount.

    Examples
    --------
    >>> read_money("amount", "$5000"), read_money("amount", 12.5)
    (5000.0, 12.5)
    """
    text = re.sub(r"^\s*[$€£¥]\s*", "", str(value))
    amount = _number(field, value, text, "an amount of money above 0")
    if amount <= 0.0:
        raise InputError(field, value, "an amount of money above 0")
    return amount


def _column(
    field: str,
    option: str | float | None,
    columns: Mapping[str, Sequence[Any]],
    needed: NDArray[np.bool_],
    reader: Callable[[str, object], float],
) -> NDArray[np.float64]:
    """Return the values of an option in the rows that are needed, and NaN elsewhere."""
    if not (isinstance(option, str) and option in columns):
        if isinstance(option, str) and not re.match(r"\s*[-+$€£¥.]*\s*\d", option):
            raise InputError.unknown_name(field, option, columns, "the columns")
        return np.where(needed, reader(field, option), np.nan)
    values = columns[option]
    result = np.full(len(needed), np.nan)
    cache: dict[Any, float] = {}
    for row in np.flatnonzero(needed).tolist():
        cell = values[row]
        if cell in cache:
            result[row] = cache[cell]
            continue
        try:
            if is_missing(cell):
                raise InputError.because("must not be missing", field, value=cell, code="missing")
            result[row] = cache[cell] = reader(field, cell)
        except InputError as error:
            raise error.at(f"row {row + 1:,}, column {option!r}") from None
    return result


def _fraction(field: str, value: object, allowed: str) -> tuple[float, bool]:
    """Return a fraction, and whether it was written with a percent sign."""
    text = str(value).strip()
    if text.endswith("%"):
        return _number(field, value, text[:-1], allowed) / 100.0, True
    return _number(field, value, text, allowed), False


def _check_fraction(field: str, value: object, fraction: float, percent: bool, allowed: str, within: bool) -> None:
    """Raise InputError if a number without a percent sign is too large for a fraction."""
    if not percent and not within:
        hint = f'Write {fraction / 100:g} or "{fraction:g}%".' if fraction <= 100.0 else None
        raise InputError(field, value, allowed, hint=hint)


def _number(field: str, value: object, text: str, allowed: str) -> float:
    """Return a text as a finite number."""
    try:
        number = math.nan if isinstance(value, bool) else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        raise InputError(field, value, allowed, hint=how_to_write(text.strip()) or None)
    return number
