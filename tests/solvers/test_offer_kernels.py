"""The recursion with offers, state by state, against plain loops over every state in extended precision.

The plain loops start from the same bounds in the last row, so both must agree to rounding, not only enclose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from lenience import Belief, Discounted, MixtureBelief, Offer, Offers
from lenience.solvers.offers.band import solve_offer_band
from lenience.solvers.offers.delayed import solve_delayed_offer_band
from lenience.solvers.offers.horizon import find_band
from lenience.solvers.offers.learning_gain import decay_rates, free_label_gain, known_gain
from lenience.solvers.offers.solve import OfferArrays, components, prepare, solve_offers
from lenience.solvers.stopping.band import put_above
from lenience.solvers.stopping.free_labels import free_label_part

Prior = Belief | MixtureBelief
State = tuple[int, int]

AMOUNTS = Offers([0.1, 1, 5], [0.8, 0.8, 0.8], [0.2, 0.5, 0.3])
COSTS = Offers([1, 2, 1], [0.3, 0.55, 0.7])
MENUS = Offers.draw([Offers.menu([0.1, 1], [0.6, 0.62]), Offer(2, 0.45), Offers.menu([1, 2, 4], [0.5, 0.6, 0.7])])
DOUBTFUL = MixtureBelief((Belief(5, 3.5), Belief(2, 1), Belief(3, 0.6)), (0.5, 0.3, 0.2))
CASES: list[tuple[Offers, Prior, float, int]] = [
    (AMOUNTS, Belief(2, 1), 0.9, 24),
    (COSTS, Belief(1.5, 0.7), 0.8, 20),
    (MENUS, Belief(2, 1), 0.85, 22),
    (MENUS, DOUBTFUL, 0.8, 18),
    (COSTS, DOUBTFUL, 0.6, 14),
    (Offers([1], [0.95]), Belief(4, 1), 0.5, 12),  # a stop at once
]


@dataclass
class Plain:
    """What the plain loops compute."""

    low: dict[State, float] = field(default_factory=dict)  # bounds of the value
    high: dict[State, float] = field(default_factory=dict)
    label_low: dict[State, float] = field(default_factory=dict)
    label_high: dict[State, float] = field(default_factory=dict)
    accepts: dict[State, bool] = field(default_factory=dict)
    undecided: set[State] = field(default_factory=set)
    ties: set[State] = field(default_factory=set)  # rounding decides whether an offer is undecided here


def mean_of(prior: Prior, k: int, j: int) -> float:
    return (Belief(prior.n + k, prior.s + j) if isinstance(prior, Belief) else prior.after(k, j)).mean


def plain_gain(prior: Prior, k: int, j: int, arrays: OfferArrays) -> float:
    """The bound of what knowing p adds, from the bound for each belief and each kink."""
    mixture = MixtureBelief.of(prior)
    after = mixture.after(k, j)
    total = 0.0
    for kink, slope in zip(arrays.kink, arrays.slope, strict=True):
        knowing = 0.0
        for weight, belief in zip(after.weights, after.beliefs, strict=True):
            below = kink - belief.mean
            knowing += weight * (put_above(abs(below), belief.n, belief.variance) + max(below, 0.0))
        total += slope * (knowing - max(kink - after.mean, 0.0))
    return total


def plain_free_gain(prior: Prior, k: int, j: int, arrays: OfferArrays, gamma: float) -> float:
    """The bound of what a free label from every arrival adds, from the kernel's bound for each belief and each kink."""
    after = MixtureBelief.of(prior).after(k, j)
    rates = decay_rates(gamma, arrays.kink)
    total = 0.0
    for kink, slope, above, below in zip(arrays.kink, arrays.slope, *rates, strict=True):
        learning = 0.0
        for weight, belief in zip(after.weights, after.beliefs, strict=True):
            distance = belief.mean - kink
            spread = belief.mean * (1 - belief.mean)
            part = free_label_part(distance, spread, belief.n, kink, gamma / (1 - gamma), above, below)
            learning += weight * (part + max(kink - belief.mean, 0.0))
        total += slope * (learning - max(kink - after.mean, 0.0))
    return total


