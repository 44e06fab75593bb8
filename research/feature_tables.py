"""The study of policies with features as tables: cell by cell, policy by policy, and what they add up to."""

from __future__ import annotations

from typing import Any

import numpy as np

from lenience.simulation.replay import OURS
from research.datasets import DATASETS, Part

THOMPSON = "Thompson"
SAME = ", our model"
StudyCell = dict[str, Any]

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


def behind(cell: StudyCell) -> list[str]:
    """The default baselines that are ahead of ours beyond the interval."""
    return [name for name in defaults() if cell["baselines"][name]["ahead"] < -cell["baselines"][name]["half"]]


def defaults() -> list[str]:
    """The baselines at their defaults."""
    return [name for names in DEFAULTS.values() for name in names] + ["always"]


def tables(cells: list[StudyCell]) -> str:
    """The study as Markdown."""
    parts_of = {data.name: data.part for data in DATASETS}
    parts = []
    for discount in sorted({cell["discount"] for cell in cells}):
        mine = [cell for cell in cells if cell["discount"] == discount]
        parts.append(f"## γ = {discount:g}: {mine[0]['seeds']} runs of {mine[0]['arrivals']:,} arrivals\n")
        for part, title in PARTS.items():
            some = [cell for cell in mine if parts_of[cell["data"]] == part]
            if not some:
                continue
            level = [cell for cell in some if not behind(cell)]
            ahead = [cell for cell in some if cell["baselines"][THOMPSON]["ahead"] > 0]
            sure = [c for c in some if c["baselines"][THOMPSON]["ahead"] > c["baselines"][THOMPSON]["half"]]
            parts.append(
                f"### {title}\n\nBehind no default baseline beyond the interval in {len(level)} of {len(some)} cells; "
                f"ahead of Thompson in {len(ahead)}, beyond the interval in {len(sure)}.\n"
            )
            parts.append(_cell_by_cell(some))
            parts.append(_hindsight_by_cell(some))
        parts.append(_unbeaten(mine, parts_of))
        parts.append(_full_information(mine, parts_of))
        parts.append(_before_labels(mine, parts_of))
        parts.append(_same_model(mine))
        parts.append(_hindsight(mine))
    return "\n".join(parts)


def _cell_by_cell(cells: list[StudyCell]) -> str:
    """Of every cell what each default policy earned, and our lead over each."""
    rows = []
    for cell in cells:
        entries = [
            f"{cell['known']:.2f}",
            f"{cell['full information']:.2f}",
            f"{cell['ours']:.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{cell['half']:.2f}",
        ]
        for name in defaults():
            baseline = cell["baselines"][name]
            entries.append(_marked(baseline, f"{baseline['mean']:.2f} ({_lead(baseline)})"))
        rows.append(entries)
    return _table(["known", "full information", f"**{OURS}**", *defaults()], cells, rows)


def _hindsight_by_cell(cells: list[StudyCell]) -> str:
    """Of every cell the best setting of each baseline, chosen on these very runs, and our lead over it."""
    tuned = [cell for cell in cells if cell["best"]]
    if not tuned:
        return ""
    rows = []
    for cell in tuned:
        entries = [f"{cell['ours']:.2f}"]
        for family, own in DEFAULTS.items():
            name = cell["best"][family]
            baseline = cell["baselines"][name]
            # Greedy has two defaults, of which one is a setting: a burn-in of 20.
            setting = "default" if name == own[0] else name.removeprefix(f"{family} ")
            entries.append(_marked(baseline, f"{setting}: {_lead(baseline)}"))
        rows.append(entries)
    return "The same at every baseline's best setting in hindsight, cell by cell:\n\n" + _table(
        [f"**{OURS}**", *DEFAULTS], tuned, rows
    )


def _table(headings: list[str], cells: list[StudyCell], rows: list[list[str]]) -> str:
    lines = [
        "| " + " | ".join([cell["data"], f"{cell['cost']:g}", str(cell["warm"]), *entries]) + " |"
        for cell, entries in zip(cells, rows, strict=True)
    ]
    head = ["data", "c", "labels", *headings]
    return "| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1) + "\n" + "\n".join(lines) + "\n"


def _lead(baseline: StudyCell) -> str:
    return f"{baseline['ahead']:+.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{baseline['half']:.2f}"


def _marked(baseline: StudyCell, text: str) -> str:
    """In bold where the baseline is ahead beyond the interval."""
    return f"**{text}**" if baseline["ahead"] < -baseline["half"] else text


def _against(cells: list[StudyCell], baselines: list[StudyCell]) -> str:
    """In how many cells we are ahead of a baseline, level and behind, and the median lead."""
    ahead = sum(1 for baseline in baselines if baseline["ahead"] > baseline["half"])
    late = sum(1 for baseline in baselines if baseline["ahead"] < -baseline["half"])
    gains = [r["ahead"] / cell["known"] for cell, r in zip(cells, baselines, strict=True) if cell["known"] > 0.0]
    return f"{ahead} | {len(baselines) - ahead - late} | {late} | {float(np.median(gains)):+.3f} |"


