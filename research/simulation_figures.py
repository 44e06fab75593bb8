"""The figures of docs/simulate.md, in about two minutes.

python -m research simulation-figures [comparison] [sequence] [drift] [--folder FOLDER] [--replications COUNT]
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import lenience as ln

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
FLAT = ln.Belief(2, 1)
COST = 0.8


POLICIES: dict[str, ln.Policy] = {
    "bayes-ucb": ln.policies.BayesUCB(COST),
    "kl-ucb": ln.policies.KLUCB(COST),
    "thompson": ln.policies.Thompson(COST),
    "greedy": ln.policies.Greedy(COST),
    "epsilon-greedy": ln.policies.EpsilonGreedy(COST, 0.05),
}


def comparison(folder: Path, count: int) -> None:
    """The policies side by side in the prior's world, and their regret along time."""
    policies = {"optimum": ln.Discounted(COST, 0.99).solve(FLAT), **POLICIES}
    world = ln.simulation.FromPrior(FLAT)
    result = ln.compare_policies(policies, world, cost=COST, discount=0.99, horizon=1500, replications=count, seed=1)
    ln.plot.plot_comparison(result, path=folder / "simulate-comparison.png")
    ln.plot.plot_regret_over_time(result, folder / "simulate-regret.png")


def sequence(folder: Path, count: int) -> None:
    """The acceptance of the i-th arrival, exact and simulated."""
    some: dict[str, ln.Policy] = {"optimum": ln.Discounted(COST, 0.99).solve(FLAT)}
    some |= {name: POLICIES[name] for name in ("bayes-ucb", "thompson", "epsilon-greedy")}
    runs = 2 * count // 5
    fixed = ln.compare_policies(
        some,
        ln.simulation.Bernoulli(0.9),
        cost=COST,
        discount=0.99,
        horizon=400,
        replications=runs,
        prior=FLAT,
        optimum=False,
    )
    curves = {name: ln.acceptance_by_arrival(policy, 400, 0.9, FLAT) for name, policy in some.items()}
    ln.plot.plot_acceptance_by_arrival(curves, fixed, folder / "simulate-sequence.png")


def drift(folder: Path, count: int) -> None:
    """What a policy that forgets earns where the success probability changes."""
    rows = ln.analysis.drift_study(0.5, 0.999, FLAT, horizon=5000, replications=count // 10, workers=2)
    ln.plot.plot_drift(rows, folder / "simulate-drift.png")


PARTS = {"comparison": comparison, "sequence": sequence, "drift": drift}


def main(arguments: Sequence[str] = ()) -> None:
    """Write the figures into a folder."""
    parser = ArgumentParser("python -m research simulation-figures", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is given")
    parser.add_argument("--folder", type=Path, default=FIGURES, help="where to write the figures")
    parser.add_argument("--replications", type=int, default=5000, help="of the first comparison")
    given = parser.parse_args(arguments)
    for name in given.parts or PARTS:
        if name not in PARTS:
            parser.error(f"PART must be one of {', '.join(PARTS)}, not {name!r}")
        PARTS[name](given.folder, given.replications)
