"""Histories that an earlier rule selected: how wrong beliefs about the rejected are, and what policies earn.

A world. A scorecard (logistic regression) is fitted to a quarter of the rows, at most 1,000. Of the other rows half, at
most 2,000, are the history: those above the median of the scorecard were accepted and have an outcome. The rest, at
most 2,500, arrive one by one, each once, in random order.

*Calibration.* The rejected rows of the history are divided into five groups by the selection index. z is the difference
of a group's true success rate and its mean belief, in claimed standard errors (posterior draws of the group's mean, and
the chance of the outcomes themselves). A correct belief has a root mean square of 1.

*Reward.* Every policy starts from the history and learns from whom it accepts. Baselines: the same belief without
exploring, the model without bends and index (what the policy was before), LightGBM refitted as labels grow by a tenth,
greedily and with 5% of random acceptances, logistic regression refitted in the same way with 5%, Vowpal Wabbit's
SquareCB, the old scorecard, and accepting everybody.

The data sets of the part "sealed" were not looked at before the constants of the index were chosen.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.scaling import centre_and_scale
from lenience.models.selection import find_selection
from lenience.objectives.discounted import Discounted
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.baselines import GreedyRule
from lenience.policies.features.policy import FeaturePolicy
from lenience.simulation.replay_result import half_width
from research.datasets import DATASETS, Dataset, load

PAGE = Path(__file__).parent / "selected-history.md"
CARD_ROWS, HISTORY_ROWS, ARRIVALS = 1000, 2000, 2500
GROUPS, DRAWS = 5, 200
DISCOUNT = 0.999
OURS, BEFORE, GREEDY = "ours", "without bends and index", "same belief, greedy"
Rows = NDArray[np.float64]


class History(NamedTuple):
    """A world: past rows with the outcomes of the accepted, the truth about them, and those who arrive."""

    past: Rows
    outcomes: Rows  # missing for the rejected
    truth: Rows
    X: Rows
    y: Rows
    card: NDArray[np.bool_]  # whom of the arrivals the scorecard accepts


def draw_history(name: str, seed: int, history: int = HISTORY_ROWS, arrivals: int = ARRIVALS) -> History:
    """Return the world of a data set and a seed, with at most so many rows of history and arrivals."""
    from sklearn.linear_model import LogisticRegression

    table = load(name)
    order = np.random.default_rng(1000 + seed).permutation(len(table.y))
    rows = min(len(order) // 4, CARD_ROWS)
    card, rest = order[:rows], order[rows:]
    past, coming = np.split(rest, [min(len(rest) // 2, history)])
    coming = coming[:arrivals]
    scaled = standardised(table.X)
    score = LogisticRegression(C=0.3, max_iter=500).fit(scaled[card], table.y[card]).decision_function(scaled)
    cut = np.median(score[past])
    outcomes = np.where(score[past] > cut, table.y[past], np.nan)
    return History(
        table.X[past], outcomes, table.y[past], np.ascontiguousarray(table.X[coming]), table.y[coming],
        score[coming] > cut,
    )  # fmt: skip


def standardised(X: Rows) -> Rows:
    """Return features with mean 0 and variance 1, within ±6, missing values at 0."""
    centre, scale = centre_and_scale(X)
    return np.clip(np.nan_to_num((X - centre) / scale), -6.0, 6.0)


def z_scores(model: BayesianLogistic, X: Rows, y: Rows, key: Rows, seed: int) -> Rows:
    """Return z of each group of rows, divided by a key."""
    rng = np.random.default_rng(seed)
    which = rng.choice(len(model.weights_), size=DRAWS, p=model.weights_)
    design, rates = model.design(X), np.empty((DRAWS, len(X)))
    for k in np.unique(which):
        drawn = rng.multivariate_normal(model.means_[k], model.covariances_[k], size=int(np.sum(which == k)))
        rates[which == k] = expit(drawn @ design.T)
    z = []
    for group in np.array_split(np.argsort(key), GROUPS):
        mean = rates[:, group].mean(axis=1)
        p = mean.mean()
        z.append((y[group].mean() - p) / np.sqrt(mean.var() + p * (1.0 - p) / len(group)))
    return np.array(z)


def calibration(name: str, seeds: int) -> dict[str, float]:
    """Return root mean squares of z about the rejected, without and with the index, and the mean of z."""
    z: dict[str, list[Rows]] = {"without": [], "with": []}
    for seed in range(seeds):
        world = draw_history(name, seed)
        known = ~np.isnan(world.outcomes)
        index = find_selection(standardised(world.past), known)
        assert index is not None
        key = standardised(world.past) @ index.weights
        for kind, use in (("without", False), ("with", True)):
            model = BayesianLogistic(selection=use).centre_on(float(np.clip(world.truth.mean(), 0.05, 0.95)))
            model.past_choices(known).prepare(world.past).learn(world.past[known], world.truth[known])
            z[kind].append(z_scores(model, world.past[~known], world.truth[~known], key[~known], seed))
    values = {kind: np.array(scores) for kind, scores in z.items()}
    return {
        "without": float(np.sqrt((values["without"] ** 2).mean())), "without, mean": float(values["without"].mean()),
        "with": float(np.sqrt((values["with"] ** 2).mean())), "with, mean": float(values["with"].mean()),
    }  # fmt: skip


Runner = Callable[[History, float, int], NDArray[np.bool_]]


def with_policy(make: Callable[[Discounted], SelectivePolicy]) -> Runner:
    """Return a function that lets a policy of this package decide the arrivals of a world."""

    def run(world: History, cost: float, seed: int) -> NDArray[np.bool_]:
        policy = make(Discounted(cost, DISCOUNT)).fit(world.past, world.outcomes)
        accepted = np.zeros(len(world.y), dtype=np.bool_)
        for i in range(len(world.y)):
            row = world.X[i : i + 1]
            accepted[i] = policy.decide(row)[0]
            if accepted[i]:
                policy.observe(row, [True], [world.y[i]])
        return accepted

    return run


def refitted(make: Callable[[], Any], explore: float) -> Runner:
    """Return a function for a classifier that is refitted when its labels have grown by a tenth."""

    def run(world: History, cost: float, seed: int) -> NDArray[np.bool_]:
        chances = np.random.default_rng(seed).random(len(world.y))
        known = ~np.isnan(world.outcomes)
        rows, labels = list(world.past[known]), list(world.outcomes[known])
        accepted = np.zeros(len(world.y), dtype=np.bool_)
        fitted, rates = 0, np.empty(0)
        for i in range(len(world.y)):
            if len(labels) >= 1.1 * fitted:
                fitted = len(labels)
                rates = make().fit(np.array(rows), np.array(labels, dtype=np.int64)).predict_proba(world.X)[:, 1]
            accepted[i] = rates[i] > cost or chances[i] < explore
            if accepted[i]:
                rows.append(world.X[i])
                labels.append(world.y[i])
        return accepted

    return run


def square_cb(world: History, cost: float, seed: int) -> NDArray[np.bool_]:
    """Let Vowpal Wabbit's SquareCB decide, after it has seen the history."""
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace(f"--cb_explore 2 --squarecb --quiet --random_seed {seed + 1}")
    chances = np.random.default_rng(seed).random(len(world.y))
    known = ~np.isnan(world.outcomes)
    centre, scale = centre_and_scale(world.past)

    def text(row: Rows) -> str:
        z = np.clip(np.nan_to_num((row - centre) / scale), -6.0, 6.0)
        return " ".join(f"{j}:{value:.5f}" for j, value in enumerate(z))

    def learn(row: Rows, outcome: float, propensity: float) -> None:
        workspace.learn(f"1:{cost - outcome:.6f}:{max(propensity, 0.01):.6f} | {text(row)}")

    for row, outcome in zip(world.past[known], world.outcomes[known], strict=True):
        learn(row, float(outcome), 1.0)
    accepted = np.zeros(len(world.y), dtype=np.bool_)
    for i, row in enumerate(world.X):
        propensity = workspace.predict(f"| {text(row)}")[0]
        accepted[i] = chances[i] < propensity
        if accepted[i]:
            learn(row, float(world.y[i]), propensity)
        else:
            workspace.learn(f"2:0:{max(1.0 - propensity, 0.01):.6f} | {text(row)}")
    workspace.finish()
    return accepted


