"""exposure_limits: where labels come late, how many of each segment may be out at once, and what follows now.

Late labels make a segment's decision a number and not a yes: accept while fewer than the limit are pending. Most limits
need no solve. Where the expected success rate is not below the cost there is none. Where one would not even start if
labels came at once, it is 0: late labels are worth no more. Only the segments in between are solved, alike ones once,
the small ones first, each to as small a tolerance as the time allows; where it does not suffice, that is said.

What is promised: a limit that is ``proved`` is the least number pending at which rejecting is optimal. ``worth`` is
proved to be at most what the optimum earns from here on. What is pending teaches for nothing, so the value does not
fall with the number pending, and the greatest lower bound that is known for as many or fewer is one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import TooLargeError, refusal
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import having, listed, mapped, whole
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.segments.segments import Segment, Segments

TOLERANCES = (1e-4, 1e-3, 1e-2)  # of the value at the belief, relative: the first that the time allows
SECONDS = 10.0  # that one segment may take, by the solver's estimate
ALL_SECONDS = 60.0  # that all may take, by the clock
FINE = 1e-9  # the tolerance of the value of a first acceptance
SEGMENTS = "Segments with a Delayed objective, such as history.divide(Delayed(…))"
NO_TIME = f"the {ALL_SECONDS:g} s allowed for all segments were over"


class Exposure(msgspec.Struct, frozen=True):
    """A segment whose labels come late: what is pending, and how many may be.

    ``limit`` is nothing both where there is no limit (``unlimited``) and where it was not computed
    (``not_computed`` says why). ``policy`` is that of the segment where one was solved.
    """

    name: str
    belief: Belief
    objective: Delayed
    pending: int
    limit: int | None
    unlimited: bool
    proved: bool
    worth: float
    policy: ExposurePolicy | None = None
    not_computed: str | None = None

    @property
    def room(self) -> int | None:
        """How many more may be accepted before the next label comes; nothing where any number, or where not known."""
        return None if self.limit is None else max(self.limit - self.pending, 0)

    @property
    def accept(self) -> bool | None:
        """Whether the next one is accepted; nothing where that is not known."""
        return None if self.not_computed else self.unlimited or bool(self.room)

    @property
    def starts(self) -> bool | None:
        """Whether anyone is accepted with nothing pending; nothing where that is not known."""
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
        """How many may be out at once, in writing; ~ where that is not proved."""
        if self.not_computed:
            return "?"
        return "no limit" if self.unlimited else f"{'' if self.proved else '~'}{self.limit:,}"


def exposure_limits(
    segments: Segments | Iterable[Segment], pending: Mapping[str, int] | None = None, values: bool = False
) -> list[Exposure]:
    """For each segment, how many may be out at once and what follows with so many pending (none where not given).

    With ``values`` segments without a limit are solved too, for what they are worth.

    >>> whole = Delayed(cost=0.8, arrivals=100, discount_rate=0.1, label_delay=1)
    >>> known = {"good": Belief(100, 90), "new": Belief(2, 1), "bad": Belief(100, 50)}
    >>> cells = Segments.of({"good": 0.45, "new": 0.5, "bad": 0.05}, whole, known)
    >>> for row in exposure_limits(cells, {"good": 40, "new": 1}):
    ...     print(f"{row.name}: {row.pending} out of at most {row.most}: {row.now}")
    good: 40 out of at most no limit: accept
    new: 1 out of at most 2: accept up to 1 more
    bad: 0 out of at most 0: reject
    """
    cells: Sequence[Segment] = listed("segments", segments, SEGMENTS)
    for cell in cells:
        having("segments", cell, "objective", SEGMENTS)
        if not cell.objective.label_delay:
            raise refusal("segments", cell.objective, SEGMENTS)
    out = mapped("pending", pending or {}, "a mapping of segments to numbers pending")
    counts = {name: whole(f"pending of {name}", count) for name, count in out.items()}
    names = {cell.name for cell in cells}
    for name in counts:
        if name not in names:
            raise refusal("pending", name, f"one of the {len(cells):,} segments")

    known = {(cell.own, cell.prior): _without_solving(cell.own, cell.prior) for cell in cells}
    until = time.monotonic() + ALL_SECONDS
    solved: dict[tuple[Delayed, Belief], ExposurePolicy | str] = {}
    # Those whose decision hangs on it come first.
    asked = [key for key, sure in known.items() if sure is None or (values and sure != 0)]
    for key in sorted(asked, key=lambda key: (known[key] is not None, key[0].volume)):
        solved[key] = _in_time(*key) if time.monotonic() < until else NO_TIME
    return [
        _exposure(cell, counts.get(cell.name, 0), known[cell.own, cell.prior], solved.get((cell.own, cell.prior)))
        for cell in cells
    ]


def _without_solving(objective: Delayed, belief: Belief) -> int | None:
    """The limit where it is plain, and nothing where a solve must tell."""
    # A rate equal to the cost but for its last digits is at the cost, as in the policy.
    if belief.s >= objective.cost * belief.n * (1 - 1e-12):
        return UNLIMITED
    return None if _may_start_at_once(objective, belief) else 0


def _may_start_at_once(objective: Delayed, belief: Belief) -> bool:
    """Whether a first acceptance may pay if labels came at once; false is proved."""
    from lenience.solvers.stopping.clairvoyant import gain_of_knowing

    # One acceptance loses at least c − p̂, and all that may follow gains at most volume · E(p − c)⁺.
    if objective.cost - belief.mean >= objective.volume * gain_of_knowing(belief.n, belief.s, objective.cost):
        return False
    # What starts at a smaller volume starts at its own: that is told in less time.
    for part in (64, 8, 1):
        volume = objective.volume / part
        worth = Discounted(objective.cost, volume / (1.0 + volume)).enclose(belief, FINE)[1]
        if worth.lower > 0.0:
            return True
    return worth.upper > 0.0


def _in_time(objective: Delayed, belief: Belief) -> ExposurePolicy | str:
    """The policy as well as the time allows, or why there is none."""
    for tolerance in TOLERANCES:
        try:
            return objective.solve(belief, tolerance=tolerance, seconds=SECONDS)
        except TooLargeError as error:
            why = str(error).partition(": ask for ")[0]
    return why


def _exposure(cell: Segment, pending: int, sure: int | None, solved: ExposurePolicy | str | None) -> Exposure:
    policy = solved if isinstance(solved, ExposurePolicy) else None
    own: Delayed = cell.own
    # To accept everyone, or nobody, is always possible.
    worth = max(0.0, own.volume * (cell.prior.mean - own.cost))
    if policy is not None:
        worth = max(worth, *policy.lower[: pending + 1])
    known = (cell.name, cell.prior, own, pending)
    if sure is not None:
        limit = None if sure == UNLIMITED else sure
        return Exposure(*known, limit, limit is None, True, worth, policy)
    if policy is None:
        return Exposure(*known, None, False, False, worth, None, str(solved))
    limit = policy.limit(cell.prior)
    return Exposure(*known, limit, limit is None, policy.proved(cell.prior), worth, policy)
