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
- Along a run of states with the same A and no kink, −g_k is linear in p̂. The largest over A is convex and the smallest
  over the rest is concave. So chords between the ends of the run bound them, and I between the chords proves A.
- A state where no menu is accepted and whose successors have X = 0 has X = 0. So the lower edge falls by at most one
  state a row. Above the upper edge, X is at most what one who knows p would gain.
- Every row multiplies by 1 ± ``MARGIN``, which is more than its roundings, and Z has an absolute margin.

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
def run_lines(
    p: float,
    q: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    share: NDArray[np.float64],
    choice: NDArray[np.int64],
    sets: NDArray[np.bool_],
    line: int,
) -> tuple[float, float, float, float, float, float, float]:
    """Return what a set of accepted menus means between the means p and q, where each menu's best offer is the same.

    The set's share d; its expected loss Z = z0 − z1 p̂ as z0 and z1; the largest loss that is accepted, at p and at q;
    and the smallest loss that is not, at p and at q.
    """
    d = 0.0
    z0 = 0.0
    z1 = 0.0
    least = -1.0
    least_end = -1.0
    most = math.inf
    most_end = math.inf
    for m in range(share.size):
        # Selections instead of branches: which menus are accepted is hard to predict.
        inside = sets[line, m]
        a = amount[choice[m]]
        c = cost[choice[m]]
        loss = a * (c - p)
        loss_end = a * (c - q)
        weight = share[m] if inside else 0.0
        d += weight
        weight = weight * a if loss > 0.0 else 0.0
        z0 += weight * c
        z1 += weight
        lower = loss if inside else -1.0
        least = lower if lower > least else least
        lower = loss_end if inside else -1.0
        least_end = lower if lower > least_end else least_end
        upper = math.inf if inside else loss
        most = upper if upper < most else most
        upper = math.inf if inside else loss_end
        most_end = upper if upper < most_end else most_end
    return d, z0, z1, least, least_end, most, most_end


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
    choosing = start[menus] > menus  # whether a menu has several offers
    h = gamma / (1.0 - gamma)
    total = 0.0
    for m in range(menus):
        largest = 0.0
        for o in range(start[m], start[m + 1]):
            largest = max(largest, amount[o] * max(cost[o], 1.0))
        total += share[m] * largest
    loss_margin = 4e-15 * total
    kink_margin = 1e-15 + 2.0 * mean_error
    more = 1.0 + MARGIN
    less = 1.0 - MARGIN
    one = np.uint64(1)  # unsigned offsets: without them the loops are not vectorised
    size = last + 4 + BLOCK
    low = np.zeros(size)
    high = np.zeros(size)
    worth_low = np.zeros(size)
    worth_high = np.zeros(size)
    numbers = np.arange(size).astype(np.float64)
    mean = np.zeros(size)
    rest = np.zeros(size)
    mean_next = np.zeros(size)
    rest_next = np.zeros(size)
    gain = np.zeros(menus)
    choice = np.zeros(menus, dtype=np.int64)
    index = np.zeros((rows, 3), dtype=np.int64)
    table = np.empty((2, space))
    label_low = np.zeros(size)
    label_high = np.zeros(size)
    filled = 0
    undecided = 0
    states = 0
    widest = 0.0

    # The last row: from the first state that is not a proved stop to the last one that is not dropped.
    write_means(last, 0, last, mixture, log_start, numbers, mean_next, rest_next)
    kink_high = kink[kink.size - 1]
    first_above = np.searchsorted(mean_next[: last + 1], kink[0])
    bottom = 0
    for j in range(first_above - 1, -1, -1):
        best_offers(mean_next[j], amount, cost, start, gain, choice)
        # R is at most the gain of knowing p, because that gain is a martingale.
        if h * known_gain(last, j, mixture, log_start, kink, slope) * 1.0001 + np.max(gain) < 0.0:
            bottom = j + 1
            break
    top = last
    for j in range(max(first_above, bottom), last + 1):
        if mean_next[j] > kink_high and known_gain(last, j, mixture, log_start, kink, slope) < drop:
            top = j - 1
            break
    for j in range(bottom, top + 1):
        high[j] = known_gain(last, j, mixture, log_start, kink, slope)

    kink_at = np.zeros(kink.size, dtype=np.int64)
    break_at = np.zeros(breaks.size, dtype=np.int64)
    for i in range(kink.size):
        kink_at[i] = np.searchsorted(mean_next[: last + 1], kink[i])
    for i in range(breaks.size):
        break_at[i] = np.searchsorted(mean_next[: last + 1], breaks[i])
    # The runs of a row, and their sets: those of the row below are the first guess.
    most_runs = 2 * menus + breaks.size + 64
    run_ends = np.zeros(most_runs, dtype=np.int64)
    run_ends_next = np.zeros(most_runs, dtype=np.int64)
    run_sets = np.zeros((most_runs + 2, menus), dtype=np.bool_)
    run_sets_next = np.zeros((most_runs + 2, menus), dtype=np.bool_)
    fresh = most_runs  # the line of a set that is new
    nobody = most_runs + 1  # the line of the empty set
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
            low[begin] = 0.0
            high[begin] = 0.0
        if top <= k:
            low[top + 1] = 0.0
            high[top + 1] = known_gain(k + 1, top + 1, mixture, log_start, kink, slope)
            write_means(k + 1, top + 1, top + 1, mixture, log_start, numbers, mean_next, rest_next)
        write_means(k + 1, begin, begin, mixture, log_start, numbers, mean_next, rest_next)
        write_means(k, begin, end, mixture, log_start, numbers, mean, rest)

        # R: what the label may add to X, and the kinks between the means of two successors.
        # Two loops: with more arrays in one, the compiler does not vectorise it.
        for i in range(np.uint64(begin), np.uint64(end + 1)):
            worth_low[i] = (mean[i] * low[i + one] + rest[i] * low[i]) * less - mean_error * (low[i + one] + low[i])
        for i in range(np.uint64(begin), np.uint64(end + 1)):
            worth_high[i] = (mean[i] * high[i + one] + rest[i] * high[i]) * more
            worth_high[i] += mean_error * (high[i + one] + high[i])
        for i in range(kink.size):
            j = min(max(kink_at[i], begin), end)
            while j > begin and mean_next[j] >= kink[i]:
                j -= 1
            while j < end and mean_next[j + 1] < kink[i]:
                j += 1
            kink_at[i] = j
            extra = rest[j] * (kink[i] - mean_next[j])
            if kink[i] > mean[j]:
                extra = mean[j] * (mean_next[j + 1] - kink[i])
            worth_low[j] += slope[i] * max(extra * less - kink_margin, 0.0)
            worth_high[j] += slope[i] * (max(extra, 0.0) * more + kink_margin)
            # Rounding may have put the kink beside its state. What it adds there is then below the margin.
            if j > begin and mean_next[j] >= kink[i] - kink_margin:
                worth_high[j - 1] += slope[i] * kink_margin
            if j < end and mean_next[j + 1] <= kink[i] + kink_margin:
                worth_high[j + 1] += slope[i] * kink_margin
        for i in range(breaks.size):
            j = min(max(break_at[i], begin), end)
            while j > begin and mean[j] > breaks[i]:
                j -= 1
            while j < end and mean[j + 1] <= breaks[i]:
                j += 1
            break_at[i] = j

        stored = k < rows
        j = begin
        next_break = 0
        next_run = 0
        runs = 0
        guess = 0.0
        alive = end + 1  # the first state where something is accepted
        best_offers(mean[j], amount, cost, start, gain, choice)
        while j <= end:
            p = mean[j]
            # The states that may have the same set: to the next break, and to where the run ended in the row below.
            crossed = False
            while next_break < breaks.size and (
                break_at[next_break] < j or (break_at[next_break] == j and p >= breaks[next_break])
            ):
                next_break += 1
                crossed = True
            if crossed and choosing:
                best_offers(p, amount, cost, start, gain, choice)
            until = end if next_break == breaks.size else min(break_at[next_break], end)
            while next_run < runs_next and run_ends_next[next_run] < j:
                next_run += 1
            line = next_run
            if j < bottom:
                line = nobody
            elif next_run < runs_next:
                until = min(until, run_ends_next[next_run])
            else:
                line = nobody
            d, z0, z1, least, least_end, most, most_end = run_lines(
                p, mean[until], amount, cost, share, choice, run_sets_next, line
            )
            label = h * (worth_high[j] + (z0 - z1 * p)) / (1.0 + h * d)
            if not least < label <= most:
                # The set of the row below does not suit here.
                best_offers(p, amount, cost, start, gain, choice)
                line = fresh
                consistent_set(gain, share, h, worth_high[j], guess, run_sets_next, line)
                d, z0, z1, least, least_end, most, most_end = run_lines(
                    p, mean[until], amount, cost, share, choice, run_sets_next, line
                )
            if d == 0.0:
                low[j] = 0.0
                high[j] = 0.0
                label_low[j] = h * max(worth_low[j], 0.0) * less
                label_high[j] = h * worth_high[j] * more
                j += 1
                continue
            alive = min(alive, j)
            factor = h * d / (1.0 + h * d)
            loss_factor = 1.0 / (1.0 + h * d)
            label_factor = h / (1.0 + h * d)
            # The chords that I must stay between.
            least_slope = 0.0
            most_slope = 0.0
            if until > j:
                least_slope = (least_end - least) / (mean[until] - p)
                if most < math.inf:
                    most_slope = (most_end - most) / (mean[until] - p)
            # The states after ``until`` are computed again with their own set.
            beyond = np.uint64(j + ((until - j) // BLOCK + 1) * BLOCK)
            final = float(until)
            violations = np.int64(0)
            for i in range(np.uint64(j), beyond):
                low[i] = max(factor * worth_low[i] - loss_factor * (z0 - z1 * mean[i] + loss_margin), 0.0)
            for i in range(np.uint64(j), beyond):
                loss = z0 - z1 * mean[i]
                high[i] = factor * worth_high[i] - loss_factor * (loss - loss_margin)
                label = label_factor * (worth_high[i] + loss)
                outside = (label < least + least_slope * (mean[i] - p)) | (label > most + most_slope * (mean[i] - p))
                violations += np.int64(outside & (numbers[i] <= final))
            if violations > 0:
                # Another set suits the last state (a run ends where it ended in the row below, or one state before), or
                # more. Keep the states before the first of these; state j itself is consistent.
                label = label_factor * (worth_high[until] + (z0 - z1 * mean[until]))
                distance = mean[until] - p
                alone = label < least + least_slope * distance or label > most + most_slope * distance
                i = until if violations == 1 and alone else j + 1
                while i < until:
                    label = label_factor * (worth_high[i] + (z0 - z1 * mean[i]))
                    if label < least + least_slope * (mean[i] - p) or label > most + most_slope * (mean[i] - p):
                        break
                    i += 1
                i = max(i, j + 1)
                until = i - 1
            if stored:
                close = np.int64(0)
                final = float(until)
                for i in range(np.uint64(j), beyond):
                    label = worth_high[i] + (z0 - z1 * mean[i])
                    upper = label_factor * (label + loss_margin) * more
                    # I does not rise by more than h for each unit of R.
                    lower = label_factor * (label - loss_margin) * less - h * (worth_high[i] - worth_low[i]) * more
                    lower = max(lower, 0.0)
                    label_high[i] = upper
                    label_low[i] = lower
                    near = (lower <= least + least_slope * (mean[i] - p)) | (upper > most + most_slope * (mean[i] - p))
                    close += np.int64(near & (numbers[i] <= final))
                for i in range(j, until + 1):
                    widest = max(widest, high[i] - low[i])
                if close > 0:
                    for i in range(j, until + 1):
                        for m in range(menus):
                            best = amount[choice[m]] * (mean[i] - cost[choice[m]])
                            if best + label_high[i] > 0.0 and best + label_low[i] <= 0.0:
                                undecided += 1
                                break
            same = runs > 0 and not crossed
            if same:
                for m in range(menus):
                    same = same and run_sets[runs - 1, m] == run_sets_next[line, m]
            if same:
                run_ends[runs - 1] = until
            elif runs < most_runs:
                run_ends[runs] = until
                for m in range(menus):
                    run_sets[runs, m] = run_sets_next[line, m]
                runs += 1
            if next_run < runs_next and until >= run_ends_next[next_run] - 1:
                next_run += 1
            guess = label_factor * (worth_high[until] + (z0 - z1 * mean[until]))
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
        mean, mean_next = mean_next, mean
        rest, rest_next = rest_next, rest
        run_ends, run_ends_next = run_ends_next, run_ends
        run_sets, run_sets_next = run_sets_next, run_sets
        runs_next = runs
        bottom = alive
        top = end
        while top > bottom + 2 and mean_next[top] > kink_high:
            if known_gain(k, top, mixture, log_start, kink, slope) >= drop:
                break
            top -= 1
    if bottom > 0:
        return 0.0, 0.0, widest, undecided, states, index, table[:, :filled]
    return low[0], high[0], widest, undecided, states, index, table[:, :filled]
