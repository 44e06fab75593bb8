"""A fast simulation of streams of applicants who bring an amount and a price, by segments.

Every rule meets the same applicants in the same order and sees an outcome only where it accepts. The label values of
the rules that value a label are tables on lattices of beliefs, solved beforehand (:func:`solve_tables`). A segment's
own counts start on the lattice of Beta(1, 1) and stay on it. Beliefs that a curve moves are between the states: their
label value is interpolated, below a size of 60 from four lattices, which lie four times as close.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.offers import Offers
from lenience.models.curve import Curve, transfer
from lenience.models.quadrature import quadrature
from lenience.solvers.offers.solve import solve_offers

FLAT = Belief(2, 1)
FINE = 4  # lattices together for small beliefs
FINE_ROWS = 60
TOLERANCE = 1e-3  # in units of a segment's mean amount
GROWTH = 1.05  # the curve is refitted when the outcomes have grown by this factor, and at each of the first twenty
LABEL, GREEDY, THOMPSON, UPPER = range(4)
UPPER_Z = 1.6448536269514722  # of a 95% upper bound


class Problem(NamedTuple):
    """What a label's value is computed for: the offers that come, the discount factor and the rows to store."""

    offers: Offers
    discount: float
    rows: int


class LabelTables(NamedTuple):
    """Several tables of label values, one after the other.

    Table t holds the lattice of Beta(1, 1), or, if beliefs are interpolated, tables 5t to 5t + 4 hold the lattices of
    the four priors of size 1 for small beliefs and one of them for large ones.
    """

    interpolated: bool
    start: NDArray[np.int64]  # the first row of each table in ``rows``; one more at the end
    rows: NDArray[np.int64]  # each row: its first state, its position in ``values``, its number of states
    values: NDArray[np.float64]  # lower bounds, in money


class Stream(NamedTuple):
    """What the applicants bring: one entry for each kind of applicant, and the kinds in order of arrival."""

    order: NDArray[np.int64]  # runs × applicants: positions in the arrays below
    succeeds: NDArray[np.bool_]  # runs × applicants: what comes of each, if accepted
    segment: NDArray[np.int64]
    amount: NDArray[np.float64]
    cost: NDArray[np.float64]


class Rule(NamedTuple):
    """How to decide: by a label's value at an amount and a cost, or by one of the simple rules."""

    kind: int
    amount: NDArray[np.float64]  # the amount that the rule counts, for each kind of applicant
    cost: NDArray[np.float64]  # the break-even that it counts
    table: NDArray[np.int64]  # the table of label values that it reads
    first: int = 0  # accept so many of each segment before anything else


class Runs(NamedTuple):
    """What came of each run."""

    profit: NDArray[np.float64]
    discounted: NDArray[np.float64]
    accepted: NDArray[np.float64]  # the share of applicants


def solve_tables(problems: Sequence[Problem], interpolated: bool) -> LabelTables:
    """Solve problems and store their label values.

    Parameters
    ----------
    problems
        What to solve.
    interpolated
        Whether beliefs may be anywhere instead of on the lattice of Beta(1, 1).

    Returns
    -------
    LabelTables
        One table for each problem, or five.
    """
    start, rows, values = [0], [], []
    filled = 0
    for problem in problems:
        priors = [(FLAT, problem.rows)]
        if interpolated:
            priors = [(Belief(1, (j + 0.5) / FINE), FINE_ROWS + 1) for j in range(FINE)]
            priors.append((Belief(1, 0.5), problem.rows))
        for prior, count in priors:
            solution = solve_offers(prior, problem.offers, problem.discount, count, TOLERANCE)
            moved = solution.rows.copy()
            moved[:, 1] += filled
            rows.append(moved)
            values.append(solution.table[0])
            filled += solution.table.shape[1]
            start.append(start[-1] + len(moved))
    return LabelTables(interpolated, np.array(start), np.concatenate(rows), np.concatenate(values))


def simulate(
    stream: Stream,
    discount: float,
    rule: Rule,
    tables: LabelTables,
    curve: Curve | None,
    labels: NDArray[np.float64],
    successes: NDArray[np.float64],
    prior: Belief = FLAT,
    seed: int = 0,
) -> Runs:
    """Run one rule over every stream.

    Parameters
    ----------
    stream
        The applicants.
    discount
        The discount factor of the discounted profit.
    rule
        How to decide.
    tables
        The label values, interpolated if there is a curve or another prior than Beta(1, 1).
    curve
        The model that gives every segment its prior; None if all have the same.
    labels, successes
        Outcomes of earlier loans, runs × segments.
    prior
        The prior of every segment without a curve.
    seed
        The seed of rules that draw.

    Returns
    -------
    Runs
        Profit in all, profit discounted to the first applicant, and the share accepted.
    """
    segments = labels.shape[1]
    design, mean, precision, cap = np.zeros((segments, 1)), np.zeros(1), np.ones(1), math.inf
    if curve is not None:
        design, mean, precision, cap = curve.design, curve.mean, curve.precision, curve.cap
    nodes, weights = quadrature()
    return Runs(
        *_simulate(
            stream.order, stream.succeeds, stream.segment, stream.amount, stream.cost, discount,
            rule.kind, rule.amount, rule.cost, rule.table, rule.first,
            tables.interpolated, tables.start, tables.rows, tables.values,
            curve is not None, design, mean, precision, cap, nodes, weights,
            labels, successes, prior.n, prior.s, seed,
        )
    )  # fmt: skip


