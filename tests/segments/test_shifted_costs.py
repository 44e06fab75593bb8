"""Segments at shifted costs: coarse bounds contain fine ones, and costs outside of 0 to 1 are trivial."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lenience import Belief, Bounds, Discounted, Segments
from lenience.segments.shifted_costs import SegmentProblem, ShiftedCosts, ShiftedPolicy, segment_problems, total


def problem(prior: Belief = Belief(3, 2)) -> SegmentProblem:  # noqa: B008
    [only] = segment_problems(Segments.of({"a": 0.5}, Discounted(0.65, 0.96), prior), {"a": 3.0}, "this test")
    return only


def contains(outer: Bounds, inner: Bounds) -> bool:
    return outer.lower <= inner.lower <= inner.upper <= outer.upper


@pytest.mark.parametrize("cost", [0.5, 0.65, 0.8])
def test_coarse_bounds_contain_fine_ones(cost: float) -> None:
    own = problem()
    fine, coarse = ShiftedCosts(1e-9).policy(own, cost), ShiftedCosts(0.05).policy(own, cost)
    assert contains(coarse.earns(own), fine.earns(own))
    assert contains(coarse.acceptance, fine.acceptance)
    assert contains(coarse.opportunity(own), fine.opportunity(own))
    assert contains(coarse.value, Bounds(fine.value.midpoint, fine.value.midpoint))
    assert coarse.earns(own).width > 1e-4 > 1e-6 > fine.earns(own).width


def test_at_its_own_cost_a_policy_earns_its_value_and_less_at_any_other() -> None:
    own = problem()
    solver = ShiftedCosts(1e-8)
    best = solver.policy(own, own.cost)
    assert best.earns(own).midpoint == pytest.approx(own.scale * best.value.midpoint, abs=1e-6)
    for cost in (0.0, 0.4, 0.6, 0.7, 0.9, 1.0):
        assert solver.policy(own, cost).earns(own).lower <= best.earns(own).upper + 1e-9


def test_costs_outside_of_the_range_accept_everyone_or_nobody() -> None:
    own = problem()
    everyone, nobody = ShiftedCosts(1e-6).policy(own, -0.2), ShiftedCosts(1e-6).policy(own, 1.3)
    assert (everyone.cost, everyone.acceptance) == (0.0, Bounds(1.0, 1.0))
    assert everyone.value.midpoint == pytest.approx((2 / 3 + 0.2) / (1 - own.discount))
    assert everyone.earns(own).midpoint == pytest.approx(own.scale * (2 / 3 - 0.65) / (1 - own.discount))
    assert (nobody.cost, nobody.acceptance, nobody.value) == (1.0, Bounds(0.0, 0.0), Bounds(0.0, 0.0))
    assert nobody.earns(own).upper < 1e-9
    assert ShiftedCosts(1e-6).policy(own, 1.0) == nobody
    assert ShiftedCosts(1e-6).policy(own, 0.0)._replace(value=everyone.value) == everyone


def test_what_everyone_earns_is_enclosed_as_a_fraction() -> None:
    for n, s, cost in ((3.0, 2.0, 0.65), (7.0, 5.0, 0.7), (11.0, 9.0, 0.8), (13.0, 3.0, 0.1), (17.0, 16.0, 0.9)):
        own = problem()._replace(prior=Belief(n, s), cost=cost, weight=1.0, amount=1.0, discount=0.5)
        exact = (Fraction(s) / Fraction(n) - Fraction(cost)) * 2
        earned = ShiftedCosts(1e-6).policy(own, -0.1).earns(own)
        assert Fraction(earned.lower) < exact < Fraction(earned.upper)
        assert earned.width < 1e-14


def test_nothing_is_an_opportunity_where_nobody_succeeds() -> None:
    own = problem()._replace(prior=Belief(4, 0))
    policy = ShiftedPolicy(0.5, Bounds(0, 0), Bounds(0.25, 0.5), Bounds(0.0, 0.0))
    assert policy.opportunity(own) == policy.acceptance == Bounds(0.5, 0.75)
    half = ShiftedPolicy(0.5, Bounds(0, 0), Bounds(0.25, 0.5), Bounds(0.1, 0.3))
    assert half.opportunity(problem()).lower == pytest.approx(1 - 0.3 / problem().prior.mean)
    assert half.opportunity(problem()).upper == pytest.approx(1 - 0.1 / problem().prior.mean)


def test_sums_are_rounded_outwards() -> None:
    parts = [Bounds(0.1, 0.1)] * 3 + [Bounds(-0.7, -0.7)]
    exact = 3 * Fraction(0.1) + Fraction(-0.7)
    assert Fraction(total(parts).lower) < exact < Fraction(total(parts).upper)
    assert total(parts).width < 1e-15
    assert total([]) == Bounds(0.0, 0.0)
