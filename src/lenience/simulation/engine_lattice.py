"""The compiled engine: a homogeneous world and a policy that depends on the belief alone.

From a prior only the lattice (n₀ + k, s₀ + j) can be reached, so acceptance is a table. The engine holds the table for
a window of rows k at a time. Every replication runs, at its own pace, until it leaves the window, stops for good or
reaches the horizon; then the next window is computed. Memory is therefore bounded for every horizon. In a row of a
*two-valued* policy the table is one number j and two limits. In a row of a *monotone* policy it holds the limits
between those j where acceptance is nearly 0 and nearly 1. If that band has more states than the replications can
visit, the policy is evaluated state by state instead.

Unsigned offsets keep the loads of the kernel free of sign checks. Random numbers come from counters
(:mod:`lenience.core.counter_rng`), so it does not matter where a replication was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.counter_rng import ONE, arrival_bits, bits_of, limits
from lenience.core.protocols import Accepts
from lenience.simulation.block import ReplicationBlock, along_time, geometric_sum

FIRST_WINDOW, LAST_WINDOW = 1024, 65536
MOST_STATES = 4_000_000  # states of a band in memory: 32 MB
TINY = 1e-300  # below this a discount counts as 0: arithmetic on denormal numbers is slow


class RowLimits(NamedTuple):
    """The acceptance limits of a window of rows.

    The limit is 0 below ``floor``, ``low`` below ``edge``, and ``high`` from ``top`` on. Between ``edge`` and ``top``
    it is in ``values``, from ``offset`` on.
    """

    floor: NDArray[np.uint64]
    edge: NDArray[np.uint64]
    top: NDArray[np.uint64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    offset: NDArray[np.uint64]
    values: NDArray[np.uint64]


class Runs:
    """The current state of each replication."""

    def __init__(self, keys: NDArray[np.uint64], rates: NDArray[np.float64], checks: int) -> None:
        count = keys.size
        self.keys, self.rates, self.chance = keys, rates, limits(rates)
        self.time = np.zeros(count, dtype=np.uint64)
        self.accepted = np.zeros(count, dtype=np.uint64)
        self.successes = np.zeros(count, dtype=np.uint64)
        self.check = np.zeros(count, dtype=np.uint64)
        self.red = np.zeros(count, dtype=np.uint64)
        self.stopped = np.zeros(count, dtype=np.bool_)
        self.factor = np.ones(count)
        self.account = np.zeros(count)
        self.lowest = np.zeros(count)
        self.weight = np.zeros(count)
        self.accepted_by = np.zeros((count, checks), dtype=np.int64)

    def alive(self, horizon: int) -> NDArray[np.int64]:
        """Return the replications that have not stopped or reached the horizon."""
        return np.flatnonzero((self.time < np.uint64(horizon)) & ~self.stopped)


def run_lattice(
    policy: Accepts,
    keys: NDArray[np.uint64],
    rates: NDArray[np.float64],
    prior: Belief,
    cost: float,
    discount: float,
    horizon: int,
    checkpoints: NDArray[np.int64],
) -> ReplicationBlock:
    """Run a policy in a homogeneous world with the given success probabilities."""
    runs = Runs(keys, rates, checkpoints.size)
    checks = checkpoints.astype(np.uint64)
    size = FIRST_WINDOW
    while (alive := runs.alive(horizon)).size:
        first = int(runs.accepted[alive].min())
        last = min(first + size, horizon)
        rows = _cached_window(policy, prior, first, last, alive.size)
        if rows is None:
            _run_by_steps(policy, runs, prior, cost, discount, horizon, checks)
            break
        _run(
            runs.keys, runs.chance, runs.time, runs.accepted, runs.successes, runs.check, runs.red, runs.stopped,
            runs.factor, runs.account, runs.lowest, runs.weight, runs.accepted_by,
            *rows, checks, np.uint64(first), np.uint64(last), np.uint64(horizon), cost, discount,
        )  # fmt: skip
        size = min(2 * size, LAST_WINDOW)
    gain = rates - cost
    best = np.maximum(gain, 0.0)
    regret_by = best[:, None] * checkpoints - gain[:, None] * runs.accepted_by
    accepted = runs.accepted.astype(np.float64)
    return ReplicationBlock(
        p=rates,
        accepted=accepted,
        reward=runs.successes - cost * accepted,
        discounted=runs.account,
        expected=gain * runs.weight,
        clairvoyant=best * geometric_sum(discount, horizon),
        learning_cost=-runs.lowest,
        red_until=runs.red.astype(np.float64),
        stopped=runs.stopped.astype(np.float64),
        shut_out=(runs.stopped & (rates > cost)).astype(np.float64),
        **dict(zip(ReplicationBlock._fields[10:], along_time(runs.accepted_by, regret_by, checkpoints), strict=True)),
    )


def _cached_window(policy: Accepts, prior: Belief, first: int, last: int, replications: int) -> RowLimits | None:
    """Return the window, computed once for all blocks that a process runs."""
    try:
        return _window_once(policy, prior, first, last, 1 << replications.bit_length())  # type: ignore[arg-type]
    except TypeError:  # a policy that cannot be hashed
        return window(policy, prior, first, last, replications)


def window(policy: Accepts, prior: Belief, first: int, last: int, replications: int) -> RowLimits | None:
    """Return the limits of rows ``first`` to ``last`` − 1, or None if evaluating state by state is less work."""
    k = np.arange(first, last)
    n = prior.n + k

    def limit_at(j: NDArray[np.int64]) -> NDArray[np.uint64]:
        return limits(policy.acceptance(n, prior.s + j))

    if getattr(policy, "two_valued", False):
        low, high = limit_at(np.zeros_like(k)), limit_at(k)
        edge = first_above(limit_at, low, k) if np.any(high > low) else (k + 1).astype(np.uint64)
        zero = np.zeros(k.size, dtype=np.uint64)
        return RowLimits(zero, edge, edge, low, high, zero, zero[:1])
    if not getattr(policy, "monotone", False):
        return None
    level = np.zeros(k.size, dtype=np.uint64)
    floor = first_above(limit_at, level, k)
    edge = first_above(limit_at, level + np.uint64(1), k)
    top = first_above(limit_at, level + np.uint64(ONE - 1), k)
    width = (top - edge).astype(np.int64)
    states = int(width.sum())
    if states > MOST_STATES or states > 4 * replications * k.size:
        if last - first > 64 and states > MOST_STATES:
            return window(policy, prior, first, first + (last - first) // 2, replications)
        return None
    offset = np.cumsum(width) - width
    row = np.repeat(np.arange(k.size), width)
    j = np.arange(states) - offset[row] + edge.astype(np.int64)[row]
    values = limits(policy.acceptance(n[row], prior.s + j)) if states else np.zeros(1, dtype=np.uint64)
    ones = np.ones(k.size, dtype=np.uint64)
    return RowLimits(floor, edge, top, ones, ones * np.uint64(ONE), offset.astype(np.uint64), values)


_window_once = lru_cache(maxsize=8)(window)


def first_above(
    limit_at: Callable[[NDArray[np.int64]], NDArray[np.uint64]], level: NDArray[np.uint64], k: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return the least j ≤ k of each row whose limit is above a level, or k + 1, by bisection of all rows at once."""
    low, high = np.zeros_like(k), k + 1
    while np.any(low < high):
        middle = (low + high) // 2
        above = limit_at(np.minimum(middle, k)) > level
        open_ = low < high
        high = np.where(open_ & above, middle, high)
        low = np.where(open_ & ~above, middle + 1, low)
    return low.astype(np.uint64)


