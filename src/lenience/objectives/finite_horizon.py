"""FiniteHorizon(cost, horizon): the total over a known number of individuals.

With H individuals in total, it is optimal to accept first and stop later (Bradt, Johnson and Karlin 1956). So H − k
individuals are left after k acceptances, and the recursion has the triangular form of the discounted case. With offers
a rejection is not final, and :mod:`lenience.solvers.offers.horizon` follows the number of arrivals left as well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ABSENT, Cost, StoppingObjective, check_offers, one_break_even
from lenience.core.offers import Offers
from lenience.core.validation import check_tolerance, real, whole

if TYPE_CHECKING:
    from typing import TypeAlias

    from lenience.core.protocols import Policy

    Horizon: TypeAlias = int
    Factor: TypeAlias = float
else:  # an objective always has its horizon and its factor; the defaults only let the cost be left out
    Horizon = Annotated[int, Meta(ge=1)] | None
    Factor = Annotated[float, Meta(gt=0, le=1)] | None


class FiniteHorizon(
    StoppingObjective,
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="horizon",
    tag_field="type",
):
    """Total reward over ``horizon`` individuals, discounted or (by default) not.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    horizon
        The number of individuals in all, at least 1.
    discount
        The discount factor from one individual to the next, above 0 and at most 1; 1 by default.
    offers
        The amounts and break-evens that arrivals bring, instead of the cost. Values are then in money.

    Examples
    --------
    >>> problem = FiniteHorizon(cost=0.8, horizon=1000)
    >>> print(problem.solve(prior=Belief(2, 1)).value(Belief(2, 1)))
    17.6550988... ± ...
    >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> print(FiniteHorizon(offers=offers, horizon=1000).solve(prior=Belief(2, 1)).value(Belief(2, 1)))
    38.773226... ± ...
    """

    cost: Cost = ABSENT
    horizon: Horizon = ABSENT
    discount: Factor = ABSENT
    offers: Offers | None = None

    def __post_init__(self) -> None:
        set_ = msgspec.structs.force_setattr
        check_offers(self)
        if self.horizon is None:
            raise InputError.because("is required", "horizon", code="missing")
        set_(self, "horizon", whole("horizon", self.horizon, least=1))
        set_(self, "discount", 1.0 if self.discount is None else real("discount", self.discount, above=0, most=1))

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"FiniteHorizon({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @property
    def volume(self) -> float:
        """Σ γ^i over the horizon: how many individuals are to come, each counted at its discount."""
        return self.discounted_count

    @property
    def discounted_count(self) -> float:
        """Σ γ^i over the horizon: how many individuals are to come, each counted at its discount.

        >>> FiniteHorizon(0.8, 3).discounted_count, FiniteHorizon(0.8, 3, 0.5).discounted_count
        (3.0, 1.75)
        """
        if self.discount == 1.0:
            return float(self.horizon)
        return -math.expm1(self.horizon * math.log(self.discount)) / (1.0 - self.discount)

    def discount_at(self, arrival: int) -> float:
        """Return the discount factor from an arrival to the next.

        It is 1 − 1/(number of individuals left), times the discount.

        Parameters
        ----------
        arrival : int
            Number of individuals that came before.

        Returns
        -------
        float
            The factor: 1 if nothing is discounted, 0 after the last arrival.

        Examples
        --------
        >>> FiniteHorizon(0.8, 3).discount_at(0), FiniteHorizon(0.8, 3).discount_at(2)
        (0.6666666666666667, 0.0)
        """
        left = self.horizon - arrival
        return self.discount * (1.0 - 1.0 / left) if left > 1 else 0.0

    def for_share(self, share: float) -> FiniteHorizon:
        """Return the objective of a segment that is a share of the arrivals.

        It expects as many individuals as its share of the horizon, and at least one. How many really come is random,
        so the value of the whole is only about the sum of its segments' values.

        Parameters
        ----------
        share : float
            Share of the arrivals, above 0 and at most 1.

        Returns
        -------
        FiniteHorizon
            An objective of the same type.

        Examples
        --------
        >>> FiniteHorizon(0.8, 1000).for_share(0.25).horizon
        250
        """
        q = real("share", share, above=0, most=1)
        return msgspec.structs.replace(self, horizon=max(1, round(self.horizon * q)))

    def solve(self, prior: Belief | MixtureBelief, rows: int | None = None, tolerance: float = 1e-9) -> Any:
        """Return the optimal policy, with its certificate.

        Parameters
        ----------
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on. By default, and always with offers, all of the
            horizon.
        tolerance : float
            How accurately values are computed, in units of reward; with offers, in units of their mean amount.

        Returns
        -------
        OptimalPolicy or HorizonOfferPolicy
            The policy: a HorizonOfferPolicy if there are offers or the prior is a MixtureBelief.

        Raises
        ------
        TooLargeError
            If the problem would take too much time or memory.

        Examples
        --------
        >>> policy = FiniteHorizon(cost=0.8, horizon=100).solve(Belief(2, 1))
        >>> policy.accepts(Belief(10, 7)), policy.accepts(Belief(95, 75))
        (True, False)
        """
        from lenience.policies.beliefs.optimal import OptimalPolicy
        from lenience.solvers.stopping.solve import solve_horizon

        tolerance = check_tolerance(tolerance)
        if self.offers is not None or isinstance(prior, MixtureBelief):
            from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy

            return HorizonOfferPolicy.solve(self, prior, tolerance)
        check_prior(prior)
        count = self.horizon if rows is None else whole("rows", rows, least=1, most=self.horizon)
        solution = solve_horizon(prior.n, prior.s, self.cost, self.discount, self.horizon, count, tolerance)
        ahead = self.horizon - count
        certificate = Certificate(tolerance, count, ahead, solution.undecided, solution.width, solution.states)
        return OptimalPolicy(self, prior, solution.accept_from, certificate)

    def solve_seconds(self, prior: Belief | MixtureBelief, rows: int | None = None, tolerance: float = 1e-9) -> float:
        """Estimate how many seconds :meth:`solve` takes on one core.

        With one break-even the time depends on the horizon only.

        Parameters
        ----------
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        float
            Seconds; 0 if no estimate is known.

        Examples
        --------
        >>> FiniteHorizon(cost=0.8, horizon=1000).solve_seconds(Belief(2, 1)) < 0.1
        True
        """
        from lenience.solvers.offers.horizon import horizon_offer_seconds
        from lenience.solvers.stopping.solve import horizon_seconds

        if self.offers is not None or isinstance(prior, MixtureBelief):
            offers = self.offers or Offers((1.0,), (self.cost,))
            return horizon_offer_seconds(prior, offers, self.discount, self.horizon, tolerance)
        return horizon_seconds(prior.n, self.horizon)

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """Return bounds of the optimal value at a belief.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        tuple of Bounds
            The value at the belief, and the value of accepting there and being optimal afterwards.

        Examples
        --------
        >>> value, accepting = FiniteHorizon(cost=0.8, horizon=100).enclose(Belief(10, 7), tolerance=1e-9)
        >>> round(value.midpoint, 3), round(accepting.midpoint, 3)
        (0.524, 0.524)
        """
        from lenience.solvers.stopping.solve import solve_horizon

        one_break_even(self, "enclose")
        check_prior(belief, "belief")
        solution = solve_horizon(belief.n, belief.s, self.cost, self.discount, self.horizon, 1, tolerance)
        return solution.value, solution.continuation

    def remaining(self, acceptances: int) -> FiniteHorizon | None:
        """Return what is left of the objective after a number of acceptances.

        Parameters
        ----------
        acceptances : int
            Number of individuals accepted so far.

        Returns
        -------
        FiniteHorizon or None
            An objective of the same type; None if the horizon is over.

        Examples
        --------
        >>> FiniteHorizon(cost=0.8, horizon=100).remaining(40)
        FiniteHorizon(cost=0.8, horizon=60, discount=1.0)
        """
        left = self.horizon - acceptances
        return msgspec.structs.replace(self, horizon=left) if left > 0 else None

    def starts(self, belief: Belief | MixtureBelief) -> bool:
        """Return whether a first acceptance pays at a belief, of any offer.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if it does.

        Examples
        --------
        >>> FiniteHorizon(cost=0.8, horizon=20).starts(Belief(2, 1))
        False
        >>> FiniteHorizon(offers=Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8]), horizon=20).starts(Belief(2, 1))
        True
        """
        if self.offers is None and isinstance(belief, Belief):
            return StoppingObjective.starts(self, belief)
        return bool(self.solve(belief).share_accepted(belief) > 0.0)

    def evaluate(self, policy: Policy, belief: Belief, tolerance: float) -> Bounds:
        """Return bounds of what a policy earns from a belief on.

        Parameters
        ----------
        policy : Policy
            The policy to evaluate.
        belief : Belief
            What is known of the success probability.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        Bounds
            The value of the policy, in units of reward.

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> print(FiniteHorizon(cost=0.8, horizon=100).evaluate(Greedy(0.8), Belief(10, 9), tolerance=1e-9))
        10.31314... ± ...
        """
        from lenience.solvers.offers.pyramid import evaluate_pyramid
        from lenience.solvers.stopping.evaluation import evaluate_horizon

        check_prior(belief, "belief")
        if self.offers is not None:
            return evaluate_pyramid(policy, belief, self.offers, self.discount, self.horizon)
        return evaluate_horizon(policy, belief.n, belief.s, self.cost, self.discount, self.horizon)