def plainly(prior: Prior, arrays: OfferArrays, gamma: float, last: int) -> Plain:
    """Run over every state; the accepted menus are those of the upper bound, for both bounds."""
    result = Plain()
    menus = [
        [(arrays.amount[o], arrays.cost[o]) for o in range(first, end)]
        for first, end in zip(arrays.start[:-1], arrays.start[1:], strict=True)
    ]

    def gains(p: float) -> list[float]:
        return [max(a * (p - c) for a, c in menu) for menu in menus]

    for j in range(last + 1):
        p = mean_of(prior, last, j)
        known = sum(w * max(g, 0.0) for g, w in zip(gains(p), arrays.share, strict=True))
        extra = plain_free_gain(prior, last, j, arrays, gamma)
        if extra / (1 - gamma) * 1.0001 + max(gains(p)) < 0 and p < arrays.kink[0]:
            extra = 0.0
        result.low[last, j], result.high[last, j] = known / (1 - gamma), (known + extra) / (1 - gamma)
    for k in range(last - 1, -1, -1):
        for j in range(k + 1):
            p = mean_of(prior, k, j)
            after_low = p * result.low[k + 1, j + 1] + (1 - p) * result.low[k + 1, j]
            after_high = p * result.high[k + 1, j + 1] + (1 - p) * result.high[k + 1, j]
            ordered = sorted(zip(gains(p), arrays.share, strict=True), reverse=True)
            earned = share = high = 0.0
            best = (0.0, 0.0)
            for gain, part in ordered:
                earned, share = earned + part * gain, share + part
                value = (earned + gamma * share * after_high) / (1 - gamma + gamma * share)
                if value > high:
                    high, best = value, (earned, share)
            earned, share = best
            low = (earned + gamma * share * after_low) / (1 - gamma + gamma * share)
            known = sum(w * max(g, 0.0) for g, w in zip(gains(p), arrays.share, strict=True))
            result.low[k, j], result.high[k, j] = max(low, known / (1 - gamma)), high
            label = gamma * (after_high - high)
            result.label_high[k, j] = label
            result.label_low[k, j] = max(label - gamma * (after_high - after_low), 0.0)
            result.accepts[k, j] = share > 0
            sides = [(g + label, g + result.label_low[k, j]) for g in gains(p)]
            if any(above > 1e-12 and below < -1e-12 for above, below in sides):
                result.undecided.add((k, j))
            elif any(above > -1e-12 and below < 1e-12 for above, below in sides):
                result.ties.add((k, j))
    return result


@pytest.mark.parametrize(("offers", "prior", "gamma", "last"), CASES)
@pytest.mark.parametrize("part", [0.3, 0.7])
def test_every_state(offers: Offers, prior: Prior, gamma: float, last: int, part: float) -> None:
    rows = round(part * last)
    arrays = prepare(offers)
    mixture, log_start, mean_error = components(prior)
    progress = np.zeros(2, dtype=np.int64)
    low, high, widest, undecided, states, index, table = solve_offer_band(
        mixture, log_start, *arrays[:7], gamma, last, rows, 0.0, mean_error, 3.0, 1, progress
    )
    plain = plainly(prior, arrays, gamma, last)
    known = offers.profit_if_known(prior.mean) / arrays.unit
    assert (known + low) / (1 - gamma) == pytest.approx(plain.low[0, 0], rel=1e-9, abs=1e-10)
    assert (known + high) / (1 - gamma) == pytest.approx(plain.high[0, 0], rel=1e-9, abs=1e-10)
    assert low <= plain.low[0, 0] * (1 - gamma) - known + 1e-15
    assert high >= plain.high[0, 0] * (1 - gamma) - known - 1e-15
    filled, counted, widths, doubts, ties = 0, 0, [0.0], 0, 0
    for k in range(rows - 1, -1, -1):
        first, position, count = index[k].tolist()
        if count:
            assert position == filled
            assert first + count == k + 1  # nothing is dropped at the top
            filled += count
        for j in range(k + 1):
            if not first <= j < first + count:
                assert not plain.accepts[k, j]
                continue
            lower, upper = table[:, position + j - first] / 3.0
            assert lower == pytest.approx(plain.label_low[k, j], rel=1e-9, abs=1e-10)
            assert upper == pytest.approx(plain.label_high[k, j], rel=1e-9, abs=1e-10)
            assert lower <= plain.label_low[k, j] + 1e-15
            assert upper >= plain.label_high[k, j] - 1e-15
            if plain.accepts[k, j]:
                widths.append((plain.high[k, j] - plain.low[k, j]) * (1 - gamma))
                doubts += (k, j) in plain.undecided
                ties += (k, j) in plain.ties
    for k in range(last):
        counted += sum(plain.accepts[k, j] for j in range(k + 1))
    assert table.shape == (2, filled)
    assert widest == pytest.approx(max(widths), rel=1e-9, abs=1e-10)
    assert doubts <= undecided <= doubts + ties
    assert ties <= 3
    assert states == counted


