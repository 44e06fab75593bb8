"""How often a policy accepts over the discounted future of a segment, where amounts differ or the prior may be wrong.

With offers a rejection is not final, so the acceptance of the i-th member a_i is carried forward by arrivals
(:func:`lenience.acceptance_by_arrival`). The first half of the discounted future has m members, with γ^m about ½. Its
acceptance is exact, and the second half follows from the acceptance A of the whole future, which the walk by
acceptances bounds: A = (1 − γ^m) early + γ^m late.

With a prior that may be wrong and one break-even, decisions depend on the outcomes alone. So every probability is the
average over the beliefs of the prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lenience.analysis.acceptance_by_arrival import acceptance_by_arrival
from lenience.analysis.characteristics import characteristics
from lenience.analysis.long_run import LongRun, long_run
from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import StoppingObjective
from lenience.core.offers import Offers
from lenience.policies.beliefs.mixture import MixturePolicy

ROUNDING = 1e-9  # of an exact probability
MOST_EARLY = 420  # members of the first half of a future with offers: a few seconds
ROWS = 6.0  # acceptances to follow, times the discounted number of members


def long_run_offers(
    policy: Any, p: float | None, objective: StoppingObjective, offers: Offers, belief: Belief, rows: int
) -> LongRun:
    """Follow a policy with offers. A member is accepted if any offer is made to it."""
    discount = objective.discount
    half = 1 if discount == 0.0 else max(math.ceil(math.log(0.5) / math.log(discount)), 1)
    if half > MOST_EARLY:
        raise TooLargeError(
            "Following a segment with offers",
            size=half,
            allowed_size=MOST_EARLY,
            unit="members in the first half of its discounted future",
            field="objective",
            hint="Divide the segment, or give it one break-even.",
        )
    walk = characteristics(policy, p, objective, belief, rows)
    made = walk.offer_acceptance or ()
    shares = [offers.share[menu] for menu in offers.menu_of]
    accepted = Bounds(
        math.fsum(share * one.lower for share, one in zip(shares, made, strict=True)),
        min(math.fsum(share * one.upper for share, one in zip(shares, made, strict=True)), 1.0),
    )
    by_arrival = acceptance_by_arrival(policy, half, p, belief, offers).acceptance
    weights = discount ** np.arange(half, dtype=np.float64)
    first = float(by_arrival @ weights) / float(weights.sum())
    early = Bounds(max(first - ROUNDING, 0.0), min(first + ROUNDING, 1.0))
    later = discount**half
    late = early
    if later > 0.0:
        late = Bounds(
            max((accepted.lower - (1.0 - later) * early.upper) / later, 0.0),
            min((accepted.upper - (1.0 - later) * early.lower) / later, 1.0),
        )
    ever = Bounds(max(1.0 - walk.stops.upper, 0.0), min(1.0 - walk.stops.lower, 1.0))
    return LongRun(bool(by_arrival[0] > 0.0), accepted, early, late, ever, walk.shut_out, rows)


def long_run_doubt(
    policy: Any, p: float | None, objective: StoppingObjective, prior: MixtureBelief, rows: int
) -> LongRun:
    """Follow a policy for a prior that may be wrong, with one break-even."""
    rules: Sequence[Any] = MixturePolicy.by_belief(policy, rows)
    if p is not None:
        return long_run(rules[0], p, objective, prior.beliefs[0], None, rows)
    parts = [long_run(rule, None, objective, rule.prior, None, rows) for rule in rules]

    def mean(name: str) -> Bounds:
        bounds = [getattr(part, name) or Bounds(0.0, 0.0) for part in parts]
        return Bounds(
            math.fsum(weight * one.lower for weight, one in zip(prior.weights, bounds, strict=True)),
            min(math.fsum(weight * one.upper for weight, one in zip(prior.weights, bounds, strict=True)), 1.0),
        )

    return LongRun(parts[0].starts, mean("accepted"), mean("early"), mean("late"), mean("ever"), mean("shut_out"), rows)
