"""Any policy for offers over a known number of arrivals: its exact value, and what it does to a population.

A rejection is not final with offers, so the states are (arrival, labels k, successes j): a pyramid. With D the
probability that an arrival is accepted at a state and E its expected profit,

    V_i = γ V_{i+1} + E + γ D (p̂ V_{i+1}(k+1, j+1) + (1 − p̂) V_{i+1}(k+1, j) − V_{i+1}),

and forward in time the probability of a state moves to (k+1, j+1) or (k+1, j) with probability D, and stays otherwise.
The states of one arrival are a flat array: state (k, j) is at k(k+1)/2 + j.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.compiled import compiled
from lenience.core.errors import TooLargeError
from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule, looks_at
from lenience.solvers.offers.evaluation import menu_choices
from lenience.solvers.stopping.boundary_walk import exceeds

MOST_STATES = 5e8  # about ten seconds
MOST_TABLE = 2e8  # numbers: states times offers


class OfferPyramid:
    """Describe what a policy does at every state of the pyramid.

    Parameters
    ----------
    policy
        The policy.
    belief
        The belief at the start.
    offers
        What arrivals bring.
    horizon
        The number of arrivals to follow.
    p
        The true success probability; None to average over the belief.
    end
        The number of arrivals in all, for policies that look at how many are left; by default the horizon.
    """

    def __init__(
        self,
        policy: OfferRule | Accepts,
        belief: Belief,
        offers: Offers,
        horizon: int,
        p: float | None = None,
        end: int | None = None,
    ) -> None:
        timed = isinstance(policy, OfferRule) and looks_at(policy, "left")
        size = horizon * (horizon + 1) // 2
        states = horizon**3 / 6.0
        if states > MOST_STATES or (not timed and size * len(offers.amount) > MOST_TABLE):
            raise TooLargeError(
                f"Following {horizon:,} arrivals with offers exactly",
                size=states,
                allowed_size=MOST_STATES,
                unit="states",
                field="horizon",
                value=horizon,
                hint="Use fewer arrivals, or simulate.",
            )
        self.end = horizon if end is None else end
        self.policy, self.belief, self.offers, self.horizon, self.p = policy, belief, offers, horizon, p
        self.rows = np.repeat(np.arange(horizon), np.arange(1, horizon + 1))
        self.good = np.arange(size) - self.rows * (self.rows + 1) // 2
        n, s = self.beliefs
        self.mean = np.minimum(s / n, 1.0)
        self.success = self.mean if p is None else np.full(size, p)
        self._shares = np.array(offers.share)
        self._amount, self._cost = np.array(offers.amount), np.array(offers.cost)
        self._start = np.append(np.flatnonzero(np.diff(np.array(offers.menu_of), prepend=-1)), self._amount.size)
        self._timed = timed
        self._fixed: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
        if not timed:
            lines = [menu_choices(policy, belief.n + k, belief.s + np.arange(k + 1.0), offers) for k in range(horizon)]
            self._fixed = np.concatenate([line.chance for line in lines]), np.concatenate([li.choice for li in lines])
            self._planes = self._chances(*self._fixed)

    @property
    def beliefs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The number of observations and of successes at each state."""
        return self.belief.n + self.rows.astype(np.float64), self.belief.s + self.good.astype(np.float64)

    def at(self, arrival: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return D and E of the states that the given arrival can meet."""
        size = (arrival + 1) * (arrival + 2) // 2
        if not self._timed:
            return self._planes[0][:size], self._planes[1][:size]
        labels = self._labels(arrival)
        if labels is None:
            return self._chances(*self._rows_at(arrival))
        chance, earned = np.empty(size), np.empty(size)
        decide_states(
            labels, self.mean, self.success, self._amount, self._cost, self._start, self._shares, chance, earned,
            np.empty(0), np.empty(0),
        )  # fmt: skip
        return chance, earned

    def offers_made(self, arrival: int, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability that each offer is made and accepted, given the probabilities of the states."""
        labels = self._labels(arrival) if self._timed else None
        made = np.zeros(self._amount.size)
        if labels is not None:
            chance, earned = np.empty(mass.size), np.empty(mass.size)
            decide_states(
                labels, self.mean, self.success, self._amount, self._cost, self._start, self._shares, chance, earned,
                mass, made,
            )  # fmt: skip
            return made
        chances, choice = self._rows_at(arrival) if self._fixed is None else self._fixed
        for menu in range(self._shares.size):
            np.add.at(made, choice[: mass.size, menu], mass * chances[: mass.size, menu] * self._shares[menu])
        return made

    def last_acceptance(self) -> NDArray[np.int64]:
        """Return the last arrival that may be accepted at each state; −1 if none is."""
        if not self._timed:
            return np.where(self._planes[0] > 0.0, self.horizon - 1, -1)
        last = np.full(self.mean.size, -1, dtype=np.int64)
        for arrival in range(self.horizon):
            chance, _ = self.at(arrival)
            last[: chance.size][chance > 0.0] = arrival
        return last

    def _labels(self, arrival: int) -> NDArray[np.float64] | None:
        """Return the value of a label at each state, if the policy has a table of it."""
        plane: Any = getattr(self.policy, "label_plane", None)
        labels: NDArray[np.float64] | None = None if plane is None else plane(self.belief, self.end - arrival)
        return None if labels is None else labels[: (arrival + 1) * (arrival + 2) // 2]

    def _rows_at(self, arrival: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what the policy does at the states that an arrival can meet, by menu."""
        lines = [
            menu_choices(
                self.policy, self.belief.n + k, self.belief.s + np.arange(k + 1.0), self.offers, self.end - arrival
            )
            for k in range(arrival + 1)
        ]
        return np.concatenate([line.chance for line in lines]), np.concatenate([line.choice for line in lines])

    def _chances(
        self, chance: NDArray[np.float64], choice: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return D and E from what the policy does by menu."""
        profit = self._amount[choice] * (self.success[: len(choice), None] - self._cost[choice])
        return chance @ self._shares, (chance * profit) @ self._shares


class OfferWalk(NamedTuple):
    """Hold the probabilities of a walk over a known number of arrivals."""

    stopped: NDArray[np.float64]  # by k: the probability of stopping for good after k acceptances
    stopped_deserving: float  # the probability of stopping for good although some offer would pay
    accepted: NDArray[np.float64]  # by arrival: the probability of acceptance
    earned: float  # the discounted expected reward
    made: NDArray[np.float64]  # by offer: the discounted number that is accepted


def evaluate_pyramid(
    policy: OfferRule | Accepts, belief: Belief, offers: Offers, discount: float, horizon: int
) -> Bounds:
    """Return bounds of what a policy earns over a horizon, from a belief on."""
    pyramid = OfferPyramid(policy, belief, offers, horizon)
    value = np.zeros((horizon + 1) * (horizon + 2) // 2)
    for arrival in range(horizon - 1, -1, -1):
        chance, earned = pyramid.at(arrival)
        step_back(value, chance, earned, pyramid.mean, arrival, discount)
    slack = 2.0**-53 * (32.0 + offers.menu_count) * horizon**2 * offers.mean_amount
    return Bounds(float(value[0]) - slack, float(value[0]) + slack)


def walk_pyramid(pyramid: OfferPyramid, discount: float, deserving_from: float) -> OfferWalk:
    """Follow all arrivals; a population deserves acceptance if its success rate is above ``deserving_from``."""
    horizon = pyramid.horizon
    last = pyramid.last_acceptance()
    if pyramid.p is None:
        above = exceeds(*pyramid.beliefs, deserving_from)
    else:
        above = np.full(pyramid.mean.size, float(pyramid.p > deserving_from))
    stopped = np.zeros(horizon)
    accepted = np.zeros(horizon)
    made = np.zeros(len(pyramid.offers.amount))
    deserving, total, factor = 0.0, 0.0, 1.0
    mass = np.zeros((horizon + 1) * (horizon + 2) // 2)
    mass[0] = 1.0
    for arrival in range(horizon):
        chance, earned = pyramid.at(arrival)
        here = mass[: chance.size]
        final = np.flatnonzero((last[: chance.size] < arrival) & (here > 0.0))
        np.add.at(stopped, pyramid.rows[final], here[final])
        deserving += float(here[final] @ above[final])
        here[final] = 0.0
        accepted[arrival] = here @ chance
        total += factor * float(here @ earned)
        made += factor * pyramid.offers_made(arrival, here)
        step_forward(mass, chance, pyramid.success, arrival)
        factor *= discount
    return OfferWalk(stopped, deserving, accepted, total, made)


@compiled
def decide_states(
    labels: NDArray[np.float64],
    mean: NDArray[np.float64],
    success: NDArray[np.float64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    chance: NDArray[np.float64],
    earned: NDArray[np.float64],
    mass: NDArray[np.float64],
    made: NDArray[np.float64],
) -> None:
    """Write D and E of each state from the value of its label; with ``mass``, add up how often each offer is made."""
    for i in range(labels.size):
        total = 0.0
        profit = 0.0
        for m in range(share.size):
            best = start[m]
            top = amount[best] * (mean[i] - cost[best])
            for o in range(start[m] + 1, start[m + 1]):
                gain = amount[o] * (mean[i] - cost[o])
                if gain > top:
                    top = gain
                    best = o
            if top + labels[i] > 0.0:
                total += share[m]
                profit += share[m] * amount[best] * (success[i] - cost[best])
                if mass.size > 0:
                    made[best] += mass[i] * share[m]
        chance[i] = total
        earned[i] = profit


@compiled
def step_back(
    value: NDArray[np.float64],
    chance: NDArray[np.float64],
    earned: NDArray[np.float64],
    mean: NDArray[np.float64],
    arrival: int,
    discount: float,
) -> None:
    """Compute the values at an arrival in place. k ascends, so that row k + 1 still holds those of the next arrival."""
    at = 0
    for k in range(arrival + 1):
        for _ in range(k + 1):
            p = mean[at]
            later = p * value[at + k + 2] + (1.0 - p) * value[at + k + 1]
            value[at] = discount * value[at] + earned[at] + discount * chance[at] * (later - value[at])
            at += 1


@compiled
def step_forward(
    mass: NDArray[np.float64], chance: NDArray[np.float64], success: NDArray[np.float64], arrival: int
) -> None:
    """Move the probabilities to the next arrival in place. States descend, so that no mass moves twice."""
    at = chance.size - 1
    for k in range(arrival, -1, -1):
        for _ in range(k + 1):
            moved = mass[at] * chance[at]
            mass[at + k + 2] += moved * success[at]
            mass[at + k + 1] += moved * (1.0 - success[at])
            mass[at] -= moved
            at -= 1
