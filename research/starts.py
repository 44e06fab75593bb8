"""Three starts without replacement: no labels, 50 labels, and a history that an old scorecard selected.

A world is that of :mod:`research.selected_history` with at most 1,000 rows of history and 1,500 arrivals. Everyone
arrives once. Every policy knows the features of the history, and the outcomes of nobody ("cold"), of 50 rows drawn at
random ("50 labels"), or of those above the scorecard's median ("selected"). It earns y − c for each acceptance,
discounted by γ = 0.999, and learns only the outcomes of those whom it accepts. Ours knows how many arrive
(``FiniteHorizon``). Two break-evens for each data set.

Baselines, from their own libraries: Vowpal Wabbit's SquareCB, bag of five, ε = 0.05 and RegCB; LightGBM, refitted when
its labels have grown by a fifth, greedily or with 5% random acceptances; scikit-learn's logistic regression with 5%.
Classifiers accept everyone until they have 20 labels of both outcomes. The old scorecard and accepting everyone are
fixed rules. Ablations: the same belief without exploring; exploring wherever the threshold allows it, also where the
label is not worth its cost ("no look-ahead"); and the model before bends and the selection index, with the look-ahead
("straight model") and without ("as before", the policy as it was before this study).

Runs are added one by one to a JSON file, so that the study can stop and go on at any time. Policies that a stored run
does not have are added to it.
"""

from __future__ import annotations

import json
import math
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lenience.models.bayesian_logistic import RATE_VARIANCE, BayesianLogistic, stretch
from lenience.models.scaling import centre_and_scale
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.policies.features.baseline_rules import GREEDY, LENIENT, WITHOUT_LOOK_AHEAD
from lenience.policies.features.policy import FeaturePolicy
from lenience.simulation.replay_engine import run_online
from lenience.simulation.replay_result import half_width
from lenience.solvers.stopping.threshold_table import threshold_table
from research.datasets import DATASETS
from research.selected_history import History, draw_history, history_of

PAGE = Path(__file__).parent / "starts.md"
HISTORY_ROWS, ARRIVALS, DISCOUNT, FEW = 1000, 1500, 0.999, 50
STARTS = ("cold", "50 labels", "selected")
OURS, NO_EXPLORING, NO_LOOK_AHEAD = "lenience", "same belief, no exploring", "no look-ahead"
STRAIGHT, BEFORE = "straight model", "as before"
SCORECARD, EVERYONE = "old scorecard", "accept everyone"
ABLATIONS = (NO_EXPLORING, NO_LOOK_AHEAD, STRAIGHT, BEFORE)
SEALED = ("insurance", "crashes", "mortgages", "benefits")
KNOWN = (
    "german credit", "credit data", "cards", "hmda", "loans", "telephone", "recidivism", "arrests", "students",
)  # fmt: skip
BURN_IN, GROWTH = 20, 1.2
FEATURES = 5  # of simulated worlds
Rows = NDArray[np.float64]
Accepted = NDArray[np.bool_]
Runner = Callable[[History, float, int], dict[str, Accepted]]  # several policies may share a fit
Key = tuple[str, float, str, int]  # data set, break-even, start and seed
Named = tuple[tuple[str, ...], Runner]  # the policies that a runner runs


def start_world(name: str, start: str, seed: int) -> History:
    """Return a world with the outcomes that a start knows."""
    return starting(draw_history(name, seed, HISTORY_ROWS, ARRIVALS), start, seed)


def starting(world: History, start: str, seed: int) -> History:
    """Return a world with the outcomes that a start knows, from one with a selected history."""
    if start == "selected":
        return world
    outcomes = np.full(len(world.truth), np.nan)
    if start == "50 labels":
        some = np.random.default_rng(seed).permutation(len(outcomes))[:FEW]
        outcomes[some] = world.truth[some]
    return world._replace(outcomes=outcomes)


