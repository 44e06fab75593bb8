"""MixturePolicy: the optimum for a prior that may be wrong, as a table of how many successes are enough.

With one break-even, a state is the number of new outcomes k and of successes j among them, whatever the prior. So a
policy for a mixture is a rule on the beliefs that follow from any one belief, e.g. the one that is doubted: simulations
count from there.
"""

from __future__ import annotations

from bisect import bisect_left
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
        prior = policy.prior

        def least(count: int) -> int:
            # With one break-even, more successes are never worse.
            return bisect_left(range(count + 1), True, key=lambda j: policy.accepts(prior.after(count, j)))

        return cls(prior.beliefs[0], np.array([least(count) for count in range(whole("rows", rows, least=1))]))

    def acceptance(self, n: float | NDArray[np.float64], s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of accepting at beliefs, 0 or 1.

        Parameters
        ----------
        n : float or ndarray
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
