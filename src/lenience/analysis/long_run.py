"""How often a policy accepts over the whole discounted future of a segment, early and late, with bounds.

A policy that accepts with certainty until it stops for good accepts the i-th member with probability g_i = P(it has not
stopped before). The walk of :func:`lenience.characteristics` gives g_0, …, g_{R−1} exactly. g falls, so for i ≥ R

    1 − P(ever stops) ≤ g_i ≤ g_{R−1},        Σ_{i≥R} g_i ≤ the acceptances still expected,

and the sums over γ^i of both sides are geometric. R doubles until the bounds are narrow: it follows from the discount
and from p, and nothing after the last row is guessed. Near the break-even with very many arrivals, the bounds may stay
wide at the largest R; they hold all the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lenience.analysis.characteristics import MOST_ROWS, ROUNDING, Characteristics, characteristics
from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.objective import StoppingObjective
from lenience.core.protocols import Policy

FIRST_ROWS = 500
MOST_AVERAGED = 8_000  # rows of a walk that is averaged over the belief: its time grows with their square
TOLERANCE = 1e-4  # of all probabilities at a known p
AVERAGED_TOLERANCE = 1e-2  # of those averaged over the belief, whose bounds narrow slowly because p may be near c


class LongRun(NamedTuple):
    """The probability that a member is accepted, with bounds.

    Parameters
    ----------
    starts
        Whether anybody is ever accepted.
    accepted
        Over the whole discounted future.
    early
        In its first half: the members before γ^i falls to one half.
    late
        In its second half.
    ever
        The probability that acceptance never stops.
    shut_out
        The probability of stopping for good although p > c; None if p ≤ c.
    rows
        The number of acceptances that were followed.
    """

    starts: bool
    accepted: Bounds
    early: Bounds
    late: Bounds
    ever: Bounds
    shut_out: Bounds | None
    rows: int

    @property
    def width(self) -> float:
        """The width of the widest bounds."""
        parts = (self.accepted, self.early, self.late, self.ever, self.shut_out)
        return max(bounds.width for bounds in parts if bounds is not None)


def long_run(
    policy: Policy,
    p: float | None,
    objective: StoppingObjective,
    belief: Belief,
    tolerance: float | None = None,
    rows: int | None = None,
) -> LongRun:
    """Follow a policy until the bounds are narrower than the tolerance, or for a given number of rows."""
    if rows is not None:
        return _after(characteristics(policy, p, objective, belief, rows), objective.discount, rows)
    most, narrow = (MOST_AVERAGED, AVERAGED_TOLERANCE) if p is None else (MOST_ROWS, TOLERANCE)
    size = FIRST_ROWS
    while True:
        result = _after(characteristics(policy, p, objective, belief, size), objective.discount, size)
        if result.width <= (narrow if tolerance is None else tolerance) or size >= most:
            return result
        size = min(2 * size, most)


def _after(walk: Characteristics, discount: float, rows: int) -> LongRun:
    """Return the bounds that a walk over some rows gives."""
    slack = ROUNDING * (rows + 1)
    going = np.maximum(1.0 - np.cumsum(walk.stops_at), 0.0)
    least, most = max(1.0 - walk.stops.upper, 0.0), float(going[-1])
    still = max(walk.accepted.upper - float(going.sum()), 0.0)  # acceptances expected after the last row
    half = rows if discount == 0.0 else math.ceil(math.log(0.5) / math.log(discount))
    half = max(half, 1)

    def mean(first: int, end: float) -> Bounds:
        """Return the mean of g over the members from ``first`` to before ``end``, weighted by γ^i."""
        total = _geometric(discount, first, end)
        if total == 0.0:
            return Bounds(min(least, most), most)
        known = np.arange(first, min(end, rows), dtype=np.float64)
        inside = float(discount**known @ going[first : first + known.size]) if known.size else 0.0
        start = max(first, rows)
        rest = _geometric(discount, start, end)
        upper = inside + min(most * rest, discount**start * still if math.isfinite(still) else math.inf)
        return Bounds(max((inside + least * rest) / total - slack, 0.0), min(upper / total + slack, 1.0))

    return LongRun(
        bool(going[0] > 0.0),
        mean(0, math.inf),
        mean(0, half),
        mean(half, math.inf),
        Bounds(least, min(1.0 - walk.stops.lower, 1.0)),
        walk.shut_out,
        rows,
    )


def _geometric(discount: float, first: float, end: float) -> float:
    """Return Σ γ^i for i from ``first`` to before ``end``.

    >>> _geometric(0.5, 0, math.inf), _geometric(0.5, 1, 3), _geometric(0.5, 3, 3)
    (2.0, 0.75, 0.0)
    """
    if first >= end:
        return 0.0
    last = 0.0 if math.isinf(end) else discount**end
    return float((discount**first - last) / (1.0 - discount))