class Beliefs:
    """The default policy after the start of a world, which can decide the arrivals by several rules."""

    def __init__(self, world: History, cost: float, seed: int, straight: bool = False) -> None:
        self.world, self.cost = world, cost
        self.objective = FiniteHorizon(cost, len(world.y), DISCOUNT)
        own = BayesianLogistic(selection=False, bent_variance=()) if straight else None
        self.policy = FeaturePolicy(own, self.objective, random_state=seed).fit(world.past, world.outcomes)

    def accepted(self, rule: int, everyone: bool = False, first: int = 0) -> Accepted:
        """Return who of the arrivals from the ``first`` on is accepted.

        With ``everyone``, the model also sees the outcomes of the rejected.
        """
        world, model, rows = self.world, self.policy.model_, len(self.policy.reference_)
        arrivals = len(world.y) - first
        design = model.design(np.vstack((self.policy.reference_, world.X[first:])))
        labels = np.concatenate((np.zeros(rows), world.y[first:]))
        gammas = np.array([self.objective.discount_at(t) for t in range(first, len(world.y))])
        accepted = np.zeros(arrivals, dtype=np.bool_)
        run_online(
            rule, 0.0 if rule == GREEDY else 1.0, design, labels, np.arange(rows, len(design)),
            np.empty(0, dtype=np.int64), np.full(arrivals, 0.5), np.arange(rows), model.weights_, model.means_,
            model.covariances_, self.cost, gammas, *threshold_table(self.cost, DISCOUNT)[1:], True, everyone, accepted,
        )  # fmt: skip
        return accepted


def with_beliefs(rules: dict[str, int], straight: bool = False) -> Named:
    """Return a function that lets the default policy decide, or the same belief with another rule."""

    def run(world: History, cost: float, seed: int) -> dict[str, Accepted]:
        beliefs = Beliefs(world, cost, seed, straight)
        return {name: beliefs.accepted(rule) for name, rule in rules.items()}

    return tuple(rules), run


def refitted(name: str, make: Callable[[], Any], explore: float) -> Named:
    """Return a function for a classifier that is refitted when its labels have grown by a fifth."""

    def run(world: History, cost: float, seed: int) -> dict[str, Accepted]:
        chances = np.random.default_rng(seed).random(len(world.y))
        known = ~np.isnan(world.outcomes)
        rows, labels = list(world.past[known]), list(world.outcomes[known])
        accepted = np.zeros(len(world.y), dtype=np.bool_)
        fitted, rates = 0, None
        for i in range(len(world.y)):
            if len(labels) >= max(GROWTH * fitted, BURN_IN) and len(set(labels)) == 2:
                fitted = len(labels)
                rates = make().fit(np.array(rows), np.array(labels, dtype=np.int64)).predict_proba(world.X)[:, 1]
            accepted[i] = rates is None or rates[i] > cost or chances[i] < explore
            if accepted[i]:
                rows.append(world.X[i])
                labels.append(world.y[i])
        return {name: accepted}

    return (name,), run


def vowpals(options: dict[str, str]) -> Named:
    """Return a function for contextual bandits of Vowpal Wabbit with two actions."""

    def run(world: History, cost: float, seed: int) -> dict[str, Accepted]:
        centre, scale = centre_and_scale(world.past)
        known = ~np.isnan(world.outcomes)

        def shared(rows: Rows) -> list[str]:
            scaled = np.clip(np.nan_to_num((rows - centre) / scale), -6.0, 6.0)
            return ["shared |x " + " ".join(f"{j}:{z:.4f}" for j, z in enumerate(row) if z) for row in scaled]

        past, coming = shared(world.past[known]), shared(world.X)
        return {
            name: _vowpal(option, past, cost - world.outcomes[known], coming, cost - world.y, seed)
            for name, option in options.items()
        }

    return tuple(options), run


def _vowpal(options: str, past: list[str], losses: Rows, coming: list[str], to_come: Rows, seed: int) -> Accepted:
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace(f"--cb_explore_adf {options} -q xa --quiet --random_seed {seed + 1}")
    chances = np.random.default_rng(seed).random(len(coming))

    def learn(text: str, accept: bool, loss: float, propensity: float) -> None:
        label = f"0:{loss:.6f}:{max(propensity, 0.01):.6f} "
        workspace.learn([text, f"{label if accept else ''}|a accept", f"{'' if accept else label}|a reject"])

    for text, loss in zip(past, losses, strict=True):
        learn(text, True, loss, 1.0)
    accepted = np.zeros(len(coming), dtype=np.bool_)
    for i, text in enumerate(coming):
        propensity = workspace.predict([text, "|a accept", "|a reject"])[0]
        accepted[i] = chances[i] < propensity
        if accepted[i]:
            learn(text, True, to_come[i], propensity)
        else:
            learn(text, False, 0.0, 1.0 - propensity)
    workspace.finish()
    return accepted


def fixed(world: History, cost: float, seed: int) -> dict[str, Accepted]:
    """Return what the rules that never learn accept."""
    return {SCORECARD: world.card, EVERYONE: np.ones(len(world.y), dtype=np.bool_)}


