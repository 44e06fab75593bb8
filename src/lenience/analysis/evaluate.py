"""evaluate: what a policy earns, exactly."""

from __future__ import annotations

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.protocols import Policy
from lenience.core.validation import check_tolerance, having
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon


def evaluate(policy: Policy, objective: Discounted | FiniteHorizon, belief: Belief, tolerance: float = 1e-9) -> Bounds:
    """The exact value of any policy, stochastic too, from a belief on.

    Nothing is assumed of the policy, so this visits every belief that can be reached; the value of the optimal policy
    is had far sooner from its own ``value``.

    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> print(evaluate(Greedy(cost=0.8), Discounted(cost=0.8, discount=0.99), Belief(6, 5)))
    5.691964431... ± ...
    """
    from lenience.solvers.stopping.evaluation import evaluate_discounted, evaluate_horizon

    having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    check_prior(belief, "belief")
    tolerance = check_tolerance(tolerance)
    if isinstance(objective, Discounted):
        return evaluate_discounted(policy, belief.n, belief.s, objective.cost, objective.discount, tolerance)
    if isinstance(objective, FiniteHorizon):
        return evaluate_horizon(policy, belief.n, belief.s, objective.cost, objective.discount, objective.horizon)
    raise InputError("objective", objective, "a Discounted or a FiniteHorizon objective")
