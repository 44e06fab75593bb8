"""The figures and the numbers of docs/delay.md.

python -m research late-labels [exact] [laws] [rates] [figures]
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lenience import Belief, Discounted
from lenience.analysis.delay import LawValues, value_by_delay, values_by_law
from lenience.objectives.delayed import Delayed
from lenience.plot import limit_map, value_against_delay
from lenience.simulation.label_delay import LabelDelay

PRIOR = Belief(2, 1)
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
# As if measured: a quarter of the labels comes within days, the rest after more than a year.
_QUICK, _SLOW = np.random.default_rng(0).lognormal(-3.6, 0.75, 500), np.random.default_rng(1).lognormal(0.0, 0.75, 1500)
LAWS = (
    LabelDelay("exponential", 1),
    LabelDelay("fixed", 1),
    LabelDelay("lognormal", 1, sigma=1),
    LabelDelay("exponential", 1, missing=0.1),
    LabelDelay.measured([*_QUICK, *_SLOW]),
)


def show(title: str, result: LawValues) -> None:
    """Print what each policy earned, and by how much it differs from the exposure limit."""
    print(f"\n{title}: {result.law}" + ("" if result.rate is None else f", p = {result.rate:g}"))
    for one in result.values:
        print(
            f"  {one.policy:22} {one.mean:9.3f} ± {one.error:.3f}   difference {one.difference:8.3f} ± "
            f"{one.difference_error:.3f}   accepted {one.accepted:7.1f}",
            flush=True,
        )


def exact() -> None:
    """Value against the mean delay, exactly."""
    for row in value_by_delay(0.8, 50, 0.1, PRIOR, delays=(1 / 52, 1 / 12, 1 / 4, 1 / 2, 1, 2)):
        print(f"{row.label_delay:8.4f} years  {row.policy:22} {row.value}", flush=True)


def laws() -> None:
    """Other delay laws, by simulation."""
    for cost, replications in ((0.8, 10_000), (0.5, 4_000)):
        problem = Delayed(cost, arrivals=50, discount_rate=0.1, label_delay=1)
        for law in LAWS:
            for result in values_by_law(problem, PRIOR, [law], replications=replications):
                show(f"c = {cost:g}, {replications:,} replications", result)


def rates() -> None:
    """Fixed success probabilities, by simulation."""
    problem = Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    for result in values_by_law(problem, PRIOR, [LAWS[0]], rates=(0.3, 0.6, 0.75, 0.85, 0.95), replications=2_000):
        show("c = 0.8, 2,000 replications", result)


def figures() -> None:
    """The two pictures."""
    paper = Discounted.from_rates(0.8, arrivals=50, discount_rate=0.1)
    at_once = paper.solve(PRIOR).value(PRIOR).midpoint * paper.discount
    rows = value_by_delay(0.8, 50, 0.1, PRIOR)
    title = "50 arrivals a year, money at 10% a year, break-even 80%, prior Beta(1, 1)"
    value_against_delay(rows, at_once, title).savefig(FIGURES / "delay-values.png", dpi=160)
    policy = Delayed(0.8, arrivals=200, discount_rate=0.1, label_delay=1).solve(PRIOR)
    title = "Exposure limits: 200 arrivals a year, labels after a year, money at 10%"
    limit_map(policy, title=title).savefig(FIGURES / "delay-limits.png", dpi=160)


PARTS = {"exact": exact, "laws": laws, "rates": rates, "figures": figures}


def main(arguments: Sequence[str] = ()) -> None:
    """Run the parts that are named, or all."""
    parser = ArgumentParser("python -m research late-labels", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none is given")
    for name in parser.parse_args(arguments).parts or PARTS:
        if name not in PARTS:
            parser.error(f"part must be one of {', '.join(PARTS)}, not {name!r}")
        start = time.perf_counter()
        PARTS[name]()
        print(f"[{name}: {time.perf_counter() - start:.0f} s]")
