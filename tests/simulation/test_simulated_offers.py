"""Simulations with offers: the engines agree with each other and with exact values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lenience as ln
from lenience import (
    Belief,
    Delayed,
    Discounted,
    FiniteHorizon,
    Offer,
    Offers,
    characteristics,
    compare_policies,
    evaluate,
)
from lenience.core.counter_rng import replication_keys
from lenience.policies import Constant, EpsilonGreedy, Greedy, GreedyOffers, PolicyPerCost
from lenience.simulation import Bernoulli, FromPrior, LabelDelay, LateLabels, Mixture, RandomWalk, engine_offers
from lenience.simulation.engine_offers import run_offer_lattice, run_offer_steps
from rejections import rejected

PRIOR = Belief(2, 1)
NINE = Offers(amount=[a for a in (0.2, 1, 4) for _ in range(3)], cost=[0.7, 0.8, 0.9] * 3, share=[1, 2, 3] * 3)
STARTER = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])
DRAWN = Offers.draw([STARTER, Offer(2, 0.6), Offers.menu([1, 3], [0.3, 0.9])], share=[0.5, 0.2, 0.3])
CHECKS = np.array([1, 10, 60])


def rule(name: str, offers: Offers) -> Any:
    if name == "optimal":
        return Discounted(offers=offers, discount=0.97).solve(PRIOR)
    if name == "each cost":
        return PolicyPerCost({cost: Discounted(cost, 0.97).solve(PRIOR) for cost in set(offers.cost)})
    return {"greedy": GreedyOffers(), "random": EpsilonGreedy(0.7, 0.3), "all": Constant(1.0)}[name]


@pytest.mark.parametrize("name", ["optimal", "each cost", "greedy", "random", "all"])
@pytest.mark.parametrize("offers", [NINE, DRAWN], ids=["nine", "drawn"])
@pytest.mark.parametrize("entries", [engine_offers.MOST_ENTRIES, 50])
def test_the_engines_agree(name: str, offers: Offers, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the compiled engine changes windows every few rows."""
    monkeypatch.setattr(engine_offers, "MOST_ENTRIES", entries)
    keys = replication_keys(3, 0, 200)
    world = FromPrior(PRIOR)
    policy = rule(name, offers)
    fast = run_offer_lattice(policy, keys, world.fixed_rates(keys), PRIOR, offers, 0.97, 60, CHECKS)
    slow = run_offer_steps([policy], world.open(keys, 60), [PRIOR], offers, 0.97, 60, CHECKS)
    for field, one, other in zip(fast._fields, fast, slow, strict=True):
        if field in ("stopped", "shut_out"):
            # One engine notices a stop at once, the other before the last arrival; both are final.
            assert np.all(one >= other)
            continue
        assert np.allclose(one, other, atol=1e-9), field


@pytest.mark.parametrize("name", ["optimal", "each cost", "greedy", "random", "all"])
@pytest.mark.parametrize("offers", [NINE, DRAWN], ids=["nine", "drawn"])
def test_simulated_means_are_the_exact_values(name: str, offers: Offers) -> None:
    objective = FiniteHorizon(offers=offers, horizon=60, discount=0.97)
    policy = rule(name, offers)
    simulation = compare_policies(
        {"it": policy}, FromPrior(PRIOR), offers=offers, horizon=60, discount=0.97, replications=6000, seed=8,
        optimum=False, workers=1,
    )  # fmt: skip
    exact = evaluate(policy, objective, PRIOR).midpoint
    for metric in ("expected", "discounted"):
        values = simulation.values("it", metric)
        error = float(values.std(ddof=1)) / math.sqrt(values.size)
        assert abs(float(values.mean()) - exact) <= 4 * error + 1e-12, metric
    walked = characteristics(policy, None, objective, PRIOR)
    accepted = simulation.values("it", "accepted")
    assert abs(accepted.mean() - walked.accepted.midpoint) <= 4 * accepted.std(ddof=1) / math.sqrt(6000) + 1e-12
    # Averaging over the menus leaves the mean and removes noise.
    assert simulation.values("it", "expected").std() <= simulation.values("it", "discounted").std() + 1e-12


@pytest.mark.parametrize("offers", [NINE, STARTER, DRAWN], ids=["nine", "starter", "drawn"])
def test_the_optimum_runs_along_and_is_best(offers: Offers) -> None:
    simulation = compare_policies(
        dict[str, Any](greedy=GreedyOffers(), all=Constant(1.0)), FromPrior(PRIOR), offers=offers, horizon=80,
        replications=3000, seed=2, workers=1,
    )  # fmt: skip
    optimum = FiniteHorizon(offers=offers, horizon=80).solve(PRIOR)
    values = simulation.values("optimum", "expected")
    assert abs(values.mean() - optimum.value(PRIOR).midpoint) <= 4 * values.std(ddof=1) / math.sqrt(values.size)
    for name in ("greedy", "all"):
        assert simulation.behind(name).lower > 0
    assert simulation.offers is offers
    # The clairvoyant earns E max(a(p − c), 0) at each arrival.
    known = np.mean([offers.profit_if_known(float(p)) for p in simulation.values("optimum", "p")])
    assert simulation.values("optimum", "clairvoyant").mean() == pytest.approx(80 * known)
    assert np.all(simulation.values("optimum", "regret") > -1e-9)
    walked = characteristics(optimum, objective=FiniteHorizon(offers=offers, horizon=80))
    accepted = simulation.values("optimum", "accepted")
    assert abs(accepted.mean() - walked.accepted.midpoint) <= 4 * accepted.std(ddof=1) / math.sqrt(3000)


