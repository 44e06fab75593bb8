"""Draw the figures of docs/simulate.md: `python docs/make_simulate_figures.py` (about two minutes)."""

from __future__ import annotations

from pathlib import Path

import lenience as ln

FIGURES = Path(__file__).parent / "figures"
FLAT = ln.Belief(2, 1)
COST = 0.8


def main() -> None:
    """Write the figures next to this file."""
    FIGURES.mkdir(exist_ok=True)
    policies: dict[str, ln.Policy] = {
        "optimum": ln.Discounted(COST, 0.99).solve(FLAT),
        "bayes-ucb": ln.policies.BayesUCB(COST),
        "kl-ucb": ln.policies.KLUCB(COST),
        "thompson": ln.policies.Thompson(COST),
        "greedy": ln.policies.Greedy(COST),
        "epsilon-greedy": ln.policies.EpsilonGreedy(COST, 0.05),
    }
    world = ln.simulation.FromPrior(FLAT)
    found = ln.compare_policies(policies, world, cost=COST, discount=0.99, horizon=1500, replications=5000, seed=1)
    ln.plot.plot_comparison(found, path=FIGURES / "simulate-comparison.png")
    ln.plot.plot_regret_over_time(found, FIGURES / "simulate-regret.png")
    some = {name: policies[name] for name in ("optimum", "bayes-ucb", "thompson", "epsilon-greedy")}
    fixed = ln.compare_policies(
        some,
        ln.simulation.Bernoulli(0.9),
        cost=COST,
        discount=0.99,
        horizon=400,
        replications=2000,
        prior=FLAT,
        optimum=False,
    )
    curves = {name: ln.acceptance_by_arrival(policy, 400, 0.9, FLAT) for name, policy in some.items()}
    ln.plot.plot_acceptance_by_arrival(curves, fixed, FIGURES / "simulate-sequence.png")
    rows = ln.analysis.drift_study(0.5, 0.999, FLAT, horizon=5000, replications=500, workers=2)
    ln.plot.plot_drift(rows, FIGURES / "simulate-drift.png")


if __name__ == "__main__":
    main()
