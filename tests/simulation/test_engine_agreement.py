"""Simulated values agree with the exact ones, and nothing beats the optimum in its own setting."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lenience as ln

PRIOR = ln.Belief(5, 3.5)
COST, DISCOUNT, HORIZON = 0.7, 0.95, 420  # γ^H = 4e-10: the rest of the sum does not show
SURE = 0.9999  # of an interval: with some sixty of them, one in two hundred runs of another seed would fail by bad luck

POLICIES: dict[str, ln.Policy] = {
    "always accept": ln.policies.Constant(1.0),
    "constant": ln.policies.Constant(0.4),
    "greedy": ln.policies.Greedy(COST),
    "epsilon-greedy": ln.policies.EpsilonGreedy(COST, 0.1),
    "decaying epsilon": ln.policies.DecayingEpsilon(COST, 2.0),
    "persistent": ln.policies.Persistent(COST),
    "explore then exploit": ln.policies.ExploreThenExploit(COST, 8, PRIOR),
    "thompson": ln.policies.Thompson(COST),
    "bayes-ucb": ln.policies.BayesUCB(COST),
    "bayes-ucb, growing": ln.policies.BayesUCB(COST, None),
    "kl-ucb": ln.policies.KLUCB(COST),
    "logistic": ln.policies.Logistic(COST),
    "semi-logistic": ln.policies.SemiLogistic(COST),
    "gittins": ln.policies.Gittins(COST, DISCOUNT, 1e-6),
}


@pytest.fixture(scope="module")
def found() -> ln.simulation.Simulation:
    policies = {name: policy for name, policy in POLICIES.items() if name != "gittins"}
    return ln.compare_policies(
        {**policies, "optimal": ln.Discounted(COST, DISCOUNT).solve(PRIOR)},
        ln.simulation.FromPrior(PRIOR),
        cost=COST,
        discount=DISCOUNT,
        horizon=HORIZON,
        replications=6000,
        seed=11,
    )


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "gittins"])
def test_simulated_values_agree_with_exact_ones(found: ln.simulation.Simulation, name: str) -> None:
    exact = ln.evaluate(POLICIES[name], ln.Discounted(COST, DISCOUNT), PRIOR, 1e-6).midpoint
    for metric in ("discounted", "expected"):
        interval = found.estimate(name, metric, SURE)
        assert exact in interval, metric
        assert interval.upper - interval.lower < 1.0  # narrow enough to mean something


def test_the_optimum_agrees_with_its_certified_value(found: ln.simulation.Simulation) -> None:
    exact = ln.Discounted(COST, DISCOUNT).enclose(PRIOR, 1e-9)[0].midpoint
    assert exact in found.estimate("optimal", "expected", SURE)
    assert exact in found.estimate("optimum", "expected", SURE)


def test_none_beats_the_optimum(found: ln.simulation.Simulation) -> None:
    clearly_behind = 0
    for name in found.policies:
        lead = found.compare(name, "optimum", confidence=SURE)
        assert lead.lower <= 0.0, name
        clearly_behind += lead.upper < 0.0
    assert clearly_behind >= 8  # and the comparison is sharp enough to tell most of them apart


def test_gittins_decides_as_the_optimum_does() -> None:
    both = {"gittins": POLICIES["gittins"], "optimal": ln.Discounted(COST, DISCOUNT).solve(PRIOR)}
    run = ln.compare_policies(
        both, ln.simulation.FromPrior(PRIOR), cost=COST, discount=DISCOUNT, horizon=120, replications=300
    )
    assert np.array_equal(run.values("gittins", "accepted"), run.values("optimal", "accepted"))
    assert np.array_equal(run.values("gittins", "discounted"), run.values("optimal", "discounted"))


def test_over_a_horizon_the_finite_optimum_is_beaten_by_none() -> None:
    policies = {name: POLICIES[name] for name in ("greedy", "thompson", "kl-ucb", "bayes-ucb", "explore then exploit")}
    run = ln.compare_policies(
        policies, ln.simulation.FromPrior(PRIOR), cost=COST, horizon=150, replications=4000, seed=3
    )
    problem = ln.FiniteHorizon(COST, 150)
    assert problem.enclose(PRIOR, 1e-9)[0].midpoint in run.estimate("optimum", "expected", SURE)
    for name in policies:
        assert run.compare(name, "optimum", confidence=SURE).lower <= 0.0
    for name in ("greedy", "thompson", "explore then exploit"):
        assert ln.evaluate(policies[name], problem, PRIOR).midpoint in run.estimate(name, "reward", SURE)


@pytest.mark.parametrize("p", [0.6, 0.8])
def test_operating_characteristics_agree_at_a_true_p(p: float) -> None:
    policy = ln.Discounted(COST, DISCOUNT).solve(PRIOR)
    run = ln.compare_policies(
        {"it": policy}, ln.simulation.Bernoulli(p), cost=COST, discount=DISCOUNT, horizon=2000, replications=4000,
        prior=PRIOR, optimum=False, seed=8,
    )  # fmt: skip
    exact = ln.characteristics(policy, p=p)
    assert exact.reward.midpoint in run.estimate("it", "discounted", SURE)
    if p < COST:
        assert exact.accepted.midpoint in run.estimate("it", "accepted", SURE)
        assert run.estimate("it", "shut_out").mean == 0.0
    else:
        assert exact.shut_out is not None
        assert exact.shut_out.midpoint in run.estimate("it", "shut_out", SURE)


def test_segments_add_up_with_their_own_discount_factors() -> None:
    shares, prior, discount = (0.7, 0.3), ln.Belief(2, 1), 0.97
    run = ln.compare_policies(
        [],
        ln.simulation.Mixture(shares=shares, prior=prior),
        cost=0.5,
        discount=discount,
        horizon=700,
        replications=2000,
        seed=2,
    )
    exact = 0.0
    for q in shares:
        own = discount * q / (1 - discount + discount * q)
        exact += q / (1 - discount + discount * q) * ln.Discounted(0.5, own).enclose(prior, 1e-9)[0].midpoint
    assert exact in run.estimate("optimum", "expected", SURE)


def test_paired_differences_are_sharper_than_separate_intervals(found: ln.simulation.Simulation) -> None:
    paired = found.compare("optimum", "bayes-ucb")
    alone = [found.estimate(name, "discounted") for name in ("optimum", "bayes-ucb")]
    apart = math.hypot(*(each.upper - each.lower for each in alone))
    assert paired.upper - paired.lower < 0.5 * apart
