"""The exact distribution of a belief where arrivals bring offers, forward in time.

As in :mod:`lenience.solvers.stopping.forward`, but a state is left with the probability D that an arrival is accepted,
whatever it brings. D is 0 where no offer is accepted, and then the policy has stopped for good: the belief stays as it
is, and so do all decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule
from lenience.solvers.offers.evaluation import menu_choices
from lenience.solvers.stopping.boundary_walk import NEGLIGIBLE, exceeds
from lenience.solvers.stopping.forward import Walk, spread


class StopRates(NamedTuple):
    """Hold the success rates that bound what a policy does after the last row.

    ``ceiling`` is a rate above which it never stops for good; ``floor`` is one at or below which it has stopped.
    """

    stop_ceiling: float
    floor: float

    def stop_floor(self, n: float) -> float:
        """Return the floor, which was computed for the size that is needed."""
        return self.floor


def walk_offers(
    policy: OfferRule | Accepts,
    n: float,
    s: float,
    offers: Offers,
    discount: float,
    rows: int,
    p: float | None,
    deserving_from: float,
) -> tuple[Walk, NDArray[np.float64]]:
    """Follow ``rows`` acceptances from the belief (n, s). Also return the discounted number accepted of each offer."""
    amount, cost, shares = (np.array(column) for column in (offers.amount, offers.cost, offers.share))
    stopped, deserving, moving, weight, earned = (np.zeros(rows) for _ in range(5))
    made = np.zeros(amount.size)
    mass, discounted = np.ones(1), np.ones(1)
    first, aside = 0, 0.0
    ceiling = stop_rates(policy, n, offers).stop_ceiling
    for k in range(rows):
        good = s + (first + np.arange(mass.size, dtype=np.float64))
        chance, choice = menu_choices(policy, n + k, good, offers)
        accepts = chance @ shares
        # Above its ceiling a policy never stops: a probability of 0 there is one that is too small for a float.
        stops = (accepts <= 0.0) & (good <= ceiling * (n + k))
        if stops.any():
            stopped[k] = mass[stops].sum()
            if p is None:
                deserving[k] = float(
                    mass[stops] @ exceeds(np.full(good.size, n + k)[stops], good[stops], deserving_from)
                )
            else:
                deserving[k] = stopped[k] * (p > deserving_from)
            mass = np.where(stops, 0.0, mass)
            discounted = np.where(stops, 0.0, discounted)
        moving[k] = mass.sum()
        if moving[k] == 0.0:
            mass, discounted = mass[:0], discounted[:0]
            break
        success = good / (n + k) if p is None else np.full(mass.size, p)
        wait = 1.0 - discount + discount * accepts
        visits = np.divide(discounted, wait, out=np.zeros_like(wait), where=wait > 0.0)
        profit = (chance * amount[choice] * (success[:, None] - cost[choice])) @ shares
        weight[k] = float(visits @ accepts)
        earned[k] = float(visits @ profit)
        for menu in range(shares.size):
            np.add.at(made, choice[:, menu], visits * chance[:, menu] * shares[menu])
        mass = spread(mass, success, 1.0)
        discounted = spread(visits * accepts, success, discount)
        keep = np.flatnonzero(mass > NEGLIGIBLE)
        begin, end = (int(keep[0]), int(keep[-1]) + 1) if keep.size else (0, 0)
        aside += float(mass[:begin].sum() + mass[end:].sum())
        mass, discounted, first = mass[begin:end], discounted[begin:end], first + begin
        if not keep.size:
            break
    return Walk(stopped, deserving, moving, weight, earned, mass, discounted, first, aside), made


def stop_rates(policy: OfferRule | Accepts, n: float, offers: Offers) -> StopRates:
    """Return what is known of when a policy stops from size n on; a rate of 1 and one of −1 say that nothing is."""
    own: Callable[[float, Offers], tuple[float, float]] | None = getattr(policy, "stop_rates", None)
    if own is not None:
        return StopRates(*own(n, offers))
    floor = getattr(policy, "stop_floor", None)
    return StopRates(float(getattr(policy, "stop_ceiling", 1.0)), -1.0 if floor is None else float(floor(n)))
