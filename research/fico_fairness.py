"""The price of fairness on the FICO tables: the figures and numbers of docs/fairness.md, in about two minutes.

python -m research fico-fairness [--folder FOLDER] [--costs C C …] [--discount γ] [--evidence OUTCOMES] [--points COUNT]
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import lenience as ln

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
COSTS = (0.7, 0.8, 0.9)


def curves(
    by_group: bool, costs: Sequence[float], discount: float, evidence: float, points: int
) -> dict[str, ln.analysis.PriceOfFairness]:
    """The price of equal acceptance rates for each break-even, with decisions that see the group or do not."""
    result = {}
    for cost in costs:
        cells, mix = ln.segments.fico_segments(ln.Discounted(cost, discount), by_group=by_group, evidence=evidence)
        result[f"break-even {cost:.0%}"] = ln.analysis.price_of_fairness(cells, mix, points=points)
    return result


def describe(curve: ln.analysis.PriceOfFairness) -> list[str]:
    """The value without a limit, at equal rates, and at equal rates by raising only, and the rates of the groups."""
    strict, raised = curve.points[0], curve.raising[0]
    free = strict.unconstrained.midpoint
    lines = [f"  no limit {free:.1f}, spread {curve.within[-1]:.3f}"]
    for name, point in (("equal rates", strict), ("raising only", raised)):
        lines.append(f"  {name}: value {point.value.midpoint:.1f} ± {point.value.width:.2g}, of {free:.1f}")
        lines += [
            f"    {row.group}: accepted {row.acceptance_without.midpoint:.3f} → {row.acceptance.midpoint:.3f}, value "
            f"{row.value_without.midpoint:.1f} → {row.value.midpoint:.1f}"
            for row in point.groups
        ]
    return lines


def main(arguments: Sequence[str] = ()) -> None:
    """Draw both figures and print the numbers."""
    parser = ArgumentParser("python -m research fico-fairness", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FIGURES)
    parser.add_argument("--costs", type=float, nargs="+", default=COSTS)
    parser.add_argument("--discount", type=float, default=0.9998)
    parser.add_argument("--evidence", type=float, default=20.0)
    parser.add_argument("--points", type=int, default=11)
    options = parser.parse_args(list(arguments))
    for by_group, name in ((True, "fair-aware.png"), (False, "fair-blind.png")):
        found = curves(by_group, options.costs, options.discount, options.evidence, options.points)
        ln.plot.plot_price_of_fairness(found, options.folder / name)
        print(name)
        for title, curve in found.items():
            print(title, *describe(curve), sep="\n")
