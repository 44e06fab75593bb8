"""rank: the applicants of a batch to accept where only some can be: these 40 of this week's 200.

The model. Accepting an applicant earns a(y − c) and reveals one label of the applicant's segment. The index is what
this is worth: the expected profit a(p̂ − c) plus the value of the label. Without a limit, the optimum accepts where the
index is above 0. With a limit, choose the applicants with the largest sum of indices that fits.

Guarantee: the sum is compared with a bound that no choice can exceed. With a limit on their number, the choice is the
best. With a limit on money, choosing by index per money is at most one applicant's index below the bound. The bound is
that of linear programming, which may accept parts of applicants: for every price μ ≥ 0 of money M,

    μM + the largest sum of (index − μ · money)⁺ over as many applicants as are allowed

is at least the sum of indices of any choice that fits, and the least of these is the bound.

Several labels of one segment in a batch overlap. Each index values its own label as if it came alone, so a sum of
indices is usually more than the labels are worth together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offer, Offers
from lenience.core.validation import having, listed, real, whole
from lenience.objectives.discounted import Discounted

APPLICANTS = "a list of Applicant"
MOST_OFFERS = 25  # that stand for those of a segment
HALVINGS = 200  # of the interval of prices, at most: then its ends are neighbouring numbers


class LabelPolicy(Protocol):
    """A policy that knows what a label is worth, such as OfferPolicy or OptimalPolicy."""

    def label_value(self, belief: Belief) -> Bounds:
        """Return what one more outcome is worth for later decisions."""


class Applicant(msgspec.Struct, frozen=True):
    """One applicant of a batch.

    Parameters
    ----------
    name
        What identifies the applicant.
    belief
        What is known of the success probability, usually that of the applicant's segment.
    offer
        The amount at stake and the break-even.
    label_value
        What the applicant's outcome is worth for later decisions, in the unit of the amount; 0 if nothing.
    money
        The money that an acceptance uses, such as the amount lent. By default the amount at stake.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> applicant = Applicant("Ann", Belief(10, 7), Offer(1000, 0.8), label_value=150)
    >>> round(applicant.expected_profit, 6), round(applicant.index, 6)
    (-100.0, 50.0)
    """

    name: str
    belief: Belief | MixtureBelief
    offer: Offer
    label_value: float = 0.0
    money: float | None = None

    def __post_init__(self) -> None:
        having("belief", self.belief, "mean", "a Belief, such as Belief(n=2, s=1)")
        having("offer", self.offer, "expected_profit", "an Offer, such as Offer(amount=1000, cost=0.8)")
        set_ = msgspec.structs.force_setattr
        set_(self, "label_value", real("label_value", self.label_value, least=0))
        set_(self, "money", self.offer.amount if self.money is None else real("money", self.money, above=0))

    @classmethod
    def from_policy(
        cls, name: str, policy: LabelPolicy, belief: Belief, offer: Offer, money: float | None = None, unit: float = 1.0
    ) -> Applicant:
        """Return an applicant whose label is worth what the policy of the segment says.

        Parameters
        ----------
        name : str
            What identifies the applicant.
        policy : OfferPolicy or OptimalPolicy
            The policy of the applicant's segment, at the segment's own discount.
        belief : Belief
            What is known of the success probability.
        offer : Offer
            The amount at stake and the break-even.
        money : float, optional
            The money that an acceptance uses. By default the amount at stake.
        unit : float
            The money in one unit of the policy's values: 1 if it was solved for offers, and otherwise the amount at
            stake of the segment's applicants.

        Returns
        -------
        Applicant
            The applicant. The index is above 0 exactly if the policy accepts.

        Examples
        --------
        >>> from lenience import Discounted, Offers
        >>> offers = Offers(amount=[500, 5000], cost=[0.8, 0.8])
        >>> policy = Discounted(offers=offers, discount=0.99).solve(Belief(2, 1))
        >>> round(Applicant.from_policy("Ann", policy, Belief(2, 1), Offer(500, 0.8)).index)
        78
        """
        having("policy", policy, "label_value", "a solved policy that values labels, such as OfferPolicy")
        return cls(name, belief, offer, real("unit", unit, above=0) * policy.label_value(belief).lower, money)

    @property
    def expected_profit(self) -> float:
        """The expected profit of the offer alone; negative below the break-even."""
        return self.offer.expected_profit(self.belief.mean)

    @property
    def index(self) -> float:
        """What accepting is worth: the expected profit plus the value of the label."""
        return self.expected_profit + self.label_value


class Ranking(msgspec.Struct, frozen=True):
    """The applicants of a batch to accept, and how good the choice is.

    Parameters
    ----------
    chosen
        The applicants to accept, the best first: by index, or by index per money if money is limited.
    waiting
        Those with an index above 0 for whom there is no capacity, the best first.
    rejected
        Those with an index of 0 or less, the best first.
    index
        The sum of the chosen applicants' indices.
    bound
        A bound of that sum for any choice that fits. It equals ``index`` if only the number is limited.
    money
        The money that the chosen applicants use.

    Examples
    --------
    >>> batch = [Applicant(name, Belief(10, 9), Offer(amount, 0.8)) for name, amount in (("Ann", 500), ("Bob", 900))]
    >>> [one.name for one in rank(batch, capacity=1).chosen]
    ['Bob']
    """

    chosen: tuple[Applicant, ...]
    waiting: tuple[Applicant, ...]
    rejected: tuple[Applicant, ...]
    index: float
    bound: float
    money: float


def rank(applicants: Iterable[Applicant], capacity: int | None = None, money: float | None = None) -> Ranking:
    """Choose the applicants of a batch to accept, by their indices.

    Nobody with an index of 0 or less is chosen, even if there is room.

    Parameters
    ----------
    applicants : iterable of Applicant
        The batch.
    capacity : int, optional
        The largest number to accept, at least 1. By default there is no such limit.
    money : float, optional
        The most money that the accepted may use together, above 0. By default there is no such limit.

    Returns
    -------
    Ranking
        The chosen applicants, the others, and a bound of what any choice is worth.

    Raises
    ------
    InputError
        If the batch holds something else than applicants, or a limit is out of range.

    Examples
    --------
    >>> batch = [
    ...     Applicant("Ann", Belief(10, 7), Offer(500, 0.8), label_value=120),
    ...     Applicant("Bob", Belief(20, 18), Offer(5000, 0.8), label_value=5),
    ...     Applicant("Cem", Belief(20, 17), Offer(1000, 0.8), label_value=5),
    ...     Applicant("Dan", Belief(20, 9), Offer(1000, 0.8), label_value=5),
    ... ]
    >>> [(one.name, round(one.index)) for one in rank(batch, capacity=2).chosen]
    [('Bob', 505), ('Ann', 70)]
    >>> result = rank(batch, money=2000)
    >>> [one.name for one in result.chosen], round(result.index), round(result.bound)
    (['Ann', 'Cem'], 125, 125)
    >>> [one.name for one in rank(batch).rejected]
    ['Dan']
    """
    batch = listed("applicants", applicants, APPLICANTS)
    for one in batch:
        if not isinstance(one, Applicant):
            raise InputError("applicants", one, APPLICANTS)
    most = len(batch) if capacity is None else whole("capacity", capacity, least=1)
    budget = math.inf if money is None else real("money", money, above=0)
    limited = money is not None
    index = np.array([one.index for one in batch], dtype=np.float64)
    used = np.array([one.money for one in batch], dtype=np.float64)
    order = np.argsort(-(index / used if limited else index), kind="stable")
    chosen, bound = _choose(index, used, order, most, budget)
    by_rank = [(batch[i], bool(chosen[i])) for i in order.tolist()]
    return Ranking(
        chosen=tuple(one for one, take in by_rank if take),
        waiting=tuple(one for one, take in by_rank if not take and one.index > 0.0),
        rejected=tuple(sorted((one for one in batch if one.index <= 0.0), key=lambda one: -one.index)),
        index=math.fsum(index[chosen].tolist()),
        bound=bound,
        money=math.fsum(used[chosen].tolist()),
    )


def value_batch(
    names: Sequence[str],
    segments: Sequence[str],
    offers: Sequence[Offer],
    beliefs: Mapping[str, Belief],
    discount: float,
    money: Sequence[float] | None = None,
    tolerance: float = 1e-9,
) -> list[Applicant]:
    """Return the applicants of a batch with the values of their labels, as if later applicants were like the batch.

    A segment's share of the batch is taken for its share of all arrivals, and its offers in the batch for those to
    come (at most 25 of them, which stand for all).

    Parameters
    ----------
    names : sequence of str
        What identifies each applicant.
    segments : sequence of str
        The segment of each applicant.
    offers : sequence of Offer
        What each applicant asks for.
    beliefs : mapping
        What is known of each segment's success probability.
    discount : float
        The discount factor γ from one arrival to the next, all segments together.
    money : sequence of float, optional
        The money that accepting each applicant uses. By default the amount at stake.
    tolerance : float
        How accurately labels are valued, in units of the segment's mean amount.

    Returns
    -------
    list of Applicant
        The applicants, in the same order.

    Raises
    ------
    InputError
        If the lengths differ, or a segment has no belief.

    Examples
    --------
    >>> offers = [Offer(500, 0.8), Offer(5000, 0.8), Offer(1000, 0.8)]
    >>> beliefs = {"new": Belief(2, 1), "old": Belief(52, 43)}
    >>> batch = value_batch(["Ann", "Bob", "Cem"], ["new", "new", "old"], offers, beliefs, discount=0.99)
    >>> [(one.name, round(one.expected_profit), round(one.label_value)) for one in batch]
    [('Ann', -150, 220), ('Bob', -1500, 220), ('Cem', 27, 3)]
    >>> [one.name for one in rank(batch, capacity=2).chosen]
    ['Ann', 'Cem']
    """
    for field, column in (("segments", segments), ("offers", offers), ("money", names if money is None else money)):
        if len(column) != len(names):
            raise InputError.because(
                f"must have one entry for each of the {len(names)} names, not {len(column)}",
                field,
                value=len(column),
                code="length_mismatch",
            )
    by_segment: dict[str, list[Offer]] = {}
    for segment, offer in zip(segments, offers, strict=True):
        by_segment.setdefault(segment, []).append(offer)
    labels = {}
    for segment, own in by_segment.items():
        if segment not in beliefs:
            raise InputError.because(
                f"must be given for every segment; it is missing for {segment!r}",
                "beliefs",
                value=segment,
                code="missing",
            )
        few = Offers.from_gains_and_losses([one.gain for one in own], [one.loss for one in own], most=MOST_OFFERS)
        problem = Discounted(offers=few, discount=discount).for_share(len(own) / len(names))
        labels[segment] = problem.solve(beliefs[segment], rows=1, tolerance=tolerance).label_value(beliefs[segment])
    uses = [None] * len(names) if money is None else list(money)
    return [
        Applicant(name, beliefs[segment], offer, labels[segment].lower, use)
        for name, segment, offer, use in zip(names, segments, offers, uses, strict=True)
    ]


def _choose(
    index: NDArray[np.float64], used: NDArray[np.float64], order: NDArray[np.int64], most: int, budget: float
) -> tuple[NDArray[np.bool_], float]:
    """Return who is chosen, and the bound of linear programming."""
    index = np.where(used <= budget, index, 0.0)  # Nobody is chosen who needs more than there is.
    price, bound = _price_of_money(index, used, most, budget)
    chosen = _best(index - price * used, most)
    spent, count = math.fsum(used[chosen].tolist()), int(chosen.sum())
    # What is left serves the next ones in the order that fit.
    for i in order.tolist():
        if count == most:
            break
        if not chosen[i] and index[i] > 0.0 and spent + used[i] <= budget:
            chosen[i] = True
            spent, count = spent + used[i], count + 1
    return chosen, max(bound, math.fsum(index[chosen].tolist()))


def _price_of_money(
    index: NDArray[np.float64], used: NDArray[np.float64], most: int, budget: float
) -> tuple[float, float]:
    """Return the least price of money at which the best choice fits the budget, and the bound that it gives."""

    def spending(price: float) -> tuple[float, float]:
        worth = index - price * used
        best = _best(worth, most)
        bound = math.fsum(worth[best].tolist()) + (price * budget if price else 0.0)
        return math.fsum(used[best].tolist()), bound

    spent, bound = spending(0.0)
    if spent <= budget:
        return 0.0, bound
    low, high = 0.0, float(np.max(index / used))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        spent, at_price = spending(middle)
        bound = min(bound, at_price)
        low, high = (middle, high) if spent > budget else (low, middle)
    return high, bound


def _best(worth: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Return which ones are worth most: at most so many, and only those worth something."""
    best = np.zeros(worth.size, dtype=np.bool_)
    best[np.argsort(-worth, kind="stable")[:most]] = True
    return best & (worth > 0.0)