def test_stopping_agrees_with_characteristics() -> None:
    policy = Discounted(offers=NINE, discount=0.95).solve(PRIOR)
    simulation = compare_policies(
        {"it": policy}, Bernoulli(0.75), prior=PRIOR, offers=NINE, horizon=3000, discount=0.95, replications=4000,
        seed=5, optimum=False, workers=1,
    )  # fmt: skip
    exact = characteristics(policy, 0.75, rows=800)
    for metric, bounds in (("stopped", exact.stops), ("shut_out", exact.shut_out), ("discounted", exact.reward)):
        values = simulation.values("it", metric)
        error = 4 * float(values.std(ddof=1)) / math.sqrt(values.size)
        assert bounds is not None
        assert bounds.lower - error <= values.mean() <= bounds.upper + error, metric


def test_a_single_offer_is_one_break_even() -> None:
    settings: dict[str, Any] = {"horizon": 100, "discount": 0.98, "replications": 300, "seed": 4, "workers": 1}
    one = compare_policies({"greedy": Greedy(0.6)}, FromPrior(Belief(4, 3)), cost=0.6, **settings)
    ten = compare_policies({"greedy": GreedyOffers()}, FromPrior(Belief(4, 3)), offers=Offers([10], [0.6]), **settings)
    for name in ("greedy", "optimum"):
        for metric, factor in (("accepted", 1), ("reward", 10), ("discounted", 10), ("learning_cost", 10)):
            assert np.allclose(ten.values(name, metric), factor * one.values(name, metric)), (name, metric)


def test_late_labels_with_exposure_limits() -> None:
    """Limits by offer earn what their solver says, and cost less to learn than ignoring what is pending."""
    offers = Offers([0.2, 4], [0.6, 0.7])
    problem = Delayed(offers=offers, arrivals=1, discount_rate=1 / 0.95 - 1, label_delay=8)
    limits = problem.solve(PRIOR, tolerance=1e-3)
    blind = Discounted(offers=offers, discount=0.95).solve(PRIOR)
    world = LateLabels(FromPrior(PRIOR), LabelDelay("exponential", mean=8))
    simulation = compare_policies(
        {"limits": limits, "blind": blind}, world, offers=offers, horizon=80, discount=0.95, replications=600,
        seed=1, optimum=False, workers=1,
    )  # fmt: skip
    # The solver counts from before the first arrival. Its arrivals come at random times, here they are evenly spaced.
    values = 0.95 * simulation.values("limits", "expected")
    assert abs(values.mean() - limits.value(PRIOR).midpoint) <= 4 * values.std(ddof=1) / math.sqrt(600)
    assert simulation.compare("blind", "limits", "learning_cost").lower > 0.1
    again = compare_policies(blind, world, offers=offers, horizon=40, discount=0.95, replications=20, workers=1)
    assert "labels come late" in again.note


def test_segments_and_drift() -> None:
    world = Mixture(shares=[0.7, 0.3], prior=[PRIOR, Belief(6, 5)])
    simulation = compare_policies(
        dict[str, Any](greedy=GreedyOffers(), pair=[GreedyOffers(), Constant(0.0)]), world, offers=DRAWN, horizon=50,
        replications=400, seed=3, workers=1,
    )  # fmt: skip
    assert simulation.behind("greedy").lower > 0
    assert simulation.values("pair", "accepted").mean() < simulation.values("greedy", "accepted").mean()
    drifting = compare_policies(
        GreedyOffers(), RandomWalk(start=0.6, step=0.1), offers=NINE, horizon=30, replications=30, workers=1
    )
    assert "p drifts" in drifting.note


def test_results_do_not_depend_on_workers() -> None:
    settings: dict[str, Any] = {"offers": NINE, "horizon": 40, "replications": 1500, "seed": 6}
    one = compare_policies(GreedyOffers(), FromPrior(PRIOR), workers=1, **settings)
    two = compare_policies(GreedyOffers(), FromPrior(PRIOR), workers=2, **settings)
    for name in one.policies:
        for first, second in zip(one.runs[name], two.runs[name], strict=True):
            assert np.array_equal(first, second)


def test_a_horizon_without_end_uses_the_discounted_optimum() -> None:
    simulation = compare_policies([], FromPrior(PRIOR), offers=STARTER, horizon=300, discount=0.9, replications=50)
    exact = Discounted(offers=STARTER, discount=0.9).solve(PRIOR).value(PRIOR).midpoint
    values = simulation.values("optimum", "expected")
    assert abs(values.mean() - exact) <= 4 * values.std(ddof=1) / math.sqrt(50)


def test_bad_input() -> None:
    with rejected("cost", "missing"):
        compare_policies(GreedyOffers(), FromPrior(PRIOR), horizon=10)
    with rejected("cost", "conflicting_fields"):
        compare_policies(GreedyOffers(), FromPrior(PRIOR), cost=0.5, offers=NINE, horizon=10)
    with rejected("offers", "invalid_value"):
        compare_policies(GreedyOffers(), FromPrior(PRIOR), offers=3, horizon=10)  # type: ignore[arg-type]
    with rejected("policies['it']", "invalid_value"):
        compare_policies({"it": GreedyOffers()}, FromPrior(PRIOR), cost=0.5, horizon=10)
    assert ln.policies.GreedyOffers is GreedyOffers
