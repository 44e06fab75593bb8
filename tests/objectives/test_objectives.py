"""Objectives: what they check, how they relate, and their JSON."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from lenience import AverageReward, Belief, Discounted, FiniteHorizon, InputError


def test_rates_give_the_discount_of_poisson_arrivals() -> None:
    assert Discounted.from_rates(0.8, arrivals=99, discount_rate=1).discount == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Discounted(0, 0.9), "cost must be a number strictly between 0 and 1, not 0"),
        (lambda: Discounted(1, 0.9), "cost must be a number strictly between 0 and 1, not 1"),
        (lambda: Discounted(math.nan, 0.9), "cost must be a number strictly between 0 and 1, not nan"),
        (lambda: Discounted(0.8, 1), "discount must be a number from 0 to below 1, not 1"),
        (lambda: Discounted(0.8, -0.1), "discount must be a number from 0 to below 1, not -0.1"),
        (lambda: Discounted(0.8, math.inf), "discount must be a number from 0 to below 1, not inf"),
        (lambda: Discounted.from_rates(0.8, 0, 0.1), "arrivals must be a number above 0, not 0"),
        (lambda: Discounted.from_rates(0.8, 10, -1), "discount_rate must be a number above 0, not -1"),
        (lambda: FiniteHorizon(0.8, 10**400), "horizon must be a whole number of at least 1, not 1000000000"),
        (lambda: Belief(10**400, 1), "n must be a number above 0, not 1000000000"),
        (lambda: FiniteHorizon(0.8, 0), "horizon must be a whole number of at least 1, not 0"),
        (lambda: FiniteHorizon(0.8, 2.5), "horizon must be a whole number of at least 1, not 2.5"),  # type: ignore[arg-type]
        (lambda: FiniteHorizon(0.8, 10, 1.1), "discount must be a number above 0 and at most 1, not 1.1"),
        (lambda: AverageReward(1.5), "cost must be a number strictly between 0 and 1, not 1.5"),
        (lambda: Discounted(0.8, 0.9).solve((2, 1)), "prior must be a Belief"),  # type: ignore[arg-type]
        (lambda: Discounted(0.8, 0.9).solve(Belief(2, 1), rows=0), "rows must be a whole number of at least 1, not 0"),
        (lambda: Discounted(0.8, 0.9).solve(Belief(2, 1), tolerance=0), "tolerance must be a number above 0"),
        (lambda: Discounted(0.8, 0.9).solve(Belief(2, 1), look_ahead=-1), "look_ahead must be a whole number"),
        (lambda: FiniteHorizon(0.8, 10).solve(Belief(2, 1), rows=11), "rows must be a whole number from 1 to 10"),
    ],
)
def test_bad_input_names_field_value_and_range(make: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("objective", [Discounted(0.8, 0.99), FiniteHorizon(0.8, 10), AverageReward(0.3)])
def test_json_round_trip(objective: Any) -> None:
    kinds = Discounted | FiniteHorizon | AverageReward
    assert msgspec.json.decode(msgspec.json.encode(objective), type=kinds) == objective


def test_a_long_discounted_horizon_is_the_infinite_one() -> None:
    prior = Belief(2, 1)
    infinite = Discounted(0.6, 0.9).solve(prior).value(prior)
    finite = FiniteHorizon(0.6, 400, 0.9).solve(prior).value(prior)
    assert finite.midpoint == pytest.approx(infinite.midpoint, abs=1e-9)


def test_one_individual_is_accepted_above_the_cost_only() -> None:
    assert FiniteHorizon(0.5, 1).solve(Belief(10, 6)).accepts(Belief(10, 6))
    assert not FiniteHorizon(0.5, 1).solve(Belief(10, 5)).accepts(Belief(10, 5))


def test_average_reward_is_what_knowing_is_worth() -> None:
    # Under the uniform prior E(p − c)⁺ = (1 − c)²/2.
    for cost in (0.1, 0.5, 0.9):
        assert (1 - cost) ** 2 / 2 in AverageReward(cost).value(Belief(2, 1))
    assert AverageReward(0.5).value(Belief(4, 4)).midpoint == pytest.approx(0.5)
    # For many observations it is the normal loss, whatever digits the special function loses.
    for n in (1e10, 1e14, 1e16):
        assert math.sqrt(0.16 / n / (2 * math.pi)) in AverageReward(0.8).value(Belief(n, 0.8 * n))


def test_a_large_volume_is_known_to_start_without_a_long_solve() -> None:
    large = Discounted(0.8, 1 - 1e-7)
    assert large.starts(Belief(5, 3))  # it starts at a smaller volume already
    assert large.starts(Belief(1800, 1404))
    assert not large.starts(Belief(18_000, 14_130))  # not even knowing the rate would pay
    for belief in (Belief(2, 1), Belief(30, 22), Belief(60, 40)):
        for discount in (0.9, 0.96, 0.97, 0.99, 0.999):
            objective = Discounted(0.8, discount)
            assert objective.starts(belief) == (objective.enclose(belief, 1e-12)[1].lower > 0)


def test_whether_a_belief_starts_is_estimated_where_a_proof_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = Discounted(0.8, 0.999)
    beliefs = [Belief(40, 27), Belief(40, 28.5), Belief(40, 29.5)]
    assert [objective.starts(belief) for belief in beliefs] == [False, True, True]
    monkeypatch.setattr(Discounted, "_proves_quickly", lambda objective, belief: False)
    assert [objective.starts(belief) for belief in beliefs] == [False, True, True]