def test_cases_have_states_of_every_kind() -> None:
    accepted, undecided, rejected = 0, 0, 0
    for offers, prior, gamma, last in CASES:
        plain = plainly(prior, prepare(offers), gamma, last)
        accepted += sum(plain.accepts.values())
        rejected += len(plain.accepts) - sum(plain.accepts.values())
        undecided += len(plain.undecided)
    assert min(accepted, undecided, rejected) > 20


@pytest.mark.parametrize(("offers", "prior", "gamma", "last"), CASES[:4])
def test_dropped_states_widen_the_bounds_a_little(offers: Offers, prior: Prior, gamma: float, last: int) -> None:
    arrays = prepare(offers)
    mixture, log_start, mean_error = components(prior)

    def solve(drop: float) -> tuple[float, float, int]:
        progress = np.zeros(2, dtype=np.int64)
        low, high, _, _, states, _, _ = solve_offer_band(
            mixture, log_start, *arrays[:7], gamma, last, 3, drop, mean_error, 1.0, 1, progress
        )
        return low, high, states

    exact, dropped = solve(0.0), solve(0.02)
    assert dropped[0] <= exact[0] + 1e-15
    assert dropped[1] >= exact[1] - 1e-15
    assert dropped[0] >= exact[0] - 0.02
    assert dropped[1] <= exact[1] + 0.02
    assert dropped[2] < exact[2]


@pytest.mark.parametrize("prior", [Belief(2, 1), Belief(9, 7.5), DOUBTFUL])
@pytest.mark.parametrize(("k", "j"), [(0, 0), (5, 1), (12, 9)])
def test_a_bound_of_what_knowing_adds(prior: Prior, k: int, j: int) -> None:
    """Against an integral over the posterior: a bound, and not far above."""
    arrays = prepare(MENUS)
    mixture, log_start, _ = components(prior)
    after = MixtureBelief.of(prior).after(k, j)
    bound = known_gain(k, j, mixture, log_start, arrays.kink, arrays.slope)

    def best(p: float) -> float:
        density = sum(w * beta.pdf(p, b.s, b.n - b.s) for w, b in zip(after.weights, after.beliefs, strict=True))
        return float(MENUS.profit_if_known(p) / arrays.unit * density)

    knots = sorted({*arrays.kink.tolist(), 0.0, 1.0})
    exact = sum(quad(best, a, b)[0] for a, b in pairwise(knots))
    exact -= MENUS.profit_if_known(after.mean) / arrays.unit
    assert exact - 1e-9 <= bound <= 1.6 * exact + 0.02
    assert bound == pytest.approx(plain_gain(prior, k, j, arrays), rel=1e-9)
    assert math.isfinite(bound)


def test_a_prior_far_above_every_kink_has_bounds() -> None:
    """The last row has no state where learning adds anything, and the prior has bounds all the same."""
    prior = Belief(60, 57)
    for ahead in (1, 5, 6):
        solution = solve_offers(prior, MENUS, 0.3, 1, 1e-7, look_ahead=ahead)
        always = MENUS.profit_if_known(prior.mean) / 0.7
        assert solution.rows[0].tolist() == [0, 0, 1]
        assert solution.states >= 1
        assert solution.value.lower <= always < solution.value.upper < always + 1e-7
        assert solution.label_value.lower == 0.0 < solution.label_value.upper < 1e-7


