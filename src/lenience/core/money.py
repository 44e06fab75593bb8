"""Money: how to show values, in the user's currency where it is known and otherwise in units of gain + loss."""

from __future__ import annotations

import math

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import real

MOST_MONEY = 1e12
UNIT_WORDS = "units of gain + loss"
DIGITS = 3  # significant digits of a value without a currency


class Money(msgspec.Struct, frozen=True):
    """How to show values.

    Solvers that know one break-even compute in units of gain + loss: a success earns 1 − c, and a failure loses c.
    Where the gain and the loss are known, one unit is that much money.

    Parameters
    ----------
    unit : float, optional
        The money that one unit of value is worth: the gain of a success plus the loss of a failure. 1 if values are in
        money already. Without it, values are shown in units of gain + loss.
    currency : str, optional
        The sign or the code of the currency, e.g. "$" or "EUR". It needs ``unit``.
    yearly : float, optional
        The share of a total value that belongs to one year, for amounts per year. Without it, amounts are totals.

    Raises
    ------
    InputError
        If a number is outside its range, or there is a currency without a unit.

    Examples
    --------
    >>> Money(unit=6400, currency="$").format(1.5), Money(unit=6400, currency="EUR").format(-0.002), Money().format(1.5)
    ('$9,600', '−EUR 13', '1.5')
    """

    unit: float | None = None
    currency: str = ""
    yearly: float | None = None

    def __post_init__(self) -> None:
        set_ = msgspec.structs.force_setattr
        if self.unit is not None:
            set_(self, "unit", real("unit", self.unit, above=0))
        if self.yearly is not None:
            set_(self, "yearly", real("yearly", self.yearly, above=0))
        if not isinstance(self.currency, str):
            raise InputError("currency", self.currency, 'the sign or the code of a currency, such as "$" or "EUR"')
        set_(self, "currency", self.currency.strip())
        if self.currency and self.unit is None:
            raise InputError.because(
                "needs unit: the gain of a success plus the loss of a failure", "currency", code="missing"
            )

    @classmethod
    def from_gain_and_loss(cls, gain: float, loss: float, currency: str = "") -> Money:
        """Return how to show values where the gain of a success and the loss of a failure are known.

        Parameters
        ----------
        gain : float
            What a success gains, above 0.
        loss : float
            What a failure loses, above 0.
        currency : str, optional
            The sign or the code of the currency.

        Returns
        -------
        Money
            One unit is the gain plus the loss.

        Examples
        --------
        >>> Money.from_gain_and_loss(400, 6000, "$").format(1)
        '$6,400'
        """
        good, bad = (real(name, one, above=0, most=MOST_MONEY) for name, one in (("gain", gain), ("loss", loss)))
        return cls(good + bad, currency)

    @property
    def known(self) -> bool:
        """Whether the money that a unit is worth is known."""
        return self.unit is not None

    def per_year(self, yearly: float | None) -> Money:
        """Return how to show amounts per year.

        Parameters
        ----------
        yearly : float or None
            The share of a total value that belongs to one year; None for totals.

        Returns
        -------
        Money
            The same unit and currency.

        Examples
        --------
        >>> Money(1000, "$").per_year(0.1).format(12.345)
        '$1,234'
        """
        return msgspec.structs.replace(self, yearly=yearly)

    def amount(self, value: float) -> float:
        """Convert a value to money, per year if ``yearly`` is given; without a unit, the number is in units.

        Parameters
        ----------
        value : float
            A total value, in units.

        Returns
        -------
        float
            The amount.

        Examples
        --------
        >>> Money(1000).amount(2.5), Money().amount(2.5)
        (2500.0, 2.5)
        """
        unit, yearly = 1.0 if self.unit is None else self.unit, 1.0 if self.yearly is None else self.yearly
        return value * unit * yearly + 0.0  # turns −0 into 0

    def format(self, value: float, decimals: int | None = None) -> str:
        """Format a value as an amount.

        With a currency, amounts below 100 have cents, and larger ones do not. If the unit is 100 or more, only amounts
        below 1 have cents. Without a currency, amounts have three digits.

        Parameters
        ----------
        value : float
            A total value, in units.
        decimals : int, optional
            The decimals of a value in units of gain + loss, e.g. for a column of a table. Money ignores it.

        Returns
        -------
        str
            The amount. A sign stands before the number, a code before it with a space.

        Examples
        --------
        >>> dollars = Money(1, "$")
        >>> dollars.format(5000), dollars.format(-12.345), dollars.format(-0.001), Money(1, "USD").format(1234.5)
        ('$5,000', '−$12.35', '$0', 'USD 1,234')
        >>> Money().format(0.1229), Money().format(-1e-9), Money().format(0.00001234), Money().format(1234.5)
        ('0.123', '0', '0.000012', '1,234')
        """
        amount = self.amount(value)
        if decimals is not None and not self.known:
            text = f"{abs(amount):,.{decimals}f}"
        else:
            large = self.unit is not None and self.unit >= 100.0
            text = (
                _cents(abs(amount), self._cent, 1.0 if large else 100.0) if self.currency else _significant(abs(amount))
            )
        sign = "−" if (amount < 0 and any(digit in "123456789" for digit in text)) or amount == -math.inf else ""
        return f"{sign}{self.currency}{' ' if self.currency[-1:].isalpha() else ''}{text}"

    def format_change(self, value: float, decimals: int | None = None) -> str:
        """Format a difference, with its sign.

        Parameters
        ----------
        value : float
            A difference of values, in units.
        decimals : int, optional
            The decimals of a difference in units of gain + loss.

        Returns
        -------
        str
            The amount after a plus or a minus; 0 has none.

        Examples
        --------
        >>> Money(6400, "$").format_change(0.5), Money(6400, "$").format_change(-0.5), Money().format_change(0.125, 2)
        ('+$3,200', '−$3,200', '+0.12')
        """
        text = self.format(value, decimals)
        return f"+{text}" if value > 0 and any(digit in "123456789" for digit in text) else text

    def format_interval(self, mean: float, lower: float, upper: float) -> str:
        """Format an estimate and its confidence interval.

        Parameters
        ----------
        mean, lower, upper : float
            The estimate and the ends of its interval, in units.

        Returns
        -------
        str
            The estimate ± half the interval; both ends if the estimate is not in the middle.

        Examples
        --------
        >>> Money(1000, "$").format_interval(1.5, 1.25, 1.75), Money(1000, "$").format_interval(1.5, 1.25, 2.75)
        ('$1,500 ± $250', '$1,500 [$1,250, $2,750]')
        """
        half = (upper - lower) / 2
        if half == 0 or not math.isfinite(half):
            return self.format(mean)
        if abs((upper + lower) / 2 - mean) > 0.02 * half:
            return f"{self.format(mean)} [{self.format(lower)}, {self.format(upper)}]"
        return f"{self.format(mean)} ± {self.format(half)}"

    def format_range(self, lower: float, upper: float) -> str:
        """Format a range of values.

        Parameters
        ----------
        lower, upper : float
            The ends, in units.

        Returns
        -------
        str
            Both ends, or one amount if they look alike.

        Examples
        --------
        >>> Money(1, "$").format_range(500, 5000), Money().format_range(0.25, 0.2500001)
        ('$500 to $5,000', '0.25')
        """
        low, high = self.format(lower), self.format(upper)
        return low if low == high else f"{low} to {high}"

    def format_bounds(self, bounds: Bounds) -> str:
        """Format bounds of a value in full, with what they are proved to.

        Parameters
        ----------
        bounds : Bounds
            Proved bounds of a total value, in units.

        Returns
        -------
        str
            The middle and half the width.

        Examples
        --------
        >>> Money(6400, "$").format_bounds(Bounds(1.25, 1.2501)), Money().format_bounds(Bounds(1.25, 1.25))
        ('$8,000.32 ± $0.32', '1.25')
        """
        if not self.currency or not math.isfinite(bounds.width):
            return str(Bounds(self.amount(bounds.lower), self.amount(bounds.upper)))
        middle = round(self.amount(bounds.midpoint), self._cent)
        distance = max(self.amount(bounds.upper) - middle, middle - self.amount(bounds.lower))
        error = self._rounded_up(distance)
        return f"{self._exact(middle)} ± {self._exact(error)}" if error > 0 else self._exact(middle)

    def format_error(self, value: float) -> str:
        """Format what a value is known to within; money is rounded up to the next cent.

        Parameters
        ----------
        value : float
            The largest error, in units.

        Returns
        -------
        str
            The amount, or the number with two digits if no money is known.

        Examples
        --------
        >>> Money(6400, "$").format_error(4e-10), Money().format_error(4e-10)
        ('$0.01', '4e-10')
        """
        return self._exact(self._rounded_up(self.amount(value))) if self.currency else f"{self.amount(value):.2g}"

    def _rounded_up(self, distance: float) -> float:
        """Round up to a cent, so that what is shown contains the exact value."""
        cent = 10.0**-self._cent
        return math.ceil(distance / cent - 1e-6) * cent

    def _exact(self, amount: float) -> str:
        """Format an amount of money with cents."""
        space = " " if self.currency[-1:].isalpha() else ""
        return f"{'−' if amount < 0 else ''}{self.currency}{space}{abs(amount):,.{self._cent}f}"

    def axis_label(self, name: str) -> str:
        """Label an axis or a column of amounts.

        Parameters
        ----------
        name : str
            What the amounts are, e.g. "Value".

        Returns
        -------
        str
            The name and the unit.

        Examples
        --------
        >>> Money(6400, "$").axis_label("Value"), Money(6400, "USD", 0.1).axis_label("Value")
        ('Value, $', 'Value, USD per year')
        >>> Money().axis_label("Value"), Money(6400).axis_label("Value")
        ('Value, units of gain + loss', 'Value')
        """
        unit = self.currency or ("" if self.known else UNIT_WORDS)
        words = " ".join(filter(None, [unit, "" if self.yearly is None else "per year"]))
        return f"{name}, {words}" if words else name

    @property
    def words(self) -> str:
        """The unit of an amount, in words that follow "amounts are".

        Examples
        --------
        >>> Money().words, Money(6400, "$").words, Money(6400, yearly=0.1).words
        ('in units of gain + loss, in total from now on', 'in $, in total from now on', 'in your currency per year')
        """
        kind = f"in {self.currency or 'your currency'}" if self.known else f"in {UNIT_WORDS}"
        return f"{kind}, in total from now on" if self.yearly is None else f"{kind} per year"

    @property
    def _cent(self) -> int:
        """Return the decimals of a small amount: 2, and more if the unit itself is less than 1."""
        return 2 if self.unit is None or self.unit >= 1.0 else 2 + math.ceil(-math.log10(self.unit))


UNITS = Money()  # no money is known: values are in units of gain + loss


def _cents(size: float, decimals: int, below: float = 100.0) -> str:
    """Format an amount, with cents if it is small and not whole.

    >>> _cents(5.0, 2), _cents(5.126, 2), _cents(99.999, 2), _cents(1234.5, 2), _cents(0.0124, 4), _cents(5.126, 2, 1.0)
    ('5', '5.13', '100', '1,234', '0.0124', '5')
    """
    whole = not size < below - 0.005 or round(size, decimals) == round(size)
    return f"{size:,.{0 if whole else decimals}f}"


def _significant(size: float) -> str:
    """Format an amount with three significant digits, at most six decimals, and all digits before the point.

    >>> _significant(0.5), _significant(0.1229), _significant(12.345), _significant(999.7), _significant(0.0000004)
    ('0.5', '0.123', '12.3', '1,000', '0')
    """
    if size >= 999.5:
        return f"{size:,.0f}"
    text = f"{size:.{DIGITS}g}"
    return f"{size:.6f}".rstrip("0").rstrip(".") if "e" in text else text
