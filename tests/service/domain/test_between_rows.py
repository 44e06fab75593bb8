"""Tables at counts that are not whole: the table itself at whole counts, and near the solution from that belief."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lenience.core.belief import Belief
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.service.domain.between_rows import interpolated, interpolated_limit, neighbours
from lenience.service.domain.exposure_tables import ExposureTable
from lenience.service.domain.solved_tables import Effort, SolvedTable, load, solve
from lenience.service.domain.specification import Objective, PolicySpecification

LATE = Delayed(0.8, 50, 0.1, 1.0)
COUNTS = [(3.4, 1.3), (0.2, 0.1), (8.7, 2.5), (20.25, 6.75), (-0.1, 0.6), (5.3, 1.6), (15.5, 4.2), (24.5, 7.1)]


def table_of(objective: Objective) -> SolvedTable:
    effort = Effort(rows=200, late_tolerance=1e-4, late_rows=60)
    return load(solve(PolicySpecification("p", objective).problems()[0], effort))


@given(st.floats(-0.5, 20), st.floats(-0.5, 20), st.floats(0, 1))
def test_weights_add_up_to_one_and_keep_the_counts(successes: float, failures: float, rate: float) -> None:
    around = list(neighbours(successes, failures, rate, 100))
    assert sum(weight for weight, _, _ in around) == pytest.approx(1)
    assert all(weight >= 0 and good >= 0 and bad >= 0 for weight, good, bad in around)
    if successes >= rate and failures >= 1:  # no count is moved to the edge of the table
        assert sum(weight * (good + bad) for weight, good, bad in around) == pytest.approx(successes + failures)
        assert sum(weight * good for weight, good, _ in around) == pytest.approx(successes)


def test_counts_beyond_the_table_are_moved_to_its_edge() -> None:
    def around(*counts: float) -> list[tuple[float, int, int]]:
        return [(round(weight, 9), good, bad) for weight, good, bad in neighbours(counts[0], counts[1], counts[2], 10)]

    assert around(50.5, 20.0, 0.7) == [(0.55, 7, 2), (0.45, 8, 1)]
    assert around(-0.3, -0.1, 0.5) == [(1.0, 0, 0)]
    assert around(-0.25, 2.25, 0.5) == [(1.0, 0, 2)]
    assert around(3.25, -0.25, 0.5) == [(1.0, 3, 0)]
    assert around(8.0, 2.5, 0.7) == [(0.05, 6, 3), (0.95, 7, 2)]


def test_limits_are_interpolated_in_logarithms() -> None:
    def limit(successes: int, failures: int) -> int:
        return int(2**successes) - 1

    assert interpolated_limit(limit, 3.5, 2.5, 0.5, 100) == math.floor(2**3.5 - 1)
    assert interpolated_limit(limit, 5.25, 2.0, 0.6, 100) == math.floor(2**5.25 - 1)
    # A neighbour without a limit counts like the smallest one around.
    assert interpolated_limit(lambda s, f: None if s > 30 else 10 * s, 30.0, 0.5, 1.0, 100) == 294
    assert interpolated_limit(lambda s, f: None if s > 3 else s + f, 3.5, 0.0, 1.0, 100) == 3


def test_whole_counts_are_those_of_the_table() -> None:
    assert interpolated(lambda s, f: 10 * s + f, 3.0, 2.0, 0.6, 100) == 32
    assert interpolated_limit(lambda s, f: s, 3.0, 2.0, 0.6, 100) == 3
    assert interpolated_limit(lambda s, f: None if s > 3 else 2, 3.5, 2.0, 0.6, 100) == 2
    assert interpolated_limit(lambda s, f: None, 3.5, 2.0, 0.6, 100) is None


def test_thresholds_between_rows_are_near_those_from_that_belief() -> None:
    table = table_of(Discounted(0.8, 0.99))
    for good, bad in COUNTS:
        belief = table.belief(good, bad)
        exact = Discounted(0.8, 0.99).solve(belief, rows=1).threshold(belief.n, 1e-6).midpoint
        assert table.threshold(good, bad) == pytest.approx(exact, abs=0.004 if good + bad >= 1 else 0.01)
        assert (table.limit(good, bad) is None) == (belief.mean > table.threshold(good, bad))


def test_limits_beyond_the_last_row_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(LATE)
    assert isinstance(table, ExposureTable)
    assert table.rows <= 1_000

    def fail(*_: object) -> None:
        raise AssertionError("it must not solve")

    monkeypatch.setattr(type(table.policy), "_decide", fail)
    around = [table.limit(8_000, failures) for failures in (2_004, 2_005)]
    between = table.limit(8_000.2, 2_004.4)
    assert None not in (*around, between)
    assert min(around) - 1 <= between <= max(around) + 1  # type: ignore[type-var, operator]


def test_limits_between_rows_are_near_those_from_that_belief() -> None:
    table = table_of(LATE)
    for good, bad in COUNTS:
        belief = table.belief(good, bad)
        exact = LATE.solve_proved(Belief(belief.n, belief.s), 1, 1e-4).limit(belief)
        limit = table.limit(good, bad)
        assert (limit is None) == (exact is None)
        if limit is not None and exact is not None:
            assert abs(limit - exact) <= 1
