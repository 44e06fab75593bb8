"""How much the solvers compute and how narrow their enclosures are: a change for the worse must be deliberate."""

from __future__ import annotations

import numpy as np
import pytest

from lenience.solvers.delayed.recursion import DelayedBand, solve_delayed
from lenience.solvers.stopping.band import Band, solve_band

# Prior n and s, cost, discount, last row, whether it is a horizon, what is dropped, rows of decisions; then the states
# computed, and the widths at the prior and at the boundary.
STOPPING = [
    (2.0, 1.0, 0.8, 0.99, 1500, False, 1e-10, 100, 44_604, 4.94e-12, 1.51e-11),
    (5.0, 4.0, 0.6, 0.95, 300, False, 1e-8, 30, 3_381, 1.766e-9, 1.766e-9),
    (2.0, 1.0, 0.5, 0.999, 6000, False, 1e-9, 50, 805_129, 2.132e-9, 2.132e-9),
    (2.0, 1.0, 0.8, 1.0, 2000, True, 1e-9, 100, 172_581, 1.972e-10, 1.972e-10),
    (3.0, 1.0, 0.4, 0.98, 300, True, 1e-7, 300, 5_063, 7.00e-9, 7.00e-9),
    (1.0, 0.5, 0.7, 0.9, 9000, False, 1e-12, 1, 186_876, 4.09e-15, 4.09e-15),
]


@pytest.mark.parametrize("problem", STOPPING)
def test_stopping(problem: tuple[float, float, float, float, int, bool, float, int, int, float, float]) -> None:
    n, s, cost, discount, last, horizon, drop, rows, states, width, edge_width = problem
    accept_from, stop_below = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    counter = np.zeros(2, dtype=np.int64)
    band = Band(*solve_band(n, s, n - s, cost, discount, last, horizon, drop, accept_from, stop_below, counter))
    assert band.undecided == 0
    assert np.array_equal(accept_from, stop_below)
    assert band.states <= states
    assert band.upper - band.lower <= width
    assert band.edge_width <= edge_width
    assert counter[0] == last


# Prior n and s, cost, arrivals, discount rate, rate of labels, last row, cap, what is dropped, rows of limits; then the
# states computed, the width, and how many states were compared, are not settled and reach the cap.
LATE = [
    (2.0, 1.0, 0.7, 10.0, 0.2, 2.0, 400, 12, 1e-6, 100, 145_483, 4.80e-5, 231, 54, 42),
    (2.0, 1.0, 0.8, 50.0, 0.1, 4.0, 900, 20, 1e-6, 50, 1_194_564, 1.027e-3, 178, 79, 29),
    (4.0, 3.0, 0.6, 200.0, 0.5, 50.0, 2000, 8, 1e-4, 20, 922_149, 7.38e-3, 54, 25, 15),
]


@pytest.mark.parametrize("problem", LATE)
def test_late_labels(problem: tuple[float, ...]) -> None:
    n, s, cost, arrivals, rate, resolve, last, cap, drop, rows, updates, width, compared, unsettled, capped = problem
    band = DelayedBand(*solve_delayed(n, s, n - s, cost, arrivals, rate, resolve, int(last), int(cap), drop, int(rows)))
    assert band.updates <= updates
    assert band.upper[0] - band.lower[0] <= width
    assert band.compared <= compared
    assert band.unsettled <= unsettled
    assert band.capped == capped
