"""exposure_limits: for late labels, how many acceptances of each segment may be pending at once, and what to do now.

With late labels the decision of a segment is a number instead of a yes: accept while fewer than the limit are pending.
Most limits need no solve. If the expected success rate is at or above the cost, there is no limit. If the segment would
not start even with immediate labels, the limit is 0, because late labels are worth no more. Only the segments in
between are solved: equal ones once, small ones first, on all cores. Each is proved if that takes less than a second,
and estimated otherwise. If the time does not suffice, the result says so.

With offers every offer has a limit of its own: small amounts have larger ones. The limit of the segment is then the
largest of them.

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
from typing import Literal, TypeAlias

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.lattice import AT_COST
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offer, Offers
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import having, listed, mapped, whole
from lenience.objectives.delayed import Delayed
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.offer_exposure import OfferExposurePolicy
from lenience.policies.beliefs.offer_exposure_decisions import OfferExposureDecisions
from lenience.policies.beliefs.offers import offers_of
from lenience.segments.segments import Segment, Segments

Policy: TypeAlias = ExposurePolicy | EstimatedExposurePolicy | OfferExposurePolicy | EstimatedOfferExposurePolicy
Key: TypeAlias = tuple[Delayed, Belief | MixtureBelief]

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


class OfferLimit(msgspec.Struct, frozen=True):
    """How many acceptances of a segment may be pending when an offer is accepted.

    Parameters
    ----------
    offer
        The amount at stake and the break-even.
    limit
        The number that may be pending at once; None if there is no limit.
    proved
        Whether the limit is proved.
    """

    offer: Offer
    limit: int | None
    proved: bool


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
        The number that may be pending at once. None if there is no limit, or if it was not computed. With offers it is
        the largest limit of an offer.
    unlimited
        Whether there is no limit, of some offer at least.
    proved
        Whether the limit is proved.
    worth
        A lower bound of the optimal value from here on; not proved if the limit is estimated.
    policy
        The policy of the segment, if one was solved.
    not_computed
        Why the limit was not computed; None if it was.
    by_offer
        The limit of each offer, if the objective has offers.

    Examples
    --------
    >>> from lenience import Belief, Delayed, Segments, exposure_limits
    >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> [row] = exposure_limits(Segments.of({"all": 1.0}, late, Belief(10, 7)), {"all": 2})
    >>> row.limit, row.room, row.now
    (5, 3, 'accept up to 3 more')
    """

    name: str
    belief: Belief | MixtureBelief
    objective: Delayed
    pending: int
    limit: int | None
    unlimited: bool
    proved: bool
    worth: float
    policy: Policy | None = None
    not_computed: NotComputed | None = None
    by_offer: tuple[OfferLimit, ...] = ()

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
        accepted = sum(one.limit is None or self.pending < one.limit for one in self.by_offer)
        if 0 < accepted < len(self.by_offer):
            return f"accept {accepted} of {len(self.by_offer)} offers"
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

    With offers, small amounts have larger limits:

    >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
    >>> late = Delayed(offers=loans, arrivals=20_000, discount_rate=0.1, label_delay=1)
    >>> [row] = exposure_limits(Segments.of({"all": 1.0}, late, Belief(10, 7)), {"all": 200})
    >>> [one.limit for one in row.by_offer], row.now, row.proved
    ([481, 0], 'accept 1 of 2 offers', False)
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

    keys: list[Key] = [(cell.own, cell.prior) for cell in cells]
    known = {key: _without_solving(*key) for key in keys}
    # Segments whose decision depends on the solve come first.
    open_keys = [key for key, sure in known.items() if sure is None or (values and sure != 0)]
    open_keys.sort(key=lambda key: (known[key] is not None, key[0].volume))
    if open_keys:  # before the clock starts
        _compile(any(_has_offers(*key) for key in open_keys))
    until = time.monotonic() + ALL_SECONDS

    def solve(key: Key) -> Policy | NotComputed:
        own, belief = key
        if time.monotonic() > until:
            return NO_TIME
        try:
            policy: Policy = own.solve(belief, tolerance=TOLERANCE, seconds=SECONDS)
        except InputError as error:  # one segment must not stop the others
            return NotComputed("not_solved", ALL_SECONDS, str(error))
        return policy

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:  # The kernels release Python's lock.
        solved = dict(zip(open_keys, threads.map(solve, open_keys), strict=True))
    return [
        _exposure(cell.name, *key, counts.get(cell.name, 0), known[key], solved.get(key))
        for cell, key in zip(cells, keys, strict=True)
    ]


