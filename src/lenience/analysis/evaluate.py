"""evaluate: what a policy earns, exactly."""

from __future__ import annotations

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.objective import Objective
from lenience.core.protocols import Policy
from lenience.core.validation import check_tolerance, having


def evaluate(policy: Policy, objective: Objective, belief: Belief, tolerance: float = 1e-9) -> Bounds:
    """The exact value of any policy, stochastic too, from a belief on.

    Nothing is assumed of the policy, so this visits every belief that can be reached; the value of the optimal policy
    is had far sooner from its own ``value``.

    >>> from lenience import Discounted
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> print(evaluate(Greedy(cost=0.8), Discounted(cost=0.8, discount=0.99), Belief(6, 5)))
    5.691964431... ± ...
    """
    having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    check_prior(belief, "belief")
    tolerance = check_tolerance(tolerance)
    having("objective", objective, "evaluate", "a Discounted or a FiniteHorizon objective")
    return objective.evaluate(policy, belief, tolerance)
