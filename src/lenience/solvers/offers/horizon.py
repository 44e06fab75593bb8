"""The certified solver for offers over a known number of arrivals.

The model. With h arrivals left, k labels and j successes so far, each arrival brings menu m with probability w_m, whose
best offer earns g_m(p̂) on average. A rejection is not final, so the number of arrivals left belongs to the state:

    V_h = γ V_{h−1} + Σ w_m (g_m + I_h)⁺,     I_h = γ (p̂ V_{h−1}(k+1, j+1) + (1 − p̂) V_{h−1}(k+1, j) − V_{h−1}),

and V_0 = 0. I_h is the value of one label. One accepts exactly where g_m + I_h > 0.

The form to compute in. Let φ(p) = Σ w_m g_m(p)⁺ = Σ b_i (p − κ_i)⁺ be the reward of an arrival where p is known, and
A_h = 1 + γ + … + γ^(h−1). Write V_h = A_h φ(p̂) + X_h. So X_h ≥ 0 is what is gained by learning, and

    X_h = γ X_{h−1} + Σ w_m [(g_m + I_h)⁺ − g_m⁺],     I_h = γ (E X′_{h−1} + A_{h−1} B − X_{h−1}).

B = E φ(p̂′) − φ(p̂) comes only from kinks between the means of the two successors, and does not depend on h.

The band. Row k holds the states ``low[k]`` to ``high[k]``, the same for all h. Knowing p is worth at most A G, where G
bounds E φ(p) − φ(p̂). Below the band A G + max g_m < 0, so nobody is accepted there and X = 0. Above it every kink is
below p̂ and A G is less than ``drop``, so X is counted as 0 with an error of at most ``drop``. Both edges rise by 0 or 1
a row, so a state's successors are in the band of the next row or just beside it.

The error. X_h is monotone in X_{h−1} and E X′_{h−1}, so the error obeys e_h ≤ γ e_{h−1} + δ_h, with δ_h the roundings
of one step and ``drop``. The value of a label has an error of at most 2γ e_{h−1} + δ_h. There is no other error: the
recursion is exact.
"""

from __future__ import annotations

import math
from collections import OrderedDict
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
from lenience.solvers.offers.learning_gain import known_gain
from lenience.solvers.offers.posterior_means import write_means
from lenience.solvers.offers.solve import OfferArrays, components, prepare
from lenience.solvers.stopping.solve import progress

UNIT = 2.0**-53
SECONDS_A_STATE = 1.5e-9  # on one core
SECONDS_AN_OFFER = 9e-10  # for each state
MOST_SECONDS = 300.0
MOST_BYTES = 1.5e9
MOST_HORIZON = 1_000_000


