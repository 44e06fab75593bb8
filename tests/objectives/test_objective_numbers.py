"""Volumes, shares, horizons and bounds of objectives, against sums one term at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import msgspec
import pytest

from lenience import (
    AverageReward,
    Belief,
    Bounds,
    Delayed,
    Discounted,
    FiniteHorizon,
    InputError,
    MixtureBelief,
    Offers,
)

PRIOR = Belief(2, 1)
ENDLESS = Delayed(0.6, arrivals=0.5, discount_rate=0.25, label_delay=0.5)
HORIZONS = [
    FiniteHorizon(0.6, 5),
    FiniteHorizon(0.6, 1, 0.5),
    FiniteHorizon(0.6, 7, 0.9),
    Delayed(0.6, arrivals=0.5, label_delay=0.5, horizon=5),
    Delayed(0.6, arrivals=0.5, discount_rate=0.0, label_delay=0.5, horizon=1),
    Delayed(0.6, arrivals=4.5, discount_rate=0.5, label_delay=0.5, horizon=7),
    Delayed(0.6, arrivals=3, discount_rate=1.0, label_delay=2, horizon=3),
]


@pytest.mark.parametrize("objective", HORIZONS)
def test_a_horizon_counts_its_individuals_one_by_one(objective: Any) -> None:
    late = isinstance(objective, Delayed)
    factor = objective.arrivals / (objective.arrivals + objective.discount_rate) if late else objective.discount
    assert objective.discount == pytest.approx(factor, rel=1e-15)
    count = math.fsum(factor**i for i in range(objective.horizon))
    if late:
        assert objective.volume == pytest.approx(factor * count, rel=1e-12)  # the first has yet to come
    else:
        assert objective.discounted_count == pytest.approx(count, rel=1e-12)
    for arrival in range(objective.horizon + 2):
        left = objective.horizon - arrival
        expected = factor * (left - 1) / left if left > 1 else 0.0
        assert objective.discount_at(arrival) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("objective", [HORIZONS[0], HORIZONS[2], HORIZONS[5]])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.64, 1.0])
def test_a_share_of_a_horizon_is_its_share_of_the_individuals(objective: Any, share: float) -> None:
    own = objective.for_share(share)
    assert own.horizon == max(1, round(share * objective.horizon))
    assert type(own) is type(objective)
    if isinstance(objective, Delayed):
        assert own.arrivals == share * objective.arrivals
        assert own.discount_rate == objective.discount_rate
        assert objective.weight_of_share(share) == 1.0
    else:
        assert own.discount == objective.discount


@pytest.mark.parametrize("objective", [Discounted(0.6, 0.9), FiniteHorizon(0.6, 5), ENDLESS])
@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, 2.0])
def test_a_share_is_above_0_and_at_most_1(objective: Any, share: float) -> None:
    with pytest.raises(InputError) as caught:
        objective.for_share(share)
    assert caught.value.field == "share"
    if isinstance(objective, Discounted):
        with pytest.raises(InputError):
            objective.weight_of_share(share)


def test_shares_of_a_discounted_problem_add_up() -> None:
    """The discounted numbers of all segments together are the discounted number of the whole."""
    whole = Discounted(0.6, 0.9)
    assert whole.volume == pytest.approx(math.fsum(0.9**i for i in range(1, 2000)))
    assert whole.discounted_count == pytest.approx(whole.volume + 1)
    counts = [whole.weight_of_share(share) * whole.for_share(share).discounted_count for share in (0.1, 0.25, 0.65)]
    assert math.fsum(counts) == pytest.approx(whole.discounted_count)
    assert math.fsum(whole.for_share(share).volume for share in (0.1, 0.25, 0.65)) == pytest.approx(whole.volume)
    for discount in (i / 997 for i in range(1, 997)):  # without a rounding
        assert Discounted(0.6, discount).for_share(1).discount == discount
    assert whole.weight_of_share(1) == 1.0


def test_an_endless_problem_with_late_labels_counts_arrivals_over_the_rate() -> None:
    assert ENDLESS.volume == 2.0
    assert ENDLESS.discount == pytest.approx(2 / 3)
    assert ENDLESS.discount_at(7) == ENDLESS.discount
    problem = ENDLESS.problem(Belief(3, 1))
    assert (problem.n, problem.s, problem.f) == (3, 1, 2)
    assert (problem.arrivals, problem.rate, problem.resolve) == (0.5, 0.25, 2.0)


def test_what_remains_of_a_horizon() -> None:
    whole = FiniteHorizon(0.6, 3, 0.9)
    assert [whole.remaining(k) for k in range(5)] == [
        whole, FiniteHorizon(0.6, 2, 0.9), FiniteHorizon(0.6, 1, 0.9), None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "valid"),
    [
        ({"horizon": 1}, True),
        ({"horizon": 0}, False),
        ({"horizon": 3, "discount_rate": 0}, True),
        ({"discount_rate": 0}, False),
        ({"discount_rate": 0.5}, True),
        ({"discount_rate": 1e12}, True),
        ({"discount_rate": 1.5e12}, False),
        ({"discount_rate": -0.1}, False),
        ({"label_delay": 0.5}, True),
        ({"label_delay": 0}, False),
        ({"arrivals": 0.5}, True),
        ({"arrivals": 0}, False),
    ],
)
def test_which_numbers_json_may_have(given: dict[str, Any], valid: bool) -> None:
    body = (
        {"cost": 0.6, "arrivals": 5, "label_delay": 1} | ({} if "horizon" in given else {"discount_rate": 0.1}) | given
    )
    text = msgspec.json.encode({"type": msgspec.to_builtins(ENDLESS)["type"], **body})
    if valid:
        assert msgspec.json.decode(text, type=Delayed) == Delayed(**body)
    else:
        with pytest.raises((msgspec.ValidationError, InputError)):
            msgspec.json.decode(text, type=Delayed)


@pytest.mark.parametrize(
    ("horizon", "discount", "valid"), [(1, 1, True), (1, 0.5, True), (0, 1, False), (1, 0, False), (1, 1.5, False)]
)
def test_which_numbers_a_horizon_may_have(horizon: int, discount: float, valid: bool) -> None:
    kind = msgspec.to_builtins(FiniteHorizon(0.6, 2))["type"]
    text = msgspec.json.encode({"type": kind, "cost": 0.6, "horizon": horizon, "discount": discount})
    if valid:
        assert msgspec.json.decode(text, type=FiniteHorizon) == FiniteHorizon(0.6, horizon, discount)
    else:
        with pytest.raises((msgspec.ValidationError, InputError)):
            msgspec.json.decode(text, type=FiniteHorizon)


def test_any_number_of_rows_gives_the_same_decisions_and_value() -> None:
    whole = FiniteHorizon(0.6, 6, 0.9)
    full = whole.solve(PRIOR)
    for rows in (1, 3, 6):
        part = whole.solve(PRIOR, rows=rows)
        assert part.value(PRIOR).midpoint == pytest.approx(full.value(PRIOR).midpoint, abs=1e-9)
        assert (part.certificate.rows, part.certificate.look_ahead) == (rows, whole.horizon - rows)
    value, accepting = whole.enclose(PRIOR, 1e-9)
    assert value.midpoint == pytest.approx(full.value(PRIOR).midpoint, abs=1e-8)
    assert value.midpoint == max(0.0, accepting.midpoint)


@pytest.mark.parametrize("objective", [FiniteHorizon(0.6, 6), Discounted(0.6, 0.8)])
def test_whether_a_problem_starts_is_whether_it_accepts_at_the_prior(objective: Any) -> None:
    answers = set()
    for s in (0.2, 0.9, 1.0, 1.1, 1.9):
        prior = Belief(2, s)
        assert objective.starts(prior) == objective.solve(prior).accepts(prior)
        answers.add(objective.starts(prior))
        doubted = MixtureBelief((prior, Belief(2, 0.1)), (0.5, 0.5))
        assert objective.starts(doubted) == (objective.solve(doubted).share_accepted(doubted) > 0.0)
    assert answers == {True, False}
    menu = Offers.menu(amount=[0.01, 1], cost=[0.6, 0.6])
    only = Offers([1], [0.6])
    kinds = {"horizon": 6} if isinstance(objective, FiniteHorizon) else {"discount": 0.8}
    opened = Belief(2, 0.8)
    assert type(objective)(offers=menu, **kinds).starts(opened)
    assert type(objective)(offers=only, **kinds).starts(opened) == objective.starts(opened)


@pytest.mark.parametrize("s", [0.0, 0.5, 1.0, 1.19, 1.2, 1.9])
def test_an_enclosed_limit_is_that_of_the_solved_policy(s: float) -> None:
    late, prior = Delayed(0.6, arrivals=2, discount_rate=0.6, label_delay=0.7), Belief(2, s)
    policy = late.solve(prior, rows=2, tolerance=1e-5)
    value, limit = late.enclose(prior, tolerance=1e-5)
    assert limit == policy.limit(prior)
    assert (limit is None) == (s >= 1.2)
    assert value.midpoint == pytest.approx(policy.value(prior).midpoint, abs=1e-4)
    # More pending labels than the first solve has room for.
    many = late.enclose(prior, pending=60, tolerance=1e-5)
    assert many[1] == limit
    assert many[0].lower >= value.lower - 1e-4  # labels that will come are worth something
    if limit == 0:
        assert value.midpoint == pytest.approx(0.0, abs=1e-9)


def test_the_least_that_a_solve_may_be_given() -> None:
    late = Delayed(0.6, arrivals=2, discount_rate=0.6, label_delay=0.7)
    rough = late.solve_proved(PRIOR, rows=1, pending_cap=1, look_ahead=1, seconds=0.5)
    fine = late.solve_proved(PRIOR, rows=1)
    assert rough.value(PRIOR).lower <= fine.value(PRIOR).upper
    assert rough.value(PRIOR).upper >= fine.value(PRIOR).lower
    assert late.solve(PRIOR, seconds=0.5).limit(PRIOR) == fine.limit(PRIOR)
    for given in ({"pending_cap": 0}, {"look_ahead": 0}, {"rows": 0}, {"seconds": 0.0}):
        with pytest.raises(InputError):
            late.solve_proved(PRIOR, **given)
        with pytest.raises(InputError):
            late.solve(PRIOR, **given)


def knowing(n: float, s: float, cost: float) -> float:
    """Return E(p − c)⁺ with fifty digits."""
    with mpmath.workdps(50):
        a, b, c = mpmath.mpf(s), mpmath.mpf(n) - mpmath.mpf(s), mpmath.mpf(cost)
        above = mpmath.betainc(a + 1, b, c, 1, regularized=True) * a / (a + b)
        return max(float(above - c * mpmath.betainc(a, b, c, 1, regularized=True)), 0.0)


@pytest.mark.parametrize("n", [0.3, 2.0, 17.0, 400.0])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.79, 0.81, 0.97])
def test_average_reward_is_enclosed_and_no_wider_than_stated(n: float, share: float) -> None:
    bounds = AverageReward(0.8).value(Belief(n, share * n))
    exact = knowing(n, share * n, 0.8)
    assert bounds.lower <= exact <= bounds.upper
    assert bounds.width <= 2.001e-12 * (1 + 1e-6 * n)
    assert bounds.lower >= 0.0
    # Where Jensen's bound does not help, there is room for the rounding of the special function on both sides.
    if exact - max(share - 0.8, 0.0) > 1e-6:
        assert bounds.lower <= exact - 0.9e-12
        assert bounds.upper >= exact + 0.9e-12


@pytest.mark.parametrize("n", [1e8, 1e12, 1e16])
@pytest.mark.parametrize("excess", [-0.3, -1e-6, 0.0, 1e-6, 0.15])
def test_average_reward_of_large_beliefs_is_between_two_simple_bounds(n: float, excess: float) -> None:
    prior = Belief(n, (0.8 + excess) * n)
    bounds = AverageReward(0.8).value(prior)
    x = prior.mean - 0.8
    # Jensen's and Scarf's: max(x, 0) ≤ E(p − c)⁺ ≤ (x + √(x² + σ²))/2.
    highest = (x + math.hypot(x, math.sqrt(prior.variance))) / 2
    assert bounds.lower >= max(x, 0.0) - 1.01e-15
    assert bounds.upper <= highest + 2e-15 + 2e-12 * abs(x) + prior.variance
    assert bounds.lower <= highest
    assert bounds.upper >= max(x, 0.0)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"arrivals": 5},
        {"discount_rate": 0.1},
        {"discount": 0.9, "arrivals": 5},
        {"discount": 0.9, "discount_rate": 0.1},
    ],
)
def test_a_discount_or_both_rates_must_be_given(given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        Discounted(0.6, **given)
    assert caught.value.code in ("missing", "conflicting_fields")
    with pytest.raises(InputError) as caught:
        Discounted(0.6, arrivals=1, discount_rate=1e-16)  # 1 + 1e-16 is 1 in doubles
    assert caught.value.field == "arrivals"
    both = Discounted(0.6, arrivals=5, discount_rate=0.1)
    assert (both.arrivals, both.discount_rate) == (5.0, 0.1)
    assert both.discount == pytest.approx(5 / 5.1)
    with pytest.raises(InputError):
        Discounted(0.6, discount=5 / 5.1 + 2e-12, arrivals=5, discount_rate=0.1)
    assert both == Discounted(0.6, discount=5 / 5.1 + 5e-13, arrivals=5, discount_rate=0.1)  # up to rounding
    assert both == Discounted(0.6, discount=both.discount, arrivals=5, discount_rate=0.1)


MOST = 1e12
LIMITS: dict[Any, dict[str, dict[str, float]]] = {
    Discounted: {
        "cost": {"minimum": 1e-9, "exclusiveMaximum": 1},
        "discount": {"minimum": 0, "exclusiveMaximum": 1},
        "arrivals": {"exclusiveMinimum": 0, "maximum": MOST},
        "discount_rate": {"exclusiveMinimum": 0, "maximum": MOST},
    },
    FiniteHorizon: {"horizon": {"minimum": 1}, "discount": {"exclusiveMinimum": 0, "maximum": 1}},
    Delayed: {
        "arrivals": {"exclusiveMinimum": 0, "maximum": MOST},
        "discount_rate": {"minimum": 0, "maximum": MOST},
        "label_delay": {"exclusiveMinimum": 0, "maximum": MOST},
        "horizon": {"minimum": 1},
    },
}


@pytest.mark.parametrize("kind", LIMITS)
def test_the_schema_of_an_objective_names_what_is_allowed(kind: Any) -> None:
    fields = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    for name, limits in LIMITS[kind].items():
        stated = fields[name]["anyOf"][0] if "anyOf" in fields[name] else fields[name]
        assert {key: value for key, value in stated.items() if "imum" in key} == limits


def test_which_objectives_look_alike_at_every_time_and_can_be_shared_out() -> None:
    late = Delayed(0.6, 5, 0.1, 1)
    kinds = (Discounted(0.6, 0.9), FiniteHorizon(0.6, 5), late, AverageReward(0.6))
    assert [one.stationary for one in kinds] == [True, False, False, False]
    assert [one.divisible for one in kinds] == [True, False, True, False]
    assert not Delayed(0.6, 5, 0.1, 1, horizon=7).divisible
    solved = late.solve_proved(PRIOR, rows=2)
    assert solved.expire_after == late.expire_after == 3.0
    assert solved.certificate.value == Bounds(solved.lower[0], solved.upper[0]) == solved.value(PRIOR)


def test_average_reward_far_above_the_cost_counts_the_rounding_of_the_rate() -> None:
    # A million observations at 90% are never below 80%: the value is the difference of the rates, as a fraction.
    rounded_up = 0
    for s in range(900_001, 900_021):
        exact = Fraction(s, 10**6) - Fraction(0.8)
        bounds = AverageReward(0.8).value(Belief(10**6, s))
        assert Fraction(bounds.lower) < exact < Fraction(bounds.upper)
        rounded_up += Fraction(s / 10**6 - 0.8) > exact
    assert rounded_up > 0
