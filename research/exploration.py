"""When exploring pays: what the policy earns beyond the same belief without exploring, by horizon and history.

The history was selected by an old scorecard (:mod:`research.selected_history`), and only its first rows are known. The
arrivals are drawn from the rest with replacement, so that there can be many of them. Nothing is discounted: the
objective is the sum over a known number of arrivals. The truth is either the data's own, or drawn from the belief that
the history leaves, in which case the belief is right by construction. "Seeing everyone" learns the outcomes of the
rejected as well, which no policy can: it shows how much there is to learn at all.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.policies.features.baseline_rules import GREEDY, LENIENT
from lenience.policies.features.policy import FeaturePolicy
from lenience.simulation.replay_engine import run_online
from lenience.simulation.replay_result import half_width
from lenience.solvers.stopping.threshold_table import threshold_table
from research.selected_history import draw_history

CELLS = (("arrests", 0.61), ("credit data", 0.85), ("hmda", 0.92))
HISTORIES, HORIZONS = (60, 1000), (300, 1000, 3000)
TRUTHS = ("the data", "drawn from the belief")
Rows = NDArray[np.float64]


def earned(name: str, cost: float, history: int, horizon: int, drawn: bool, seed: int) -> Rows:
    """Return the reward of the policy, of the same belief without exploring, and of seeing everyone."""
    world = draw_history(name, seed)
    rng = np.random.default_rng(7000 + seed)
    objective = FiniteHorizon(cost, horizon)
    policy = FeaturePolicy(objective=objective, random_state=seed)
    policy.fit(world.past[:history], world.outcomes[:history])
    model, first = policy.model_, len(policy.reference_)
    pick = rng.integers(len(world.y), size=horizon)
    design = model.design(np.vstack((policy.reference_, world.X[pick])))
    rates = world.y[pick]
    labels = rates
    if drawn:
        which = rng.choice(len(model.weights_), p=model.weights_)
        coefficients = rng.multivariate_normal(model.means_[which], model.covariances_[which], method="eigh")
        rates = expit(design[first:] @ coefficients)
        labels = (rng.random(horizon) < rates).astype(np.float64)
    gammas = np.array([objective.discount_at(t) for t in range(horizon)])
    table = threshold_table(cost, 1.0 - 1.0 / horizon)
    rewards = np.empty(3)
    for i, (rule, everyone) in enumerate(((LENIENT, False), (GREEDY, False), (GREEDY, True))):
        accepted = np.zeros(horizon, dtype=np.bool_)
        run_online(
            rule, 1.0 if rule == LENIENT else 0.0, design, np.concatenate((np.zeros(first), labels)),
            np.arange(first, len(design)), np.empty(0, dtype=np.int64), np.full(horizon, 0.5), np.arange(first),
            model.weights_, model.means_, model.covariances_, cost, gammas, *table[1:], True, everyone, accepted,
        )  # fmt: skip
        rewards[i] = (rates - cost)[accepted].sum()
    return rewards


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = ArgumentParser("python -m research exploration", description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--truth", choices=TRUTHS, help="only this truth")
    given = parser.parse_args(arguments)
    for truth in TRUTHS if given.truth is None else (given.truth,):
        print(f"\n### Truth: {truth}\n")
        print("| data | break-even | rows of history | arrivals | without exploring | exploring | seeing everyone |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for name, cost in CELLS:
            for history in HISTORIES:
                for horizon in HORIZONS:
                    rewards = np.array([
                        earned(name, cost, history, horizon, truth != TRUTHS[0], seed) for seed in range(given.seeds)
                    ])  # fmt: skip
                    leads = [rewards[:, i] - rewards[:, 1] for i in (0, 2)]
                    texts = [f"{lead.mean():+.1f} ± {half_width(lead):.1f}" for lead in leads]
                    print(
                        f"| {name} | {cost} | {history:,} | {horizon:,} | {rewards[:, 1].mean():.1f} | "
                        + " | ".join(texts) + " |", flush=True,
                    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
