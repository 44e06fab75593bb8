"""E γ^T and E γ^T p̂_T of a boundary, against a plain recursion over all states."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Discounted
from lenience.solvers.stopping.solve import solve_discounted
from lenience.solvers.stopping.stopping_time import stopping_time


def plain(n: float, s: float, gamma: float, least: list[int]) -> tuple[float, float]:
    """The two means for a boundary that accepts for ever after its last row."""
    share, mean = [0.0] * (len(least) + 1), [0.0] * (len(least) + 1)
    for k in range(len(least) - 1, -1, -1):
        for j in range(k + 1):
            p = (s + j) / (n + k)
            if j < least[k]:
                share[j], mean[j] = 1.0, p
            else:
                share[j] = gamma * (p * share[j + 1] + (1 - p) * share[j])
                mean[j] = gamma * (p * mean[j + 1] + (1 - p) * mean[j])
    return share[0], mean[0]


@pytest.mark.parametrize(
    ("n", "s", "cost", "gamma"),
    [
        (4, 3.2, 0.7, 0.97),
        (2, 1, 0.8, 0.98),
        (2.5, 0.7, 0.3, 0.9),
        (1, 0.5, 0.9, 0.95),
        (10, 1, 0.9, 0.9),
        (5, 5, 0.7, 0.9),
    ],
)
def test_both_means_are_those_of_the_boundary(n: float, s: float, cost: float, gamma: float) -> None:
    rows = math.ceil(math.log(1e-10) / math.log(gamma))
    least = solve_discounted(n, s, cost, gamma, rows, 1e-9).accept_from
    time = stopping_time(n, s, cost, gamma, least)
    share, mean = plain(n, s, gamma, least.tolist())
    assert time.discounted.lower <= share <= time.discounted.upper + 1e-15
    assert time.mean.lower <= mean <= time.mean.upper + 1e-15
    assert time.discounted.width < 1e-9
    # The value follows from both means.
    value = Discounted(cost, gamma).solve(Belief(n, s)).value(Belief(n, s)).midpoint
    assert (s / n - cost + cost * share - mean) / (1 - gamma) == pytest.approx(value, abs=1e-7)


def test_a_short_table_encloses_every_continuation() -> None:
    least = solve_discounted(2, 1.5, 0.8, 0.95, 400, 1e-9).accept_from
    exact = stopping_time(2, 1.5, 0.8, 0.95, least)
    widths = []
    for rows in (1, 3, 10, 40, 150):
        short = stopping_time(2, 1.5, 0.8, 0.95, least[:rows])
        assert short.discounted.lower <= exact.discounted.lower
        assert exact.discounted.upper <= short.discounted.upper
        assert short.mean.lower <= exact.mean.lower
        assert exact.mean.upper <= short.mean.upper
        widths.append(short.discounted.width)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.5
    assert widths[-1] < 1e-4


def test_dropping_states_only_widens_the_bounds() -> None:
    least = solve_discounted(3, 2, 0.6, 0.99, 1500, 1e-9).accept_from
    sharp, coarse = stopping_time(3, 2, 0.6, 0.99, least), stopping_time(3, 2, 0.6, 0.99, least, drop=1e-3)
    assert coarse.discounted.lower <= sharp.discounted.lower <= sharp.discounted.upper <= coarse.discounted.upper
    assert coarse.mean.lower <= sharp.mean.lower <= sharp.mean.upper <= coarse.mean.upper
    assert sharp.discounted.width < 1e-6 < coarse.discounted.width < 1e-2


def test_the_bounds_allow_a_continuation_that_stops_at_once() -> None:
    time = stopping_time(2, 1, 0.8, 0.9, np.zeros(1, np.int64))
    share, mean = plain(2, 1, 0.9, [0, 5])  # both beliefs after the first outcome are below the ceiling
    assert time.discounted.lower <= share <= time.discounted.upper
    assert time.mean.lower <= mean <= time.mean.upper


@pytest.mark.parametrize("above", [0.12, 0.15, 0.18])
def test_a_single_row_allows_for_every_later_stop(above: float) -> None:
    # The boundary stops at the ceiling itself, which is the earliest that it may. The discount hardly matters.
    n, gamma = 50.0, 0.9995
    s = (0.5 + above) * n
    least = np.maximum(np.ceil(0.5 * (n + np.arange(4000)) - s), 0).astype(np.int64)
    exact = stopping_time(n, s, 0.5, gamma, least).discounted
    short = stopping_time(n, s, 0.5, gamma, least[:1]).discounted
    assert exact.width < 0.02 * exact.upper
    assert exact.upper <= short.upper
    assert exact.lower > math.exp(-4.0 * (n + 1.0) * above**2)  # so the bound's exponent cannot be twice as large
