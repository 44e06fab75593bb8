"""exposure_limits: for late labels, how many acceptances of each segment may be pending at once, and what to do now.

With late labels the decision of a segment is a number instead of a yes: accept while fewer than the limit are pending.
Most limits need no solve. If the expected success rate is at or above the cost, there is no limit. If the segment would
not start even with immediate labels, the limit is 0, because late labels are worth no more. Only the segments in
between are solved: equal ones once, small ones first, on all cores. Each is proved if that takes less than a second,
and estimated otherwise. If the time does not suffice, the result says so.

Guarantees: a limit that is ``proved`` is the least number pending at which rejecting is optimal. ``worth`` is at most
what the optimum earns from here on. That is proved or, if the limit is estimated, the estimate less its stated error.
Pending labels teach at no further cost, so the value does not fall with the number pending. ``worth`` is therefore the
greatest lower bound for as many or fewer pending.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Literal

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.lattice import AT_COST
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import having, listed, mapped, whole
from lenience.objectives.delayed import Delayed
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.segments.segments import Segment, Segments, plain_belief

TOLERANCE = 1e-4  # relative to the value at the belief
SECONDS = 1.0  # time limit to prove the limit of one segment, by the solver's estimate
ALL_SECONDS = 120.0  # time limit for all segments, by the clock
FINE = 1e-9  # the tolerance of the value of a first acceptance
START_SECONDS = 0.02  # to decide whether a first acceptance may pay with immediate labels, by the solver's estimate
SEGMENTS = "Segments with a Delayed objective and no horizon, such as history.divide(Delayed(…))"


class NotComputed(msgspec.Struct, frozen=True):
    """Why a limit was not computed.

    Parameters
    ----------
    code
        ``time_over``: the time for all segments was over. ``not_solved``: the problem of this segment has no solution
        that the solver can compute; the other segments are not affected.
    allowed_seconds
        The time that is allowed for all segments.
    reason
        The same as a sentence. It is what ``str`` returns.
    """

    code: Literal["time_over", "not_solved"]
    allowed_seconds: float
    reason: str

    def __str__(self) -> str:
        return self.reason


NO_TIME = NotComputed("time_over", ALL_SECONDS, f"The {ALL_SECONDS:g} s allowed for all segments are over")


class Exposure(msgspec.Struct, frozen=True):
    """A segment whose labels come late: how many are pending, and how many may be.

    Parameters
    ----------
    name
        The segment.
    belief
        What is known of its success probability.
    objective
        The segment's own objective.
    pending
        The number of accepted members without an outcome.
    limit
        The number that may be pending at once. None if there is no limit, or if it was not computed.
    unlimited
        Whether there is no limit.
    proved
        Whether the limit is proved.
    worth
        A lower bound of the optimal value from here on; not proved if the limit is estimated.
    policy
        The policy of the segment, if one was solved.
    not_computed
        Why the limit was not computed; None if it was.

    Examples
    --------
    >>> from lenience import Belief, Delayed, Segments, exposure_limits
    >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> [row] = exposure_limits(Segments.of({"all": 1.0}, late, Belief(10, 7)), {"all": 2})
    >>> row.limit, row.room, row.now
    (5, 3, 'accept up to 3 more')
    """

    name: str
    belief: Belief
    objective: Delayed
    pending: int
    limit: int | None
    unlimited: bool
    proved: bool
    worth: float
    policy: ExposurePolicy | EstimatedExposurePolicy | None = None
    not_computed: NotComputed | None = None

    @property
    def room(self) -> int | None:
        """How many more may be accepted before the next label; None if there is no limit or it is unknown."""
        return None if self.limit is None else max(self.limit - self.pending, 0)

    @property
    def accept(self) -> bool | None:
        """Whether to accept the next member; None if that is unknown."""
        return None if self.not_computed else self.unlimited or bool(self.room)

    @property
    def starts(self) -> bool | None:
        """Whether anyone is accepted with nothing pending; None if that is unknown."""
        return None if self.not_computed else self.limit != 0

    @property
    def now(self) -> str:
        """What to do now, in a few words."""
        if self.not_computed:
            return "not computed"
        if self.unlimited:
            return "accept"
        if self.room:
            return f"accept up to {self.room:,} more"
        if self.limit:
            return "wait"
        return "reject for now" if self.pending else "reject"

    @property
    def most(self) -> str:
        """The limit as text, with ~ in front if it is not proved."""
        if self.not_computed:
            return "?"
        return "no limit" if self.unlimited else f"{'' if self.proved else '~'}{self.limit:,}"


def exposure_limits(
    segments: Segments | Iterable[Segment], pending: Mapping[str, int] | None = None, values: bool = False
) -> list[Exposure]:
    """Return how many acceptances of each segment may be pending at once, and what to do now.

    Parameters
    ----------
    segments : Segments or iterable of Segment
        The segments, with a Delayed objective.
    pending : mapping, optional
        The number of accepted members without an outcome by segment; 0 where it is not given.
    values : bool
        Whether to solve segments without a limit too, for a better bound of their worth.

    Returns
    -------
    list of Exposure
        One for each segment.

    Raises
    ------
    InputError
        If the objective is not a Delayed one, or a segment with pending outcomes is unknown.

    Examples
    --------
    >>> objective = Delayed(cost=0.8, arrivals=100, discount_rate=0.1, label_delay=1)
    >>> known = {"good": Belief(100, 90), "new": Belief(2, 1), "bad": Belief(100, 50)}
    >>> cells = Segments.of({"good": 0.45, "new": 0.5, "bad": 0.05}, objective, known)
    >>> for row in exposure_limits(cells, {"good": 40, "new": 1}):
    ...     print(f"{row.name}: {row.pending} out of at most {row.most}: {row.now}")
    good: 40 out of at most no limit: accept
    new: 1 out of at most 2: accept up to 1 more
    bad: 0 out of at most 0: reject
    """
    cells: Sequence[Segment] = listed("segments", segments, SEGMENTS)
    for cell in cells:
        having("segments", cell, "objective", SEGMENTS)
        if not cell.objective.label_delay or cell.objective.horizon is not None:
            raise InputError("segments", cell.objective, SEGMENTS)
    out = mapped("pending", pending or {}, "a mapping of segments to numbers pending")
    counts = {name: whole("pending", count, label=f"pending of {name}") for name, count in out.items()}
    names = {cell.name for cell in cells}
    for name in counts:
        if name not in names:
            raise InputError("pending", name, f"one of the {len(cells):,} segments")

    keys: list[tuple[Delayed, Belief]] = [(cell.own, plain_belief(cell, "exposure_limits")) for cell in cells]
    known = {key: _without_solving(*key) for key in keys}
    # Segments whose decision depends on the solve come first.
    open_keys = [key for key, sure in known.items() if sure is None or (values and sure != 0)]
    open_keys.sort(key=lambda key: (known[key] is not None, key[0].volume))
    if open_keys:
        _compile()  # before the clock starts
    until = time.monotonic() + ALL_SECONDS

    def solve(key: tuple[Delayed, Belief]) -> ExposurePolicy | EstimatedExposurePolicy | NotComputed:
        own, belief = key
        if time.monotonic() > until:
            return NO_TIME
        try:
            policy: ExposurePolicy | EstimatedExposurePolicy = own.solve(belief, tolerance=TOLERANCE, seconds=SECONDS)
        except InputError as error:  # one segment must not stop the others
            return NotComputed("not_solved", ALL_SECONDS, str(error))
        return policy

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:  # The kernels release Python's lock.
        solved = dict(zip(open_keys, threads.map(solve, open_keys), strict=True))
    return [
        _exposure(cell.name, *key, counts.get(cell.name, 0), known[key], solved.get(key))
        for cell, key in zip(cells, keys, strict=True)
    ]


def _without_solving(objective: Delayed, belief: Belief) -> int | None:
    """Return the limit if it is obvious, and None if it needs a solve."""
    # A rate that differs from the cost only by rounding is at the cost, as in the policy.
    if belief.s >= objective.cost * belief.n * (1 - AT_COST):
        return UNLIMITED
    return None if _may_start_at_once(objective, belief) else 0


def _may_start_at_once(objective: Delayed, belief: Belief) -> bool:
    """Return whether a first acceptance may pay with immediate labels. False is proved."""
    from lenience.solvers.stopping.clairvoyant import gain_of_knowing
    from lenience.solvers.stopping.solve import look_ahead_within, solve_discounted

    # One acceptance loses at least c − p̂, and all that may follow gains at most volume · E(p − c)⁺.
    if objective.cost - belief.mean >= objective.volume * gain_of_knowing(belief.n, belief.s, objective.cost):
        return False
    # A segment that starts at a smaller volume also starts at its own, and a smaller volume is solved in less time.
    for part in (64, 8, 1):
        volume = objective.volume / part
        discount = volume / (1.0 + volume)
        ahead = look_ahead_within(belief.n, objective.cost, discount, 1, FINE, START_SECONDS)
        worth = solve_discounted(belief.n, belief.s, objective.cost, discount, 1, FINE, ahead).continuation
        if worth.lower > 0.0:
            return True
    return worth.upper > 0.0


@lru_cache(maxsize=1)
def _compile() -> None:
    """Solve two tiny problems, so that the kernels of both solvers are compiled."""
    tiny = Delayed(0.5, arrivals=1.0, discount_rate=1.0, label_delay=1.0)
    tiny.solve_proved(Belief(2, 1), rows=1, tolerance=1e-2)
    EstimatedExposurePolicy.solve(tiny, Belief(2, 1))


def _exposure(
    name: str,
    own: Delayed,
    belief: Belief,
    pending: int,
    sure: int | None,
    solved: ExposurePolicy | EstimatedExposurePolicy | NotComputed | None,
) -> Exposure:
    """Combine what is known of a segment without a solve with the result of a solve."""
    reason = solved if isinstance(solved, NotComputed) else None
    policy = None if isinstance(solved, NotComputed) else solved
    # Accepting everyone, or nobody, is always possible.
    worth = max(0.0, own.volume * (belief.mean - own.cost))
    if isinstance(policy, ExposurePolicy):
        worth = max(worth, *policy.lower[: pending + 1])
    elif policy is not None:
        worth = max(worth, policy.value(belief, pending).lower)
    known = (name, belief, own, pending)
    if sure is not None:
        limit = None if sure == UNLIMITED else sure
        return Exposure(*known, limit, limit is None, True, worth, policy)
    if policy is None:
        return Exposure(*known, None, False, False, worth, None, reason)
    limit = policy.limit(belief)
    return Exposure(*known, limit, limit is None, policy.proved(belief), worth, policy)
