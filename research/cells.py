"""A fast simulation of many cells: arrivals one by one, a model that is refitted as labels come, a rule that decides.

The world. Each arrival is of cell x with probability q_x; accepted, it succeeds with probability p_x. The arrivals
and what would become of them are functions of (seed, i) alone, so all rules and models meet the same individuals:
their differences are compared pair by pair.

The value. Σ γ^i over arrivals of the *expected* reward of the decisions in force, Σ_x q_x π_x (p_x − c), rather than
of the reward drawn: the same mean with far less noise. Thompson's π_x is not known in closed form here, so its
accepted arrival counts p_x − c. The simulation ends where γ^i < e⁻⁹; what follows is counted at the decisions then in
force.

Rules are thresholds on the belief's mean, by cell and size: accept where p̂ > t_x(n). The optimum, greedy, Bayes-UCB
and always accept are such (ε-greedy adds a constant probability below it); Thompson sampling draws from the belief.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.counter_rng import bits_of
from lenience.models.curve import Curve, transfer
from lenience.models.protocol import Model
from lenience.models.quadrature import quadrature
from lenience.models.shared import SIZE_CENTRE, Shared, given_beta

GRID = np.linspace(math.log(0.05), math.log(1e6), 600)  # log n, where thresholds are tabled
FIXED, SHARED, CURVE = 0, 1, 2
GROWTH = 1.05  # a model is refitted when labels have grown by this factor (and at every one of the first twenty)
TAIL = 9.0


class ThresholdRule(NamedTuple):
    """A decision rule: thresholds by cell and size, an exploration probability below them, or Thompson's draw."""

    name: str
    thresholds: NDArray[np.float64]  # cells × GRID
    explore: float = 0.0
    thompson: bool = False


class CellRuns(NamedTuple):
    """What came of each run: values, and by cell the acceptances, the last decision and the labels."""

    value: NDArray[np.float64]
    accepting: NDArray[np.float64]  # runs × cells: whether (or how likely) the cell is accepted in the end
    labels: NDArray[np.float64]  # runs × cells
    early: NDArray[np.float64]  # runs × cells: the discounted share of time the cell was accepted, first part
    late: NDArray[np.float64]  # the same, afterwards


