"""What a policy earns where arrivals bring offers, enclosed: the plain recursion by rows.

With acceptance probabilities π_k for the menus, D = Σ w_k π_k and M = p̂ V(n+1, s+1) + (1 − p̂) V(n+1, s),

    V = (Σ w_k π_k g_k + γ D M)/(1 − γ + γ D).

The last row lies between losing and gaining the whole amount at every arrival. The bounds close by at least γ a row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule

MOST_ROWS = 20_000  # about a minute


def offer_acceptance(
    policy: OfferRule | Accepts, n: float, s: NDArray[np.float64], offers: Offers
) -> NDArray[np.float64]:
    """Return the probability of accepting each offer; a policy that ignores offers treats all of them alike."""
    if isinstance(policy, OfferRule):
        return policy.offer_acceptance(n, s, offers)
    alike = np.asarray(policy.acceptance(n, s), dtype=np.float64)
    return np.repeat(alike[:, None], len(offers.amount), axis=1)


def evaluate_offers(
    policy: OfferRule | Accepts, belief: Belief, offers: Offers, discount: float, tolerance: float
) -> Bounds:
    """Return bounds of what a policy earns from a belief on; the tolerance is in units of the mean amount.

    From a menu, the best of the offers that the policy accepts is made.
    """
    amount, cost = np.array(offers.amount), np.array(offers.cost)
    shares, of = np.array(offers.share), np.array(offers.menu_of)
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    most = float(np.add.reduce(shares * np.maximum.reduceat(amount, starts))) / (1.0 - discount)
    target = tolerance * offers.mean_amount
    last = 1 if discount == 0.0 else math.ceil(math.log(target / (2.0 * most)) / math.log(discount)) + 1
    last = max(last, 1)
    if last > MOST_ROWS:
        raise TooLargeError(
            "Evaluating this policy",
            seconds=60.0 * (last / MOST_ROWS) ** 2,
            allowed_seconds=60.0,
            detail=f"{last:,} rows",
            allowed=f"{MOST_ROWS:,} rows",
            field="tolerance",
            value=tolerance,
            hint="Use a larger tolerance.",
        )
    low, high = np.full(last + 1, -most), np.full(last + 1, most)
    for k in range(last - 1, -1, -1):
        n = belief.n + k
        s = belief.s + np.arange(k + 1, dtype=np.float64)
        p = (s / n)[:, None]
        accepted = offer_acceptance(policy, n, s, offers)
        gains = amount * (p - cost)
        # The best accepted offer of each menu. With one offer a menu this is the offer itself.
        best = np.maximum.reduceat(np.where(accepted > 0.0, gains, -np.inf), starts, axis=1)
        chance = np.maximum.reduceat(accepted, starts, axis=1)
        earned = np.where(chance > 0.0, chance * np.where(np.isfinite(best), best, 0.0), 0.0) @ shares
        d = chance @ shares
        p = p[:, 0]
        low = (earned + discount * d * (p * low[1:] + (1 - p) * low[:-1])) / (1 - discount + discount * d)
        high = (earned + discount * d * (p * high[1:] + (1 - p) * high[:-1])) / (1 - discount + discount * d)
    slack = 1e-14 * most * last
    return Bounds(float(low[0]) - slack, float(high[0]) + slack)
