"""Discounted(cost, discount): the sum of γ^i (y − c) over the individuals i accepted (the paper's Section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.validation import check_cost, check_discount, check_tolerance, real, whole

if TYPE_CHECKING:
    from lenience.policies.beliefs.optimal import OptimalPolicy


class Discounted(msgspec.Struct, frozen=True, tag="discounted", tag_field="type"):
    """Total reward, each next individual's counting γ times the one before.

    >>> problem = Discounted(cost=0.8, discount=0.99)
    >>> policy = problem.solve(prior=Belief(n=2, s=1))
    >>> policy.accepts(Belief(10, 7))
    True
    >>> print(policy.value(Belief(10, 7)))
    0.562832166... ± ...
    """

    cost: float
    discount: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "cost", check_cost(self.cost))
        msgspec.structs.force_setattr(self, "discount", check_discount(self.discount))

    @classmethod
    def from_rates(cls, cost: float, arrivals: float, discount_rate: float) -> Discounted:
        """From arrivals and a discount rate per unit of time: γ = λ/(λ + r) for Poisson arrivals.

        The value of the policy is as of the first arrival; times γ it is the value before it.

        >>> Discounted.from_rates(cost=0.8, arrivals=50, discount_rate=0.1).discount
        0.998003992015968
        """
        rate = real("arrivals", arrivals, above=0)
        money = real("discount_rate", discount_rate, above=0)
        if rate + money == rate:
            most = f"at most {money * 1e15:g}, or nothing is discounted at a rate of {discount_rate!r}"
            raise InputError("arrivals", arrivals, most)
        return cls(cost=cost, discount=rate / (rate + money))

    @property
    def volume(self) -> float:
        """γ/(1 − γ): how many individuals are still to come after this one, each counted at its discount."""
        return self.discount / (1.0 - self.discount)

    def for_share(self, share: float) -> Discounted:
        """The objective of a segment that is a share q of the arrivals: γ_x = γq/(1 − γ + γq).

        The segment's next member comes after a geometric wait, so it counts E γ^wait, which is γ_x. The discounted
        volume is proportional to the share: γ_x/(1 − γ_x) = q γ/(1 − γ).

        >>> round(Discounted(cost=0.8, discount=0.99).for_share(0.1).discount, 6)
        0.908257
        """
        q = real("share", share, above=0, most=1)
        if q == 1.0:
            return self
        return Discounted(self.cost, self.discount * q / (1.0 - self.discount + self.discount * q))

    def weight_of_share(self, share: float) -> float:
        """q/(1 − γ + γq): what the segment's first member counts, as seen before anyone arrives.

        The first arrival is of the segment with probability q; otherwise one waits and all counts γ times as much.

        >>> round(Discounted(cost=0.8, discount=0.99).weight_of_share(0.1), 6)
        0.917431
        """
        q = real("share", share, above=0, most=1)
        return q / (1.0 - self.discount + self.discount * q)

    def solve(
        self, prior: Belief, rows: int = 1000, tolerance: float = 1e-9, look_ahead: int | None = None
    ) -> OptimalPolicy:
        """The optimal policy for the first ``rows`` belief sizes n from the prior on, with its certificate.

        The look-ahead is chosen so that values are known to within ``tolerance`` (or as well as
        floating-point numbers allow). Given, it fixes the last row instead: the paper's
        N is ``prior.n + rows − 1 + look_ahead``.
        """
        from lenience.policies.beliefs.optimal import OptimalPolicy
        from lenience.solvers.stopping.solve import solve_discounted

        check_prior(prior)
        rows = whole("rows", rows, least=1)
        tolerance = check_tolerance(tolerance)
        if look_ahead is not None:
            look_ahead = whole("look_ahead", look_ahead, least=0)
        found = solve_discounted(prior.n, prior.s, self.cost, self.discount, rows, tolerance, look_ahead)
        certificate = Certificate(tolerance, rows, found.look_ahead, found.undecided, found.width, found.states)
        return OptimalPolicy(self, prior, found.accept_from, certificate)

    def solve_seconds(
        self, prior: Belief, rows: int = 1000, tolerance: float = 1e-9, look_ahead: int | None = None
    ) -> float:
        """About how many seconds :meth:`solve` takes on one core: nearly (1 − γ)^(−3/2) as many as γ nears 1."""
        from lenience.solvers.stopping.solve import discounted_seconds

        return discounted_seconds(prior.n, self.cost, self.discount, rows, tolerance, look_ahead)

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """The value at a belief, and the value of accepting there and being optimal afterwards."""
        from lenience.solvers.stopping.solve import solve_discounted

        found = solve_discounted(belief.n, belief.s, self.cost, self.discount, 1, tolerance)
        return found.value, found.continuation

    def after(self, acceptances: int) -> Discounted:
        """The same: the future looks alike at every time."""
        return self
