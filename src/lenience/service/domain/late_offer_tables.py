"""LateOfferTable: the solved table for offers, or for a doubtful prior, where outcomes come late.

With m outcomes pending, one more is worth D = V(m + 1) − V(m), and an offer is accepted while a(p̂ − c) + D > 0. So each
offer has its own exposure limit. The table holds D for each number of new successes and failures and each m, in single
precision. The solver bounds D from both sides and the middle of its bounds decides. They are wide far from the prior,
and the middle is much better than they are: with bounds ten times as narrow it moved by less than 1% of the label.

What is not stored counts as 0, e.g. more pending outcomes than the solver follows. Rows beyond the last one are
estimated (:mod:`lenience.policies.beliefs.estimated_labels`). A problem that is too large to prove in time is estimated
as a whole. The table that a version is created with is its record: decisions and audits look labels up in it.
"""

from __future__ import annotations

import math
from base64 import b64decode
from typing import TYPE_CHECKING

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ExposureObjective
from lenience.core.offers import Offer
from lenience.service.domain.exposure_tables import ESTIMATE_SECONDS, LATE_SECONDS
from lenience.service.domain.offer_tables import VALUE_SECONDS, Label, OfferTable, array_text, labels_beyond

if TYPE_CHECKING:
    from lenience.objectives.delayed import Delayed

NUMBERS = 500_000  # of a table, about: they set its number of rows
LEAST_ROWS, MOST_ROWS = 50, 400
LOOSE, LOOSEST = 1e-4, 1e-3  # largest tolerance of a proof before an estimate, and where nothing is estimated
ESTIMATED_ROWS = 1_000  # outcomes up to which pages draw an estimated table
VALUE_TOLERANCE = 1e-3  # of a value that is computed on request


class LateOfferBody(msgspec.Struct, frozen=True, tag="late_offers", tag_field="kind"):
    """A table for late offers as it is stored.

    ``first`` and ``count`` are as in :class:`OfferBody`. ``labels`` is base64 of single-precision numbers, ``width`` of
    them for each state: D for 0, 1, … pending outcomes. The bounds of D are at most ``gaps`` away from it, a number for
    each state. Labels of other states are worth ``small`` at most.
    """

    objective: ExposureObjective
    prior: MixtureBelief
    tolerance: float
    value: Bounds  # at the prior
    rows: int
    width: int
    first: str
    count: str
    labels: str
    gaps: str
    small: float
    beyond: str = ""  # JSON of estimated labels from the last row on; older tables have none


class EstimatedLateOfferBody(msgspec.Struct, frozen=True, tag="estimated_late_offers", tag_field="kind"):
    """An estimated policy as it is stored: its JSON."""

    policy: msgspec.Raw


class LateOfferTable(OfferTable):
    """Accept an offer while fewer outcomes than its own limit are pending."""

    def __init__(self, body: LateOfferBody) -> None:
        import numpy as np

        super().__init__(body.objective, body.prior, body.rows, body.first, body.count, beyond=body.beyond)
        self.body = body
        self._labels = np.frombuffer(b64decode(body.labels), dtype="<f4").reshape(-1, body.width)
        self._gaps = np.frombuffer(b64decode(body.gaps), dtype="<f4")

    def _stored(self, position: int | None, pending: int) -> Label:
        if position is None:
            return Label(0.0, Bounds(0.0, self.body.small))
        gap = float(self._gaps[position])
        if pending >= self.body.width:
            return Label(0.0, Bounds(0.0, float(self._labels[position, -1]) + gap))
        worth = float(self._labels[position, pending])
        return Label(worth, Bounds(max(worth - gap, 0.0), worth + gap))

    def limit(self, successes: float, failures: float) -> int | None:
        """Return the exposure limit if all have one cost. With offers, 0 if none is accepted with nothing pending."""
        if self.offers is None:
            return self.exposure_limit(self.choices[0], successes, failures)
        return super().limit(successes, failures)

    def exposure_limit(self, offer: Offer, successes: float, failures: float) -> int | None:
        """Return how many outcomes may be pending when an offer is accepted. None means any number."""
        profit = offer.expected_profit(self.rate(successes, failures))
        if profit > 0.0:
            return None
        if successes + failures >= self.rows and self.values_any_number:
            return self.beyond.first_rejection(successes, failures, profit)
        pending = 0
        while profit + self.label(successes, failures, pending).worth > 0.0:  # labels beyond the table are worth 0
            pending += 1
        return pending

    def batch_label_values(self, successes: float, failures: float, count: int, pending: int) -> tuple[float, ...]:
        """Return what the first, second, … outcome of a batch is worth: each makes one more pending."""
        return tuple(self.label(successes, failures, pending + k).worth for k in range(count))

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value from here on, in money: proved, or estimated where that takes too long."""
        from lenience.solvers.offers.delayed import solve_delayed_offers

        objective, belief = self.body.objective, self._after(successes, failures)
        try:
            solution = solve_delayed_offers(
                belief,
                self._each,
                objective.arrivals or 0.0,
                objective.label_delay,
                objective.discount_rate or 0.0,
                VALUE_TOLERANCE,
                VALUE_SECONDS,
            )
        except TooLargeError:
            return estimated_value(objective, belief, pending), None
        return solution.value_with(pending), None

    @property
    def statement(self) -> str:
        """The statement that is proved."""
        value = self.body.value
        return f"The value at the prior lies between {value.lower:,.6g} and {value.upper:,.6g}. Limits are estimates."

    @property
    def proved(self) -> bool:
        """False: the middle of the bounds decides."""
        return False


class EstimatedLateOfferTable(LateOfferTable):
    """Accept an offer while fewer outcomes than its estimated limit are pending, for any number of arrivals."""

    def __init__(self, body: EstimatedLateOfferBody) -> None:
        from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy

        self.estimated = EstimatedOfferExposurePolicy.from_json(bytes(body.policy))
        OfferTable.__init__(self, self.estimated.objective, self.estimated.prior, ESTIMATED_ROWS, "", "")

    @property
    def values_any_number(self) -> bool:
        """True: labels are estimated for any number of outcomes."""
        return True

    def label(self, successes: float, failures: float, pending: int = 0) -> Label:
        """Return what one more outcome is worth for later decisions, with its stated error."""
        return Label(*self.estimated.labels.worth_and_bounds(successes, failures, pending))

    def exposure_limit(self, offer: Offer, successes: float, failures: float) -> int | None:
        """Return how many outcomes may be pending when an offer is accepted. None means any number."""
        profit = offer.expected_profit(self.rate(successes, failures))
        return None if profit > 0.0 else self.estimated.labels.first_rejection(successes, failures, profit)

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the estimated value from here on, in money, less and plus its stated error."""
        return self.estimated.value(self._after(successes, failures), pending), None

    @property
    def statement(self) -> str:
        """What is stated about the estimate."""
        return self.estimated.certificate.describe(self.money)


