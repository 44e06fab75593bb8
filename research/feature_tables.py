"""The study of policies with features as tables: cell by cell, policy by policy, and what they add up to."""

from __future__ import annotations

from typing import Any

import numpy as np

from lenience.simulation.replay import OURS
from research.datasets import DATASETS, Part

THOMPSON = "Thompson"
SAME = ", our model"
Cell = dict[str, Any]

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


def behind(cell: Cell) -> list[str]:
    """The default rivals that are ahead of ours beyond the interval."""
    return [name for name in defaults() if cell["rivals"][name]["ahead"] < -cell["rivals"][name]["half"]]


def defaults() -> list[str]:
    """The rivals at their defaults."""
    return [name for names in DEFAULTS.values() for name in names] + ["always"]


def tables(cells: list[Cell]) -> str:
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
            ahead = [cell for cell in some if cell["rivals"][THOMPSON]["ahead"] > 0]
            sure = [c for c in some if c["rivals"][THOMPSON]["ahead"] > c["rivals"][THOMPSON]["half"]]
            parts.append(
                f"### {title}\n\nBehind no default rival beyond the interval in {len(level)} of {len(some)} cells; "
                f"ahead of Thompson in {len(ahead)}, beyond the interval in {len(sure)}.\n"
            )
            parts.append(_cell_by_cell(some))
            parts.append(_hindsight_by_cell(some))
        parts.append(_unbeaten(mine, parts_of))
        parts.append(_told(mine, parts_of))
        parts.append(_before_labels(mine, parts_of))
        parts.append(_same_model(mine))
        parts.append(_hindsight(mine))
    return "\n".join(parts)


def _cell_by_cell(cells: list[Cell]) -> str:
    """Of every cell what each default policy earned, and our lead over each."""
    rows = []
    for cell in cells:
        entries = [
            f"{cell['known']:.2f}",
            f"{cell['told']:.2f}",
            f"{cell['ours']:.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{cell['half']:.2f}",
        ]
        for name in defaults():
            rival = cell["rivals"][name]
            entries.append(_marked(rival, f"{rival['mean']:.2f} ({_lead(rival)})"))
        rows.append(entries)
    return _table(["known", "told", f"**{OURS}**", *defaults()], cells, rows)


def _hindsight_by_cell(cells: list[Cell]) -> str:
    """Of every cell the best setting of each rival, chosen on these very runs, and our lead over it."""
    tuned = [cell for cell in cells if cell["best"]]
    if not tuned:
        return ""
    rows = []
    for cell in tuned:
        entries = [f"{cell['ours']:.2f}"]
        for family, own in DEFAULTS.items():
            name = cell["best"][family]
            rival = cell["rivals"][name]
            # Greedy has two defaults, of which one is a setting: a burn-in of 20.
            setting = "default" if name == own[0] else name.removeprefix(f"{family} ")
            entries.append(_marked(rival, f"{setting}: {_lead(rival)}"))
        rows.append(entries)
    return "The same at every rival's best setting in hindsight, cell by cell:\n\n" + _table(
        [f"**{OURS}**", *DEFAULTS], tuned, rows
    )


def _table(headings: list[str], cells: list[Cell], rows: list[list[str]]) -> str:
    lines = [
        "| " + " | ".join([cell["data"], f"{cell['cost']:g}", str(cell["warm"]), *entries]) + " |"
        for cell, entries in zip(cells, rows, strict=True)
    ]
    head = ["data", "c", "labels", *headings]
    return "| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1) + "\n" + "\n".join(lines) + "\n"


def _lead(rival: Cell) -> str:
    return f"{rival['ahead']:+.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{rival['half']:.2f}"


def _marked(rival: Cell, text: str) -> str:
    """In bold where the rival is ahead beyond the interval."""
    return f"**{text}**" if rival["ahead"] < -rival["half"] else text


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
    for name in [OURS, *defaults()]:
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
    """In how many cells somebody is ahead of the model that is told everyone's outcome, which need not explore."""
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
    return any(mean > 0.0 for mean in [cell["ours"], *(cell["rivals"][name]["mean"] for name in defaults())])


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
