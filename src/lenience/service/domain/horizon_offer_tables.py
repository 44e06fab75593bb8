"""HorizonOfferTable: the solved table for offers, or for a doubtful prior, over a known number of applicants.

With h applicants left, an offer is accepted if and only if a(p̂ − c) + I_h > 0, where I_h is the value of one label. A
rejection is not final, so the number left belongs to the state. The table holds I_h for each number of new successes
and failures and for each h, in single precision. Where that would be too many numbers, it holds some h only, each a few
percent more than the one before. Between two of them the label is interpolated. Where the larger one is not stored, the
smaller one decides: fewer applicants left make a label worth less.

What is not stored counts as 0: labels that are worth less than a millionth of the mean amount.
"""

from __future__ import annotations

import math
from base64 import b64decode
from bisect import bisect_right
from copy import copy
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import StoppingObjective
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.service.domain.offer_tables import SMALL, VALUE_SECONDS, Label, OfferTable, array_text, expected_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

NUMBERS = 2_000_000  # of a table, about
STEPS = (1.0, 1.02, 1.05, 1.1, 1.2)  # from one stored number of applicants left to the next, at least
ROUNDING = 2.0**-23  # of a number in single precision, relative


class HorizonOfferBody(msgspec.Struct, frozen=True, tag="horizon_offers", tag_field="kind"):
    """A table for offers with a horizon as it is stored.

    ``first`` and ``count`` are as in :class:`OfferBody`. ``left`` is base64 of 32-bit integers: the numbers of
    applicants left for which labels are stored. ``labels`` is base64 of single-precision numbers, for each number left
    those of the rows that can have been reached: lower bounds of a label. The upper bounds are ``gap`` higher at most.
    Other labels are worth ``small`` at most.
    """

    objective: StoppingObjective
    prior: MixtureBelief
    tolerance: float
    value: Bounds  # at the prior
    undecided: int
    left: str
    first: str
    count: str
    labels: str
    gap: float
    small: float


