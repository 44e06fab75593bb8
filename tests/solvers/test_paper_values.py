"""The paper's own computation, its Figure 1 and its error."""

from __future__ import annotations

import numpy as np
import pytest

from lenience import Belief, Discounted
from lenience.solvers import paper_values
from rejections import rejected


@pytest.mark.parametrize(("discount", "proved"), [(0.99, 746), (0.95, 953)])
def test_the_papers_n_was_ample(discount: float, proved: int) -> None:
    assert paper_values(0.8, discount, [1], N=1000).proved_through == proved


def test_checked_errors() -> None:
    table = paper_values(0.8, 0.99, [10, 100])
    assert table.error(10) == pytest.approx(1.5e-7, rel=0.05)
    assert table.error(100) == pytest.approx(2.1e-6, rel=0.05)


def test_figure_1_rows() -> None:
    table = paper_values(0.8, 0.99, [1, 10, 1001])
    # With p known: max(p̂ − c, 0)/(1−γ); at p̂ = 1 everything succeeds for ever.
    assert table.values[1001] == pytest.approx(np.maximum(np.arange(1002) / 1001 - 0.8, 0) / 0.01)
    assert table.values[1] == pytest.approx([0.0, 20.0])
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    for s in range(1, 10):
        exact = policy.value(Belief(10, s))
        assert table.values[10][s] <= exact.upper + 1e-12
        assert table.upper[10][s] >= exact.lower - 1e-12


@pytest.mark.parametrize(
    ("rows", "n", "message"),
    [([0], 10, ("rows", "invalid_value")), ([12], 10, ("rows", "invalid_value")), ([1], 0, ("N", "invalid_value"))],
)
def test_bad_rows(rows: list[int], n: int, message: tuple[str | None, str]) -> None:
    with rejected(*message):
        paper_values(0.8, 0.9, rows, n)


def test_absurd_n() -> None:
    with rejected("N", "too_large"):
        paper_values(0.8, 0.9, [1], 10**6)