HEAD = "| baseline | we are ahead | level | behind | median lead |\n|---|---:|---:|---:|---:|\n"


def _unbeaten(cells: list[StudyCell], parts_of: dict[str, Part]) -> str:
    """Of each policy, in how many cells no other default policy is ahead of it, and what it earned in them."""
    held = _by_part(cells, parts_of)
    lines = []
    for name in [OURS, *defaults()]:
        entries = []
        for some in held.values():
            total = sum(c["ours"] if name == OURS else c["baselines"][name]["mean"] for c in some)
            entries.append(f"{sum(name in c['unbeaten'] for c in some)} of {len(some)} ({total:,.0f})")
        lines.append(f"| {name} | " + " | ".join(entries) + " |")
    return (
        "### In how many cells no default policy is ahead\n\n"
        "Of each policy, beyond the interval, and in brackets what it earned in these cells together.\n\n"
        "| policy | " + " | ".join(held) + " |\n|---|" + "---:|" * len(held) + "\n" + "\n".join(lines) + "\n"
    )


def _by_part(cells: list[StudyCell], parts_of: dict[str, Part]) -> dict[str, list[StudyCell]]:
    """The cells of each part that has any, and all."""
    held: dict[str, list[StudyCell]] = {part: [c for c in cells if parts_of[c["data"]] == part] for part in PARTS}
    return {part: some for part, some in held.items() if some} | {"all": cells}


def _full_information(cells: list[StudyCell], parts_of: dict[str, Part]) -> str:
    """In how many cells somebody is ahead of the model that sees everyone's outcome, which need not explore."""
    lines = []
    for part, some in _by_part(cells, parts_of).items():
        informed_behind, we_behind = [c for c in some if c["ahead of full information"]], [c for c in some if behind(c)]
        both = sum(1 for c in we_behind if c in informed_behind)
        lines.append(
            f"| {part} | {len(some) - len(informed_behind)} of {len(some)} | "
            f"{sum(c['full information'] for c in some):,.1f} | {len(some) - len(we_behind)} | "
            f"{sum(c['ours'] for c in some):,.1f} | {len(we_behind)} | {both} |"
        )
    return (
        "### With full information\n\n"
        "Our model, if it sees the outcome of everyone who comes, the rejected included, accepts whom it believes "
        "above the break-even: in how many cells no default policy is ahead of it beyond the interval, and what it "
        "earns in all. Then the same of ours, which sees only the accepted, the cells in which it is behind somebody, "
        "and in how many of these somebody is ahead of the model with full information as well.\n\n"
        "| part | full information: behind none | earns | lenience: behind none | earns | behind somebody | both |\n"
        "|---|" + "---:|" * 6 + "\n" + "\n".join(lines) + "\n"
    )


def _before_labels(cells: list[StudyCell], parts_of: dict[str, Part]) -> str:
    """Of the cells without labels in which greedy never starts: where it pays to start, and what we make there."""
    lines = []
    for part, some in _by_part(cells, parts_of).items():
        shut = [c for c in some if c["warm"] == 0 and c["baselines"]["greedy"]["accepted"] == 0.0]
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


def _starting_pays(cell: StudyCell) -> bool:
    """Whether a default policy that accepts anyone, ours included, earns more than 0 in the mean."""
    return any(mean > 0.0 for mean in [cell["ours"], *(cell["baselines"][name]["mean"] for name in defaults())])


def _same_model(cells: list[StudyCell]) -> str:
    names = [name for name in cells[0]["baselines"] if name.endswith(SAME)]
    level = sum(1 for c in cells if all(c["baselines"][n]["ahead"] >= -c["baselines"][n]["half"] for n in names))
    lines = [f"| {n.removesuffix(SAME)} | {_against(cells, [c['baselines'][n] for c in cells])}" for n in names]
    return (
        f"### Baselines with our model, all {len(cells)} cells\n\n"
        f"Ours is behind none of these beyond the interval in {level} of {len(cells)} cells. The last column is the "
        "median of our lead, as a share of what the model that knows all outcomes earns.\n\n"
        + HEAD + "\n".join(lines) + "\n"
    )  # fmt: skip


def _hindsight(cells: list[StudyCell]) -> str:
    tuned = [cell for cell in cells if cell["best"]]
    if not tuned:
        return ""
    lines = [
        f"| {family} | {_against(tuned, [cell['baselines'][cell['best'][family]] for cell in tuned])}"
        for family in DEFAULTS
    ]
    return (
        f"### Baselines at their best in hindsight, all {len(tuned)} cells\n\n"
        "Each baseline's best setting of those tried, chosen cell by cell on the runs it is judged by.\n\n"
        + HEAD + "\n".join(lines) + "\n"
    )  # fmt: skip
