"""The certified solver for labels that come late: a two-sided, banded recursion over (n, s, pending).

The model. Individuals arrive as a Poisson process of rate λ. Each pending outcome becomes known at rate μ, that is,
after an exponential delay of mean 1/μ. Money is discounted at rate r. From the prior (n₀, s₀) the beliefs (n₀ + k, s₀ +
j) with 0 ≤ j ≤ k can be reached, each with m = 0, 1, … acceptances pending. This is not a stopping problem: a policy
can pause, wait for outcomes, and resume. Nothing is learnt between events, so with g = λ/r and

    Q = V − g (p̂ − c),      E = p̂ Q(n+1, s+1, m−1) + (1−p̂) Q(n+1, s, m−1)

the optimal value V, before the next arrival, satisfies the equation below. Q is the value of the option to reject:
"accept everyone for ever" has Q = 0.

    Q(n, s, m) = max{ [λ Q(n, s, m+1) + mμ E] / (r + λ + mμ),  [λ (c − p̂) + mμ E] / (r + mμ) },

The first term accepts, the second rejects. With w = mμ/(r + mμ) and a = λ/(r + λ + mμ) they are a Q(m+1) + (1−a) wE and
wE + λ(c − p̂)/(r + mμ). For each n, m descends from a cap M to 0, so the recursion is explicit and needs no iteration.

Guarantees. ``lower`` and ``upper`` enclose Q, including rounding:

- The last row. The lower recursion starts from g (c − p̂)⁺, the value of learning nothing more. The upper recursion
  starts from the smaller of g E(c − p)⁺, the value of knowing p, and the optimum if all pending labels are revealed at
  once and later labels have no delay.
- The cap. The lower recursion accepts and ignores the label, or rejects: Q = max{Mμ E, λ(c − p̂) + Mμ E}/(r + Mμ). In
  the upper recursion another acceptance reveals one label at once: Q(n, s, M+1) ≤ p̂ Q(n+1, s+1, M) + (1−p̂) Q(n+1, s,
  M).
- V does not fall in m, because a label can be ignored. So if p̂ ≥ c, accepting is optimal at every m, and only states
  with p̂ < c need the comparison.
- V does not fall and Q does not rise with s: in Pólya's urn the player with the better belief can imitate the other's
  observations, outcome by outcome, and conversely. So for the same n and m, every state above the band has 0 ≤ Q ≤ the
  Q of the band's last state, and every state below it has 0 ≤ V ≤ the V of the band's first state.
- Every term is positive. A step has at most 22 roundings of 2⁻⁵³, or 2.5e-15: 4 for the weights p̂ and 1−p̂, 2 for their
  product and sum, 5 for w, 1 for its product, 8 for 1−a, and 2 for its product and the sum. The factors of the lower
  recursion are smaller by 3e-15, and those of the upper recursion larger by 3e-15. For c − p̂, which is computed in
  double-double, the margin is 6e-15.

Computation. The array is [m][j], updated in place, with m descending. Plane m reads plane m+1 of its own row and plane
m−1 of the next row (n + 1), so the iterations over j are independent and the loop vectorises. Eight rows are swept
together, each one plane behind the row before it, so that the planes are still in the cache when the next row reads
them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.lattice import AT_COST
from lenience.solvers.delayed.limits import first_hopeful, read_plane
from lenience.solvers.delayed.planes import (
    plane_factors,
    sweep_accept,
    sweep_cap_lower,
    sweep_cap_upper,
    sweep_choice,
    sweep_none_pending,
)
from lenience.solvers.delayed.start import first_above, reveal_start
from lenience.solvers.stopping.band import put_above, strike_distance

TILE = 8  # rows swept together


class DelayedBand(NamedTuple):
    """The result of the kernel.

    ``lower[m]`` and ``upper[m]`` enclose Q at the prior with m pending. ``limits`` has the exposure limits of row 0,
    then of row 1, and so on. Row k has one for each state ``first[k] ≤ j < unlimited[k]``. Below ``first[k]`` the limit
    is proved to be 0. From ``unlimited[k]`` on (p̂ ≥ c, up to the rounding of c) there is no limit. ``settled`` says
    whether a limit is proved. ``open_below[k]`` says that the limit 0 below ``first[k]`` is not proved.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    first: NDArray[np.int64]
    unlimited: NDArray[np.int64]
    limits: NDArray[np.int32]
    settled: NDArray[np.bool_]
    open_below: NDArray[np.bool_]
    compared: int
    unsettled: int
    capped: int
    resumed: int
    resumed_proved: int
    updates: int


