"""Solved tables say what the policies say, without a solver; and segments have the problem of their share."""

from __future__ import annotations

from functools import cache
from typing import cast

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import Belief, Bounds, Discounted, FiniteHorizon
from lenience.core.errors import InputError, TooLargeError
from lenience.objectives.delayed import Delayed
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.optimal import OptimalPolicy
from lenience.service.domain.exposure_tables import EstimatedTable, ExposureTable, prove_in_time
from lenience.service.domain.feature_cells import Feature, names_of, segment_of
from lenience.service.domain.rule import Counts, SegmentRule
from lenience.service.domain.solved_tables import ROWS, Effort, load, solve, steady
from lenience.service.domain.specification import (
    Objective,
    PolicySpecification,
    SegmentProblem,
    SegmentSpec,
)
from lenience.service.domain.stopping_tables import StoppingTable
from lenience.service.domain.threshold_curve import fitted_curve
from rejections import rejected


def table_of(problem: Objective, prior: Belief) -> StoppingTable | ExposureTable:
    table = load(solve(SegmentProblem("x", 1.0, problem, prior, None, 0.0)))
    assert isinstance(table, StoppingTable | ExposureTable)
    return table


@cache
def stopping() -> StoppingTable | ExposureTable:
    return table_of(Discounted(0.8, 0.99), Belief(2, 1))


@cache
def policy_of_stopping() -> OptimalPolicy:
    policy: OptimalPolicy = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=2000)
    return policy


@cache
def late() -> StoppingTable | ExposureTable:
    return table_of(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))


@cache
def policy_of_late() -> ExposurePolicy:
    policy: ExposurePolicy = Delayed(0.8, 50, 0.1, 1).solve(Belief(2, 1))
    return policy


@settings(max_examples=200)
@given(st.integers(0, 1999), st.floats(0, 1))
def test_a_stopping_table_is_its_policy(outcomes: int, rate: float) -> None:
    good = round(rate * outcomes)
    belief = Belief(2 + outcomes, 1 + good)
    assert (stopping().limit(good, outcomes - good) is None) == policy_of_stopping().accepts(belief)


@settings(max_examples=60)
@given(st.integers(0, 3000))
def test_thresholds_lie_between_the_last_rejection_and_the_first_acceptance(outcomes: int) -> None:
    shown = stopping().threshold(0, outcomes)
    least = stopping().least_accepted(outcomes)
    assert 0 <= shown <= 0.8
    if least is not None:
        n = 2 + outcomes
        assert least / n <= shown + 1e-12  # the last rejection: the prior has one success
        assert shown <= (least + 1) / n + 1e-12


@pytest.mark.parametrize("outcomes", [0, 8, 98, 998])
def test_thresholds_are_those_of_the_solver(outcomes: int) -> None:
    assert stopping().threshold(0, outcomes) == pytest.approx(
        policy_of_stopping().threshold(2 + outcomes, 1e-7).midpoint, abs=2e-4
    )


@pytest.mark.parametrize(("volume", "near"), [(539.0, 5e-4), (2000.0, 5e-4), (8000.0, 5e-3)])
def test_thresholds_of_larger_volumes_and_surer_priors_are_those_of_the_solver(volume: float, near: float) -> None:
    problem, prior = Discounted(0.8, volume / (1 + volume)), Belief(20, 15)
    table = table_of(problem, prior)
    for outcomes in (0, 12):
        known = problem.solve(prior).threshold(20 + outcomes, 1e-4).midpoint
        assert table.threshold(0, outcomes) == pytest.approx(known, abs=near)


def test_the_threshold_of_late_labels_does_not_follow_the_belief_down() -> None:
    sure = table_of(Delayed(0.8, 50, 0.1, 1), Belief(67, 54))
    shown = [sure.threshold(0, failures) for failures in range(8)]
    assert shown == sorted(shown)
    reached = [54 / (67 + failures) for failures in range(8)]
    for failures, (rate, asked) in enumerate(zip(reached, shown, strict=True)):
        assert (sure.limit(0, failures) != 0) == (rate > asked)