def test_a_menu_that_never_pays_is_accepted_for_its_label() -> None:
    """A charge makes a break-even of more than 1, so that the loss falls as p rises."""
    offers = Offers([0.05, 1], [0.5, 0.9], [0.5, 0.5])
    charges = [0.04, 0.0]
    arrays = prepare(offers, charges)
    assert arrays.cost.max() > 1.0
    for prior in (Belief(2, 1.7), Belief(30, 25), DOUBTFUL):
        exact = plainly(prior, arrays, 0.9, 150)
        solution = solve_offers(prior, offers, 0.9, 4, 1e-6, charges=charges)
        unit = offers.mean_amount
        assert solution.value.lower <= exact.high[0, 0] * unit + 1e-12
        assert solution.value.upper >= exact.low[0, 0] * unit - 1e-12
        for k in range(4):
            first, position, count = solution.rows[k].tolist()
            for j in range(first, first + count):
                low, high = solution.table[:, position + j - first]
                assert low <= exact.label_high[k, j] * unit + 1e-12
                assert high >= exact.label_low[k, j] * unit - 1e-12


def free_gain_by_arrivals(prior: Prior, k: int, j: int, arrays: OfferArrays, gamma: float) -> float:
    """What free labels add, by the chances of every number of successes among the next labels."""
    chances = {j: 1.0}
    total, weight, t = 0.0, 1.0 - gamma, 0

    def known(k: int, j: int) -> float:
        mean = mean_of(prior, k, j)
        return math.fsum(b * max(mean - at, 0.0) for at, b in zip(arrays.kink, arrays.slope, strict=True))

    while weight > 1e-13:
        total += weight * math.fsum(chance * known(k + t, i) for i, chance in chances.items())
        later: dict[int, float] = {}
        for i, chance in chances.items():
            mean = mean_of(prior, k + t, i)
            later[i + 1] = later.get(i + 1, 0.0) + chance * mean
            later[i] = later.get(i, 0.0) + chance * (1.0 - mean)
        chances, weight, t = later, weight * gamma, t + 1
    return total - known(k, j)


@pytest.mark.parametrize("prior", [Belief(2, 1), Belief(9, 7.5), DOUBTFUL])
@pytest.mark.parametrize("gamma", [0.3, 0.8])
def test_a_bound_of_what_free_labels_add(prior: Prior, gamma: float) -> None:
    """Against the sum over arrivals: a bound, less than that of knowing p, and not far above."""
    arrays = prepare(MENUS)
    mixture, log_start, error = components(prior)
    rates = decay_rates(gamma, arrays.kink)
    h = gamma / (1 - gamma)
    for k, j in ((0, 0), (5, 1), (12, 9), (40, 12), (40, 36)):
        exact = free_gain_by_arrivals(prior, k, j, arrays, gamma)
        bound = free_label_gain(k, j, mixture, log_start, arrays.kink, arrays.slope, h, rates, error)
        assert exact - 1e-12 <= bound
        assert bound <= 1.0001 * known_gain(k, j, mixture, log_start, arrays.kink, arrays.slope)
        if isinstance(prior, Belief):  # A mixture is bounded as if the component were known.
            assert bound <= 3.0 * exact + 0.03 / (prior.n + k)
        assert bound == pytest.approx(plain_free_gain(prior, k, j, arrays, gamma), rel=1e-9, abs=1e-14 + 3 * error)


