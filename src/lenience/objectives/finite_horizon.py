"""FiniteHorizon(cost, horizon): the total over a known number of individuals.

With H individuals in all, accepting first and stopping later is optimal (Bradt, Johnson and Karlin 1956), so
after k acceptances H − k individuals are left and the recursion is the triangular one of the discounted case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.validation import check_cost, check_tolerance, real, whole

if TYPE_CHECKING:
    from lenience.policies.beliefs.optimal import OptimalPolicy


class FiniteHorizon(msgspec.Struct, frozen=True, tag="horizon", tag_field="type"):
    """Total reward over ``horizon`` individuals, discounted or (by default) not.

    >>> problem = FiniteHorizon(cost=0.8, horizon=1000)
    >>> print(problem.solve(prior=Belief(2, 1)).value(Belief(2, 1)))
    17.6550988... ± ...
    """

    cost: float
    horizon: int
    discount: float = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "horizon", whole("horizon", self.horizon, least=1))
        msgspec.structs.force_setattr(self, "discount", real("discount", self.discount, above=0, most=1))

    def solve(self, prior: Belief, rows: int | None = None, tolerance: float = 1e-9) -> OptimalPolicy:
        """The optimal policy, with its certificate: all rows of the horizon, or the first ``rows``."""
        from lenience.policies.beliefs.optimal import OptimalPolicy
        from lenience.solvers.stopping.solve import solve_horizon

        check_prior(prior)
        tolerance = check_tolerance(tolerance)
        kept = self.horizon if rows is None else whole("rows", rows, least=1, most=self.horizon)
        found = solve_horizon(prior.n, prior.s, self.cost, self.discount, self.horizon, kept, tolerance)
        ahead = self.horizon - kept
        certificate = Certificate(tolerance, kept, ahead, found.undecided, found.width, found.states)
        return OptimalPolicy(self, prior, found.accept_from, certificate)

    def solve_seconds(self, prior: Belief, rows: int | None = None, tolerance: float = 1e-9) -> float:
        """About how many seconds :meth:`solve` takes on one core, whatever the rows and the tolerance."""
        from lenience.solvers.stopping.solve import horizon_seconds

        return horizon_seconds(prior.n, self.horizon)

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """The value at a belief, and the value of accepting there and being optimal afterwards."""
        from lenience.solvers.stopping.solve import solve_horizon

        found = solve_horizon(belief.n, belief.s, self.cost, self.discount, self.horizon, 1, tolerance)
        return found.value, found.continuation

    def after(self, acceptances: int) -> FiniteHorizon | None:
        """What is left after so many individuals, all accepted."""
        left = self.horizon - acceptances
        return FiniteHorizon(self.cost, left, self.discount) if left > 0 else None