def runners() -> list[Named]:
    """Return every policy of the study."""
    from lightgbm import LGBMClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def trees() -> Any:
        return LGBMClassifier(n_estimators=60, num_leaves=8, learning_rate=0.08, verbose=-1, n_jobs=1)

    def regression() -> Any:
        imputer = SimpleImputer(keep_empty_features=True)
        return make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=500))

    return [
        with_beliefs({OURS: LENIENT, NO_EXPLORING: GREEDY, NO_LOOK_AHEAD: WITHOUT_LOOK_AHEAD}),
        with_beliefs({STRAIGHT: LENIENT, BEFORE: WITHOUT_LOOK_AHEAD}, straight=True),
        vowpals(
            {
                "VW SquareCB": "--squarecb",
                "VW bag": "--bag 5",
                "VW ε-greedy": "--epsilon 0.05",
                "VW RegCB": "--regcb",
            }
        ),
        refitted("LightGBM", trees, 0.0),
        refitted("LightGBM + 5%", trees, 0.05),
        refitted("logistic + 5%", regression, 0.05),
        ((SCORECARD, EVERYONE), fixed),
    ]


def run_one(key: Key, policies: Sequence[Named], before: dict[str, float]) -> dict[str, Any]:
    """Return what every policy earned in one world, after ``before`` from an earlier run of the same world."""
    name, cost, start, seed = key
    world = start_world(name, start, seed)
    worth = DISCOUNT ** np.arange(len(world.y)) * (world.y - cost)
    earned: dict[str, float] = {}
    for names, run in policies:
        wanted = [policy for policy in names if policy != SCORECARD or start == "selected"]
        result = {} if all(policy in before for policy in wanted) else run(world, cost, seed)
        for policy in wanted:
            earned[policy] = float(worth[result[policy]].sum()) if policy in result else before[policy]
    return {"data": name, "cost": cost, "start": start, "seed": seed, "arrivals": len(world.y), "earned": earned}


