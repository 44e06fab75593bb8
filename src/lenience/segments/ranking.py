"""rank: the applicants of a batch to accept where only some can be: these 40 of this week's 200.

The model. Accepting an applicant earns a(y − c) and reveals one label of the applicant's segment. The index is what
this is worth: the expected profit a(p̂ − c) plus the value of the label. Without a limit, the optimum accepts where the
index is above 0. With a limit, choose the applicants with the largest sum of indices that fits.

Several outcomes of one segment in a batch overlap, so later ones are usually worth less. The k-th label adds the
expected value of a label after k − 1 outcomes (:meth:`OfferPolicy.batch_label_values`), and the sum of these is what
k outcomes are worth together. So the index of an applicant depends on how many of the segment are chosen before.

Guarantee: the sum of the indices is compared with a bound that no choice can exceed. The bound is that of Lagrange: for
every price μ ≥ 0 of money M,

    μM + the largest sum of (index − μ · money)⁺ over as many applicants as are allowed

is at least the sum of indices of any choice that fits, and the least of these is the bound. If only the number is
limited, the choice reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

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
MOST_LABELS = 1000  # of a segment in a batch that are valued one by one
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
    segment
        The segment, if several outcomes of it are worth less than their sum (``label_values`` of :func:`rank`).

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
    segment: str = ""

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


class ValuedBatch(NamedTuple):
    """The applicants of a batch, and what outcomes of their segments are worth.

    Parameters
    ----------
    applicants
        The applicants. The ``label_value`` of each is that of the first outcome of the segment.
    label_values
        By segment, what the first, second, … outcome in the batch is worth.

    Examples
    --------
    >>> batch = value_batch(["Ann", "Bob"], ["new", "new"], [Offer(500, 0.8)] * 2, {"new": Belief(2, 1)}, 0.99)
    >>> [round(value) for value in batch.label_values["new"]]
    [155, 40]
    """

    applicants: list[Applicant]
    label_values: dict[str, tuple[float, ...]]


class Ranking(msgspec.Struct, frozen=True):
    """The applicants of a batch to accept, and how good the choice is.

    The ``label_value`` of an applicant here is what the outcome adds to those of the chosen ones before.

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


def rank(
    applicants: Iterable[Applicant],
    capacity: int | None = None,
    money: float | None = None,
    label_values: Mapping[str, Sequence[float]] | None = None,
) -> Ranking:
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
    label_values : mapping, optional
        By segment, what the first, second, … outcome in the batch is worth; the last number stands for all further
        ones. An outcome never counts more than one before it. Without it, each applicant's ``label_value`` counts in
        full, as if no other outcome of the segment came.

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
    choice = _Choice(batch, label_values or {}, most, budget)
    bound = choice.choose()
    valued = [
        msgspec.structs.replace(one, label_value=label)
        for one, label in zip(batch, choice.labels.tolist(), strict=True)
    ]
    key = _index if money is None else _index_per_money
    chosen = sorted((one for one, take in zip(valued, choice.chosen, strict=True) if take), key=key, reverse=True)
    others = sorted((one for one, take in zip(valued, choice.chosen, strict=True) if not take), key=key, reverse=True)
    index = math.fsum(one.index for one in chosen)
    return Ranking(
        chosen=tuple(chosen),
        waiting=tuple(one for one in others if one.index > 0.0),
        rejected=tuple(one for one in others if one.index <= 0.0),
        index=index,
        bound=max(bound, index),
        money=math.fsum(choice.used[choice.chosen].tolist()),
    )


