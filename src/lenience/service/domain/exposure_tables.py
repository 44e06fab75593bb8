"""ExposureTable and EstimatedTable: how many outcomes may be pending where they come late.

An exposure table holds proved limits. A problem that is too large to prove in time has an estimated table, with the
stated error of its value. Both store the policy's own JSON. The table that a version is created with is its record:
decisions and audits look limits up in it, and solve nothing again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.lattice import AT_COST
from lenience.core.offers import Offers
from lenience.objectives.discounted import Discounted
from lenience.service.domain.between_rows import interpolated, interpolated_limit, whole
from lenience.service.domain.threshold_curve import fitted_curve
from lenience.solvers.stopping.leniency_curve import threshold_on_curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.objectives.delayed import Delayed
    from lenience.policies.beliefs.exposure import ExposurePolicy

VALUE_SECONDS = 3.0  # to compute a value on request, as estimated by the solver
VALUE_TOLERANCE = 1e-4  # of such a value
LATE_SECONDS = 10.0  # to prove limits, as estimated by the solver
ESTIMATE_SECONDS = 2.0  # an estimate needs about as long; with less time nothing is estimated
LOOSE, LOOSEST = 1e-4, 1e-2  # largest tolerance of a proof before an estimate, and where nothing is estimated
ESTIMATED_ROWS = 5_000  # outcomes up to which pages draw an estimated table
KEPT_LIMITS = 4_096
MOST_OUTCOMES = 10**12  # no segment has more


class ExposureBody(msgspec.Struct, frozen=True, tag="exposure", tag_field="kind"):
    """An exposure policy as it is stored: its JSON, and the curve of thresholds without delay."""

    policy: msgspec.Raw
    curve: list[float] = []
    curve_to: float = 0.0


class EstimatedBody(ExposureBody, frozen=True, tag="estimated_exposure", tag_field="kind"):
    """Estimated limits as they are stored, in the same fields."""


class ExposureTable:
    """Accept while fewer outcomes than the limit are pending."""

    horizon: int | None = None
    offers: Offers | None = None

    def __init__(self, body: ExposureBody) -> None:
        from lenience.policies.beliefs.exposure import ExposurePolicy

        self.body = body
        self.policy = ExposurePolicy.from_json(bytes(body.policy))
        self.prior, self.cost = self.policy.prior, self.policy.objective.cost
        self.rows = self.policy.rows
        self._first: list[int] = self.policy.first.tolist()
        self._offsets = self.policy.offsets.tolist()
        self._limits = self.policy.limits.tolist()

    @property
    def lowest_cost(self) -> float:
        """The lowest break-even: the only one here."""
        return self.cost

    def belief(self, successes: float, failures: float) -> Belief:
        """Return the prior plus the outcomes."""
        return Belief(self.prior.n + successes + failures, self.prior.s + successes)

    def limit(self, successes: float, failures: float) -> int | None:
        """Return the exposure limit, or None for no limit."""
        if not whole(successes, failures):
            belief = self.belief(successes, failures)
            if belief.s >= self.cost * belief.n * (1 - AT_COST):
                return None
            # The policy answers whole counts beyond its rows at once, but would solve for others.
            return interpolated_limit(self.limit, successes, failures, belief.mean, MOST_OUTCOMES)
        successes, k = int(successes), int(successes + failures)
        if k >= self.rows:
            beyond: int | None = self.policy.limit(self.belief(successes, failures))
            return beyond
        # Like the policy itself: a rate that equals the cost up to rounding counts as at the cost.
        if self.prior.s + successes >= self.cost * (self.prior.n + k) * (1 - AT_COST):
            return None
        at = self._offsets[k] + successes - self._first[k]
        if successes < self._first[k]:
            return 0
        return int(self._limits[at]) if at < self._offsets[k + 1] else None

    @property
    def closed(self) -> bool:
        """Whether the first individual would be rejected."""
        return self.limit(0, 0) == 0

    def threshold(self, successes: float, failures: float) -> float:
        """Return the threshold, to within one observation: between the rates with limit 0 and limit 1."""
        if not whole(successes, failures):
            rate = self.belief(successes, failures).mean
            return interpolated(self.threshold, successes, failures, rate, self.rows)
        k = min(int(successes + failures), self.rows - 1)
        if self.body.curve:
            return float(self._thresholds[k])
        # Older tables: this goes up and down by one observation, and is reproduced as it was.
        return float(min(self.cost, max(self.prior.s + self._first[k] - 0.5, 0.0) / (self.prior.n + k)))

    @cached_property
    def _thresholds(self) -> NDArray[np.float64]:
        """The threshold of each row, rising with n.

        It is above every rate that stops with fewer observations and below every rate accepted with more. Where every
        reachable rate is accepted, it is the threshold without delay, which is a lower bound.
        """
        import numpy as np

        first = np.asarray(self._first[: self.rows])
        n = self.prior.n + np.arange(first.size)
        stopped = np.where(first > 0, np.maximum(self.prior.s + first - 1, 0.0) / n, [self.at_once(size) for size in n])
        low = np.maximum.accumulate(np.minimum(stopped, self.cost))
        high = np.minimum.accumulate(np.minimum((self.prior.s + first) / n, self.cost)[::-1])[::-1]
        own = np.minimum(np.maximum(self.prior.s + first - 0.5, 0.0) / n, self.cost)
        return np.where(first == 0, stopped, np.where(low < high, (low + high) / 2, own))

    def at_once(self, n: float) -> float:
        """Return about the threshold if outcomes came without delay (a lower bound), or 0 if unknown."""
        curve = self.body.curve
        return max(threshold_on_curve(self.cost, curve, self.prior.n, self.body.curve_to, n), 0.0) if curve else 0.0

    @property
    def volume(self) -> float:
        """The number of members still to come, each weighted by its discount."""
        return float(self.policy.objective.volume)

    def least_accepted(self, outcomes: int) -> int | None:
        """Return the fewest successes among ``outcomes`` at which one may be pending, or None."""
        if outcomes >= self.rows:
            return None
        least = int(self.boundary[outcomes])
        return least if least <= outcomes else None

    @property
    def boundary(self) -> Sequence[int]:
        """The least number of successes of each row at which one may be pending."""
        return self._first

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value before the next arrival, twice, or None if solving would take too long."""
        belief = Belief(self.prior.n + successes + failures, self.prior.s + successes)
        if belief == self.prior and pending < len(self.policy.lower):
            value = self.policy.value(belief, pending)
        else:
            try:
                value = self.policy.objective.enclose(belief, pending, VALUE_TOLERANCE, VALUE_SECONDS)[0]
            except TooLargeError:
                return None, None
        return value, value

    @property
    def statement(self) -> str:
        """The statement that is proved."""
        return str(self.policy.certificate.statement)

    @property
    def proved(self) -> bool:
        """Whether every limit of the table is proved."""
        return bool(self.policy.certificate.proved)


