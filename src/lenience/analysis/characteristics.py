"""characteristics: what a policy does to a population, exactly: what learning costs, whom it shuts out by bad luck."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, refusal
from lenience.core.objective import StoppingObjective
from lenience.core.protocols import Policy
from lenience.core.validation import having, real, whole

# A row: 1 − p, two products and the sum, of the mass and of what is added up from it; and that a row's states are added
# up one after the other, of which there are no more than rows.
ROUNDING = 9 * 2.0**-53
MOST_ROWS = 100_000


class Characteristics(msgspec.Struct, frozen=True, eq=False):
    """The operating characteristics of a policy at a true success probability, or averaged over a belief.

    ``stops`` is the probability of ever stopping for good; ``stops_at[k]`` that of stopping after exactly k
    acceptances; ``accepted`` the expected number accepted; ``reward`` the expected (discounted) reward;
    ``shut_out`` the probability of shutting out for good a population with p > c (nothing where p ≤ c).
    """

    p: float | None
    cost: float
    stops: Bounds
    stops_at: np.ndarray[Any, np.dtype[np.float64]]
    accepted: Bounds
    reward: Bounds
    shut_out: Bounds | None

    def __repr__(self) -> str:
        whom = "averaged over the belief" if self.p is None else f"p={self.p}"
        return f"Characteristics({whom}, stops={self.stops}, accepted={self.accepted}, reward={self.reward}, ...)"


def characteristics(
    policy: Policy,
    p: float | None = None,
    objective: StoppingObjective | None = None,
    belief: Belief | None = None,
    rows: int = 10_000,
) -> Characteristics:
    """The exact operating characteristics at a true ``p``, or averaged over the belief where none is given.

    The objective and the starting belief are the policy's own where it has them. With an infinite horizon the walk is
    followed over ``rows`` acceptances and what may happen afterwards is in the bounds.

    >>> from lenience import Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> good = characteristics(policy, p=0.9)
    >>> print(good.shut_out)
    0.265645860... ± ...
    >>> print(good.accepted)  # it may go on for ever
    ∞
    >>> bad = characteristics(policy, p=0.7)
    >>> print(bad.accepted)
    10.018577... ± ...
    """
    from lenience.solvers.stopping.forward import Later, later_acceptances, later_stops, walk

    having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    goal = _own(policy, "objective", objective)
    start = check_prior(_own(policy, "prior", belief), "belief")
    if not isinstance(goal, StoppingObjective):
        raise refusal("objective", goal, "a Discounted or a FiniteHorizon objective")
    truth = None if p is None else real("p", p, least=0, most=1)
    rows = whole("rows", rows, least=1, most=MOST_ROWS)
    cost, discount = goal.cost, goal.discount
    if goal.horizon is None:  # what comes after the rows is bounded by what the policy promises
        having("policy", policy, "stop_ceiling", "one with a stop_ceiling and a stop_floor(n)")
    if goal.horizon is not None:
        rows = whole("horizon", goal.horizon, least=1, most=MOST_ROWS)
    found = walk(policy, start.n, start.s, cost, discount, rows, truth, certain=goal.horizon is not None)

    stopped, deserving = float(found.stopped.sum()), float(found.stopped_deserving.sum())
    accepted, earned = float(found.moving.sum()), float(found.earned.sum())
    more, tail, later = 0.0, 0.0, Later(0.0, 0.0, 0.0)
    if goal.horizon is None:
        later = later_stops(policy, found, start.n, start.s, cost, rows, truth)
        more = later_acceptances(policy, found, start.n, start.s, rows, truth)
        tail = (float(found.left_weight.sum()) + found.aside) / (1.0 - discount)
    rounding = ROUNDING * (rows + 1)
    slack = rounding * (1.0 + accepted)
    stops = _probability(stopped + later.stop_lower, stopped + later.stop_upper, rounding)
    # Who may never stop accepts without end: one such way in a million makes the expected number infinite.
    endless = goal.horizon is None and stops.upper < 1.0
    return Characteristics(
        p=truth,
        cost=cost,
        stops=stops,
        stops_at=found.stopped,
        accepted=Bounds(math.inf, math.inf) if endless else Bounds(accepted - slack, accepted + more + slack),
        reward=Bounds(earned - tail - slack, earned + tail + slack),
        shut_out=None
        if truth is not None and truth <= cost
        else _probability(deserving, deserving + later.deserving_upper, rounding),
    )


def _probability(lower: float, upper: float, rounding: float) -> Bounds:
    return Bounds(max(lower - rounding, 0.0), min(upper + rounding, 1.0))


def _own(policy: Policy, name: str, given: object) -> object:
    value = getattr(policy, name, None) if given is None else given
    if value is None:
        raise InputError(f"{'belief' if name == 'prior' else name} must be given: this policy has none of its own")
    return value
