"""Offers: what applicants ask for, or what they may be offered. Amounts and prices differ from one to the next.

An offer is an amount at stake a = gain + loss and a break-even c = loss/(gain + loss). Accepted, it earns a(y − c): the
gain a(1 − c) if the applicant succeeds, and minus the loss a c otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.core.validation import listed, real

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Numbers: TypeAlias = Sequence[float] | NDArray[np.float64]
    Places: TypeAlias = Sequence[int]
else:  # what is given becomes a tuple
    Numbers = tuple[float, ...]
    Places = tuple[int, ...]

MONTHS = 12
MOST_OFFERS = 10_000


class Offer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describe one offer: the amount at stake and the break-even success rate.

    Parameters
    ----------
    amount : float
        Gain plus loss, above 0, in any currency.
    cost : float
        The break-even success rate: loss/(gain + loss), strictly between 0 and 1.

    Raises
    ------
    InputError
        If a number is outside its range.

    Examples
    --------
    >>> offer = Offer(amount=1000, cost=0.8)
    >>> offer.gain, offer.loss
    (200.0, 800.0)
    >>> round(offer.expected_profit(0.75), 6)
    -50.0
    """

    amount: float
    cost: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "amount", real("amount", self.amount, above=0))
        msgspec.structs.force_setattr(self, "cost", real("cost", self.cost, above=0, below=1))

    @property
    def gain(self) -> float:
        """What a success earns."""
        return self.amount - self.loss

    @property
    def loss(self) -> float:
        """What a failure loses."""
        return self.amount * self.cost

    def expected_profit(self, rate: float) -> float:
        """Return the expected profit of accepting at a success rate.

        Parameters
        ----------
        rate : float
            The probability of success.

        Returns
        -------
        float
            The profit; negative below the break-even.

        Examples
        --------
        >>> Offer(amount=100, cost=0.5).expected_profit(0.75)
        25.0
        """
        return self.amount * (rate - self.cost)

    @classmethod
    def from_gain_and_loss(cls, gain: float, loss: float) -> Offer:
        """Return the offer that earns a gain if it succeeds and loses a loss otherwise.

        Parameters
        ----------
        gain : float
            What a success earns, above 0.
        loss : float
            What a failure loses, above 0.

        Returns
        -------
        Offer
            The offer.

        Examples
        --------
        >>> Offer.from_gain_and_loss(gain=200, loss=800)
        Offer(amount=1000.0, cost=0.8)
        """
        good = real("gain", gain, above=0)
        bad = real("loss", loss, above=0)
        return cls(amount=good + bad, cost=bad / (good + bad))

    @classmethod
    def from_loan(
        cls, amount: float, rate: float, term: float, loss_given_default: float = 1.0, funding_rate: float = 0.0
    ) -> Offer:
        """Return the offer that a loan makes.

        The loan is repaid in equal monthly payments. A repaid loan gains its interest less the interest that the same
        loan costs at the funding rate. A failed loan loses ``loss_given_default`` times the amount.

        Parameters
        ----------
        amount : float
            The amount lent, above 0.
        rate : float
            The interest rate a year, e.g. 0.12 for 12%.
        term : float
            The term in years, above 0.
        loss_given_default : float
            The share of the amount that a default loses, above 0.
        funding_rate : float
            The rate a year at which the lender funds the loan, at least 0 and below ``rate``.

        Returns
        -------
        Offer
            The offer.

        Examples
        --------
        >>> offer = Offer.from_loan(amount=10_000, rate=0.12, term=3, loss_given_default=0.6, funding_rate=0.04)
        >>> round(offer.gain), round(offer.loss), round(offer.cost, 3)
        (1329, 6000, 0.819)
        """
        lent = real("amount", amount, above=0)
        price = real("rate", rate, above=0)
        years = real("term", term, above=0)
        funding = real("funding_rate", funding_rate, least=0)
        if funding >= price:
            raise InputError("funding_rate", funding_rate, f"below the rate of {price:g}, or nothing is gained")
        gain = lent * (interest(price, years) - interest(funding, years))
        return cls.from_gain_and_loss(gain, lent * real("loss_given_default", loss_given_default, above=0))


