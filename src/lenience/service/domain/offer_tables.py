"""OfferTable: solved tables where amounts and break-evens differ, or where the prior may be wrong.

It holds the value of one label I for each number of new successes and failures. An offer with the amount at stake a and
the break-even c is accepted if and only if a(p̂ − c) + I > 0, so one table decides every offer. The numbers are stored.
A decision, and the audit of it, only looks them up.

What is not stored counts as 0, which is a lower bound: labels that are worth less than a millionth of the mean amount,
and all labels beyond the last row. There the policy accepts only what is profitable by itself. What that loses is
bounded too: the upper bound of such a label is that of knowing the success rate from then on.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.objective import Objective, StoppingObjective
from lenience.core.offers import Offer, Offers
from lenience.objectives.discounted import Discounted
from lenience.service.domain.between_rows import neighbours, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.policies.beliefs.estimated_labels import EstimatedLabels

SMALL = 1e-6  # times the mean amount: labels that are worth no more are not stored
MOST_LABELS = 100  # of a segment in one batch that are valued one by one; the last stands for all further ones
PROMPT = 1e-9  # mean delay of outcomes that come at once, in times between arrivals
VALUE_SECONDS = 3.0  # to compute a value on request, as estimated by the solver


class Label(NamedTuple):
    """What one more outcome is worth: the number that decides, and proved bounds."""

    worth: float
    bounds: Bounds


class OfferBody(msgspec.Struct, frozen=True, tag="offers", tag_field="kind"):
    """A table for offers as it is stored.

    ``first`` and ``count`` are base64 of 32-bit integers: the fewest successes of each row whose label is stored, and
    how many follow. ``labels`` is base64 of doubles: the lower bounds of these labels. The upper bounds are ``gap``
    higher at most. Other labels of these rows are worth ``small`` at most.
    """

    objective: StoppingObjective
    prior: MixtureBelief
    certificate: Certificate
    first: str
    count: str
    labels: str
    gap: float
    small: float
    charges: tuple[float, ...] | UnsetType = UNSET  # of each offer, for the limited capacity that it uses
    beyond: str = ""  # JSON of estimated labels from the last row on; older tables have none


class OfferTable:
    """Accept an offer where its expected profit and the value of the label are above 0.

    The classes below it say where the labels are stored. ``first`` and ``count`` are, for each row, the fewest
    successes whose label is stored, and how many follow.
    """

    horizon: int | None = None

    def __init__(
        self,
        objective: Objective,
        prior: MixtureBelief,
        rows: int,
        first: str,
        count: str,
        charges: Sequence[float] | UnsetType = UNSET,
        beyond: str = "",
    ) -> None:
        import numpy as np

        from lenience.policies.beliefs.offers import offers_of

        self.objective = objective
        self.rows = rows
        self.offers = objective.offers  # None where all have one cost, and only the prior may be wrong
        self._each: Offers = offers_of(objective)
        self.prior = prior.simplified
        self.cost: float = self._each.mean_cost if self.offers else objective.cost
        self._amounts = np.array(self._each.amount)
        self.charges: Sequence[float] = charges or ()  # of each offer, for the capacity that it uses
        self._costs = np.array(self._each.cost)  # the success rates at which each offer earns its charge too
        if self.charges:
            self._costs += np.array(self.charges) / self._amounts
        self._first = np.frombuffer(b64decode(first), dtype="<i4").tolist()
        self._count = np.frombuffer(b64decode(count), dtype="<i4").tolist()
        self._begin = [0, *np.cumsum(self._count).tolist()]
        self._beyond = beyond

    @cached_property
    def money(self) -> Money:
        """How to show amounts."""
        return Money(1.0, self._each.currency)

    @cached_property
    def choices(self) -> tuple[Offer, ...]:
        """All offers that arrivals bring."""
        return tuple(Offer(amount, cost) for amount, cost in zip(self._each.amount, self._each.cost, strict=True))

    @property
    def lowest_cost(self) -> float:
        """The lowest break-even of the offers, with the price of a limited capacity."""
        return self.cost if self.offers is None else float(self._costs.min())

    @property
    def one_menu(self) -> bool:
        """Whether every arrival brings the same choice, so that a request need not repeat it."""
        return self._each.menu_count == 1

    def belief(self, successes: float, failures: float) -> Belief:
        """Return the prior plus the outcomes: with a doubtful prior, the belief with the same mean and variance."""
        after = self._after(successes, failures)
        return after if isinstance(after, Belief) else Belief(after.n, after.s)

    def rate(self, successes: float, failures: float) -> float:
        """Return the expected success rate."""
        return self._after(successes, failures).mean

    @property
    def values_any_number(self) -> bool:
        """Whether labels are valued for any number of outcomes. Tables of earlier versions stop at their last row."""
        return bool(self._beyond)

    @cached_property
    def beyond(self) -> EstimatedLabels:
        """The estimated labels from the last row on."""
        from lenience.policies.beliefs.estimated_labels import EstimatedLabels

        return msgspec.json.decode(self._beyond, type=EstimatedLabels)

    def label(self, successes: float, failures: float, pending: int = 0) -> Label:
        """Return what one more outcome is worth for later decisions."""
        if successes + failures >= self.rows:
            most = self._gain_of_knowing(successes, failures)
            if not self._beyond:
                return Label(0.0, Bounds(0.0, most))
            worth, stated = self.beyond.worth_and_bounds(successes, failures, pending)
            worth = min(worth, most)
            return Label(worth, Bounds(min(stated.lower, worth), max(min(stated.upper, most), worth)))
        if not whole(successes, failures):
            return self._label_between(successes, failures, pending)
        successes, k = int(successes), int(successes + failures)
        at = successes - self._first[k]
        return self._stored(self._begin[k] + at if 0 <= at < self._count[k] else None, pending)

    def _label_between(self, successes: float, failures: float, pending: int) -> Label:
        """Interpolate between labels of the table, and between their bounds."""
        rate = self.rate(successes, failures)
        around = [
            (weight, self.label(good, bad, pending))
            for weight, good, bad in neighbours(successes, failures, rate, self.rows)
        ]
        lower = math.fsum(weight * label.bounds.lower for weight, label in around)
        upper = math.fsum(weight * label.bounds.upper for weight, label in around)
        worth = math.fsum(weight * label.worth for weight, label in around)
        return Label(worth, Bounds(min(lower, upper), upper))

    def label_value(self, successes: float, failures: float, pending: int = 0) -> Bounds:
        """Return proved bounds of what one more outcome is worth."""
        return self.label(successes, failures, pending).bounds

    def _stored(self, position: int | None, pending: int) -> Label:
        """Return a label of the table by its position, or that of a state which is not stored."""
        raise NotImplementedError

    def batch_label_values(self, successes: float, failures: float, count: int, pending: int) -> tuple[float, ...]:
        """Return what the first, second, … outcome of a batch is worth."""
        raise NotImplementedError

    def exposure_limit(self, offer: Offer, successes: float, failures: float) -> int | None:
        """Return how many outcomes may be pending when an offer is accepted. None means any number."""
        return None

    def limit(self, successes: float, failures: float) -> int | None:
        """Return None where one of the offers that arrivals bring is accepted, otherwise 0."""
        rate, label = self.rate(successes, failures), self.label(successes, failures).worth
        return None if float((self._amounts * (rate - self._costs)).max()) + label > 0.0 else 0

    def share_accepted(self, successes: float, failures: float, pending: int = 0) -> float:
        """Return the share of arrivals that bring an offer which is accepted."""
        rate, label = self.rate(successes, failures), self.label(successes, failures, pending).worth
        pays = (self._amounts * (rate - self._costs) + label > 0.0).tolist()
        menus = {menu for menu, one in zip(self._each.menu_of, pays, strict=True) if one}
        return math.fsum(self._each.share[menu] for menu in menus)

    @property
    def closed(self) -> bool:
        """Whether the first individual would be rejected, whatever offer it brings."""
        return self.limit(0, 0) == 0

    def threshold(self, successes: float, failures: float) -> float:
        """Return the least success rate at which one of the offers is accepted, at this value of a label."""
        label = self.label(successes, failures).worth
        return min(max(float((self._costs - label / self._amounts).min()), 0.0), 1.0)

    @property
    def volume(self) -> float | None:
        """The number of members still to come, each weighted by its discount."""
        return float(self.objective.volume)

    def least_accepted(self, outcomes: int) -> int | None:
        """Return the fewest successes among ``outcomes`` at which some offer is accepted, or None."""
        if outcomes >= self.rows:
            return None
        least = self.boundary[outcomes]
        return least if least <= outcomes else None

    @cached_property
    def boundary(self) -> list[int]:
        """The fewest successes of each row at which some offer is accepted, or more than the row's number if none."""
        least, boundary = 0, []
        for k in range(self.rows):
            while least <= k and self.limit(least, k - least) == 0:
                least += 1
            while least > 0 and least <= k and self.limit(least - 1, k - least + 1) is None:
                least -= 1
            boundary.append(least)
        return boundary

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value from here on, in money, or None if solving would take too long.

        There is no value of accepting the next individual, because it depends on the offer.
        """
        raise NotImplementedError

    @property
    def statement(self) -> str:
        """The statement that is proved."""
        raise NotImplementedError

    @property
    def proved(self) -> bool:
        """Whether every decision of the table is proved optimal."""
        raise NotImplementedError

    def _after(self, successes: float, failures: float) -> Belief | MixtureBelief:
        if isinstance(self.prior, Belief):
            return Belief(self.prior.n + successes + failures, self.prior.s + successes)
        return self.prior.after(successes + failures, successes)

    def _gain_of_knowing(self, successes: float, failures: float) -> float:
        """Return what it is worth at most to know the success rate from the next arrival on.

        Knowing p adds E φ(p) − φ(p̂) an arrival, where φ is the best profit at a known rate. φ is convex with a slope
        from 0 to the mean amount, so that is at most half a standard deviation of p times the mean amount.
        """
        deviation = math.sqrt(self._after(successes, failures).variance)
        return self._volume_in_money * deviation / 2.0

    @cached_property
    def _volume_in_money(self) -> float:
        """The discounted number of arrivals times their mean amount."""
        return float(self.objective.volume) * self._each.mean_amount


class PromptOfferTable(OfferTable):
    """The table where outcomes come without delay. Lower bounds decide."""

    def __init__(self, body: OfferBody) -> None:
        import numpy as np

        super().__init__(
            body.objective, body.prior, body.certificate.rows, body.first, body.count, body.charges, body.beyond
        )
        self.body = body
        self._labels = np.frombuffer(b64decode(body.labels), dtype="<f8")

    def _stored(self, position: int | None, pending: int) -> Label:
        if position is None:
            return Label(0.0, Bounds(0.0, self.body.small))
        lower = float(self._labels[position])
        return Label(lower, Bounds(lower, lower + self.body.gap))

    def batch_label_values(self, successes: float, failures: float, count: int, pending: int) -> tuple[float, ...]:
        """Return what the first, second, … outcome is worth if all of a batch are obtained at the same time."""
        return expected_labels(self, successes, failures, count)

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value from here on, in money, or None if solving would take too long.

        There is no value of accepting the next individual, because it depends on the offer.
        """
        from lenience.solvers.offers.solve import offer_seconds, solve_offers

        belief, objective = self._after(successes, failures), self.body.objective
        tolerance = self.body.certificate.tolerance
        if offer_seconds(belief, self._each, objective.discount, 1, tolerance) > VALUE_SECONDS:
            return None, None
        return solve_offers(belief, self._each, objective.discount, 1, tolerance, charges=self.charges).value, None

    @property
    def statement(self) -> str:
        """The statement that is proved."""
        return self.body.certificate.statement

    @property
    def proved(self) -> bool:
        """Whether every decision of the table is proved optimal."""
        return self.body.certificate.proved