def test_what_free_labels_add_falls_exponentially_away_from_a_kink() -> None:
    gamma, at = 0.9, 0.6
    arrays = prepare(Offers([1], [at]))
    rates = decay_rates(gamma, arrays.kink)
    for side, rate in ((at, rates[0, 0]), (1 - at, rates[1, 0])):
        # The exponential is a supermartingale, and nearly a martingale.
        mean = gamma * (side * math.exp(-rate * (1 - side)) + (1 - side) * math.exp(rate * side))
        assert 0.98 < mean <= 1.0
    for j in (140, 150, 160, 170, 190, 210, 220, 230):
        exact = free_gain_by_arrivals(Belief(2, 1), 300, j, arrays, gamma)
        mixture, log_start, _ = components(Belief(2, 1))
        bound = free_label_gain(300, j, mixture, log_start, arrays.kink, arrays.slope, 9.0, rates, 0.0)
        assert exact - 1e-13 <= bound
        distance = abs((j + 1) - at * 302)
        assert bound <= 0.05 * math.exp(-min(rates[:, 0]) * distance) + 1e-15


def late_plainly(
    prior: Prior, arrays: OfferArrays, arrivals: float, label_rate: float, rate: float, cap: int, last: int
) -> tuple[list[float], list[float]]:
    """Bounds of the value at the prior by the number pending, by a loop over rows, states and numbers pending."""
    volume = arrivals / rate
    menus = [
        [(arrays.amount[o], arrays.cost[o]) for o in range(first, end)]
        for first, end in pairwise(arrays.start.tolist())
    ]

    def gains(p: float) -> list[float]:
        return [max(a * (p - c) for a, c in menu) for menu in menus]

    def known(p: float) -> float:
        return math.fsum(w * max(g, 0.0) for g, w in zip(gains(p), arrays.share, strict=True))

    low = [[volume * known(mean_of(prior, last, j))] * (cap + 1) for j in range(last + 1)]
    high = [[one + volume * plain_gain(prior, last, j, arrays) for one in values] for j, values in enumerate(low)]
    for k in range(last - 1, -1, -1):
        new_low, new_high = [], []
        for j in range(k + 1):
            p = mean_of(prior, k, j)
            ordered = sorted(zip(gains(p), arrays.share, strict=True), reverse=True)
            lower, upper = [0.0] * (cap + 2), [0.0] * (cap + 2)
            upper[cap + 1] = p * high[j + 1][cap] + (1 - p) * high[j][cap]  # one label more, known at once
            for m in range(cap, -1, -1):
                resolve = m * label_rate
                after_low = p * low[j + 1][m - 1] + (1 - p) * low[j][m - 1] if m else 0.0
                after_high = p * high[j + 1][m - 1] + (1 - p) * high[j][m - 1] if m else 0.0
                earned = share = 0.0
                best = (resolve * after_high / (rate + resolve), 0.0, 0.0)
                for gain, part in ordered:
                    earned, share = earned + part * gain, share + part
                    total = arrivals * (earned + share * upper[m + 1]) + resolve * after_high
                    best = max(best, (total / (rate + resolve + arrivals * share), earned, share))
                upper[m], earned, share = best
                # Without learning from the next arrivals, only what is profitable is accepted.
                lower[m] = (arrivals * known(p) + resolve * after_low) / (rate + resolve)
                if m < cap:
                    total = arrivals * (earned + share * lower[m + 1]) + resolve * after_low
                    lower[m] = max(lower[m], total / (rate + resolve + arrivals * share))
            new_low.append(lower[: cap + 1])
            new_high.append(upper[: cap + 1])
        low, high = new_low, new_high
    return low[0], high[0]


def window_states(prior: Prior, arrays: OfferArrays, volume: float, drop: float, last: int) -> int:
    """Count the states of all rows that are not left out because knowing p adds too little there."""
    lowest, highest = arrays.kink[0], arrays.kink[-1]

    def matters(k: int, j: int) -> bool:
        return volume * plain_gain(prior, k, j, arrays) > drop

    means = [mean_of(prior, last, j) for j in range(last + 1)]
    bottom = min(sum(mean < lowest for mean in means), last)
    while bottom > 0 and matters(last, bottom):
        bottom -= 1
    top = min(max(sum(mean < highest for mean in means), bottom), last)
    while top < last and matters(last, top):
        top += 1
    total = 0
    for k in range(last - 1, -1, -1):
        bottom, top = min(max(bottom - 1, 0), k), min(top, k)
        while bottom < k and mean_of(prior, k, bottom) < lowest and not matters(k, bottom):
            bottom += 1
        while top > bottom and mean_of(prior, k, top) > highest and not matters(k, top):
            top -= 1
        total += top - bottom + 1
    return total