@compiled
def _run(
    keys: NDArray[np.uint64],
    chance: NDArray[np.uint64],
    time: NDArray[np.uint64],
    accepted: NDArray[np.uint64],
    successes: NDArray[np.uint64],
    check: NDArray[np.uint64],
    red: NDArray[np.uint64],
    stopped: NDArray[np.bool_],
    factor: NDArray[np.float64],
    account: NDArray[np.float64],
    lowest: NDArray[np.float64],
    weight: NDArray[np.float64],
    accepted_by: NDArray[np.int64],
    floor: NDArray[np.uint64],
    edge: NDArray[np.uint64],
    top: NDArray[np.uint64],
    low: NDArray[np.uint64],
    high: NDArray[np.uint64],
    offset: NDArray[np.uint64],
    values: NDArray[np.uint64],
    checkpoints: NDArray[np.uint64],
    first: np.uint64,
    last: np.uint64,
    horizon: np.uint64,
    cost: float,
    discount: float,
) -> None:
    """Continue every replication until it leaves the window, stops or reaches the horizon."""
    one, half, coin_bits = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    for r in range(keys.size):
        if stopped[r]:
            continue
        i, k, j, c = time[r], accepted[r], successes[r], check[r]
        key, success = keys[r], chance[r]
        w, sum_, least, until, mass = factor[r], account[r], lowest[r], red[r], weight[r]
        done = False
        while i < horizon and not done:
            goal = checkpoints[c]
            while i < goal:
                if k >= last:
                    done = True
                    break
                row = k - first
                if j >= top[row]:
                    limit = high[row]
                elif j >= edge[row]:
                    limit = values[offset[row] + (j - edge[row])]
                elif j >= floor[row]:
                    limit = low[row]
                else:
                    limit = np.uint64(0)
                if limit == np.uint64(0):
                    stopped[r] = True
                    done = True
                    break
                bits = bits_of(key, i)
                i += one
                if (bits & coin_bits) < limit:
                    # The outcome is arithmetic, not a branch, because the processor cannot predict it.
                    good = np.uint64((bits >> half) < success)
                    k += one
                    j += good
                    mass += w
                    sum_ += w * (np.float64(good) - cost)
                    least = min(least, sum_)
                until = i if sum_ < 0.0 else until
                w = w * discount if w > TINY else 0.0
            if i == goal:
                accepted_by[r, c] = k
                c += one
        if stopped[r]:
            if sum_ < 0.0:
                until = horizon
            for later in range(c, checkpoints.size):
                accepted_by[r, later] = k
        time[r], accepted[r], successes[r], check[r] = i, k, j, c
        factor[r], account[r], lowest[r], red[r], weight[r] = w, sum_, least, until, mass