def test_beyond_the_table_proved_decisions_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    far = 2 * ROWS
    lenient = round(0.8 * (2 + far)) - 1

    def counted(self: OptimalPolicy, belief: Belief) -> bool:
        asked.append(belief)
        return True

    asked: list[Belief] = []
    monkeypatch.setattr(OptimalPolicy, "accepts", counted)
    assert stopping().limit(round(0.81 * far), far - round(0.81 * far)) is None
    assert stopping().limit(round(0.79 * far), far - round(0.79 * far)) == 0
    assert asked == []
    assert stopping().limit(lenient - 1, far - lenient + 1) is None
    assert asked == [Belief(2 + far, lenient)]


@settings(max_examples=200)
@given(st.integers(0, 400), st.floats(0, 1))
def test_an_exposure_table_is_its_policy(outcomes: int, rate: float) -> None:
    good = round(rate * outcomes)
    assert late().limit(good, outcomes - good) == policy_of_late().limit(Belief(2 + outcomes, 1 + good))


def test_horizons_and_prior_lattices() -> None:
    prior = Belief(1, 0.5)
    table = table_of(FiniteHorizon(0.6, 300), prior)
    policy = FiniteHorizon(0.6, 300).solve(prior)
    for outcomes in range(300):
        good = np.arange(outcomes + 1)
        expected = policy.acceptance(1.0 + outcomes, 0.5 + good)
        found = [table.limit(int(one), outcomes - int(one)) is None for one in good]
        assert np.array_equal(found, expected.astype(bool))
    assert table.limit(300, 0) == 0


def test_the_same_problem_gives_the_same_text() -> None:
    segment = SegmentProblem("x", 0.5, Discounted(0.7, 0.9), Belief(2, 1), None, 0.0)
    assert solve(segment) == solve(segment)


def test_segments_have_the_problem_of_their_share() -> None:
    def problems(objective: dict[str, object], segments: list[object]) -> list[SegmentProblem]:
        import msgspec

        posted = {"name": "p", "objective": objective, "segments": segments}
        return msgspec.convert(posted, PolicySpecification).problems()

    a, b = problems({"type": "discounted", "cost": 0.8, "discount": 0.99}, [{"name": "a", "share": 0.2}, "b"])
    assert isinstance(a.problem, Discounted)
    assert a.problem.discount == pytest.approx(0.99 * 0.2 / (0.01 + 0.99 * 0.2))
    assert b.share == 0.8
    yearly = problems({"type": "discounted", "cost": 0.8, "arrivals": 99, "discount_rate": 1}, ["a", "b", "c"])
    assert isinstance(yearly[0].problem, Discounted)
    assert yearly[0].problem.discount == pytest.approx(Discounted.from_rates(0.8, 33, 1).discount)
    slow = problems(
        {"type": "delayed", "cost": 0.8, "arrivals": 50, "discount_rate": 0.1, "label_delay": 1}, ["a", "b"]
    )
    assert slow[0].problem == Delayed(0.8, 25, 0.1, 1)
    ends = problems({"type": "horizon", "cost": 0.8, "horizon": 10}, [{"name": "a", "share": 0.01}, "b"])
    assert [one.problem for one in ends] == [FiniteHorizon(0.8, 1), FiniteHorizon(0.8, 10)]
    with rejected("segments"):
        problems({"type": "horizon", "cost": 0.8, "horizon": 10}, [{"name": "a", "share": 1}, "b"])


def test_the_floor_is_drawn_only_where_the_optimum_has_stopped() -> None:
    rule = SegmentRule("x", 1.0, stopping(), "", 5, 0.25)
    stopped = Counts(successes=0, failures=5)
    assert rule.decide(stopped, 0.2499).rule == "exploration_floor"
    assert rule.decide(stopped, 0.25)[:2] == ("reject", "below_threshold")
    assert rule.decide(Counts(pending=5, failures=5), 0.0)[:2] == ("reject", "below_threshold")
    assert rule.decide(Counts(pending=5), 0.0)[:2] == ("reject", "exposure_cap")
    assert rule.decide(Counts(pending=4), 0.9).probability == 1.0