def accept_applicants(stream: Stream, discount: float, accepts: NDArray[np.bool_]) -> Runs:
    """Count what came of decisions that are given, run by run.

    Parameters
    ----------
    stream
        The applicants.
    discount
        The discount factor of the discounted profit.
    accepts
        Runs × applicants: whether each is accepted.

    Returns
    -------
    Runs
        What came of each run.
    """
    earned = stream.amount[stream.order] * (stream.succeeds - stream.cost[stream.order])
    profit = np.where(accepts, earned, 0.0)
    weights = discount ** np.arange(stream.order.shape[1])
    return Runs(profit.sum(axis=1), profit @ weights, accepts.mean(axis=1))


@compiled
def label_at(
    interpolated: bool,
    start: NDArray[np.int64],
    rows: NDArray[np.int64],
    values: NDArray[np.float64],
    table: int,
    n: float,
    mean: float,
) -> float:
    """Return a label's value at a belief; beyond the last row of a table, that of the last row."""
    if not interpolated:
        k = min(int(n - 1.5), start[table + 1] - start[table] - 1)
        return _state(rows, values, start[table] + k, math.floor((k + 2.0) * mean - 0.5))
    first = table * (FINE + 1)
    fine = n < FINE_ROWS
    last = FINE_ROWS if fine else start[first + FINE + 1] - start[first + FINE] - 1
    size = min(max(n, 1.0), last + 1.0)
    k = min(int(size) - 1, last - 1)
    share = (1.0 / (k + 1.0) - 1.0 / size) / (1.0 / (k + 1.0) - 1.0 / (k + 2.0))  # the value falls about as 1/n does
    low = _in_row(start, rows, values, first, fine, k, mean)
    return low + share * (_in_row(start, rows, values, first, fine, k + 1, mean) - low)


@compiled
def _in_row(
    start: NDArray[np.int64],
    rows: NDArray[np.int64],
    values: NDArray[np.float64],
    first: int,
    fine: bool,
    k: int,
    mean: float,
) -> float:
    """Return the value at a mean in row k of the interpolated tables, between the two nearest states."""
    lattices = FINE if fine else 1
    table = first if fine else first + FINE
    at = min(max((k + 1.0) * mean * lattices - 0.5, 0.0), lattices * (k + 1.0) - 1.0)
    j = int(at)
    share = at - j
    value = (1.0 - share) * _state(rows, values, start[table + j % lattices] + k, j // lattices)
    if share > 0.0:
        j += 1
        value += share * _state(rows, values, start[table + j % lattices] + k, j // lattices)
    return value


@compiled
def _state(rows: NDArray[np.int64], values: NDArray[np.float64], row: int, j: int) -> float:
    """Return the value after j successes: nothing below the states of the row, and next to nothing above them."""
    j -= rows[row, 0]
    return values[rows[row, 1] + j] if 0 <= j < rows[row, 2] else 0.0


@compiled
def _simulate(
    order: NDArray[np.int64],
    succeeds: NDArray[np.bool_],
    segment: NDArray[np.int64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    discount: float,
    kind: int,
    rule_amount: NDArray[np.float64],
    rule_cost: NDArray[np.float64],
    table: NDArray[np.int64],
    burn_in: int,
    interpolated: bool,
    start: NDArray[np.int64],
    rows: NDArray[np.int64],
    values: NDArray[np.float64],
    pooled: bool,
    design: NDArray[np.float64],
    prior_mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    cap: float,
    nodes: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: NDArray[np.float64],
    successes: NDArray[np.float64],
    prior_n: float,
    prior_s: float,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Run a rule over every stream, one applicant after the other."""
    runs, length = order.shape
    segments = labels.shape[1]
    profit = np.zeros(runs)
    discounted = np.zeros(runs)
    accepted = np.zeros(runs)
    for run in range(runs):
        np.random.seed(seed + run)  # noqa: NPY002
        n = labels[run].copy()
        s = successes[run].copy()
        n0 = np.full(segments, prior_n)
        s0 = np.full(segments, prior_s)
        b = prior_mean.copy()
        count = int(n.sum())
        if pooled:
            transfer(design, n, s, prior_mean, precision, cap, nodes, weights, b, n0, s0)
        refit_at = count + 1 if count < 20 else int(count * GROWTH) + 1
        weight = 1.0
        for i in range(length):
            one = order[run, i]
            x = segment[one]
            size = n0[x] + n[x]
            mean = (s0[x] + s[x]) / size
            if n[x] < burn_in:
                accept = True
            elif kind == LABEL:
                gain = rule_amount[one] * (mean - rule_cost[one])
                accept = gain > 0.0
                if not accept:
                    accept = gain + label_at(interpolated, start, rows, values, table[one], size, mean) > 0.0
            elif kind == GREEDY:
                accept = mean > cost[one]
            elif kind == THOMPSON:
                accept = np.random.beta(mean * size, (1.0 - mean) * size) > cost[one]  # noqa: NPY002
            else:
                accept = mean + UPPER_Z * math.sqrt(mean * (1.0 - mean) / (size + 1.0)) > cost[one]
            if accept:
                accepted[run] += 1.0 / length
                earned = amount[one] * ((1.0 if succeeds[run, i] else 0.0) - cost[one])
                profit[run] += earned
                discounted[run] += weight * earned
                n[x] += 1.0
                if succeeds[run, i]:
                    s[x] += 1.0
                count += 1
                if pooled and count >= refit_at:
                    refit_at = count + 1 if count < 20 else int(count * GROWTH) + 1
                    transfer(design, n, s, prior_mean, precision, cap, nodes, weights, b, n0, s0)
            weight *= discount
    return profit, discounted, accepted
