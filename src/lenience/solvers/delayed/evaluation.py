"""The exact value, with late labels, of any policy that decides by the belief and the number pending.

With acceptance probability π(n, s, m), arrivals at rate λ, labels at rate μ each and money discounted at rate r,

    (r + λπ + mμ) V(n, s, m) = λπ (p̂ − c + V(n, s, m+1)) + mμ [p̂ V(n+1, s+1, m−1) + (1−p̂) V(n+1, s, m−1)],

The sweep goes as for the optimum: n descends, and for each n, m descends from a cap. With g = λ/r, every policy earns
at most g E(p − c)⁺ and loses at most g E(c − p)⁺. This bounds V in the last row and above the cap. Most policies are
steady if p̂ ≥ c: they accept while fewer than K outcomes are pending (K may be infinite). For these there is a better
bound. Let W(m) be the expected discounted number accepted under that limit alone, which does not depend on the labels.
V differs from W(m) (p̂ − c) only if p̂ falls to c at some time τ, and then by at most the g E(c − p)⁺ of the belief at
τ. That quantity is a martingale, so

    |V − W(m) (p̂ − c)| ≤ g E(c − p)⁺    where p̂ ≥ c,

and states far above c can be left out. V = 0 in the states from which the pending labels can no longer lead to a state
that accepts.

A prior that may be wrong changes p̂ and g E(c − p)⁺ only: they are the mixture's. Policies count from the mixture's
first belief: n and s are its own with the new outcomes added.

Guarantees. ``lower`` and ``upper`` enclose V. The rounding error is absolute: at most 16 roundings per step of numbers
below g, and a path has at most 2N + M steps. So 16·2⁻⁵³ g (2N + M) is added on both sides, and for a mixture 2N + M
times the error of a posterior mean.
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
from lenience.core.protocols import UNKNOWN, PendingPolicy
from lenience.solvers.delayed.plan import DelayedProblem, clairvoyant
from lenience.solvers.offers.learning_gain import known_gain
from lenience.solvers.offers.posterior_means import component_weights, write_means
from lenience.solvers.offers.solve import components
from lenience.solvers.stopping.band import put_above, strike_distance

UNIT = 2.0**-53
MOST_UPDATES = 1e11  # a few minutes
SPREAD = 6.5  # standard deviations of the number pending that the first attempt follows
ROOM = 64  # the number of states by which a row may move down before the arrays are shifted
ROW = 2e4  # the overhead of a row, in updates of a state


class States(NamedTuple):
    """The lattice: the prior's components, the first one's size and successes, and the error of a posterior mean."""

    mixture: NDArray[np.float64]
    log_start: NDArray[np.float64]
    n: float
    s: float
    error: float

    @classmethod
    def of(cls, prior: Belief | MixtureBelief) -> States:
        """Return the lattice of a prior."""
        mixture, log_start, error = components(prior)
        first = MixtureBelief.of(prior).beliefs[0]
        return cls(mixture, log_start, first.n, first.s, error)


def evaluate_delayed(
    policy: PendingPolicy,
    problem: DelayedProblem,
    tolerance: float,
    most: float = MOST_UPDATES,
    doubted: MixtureBelief | None = None,
) -> Bounds:
    """Return bounds of the policy's value at the prior with nothing pending, before the first arrival.

    Their gap is at most ``tolerance`` times the value, or times a thousandth of the value of knowing p if that is
    larger. Raise TooLargeError if there are more than ``most`` states, counting each number pending. ``doubted`` is a
    prior that may be wrong; the problem is then the one of its first belief.
    """
    prior = MixtureBelief.of(Belief(problem.n, problem.s)) if doubted is None else doubted
    known = policy.steady_limit != UNKNOWN
    rows = _first_rows(problem, known)
    spread = SPREAD
    scale = 1e-3 * math.fsum(
        weight * clairvoyant(problem._replace(n=one.n, s=one.s, f=one.n - one.s))
        for one, weight in zip(prior.beliefs, prior.weights, strict=True)
    )
    states = States.of(prior)
    for _ in range(6):
        value = _enclose(policy, problem, rows, spread, 0.02 * tolerance * scale, most, states)
        scale = max(scale, min(abs(value.lower), abs(value.upper)))
        if value.width <= tolerance * scale:
            return value
        rows += rows // 3
        spread += 1.0
    return value


def least_updates(problem: DelayedProblem) -> float:
    """Return a lower bound of the work to evaluate a policy without a limit where p̂ ≥ c, before it is solved.

    >>> small, large = (DelayedProblem(2.0, 1.0, 1.0, 0.8, arrivals, 0.1, 1.0) for arrivals in (50.0, 5e4))
    >>> least_updates(small) < 1e9 < least_updates(large)
    True
    """
    cap = _most_pending(problem, SPREAD)
    return _updates(_first_rows(problem, True), cap + 4, cap)


def _first_rows(problem: DelayedProblem, known: bool) -> int:
    """Return the number of rows of the first attempt, by whether what the policy does where p̂ ≥ c is known."""
    return math.ceil((5 if known else 10) * problem.horizon) + 64


def _most_pending(problem: DelayedProblem, spread: float) -> int:
    """Return the number pending that is exceeded with a negligible probability."""
    return math.ceil(problem.in_flight + spread * math.sqrt(problem.in_flight + 1)) + 6


def _updates(rows: int, width: int, cap: int) -> float:
    """Return the work of a sweep: updates of states, and the overhead of its rows."""
    return rows * (float(width) * (cap + 1) + ROW)


def steady_count(problem: DelayedProblem, limit: int | None, cap: int) -> NDArray[np.float64]:
    """Return W(m) for m = 0 … cap + 1, the expected discounted number accepted with fewer than ``limit`` pending."""
    if limit is None:
        return np.full(cap + 2, problem.horizon)
    if limit == UNKNOWN:
        return np.zeros(cap + 2)
    from scipy.linalg import solve_banded

    m = np.arange(cap + 2, dtype=np.float64)
    go = np.where(m < min(limit, cap + 1), problem.arrivals, 0.0)
    labels = m * problem.resolve
    bands = np.zeros((3, cap + 2))
    bands[0, 1:] = -go[:-1]
    bands[1] = problem.rate + go + labels
    bands[2, :-1] = -labels[1:]
    count: NDArray[np.float64] = solve_banded((1, 1), bands, go)
    return count


def _enclose(
    policy: PendingPolicy, problem: DelayedProblem, rows: int, spread: float, drop: float, most: float, states: States
) -> Bounds:
    """Return bounds of the value from one sweep with a number of rows and a cap of ``spread`` standard deviations."""
    n0, s0, c = problem.n, problem.s, problem.cost
    single = states[0].shape[0] == 1
    g = problem.horizon
    limit = policy.steady_limit
    cap = _most_pending(problem, spread)
    if limit is not None and limit != UNKNOWN:
        cap = max(min(cap, limit + 1), 2)
    _check_effort(rows, cap + 4, cap, most)  # A lower bound of the work is known before anything is computed.
    count = steady_count(problem, limit, cap)
    pending = np.arange(cap + 1)[:, np.newaxis]

    tops = _tops(states, c, g, rows, drop) if limit != UNKNOWN else np.arange(rows + 1)
    floors = np.empty(rows + 1, dtype=np.int64)
    for k in range(rows + 1):
        floor = policy.stop_floor(n0 + k)
        # A steady policy accepts above c, so the floor must not be above c. With a mixture, c is not a rate of n and s.
        floor = min(floor, c) if single else floor
        floors[k] = min(max(math.floor(floor * (n0 + k) - s0 + 1e-9) + 1, 0), k)
    width = int(np.max(tops - floors)) + cap + 4
    _check_effort(rows, width, cap, most)
    # Below a floor, only pending labels can move the belief up, by one state per row.
    reach = _reach(floors, cap)

    size = int(np.max(tops[1:] - reach[:-1], initial=2)) + cap + 8 + ROOM
    lower = np.zeros((cap + 1, size))
    upper = np.zeros((cap + 1, size))
    lo, hi = int(reach[rows]), int(tops[rows])
    base = lo - 2
    _crude(lower, upper, states, c, g, count, rows, lo, hi, base, limit == UNKNOWN)
    for k in range(rows - 1, -1, -1):
        lo_next, hi_next = lo, hi
        lo, hi = int(reach[k]), min(int(tops[k]), k)
        if not base <= lo - 2 <= base + ROOM:
            new_base = lo - 2 - ROOM
            _shift(lower, base - new_base)
            _shift(upper, base - new_base)
            base = new_base
        # Fill the states of the next row that this row needs and that were left out.
        if hi + 1 > hi_next:
            _crude(lower, upper, states, c, g, count, k + 1, hi_next + 1, hi + 1, base, limit == UNKNOWN)
        if lo < lo_next:
            if k + 1 + cap <= rows:
                lower[:, lo - base : lo_next - base] = 0.0
                upper[:, lo - base : lo_next - base] = 0.0
            else:
                _crude(lower, upper, states, c, g, count, k + 1, lo, lo_next - 1, base, limit == UNKNOWN)
        good = s0 + np.arange(lo, hi + 1, dtype=np.float64)
        accept = np.ascontiguousarray(
            np.broadcast_to(policy.acceptance(n0 + k, good[np.newaxis, :], pending), (cap + 1, hi + 1 - lo))
        )
        _step_back(lower, upper, accept, problem, states, count, k, lo, base, limit == UNKNOWN)
    rounding = (16.0 * UNIT + states.error) * g * (2.0 * rows + cap)
    return Bounds(float(lower[0, -base]) - rounding, float(upper[0, -base]) + rounding)


def _check_effort(rows: int, width: int, cap: int, most: float) -> None:
    """Raise TooLargeError if an evaluation has too many states."""
    updates = _updates(rows, width, cap)
    if updates > most:
        raise TooLargeError(
            "Evaluating this policy",
            seconds=updates * 5e-9,
            allowed_seconds=most * 5e-9,
            size=updates,
            allowed_size=most,
            unit="states",
            detail=f"{rows:,} rows of at least {width:,} states with up to {cap:,} pending",
            field="policy",
            hint="Simulate it instead.",
        )


def _reach(floors: NDArray[np.int64], cap: int) -> NDArray[np.int64]:
    """Return by row k the smallest state from which ``cap`` labels can lead to a floor: min of floors[k + i] − i."""
    rows = floors.size
    reach = floors.copy()
    slid = floors - np.arange(rows)
    for k in range(rows):
        reach[k] = max(int(slid[k : k + cap + 1].min()) + k, 0)
    return reach


@compiled
def _tops(states: States, c: float, g: float, rows: int, drop: float) -> NDArray[np.int64]:
    """Return by row the first state above c with g E(c − p)⁺ below ``drop``, or the last state of the row."""
    mixture, n0, s0 = states.mixture, states.n, states.s
    tops = np.empty(rows + 1, dtype=np.int64)
    last = 0
    for k in range(rows + 1):
        j = min(max(last - 1, 0), k)
        if mixture.shape[0] == 1:
            j = int(min(max(math.ceil(c * (n0 + k) - s0), 0.0), float(k)))
        fade = drop * math.exp(min(k / g, 600.0))
        while j < k:
            above, tail = _distance(states, c, k, j)
            if above > 0.0 and g * tail < fade:
                break
            j += 1
        tops[k] = j
        last = j
    return tops


def _shift(values: NDArray[np.float64], by: int) -> None:
    """Move the columns to the right by a number of places, to fit a new base."""
    if by > 0:
        values[:, by:] = values[:, :-by].copy()
    elif by < 0:
        values[:, :by] = values[:, -by:].copy()


@compiled
def _distance(states: States, c: float, k: int, j: int) -> tuple[float, float]:
    """Return p̂ − c, and an upper bound of E(c − p)⁺ where p̂ ≥ c and of E(p − c)⁺ where p̂ < c."""
    mixture, log_start, n0, s0 = states.mixture, states.log_start, states.n, states.s
    if mixture.shape[0] == 1:
        n = n0 + k
        above = -strike_distance(c, n0, s0, k, j) / n
        mean = min((s0 + j) / n, 1.0)
        return above, put_above(abs(above), n, mean * (1.0 - mean) / (n + 1.0))
    weights = np.empty(mixture.shape[0])
    component_weights(k, j, mixture, log_start, weights)
    above = 0.0
    for i in range(mixture.shape[0]):
        above += weights[i] * ((mixture[i, 1] + j) / (mixture[i, 1] + mixture[i, 2] + k) - c)
    return above, known_gain(k, j, mixture, log_start, np.array([c]), np.ones(1))


@compiled
def _worst(states: States, c: float, g: float, k: int, j: int, count: float, unknown: bool) -> tuple[float, float]:
    """Return bounds of V at a state for every policy, or for every policy with this steady count W."""
    above, tail = _distance(states, c, k, j)
    tail *= g
    if above < 0.0:
        return g * above - tail, tail
    if unknown:
        return -tail, g * above + tail
    return count * above - tail, count * above + tail


@compiled
def _crude(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    states: States,
    c: float,
    g: float,
    count: NDArray[np.float64],
    k: int,
    lo: int,
    hi: int,
    base: int,
    unknown: bool,
) -> None:
    """Fill the states lo … hi of row k with the bounds that hold for every such policy."""
    for j in range(max(lo, 0), min(hi, k) + 1):
        for m in range(lower.shape[0]):
            low, high = _worst(states, c, g, k, j, count[m], unknown)
            lower[m, j - base] = low
            upper[m, j - base] = high


@compiled
def _step_back(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    accept: NDArray[np.float64],
    problem: tuple[float, float, float, float, float, float, float],
    states: States,
    count: NDArray[np.float64],
    k: int,
    lo: int,
    base: int,
    unknown: bool,
) -> None:
    """Compute one row of the recursion in place, with m descending."""
    _, _, _, c, arrivals, rate, resolve = problem
    mixture, log_start = states.mixture, states.log_start
    cap = lower.shape[0] - 1
    width = np.uint64(accept.shape[1])
    start = np.uint64(lo - base)
    one = np.uint64(
        1
    )  # Offsets are unsigned, because the compiler does not vectorise the inner loops with signed ones.
    top = lo + accept.shape[1]
    means = np.empty(top)
    rests = np.empty(top)
    write_means(k, lo, top - 1, mixture, log_start, np.arange(top).astype(np.float64), means, rests)
    good = means[lo:]
    bad = rests[lo:]
    beyond = np.zeros((2, accept.shape[1]))  # bounds with one more pending than the cap
    for x in range(accept.shape[1]):
        if accept[cap, x] > 0.0:
            beyond[0, x], beyond[1, x] = _worst(states, c, arrivals / rate, k, lo + x, count[cap + 1], unknown)
    for m in range(cap, -1, -1):
        labels = m * resolve
        for side in range(2):
            values = lower if side == 0 else upper
            here = values[m]
            over = values[min(m + 1, cap)]
            under = values[max(m - 1, 0)]
            if m == cap:
                for x in range(width):
                    here[start + x] = beyond[side, x]
            for x in range(width):
                i = start + x
                go = arrivals * accept[m, x]
                late = labels * (good[x] * under[i + one] + bad[x] * under[i])
                here[i] = (go * (good[x] - c + over[i]) + late) / (rate + go + labels)
