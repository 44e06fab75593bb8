"""MixturePolicy: the optimum for a prior that may be wrong, as a table of how many successes are enough.

With one break-even, a state is the number of new outcomes k and of successes j among them, whatever the prior. So a
policy for a mixture is a rule on the beliefs that follow from any one belief, e.g. the one that is doubted: simulations
count from there.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.validation import whole
from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy
from lenience.policies.beliefs.offers import OfferPolicy


class MixturePolicy(msgspec.Struct, frozen=True, eq=False):
    """Accept if there are enough successes among the outcomes since the prior.

    Parameters
    ----------
    prior : Belief
        The belief from which observations and successes are counted.
    accept_from : ndarray of int
        For each number of new outcomes, how many successes are enough; more than there are outcomes if none is.
    stop_ceiling : float, optional
        A success rate above which the policy never stops, from the last row on. 1 if none is known.
    floor : float, optional
        A success rate at or below which the policy has stopped, from the last row on. −1 if none is known.

    Examples
    --------
    >>> from lenience import Discounted, MixtureBelief
    >>> doubted = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
    >>> policy = MixturePolicy.of(Discounted(cost=0.8, discount=0.99).solve(doubted), rows=6)
    >>> policy.accept_from
    array([0, 1, 1, 2, 3, 4])
    >>> policy.acceptance(9, [5.8, 6.8])
    array([0., 1.])
    """

    prior: Belief
    accept_from: np.ndarray[Any, np.dtype[np.int64]]
    stop_ceiling: float = 1.0
    floor: float = -1.0

    @classmethod
    def of(cls, policy: OfferPolicy | HorizonOfferPolicy, rows: int) -> MixturePolicy:
        """Return the table of a policy that was solved for one break-even.

        Parameters
        ----------
        policy : OfferPolicy or HorizonOfferPolicy
            The policy. Observations are counted from the first belief of its prior.
        rows : int
            How many numbers of new outcomes to decide: 0, 1, …

        Returns
        -------
        MixturePolicy
            The table.
        """
        prior, cost = policy.prior, policy.objective.cost
        accept_from: list[int] = []
        least = 0
        for count in range(whole("rows", rows, least=1)):
            # One more failure is never better, so no fewer successes are enough than before.
            while least <= count:
                after = prior.after(count, least)
                if after.mean > cost or policy.accepts(after):
                    break
                least += 1
            accept_from.append(least)
        return cls(prior.beliefs[0], np.array(accept_from))

    @classmethod
    def by_belief(cls, policy: OfferPolicy | HorizonOfferPolicy, rows: int) -> list[MixturePolicy]:
        """Return the same table once for each belief of the prior, counted from that belief.

        If there is no horizon, each also knows when the policy stops after the last row. It accepts where the rates of
        all beliefs are above the cost, because their mean is. It has stopped where each belief alone has, because it
        is worth no less to know which of them is right.

        Parameters
        ----------
        policy : OfferPolicy or HorizonOfferPolicy
            The policy, solved for one break-even.
        rows : int
            How many numbers of new outcomes to decide: 0, 1, …

        Returns
        -------
        list of MixturePolicy
            One for each belief of the prior.
        """
        beliefs, accept_from = policy.prior.beliefs, cls.of(policy, rows).accept_from
        if policy.objective.horizon is not None:
            return [cls(belief, accept_from) for belief in beliefs]
        cost = policy.objective.cost
        floors = [policy.objective.solve(belief, rows=rows + 1).stop_floor(belief.n + rows) for belief in beliefs]
        rules = []
        for own in beliefs:
            # After k outcomes, the rates of two beliefs differ by at most a constant over the size of the second.
            above = max(cost * (one.n - own.n) + own.s - one.s for one in beliefs)
            below = [max(one.s - own.s + max(own.n - one.n, 0.0), 0.0) / (one.n + rows) for one in beliefs]
            floor = min(one - gap for one, gap in zip(floors, below, strict=True))
            rules.append(cls(own, accept_from, cost + max(above, 0.0) / (own.n + rows), max(floor, -1.0)))
        return rules

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which the policy has stopped, at size n and every larger one.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The rate; −1 before the last row of the table, where none is known.
        """
        return self.floor if n >= self.prior.n + self.accept_from.size - 0.5 else -1.0

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of accepting at beliefs, 0 or 1.

        Parameters
        ----------
        n : array_like
            Numbers of observations: the prior's and a whole number.
        s : array_like
            Numbers of successes, the prior's included.

        Returns
        -------
        ndarray of float
            0 or 1 for each belief; 0 after the last row of the table.
        """
        outcomes = np.rint(np.asarray(n, dtype=np.float64) - self.prior.n).astype(np.int64)
        successes = np.rint(np.asarray(s, dtype=np.float64) - self.prior.s)
        known = outcomes < self.accept_from.size
        enough = self.accept_from[np.where(known, outcomes, 0)]
        return np.asarray(known & (successes >= enough), dtype=np.float64)

    def __repr__(self) -> str:
        return f"MixturePolicy(prior={self.prior!r}, rows={self.accept_from.size})"
