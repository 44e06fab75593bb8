"""StoppingTable: accept while there are enough successes, then stop for good.

A stopping table holds, for each number of outcomes k, the least accepted number of successes, as one bit per row (it
rises by 0 or 1). Beyond its last row, rates above the cost are accepted and rates at or below the last row's stop are
rejected. Both are proved, because thresholds rise to the cost. In the sliver between them the solver extends the table,
once per process.
"""

from __future__ import annotations

from array import array
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.objective import StoppingObjective
from lenience.core.offers import Offers
from lenience.service.domain.between_rows import interpolated, whole
from lenience.solvers.stopping.leniency_curve import threshold_on_curve

VALUE_SECONDS = 3.0  # to compute a value on request, as estimated by the solver


class StoppingBody(msgspec.Struct, frozen=True, tag="stopping", tag_field="kind"):
    """A stopping table as it is stored."""

    objective: StoppingObjective
    prior: Belief
    certificate: Certificate
    first: int
    rises: str  # base64 of one bit per row: whether it requires one more success than the row before
    curve: list[float]  # n (c − c_n) as a Chebyshev series in log n from the prior's n on; may be empty
    leniency: float = 0.0  # B(c, γ), the limit of n (c − c_n); only in older tables without a curve
    curve_to: float = 0.0  # largest n of the curve; older tables have 0, which means the last row's n


class StoppingTable:
    """Accept while there are enough successes, then stop for good."""

    offers: Offers | None = None

    def __init__(self, body: StoppingBody) -> None:
        import numpy as np

        self.body = body
        self.prior, self.cost = body.prior, body.objective.cost
        self.rows = body.certificate.rows
        self.horizon = body.objective.horizon
        bits = np.unpackbits(np.frombuffer(b64decode(body.rises), dtype=np.uint8), count=self.rows - 1)
        least = body.first + np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(bits, dtype=np.int64)))
        self._least = array("i", least.astype(np.int32).tobytes())

    @property
    def lowest_cost(self) -> float:
        """The lowest break-even: the only one here."""
        return self.cost

    def belief(self, successes: float, failures: float) -> Belief:
        """Return the prior plus the outcomes."""
        return Belief(self.prior.n + successes + failures, self.prior.s + successes)

    def limit(self, successes: float, failures: float) -> int | None:
        """Return the exposure limit: 0, or None for no limit."""
        if not whole(successes, failures):
            return None if self.belief(successes, failures).mean > self.threshold(successes, failures) else 0
        successes, k = int(successes), int(successes + failures)
        if k < self.rows:
            return None if successes >= self._least[k] else 0
        return None if self._beyond(k, successes) else 0

    @property
    def closed(self) -> bool:
        """Whether the first individual would be rejected."""
        return self.limit(0, 0) == 0

    def threshold(self, successes: float, failures: float) -> float:
        """Return c_n, to within one observation of the lattice, consistent with every decision."""
        if not whole(successes, failures):
            rate = self.belief(successes, failures).mean
            return interpolated(self.threshold, successes, failures, rate, self.rows)
        k = min(int(successes + failures), self.rows - 1)
        n = self.prior.n + k
        least = self._least[k]
        low = (self.prior.s + least - 1) / n if least > 0 else 0.0
        high = min(self.cost, (self.prior.s + least) / n) if least <= k else self.cost
        return min(max(self._curve(n), low), max(high, low))

    @property
    def volume(self) -> float | None:
        """The number of members still to come, each weighted by its discount. None with a horizon."""
        return self.body.objective.volume if self.horizon is None else None

    def least_accepted(self, outcomes: int) -> int | None:
        """Return the fewest successes among ``outcomes`` that are accepted, or None if none are."""
        if outcomes < self.rows:
            least = self._least[outcomes]
            return least if least <= outcomes else None
        return None

    @property
    def boundary(self) -> Sequence[int]:
        """The least accepted number of successes of each row, or more than the row's number if none is."""
        return self._least

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value from here on and the value of accepting the next individual.

        The second is None after the horizon. Both are None if solving would take too long.
        """
        policy = self._policy()
        belief = Belief(self.prior.n + successes + failures, self.prior.s + successes)
        if self.horizon is not None and successes + failures >= self.horizon:
            return Bounds(0.0, 0.0), None
        left = self.body.objective.remaining(int(successes + failures))
        if left is None or left.solve_seconds(belief, 1, self.body.certificate.tolerance) > VALUE_SECONDS:
            return None, None
        return policy.value(belief), policy.continuation(belief)

    @property
    def statement(self) -> str:
        """The statement that is proved."""
        return self.body.certificate.statement

    @property
    def proved(self) -> bool:
        """Whether every decision of the table is proved optimal."""
        return self.body.certificate.proved

    def _curve(self, n: float) -> float:
        body = self.body
        if body.curve:
            return threshold_on_curve(self.cost, body.curve, self.prior.n, body.curve_to or self.prior.n + self.rows, n)
        if self.horizon is not None:
            # Not computed: take the middle between the rejected and the accepted rates.
            return min(self.cost, max(self.prior.s + self._least[round(n - self.prior.n)] - 0.5, 0.0) / n)
        # Older tables, and problems without a discount: an approximation.
        return self.cost - body.leniency / n / (1 + 1 / (4 * n * (1 - body.objective.discount)))

    def _beyond(self, k: int, successes: int) -> bool:
        if self.horizon is not None:
            return False
        n, s = self.prior.n + k, self.prior.s + successes
        if s > self.cost * n:
            return True
        last = self.rows - 1
        if s * (self.prior.n + last) <= (self.prior.s + self._least[last] - 1) * n:
            return False
        return bool(self._policy().accepts(Belief(n, s)))

    def _policy(self) -> Any:
        import numpy as np

        from lenience.policies.beliefs.optimal import OptimalPolicy

        body = self.body
        return OptimalPolicy(body.objective, self.prior, np.asarray(self._least, dtype=np.int64), body.certificate)
