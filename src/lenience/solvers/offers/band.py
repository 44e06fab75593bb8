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

- The last row starts from 0 ≤ X ≤ X_free. The first is the value of knowing nothing more. The second is that of a free
  label from every arrival (:mod:`lenience.solvers.offers.learning_gain`), which is never worth less than the labels of
  those who are accepted.
- X rises with R, so the recursion carries both bounds. Both sides use the set A that is consistent on the upper side.
  The two bounds then close by the factor h d/(1 + h d) ≤ γ a row.
- Along a run of states with the same A and no kink, −g_k is linear in p̂. I between the largest over A and the smallest
  over the rest proves A. Usually these are the losses of two menus all along the run. Otherwise the largest is convex
  and the smallest is concave, so chords between the ends of the run are on the safe side.
- A state where no menu is accepted and whose successors have X = 0 has X = 0. So the lower edge falls by at most one
  state a row.
- Let ℓ be the line that φ is above all kinks, and Y = (1 − γ)V − ℓ(p̂). So X ≤ Y everywhere, and X = Y above all kinks.
  Suppose that every menu pays if p = 1. Measured from ℓ, the reward of every decision then falls with p̂, because no
  offer that is the best of its menu anywhere has a larger amount than the one that is best at p = 1. A state with more
  successes and fewer failures has a larger p̂. It can be simulated from one with fewer and more: turn a failure into a
  success with the probability that makes up for the smaller p̂, and act as it would. This earns no less, so Y falls
  with successes and rises with failures. So the bound of a state that is dropped at the top holds above it, in its row
  and in those before it. If a menu never pays (its charge is too large), the same holds for X_free instead, where
  nobody is accepted for the label.
- Every row multiplies by 1 ± ``MARGIN``, which is more than its roundings, and Z and p̂ have absolute margins. If
  rounding puts a menu of share w on the wrong side of −g_k = I, by ε, then X is too small by w ε/(1 + h d) at most. The
  margin of Z includes this w ε, for all menus on the verge together.

The prior is a mixture of Beta distributions (one component for an ordinary prior). Only the mean p̂ of each state
depends on that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.solvers.offers.accepted_sets import (
    FACTS,
    best_offers,
    chords,
    consistent_set,
    describe_set,
    is_undecided,
    keep_sets,
    verge,
)
from lenience.solvers.offers.learning_gain import decay_rates, free_label_gain
from lenience.solvers.offers.posterior_means import write_means

