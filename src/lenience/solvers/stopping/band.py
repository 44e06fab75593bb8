"""The certified solver: a two-sided, banded recursion for the optimal stopping problem.

The model. From the prior (n₀, s₀) the beliefs (n₀ + k, s₀ + j) with 0 ≤ j ≤ k can be reached. The paper's equation for
V* is V = max(Ṽ, 0) with Ṽ(n, s) = p̂ − c + γ [p̂ V(n+1, s+1) + (1−p̂) V(n+1, s)]. Define

    Q = V/a − (p̂ − c),     a = 1/(1−γ),   or, with m individuals to come,   Q = V − a_m (p̂ − c).

Since E p̂′ = p̂, this is an American put option on the posterior mean with strike c:

    Q(n, s) = max{ γ [p̂ Q(n+1, s+1) + (1−p̂) Q(n+1, s)],  w (c − p̂) },

where w = 1 for the infinite horizon and w = a_m = 1 + γ + … + γ^(m−1) for m individuals to come. The first term is at
least the second exactly if accepting is optimal (Theorem 1).

Guarantees. ``lower`` and ``upper`` enclose Q at every state, including rounding:

- The last row starts from (c − p̂)⁺ ≤ Q ≤ E(c − p̂_T)⁺, the values of learning nothing more (Proposition 3) and of a free
  label from every arrival (:mod:`lenience.solvers.stopping.free_labels`). The recursion is monotone, so it preserves
  both bounds.
- Every term is positive, so a row adds a relative error of at most 8 roundings (of 2⁻⁵³): n − s, f, n, γ/n, two
  products, the sum, and γ itself. The lower recursion uses γ(1 − 10⁻¹⁵) and the upper one γ(1 + 10⁻¹⁵), a larger margin
  than that.
- If stopping is proved optimal at both successors of a state, it is optimal at the state too, because c > p̂ there. So
  the lower edge of the band falls by at most one state per row. Above a state where accepting is proved optimal,
  accepting is optimal (Proposition 2), so the interior needs no comparison.
- Above the cost accepting is optimal, so Q = γ E Q′ there, and K exp(−β(s − cn)) with the rate β of
  :mod:`lenience.solvers.stopping.free_labels` is at least γ times its mean over the successors. So where it bounds Q at
  all states from some s on, it does so in the row before too. Such a bound holds above the band: it falls by exp(−βc)
  towards each earlier row at a fixed s, and K is raised if need be when a state is dropped. Over a horizon, and where
  γ is so close to 1 that β is 0, the bound of the state that was dropped last holds, because Q does not rise with s
  (docs/proofs.md), nor towards earlier rows.
- What is dropped m rows after the last row that is needed counts with γ^m there. So states whose Q is below γ^(−m) drop
  may be dropped, and the band is narrower in later rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled, exactly_compiled
from lenience.solvers.stopping.free_labels import decay_rate, free_label_part, free_label_tail

ROUNDING = 1e-15  # relative margin per row, above the 8 × 1.11e-16 of the analysis above


class Band(NamedTuple):
    """The result of the kernel; its counts are over the rows of ``accept_from``.

    ``lower`` and ``upper`` enclose Q at the prior. ``continue_lower`` and ``continue_upper`` enclose γ E Q, the value
    of accepting there. ``edge_width`` is the largest gap between the bounds of γ E Q at the undecided states and at the
    first accepted state of each row. ``states`` is the number of states computed.
    """

    lower: float
    upper: float
    continue_lower: float
    continue_upper: float
    undecided: int
    edge_width: float
    states: int


@compiled
def put_above(mean_above: float, n: float, variance: float) -> float:
    """Return an upper bound of E(c − p)⁺ under any Beta belief of size n with p̂ − c = ``mean_above`` ≥ 0.

    It is the smaller of Scarf's bound, which needs only the variance, and the integral of the sub-Gaussian tail with
    variance proxy 1/(4(n+1)) (Marchal and Arbel 2017).
    """
    scarf = 0.5 * variance / (math.sqrt(variance + mean_above * mean_above) + mean_above + 1e-300)
    proxy = 0.25 / (n + 1.0)
    tail = math.sqrt(0.5 * math.pi * proxy) * math.exp(-0.5 * mean_above * mean_above / proxy)
    return min(scarf, tail) * (1.0 + 1e-12)


@exactly_compiled
def strike_distance(c: float, n0: float, s0: float, k: int, j: int) -> float:
    """Return c n − s at the state (n₀ + k, s₀ + j) in double-double arithmetic, to nearly full relative precision."""
    kf = float(k)
    n = n0 + kf
    bb = n - n0
    n_rest = (n0 - (n - bb)) + (kf - bb)
    jf = float(j)
    s = s0 + jf
    bb = s - s0
    s_rest = (s0 - (s - bb)) + (jf - bb)
    # Compute c × n exactly, by Dekker's product.
    t = 134217729.0 * c
    c_high = t - (t - c)
    c_low = c - c_high
    t = 134217729.0 * n
    n_high = t - (t - n)
    n_low = n - n_high
    product = c * n
    product_rest = ((c_high * n_high - product) + c_high * n_low + c_low * n_high) + c_low * n_low
    return (product - s) + (product_rest + c * n_rest - s_rest)


@compiled
def remaining_weight(gamma: float, remaining: int) -> float:
    """Return a_m = 1 + γ + … + γ^(m−1)."""
    if gamma == 1.0:
        return float(remaining)
    return -math.expm1(remaining * math.log(gamma)) / (1.0 - gamma)


@compiled
def solve_band(
    n0: float,
    s0: float,
    f0: float,
    c: float,
    gamma: float,
    last: int,
    horizon: bool,
    drop: float,
    accept_from: NDArray[np.int64],
    stop_below: NDArray[np.int64],
    progress: NDArray[np.int64],
) -> tuple[float, float, float, float, int, float, int]:
    """Run the recursion from row ``last`` to row 0 and write the decisions of the first rows.

    ``f0`` is n₀ − s₀. With ``horizon``, a total of ``last`` individuals arrive and the last row is exact; otherwise it
    has bounds. States whose Q is below ``drop`` are dropped from the top of the band. In row k, accepting is proved
    optimal at the states j ≥ ``accept_from[k]``, and stopping at the states j < ``stop_below[k]``. ``progress[0]`` is
    the number of rows done. Return the fields of :class:`Band`.
    """
    gamma_low = gamma * (1.0 - ROUNDING)
    gamma_high = gamma * (1.0 + ROUNDING)
    one = np.uint64(1)  # Offsets are unsigned, because the compiler does not vectorise the inner loop with signed ones.
    table = accept_from.size
    undecided = 0
    edge_width = 0.0
    states = 0
    h = 0.0
    rate = 0.0
    rate_below = 0.0
    fall = 1.0  # factors of the bound above the band, for a row before and for a success less
    rise = 1.0
    row_drop = drop  # what Q may be at most where states of the row are dropped
    if not horizon:
        h = gamma / (1.0 - gamma)
        rate = decay_rate(gamma, c, 1.0 - c)
        rate_below = decay_rate(gamma, 1.0 - c, c)
        fall = math.exp(-rate * c) * (1.0 + 4e-15)
        rise = math.exp(rate) * (1.0 + 4e-15)
        row_drop = min(drop * gamma ** float(table - last), 1.0) if gamma > 0.0 else drop

    # Find the band of the last row: from the first state at which stopping is not proved to the last with a Q above
    # drop.
    n = n0 + last
    edge = int(min(max(math.floor(c * n - s0), 0.0), last + 1.0))
    top = edge
    if horizon:
        # Nobody is left, so Q = 0. States below the strike count as stops (w = 0 there).
        while edge > 0 and strike_distance(c, n0, s0, last, edge - 1) <= 0.0:
            edge -= 1
        while edge <= last and strike_distance(c, n0, s0, last, edge) > 0.0:
            edge += 1
        top = min(edge + 1, last)
    else:
        while edge > 0:
            below = strike_distance(c, n0, s0, last, edge - 1) / n
            # Stopping is proved if γ E Q′ ≤ c − p̂. Free labels add γ (E Q′ − (c − p̂)) at most.
            spread = (s0 + (edge - 1)) / n * ((f0 + (last - edge + 1)) / n)
            added = free_label_part(-below, spread, n, c, h, rate, rate_below)
            if below > 0.0 and added * 1.0001 <= (1.0 - gamma) * below * (1.0 - 1e-12):
                break
            edge -= 1
        while top < last:
            above = -strike_distance(c, n0, s0, last, top) / n
            spread = (s0 + top) / n * ((f0 + (last - top)) / n)
            if above > 0.0 and free_label_part(above, spread, n, c, h, rate, rate_below) < row_drop:
                break
            top += 1
    above_band = 0.0  # an upper bound of Q at the first state above the band
    if not horizon and top < last:
        above = -strike_distance(c, n0, s0, last, top + 1) / n
        spread = (s0 + (top + 1)) / n * ((f0 + (last - top - 1)) / n)
        above_band = free_label_part(above, spread, n, c, h, rate, rate_below)
        if rate > 0.0:
            above_band = free_label_tail(n, c, h, rate) * math.exp(-rate * (n * above))
        above_band *= 1.0 + 1e-11

    # The arrays are a window that moves down with the band and grows with it.
    window = 2 * (top - edge + 4) + 4096
    base = top + 3 - window
    index = np.arange(window).astype(np.float64)
    low = np.zeros(window)
    high = np.zeros(window)
    if not horizon:
        for j in range(edge, top + 1):
            below = strike_distance(c, n0, s0, last, j) / n
            spread = (s0 + j) / n * (max(f0 + (last - j), 0.0) / n)
            extra = free_label_part(-below, spread, n, c, h, rate, rate_below) * (1.0 + 1e-12)
            low[j - base] = max(below, 0.0) * (1.0 - 1e-14)
            high[j - base] = max(below, 0.0) * (1.0 + 1e-14) + extra

    continue_low = 0.0
    continue_high = 0.0
    for k in range(last - 1, -1, -1):
        if edge > k + 1:
            # Stopping is optimal at every state of the next row, so also at every state of this row and of earlier
            # rows.
            for row in range(min(k + 1, table)):
                accept_from[row] = row + 1
                stop_below[row] = row + 1
            stop = strike_distance(c, n0, s0, 0, 0) / n0
            weight = remaining_weight(gamma, last - 1) if horizon else 1.0
            stop *= remaining_weight(gamma, last) if horizon else 1.0
            below = gamma * weight * strike_distance(c, n0, s0, 0, 0) / n0
            return (
                stop * (1.0 - 1e-14),
                stop * (1.0 + 1e-14),
                below * (1.0 - 1e-14),
                below * (1.0 + 1e-14),
                undecided,
                edge_width,
                states,
            )
        n = n0 + k
        n_next = n0 + (k + 1)
        weight = 1.0
        weight_next = 1.0
        if horizon:
            weight = remaining_weight(gamma, last - k)
            weight_next = remaining_weight(gamma, last - k - 1)

        if edge - base < 4:
            # Move the band to the upper end of the window.
            count = top - edge + 1
            start = edge - base
            if 2 * count > window:
                window *= 2
                index = np.arange(window).astype(np.float64)
                low_before = low
                high_before = high
                low = np.zeros(window)
                high = np.zeros(window)
                for i in range(start, start + count):
                    low[i] = low_before[i]
                    high[i] = high_before[i]
            shift = window - 3 - (top - base)
            for i in range(start + count - 1, start - 1, -1):
                low[i + shift] = low[i]
                high[i + shift] = high[i]
            base -= shift

        if top <= k:
            low[top + 1 - base] = 0.0
            high[top + 1 - base] = above_band
        else:
            top = k
        above_band *= fall
        row_drop = max(gamma * row_drop, drop)

        # Compare at the edge: stops come first, then undecided states, up to the first state where accepting is proved.
        j = edge
        if edge > 0:
            j = edge - 1
            stop = weight_next * strike_distance(c, n0, s0, k + 1, j) / n_next
            low[j - base] = stop * (1.0 - 4e-15)
            high[j - base] = stop * (1.0 + 4e-15)
        edge = -1
        accepted = top + 1
        while j <= top:
            i = j - base
            s = s0 + j
            f = f0 + (k - j)
            go_low = gamma_low * (s * low[i + 1] + f * low[i])
            go_high = gamma_high * (s * high[i + 1] + f * high[i])
            stop = weight * strike_distance(c, n0, s0, k, j)
            stop_low = stop - 4e-15 * abs(stop)
            stop_high = stop + 4e-15 * abs(stop)
            if go_high <= stop_low:
                j += 1
                continue
            if edge < 0:
                edge = j
            if go_low > stop_high:
                accepted = j
                break
            if k < table:
                edge_width = max(edge_width, (go_high - go_low) / n)
            low[i] = max(go_low, stop_low) / n * (1.0 - 4e-16)
            high[i] = max(go_high, stop_high) / n * (1.0 + 4e-16)
            if k == 0:
                continue_low = go_low / n
                continue_high = go_high / n
            j += 1
        if edge < 0:
            edge = top + 1
            if k == 0:
                i = -base
                continue_low = gamma_low * (s0 * low[i + 1] + f0 * low[i]) / n
                continue_high = gamma_high * (s0 * high[i + 1] + f0 * high[i]) / n
        progress[0] = last - k
        if k < table:
            accept_from[k] = accepted
            stop_below[k] = edge
            undecided += accepted - edge

        # Inside the band accepting is proved optimal, so Q = γ E Q.
        if accepted <= top:
            scale_low = gamma_low / n
            scale_high = gamma_high / n
            j0 = float(base)
            k0 = float(k - base)
            for i in range(np.uint64(accepted - base), np.uint64(top + 1 - base)):
                s = (index[i] + j0) + s0
                f = (k0 - index[i]) + f0
                low[i] = (s * low[i + one] + f * low[i]) * scale_low
                high[i] = (s * high[i + one] + f * high[i]) * scale_high
            states += top + 1 - accepted
            i = accepted - base
            if k < table:
                edge_width = max(edge_width, high[i] - low[i])
            if horizon:
                # With γ = 1 nothing else lowers Q at the top of the band, so above the cost bound it by the value of
                # knowing p.
                above = -strike_distance(c, n0, s0, k, top) / n
                if above > 0.0:
                    spread = (s0 + top) / n * ((f0 + (k - top)) / n)
                    known = weight * put_above(above, n, spread / (n + 1.0))
                    high[top - base] = min(high[top - base], known * (1.0 + 1e-14))
            while top > accepted + 2:
                bound = high[top - base] if horizon else max(high[top - base], above_band * rise)
                if bound >= row_drop or s0 + top <= c * n:
                    break
                above_band = bound
                top -= 1
            if k == 0:
                continue_low = low[i]
                continue_high = high[i]

    if edge > 0:
        stop = strike_distance(c, n0, s0, 0, 0) / n0
        stop *= remaining_weight(gamma, last) if horizon else 1.0
        return (
            stop * (1.0 - 1e-14),
            stop * (1.0 + 1e-14),
            continue_low,
            continue_high,
            undecided,
            edge_width,
            states,
        )
    return low[-base], high[-base], continue_low, continue_high, undecided, edge_width, states
