"""What a world is: it opens a stream of individuals whose outcomes are fixed before any policy sees them.

A world opens a stream for a number of replications. A stream says, arrival by arrival, with what probability the next
individual succeeds, whether it would, to which segment it belongs and how many arrivals later its label comes. The
outcome reaches a policy's belief only if the policy accepts. A world in which that probability never changes is
*homogeneous*; the runner then takes its compiled road.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.counter_rng import arrival_bits, limits

HIGH = np.uint64(32)


class Stream:
    """What the replications of a block meet; opened anew for each policy, with the same individuals."""

    segments = 1

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self.keys = keys

    def rates(self, arrival: int) -> NDArray[np.float64]:
        """The success probability of the arrival, by replication; arrivals are asked for in order."""
        raise NotImplementedError

    def outcomes(self, arrival: int, rates: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the arrival succeeds, if accepted."""
        return (arrival_bits(self.keys, arrival) >> HIGH) < limits(rates)

    def segment(self, arrival: int) -> NDArray[np.int64]:
        """The segment of the arrival, from 0 on."""
        return np.zeros(self.keys.size, dtype=np.int64)

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The success probabilities as they are now, by replication and segment, and the segments' shares."""
        raise NotImplementedError

    def label_lag(self, arrival: int) -> NDArray[np.int64] | None:
        """After how many arrivals the label comes (1: before the next), or nothing if none is ever late."""
        return None


class World(Protocol):
    """A world of individuals; any object with these two methods is one.

    It may have a ``prior`` that policies start from by default, and say that p moves by ``drifts = True``.
    """

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """The success probability by replication, if the world is homogeneous and its labels are prompt."""


class FixedStream(Stream):
    """A stream whose success probabilities never change."""

    def __init__(self, keys: NDArray[np.uint64], rates: NDArray[np.float64]) -> None:
        super().__init__(keys)
        self._rates = rates

    def rates(self, arrival: int) -> NDArray[np.float64]:
        return self._rates

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._rates.reshape(-1, 1), np.ones(1)


def draw(belief: Belief, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Success probabilities from a belief, by inversion."""
    from scipy.special import betaincinv

    if belief.certain:
        return np.full(chance.size, belief.mean)
    result: NDArray[np.float64] = betaincinv(belief.alpha, belief.beta, np.maximum(chance, 2.0**-60))
    return result
