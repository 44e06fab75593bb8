"""Details of solved tables, with small tables: decisions beyond the last row, thresholds that rise, old formats."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from lenience import Belief, Delayed, Discounted
from lenience.policies.beliefs.optimal import OptimalPolicy
from lenience.service.domain.exposure_tables import ExposureTable
from lenience.service.domain.solved_tables import Effort, load, solve, steady
from lenience.service.domain.specification import SegmentProblem
from lenience.service.domain.stopping_tables import StoppingTable

LAST = 18  # the last row of the small table: 20 observations with the prior


FLAT, SURE = Belief(2, 1), Belief(3, 2.5)


@cache
def stopping(prior: Belief = FLAT, cost: float = 0.5) -> StoppingTable:
    segment = SegmentProblem("x", 1.0, Discounted(cost, 0.9), prior, None, 0.0)
    table = load(solve(segment, Effort(rows=LAST + 1)))
    assert isinstance(table, StoppingTable)
    return table


@cache
def late() -> ExposureTable:
    segment = SegmentProblem("x", 1.0, Delayed(0.8, 20, 0.2, 0.5), Belief(2, 1), None, 0.0)
    table = load(solve(segment, Effort(late_tolerance=1e-3)))
    assert isinstance(table, ExposureTable)
    return table


@pytest.mark.parametrize("answer", [True, False])
def test_the_solver_decides_only_between_the_last_stop_and_the_cost(
    answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[Belief] = []

    def accepts(self: OptimalPolicy, belief: Belief) -> bool:
        solved.append(belief)
        return answer

    monkeypatch.setattr(OptimalPolicy, "accepts", accepts)
    table = stopping()
    stop = 1 + table.boundary[LAST] - 1  # successes with the prior, of 20, at which the last row stops
    assert 0 < stop < 10
    n, rejected, at_cost = 200, 10 * stop, 100
    for s in range(1, n):
        limit = table.limit(s - 1, n - 2 - (s - 1))
        if s <= rejected or s > at_cost:
            assert limit == (0 if s <= rejected else None)
        else:
            assert limit == (None if answer else 0)
    assert solved == [Belief(n, s) for s in range(rejected + 1, at_cost + 1)]


def test_the_first_row_beyond_the_table_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OptimalPolicy, "accepts", lambda self, belief: True)
    table, n = stopping(), 2 + LAST + 1
    between = [s for s in range(1, n) if table.boundary[LAST] / 20 < s / n <= 0.5]
    assert between
    assert all(table.limit(s - 1, n - 1 - s) is None for s in between)
    assert table.least_accepted(LAST) == table.boundary[LAST]
    assert table.least_accepted(LAST + 1) is None
    assert len(table.boundary) == table.rows == LAST + 1


def test_thresholds_stay_at_the_last_row() -> None:
    table = stopping()
    assert table.threshold(0, LAST) == table.threshold(0, LAST + 1) == table.threshold(0, 10 * LAST)
    assert table.threshold(0, LAST - 1) != table.threshold(0, LAST)


@pytest.mark.parametrize("prior", [FLAT, SURE])
def test_limits_in_the_table_are_those_of_the_policy(prior: Belief) -> None:
    policy = Discounted(0.5, 0.9).solve(prior, rows=LAST + 1)
    table, limits = stopping(prior), set()
    for k in range(LAST + 1):
        for successes in range(k + 1):
            limit = table.limit(successes, k - successes)
            limits.add(limit)
            assert limit == (None if policy.accepts(Belief(prior.n + k, prior.s + successes)) else 0)
    assert limits == {0, None}


@pytest.mark.parametrize(("prior", "cost"), [(FLAT, 0.5), (SURE, 0.5), (FLAT, 0.8)])
def test_a_threshold_lies_between_the_rates_of_its_row(prior: Belief, cost: float) -> None:
    """With a curve that is far too low or too high, the lattice decides."""
    table = stopping(prior, cost)
    low = StoppingTable(msgspec.structs.replace(table.body, curve=[1e6]))
    high = StoppingTable(msgspec.structs.replace(table.body, curve=[-1e6]))
    for k in range(LAST + 1):
        n, least = prior.n + k, table.boundary[k]
        last_rejected = (prior.s + least - 1) / n if least > 0 else 0.0
        assert low.threshold(0, k) == last_rejected
        accepted = min(cost, (prior.s + least) / n) if least <= k else cost
        assert high.threshold(0, k) == max(accepted, last_rejected)
    assert (table.boundary[0] == 0) == (cost == 0.5)
    assert any(0 < table.boundary[k] == k for k in range(LAST)) == (cost == 0.8)


def test_old_curves_end_at_the_last_row() -> None:
    body = msgspec.structs.replace(stopping().body, curve=[0.4, 0.1, 0.05])
    old = StoppingTable(msgspec.structs.replace(body, curve_to=0.0))
    new = StoppingTable(msgspec.structs.replace(body, curve_to=2.0 + LAST + 1))
    longer = StoppingTable(msgspec.structs.replace(body, curve_to=2.0 + LAST + 2))
    assert old._curve(9.0) == new._curve(9.0) != longer._curve(9.0)


@pytest.mark.parametrize("seed", range(6))
def test_rising_thresholds_of_late_outcomes(seed: int) -> None:
    """Against plain loops, for boundaries that rise as they should and for some that do not."""
    table = ExposureTable(late().body)
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 2, table.rows) if seed < 3 else rng.integers(-2, 4, table.rows)
    first = [max(int(one), 0) for one in np.cumsum(steps) - 3]
    table._first = first
    cost, kinds = 0.8, set()
    stops = [max(first[k] / (2 + k), 0) if first[k] else table.at_once(2.0 + k) for k in range(table.rows)]
    opens = [(1 + first[k]) / (2 + k) for k in range(table.rows)]
    for k in range(min(table.rows, 40)):
        low, high = min(max(stops[: k + 1]), cost), min(*opens[k:], cost)
        if first[k] == 0:
            expected = table.at_once(2.0 + k)
        elif low < high:
            expected = (low + high) / 2
        else:
            expected = min((first[k] + 0.5) / (2 + k), cost)
        kinds.add((first[k] == 0, low < high))
        assert table.threshold(0, k) == pytest.approx(expected, abs=1e-12)
    assert len(kinds) >= 2


def test_thresholds_of_late_outcomes_rise() -> None:
    table = late()
    shown = [table.threshold(0, k) for k in range(table.rows)]
    assert all(one <= other for one, other in pairwise(shown))
    assert table.threshold(0, table.rows - 1) == table.threshold(0, table.rows + 5)
    assert 0 < shown[0] < shown[-1] <= 0.8


def test_old_tables_of_late_outcomes_have_no_curve() -> None:
    old = ExposureTable(msgspec.structs.replace(late().body, curve=[], curve_to=0.0))
    assert old.at_once(5.0) == 0.0
    for k in (0, 3, 10, old.rows - 1, old.rows + 3):
        row = min(k, old.rows - 1)
        expected = min(0.8, max(1 + old.boundary[row] - 0.5, 0) / (2 + row))
        assert old.threshold(0, k) == expected
    old._first = [5, -9, *old._first[2:]]
    assert old.threshold(0, 0) == 0.8
    assert old.threshold(0, 1) == 0.0


def test_thresholds_without_delay_are_not_negative() -> None:
    generous = ExposureTable(msgspec.structs.replace(late().body, curve=[1e3]))
    assert generous.at_once(5.0) == 0.0
    exact = Discounted(0.8, late().policy.objective.discount).solve(Belief(2, 1)).threshold(10, 1e-6).midpoint
    assert late().at_once(10.0) == pytest.approx(exact, abs=2e-3)


def test_limits_of_late_outcomes_in_and_beyond_the_table() -> None:
    table = late()
    policy, seen = table.policy, set()
    for k in (0, 1, 2, 5, 12, table.rows - 1, table.rows, table.rows + 1):
        for successes in range(k + 1):
            expected = policy.limit(Belief(2 + k, 1 + successes))
            seen.add(expected)
            assert table.limit(successes, k - successes) == expected
    assert {0, None} < seen
    assert table.least_accepted(table.rows) is None
    last = int(table.policy.first[table.rows - 1])
    assert table.least_accepted(table.rows - 1) == (last if last < table.rows else None)
    assert table.volume == pytest.approx(20 / 0.2)


@pytest.mark.parametrize(
    ("proved", "steady_rows"),
    [
        ([0, 1, 1, 2], [0, 1, 1, 2]),
        ([1, 3, 2, 4, 5], [1, 2, 2, 3, 4]),
        ([4, 4, 4], [4, 4, 4]),
        ([0, 5, 5, 5, 1], [0, 1, 1, 1, 1]),
        ([2, 4, 6], [2, 3, 4]),
        ([3], [3]),
    ],
)
def test_boundaries_rise_by_one_at_most(proved: list[int], steady_rows: list[int]) -> None:
    assert steady(np.array(proved)).tolist() == steady_rows


@pytest.mark.parametrize(("prior", "cost"), [(FLAT, 0.5), (SURE, 0.5), (FLAT, 0.8)])
def test_the_fewest_successes_may_be_all_outcomes(prior: Belief, cost: float) -> None:
    table = stopping(prior, cost)
    kinds = set()
    for k in range(LAST + 1):
        accepted = [s for s in range(k + 1) if table.limit(s, k - s) is None]
        assert table.least_accepted(k) == (accepted[0] if accepted else None)
        kinds.add("all" if accepted == [k] else "none" if not accepted else "some")
    assert cost == 0.5 or "all" in kinds
