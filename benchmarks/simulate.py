"""Decisions simulated per second on one core, beside MABWiser and bayesianbandits on the same work.

The work: Thompson sampling on one population (p = 0.85, c = 0.8, from Beta(1, 1)), one arrival after the other; only
the outcomes of the accepted are learnt. The others are given as many arrivals as they can do in about a second; a
rate does not depend on it. Each is written as its documentation has it. MABWiser's simulator learns from logged
decisions instead of its own, which spares it the draws of outcomes; its bare bandit does the very same work as ours.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable

import numpy as np

import lenience as ln
from benchmarks.measure import compare, peak_memory, report, seconds
from lenience.simulation import engine_lattice as lattice

P, COST = 0.85, 0.8
ARRIVALS, REPLICATIONS = 1000, 50_000


def ours(policy: ln.Policy, replications: int = REPLICATIONS) -> int:
    """All of it: the policy's table is made anew, and metrics, checkpoints and keys are part of the work."""
    lattice._window_once.cache_clear()
    ln.compare_policies(
        {"it": policy},
        ln.simulation.Bernoulli(P),
        cost=COST,
        horizon=ARRIVALS,
        replications=replications,
        optimum=False,
        workers=1,
    )
    return ARRIVALS * replications


def mabwiser_simulator(arrivals: int = 2000) -> int:
    """MABWiser's simulator, learning after every arrival."""
    from mabwiser.mab import MAB, LearningPolicy
    from mabwiser.simulator import Simulator

    rng = np.random.default_rng(0)
    rewards = (rng.random(2 * arrivals) < P).astype(int)
    decisions = rng.choice(["accept", "reject"], 2 * arrivals)
    bandit = MAB(["accept", "reject"], LearningPolicy.ThompsonSampling())
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulator = Simulator(
            [("thompson", bandit)], decisions, rewards, test_size=0.5, is_ordered=True, batch_size=1, is_quick=True
        )
        simulator.run()
    logging.disable(logging.NOTSET)
    return arrivals


def mabwiser_bandit(arrivals: int = 5000) -> int:
    """MABWiser's bandit: draw from the posterior, compare with the cost, learn if accepted."""
    from mabwiser.mab import MAB, LearningPolicy

    rng = np.random.default_rng(0)
    bandit = MAB(["accept", "reject"], LearningPolicy.ThompsonSampling(), seed=1)
    bandit.fit(["accept", "reject"], [1, 0])
    for _ in range(arrivals):
        if bandit.predict_expectations()["accept"] > COST:
            bandit.partial_fit(["accept"], [int(rng.random() < P)])
    return arrivals


def bayesianbandits_agent(arrivals: int = 2000) -> int:
    """bayesianbandits' agent with a beta-Bernoulli arm and an arm that is worth nothing."""
    from bayesianbandits import Agent, Arm, DirichletClassifier, ThompsonSampling

    rng = np.random.default_rng(0)
    accept = Arm(
        "accept",
        reward_function=lambda chance: chance[..., 1] - COST,
        learner=DirichletClassifier({0: 1.0, 1: 1.0}, random_state=1),
    )
    reject = Arm(
        "reject",
        reward_function=lambda chance: 0.0 * chance[..., 1],
        learner=DirichletClassifier({0: 1.0, 1: 1.0}, random_state=2),
    )
    agent = Agent([accept, reject], ThompsonSampling(), random_seed=0)
    for _ in range(arrivals):
        (choice,) = agent.pull()
        if choice == "accept":
            agent.update(np.array([int(rng.random() < P)]))
    return arrivals


def rate(work: Callable[[], int], repeats: int = 3) -> float:
    """Decisions per second, the best of several runs after one that compiles."""
    work()
    best = 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        decisions = work()
        best = max(best, decisions / (time.perf_counter() - start))
    return best


def main() -> None:
    """Print both tables."""
    thompson = rate(lambda: ours(ln.policies.Thompson(COST)))
    others = {
        "MABWiser, simulator": rate(mabwiser_simulator),
        "MABWiser, bandit": rate(mabwiser_bandit),
        "bayesianbandits, agent": rate(bayesianbandits_agent),
    }
    for name, found in others.items():
        compare("simulated decisions a second", f"{thompson:,.0f}", name, thompson / found)
    rows = [["lenience, Thompson sampling", f"{thompson:,.0f}", ""]]
    rows += [[name, f"{found:,.0f}", f"{thompson / found:,.0f} ×"] for name, found in others.items()]
    for name, policy in (
        ("epsilon-greedy", ln.policies.EpsilonGreedy(COST, 0.1)),
        ("always accept", ln.policies.Constant(1.0)),
    ):
        rows.append([f"lenience, {name}", f"{rate(lambda policy=policy: ours(policy)):,.0f}", ""])  # type: ignore[misc]
    report(
        f"Decisions simulated per second, one core ({REPLICATIONS:,} × {ARRIVALS:,} arrivals here)",
        ["", "decisions/s", "lenience (Thompson) is faster by"],
        rows,
    )
    rows = []
    for horizon in (10_000, 100_000, 1_000_000):
        code = (
            "import lenience as ln\n"
            "world = ln.simulation.FromPrior(ln.Belief(2, 1))\n"
            "ln.compare_policies([ln.policies.EpsilonGreedy(0.8, 0.1)], world, cost=0.8, "
            f"horizon={horizon}, replications=1000, optimum=False)"
        )
        start = time.perf_counter()
        memory = peak_memory(code)
        rows.append([f"{horizon:,} × 1,000", f"{memory:,.0f} MB", seconds(time.perf_counter() - start)])
    report(
        "Memory as the horizon grows (epsilon-greedy, p from Beta(1, 1); the whole process)",
        ["arrivals × replications", "peak", "time"],
        rows,
    )


if __name__ == "__main__":
    main()