@pytest.mark.parametrize(
    ("offers", "prior", "arrivals", "label_rate", "rate", "cap", "last"),
    [
        (AMOUNTS, Belief(2, 1), 4.0, 2.0, 0.5, 5, 12),
        (COSTS, Belief(1.5, 0.7), 3.0, 1.0, 0.6, 4, 10),
        (MENUS, Belief(2, 1), 5.0, 0.7, 0.9, 6, 9),
        (MENUS, DOUBTFUL, 3.0, 3.0, 0.4, 3, 8),
    ],
)
def test_late_labels_at_every_number_pending(
    offers: Offers, prior: Prior, arrivals: float, label_rate: float, rate: float, cap: int, last: int
) -> None:
    arrays = prepare(offers)
    mixture, log_start, mean_error = components(prior)

    def solve(drop: float) -> tuple[list[float], list[float], int]:
        progress = np.zeros(2, dtype=np.int64)
        lower, upper, states, index, table = solve_delayed_offer_band(
            mixture, log_start, *arrays[:6], arrivals, label_rate, rate, cap, last, drop, mean_error, 3, progress
        )
        # The table of the first rows: what one more pending label is worth.
        assert index.shape == (3, 3)
        first = index[0, 1]
        assert table[0, first].tolist() == (lower[1:] - upper[:-1]).tolist()
        assert table[1, first].tolist() == (upper[1:] - lower[:-1]).tolist()
        assert table.shape == (2, index[:, 2].sum(), cap)
        known = arrivals / rate * offers.profit_if_known(prior.mean) / arrays.unit
        return (lower + known).tolist(), (upper + known).tolist(), states

    low, high, states = solve(0.0)
    plain_low, plain_high = late_plainly(prior, arrays, arrivals, label_rate, rate, cap, last)
    assert low == pytest.approx(plain_low, rel=1e-9, abs=1e-10)
    assert high == pytest.approx(plain_high, rel=1e-9, abs=1e-10)
    assert all(one <= other + 1e-15 for one, other in zip(low, plain_low, strict=True))
    assert all(one >= other - 1e-15 for one, other in zip(high, plain_high, strict=True))
    assert states == (cap + 1) * last * (last + 1) // 2
    assert max(high[m] - low[m] for m in range(cap)) > 1e-3  # the bounds of the last row matter
    # Leaving out states where X is small widens the bounds by about as much.
    rough_low, rough_high, fewer = solve(0.2)
    assert fewer == (cap + 1) * window_states(prior, arrays, arrivals / rate, 0.2, last) < states
    for m in range(cap + 1):
        assert low[m] - 0.4 <= rough_low[m] <= low[m] + 1e-15
        assert high[m] - 1e-15 <= rough_high[m] <= high[m] + 0.4


def test_errors_of_means_widen_the_bounds() -> None:
    """The upper bound rises and the lower one falls by about the error of p̂ times what the successors are worth."""
    arrays = prepare(MENUS)
    mixture, log_start, _ = components(DOUBTFUL)

    def at_once(error: float) -> tuple[float, float]:
        progress = np.zeros(2, dtype=np.int64)
        low, high, *_ = solve_offer_band(mixture, log_start, *arrays[:7], 0.8, 18, 3, 0.0, error, 1.0, 1, progress)
        return low, high

    def late(error: float) -> tuple[float, float]:
        progress = np.zeros(2, dtype=np.int64)
        lower, upper, *_ = solve_delayed_offer_band(
            mixture, log_start, *arrays[:6], 3.0, 3.0, 0.4, 3, 8, 0.0, error, 1, progress
        )
        return float(lower[0]), float(upper[0])

    for solve in (at_once, late):
        (low, high), (lower, higher) = solve(0.0), solve(1e-4)
        assert lower < low - 1e-6
        assert higher > high + 1e-5


