"""Whom to accept from a batch, against every possible choice."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from lenience import Belief, Discounted, FiniteHorizon, InputError, Offer, Offers
from lenience.segments import Applicant, rank, value_batch


def batch_of(seed: int, size: int, segments: bool) -> tuple[list[Applicant], dict[str, list[float]]]:
    chance = random.Random(seed)
    values = {name: sorted((chance.uniform(0, 200) for _ in range(3)), reverse=True) for name in "xyz"}
    batch = []
    for i in range(size):
        segment = chance.choice("xyz")
        offer = Offer(chance.choice([300, 800, 2000, 2500]), chance.uniform(0.6, 0.9))
        belief = Belief(20, chance.uniform(12, 18))
        label = values[segment][0] if segments else chance.uniform(0, 300)
        batch.append(Applicant(str(i), belief, offer, label, None, segment))
    return batch, values if segments else {}


def worth(chosen: tuple[Applicant, ...], values: dict[str, list[float]]) -> float:
    total, taken = 0.0, dict.fromkeys(values, 0)
    for one in chosen:
        total += one.expected_profit
        if one.segment in values:
            series = values[one.segment]
            total += series[min(taken[one.segment], len(series) - 1)]
            taken[one.segment] += 1
        else:
            total += one.label_value
    return total


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize(("capacity", "money"), [(3, None), (None, 4000.0), (3, 4000.0), (None, None)])
def test_the_choice_and_its_bound_against_all_choices(
    segments: bool, capacity: int | None, money: float | None
) -> None:
    for seed in range(12):
        batch, values = batch_of(seed, 9, segments)
        fitting = [
            some
            for size in range((capacity or 9) + 1)
            for some in combinations(batch, size)
            if money is None or sum(one.offer.amount for one in some) <= money
        ]
        best = max(worth(some, values) for some in fitting)
        result = rank(batch, capacity, money, values)
        assert result.index == pytest.approx(sum(one.index for one in result.chosen))
        assert result.money == sum(one.offer.amount for one in result.chosen)
        assert result.money <= (money or np.inf)
        assert len(result.chosen) <= (capacity or 9)
        names = {one.name for one in result.chosen}
        originals = tuple(one for one in batch if one.name in names)
        assert result.index == pytest.approx(worth(originals, values))
        assert result.index <= best + 1e-9
        assert best <= result.bound + 1e-9
        if money is None:
            assert result.index == pytest.approx(best)
        else:
            assert result.index >= best - max(one.index for one in batch)
        assert sorted(one.name for one in (*result.chosen, *result.waiting, *result.rejected)) == sorted(
            one.name for one in batch
        )
        assert all(one.index > 0 for one in (*result.chosen, *result.waiting))
        assert all(one.index <= 0 for one in result.rejected)


def test_the_bound_is_that_of_linear_programming() -> None:
    for seed in range(8):
        batch, _ = batch_of(seed, 60, False)
        for capacity in (None, 10):
            result = rank(batch, capacity, 12_000)
            limits = [[one.offer.amount for one in batch], [1.0] * 60]
            program = linprog([-one.index for one in batch], A_ub=limits, b_ub=[12_000, capacity or 60], bounds=(0, 1))
            assert result.bound == pytest.approx(-program.fun, rel=1e-9)
            assert result.index > 0.9 * result.bound


def test_with_money_the_index_per_money_counts() -> None:
    batch = [
        Applicant("large", Belief(10, 9), Offer(1000, 0.8)),
        Applicant("small", Belief(10, 9), Offer(100, 0.7), 70),
    ]
    assert [one.name for one in rank(batch).chosen] == ["large", "small"]
    assert [one.name for one in rank(batch, money=5000).chosen] == ["small", "large"]
    lent = [Applicant("a", Belief(10, 9), Offer(1000, 0.8), 0, 4000), Applicant("b", Belief(10, 9), Offer(900, 0.8))]
    assert [one.name for one in rank(lent, money=3000).chosen] == ["b"]


def test_more_outcomes_of_a_segment_are_worth_less() -> None:
    batch = [Applicant(name, Belief(10, 7), Offer(1000, 0.8), 150, None, "x") for name in "abc"]
    assert len(rank(batch).chosen) == 3
    result = rank(batch, label_values={"x": [150, 120, 90]})
    assert [one.label_value for one in result.chosen] == [150, 120]
    assert [one.label_value for one in result.rejected] == [90]
    # A value that rises does not count.
    assert rank(batch, label_values={"x": [110, 150]}).index == pytest.approx(3 * 10)


def test_what_money_is_left_serves_the_next_ones_that_fit() -> None:
    even = Belief(10, 7)  # no profit at a break-even of 0.7
    batch = [
        Applicant("best", even, Offer(2000, 0.7), 1000),
        Applicant("second", even, Offer(1000, 0.7), 450),
        *(Applicant(name, even, Offer(400, 0.7), 100, None, "x") for name in "abc"),
    ]
    result = rank(batch, money=2900, label_values={"x": [100, 80, 60]})
    assert [one.name for one in result.chosen] == ["best", "a", "b"]
    assert [one.label_value for one in result.chosen] == [1000, 100, 80]
    assert {one.name: one.label_value for one in result.waiting} == {"second": 450, "c": 60}
    assert result.bound == pytest.approx(1000 + 0.9 * 450)


def test_labels_count_for_who_gets_what_money_is_left() -> None:
    batch = [
        Applicant("best", Belief(10, 8), Offer(1000, 0.7), 0),  # earns 0.1 per unit
        Applicant("second", Belief(10, 8), Offer(1200, 0.72), 0),
        Applicant("label", Belief(10, 7), Offer(500, 0.72), 30),  # worth 0.04 per unit, all of it the label
        Applicant("profit", Belief(10, 8), Offer(500, 0.79), 0),
    ]
    assert [one.name for one in rank(batch, money=1700).chosen] == ["best", "label"]


def test_the_bound_ignores_applicants_who_need_more_than_there_is() -> None:
    batch = [Applicant("large", Belief(10, 9), Offer(5000, 0.8)), Applicant("small", Belief(10, 9), Offer(500, 0.8))]
    result = rank(batch, money=1000)
    assert [one.name for one in result.chosen] == ["small"]
    assert result.bound == pytest.approx(result.index)


def test_labels_of_a_batch_add_up_to_what_they_are_worth_together() -> None:
    offers, prior, discount = Offers([1, 4], [0.7, 0.8]), Belief(3, 2), 0.9
    policy = Discounted(offers=offers, discount=discount).solve(prior, rows=5)
    values = policy.batch_label_values(4)
    assert values[0] == pytest.approx(policy.label_value(prior).lower)

    def after(belief: Belief, outcomes: int) -> float:
        if outcomes == 0:
            return float(policy.value(belief).midpoint)
        good, bad = Belief(belief.n + 1, belief.s + 1), Belief(belief.n + 1, belief.s)
        return belief.mean * after(good, outcomes - 1) + (1 - belief.mean) * after(bad, outcomes - 1)

    for count in (1, 2, 4):
        together = discount * (after(prior, count) - after(prior, 0))
        assert values[:count].sum() == pytest.approx(together, abs=1e-6)


def test_the_label_of_one_cost_is_that_of_one_offer() -> None:
    problem = Discounted(cost=0.8, discount=0.97)
    policy = problem.solve(Belief(2, 1))
    offers = Discounted(offers=Offers([1], [0.8]), discount=0.97).solve(Belief(2, 1))
    for belief in (Belief(2, 1), Belief(10, 6), Belief(10, 7), Belief(10, 9), Belief(4.5, 3)):
        one, other = policy.label_value(belief), offers.label_value(belief)
        assert one.midpoint == pytest.approx(other.midpoint, abs=1e-7)
        applicant = Applicant.from_policy("a", policy, belief, Offer(500, 0.8), unit=500)
        assert (applicant.index > 0) == policy.accepts(belief)
    with pytest.raises(InputError, match="horizon"):
        FiniteHorizon(0.8, 20).solve(Belief(2, 1)).label_value(Belief(2, 1))


def test_a_batch_is_valued_by_segment() -> None:
    offers = [Offer(500, 0.8), Offer(500, 0.8), Offer(2000, 0.7), Offer(500, 0.8)]
    beliefs = {"x": Belief(2, 1), "y": Belief(30, 20)}
    applicants, labels = value_batch(list("abcd"), list("xxyx"), offers, beliefs, 0.99)
    own = Discounted(offers=Offers([500], [0.8]), discount=0.99 * 0.75 / (0.01 + 0.99 * 0.75))
    policy = own.solve(Belief(2, 1))
    assert labels["x"][0] == pytest.approx(policy.label_value(Belief(2, 1)).midpoint, rel=1e-6)
    assert [len(labels[name]) for name in "xy"] == [3, 1]
    assert [one.segment for one in applicants] == list("xxyx")
    assert applicants[2].label_value == labels["y"][0]
    with pytest.raises(InputError, match="missing for 'y'"):
        value_batch(list("ab"), list("xy"), offers[:2], {"x": Belief(2, 1)}, 0.99)
    with pytest.raises(InputError, match="one entry for each"):
        value_batch(list("ab"), list("x"), offers[:2], beliefs, 0.99)


def test_bad_limits() -> None:
    batch, _ = batch_of(0, 3, False)
    for bad in (0, -1, 1.5):
        with pytest.raises(InputError, match="capacity"):
            rank(batch, capacity=bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="money"):
        rank(batch, money=0)
    with pytest.raises(InputError, match="Applicant"):
        rank([3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="label_value"):
        Applicant("a", Belief(2, 1), Offer(1, 0.5), -1)


def test_an_empty_batch() -> None:
    assert rank([], capacity=3).chosen == ()
    assert rank([], money=3).bound == 0.0


def test_an_index_of_0_is_rejected() -> None:
    """Exactly at the break-even, with nothing to learn, acceptance gains nothing."""
    even = Applicant("even", Belief(2, 1), Offer(1000, 0.5), 0.0)
    better = Applicant("better", Belief(4, 3), Offer(1000, 0.5), 0.0)
    for money in (None, 5000):
        result = rank([even, better], money=money)
        assert [one.name for one in result.chosen] == ["better"]
        assert result.waiting == ()
        assert [one.name for one in result.rejected] == ["even"]
    waits = rank([even, better, Applicant("best", Belief(5, 4), Offer(1000, 0.5), 0.0)], capacity=1)
    assert [one.name for one in waits.waiting] == ["better"]
    assert [one.name for one in waits.rejected] == ["even"]
