"""The fair optimum, against a linear program over all policies, and by simulation."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from lenience import (
    Belief,
    Bounds,
    Delayed,
    Discounted,
    FiniteHorizon,
    InputError,
    MixtureBelief,
    Offers,
    Segments,
    fair_optimum,
)
from lenience.analysis import EqualOpportunity, FairOptimum, Floors, Parity, price_of_fairness
from lenience.analysis.fair_constraints import MEASURES, Limits, limits_of
from lenience.analysis.fair_search import FairSearch, Mixture, _within_one
from lenience.segments import fico_segments
from lenience.segments.shifted_costs import SegmentProblem, ShiftedPolicy, segment_problems
from lenience.solvers.stopping.solve import solve_discounted
from oracles import fair_program

PAIR = {"a": Belief(4, 3.2), "b": Belief(4, 2)}
GROUPS = {"a": "A", "b": "B"}
# Each half has the own discount 0.97 at this discount of the whole.
WHOLE = 0.97 / (0.97 * 0.5 + 0.5)


def pair(discount: float = WHOLE, cost: float = 0.7) -> Segments:
    return Segments.of({"a": 0.5, "b": 0.5}, Discounted(cost, discount), PAIR)


@pytest.mark.parametrize(
    ("within", "expected"), [(None, 4.363137), (0.4, 4.1023), (0.2, 3.446542), (0.1, 3.0348), (0.0, 2.544507)]
)
def test_the_linear_program_on_forty_rows_is_just_below_the_optimum(within: float | None, expected: float) -> None:
    """With forty rows, learning ends early, so all policies together earn a little less than the optimum."""
    best, rates = fair_program([(4, 3.2, 0.7, 0.97, 1.0), (4, 2, 0.7, 0.97, 1.0)], np.eye(2), 40, within)
    assert best == pytest.approx(expected, abs=6e-5)
    result = fair_optimum(pair(), GROUPS, Parity(1.0 if within is None else within))
    weight = pair()["a"].weight
    assert result.value.upper / weight >= best
    assert result.value.lower / weight == pytest.approx(best, rel=3e-3)
    if within == 0.0:
        assert rates == pytest.approx([0.4597, 0.4597], abs=5e-5)
    if within is None:
        assert rates == pytest.approx([0.780, 0.187], abs=5e-4)


THREE = {"x": Belief(3, 2.4), "y": Belief(2, 1.1), "z": Belief(6, 2.7)}
SHARES = {"x": 0.5, "y": 0.3, "z": 0.2}
COSTS = {"x": 0.7, "y": 0.65, "z": 0.6}
AMOUNTS = {"x": 1.0, "y": 2.0, "z": 0.5}
MIX = {"x": {"A": 0.9, "B": 0.1}, "y": {"A": 0.4, "B": 0.6}, "z": {"A": 0.1, "B": 0.7}}
AWARE = {"x": {"A": 1.0}, "y": {"B": 1.0}, "z": {"B": 1.0}}


def three(discount: float = 0.8) -> Segments:
    return Segments.of(SHARES, {name: Discounted(cost, discount) for name, cost in COSTS.items()}, THREE)


@pytest.mark.parametrize("mix", [MIX, AWARE], ids=["blind", "aware"])
@pytest.mark.parametrize(
    "constraint",
    [
        Parity(0.0),
        Parity(0.08),
        Parity(0.1, raise_only=True),
        EqualOpportunity(0.05),
        Floors({"B": 0.5}),
        Floors(0.8, measure="opportunity"),
    ],
    ids=lambda constraint: type(constraint).__name__,
)
def test_no_policy_is_better_and_the_mixture_is_as_good(constraint: Any, mix: dict[str, dict[str, float]]) -> None:
    cells = three()
    result = fair_optimum(cells, mix, constraint, amounts=AMOUNTS)
    successes = constraint.measure == "opportunity"
    members = np.array([[mix[cell.name].get(group, 0.0) * cell.share for group in "AB"] for cell in cells])
    if successes:
        members *= np.array([[cell.prior.mean] for cell in cells])
    problems = [
        (cell.prior.n, cell.prior.s, cell.own.cost, cell.own.discount, cell.weight * AMOUNTS[cell.name])
        for cell in cells
    ]
    limit: dict[str, Any] = {"within": getattr(constraint, "within", None)}
    if isinstance(constraint, Floors):
        rates = constraint.rates
        limit = {"floors": [rates.get(g, 0.0) for g in "AB"] if isinstance(rates, dict) else [rates] * 2}
    elif constraint.raise_only:
        limit["floors"] = [group.acceptance_without.midpoint - 1e-9 for group in result.groups]
        assert not result.lowered
    best, expected = fair_program(problems, members / members.sum(axis=0), 36, **limit, successes=successes)
    assert result.value.lower == pytest.approx(best, abs=2e-4)
    assert best <= result.value.upper + 1e-9
    assert result.value.width <= 1e-6 * 5 * sum(AMOUNTS[name] * share for name, share in SHARES.items())
    assert result.violation < 1e-8
    found = [getattr(group, constraint.measure).midpoint for group in result.groups]
    assert found == pytest.approx(expected, abs=5e-3)
    # At most as many segments are mixed as limits can bind, and probabilities add up.
    assert sum(len(row.policies) > 1 for row in result.segments) <= 2
    assert all(math.isclose(sum(p.probability for p in row.policies), 1.0) for row in result.segments)


def boundary(prior: Belief, cost: float, discount: float, rows: int) -> np.ndarray[Any, Any]:
    """The least accepted successes by number of outcomes, of the optimal policy at a cost."""
    if not 0.0 < cost < 1.0:
        return np.full(rows, 0 if cost <= 0.0 else rows + 1)
    return solve_discounted(prior.n, prior.s, cost, discount, rows, 1e-6).accept_from


@pytest.mark.parametrize("constraint", [Parity(0.05), EqualOpportunity(0.02)])
def test_a_simulation_of_arrivals_finds_the_same_rates_and_value(constraint: Any) -> None:
    """Arrivals of random segments and groups, decided by the segment and by policies that are drawn at the start."""
    discount, runs, arrivals = 0.9, 20_000, 90
    cells = three(discount)
    result = fair_optimum(cells, MIX, constraint)
    random = np.random.default_rng(4)
    least, chosen = [], []
    for row in result.segments:
        own, prior = cells[row.name].own, THREE[row.name]
        least.append(np.array([boundary(prior, each.cost, own.discount, arrivals + 1) for each in row.policies]))
        chosen.append(random.choice(len(row.policies), runs, p=[each.probability for each in row.policies]))
    p = np.array([random.beta(prior.s, prior.n - prior.s, runs) for prior in THREE.values()])
    known, good, everyone = np.zeros((3, runs), int), np.zeros((3, runs), int), np.arange(runs)
    earned, sums = np.zeros(runs), np.zeros((2, 2, 2))  # of all or those who succeed; members or accepted; by group
    for i in range(arrivals):
        x = random.choice(3, runs, p=list(SHARES.values()))
        shares = np.array([[own["A"], own["A"] + own["B"]] for own in MIX.values()])[x]
        group = (random.random(runs)[:, None] > shares).sum(axis=1)  # 2 is no group
        needed = np.choose(x, [least[s][chosen[s], known[s]] for s in range(3)])
        accepted = good[x, everyone] >= needed
        y = random.random(runs) < p[x, everyone]
        earned += discount**i * accepted * (y - np.array(list(COSTS.values()))[x])
        for g in range(2):
            for kind, counted in enumerate((np.ones(runs, bool), y)):
                member = (group == g) & counted
                sums[kind, :, g] += discount**i * np.array([member.sum(), (member & accepted).sum()])
        known[x, everyone] += accepted
        good[x, everyone] += accepted & y
    for g, of_group in enumerate(result.groups):
        assert sums[0, 1, g] / sums[0, 0, g] == pytest.approx(of_group.acceptance.midpoint, abs=0.01)
        assert sums[1, 1, g] / sums[1, 0, g] == pytest.approx(of_group.opportunity.midpoint, abs=0.01)
    error = earned.std() / math.sqrt(runs)
    assert earned.mean() == pytest.approx(result.value.midpoint, abs=4 * error + discount**arrivals)


def test_a_draw_follows_the_probabilities_and_its_seed() -> None:
    result = fair_optimum(pair(0.94), GROUPS, EqualOpportunity(0.1))
    drawn = [result.draw(seed) for seed in range(200)]
    mixed = next(row for row in result.segments if len(row.policies) > 1)
    share = np.mean([costs[mixed.name] == mixed.policies[0].cost for costs in drawn])
    assert share == pytest.approx(mixed.policies[0].probability, abs=0.12)
    assert result.draw(5) == result.draw(5)


def test_parity_levels_the_better_group_down_and_raising_does_not() -> None:
    result = fair_optimum(pair(), GROUPS, Parity(0.0))
    better, worse = result.groups
    assert better.acceptance_without.midpoint == pytest.approx(0.779, abs=1e-3)
    assert better.acceptance.midpoint == pytest.approx(worse.acceptance.midpoint, abs=1e-8)
    assert better.acceptance.midpoint == pytest.approx(0.461, abs=1e-3)
    assert [row.group for row in result.lowered] == ["A"]
    assert [row.group for row in result.raised] == ["B"]
    assert better.value.midpoint < better.value_without.midpoint
    raised = fair_optimum(pair(), GROUPS, Parity(0.0, raise_only=True))
    assert not raised.lowered
    assert raised.groups[0].acceptance.midpoint == pytest.approx(better.acceptance_without.midpoint, abs=1e-8)
    assert raised.groups[1].acceptance.midpoint == pytest.approx(0.779, abs=1e-3)
    assert raised.value.upper < result.value.lower


def test_no_pair_of_shifted_costs_that_keeps_the_limit_beats_the_bound() -> None:
    within = 0.15
    result = fair_optimum(pair(0.9), GROUPS, Parity(within))
    cells = pair(0.9)
    policies: dict[str, list[tuple[float, float]]] = {}
    for cell in cells:
        policies[cell.name] = []
        for cost in np.linspace(0.05, 0.95, 31):
            free = fair_optimum(
                Segments.of({cell.name: cell.share}, Discounted(float(cost), 0.9), cell.prior),
                {cell.name: "G"},
                Floors(0.0),
            )
            rate = free.groups[0].acceptance.midpoint
            value = free.unconstrained.midpoint + cell.weight * rate / (1 - cell.own.discount) * (cost - cell.own.cost)
            policies[cell.name].append((rate, value))
    kept = [u + v for a, u in policies["a"] for b, v in policies["b"] if abs(a - b) <= within]
    assert len(kept) > 50
    assert max(kept) <= result.value.upper
    assert max(kept) > 0.97 * result.value.upper


def test_a_constraint_that_holds_anyway_costs_nothing() -> None:
    loose = fair_optimum(pair(), GROUPS, Parity(0.9))
    assert loose.price.upper < 1e-5 * loose.value.upper
    assert [row.policies[0].cost for row in loose.segments] == [0.7, 0.7]
    alike = {name: {"A": 0.3, "B": 0.7} for name in PAIR}
    blind = fair_optimum(pair(), alike, Parity(0.0))
    assert not blind.group_aware
    assert blind.price.upper < 1e-4 * blind.value.upper
    assert blind.spread() < 1e-8


def test_blind_decisions_pay_more_than_those_that_see_the_group() -> None:
    cells = Segments.of(
        {"low A": 0.2, "high A": 0.3, "low B": 0.3, "high B": 0.2},
        Discounted(0.7, 0.9),
        {"low A": Belief(5, 3), "high A": Belief(5, 4), "low B": Belief(5, 3), "high B": Belief(5, 4)},
    )
    aware = fair_optimum(cells, {name: name[-1] for name in cells.names}, Parity(0.02))
    bands = Segments.of({"low": 0.5, "high": 0.5}, Discounted(0.7, 0.9), {"low": Belief(5, 3), "high": Belief(5, 4)})
    mix = {"low": {"A": 0.4, "B": 0.6}, "high": {"A": 0.6, "B": 0.4}}
    blind = fair_optimum(bands, mix, Parity(0.02))
    assert aware.group_aware
    assert not blind.group_aware
    assert blind.spread() == pytest.approx(0.02, abs=1e-6)
    # The lower segment is raised where B is in the majority, for all its members.
    low, high = blind.segments
    assert max(p.cost for p in low.policies) < 0.7 < max(p.cost for p in high.policies)


def test_a_blind_limit_may_favour_the_weaker_segment() -> None:
    cells, mix = fico_segments(Discounted(0.8, 0.99), by_group=False)
    assert fair_optimum(cells, mix, Parity(1.0)).inversion is None
    result = fair_optimum(cells, mix, Parity(0.05))
    assert result.inversion is not None
    weak, strong = result.inversion
    assert weak.expected_success < strong.expected_success
    assert weak.acceptance.midpoint > strong.acceptance.midpoint
    assert weak.acceptance_without.midpoint < strong.acceptance_without.midpoint


def test_a_stronger_segment_that_is_too_rare_anyway_is_no_inversion() -> None:
    beliefs = {"many": Belief(3, 1.8), "few": Belief(3, 1.83)}
    cells = Segments.of({"many": 0.99, "few": 0.01}, Discounted(0.7, 0.98), beliefs)
    result = fair_optimum(cells, {"many": "A", "few": "B"}, Floors({"A": 0.1}))
    many, few = result.segments
    assert many.acceptance.midpoint > 0.1 > few.acceptance.midpoint
    assert result.inversion is None


@pytest.mark.parametrize("seed", range(3))
def test_every_price_of_the_limits_gives_an_upper_bound(seed: int) -> None:
    problems = segment_problems(three(), AMOUNTS, "this test")
    mix = np.array([[MIX[name].get(group, 0.0) for group in "AB"] for name in MIX])
    search = FairSearch(problems, mix, 1e-6)
    random = np.random.default_rng(seed)
    for measure in MEASURES:
        rates = search.group_rates(measure, search.best_without().mixtures)
        kind = Parity if measure == "acceptance" else EqualOpportunity
        for limits in (limits_of(kind(0.05), "AB", rates), limits_of(Floors(0.6, measure), "AB", rates)):
            best = search.solve(limits, measure).earned.lower
            for _ in range(5):
                prices = random.exponential(2.0, limits.bound.size)
                weights = search.weights(measure)
                most, _ = search._price(limits, prices, -(limits.matrix.T @ prices), measure, weights)
                assert best <= most


def test_a_violation_is_measured_from_the_outer_bounds() -> None:
    near = [Bounds(0.40, 0.41), Bounds(0.48, 0.52)]
    limits = limits_of(Parity(0.1), "AB", near)
    assert limits.violation(near) == pytest.approx(0.02)
    assert limits_of(Parity(0.12), "AB", near).violation(near) == pytest.approx(0.0, abs=1e-12)
    assert limits_of(Floors(0.45), "AB", near).violation(near) == pytest.approx(0.05)
    assert limits_of(Floors({"B": 0.45}), "AB", near).violation(near) == 0.0


def test_members_of_no_group_count_for_none() -> None:
    cells = three()
    some = {"x": "A", "y": "B", "z": ""}
    result = fair_optimum(cells, some, Parity(0.0))
    assert [row.group for row in result.groups] == ["A", "B"]
    free = result.segments[2]
    assert free.acceptance == free.acceptance_without
    assert [row.share for row in result.groups] == [0.5, 0.3]


def test_the_curve_rises_with_the_limit_and_raising_is_dearer() -> None:
    curve = price_of_fairness(pair(0.9), GROUPS)
    assert len(curve.points) == len(curve.raising) == 11
    assert curve.within[0] == 0.0
    values = [point.value.midpoint for point in curve.points]
    assert values == sorted(values)
    for point, raised in zip(curve.points, curve.raising, strict=True):
        assert raised.value.lower <= point.value.upper + 1e-9
        assert not raised.lowered
        assert point.spread() <= point.constraint.within + 1e-7  # type: ignore[union-attr]
    assert curve.points[-1].price.upper < 1e-4
    assert price_of_fairness(pair(0.9), GROUPS, "opportunity", [0.1]).measure == "opportunity"


def test_a_result_survives_json() -> None:
    result = fair_optimum(pair(0.9), GROUPS, Floors({"B": 0.4}))
    assert msgspec.json.decode(msgspec.json.encode(result), type=FairOptimum) == result


BAD: list[tuple[dict[str, Any], str]] = [
    ({"segments": "loans"}, "segments"),
    (
        {"segments": Segments.of({"a": 1.0}, Discounted(offers=Offers([1.0], [0.5]), discount=0.9), Belief(2, 1))},
        "objective",
    ),
    ({"segments": Segments.of({"a": 1.0}, Discounted(0.5, 0.9), MixtureBelief.doubt(Belief(2, 1), 0.2))}, "prior"),
    ({"segments": Segments.of({"a": 0.5}, Delayed(0.7, 50, 0.1, 1), Belief(2, 1))}, "segments"),
    ({"groups": None}, "groups"),
    ({"groups": {"a": "A"}}, "groups"),
    ({"groups": {"a": "A", "b": "B", "c": "C"}}, "groups"),
    ({"groups": {"a": "A", "b": 3}}, "groups"),
    ({"groups": {"a": {"A": 0.7, "B": 0.7}, "b": "B"}}, "groups"),
    ({"groups": {"a": {"A": -0.1}, "b": "B"}}, "groups"),
    ({"groups": {"a": "A", "b": "A"}}, "groups"),
    ({"constraint": 0.1}, "constraint"),
    ({"constraint": Floors({"C": 0.4})}, "rates"),
    ({"amounts": {"a": 1.0}}, "amounts"),
    ({"tolerance": 0}, "tolerance"),
]


@pytest.mark.parametrize(("change", "field"), BAD)
def test_invalid_input_names_the_field(change: dict[str, Any], field: str) -> None:
    given: dict[str, Any] = {"segments": pair(), "groups": GROUPS, "constraint": Parity(0.1)} | change
    if "segments" in change and isinstance(change["segments"], Segments):
        given["groups"] = {"a": "A"}
        given["constraint"] = Floors(0.5)
    with pytest.raises(InputError) as caught:
        fair_optimum(**given)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Parity(1.2), "within"),
        (lambda: EqualOpportunity(-0.1), "within"),
        (lambda: Floors(1.5), "rates"),
        (lambda: Floors({}), "rates"),
        (lambda: Floors(0.5, measure="income"), "measure"),  # type: ignore[arg-type]
        (lambda: price_of_fairness(pair(), GROUPS, "income"), "measure"),  # type: ignore[arg-type]
        (lambda: price_of_fairness(pair(), GROUPS, within=[]), "within"),
        (lambda: price_of_fairness(pair(), GROUPS, within=[2]), "within"),
        (
            lambda: (
                FiniteHorizon(0.7, 10) and fair_optimum(Segments.of({"a": 1.0}, FiniteHorizon(0.7, 10), Belief(2, 1)))
            ),
            "objective",
        ),
    ],
)
def test_invalid_limits_name_the_field(make: Any, field: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


class Worthless:
    """A solver of segments that are worth exactly nothing at any cost, so that only rounding margins are left."""

    def policy(self, problem: SegmentProblem, cost: float) -> ShiftedPolicy:
        return ShiftedPolicy(cost, Bounds(0.0, 0.0), Bounds(0.0, 0.0), Bounds(0.0, 0.0))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_bound_at_prices_counts_rounding(measure: Any) -> None:
    problems = segment_problems(pair(), None, "x")
    search = FairSearch(problems, np.eye(2), 1e-3)
    search.solver = cast(Any, Worthless())
    limits = Limits(np.array([[1.0, 0.0], [0.0, -1.0]]), np.array([-1.0, 1.0]), np.array([0.1, 0.0]))
    weights = search.weights(measure)
    for prices in (np.zeros(2), np.array([3.0, 1.0])):
        subsidies = -(limits.matrix.T @ prices)
        most, new = search._price(limits, prices, subsidies, measure, weights)
        slack = 1e-14 * prices.sum()
        for x, problem in enumerate(problems):
            each = weights[x] @ subsidies / search.everyone[x]
            cost, factor = problem.cost - each, 1.0
            if measure == "opportunity":
                factor = max(1.0 + each / problem.prior.mean, 0.0)
                cost = problem.cost / factor if factor > problem.cost else 1.0
            assert search._shift(x, subsidies, measure, weights) == pytest.approx((cost, factor), rel=1e-12)
            slack += 1e-15 * search.everyone[x] * (1.0 + abs(cost) + factor)
        stated = prices @ limits.bound + abs(prices @ limits.level)
        assert most - stated == pytest.approx(slack, rel=0.3)
        assert most >= stated + 0.9 * slack
        assert new == bool(prices.any())  # the first price asks for costs that are known already


def test_rates_of_groups_are_means_over_their_members() -> None:
    segments = Segments.of(SHARES, Discounted(0.7, WHOLE), THREE)
    mix = np.array([[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]])
    search = FairSearch(segment_problems(segments, None, "x"), mix, 1e-3)
    shares, means = np.array([0.5, 0.3, 0.2]), np.array([0.8, 0.55, 0.45])
    for measure, members in (("acceptance", shares), ("opportunity", shares * means)):
        weights = search.weights(measure)  # type: ignore[arg-type]
        np.testing.assert_allclose(weights, (mix * members[:, None]) / (members @ mix), rtol=1e-12)
    everyone = [Mixture((search.at_cost(x, 0.0), search.at_cost(x, 1.0)), (0.25, 0.75)) for x in range(3)]
    for measure in MEASURES:
        for rate in search.group_rates(measure, everyone):
            assert (rate.lower, rate.upper) == pytest.approx((0.25, 0.25), abs=1e-12)
    nobody = FairSearch(segment_problems(segments, None, "x"), np.array([[1.0, 0.0]] * 3), 1e-3)
    assert nobody.weights("acceptance")[:, 1].tolist() == [0.0, 0.0, 0.0]
    total = search.earned([Mixture((one,), (1.0,)) for one in search.unconstrained])
    assert search.best_without().most == pytest.approx(total.upper, abs=3e-3 * search.everyone.sum())
    assert search.gap == pytest.approx(1e-3 * search.everyone.sum(), rel=1e-12)
    volume = sum(cell.weight / (1.0 - cell.own.discount) for cell in segments)
    assert search.everyone.sum() == pytest.approx(volume, rel=1e-12)


def test_bounds_of_rates_stay_between_0_and_1() -> None:
    for lower, upper, expected in ((-0.1, 0.5, (0.0, 0.5)), (0.4, 1.2, (0.4, 1.0)), (-0.2, -0.1, (0.0, 0.0))):
        assert _within_one(Bounds(lower, upper)) == Bounds(*expected)
    assert _within_one(Bounds(1.1, 1.2)) == Bounds(1.0, 1.0)