def test_rounding_margins_are_in_proportion_to_the_amounts() -> None:
    """With much discounting the last row does not matter, so what is left of the width is rounding."""
    arrays = prepare(MENUS)
    mixture, log_start, _ = components(Belief(2, 1))

    def at_once(unit: float) -> tuple[float, float]:
        given = arrays._replace(amount=unit * arrays.amount, slope=unit * arrays.slope)
        progress = np.zeros(2, dtype=np.int64)
        low, high, *_ = solve_offer_band(mixture, log_start, *given[:7], 0.3, 60, 3, 0.0, 0.0, 1.0, 1, progress)
        return low, high

    def late(unit: float) -> tuple[float, float]:
        given = arrays._replace(amount=unit * arrays.amount, slope=unit * arrays.slope)
        progress = np.zeros(2, dtype=np.int64)
        lower, upper, *_ = solve_delayed_offer_band(
            mixture, log_start, *given[:6], 0.5, 40.0, 2.0, 8, 40, 0.0, 0.0, 1, progress
        )
        return float(lower[0]), float(upper[0])

    for solve in (at_once, late):
        (low, high), (lower, higher) = solve(1.0), solve(1024.0)
        assert 1e-16 < high - low < 1e-13
        assert (higher - lower) / 1024.0 == pytest.approx(high - low, rel=0.05)


@pytest.mark.parametrize("cost", [0.7, 0.76, 0.8, 0.82, 0.85])
def test_rows_in_which_nobody_is_accepted(cost: float) -> None:
    # At 0.76 and 0.8 the first two rows reject everyone and the third accepts two successes; above, more rows do.
    prior = Belief(2, 1)
    plain = Discounted(cost, 0.8).solve(prior, rows=5)
    offered = Discounted(offers=Offers([1], [cost]), discount=0.8).solve(prior, rows=5)
    for k in range(5):
        for j in range(k + 1):
            belief = Belief(2 + k, 1 + j)
            assert offered.accepts(belief, Offer(1, cost)) == plain.accepts(belief)
    assert offered.value(prior).upper == pytest.approx(plain.value(prior).upper, abs=1e-9)
    label = offered.label_value(prior)
    later = Belief(3, 2)
    expected = 0.8 * 0.5 * plain.value(later).midpoint  # after a failure nothing is left
    assert label.midpoint == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("offers", "prior"), [(COSTS, Belief(1.5, 0.7)), (MENUS, DOUBTFUL), (AMOUNTS, Belief(2, 1))])
def test_the_band_of_a_horizon(offers: Offers, prior: Prior) -> None:
    """Below the band nothing is ever accepted, above it little can be learnt; its lower edge rises by at most one."""
    arrays = prepare(offers)
    mixture, log_start, _ = components(prior)
    last, drop = 16, 0.01
    low, high = np.zeros(last + 1, dtype=np.int64), np.zeros(last + 1, dtype=np.int64)
    counts = np.arange(last + 1, dtype=np.float64)
    find_band(mixture, log_start, *arrays[:3], arrays.kink, arrays.slope, counts, drop, low, high)
    menus = list(zip(arrays.amount.tolist(), arrays.cost.tolist(), strict=True))
    stops: list[int] = []
    tops: list[int] = []
    top = 0
    for k in range(last + 1):
        future = float(last - k)

        def stop(j: int, k: int = k, future: float = future) -> bool:
            p = mean_of(prior, k, j)
            best = max(a * (p - c) for a, c in menus)
            return bool(p < arrays.kink[0] and future * plain_gain(prior, k, j, arrays) * 1.0001 + best < 0.0)

        first = max(stops[-1] - 1, 0) if stops else 0
        while first < k and stop(first):
            first += 1
        stops.append(first)
        top = max(top, first)
        while top < k and not (
            mean_of(prior, k, top) > arrays.kink[-1] and future * plain_gain(prior, k, top, arrays) < drop
        ):
            top += 1
        tops.append(top)
    edges = [min(stops[k:]) for k in range(last + 1)]
    for k in range(last):
        edges[k + 1] = min(edges[k + 1], edges[k] + 1)
    assert low.tolist() == edges
    assert high.tolist() == tops
    assert set(np.diff(low).tolist()) <= {0, 1}
