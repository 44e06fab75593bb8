"""CountedCap: the baselines of exposure limits for a prior that may be wrong, as tables.

With one break-even, a state is the number of new outcomes and of successes among them. ``Blind`` and ``Capped`` compare
a belief's own rate with the cost; with a mixture, the rate is the mixture's, so the comparison is a table, too.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.protocols import UNLIMITED


class CountedCap(msgspec.Struct, frozen=True, eq=False):
    """Accept from a number of successes on, and while fewer than a fixed number of outcomes are pending.

    Parameters
    ----------
    prior : Belief
        The belief from which observations and successes are counted: the first one of the mixture.
    accept_from : ndarray of int
        For each number of new outcomes, how many successes are enough.
    even_from : ndarray of int
        For each number of new outcomes, with how many successes the expected success rate reaches the cost.
    cap : int, optional
        The number of outcomes pending at which to stop; by default there is none.
    everywhere : bool, optional
        Whether the cap also applies where the expected success rate reaches the cost.

    Examples
    --------
    >>> policy = CountedCap(Belief(4, 2.8), np.array([0, 1, 1]), np.array([1, 1, 2]), cap=2)
    >>> policy.acceptance(6, [2.8, 3.8, 4.8], pending=2)
    array([0., 0., 1.])
    """

    prior: Belief
    accept_from: np.ndarray[Any, np.dtype[np.int64]]
    even_from: np.ndarray[Any, np.dtype[np.int64]]
    cap: int | None = None
    everywhere: bool = False

    @property
    def steady_limit(self) -> int | None:
        """The limit where the expected success rate reaches the cost; None if there is none."""
        return self.cap if self.everywhere else None

    def stop_floor(self, n: float) -> float:
        """Return a rate of successes, counted from the first belief, at or below which nobody is accepted at this size.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The rate one success below what is enough.
        """
        k = min(round(n - self.prior.n), self.accept_from.size - 1)
        return float((self.prior.s + int(self.accept_from[k]) - 1) / n)

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """Return the probability of accepting, 0 or 1, for arrays that broadcast.

        Parameters
        ----------
        n : array_like
            Numbers of observations: the first belief's and a whole number.
        s : array_like
            Numbers of successes, the first belief's included.
        pending : array_like
            Numbers of outcomes pending.

        Returns
        -------
        ndarray of float
            0 or 1 for each state.
        """
        return np.asarray(np.asarray(pending) < self.exposure(n, s), dtype=np.float64)

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """Return the exposure limits at many states at once.

        Parameters
        ----------
        n : array_like
            Numbers of observations: the first belief's and a whole number.
        s : array_like
            Numbers of successes, the first belief's included.

        Returns
        -------
        ndarray of int
            0 where nobody is accepted; otherwise the cap, or the largest 64-bit integer if there is no limit.
        """
        outcomes = np.rint(np.asarray(n, dtype=np.float64) - self.prior.n).astype(np.int64)
        successes = np.rint(np.asarray(s, dtype=np.float64) - self.prior.s)
        k = np.minimum(outcomes, self.accept_from.size - 1)
        below = UNLIMITED if self.cap is None else self.cap
        above = below if self.everywhere else UNLIMITED
        limit = np.where(successes >= self.even_from[k], above, below)
        return np.where(successes >= self.accept_from[k], limit, 0)
