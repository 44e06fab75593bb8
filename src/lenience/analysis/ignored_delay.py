"""cost_of_ignoring: what segments with late labels lose if you decide as if labels came at once.

The policy for labels that come at once ignores pending labels and accepts everyone until the first labels return. Both
values are before the next arrival, from the same belief with no label pending, and exact for exponential delays.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from lenience.analysis.delay import BLIND, baselines, evaluate_pending
from lenience.core.errors import TooLargeError
from lenience.policies.beliefs.offer_exposure_decisions import OfferExposureDecisions
from lenience.segments.exposure_limits import Exposure
from lenience.solvers.delayed.evaluation import least_updates

TOLERANCE = 1e-3  # relative error of the value if pending labels are ignored
MOST_UPDATES = 2e8  # per segment: about a second
ALL_SECONDS = 20.0  # time limit of all evaluations


class Ignored(msgspec.Struct, frozen=True):
    """The values of a segment with exposure limits and without; ``blind`` is None if it takes too long to compute."""

    segment: str
    limited: float
    blind: float | None


def cost_of_ignoring(rows: Iterable[Exposure]) -> list[Ignored]:
    """Compare exposure limits with ignoring pending labels, for each segment that starts and has a limit.

    Small segments come first. Segments with offers or with a doubtful prior are left out: without exposure limits there
    is no baseline for them.

    >>> from lenience import Belief, Delayed, Segments, exposure_limits
    >>> objective = Delayed(cost=0.8, arrivals=20, discount_rate=0.5, label_delay=0.25)
    >>> [row] = cost_of_ignoring(exposure_limits(Segments.of({"new": 1.0}, objective, Belief(3, 2))))
    >>> print(f"{row.segment}: {row.limited:.3f} with limits, {row.blind:.3f} if pending labels are ignored")
    new: 0.622 with limits, 0.422 if pending labels are ignored
    """
    until = time.monotonic() + ALL_SECONDS
    result = []
    for row in sorted(rows, key=lambda row: row.objective.volume):
        if row.policy is None or row.unlimited or isinstance(row.policy, OfferExposureDecisions):
            continue
        limited, blind = row.policy.value(row.policy.prior).midpoint, None
        # The baseline itself takes long to solve where its evaluation would take too long.
        if time.monotonic() < until and least_updates(row.objective.problem(row.policy.prior)) <= MOST_UPDATES:
            baseline = baselines(row.objective, row.policy.prior, caps=())[BLIND]
            try:
                blind = evaluate_pending(baseline, row.objective, row.policy.prior, TOLERANCE, MOST_UPDATES).midpoint
            except TooLargeError:
                blind = None
        result.append(Ignored(row.name, limited, blind))
    return result