class HorizonOfferTable(OfferTable):
    """Accept an offer where its expected profit and the value of the label are above 0, by the applicants left."""

    horizon: int

    def __init__(self, body: HorizonOfferBody) -> None:
        import numpy as np

        self.horizon = body.objective.horizon or 1
        super().__init__(body.objective, body.prior, self.horizon, body.first, body.count)
        self.body = body
        self.left: int | None = None  # applicants left; by default as many as if everyone so far was accepted
        self._lefts: list[int] = np.frombuffer(b64decode(body.left), dtype="<i4").tolist()
        self._labels = np.frombuffer(b64decode(body.labels), dtype="<f4")
        ends = [self._begin[self.horizon - left + 1] for left in self._lefts]
        self._planes = [0, *np.cumsum(ends).tolist()]

    def after(self, arrivals: int) -> HorizonOfferTable:
        """Return the same table after a number of applicants."""
        table = copy(self)
        table.left = self.left_after(arrivals)
        return table

    def left_after(self, arrivals: int) -> int:
        """Return how many applicants are left after a number of them."""
        return max(self.horizon - arrivals, 0)

    def _remaining(self, outcomes: float) -> int:
        """Return the number of applicants left."""
        return max(self.horizon - int(outcomes), 0) if self.left is None else self.left

    def label(self, successes: float, failures: float, pending: int = 0) -> Label:
        """Return what one more outcome is worth for later decisions, with the applicants left."""
        k, left = int(successes + failures), self._remaining(successes + failures)
        if left <= 1 or k >= self.horizon:
            return Label(0.0, Bounds(0.0, 0.0))  # no later decision
        below = bisect_right(self._lefts, left) - 1
        if k > self.horizon - self._lefts[below]:  # more outcomes than applicants so far: a question, not a decision
            return Label(0.0, Bounds(0.0, self._gain_of_knowing(successes, failures)))
        at = int(successes) - self._first[k]
        if not 0 <= at < self._count[k]:
            return Label(0.0, Bounds(0.0, self.body.small))
        position = self._begin[k] + at
        lower = worth = upper = float(self._labels[self._planes[below] + position])
        if self._lefts[below] < left:
            # The states of the next number left may not reach this far; its label is then not known from above.
            upper = math.inf
            if below + 1 < len(self._lefts) and k <= self.horizon - self._lefts[below + 1]:
                upper = float(self._labels[self._planes[below + 1] + position])
                part = (left - self._lefts[below]) / (self._lefts[below + 1] - self._lefts[below])
                worth += part * (upper - worth)
                lower, upper = min(lower, upper), max(lower, upper)
        bound = min(upper * (1.0 + ROUNDING) + self.body.gap, max(self._gain_of_knowing(successes, failures), worth))
        return Label(worth, Bounds(lower, max(bound, worth)))

    def batch_label_values(self, successes: float, failures: float, count: int, pending: int) -> tuple[float, ...]:
        """Return what the first, second, … outcome is worth if all of a batch are obtained at the same time."""
        return expected_labels(self, successes, failures, count)

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value from here on, in money, or None if solving would take too long."""
        from lenience.solvers.offers.horizon import HorizonTables, horizon_offer_seconds

        belief, left = self._after(successes, failures), self._remaining(successes + failures)
        if left < 1:
            return Bounds(0.0, 0.0), None
        discount, tolerance = self.objective.discount, self.body.tolerance
        try:
            if horizon_offer_seconds(belief, self._each, discount, left, tolerance) > VALUE_SECONDS:
                return None, None
            return HorizonTables(belief, self._each, discount, left, tolerance, keep=False).value, None
        except TooLargeError:
            return None, None

    @property
    def volume(self) -> float | None:
        """The number of applicants still to come, each weighted by its discount. None if it is not known."""
        if self.left is None:
            return None
        left = msgspec.structs.replace(self.body.objective, horizon=max(self.left, 1))  # type: ignore[type-var]
        return float(left.volume) if self.left else 0.0

    @property
    def statement(self) -> str:
        """The statement that is proved."""
        value, exact = self.body.value, len(self._lefts) == self.horizon
        stored = "" if exact else " Labels are interpolated between the numbers of applicants left that are stored."
        return f"The value at the prior lies between {value.lower:,.6g} and {value.upper:,.6g}.{stored}"

    @property
    def proved(self) -> bool:
        """Whether every decision of the table is proved optimal."""
        return len(self._lefts) == self.horizon and self.body.undecided == 0

    def _gain_of_knowing(self, successes: float, failures: float) -> float:
        deviation = math.sqrt(self._after(successes, failures).variance)
        return self._remaining(successes + failures) * self._each.mean_amount * deviation / 2.0


def solve_horizon_offer_table(
    objective: FiniteHorizon, prior: Belief | MixtureBelief, tolerance: float
) -> HorizonOfferBody:
    """Solve a problem with a horizon. The same problem gives the same table."""
    import numpy as np

    from lenience.policies.beliefs.offers import offers_of
    from lenience.solvers.offers.horizon import HorizonTables

    offers, horizon = offers_of(objective), objective.horizon
    solved = HorizonTables(prior, offers, objective.discount, horizon, tolerance)
    band = solved.band
    rows = np.repeat(np.arange(horizon), band.high[:horizon] - band.low[:horizon] + 1)
    states = np.concatenate([np.arange(band.low[k], band.high[k] + 1) for k in range(horizon)])

    def plane(left: int) -> NDArray[np.float64]:
        """Return the labels of all states that can have been reached with a number of applicants left."""
        size = int(np.searchsorted(rows, horizon - left, side="right"))
        return solved.state_labels(rows[:size], states[:size], left)

    small = SMALL * offers.mean_amount
    largest = np.zeros(rows.size)
    for left in _spaced(horizon, STEPS[-1]):
        labels = plane(left)
        np.maximum(largest[: labels.size], labels, out=largest[: labels.size])
    first = np.zeros(horizon, dtype="<i4")
    count = np.zeros(horizon, dtype="<i4")
    kept = np.zeros(rows.size, dtype=np.bool_)
    for k in range(horizon):
        start, stop = np.searchsorted(rows, [k, k + 1]).tolist()
        worth_it = start + np.flatnonzero(largest[start:stop] > 0.5 * small)
        if worth_it.size:
            begin, end = max(int(worth_it[0]) - 1, start), min(int(worth_it[-1]) + 2, stop)
            first[k], count[k] = states[begin], end - begin
            kept[begin:end] = True
    lefts = _stored_lefts(count.tolist(), horizon)
    stored = []
    for left in lefts:
        labels = plane(left)
        small = max(small, float(labels[~kept[: labels.size]].max(initial=0.0)))
        stored.append(labels[kept[: labels.size]])
    exact = np.concatenate(stored)
    single = exact.astype("<f4")
    single = np.where(single > exact, np.nextafter(single, np.float32(0.0)), single)  # stay a lower bound
    return HorizonOfferBody(
        objective=objective,
        prior=MixtureBelief.of(prior),
        tolerance=tolerance,
        value=solved.value,
        undecided=int(solved.undecided),
        left=array_text(np.array(lefts, dtype="<i4")),
        first=array_text(first),
        count=array_text(count),
        labels=array_text(single.astype("<f4")),
        gap=solved.width,
        small=small,
    )


def _stored_lefts(count: Sequence[int], horizon: int) -> list[int]:
    """Return the numbers of applicants left for which labels are stored: all, or as many as fit.

    ``count`` is the number of states of each row.

    >>> _stored_lefts([1, 2, 3, 4], 4)
    [1, 2, 3, 4]
    """
    ends = [0, *accumulate(count)]
    for step in STEPS:
        lefts = _spaced(horizon, step)
        numbers = sum(ends[horizon - left + 1] for left in lefts)
        if numbers <= NUMBERS:
            return lefts
    raise TooLargeError(
        "Storing a table for offers with this horizon",
        size=numbers,
        allowed_size=NUMBERS,
        unit="numbers",
        field="objective.horizon",
        value=horizon,
        hint="Use a smaller horizon or fewer offers, or an objective without a horizon.",
    )


def _spaced(horizon: int, step: float) -> list[int]:
    """Return numbers from 1 to the horizon, each at most ``step`` times the one before, or one more.

    >>> _spaced(9, 1.5)
    [1, 2, 3, 4, 6, 9]
    """
    numbers = [1]
    while numbers[-1] < horizon:
        numbers.append(min(max(numbers[-1] + 1, int(step * numbers[-1])), horizon))
    return numbers
