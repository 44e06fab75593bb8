"""OfferExposurePolicy: accept an offer while one more pending label is worth its expected loss.

With late labels an offer is accepted where a(p̂ − c) + D > 0. D = V(m+1) − V(m) is what one more pending label is
worth when m are pending. D falls as more are pending, so each offer has its own exposure limit, and small amounts have
larger ones. Each belief is solved when it is asked for, and kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.core.validation import whole
from lenience.policies.beliefs.offer_exposure_decisions import OfferExposureDecisions
from lenience.policies.beliefs.offers import check_belief

if TYPE_CHECKING:
    from lenience.solvers.offers.delayed import DelayedOfferSolution

PATIENT_SECONDS = 60.0  # to solve a belief other than the prior


class OfferExposurePolicy(OfferExposureDecisions, frozen=True, eq=False):
    """The optimal policy where labels come late and amounts or break-evens differ.

    The ``solve`` method of :class:`~lenience.Delayed` creates it.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    tolerance
        How accurately values are computed, relative to the discounted number of arrivals times their mean amount.
    seconds
        The longest time that one solve may take.

    Examples
    --------
    >>> from lenience import Delayed, Offer
    >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> problem = Delayed(offers=offers, arrivals=50, discount_rate=0.5, label_delay=0.25)
    >>> policy = problem.solve(prior=Belief(2, 1), tolerance=1e-5)
    >>> [policy.limit(Belief(2, 1), Offer(amount, 0.8)) for amount in (0.1, 1, 5)]
    [11, 0, 0]
    """

    tolerance: float
    seconds: float

    def value(self, belief: Belief | MixtureBelief, pending: int = 0) -> Bounds:
        """Return what the optimal policy earns from a belief on.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            Number of accepted individuals whose label is not known yet. For more than the solver follows, the value
            is bounded by that of knowing the success probability.

        Returns
        -------
        Bounds
            Proved bounds of the value, in money.

        Examples
        --------
        >>> from lenience import Delayed
        >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
        >>> problem = Delayed(offers=offers, arrivals=50, discount_rate=0.5, label_delay=0.25)
        >>> 2.64949 in problem.solve(Belief(2, 1), tolerance=1e-5).value(Belief(2, 1))
        True
        """
        return self.labels_at(belief).value_with(whole("pending", pending))

    def __repr__(self) -> str:
        return f"OfferExposurePolicy({self.objective!r}, prior={self.prior.simplified!r})"

    def labels_at(self, belief: Belief | MixtureBelief) -> DelayedOfferSolution:
        """Return the solution with the belief as its prior. It is solved once and kept.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        DelayedOfferSolution
            Proved bounds of the value, and of a label's worth, by the number pending.
        """
        objective = self.objective
        problem = (
            MixtureBelief.of(check_belief(belief)).simplified,
            self.offers,
            objective.arrivals or 0.0,
            objective.label_delay,
            objective.discount_rate or 0.0,
            self.tolerance,
        )
        try:
            return _solution(*problem, self.seconds)
        except TooLargeError:
            # Another belief may take longer than the prior, for which the time was set.
            if belief in (self.prior, self.prior.simplified) or self.seconds >= PATIENT_SECONDS:
                raise
            return _solution(*problem, PATIENT_SECONDS)


@lru_cache(maxsize=1024)
def _solution(
    belief: Belief | MixtureBelief,
    offers: Offers,
    arrivals: float,
    label_delay: float,
    discount_rate: float,
    tolerance: float,
    seconds: float,
) -> DelayedOfferSolution:
    """Solve one belief."""
    from lenience.solvers.offers.delayed import solve_delayed_offers

    return solve_delayed_offers(belief, offers, arrivals, label_delay, discount_rate, tolerance, seconds)
