"""The certified solver beside plain ways of computing the same (and less)."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import lenience as ln
from benchmarks.measure import best, compare, peak_memory, process_time, report, seconds
from lenience.core.compiled import compiled
from lenience.solvers.stopping.solve import solve_discounted

PRIOR = ln.Belief(2, 1)


@compiled
def plain(cost: float, discount: float, last: int) -> float:
    """The paper's recursion: one-sided, the full triangle, values only."""
    value = np.empty(last + 2)
    for j in range(last + 2):
        value[j] = max(j / (last + 1) - cost, 0.0) / (1.0 - discount)
    for n in range(last, 1, -1):
        for j in range(n + 1):
            p = j / n
            go = p - cost + discount * (p * value[j + 1] + (1.0 - p) * value[j])
            value[j] = go if go > 0.0 else 0.0
    return float(value[1])


def by_rows(cost: float, discount: float, last: int) -> float:
    """The same with NumPy, a row at a time."""
    value: NDArray[np.float64] = np.maximum(np.arange(last + 2) / (last + 1) - cost, 0.0) / (1.0 - discount)
    for n in range(last, 1, -1):
        p = np.arange(n + 1) / n
        value = np.maximum(p - cost + discount * (p * value[1:] + (1.0 - p) * value[:-1]), 0.0)
    return float(value[1])


def quantecon(cost: float, discount: float, last: int) -> float:
    """The same as a general Markov decision process: every belief a state, accept and reject its actions."""
    from quantecon.markov import DiscreteDP
    from scipy.sparse import csr_matrix

    sizes = np.arange(2, last + 2)
    first = np.concatenate(([0], np.cumsum(sizes + 1)))
    count = int(first[-1]) + 1  # one more state in which nothing happens any more
    states, actions, rewards, rows, columns, chances = [], [], [], [], [], []
    pair = 0
    for position, n in enumerate(range(2, last + 2)):
        j = np.arange(n + 1)
        here = first[position] + j
        end = n == last + 1
        p = j / n
        accept = np.maximum(p - cost, 0.0) / (1.0 - discount) if end else p - cost
        up = np.full(n + 1, count - 1) if end else first[position + 1] + j + 1
        down = np.full(n + 1, count - 1) if end else first[position + 1] + j
        pairs = pair + 2 * j
        states.append(np.repeat(here, 2))
        actions.append(np.tile([0, 1], n + 1))
        rewards.append(np.column_stack((np.zeros(n + 1), accept)).ravel())
        rows += [pairs, pairs + 1, pairs + 1]
        columns += [np.full(n + 1, count - 1), up, down]
        chances += [np.ones(n + 1), p, 1.0 - p]
        pair += 2 * (n + 1)
    states.append(np.array([count - 1]))
    actions.append(np.array([0]))
    rewards.append(np.array([0.0]))
    rows.append(np.array([pair]))
    columns.append(np.array([count - 1]))
    chances.append(np.array([1.0]))
    matrix = csr_matrix(
        (np.concatenate(chances), (np.concatenate(rows), np.concatenate(columns))), shape=(pair + 1, count)
    )
    problem = DiscreteDP(np.concatenate(rewards), matrix, discount, np.concatenate(states), np.concatenate(actions))
    return float(problem.solve(method="policy_iteration").v[1])


def main() -> None:
    """Print the measurements."""
    problem = ln.Discounted(0.8, 0.99)
    rows = []
    for last, number in ((1000, 100), (10_000, 3)):
        base = best(lambda last=last: plain(0.8, 0.99, last), number=number)  # type: ignore[misc]
        ways = [
            ("plain triangle, Numba, one-sided", base),
            (
                "certified solve, all thresholds proved",
                best(lambda last=last: problem.solve(PRIOR, rows=last), number=number),  # type: ignore[misc]
            ),
            ("NumPy by rows, one-sided", best(lambda last=last: by_rows(0.8, 0.99, last), repeats=2)),  # type: ignore[misc]
        ]
        if last == 1000:
            ways.append(("QuantEcon DiscreteDP, policy iteration", best(lambda: quantecon(0.8, 0.99, 1000), repeats=1)))
        rows += [[name, f"{last:,}", seconds(time), f"{time / base:.3g}"] for name, time in ways]
        certified = ways[1][1]
        for name, time in (ways[0], *ways[2:]):
            compare(f"certified solve, {last:,} rows", seconds(certified), name, certified / time)
    report("c = 0.8, γ = 0.99: the public call against plain computations", ["", "rows", "time", "ratio"], rows)

    rows = []
    for discount, count in ((0.99, 10**6), (0.999, 10**6), (0.9999, 10**6), (0.99999, 10**4)):
        found = solve_discounted(2.0, 1.0, 0.8, discount, count, 1e-9)
        time = best(lambda discount=discount, count=count: solve_discounted(2.0, 1.0, 0.8, discount, count, 1e-9), 2)  # type: ignore[misc]
        memory = peak_memory(
            f"import lenience as ln; ln.Discounted(0.8, {discount}).solve(ln.Belief(2, 1), rows={count})"
        )
        rows.append(
            [
                f"γ = {discount}",
                f"{count:,}",
                seconds(time),
                f"{time / found.states * 1e9:.2f} ns",
                f"{found.undecided}",
                f"{found.width:.1e}",
                f"{memory:.0f} MB",
            ]
        )
    headings = [
        "all lattice thresholds from n = 2",
        "rows",
        "time",
        "a band state",
        "undecided",
        "width",
        "peak memory",
    ]
    report("c = 0.8, tolerance 1e-9, two-sided", headings, rows)

    pairs = np.array([(a, n - a) for n in range(2, 101) for a in range(1, n)], dtype=np.float64)
    time = best(lambda: ln.solvers.gittins_table(pairs[:, 0], pairs[:, 1], 0.99, 1e-4), 2)
    what = "every whole Beta(α, β) with α + β ≤ 100, γ = 0.99, to 1e-4, proved"
    report("Gittins indices", ["", "indices", "time"], [[what, f"{len(pairs):,}", seconds(time)]])

    python = sys.executable
    numpy = process_time(python, "-c", "import numpy")
    starts = [
        ("python -c 'import numpy'", numpy),
        ("python -c 'import lenience'", process_time(python, "-c", "import lenience")),
        ("lenience --help", process_time(python, "-m", "lenience", "--help")),
        ("lenience gittins --discount 0.99", process_time(python, "-m", "lenience", "gittins", "--discount", "0.99")),
    ]
    numba = process_time(python, "-c", "import numba")
    solve = process_time(python, "-m", "lenience", "solve", "--cost", "0.8", "--discount", "0.99")
    compare("lenience solve, a whole process", seconds(solve), "python -c 'import numba'", solve / numba, "at most 1.5")
    report("Starting", ["", "time", "ratio"], [[name, seconds(time), f"{time / numpy:.2f}"] for name, time in starts])
