"""How much any exploring could earn after a selected history, in the worlds of the study of three starts.

    python -m research exploration-bound [--seeds 10] [--truth "the data"] [--unsealed]

All have the same belief at the start (:mod:`research.starts`, start "selected") and accept above the break-even. They
differ in the outcomes that they are given, which no policy can have for nothing:

- *everyone*: also the outcomes of those whom they reject, from the first arrival on. Exploring can do no more than
  reveal these outcomes, and it pays for each. So this is what exploring could earn at most with this model.
- *first 100*: everyone's outcomes among the first 100 arrivals only.
- *bought*: the same, but paid for: everyone among the first 100 is accepted.
- *history too*: everyone's outcomes, and those of the people whom the old scorecard rejected in the history.
- *hindsight*: the model learns the outcomes of the history and of all arrivals before it decides the first of them. No
  policy with this model can know more. It has seen the outcomes that it is judged by, so it is too good.

Rewards are discounted by γ = 0.999. The truth is the data's own, or drawn from the belief at the start. In the second
case the belief is right by construction, and what is counted is the expected reward.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lenience.policies.features.baseline_rules import GREEDY, LENIENT
from lenience.simulation.replay_result import half_width
from research.datasets import DATASETS
from research.starts import DISCOUNT, KNOWN, SEALED, Beliefs, start_world

PAGE = Path(__file__).parent / "exploration-bound.md"
TRUTHS = ("the data", "drawn from the belief")
FIRST = 100
NOTHING = "no exploring"
POLICIES = ("exploring", "everyone", f"first {FIRST}", "bought", "history too", "hindsight")
Rows = NDArray[np.float64]


def earned(name: str, cost: float, truth: str, seed: int) -> dict[str, float]:
    """Return what each earned in one world."""
    world = start_world(name, "selected", seed)
    beliefs = Beliefs(world, cost, seed)
    model, rates = beliefs.policy.model_, world.y
    if truth != TRUTHS[0]:
        rng = np.random.default_rng(8000 + seed)
        which = rng.choice(len(model.weights_), p=model.weights_)
        drawn = rng.multivariate_normal(model.means_[which], model.covariances_[which], method="eigh")
        rates, past = expit(model.design(world.X) @ drawn), expit(model.design(world.past) @ drawn)
        world = world._replace(
            y=(rng.random(len(rates)) < rates).astype(np.float64),
            truth=np.where(np.isnan(world.outcomes), rng.random(len(past)) < past, world.truth).astype(np.float64),
        )
        beliefs.world = world
    worth = DISCOUNT ** np.arange(len(rates)) * (rates - cost)
    everyone = beliefs.accepted(GREEDY, everyone=True)
    result = {
        NOTHING: worth[beliefs.accepted(GREEDY)].sum(),
        "exploring": worth[beliefs.accepted(LENIENT)].sum(),
        "everyone": worth[everyone].sum(),
    }
    rejected = np.isnan(world.outcomes)
    state = [part.copy() for part in (model.weights_, model.means_, model.covariances_)]

    def learn_more(X: Rows, y: Rows) -> None:
        """Let the model learn outcomes beyond those of the start."""
        model.belief_.weights, model.belief_.means, model.belief_.covariances = (part.copy() for part in state)
        model.belief_.learn(X, y, np.ones(len(y)))

    learn_more(world.X[:FIRST], world.y[:FIRST])
    later = worth[FIRST:][beliefs.accepted(GREEDY, first=FIRST)].sum()
    result[f"first {FIRST}"] = worth[:FIRST][everyone[:FIRST]].sum() + later
    result["bought"] = worth[:FIRST].sum() + later
    learn_more(world.past[rejected], world.truth[rejected])
    result["history too"] = worth[beliefs.accepted(GREEDY, everyone=True)].sum()
    learn_more(np.vstack((world.past[rejected], world.X)), np.concatenate((world.truth[rejected], world.y)))
    result["hindsight"] = worth[model.beliefs(world.X)[1] > cost].sum()
    return {policy: float(reward) for policy, reward in result.items()}


def table(runs: list[dict[str, Any]], truth: str) -> str:
    """Return the results for one truth as Markdown: rewards beyond those without exploring."""
    cells: dict[tuple[str, float], list[dict[str, float]]] = {}
    for run in runs:
        if run["truth"] == truth:
            cells.setdefault((run["data"], run["cost"]), []).append(run["earned"])
    if not cells:
        return ""
    count = sorted({len(cell) for cell in cells.values()})
    lines = [
        f"## Truth: {truth}\n",
        f"{len(cells)} cells with {'–'.join(map(str, sorted({count[0], count[-1]})))} runs each. Rewards beyond those "
        "without exploring, with the half-width of their 95% interval: of a cell by the spread over runs, of the sum "
        "by the spread over cells.\n",
        f"| data | break-even | {NOTHING} | {' | '.join(POLICIES)} |",
        "|---|---:|---:|" + "---:|" * len(POLICIES),
    ]
    means: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    total = 0.0
    for (name, cost), cell in cells.items():
        nothing = np.array([run[NOTHING] for run in cell])
        total += nothing.mean()
        texts = []
        for policy in POLICIES:
            more = np.array([run[policy] for run in cell]) - nothing
            means[policy].append(float(more.mean()))
            texts.append(f"{more.mean():+.1f} ± {half_width(more):.1f}")
        mark = " (sealed)" if name in SEALED else ""
        lines.append(f"| {name}{mark} | {cost} | {nothing.mean():.1f} | {' | '.join(texts)} |")
    sums = [f"{sum(each):+.1f} ± {len(each) * half_width(np.array(each)):.1f}" for each in means.values()]
    lines.append(f"| **sum** | | {total:,.1f} | {' | '.join(sums)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] = ()) -> None:
    """Run what is missing and write the tables."""
    parser = ArgumentParser("python -m research exploration-bound", description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=PAGE, help="the Markdown file to write")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--truth", choices=TRUTHS, help="only this truth")
    parser.add_argument("--unsealed", action="store_true", help="only the data sets that are not sealed")
    given = parser.parse_args(arguments)
    store = given.output.with_suffix(".json")
    runs = json.loads(store.read_text("utf-8")) if store.is_file() else []
    done = {(run["truth"], run["seed"], run["data"], run["cost"]) for run in runs}
    names = KNOWN if given.unsealed else (*SEALED, *KNOWN)
    sets = [one for name in names for one in DATASETS if one.name == name and one.available]
    for truth in TRUTHS if given.truth is None else (given.truth,):
        for seed in range(given.seeds):
            for one in sets:
                for cost in one.costs:
                    if (truth, seed, one.name, cost) in done:
                        continue
                    rewards = earned(one.name, cost, truth, seed)
                    runs.append({"truth": truth, "seed": seed, "data": one.name, "cost": cost, "earned": rewards})
            store.write_text(json.dumps(runs), "utf-8")
            print(truth, seed, file=sys.stderr, flush=True)
    heading = "# How much exploring could earn\n\nWritten by `python -m research exploration-bound`. "
    text = (__doc__ or "").replace(":mod:", "").split("\n", 4)
    about = text[0] + "\n\n" + text[4]
    given.output.write_text(heading + about + "\n" + "\n".join(table(runs, truth) for truth in TRUTHS), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
