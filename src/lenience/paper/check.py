"""check_paper: check every claim of the paper, in the order of the paper."""

from __future__ import annotations

from collections.abc import Callable

from lenience.paper import approximation, average, discounted, discussion, formulation, shape
from lenience.paper.claim import Claim

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
    """Check every claim of Wei (2020), in the order of the paper.

    This takes about twenty seconds.

    Parameters
    ----------
    seed : int, optional
        Seed of the random numbers.

    Returns
    -------
    list of Claim
        What the paper says, whether it holds, and the numbers that show it.

    Examples
    --------
    >>> len(CHECKS)
    39
    >>> discounted.belief_state(0).verdict
    'holds'
    """
    return [check(seed) for check in CHECKS]
