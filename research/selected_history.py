"""Histories that an earlier rule selected: how wrong beliefs about the rejected are.

A world. A scorecard (logistic regression) is fitted to a quarter of the rows, at most 1,000. Of the other rows half, at
most 2,000, are the history: those above the median of the scorecard were accepted and have an outcome. The rest, at
most 2,500, arrive one by one, each once, in random order.

*Calibration.* The rejected rows of the history are divided into five groups by the selection index. z is the difference
of a group's true success rate and its mean belief, in claimed standard errors (posterior draws of the group's mean, and
the chance of the outcomes themselves). A correct belief has a root mean square of 1.

``python -m research starts`` says what policies earn. The data sets of the part "sealed" were not looked at before the
constants of the index were chosen.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.scaling import centre_and_scale
from lenience.models.selection import find_selection
from research.datasets import DATASETS, Dataset, load

PAGE = Path(__file__).parent / "selected-history.md"
CARD_ROWS, HISTORY_ROWS, ARRIVALS = 1000, 2000, 2500
GROUPS, DRAWS = 5, 200
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
    table = load(name)
    return history_of(table.X, table.y, np.random.default_rng(1000 + seed), history, arrivals)


def history_of(X: Rows, y: Rows, rng: np.random.Generator, history: int, arrivals: int) -> History:
    """Return a world of rows with known outcomes."""
    from sklearn.linear_model import LogisticRegression

    order = rng.permutation(len(y))
    rows = min(len(order) // 4, CARD_ROWS)
    card, rest = order[:rows], order[rows:]
    past, coming = np.split(rest, [min(len(rest) // 2, history)])
    coming = coming[:arrivals]
    scaled = standardised(X)
    score = LogisticRegression(C=0.3, max_iter=500).fit(scaled[card], y[card]).decision_function(scaled)
    cut = np.median(score[past])
    outcomes = np.where(score[past] > cut, y[past], np.nan)
    return History(X[past], outcomes, y[past], np.ascontiguousarray(X[coming]), y[coming], score[coming] > cut)


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
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] = ()) -> None:
    """Run what is missing and write the tables."""
    parser = ArgumentParser("python -m research selected-history", description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=PAGE, help="the Markdown file to write")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--part", choices=["chosen", "held out", "fresh", "sealed"], help="only these data sets")
    given = parser.parse_args(arguments)
    store = given.output.with_suffix(".json")
    results = json.loads(store.read_text("utf-8")) if store.is_file() else {"calibration": {}}
    usable: list[Dataset] = [
        one for one in DATASETS if one.available and one.part == (given.part or one.part) != "starts"
    ]
    for one in usable:
        if one.name not in results["calibration"]:
            results["calibration"][one.name] = calibration(one.name, given.seeds)
            store.write_text(json.dumps(results, indent=1), "utf-8")
            print(one.name, results["calibration"][one.name], file=sys.stderr, flush=True)
    heading = "# Histories that an earlier rule selected\n\nWritten by `python -m research selected-history`. "
    given.output.write_text(f"{heading}{__doc__.split(chr(10), 2)[2]}\n{tables(results)}", "utf-8")