def test_features_make_segments() -> None:
    features = [Feature("score", edges=[600, 700]), Feature("region", values=["north", "south"])]
    names = names_of(features)
    assert len(names) == len(set(names)) == 9
    assert segment_of(features, {"score": 700.0, "region": "east"}) == "score>=700, region=other"
    assert segment_of(features, {"score": -1e300, "region": "north"}) == "score<600, region=north"
    assert {
        segment_of(features, {"score": s, "region": r}) for s in (0, 650, 800) for r in ("north", "south", "x")
    } == set(names)
    for wrong in (
        {"edges": [2, 1]},
        {"values": ["a", "a"]},
        {"values": ["other"]},
        {},
        {"edges": [1], "values": ["a"]},
    ):
        with pytest.raises(InputError):
            Feature("x", **wrong)
    with rejected("features", "too_large"):
        names_of([Feature(str(i), edges=[1.0, 2.0, 3.0]) for i in range(6)])
    assert SegmentSpec("a").share is None


def test_the_threshold_of_late_labels_is_rejected_and_what_is_above_is_not() -> None:
    table = late()
    for k in range(40):
        for successes in range(k + 1):
            rate = (table.prior.s + successes) / (table.prior.n + k)
            assert (table.limit(successes, k - successes) == 0) == (rate <= table.threshold(successes, k - successes))


def test_late_labels_are_solved_as_well_as_time_allows() -> None:
    quick = load(solve(_late_segment(400.0), Effort(seconds=1.0)))
    assert isinstance(quick, ExposureTable)
    assert 1e-6 < quick.policy.certificate.tolerance <= 1e-2
    with pytest.raises(TooLargeError):
        solve(_late_segment(1e7), Effort(seconds=1.0))


def test_late_labels_of_any_size_are_estimated() -> None:
    problem, prior = Delayed(0.8, 658, 0.1, 1.4), Belief(338, 262)
    text = solve(SegmentProblem("x", 1.0, problem, prior, None, 0.0))
    table = load(text)
    assert isinstance(table, EstimatedTable)
    policy = EstimatedExposurePolicy.solve(problem, prior)
    assert text == solve(SegmentProblem("y", 0.5, problem, prior, None, 0.0))  # the same problem, the same table
    for successes, failures in ((0, 0), (10, 2), (7, 3), (300, 80), (2000, 520)):
        assert table.limit(successes, failures) == policy.limit(table.belief(successes, failures))
    assert not table.proved
    assert "estimated" in table.statement
    value, _ = table.value(0, 0, 0)
    assert value is not None
    assert policy.certificate.estimate in value
    for k in (0, 30, 100, 1000):
        least = table.least_accepted(k)
        assert least is not None
        assert table.limit(least, k - least) != 0
        if least > 0:
            assert table.limit(least - 1, k - least + 1) == 0
            assert (prior.s + least - 1) / (prior.n + k) <= table.threshold(0, k) <= (prior.s + least) / (prior.n + k)


def _late_segment(arrivals: float) -> SegmentProblem:
    return SegmentProblem("late", 1.0, Delayed(0.8, arrivals, 0.1, 1.0), Belief(2, 1), None, 0.0)


def test_a_value_that_would_take_long_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = table_of(FiniteHorizon(0.8, 2), Belief(2, 1))
    assert None not in stopping().value(3, 1, 0)
    monkeypatch.setattr("lenience.service.domain.stopping_tables.VALUE_SECONDS", 0.0)
    assert stopping().value(3, 1, 0) == (None, None)
    assert over.value(1, 1, 0) == (Bounds(0.0, 0.0), None)


