"""Forgetting: outcomes of old decisions count less, for success rates that change.

An outcome of a decision that is d days old counts as w(d) = 2^(−d/h), with the half-life h. The evidence of a segment
is its prior plus Σ w, of which Σ w over the successes are successes. Days are those of UTC. What is forgotten,
Σ (1 − w), is computed once a day and recorded in the log, so that the audit can compute it again.

The evidence is bounded. With λ acceptances a day, whose outcomes are known at once, it tends to

    Σ_d λ 2^(−d/h) = λ / (1 − 2^(−1/h)) ≈ λ h / ln 2,

so that a segment never becomes surer than the data of about 1.44 half-lives make it. The prior does not fade. So a
segment that the policy has stopped drifts back to the prior, and gets another chance if the policy accepts there.

What it costs. If success rates do not change, the policy without forgetting is the optimum, and one that forgets earns
less. With arrivals at regular times it is :class:`lenience.policies.beliefs.forgetting.Forgetting` with the memory
ρ = 2^(−1/(h λ)) from one arrival to the next. Its loss is estimated by simulation on the same individuals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief
from lenience.core.formatting import percent
from lenience.objectives.discounted import Discounted

if TYPE_CHECKING:
    from lenience.service.domain.specification import SegmentProblem
    from lenience.simulation.result import Estimate

SIMULATED = 3  # segments with the most arrivals
STEPS = 600_000  # arrivals that are simulated for a segment
FEWEST, MOST = 200, 2_000  # replications
LEFT_OUT = 5.0  # a replication ends when what is left counts e^−5
LONGEST = 12_500  # arrivals of a replication; longer problems are not simulated
YEAR = 365.25  # days


class Forgetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How fast outcomes are forgotten."""

    half_life_days: Annotated[
        float, Meta(ge=1, le=36_500, description="Days after its decision when an outcome counts half")
    ]


def forgotten(known: Mapping[tuple[int, bool], int], today: int, half_life: float) -> tuple[float, float]:
    """Return how many outcomes and successes are forgotten.

    Parameters
    ----------
    known : mapping
        The number of known outcomes by the day of the decision (days since 1970) and whether it is a success.
    today : int
        The day.
    half_life : float
        The half-life in days.

    Examples
    --------
    >>> forgotten({(100, True): 4, (100, False): 2, (190, True): 8}, today=190, half_life=90)
    (3.0, 2.0)
    """
    rate = math.log(2.0) / half_life
    lost = {
        (day, good): number * -math.expm1(-rate * max(today - day, 0)) for (day, good), number in sorted(known.items())
    }
    return math.fsum(lost.values()), math.fsum(value for (_, good), value in lost.items() if good)


class ForgettingCost(NamedTuple):
    """What forgetting costs if nothing changes, as a share of the optimal value, with its 95% interval."""

    share: float
    low: float
    high: float


def most_evidence(arrivals: float, half_life: float) -> float:
    """Return to how many outcomes the evidence of a segment tends at most, with arrivals a year.

    >>> round(most_evidence(365.25, 365.0), 1)
    527.1
    """
    return arrivals / YEAR / -math.expm1(-math.log(2.0) / half_life)


def forgetting_warnings(
    forgetting: Forgetting, arrivals: float | None, problems: Sequence[SegmentProblem]
) -> list[str]:
    """Say what forgetting costs if nothing changes, and how much evidence a segment can have at most.

    Parameters
    ----------
    forgetting : Forgetting
        The half-life.
    arrivals : float or None
        The arrivals of all segments in a year, if they are known.
    problems : sequence of SegmentProblem
        The problems of the version's segments.
    """
    half_life = forgetting.half_life_days
    first = f"Outcomes count half {half_life:g} days after their decision."
    if arrivals is None:
        return [
            f"{first} What this costs, and how much evidence a segment can have, depends on the arrivals. Give the "
            "objective arrivals and discount_rate instead of discount to have it stated."
        ]
    most = most_evidence(arrivals * max(one.share for one in problems), half_life)
    limit = f"The evidence of the largest segment is at most about {most:,.0f} outcomes."
    cost = forgetting_cost(half_life, arrivals, problems)
    if cost is None:
        return [f"{first} {limit} What it costs if success rates do not change is not computed for this policy."]
    share, low, high = (percent(max(value, 0.0)) for value in cost)
    about = f"about {share} of the value ({low} to {high}, simulated)"
    if cost.share >= 1.0:
        about = "more than the policy earns. Use a longer half-life"
    return [f"{first} If success rates do not change, forgetting costs {about}. {limit}"]


def forgetting_cost(half_life: float, arrivals: float, problems: Sequence[SegmentProblem]) -> ForgettingCost | None:
    """Estimate what forgetting costs if nothing changes, or return None if the policy is not simulated.

    The largest segments are simulated, without delay of outcomes and without limits. The value that the loss is
    compared with is the exact one.

    Parameters
    ----------
    half_life : float
        The half-life in days.
    arrivals : float
        The arrivals of all segments in a year.
    problems : sequence of SegmentProblem
        The problems of the segments.
    """
    from lenience.analysis.drift import drift_study

    lost = low = high = value = 0.0
    losses: dict[tuple[float, float, Belief, float], Estimate] = {}  # segments that are alike are simulated once
    for one in sorted(problems, key=lambda one: -one.share)[:SIMULATED]:
        problem, prior = one.problem, one.prior
        if not isinstance(problem, Discounted) or problem.offers is not None or not isinstance(prior, Belief):
            return None
        discount = problem.discount
        horizon = math.ceil(LEFT_OUT / (1.0 - discount)) if discount else 0
        if not discount or horizon > LONGEST:
            return None
        memory = math.exp(-math.log(2.0) * YEAR / (half_life * arrivals * one.share))
        replications = min(max(STEPS // horizon, FEWEST), MOST)
        key = (problem.cost, discount, prior, memory)
        if key not in losses:
            rows = drift_study(
                problem.cost, discount, prior, [0.0], [memory], horizon=horizon, replications=replications, workers=1
            )
            losses[key] = rows[0].gained
        gained = losses[key]
        lost -= gained.mean
        low -= gained.upper
        high -= gained.lower
        value += problem.solve(prior).value(prior).midpoint
    return None if value <= 0.0 else ForgettingCost(lost / value, low / value, high / value)
