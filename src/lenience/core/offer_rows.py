"""OfferRows: the offer, or the offers to choose from, of each row of a table of applicants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.offers import Offer, Offers
from lenience.core.validation import floats, real

FORMS = "one offer for each row: a list of Offer, Offers.menu(…) for a choice, or a pair of columns (amounts, costs)"


class OfferRows(NamedTuple):
    """The offers of all rows, one after another. ``start`` says where each row's offers start; its last entry ends."""

    amount: NDArray[np.float64]
    cost: NDArray[np.float64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, offers: Any, rows: int, population: Offers) -> OfferRows:
        """Return the offers of rows, checked.

        Parameters
        ----------
        offers : list of Offer or Offers, Offer, Offers, pair of array_like, mapping or data frame
            An offer or a menu for each row; one offer or menu for all rows; or the amounts at stake and the break-evens
            as two columns. ``None`` means the population's only menu.
        rows : int
            The number of rows.
        population : Offers
            What arrivals bring.

        Returns
        -------
        OfferRows
            The offers of each row.

        Raises
        ------
        InputError
            If there is not an offer for each row, or a number is outside its range.

        Examples
        --------
        >>> both = Offers([500, 5000], [0.8, 0.7])
        >>> OfferRows.of([Offer(500, 0.8), Offers.menu([100, 900], [0.7, 0.8])], 2, both).start
        array([0, 1, 3])
        >>> OfferRows.of(([500, 900], 0.8), 2, both).cost
        array([0.8, 0.8])
        """
        if isinstance(offers, OfferRows):
            return offers._checked(rows)
        if offers is None:
            if population.menu_count > 1:
                raise InputError.because(
                    "must be given, because arrivals bring different offers",
                    "offers",
                    hint=f"Give {FORMS}.",
                    code="missing",
                )
            offers = population
        if isinstance(offers, Offer):
            offers = Offers((offers.amount,), (offers.cost,))
        if isinstance(offers, Offers):
            if offers.menu_count == 1:
                many = np.tile(offers.amount, rows), np.tile(offers.cost, rows)
                return cls(*many, np.arange(rows + 1) * len(offers.amount))
            starts = np.searchsorted(offers.menu_of, np.arange(offers.menu_count + 1))
            return cls(np.array(offers.amount), np.array(offers.cost), starts.astype(np.int64))._checked(rows)
        columns = _columns(offers)
        if columns is not None:
            return cls(*_numbers(*columns, rows), np.arange(rows + 1))
        if isinstance(offers, str | bytes) or not hasattr(offers, "__iter__"):
            raise InputError("offers", offers, FORMS)
        menus = [_menu(one) for one in offers]
        flat = [one for menu in menus for one in menu]
        starts = np.cumsum([0, *(len(menu) for menu in menus)])
        return cls(
            np.array([one.amount for one in flat]), np.array([one.cost for one in flat]), starts.astype(np.int64)
        )._checked(rows)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.start) - 1

    @property
    def single(self) -> bool:
        """Whether each row has one offer."""
        return len(self.amount) == self.rows

    @property
    def stake(self) -> NDArray[np.float64]:
        """The largest amount at stake of each row."""
        return np.maximum.reduceat(self.amount, self.start[:-1]) if self.rows else np.zeros(0)

    @property
    def break_even(self) -> NDArray[np.float64]:
        """The lowest break-even of each row: from there on some offer is profitable."""
        return np.minimum.reduceat(self.cost, self.start[:-1]) if self.rows else np.zeros(0)

    def best(self, row: int, mean: float) -> tuple[float, float, float]:
        """Return the amount, the break-even and the expected profit of a row's best offer at a success rate.

        Parameters
        ----------
        row : int
            The row.
        mean : float
            The expected success rate.

        Returns
        -------
        tuple of float
            Amount, break-even, profit.

        Examples
        --------
        >>> menu = Offers.menu([100, 900], [0.5, 0.75])
        >>> OfferRows.of(menu, 1, menu).best(0, 0.625)
        (100.0, 0.5, 12.5)
        """
        which = int(self.start[row]) + self.choose(row, mean)
        amount, cost = float(self.amount[which]), float(self.cost[which])
        return amount, cost, amount * (mean - cost)

    def choose(self, row: int, mean: float) -> int:
        """Return the position of a row's best offer in its menu at a success rate.

        Parameters
        ----------
        row : int
            The row.
        mean : float
            The expected success rate.

        Returns
        -------
        int
            0 for its first offer.

        Examples
        --------
        >>> menu = Offers.menu([900, 100], [0.75, 0.5])
        >>> OfferRows.of(menu, 1, menu).choose(0, 0.625)
        1
        """
        first, end = int(self.start[row]), int(self.start[row + 1])
        return max(range(first, end), key=lambda one: self.amount[one] * (mean - self.cost[one])) - first

    def positions(self, name: str, given: Any, needed: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the position of one offer in each row's menu, checked.

        Parameters
        ----------
        name : str
            The name of the argument, for errors.
        given : array_like
            Whole numbers from 0, one for each row.
        needed : ndarray of bool, optional
            The rows that must have one; by default all. The others get 0.

        Returns
        -------
        ndarray of int
            The positions.

        Raises
        ------
        InputError
            If there is not a position for each row, or one is not in its menu.

        Examples
        --------
        >>> menu = Offers.menu([900, 100], [0.75, 0.5])
        >>> OfferRows.of(menu, 2, menu).positions("made", [0, 1])
        array([0, 1])
        """
        numbers = floats(name, given)
        if numbers.shape != (self.rows,):
            raise InputError.because(
                f"must have one position for each of the {self.rows:,} rows", name, code="length_mismatch"
            )
        use = np.ones(self.rows, dtype=np.bool_) if needed is None else needed
        counts = np.diff(self.start)
        with np.errstate(invalid="ignore"):
            right = (numbers >= 0) & (numbers < counts) & (numbers == np.floor(numbers))
        wrong = np.flatnonzero(use & ~right)
        if wrong.size:
            row = int(wrong[0])
            allowed = f"a position from 0 to {int(counts[row]) - 1} in the row's menu"
            raise InputError(name, float(numbers[row]), allowed, place=f"row {row + 1:,}")
        return np.where(use, np.where(right, numbers, 0), 0).astype(np.int64)

    def at(self, positions: NDArray[np.int64]) -> OfferRows:
        """Return one offer of each row.

        Parameters
        ----------
        positions : ndarray of int
            The position of the offer in each row's menu.

        Returns
        -------
        OfferRows
            One offer a row.

        Examples
        --------
        >>> menu = Offers.menu([900, 100], [0.75, 0.5])
        >>> OfferRows.of(menu, 2, menu).at(np.array([0, 1])).amount
        array([900., 100.])
        """
        where = self.start[:-1] + positions
        return OfferRows(self.amount[where], self.cost[where], np.arange(self.rows + 1))

    @classmethod
    def starters(cls, amount: NDArray[np.float64], cost: NDArray[np.float64], shares: Any) -> OfferRows:
        """Return a menu for each row: its own offer first, and then shares of its amount at the same break-even.

        Parameters
        ----------
        amount : ndarray of float
            The amount at stake of each row.
        cost : ndarray of float
            The break-even of each row.
        shares : sequence of float
            Shares of the amount, strictly between 0 and 1.

        Returns
        -------
        OfferRows
            The menus.

        Examples
        --------
        >>> OfferRows.starters(np.array([500.0, 900.0]), np.array([0.8, 0.7]), [0.1]).amount
        array([500.,  50., 900.,  90.])
        """
        parts = np.array([1.0, *(real("share", one, above=0, below=1) for one in shares)])
        return cls(
            np.outer(amount, parts).ravel(), np.repeat(cost, len(parts)), np.arange(len(amount) + 1) * len(parts)
        )

    def take(self, first: int, end: int) -> OfferRows:
        """Return the rows from ``first`` to before ``end``.

        Parameters
        ----------
        first, end : int
            The rows.

        Returns
        -------
        OfferRows
            Their offers.

        Examples
        --------
        >>> OfferRows.of(([5, 6, 7], 0.8), 3, Offers([1], [0.8])).take(1, 2).amount
        array([6.])
        """
        low, high = int(self.start[first]), int(self.start[end])
        return OfferRows(self.amount[low:high], self.cost[low:high], self.start[first : end + 1] - low)

    def pick(self, rows: NDArray[np.int64]) -> OfferRows:
        """Return some rows.

        Parameters
        ----------
        rows : ndarray of int
            The rows, in any order.

        Returns
        -------
        OfferRows
            Their offers.

        Examples
        --------
        >>> OfferRows.of(([5, 6, 7], 0.8), 3, Offers([1], [0.8])).pick(np.array([2, 0])).amount
        array([7., 5.])
        """
        counts = np.diff(self.start)[rows]
        where = np.concatenate([np.arange(self.start[row], self.start[row + 1]) for row in rows])
        return OfferRows(self.amount[where], self.cost[where], np.concatenate([[0], np.cumsum(counts)]))

    def _checked(self, rows: int) -> OfferRows:
        if self.rows != rows:
            raise InputError.because(
                f"must have one entry for each of the {rows:,} rows, not {self.rows:,}",
                "offers",
                value=self.rows,
                code="length_mismatch",
            )
        return self


def _columns(offers: Any) -> tuple[Any, Any] | None:
    """Return the columns of amounts and break-evens, or None if offers are not given as columns."""
    if isinstance(offers, Mapping) or hasattr(offers, "columns"):
        missing = [name for name in ("amount", "cost") if name not in offers]
        if missing:
            raise InputError.because(
                "must have the columns amount and cost", "offers", value=missing, hint=f"Give {FORMS}.", code="missing"
            )
        return offers["amount"], offers["cost"]
    if hasattr(offers, "amount") and hasattr(offers, "cost"):
        return offers.amount, offers.cost
    if isinstance(offers, tuple) and len(offers) == 2 and not any(isinstance(one, Offer | Offers) for one in offers):
        return offers
    return None


def _numbers(amount: Any, cost: Any, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both columns, checked; one number serves for all rows."""
    columns = []
    for name, given, most in (("amount", amount, np.inf), ("cost", cost, 1.0)):
        column = floats(name, given)
        if column.ndim == 0:
            column = np.full(rows, float(column))
        if column.shape != (rows,):
            raise InputError.because(
                f"must have one number for each of the {rows:,} rows, not the shape {column.shape}",
                name,
                value=column.shape,
                code="length_mismatch",
            )
        wrong = np.flatnonzero(~((column > 0) & (column < most)))
        if wrong.size:
            allowed = "numbers above 0 that are finite" if most == np.inf else "numbers strictly between 0 and 1"
            raise InputError(name, float(column[wrong[0]]), allowed, place=f"row {int(wrong[0]) + 1:,}")
        columns.append(np.ascontiguousarray(column))
    return columns[0], columns[1]


def _menu(one: Any) -> list[Offer]:
    """Return the offers of one row."""
    if isinstance(one, Offer):
        return [one]
    if isinstance(one, Offers) and one.menu_count == 1:
        return one.offers_of(0)
    if isinstance(one, list | tuple) and one and all(isinstance(each, Offer) for each in one):
        return list(one)
    raise InputError("offers", one, FORMS)
