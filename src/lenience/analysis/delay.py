"""What late labels cost, and what looking at them is worth: exactly for exponential delays, by simulation for others.

The rivals of the exposure limit, each a policy for labels that come at once:

- *blind*: the optimum for labels that come at once (the paper's), used as if they did;
- *greedy*: accept where p̂ > c;
- *cap k*: accept where the blind policy does, but where p̂ < c only while fewer than k are pending;
- *wait for every label*: accept where the blind policy does, but never with a label pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.protocols import PendingPolicy
from lenience.core.validation import check_tolerance, having, listed, real
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.greedy import Greedy
from lenience.policies.beliefs.pending import Blind, Capped
from lenience.simulation.delay_events import DelayLaw, LimitPolicy, SimulatedValue, simulate_delays

OPTIMAL = "exposure limit"
BLIND = "blind to pending"


class DelayValue(msgspec.Struct, frozen=True):
    """What a policy earns at a mean label delay."""

    policy: str
    label_delay: float
    value: Bounds


class LawValues(msgspec.Struct, frozen=True):
    """What policies earned by simulation under a delay law, at a success rate (None: drawn from the prior)."""

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
    policy: PendingPolicy, objective: Delayed, prior: Belief, tolerance: float = 1e-5, most: float | None = None
) -> Bounds:
    """The exact value, before the first arrival, of a policy that looks at the belief and at what is pending.

    An evaluation of more than ``most`` states is refused; by default that is a few minutes' work.

    >>> problem = Delayed(cost=0.8, arrivals=50, discount_rate=0.5, label_delay=0.25)
    >>> print(evaluate_pending(Blind(Greedy(0.8), cost=0.8), problem, Belief(6, 5)))
    6.48202... ± ...
    """
    from lenience.solvers.delayed.evaluation import MOST_UPDATES, evaluate_delayed

    having("policy", policy, "steady_limit", "a policy that knows what may be pending, such as Capped")
    having("objective", objective, "problem", "a Delayed objective")
    check_prior(prior)
    return evaluate_delayed(
        policy, objective.problem(prior), check_tolerance(tolerance), MOST_UPDATES if most is None else most
    )


def rivals(objective: Delayed, prior: Belief, caps: Iterable[int] = (1, 3, 10)) -> dict[str, Blind | Capped]:
    """The policies that exposure limits are compared with, by name.

    >>> list(rivals(Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1), Belief(2, 1), caps=[3]))
    ['blind to pending', 'greedy', 'cap 3', 'wait for every label']
    """
    check_prior(prior)
    cost = objective.cost
    paper = Discounted.from_rates(cost, objective.arrivals, objective.discount_rate).solve(prior)
    found: dict[str, Blind | Capped] = {BLIND: Blind(paper, cost), "greedy": Blind(Greedy(cost), cost)}
    found |= {f"cap {cap}": Capped(paper, cost, cap) for cap in caps}
    found["wait for every label"] = Capped(paper, cost, 1, everywhere=True)
    return found


def value_by_delay(
    cost: float,
    arrivals: float,
    discount_rate: float,
    prior: Belief,
    delays: Sequence[float] = (1 / 52, 1 / 12, 1 / 4, 1 / 2, 1, 2),
    caps: Iterable[int] = (1, 3, 10),
    tolerance: float = 1e-4,
) -> list[DelayValue]:
    """The exact value of each policy at each mean label delay, before the first arrival.

    >>> rows = value_by_delay(0.8, 20, 0.5, Belief(3, 2), delays=[0.25], caps=[2])
    >>> [(row.policy, round(row.value.midpoint, 3)) for row in rows]
    [('exposure limit', 0.622), ('blind to pending', 0.422), ('greedy', 0.0), ('cap 2', 0.568),
     ('wait for every label', -0.073)]
    """
    check_prior(prior)
    several = listed("caps", caps, "a list of whole numbers")
    rows = []
    for delay in listed("delays", delays, "a list of delays"):
        objective = Delayed(cost, arrivals, discount_rate, delay)
        best = objective.enclose(prior, tolerance=tolerance)[0]
        rows.append(DelayValue(OPTIMAL, objective.label_delay, best))
        for name, policy in rivals(objective, prior, several).items():
            rows.append(DelayValue(name, objective.label_delay, evaluate_pending(policy, objective, prior, tolerance)))
    return rows


def values_by_law(
    objective: Delayed,
    prior: Belief,
    laws: Iterable[DelayLaw],
    caps: Iterable[int] = (1, 2, 3, 5, 8, 12),
    rates: Iterable[float | None] = (None,),
    replications: int = 10_000,
    seed: int = 0,
) -> list[LawValues]:
    """What the exposure limit and its rivals earn by simulation when delays are not exponential.

    All policies meet the same individuals. Where some labels never come they expire at the age that the
    exposure policy states. ``rates`` are success probabilities to hold fixed; None draws them from the prior.
    """
    having("objective", objective, "problem", "a Delayed objective")
    check_prior(prior)
    best = objective.solve(prior)
    policies: Mapping[str, LimitPolicy] = {OPTIMAL: best, **rivals(objective, prior, caps)}
    found = []
    for law in listed("laws", laws, "a list of delay laws"):
        age = best.expire_after if law.never else None
        for rate in listed("rates", rates, "a list of success rates"):
            at = None if rate is None else real("rates", rate, least=0, most=1)
            values = simulate_delays(policies, objective, prior, law, replications, seed, at, age)
            found.append(LawValues(str(law), at, age, values))
    return found


def limit_cost(objective: Delayed, prior: Belief, tolerance: float = 1e-8) -> Bounds:
    """The share of the optimal value that is lost by taking the first rejection for the limit, where acceptance
    resumes above it.

    >>> cost = limit_cost(Delayed(cost=0.7, arrivals=1, discount_rate=0.1, label_delay=1), Belief(6, 4))
    >>> cost.lower > 1e-6, cost.upper < 1e-3
    (True, True)
    """
    policy = objective.solve(prior, rows=1_000_000, tolerance=tolerance)
    best = policy.value(prior)
    earned = evaluate_pending(policy, objective, prior, tolerance)
    if best.lower <= 0:
        return Bounds(0.0, 0.0)
    return Bounds(max(best.lower - earned.upper, 0.0) / best.upper, max(best.upper - earned.lower, 0.0) / best.lower)


def limit_points(policy: ExposurePolicy, sizes: Iterable[int]) -> list[LimitPoint]:
    """The exposure limits at every belief of the given numbers of labels since the prior.

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
