"""Discounted(cost, discount): the sum of γ^i (y − c) over the individuals i accepted (the paper's Section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ABSENT, Cost, Rate, StoppingObjective, check_offers
from lenience.core.offers import Offers
from lenience.core.validation import check_discount, check_tolerance, real, whole

if TYPE_CHECKING:
    from typing import TypeAlias

    from lenience.core.protocols import Policy

    Factor: TypeAlias = float
else:  # JSON may have null and the two rates instead; an objective always has its factor
    Factor = Annotated[float, Meta(ge=0, lt=1)] | None

ROWS = 1000  # of a table, by default

START_SECONDS = 2.0  # to prove whether a belief starts, before it is estimated


class Discounted(
    StoppingObjective,
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="discounted",
    tag_field="type",
):
    """Total reward, each next individual's counting γ times the one before.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    discount
        The discount factor γ from one individual to the next, from 0 to below 1.
    arrivals, discount_rate
        Arrivals and discount rate per unit of time, instead of the discount: γ = λ/(λ + r) for Poisson arrivals.
    offers
        The amounts and break-evens that arrivals bring, instead of the cost. Values are then in money.

    Examples
    --------
    >>> problem = Discounted(cost=0.8, discount=0.99)
    >>> policy = problem.solve(prior=Belief(n=2, s=1))
    >>> policy.accepts(Belief(10, 7))
    True
    >>> print(policy.value(Belief(10, 7)))
    0.562832166... ± ...
    """

    cost: Cost = ABSENT
    discount: Factor = ABSENT
    arrivals: Rate | None = None
    discount_rate: Rate | None = None
    offers: Offers | None = None

    def __post_init__(self) -> None:
        set_ = msgspec.structs.force_setattr
        check_offers(self)
        if (self.arrivals is None) != (self.discount_rate is None) or self.discount is self.arrivals is None:
            raise InputError.because(
                "objective must have either discount, or both arrivals and discount_rate",
                ("discount", "arrivals", "discount_rate"),
                label="",
                code="missing" if self.discount is None else "conflicting_fields",
            )
        if self.arrivals is None:
            set_(self, "discount", check_discount(self.discount))
            return
        rate, money = _rates(self.arrivals, self.discount_rate)
        factor = rate / (rate + money)
        if self.discount is not None and abs(check_discount(self.discount) - factor) > 1e-12:
            raise InputError.because(
                f"must be {factor!r}, which arrivals and discount_rate make, not {self.discount!r}",
                "discount",
                value=self.discount,
                hint="Give either discount, or both arrivals and discount_rate.",
                code="conflicting_fields",
            )
        set_(self, "discount", factor)
        set_(self, "arrivals", rate)
        set_(self, "discount_rate", money)

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"Discounted({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @classmethod
    def from_rates(cls, cost: float, arrivals: float, discount_rate: float) -> Discounted:
        """Create the objective from arrivals and a discount rate per unit of time.

        The value of the policy is as of the first arrival; times γ it is the value before it.

        Parameters
        ----------
        cost : float
            The break-even success rate, strictly between 0 and 1.
        arrivals : float
            Individuals that arrive per unit of time.
        discount_rate : float
            The discount rate per unit of time.

        Returns
        -------
        Discounted
            The objective with γ = λ/(λ + r), for Poisson arrivals.

        Examples
        --------
        >>> Discounted.from_rates(cost=0.8, arrivals=50, discount_rate=0.1).discount
        0.998003992015968
        """
        rate, money = _rates(arrivals, discount_rate)
        return cls(cost=cost, discount=rate / (rate + money))

    @property
    def volume(self) -> float:
        """γ/(1 − γ): how many individuals are still to come after this one, each counted at its discount."""
        return self.discount / (1.0 - self.discount)

    @property
    def discounted_count(self) -> float:
        """1/(1 − γ): the number of individuals from the next one on, each counted at its discount."""
        return 1.0 / (1.0 - self.discount)

    @property
    def stationary(self) -> bool:
        """True: the future looks alike at every time."""
        return True

    @property
    def divisible(self) -> bool:
        """True: the segments' values add up."""
        return True

    def for_share(self, share: float) -> Discounted:
        """Return the objective of a segment that is a share of the arrivals.

        The segment's discount is γ_x = γq/(1 − γ + γq): its next member comes after a geometric wait, so it counts E
        γ^wait, which is γ_x. The discounted volume is proportional to the share: γ_x/(1 − γ_x) = q γ/(1 − γ).

        Parameters
        ----------
        share : float
            Share of the arrivals, above 0 and at most 1.

        Returns
        -------
        Discounted
            An objective of the same type.

        Examples
        --------
        >>> round(Discounted(cost=0.8, discount=0.99).for_share(0.1).discount, 6)
        0.908257
        """
        q = real("share", share, above=0, most=1)
        own = self.discount if q == 1.0 else self.discount * q / (1.0 - self.discount + self.discount * q)
        return Discounted(self.cost, own, offers=self.offers)

    def weight_of_share(self, share: float) -> float:
        """Return the weight of a segment's own value in the value of the whole.

        It is q/(1 − γ + γq): what the segment's first member counts, as seen before anyone arrives. The first arrival
        is of the segment with probability q; otherwise one waits, and everything counts γ times as much.

        Parameters
        ----------
        share : float
            Share of the arrivals, above 0 and at most 1.

        Returns
        -------
        float
            The factor by which to multiply the segment's value.

        Examples
        --------
        >>> round(Discounted(cost=0.8, discount=0.99).weight_of_share(0.1), 6)
        0.917431
        """
        q = real("share", share, above=0, most=1)
        return q / (1.0 - self.discount + self.discount * q)

    def solve(
        self,
        prior: Belief | MixtureBelief,
        rows: int | None = None,
        tolerance: float = 1e-9,
        look_ahead: int | None = None,
    ) -> Any:
        """Return the optimal policy, with its certificate.

        The look-ahead is chosen so that values are known to within the tolerance, or as well as floating-point numbers
        allow. A given look-ahead fixes the last row instead: the paper's N is ``prior.n + rows − 1 + look_ahead``.

        Parameters
        ----------
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on. By default 1,000.
        tolerance : float
            How accurately values are computed, in units of reward; with offers, in units of their mean amount.
        look_ahead : int, optional
            Number of rows to compute beyond them. By default it follows from the tolerance.

        Returns
        -------
        OptimalPolicy or OfferPolicy
            The policy: an OfferPolicy if there are offers or the prior is a MixtureBelief.

        Examples
        --------
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> policy.accepts(Belief(10, 7)), policy.accepts(Belief(10, 6))
        (True, False)
        >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
        >>> policy = Discounted(offers=offers, discount=0.99).solve(prior=Belief(2, 1))
        >>> print(policy.value(Belief(2, 1)))
        3.09757666... ± ...
        """
        from lenience.policies.beliefs.optimal import OptimalPolicy
        from lenience.solvers.stopping.solve import solve_discounted

        count = ROWS if rows is None else whole("rows", rows, least=1)
        tolerance = check_tolerance(tolerance)
        if look_ahead is not None:
            look_ahead = whole("look_ahead", look_ahead, least=0)
        if self.offers is not None or isinstance(prior, MixtureBelief):
            from lenience.policies.beliefs.offers import OfferPolicy

            return OfferPolicy.solve(self, prior, count, tolerance, look_ahead)
        check_prior(prior)
        solution = solve_discounted(prior.n, prior.s, self.cost, self.discount, count, tolerance, look_ahead)
        certificate = Certificate(
            tolerance, count, solution.look_ahead, solution.undecided, solution.width, solution.states
        )
        return OptimalPolicy(self, prior, solution.accept_from, certificate)

    def solve_seconds(
        self, prior: Belief | MixtureBelief, rows: int = 1000, tolerance: float = 1e-9, look_ahead: int | None = None
    ) -> float:
        """Estimate how many seconds :meth:`solve` takes on one core.

        The time grows nearly as (1 − γ)^(−3/2) as γ approaches 1.

        Parameters
        ----------
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately values are computed, in units of reward.
        look_ahead : int, optional
            Number of rows to compute beyond them. By default it follows from the tolerance.

        Returns
        -------
        float
            Seconds; 0 if no estimate is known.

        Examples
        --------
        >>> Discounted(cost=0.8, discount=0.99).solve_seconds(Belief(2, 1)) < 0.1
        True
        """
        from lenience.solvers.stopping.solve import discounted_seconds

        if self.offers is not None or isinstance(prior, MixtureBelief):
            from lenience.solvers.offers.solve import offer_seconds

            offers = self.offers or Offers((1.0,), (self.cost,))
            return offer_seconds(prior, offers, self.discount, rows, tolerance)
        return discounted_seconds(prior.n, self.cost, self.discount, rows, tolerance, look_ahead)

    def enclose(self, belief: Belief | MixtureBelief, tolerance: float) -> tuple[Bounds, Bounds]:
        """Return bounds of the optimal value at a belief.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        tuple of Bounds
            The value at the belief, and the value of accepting there and being optimal afterwards.

        Examples
        --------
        >>> value, accepting = Discounted(cost=0.8, discount=0.99).enclose(Belief(10, 6), tolerance=1e-9)
        >>> value.midpoint, round(accepting.midpoint, 3)
        (0.0, -0.2)
        """
        from lenience.core.objective import one_break_even
        from lenience.solvers.stopping.solve import solve_discounted

        one_break_even(self, "enclose")
        if isinstance(belief, MixtureBelief):
            policy = self.solve(belief, rows=1, tolerance=tolerance)
            return policy.value(belief), policy.continuation(belief)
        check_prior(belief, "belief")
        solution = solve_discounted(belief.n, belief.s, self.cost, self.discount, 1, tolerance)
        return solution.value, solution.continuation

    def starts(self, belief: Belief | MixtureBelief) -> bool:
        """Return whether a first acceptance pays at a belief, of any offer.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        bool
            True if it does.

        Examples
        --------
        >>> Discounted(0.8, 0.95).starts(Belief(2, 1))
        False
        >>> Discounted(offers=Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8]), discount=0.95).starts(Belief(2, 1))
        True
        """
        if self.offers is None and isinstance(belief, Belief):
            check_prior(belief, "belief")
            return self._starts(belief)
        return bool(self.solve(belief, rows=1).share_accepted(belief) > 0.0)

    def _starts(self, belief: Belief) -> bool:
        """Return whether a first acceptance pays: proved if that takes a few seconds, and otherwise estimated."""
        from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
        from lenience.solvers.stopping.clairvoyant import gain_of_knowing

        # One acceptance loses at least c − p̂, and all that may follow gains at most volume · E(p − c)⁺.
        if belief.mean > self.cost:
            return True
        if self.cost - belief.mean >= self.volume * gain_of_knowing(belief.n, belief.s, self.cost):
            return False
        # Whoever starts at a smaller volume also starts at this one, and a smaller volume is solved in less time.
        for part in (4096.0, 256.0, 16.0):
            volume = self.volume / part
            smaller = Discounted(self.cost, volume / (1.0 + volume))
            if volume > 1.0 and smaller._proves_quickly(belief) and StoppingObjective.starts(smaller, belief):
                return True
        if self._proves_quickly(belief):
            return StoppingObjective.starts(self, belief)
        from lenience.objectives.delayed import Delayed

        prompt = Delayed(self.cost, self.volume, 1.0, 1e-3 / self.volume)
        return EstimatedExposurePolicy.solve(prompt, belief).limit(belief) != 0

    def _proves_quickly(self, belief: Belief) -> bool:
        """Return whether it takes a few seconds to prove that a belief starts."""
        return self.solve_seconds(belief, 1, 1e-12) < START_SECONDS

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
        >>> objective, prior = Discounted(cost=0.8, discount=0.9), Belief(10, 8)
        >>> greedy = objective.evaluate(Greedy(0.8), prior, tolerance=1e-6)
        >>> optimum = objective.enclose(prior, tolerance=1e-6)[0]
        >>> print(greedy.midpoint, round(optimum.midpoint, 3))
        0.0 0.246
        """
        from lenience.solvers.offers.evaluation import evaluate_offers
        from lenience.solvers.stopping.evaluation import evaluate_discounted

        check_prior(belief, "belief")
        if self.offers is not None:
            return evaluate_offers(policy, belief, self.offers, self.discount, tolerance)
        return evaluate_discounted(policy, belief.n, belief.s, self.cost, self.discount, tolerance)


def _rates(arrivals: object, discount_rate: object) -> tuple[float, float]:
    """Check both rates and return λ and r."""
    rate = real("arrivals", arrivals, above=0)
    money = real("discount_rate", discount_rate, above=0)
    if rate + money == rate:
        most = f"at most {money * 1e15:g}, or nothing is discounted at a rate of {discount_rate!r}"
        raise InputError("arrivals", arrivals, most)
    return rate, money