def _has_offers(objective: Delayed, belief: Belief | MixtureBelief) -> bool:
    """Return whether the solver for offers is needed."""
    return objective.offers is not None or isinstance(belief, MixtureBelief)


def _without_solving(objective: Delayed, belief: Belief | MixtureBelief) -> int | None:
    """Return the limit if it is obvious, and None if it needs a solve."""
    from lenience.solvers.offers.solve import gain_of_knowing

    if isinstance(belief, MixtureBelief) or objective.offers is not None:
        offers = offers_of(objective)
        profits = [one.expected_profit(belief.mean) for one in _each(offers)]
        if min(profits) >= 0.0:
            return UNLIMITED
        # One acceptance loses at least this much, and all that may follow gains at most what knowing p adds.
        return 0 if max(profits) + objective.volume * gain_of_knowing(belief, offers) <= 0.0 else None
    # A rate that differs from the cost only by rounding is at the cost, as in the policy.
    if belief.s >= objective.cost * belief.n * (1 - AT_COST):
        return UNLIMITED
    return None if _may_start_at_once(objective, belief) else 0


def _each(offers: Offers) -> list[Offer]:
    """Return every offer."""
    return [Offer(amount, cost) for amount, cost in zip(offers.amount, offers.cost, strict=True)]


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


@lru_cache(maxsize=2)
def _compile(with_offers: bool) -> None:
    """Solve tiny problems, so that the kernels of the solvers are compiled."""
    tiny = Delayed(0.5, arrivals=1.0, discount_rate=1.0, label_delay=1.0)
    tiny.solve_proved(Belief(2, 1), rows=1, tolerance=1e-2)
    EstimatedExposurePolicy.solve(tiny, Belief(2, 1))
    if with_offers:
        tiny.solve(MixtureBelief.of(Belief(2, 1)), tolerance=1e-2)
        EstimatedOfferExposurePolicy.solve(tiny, Belief(2, 1))


def _exposure(
    name: str,
    own: Delayed,
    belief: Belief | MixtureBelief,
    pending: int,
    sure: int | None,
    solved: Policy | NotComputed | None,
) -> Exposure:
    """Combine what is known of a segment without a solve with the result of a solve."""
    reason = solved if isinstance(solved, NotComputed) else None
    policy = None if isinstance(solved, NotComputed) else solved
    # Accepting at each offer's break-even, and nobody below it, is always possible.
    worth = own.volume * offers_of(own).profit_if_known(belief.mean)
    if isinstance(policy, ExposurePolicy):
        worth = max(worth, *policy.lower[: pending + 1])
    elif isinstance(policy, EstimatedExposurePolicy):
        worth = max(worth, policy.value(policy.prior, pending).lower)
    elif policy is not None:
        worth = max(worth, policy.value(belief, pending).lower)
    known = (name, belief, own, pending)
    if sure is None and policy is None:
        return Exposure(*known, None, False, False, worth, None, reason)
    if own.offers is None:
        limit, proved = _limit(belief, sure, policy, None)
        return Exposure(*known, limit, limit is None, proved, worth, policy)
    each = [OfferLimit(one, *_limit(belief, sure, policy, one)) for one in _each(own.offers)]
    limits = [one.limit for one in each if one.limit is not None]
    largest = max(limits) if len(limits) == len(each) else None
    proved = all(one.proved for one in each)
    return Exposure(*known, largest, largest is None, proved, worth, policy, None, tuple(each))


def _limit(
    belief: Belief | MixtureBelief, sure: int | None, policy: Policy | None, offer: Offer | None
) -> tuple[int | None, bool]:
    """Return the limit, of an offer if there are some, and whether it is proved."""
    if sure is not None:
        return None if sure == UNLIMITED else sure, True
    if isinstance(policy, OfferExposureDecisions):
        return policy.limit(belief, offer), policy.proved(belief, offer)
    assert policy is not None
    assert isinstance(belief, Belief)
    return policy.limit(belief), policy.proved(belief)