def test_undecided_states_do_not_hinder_a_table() -> None:
    rng = np.random.default_rng(1)
    optimum = np.concatenate(([0], np.cumsum(rng.random(999) < 0.8)))
    proved = optimum + rng.integers(0, 4, 1000)  # above the optimum by as many as are undecided
    found = steady(proved)
    assert set(np.diff(found)) <= {0, 1}
    assert ((optimum <= found) & (found <= proved)).all()
    assert (steady(optimum) == optimum).all()


@pytest.mark.parametrize(("cost", "discount"), [(0.8, 0.99), (0.5, 0.9), (0.3, 0.6)])
def test_beyond_the_table_decisions_are_the_policy_s(cost: float, discount: float) -> None:
    segment = SegmentProblem("x", 1.0, Discounted(cost, discount), Belief(2, 1), None, 0.0)
    policy = Discounted(cost, discount).solve(Belief(2, 1), rows=200)
    for rows in range(3, 40, 6):
        short = load(solve(segment, Effort(rows=rows, limit=False)))
        assert isinstance(short, StoppingTable)
        for outcomes in range(rows - 2, rows + 50):
            for good in range(outcomes + 1):
                accepted = short.limit(good, outcomes - good) is None
                assert accepted == policy.accepts(Belief(2 + outcomes, 1 + good)), (rows, good, outcomes)


def test_thresholds_of_a_horizon_are_halfway_between_rejection_and_acceptance() -> None:
    table = table_of(FiniteHorizon(0.6, 60), Belief(2, 1))
    assert isinstance(table, StoppingTable)
    halfway = 0
    for outcomes in range(60):
        least, n = table.least_accepted(outcomes), 2 + outcomes
        if least:
            expected = min((1 + least - 0.5) / n, 0.6)
            assert table.threshold(0, outcomes) == pytest.approx(expected)
            halfway += expected < 0.6
    assert halfway > 20


def test_the_tolerance_is_loosened_up_to_the_loosest() -> None:
    tried: list[float] = []

    class Slow:
        def __init__(self, least: float) -> None:
            self.least = least

        def solve_proved(self, prior: Belief, rows: int | None, tolerance: float, seconds: float) -> str:
            tried.append(tolerance)
            if tolerance < self.least:
                raise TooLargeError("Solving this", seconds=9.0, allowed_seconds=seconds)
            return "solved"

    options = (Belief(2, 1), 1e-3, 1e-2, 1.0, None)
    assert prove_in_time(cast(Delayed, Slow(0.01)), *options) == cast(ExposurePolicy, "solved")
    assert tried == [1e-3, 1e-2]
    with pytest.raises(TooLargeError):
        prove_in_time(cast(Delayed, Slow(0.02)), *options)
    assert tried == [1e-3, 1e-2, 1e-3, 1e-2]


def test_older_tables_without_a_curve_are_approximated() -> None:
    segment = SegmentProblem("x", 1.0, Discounted(0.8, 0.99), Belief(2, 1), None, 0.0)
    table = load(solve(segment, Effort(rows=50, limit=False)))
    assert isinstance(table, StoppingTable)
    assert table.threshold(0, 40) == pytest.approx((1 + table.boundary[40]) / 42, abs=1e-12)  # of nothing better known
    old = StoppingTable(msgspec.structs.replace(table.body, leniency=2.618))
    for outcomes in (8, 30):
        n = 2 + outcomes
        exact = Discounted(0.8, 0.99).solve(Belief(2, 1)).threshold(n, 1e-6).midpoint
        assert old._curve(n) == pytest.approx(0.8 - 2.618 / n / (1 + 25 / n))
        assert old.threshold(0, outcomes) == pytest.approx(exact, abs=1 / n)  # within one observation


def test_without_a_future_there_is_no_curve() -> None:
    assert fitted_curve(Discounted(0.8, 0.0), 2.0) == ([], 0.0)


def test_a_curve_covers_four_times_the_prior() -> None:
    series, reach = fitted_curve(Discounted(0.8, 0.9), 2.0)
    assert reach == 1000.0
    assert len(series) == 12
    assert fitted_curve(Discounted(0.8, 0.9), 400.0)[1] == 1600.0
