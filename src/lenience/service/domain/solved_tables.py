"""Solved tables: the optimal decision at every belief of a segment, stored so that a decision needs no solver.

Tables answer one question, the *exposure limit* after a number of new successes and failures: how many outcomes may be
pending when one more individual is accepted. In a stopping problem the limit is zero or infinite. Counts are whole
numbers on the prior's lattice, so nothing is rounded. Only where open loans count in part, tables are interpolated
(:mod:`lenience.service.domain.between_rows`). Where amounts differ, the value of one label is stored instead
(:mod:`lenience.service.domain.offer_tables`).

Where segments borrow evidence from each other, thresholds are stored for any belief
(:mod:`lenience.service.domain.pooled_tables`).
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from lenience.core.json_arrays import decode_array
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ExposureObjective
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.service.domain import limits
from lenience.service.domain.exposure_tables import (
    LATE_SECONDS,
    EstimatedBody,
    EstimatedTable,
    ExposureBody,
    ExposureTable,
    solve_exposure_table,
)
from lenience.service.domain.horizon_offer_tables import (
    HorizonOfferBody,
    HorizonOfferTable,
    solve_horizon_offer_table,
)
from lenience.service.domain.late_offer_tables import (
    EstimatedLateOfferBody,
    EstimatedLateOfferTable,
    LateOfferBody,
    LateOfferTable,
    solve_late_offer_table,
)
from lenience.service.domain.offer_tables import OfferBody, OfferTable, PromptOfferTable, solve_offer_table
from lenience.service.domain.pooled_tables import PooledBody, PooledTable, grid_for
from lenience.service.domain.specification import SegmentProblem
from lenience.service.domain.stopping_tables import StoppingBody, StoppingTable
from lenience.service.domain.threshold_curve import fitted_curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ROWS = 100_000  # outcomes of a discounted problem up to which decisions are looked up
POOLED_ROWS = 1_000  # of a table whose decisions come from thresholds at any belief
OFFER_ROWS = 1_000  # outcomes with offers up to which labels are proved; from there on they are estimated


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


Body: TypeAlias = (
    StoppingBody
    | PooledBody
    | ExposureBody
    | EstimatedBody
    | OfferBody
    | LateOfferBody
    | EstimatedLateOfferBody
    | HorizonOfferBody
)


SolvedTable: TypeAlias = StoppingTable | ExposureTable | OfferTable


def solve(segment: SegmentProblem, effort: Effort = STORED) -> str:
    """Solve a segment's problem and encode its table as text. The same problem gives the same text."""
    problem, prior = segment.problem, segment.prior
    if problem.offers is not None or isinstance(prior, MixtureBelief):
        table: OfferBody | LateOfferBody | EstimatedLateOfferBody | HorizonOfferBody
        if isinstance(problem, ExposureObjective):
            table = solve_late_offer_table(problem, prior, effort.late_offer_tolerance, effort.seconds)
        elif isinstance(problem, FiniteHorizon):
            table = solve_horizon_offer_table(problem, prior, effort.offer_tolerance)
        else:
            table = solve_offer_table(problem, prior, effort.offer_rows, effort.offer_tolerance, segment.charges)
        return msgspec.json.encode(table).decode()
    if isinstance(problem, ExposureObjective):
        late = solve_exposure_table(
            problem, prior, effort.late_tolerance, min(effort.seconds, LATE_SECONDS), effort.late_rows, effort.limit
        )
        return msgspec.json.encode(late).decode()
    import numpy as np

    if problem.horizon is None:
        rows = min(effort.rows, POOLED_ROWS) if segment.pooled else effort.rows
        policy = problem.solve(prior, rows=rows, tolerance=effort.tolerance)
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
    if segment.pooled:
        body = PooledBody(**msgspec.structs.asdict(body), grid=grid_for(problem))
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

        if problem.horizon is not None:
            return problem.solve_seconds(prior, tolerance=effort.offer_tolerance)
        return offer_seconds(prior, offers_of(problem), problem.discount, effort.offer_rows, effort.offer_tolerance)
    rows = min(effort.rows, POOLED_ROWS) if segment.pooled else effort.rows
    return problem.solve_seconds(prior, rows, effort.tolerance)


def load(text: str) -> SolvedTable:
    """Load a table that :func:`solve` encoded."""
    body: Body = msgspec.json.decode(text, type=Body, dec_hook=decode_array)
    if isinstance(body, OfferBody):
        return PromptOfferTable(body)
    if isinstance(body, EstimatedLateOfferBody):
        return EstimatedLateOfferTable(body)
    if isinstance(body, LateOfferBody):
        return LateOfferTable(body)
    if isinstance(body, HorizonOfferBody):
        return HorizonOfferTable(body)
    if isinstance(body, EstimatedBody):
        return EstimatedTable(body)
    if isinstance(body, PooledBody):
        return PooledTable(body)
    return StoppingTable(body) if isinstance(body, StoppingBody) else ExposureTable(body)
