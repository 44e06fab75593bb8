"""Estimated tables for late outcomes, values on request, and which of both tables a problem gets."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from lenience import Belief, Delayed
from lenience.core.errors import TooLargeError
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from lenience.service.domain import exposure_tables
from lenience.service.domain.exposure_tables import (
    ESTIMATE_SECONDS,
    EstimatedBody,
    EstimatedTable,
    ExposureTable,
    prove_in_time,
    solve_exposure_table,
)

LATE, PRIOR = Delayed(0.8, 20, 0.2, 0.5), Belief(2, 1)


def refuse(tried: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every proof take too long, and note the tolerances that are tried."""

    def solve_proved(self: Delayed, prior: Belief, rows: int, tolerance: float, **_: Any) -> None:
        tried.append(tolerance)
        raise TooLargeError("Solving this problem")

    monkeypatch.setattr(Delayed, "solve_proved", solve_proved)


@cache
def estimated() -> EstimatedTable:
    with pytest.MonkeyPatch.context() as patch:
        refuse([], patch)
        patch.setattr(exposure_tables, "ESTIMATED_ROWS", 300)
        body = solve_exposure_table(LATE, PRIOR, 1e-6, ESTIMATE_SECONDS, None, True)
        assert isinstance(body, EstimatedBody)
        return EstimatedTable(body)


@cache
def proved() -> ExposureTable:
    return ExposureTable(solve_exposure_table(LATE, PRIOR, 1e-3, ESTIMATE_SECONDS, 40, True))


def test_an_estimated_table_answers_as_its_policy() -> None:
    table, policy = estimated(), estimated().estimated
    for successes, failures in ((0, 0), (3, 2), (20, 6), (2.5, 1.25), (700, 200)):
        belief = Belief(2 + successes + failures, 1 + successes)
        assert table.limit(successes, failures) == policy.limit(belief)
        assert table.value(successes, failures, 3) == (policy.value(belief, 3), policy.value(belief, 3))
    assert (table.rows, table.volume, table.proved) == (300, 100.0, False)
    assert table.statement == policy.certificate.statement
    assert isinstance(policy, EstimatedExposurePolicy)


def test_the_boundary_of_an_estimated_table_is_where_one_may_be_pending() -> None:
    table, policy = estimated(), estimated().estimated
    assert len(table.boundary) == 300
    for k in (0, 1, 5, 40, 299):
        n, threshold = 2.0 + k, table.threshold(0, k)
        assert threshold <= 0.8
        assert policy.exposure(n, (threshold + 1e-6) * n) > 0
        assert policy.exposure(n, max(threshold - 1e-6, 0.0) * n) == 0
        least = next(s for s in range(k + 2) if s > k or table.limit(s, k - s) != 0)
        assert table.boundary[k] == max(least, 0)
        assert table.least_accepted(k) == (least if least <= k else None)
    assert table.least_accepted(300) is None
    assert table.threshold(200, 400) == table.threshold(0, 299) > table.threshold(0, 298)
    between = table.threshold(3.5, 1.0)
    assert table.threshold(0, 4) < between < table.threshold(0, 5)
    assert between == pytest.approx((table.threshold(0, 4) + table.threshold(0, 5)) / 2)


def test_estimated_and_proved_limits_agree() -> None:
    for successes, failures in ((0, 0), (3, 1), (6, 2), (20, 7)):
        one, other = proved().limit(successes, failures), estimated().limit(successes, failures)
        assert (one is None) == (other is None)
        assert one == pytest.approx(other, abs=1)


def test_a_rate_at_the_cost_has_no_limit_at_any_counts() -> None:
    assert proved().limit(3.4, 0.1) is None  # 4.4 of 5.5
    assert proved().limit(3.399, 0.101) is not None
    assert proved().limit(7, 1) is None  # 8 of 10


def test_a_value_is_looked_up_at_the_prior_and_solved_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    table = proved()
    stored = len(table.policy.lower)
    for pending in (0, 2, stored - 1):
        assert table.value(0, 0, pending) == (table.policy.value(PRIOR, pending), table.policy.value(PRIOR, pending))
    for successes, failures, pending in ((0, 0, stored), (2, 1, 0), (2, 1, 4)):
        value, again = table.value(successes, failures, pending)
        exact = LATE.enclose(Belief(2 + successes + failures, 1 + successes), pending, 1e-6)[0]
        assert value is not None
        assert value == again
        assert value.lower <= exact.midpoint <= value.upper
        assert value.width <= 1e-3
    monkeypatch.setattr(exposure_tables, "VALUE_SECONDS", 1e-9)
    assert table.value(2, 1, 0) == (None, None)
    assert table.value(0, 0, 0)[0] is not None


def test_a_proof_is_loosened_before_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []
    refuse(tried, monkeypatch)
    monkeypatch.setattr(EstimatedExposurePolicy, "solve", lambda objective, prior: estimated().estimated)
    body = solve_exposure_table(LATE, PRIOR, 1e-6, ESTIMATE_SECONDS, None, False)
    assert isinstance(body, EstimatedBody)
    assert tried == pytest.approx([1e-6, 1e-5, 1e-4])
    assert (body.curve, body.curve_to) == ([], 0.0)
    tried.clear()
    with pytest.raises(TooLargeError):  # with less time nothing is estimated
        solve_exposure_table(LATE, PRIOR, 1e-6, 0.9 * ESTIMATE_SECONDS, None, False)
    assert tried == pytest.approx([1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
    tried.clear()
    with pytest.raises(TooLargeError):
        prove_in_time(LATE, PRIOR, 1e-3, 1e-4, 1.0, None)
    assert tried == [1e-3]