def interest(rate: float, years: float) -> float:
    """Return the interest that a loan of 1 pays in all, in equal monthly payments.

    Parameters
    ----------
    rate : float
        The interest rate a year, at least 0.
    years : float
        The term in years, above 0.

    Returns
    -------
    float
        The sum of the payments less 1.

    Examples
    --------
    >>> round(interest(0.12, 1), 6), interest(0.0, 3)
    (0.066185, 0.0)
    """
    monthly, payments = rate / MONTHS, years * MONTHS
    if monthly == 0.0:
        return 0.0
    return monthly * payments / -math.expm1(-payments * math.log1p(monthly)) - 1.0


class Offers(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Describe what arrivals bring: each brings one offer, or one menu of offers to choose from.

    Parameters
    ----------
    amount : sequence of float
        The amount at stake of each offer: gain plus loss, above 0.
    cost : sequence of float
        The break-even success rate of each offer, strictly between 0 and 1.
    share : sequence of float, optional
        How often each offer comes (each menu, if there are menus). Equal shares by default; they are scaled to sum
        to 1.
    menus : sequence of int, optional
        The menu of each offer: 0, 1, … in order. By default every offer comes alone.
    currency : str, optional
        The sign or code that texts show amounts with, e.g. "$" or "EUR".

    Raises
    ------
    InputError
        If a number is outside its range, or the lengths differ.

    Examples
    --------
    Applicants ask for three amounts, each as often as the others:

    >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> offers.mean_amount
    2.033333333333333

    Every applicant may be offered one of two amounts:

    >>> Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8]).menu_count
    1
    """

    amount: Numbers
    cost: Numbers
    share: Numbers = ()
    menus: Places = ()
    currency: str = ""

    def __post_init__(self) -> None:
        set_ = msgspec.structs.force_setattr
        amounts = tuple(real("amount", one, above=0) for one in _numbers("amount", self.amount))
        costs = tuple(real("cost", one, above=0, below=1) for one in _numbers("cost", self.cost))
        if len(costs) != len(amounts):
            raise _length("cost", len(costs), len(amounts), "amount")
        set_(self, "amount", amounts)
        set_(self, "cost", costs)
        menus = tuple(listed("menus", self.menus, "a list of numbers 0, 1, …")) or tuple(range(len(amounts)))
        if len(menus) != len(amounts):
            raise _length("menus", len(menus), len(amounts), "amount")
        steps = [later - earlier for earlier, later in zip((0, *menus), menus, strict=False)]
        if menus[0] != 0 or any(step not in (0, 1) for step in steps):
            raise InputError("menus", list(menus), "0, 1, … in order, each at least once")
        set_(self, "menus", menus if len(set(menus)) < len(menus) else ())
        count = menus[-1] + 1
        given = (
            [real("share", one, least=0) for one in _numbers("share", self.share)] if len(self.share) else [1.0] * count
        )
        if len(given) != count:
            raise _length("share", len(given), count, "menus" if self.menus else "amount")
        total = math.fsum(given)
        if not 0 < total < math.inf:
            raise InputError("share", list(self.share), "numbers of at least 0 with a sum above 0")
        set_(self, "share", tuple(one / total for one in given) if total != 1.0 else tuple(given))

    @classmethod
    def menu(cls, amount: Sequence[float], cost: Sequence[float], currency: str = "") -> Offers:
        """Return what every applicant may be offered: one of these offers, or a rejection.

        Parameters
        ----------
        amount : sequence of float
            The amount at stake of each offer.
        cost : sequence of float
            The break-even of each offer.
        currency : str, optional
            The sign or code that texts show amounts with.

        Returns
        -------
        Offers
            One menu.

        Examples
        --------
        >>> Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8]).menus
        (0, 0)
        """
        amounts = _numbers("amount", amount)
        return cls(tuple(amounts), tuple(_numbers("cost", cost)), menus=(0,) * len(amounts), currency=currency)

    @classmethod
    def draw(cls, menus: Sequence[Offers | Offer], share: Sequence[float] = ()) -> Offers:
        """Return arrivals that bring one of several menus.

        Parameters
        ----------
        menus : sequence of Offers or Offer
            The menus, each of them one menu (:meth:`menu`) or one offer.
        share : sequence of float, optional
            How often each menu comes; equal shares by default.

        Returns
        -------
        Offers
            The menus with their shares.

        Examples
        --------
        >>> starter = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])
        >>> Offers.draw([starter, Offer(5, 0.7)], share=[0.9, 0.1]).menus
        (0, 0, 1)
        """
        amounts: list[float] = []
        costs: list[float] = []
        of: list[int] = []
        for position, menu in enumerate(listed("menus", menus, "a list of menus or offers")):
            if isinstance(menu, Offer):
                menu = cls((menu.amount,), (menu.cost,))
            if not isinstance(menu, Offers) or menu.menu_count != 1:
                raise InputError("menus", menu, "a list of menus or offers, such as Offers.menu(amount=[…], cost=[…])")
            amounts += menu.amount
            costs += menu.cost
            of += [position] * len(menu.amount)
        return cls(tuple(amounts), tuple(costs), tuple(share), tuple(of))

    @classmethod
    def from_gains_and_losses(
        cls, gain: ArrayLike, loss: ArrayLike, share: ArrayLike | None = None, most: int | None = None
    ) -> Offers:
        """Return the offers of a column of gains and a column of losses.

        Parameters
        ----------
        gain : array_like of float
            What a success of each applicant earns, above 0.
        loss : array_like of float
            What a failure of each applicant loses, above 0; one number serves for all.
        share : array_like of float, optional
            The weight of each row.
        most : int, optional
            Compress to at most this many offers (:meth:`compress`).

        Returns
        -------
        Offers
            One offer for each row, or the compressed ones.

        Examples
        --------
        >>> offers = Offers.from_gains_and_losses(gain=[200, 100], loss=[800, 100])
        >>> offers.amount, offers.cost
        ((1000.0, 200.0), (0.8, 0.5))
        """
        import numpy as np

        from lenience.core.validation import floats

        good, bad = np.broadcast_arrays(np.atleast_1d(floats("gain", gain)), np.atleast_1d(floats("loss", loss)))
        for field, column in (("gain", good), ("loss", bad)):
            wrong = np.flatnonzero(~(np.isfinite(column) & (column > 0)))
            if wrong.size:
                value = float(column.ravel()[wrong[0]])
                raise InputError(field, value, "numbers above 0 that are finite", place=f"row {int(wrong[0]) + 1}")
        weights = np.ones(good.size) if share is None else floats("share", share)
        if weights.shape != (good.size,):
            raise _length("share", weights.size, good.size, "gain")
        if most is not None:
            return _compressed(good, bad, weights, most)
        total = good + bad
        return cls(tuple(total.tolist()), tuple((bad / total).tolist()), tuple(weights.tolist()))

    @classmethod
    def from_loans(
        cls,
        amount: ArrayLike,
        rate: ArrayLike,
        term: ArrayLike,
        loss_given_default: ArrayLike = 1.0,
        funding_rate: float = 0.0,
        share: ArrayLike | None = None,
        most: int | None = None,
    ) -> Offers:
        """Return the offers of columns that describe loans; :meth:`Offer.from_loan` has the formula.

        Parameters
        ----------
        amount : array_like of float
            The amount lent.
        rate : array_like of float
            The interest rate a year, e.g. 0.12 for 12%.
        term : array_like of float
            The term in years.
        loss_given_default : array_like of float
            The share of the amount that a default loses.
        funding_rate : float
            The rate a year at which the lender funds the loans.
        share : array_like of float, optional
            The weight of each row.
        most : int, optional
            Compress to at most this many offers (:meth:`compress`).

        Returns
        -------
        Offers
            One offer for each row, or the compressed ones.

        Examples
        --------
        >>> loans = Offers.from_loans([1000, 5000], rate=[0.2, 0.1], term=3, loss_given_default=0.6)
        >>> [round(cost, 3) for cost in loans.cost]
        [0.64, 0.788]
        """
        import numpy as np

        from lenience.core.validation import floats

        names = ("amount", "rate", "term", "loss_given_default")
        given = (amount, rate, term, loss_given_default)
        columns = [np.atleast_1d(floats(name, one)) for name, one in zip(names, given, strict=True)]
        try:
            lent, price, years, lost = np.broadcast_arrays(*columns)
        except ValueError:
            raise InputError(names, [one.size for one in columns], "columns of the same length", label="") from None
        loans = [
            Offer.from_loan(*row, funding_rate=funding_rate)
            for row in zip(lent.tolist(), price.tolist(), years.tolist(), lost.tolist(), strict=True)
        ]
        return cls.from_gains_and_losses([one.gain for one in loans], [one.loss for one in loans], share, most)

    def compress(self, most: int = 25) -> Offers:
        """Return fewer offers that stand for all: each is the mean gain and the mean loss of similar ones.

        What the best policy earns changes by at most :meth:`compression_error` for each arrival.

        Parameters
        ----------
        most : int
            The largest number of offers to return.

        Returns
        -------
        Offers
            At most ``most`` offers. Menus cannot be compressed.

        Examples
        --------
        >>> many = Offers(amount=[900, 1100, 4000, 6000], cost=[0.8, 0.8, 0.8, 0.8])
        >>> few = many.compress(2)
        >>> [round(one) for one in few.amount]
        [1000, 5000]
        """
        import numpy as np

        if self.menus:
            raise InputError("menus", self.menus, "empty: only single offers can be compressed")
        losses = np.array(self.amount) * self.cost
        return _compressed(np.array(self.amount) - losses, losses, np.array(self.share), most)

    def compression_error(self, compressed: Offers) -> float:
        """Bound how much compressing changes what the best policy earns for each arrival.

        It is the cost of turning one distribution of offers into the other, where moving an offer costs the larger
        change in gain and loss. Whatever is decided for an offer, the one that it moves to earns as much up to that.

        Parameters
        ----------
        compressed : Offers
            Fewer offers, such as :meth:`compress` returns.

        Returns
        -------
        float
            Money an arrival. Over a discounted future it is divided by 1 − γ.

        Examples
        --------
        >>> many = Offers(amount=[900, 1100], cost=[0.8, 0.8])
        >>> round(many.compression_error(many.compress(1)), 6)
        80.0
        """
        import numpy as np
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        amounts, others = np.array(self.amount), np.array(compressed.amount)
        losses, other_losses = amounts * self.cost, others * compressed.cost
        distance = np.maximum(
            np.abs((amounts - losses)[:, None] - (others - other_losses)), np.abs(losses[:, None] - other_losses)
        )
        # Move the share of each offer to the others, as cheaply as possible.
        places = np.arange(distance.size)
        line = np.concatenate((places // others.size, amounts.size + places % others.size))
        moves = coo_array((np.ones(2 * places.size), (line, np.tile(places, 2))))
        shares = np.concatenate((self.share, compressed.share))
        return float(linprog(distance.ravel(), A_eq=moves.tocsr(), b_eq=shares, method="highs").fun)

    @property
    def menu_count(self) -> int:
        """The number of menus; the number of offers if each comes alone."""
        return len(self.share)

    @property
    def menu_of(self) -> Sequence[int]:
        """The menu of each offer."""
        return self.menus or tuple(range(len(self.amount)))

    @property
    def single(self) -> bool:
        """Whether there is one offer only."""
        return len(self.amount) == 1

    @property
    def money(self) -> Money:
        """How to show amounts: values are in money already."""
        return Money(1.0, self.currency)

    @property
    def mean_amount(self) -> float:
        """The average amount at stake, where the largest offer of each menu is made."""
        return math.fsum(share * max(self._amounts(menu)) for menu, share in enumerate(self.share))

    @property
    def mean_cost(self) -> float:
        """The break-even of accepting everyone at the largest offer of each menu."""
        total = 0.0
        for menu, share in enumerate(self.share):
            largest = max(self.offers_of(menu), key=lambda one: one.amount)
            total += share * largest.loss
        return min(max(total / self.mean_amount, 1e-9), math.nextafter(1.0, 0.0))

    def offers_of(self, menu: int) -> list[Offer]:
        """Return the offers of one menu.

        Parameters
        ----------
        menu : int
            The number of the menu, from 0.

        Returns
        -------
        list of Offer
            The offers.

        Examples
        --------
        >>> Offers.menu(amount=[1, 2], cost=[0.8, 0.7]).offers_of(0)
        [Offer(amount=1.0, cost=0.8), Offer(amount=2.0, cost=0.7)]
        """
        return [
            Offer(amount, cost)
            for amount, cost, of in zip(self.amount, self.cost, self.menu_of, strict=True)
            if of == menu
        ]

    def with_starters(self, shares: Sequence[float]) -> Offers:
        """Return the same arrivals where shares of each amount may be offered, too, at the same break-even.

        Parameters
        ----------
        shares : sequence of float
            Shares of an amount, strictly between 0 and 1.

        Returns
        -------
        Offers
            A menu for each offer, with its own amount first.

        Examples
        --------
        >>> Offers(amount=[100, 200], cost=[0.8, 0.7]).with_starters([0.1]).amount
        (100.0, 10.0, 200.0, 20.0)
        """
        parts = [real("share", share, above=0, below=1) for share in listed("shares", shares, "a list of shares")]
        menus = []
        for menu in range(self.menu_count):
            made = self.offers_of(menu)
            small = [Offer(part * one.amount, one.cost) for part in parts for one in made]
            menus.append(Offers.menu([one.amount for one in made + small], [one.cost for one in made + small]))
        return msgspec.structs.replace(Offers.draw(menus, tuple(self.share)), currency=self.currency)

    def profit_if_known(self, rate: float) -> float:
        """Return what an arrival earns on average where the success rate is known and the best offer is made.

        Parameters
        ----------
        rate : float
            The success rate.

        Returns
        -------
        float
            The mean over the menus of the best expected profit, or 0 where every offer loses.

        Examples
        --------
        >>> round(Offers(amount=[1, 3], cost=[0.8, 0.5]).profit_if_known(0.7), 6)
        0.3
        """
        return math.fsum(
            share * max(0.0, *(one.expected_profit(rate) for one in self.offers_of(menu)))
            for menu, share in enumerate(self.share)
        )

    def _amounts(self, menu: int) -> list[float]:
        return [amount for amount, of in zip(self.amount, self.menu_of, strict=True) if of == menu]


def describe_offers(offers: Offers) -> str:
    """Return the offers in plain words.

    >>> describe_offers(Offers(amount=[500, 5000], cost=[0.8, 0.75], currency="$"))
    '2 offers of $500 to $5,000 at stake, break-even success rates 75% to 80%'
    >>> describe_offers(Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8]))
    'a choice of 2 offers of 0.1 to 1 at stake, break-even success rate 80%'
    """
    from lenience.core.formatting import counted, percent

    words = counted(len(offers.amount), "offer")
    if offers.menus:
        choice = "a choice of" if offers.menu_count == 1 else f"{counted(offers.menu_count, 'menu')} of"
        words = f"{choice} {words}"
    words += f" of {offers.money.format_range(min(offers.amount), max(offers.amount))} at stake"
    low, high = (percent(edge(offers.cost), 2) for edge in (min, max))
    return words + (
        f", break-even success rate {low}" if low == high else f", break-even success rates {low} to {high}"
    )


def _numbers(field: str, value: object) -> list[Any]:
    """Return the items of a list of at least one number."""
    items = listed(field, value, "a list of numbers")
    if not 0 < len(items) <= MOST_OFFERS:
        raise InputError(field, len(items), f"a list of 1 to {MOST_OFFERS:,} numbers", label=f"the length of {field}")
    return items


def _length(field: str, length: int, wanted: int, other: str) -> InputError:
    return InputError.because(
        f"must have {wanted} entries, as {other} has, not {length}", field, value=length, code="length_mismatch"
    )


def _compressed(gain: NDArray[np.float64], loss: NDArray[np.float64], weight: NDArray[np.float64], most: int) -> Offers:
    """Compress offers: bands of equal weight by break-even, and bands of the amount within each."""
    return compress_with_error(gain, loss, weight, most)[0]


def compress_with_error(
    gain: NDArray[np.float64], loss: NDArray[np.float64], weight: NDArray[np.float64], most: int
) -> tuple[Offers, float]:
    """Compress offers: bands of equal weight by break-even, and bands of the amount within each.

    Parameters
    ----------
    gain, loss : ndarray of float
        The gain and the loss of each offer.
    weight : ndarray of float
        How often each comes.
    most : int
        The largest number of offers to return.

    Returns
    -------
    tuple of Offers and float
        The offers, and the mean of the larger change in gain and loss, from each offer to the one that stands for it.

    Examples
    --------
    >>> import numpy as np
    >>> offers, error = compress_with_error(np.array([20.0, 40.0]), np.array([80.0, 90.0]), np.ones(2), most=1)
    >>> offers.amount, error
    ((115.0,), 10.0)
    """
    import numpy as np

    from lenience.core.validation import whole

    count = whole("most", most, least=1)
    pairs, where = np.unique(np.stack([gain, loss], axis=1), axis=0, return_inverse=True)
    weights: NDArray[np.float64] = np.bincount(where.ravel(), weights=weight).astype(np.float64)
    error = 0.0
    if len(pairs) > count:
        columns = max(1, round(math.sqrt(count)))
        order = np.argsort(pairs[:, 1] / pairs.sum(axis=1), kind="stable")
        bands = np.empty(len(pairs), dtype=np.int64)
        for position, cell in enumerate(_cut(order, weights, columns)):
            lines = count // columns + (position < count % columns)
            inside = cell[np.argsort(pairs[cell].sum(axis=1), kind="stable")]
            for line, members in enumerate(_cut(inside, weights, max(lines, 1))):
                bands[members] = position * count + line
        _, bands = np.unique(bands, return_inverse=True)
        mass = np.bincount(bands, weights=weights).astype(np.float64)
        means = np.stack([np.bincount(bands, weights=weights * pairs[:, side]) / mass for side in (0, 1)], axis=1)
        error = float(weights @ np.abs(pairs - means[bands]).max(axis=1) / mass.sum())
        pairs, weights = means, mass
    total = pairs.sum(axis=1)
    return Offers(tuple(total.tolist()), tuple((pairs[:, 1] / total).tolist()), tuple(weights.tolist())), error


def _cut(order: NDArray[np.int64], weights: NDArray[np.float64], parts: int) -> list[NDArray[np.int64]]:
    """Cut an ordered list into parts of about equal weight; empty parts are left out."""
    import numpy as np

    before = np.cumsum(weights[order]) - weights[order] / 2
    part = np.minimum((before / weights[order].sum() * parts).astype(np.int64), parts - 1)
    return [order[part == number] for number in range(parts) if np.any(part == number)]
