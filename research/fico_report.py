"""The FICO study: run it, store its results, and write its tables (research/fico.md) and its figure.

    python -m research fico

Settings whose results are in fico_results.json are not run again.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lenience.core.formatting import even_percent
from lenience.plot.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, save
from research.fico import COSTS, DISCOUNTS, EPSILON_RULES, MODELS, RULES, RuleResult, fico_world, study
from research.fico_groups import by_group, outset

HERE = Path(__file__).parent
RUNS = {0.999: 200, 0.9998: 100, 0.99995: 60}  # long futures vary less from run to run
MARKS = ("<!-- results: written by python -m research fico -->", "<!-- end of results -->")
COLOURS = dict(zip(MODELS, (BLUE, SKY, ORANGE, GREEN, PURPLE, GREY), strict=True))
FAIRNESS = (0.8, 0.9998)
FIGURE = HERE.parent / "docs" / "figures" / "fico.png"


def main(arguments: Sequence[str] = ()) -> None:
    """Run what is missing, then write the page and the figure."""
    ArgumentParser("python -m research fico", description=__doc__).parse_args(arguments)
    results = run()
    draw(results)
    page = (HERE / "fico.md").read_text(encoding="utf-8")
    before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
    text = "\n\n".join([summary(results), *tables(results), prior_table(results), *fairness()])
    (HERE / "fico.md").write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}", encoding="utf-8")


def run() -> list[RuleResult]:
    """Both worlds setting by setting, saved as they come."""
    path = HERE / "fico_results.json"
    results = msgspec.json.decode(path.read_bytes(), type=list[RuleResult]) if path.exists() else []
    world = fico_world()
    for discount in DISCOUNTS:
        for cost in COSTS:
            if any((row.cost, row.discount) == (cost, discount) for row in results):
                continue
            runs = RUNS[discount]
            results += study(
                world, [cost], [discount], MODELS, RULES, runs, progress=lambda line: print(line, flush=True)
            )
            results += study(world, [cost], [discount], ["independent"], RULES, 2 * runs, drawn_from_prior=True)
            path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=0))
    return results


def of(results: list[RuleResult], world: str, cost: float, discount: float, model: str) -> dict[str, RuleResult]:
    """A model's results in a setting, by rule."""
    wanted = (world, cost, discount, model)
    return {row.rule: row for row in results if (row.world, row.cost, row.discount, row.model) == wanted}


