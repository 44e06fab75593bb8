"""What a policy earns where arrivals bring offers, enclosed: the plain recursion by rows.

With acceptance probabilities π_k for the menus, D = Σ w_k π_k and M = p̂ V(n+1, s+1) + (1 − p̂) V(n+1, s),

    V = (Σ w_k π_k g_k + γ D M)/(1 − γ + γ D).

The last row lies between losing and gaining the whole amount at every arrival. The bounds close by at least γ a row.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule, offer_acceptance_at

MOST_ROWS = 20_000  # about a minute


class MenuChoices(NamedTuple):
    """Hold what a policy does at beliefs of one size: one line for each belief, one column for each menu."""

    chance: NDArray[np.float64]  # the probability that an arrival with this menu is accepted
    choice: NDArray[np.int64]  # the offer that is then made


def menu_choices(
    policy: OfferRule | Accepts, n: float, s: NDArray[np.float64], offers: Offers, left: int | None = None
) -> MenuChoices:
    """Return what a policy does at beliefs of one size. From a menu, it makes the best of the offers that it accepts.

    >>> from lenience.policies.beliefs.offer_baselines import GreedyOffers
    >>> menu_choices(GreedyOffers(), 10, np.array([7.5, 9.0]), Offers.menu([1, 3], [0.7, 0.8])).choice.tolist()
    [[0], [1]]
    """
    accepted = offer_acceptance_at(policy, n, s, offers, left=left)
    return best_accepted(accepted, s / n, offers)


def best_accepted(accepted: NDArray[np.float64], rates: NDArray[np.float64], offers: Offers) -> MenuChoices:
    """Return the best accepted offer of each menu, where ``accepted`` has a column for each offer."""
    if not offers.menus:
        return MenuChoices(accepted, np.tile(np.arange(len(offers.amount)), (rates.size, 1)))
    gains = np.array(offers.amount) * (rates[:, None] - np.array(offers.cost))
    possible = np.where(accepted > 0.0, gains, -np.inf)
    starts = np.append(np.flatnonzero(np.diff(np.array(offers.menus), prepend=-1)), len(offers.amount))
    chance = np.maximum.reduceat(accepted, starts[:-1], axis=1)
    choice = [first + possible[:, first:end].argmax(axis=1) for first, end in pairwise(starts.tolist())]
    return MenuChoices(chance, np.stack(choice, axis=1))


def evaluate_offers(
    policy: OfferRule | Accepts, belief: Belief, offers: Offers, discount: float, tolerance: float
) -> Bounds:
    """Return bounds of what a policy earns from a belief on; the tolerance is in units of the mean amount.

    From a menu, the best of the offers that the policy accepts is made.
    """
    amount, cost = np.array(offers.amount), np.array(offers.cost)
    shares = np.array(offers.share)
    most = offers.mean_amount / (1.0 - discount)
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
        chance, choice = menu_choices(policy, n, s, offers)
        earned = (chance * amount[choice] * (p - cost[choice])) @ shares
        d = chance @ shares
        p = p[:, 0]
        low = (earned + discount * d * (p * low[1:] + (1 - p) * low[:-1])) / (1 - discount + discount * d)
        high = (earned + discount * d * (p * high[1:] + (1 - p) * high[:-1])) / (1 - discount + discount * d)
    slack = 1e-14 * most * last
    return Bounds(float(low[0]) - slack, float(high[0]) + slack)
