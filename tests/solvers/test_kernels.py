"""The loops of the solvers for late labels, one by one, against plain loops and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from lenience.solvers.delayed.estimate import estimate_delayed
from lenience.solvers.delayed.limits import first_hopeful, read_plane
from lenience.solvers.delayed.planes import (
    plane_factors,
    sweep_accept,
    sweep_cap_lower,
    sweep_cap_upper,
    sweep_choice,
    sweep_none_pending,
)
from lenience.solvers.delayed.recursion import DelayedBand, solve_delayed
from lenience.solvers.delayed.start import first_above, reveal_start
from oracles import knowing, late_values

Array = NDArray[np.float64]
WIDTH = 12
u = np.uint64


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_factors_are_moved_outward(side: float) -> None:
    arrivals, rate, resolve, cap = 7.3, 0.13, 1.9, 9
    computed = plane_factors(arrivals, rate, resolve, cap, side)
    lam, r, mu = Fraction(arrivals), Fraction(rate), Fraction(resolve)
    for m in range(cap + 1):
        exact = (
            m * mu / (r + m * mu),
            lam / (r + lam + m * mu),
            (r + m * mu) / (r + lam + m * mu),
            lam / (r + m * mu),
        )
        margins = (3e-15, 3e-15, 3e-15, 6e-15)
        for array, value, margin in zip(computed, exact, margins, strict=True):
            if value:
                off = float((Fraction(float(array[m])) / value - 1) * int(side))
                assert off == pytest.approx(margin, abs=1e-15)
            else:
                assert array[m] == 0.0


def planes(seed: int) -> tuple[Array, Array, Array, Array]:
    """Three planes of values, and the rates and distances of a row."""
    rng = np.random.default_rng(seed)
    good = rng.random(WIDTH)
    return rng.random(3 * WIDTH), good, 1 - good, rng.random(WIDTH)


@pytest.mark.parametrize(("begin", "turn", "end"), [(1, 5, 10), (0, 0, 11), (2, 9, 9)])
def test_sweeps_are_the_recursion_of_one_plane(begin: int, turn: int, end: int) -> None:
    wait, move, stay, strike_rate = 0.8, 0.3, 0.65, 0.9
    for seed in range(20):
        values, good, bad, strike = planes(seed)
        under, here, over = 0, WIDTH, 2 * WIDTH

        def label(i: int, at: int, values: Array = values, good: Array = good, bad: Array = bad) -> float:
            return float(good[i] * values[at + i + 1] + bad[i] * values[at + i])

        accepts = [move * values[over + i] + stay * wait * label(i, under) for i in range(WIDTH - 1)]
        rejects = [wait * label(i, under) + strike_rate * strike[i] for i in range(WIDTH - 1)]
        revealed = [move * label(i, here) + stay * wait * label(i, under) for i in range(WIDTH - 1)]
        ignored = [wait * label(i, under) for i in range(WIDTH - 1)]
        alone = [move * values[over + i] for i in range(WIDTH)]
        never = [strike_rate * strike[i] for i in range(WIDTH)]

        choice = values.copy()
        sweep_choice(
            choice, u(here), u(over), u(under), u(begin), u(turn), good, bad, strike, wait, move, stay, strike_rate
        )
        sweep_accept(choice, u(here), u(over), u(under), u(turn), u(end), good, bad, move, stay * wait)
        lower, upper, none = values.copy(), values.copy(), values.copy()
        sweep_cap_lower(lower, u(here), u(under), u(begin), u(turn), u(end), good, bad, strike, wait, strike_rate)
        sweep_cap_upper(
            upper, u(here), u(under), u(begin), u(turn), u(end), good, bad, strike, wait, move, stay, strike_rate
        )
        sweep_none_pending(none, u(here), u(over), u(begin), u(turn), u(end), strike, move, strike_rate)
        for i in range(WIDTH):
            if not begin <= i < end:
                expected = [values[here + i]] * 4
            elif i < turn:
                expected = [
                    max(accepts[i], rejects[i]),
                    max(ignored[i], rejects[i]),
                    max(revealed[i], rejects[i]),
                    max(alone[i], never[i]),
                ]
            else:
                expected = [accepts[i], ignored[i], revealed[i], alone[i]]
            assert [array[here + i] for array in (choice, lower, upper, none)] == pytest.approx(expected, rel=1e-13)
        for array in (choice, lower, upper, none):
            assert np.array_equal(array[:WIDTH], values[:WIDTH])
            assert np.array_equal(array[2 * WIDTH :], values[2 * WIDTH :])


CAP = 5


def read_all(
    low: Array, high: Array, good: Array, strike: Array, begin: int, end: int, d: Array, waits: tuple[Array, Array]
) -> list[list[int]]:
    """What is noted of each state when the planes below the cap are read from the top down."""
    notes = [np.full(WIDTH, start, dtype=np.int32) for start in (CAP, CAP, CAP + 1, -1, -1)]
    for m in range(CAP - 1, -1, -1):
        read_plane(
            low, high, u(m * WIDTH), u(WIDTH), m, u(begin), u(end), good, 1 - good, strike,
            waits[0][m], waits[1][m], d[m], *notes,
        )  # fmt: skip
    return [[int(note[i]) for note in notes] for i in range(WIDTH)]


def test_limits_are_read_off_the_gains() -> None:
    d = 1 + 3.0 / (0.2 + 1.1 * np.arange(CAP + 1, dtype=np.float64))
    waits = (0.9 * np.arange(CAP + 1) / CAP, 0.95 * np.arange(CAP + 1) / CAP)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        good, strike = rng.random(WIDTH), rng.random(WIDTH)
        low = rng.random((CAP + 1) * WIDTH) * 4
        high = low + rng.random((CAP + 1) * WIDTH) * (0.0 if seed % 3 == 0 else 0.8)
        notes = read_all(low, high, good, strike, 2, 10, d, waits)
        for i in range(WIDTH):
            if not 2 <= i < 10:
                assert notes[i] == [CAP, CAP, CAP + 1, -1, -1]
                continue
            accepted, sure, refused = [], [], []
            for m in range(CAP):
                later = [0.0, 0.0]
                if m:
                    for side, values in enumerate((low, high)):
                        at = (m - 1) * WIDTH + i
                        later[side] = waits[side][m] * (good[i] * values[at + 1] + (1 - good[i]) * values[at])
                least = low[(m + 1) * WIDTH + i] - later[1] - d[m] * strike[i]
                most = high[(m + 1) * WIDTH + i] - later[0] - d[m] * strike[i]
                accepted.append(least + most > 0)
                sure.append(least > 0)
                refused.append(most < 0)
            pending = range(CAP)
            assert notes[i] == [
                min([m for m in pending if not accepted[m]], default=CAP),
                min([m for m in pending if not sure[m]], default=CAP),
                min([m for m in pending if refused[m]], default=CAP + 1),
                max([m for m in pending if accepted[m]], default=-1),
                max([m for m in pending if sure[m]], default=-1),
            ]


@pytest.mark.parametrize(
    ("share", "proved"), [(5e-15, False), (1.6e-14, True), (-5e-15, False), (-1.6e-14, True), (1e-3, True)]
)
def test_limits_within_rounding_of_a_tie_are_not_proved(share: float, proved: bool) -> None:
    d, good, strike = np.full(CAP + 1, 1.7), np.full(WIDTH, 0.4), np.full(WIDTH, 0.3)
    for m, wait in ((0, 0.0), (1, 0.8)):
        # With nothing pending, and with one: the gain is this share of what is compared.
        low = np.full((CAP + 1) * WIDTH, 0.0)
        low[:WIDTH] = 2.0
        later = wait * 2.0
        low[(m + 1) * WIDTH : (m + 2) * WIDTH] = (later + 1.7 * 0.3) * (1 + share)
        notes = [np.full(WIDTH, start, dtype=np.int32) for start in (CAP, CAP, CAP + 1, -1, -1)]
        read_plane(
            low, low, u(m * WIDTH), u(WIDTH), m, u(0), u(WIDTH - 1), good, 1 - good, strike,
            wait, wait, d[0], *notes,
        )  # fmt: skip
        _, doubt, refused, _, sure = (int(note[3]) for note in notes)
        assert (sure == m) == (proved and share > 0)
        assert (refused == m) == (proved and share < 0)
        assert (doubt == CAP) == (proved and share > 0)


def test_the_first_hopeful_state() -> None:
    rng = np.random.default_rng(3)
    base, g = 4, 5.0
    for _ in range(50):
        strike = np.sort(rng.random(WIDTH))[::-1].copy()
        high = np.concatenate([np.zeros(7), g * strike + np.sort(rng.random(WIDTH)) * 1.5])
        lo, middle = 5, 14
        # V = Q − g (c − p̂) of at least c − p̂ is what accepting needs.
        expected = next(
            (j for j in range(lo, middle) if high[7 + j - base] - g * strike[j - base] >= strike[j - base]), middle
        )
        assert first_hopeful(high, 7 - base, lo, middle, strike, base, g) == expected
    # Exactly at the edge, and a rounding below it, a state is hopeful; a little further below it is not.
    for share, hopeful in ((0.0, True), (-1e-15, True), (-1e-13, False)):
        strike = np.full(WIDTH, 0.25)
        high = np.full(WIDTH, (1 + g) * 0.25 * (1 + share))
        assert first_hopeful(high, 0, 0, 3, strike, 0, g) == (0 if hopeful else 3)


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8, 0.75])
@pytest.mark.parametrize(("n", "s"), [(2.0, 1.0), (1.0, 0.25), (4.0, 3.0), (0.3, 0.1), (50.0, 2.0), (50.0, 49.0)])
def test_the_first_state_at_or_above_the_cost(cost: float, n: float, s: float) -> None:
    for k in range(80):
        above = [j for j in range(k + 1) if Fraction(s) + j >= Fraction(cost) * (Fraction(n) + k)]
        assert first_above(cost, n, s, k) == min(above, default=k + 1)


@pytest.mark.parametrize(("n", "s"), [(2.0, 1.0), (1.0, 0.7), (6.0, 1.5)])
@pytest.mark.parametrize("cost", [0.35, 0.7])
@pytest.mark.parametrize(("under", "over"), [(3, 3), (6, 9), (1, 1)])
def test_the_start_reveals_all_that_is_pending(n: float, s: float, cost: float, under: int, over: int) -> None:
    arrivals, rate, last, cap = 3.0, 0.5, 12, 4
    computed = reveal_start(n, s, n - s, cost, arrivals, rate, last, cap, under, over)
    # All states of all rows, from a last row so far ahead that the starts no longer matter.
    far, g, gamma = 260, arrivals / rate, arrivals / (arrivals + rate)
    row = np.array([g * (knowing(n + far, s + j, cost) - ((s + j) / (n + far) - cost)) for j in range(far + 1)])
    rows = {}
    for k in range(far - 1, last - 1, -1):
        p = (s + np.arange(k + 1)) / (n + k)
        row = np.maximum(gamma * (p * row[1 : k + 2] + (1 - p) * row[: k + 1]), g * (cost - p))
        rows[k] = row
    middle = first_above(cost, n, s, last)
    for m in range(cap + 1):
        exact = rows[last + m]
        for k in range(last + m - 1, last - 1, -1):
            p = (s + np.arange(k + 1)) / (n + k)
            exact = p * exact[1 : k + 2] + (1 - p) * exact[: k + 1]
        for i in range(under + over + 1):
            j = middle - under + i
            if 0 <= j <= last:
                assert computed[m, i + 1] >= exact[j] * (1 - 1e-12)
                # A wide band hardly loses anything; with a narrow one the values outside are only bounded.
                if under >= 6:
                    assert computed[m, i + 1] <= exact[j] * 1.02 + 1e-3


@pytest.mark.parametrize(("n", "s", "cost"), [(2.0, 1.0, 0.7), (1.3, 0.4, 0.45)])
def test_the_start_is_above_forty_digits(n: float, s: float, cost: float) -> None:
    # At a discount of 1/3 and with 60 states on either side, the far row and the ends of the band do not matter.
    arrivals, rate, last, cap, under, over = 0.5, 1.0, 4, 2, 60, 60
    computed = reveal_start(n, s, n - s, cost, arrivals, rate, last, cap, under, over)
    with mpmath.workdps(40):
        size, good, c = (mpmath.mpf(x) for x in (n, s, cost))
        g, gamma, far = mpmath.mpf(arrivals) / rate, mpmath.mpf(arrivals) / (arrivals + rate), 95
        row = [g * max(c - (good + j) / (size + far), 0) for j in range(far + 1)]
        rows = {}
        for k in range(far - 1, last - 1, -1):
            means = [(good + j) / (size + k) for j in range(k + 1)]
            row = [max(gamma * (p * row[j + 1] + (1 - p) * row[j]), g * (c - p)) for j, p in enumerate(means)]
            rows[k] = row
        middle = first_above(cost, n, s, last)
        for m in range(cap + 1):
            exact = rows[last + m]
            for k in range(last + m - 1, last - 1, -1):
                means = [(good + j) / (size + k) for j in range(k + 1)]
                exact = [p * exact[j + 1] + (1 - p) * exact[j] for j, p in enumerate(means)]
            for j in range(last + 1):
                value = computed[m, j - (middle - under) + 1]
                assert exact[j] < value < exact[j] * (1 + mpmath.mpf("1e-12"))


def late_gains(
    n: float, s: float, cost: float, arrivals: float, rate: float, resolve: float, last: int, cap: int, rows: int
) -> list[list[list[tuple[float, float]]]]:
    """Bounds of what accepting gains over rejecting, by row, state and number pending: all states, in V itself."""
    g = arrivals / rate
    low = [[g * max((s + j) / (n + last) - cost, 0.0) for j in range(last + 1)]] * (cap + 1)
    high = [[g * knowing(n + last, s + j, cost) for j in range(last + 1)]] * (cap + 1)
    result: list[list[list[tuple[float, float]]]] = [[] for _ in range(rows)]
    for k in range(last - 1, -1, -1):
        means = [(s + j) / (n + k) for j in range(k + 1)]
        new_low: list[list[float]] = [[] for _ in range(cap + 1)]
        new_high: list[list[float]] = [[] for _ in range(cap + 1)]
        gains: list[list[tuple[float, float]]] = [[] for _ in means]
        for m in range(cap, -1, -1):
            labels = m * resolve
            for j, p in enumerate(means):
                below, above = low[max(m - 1, 0)], high[max(m - 1, 0)]
                late_low = labels * (p * below[j + 1] + (1 - p) * below[j])
                late_high = labels * (p * above[j + 1] + (1 - p) * above[j])
                reject_low, reject_high = late_low / (rate + labels), late_high / (rate + labels)
                if m == cap:
                    accept_low = (arrivals * (p - cost) + late_low) / (rate + labels)
                    more = p * high[cap][j + 1] + (1 - p) * high[cap][j]
                    accept_high = (arrivals * (p - cost + more) + late_high) / (rate + arrivals + labels)
                else:
                    after_low, after_high = p - cost + new_low[m + 1][j], p - cost + new_high[m + 1][j]
                    accept_low = (arrivals * after_low + late_low) / (rate + arrivals + labels)
                    accept_high = (arrivals * after_high + late_high) / (rate + arrivals + labels)
                    gains[j].insert(0, (after_low - reject_high, after_high - reject_low))
                new_low[m].append(max(accept_low, reject_low))
                new_high[m].append(max(accept_high, reject_high))
        low, high = new_low, new_high
        if k < rows:
            result[k] = gains
    return result


@pytest.mark.parametrize(
    ("n", "s", "cost", "arrivals", "rate", "resolve"),
    [
        (2.0, 1.0, 0.7, 4.0, 0.4, 1.0),
        (6.0, 4.0, 0.7, 1.0, 0.1, 1.0),
        (1.0, 0.5, 0.35, 5.0, 0.5, 3.0),
        (4.0, 3.0, 0.8, 3.0, 0.3, 0.5),
        (2.0, 1.0, 0.9, 1.0, 1.0, 1.0),
    ],
)
def test_limits_of_small_problems_are_those_of_a_plain_recursion(
    n: float, s: float, cost: float, arrivals: float, rate: float, resolve: float
) -> None:
    last, cap, rows = 40, 6, 12
    gains = late_gains(n, s, cost, arrivals, rate, resolve, last, cap, rows)
    band = DelayedBand(*solve_delayed(n, s, n - s, cost, arrivals, rate, resolve, last, cap, 1e-12, rows))
    at = unsettled = capped = resumed = resumed_proved = compared = 0
    for k in range(rows):
        above = first_above(cost, n, s, k)
        # But for the last digits of the cost, states from it on have no limit.
        unlimited = next(j for j in range(k + 2) if j == above or s + j >= cost * (n + k) * (1 - 1e-15))
        assert band.unlimited[k] == unlimited
        assert 0 <= band.first[k] <= unlimited
        for j in range(unlimited):
            accepted = [low + high > 0 for low, high in gains[k][j]]
            sure = [low > 1e-12 for low, _ in gains[k][j]]
            refused = [high < -1e-12 for _, high in gains[k][j]]
            if j < band.first[k]:
                # Proved: the limit is 0, with nothing pending.
                assert gains[k][j][0][0] < 0 or band.open_below[k]
                continue
            limit = int(band.limits[at])
            settled = bool(band.settled[at])
            at += 1
            unsettled += not settled
            capped += limit == cap
            # The kernel's upper bound is at most the plain one, so it settles whatever the plain one settles.
            plain = next((m for m in range(cap) if not accepted[m]), cap)
            if plain < cap and refused[plain] and all(sure[:plain]):
                assert settled
                assert limit == plain
            if settled:
                assert all(high > -1e-9 for _, high in gains[k][j][:limit])
                assert limit == cap or gains[k][j][limit][0] < 1e-9
            after = [m for m in range(plain + 1, cap) if sure[m]]
            resumed += bool(after)
            resumed_proved += bool(after) and any(refused[: after[-1]])
        unsettled += bool(band.open_below[k])
        compared += unlimited - int(band.first[k])
    assert at == len(band.limits) == len(band.settled)
    assert band.unsettled == unsettled
    assert band.capped == capped
    assert resumed <= band.resumed <= resumed + unsettled  # where a bound does not settle it, acceptance may resume
    assert band.resumed_proved >= resumed_proved
    assert band.compared >= compared


@pytest.mark.parametrize(("cost", "drop"), [(0.8, 1e-7), (0.3, 1e-4), (0.5, 1e-9)])
def test_a_band_that_slides_and_is_trimmed_loses_no_more_than_it_drops(cost: float, drop: float) -> None:
    n, s, arrivals, rate, resolve, last, cap = 2.0, 1.0, 20.0, 1.0, 200.0, 700, 2
    low, high, _ = late_values(n, s, cost, arrivals, rate, resolve, last, cap)
    band = DelayedBand(*solve_delayed(n, s, n - s, cost, arrivals, rate, resolve, last, cap, drop, 1))
    shift = arrivals / rate * (s / n - cost)
    assert np.all(band.lower + shift <= low + 1e-9)
    assert np.all(band.lower + shift >= low - 2 * drop - 1e-9)
    assert np.all(band.upper + shift >= high - 1e-9 - 0.01 * (high - low))
    assert np.all(band.upper + shift <= high + 2 * drop + 1e-9)
    assert band.updates < 0.35 * (last + 1) * last / 2 * (cap + 1)


def lagrange(places: list[int], x: float) -> list[float]:
    """The weights with which a polynomial through values at these places is interpolated at x."""
    return [float(np.prod([(x - other) / (place - other) for other in places if other != place])) for place in places]


def plain_estimate(
    n: float, s: float, cost: float, arrivals: float, rate: float, resolve: float, last: int, nodes: list[int]
) -> float:
    """Q at the prior by the grid of pending counts, for all states of every row."""
    count = len(nodes)
    j = np.arange(last + 1)
    grid = [arrivals / rate * np.maximum(cost - (s + j) / (n + last), 0.0)] * count
    for k in range(last - 1, -1, -1):
        p = (s + j[: k + 1]) / (n + k)
        fresh: list[Array] = [np.empty(0)] * count
        for i in range(count - 1, -1, -1):
            labels = nodes[i] * resolve
            under = list(range(max(i - 2, 0), i + 1)) if i > 1 else [0]
            weights = lagrange([nodes[at] for at in under], nodes[i] - 1)
            before = sum(w * grid[at][: k + 2] for w, at in zip(weights, under, strict=True))
            label = labels * (p * before[1:] + (1 - p) * before[:-1])
            over = list(range(i, min(i + 3, count)))
            own, *others = lagrange([nodes[at] for at in over], nodes[i] + 1)
            more = sum((w * fresh[at] for w, at in zip(others, over[1:], strict=True)), np.zeros(k + 1))
            # Accepting leads to Q(m + 1), which is interpolated from Q(m) itself and the nodes above it.
            accept = (arrivals * more + label) / (rate + arrivals * (1 - own) + labels)
            reject = (arrivals * (cost - p) + label) / (rate + labels)
            fresh[i] = np.maximum(accept, reject)
        grid = fresh
    return float(grid[0][0])


@pytest.mark.parametrize("nodes", [[0, 1], [0, 1, 2, 3], [0, 1, 2, 4, 7, 11], [0, 1, 3, 4, 9]])
@pytest.mark.parametrize(("n", "s", "cost"), [(2.0, 1.0, 0.7), (5.0, 1.0, 0.3), (1.0, 0.9, 0.9)])
def test_estimates_are_a_plain_recursion_on_a_grid(nodes: list[int], n: float, s: float, cost: float) -> None:
    exact = plain_estimate(n, s, cost, 5.0, 0.4, 1.5, 40, nodes)
    for drop, error in ((0.0, 1e-10), (1e-6, 1e-3)):
        computed = estimate_delayed(n, s, n - s, cost, 5.0, 0.4, 1.5, 40, np.array(nodes), drop)
        assert computed == pytest.approx(exact, abs=error)


@pytest.mark.parametrize("cost", [0.2, 0.6, 0.85])
def test_estimates_slide_and_trim_their_band(cost: float) -> None:
    exact = plain_estimate(2.0, 1.0, cost, 20.0, 1.0, 60.0, 800, [0, 1, 2, 4])
    computed = estimate_delayed(2.0, 1.0, 1.0, cost, 20.0, 1.0, 60.0, 800, np.array([0, 1, 2, 4]), 1e-7)
    assert computed == pytest.approx(exact, abs=1e-5)
