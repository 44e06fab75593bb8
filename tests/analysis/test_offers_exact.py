"""Exact figures of policies for offers, against plain dictionaries of states."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from lenience import Belief, Discounted, FiniteHorizon, Offer, Offers, acceptance_by_arrival, characteristics, evaluate
from lenience.core.protocols import Accepts, OfferRule, offer_acceptance_at
from lenience.policies import Constant, EpsilonGreedy, Greedy, Thompson
from lenience.policies.beliefs.offer_baselines import GreedyOffers, PolicyPerCost
from lenience.solvers.offers.forward import walk_offers
from rejections import rejected

PRIOR = Belief(2, 1)
NINE = Offers(amount=[a for a in (0.2, 1, 4) for _ in range(3)], cost=[0.7, 0.8, 0.9] * 3)
STARTER = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])
DRAWN = Offers.draw([STARTER, Offer(2, 0.6), Offers.menu([1, 3], [0.3, 0.9])], share=[0.5, 0.2, 0.3])
SETS = {"nine": NINE, "starter": STARTER, "drawn": DRAWN}
Rule = OfferRule | Accepts


class Totals(NamedTuple):
    """What a walk adds up to."""

    accepted: list[float]  # by arrival
    reward: float
    made: list[float]  # by offer, discounted
    never_again: float  # the probability that nobody is accepted any more, before the last arrival


def plain_walk(rule: Rule, offers: Offers, discount: float, arrivals: int, p: float | None, timed: bool) -> Totals:
    """Follow every arrival, menu and outcome, with the probabilities of the states in a dictionary."""

    @cache
    def chances(n: float, s: float, left: int | None) -> list[float]:
        row: list[float] = offer_acceptance_at(rule, n, np.array([s]), offers, left=left)[0].tolist()
        return row

    states = {(0, 0): 1.0}
    accepted, reward, made, never = [], 0.0, [0.0] * len(offers.amount), 0.0
    ends = {
        (k, j): max(
            (i for i in range(k, arrivals) if any(chances(PRIOR.n + k, PRIOR.s + j, arrivals - i if timed else None))),
            default=-1,
        )
        for k in range(arrivals)
        for j in range(k + 1)
    }
    for i in range(arrivals):
        after: dict[tuple[int, int], float] = {}
        total = 0.0
        for (k, j), mass in states.items():
            if i > ends[k, j]:
                never += mass
                continue
            n, s = PRIOR.n + k, PRIOR.s + j
            q = s / n if p is None else p
            row = chances(n, s, arrivals - i if timed else None)
            stay = mass
            for menu, share in enumerate(offers.share):
                inside = [o for o, of in enumerate(offers.menu_of) if of == menu and row[o] > 0]
                if not inside:
                    continue
                best = max(inside, key=lambda o: offers.amount[o] * (s / n - offers.cost[o]))
                moved = mass * share * max(row[o] for o in inside)
                total += moved
                stay -= moved
                reward += discount**i * moved * offers.amount[best] * (q - offers.cost[best])
                made[best] += discount**i * moved
                after[k + 1, j + 1] = after.get((k + 1, j + 1), 0.0) + moved * q
                after[k + 1, j] = after.get((k + 1, j), 0.0) + moved * (1 - q)
            after[k, j] = after.get((k, j), 0.0) + stay
        accepted.append(total)
        states = after
    return Totals(accepted, reward, made, never)


def rules(offers: Offers) -> dict[str, Callable[[], Rule]]:
    costs = sorted(set(offers.cost))
    return {
        "horizon": lambda: FiniteHorizon(offers=offers, horizon=16, discount=0.9).solve(PRIOR),
        "discounted": lambda: Discounted(offers=offers, discount=0.95).solve(PRIOR, rows=20),
        "greedy": GreedyOffers,
        "random": lambda: EpsilonGreedy(0.7, 0.3),
        "each cost": lambda: PolicyPerCost({cost: Discounted(cost, 0.95).solve(PRIOR) for cost in costs}),
    }


@pytest.mark.parametrize("kind", ["horizon", "discounted", "greedy", "random", "each cost"])
@pytest.mark.parametrize("offers", list(SETS))
@pytest.mark.parametrize("p", [None, 0.85])
def test_a_finite_horizon_agrees_with_a_plain_walk(offers: str, kind: str, p: float | None) -> None:
    described = SETS[offers]
    objective = FiniteHorizon(offers=described, horizon=16, discount=0.9)
    rule = rules(described)[kind]()
    expected = plain_walk(rule, described, 0.9, 16, p, timed=kind == "horizon")
    result = characteristics(rule, p, objective, PRIOR)  # type: ignore[arg-type]
    assert result.reward.midpoint == pytest.approx(expected.reward, abs=1e-12)
    assert result.accepted.midpoint == pytest.approx(sum(expected.accepted), abs=1e-12)
    assert result.stops.midpoint == pytest.approx(expected.never_again, abs=1e-12)
    assert result.stops_at.sum() == pytest.approx(expected.never_again, abs=1e-12)
    assert result.offer_acceptance is not None
    shares = [described.share[menu] for menu in described.menu_of]
    for bounds, made, share in zip(result.offer_acceptance, expected.made, shares, strict=True):
        assert bounds.midpoint == pytest.approx(made / (share * objective.discounted_count), abs=1e-12)
    if p is None:
        value = evaluate(rule, objective, PRIOR)  # type: ignore[arg-type]
        assert value.lower <= expected.reward <= value.upper
        assert value.width < 1e-10


@pytest.mark.parametrize("offers", list(SETS))
def test_the_optimum_over_a_horizon_earns_its_value(offers: str) -> None:
    objective = FiniteHorizon(offers=SETS[offers], horizon=60)
    policy = objective.solve(PRIOR)
    earned, value = evaluate(policy, objective, PRIOR), policy.value(PRIOR)
    assert earned.lower <= value.upper
    assert earned.upper >= value.lower
    walked = characteristics(policy, objective=objective)
    assert walked.reward.lower <= value.upper
    assert walked.reward.upper >= value.lower
    for baseline in (GreedyOffers(), Constant(1.0), Discounted(offers=SETS[offers], discount=0.98).solve(PRIOR)):
        assert evaluate(baseline, objective, PRIOR).upper <= value.upper + 1e-9


@pytest.mark.parametrize("kind", ["discounted", "greedy", "random", "each cost"])
@pytest.mark.parametrize("p", [None, 0.75])
def test_without_a_horizon_bounds_contain_a_long_walk(kind: str, p: float | None) -> None:
    """After 45 arrivals at a discount of 0.7 less than 2e-6 is left to earn."""
    objective = Discounted(offers=NINE, discount=0.7)
    rule = rules(NINE)[kind]()
    expected = plain_walk(rule, NINE, 0.7, 45, p, timed=False)
    result = characteristics(rule, p, objective, PRIOR, rows=200)  # type: ignore[arg-type]
    assert result.reward.width < 1e-6
    assert result.reward.midpoint == pytest.approx(expected.reward, abs=1e-5)
    assert result.offer_acceptance is not None
    for bounds, made in zip(result.offer_acceptance, expected.made, strict=True):
        assert bounds.midpoint == pytest.approx(0.3 * made * 9, abs=1e-5)
    # Whoever has stopped after 45 arrivals has stopped for good.
    assert result.stops.upper >= expected.never_again - 1e-12


@pytest.mark.parametrize("p", [None, 0.6, 0.75, 0.9])
def test_one_offer_is_one_break_even(p: float | None) -> None:
    single = Discounted(0.8, 0.97).solve(PRIOR)
    several = Discounted(offers=Offers([10.0], [0.8]), discount=0.97).solve(PRIOR)
    one, other = characteristics(single, p, rows=600), characteristics(several, p, rows=600)
    for name, factor in (("stops", 1.0), ("accepted", 1.0), ("reward", 10.0), ("shut_out", 1.0)):
        wanted, bounds = getattr(one, name), getattr(other, name)
        if wanted is None or math.isinf(wanted.lower):
            assert bounds == wanted
        else:
            # With one break-even it is known that the policy stops if p is at most the cost, however late.
            later = 1e-3 if name == "stops" and p is None else 1e-6
            assert -1e-6 <= factor * wanted.lower - bounds.lower <= later
            assert bounds.upper == pytest.approx(factor * wanted.upper, abs=1e-6)
    single, several = FiniteHorizon(0.8, 50), FiniteHorizon(offers=Offers([10.0], [0.8]), horizon=50)
    one, other = characteristics(single.solve(PRIOR), p), characteristics(several.solve(PRIOR), p)
    assert other.stops.midpoint == pytest.approx(one.stops.midpoint, abs=1e-9)
    assert other.accepted.midpoint == pytest.approx(one.accepted.midpoint, abs=1e-9)
    assert other.reward.midpoint == pytest.approx(10 * one.reward.midpoint, abs=1e-9)
    assert np.allclose(other.stops_at, one.stops_at, atol=1e-12)


@pytest.mark.parametrize("kind", ["horizon", "discounted", "greedy", "random"])
def test_acceptance_by_arrival(kind: str) -> None:
    rule = rules(DRAWN)[kind]()
    expected = plain_walk(rule, DRAWN, 1.0, 16, 0.8, timed=kind == "horizon").accepted
    result = acceptance_by_arrival(rule, 16, 0.8, PRIOR, DRAWN)  # type: ignore[arg-type]
    assert result.acceptance.tolist() == pytest.approx(expected, abs=1e-12)
    first = acceptance_by_arrival(rule, 5, 0.8, PRIOR, DRAWN)  # type: ignore[arg-type]
    assert first.acceptance.tolist() == pytest.approx(expected[:5], abs=1e-12)


def test_acceptance_by_arrival_needs_offers() -> None:
    with rejected("offers"):
        acceptance_by_arrival(GreedyOffers(), 5, belief=PRIOR)
    policy = FiniteHorizon(offers=STARTER, horizon=8).solve(PRIOR)
    assert acceptance_by_arrival(policy, 8).acceptance.size == 8
    with rejected("arrivals"):
        acceptance_by_arrival(policy, 9)


def test_small_amounts_are_accepted_more_often() -> None:
    policy = Discounted(offers=Offers([0.1, 1, 5], [0.8] * 3), discount=0.99).solve(PRIOR)
    for p in (0.7, 0.9):
        shares = characteristics(policy, p, rows=1500).offer_acceptance
        assert shares is not None
        assert [one.midpoint for one in shares] == sorted((one.midpoint for one in shares), reverse=True)
        assert shares[0].lower > shares[2].upper


def test_more_rows_tighten_the_bounds() -> None:
    policy = Discounted(offers=NINE, discount=0.99).solve(PRIOR)
    short, long = characteristics(policy, 0.8, rows=100), characteristics(policy, 0.8, rows=900)
    for name in ("stops", "reward", "shut_out"):
        narrow, wide = getattr(long, name), getattr(short, name)
        assert wide.lower - 1e-9 <= narrow.lower <= narrow.upper <= wide.upper + 1e-9
    assert long.reward.width < short.reward.width / 10


def test_a_horizon_that_is_too_long() -> None:
    with rejected("horizon", "too_large"):
        evaluate(Greedy(0.8), FiniteHorizon(offers=NINE, horizon=3000), PRIOR)


def test_a_tiny_probability_is_not_a_stop_with_offers() -> None:
    """Thompson sampling for each break-even never stops, however small its probability of acceptance."""
    offers = Offers([1.0, 5.0], [0.8, 0.9])
    policy = PolicyPerCost({cost: Thompson(cost) for cost in offers.cost})
    assert float(policy.offer_acceptance(5000.0, [100.0], offers).max()) == 0.0
    result = characteristics(policy, p=0.1, objective=Discounted(offers=offers, discount=0.99), belief=PRIOR, rows=1500)
    assert result.stops.upper < 1e-9
    assert result.accepted.lower == np.inf
    greedy = PolicyPerCost({cost: Greedy(cost) for cost in offers.cost})
    stopped = characteristics(
        greedy, p=0.1, objective=Discounted(offers=offers, discount=0.99), belief=Belief(10, 9), rows=300
    )
    assert stopped.stops.lower > 1 - 1e-9


def test_nothing_is_left_where_everyone_stops_at_once() -> None:
    offers = Offers([1], [0.95])
    policy = Discounted(offers=offers, discount=0.5).solve(Belief(4, 1))
    walk, made = walk_offers(policy, 4.0, 1.0, offers, 0.5, 3, None, 0.95)
    assert (walk.left.size, walk.left_weight.size, made.tolist()) == (0, 0, [0.0])
    assert walk.stopped.tolist() == [1.0, 0.0, 0.0]
