"""The certified solver for offers whose labels come late: a two-sided recursion over (n, s, pending).

The model. Arrivals come at rate λ, each pending label at rate μ, and money is discounted at rate r. With m labels
pending, R = p̂ V(n+1, s+1, m−1) + (1 − p̂) V(n+1, s, m−1) and the worth of one more pending label D = V(m+1) − V(m),

    (r + mμ) V(m) = λ Σ w_k (g_k + D)⁺ + mμ R.

As without delay, write V = (λ/r) φ(p̂) + X. With the accepted menus A, their share d and their expected losses Z,

    X(m) = [λ d X(m+1) − λ Z + mμ R]/(r + mμ + λ d),

where R is now E X′(m−1) and (λ/r) times what the kinks between the successors add. The true X is the largest over all
sets A, and the best A has the menus with the largest gains. So the menus are sorted once for each (n, s), and the set
changes little from one m to the next.

The enclosure.

- The last row, and every state outside the window, has 0 ≤ X ≤ (λ/r) times the gain of knowing p.
- At the cap M, a lower bound is to throw the label of a new acceptance away: X(M) = MμR/(r + Mμ). An upper bound
  reveals that label at once: X(M+1) ≤ E X′(M) and the kinks' part.
- Both sides use the set that suits the upper side, and every step has a relative margin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.compiled import compiled
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.solvers.offers.accepted_sets import best_offers
from lenience.solvers.offers.band import MARGIN
from lenience.solvers.offers.learning_gain import known_gain
from lenience.solvers.offers.posterior_means import write_means
from lenience.solvers.offers.solve import components, prepare
from lenience.solvers.stopping.solve import progress

SECONDS_A_STATE = 6e-9  # on one core
ATTEMPTS = 4


class DelayedOfferSolution(NamedTuple):
    """Hold the bounds at the prior for 0, 1, … pending labels, in money."""

    value: Bounds
    lower: NDArray[np.float64]  # V(m) less what is earned where p̂ is the success rate, for m = 0 to the cap
    upper: NDArray[np.float64]
    look_ahead: int
    rows: NDArray[np.int64]  # row k: its first state, its position in the table, its number of states
    table: NDArray[np.float64]  # bounds of V(m+1) − V(m), not cut off at 0: side, state, number pending
    most: float  # the value if the success rate were known

    def value_with(self, pending: int) -> Bounds:
        """Return the bounds of V(m). It does not fall in m, and knowing the success rate is worth more than any m."""
        last = len(self.lower) - 1
        lower = self.value.lower + float(self.lower[min(pending, last)] - self.lower[0])
        upper = self.value.upper + float(self.upper[pending] - self.upper[0]) if pending <= last else self.most
        return Bounds(lower, max(upper, lower))

    def bounds(self, pending: int) -> Bounds:
        """Return the bounds of V(m+1) − V(m): what one more pending label is worth.

        It falls in m, so for more pending than were followed it is between 0 and the last upper bound.
        """
        last = len(self.lower) - 2
        at = min(pending, last)
        low = float(self.lower[at + 1] - self.upper[at]) if pending <= last else 0.0
        return Bounds(max(low, 0.0), max(float(self.upper[at + 1] - self.lower[at]), 0.0))

    def worth(self, pending: int) -> float:
        """Return the middle of the bounds; 0 for more pending than were followed."""
        return self.bounds(pending).midpoint if pending < len(self.lower) - 1 else 0.0

    def first_rejection(self, profit: float) -> int:
        """Return the fewest pending labels at which an expected loss is not worth taking, by the middle of the bounds.

        ``profit`` is the expected profit of an offer, below 0.
        """
        pending = 0
        while pending < len(self.lower) - 1 and profit + self.worth(pending) > 0.0:
            pending += 1
        return pending


@compiled
def solve_delayed_offer_band(
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    arrivals: float,
    label_rate: float,
    discount_rate: float,
    cap: int,
    last: int,
    drop: float,
    mean_error: float,
    rows: int,
    progress: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], int, NDArray[np.int64], NDArray[np.float64]]:
    """Run the recursion from row ``last`` to row 0; return the bounds of X at the prior for each m, and the states.

    ``drop`` is what X may be at most where states are left out of the window. The bounds of D in the first ``rows``
    rows are returned too: for each row its first state, its position in the table and its number of states, and the
    table with a lower and an upper bound for each state and m.
    """
    index = np.zeros((rows, 3), dtype=np.int64)
    table = np.zeros((2, 64 if rows > 0 else 0, cap))
    used = 0
    menus = share.size
    volume = arrivals / discount_rate
    total = 0.0
    for i in range(slope.size):
        total += slope[i]
    loss_margin = 4e-15 * total
    kink_margin = 1e-15 + 2.0 * mean_error
    more = 1.0 + MARGIN
    less = 1.0 - MARGIN
    planes = cap + 1
    numbers = np.arange(last + 3).astype(np.float64)
    mean = np.zeros(last + 3)
    rest = np.zeros(last + 3)
    mean_next = np.zeros(last + 3)
    rest_next = np.zeros(last + 3)
    gain = np.zeros(menus)
    choice = np.zeros(menus, dtype=np.int64)
    d = np.zeros(menus + 1)
    loss = np.zeros(menus + 1)
    states = 0

    # The window of the last row: where the gain of knowing p is above the drop.
    write_means(last, 0, last, mixture, log_start, numbers, mean_next, rest_next)
    middle = min(np.searchsorted(mean_next[: last + 1], kink[0]), last)
    bottom = middle
    while bottom > 0 and volume * known_gain(last, bottom, mixture, log_start, kink, slope) > drop:
        bottom -= 1
    top = min(max(np.searchsorted(mean_next[: last + 1], kink[kink.size - 1]), bottom), last)
    while top < last and volume * known_gain(last, top, mixture, log_start, kink, slope) > drop:
        top += 1
    width = top - bottom + 3
    low = np.zeros((width, planes))
    high = np.zeros((width, planes))
    for j in range(bottom, top + 1):
        high[j - bottom, :] = volume * known_gain(last, j, mixture, log_start, kink, slope)
    low_up = np.zeros(planes)
    high_up = np.zeros(planes)
    new_low = np.zeros(planes)
    new_high = np.zeros(planes)

    for k in range(last - 1, -1, -1):
        progress[0] = last - k
        write_means(k + 1, 0, k + 1, mixture, log_start, numbers, mean_next, rest_next)
        write_means(k, 0, k, mixture, log_start, numbers, mean, rest)
        # The window of this row. Its lower edge may fall by one state, and both edges close in where X is small.
        next_bottom = bottom
        next_top = top
        bottom = min(max(bottom - 1, 0), k)
        while (
            bottom < k
            and mean[bottom] < kink[0]
            and volume * known_gain(k, bottom, mixture, log_start, kink, slope) <= drop
        ):
            bottom += 1
        top = min(top, k)
        while (
            top > bottom
            and mean[top] > kink[kink.size - 1]
            and volume * known_gain(k, top, mixture, log_start, kink, slope) <= drop
        ):
            top -= 1
        below = volume * known_gain(k + 1, max(next_bottom - 1, 0), mixture, log_start, kink, slope)
        above = volume * known_gain(k + 1, min(next_top + 1, k + 1), mixture, log_start, kink, slope)
        count = top - bottom + 1
        if count + 3 > low.shape[0]:
            wider_low = np.zeros((2 * (count + 3), planes))
            wider_high = np.zeros((2 * (count + 3), planes))
            wider_low[: low.shape[0]] = low
            wider_high[: high.shape[0]] = high
            low = wider_low
            high = wider_high
        # Row k + 1 is stored from next_bottom on; row k is written from the position of its own bottom on. Where the
        # window falls by one, move everything up by one position first.
        shift = next_bottom - bottom
        if shift > 0:
            for position in range(next_top - next_bottom, -1, -1):
                low[position + shift] = low[position]
                high[position + shift] = high[position]
            for position in range(shift):
                low[position] = 0.0
                high[position] = below
        offset = -shift if shift < 0 else 0
        for j in range(bottom, top + 1):
            here = j - bottom
            old = here + offset
            up_inside = j + 1 <= next_top
            down_inside = j <= next_top
            p = mean[j]
            q = rest[j]
            kinks_low = 0.0
            kinks_high = 0.0
            for i in range(kink.size):
                if mean_next[j] - kink_margin < kink[i] < mean_next[j + 1] + kink_margin:
                    extra = q * (kink[i] - mean_next[j])
                    if kink[i] > p:
                        extra = p * (mean_next[j + 1] - kink[i])
                    kinks_low += slope[i] * max(extra * less - kink_margin, 0.0)
                    kinks_high += slope[i] * (max(extra, 0.0) * more + kink_margin)
            kinks_low *= volume
            kinks_high *= volume * more
            best_offers(p, amount, cost, start, gain, choice)
            order = np.argsort(-gain)
            for i in range(menus):
                m = order[i]
                d[i + 1] = d[i] + share[m]
                loss[i + 1] = loss[i] + share[m] * max(-gain[m], 0.0)
            for m in range(planes):
                low_up[m] = low[old + 1, m] if up_inside else 0.0
                high_up[m] = high[old + 1, m] if up_inside else above
            taken = 0
            for m in range(cap, -1, -1):
                pending = m * label_rate
                worth_low = kinks_low
                worth_high = kinks_high
                if m > 0:
                    down_low = low[old, m - 1] if down_inside else 0.0
                    down_high = high[old, m - 1] if down_inside else above
                    worth_low += (p * low_up[m - 1] + q * down_low) * less - mean_error * (low_up[m - 1] + down_low)
                    worth_high += (p * high_up[m - 1] + q * down_high) * more + mean_error * (
                        high_up[m - 1] + down_high
                    )
                if m == cap:
                    down_high = high[old, m] if down_inside else above
                    next_high = (
                        (p * high_up[m] + q * down_high) * more + mean_error * (high_up[m] + down_high) + kinks_high
                    )
                    next_low = 0.0
                else:
                    next_high = new_high[m + 1]
                    next_low = new_low[m + 1]
                base_high = pending * worth_high
                base_low = pending * max(worth_low, 0.0)
                # The best set: add the menu with the next largest gain while that pays.
                value = (arrivals * (d[taken] * next_high - loss[taken]) + base_high) / (
                    discount_rate + pending + arrivals * d[taken]
                )
                while taken < menus and gain[order[taken]] + next_high - value > 0.0:
                    taken += 1
                    value = (arrivals * (d[taken] * next_high - loss[taken]) + base_high) / (
                        discount_rate + pending + arrivals * d[taken]
                    )
                while taken > 0 and gain[order[taken - 1]] + next_high - value <= 0.0:
                    taken -= 1
                    value = (arrivals * (d[taken] * next_high - loss[taken]) + base_high) / (
                        discount_rate + pending + arrivals * d[taken]
                    )
                margin = arrivals * loss_margin / (discount_rate + pending + arrivals * d[taken])
                new_high[m] = value * more + margin
                if m == cap:
                    new_low[m] = base_low / (discount_rate + pending) * less
                else:
                    lower = (arrivals * (d[taken] * next_low - loss[taken]) + base_low) / (
                        discount_rate + pending + arrivals * d[taken]
                    )
                    # Rejecting everyone below the break-even is always possible, and so is X ≥ 0.
                    new_low[m] = max(lower * less - margin, base_low / (discount_rate + pending) * less)
            for m in range(planes):
                low[here, m] = new_low[m]
                high[here, m] = new_high[m]
            states += planes
        if k < rows:
            if used + count > table.shape[1]:
                larger = np.zeros((2, 2 * (used + count), cap))
                larger[:, :used] = table[:, :used]
                table = larger
            index[k, 0] = bottom
            index[k, 1] = used
            index[k, 2] = count
            for position in range(count):
                for m in range(cap):
                    table[0, used + position, m] = low[position, m + 1] - high[position, m]
                    table[1, used + position, m] = high[position, m + 1] - low[position, m]
            used += count
    return low[0].copy(), high[0].copy(), states, index, table[:, :used].copy()


def solve_delayed_offers(
    prior: Belief | MixtureBelief,
    offers: Offers,
    arrivals: float,
    label_delay: float,
    discount_rate: float,
    tolerance: float,
    seconds: float,
    rows: int = 0,
) -> DelayedOfferSolution:
    """Solve from a prior; the tolerance is relative to the value of accepting everyone who succeeds.

    The first ``rows`` rows are kept as a table of what one more pending label is worth.
    """
    arrays = prepare(offers)
    mixture, log_start, mean_error = components(prior)
    volume = arrivals / discount_rate
    in_flight = arrivals * label_delay
    cap = math.ceil(in_flight + 4.0 * math.sqrt(in_flight) + 4.0)
    ahead = math.ceil(volume * max(2.0, 0.25 * math.log(1.0 / tolerance)) + 20.0)
    target = tolerance * volume
    spent = 0.0  # by estimate, so that the same problem always has the same answer
    for attempt in range(ATTEMPTS):
        spent = _check_effort(arrays.kink, prior.n, ahead, cap, tolerance, seconds, spent)
        progress[:] = 0, ahead
        low, high, _, index, table = solve_delayed_offer_band(
            mixture, log_start, *arrays[:6], arrivals, 1.0 / label_delay, discount_rate, cap, ahead,
            target / 16.0, mean_error, rows, progress,
        )  # fmt: skip
        width = float(high[0] - low[0])
        if width <= target or attempt == ATTEMPTS - 1:
            break
        ahead = math.ceil(ahead * 1.5)
        cap = math.ceil(cap * 1.15)
        target /= 2.0
    mean = prior.mean
    known = volume * sum(
        b * max(mean - at, 0.0) for at, b in zip(arrays.kink.tolist(), arrays.slope.tolist(), strict=True)
    )
    slack = 8e-15 * (volume + float(high[0]))
    unit = arrays.unit
    value = Bounds(max(known + float(low[0]) - slack, 0.0) * unit, (known + float(high[0]) + slack) * unit)
    most = (known + volume * known_gain(0, 0, mixture, log_start, arrays.kink, arrays.slope) + slack) * unit
    return DelayedOfferSolution(value, low * unit, high * unit, ahead, index, table * unit, most)


def _check_effort(
    kink: NDArray[np.float64], n: float, last: int, cap: int, tolerance: float, seconds: float, spent: float
) -> float:
    """Return the estimated seconds of all attempts so far, or raise TooLargeError if that is longer than allowed."""
    distance = float(kink[-1] - kink[0])
    beside = 2.0 * math.sqrt(0.5 * max(math.log(16.0 / tolerance), 1.0) * (n + last))
    estimate = last * (min(distance * (n + last) / 2.0 + beside, last / 2.0)) * (cap + 1) * SECONDS_A_STATE
    estimate += spent
    if estimate > seconds:
        raise TooLargeError(
            "Solving this problem",
            seconds=estimate,
            allowed_seconds=seconds,
            detail=f"{last:,} rows, up to {cap:,} pending",
            allowed=f"{seconds:g} seconds",
            field=("tolerance", "seconds"),
            value=tolerance,
            hint="Use a larger tolerance, or allow more seconds.",
        )
    return estimate