class HorizonBand(NamedTuple):
    """Hold the states that are computed: row k has the states ``low[k]`` to ``high[k]``."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    offset: NDArray[np.int64]  # the position of state 0 of row k, less what comes before the band; see ``position``
    ends: NDArray[np.int64]  # the positions that rows 0 to k take together

    def position(self, k: int, j: int) -> int | None:
        """Return the position of a state in a plane; None outside the band."""
        return int(self.offset[k]) + j if self.low[k] <= j <= self.high[k] else None

    @property
    def states(self) -> float:
        """The number of states over all numbers of arrivals left."""
        return float(self.ends[:-1].sum())


@compiled
def find_band(
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    counts: NDArray[np.float64],
    drop: float,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> None:
    """Write the first and the last state of each row; ``counts[h]`` is A_h."""
    last = low.size - 1
    numbers = np.arange(last + 2).astype(np.float64)
    mean = np.zeros(last + 2)
    rest = np.zeros(last + 2)
    gain = np.zeros(start.size - 1)
    choice = np.zeros(start.size - 1, dtype=np.int64)
    first = 0
    top = 0
    for k in range(last + 1):
        future = counts[last - k]
        first = max(first - 1, 0)
        while first < k:
            write_means(k, first, first, mixture, log_start, numbers, mean, rest)
            if mean[first] >= kink[0]:
                break
            best_offers(mean[first], amount, cost, start, gain, choice)
            most = future * known_gain(k, first, mixture, log_start, kink, slope)
            if most * 1.0001 + np.max(gain) >= 0.0:
                break
            first += 1
        low[k] = first
        top = max(top, first)
        while top < k:
            write_means(k, top, top, mixture, log_start, numbers, mean, rest)
            above = mean[top] > kink[kink.size - 1]
            if above and future * known_gain(k, top, mixture, log_start, kink, slope) < drop:
                break
            top += 1
        high[k] = top
    # The lower edge never falls from a row to the next, and rises by at most one.
    for k in range(last - 1, -1, -1):
        low[k] = min(low[k], low[k + 1])
    for k in range(last):
        low[k + 1] = min(low[k + 1], low[k] + 1)


@compiled
def fill_planes(
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    offset: NDArray[np.int64],
    mean: NDArray[np.float64],
    bonus: NDArray[np.float64],
) -> None:
    """Write p̂ and B of each state."""
    last = low.size - 1
    numbers = np.arange(last + 3).astype(np.float64)
    here = np.zeros(last + 3)
    rest = np.zeros(last + 3)
    after = np.zeros(last + 3)
    rest_after = np.zeros(last + 3)
    for k in range(last + 1):
        begin = low[k]
        end = high[k]
        write_means(k, begin, end, mixture, log_start, numbers, here, rest)
        write_means(k + 1, begin, end + 1, mixture, log_start, numbers, after, rest_after)
        for j in range(begin, end + 1):
            mean[offset[k] + j] = here[j]
        for i in range(kink.size):
            if kink[i] <= after[begin] or kink[i] > after[end + 1]:
                continue
            j = begin + np.searchsorted(after[begin : end + 2], kink[i]) - 1
            extra = rest[j] * (kink[i] - after[j])
            if kink[i] > here[j]:
                extra = here[j] * (after[j + 1] - kink[i])
            bonus[offset[k] + j] += slope[i] * max(extra, 0.0)


@compiled
def run_planes(
    value: NDArray[np.float64],
    mean: NDArray[np.float64],
    bonus: NDArray[np.float64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    offset: NDArray[np.int64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    discount: float,
    counts: NDArray[np.float64],
    margins: NDArray[np.float64],
    begin: int,
    end: int,
    labels: NDArray[np.float64],
    progress: NDArray[np.int64],
) -> tuple[float, int]:
    """Advance the plane of X from ``begin`` arrivals left to ``end``, in place.

    If ``labels`` has lines, line i gets the value of a label with ``begin`` + 1 + i arrivals left. Returns the value of
    a label at the first state, and how many states have a decision that ``margins[h]``, the error of a label, leaves
    open.
    """
    last = low.size - 1
    one = np.uint64(1)  # unsigned offsets: without them the loops are not vectorised
    widest = 0
    for k in range(last + 1):
        widest = max(widest, high[k] - low[k] + 1)
    label = np.zeros(widest)
    total = np.zeros(widest)
    nearest = np.zeros(widest)
    gain = np.zeros(widest)
    stored = labels.shape[0] > 0
    undecided = 0
    first_label = 0.0
    for h in range(begin + 1, end + 1):
        progress[0] = h
        count = counts[h - 1]
        for k in range(last - h + 1):
            size = np.uint64(high[k] - low[k] + 1)
            here = np.uint64(offset[k] + low[k])
            after = np.uint64(offset[k + 1] + low[k])  # the cell before a row's first state, and after its last, is 0
            for i in range(np.uint64(0), size):
                p = mean[here + i]
                later = p * value[after + i + one] + (1.0 - p) * value[after + i]
                label[i] = discount * (later + count * bonus[here + i] - value[here + i])
                total[i] = 0.0
                nearest[i] = 1e300
            for m in range(share.size):
                weight = share[m]
                a = amount[start[m]]
                c = cost[start[m]]
                if start[m + 1] == start[m] + 1:
                    for i in range(np.uint64(0), size):
                        profit = a * (mean[here + i] - c)
                        both = profit + label[i]
                        total[i] += weight * (max(both, 0.0) - max(profit, 0.0))
                        nearest[i] = min(nearest[i], abs(both))
                    continue
                for i in range(np.uint64(0), size):
                    gain[i] = a * (mean[here + i] - c)
                for o in range(start[m] + 1, start[m + 1]):
                    a = amount[o]
                    c = cost[o]
                    for i in range(np.uint64(0), size):
                        gain[i] = max(gain[i], a * (mean[here + i] - c))
                for i in range(np.uint64(0), size):
                    both = gain[i] + label[i]
                    total[i] += weight * (max(both, 0.0) - max(gain[i], 0.0))
                    nearest[i] = min(nearest[i], abs(both))
            open_states = 0
            for i in range(np.uint64(0), size):
                value[here + i] = discount * value[here + i] + max(total[i], 0.0)
                open_states += int(nearest[i] < margins[h])
            undecided += open_states
            if stored:
                for i in range(np.uint64(0), size):
                    labels[h - begin - 1, here + i] = label[i]
        first_label = label[0]
    return first_label, undecided


class HorizonTables:
    """Hold what decides offers with any number of arrivals left.

    The planes of X are kept at every ``spacing`` arrivals. The values of a label between two of them are computed when
    they are needed, and the latest are kept.

    Parameters
    ----------
    prior
        The belief at the start.
    offers
        What arrivals bring.
    discount
        The discount factor from one arrival to the next, above 0 and at most 1.
    horizon
        The number of arrivals in all.
    tolerance
        How accurately values are computed, in units of the mean amount. Rounding may allow less.
    keep
        Whether to keep the planes. Without them only the start can be decided.
    """

    def __init__(
        self,
        prior: Belief | MixtureBelief,
        offers: Offers,
        discount: float,
        horizon: int,
        tolerance: float,
        keep: bool = True,
    ) -> None:
        self.prior, self.horizon, self.discount = prior, horizon, discount
        arrays, mixture, log_start, mean_error = _prepared(prior, offers)
        self.arrays, self.unit = arrays, arrays.unit
        self.counts = discounted_counts(discount, horizon)
        self.band = _band(arrays, mixture, log_start, self.counts, tolerance)
        self.spacing = max(1, math.ceil(math.sqrt(horizon / 2)))
        _check_effort(self.band, arrays, horizon, self.spacing if keep else 0)
        self.errors, self.margins = _errors(
            self.counts, discount, arrays.share.size, mean_error, _drop(self.counts, tolerance)
        )
        size = int(self.band.ends[-1])
        self._mean, self._bonus = np.zeros(size), np.zeros(size)
        fill_planes(
            mixture, log_start, arrays.kink, arrays.slope, self.band.low, self.band.high, self.band.offset,
            self._mean, self._bonus,
        )  # fmt: skip
        self._planes: list[NDArray[np.float64]] = []
        self._blocks: OrderedDict[int, NDArray[np.float64]] = OrderedDict()
        progress[:] = 0, horizon
        plane = np.zeros(size)
        self.undecided = 0
        for begin in range(0, horizon, self.spacing):
            if keep:
                self._planes.append(plane[: self.band.ends[horizon - begin]].copy())
            end = min(begin + self.spacing, horizon)
            self._first_label, undecided = self._run(plane, begin, end, np.empty((0, 0)))
            self.undecided += undecided
        self._first = float(plane[self.band.offset[0]])

    @property
    def value(self) -> Bounds:
        """The value at the start, in money."""
        mean = self.prior.mean
        known = math.fsum(
            b * max(mean - at, 0.0) for at, b in zip(self.arrays.kink.tolist(), self.arrays.slope.tolist(), strict=True)
        )
        middle = float(self.counts[-1]) * known + self._first
        error = float(self.errors[-1]) + 8 * UNIT * float(self.counts[-1])
        if middle == 0.0 and self._first_label + self._best_profit() < 0.0:
            return Bounds(0.0, 0.0)
        return Bounds(max(middle - error, 0.0) * self.unit, (middle + error) * self.unit)

    @property
    def label_value(self) -> Bounds:
        """The value of a label at the start, with all arrivals left, in money."""
        return self.around(self._first_label, self.horizon)

    @property
    def width(self) -> float:
        """The widest bounds of the value of a label, in money."""
        return 2.0 * float(self.margins.max()) * self.unit

    def labels(self, left: int) -> NDArray[np.float64]:
        """Return the values of a label with a number of arrivals left, by position, in units of the mean amount."""
        block = (left - 1) // self.spacing
        if block not in self._blocks:
            begin = block * self.spacing
            end = min(begin + self.spacing, self.horizon)
            plane = self._planes[block].copy()
            labels = np.zeros((end - begin, plane.size))
            self._run(plane, begin, end, labels)
            self._blocks[block] = labels
            while len(self._blocks) > 2:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(block)
        plane_of_labels: NDArray[np.float64] = self._blocks[block][left - 1 - block * self.spacing]
        return plane_of_labels

    def label_at(self, k: int, j: int, left: int) -> Bounds:
        """Return the value of a label after k labels with j successes, with a number of arrivals left, in money."""
        position = self.band.position(k, j)
        if position is None:
            return self.beyond(k, j, left)
        return self.around(float(self.labels(left)[position]), left)

    def state_labels(self, k: NDArray[np.int64], j: NDArray[np.int64], left: int) -> NDArray[np.float64]:
        """Return lower bounds of the value of a label at many states, in money."""
        inside = (j >= self.band.low[k]) & (j <= self.band.high[k])
        result = np.zeros(j.size)
        result[inside] = self.labels(left)[self.band.offset[k[inside]] + j[inside]]
        below: NDArray[np.float64] = np.maximum(result - self.margins[left], 0.0) * self.unit
        return below

    def label_plane(self, left: int) -> NDArray[np.float64]:
        """Return lower bounds of the value of a label at all states that can be met, in money.

        State (k, j) is at k(k+1)/2 + j.
        """
        rows = self.horizon - left + 1
        low, high, offset = (edge[:rows] for edge in (self.band.low, self.band.high, self.band.offset))
        widths = high - low + 1
        row = np.repeat(np.arange(rows), widths)
        j = np.arange(row.size) - (np.cumsum(widths) - widths)[row] + low[row]
        result = np.zeros(rows * (rows + 1) // 2)
        result[row * (row + 1) // 2 + j] = self.labels(left)[offset[row] + j]
        below: NDArray[np.float64] = np.maximum(result - self.margins[left], 0.0) * self.unit
        return below

    def around(self, label: float, left: int) -> Bounds:
        """Return bounds around a computed value of a label, in money."""
        margin = float(self.margins[left])
        return Bounds(max(label - margin, 0.0) * self.unit, max(label + margin, 0.0) * self.unit)

    def beyond(self, k: int, j: int, left: int) -> Bounds:
        """Return bounds of the value of a label outside the band: what knowing p is worth is the upper one."""
        arrays, mixture, log_start, _ = self._parts
        gain = known_gain(k, j, mixture, log_start, arrays.kink, arrays.slope)
        return Bounds(0.0, float(self.counts[left - 1]) * gain * self.unit)

    @property
    def _parts(self) -> tuple[OfferArrays, NDArray[np.float64], NDArray[np.float64], float]:
        mixture, log_start, mean_error = components(self.prior)
        return self.arrays, mixture, log_start, mean_error

    def _best_profit(self) -> float:
        """Return the largest expected profit of any offer at the start, in units of the mean amount."""
        return float(np.max(self.arrays.amount * (self.prior.mean - self.arrays.cost)))

    def _run(self, plane: NDArray[np.float64], begin: int, end: int, labels: NDArray[np.float64]) -> tuple[float, int]:
        band, arrays = self.band, self.arrays
        label, undecided = run_planes(
            plane, self._mean, self._bonus, band.low, band.high, band.offset, *arrays[:4], self.discount,
            self.counts, self.margins, begin, end, labels, progress,
        )  # fmt: skip
        return float(label), int(undecided)


def horizon_offer_seconds(
    prior: Belief | MixtureBelief, offers: Offers, discount: float, horizon: int, tolerance: float
) -> float:
    """Estimate how many seconds :class:`HorizonTables` takes."""
    arrays, mixture, log_start, _ = _prepared(prior, offers)
    counts = discounted_counts(discount, horizon)
    return _seconds(_band(arrays, mixture, log_start, counts, tolerance), arrays)


def discounted_counts(discount: float, horizon: int) -> NDArray[np.float64]:
    """Return A_h = 1 + γ + … + γ^(h−1) for h = 0 to the horizon.

    >>> discounted_counts(0.5, 3).tolist(), discounted_counts(1.0, 2).tolist()
    ([0.0, 1.0, 1.5, 1.75], [0.0, 1.0, 2.0])
    """
    if horizon > MOST_HORIZON:
        raise _too_large(math.inf, math.inf, horizon)
    left = np.arange(horizon + 1, dtype=np.float64)
    if discount == 1.0:
        return left
    return -np.expm1(left * math.log(discount)) / (1.0 - discount)


def _prepared(
    prior: Belief | MixtureBelief, offers: Offers
) -> tuple[OfferArrays, NDArray[np.float64], NDArray[np.float64], float]:
    """Return the offers and the prior as the kernels take them."""
    return prepare(offers), *components(prior)


def _drop(counts: NDArray[np.float64], tolerance: float) -> float:
    """Return what X may be at most where states are left out: the sum over all arrivals is below the tolerance."""
    most = float(counts[-1])
    return max(tolerance / (8.0 * most), UNIT * most)


def _band(
    arrays: OfferArrays,
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    counts: NDArray[np.float64],
    tolerance: float,
) -> HorizonBand:
    """Return the states to compute. A cell beside each row's first and last state stays 0."""
    low, high = (np.zeros(counts.size, dtype=np.int64) for _ in range(2))
    find_band(
        mixture, log_start, arrays.amount, arrays.cost, arrays.start, arrays.kink, arrays.slope, counts,
        _drop(counts, tolerance), low, high,
    )  # fmt: skip
    ends = np.cumsum(high - low + 3)
    return HorizonBand(low, high, ends - (high - low + 3) + 1 - low, ends)