MARGIN = 4e-15  # relative, a row: more than 16 roundings of 2⁻⁵³
SHORT = 4  # Runs of at most this many states are computed state by state. Most runs have one or two states.
BLOCK = 16  # Loops over longer runs go on to a multiple of this, because what is left over would be slow.


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
    biggest = 0.0
    all_pay = True  # whether every menu has an offer that pays if p = 1
    for m in range(menus):
        largest = 0.0
        pays = False
        for o in range(start[m], start[m + 1]):
            largest = max(largest, amount[o] * max(cost[o], 1.0))
            pays = pays or cost[o] < 1.0
        total += share[m] * largest
        biggest = max(biggest, largest)
        all_pay = all_pay and pays
    loss_margin = (4e-15 + mean_error) * total
    kink_margin = 1e-15 + 2.0 * mean_error
    mean_margin = 2e-15 + mean_error
    slight = 1e-15 + mean_error
    # Rounding alone keeps an upper bound of X at the loss margin.
    least_kept = max(drop, 2.0 * (loss_margin + kink_margin * np.sum(slope)))
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
    rates = decay_rates(gamma, kink)
    first_above = np.searchsorted(scale[: last + 1], kink[0])
    bottom = 0
    for j in range(first_above - 1, -1, -1):
        best_offers(scale[j] + mean_margin, amount, cost, start, gain, choices[0].copy())
        # X_free = γ R if labels are free, so I = h R is at most (1 + h) X_free.
        most = free_label_gain(last, j, mixture, log_start, kink, slope, h, rates, mean_error)
        if most * (1.0 + h) * 1.0001 + np.max(gain) < 0.0:
            bottom = j + 1
            break
    top = last
    edge = 0.0  # what X is at most at the states above the top, in this row and in those before it
    for j in range(max(first_above, bottom), last + 1):
        if scale[j] > top_kink + kink_margin:
            edge = free_label_gain(last, j, mixture, log_start, kink, slope, h, rates, mean_error) + loss_margin
            if edge < least_kept:
                top = max(j - 1, bottom)  # at least one state, so that there are bounds at the prior
                break
    for j in range(bottom, top + 1):
        # The margin is for the rounding of the kinks.
        high_next[j] = free_label_gain(last, j, mixture, log_start, kink, slope, h, rates, mean_error) + loss_margin

    # How many states a kink may be beside its own, for the means of a large mixture that are known only roughly.
    reach = 1 + int(4.0 * mean_error * (np.max(mixture[:, 1] + mixture[:, 2]) + last))
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
            used = keep_sets(sets, facts, run_sets_next, runs_next)

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
            for step in range(2, reach + 1):
                if j >= begin + step:
                    kink_high[j - step] += slope[i] * kink_margin
                if j + step <= end:
                    kink_high[j + step] += slope[i] * kink_margin
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
        before = 0  # the set of the run that ends before state j
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
                guess = facts[before, 5] * (worth + (facts[before, 1] - facts[before, 2] * p))
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
                if label_high[j] + 4.0 * slight * biggest >= facts[line, 8] - facts[line, 9] * p:
                    # Rounding may hide that a menu is accepted. X is at most the margin then.
                    high[j] = loss_margin
                    alive = min(alive, j)
                    if stored:
                        widest = max(widest, loss_margin)
                        undecided += is_undecided(p, label_low[j], label_high[j], amount, cost, choice)
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
            wrong = facts[line, 12]
            q = (s + x[until]) * inverse
            if q > facts[line, 11]:
                l0, l1, u0, u1 = chords(p, q, amount, cost, choice, sets, line)
                wrong = verge(facts[line], l0, u0)
            margin = loss_margin + slight * wrong
            if until - j < SHORT:
                # At state j itself R is known and the set is consistent.
                i = j
                mean = p
                while True:
                    loss = z0 - z1 * mean
                    worth_low = worth_at(i, lower_mean + lower * x[i], lower_rest - lower * y[i], low_next, kink_low)
                    high[i] = factor * worth - loss_factor * (loss - margin)
                    low[i] = max(factor * worth_low - loss_factor * (loss + margin), 0.0)
                    if stored:
                        label_high[i] = label_factor * (worth + (loss + margin)) * more
                        least = label_factor * (worth + (loss - margin)) * less
                        label_low[i] = max(least - h * (worth - worth_low) * more, 0.0)
                        widest = max(widest, high[i] - low[i])
                        if label_low[i] <= l0 - l1 * mean or label_high[i] > u0 - u1 * mean:
                            undecided += is_undecided(mean, label_low[i], label_high[i], amount, cost, choice)
                    if i == until:
                        break
                    mean = (s + x[i + 1]) * inverse
                    worth = worth_at(
                        i + 1, upper_mean + upper * x[i + 1], upper_rest - upper * y[i + 1], high_next, kink_high
                    )
                    label = label_factor * (worth + (z0 - z1 * mean))
                    if label < l0 - l1 * mean or label > u0 - u1 * mean:
                        until = i
                        break
                    i += 1
            else:
                # The states after ``until`` are computed again with their own set. Two loops, because the compiler does
                # not vectorise one with more arrays.
                first = np.uint64(j)
                beyond = np.uint64(j + ((until - j) // BLOCK + 1) * BLOCK)
                final = x[until]
                # Z, and with it all that is computed, is affine in x.
                zx = z1 * inverse
                zc = z0 - zx * s
                tx = loss_factor * zx
                tc = -loss_factor * (zc + margin)
                for i in range(first, beyond):
                    worth_low = (lower_mean + lower * x[i]) * low_next[i + one]
                    worth_low += (lower_rest - lower * y[i]) * low_next[i] + kink_low[i]
                    low[i] = max(factor * worth_low + (tc + tx * x[i]), 0.0)
                tc = -loss_factor * (zc - margin)
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
                    # Another set suits the last state (a run ends where it ended in the row below, or one state
                    # before), or more. Keep the states before the first of these; state j itself is consistent.
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
                        label_high[i] = label_factor * (worth + (zc + margin - zx * x[i])) * more
                    for i in range(first, beyond):
                        worth = (upper_mean + upper * x[i]) * high_next[i + one]
                        worth += (upper_rest - upper * y[i]) * high_next[i] + kink_high[i]
                        worth_low = (lower_mean + lower * x[i]) * low_next[i + one]
                        worth_low += (lower_rest - lower * y[i]) * low_next[i] + kink_low[i]
                        # I does not rise by more than h for each unit of R.
                        least = label_factor * (worth + (zc - margin - zx * x[i])) * less
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
                            mean = (s + x[i]) * inverse
                            undecided += is_undecided(mean, label_low[i], label_high[i], amount, cost, choice)
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
            before = line
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
            lowest = table[0, filled : filled + count]
            highest = table[1, filled : filled + count]
            shift = np.uint64(begin)
            for i in range(np.uint64(0), np.uint64(count)):
                lowest[i] = label_low[i + shift] * unit
            for i in range(np.uint64(0), np.uint64(count)):
                highest[i] = label_high[i + shift] * unit
            filled += count
        for i in range(kink.size):
            for j in range(max(kink_at[i] - reach, 0), min(kink_at[i] + reach + 1, size)):
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
        # Drop states at the top: above all kinks the bound of a state holds above it too.
        while top > bottom + 2 and (s + x_next[top]) * inverse_next > top_kink + kink_margin:
            most = high_next[top]
            if not all_pay:
                most = free_label_gain(k, top, mixture, log_start, kink, slope, h, rates, mean_error) + loss_margin
            if most >= least_kept:
                break
            edge = most
            top -= 1
    if bottom > 0:
        return 0.0, 0.0, widest, undecided, states, index, table[:, :filled]
    return low_next[0], high_next[0], widest, undecided, states, index, table[:, :filled]
