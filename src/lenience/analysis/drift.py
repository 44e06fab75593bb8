"""drift_study: when a policy that forgets pays, and what it costs when nothing drifts.

The world redraws p from the prior before each arrival with probability ``hazard``; 0 is the world in which the
optimum is optimal. For each hazard, policies with several memories and the optimum meet the same individuals, and
what each earns more than the optimum (which shuts a population out for good) is estimated from the differences.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lenience.core.belief import Belief
from lenience.core.validation import listed, real
from lenience.policies.beliefs.forgetting import Forgetting
from lenience.simulation.compare import prepare, run_tasks
from lenience.simulation.drifting_worlds import Redrawn
from lenience.simulation.result import Estimate, Simulation


class Drift(msgspec.Struct, frozen=True):
    """What a memory earns at a hazard, in discounted expected reward: of itself and beyond the optimum without
    drift."""

    hazard: float
    memory: float
    earned: Estimate
    gained: Estimate
    accepted: Estimate


def drift_study(
    cost: float,
    discount: float,
    prior: Belief,
    hazards: Iterable[float] = (0.0, 0.0003, 0.001, 0.003, 0.01),
    memories: Iterable[float] = (0.9, 0.97, 0.99, 0.997, 0.999),
    horizon: int = 5000,
    replications: int = 1000,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = False,
) -> list[Drift]:
    """One row a hazard and memory; memory 1 is the optimum of a world that does not drift.

    >>> rows = drift_study(0.5, 0.99, Belief(2, 1), [0.0, 0.02], [0.97], horizon=600, replications=500)
    >>> [(row.hazard, row.memory, row.gained.upper < 0, row.gained.lower > 0) for row in rows if row.memory < 1]
    [(0.0, 0.97, True, False), (0.02, 0.97, False, True)]
    """
    chosen = [
        real("memories", memory, above=0, below=1) for memory in listed("memories", memories, "a list of numbers")
    ]
    rates = [real("hazards", hazard, least=0, most=1) for hazard in listed("hazards", hazards, "a list of numbers")]
    policies = {f"memory {memory:g}": Forgetting(cost, discount, memory, prior) for memory in chosen}
    plans = [
        prepare(policies, Redrawn(prior, hazard), cost, horizon, prior, discount, replications, seed)
        for hazard in rates
    ]
    blocks = list(run_tasks([task for each in plans for task in each.tasks], workers, progress))
    rows: list[Drift] = []
    for hazard, each in zip(rates, plans, strict=True):
        mine, blocks = blocks[: len(each.tasks)], blocks[len(each.tasks) :]
        found = each.finished(mine)
        rows += [_row(found, hazard, memory, f"memory {memory:g}") for memory in chosen]
        rows.append(_row(found, hazard, 1.0, str(found.baseline)))
    return rows


def _row(found: Simulation, hazard: float, memory: float, name: str) -> Drift:
    return Drift(
        hazard,
        memory,
        earned=found.estimate(name, "expected"),
        gained=found.compare(name, str(found.baseline)),
        accepted=found.estimate(name, "accepted"),
    )
