"""The cost of late labels, and the value of taking them into account.

Values are exact for exponential delays and simulated for others. The exposure limit is compared with these baselines,
each a policy for labels that come at once:

- *blind*: the optimum for labels that come at once (the paper's), used as if they did;
- *greedy*: accept where p̂ > c;
- *cap k*: accept where the blind policy does, but where p̂ < c only while fewer than k labels are pending;
- *wait for every label*: accept where the blind policy does, but never with a label pending.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.protocols import PendingPolicy
from lenience.core.validation import check_tolerance, having, listed, real
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.policies.beliefs.counted_cap import CountedCap
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.greedy import Greedy
from lenience.policies.beliefs.mixture import MixturePolicy
from lenience.policies.beliefs.optimal import OptimalPolicy
from lenience.policies.beliefs.pending import Blind, Capped
from lenience.simulation.delay_events import LimitPolicy, SimulatedValue, simulate_delays
from lenience.simulation.label_delay import LabelDelay

OPTIMAL = "exposure limit"
EFFECTIVE = "exposure limit, effective delay"
BLIND = "blind to pending"
SAME_DELAY = 1e-3  # relative; closer delays give the same limits
ROWS = 1_000  # of the table of the blind policy, which grows on demand
BLIND_SECONDS = 0.3  # to solve it, by the solver's estimate


class DelayValue(msgspec.Struct, frozen=True):
    """What a policy earns at a mean label delay.

    Parameters
    ----------
    policy : str
        The name of the policy.
    label_delay : float
        The mean delay of a label, in years.
    value : Bounds
        The value before the first arrival.
    """

    policy: str
    label_delay: float
    value: Bounds


class LawValues(msgspec.Struct, frozen=True):
    """What policies earned in a simulation with a delay law.

    Parameters
    ----------
    law : str
        The delay law in words.
    rate : float or None
        The true success probability, or None if drawn from the prior.
    expire_after : float or None
        The age in years at which a pending label expires, or None if never.
    values : list of SimulatedValue
        The results, one per policy.
    """

    law: str
    rate: float | None
    expire_after: float | None
    values: list[SimulatedValue]


class LimitPoint(msgspec.Struct, frozen=True):
    """The exposure limit at a belief (None: no limit) and whether it is proved."""

    n: float
    s: float
    limit: int | None
    proved: bool


def evaluate_pending(
    policy: PendingPolicy,
    objective: Delayed,
    prior: Belief | MixtureBelief,
    tolerance: float = 1e-5,
    most: float | None = None,
) -> Bounds:
    """Compute the exact value of a policy that depends on the belief and the number of pending labels.

    Parameters
    ----------
    policy : PendingPolicy
        The policy, such as ``Blind``, ``Capped`` or an exposure policy.
    objective : Delayed
        The objective, with one break-even.
    prior : Belief or MixtureBelief
        The belief at the start. If it may be wrong, the policy counts from the first belief of the mixture, as those of
        :func:`baselines` do.
    tolerance : float, optional
        The largest width of the bounds, relative to the value.
    most : float, optional
        The largest number of states to evaluate; by default a few minutes of work.

    Returns
    -------
    Bounds
        The value before the first arrival.

    Raises
    ------
    InputError
        If an argument is invalid.
    TooLargeError
        If the evaluation needs more than ``most`` states.

    Examples
    --------
    >>> problem = Delayed(cost=0.8, arrivals=50, discount_rate=0.5, label_delay=0.25)
    >>> print(evaluate_pending(Blind(Greedy(0.8), cost=0.8), problem, Belief(6, 5)))
    6.48202... ± ...
    """
    from lenience.solvers.delayed.evaluation import MOST_UPDATES, evaluate_delayed

    having("policy", policy, "steady_limit", "a policy with a limit on pending labels, such as Capped")
    having("objective", objective, "problem", "a Delayed objective")
    start = prior.simplified if isinstance(prior, MixtureBelief) else check_prior(prior)
    first, doubted = (start, None) if isinstance(start, Belief) else (start.beliefs[0], start)
    return evaluate_delayed(
        policy, objective.problem(first), check_tolerance(tolerance), MOST_UPDATES if most is None else most, doubted
    )


def baselines(
    objective: Delayed, prior: Belief | MixtureBelief, caps: Iterable[int] = (1, 3, 10)
) -> Mapping[str, Blind | Capped | CountedCap]:
    """Return the policies that exposure limits are compared with.

    Parameters
    ----------
    objective : Delayed
        The objective.
    prior : Belief or MixtureBelief
        The belief at the start. If it may be wrong, so do the baselines believe.
    caps : iterable of int, optional
        The numbers of pending labels at which to cap the blind policy, one baseline each.

    Returns
    -------
    dict of str to Blind or Capped
        The baselines by name; for a mixture they are ``CountedCap``.

    Examples
    --------
    >>> list(baselines(Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1), Belief(2, 1), caps=[3]))
    ['blind to pending', 'greedy', 'cap 3', 'wait for every label']
    """
    if isinstance(prior, MixtureBelief):
        return _doubted_baselines(objective, prior, caps)
    check_prior(prior)
    cost = objective.cost
    paper = _solved_at_once(Discounted.from_rates(cost, objective.arrivals, objective.discount_rate), prior)
    result: dict[str, Blind | Capped] = {BLIND: Blind(paper, cost), "greedy": Blind(Greedy(cost), cost)}
    result |= {f"cap {cap}": Capped(paper, cost, cap) for cap in caps}
    result["wait for every label"] = Capped(paper, cost, 1, everywhere=True)
    return result


def _doubted_baselines(objective: Delayed, prior: MixtureBelief, caps: Iterable[int]) -> dict[str, CountedCap]:
    """Return the baselines for a prior that may be wrong.

    The blind policy is the optimum for labels that come at once, for twice as many outcomes as there are discounted
    arrivals. After them it accepts where the expected success rate reaches the cost.
    """
    from lenience.solvers.offers.doubt import even_rows

    first, cost, volume = prior.beliefs[0], objective.cost, objective.volume
    even = even_rows(prior, cost, math.ceil(22 * volume) + 320)  # as many rows as an evaluation may need
    above = even_rows(prior, cost, even.size, strictly=True)
    solved = math.ceil(2 * volume) + 64
    prompt = Discounted.from_rates(cost, objective.arrivals, objective.discount_rate).solve(prior, rows=solved)
    paper = even.copy()
    paper[:solved] = MixturePolicy.of(prompt, solved).accept_from
    result = {BLIND: CountedCap(first, paper, even), "greedy": CountedCap(first, above, even)}
    result |= {f"cap {cap}": CountedCap(first, paper, even, cap) for cap in caps}
    result["wait for every label"] = CountedCap(first, paper, even, 1, everywhere=True)
    return result


@lru_cache(maxsize=64)
def _solved_at_once(objective: Discounted, prior: Belief) -> OptimalPolicy:
    """Return the optimal policy for labels that come at once; with many arrivals, from a shorter look-ahead."""
    from lenience.solvers.stopping.solve import look_ahead_within

    ahead = look_ahead_within(prior.n, objective.cost, objective.discount, ROWS, 1e-9, BLIND_SECONDS)
    policy: OptimalPolicy = objective.solve(prior, ROWS, look_ahead=ahead)
    return policy


def value_by_delay(
    cost: float,
    arrivals: float,
    discount_rate: float,
    prior: Belief,
    delays: Sequence[float] = (1 / 52, 1 / 12, 1 / 4, 1 / 2, 1, 2),
    caps: Iterable[int] = (1, 3, 10),
    tolerance: float = 1e-4,
) -> list[DelayValue]:
    """Compute the exact value of the exposure limit and its baselines at several mean label delays.

    Parameters
    ----------
    cost : float
        The break-even success rate.
    arrivals : float
        The number of arrivals per year.
    discount_rate : float
        The discount rate per year.
    prior : Belief
        The belief at the start.
    delays : sequence of float, optional
        The mean label delays, in years.
    caps : iterable of int, optional
        The numbers of pending labels at which to cap the blind policy.
    tolerance : float, optional
        The largest width of the bounds.

    Returns
    -------
    list of DelayValue
        One row per delay and policy; values are as of the start, before the first arrival.

    Examples
    --------
    >>> rows = value_by_delay(0.8, 20, 0.5, Belief(3, 2), delays=[0.25], caps=[2])
    >>> [(row.policy, round(row.value.midpoint, 3)) for row in rows]
    [('exposure limit', 0.622), ('blind to pending', 0.422), ('greedy', 0.0), ('cap 2', 0.568),
     ('wait for every label', -0.073)]
    """
    check_prior(prior)
    limits = listed("caps", caps, "a list of whole numbers")
    rows = []
    for delay in listed("delays", delays, "a list of delays"):
        objective = Delayed(cost, arrivals, discount_rate, delay)
        best = objective.enclose(prior, tolerance=tolerance)[0]
        rows.append(DelayValue(OPTIMAL, objective.label_delay, best))
        for name, policy in baselines(objective, prior, limits).items():
            rows.append(DelayValue(name, objective.label_delay, evaluate_pending(policy, objective, prior, tolerance)))
    return rows


def values_by_law(
    objective: Delayed,
    prior: Belief,
    laws: Iterable[LabelDelay],
    caps: Iterable[int] = (1, 2, 3, 5, 8, 12),
    rates: Iterable[float | None] = (None,),
    replications: int = 10_000,
    seed: int = 0,
) -> list[LawValues]:
    """Simulate what the exposure limit and its baselines earn when delays are not exponential.

    All policies meet the same individuals. If some labels never come, pending labels expire at the age that the
    exposure policy states. A law whose :meth:`~lenience.simulation.LabelDelay.effective_delay` differs from the
    objective's delay also has the limits for that delay.

    Parameters
    ----------
    objective : Delayed
        The objective. The exposure limits are solved for its exponential delays.
    prior : Belief
        The belief at the start.
    laws : iterable of LabelDelay
        The delay laws to simulate, in years.
    caps : iterable of int, optional
        The numbers of pending labels at which to cap the blind policy.
    rates : iterable of float or None, optional
        The true success probabilities; None draws them from the prior.
    replications : int, optional
        The number of replications.
    seed : int, optional
        Seed of the random numbers.

    Returns
    -------
    list of LawValues
        One row per law and rate.

    Examples
    --------
    >>> problem = Delayed(cost=0.8, arrivals=20, discount_rate=0.5, label_delay=0.25)
    >>> [row] = values_by_law(problem, Belief(3, 2), [LabelDelay("fixed", 0.25)], caps=[2], replications=100)
    >>> row.law, [value.policy for value in row.values]
    ('fixed', ['exposure limit', 'exposure limit, effective delay', 'blind to pending', 'greedy', 'cap 2',
     'wait for every label'])
    """
    having("objective", objective, "problem", "a Delayed objective")
    check_prior(prior)
    best = objective.solve(prior)
    rivals = baselines(objective, prior, caps)
    result = []
    for law in listed("laws", laws, "a list of delay laws"):
        age = None if law.all_come else best.expire_after
        policies: dict[str, LimitPolicy] = {OPTIMAL: best}
        effective = law.effective_delay(objective.discount_rate)
        if 0.0 < effective < math.inf and abs(effective / objective.label_delay - 1.0) > SAME_DELAY:
            policies[EFFECTIVE] = msgspec.structs.replace(objective, label_delay=effective).solve(prior)
        policies |= rivals
        for rate in listed("rates", rates, "a list of success rates"):
            at = None if rate is None else real("rates", rate, least=0, most=1)
            values = simulate_delays(policies, objective, prior, law, replications, seed, at, age)
            result.append(LawValues(str(law), at, age, values))
    return result


def limit_cost(objective: Delayed, prior: Belief, tolerance: float = 1e-8) -> Bounds:
    """Compute the share of the optimal value that is lost by stopping at the first rejection.

    In some problems the optimum accepts again with more labels pending than at its first rejection. An exposure limit
    does not.

    >>> cost = limit_cost(Delayed(cost=0.7, arrivals=1, discount_rate=0.1, label_delay=1), Belief(6, 4))
    >>> cost.lower > 1e-6, cost.upper < 1e-3
    (True, True)
    """
    policy = objective.solve_proved(prior, rows=1_000_000, tolerance=tolerance)
    best = policy.value(prior)
    earned = evaluate_pending(policy, objective, prior, tolerance)
    if best.lower <= 0:
        return Bounds(0.0, 0.0)
    return Bounds(max(best.lower - earned.upper, 0.0) / best.upper, max(best.upper - earned.lower, 0.0) / best.lower)


def limit_points(policy: ExposurePolicy | EstimatedExposurePolicy, sizes: Iterable[int]) -> list[LimitPoint]:
    """Return the exposure limits at every belief with the given numbers of labels since the prior.

    >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1), rows=9)
    >>> [(point.s, point.limit) for point in limit_points(policy, [8])]
    [(1.0, 0), (2.0, 0), (3.0, 0), (4.0, 0), (5.0, 0), (6.0, 1), (7.0, 5), (8.0, None), (9.0, None)]
    """
    points = []
    for k in sizes:
        for j in range(k + 1):
            belief = Belief(n=policy.prior.n + k, s=policy.prior.s + j)
            points.append(LimitPoint(belief.n, belief.s, policy.limit(belief), policy.proved(belief)))
    return points
