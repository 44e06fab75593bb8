"""Segments that never start: too rare, for their prior, to be worth a first acceptance, or known to lose.

At the prior one accepts exactly if Ṽ(n₀, s₀) > 0, and Ṽ does not fall as γ_x rises, so there is one discounted volume
γ_x/(1 − γ_x) = γq/(1 − γ) above which a segment starts and below which it is shut out before its first member,
deserving or not. With a flat prior that volume is 8.7, 32, 185 for c = 0.7, 0.8, 0.9: redlining by size. The remedies
are a prior that borrows strength from other segments (:mod:`lenience.models`), coarser segments, or a floor on
exploration (:mod:`lenience.analysis.fairness`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.formatting import count, percents
from lenience.core.validation import check_cost, having, listed, real
from lenience.segments.segments import Segment, Segments

MOST_VOLUME = 1e6  # a belief that would start only beyond this many discounted members is said never to start
MOST_SHOWN = (
    1e3  # for a segment no more are looked for than these, or ten times its own: each doubling takes twice as long
)
PRECISION = 1e-6  # relative, of the volume
SEGMENTS = "Segments, such as Segments.of(shares, objective, prior)"
LITTLE_HOPE = 0.05  # that the success rate is above the cost: with less a segment is known to lose, however many come
SHOWN = 1e-4  # the same where volumes are shown: those of hopeless segments take long


def known_to_lose(belief: Belief, cost: float) -> bool:
    """Whether a belief leaves little hope that the success rate is above the cost (less than 5 %).

    >>> known_to_lose(Belief(1188, 968), 0.85), known_to_lose(Belief(2, 1), 0.85)
    (True, False)
    """
    return belief.exceeds(cost) < LITTLE_HOPE


def starting_volume(belief: Belief, cost: float, precision: float = PRECISION, most: float = MOST_VOLUME) -> Bounds:
    """The discounted volume γ_x/(1 − γ_x) above which a belief is worth a first acceptance.

    Infinite where it exceeds ``most``, by default a million; 0 where the expected success rate is above the cost
    already. A large belief just below the cost takes long: a coarse precision or a lower ``most`` is then quicker.

    >>> [round(starting_volume(Belief(2, 1), cost).midpoint, 2) for cost in (0.7, 0.8, 0.9)]
    [8.67, 32.14, 184.78]
    """
    check_prior(belief, "belief")
    fine = real("precision", precision, above=0, below=1)
    return _starting_volume(belief, check_cost(cost), fine, real("most", most, above=0))


@lru_cache(maxsize=65_536)
def _starting_volume(belief: Belief, cost: float, precision: float, most: float) -> Bounds:
    from lenience.solvers.stopping.solve import solve_discounted

    if belief.mean > cost:
        return Bounds(0.0, 0.0)
    if belief.certain:
        return Bounds(math.inf, math.inf)

    def worth(volume: float) -> Bounds:
        solution = solve_discounted(belief.n, belief.s, cost, volume / (1.0 + volume), 1, precision * 1e-3)
        return solution.continuation

    # One acceptance loses at least c − p̂, and all that may follow gains at most volume · E(p − c)⁺.
    from lenience.solvers.stopping.clairvoyant import gain_of_knowing

    gain = gain_of_knowing(belief.n, belief.s, cost)
    low = (cost - belief.mean) / gain if gain > 0.0 else math.inf
    if low > most:
        return Bounds(math.inf, math.inf)
    high = max(2.0 * low, 1e-3)
    while not worth(high).lower > 0.0:
        low, high = (high if worth(high).upper <= 0.0 else low), 2.0 * high
        if high > most:
            return Bounds(math.inf, math.inf)
    while high - low > precision * high:
        middle = 0.5 * (low + high)
        value = worth(middle)
        if value.lower > 0.0:
            high = middle
        elif value.upper <= 0.0:
            low = middle
        else:
            break  # nearer than the enclosure can tell
    return Bounds(low, high)


class Start(msgspec.Struct, frozen=True):
    """Whether a segment starts: its discounted volume, and the volume at which it would, infinite where that is both
    beyond a thousand and beyond ten times its own.

    Where labels come late ``needed`` is the volume at which it would if they came at once: no less is enough.
    """

    name: str
    group: str
    prior: Belief
    cost: float
    volume: float
    needed: float
    starts: bool

    @property
    def loses(self) -> bool:
        """Whether it never starts because it is known to lose, and not because too few are to come."""
        return not self.starts and known_to_lose(self.prior, self.cost)

    @property
    def reason(self) -> str:
        """Why, in words."""
        if self.starts and self.needed == 0.0:
            expected, even = percents(self.prior.mean, self.cost)
            return f"starts: {expected} expected is above the cost of {even}"
        if self.starts:
            enough = f"{count(self.needed)} are enough to make learning pay"
            return f"starts: {count(self.volume)} discounted members to come, and {enough}"
        if self.loses:
            expected, even = percents(self.prior.mean, self.cost)
            return f"never starts: {expected} expected, and almost surely less than the cost of {even}"
        if self.needed < self.volume:
            return "never starts: its labels come so late that learning does not pay"
        never = "only far more" if math.isinf(self.needed) else f"only {count(self.needed)}"
        return f"never starts: {count(self.volume)} discounted members to come, and {never} would make learning pay"


class Shutout(msgspec.Struct, frozen=True):
    """By group: how many segments are shut out at the outset, and of the deserving ones (p > c) how many and what
    share of them.

    ``deserving`` and the rest are nothing where no truths are given; ``deserving_share_shut`` weighs segments by their
    arrivals.
    """

    model: str
    group: str
    segments: int
    shut: int
    deserving: int | None
    deserving_shut: int | None
    deserving_share_shut: float | None


def starts(segments: Segments | Iterable[Segment]) -> list[Start]:
    """For each segment its discounted volume, the volume at which it would start, and whether it does.

    >>> from lenience import Discounted
    >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> for row in starts(cells):
    ...     print(row.name, row.reason)
    many starts: 95 discounted members to come, and 32.1 are enough to make learning pay
    few never starts: 3.96 discounted members to come, and only 32.1 would make learning pay
    """
    rows = []
    for cell in listed("segments", segments, SEGMENTS):
        having("segments", cell, "objective", SEGMENTS)
        cost, volume = cell.objective.cost, cell.volume
        needed = starting_volume(cell.prior, cost, SHOWN, max(MOST_SHOWN, 10.0 * volume))
        near = needed.lower <= volume <= needed.upper and needed.width > 0.0
        if cell.objective.label_delay or near:
            begins = _begins(cell)
        else:
            begins = volume > needed.lower or cell.prior.mean > cost
        rows.append(Start(cell.name, cell.group, cell.prior, cost, volume, needed.midpoint, begins))
    return rows


def _begins(cell: Segment) -> bool:
    """Whether a segment starts at the volume it has: one solve, where the volume at which it would takes many."""
    return bool(cell.own.starts(cell.prior))


def shut_out_at_outset(
    segments: Segments,
    truths: Mapping[str, float] | None = None,
    model: str = "as given",
    begin: Mapping[str, bool] | None = None,
) -> list[Shutout]:
    """By group, how many segments never start, and how many of those deserve acceptance (p > c) where truths are given.

    ``begin`` says which start, where that is known already.

    >>> from lenience import Discounted
    >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1), {"many": "A", "few": "B"})
    >>> [(row.group, row.deserving, row.deserving_shut) for row in shut_out_at_outset(cells, {"many": 0.9, "few": 0.9})]
    [('A', 1, 0), ('B', 1, 1)]
    """
    having("segments", segments, "groups", SEGMENTS)
    result = []
    for group in segments.groups:
        mine = [
            (cell, _begins(cell) if begin is None else begin[cell.name]) for cell in segments if cell.group == group
        ]
        shut = sum(not begins for _, begins in mine)
        if truths is None:
            result.append(Shutout(model, group, len(mine), shut, None, None, None))
            continue
        good = [(cell, begins) for cell, begins in mine if truths[cell.name] > cell.objective.cost]
        lost = [cell for cell, begins in good if not begins]
        volume = math.fsum(cell.volume for cell, _ in good)
        share = math.fsum(cell.volume for cell in lost) / volume if volume else 0.0
        result.append(Shutout(model, group, len(mine), shut, len(good), len(lost), share))
    return result
