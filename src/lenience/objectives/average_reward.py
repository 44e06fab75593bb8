"""AverageReward(cost): the long-run average reward per individual (the paper's Section 3.2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.objective import Cost, Objective
from lenience.core.validation import check_cost

if TYPE_CHECKING:
    from lenience.policies.beliefs.persistent import Persistent


class AverageReward(Objective, msgspec.Struct, frozen=True, tag="average", tag_field="type"):
    """Reward per individual over an infinite horizon, undiscounted.

    Its optimum is E[max(p − c, 0)]. A policy reaches it if it learns p for certain, accepts a vanishing share of the
    individuals where p is below the cost, and rejects a vanishing share where p is above the cost. All three are
    needed: to accept with probability ½ above the cost and 1/n below learns p and earns at most half. Over a finite
    horizon such policies differ, and :class:`~lenience.FiniteHorizon` is the best of them.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.

    Examples
    --------
    >>> print(AverageReward(cost=0.8).value(Belief(2, 1)))
    0.0200000000... ± ...
    """

    cost: Cost

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))

    def value(self, prior: Belief) -> Bounds:
        """Return the value of the optimum, E[max(p − c, 0)] under the prior.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.

        Returns
        -------
        Bounds
            Reward per individual.

        Examples
        --------
        >>> print(AverageReward(cost=0.8).value(Belief(2, 1)))
        0.0200... ± ...
        """
        from lenience.solvers.stopping.clairvoyant import gain_of_knowing

        check_prior(prior)
        gain = gain_of_knowing(prior.n, prior.s, self.cost)
        # The special function loses digits as n grows; Jensen's and Scarf's bounds do not.
        slack = 1e-12 * (1.0 + 1e-6 * prior.n)
        excess = prior.mean - self.cost
        least = max(excess, 0.0)
        most = (abs(excess) + excess) / 2 + 0.5 * (math.hypot(math.sqrt(prior.variance), excess) - abs(excess))
        return Bounds(max(gain - slack, least - 1e-15, 0.0), min(gain + slack, most * (1 + 1e-12) + 1e-15))

    def solve(self, prior: Belief) -> Persistent:
        """Return a policy that attains the optimum.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.

        Returns
        -------
        Persistent
            A policy that accepts with a positive probability everywhere (Theorem 4), vanishing below the cost and
            certain above it.

        Examples
        --------
        >>> AverageReward(cost=0.8).solve(Belief(2, 1))
        Persistent(cost=0.8, exponent=1.0)
        """
        from lenience.policies.beliefs.persistent import Persistent

        check_prior(prior)
        return Persistent(cost=self.cost)
