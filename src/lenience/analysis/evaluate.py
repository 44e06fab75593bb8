"""evaluate: the exact value of any policy."""

from __future__ import annotations

from typing import Any

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.objective import Objective
from lenience.core.protocols import OfferRule, Policy
from lenience.core.validation import check_tolerance, having


def evaluate(policy: Policy | OfferRule, objective: Objective, belief: Belief, tolerance: float = 1e-9) -> Bounds:
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
    belief : Belief
        The belief at the start.
    tolerance : float, optional
        The largest error.

    Returns
    -------
    Bounds
        Proved lower and upper bounds of the value.

    Raises
    ------
    InputError
        If an argument is invalid.
    TooLargeError
        If too many beliefs can be reached.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> print(evaluate(Greedy(cost=0.8), Discounted(cost=0.8, discount=0.99), Belief(6, 5)))
    5.691964431... ± ...
    """
    offered = getattr(objective, "offers", None) is not None and isinstance(policy, OfferRule)
    if not offered:
        having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    check_prior(belief, "belief")
    tolerance = check_tolerance(tolerance)
    having("objective", objective, "evaluate", "a Discounted or a FiniteHorizon objective")
    rule: Any = policy
    return objective.evaluate(rule, belief, tolerance)
