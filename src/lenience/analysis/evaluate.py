"""evaluate: the exact value of any policy."""

from __future__ import annotations

import math
from typing import Any

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import Objective
from lenience.core.protocols import OfferRule, Policy, looks_at
from lenience.core.validation import check_tolerance, having


def evaluate(
    policy: Policy | OfferRule, objective: Objective, belief: Belief | MixtureBelief, tolerance: float = 1e-9
) -> Bounds:
    """Compute the exact value of any policy, including policies that decide at random.

    Nothing is assumed about the policy, so this visits every belief that can be reached. For the optimal policy, its
    own ``value`` is much faster.

    Parameters
    ----------
    policy : Policy or OfferRule
        Any policy with an ``acceptance(n, s)``. If the objective has offers, it may look at the offer, too
        (``offer_acceptance``); one that does not treats all offers alike.
    objective : Objective
        What the policy earns, such as ``Discounted`` or ``FiniteHorizon``, with one break-even or with offers.
    belief : Belief or MixtureBelief
        The belief at the start. If it may be wrong, the policy trusts the first belief of the mixture, and the value is
        what it earns on average over all of them.
    tolerance : float, optional
        The largest error.

    Returns
    -------
    Bounds
        Proved lower and upper bounds of the value.

    Raises
    ------
    InputError
        If an argument is invalid, or the belief is a mixture and the policy was solved for a mixture or looks at the
        number of arrivals left. The ``value`` of a policy is exact for its own mixture.
    TooLargeError
        If too many beliefs can be reached.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> print(evaluate(Greedy(cost=0.8), Discounted(cost=0.8, discount=0.99), Belief(6, 5)))
    5.691964431... ± ...
    >>> print(evaluate(Greedy(cost=0.8), Discounted(cost=0.8, discount=0.99), MixtureBelief.doubt(Belief(6, 5), 0.2)))
    4.738144247... ± ...
    """
    offered = getattr(objective, "offers", None) is not None and isinstance(policy, OfferRule)
    if not offered:
        having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    start = belief.simplified if isinstance(belief, MixtureBelief) else check_prior(belief, "belief")
    tolerance = check_tolerance(tolerance)
    having("objective", objective, "evaluate", "a Discounted or a FiniteHorizon objective")
    rule: Any = policy
    if isinstance(start, MixtureBelief):
        return _average(rule, objective, start, tolerance, offered)
    return objective.evaluate(rule, start, tolerance)


def _average(policy: Any, objective: Any, prior: MixtureBelief, tolerance: float, offered: bool) -> Bounds:
    """Return what a policy that trusts the first belief earns, on average over all beliefs of the prior."""
    from lenience.analysis.counted_policy import CountedOfferPolicy, CountedPolicy

    own = getattr(policy, "prior", None)
    doubts = isinstance(own, MixtureBelief) and isinstance(own.simplified, MixtureBelief)
    if doubts or (offered and looks_at(policy, "left")):
        raise InputError.because(
            "must decide by one belief alone where the prior may be wrong",
            "policy",
            value=type(policy).__name__,
            hint="Use the value of the policy, policy.value(belief), or simulate it.",
            code="invalid_value",
        )
    counted = CountedOfferPolicy if offered or objective.offers is not None else CountedPolicy
    parts = [
        (weight, objective.evaluate(counted(policy, prior.beliefs[0], right), right, tolerance))
        for weight, right in zip(prior.weights, prior.beliefs, strict=True)
    ]
    slack = 4.0 * 2.0**-53 * math.fsum(weight * max(abs(one.lower), abs(one.upper)) for weight, one in parts)
    return Bounds(
        math.fsum(weight * one.lower for weight, one in parts) - slack,
        math.fsum(weight * one.upper for weight, one in parts) + slack,
    )
