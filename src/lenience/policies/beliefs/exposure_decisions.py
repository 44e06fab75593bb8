"""ExposureDecisions: what follows from an exposure limit, however the limit was computed."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.formatting import counted, observed, percents
from lenience.core.money import UNITS, Money
from lenience.core.objective import ExposureObjective
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import whole


class ExposureDecisions(msgspec.Struct, frozen=True, eq=False):
    """Accept while fewer than the limit are pending.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance.
    """

    objective: ExposureObjective
    prior: Belief

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """Return the exposure limits at many beliefs at once.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.

        Returns
        -------
        ndarray of int
            The limits; the largest 64-bit integer where there is no limit.
        """
        raise NotImplementedError

    def limit(self, belief: Belief) -> int | None:
        """Return how many outcomes may be pending at once, including that of the next acceptance.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        int or None
            The exposure limit; None if there is no limit.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.limit(Belief(10, 7)), policy.limit(Belief(10, 9))
        (5, None)
        """
        check_prior(belief, "belief")
        limit = int(self.exposure(belief.n, belief.s)[()])
        return None if limit == UNLIMITED else limit

    def accepts(self, belief: Belief, pending: int = 0) -> bool:
        """Return whether the next individual is accepted.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.

        Returns
        -------
        bool
            True to accept.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> [policy.accepts(Belief(10, 7), pending) for pending in (4, 5)]
        [True, False]
        """
        return whole("pending", pending) < int(self.exposure(belief.n, belief.s)[()])

    def accept_now(self, belief: Belief, pending: int, applicants: int) -> int:
        """Return how many of several applicants to accept now, all at once.

        Deciding a group at one instant is deciding its members in turn without any outcome in between: accept until the
        limit is reached.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.
        applicants : int
            The number of applicants.

        Returns
        -------
        int
            The number to accept.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.accept_now(Belief(10, 9), pending=3, applicants=4), policy.accept_now(Belief(10, 7), 3, 4)
        (4, 2)
        """
        room = int(self.exposure(belief.n, belief.s)[()]) - whole("pending", pending)
        return min(max(room, 0), whole("applicants", applicants))

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual, for arrays that broadcast.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.
        pending : array_like
            Numbers of outcomes pending.

        Returns
        -------
        ndarray of float
            0 or 1 for each state.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.acceptance(10, 7, pending=[3, 4, 5])
        array([1., 1., 0.])
        """
        return (np.asarray(pending) < self.exposure(n, s)).astype(np.float64)

    def explain(self, belief: Belief, pending: int = 0, money: Money = UNITS) -> str:
        """Return the decision and its reason, in words.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.
        money : Money, optional
            How to show amounts; by default in units of gain + loss.

        Returns
        -------
        str
            Up to four sentences.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=200, discount_rate=0.1, label_delay=1).solve(Belief(2, 1), rows=20)
        >>> print(policy.explain(Belief(10, 7), pending=1))
        Accept: 7 of 10 succeeded (70%), below the break-even of 80%. 1 outcome is pending, and the limit is 13. What
        one more outcome teaches is worth more than the expected loss of 0.1.
        """
        count = whole("pending", pending)
        limit = self.limit(belief)
        mean, even = percents(belief.mean, self.objective.cost)
        seen = observed(belief, mean)
        if limit is None:
            return f"Accept: {seen}, not below the break-even of {even}. Any number of outcomes may be pending."
        seen = f"{seen}, below the break-even of {even}"
        loss = f"the expected loss of {money.format(self.objective.cost - belief.mean)}"
        if limit > 0:
            exposure = (
                f"{counted(count, 'outcome')} {'is' if count == 1 else 'are'} pending, and the limit is {limit:,}."
            )
            if count < limit:
                return f"Accept: {seen}. {exposure} What one more outcome teaches is worth more than {loss}."
            return f"Reject for now: {seen}. {exposure} Wait for an outcome before accepting again."
        futile = f"What one more outcome teaches is not worth {loss}."
        if count > 0:
            open_outcomes = "The pending outcome" if count == 1 else f"The {count:,} pending outcomes"
            return f"Reject for now: {seen}. {futile} {open_outcomes} may change this."
        return f"Reject: {seen}. {futile} The rejection is final, because nothing more is learnt without acceptances."

    @property
    def steady_limit(self) -> None:
        """``None``, because there is no limit where p̂ ≥ c."""
        return None
