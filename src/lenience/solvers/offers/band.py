"""The certified solver for offers: a two-sided recursion over all beliefs where a label is worth something.

The model. An arrival brings one of several menus, menu k with probability w_k. An offer of amount a and break-even c
earns a(y − c), so the best offer of menu k earns g_k(p̂) = max a(p̂ − c) on average. After one more label the value is
M = p̂ V(n+1, s+1) + (1 − p̂) V(n+1, s), so the label is worth I = γ(M − V). One accepts the best offer exactly where
g_k + I > 0, and

    (1 − γ) V = Σ w_k (g_k + I)⁺.

The form to compute in. Let φ(p) = Σ w_k g_k(p)⁺, the reward of an arrival where p is known. It is convex and piecewise
linear: φ(p) = Σ b_i (p − κ_i)⁺ with kinks κ_i. Write (1 − γ)V = φ(p̂) + X. So X ≥ 0 is what is still to be gained by
learning, and it vanishes away from the kinks. With R = E[X′ + φ(p̂′)] − φ(p̂) and h = γ/(1 − γ),

    X = Σ w_k [(g_k + I)⁺ − g_k⁺],     I = h (R − X).

With the accepted menus A, their share d = Σ_A w_k and their expected losses Z = Σ_A w_k g_k⁻, that is

    X = (h d R − Z)/(1 + h d),     I = h (R + Z)/(1 + h d).

The true X is the largest of these over all sets A, so any A gives a lower bound. A set A gives the maximum if and only
if it is consistent: every menu in A has g_k + I ≥ 0, every other one g_k + I ≤ 0. In R only a kink between the two
successors' means adds to E X′: b (1 − p̂)(κ − down) if κ ≤ p̂, and b p̂ (up − κ) otherwise.

The enclosure.

- The last row starts from 0 ≤ X ≤ Σ b_i E[(p − κ_i)⁺] − φ(p̂), the value of knowing nothing more and of knowing p.
- X rises with R, so the recursion carries both bounds. Both sides use the set A that is consistent on the upper side.
  The two bounds then close by the factor h d/(1 + h d) ≤ γ a row.
- Along a run of states with the same A and no kink, −g_k is linear in p̂. I between the largest over A and the smallest
  over the rest proves A. Usually these are the losses of two menus all along the run. Otherwise the largest is convex
  and the smallest is concave, so chords between the ends of the run are on the safe side.
- A state where no menu is accepted and whose successors have X = 0 has X = 0. So the lower edge falls by at most one
  state a row. Above the upper edge, X is at most what one who knows p would gain. Above all kinks that is Σ b_i E(κ_i −
  p)⁺, which falls if there is a failure less or a success more. So a bound at a state holds in the rows before it too.
- Every row multiplies by 1 ± ``MARGIN``, which is more than its roundings, and Z and p̂ have absolute margins.

The prior is a mixture of Beta distributions (one component for an ordinary prior). Only the mean p̂ of each state
depends on that.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.stopping.band import put_above

MARGIN = 4e-15  # relative, a row: more than 16 roundings of 2⁻⁵³
FACTS = 12  # of a set of accepted menus
TRIM = 4  # rows between attempts to drop states at the top, and how many states are dropped at once
BLOCK = 16  # Loops over a run go on to a multiple of this, because what is left over would be slow.


@compiled
def known_gain(
    k: int,
    j: int,
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> float:
    """Bound from above what knowing p adds: Σ b E(p − κ)⁺ − φ(p̂), at the state of k labels and j successes."""
    count = mixture.shape[0]
    total = 0.0
    if count == 1:
        n = mixture[0, 1] + mixture[0, 2] + k
        mean = (mixture[0, 1] + j) / n
        variance = mean * (1.0 - mean) / (n + 1.0)
        for m in range(kink.size):
            total += slope[m] * put_above(abs(kink[m] - mean), n, variance)
        return total * (1.0 + 1e-12)
    weights = np.empty(count)
    component_weights(k, j, mixture, log_start, weights)
    mean = 0.0
    for i in range(count):
        mean += weights[i] * (mixture[i, 1] + j) / (mixture[i, 1] + mixture[i, 2] + k)
    for m in range(kink.size):
        gain = 0.0
        for i in range(count):
            n = mixture[i, 1] + mixture[i, 2] + k
            own = (mixture[i, 1] + j) / n
            below = kink[m] - own
            gain += weights[i] * (put_above(abs(below), n, own * (1.0 - own) / (n + 1.0)) + max(below, 0.0))
        total += slope[m] * (max(gain - max(kink[m] - mean, 0.0), 0.0) + 1e-15)
    return total * (1.0 + 1e-12)


@compiled
def component_weights(
    k: int, j: int, mixture: NDArray[np.float64], log_start: NDArray[np.float64], weights: NDArray[np.float64]
) -> None:
    """Write the posterior weights of the mixture's components after k labels, j of them successes."""
    count = mixture.shape[0]
    if count == 1:
        weights[0] = 1.0
        return
    largest = -math.inf
    for i in range(count):
        a = mixture[i, 1] + j
        b = mixture[i, 2] + (k - j)
        weights[i] = log_start[i] + math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        largest = max(largest, weights[i])
    total = 0.0
    for i in range(count):
        weights[i] = math.exp(weights[i] - largest)
        total += weights[i]
    for i in range(count):
        weights[i] /= total


