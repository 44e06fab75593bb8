"""regret_table: which policies are best when rewards are not discounted (the paper's Section 3.2, Theorem 4).

Theorem 4 only requires that a policy never stops for good, and does not rank the policies that satisfy this. Over a
finite number H of individuals they differ. The regret of a policy is what it earns less than a policy that knows p,
H·E[max(p − c, 0)]. Part of it is unavoidable: the finite-horizon optimum has it too. All values are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import msgspec

from lenience.analysis.evaluate import evaluate
from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.validation import listed, real, whole
from lenience.objectives.average_reward import AverageReward
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.policies.beliefs.explore_then_exploit import ExploreThenExploit

MOST_INDIVIDUALS = 80_000  # the exact evaluation of a schedule visits H²/2 states
SCHEDULES: Mapping[str, Callable[[int], float]] = {
    "log H": lambda horizon: math.log(horizon),
    "log²H": lambda horizon: math.log(horizon) ** 2,
    "√H": lambda horizon: horizon**0.5,
    "H^(2/3)": lambda horizon: horizon ** (2 / 3),
    "H/10": lambda horizon: horizon / 10,
}


class Regret(msgspec.Struct, frozen=True):
    """What a policy earns over a horizon, and what it misses.

    Parameters
    ----------
    policy : str
        The name of the policy.
    horizon : int
        The number of individuals.
    explore : int or None
        The number of individuals accepted to explore, if the policy explores first.
    value : float
        What the policy earns.
    regret : float
        What it earns less than a policy that knows p.
    avoidable : float
        What it earns less than the finite-horizon optimum.
    """

    policy: str
    horizon: int
    explore: int | None
    value: float
    regret: float
    avoidable: float


def regret_table(
    cost: float,
    prior: Belief | MixtureBelief,
    horizons: Iterable[int] = (10, 30, 100, 300, 1000, 3000, 10_000),
    schedules: Iterable[str] = tuple(SCHEDULES),
    constant: float = 0.5,
) -> list[Regret]:
    """Compute the exact regret of several policies at several horizons, without discounting.

    The policies are the optimum, always accept, accept with a constant probability, and exploring for some individuals
    before exploiting, by each schedule.

    Parameters
    ----------
    cost : float
        The break-even success rate.
    prior : Belief or MixtureBelief
        The belief at the start. If it may be wrong, policies exploit where the mean of the mixture is above the cost.
    horizons : iterable of int, optional
        The numbers of individuals H, at most 80,000.
    schedules : iterable of str, optional
        How many individuals to explore, among "log H", "log²H", "√H", "H^(2/3)" and "H/10".
    constant : float, optional
        The probability of the constant policy.

    Returns
    -------
    list of Regret
        One row per horizon and policy.

    Raises
    ------
    InputError
        If an argument is invalid.

    Examples
    --------
    >>> rows = regret_table(0.5, Belief(2, 1), horizons=[100], schedules=["√H"])
    >>> [(row.policy, round(row.regret, 2)) for row in rows]
    [('optimal', 1.17), ('always accept', 12.5), ('accept with probability 0.5', 12.5), ('explore √H', 2.27)]
    >>> doubted = MixtureBelief.doubt(Belief(10, 3), 0.2)
    >>> rows = regret_table(0.5, doubted, horizons=[100], schedules=["√H"])
    >>> [(row.policy, round(row.regret, 2)) for row in rows]
    [('optimal', 1.19), ('always accept', 19.03), ('accept with probability 0.5', 11.03), ('explore √H', 2.6)]
    """
    start = prior.simplified if isinstance(prior, MixtureBelief) else check_prior(prior)
    known = math.fsum(
        weight * AverageReward(cost).value(belief).midpoint
        for belief, weight in zip(MixtureBelief.of(start).beliefs, MixtureBelief.of(start).weights, strict=True)
    )
    names = listed("schedules", schedules, f"names among {', '.join(SCHEDULES)}")
    for name in names:
        if name not in SCHEDULES:
            raise InputError("schedules", name, f"names among {', '.join(SCHEDULES)}")
    rows: list[Regret] = []
    share = real("constant", constant, least=0, most=1)
    lengths = [
        whole("horizons", horizon, least=1, most=MOST_INDIVIDUALS) for horizon in listed("horizons", horizons, "a list")
    ]
    for horizon in lengths:
        lengths_explored = [min(horizon, math.ceil(SCHEDULES[name](horizon))) for name in names]
        best, explored = _values(cost, start, horizon, lengths_explored)
        # The belief's mean is a martingale, so accepting without regard to it earns p̂ − c each time.
        mean = horizon * (start.mean - cost)
        earned: list[tuple[str, int | None, float]] = [
            ("optimal", None, best),
            ("always accept", None, mean),
            (f"accept with probability {share:g}", None, share * mean),
        ]
        earned += [
            (f"explore {name}", explore, value)
            for name, explore, value in zip(names, lengths_explored, explored, strict=True)
        ]
        rows += [
            Regret(name, horizon, explore, value, horizon * known - value, best - value)
            for name, explore, value in earned
        ]
    return rows


def _values(cost: float, prior: Belief | MixtureBelief, horizon: int, lengths: list[int]) -> tuple[float, list[float]]:
    """Return what the optimum earns, and what exploring for some individuals first earns, for each length."""
    problem = FiniteHorizon(cost, horizon)
    if isinstance(prior, Belief):
        policies = [ExploreThenExploit(cost, explore, prior) for explore in lengths]
        best = problem.enclose(prior, 1e-9)[0].midpoint
        return best, [evaluate(policy, problem, prior).midpoint for policy in policies]
    import numpy as np

    from lenience.solvers.offers.doubt import even_rows, undiscounted_values

    accept_from = np.tile(even_rows(prior, problem.cost, horizon, strictly=True), (len(lengths), 1))
    for line, explore in enumerate(lengths):
        accept_from[line, :explore] = 0
    best, values = undiscounted_values(prior, problem.cost, horizon, accept_from)
    return best, values.tolist()