def simulate_cells(
    p: NDArray[np.float64],
    shares: NDArray[np.float64],
    cost: float,
    discount: float,
    rule: ThresholdRule,
    model: Model,
    runs: int,
    seed: int = 0,
    history: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> CellRuns:
    """Simulate ``runs`` independent runs; ``p`` and ``history`` may differ by run (runs × cells)."""
    cells = shares.size
    truths = np.broadcast_to(np.asarray(p, dtype=np.float64), (runs, cells)).copy()
    zero = np.zeros(cells)
    if history is None:
        first = [np.broadcast_to(part, (runs, cells)).copy() for part in model.priors(zero, zero)]
    else:
        first = [np.asarray(part, dtype=np.float64) for part in history]
    kind, design, mean, precision, cap = FIXED, np.zeros((cells, 1)), np.zeros(1), np.ones(1), math.inf
    if isinstance(model, Shared):
        kind, cap = SHARED, model.strongest
    elif isinstance(model, Curve):
        kind, design, mean, precision, cap = CURVE, model.design, model.mean, model.precision, model.cap
    nodes, weights = quadrature()
    steps = math.ceil(TAIL / -math.log(discount))
    half = math.log(2.0) / -math.log(discount)
    result = _simulate(
        truths, np.cumsum(shares), shares, cost, discount, steps, int(half),
        np.broadcast_to(rule.thresholds, (cells, GRID.size)).copy(), rule.explore, rule.thompson,
        kind, first[0], first[1], design, mean, precision, cap, nodes, weights, seed,
    )  # fmt: skip
    return CellRuns(*result)


@compiled
def _uniform(stream: np.uint64, i: np.uint64) -> float:
    """A number from 0 to below 1 from (stream, i). The arrival gives the key and the stream is the counter."""
    key = i * np.uint64(0xD1342543DE82EF95) + np.uint64(0x632BE59BD9B4E019)
    return float(bits_of(key, stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def _threshold(row: NDArray[np.float64], n: float) -> float:
    """The rule's threshold at size n, interpolated in log n."""
    start = -2.995732273553991
    step = (13.815510557964274 + 2.995732273553991) / 599.0
    at = min(max((math.log(n) - start) / step, 0.0), row.size - 1.000001)
    i = int(at)
    result: float = row[i] + (at - i) * (row[i + 1] - row[i])
    return result


@compiled
def _simulate(
    truths: NDArray[np.float64],
    edges: NDArray[np.float64],
    shares: NDArray[np.float64],
    cost: float,
    discount: float,
    steps: int,
    half: int,
    thresholds: NDArray[np.float64],
    explore: float,
    thompson: bool,
    kind: int,
    prior_n: NDArray[np.float64],
    prior_s: NDArray[np.float64],
    design: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    cap: float,
    nodes: NDArray[np.float64],
    weights: NDArray[np.float64],
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    runs, cells = truths.shape
    value = np.zeros(runs)
    accepting = np.zeros((runs, cells))
    labelled = np.zeros((runs, cells))
    early = np.zeros((runs, cells))
    late = np.zeros((runs, cells))
    early_mass = 1.0 - discount**half
    for run in range(runs):
        # Numba knows only NumPy's older generator, one for each thread.
        np.random.seed((seed * 1_000_003 + run) % 2_147_483_647)  # noqa: NPY002
        stream = np.uint64(2 * (seed * 1_000_003 + run))
        other = np.uint64(2 * (seed * 1_000_003 + run) + 1)
        n0 = prior_n[run].copy()
        s0 = prior_s[run].copy()
        n = np.zeros(cells)
        s = np.zeros(cells)
        shared = np.array([0.0, SIZE_CENTRE])
        b = mean.copy()
        chance = np.zeros(cells)
        since = np.zeros(cells, dtype=np.int64)  # when the decision in force was made
        flow = 0.0
        for x in range(cells):
            size = n0[x]
            chance[x] = 1.0 if s0[x] > _threshold(thresholds[x], size) * size else explore
            flow += shares[x] * chance[x] * (truths[run, x] - cost)
        labels = 0
        refit_at = 1
        weight = 1.0
        earned = 0.0
        for i in range(steps):
            if not thompson:
                earned += weight * flow
            u = _uniform(stream, np.uint64(i))
            low = 0
            high = cells - 1
            while low < high:
                middle = (low + high) // 2
                if u < edges[middle]:
                    high = middle
                else:
                    low = middle + 1
            x = low
            if thompson:
                good = s0[x] + s[x]
                accept = np.random.beta(good, n0[x] + n[x] - good) > cost  # noqa: NPY002
                if accept:
                    earned += weight * (truths[run, x] - cost)
                    if i < half:
                        early[run, x] += weight / shares[x]
                    else:
                        late[run, x] += weight / shares[x]
            else:
                accept = chance[x] >= 1.0
                if not accept and chance[x] > 0.0:
                    accept = np.random.random() < chance[x]  # noqa: NPY002
            if accept:
                n[x] += 1.0
                if _uniform(other, np.uint64(i)) < truths[run, x]:
                    s[x] += 1.0
                labels += 1
                first = x
                last = x + 1
                if kind != 0 and labels >= refit_at:
                    refit_at = labels + 1 if labels < 20 else int(labels * GROWTH) + 1
                    if kind == 1:
                        size, good = given_beta(n, s, shared, cap, nodes, weights)
                        for y in range(cells):
                            n0[y] = size
                            s0[y] = good
                    else:
                        transfer(design, n, s, mean, precision, cap, nodes, weights, b, n0, s0)
                    first = 0
                    last = cells
                if not thompson:
                    for y in range(first, last):
                        size = n0[y] + n[y]
                        now = 1.0 if s0[y] + s[y] > _threshold(thresholds[y], size) * size else explore
                        if now != chance[y]:
                            flow += shares[y] * (now - chance[y]) * (truths[run, y] - cost)
                            _book(early, late, run, y, chance[y], since[y], i + 1, half, discount)
                            chance[y] = now
                            since[y] = i + 1
            weight *= discount
        if thompson:
            for y in range(cells):
                a = s0[y] + s[y]
                f = n0[y] + n[y] - a
                hits = 0
                for _draw in range(64):
                    hits += 1 if np.random.beta(a, f) > cost else 0  # noqa: NPY002
                accepting[run, y] = hits / 64.0
                early[run, y] *= (1.0 - discount) / early_mass
                late[run, y] *= (1.0 - discount) / (1.0 - early_mass)
            flow = 0.0
            for y in range(cells):
                flow += shares[y] * accepting[run, y] * (truths[run, y] - cost)
        else:
            for y in range(cells):
                _book(early, late, run, y, chance[y], since[y], steps, half, discount)
                accepting[run, y] = chance[y]
                early[run, y] /= early_mass
                late[run, y] /= 1.0 - early_mass
        value[run] = earned + weight / (1.0 - discount) * flow
        labelled[run] = n
    return value, accepting, labelled, early, late


@compiled
def _book(
    early: NDArray[np.float64],
    late: NDArray[np.float64],
    run: int,
    x: int,
    chance: float,
    start: int,
    stop: int,
    half: int,
    discount: float,
) -> None:
    """Book a decision in force from ``start`` to ``stop``, by its discounted time before and after ``half``."""
    if chance <= 0.0:
        return
    a = min(start, half)
    b = min(stop, half)
    early[run, x] += chance * (discount**a - discount**b)
    a = max(start, half)
    b = max(stop, half)
    late[run, x] += chance * (discount**a - discount**b)


@compiled
def exact_value(
    p: float,
    cost: float,
    discount: float,
    n0: float,
    s0: float,
    least: NDArray[np.float64],
    explore: float,
) -> tuple[float, float, float]:
    """A cell on its own, exactly: value at the true p, what the rows cut off can add, and the chance of having stopped.

    ``least[k]`` is the mean above which one accepts after k acceptances; below it one accepts with probability
    ``explore``. The walk is carried forward over all beliefs, each with its discounted probability; waiting for an
    acceptance of probability π discounts by π/(1 − γ + γπ).
    """
    rows = least.size
    mass = np.zeros(rows + 2)
    other = np.zeros(rows + 2)
    mass[0] = 1.0
    chance = np.zeros(rows + 2)
    chance[0] = 1.0
    first = 0
    last = 0
    total = 0.0
    stopped = 0.0
    for k in range(rows):
        n = n0 + k
        accepted = 0.0
        for j in range(first, last + 1):
            if s0 + j > least[k] * n:
                pass
            elif explore > 0.0:
                mass[j] *= explore / (1.0 - discount + discount * explore)
            else:
                stopped += chance[j]
                mass[j] = 0.0
                chance[j] = 0.0
            accepted += mass[j]
        total += accepted * (p - cost)
        for j in range(last + 1, first - 1, -1):
            up = mass[j - 1] if j > first else 0.0
            stay = mass[j] if j <= last else 0.0
            other[j] = discount * (p * up + (1.0 - p) * stay)
            up = chance[j - 1] if j > first else 0.0
            stay = chance[j] if j <= last else 0.0
            chance[j] = p * up + (1.0 - p) * stay
        last += 1
        for j in range(first, last + 1):
            mass[j] = other[j]
        while first < last and chance[first] < 1e-16:
            mass[first] = 0.0
            chance[first] = 0.0
            first += 1
        while last > first and chance[last] < 1e-16:
            mass[last] = 0.0
            chance[last] = 0.0
            last -= 1
        if first == last and chance[first] < 1e-16:
            break
    left = 0.0
    for j in range(first, last + 1):
        left += mass[j]
    return total, left / (1.0 - discount) * abs(p - cost), stopped
