"""Solved tables: the optimal decision at every belief of a segment, stored so that a decision needs no solver.

Tables answer one question, the *exposure limit* after a number of new successes and failures: how many outcomes may be
pending when one more individual is accepted. In a stopping problem the limit is zero or infinite. Counts are whole
numbers on the prior's lattice, so nothing is rounded. Only where open loans count in part, tables are interpolated
(:mod:`lenience.service.domain.between_rows`). Where amounts differ, the value of one label is stored instead
(:mod:`lenience.service.domain.offer_tables`).

A stopping table holds, for each number of outcomes k, the least accepted number of successes, as one bit per row (it
rises by 0 or 1). Beyond its last row, rates above the cost are accepted and rates at or below the last row's stop are
rejected. Both are proved, because thresholds rise to the cost. In the sliver between them the solver extends the table,
once per process.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.json_arrays import decode_array
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ExposureObjective, StoppingObjective
from lenience.core.offers import Offers
from lenience.objectives.discounted import Discounted
from lenience.service.domain import limits
from lenience.service.domain.between_rows import interpolated, whole
from lenience.service.domain.exposure_tables import (
    LATE_SECONDS,
    EstimatedBody,
    EstimatedTable,
    ExposureBody,
    ExposureTable,
    solve_exposure_table,
)
from lenience.service.domain.late_offer_tables import LateOfferBody, LateOfferTable, solve_late_offer_table
from lenience.service.domain.offer_tables import OfferBody, OfferTable, PromptOfferTable, solve_offer_table
from lenience.service.domain.specification import SegmentProblem
from lenience.service.domain.threshold_curve import fitted_curve
from lenience.solvers.stopping.leniency_curve import threshold_on_curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ROWS = 100_000  # outcomes of a discounted problem up to which decisions are looked up
OFFER_ROWS = 1_000  # outcomes with offers up to which labels are valued: each row holds hundreds of numbers
VALUE_SECONDS = 3.0  # to compute a value on request, as estimated by the solver


class Effort(NamedTuple):
    """How precisely a problem is solved: fully for decisions, or faster for a picture."""

    rows: int = ROWS
    tolerance: float = 1e-9  # of values
    late_tolerance: float = 1e-6  # of the value with late outcomes, relative
    seconds: float = limits.SOLVE_SECONDS  # to solve late outcomes, as estimated by the solver
    limit: bool = True  # whether to fit the curve of thresholds that pages show
    late_rows: int | None = None  # rows with late outcomes; by default as many as the tolerance needs
    offer_rows: int = OFFER_ROWS
    offer_tolerance: float = 1e-6  # of values with offers, in units of their mean amount
    late_offer_tolerance: float = 1e-5  # of values with late offers, relative to the volume times the mean amount


STORED = Effort()


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


Body: TypeAlias = StoppingBody | ExposureBody | EstimatedBody | OfferBody | LateOfferBody


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


SolvedTable: TypeAlias = StoppingTable | ExposureTable | OfferTable


def solve(segment: SegmentProblem, effort: Effort = STORED) -> str:
    """Solve a segment's problem and encode its table as text. The same problem gives the same text."""
    problem, prior = segment.problem, segment.prior
    if problem.offers is not None or isinstance(prior, MixtureBelief):
        table: OfferBody | LateOfferBody
        if isinstance(problem, ExposureObjective):
            table = solve_late_offer_table(problem, prior, effort.late_offer_tolerance, effort.seconds)
        else:
            assert isinstance(problem, Discounted)  # the specification admits no other objective here
            table = solve_offer_table(problem, prior, effort.offer_rows, effort.offer_tolerance, segment.charges)
        return msgspec.json.encode(table).decode()
    if isinstance(problem, ExposureObjective):
        late = solve_exposure_table(
            problem, prior, effort.late_tolerance, min(effort.seconds, LATE_SECONDS), effort.late_rows, effort.limit
        )
        return msgspec.json.encode(late).decode()
    import numpy as np

    if problem.horizon is None:
        policy = problem.solve(prior, rows=effort.rows, tolerance=effort.tolerance)
    else:
        policy = problem.solve(prior)
    least = steady(policy.accept_from)
    curve, reach = list[float](), 0.0
    if problem.stationary and effort.limit:
        curve, reach = fitted_curve(Discounted(problem.cost, problem.discount), prior.n)
    body = StoppingBody(
        objective=problem,
        prior=prior,
        certificate=policy.certificate,
        first=int(least[0]),
        rises=b64encode(np.packbits(np.diff(least).astype(np.uint8)).tobytes()).decode(),
        curve=curve,
        curve_to=reach,
    )
    return msgspec.json.encode(body).decode()


def steady(accept_from: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least accepted number of successes of each row, rising by 0 or 1 per row as the optimum does.

    Where rounding leaves states undecided (millions of rows), the proved acceptances may skip a step. Both steps below
    keep every row at or above the optimum. They therefore add only undecided states, never states that provably stop.

    >>> import numpy as np
    >>> steady(np.array([1, 3, 2, 4, 5])).tolist()
    [1, 2, 2, 3, 4]
    """
    import numpy as np

    rows = np.arange(len(accept_from))
    falling = np.minimum.accumulate(accept_from[::-1])[::-1]
    return np.minimum.accumulate(falling - rows) + rows


def solve_seconds(segment: SegmentProblem, effort: Effort = STORED) -> float:
    """Estimate the seconds that a stopping problem takes. Solvers of late outcomes limit their own time."""
    problem, prior = segment.problem, segment.prior
    if isinstance(problem, ExposureObjective):
        return 0.0
    if problem.offers is not None or isinstance(prior, MixtureBelief):
        from lenience.policies.beliefs.offers import offers_of
        from lenience.solvers.offers.solve import offer_seconds

        return offer_seconds(prior, offers_of(problem), problem.discount, effort.offer_rows, effort.offer_tolerance)
    return problem.solve_seconds(prior, effort.rows, effort.tolerance)


def load(text: str) -> SolvedTable:
    """Load a table that :func:`solve` encoded."""
    body: Body = msgspec.json.decode(text, type=Body, dec_hook=decode_array)
    if isinstance(body, OfferBody):
        return PromptOfferTable(body)
    if isinstance(body, LateOfferBody):
        return LateOfferTable(body)
    if isinstance(body, EstimatedBody):
        return EstimatedTable(body)
    return StoppingTable(body) if isinstance(body, StoppingBody) else ExposureTable(body)
