"""characteristics: exactly what a policy does to a population: what learning costs, and whom bad luck shuts out."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.objective import StoppingObjective, one_break_even
from lenience.core.protocols import Policy
from lenience.core.validation import having, real, whole

# Rounding error of a row: 1 − p, two products and a sum, for the probabilities and for the totals. The states of a row
# are added one after the other, and a row has at most as many states as there are rows.
ROUNDING = 9 * 2.0**-53
MOST_ROWS = 100_000


class Characteristics(msgspec.Struct, frozen=True, eq=False):
    """The operating characteristics of a policy at a true success probability, or averaged over a belief.

    Parameters
    ----------
    p : float or None
        The true success probability, or None if averaged over the belief.
    cost : float
        The break-even success rate.
    stops : Bounds
        The probability of ever stopping for good.
    stops_at : ndarray
        ``stops_at[k]`` is the probability of stopping after exactly k acceptances.
    accepted : Bounds
        The expected number accepted.
    reward : Bounds
        The expected (discounted) reward.
    shut_out : Bounds or None
        The probability that the policy rejects a population with p > c for good; None if p ≤ c.

    Examples
    --------
    >>> from lenience import Belief, Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> result = characteristics(policy, p=0.9)
    >>> round(result.stops.midpoint, 3), round(result.shut_out.midpoint, 3), round(result.reward.midpoint, 2)
    (0.266, 0.266, 7.44)
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
    """Compute the exact operating characteristics of a policy.

    With an infinite horizon the walk is followed over ``rows`` acceptances. The bounds include whatever may happen
    after that.

    Parameters
    ----------
    policy : Policy
        Any policy with an ``acceptance(n, s)``.
    p : float, optional
        The true success probability; by default the result is averaged over the belief.
    objective : Discounted or FiniteHorizon, optional
        The objective; by default that of the policy.
    belief : Belief, optional
        The belief at the start; by default the prior of the policy.
    rows : int, optional
        The number of acceptances to follow if the horizon is infinite.

    Returns
    -------
    Characteristics
        The probability of stopping, the number accepted, the reward and the probability of shutting out.

    Raises
    ------
    InputError
        If an argument is invalid, or is neither given nor known from the policy.

    Examples
    --------
    >>> from lenience import Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> good = characteristics(policy, p=0.9)
    >>> print(good.shut_out)
    0.265645860... ± ...
    >>> print(good.accepted)  # the policy may never stop
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
        raise InputError("objective", goal, "a Discounted or a FiniteHorizon objective")
    one_break_even(goal, "characteristics")
    truth = None if p is None else real("p", p, least=0, most=1)
    rows = whole("rows", rows, least=1, most=MOST_ROWS)
    cost, discount = goal.cost, goal.discount
    if goal.horizon is None:  # these methods of the policy bound what happens after the last row
        having("policy", policy, "stop_ceiling", "one with a stop_ceiling and a stop_floor(n)")
    if goal.horizon is not None:
        rows = whole("horizon", goal.horizon, least=1, most=MOST_ROWS)
    result = walk(policy, start.n, start.s, cost, discount, rows, truth, certain=goal.horizon is not None)

    stopped, deserving = float(result.stopped.sum()), float(result.stopped_deserving.sum())
    accepted, earned = float(result.moving.sum()), float(result.earned.sum())
    more, tail, later = 0.0, 0.0, Later(0.0, 0.0, 0.0)
    if goal.horizon is None:
        later = later_stops(policy, result, start.n, start.s, cost, rows, truth)
        more = later_acceptances(policy, result, start.n, start.s, rows, truth)
        tail = (float(result.left_weight.sum()) + result.aside) / (1.0 - discount)
    rounding = ROUNDING * (rows + 1)
    slack = rounding * (1.0 + accepted)
    stops = _probability(stopped + later.stop_lower, stopped + later.stop_upper, rounding)
    # If the policy may never stop, even with probability one in a million, the expected number accepted is infinite.
    endless = goal.horizon is None and stops.upper < 1.0
    return Characteristics(
        p=truth,
        cost=cost,
        stops=stops,
        stops_at=result.stopped,
        accepted=Bounds(math.inf, math.inf) if endless else Bounds(accepted - slack, accepted + more + slack),
        reward=Bounds(earned - tail - slack, earned + tail + slack),
        shut_out=None
        if truth is not None and truth <= cost
        else _probability(deserving, deserving + later.deserving_upper, rounding),
    )


def _probability(lower: float, upper: float, rounding: float) -> Bounds:
    """Return bounds of a probability, widened by rounding and clipped to 0 and 1."""
    return Bounds(max(lower - rounding, 0.0), min(upper + rounding, 1.0))


def _own(policy: Policy, name: str, given: object) -> object:
    """Return the given value, or the attribute of the policy if none is given."""
    value = getattr(policy, name, None) if given is None else given
    if value is None:
        raise InputError.because(
            "is required, because the policy does not have one", "belief" if name == "prior" else name, code="missing"
        )
    return value
