"""Segments that never start: too rare, for their prior, to be worth a first acceptance, or known to lose.

The policy accepts at the prior exactly if Ṽ(n₀, s₀) > 0, and Ṽ does not fall as γ_x rises. So there is one discounted
volume γ_x/(1 − γ_x) = γq/(1 − γ) above which a segment starts. Below it the policy never accepts anyone from the
segment, however good its members are. With a flat prior that volume is 8.7, 32, 185 for c = 0.7, 0.8, 0.9: redlining by
size. The remedies are a prior that borrows strength from other segments (:mod:`lenience.models`), coarser segments, a
floor on exploration (:mod:`lenience.analysis.fairness`), or a smaller first offer
(:mod:`lenience.segments.small_starts`).

Where offers differ, a segment starts if one of its offers is accepted at the prior: a(p̂ − c) + I > 0, where I is the
value of one label. So I/(c − p̂) is the largest amount at which it starts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.formatting import count, percent, percents
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.validation import check_cost, having, listed, real
from lenience.policies.beliefs.offers import offers_of
from lenience.segments.policies import solve_offers_in_time
from lenience.segments.segments import Segment, Segments, plain_belief

MOST_VOLUME = 1e6  # A belief that would start only beyond this volume counts as never starting.
# The largest volume to search for a segment, or ten times its own: each doubling takes twice as long.
MOST_SHOWN = 1e3
MOST_SEARCHED = 2e4  # beyond it a solve takes longer than a tenth of a second
PRECISION = 1e-6  # of the volume, relative
COARSE, MOST_FORECAST = 0.01, 20_000.0  # precision and largest volume of a forecast
SEGMENTS = "Segments, such as Segments.of(shares, objective, prior)"
LITTLE_HOPE = 0.05  # A segment is known to lose if the success rate is above the cost with a smaller probability.
SHOWN = 1e-4  # relative precision of volumes that are shown
TOLERANCE = 1e-9  # of a solve with offers, in units of the mean amount


def known_to_lose(belief: Belief | MixtureBelief, cost: float) -> bool:
    """Return whether the success rate is above the cost with a probability of less than 5%.

    >>> known_to_lose(Belief(1188, 968), 0.85), known_to_lose(Belief(2, 1), 0.85)
    (True, False)
    """
    return belief.exceeds(cost) < LITTLE_HOPE


def starting_volume(belief: Belief, cost: float, precision: float = PRECISION, most: float = MOST_VOLUME) -> Bounds:
    """Return the discounted volume γ_x/(1 − γ_x) above which a belief is worth a first acceptance.

    A large belief just below the cost takes long. A coarse precision or a smaller ``most`` is then quicker.

    Parameters
    ----------
    belief : Belief
        What is known of the success probability.
    cost : float
        The break-even success rate, strictly between 0 and 1.
    precision : float
        The relative precision of the volume.
    most : float
        The largest volume to search.

    Returns
    -------
    Bounds
        Bounds of the volume: 0 if the expected success rate is above the cost, infinite if the volume exceeds ``most``.

    Examples
    --------
    >>> [round(starting_volume(Belief(2, 1), cost).midpoint, 2) for cost in (0.7, 0.8, 0.9)]
    [8.67, 32.14, 184.78]
    """
    check_prior(belief, "belief")
    fine = real("precision", precision, above=0, below=1)
    return _starting_volume(belief, check_cost(cost), fine, real("most", most, above=0))


@lru_cache(maxsize=65_536)
def _starting_volume(belief: Belief, cost: float, precision: float, most: float) -> Bounds:
    """Return bounds of the starting volume by bisection, cached."""
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
            break  # The bounds are too wide to decide.
    return Bounds(low, high)


class OfferStart(msgspec.Struct, frozen=True):
    """Which offers a segment starts with, where amounts and break-evens differ.

    Parameters
    ----------
    share_accepted
        The share of its members whose offer is accepted now.
    largest
        The largest amount at stake that is accepted now at the segment's mean break-even; infinite if the expected
        success rate is above it.
    label_value
        What one more outcome is worth for later decisions.
    smallest
        The smallest amount at stake among its offers.
    currency
        The currency of these amounts.
    """

    share_accepted: float
    largest: float
    label_value: float
    smallest: float
    currency: str = ""


class Start(msgspec.Struct, frozen=True):
    """Whether a segment starts, and why.

    Parameters
    ----------
    name
        The segment.
    group
        Its group.
    prior
        What is known of its success probability.
    cost
        Its break-even success rate; with offers, that of accepting everyone.
    volume
        The discounted number of its members to come.
    needed
        The volume above which it would start; infinite if that exceeds both 1,000 and ten times its own. With late
        labels, the volume that would be needed with immediate labels, which is a lower bound. With offers or a mixture
        for a prior it is not computed: 0 if the segment starts, and infinite if it does not.
    starts
        Whether it starts.
    offers
        Which offers it starts with; None if all its members have the same break-even.

    Examples
    --------
    >>> start = Start("few", "", Belief(2, 1), cost=0.8, volume=3.96, needed=32.1, starts=False)
    >>> start.reason
    'never starts: 3.96 discounted applicants expected, 32.1 needed for learning to pay'
    >>> start.loses
    False
    """

    name: str
    group: str
    prior: Belief | MixtureBelief
    cost: float
    volume: float
    needed: float
    starts: bool
    offers: OfferStart | None = None

    @property
    def loses(self) -> bool:
        """Whether the segment never starts because it is known to lose, and not because too few members are to come."""
        return not self.starts and known_to_lose(self.prior, self.cost)

    @property
    def reason(self) -> str:
        """Why it starts or not, in words."""
        if self.offers is not None:
            return self._reason_of_offers(self.offers)
        if self.starts and self.needed == 0.0:
            expected, even = percents(self.prior.mean, self.cost)
            return f"starts: {expected} expected to succeed, above the break-even of {even}"
        if self.starts:
            return f"starts: {self._expected}, {count(self.needed)} needed for learning to pay"
        if self.loses:
            expected, even = percents(self.prior.mean, self.cost)
            return f"never starts: {expected} expected to succeed, almost certainly below the break-even of {even}"
        if self.needed < self.volume:
            return "never starts: its outcomes arrive too late for learning to pay"
        needed = "far more" if math.isinf(self.needed) else count(self.needed)
        return f"never starts: {self._expected}, {needed} needed for learning to pay"

    def _reason_of_offers(self, offers: OfferStart) -> str:
        """Why it starts or not, where offers differ."""
        money = Money(1.0, offers.currency)
        expected, even = percents(self.prior.mean, self.cost)
        if self.starts and math.isinf(offers.largest):
            return f"starts: {expected} expected to succeed, above the mean break-even of {even}"
        most = money.format(offers.largest)
        if self.starts:
            return (
                f"starts: {percent(offers.share_accepted, 0)} of offers are accepted, up to {most} at the mean "
                f"break-even of {even}"
            )
        if self.loses:
            return f"never starts: {expected} expected to succeed, almost certainly below the mean break-even of {even}"
        return (
            f"never starts: only offers of up to {most} would pay at the mean break-even of {even}, and the smallest "
            f"is {money.format(offers.smallest)}"
        )

    @property
    def _expected(self) -> str:
        """The volume, in words."""
        return f"{count(self.volume)} discounted applicants expected"


class Shutout(msgspec.Struct, frozen=True):
    """How many segments of a group never start, and how many of these are worth accepting (p > c).

    Parameters
    ----------
    model
        The model of the priors, as a label.
    group
        The group.
    segments
        The number of segments in the group.
    shut
        The number that never start.
    deserving
        The number whose true success rate is above the cost; None if no true rates are given.
    deserving_shut
        The number of these that never start; None if no true rates are given.
    deserving_share_shut
        The same as a share, weighted by arrivals; None if no true rates are given.

    Examples
    --------
    >>> from lenience import Discounted
    >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> [row] = shut_out_at_outset(cells)
    >>> row.segments, row.shut
    (2, 1)
    """

    model: str
    group: str
    segments: int
    shut: int
    deserving: int | None
    deserving_shut: int | None
    deserving_share_shut: float | None


def starts(segments: Segments | Iterable[Segment]) -> list[Start]:
    """Return for each segment whether it starts, its discounted volume and the volume above which it would.

    Parameters
    ----------
    segments : Segments or iterable of Segment
        The segments.

    Returns
    -------
    list of Start
        One for each segment.

    Examples
    --------
    >>> from lenience import Discounted
    >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> for row in starts(cells):
    ...     print(row.name, row.reason)
    many starts: 95 discounted applicants expected, 32.1 needed for learning to pay
    few never starts: 3.96 discounted applicants expected, 32.1 needed for learning to pay
    """
    rows = []
    for cell in listed("segments", segments, SEGMENTS):
        having("segments", cell, "objective", SEGMENTS)
        if has_offers(cell):
            rows.append(_start_with_offers(cell))
            continue
        prior = plain_belief(cell, "starts")
        cost, volume = cell.objective.cost, cell.volume
        searched = max(MOST_SHOWN, min(10.0 * volume, MOST_SEARCHED))
        needed = starting_volume(prior, cost, SHOWN, searched)
        near = needed.lower <= volume <= needed.upper and needed.width > 0.0
        unknown = near or (math.isinf(needed.lower) and volume > searched)
        begins = (
            segment_starts(cell)
            if cell.objective.label_delay or unknown
            else volume > needed.lower or prior.mean > cost
        )
        rows.append(Start(cell.name, cell.group, prior, cost, volume, needed.midpoint, begins))
    return rows


def has_offers(cell: Segment) -> bool:
    """Return whether a segment is solved with offers: its break-evens differ, or its prior is a mixture."""
    return cell.objective.offers is not None or isinstance(cell.prior, MixtureBelief)


def _start_with_offers(cell: Segment) -> Start:
    """Return whether a segment starts with one of its offers, and with which."""
    offers, policy = offers_of(cell.objective), first_policy(cell.own, cell.prior)
    mean, cost = cell.prior.mean, offers.mean_cost
    accepted = math.fsum(
        share
        for menu, share in enumerate(offers.share)
        if share > 0.0 and policy.decide(cell.prior, offers.offers_of(menu)).accepted
    )
    label = policy.label_value(cell.prior)
    largest = math.inf if mean >= cost else label.lower / (cost - mean)
    needed = 0.0 if accepted > 0.0 else math.inf
    own = None
    if cell.objective.offers is not None:
        own = OfferStart(accepted, largest, label.midpoint, min(offers.amount), offers.currency)
    return Start(cell.name, cell.group, cell.prior, cost, cell.volume, needed, accepted > 0.0, own)


@lru_cache(maxsize=4096)
def first_policy(objective: Any, prior: Belief | MixtureBelief) -> Any:
    """Return the policy of a segment with offers or a mixture for a prior, for its first decision."""
    if not objective.stationary:
        return objective.solve(prior)
    return solve_offers_in_time(objective, prior, 1, TOLERANCE).policy


class StartForecast(msgspec.Struct, frozen=True):
    """Whether a segment would start, if that can be computed in a limited time.

    Parameters
    ----------
    name
        The segment.
    belief
        What is known of it.
    share
        Its share of the arrivals.
    volume
        The discounted number of its members to come.
    needed
        The volume at which it would start; None if there was no time to compute it.
    starts
        Whether it starts; None if there was no time to compute it.
    """

    name: str
    belief: Belief
    share: float
    volume: float
    needed: float | None
    starts: bool | None


def forecast_starts(segments: Segments | Iterable[Segment], seconds: float) -> list[StartForecast]:
    """Forecast which segments start, the largest first, to a hundredth of a volume and within a limited time.

    Parameters
    ----------
    segments
        The segments.
    seconds
        The time to spend; later segments get None where the answer would take longer.

    Returns
    -------
    list of StartForecast
        One for each segment.

    Examples
    --------
    >>> from lenience import Discounted
    >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> [(row.name, row.starts) for row in forecast_starts(cells, seconds=10)]
    [('many', True), ('few', False)]
    """
    cells = sorted(listed("segments", segments, SEGMENTS), key=lambda cell: -cell.share)
    if cells:
        # The first call compiles the solver, which does not count as time spent.
        plain_belief(cells[0], "forecast_starts")
        starting_volume(Belief(2, 1), cells[0].objective.cost, COARSE, MOST_FORECAST)
    until = time.monotonic() + seconds
    return [_forecast(cell, in_time=lambda: time.monotonic() < until) for cell in cells]


def _forecast(cell: Segment, in_time: Callable[[], bool]) -> StartForecast:
    """Forecast whether one segment starts, if there is time."""
    prior = plain_belief(cell, "forecast_starts")
    cost, volume = cell.objective.cost, cell.share * cell.objective.volume
    needed: float | None = None
    begins: bool | None = None
    if prior.mean > cost:
        needed, begins = 0.0, True
    elif in_time():
        bounds = starting_volume(prior, cost, COARSE, MOST_FORECAST)
        needed = bounds.midpoint
        begins = None if bounds.lower < volume < bounds.upper else volume >= bounds.upper
        if math.isinf(needed) and volume > MOST_FORECAST:
            begins = None
        if begins and cell.objective.label_delay:
            begins = _begins_late(cell)
    return StartForecast(cell.name, prior, cell.share, volume, needed, begins)


def _begins_late(cell: Segment) -> bool | None:
    """Return whether a first acceptance pays although its label comes late; None if that takes long to compute."""
    try:
        return bool(cell.own.enclose(cell.prior, tolerance=COARSE, seconds=1.0)[1] != 0)
    except TooLargeError:
        return None


def segment_starts(cell: Segment) -> bool:
    """Return whether a segment starts at its own volume: one solve, while the volume at which it would takes many."""
    if has_offers(cell):
        return _start_with_offers(cell).starts
    return bool(cell.own.starts(cell.prior))


def shut_out_at_outset(
    segments: Segments,
    truths: Mapping[str, float] | None = None,
    model: str = "as given",
    begin: Mapping[str, bool] | None = None,
) -> list[Shutout]:
    """Return, by group, how many segments never start, and how many of these are worth accepting (p > c).

    Parameters
    ----------
    segments : Segments
        The segments.
    truths : mapping, optional
        The true success rate by segment. Without it, the numbers of segments worth accepting are None.
    model : str
        The model of the priors, as a label of the rows.
    begin : mapping, optional
        Whether each segment starts, if that is known already.

    Returns
    -------
    list of Shutout
        One for each group.

    Examples
    --------
    >>> from lenience import Discounted
    >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1), {"many": "A", "few": "B"})
    >>> [(row.group, row.deserving, row.deserving_shut) for row in shut_out_at_outset(cells, {"many": 0.9, "few": 0.9})]
    [('A', 1, 0), ('B', 1, 1)]
    """
    having("segments", segments, "groups", SEGMENTS)
    result = []
    for group in segments.groups:
        mine = [
            (cell, segment_starts(cell) if begin is None else begin[cell.name])
            for cell in segments
            if cell.group == group
        ]
        shut = sum(not begins for _, begins in mine)
        if truths is None:
            result.append(Shutout(model, group, len(mine), shut, None, None, None))
            continue
        good = [(cell, begins) for cell, begins in mine if truths[cell.name] > cell.break_even]
        lost = [cell for cell, begins in good if not begins]
        volume = math.fsum(cell.volume for cell, _ in good)
        share = math.fsum(cell.volume for cell in lost) / volume if volume else 0.0
        result.append(Shutout(model, group, len(mine), shut, len(good), len(lost), share))
    return result