def summary(results: list[RuleResult]) -> str:
    """The optimum on each model, and the best of its baselines with independent beliefs, chosen in hindsight."""
    lines = ["### The optimum on each model's beliefs, and the best baselines in hindsight", ""]
    head = [*MODELS, "best rule, independent", "best ε-greedy, independent"]
    lines += ["| c | γ | " + " | ".join(head) + " |", "|---|---|" + "---:|" * len(head)]
    for cost in COSTS:
        for discount in DISCOUNTS:
            cells = [f"{of(results, 'FICO', cost, discount, model)['optimal'].share:.3f}" for model in MODELS]
            alone = of(results, "FICO", cost, discount, "independent")
            best = max(alone.values(), key=lambda row: row.share)
            epsilon = max((alone[rule] for rule in EPSILON_RULES), key=lambda row: row.share)
            cells[3] = f"**{cells[3]}**"
            cells += [f"{best.share:.3f} ({best.rule})", f"{epsilon.share:.3f} ({epsilon.rule})"]
            lines.append(f"| {cost:g} | {discount:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tables(results: list[RuleResult]) -> list[str]:
    """Every cell: rules by models in every setting, with half 95 % intervals; exact values in brackets."""
    parts = ["### Every model × every rule × every setting"]
    for cost in COSTS:
        for discount in DISCOUNTS:
            result = {model: of(results, "FICO", cost, discount, model) for model in MODELS}
            lines = [f"c = {cost:g}, γ = {discount:g}, {RUNS[discount]} runs:", ""]
            lines += ["| rule | " + " | ".join(MODELS) + " |", "|---|" + "---:|" * len(MODELS)]
            first = {model: max(rows.values(), key=lambda row: row.share).rule for model, rows in result.items()}
            for rule in RULES:
                cells = []
                for model in MODELS:
                    row = result[model][rule]
                    text = f"{row.share:.3f} ± {row.half_width:.3f}"
                    text = f"**{text}**" if first[model] == rule else text
                    cells.append(text if row.exact is None else f"{text} [{row.exact:.3f}]")
                lines.append(f"| {rule} | " + " | ".join(cells) + " |")
            parts.append("\n".join(lines))
    return parts


def prior_table(results: list[RuleResult]) -> str:
    """How far each rule is behind the optimum where truths are drawn from the prior."""
    lines = ["### With truths drawn from the prior: how far each rule is behind the optimum", ""]
    settings = [(cost, discount) for cost in COSTS for discount in DISCOUNTS]
    lines += ["| rule | " + " | ".join(f"{c:g}, {g:g}" for c, g in settings) + " |", "|---|" + "---:|" * len(settings)]
    for rule in RULES[1:]:
        cells = []
        for cost, discount in settings:
            row = of(results, "prior", cost, discount, "independent")[rule]
            cells.append(f"{row.behind:.3f} ± {row.behind_half_width:.3f}")
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fairness() -> list[str]:
    """Who is shut out at the outset, and how groups fare."""
    world = fico_world()
    lines = ["### Deserving cells shut out before the first arrival", ""]
    lines += ["| c | γ | model | white | black | hispanic | asian |", "|---|---|---|---:|---:|---:|---:|"]
    for cost in COSTS:
        for discount in DISCOUNTS:
            for model in ("independent", "Jeffreys", "shared", "curve"):
                rows = outset(world, model, cost, discount)
                cells = " | ".join(f"{row.deserving_shut} of {row.deserving}" for row in rows)
                lines.append(f"| {cost:g} | {discount:g} | {model} | {cells} |")
    cost, discount = FAIRNESS
    more = [f"### How groups fare: the optimum at c = {cost:g}, γ = {discount:g}", ""]
    more += [
        "| model | group | accepted early | late | of the deserving, early | late | deserving but shut in the end |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for model in ("independent", "Jeffreys", "shared", "curve"):
        for one in by_group(world, model, cost, discount, runs=100):
            rates = " | ".join(even_percent(x) for x in (one.early, one.late, one.deserving_early, one.deserving_late))
            shut = f"{even_percent(one.shut)} ± {even_percent(one.shut_half_width)}"
            more.append(f"| {model} | {one.group} | {rates} | {shut} |")
    return ["\n".join(lines), "\n".join(more)]


def draw(results: list[RuleResult], path: Path = FIGURE) -> None:
    """Share of the clairvoyant's value, by model, in every setting: the optimum large, other rules small."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = ("independent", "Jeffreys", "shared", "curve", "history")
    figure = Figure(figsize=(11, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, 3, sharex=True, sharey=True)
    for i, cost in enumerate(COSTS):
        for j, discount in enumerate(DISCOUNTS):
            axis = axes[i][j]
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(axis="x", alpha=0.25, linewidth=0.6)
            for place, model in enumerate(shown):
                rows = of(results, "FICO", cost, discount, model)
                y = len(shown) - 1 - place
                others = [
                    max(row.share, -0.06) for rule, row in rows.items() if rule not in ("optimal", "always", "greedy")
                ]
                axis.plot(others, [y] * len(others), "|", color=COLOURS[model], markersize=9, alpha=0.55)
                best = rows["optimal"]
                axis.errorbar(
                    best.share, y, xerr=best.half_width, fmt="o", color=COLOURS[model], markersize=8, capsize=3
                )
            axis.set_title(f"cost {cost:g}, discount {discount:g}", fontsize=10)
            axis.set_xlim(-0.08, 1.02)
            axis.set_ylim(-0.6, len(shown) - 0.4)
            axis.set_yticks(range(len(shown)), list(reversed(shown)))
    for axis in axes[2]:
        axis.set_xlabel("share of the clairvoyant's value")
    figure.suptitle(
        "● the optimum on each model's beliefs   | other rules (ε-greedy, Thompson, Bayes-UCB)", fontsize=11
    )
    save(figure, path)