class EstimatedTable(ExposureTable):
    """Accept while fewer outcomes than the estimated limit are pending."""

    def __init__(self, body: EstimatedBody) -> None:
        from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy

        self.body = body
        self.estimated = EstimatedExposurePolicy.from_json(bytes(body.policy))
        self.prior, self.cost = self.estimated.prior, self.estimated.objective.cost
        self.rows = ESTIMATED_ROWS
        self._known = lru_cache(KEPT_LIMITS)(self.estimated.limit)

    @cached_property
    def _thresholds(self) -> NDArray[np.float64]:
        """The rate from which on one outcome may be pending, for each number of outcomes: by bisection."""
        import numpy as np

        n = self.prior.n + np.arange(self.rows)
        low, high = np.zeros(self.rows), np.full(self.rows, self.cost)
        for _ in range(40):
            middle = (low + high) / 2
            accepted = self.estimated.exposure(n, middle * n) > 0
            low, high = np.where(accepted, low, middle), np.where(accepted, middle, high)
        return np.asarray(np.minimum(high, self.cost))

    @cached_property
    def _least(self) -> list[int]:
        import numpy as np

        n = self.prior.n + np.arange(self.rows)
        least = np.ceil(self._thresholds * n - self.prior.s - 1e-9)
        return [int(value) for value in np.maximum(least, 0.0)]

    @property
    def boundary(self) -> Sequence[int]:
        """The least number of successes of each row at which one may be pending."""
        return self._least

    def limit(self, successes: float, failures: float) -> int | None:
        """Return the exposure limit, or None for no limit."""
        return self._known(self.belief(successes, failures))

    def threshold(self, successes: float, failures: float) -> float:
        """Return the rate from which on one outcome may be pending."""
        if not whole(successes, failures):
            rate = self.belief(successes, failures).mean
            return interpolated(self.threshold, successes, failures, rate, self.rows)
        return float(self._thresholds[min(int(successes + failures), self.rows - 1)])

    @property
    def volume(self) -> float:
        """The number of members still to come, each weighted by its discount."""
        return float(self.estimated.objective.volume)

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the estimated value before the next arrival, less and plus its stated error, twice."""
        value = self.estimated.value(self.belief(successes, failures), pending)
        return value, value

    @property
    def statement(self) -> str:
        """What is stated about the estimate."""
        return self.estimated.certificate.statement

    @property
    def proved(self) -> bool:
        """False: limits are estimates."""
        return False


def solve_exposure_table(
    objective: Delayed, prior: Belief, tolerance: float, seconds: float, rows: int | None, curve: bool
) -> ExposureBody:
    """Solve a problem with late outcomes: proved if that fits the time, and otherwise estimated.

    The same problem gives the same table.
    """
    coefficients, reach = fitted_curve(Discounted(objective.cost, objective.discount), prior.n) if curve else ([], 0.0)
    estimates = seconds >= ESTIMATE_SECONDS
    try:
        proved = prove_in_time(objective, prior, tolerance, LOOSE if estimates else LOOSEST, seconds, rows)
    except TooLargeError:
        if not estimates:
            raise
        from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy

        estimated = EstimatedExposurePolicy.solve(objective, prior)
        return EstimatedBody(msgspec.Raw(estimated.to_json().encode()), coefficients, reach)
    return ExposureBody(msgspec.Raw(proved.to_json().encode()), coefficients, reach)


def prove_in_time(
    objective: Delayed, prior: Belief, tolerance: float, loosest: float, seconds: float, rows: int | None
) -> ExposurePolicy:
    """Solve as precisely as the time allows: loosen the tolerance until the solver is fast enough."""
    while True:
        try:
            return objective.solve_proved(prior, rows, tolerance, seconds=seconds)
        except TooLargeError:
            tolerance *= 10
            if tolerance > loosest:
                raise