@compiled
def solve_delayed(
    n0: float,
    s0: float,
    f0: float,
    c: float,
    arrivals: float,
    rate: float,
    resolve: float,
    last: int,
    cap: int,
    drop: float,
    rows: int,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.bool_],
    NDArray[np.bool_],
    int,
    int,
    int,
    int,
    int,
    int,
]:
    """Run the recursion from row ``last`` to row 0 and read the exposure limits of the first ``rows`` rows.

    ``f0`` is n₀ − s₀, ``resolve`` is μ, and ``cap`` is M ≥ 1. States at the ends of the band are dropped if their Q
    (above) or V (below), discounted back to row 0, is at most ``drop``. Return the fields of :class:`DelayedBand`.
    """
    g = arrivals / rate
    g_low = g * (1.0 - 4e-16)
    g_high = g * (1.0 + 4e-16)
    one = np.uint64(1)
    # A path needs k arrivals to reach row k, so a state that is dropped there is discounted by more than this. The rate
    # is below the discount along the plane of the cap, so that a dropped state stays below the limit of later rows.
    growth = 0.9 * math.log1p(rate / (arrivals + cap * resolve))
    updates = 0

    wait_low, move_low, stay_low, strike_low = plane_factors(arrivals, rate, resolve, cap, -1.0)
    wait_high, move_high, stay_high, strike_high = plane_factors(arrivals, rate, resolve, cap, 1.0)

    # The band of the last row goes from the first state whose V is not negligible to the last state whose Q is not.
    n = n0 + last
    row_drop = drop * math.exp(min(growth * last, 600.0))
    middle = first_above(c, n0, s0, last)
    lo = min(middle, last)
    while lo > 0:
        below = strike_distance(c, n0, s0, last, lo) / n
        mean = min((s0 + lo) / n, 1.0)
        if below > 0.0 and g * put_above(below, n, mean * (1.0 - mean) / (n + 1.0)) < min(row_drop, 0.5 * below):
            break
        lo -= 1
    hi = min(middle, last)
    while hi < last:
        above = max(-strike_distance(c, n0, s0, last, hi) / n, 0.0)
        mean = min((s0 + hi) / n, 1.0)
        if above > 0.0 and g * put_above(above, n, mean * (1.0 - mean) / (n + 1.0)) < row_drop:
            break
        hi += 1

    # The band lives in a window that slides down with the rows; the odd multiple of 8 spreads the planes
    # over the cache's sets.
    width = ((hi - lo + 64 + 256) // 16) * 16 + 24
    base = hi + 4 - width
    low = np.zeros((cap + 1) * width)
    high = np.zeros((cap + 1) * width)
    revealed = reveal_start(n0, s0, f0, c, arrivals, rate, last, cap, middle - lo + 1, hi - middle + 1)
    for j in range(max(lo - 1, 0), min(hi + 1, last) + 1):
        below = strike_distance(c, n0, s0, last, j) / n
        mean = min((s0 + j) / n, 1.0)
        extra = put_above(abs(below), n, mean * (1.0 - mean) / (n + 1.0))
        start_low = g_low * max(below, 0.0) * (1.0 - 1e-14)
        start_high = g_high * (max(below, 0.0) * (1.0 + 1e-14) + extra)
        for m in range(cap + 1):
            low[m * width + j - base] = start_low
            high[m * width + j - base] = min(start_high, revealed[m, j - lo + 2])

    table = min(rows, last)
    first = np.zeros(table, dtype=np.int64)
    unlimited = np.zeros(table, dtype=np.int64)
    open_below = np.zeros(table, dtype=np.bool_)
    limits = np.zeros(1024, dtype=np.int32)
    settled = np.zeros(1024, dtype=np.bool_)
    used = 0
    compared = 0
    unsettled = 0
    capped = 0
    resumed = 0
    resumed_proved = 0

    good = np.zeros((TILE, width))  # p̂
    bad = np.zeros((TILE, width))  # 1 − p̂
    strike = np.zeros((TILE, width))  # c − p̂
    los = np.zeros(TILE, dtype=np.int64)
    his = np.zeros(TILE, dtype=np.int64)
    middles = np.zeros(TILE, dtype=np.int64)
    hopeful = np.zeros(TILE, dtype=np.int64)
    outer = np.zeros(TILE)  # the bound by the value of knowing p, just above the band
    # By state, while m descends: the smallest m that is rejected, not proved accepted, and proved rejected; the largest
    # m that is accepted, and proved accepted.
    least_rejected = np.zeros((TILE, width), dtype=np.int32)
    least_doubt = np.zeros((TILE, width), dtype=np.int32)
    least_refused = np.zeros((TILE, width), dtype=np.int32)
    most_accepted = np.zeros((TILE, width), dtype=np.int32)
    most_proved = np.zeros((TILE, width), dtype=np.int32)

    k_next = last - 1
    while k_next >= 0:
        tile = min(TILE, k_next + 1)
        if lo - 1 - tile - 2 < base and base > -2 * TILE - 4:
            # Move the band to the upper end of the window, and enlarge the window if the band has grown.
            start = max(lo - 1, 0)
            count = hi + 2 - start
            new_width = width
            if count + 128 > width:
                new_width = ((count + count // 2 + 256) // 16) * 16 + 8
            new_base = hi + 4 - new_width
            new_low = np.zeros((cap + 1) * new_width)
            new_high = np.zeros((cap + 1) * new_width)
            for m in range(cap + 1):
                for j in range(start, hi + 2):
                    new_low[m * new_width + j - new_base] = low[m * width + j - base]
                    new_high[m * new_width + j - new_base] = high[m * width + j - base]
            low = new_low
            high = new_high
            if new_width > width:
                good = np.zeros((TILE, new_width))
                bad = np.zeros((TILE, new_width))
                strike = np.zeros((TILE, new_width))
                least_rejected = np.zeros((TILE, new_width), dtype=np.int32)
                least_doubt = np.zeros((TILE, new_width), dtype=np.int32)
                least_refused = np.zeros((TILE, new_width), dtype=np.int32)
                most_accepted = np.zeros((TILE, new_width), dtype=np.int32)
                most_proved = np.zeros((TILE, new_width), dtype=np.int32)
            width = new_width
            base = new_base
        for t in range(tile):
            k = k_next - t
            n = n0 + k
            lo = max(lo - 1, 0)
            hi = min(hi, k)
            los[t] = lo
            his[t] = hi
            middles[t] = min(max(first_above(c, n0, s0, k), lo), hi + 1)
            for j in range(max(lo - 1, 0), min(hi + 1, k) + 1):
                i = j - base
                good[t, i] = (s0 + j) / n
                bad[t, i] = (f0 + (k - j)) / n
                strike[t, i] = strike_distance(c, n0, s0, k, j) / n
            if hi < k:
                i = hi + 1 - base
                outer[t] = g_high * put_above(abs(strike[t, i]), n, good[t, i] * bad[t, i] / (n + 1.0)) * (1.0 + 1e-14)
                if strike[t, i] > 0.0:
                    outer[t] = math.inf
            if k < table:
                for j in range(lo, hi + 1):
                    i = j - base
                    least_rejected[t, i] = cap
                    least_doubt[t, i] = cap
                    least_refused[t, i] = cap + 1
                    most_accepted[t, i] = -1
                    most_proved[t, i] = -1

        for step in range(cap + tile):
            for t in range(tile):
                m = cap - step + t
                if m > cap or m < 0:
                    continue
                k = k_next - t
                lo_t = los[t]
                hi_t = his[t]
                begin = np.uint64(lo_t - base)
                turn = np.uint64(middles[t] - base)
                end = np.uint64(hi_t + 1 - base)
                here = np.uint64(m * width)
                wl = wait_low[m]
                wh = wait_high[m]
                al = move_low[m]
                ah = move_high[m]
                ol = stay_low[m]
                oh = stay_high[m]
                dl = strike_low[m]
                dh = strike_high[m]
                p = good[t]
                q = bad[t]
                x = strike[t]
                if m == cap:
                    under = here - np.uint64(width)
                    sweep_cap_lower(low, here, under, begin, turn, end, p, q, x, wl, dl)
                    sweep_cap_upper(high, here, under, begin, turn, end, p, q, x, wh, ah, oh, dh)
                elif m == 0:
                    over = here + np.uint64(width)
                    sweep_none_pending(low, here, over, begin, turn, end, x, al, dl)
                    sweep_none_pending(high, here, over, begin, turn, end, x, ah, dh)
                else:
                    under = here - np.uint64(width)
                    over = here + np.uint64(width)
                    sweep_choice(low, here, over, under, begin, turn, p, q, x, wl, al, ol, dl)
                    sweep_choice(high, here, over, under, begin, turn, p, q, x, wh, ah, oh, dh)
                    sweep_accept(low, here, over, under, turn, end, p, q, al, ol * wl)
                    sweep_accept(high, here, over, under, turn, end, p, q, ah, oh * wh)

                if k < table and m == cap:
                    hopeful[t] = first_hopeful(high, m * width - base, lo_t, middles[t], x, base, g_low)
                if k < table and m < cap:
                    read_plane(
                        low, high, here, np.uint64(width), m, np.uint64(hopeful[t] - base), turn, p, q, x, wl, wh,
                        1.0 + arrivals / (rate + m * resolve),
                        least_rejected[t], least_doubt[t], least_refused[t], most_accepted[t], most_proved[t],
                    )  # fmt: skip

                # Set the neighbours outside the band, which the next row reads.
                if hi_t < k:
                    low[here + end] = 0.0
                    high[here + end] = min(high[here + end - one], outer[t])
                if lo_t > 0:
                    low[here + begin - one] = g_low * x[begin - one] * (1.0 - 6e-15)
                    surplus = max(high[here + begin] - g_low * x[begin] * (1.0 - 6e-15), 0.0)
                    high[here + begin - one] = (g_high * x[begin - one] * (1.0 + 6e-15) + surplus) * (1.0 + 4e-16)

        for t in range(tile):
            k = k_next - t
            updates += (his[t] + 1 - los[t]) * (cap + 1)
            if k >= table:
                continue
            middle = middles[t]
            while middle > hopeful[t] and strike[t, middle - 1 - base] <= AT_COST * c:
                middle -= 1  # The rate equals the cost up to rounding, e.g. 16 of 20 at a cost of 0.8.
            start = middle
            for j in range(middle - 1, hopeful[t] - 1, -1):
                i = j - base
                limit = least_rejected[t, i]
                sure = least_doubt[t, i] == limit and least_refused[t, i] == limit
                if limit > 0 or not sure:
                    start = j
            first[k] = start
            unlimited[k] = middle
            if used + middle - start > limits.size:
                longer = np.zeros(2 * limits.size + middle - start, dtype=np.int32)
                flags = np.zeros(longer.size, dtype=np.bool_)
                for i in range(used):  # a loop, because compiling the assignment of a slice takes seconds
                    longer[i] = limits[i]
                    flags[i] = settled[i]
                limits = longer
                settled = flags
            # Rows come in descending order, so each is stored backwards, and the whole array is reversed at the end.
            for j in range(middle - 1, start - 1, -1):
                i = j - base
                limit = least_rejected[t, i]
                sure = least_doubt[t, i] == limit and least_refused[t, i] == limit
                limits[used] = limit
                settled[used] = sure
                used += 1
                unsettled += not sure
                capped += limit == cap
                resumed += most_accepted[t, i] > limit
                resumed_proved += most_proved[t, i] > least_refused[t, i]
            compared += max(middle - hopeful[t], 0)
            if hopeful[t] == los[t] and los[t] > 0:
                open_below[k] = True  # It is not proved that the limit is 0 below the band of this row.
                unsettled += 1

        # Trim the band.
        k = k_next - tile + 1
        t = tile - 1
        row_drop = drop * math.exp(min(growth * k, 600.0))
        middle = first_above(c, n0, s0, k)
        top = cap * width - base
        while hi > middle + 2 and hi > lo and high[top + hi] < row_drop:
            hi -= 1
        while lo < min(middle - 2, k):
            x_lo = strike[t, lo + 1 - base]
            value = high[top + lo + 1] - g_low * x_lo * (1.0 - 6e-15)
            if value >= min(row_drop, 0.5 * x_lo):
                break
            lo += 1
        if hi < k:
            for m in range(cap + 1):
                low[m * width + hi + 1 - base] = 0.0
                high[m * width + hi + 1 - base] = min(high[m * width + hi - base], high[m * width + hi + 1 - base])
        if lo > 0:
            x_lo = strike[t, lo - base]
            x_out = strike[t, lo - 1 - base]
            for m in range(cap + 1):
                at = m * width + lo - base
                low[at - 1] = g_low * x_out * (1.0 - 6e-15)
                surplus = max(high[at] - g_low * x_lo * (1.0 - 6e-15), 0.0)
                high[at - 1] = (g_high * x_out * (1.0 + 6e-15) + surplus) * (1.0 + 4e-16)
        k_next -= tile

    prior_low = np.empty(cap + 1)
    prior_high = np.empty(cap + 1)
    for m in range(cap + 1):
        prior_low[m] = low[m * width - base]
        prior_high[m] = high[m * width - base]
    return (
        prior_low,
        prior_high,
        first,
        unlimited,
        limits[:used][::-1].copy(),
        settled[:used][::-1].copy(),
        open_below,
        compared,
        unsettled,
        capped,
        resumed,
        resumed_proved,
        updates,
    )