def expected_labels(table: OfferTable, successes: float, failures: float, count: int) -> tuple[float, ...]:
    """Return what each of several outcomes adds: the k-th, the expected value of a label after k − 1 outcomes."""
    chances, values = [1.0], list[float]()  # the probability of each number of new successes
    for k in range(min(count, MOST_LABELS)):
        states = [(successes + j, failures + k - j) for j in range(k + 1)]
        labels = [table.label(*state).worth for state in states]
        values.append(math.fsum(chance * label for chance, label in zip(chances, labels, strict=True)))
        good = [chance * table.rate(*state) for chance, state in zip(chances, states, strict=True)]
        bad = [chance - part for chance, part in zip(chances, good, strict=True)]
        chances = [a + b for a, b in zip([*bad, 0.0], [0.0, *good], strict=True)]
    return tuple(values)


def solve_offer_table(
    objective: Discounted,
    prior: Belief | MixtureBelief,
    rows: int,
    tolerance: float,
    charges: tuple[float, ...] = (),
) -> OfferBody:
    """Solve a problem with offers, or with a doubtful prior. The same problem gives the same table.

    ``charges`` are what accepting each offer costs beside its expected loss.
    """
    import numpy as np

    from lenience.policies.beliefs.offers import offers_of
    from lenience.solvers.offers.solve import solve_offers

    offers = offers_of(objective)
    solution = solve_offers(prior, offers, objective.discount, rows, tolerance, charges=charges)
    small = SMALL * offers.mean_amount
    lower, upper = solution.table
    first = np.zeros(rows, dtype="<i4")
    count = np.zeros(rows, dtype="<i4")
    parts: list[NDArray[np.float64]] = []
    gap = 0.0
    for k, (start, begin, size) in enumerate(solution.rows.tolist()):
        worth = np.flatnonzero(upper[begin : begin + size] > small)
        if worth.size:
            here = slice(begin + int(worth[0]), begin + int(worth[-1]) + 1)
            first[k], count[k] = start + int(worth[0]), here.stop - here.start
            parts.append(lower[here])
            gap = max(gap, float((upper[here] - lower[here]).max()))
    labels = np.concatenate(parts) if parts else np.zeros(0)
    return OfferBody(
        objective=objective,
        prior=MixtureBelief.of(prior),
        certificate=Certificate(
            tolerance, rows, solution.look_ahead, solution.undecided, solution.width, solution.states
        ),
        first=array_text(first),
        count=array_text(count),
        labels=array_text(labels.astype("<f8")),
        gap=gap,
        small=small,
        charges=charges or UNSET,
        beyond=labels_beyond(prior, offers, objective.discount, 1.0 - objective.discount, PROMPT, rows, charges),
    )


def labels_beyond(
    prior: Belief | MixtureBelief,
    offers: Offers,
    arrivals: float,
    discount_rate: float,
    label_delay: float,
    rows: int,
    charges: tuple[float, ...] = (),
) -> str:
    """Return estimated labels from the last row of a table on, as JSON text; empty if nothing comes later."""
    from lenience.policies.beliefs.estimated_labels import EstimatedLabels

    if arrivals == 0.0:
        return ""
    labels, _ = EstimatedLabels.solve(prior, offers, arrivals, label_delay, discount_rate, charges, float(rows))
    return msgspec.json.encode(labels).decode()


def array_text(numbers: NDArray[np.generic]) -> str:
    """Return the bytes of an array as base64."""
    return b64encode(numbers.tobytes()).decode()