def _errors(
    counts: NDArray[np.float64], discount: float, menus: int, mean_error: float, drop: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the errors of X and of the value of a label, by arrivals left, in units of the mean amount.

    X and the value of a label are at most A/4 and all slopes sum to at most 1. p̂ has an error of a few units in the
    last place, or ``mean_error``. B has that error times A, because its two terms nearly cancel.
    """
    before = np.append(0.0, counts[:-1])
    steps = UNIT * ((0.5 * menus + 20.0) * before + 8.0) + mean_error * (5.0 * before + 1.0) + drop
    errors = np.zeros(counts.size)
    for h in range(1, counts.size):
        errors[h] = discount * errors[h - 1] + steps[h]
    margins = np.append(0.0, 2.0 * discount * errors[:-1] + steps[1:])
    margins[1] = 0.0  # after the last arrival nothing is decided, so its label is worth exactly 0
    return errors, margins


def _seconds(band: HorizonBand, arrays: OfferArrays) -> float:
    """Estimate the time of a solve."""
    return band.states * (SECONDS_A_STATE + SECONDS_AN_OFFER * arrays.amount.size)


def _check_effort(band: HorizonBand, arrays: OfferArrays, horizon: int, spacing: int) -> None:
    """Raise TooLargeError for a problem that would take too much time or memory."""
    plane = float(band.ends[-1])
    planes = 3.0 + (spacing + 0.5 * horizon / spacing if spacing else 0.0)
    seconds, size = _seconds(band, arrays), 8.0 * plane * planes
    if seconds > MOST_SECONDS or size > MOST_BYTES:
        raise _too_large(seconds, size, horizon)


def _too_large(seconds: float, size: float, horizon: int) -> TooLargeError:
    detail = f"{size / 1e9:,.2g} GB" if math.isfinite(size) else f"{horizon:,} arrivals"
    return TooLargeError(
        f"Solving offers over {horizon:,} arrivals",
        seconds=seconds if math.isfinite(seconds) else 1e9,
        allowed_seconds=MOST_SECONDS,
        detail=detail,
        allowed=f"{MOST_SECONDS / 60:,.0f} minutes or {MOST_BYTES / 1e9:g} GB",
        field="horizon",
        value=horizon,
        hint="Use fewer arrivals or fewer offers (Offers.compress), or a Discounted objective.",
    )
