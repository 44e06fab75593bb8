"""Solved tables: what a segment's optimal policy says at every belief, stored so that a decision needs no solver.

Both kinds answer one question, the *exposure limit* at so many new successes and failures: how many outcomes may be
pending when one more is accepted. A stopping problem knows only «none» and «any number». On the prior's lattice the
counts are whole numbers, so nothing is rounded.

A stopping table holds, for each number of outcomes k, the least accepted number of successes, as one bit a row (it
rises by 0 or 1). Beyond its last row, rates above the cost are accepted and rates at or below the last row's stop are
rejected, both proved (thresholds rise to the cost); in the sliver between the solver extends the table, once a process.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import TooLargeError
from lenience.core.json_arrays import decode_array
from lenience.core.objective import ExposureObjective, StoppingObjective
from lenience.objectives.discounted import Discounted
from lenience.service.domain import limits
from lenience.service.domain.specification import SegmentProblem
from lenience.service.domain.threshold_curve import fitted_curve, on_curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.objectives.delayed import Delayed
    from lenience.policies.beliefs.exposure import ExposurePolicy

ROWS = 100_000  # of a discounted problem: outcomes up to which decisions are looked up
VALUE_SECONDS = 3.0  # that a value may take which is asked for, by the solver's estimate
VALUE_TOLERANCE = 1e-4  # of such a value of late labels
LOOSEST = 1e-2  # tolerance (of the value at the prior) that late labels are solved to where time is short


class Effort(NamedTuple):
    """How well a problem is solved: as it is for decisions, or quicker, for a picture."""

    rows: int = ROWS
    tolerance: float = 1e-9  # of values
    late_tolerance: float = 1e-6  # of the value of late labels, relative
    seconds: float = limits.SOLVE_SECONDS  # that late labels may take, by the solver's estimate
    limit: bool = True  # whether to find the curve from which thresholds are shown
    late_rows: int | None = None  # of late labels; by default as many as the tolerance asks for


STORED = Effort()


class StoppingBody(msgspec.Struct, frozen=True, tag="stopping", tag_field="kind"):
    """A stopping table as it is stored."""

    objective: StoppingObjective
    prior: Belief
    certificate: Certificate
    first: int
    rises: str  # base64 of one bit a row: whether one more success is asked than in the row before
    curve: list[float]  # n (c − c_n) as a Chebyshev series in log n from the prior's n on; may be empty
    leniency: float = 0.0  # B(c, γ), the limit of n (c − c_n), of older tables without a curve
    curve_to: float = 0.0  # up to which n; 0 in older tables, up to the last row's


class ExposureBody(msgspec.Struct, frozen=True, tag="exposure", tag_field="kind"):
    """An exposure policy as it is stored: its own JSON, and the curve of thresholds if outcomes came at once."""

    policy: msgspec.Raw
    curve: list[float] = []
    curve_to: float = 0.0


Body: TypeAlias = StoppingBody | ExposureBody


class StoppingTable:
    """Accept while the successes are enough; then stop for good."""

    def __init__(self, body: StoppingBody) -> None:
        import numpy as np

        self.body = body
        self.prior, self.cost = body.prior, body.objective.cost
        self.rows = body.certificate.rows
        self.horizon = body.objective.horizon
        bits = np.unpackbits(np.frombuffer(b64decode(body.rises), dtype=np.uint8), count=self.rows - 1)
        least = body.first + np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(bits, dtype=np.int64)))
        self._least = array("i", least.astype(np.int32).tobytes())

    def limit(self, successes: int, failures: int) -> int | None:
        """The exposure limit: 0, or none."""
        k = successes + failures
        if k < self.rows:
            return None if successes >= self._least[k] else 0
        return None if self._beyond(k, successes) else 0

    @property
    def closed(self) -> bool:
        """Whether nobody is accepted at the prior."""
        return self.limit(0, 0) == 0

    def threshold(self, successes: int, failures: int) -> float:
        """c_n, to within one observation of the lattice, and on the right side of every decision."""
        k = min(successes + failures, self.rows - 1)
        n = self.prior.n + k
        least = self._least[k]
        low = (self.prior.s + least - 1) / n if least > 0 else 0.0
        high = min(self.cost, (self.prior.s + least) / n) if least <= k else self.cost
        return min(max(self._curve(n), low), max(high, low))

    @property
    def volume(self) -> float | None:
        """The members still to come, each at its discount; nothing with a horizon."""
        return self.body.objective.volume if self.horizon is None else None

    def least_accepted(self, outcomes: int) -> int | None:
        """The least number of successes in so many outcomes that is accepted; nothing if none is."""
        if outcomes < self.rows:
            least = self._least[outcomes]
            return least if least <= outcomes else None
        return None

    @property
    def boundary(self) -> Sequence[int]:
        """The least accepted number of successes of each row; above the row's number where none is."""
        return self._least

    def value(self, successes: int, failures: int, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """The value from here on, and that of accepting the next (nothing where the horizon is over); solved for, or
        nothing if that would take long."""
        policy = self._policy()
        belief = Belief(self.prior.n + successes + failures, self.prior.s + successes)
        if self.horizon is not None and successes + failures >= self.horizon:
            return Bounds(0.0, 0.0), None
        left = self.body.objective.remaining(successes + failures)
        if left is None or left.solve_seconds(belief, 1, self.body.certificate.tolerance) > VALUE_SECONDS:
            return None, None
        return policy.value(belief), policy.continuation(belief)

    @property
    def statement(self) -> str:
        """What is proved."""
        return self.body.certificate.statement

    @property
    def proved(self) -> bool:
        """Whether every decision of the table is proved optimal."""
        return self.body.certificate.proved

    def _curve(self, n: float) -> float:
        body = self.body
        if body.curve:
            return on_curve(self.cost, body.curve, self.prior.n, body.curve_to or self.prior.n + self.rows, n)
        if self.horizon is not None:
            # Not computed: half-way between the rates that are rejected and accepted.
            return min(self.cost, max(self.prior.s + self._least[round(n - self.prior.n)] - 0.5, 0.0) / n)
        # Of older tables, and without a discount: about.
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


class ExposureTable:
    """Accept while fewer than the limit are pending."""

    horizon: int | None = None

    def __init__(self, body: ExposureBody) -> None:
        from lenience.policies.beliefs.exposure import ExposurePolicy

        self.body = body
        self.policy = ExposurePolicy.from_json(bytes(body.policy))
        self.prior, self.cost = self.policy.prior, self.policy.objective.cost
        self.rows = self.policy.rows
        self._first: list[int] = self.policy.first.tolist()
        self._offsets = self.policy.offsets.tolist()
        self._limits = self.policy.limits.tolist()

    def limit(self, successes: int, failures: int) -> int | None:
        """The exposure limit; nothing where there is none."""
        k = successes + failures
        if k >= self.rows:
            found: int | None = self.policy.limit(Belief(self.prior.n + k, self.prior.s + successes))
            return found
        # As the policy itself says: a rate equal to the cost but for its last digits is at the cost.
        if self.prior.s + successes >= self.cost * (self.prior.n + k) * (1 - 1e-12):
            return None
        at = self._offsets[k] + successes - self._first[k]
        if successes < self._first[k]:
            return 0
        return int(self._limits[at]) if at < self._offsets[k + 1] else None

    @property
    def closed(self) -> bool:
        """Whether nobody is accepted at the prior."""
        return self.limit(0, 0) == 0

    def threshold(self, successes: int, failures: int) -> float:
        """Between the rates on the lattice at which none and at which one may be pending: known to one observation."""
        k = min(successes + failures, self.rows - 1)
        if self.body.curve:
            return float(self._thresholds[k])
        # Of older tables; it goes up and down by one observation, and is told as it was.
        return float(min(self.cost, max(self.prior.s + self._first[k] - 0.5, 0.0) / (self.prior.n + k)))

    @cached_property
    def _thresholds(self) -> NDArray[np.float64]:
        """Rising with n, as thresholds do: above every rate stopped at with fewer observations, below every rate
        accepted with more. Where every rate that can be reached is accepted, the threshold if outcomes came at once:
        the true one is no lower."""
        import numpy as np

        first = np.asarray(self._first[: self.rows])
        n = self.prior.n + np.arange(first.size)
        stopped = np.where(first > 0, np.maximum(self.prior.s + first - 1, 0.0) / n, [self.at_once(size) for size in n])
        low = np.maximum.accumulate(np.minimum(stopped, self.cost))
        high = np.minimum.accumulate(np.minimum((self.prior.s + first) / n, self.cost)[::-1])[::-1]
        own = np.minimum(np.maximum(self.prior.s + first - 0.5, 0.0) / n, self.cost)
        return np.where(first == 0, stopped, np.where(low < high, (low + high) / 2, own))

    def at_once(self, n: float) -> float:
        """About the threshold if outcomes came at once, which is no higher; 0 where it is not known."""
        curve = self.body.curve
        return max(on_curve(self.cost, curve, self.prior.n, self.body.curve_to, n), 0.0) if curve else 0.0

    @property
    def volume(self) -> float:
        """The members still to come, each at its discount."""
        return float(self.policy.objective.volume)

    def least_accepted(self, outcomes: int) -> int | None:
        """The least number of successes in so many outcomes at which one may be pending."""
        if outcomes >= self.rows:
            return None
        least = int(self._first[outcomes])
        return least if least <= outcomes else None

    @property
    def boundary(self) -> Sequence[int]:
        """The least number of successes of each row at which one may be pending."""
        return self._first

    def value(self, successes: int, failures: int, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """The value from here on, before the next arrival; solved for, or nothing if that would take long."""
        belief = Belief(self.prior.n + successes + failures, self.prior.s + successes)
        if belief == self.prior and pending < len(self.policy.lower):
            found = self.policy.value(belief, pending)
        else:
            try:
                found = self.policy.objective.enclose(belief, pending, VALUE_TOLERANCE, VALUE_SECONDS)[0]
            except TooLargeError:
                return None, None
        return found, found

    @property
    def statement(self) -> str:
        """What is proved."""
        return str(self.policy.certificate.statement)

    @property
    def proved(self) -> bool:
        """Whether every limit of the table is proved."""
        return bool(self.policy.certificate.proved)


SolvedTable: TypeAlias = StoppingTable | ExposureTable


def solve(segment: SegmentProblem, effort: Effort = STORED) -> str:
    """Solve a segment's problem and write its table as text; the same problem gives the same text."""
    problem = segment.problem
    if isinstance(problem, ExposureObjective):
        return _solve_delayed(problem, segment.prior, effort)
    import numpy as np

    if problem.horizon is None:
        policy = problem.solve(segment.prior, rows=effort.rows, tolerance=effort.tolerance)
    else:
        policy = problem.solve(segment.prior)
    least = steady(policy.accept_from)
    curve, reach = list[float](), 0.0
    if problem.stationary and effort.limit:
        curve, reach = fitted_curve(Discounted(problem.cost, problem.discount), segment.prior.n)
    body = StoppingBody(
        objective=problem,
        prior=segment.prior,
        certificate=policy.certificate,
        first=int(least[0]),
        rises=b64encode(np.packbits(np.diff(least).astype(np.uint8)).tobytes()).decode(),
        curve=curve,
        curve_to=reach,
    )
    return msgspec.json.encode(body).decode()


def steady(accept_from: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least accepted number of successes of each row, rising by 0 or 1 a row as the optimum's does.

    Where rounding leaves states undecided (millions of rows) what is proved accepted may skip one. Both steps keep
    every row at or above the optimum's own, so what they add is undecided, and nothing that is proved a stop.

    >>> import numpy as np
    >>> steady(np.array([1, 3, 2, 4, 5])).tolist()
    [1, 2, 2, 3, 4]
    """
    import numpy as np

    rows = np.arange(len(accept_from))
    falling = np.minimum.accumulate(accept_from[::-1])[::-1]
    return np.minimum.accumulate(falling - rows) + rows


def solve_seconds(segment: SegmentProblem, effort: Effort = STORED) -> float:
    """About how long a stopping problem takes; nothing is known beforehand of late labels, which limit themselves."""
    return segment.problem.solve_seconds(segment.prior, effort.rows, effort.tolerance)


def load(text: str) -> SolvedTable:
    """The table that :func:`solve` wrote."""
    body: Body = msgspec.json.decode(text, type=StoppingBody | ExposureBody, dec_hook=decode_array)
    return StoppingTable(body) if isinstance(body, StoppingBody) else ExposureTable(body)


def _solve_delayed(objective: Delayed, prior: Belief, effort: Effort) -> str:
    policy = _in_time(objective, prior, effort)
    at_once = Discounted(objective.cost, objective.discount)
    curve, reach = fitted_curve(at_once, prior.n) if effort.limit else ([], 0.0)
    return msgspec.json.encode(ExposureBody(msgspec.Raw(policy.to_json().encode()), curve, reach)).decode()


def _in_time(objective: Delayed, prior: Belief, effort: Effort) -> ExposurePolicy:
    """Solved as well as the time allows: a larger tolerance where a smaller one would take too long."""
    tolerance = effort.late_tolerance
    while True:
        try:
            return objective.solve(prior, effort.late_rows, tolerance, seconds=effort.seconds)
        except TooLargeError:
            tolerance *= 10
            if tolerance > LOOSEST:
                raise