def runners() -> dict[str, Runner]:
    """Return every policy of the study by name."""
    from lightgbm import LGBMClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def trees() -> Any:
        return LGBMClassifier(n_estimators=60, num_leaves=8, learning_rate=0.08, verbose=-1, n_jobs=1)

    def regression() -> Any:
        return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=500))

    return {
        OURS: with_policy(lambda objective: FeaturePolicy(objective=objective)),
        GREEDY: with_policy(lambda objective: GreedyRule(BayesianLogistic(), objective, burn_in=0)),
        BEFORE: with_policy(
            lambda objective: FeaturePolicy(BayesianLogistic(selection=False, bent_variance=()), objective)
        ),
        "LightGBM, greedy": refitted(trees, 0.0),
        "LightGBM, 5% random": refitted(trees, 0.05),
        "logistic regression, 5% random": refitted(regression, 0.05),
        "SquareCB": square_cb,
        "old scorecard": lambda world, cost, seed: world.card,
        "accept everybody": lambda world, cost, seed: np.ones(len(world.y), dtype=np.bool_),
    }


def rewards(name: str, cost: float, seeds: int) -> dict[str, Any]:
    """Return the mean discounted reward of ours, and how much more it earned than each baseline, with an interval."""
    earned: dict[str, list[float]] = {}
    for seed in range(seeds):
        world = draw_history(name, seed)
        worth = DISCOUNT ** np.arange(len(world.y)) * (world.y - cost)
        for policy, run in runners().items():
            earned.setdefault(policy, []).append(float(worth[run(world, cost, seed)].sum()))
    ours = np.array(earned.pop(OURS))
    leads = {policy: ours - np.array(values) for policy, values in earned.items()}
    return {
        "data": name, "cost": cost, "arrivals": len(world.y), "ours": float(ours.mean()),
        "leads": {policy: [float(lead.mean()), half_width(lead)] for policy, lead in leads.items()},
    }  # fmt: skip


