"""characteristics: exactly what a policy does to a population: what learning costs, and whom bad luck shuts out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import StoppingObjective
from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule, Policy
from lenience.core.validation import having, real, whole
from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy
from lenience.policies.beliefs.offers import OfferPolicy

# Rounding error of a row: 1 − p, two products and a sum, for the probabilities and for the totals. The states of a row
# are added one after the other, and a row has at most as many states as there are rows.
ROUNDING = 9 * 2.0**-53
MOST_ROWS = 100_000


class Characteristics(msgspec.Struct, frozen=True, eq=False):
    """The operating characteristics of a policy at a true success probability, or averaged over a belief.

    Parameters
    ----------
    p : float or None
        The true success probability, or None if averaged over the belief.
    cost : float
        The break-even success rate; with offers, the lowest one.
    stops : Bounds
        The probability of ever stopping for good: no later arrival is accepted, whatever it brings.
    stops_at : ndarray
        ``stops_at[k]`` is the probability of stopping after exactly k acceptances.
    accepted : Bounds
        The expected number accepted.
    reward : Bounds
        The expected (discounted) reward; in money if there are offers.
    shut_out : Bounds or None
        The probability that the policy rejects a population with p > c for good; None if p ≤ c. With offers, c is the
        lowest break-even: some offer would pay.
    offer_acceptance : tuple of Bounds or None
        With offers, the share of the arrivals with each offer that are accepted at this offer, discounted: who gets
        what. None with one break-even.

    Examples
    --------
    >>> from lenience import Belief, Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> result = characteristics(policy, p=0.9)
    >>> round(result.stops.midpoint, 3), round(result.shut_out.midpoint, 3), round(result.reward.midpoint, 2)
    (0.266, 0.266, 7.44)
    """

    p: float | None
    cost: float
    stops: Bounds
    stops_at: np.ndarray[Any, np.dtype[np.float64]]
    accepted: Bounds
    reward: Bounds
    shut_out: Bounds | None
    offer_acceptance: tuple[Bounds, ...] | None = None

    def __repr__(self) -> str:
        whom = "averaged over the belief" if self.p is None else f"p={self.p}"
        return f"Characteristics({whom}, stops={self.stops}, accepted={self.accepted}, reward={self.reward}, ...)"


def characteristics(
    policy: Policy | OfferRule,
    p: float | None = None,
    objective: StoppingObjective | None = None,
    belief: Belief | MixtureBelief | None = None,
    rows: int = 10_000,
) -> Characteristics:
    """Compute the exact operating characteristics of a policy.

    With an infinite horizon the walk is followed over ``rows`` acceptances. The bounds include whatever may happen
    after that.

    Parameters
    ----------
    policy : Policy or OfferRule
        Any policy with an ``acceptance(n, s)``. If the objective has offers, it may look at the offer, too
        (``offer_acceptance``); one that does not treats all offers alike.
    p : float, optional
        The true success probability; by default the result is averaged over the belief.
    objective : Discounted or FiniteHorizon, optional
        The objective; by default that of the policy.
    belief : Belief or MixtureBelief, optional
        The belief at the start; by default the prior of the policy. A mixture must be the prior of the policy, solved
        for one break-even.
    rows : int, optional
        The number of acceptances to follow if the horizon is infinite.

    Returns
    -------
    Characteristics
        The probability of stopping, the number accepted, the reward and the probability of shutting out.

    Raises
    ------
    InputError
        If an argument is invalid, or is neither given nor known from the policy.

    Examples
    --------
    >>> from lenience import Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> good = characteristics(policy, p=0.9)
    >>> print(good.shut_out)
    0.265645860... ± ...
    >>> print(good.accepted)  # the policy may never stop
    ∞
    >>> bad = characteristics(policy, p=0.7)
    >>> print(bad.accepted)
    10.018577... ± ...

    With offers, small amounts are accepted more often:

    >>> from lenience import Offers
    >>> policy = Discounted(offers=Offers(amount=[1, 5], cost=[0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
    >>> [round(share.midpoint, 3) for share in characteristics(policy, p=0.9).offer_acceptance]
    [0.854, 0.774]
    """
    if not isinstance(policy, OfferRule):
        having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    goal = _own(policy, "objective", objective)
    if not isinstance(goal, StoppingObjective):
        raise InputError("objective", goal, "a Discounted or a FiniteHorizon objective")
    given = _own(policy, "prior", belief)
    truth = None if p is None else real("p", p, least=0, most=1)
    rows = whole("rows", rows, least=1, most=MOST_ROWS)
    rule: Any = policy
    if isinstance(given, MixtureBelief):
        given = given.simplified
    if isinstance(given, MixtureBelief) and goal.offers is None and getattr(policy, "prior", None) == given:
        return _with_mixture(rule, truth, goal, given, rows)
    if goal.offers is None:
        having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    start = check_prior(given, "belief")
    if goal.offers is not None:
        if goal.horizon is not None:
            return _over_horizon(rule, truth, goal, goal.offers, start)
        return _with_offers(rule, truth, goal, goal.offers, start, rows)
    return _with_one_cost(rule, truth, goal, start, rows)


def _with_mixture(
    policy: OfferPolicy | HorizonOfferPolicy,
    truth: float | None,
    goal: StoppingObjective,
    start: MixtureBelief,
    rows: int,
) -> Characteristics:
    """Follow the optimum for a prior that may be wrong, with one break-even.

    Its decisions depend on the outcomes alone. So the average over the prior is the average over its beliefs.
    """
    from lenience.policies.beliefs.mixture import MixturePolicy

    solved: Any = policy
    if goal.horizon is not None:
        rows = whole("horizon", goal.horizon, least=1, most=MOST_ROWS)
    elif solved.rows < rows:
        objective: Any = goal
        solved = objective.solve(start, rows=rows, tolerance=policy.certificate.tolerance)
    rules: list[Any] = list(MixturePolicy.by_belief(solved, rows))
    if truth is not None:
        return _with_one_cost(rules[0], truth, goal, start.beliefs[0], rows)
    parts = [_with_one_cost(rule, None, goal, rule.prior, rows) for rule in rules]

    def mean(of: Callable[[Characteristics], Bounds | None]) -> Bounds:
        bounds = [of(part) or Bounds(0.0, 0.0) for part in parts]
        lower = math.fsum(weight * one.lower for weight, one in zip(start.weights, bounds, strict=True))
        upper = math.fsum(weight * one.upper for weight, one in zip(start.weights, bounds, strict=True))
        return Bounds(lower, upper)

    stops_at = np.zeros(max(part.stops_at.size for part in parts))
    for weight, part in zip(start.weights, parts, strict=True):
        stops_at[: part.stops_at.size] += weight * part.stops_at
    return Characteristics(
        p=None,
        cost=goal.cost,
        stops=mean(lambda part: part.stops),
        stops_at=stops_at,
        accepted=mean(lambda part: part.accepted),
        reward=mean(lambda part: part.reward),
        shut_out=mean(lambda part: part.shut_out),
    )


def _with_one_cost(
    policy: Policy, truth: float | None, goal: StoppingObjective, start: Belief, rows: int
) -> Characteristics:
    """Follow a policy with one break-even."""
    from lenience.solvers.stopping.forward import Later, later_acceptances, later_stops, walk

    cost, discount = goal.cost, goal.discount
    if goal.horizon is None:  # these methods of the policy bound what happens after the last row
        having("policy", policy, "stop_ceiling", "one with a stop_ceiling and a stop_floor(n)")
    if goal.horizon is not None:
        rows = whole("horizon", goal.horizon, least=1, most=MOST_ROWS)
    result = walk(policy, start.n, start.s, cost, discount, rows, truth, certain=goal.horizon is not None)

    stopped, deserving = float(result.stopped.sum()), float(result.stopped_deserving.sum())
    accepted, earned = float(result.moving.sum()), float(result.earned.sum())
    more, tail, later = 0.0, 0.0, Later(0.0, 0.0, 0.0)
    if goal.horizon is None:
        later = later_stops(policy, result, start.n, start.s, cost, rows, truth)
        more = later_acceptances(policy, result, start.n, start.s, rows, truth)
        tail = (float(result.left_weight.sum()) + result.aside) / (1.0 - discount)
    rounding = ROUNDING * (rows + 1)
    slack = rounding * (1.0 + accepted)
    stops = _probability(stopped + later.stop_lower, stopped + later.stop_upper, rounding)
    # If the policy may never stop, even with probability one in a million, the expected number accepted is infinite.
    endless = goal.horizon is None and stops.upper < 1.0
    return Characteristics(
        p=truth,
        cost=cost,
        stops=stops,
        stops_at=result.stopped,
        accepted=Bounds(math.inf, math.inf) if endless else Bounds(accepted - slack, accepted + more + slack),
        reward=Bounds(earned - tail - slack, earned + tail + slack),
        shut_out=None
        if truth is not None and truth <= cost
        else _probability(deserving, deserving + later.deserving_upper, rounding),
    )


def _with_offers(
    policy: OfferRule | Accepts, truth: float | None, goal: StoppingObjective, offers: Offers, start: Belief, rows: int
) -> Characteristics:
    """Follow a policy with offers, without a horizon."""
    from lenience.solvers.offers.forward import stop_rates, walk_offers
    from lenience.solvers.stopping.forward import later_acceptances, later_stops

    lowest, discount = _lowest_cost(offers), goal.discount
    result, made = walk_offers(policy, start.n, start.s, offers, discount, rows, truth, lowest)
    rates: Any = stop_rates(policy, start.n + rows, offers)
    later = later_stops(rates, result, start.n, start.s, lowest, rows, truth)
    more = later_acceptances(rates, result, start.n, start.s, rows, truth)
    left = float(result.left_weight.sum()) + result.aside
    tail = left * offers.mean_amount / (1.0 - discount)
    stopped, deserving = float(result.stopped.sum()), float(result.stopped_deserving.sum())
    accepted, earned = float(result.moving.sum()), float(result.earned.sum())
    rounding = ROUNDING * (rows + 1)
    slack = rounding * (1.0 + accepted)
    stops = _probability(stopped + later.stop_lower, stopped + later.stop_upper, rounding)
    endless = stops.upper < 1.0
    money_slack = rounding * offers.mean_amount * (1.0 + 1.0 / (1.0 - discount))
    shares = (1.0 - discount) * made / _offer_shares(offers)
    return Characteristics(
        p=truth,
        cost=lowest,
        stops=stops,
        stops_at=result.stopped,
        accepted=Bounds(math.inf, math.inf) if endless else Bounds(accepted - slack, accepted + more + slack),
        reward=Bounds(earned - tail - money_slack, earned + tail + money_slack),
        shut_out=None
        if truth is not None and truth <= lowest
        else _probability(deserving, deserving + later.deserving_upper, rounding),
        offer_acceptance=tuple(_probability(share, share + left, rounding) for share in shares.tolist()),
    )


def _over_horizon(
    policy: OfferRule | Accepts, truth: float | None, goal: StoppingObjective, offers: Offers, start: Belief
) -> Characteristics:
    """Follow a policy with offers over a known number of arrivals."""
    from lenience.solvers.offers.pyramid import OfferPyramid, walk_pyramid

    lowest, horizon = _lowest_cost(offers), goal.horizon or 0
    result = walk_pyramid(OfferPyramid(policy, start, offers, horizon, truth), goal.discount, lowest)
    rounding = ROUNDING * (horizon + 1)
    accepted = float(result.accepted.sum())
    slack = rounding * (1.0 + accepted)
    count = goal.discounted_count
    shares = result.made / (count * _offer_shares(offers))
    return Characteristics(
        p=truth,
        cost=lowest,
        stops=_probability(float(result.stopped.sum()), float(result.stopped.sum()), rounding),
        stops_at=result.stopped,
        accepted=Bounds(accepted - slack, accepted + slack),
        reward=Bounds(result.earned - slack * offers.mean_amount, result.earned + slack * offers.mean_amount),
        shut_out=None
        if truth is not None and truth <= lowest
        else _probability(result.stopped_deserving, result.stopped_deserving, rounding),
        offer_acceptance=tuple(_probability(share, share, rounding) for share in shares.tolist()),
    )


def _lowest_cost(offers: Offers) -> float:
    """Return the lowest break-even of the offers that come."""
    costs = [cost for cost, menu in zip(offers.cost, offers.menu_of, strict=True) if offers.share[menu] > 0.0]
    return float(min(costs))


def _offer_shares(offers: Offers) -> NDArray[np.float64]:
    """Return the share of arrivals that bring each offer; infinity if none does, so that its acceptance is 0."""
    shares: NDArray[np.float64] = np.array(offers.share)[np.array(offers.menu_of)]
    shares[shares == 0.0] = np.inf
    return shares


def _probability(lower: float, upper: float, rounding: float) -> Bounds:
    """Return bounds of a probability, widened by rounding and clipped to 0 and 1."""
    return Bounds(max(lower - rounding, 0.0), min(upper + rounding, 1.0))


def _own(policy: Policy | OfferRule, name: str, given: object) -> object:
    """Return the given value, or the attribute of the policy if none is given."""
    value = getattr(policy, name, None) if given is None else given
    if value is None:
        raise InputError.because(
            "is required, because the policy does not have one", "belief" if name == "prior" else name, code="missing"
        )
    return value
