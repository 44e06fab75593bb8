"""check_paper: every claim of Wei (2020), "Optimal Policies for the Homogeneous Selective Labels Problem", checked.

Each check computes what the claim says, by a road other than the claim's own where there is one, and returns a
:class:`Claim` with the numbers found. A claim *holds* if nothing contradicts it here, *holds with a correction* if its
statement stands but a detail is to be put right, is *made precise* if the paper leaves open what is computed here, and
*fails* if the numbers contradict it. Nothing is assumed: a check that finds a contradiction says so.
"""

from __future__ import annotations

from collections.abc import Callable

from lenience.paper import approximation, average, discounted, discussion, formulation, shape
from lenience.paper.claim import Claim as Claim

CHECKS: tuple[Callable[[int], Claim], ...] = (
    formulation.deterministic,
    formulation.utility,
    formulation.average_utility,
    formulation.rejection_cost,
    formulation.decomposition,
    discounted.known_p,
    discounted.bandit,
    discounted.belief_state,
    discounted.past_outcomes,
    discounted.one_step,
    discounted.any_policy,
    discounted.theorem_one,
    discounted.bellman,
    discounted.stopping,
    discounted.infinite_sample,
    approximation.approximation,
    approximation.figure,
    approximation.small_n,
    approximation.limit,
    shape.chords,
    shape.shape,
    shape.more_stringent,
    average.to_go,
    average.known_average,
    average.jensen,
    average.average,
    average.indistinct,
    average.two_phase,
    discussion.speed,
    discussion.exploration,
    discussion.sequence,
    discussion.groups,
    discussion.confidence,
    discussion.borrowed,
    shape.monotone_step,
    shape.convex_step,
    shape.weights,
    shape.base_case,
    shape.inductive_step,
)


def check_paper(seed: int = 2020) -> list[Claim]:
    """All claims, in the order of the paper; it takes some twenty seconds.

    >>> discounted.belief_state(0).verdict
    'holds'
    """
    return [check(seed) for check in CHECKS]