def tables(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = [
        "## Beliefs about the rejected\n",
        "Root mean square (and mean) of z. 1 (and 0) is right; negative is too optimistic.\n",
        "| data | part | without the index | with it |\n|---|---|---:|---:|",
    ]
    parts = {one.name: one.part for one in DATASETS}
    for name, z in results["calibration"].items():
        lines.append(
            f"| {name} | {parts[name]} | {z['without']:.2f} ({z['without, mean']:+.2f}) "
            f"| {z['with']:.2f} ({z['with, mean']:+.2f}) |"
        )
    for label, sealed in (("not sealed", False), ("sealed", True)):
        chosen = [z for name, z in results["calibration"].items() if (parts[name] == "sealed") == sealed]
        if chosen:
            for kind, middle in (("mean", np.mean), ("median", np.median)):
                without, used = (middle([z[key] for z in chosen]) for key in ("without", "with"))
                lines.append(f"| **{kind}, {label}** | | {without:.2f} | {used:.2f} |")
    cells = results["rewards"]
    if not cells:
        return "\n".join(lines) + "\n"
    baselines = list(cells[0]["leads"])
    lines += [
        "\n## Rewards\n",
        f"Discounted reward (γ = {DISCOUNT}) of the default policy, and how much more it earned than each baseline, "
        "paired, with the half-width of the 95% interval; bold where the baseline is ahead beyond it.\n",
        "| data | break-even | arrivals | ours | " + " | ".join(baselines) + " |",
        "|---|---:|---:|---:|" + "---:|" * len(baselines),
    ]
    counts = {name: [0, 0, 0] for name in baselines}
    for cell in cells:
        texts = []
        for name in baselines:
            lead, half = cell["leads"][name]
            text = f"{lead:+.1f} ± {half:.1f}"
            texts.append(f"**{text}**" if lead < -half else text)
            counts[name][0 if lead > half else 2 if lead < -half else 1] += 1
        lines.append(
            f"| {cell['data']} | {cell['cost']} | {cell['arrivals']:,} | {cell['ours']:.1f} | {' | '.join(texts)} |"
        )
    lines.append(
        "| **ahead / level / behind** | | | | " + " | ".join(" / ".join(map(str, counts[k])) for k in baselines) + " |"
    )
    sums = [f"{sum(cell['leads'][name][0] for cell in cells):+.0f}" for name in baselines]
    lines.append(f"| **sum of the leads** | | | {sum(cell['ours'] for cell in cells):.0f} | " + " | ".join(sums) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] = ()) -> None:
    """Run what is missing and write the tables."""
    parser = ArgumentParser("python -m research selected-history", description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=PAGE, help="the Markdown file to write")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only-calibration", action="store_true")
    parser.add_argument("--part", choices=["chosen", "held out", "fresh", "sealed"], help="only these data sets")
    given = parser.parse_args(arguments)
    store = given.output.with_suffix(".json")
    results = json.loads(store.read_text("utf-8")) if store.is_file() else {"calibration": {}, "rewards": []}
    usable: list[Dataset] = [one for one in DATASETS if one.available and given.part in (None, one.part)]
    done = {(cell["data"], cell["cost"]) for cell in results["rewards"]}
    for one in usable:
        if one.name not in results["calibration"]:
            results["calibration"][one.name] = calibration(one.name, given.seeds)
            store.write_text(json.dumps(results, indent=1), "utf-8")
            print(one.name, results["calibration"][one.name], file=sys.stderr, flush=True)
    for one in usable if not given.only_calibration else []:
        for cost in one.costs:
            if (one.name, cost) not in done:
                results["rewards"].append(rewards(one.name, cost, given.seeds))
                store.write_text(json.dumps(results, indent=1), "utf-8")
                print(results["rewards"][-1], file=sys.stderr, flush=True)
    heading = "# Histories that an earlier rule selected\n\nWritten by `python -m research selected-history`. "
    given.output.write_text(f"{heading}{__doc__.split(chr(10), 2)[2]}\n{tables(results)}", "utf-8")