def straight_world(cost: float, seed: int) -> History:
    """Return a world in which the straight model is right: effects are linear, drawn from its prior."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * (HISTORY_ROWS + ARRIVALS), FEATURES))
    spread = 3.0
    centre = math.log(cost / (1.0 - cost)) * (3.0 + stretch(spread)) / 4.0
    intercept = rng.normal(centre, math.sqrt(RATE_VARIANCE) * stretch(spread))
    odds = intercept + X @ rng.normal(0.0, math.sqrt(spread / FEATURES), FEATURES)
    y = (rng.random(len(X)) < expit(odds)).astype(np.float64)
    return history_of(X, y, rng, HISTORY_ROWS, ARRIVALS)


def well_specified(seeds: int, cost: float = 0.7) -> str:
    """Return what the default policy earns beyond the straight model where the straight model is right."""
    lines = ["| start | straight model | lead of the default |", "|---|---:|---:|"]
    for start in STARTS:
        rewards = []
        for seed in range(seeds):
            world = starting(straight_world(cost, seed), start, seed)
            worth = DISCOUNT ** np.arange(len(world.y)) * (world.y - cost)
            both = [Beliefs(world, cost, seed, straight).accepted(LENIENT) for straight in (False, True)]
            rewards.append([worth[accepted].sum() for accepted in both])
        ours, straight = np.array(rewards).T
        lines.append(f"| {start} | {straight.mean():.1f} | {_text(*lead(ours, straight))} |")
    return "\n".join(lines) + "\n"


def cells(runs: list[dict[str, Any]]) -> dict[tuple[str, str, float], dict[str, Rows]]:
    """Return the rewards of each policy by start, data set and break-even."""
    result: dict[tuple[str, str, float], dict[str, list[float]]] = {}
    for run in runs:
        policies = result.setdefault((run["start"], run["data"], run["cost"]), {})
        for policy, reward in run["earned"].items():
            policies.setdefault(policy, []).append(reward)
    return {key: {policy: np.array(each) for policy, each in cell.items()} for key, cell in result.items()}


def lead(ours: Rows, other: Rows) -> tuple[float, float]:
    """Return how much more ours earned, with the half-width of the paired 95% interval."""
    return float((ours - other).mean()), half_width(ours - other)


def tables(runs: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    by_cell = cells(runs)
    lines = []
    for start in STARTS:
        mine = {key: cell for key, cell in by_cell.items() if key[0] == start}
        if not mine:
            continue
        # A policy that was added to some runs only has to wait until all have it.
        policies = [one for one in next(iter(mine.values())) if all(_complete(cell, one) for cell in mine.values())]
        seeds = sorted({len(cell[OURS]) for cell in mine.values()})
        lines += [
            f"## Start: {start}\n",
            f"{len(mine)} cells with {'–'.join(map(str, sorted({seeds[0], seeds[-1]})))} runs each. Sums of the means "
            "over the cells; leads are paired, with the half-width of their 95% interval: of a sum by the spread over "
            "cells, of a cell by the spread over runs. Bold: another is ahead beyond it.\n",
            "| policy | reward | lead of lenience | ahead / level / behind | sealed |",
            "|---|---:|---:|---:|---:|",
        ]  # fmt: skip
        for policy in policies:
            leads = {key: lead(cell[OURS], cell[policy]) for key, cell in mine.items()}
            total = sum(float(cell[policy].mean()) for cell in mine.values())
            if policy == OURS:
                lines.append(f"| **{policy}** | **{total:,.0f}** | | | |")
                continue
            half = len(leads) * half_width(np.array([one for one, _ in leads.values()]))
            sealed = {key: one for key, one in leads.items() if key[1] in SEALED}
            lines.append(
                f"| {policy} | {total:,.0f} | {sum(one for one, _ in leads.values()):+,.1f} ± {half:.1f} "
                f"| {_counts(leads)} | {_counts(sealed)} |"
            )
        lines += [
            f"\n| data | break-even | lenience | best baseline | lead | {' | '.join(ABLATIONS)} |",
            "|---|---:|---:|---|---:|" + "---:|" * len(ABLATIONS),
        ]
        for (_, data, cost), cell in mine.items():
            others = [policy for policy in policies if policy not in (OURS, *ABLATIONS)]
            best = max(others, key=lambda policy: float(cell[policy].mean()))
            texts = [
                _text(*lead(cell[OURS], cell[policy])) if policy in policies else "" for policy in (best, *ABLATIONS)
            ]
            mark = " (sealed)" if data in SEALED else ""
            lines.append(
                f"| {data}{mark} | {cost} | {cell[OURS].mean():.1f} | {best}, {cell[best].mean():.1f} | "
                + " | ".join(texts) + " |"
            )  # fmt: skip
        lines.append("")
    return "\n".join(lines)


def _complete(cell: dict[str, Rows], policy: str) -> bool:
    return policy in cell and len(cell[policy]) == len(cell[OURS])


def _counts(leads: dict[Any, tuple[float, float]]) -> str:
    if not all(np.isfinite(half) for _, half in leads.values()):
        return "one run"
    ahead = sum(one > half for one, half in leads.values())
    behind = sum(one < -half for one, half in leads.values())
    return f"{ahead} / {len(leads) - ahead - behind} / {behind}"


def _text(one: float, half: float) -> str:
    if not np.isfinite(half):
        return f"{one:+.1f}"
    text = f"{one:+.1f} ± {half:.1f}"
    return f"**{text}**" if one < -half else text


def main(arguments: Sequence[str] = ()) -> None:
    """Run what is missing and write the tables."""
    parser = ArgumentParser("python -m research starts", description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=PAGE, help="the Markdown file to write")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--start", choices=STARTS, action="append", help="only this start")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no further run after so many minutes")
    parser.add_argument("--well-specified", type=int, metavar="WORLDS", help="only compare with the straight model")
    given = parser.parse_args(arguments)
    if given.well_specified:
        print(well_specified(given.well_specified))
        return
    store = given.output.with_suffix(".json")
    stored = json.loads(store.read_text("utf-8")) if store.is_file() else []
    runs: dict[Key, dict[str, Any]] = {(run["data"], run["cost"], run["start"], run["seed"]): run for run in stored}
    policies, began = runners(), time.monotonic()
    every = {policy for names, _ in policies for policy in names if policy != SCORECARD}
    sets = [one for name in (*SEALED, *KNOWN) for one in DATASETS if one.name == name and one.available]
    todo = [
        (one.name, cost, start, seed)
        for seed in range(given.first_seed, given.seeds)
        for start in given.start or ("selected", "50 labels", "cold")
        for one in sets
        for cost in one.costs
    ]
    # One run of everything first, then the start that has the most doubts.
    todo.sort(key=lambda key: 0 if key[3] == 0 else 1 if key[2] == "selected" else 2)
    for key in todo:
        before = runs[key]["earned"] if key in runs else {}
        if every <= set(before):
            continue
        if time.monotonic() - began > 60.0 * given.minutes:
            break
        spent = time.process_time()
        runs[key] = run_one(key, policies, before)
        store.write_text(json.dumps(list(runs.values())), "utf-8")
        print(*key, f"{time.process_time() - spent:.1f} s", file=sys.stderr, flush=True)
    text = (__doc__ or "").replace(":mod:", "")
    given.output.write_text(
        f"# Three starts\n\nWritten by `python -m research starts`. {text}\n{tables(list(runs.values()))}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
