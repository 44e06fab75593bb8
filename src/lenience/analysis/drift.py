"""drift_study: when a policy that forgets pays, and what forgetting costs if nothing drifts.

The world draws p again from the prior before each arrival with probability ``hazard``. With hazard 0 the optimum is
optimal. For each hazard, policies with several memories and the optimum meet the same individuals. The study estimates
what each earns more than the optimum (which shuts a population out for good) from the differences.
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
    """What a memory earns at a hazard, in expected discounted reward.

    Parameters
    ----------
    hazard : float
        The probability, before each arrival, that p is drawn again.
    memory : float
        The factor by which a past observation loses weight at each arrival; 1 is the optimum without drift.
    earned : Estimate
        What the policy earns.
    gained : Estimate
        What it earns more than the optimum without drift.
    accepted : Estimate
        The number accepted.
    """

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
    """Estimate what policies that forget earn when p changes at random times.

    Parameters
    ----------
    cost : float
        The break-even success rate.
    discount : float
        The discount factor from one arrival to the next.
    prior : Belief
        The belief at the start, from which the world draws p.
    hazards : iterable of float, optional
        The probabilities, before each arrival, that p is drawn again.
    memories : iterable of float, optional
        The memories, strictly between 0 and 1.
    horizon : int, optional
        The number of arrivals in each replication.
    replications : int, optional
        The number of replications.
    seed : int, optional
        Seed of the random numbers.
    workers : int, optional
        The number of processes; by default as joblib is configured.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    list of Drift
        One row per hazard and memory. Memory 1 is the optimum of a world without drift.

    Raises
    ------
    InputError
        If an argument is invalid.

    Examples
    --------
    >>> rows = drift_study(0.5, 0.99, Belief(2, 1), [0.0, 0.02], [0.97], horizon=600, replications=500)
    >>> [(row.hazard, row.memory, row.gained.upper < 0, row.gained.lower > 0) for row in rows if row.memory < 1]
    [(0.0, 0.97, True, False), (0.02, 0.97, False, True)]
    """
    checked = [
        real("memories", memory, above=0, below=1) for memory in listed("memories", memories, "a list of numbers")
    ]
    rates = [real("hazards", hazard, least=0, most=1) for hazard in listed("hazards", hazards, "a list of numbers")]
    policies = {f"memory {memory:g}": Forgetting(cost, discount, memory, prior) for memory in checked}
    plans = [
        prepare(policies, Redrawn(prior, hazard), cost, horizon, prior, discount, replications, seed)
        for hazard in rates
    ]
    blocks = list(run_tasks([task for each in plans for task in each.tasks], workers, progress))
    rows: list[Drift] = []
    for hazard, each in zip(rates, plans, strict=True):
        own_blocks, blocks = blocks[: len(each.tasks)], blocks[len(each.tasks) :]
        simulation = each.finished(own_blocks)
        rows += [_row(simulation, hazard, memory, f"memory {memory:g}") for memory in checked]
        rows.append(_row(simulation, hazard, 1.0, str(simulation.baseline)))
    return rows


def _row(simulation: Simulation, hazard: float, memory: float, name: str) -> Drift:
    """Return the estimates of one policy of a simulation."""
    return Drift(
        hazard,
        memory,
        earned=simulation.estimate(name, "expected"),
        gained=simulation.compare(name, str(simulation.baseline)),
        accepted=simulation.estimate(name, "accepted"),
    )
