"""Delayed(cost, arrivals, discount_rate, label_delay): total discounted reward when outcomes come late.

Individuals arrive as a Poisson process, the outcome of an acceptance is known only after an exponential delay, and
money is discounted continuously. The state is the belief and the number of acceptances still pending. Rejecting is
no longer final: a policy can pause, wait for outcomes, and resume.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ABSENT, Cost, ExposureObjective, Rate, check_offers, one_break_even
from lenience.core.offers import Offers
from lenience.core.validation import check_tolerance, number, real, whole

if TYPE_CHECKING:
    from lenience.policies.beliefs.exposure import ExposurePolicy
    from lenience.solvers.delayed.plan import DelayedProblem, DelayedSolution

if TYPE_CHECKING:
    from typing import TypeAlias

    DiscountRate: TypeAlias = float
else:  # it may be 0 with a horizon, and must be above 0 otherwise
    DiscountRate = Annotated[float, Meta(ge=0, le=1e12)]

SECONDS = 3.0  # to prove limits before they are estimated
SURE = 2.5  # a proof has taken up to so many times the time that was planned
OFFER_SECONDS = 0.5  # to prove limits with offers, by the solver's estimate: it has taken up to three times as long
PROOF_SECONDS = 60.0  # to prove limits that are not estimated


class Delayed(
    ExposureObjective,
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="delayed",
    tag_field="type",
):
    """Total reward with arrivals, discount rate and label delay in one unit of time, say years.

    Parameters
    ----------
    cost
        The break-even success rate, strictly between 0 and 1.
    arrivals
        Individuals that arrive per unit of time.
    discount_rate
        The discount rate per unit of time.
    label_delay
        The mean time from an acceptance to its label.
    offers
        The amounts and break-evens that arrivals bring, instead of the cost. Values are then in money.
    horizon
        The number of arrivals in all; by default there is no end. With a horizon, the discount rate may be 0, which is
        then its default.

    Examples
    --------
    >>> problem = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> policy = problem.solve(prior=Belief(n=2, s=1))
    >>> policy.limit(Belief(2, 1)), policy.limit(Belief(10, 7)), policy.limit(Belief(10, 9))
    (2, 5, None)
    >>> print(policy.value(Belief(2, 1)))
    7.00020... ± ...
    """

    cost: Cost = ABSENT
    arrivals: Rate = ABSENT
    discount_rate: DiscountRate = ABSENT
    label_delay: Rate = ABSENT
    offers: Offers | None = None
    horizon: Annotated[int, Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        set_ = msgspec.structs.force_setattr
        if self.horizon is not None:
            set_(self, "horizon", whole("horizon", self.horizon, least=1))
            if self.discount_rate is None:
                set_(self, "discount_rate", 0.0)
            one_break_even(self, "Delayed with a horizon")
        for name in ("arrivals", "discount_rate", "label_delay"):
            if getattr(self, name) is None:
                raise InputError.because("is missing", name, code="missing")
        check_offers(self)
        set_(self, "arrivals", real("arrivals", self.arrivals, above=0))
        if self.horizon is None or self.discount_rate != 0:
            set_(self, "discount_rate", real("discount_rate", self.discount_rate, above=0))
        delay = number("label_delay", self.label_delay, "above 0")
        if delay <= 0:
            at_once = "For labels that come at once use Discounted.from_rates(cost, arrivals, discount_rate)."
            raise InputError("label_delay", self.label_delay, "a number above 0", hint=None if delay else at_once)
        set_(self, "label_delay", delay)

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"Delayed({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __str__(self) -> str:
        """Return the objective with six significant digits."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        values = (
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in given.items()
            if value is not None
        )
        return f"Delayed({', '.join(values)})"

    @property
    def volume(self) -> float:
        """λ/r, or less with a horizon: how many individuals are still to come, each counted at its discount."""
        if self.horizon is None:
            return self.arrivals / self.discount_rate
        if self.discount == 1.0:
            return float(self.horizon)
        return self.discount * -math.expm1(self.horizon * math.log(self.discount)) / (1.0 - self.discount)

    @property
    def divisible(self) -> bool:
        """Whether the segments' values add up: not with a horizon, because how many come to each is random."""
        return self.horizon is None

    @property
    def discount(self) -> float:
        """λ/(λ + r): the discount factor from one arrival to the next.

        >>> Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1).discount
        0.998003992015968
        """
        return self.arrivals / (self.arrivals + self.discount_rate)

    def for_share(self, share: float) -> Delayed:
        """Return the objective of a segment that is a share of the arrivals.

        The segment arrives at the rate qλ, and it expects its share of a horizon, at least one individual.

        Parameters
        ----------
        share : float
            Share of the arrivals, above 0 and at most 1.

        Returns
        -------
        Delayed
            An objective of the same type.

        Examples
        --------
        >>> Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1).for_share(0.1).arrivals
        5.0
        """
        q = real("share", share, above=0, most=1)
        own = None if self.horizon is None else max(1, round(q * self.horizon))
        return msgspec.structs.replace(self, arrivals=q * self.arrivals, horizon=own)

    def discount_at(self, arrival: int) -> float:
        """Return the discount factor from an arrival to the next.

        With a horizon it is 1 − 1/(number of individuals left), times the discount.

        Parameters
        ----------
        arrival : int
            Number of individuals that came before.

        Returns
        -------
        float
            The factor.

        Examples
        --------
        >>> Delayed(0.8, arrivals=50, label_delay=1, horizon=4).discount_at(0)
        0.75
        """
        if self.horizon is None:
            return self.discount
        left = self.horizon - arrival
        return self.discount * (1.0 - 1.0 / left) if left > 1 else 0.0

    def weight_of_share(self, share: float) -> float:
        """Return the weight of a segment's own value in the value of the whole.

        It is 1: the value of a segment's own problem is as of now, before anyone has arrived.

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
        >>> Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).weight_of_share(0.2)
        1.0
        """
        return 1.0

    def solve(
        self,
        prior: Belief | MixtureBelief,
        rows: int | None = None,
        tolerance: float = 1e-6,
        pending_cap: int | None = None,
        look_ahead: int | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Return the exposure limits: proved if that fits the time, and otherwise estimated.

        An estimate takes two or three seconds at most, for any number of arrivals, any prior and any offers. Its
        certificate states its error. With offers or a mixture, the tolerance is relative to the discounted number of
        arrivals times their mean amount. If that can be proved, each belief is solved when it is asked for.

        Parameters
        ----------
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on. By default half of those that are computed.
        tolerance : float
            How accurately the value at the prior is computed, relative to itself.
        pending_cap : int, optional
            Largest number of pending labels to follow. If it is given, limits are never estimated.
        look_ahead : int, optional
            Number of rows to compute beyond them. If it is given, limits are never estimated.
        seconds : float, optional
            Longest time to allow for a proof, in seconds, without compiling: by default 3 with the estimate.

        Returns
        -------
        ExposurePolicy or EstimatedExposurePolicy or OfferExposurePolicy or EstimatedOfferExposurePolicy
            The policy: with offers or a MixtureBelief one of the last two. With a horizon it is a
            HorizonExposurePolicy.

        Raises
        ------
        TooLargeError
            If there is a pending cap or a look-ahead, and the problem is estimated to take more than ``seconds``.

        Examples
        --------
        >>> late = Delayed(cost=0.8, arrivals=20, discount_rate=0.1, label_delay=1)
        >>> policy = late.solve(Belief(2, 1), rows=20, tolerance=1e-4)
        >>> policy.limit(Belief(2, 1)), policy.limit(Belief(10, 7)), policy.limit(Belief(10, 8))
        (1, 3, None)
        >>> large = Delayed(cost=0.8, arrivals=20_000, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> large.limit(Belief(2, 1)), large.certificate.proved
        (45, False)
        >>> from lenience import Offer
        >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
        >>> large = Delayed(offers=loans, arrivals=20_000, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> print(large.explain(Belief(2, 1), Offer(5000, 0.8), pending=100))
        Reject $5,000: ...
        """
        from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy

        within = None if seconds is None else real("seconds", seconds, above=0)
        if self.horizon is not None:
            from lenience.policies.beliefs.horizon_exposure import HorizonExposurePolicy

            return HorizonExposurePolicy.solve(self, prior, SECONDS if within is None else within)
        if self.offers is not None or isinstance(prior, MixtureBelief):
            return self._solve_offers(prior, check_tolerance(tolerance), OFFER_SECONDS if within is None else within)
        check_prior(prior)
        within = SECONDS / SURE if within is None else within
        if pending_cap is None and look_ahead is None:
            from lenience.solvers.delayed.plan import least_seconds

            check_tolerance(tolerance)
            if least_seconds(self.problem(prior)) > within:
                return EstimatedExposurePolicy.solve(self, prior)
        try:
            return self.solve_proved(prior, rows, tolerance, pending_cap, look_ahead, within)
        except TooLargeError:
            if pending_cap is not None or look_ahead is not None:
                raise
            return EstimatedExposurePolicy.solve(self, prior)

    def _solve_offers(self, prior: Belief | MixtureBelief, tolerance: float, seconds: float) -> Any:
        """Solve with offers or a mixture: proved if that fits the time, and otherwise estimated."""
        from lenience.policies.beliefs.estimated_offer_exposure import EstimatedOfferExposurePolicy
        from lenience.policies.beliefs.offer_exposure import OfferExposurePolicy
        from lenience.policies.beliefs.offers import check_belief

        policy = OfferExposurePolicy(self, MixtureBelief.of(check_belief(prior, "prior")), tolerance, seconds)
        try:
            policy.value(prior)
        except TooLargeError:
            return EstimatedOfferExposurePolicy.solve(self, prior)
        return policy

    def solve_proved(
        self,
        prior: Belief,
        rows: int | None = None,
        tolerance: float = 1e-6,
        pending_cap: int | None = None,
        look_ahead: int | None = None,
        seconds: float = PROOF_SECONDS,
    ) -> ExposurePolicy:
        """Return the exposure limits with their proof, or raise an error if it would take too long.

        The value at the prior is known to within the tolerance, relative to itself.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on. By default half of those that are computed.
        tolerance : float
            How accurately the value at the prior is computed, relative to itself.
        pending_cap : int, optional
            Largest number of pending labels to follow. By default it follows from the tolerance.
        look_ahead : int, optional
            Number of rows to compute beyond them. By default it follows from the tolerance.
        seconds : float
            Longest time to allow, in seconds.

        Returns
        -------
        ExposurePolicy
            The policy.

        Raises
        ------
        TooLargeError
            If the problem is estimated to take more than ``seconds``.

        Examples
        --------
        >>> late = Delayed(cost=0.8, arrivals=20, discount_rate=0.1, label_delay=1)
        >>> late.solve_proved(Belief(2, 1), rows=20, tolerance=1e-4).certificate.relative_gap < 1e-4
        True
        """
        import numpy as np

        from lenience.policies.beliefs.exposure import ExposurePolicy
        from lenience.policies.beliefs.exposure_certificate import ExposureCertificate

        one_break_even(self, "solve_proved")
        self._check_endless("solve_proved")
        check_prior(prior)
        count = None if rows is None else whole("rows", rows, least=1)
        solution = self._enclose(prior, count, tolerance, pending_cap, look_ahead, seconds)
        band = solution.band
        sizes = band.unlimited - band.first
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        rows_open = np.flatnonzero(band.open_below)
        rows_unsettled = np.searchsorted(offsets, np.flatnonzero(~band.settled), side="right") - 1
        value = Bounds(float(solution.lower[0]), float(solution.upper[0]))
        certificate = ExposureCertificate(
            tolerance=float(tolerance),
            value=value,
            estimate=self._estimate(prior, value, solution),
            relative_gap=solution.relative_gap,
            rows=band.first.size,
            look_ahead=solution.look_ahead,
            pending_cap=solution.pending_cap,
            limits=band.compared,
            unsettled=band.unsettled,
            settled_rows=min([band.first.size, *rows_unsettled[:1].tolist(), *rows_open[:1].tolist()]),
            capped=band.capped,
            resumed=band.resumed,
            resumed_proved=band.resumed_proved,
            states=band.updates,
        )
        return ExposurePolicy(
            objective=self,
            prior=prior,
            first=band.first,
            offsets=offsets,
            limits=band.limits.astype(np.int64),
            settled=band.settled.astype(np.int64),
            lower=tuple(solution.lower.tolist()),
            upper=tuple(solution.upper.tolist()),
            certificate=certificate,
            expire_after=self.expire_after or 0.0,
            open_rows=tuple(rows_open.tolist()),
        )

    def enclose(
        self, belief: Belief, pending: int = 0, tolerance: float = 1e-6, seconds: float = 60.0
    ) -> tuple[Bounds, int | None]:
        """Return bounds of the optimal value at a belief, and the exposure limit there.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        pending : int
            Number of accepted individuals whose label is not known yet.
        tolerance : float
            How accurately values are computed, in units of reward.
        seconds : float
            Longest time to allow, in seconds. A problem that is estimated to take longer raises an error.

        Returns
        -------
        tuple of Bounds and int or None
            The value, and the largest number that may be pending; None if there is no limit.

        Raises
        ------
        TooLargeError
            If the problem is estimated to take more than ``seconds``.

        Examples
        --------
        >>> late = Delayed(cost=0.8, arrivals=20, discount_rate=0.1, label_delay=1)
        >>> value, limit = late.enclose(Belief(10, 7), tolerance=1e-4)
        >>> print(round(value.midpoint, 2), limit)
        1.29 3
        """
        one_break_even(self, "enclose")
        self._check_endless("enclose")
        check_prior(belief, "belief")
        solution = self._enclose(belief, 1, tolerance, None, None, seconds)
        if pending > solution.pending_cap:
            solution = self._enclose(belief, 1, tolerance, pending, solution.look_ahead, seconds)
        band = solution.band
        limit = None if band.unlimited[0] == 0 else 0 if band.first[0] > 0 else int(band.limits[0])
        return Bounds(float(solution.lower[pending]), float(solution.upper[pending])), limit

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
        >>> Delayed(0.8, arrivals=5, discount_rate=0.5, label_delay=0.5).starts(Belief(2, 1))
        False
        >>> starter = Offers.menu(amount=[0.05, 1], cost=[0.8, 0.8])
        >>> Delayed(offers=starter, arrivals=5, discount_rate=0.5, label_delay=0.5).starts(Belief(2, 1))
        True
        """
        if self.horizon is not None:
            return bool(self.solve(belief).accepts(belief))
        if self.offers is None and isinstance(belief, Belief):
            return ExposureObjective.starts(self, belief)
        policy = self.solve(belief)
        offers: Offers = policy.offers
        return any(policy.accepts(belief, offers.offers_of(menu)) for menu in range(offers.menu_count))

    def problem(self, prior: Belief) -> DelayedProblem:
        """Return the problem in the solver's own numbers.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.

        Returns
        -------
        DelayedProblem
            The numbers of :mod:`lenience.solvers.delayed`.

        Examples
        --------
        >>> late = Delayed(cost=0.8, arrivals=20, discount_rate=0.1, label_delay=0.5)
        >>> late.problem(Belief(2, 1))
        DelayedProblem(n=2.0, s=1.0, f=1.0, cost=0.8, arrivals=20.0, rate=0.1, resolve=2.0)
        """
        from lenience.solvers.delayed.plan import DelayedProblem

        self._check_endless("This analysis")
        return DelayedProblem(
            n=prior.n,
            s=prior.s,
            f=prior.n - prior.s,
            cost=self.cost,
            arrivals=self.arrivals,
            rate=self.discount_rate,
            resolve=1 / self.label_delay,
        )

    def _check_endless(self, feature: str) -> None:
        """Raise InputError if there is a horizon, where a feature takes none."""
        if self.horizon is not None:
            raise InputError.because(
                f"{feature} takes a Delayed objective without a horizon",
                "horizon",
                value=self.horizon,
                label="",
                hint="Use solve(prior), whose policy has limits and values for each number of arrivals left.",
                code="conflicting_fields",
            )

    def _enclose(
        self,
        prior: Belief,
        rows: int | None,
        tolerance: float,
        pending_cap: int | None,
        look_ahead: int | None,
        seconds: float,
    ) -> DelayedSolution:
        from lenience.solvers.delayed.plan import solve_problem

        return solve_problem(
            self.problem(prior),
            rows=rows,
            tolerance=check_tolerance(tolerance),
            pending_cap=None if pending_cap is None else whole("pending_cap", pending_cap, least=1),
            look_ahead=None if look_ahead is None else whole("look_ahead", look_ahead, least=1),
            seconds=real("seconds", seconds, above=0),
        )

    def _estimate(self, prior: Belief, value: Bounds, solution: DelayedSolution) -> float:
        """Return the midpoint of the bounds or, if they are wide, a better estimate between them."""
        if solution.relative_gap <= 1e-5:
            return value.midpoint
        from lenience.solvers.delayed.plan import estimate_value

        estimate = estimate_value(self.problem(prior), solution)
        return estimate if estimate in value else value.midpoint