@compiled
def write_means(
    k: int,
    first: int,
    last: int,
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    index: NDArray[np.float64],
    mean: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    """Write p̂ and 1 − p̂ of the states ``first`` to ``last`` of row k. ``index[j]`` is j as a floating-point number."""
    count = mixture.shape[0]
    if count == 1:
        s0 = mixture[0, 1]
        f0 = mixture[0, 2]
        inverse = 1.0 / (s0 + f0 + k)
        top = float(k)
        for i in range(np.uint64(first), np.uint64(last + 1)):
            mean[i] = (s0 + index[i]) * inverse
            rest[i] = (f0 + (top - index[i])) * inverse
        return
    weights = np.empty(count)
    for j in range(first, last + 1):
        if j % 64 == 0 or j == first:
            component_weights(k, j, mixture, log_start, weights)
        else:
            # One success more and one failure less multiplies each weight by (a + j − 1)/(b + k − j).
            total = 0.0
            for i in range(count):
                weights[i] *= (mixture[i, 1] + (j - 1)) / (mixture[i, 2] + (k - j))
                total += weights[i]
            for i in range(count):
                weights[i] /= total
        up = 0.0
        down = 0.0
        for i in range(count):
            n = mixture[i, 1] + mixture[i, 2] + k
            up += weights[i] * ((mixture[i, 1] + j) / n)
            down += weights[i] * ((mixture[i, 2] + (k - j)) / n)
        mean[j] = up
        rest[j] = down


@compiled
def best_offers(
    p: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    gain: NDArray[np.float64],
    choice: NDArray[np.int64],
) -> None:
    """Write each menu's largest expected gain at p, and the offer that has it."""
    for m in range(start.size - 1):
        best = start[m]
        top = amount[best] * (p - cost[best])
        for o in range(start[m] + 1, start[m + 1]):
            value = amount[o] * (p - cost[o])
            if value > top:
                top = value
                best = o
        gain[m] = top
        choice[m] = best


@compiled
def consistent_set(
    gain: NDArray[np.float64],
    share: NDArray[np.float64],
    h: float,
    worth: float,
    label: float,
    sets: NDArray[np.bool_],
    line: int,
) -> None:
    """Find the consistent set A where R = ``worth``, by Newton's method from any ``label``; mark it in ``sets[line]``.

    After the first step the labels fall, so the sets are nested and soon equal.
    """
    for _ in range(gain.size + 2):
        d = 0.0
        loss = 0.0
        least = -math.inf
        most = math.inf
        for m in range(gain.size):
            sets[line, m] = gain[m] + label > 0.0
            if sets[line, m]:
                d += share[m]
                loss += share[m] * max(-gain[m], 0.0)
                least = max(least, -gain[m])
            else:
                most = min(most, -gain[m])
        label = h * (worth + loss) / (1.0 + h * d)
        if least < label <= most:
            break


@compiled
def chords(
    p: float,
    q: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    choice: NDArray[np.int64],
    sets: NDArray[np.bool_],
    line: int,
) -> tuple[float, float, float, float]:
    """Return the chords between the means p and q of a set's largest accepted and smallest rejected loss.

    Each is l0 − l1 p̂, as l0 and l1. The first is convex and the second is concave, so they are on the safe side.
    """
    least = -1.0
    least_end = -1.0
    most = math.inf
    most_end = math.inf
    for m in range(choice.size):
        # Selections instead of branches: which menus are accepted is hard to predict.
        inside = sets[line, m]
        a = amount[choice[m]]
        c = cost[choice[m]]
        loss = a * (c - p)
        loss_end = a * (c - q)
        lower = loss if inside else -1.0
        least = lower if lower > least else least
        lower = loss_end if inside else -1.0
        least_end = lower if lower > least_end else least_end
        upper = math.inf if inside else loss
        most = upper if upper < most else most
        upper = math.inf if inside else loss_end
        most_end = upper if upper < most_end else most_end
    least_slope = 0.0
    most_slope = 0.0
    if q > p:
        least_slope = (least - least_end) / (q - p)
        if most < math.inf:
            most_slope = (most - most_end) / (q - p)
    return least + least_slope * p, least_slope, most + most_slope * p, most_slope


@compiled
def describe_set(
    p: float,
    h: float,
    breaks: NDArray[np.float64],
    next_break: int,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    share: NDArray[np.float64],
    choice: NDArray[np.int64],
    sets: NDArray[np.bool_],
    facts: NDArray[np.float64],
    line: int,
) -> None:
    """Write what a set of accepted menus means around the mean p, which is below the break ``next_break``.

    The ``FACTS``: its share d; its expected loss Z = z0 − z1 p̂ as z0 and z1; the factors of R and of Z in X, and that
    of R + Z in I; the largest loss that is accepted as l0 − l1 p̂, and the smallest that is not as u0 − u1 p̂; and from
    which to which mean these are the largest and the smallest.
    """
    d = 0.0
    z0 = 0.0
    z1 = 0.0
    least = -1.0
    most = math.inf
    first = -1
    other = -1
    for m in range(share.size):
        a = amount[choice[m]]
        c = cost[choice[m]]
        loss = a * (c - p)
        if sets[line, m]:
            d += share[m]
            if loss > 0.0:
                z0 += share[m] * a * c
                z1 += share[m] * a
                if loss > least:
                    least = loss
                    first = m
        elif loss < most:
            most = loss
            other = m
    low = breaks[next_break - 1] if next_break > 0 else -1.0
    high = breaks[next_break] if next_break < breaks.size else 2.0
    for m in range(share.size):
        a = amount[choice[m]]
        c = cost[choice[m]]
        inside = sets[line, m]
        if inside and c <= p:
            continue  # It gains, and does so up to the next break.
        rival = first if inside else other
        b = amount[choice[rival]]
        if a == b:
            continue
        at = (a * c - b * cost[choice[rival]]) / (a - b)
        # A steeper loss is the larger one to the left of where both are equal, and the smaller one to the right. Where
        # they are equal at p, rounding may put ``at`` on either side.
        if (a < b) == inside:
            high = min(high, max(at, p))
        else:
            low = max(low, min(at, p))
    facts[line, 0] = d
    facts[line, 1] = z0
    facts[line, 2] = z1
    facts[line, 3] = h * d / (1.0 + h * d)
    facts[line, 4] = 1.0 / (1.0 + h * d)
    facts[line, 5] = h / (1.0 + h * d)
    facts[line, 6] = -1.0 if first < 0 else amount[choice[first]] * cost[choice[first]]
    facts[line, 7] = 0.0 if first < 0 else amount[choice[first]]
    facts[line, 8] = math.inf if other < 0 else amount[choice[other]] * cost[choice[other]]
    facts[line, 9] = 0.0 if other < 0 else amount[choice[other]]
    facts[line, 10] = low
    facts[line, 11] = high


@compiled
def worth_at(j: int, up: float, down: float, bound: NDArray[np.float64], kinks: NDArray[np.float64]) -> float:
    """Return a bound of R at state j, from bounds of both chances and of X in the row below, and what kinks add."""
    return float(up * bound[j + 1] + down * bound[j] + kinks[j])


@compiled
def solve_offer_band(
    mixture: NDArray[np.float64],
    log_start: NDArray[np.float64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    breaks: NDArray[np.float64],
    gamma: float,
    last: int,
    rows: int,
    drop: float,
    mean_error: float,
    unit: float,
    space: int,
    progress: NDArray[np.int64],
) -> tuple[float, float, float, int, int, NDArray[np.int64], NDArray[np.float64]]:
    """Run the recursion from row ``last`` to row 0 and keep the value of a label in the first rows.

    ``mixture`` has one line (weight, s, n − s) for each component; menu m has the offers ``start[m]`` to
    ``start[m+1]`` − 1; ``breaks`` are the means at which a menu's best offer or its sign changes, in increasing order.
    ``drop`` is what X may be at most where states are left out at the top; ``mean_error`` bounds the error of p̂ beyond
    ordinary rounding. The table is multiplied by ``unit``; ``space`` is about the number of states that it will hold.

    Returns the bounds of X at the prior, the widest X in the first rows, the number of undecided states, the number of
    states, the index of the first rows, and the table of I. Line k of the index has the first state of row k, its
    position in the table and the number of its states. The table has lower bounds in its first line and upper bounds
    in its second.
    """
    menus = share.size
    h = gamma / (1.0 - gamma)
    total = 0.0
    for m in range(menus):
        largest = 0.0
        for o in range(start[m], start[m + 1]):
            largest = max(largest, amount[o] * max(cost[o], 1.0))
        total += share[m] * largest
    loss_margin = 4e-15 * total
    kink_margin = 1e-15 + 2.0 * mean_error
    mean_margin = 2e-15 + mean_error
    more = 1.0 + MARGIN
    less = 1.0 - MARGIN
    one = np.uint64(1)  # unsigned offsets: without them the loops are not vectorised
    size = last + 4 + BLOCK
    low = np.zeros(size)
    high = np.zeros(size)
    low_next = np.zeros(size)
    high_next = np.zeros(size)
    kink_low = np.zeros(size)  # what kinks add to R: 0 but at a few states
    kink_high = np.zeros(size)
    numbers = np.arange(size).astype(np.float64)
    # p̂ = (s + x)/n and 1 − p̂ = (f + (t − y))/n. For one component x = y = j and t = k. Otherwise x is p̂ and −y is
    # 1 − p̂, and s = f = t = 0 and n = 1.
    single = mixture.shape[0] == 1
    s = mixture[0, 1] if single else 0.0
    f = mixture[0, 2] if single else 0.0
    x = numbers
    y = numbers
    x_next = numbers
    y_next = numbers
    if not single:
        x = np.zeros(size)
        y = np.zeros(size)
        x_next = np.zeros(size)
        y_next = np.zeros(size)
    gain = np.zeros(menus)
    # The best offers between two breaks. At a break itself, rounding could choose those of the other side.
    choices = np.zeros((breaks.size + 1, menus), dtype=np.int64)
    for i in range(breaks.size + 1):
        middle = (breaks[i - 1] if i > 0 else 0.0) + (breaks[i] if i < breaks.size else 1.0)
        best_offers(0.5 * middle, amount, cost, start, gain, choices[i])
    index = np.zeros((rows, 3), dtype=np.int64)
    table = np.empty((2, space))
    label_low = np.zeros(size)
    label_high = np.zeros(size)
    filled = 0
    undecided = 0
    states = 0
    widest = 0.0

    # The last row: from the first state that is not a proved stop to the last one that is not dropped.
    scale = np.zeros(size)
    spare = np.zeros(size)
    write_means(last, 0, last, mixture, log_start, numbers, scale, spare)
    inverse_next = 1.0 / (s + f + last) if single else 1.0
    if not single:
        x_next[:] = scale
        y_next[:] = -spare
    top_kink = kink[kink.size - 1]
    first_above = np.searchsorted(scale[: last + 1], kink[0])
    bottom = 0
    for j in range(first_above - 1, -1, -1):
        best_offers(scale[j], amount, cost, start, gain, choices[0].copy())
        # R is at most the gain of knowing p, because that gain is a martingale.
        if h * known_gain(last, j, mixture, log_start, kink, slope) * 1.0001 + np.max(gain) < 0.0:
            bottom = j + 1
            break
    top = last
    edge = 0.0  # what knowing p gains at most at the state above the top, in this row and in those before it
    for j in range(max(first_above, bottom), last + 1):
        if scale[j] > top_kink:
            edge = known_gain(last, j, mixture, log_start, kink, slope)
            if edge < drop:
                top = j - 1
                break
    for j in range(bottom, top + 1):
        high_next[j] = known_gain(last, j, mixture, log_start, kink, slope)

    kink_at = np.zeros(kink.size, dtype=np.int64)
    break_at = np.zeros(breaks.size, dtype=np.int64)
    for i in range(kink.size):
        kink_at[i] = np.searchsorted(scale[: last + 1], kink[i])
    for i in range(breaks.size):
        break_at[i] = np.searchsorted(scale[: last + 1], breaks[i])
    # The runs of a row: where each ends, and the line of its set. Those of the row below are the first guess.
    most_runs = 2 * menus + breaks.size + 64
    run_ends, run_sets, run_ends_next, run_sets_next = np.zeros((4, most_runs), dtype=np.int64)
    lines = 16 * most_runs
    sets = np.zeros((lines, menus), dtype=np.bool_)
    facts = np.zeros((lines, FACTS))
    used = 1  # line 0 is the empty set
    facts[0, 4] = 1.0
    facts[0, 5] = h
    runs = 0
    runs_next = 0

    for k in range(last - 1, -1, -1):
        progress[0] = last - k
        if bottom > k + 1:
            # Every state of the row below is a stop, and so is every state of this row and of those before it.
            bottom = k + 1
            break
        begin = max(bottom - 1, 0)
        end = min(top, k)
        if begin < bottom:
            low_next[begin] = 0.0
            high_next[begin] = 0.0
        if top <= k:
            low_next[top + 1] = 0.0
            high_next[top + 1] = edge
        inverse = 1.0
        t = 0.0
        if single:
            inverse = 1.0 / (s + f + k)
            t = float(k)
        else:
            write_means(k, begin, end, mixture, log_start, numbers, x, y)
            for i in range(begin, end + 1):
                y[i] = -y[i]
            if top <= k:
                write_means(k + 1, top + 1, top + 1, mixture, log_start, numbers, x_next, y_next)
            write_means(k + 1, begin, begin, mixture, log_start, numbers, x_next, y_next)
        # Bounds of p̂ are upper_mean + upper x and lower_mean + lower x, and those of 1 − p̂ alike with −y. The absolute
        # margin is more than the roundings of the two terms.
        upper = inverse * more
        upper_mean = s * upper + mean_margin
        upper_rest = (f + t) * upper + mean_margin
        lower = inverse * less
        lower_mean = s * lower - mean_margin
        lower_rest = (f + t) * lower - mean_margin
        if used > lines - most_runs:
            # Keep only the sets of the row below.
            kept_sets = np.zeros((runs_next, menus), dtype=np.bool_)
            kept_facts = np.zeros((runs_next, FACTS))
            for i in range(runs_next):
                kept_sets[i] = sets[run_sets_next[i]]
                kept_facts[i] = facts[run_sets_next[i]]
            used = 1
            for i in range(runs_next):
                sets[used] = kept_sets[i]
                facts[used] = kept_facts[i]
                run_sets_next[i] = used
                used += 1

        # The kinks between the means of two successors.
        for i in range(kink.size):
            j = min(max(kink_at[i], begin), end)
            while j > begin and (s + x_next[j]) * inverse_next >= kink[i]:
                j -= 1
            while j < end and (s + x_next[j + 1]) * inverse_next < kink[i]:
                j += 1
            kink_at[i] = j
            mean = (s + x[j]) * inverse
            below = (s + x_next[j]) * inverse_next
            above = (s + x_next[j + 1]) * inverse_next
            extra = (f + (t - y[j])) * inverse * (kink[i] - below)
            if kink[i] > mean:
                extra = mean * (above - kink[i])
            kink_low[j] += slope[i] * max(extra * less - kink_margin, 0.0)
            kink_high[j] += slope[i] * (max(extra, 0.0) * more + kink_margin)
            # Rounding may have put the kink beside its state. What it adds there is then below the margin.
            if j > begin and below >= kink[i] - kink_margin:
                kink_high[j - 1] += slope[i] * kink_margin
            if j < end and above <= kink[i] + kink_margin:
                kink_high[j + 1] += slope[i] * kink_margin
        for i in range(breaks.size):
            j = min(max(break_at[i], begin), end)
            while j > begin and (s + x[j]) * inverse > breaks[i]:
                j -= 1
            while j < end and (s + x[j + 1]) * inverse <= breaks[i]:
                j += 1
            break_at[i] = j

        stored = k < rows
        j = begin
        next_break = 0
        next_run = 0
        runs = 0
        guess = 0.0
        alive = end + 1  # the first state where something is accepted
        while j <= end:
            p = (s + x[j]) * inverse
            # The states that may have the same set: to the next break, and to where the run ended in the row below.
            crossed = False
            while next_break < breaks.size and (
                break_at[next_break] < j or (break_at[next_break] == j and p >= breaks[next_break])
            ):
                next_break += 1
                crossed = True
            choice = choices[next_break]
            until = end if next_break == breaks.size else min(break_at[next_break], end)
            # A run that ends at a break may have ended one state later in the row below.
            while next_run < runs_next and run_ends_next[next_run] < j + crossed:
                next_run += 1
            line = 0
            if next_run < runs_next:
                until = min(until, run_ends_next[next_run])
                line = run_sets_next[next_run]
            up = upper_mean + upper * x[j]
            worth = worth_at(j, up, upper_rest - upper * y[j], high_next, kink_high)
            suits = False
            if line > 0:
                if not facts[line, 10] <= p < facts[line, 11]:
                    # Another menu may have the largest loss here. The set around its other mean keeps its own line.
                    known = line
                    line = min(used, lines - 1)
                    used = line + 1
                    for m in range(menus):
                        sets[line, m] = sets[known, m]
                    describe_set(p, h, breaks, next_break, amount, cost, share, choice, sets, facts, line)
                label = facts[line, 5] * (worth + (facts[line, 1] - facts[line, 2] * p))
                suits = facts[line, 6] - facts[line, 7] * p < label <= facts[line, 8] - facts[line, 9] * p
            if not suits:
                # The set of the row below does not suit here.
                for m in range(menus):
                    gain[m] = amount[choice[m]] * (p - cost[choice[m]])
                line = min(used, lines - 1)
                used = line + 1
                consistent_set(gain, share, h, worth, guess, sets, line)
                describe_set(p, h, breaks, next_break, amount, cost, share, choice, sets, facts, line)
            if facts[line, 0] == 0.0:
                used -= line > 0
                low[j] = 0.0
                high[j] = 0.0
                up = lower_mean + lower * x[j]
                worth_low = worth_at(j, up, lower_rest - lower * y[j], low_next, kink_low)
                label_low[j] = h * max(worth_low, 0.0) * less
                label_high[j] = h * worth * more
                j += 1
                continue
            alive = min(alive, j)
            z0 = facts[line, 1]
            z1 = facts[line, 2]
            factor = facts[line, 3]
            loss_factor = facts[line, 4]
            label_factor = facts[line, 5]
            # What I must stay between.
            l0 = facts[line, 6]
            l1 = facts[line, 7]
            u0 = facts[line, 8]
            u1 = facts[line, 9]
            q = (s + x[until]) * inverse
            if q > facts[line, 11]:
                l0, l1, u0, u1 = chords(p, q, amount, cost, choice, sets, line)
            # The states after ``until`` are computed again with their own set. Two loops, because the compiler does not
            # vectorise one with more arrays.
            first = np.uint64(j)
            beyond = np.uint64(j + ((until - j) // BLOCK + 1) * BLOCK)
            final = x[until]
            # Z, and with it all that is computed, is affine in x.
            zx = z1 * inverse
            zc = z0 - zx * s
            tx = loss_factor * zx
            tc = -loss_factor * (zc + loss_margin)
            for i in range(first, beyond):
                worth_low = (lower_mean + lower * x[i]) * low_next[i + one]
                worth_low += (lower_rest - lower * y[i]) * low_next[i] + kink_low[i]
                low[i] = max(factor * worth_low + (tc + tx * x[i]), 0.0)
            tc = -loss_factor * (zc - loss_margin)
            px = l1 * inverse - label_factor * zx
            pc = label_factor * zc - l0 + l1 * inverse * s
            qx = u1 * inverse - label_factor * zx
            qc = label_factor * zc - u0 + u1 * inverse * s
            violations = np.int64(0)
            for i in range(first, beyond):
                worth = (upper_mean + upper * x[i]) * high_next[i + one]
                worth += (upper_rest - upper * y[i]) * high_next[i] + kink_high[i]
                high[i] = factor * worth + (tc + tx * x[i])
                outside = (label_factor * worth + (pc + px * x[i]) < 0.0) | (
                    label_factor * worth + (qc + qx * x[i]) > 0.0
                )
                violations += np.int64(outside & (x[i] <= final))
            if violations > 0:
                # Another set suits the last state (a run ends where it ended in the row below, or one state before), or
                # more. Keep the states before the first of these; state j itself is consistent.
                i = until
                mean = (s + x[i]) * inverse
                up = upper_mean + upper * x[i]
                worth = worth_at(i, up, upper_rest - upper * y[i], high_next, kink_high)
                label = label_factor * (worth + (z0 - z1 * mean))
                if violations > 1 or l0 - l1 * mean <= label <= u0 - u1 * mean:
                    i = j + 1
                    while i < until:
                        mean = (s + x[i]) * inverse
                        up = upper_mean + upper * x[i]
                        worth = worth_at(i, up, upper_rest - upper * y[i], high_next, kink_high)
                        label = label_factor * (worth + (z0 - z1 * mean))
                        if label < l0 - l1 * mean or label > u0 - u1 * mean:
                            break
                        i += 1
                until = max(i, j + 1) - 1
            if stored:
                final = x[until]
                for i in range(first, beyond):
                    worth = (upper_mean + upper * x[i]) * high_next[i + one]
                    worth += (upper_rest - upper * y[i]) * high_next[i] + kink_high[i]
                    label_high[i] = label_factor * (worth + (zc + loss_margin - zx * x[i])) * more
                for i in range(first, beyond):
                    worth = (upper_mean + upper * x[i]) * high_next[i + one]
                    worth += (upper_rest - upper * y[i]) * high_next[i] + kink_high[i]
                    worth_low = (lower_mean + lower * x[i]) * low_next[i + one]
                    worth_low += (lower_rest - lower * y[i]) * low_next[i] + kink_low[i]
                    # I does not rise by more than h for each unit of R.
                    least = label_factor * (worth + (zc - loss_margin - zx * x[i])) * less
                    label_low[i] = max(least - h * (worth - worth_low) * more, 0.0)
                close = np.int64(0)
                wide = np.int64(0)
                for i in range(first, beyond):
                    mean = (s + x[i]) * inverse
                    near = (label_low[i] <= l0 - l1 * mean) | (label_high[i] > u0 - u1 * mean)
                    close += np.int64(near & (x[i] <= final))
                    wide += np.int64((high[i] - low[i] > widest) & (x[i] <= final))
                if wide > 0:
                    for i in range(j, until + 1):
                        widest = max(widest, high[i] - low[i])
                if close > 0:
                    for i in range(j, until + 1):
                        for m in range(menus):
                            best = amount[choice[m]] * ((s + x[i]) * inverse - cost[choice[m]])
                            if best + label_high[i] > 0.0 and best + label_low[i] <= 0.0:
                                undecided += 1
                                break
            same = runs > 0 and not crossed and facts[run_sets[runs - 1], 0] == facts[line, 0]
            if same:
                for m in range(menus):
                    same = same and sets[run_sets[runs - 1], m] == sets[line, m]
            if same:
                run_ends[runs - 1] = until
            elif runs < most_runs:
                run_ends[runs] = until
                run_sets[runs] = line
                runs += 1
            if next_run < runs_next and until >= run_ends_next[next_run] - 1:
                next_run += 1
            mean = (s + x[until]) * inverse
            up = upper_mean + upper * x[until]
            worth = worth_at(until, up, upper_rest - upper * y[until], high_next, kink_high)
            guess = label_factor * (worth + (z0 - z1 * mean))
            states += until - j + 1
            j = until + 1
        if stored:
            count = end - begin + 1
            index[k, 0] = begin
            index[k, 1] = filled
            index[k, 2] = count
            if filled + count > table.shape[1]:
                larger = np.empty((2, 2 * (filled + count)))
                larger[:, :filled] = table[:, :filled]
                table = larger
            for i in range(count):
                table[0, filled + i] = label_low[begin + i] * unit
                table[1, filled + i] = label_high[begin + i] * unit
            filled += count
        for i in range(kink.size):
            for j in range(max(kink_at[i] - 1, 0), kink_at[i] + 2):
                kink_low[j] = 0.0
                kink_high[j] = 0.0
        low, low_next = low_next, low
        high, high_next = high_next, high
        x, x_next = x_next, x
        y, y_next = y_next, y
        inverse_next = inverse
        run_ends, run_ends_next = run_ends_next, run_ends
        run_sets, run_sets_next = run_sets_next, run_sets
        runs_next = runs
        bottom = alive
        top = end
        if k % TRIM == 0:
            # With j successes and fewer failures p is larger, and with more successes too. So above all kinks the gain
            # of knowing p falls from row to row, and from state to state.
            while top - TRIM > bottom + 2 and (s + x_next[top - TRIM + 1]) * inverse_next > top_kink:
                above_top = known_gain(k, top - TRIM + 1, mixture, log_start, kink, slope)
                if above_top >= drop:
                    break
                edge = above_top
                top -= TRIM
    if bottom > 0:
        return 0.0, 0.0, widest, undecided, states, index, table[:, :filled]
    return low_next[0], high_next[0], widest, undecided, states, index, table[:, :filled]