def estimated_value(objective: ExposureObjective, belief: Belief | MixtureBelief, pending: int) -> Bounds:
    """Estimate the value at a belief, less and plus its stated error."""
    from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy

    return EstimatedOfferExposurePolicy.solve(objective, belief).value(belief, pending)


def solve_late_offer_table(
    objective: Delayed, prior: Belief | MixtureBelief, tolerance: float, seconds: float
) -> LateOfferBody | EstimatedLateOfferBody:
    """Solve a problem with late outcomes: proved if that fits the time, and otherwise estimated.

    The same problem gives the same table.
    """
    estimates = seconds >= ESTIMATE_SECONDS
    try:
        return _prove(objective, prior, tolerance, LOOSE if estimates else LOOSEST, min(seconds, LATE_SECONDS))
    except TooLargeError:
        if not estimates:
            raise
        from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy

        estimated = EstimatedOfferExposurePolicy.solve(objective, prior)
        return EstimatedLateOfferBody(msgspec.Raw(estimated.to_json().encode()))


def _prove(
    objective: Delayed, prior: Belief | MixtureBelief, tolerance: float, loosest: float, seconds: float
) -> LateOfferBody:
    """Solve as precisely as the time allows."""
    import numpy as np

    from lenience.policies.beliefs.offers import offers_of
    from lenience.solvers.offers.delayed import solve_delayed_offers

    offers = offers_of(objective)
    flying = objective.arrivals * objective.label_delay
    rows = int(min(max(math.sqrt(4.0 * NUMBERS / (flying + 4.0 * math.sqrt(flying) + 4.0)), LEAST_ROWS), MOST_ROWS))
    while True:
        try:
            solution = solve_delayed_offers(
                prior,
                offers,
                objective.arrivals,
                objective.label_delay,
                objective.discount_rate,
                tolerance,
                seconds,
                rows,
            )
            break
        except TooLargeError:
            tolerance *= 10
            if tolerance > loosest:
                raise
    lower, upper = solution.table
    rows = min(rows, solution.look_ahead)  # a small problem is solved for fewer rows
    order = [solution.rows[k].tolist() for k in range(rows)]
    places = np.concatenate([np.arange(begin, begin + count) for _, begin, count in order])
    middle = np.maximum((lower[places] + upper[places]) / 2.0, 0.0)
    gaps = ((upper[places] - lower[places]) / 2.0).max(axis=1, initial=0.0)
    single = middle.astype("<f4")
    gaps += np.abs(single - middle).max(axis=1, initial=0.0)
    return LateOfferBody(
        objective=objective,
        prior=MixtureBelief.of(prior),
        tolerance=tolerance,
        value=solution.value,
        rows=rows,
        width=single.shape[1],
        first=array_text(np.array([first for first, _, _ in order], dtype="<i4")),
        count=array_text(np.array([count for _, _, count in order], dtype="<i4")),
        labels=array_text(single),
        gaps=array_text(np.nextafter(gaps.astype("<f4"), np.float32(np.inf))),
        small=tolerance * objective.volume * offers.mean_amount,
        beyond=labels_beyond(prior, offers, objective.arrivals, objective.discount_rate, objective.label_delay, rows),
    )