def _run_by_steps(
    policy: Accepts,
    runs: Runs,
    prior: Belief,
    cost: float,
    discount: float,
    horizon: int,
    checkpoints: NDArray[np.uint64],
) -> None:
    """Run the remaining replications to the end, evaluating the policy at every arrival."""
    one = np.uint64(1)
    while (alive := runs.alive(horizon)).size:
        k, j = runs.accepted[alive].astype(np.float64), runs.successes[alive].astype(np.float64)
        limit = limits(policy.acceptance(prior.n + k, prior.s + j))
        stops = alive[limit == 0]
        runs.stopped[stops] = True
        runs.red[stops[runs.account[stops] < 0.0]] = np.uint64(horizon)
        for r in stops:
            runs.accepted_by[r, int(runs.check[r]) :] = runs.accepted[r]
        alive, limit = alive[limit > 0], limit[limit > 0]
        bits = arrival_bits(runs.keys[alive], runs.time[alive])
        takes = (bits & np.uint64(ONE - 1)) < limit
        good = takes & ((bits >> np.uint64(32)) < runs.chance[alive])
        runs.time[alive] += one
        runs.accepted[alive[takes]] += one
        runs.successes[alive[good]] += one
        w = runs.factor[alive]
        runs.weight[alive] += w * takes
        runs.account[alive] += w * (good - cost * takes)
        runs.lowest[alive] = np.minimum(runs.lowest[alive], runs.account[alive])
        negative = alive[runs.account[alive] < 0.0]
        runs.red[negative] = runs.time[negative]
        runs.factor[alive] = np.where(w > TINY, w * discount, 0.0)
        due = alive[runs.time[alive] == checkpoints[runs.check[alive]]]
        runs.accepted_by[due, runs.check[due]] = runs.accepted[due]
        runs.check[due] += one
