"""CountedPolicy: a policy that counts outcomes from its own belief, while another belief is the right one.

A policy decides by the outcomes that it has seen. So what it earns with a prior that may be wrong is the average of
what it earns with each belief of that prior, where its decisions after the same outcomes are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.offers import Offers
from lenience.core.protocols import offer_acceptance_at
from lenience.solvers.offers.evaluation import best_accepted


class CountedPolicy:
    """Decide at a belief that follows from ``right`` as ``policy`` does after the same outcomes from ``counted``."""

    def __init__(self, policy: Any, counted: Belief, right: Belief) -> None:
        self.policy, self.counted, self.right = policy, counted, right

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of accepting at beliefs that follow from the right one."""
        accepted: NDArray[np.float64] = self.policy.acceptance(*self._seen(n, s))
        return accepted

    def _seen(self, n: ArrayLike, s: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the belief that the policy has after the same outcomes."""
        outcomes = np.rint(np.asarray(n, dtype=np.float64) - self.right.n)
        successes = np.rint(np.asarray(s, dtype=np.float64) - self.right.s)
        return self.counted.n + outcomes, self.counted.s + successes


class CountedOfferPolicy(CountedPolicy):
    """The same where arrivals bring offers. The policy also chooses from a menu by its own belief."""

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers) -> NDArray[np.float64]:
        """Return the probability of making each offer, at beliefs of one size that follow from the right one."""
        size, good = self._seen(n, s)
        accepted = offer_acceptance_at(self.policy, float(size), good, offers)
        chance, choice = best_accepted(accepted, good / size, offers)
        made = np.zeros_like(accepted)
        np.put_along_axis(made, choice, chance, axis=1)
        return made