def value_batch(
    names: Sequence[str],
    segments: Sequence[str],
    offers: Sequence[Offer],
    beliefs: Mapping[str, Belief],
    discount: float,
    money: Sequence[float] | None = None,
    tolerance: float = 1e-9,
) -> ValuedBatch:
    """Value the outcomes of a batch of applicants, as if later applicants were like the batch.

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
    ValuedBatch
        ``applicants``, in the same order, and the ``label_values`` by segment that :func:`rank` takes.

    Raises
    ------
    InputError
        If the lengths differ, or a segment has no belief.

    Examples
    --------
    >>> offers = [Offer(500, 0.8), Offer(5000, 0.8), Offer(1000, 0.8)]
    >>> beliefs = {"new": Belief(2, 1), "old": Belief(52, 43)}
    >>> batch = value_batch(["Ann", "Bob", "Cem"], ["new", "new", "old"], offers, beliefs, discount=0.99)
    >>> [(one.name, round(one.expected_profit), round(one.label_value)) for one in batch.applicants]
    [('Ann', -150, 220), ('Bob', -1500, 220), ('Cem', 27, 3)]
    >>> [round(value) for value in batch.label_values["new"]]
    [220, 168]
    >>> [one.name for one in rank(batch.applicants, capacity=2, label_values=batch.label_values).chosen]
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
    labels: dict[str, tuple[float, ...]] = {}
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
        count = min(len(own), MOST_LABELS)
        policy = problem.solve(beliefs[segment], rows=count, tolerance=tolerance)
        labels[segment] = tuple(policy.batch_label_values(count).tolist())
    uses = [None] * len(names) if money is None else list(money)
    batch = [
        Applicant(name, beliefs[segment], offer, labels[segment][0], use, segment)
        for name, segment, offer, use in zip(names, segments, offers, uses, strict=True)
    ]
    return ValuedBatch(batch, labels)


class _Choice:
    """A batch as arrays: who is chosen, and what each outcome adds to those chosen before."""

    def __init__(
        self, batch: list[Applicant], label_values: Mapping[str, Sequence[float]], most: int, budget: float
    ) -> None:
        self.most, self.budget = most, budget
        self.used = np.array([one.money for one in batch], dtype=np.float64)
        self.profit = np.array([one.expected_profit for one in batch], dtype=np.float64)
        self.chosen = np.zeros(len(batch), dtype=np.bool_)
        # Applicants whose outcomes overlap are a group; everybody else is alone in one.
        groups: dict[object, int] = {}
        series: list[tuple[float, ...]] = []
        self.group = np.zeros(len(batch), dtype=np.int64)
        for i, one in enumerate(batch):
            shared = one.segment in label_values
            key: object = one.segment if shared else i
            if key not in groups:
                groups[key] = len(groups)
                series.append(_falling(label_values[one.segment]) if shared else (one.label_value,))
            self.group[i] = groups[key]
        self.length = np.array([len(one) for one in series], dtype=np.int64)
        self.start = np.cumsum(self.length) - self.length
        self.series = np.array([value for one in series for value in one], dtype=np.float64)
        self.labels = np.zeros(len(batch))

    def choose(self) -> float:
        """Choose, and return the bound of the sum of the indices of any choice."""
        price, bound = self._price_of_money()
        worth, labels = self._worth(price)
        self.chosen = _best(worth, self.most)
        taken = np.bincount(self.group[self.chosen], minlength=self.length.size)
        spent, count = math.fsum(self.used[self.chosen].tolist()), int(self.chosen.sum())
        self.labels = np.where(self.chosen, labels, self._next(taken))
        # What is left serves the next ones that fit.
        density = (self.profit + self.labels) / (1.0 if math.isinf(self.budget) else self.used)
        for i in np.argsort(-density, kind="stable").tolist():
            if count == self.most:
                break
            label = self.series[self._place(self.group[i], taken[self.group[i]])]
            if not self.chosen[i] and self.profit[i] + label > 0.0 and spent + self.used[i] <= self.budget:
                self.chosen[i], self.labels[i] = True, label
                spent, count = spent + self.used[i], count + 1
                taken[self.group[i]] += 1
        self.labels = np.where(self.chosen, self.labels, self._next(taken))
        return bound

    def _price_of_money(self) -> tuple[float, float]:
        """Return the least price of money at which the best choice fits the budget, and the bound that it gives."""
        spent, bound = self._spending(0.0)
        if spent <= self.budget:
            return 0.0, bound
        first = self.series[self.start[self.group]]
        low, high = 0.0, float(np.max((self.profit + first) / self.used))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            spent, at_price = self._spending(middle)
            bound = min(bound, at_price)
            low, high = (middle, high) if spent > self.budget else (low, middle)
        return high, bound

    def _spending(self, price: float) -> tuple[float, float]:
        """Return the money that the best choice at a price uses, and the bound that the price gives."""
        worth, _ = self._worth(price)
        best = _best(worth, self.most)
        bound = math.fsum(worth[best].tolist()) + (price * self.budget if price else 0.0)
        return math.fsum(self.used[best].tolist()), bound

    def _worth(self, price: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what each is worth at a price of money, and the part of it that is the label.

        In each group, those with more profit after the price come first and get the more valuable labels.
        """
        # Nobody is chosen who needs more money than there is.
        profit = np.where(self.used <= self.budget, self.profit - price * self.used, -np.inf)
        order = np.lexsort((-profit, self.group))
        sizes = np.bincount(self.group, minlength=self.length.size)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size) - (np.cumsum(sizes) - sizes)[self.group[order]]
        labels = self.series[self._place(self.group, place)]
        return profit + labels, labels

    def _next(self, taken: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what one more outcome of each applicant's group is worth."""
        return np.asarray(self.series[self._place(self.group, taken[self.group])])

    def _place(self, group: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the value of a group's label with a number is; the last one stands for all further ones."""
        return np.asarray(self.start[group] + np.minimum(number, self.length[group] - 1))


def _best(worth: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Return which ones are worth most: at most so many, and only those worth something."""
    best = np.zeros(worth.size, dtype=np.bool_)
    best[np.argsort(-worth, kind="stable")[:most]] = True
    return best & (worth > 0.0)


def _falling(values: Sequence[float]) -> tuple[float, ...]:
    """Return values none of which is larger than one before it."""
    numbers = [real("label_values", value, least=0) for value in values] or [0.0]
    return tuple(np.minimum.accumulate(numbers).tolist())


def _index(applicant: Applicant) -> float:
    return applicant.index


def _index_per_money(applicant: Applicant) -> float:
    return applicant.index / (applicant.money or applicant.offer.amount)
