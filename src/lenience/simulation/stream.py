"""World and Stream: a world opens a stream of individuals whose outcomes are fixed before any policy sees them.

A world opens a stream for a number of replications. For each arrival, the stream gives the success probability, the
outcome, the segment, and after how many arrivals the label comes. A policy learns the outcome only if it accepts. A
world whose success probability never changes is *homogeneous*; the runner then uses the compiled engine.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.counter_rng import arrival_bits, limits

HIGH = np.uint64(32)


class Stream:
    """The individuals that a block of replications meets.

    A world opens a new stream for each policy, with the same individuals. To write your own, override ``rates`` and
    ``by_segment``, and the other methods if needed. ``segments`` is the number of segments, 1 by default.

    Parameters
    ----------
    keys : ndarray of uint64
        The random keys of the replications, one each.
    """

    segments = 1

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self.keys = keys

    def rates(self, arrival: int) -> NDArray[np.float64]:
        """Return the success probability of an arrival. The runner requests arrivals in order.

        Parameters
        ----------
        arrival : int
            The number of the arrival, from 0.

        Returns
        -------
        ndarray
            The success probabilities, one per replication.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> from lenience.simulation import Bernoulli
        >>> stream = Bernoulli(0.7).open(replication_keys(seed=1, first=0, count=3), horizon=10)
        >>> stream.rates(0)
        array([0.7, 0.7, 0.7])
        """
        raise NotImplementedError

    def outcomes(self, arrival: int, rates: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether an arrival succeeds if accepted.

        Parameters
        ----------
        arrival : int
            The number of the arrival, from 0.
        rates : ndarray
            The success probabilities of this arrival, one per replication.

        Returns
        -------
        ndarray of bool
            The outcomes, one per replication.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> from lenience.simulation import Bernoulli
        >>> stream = Bernoulli(1.0).open(replication_keys(seed=1, first=0, count=3), horizon=10)
        >>> stream.outcomes(0, stream.rates(0))
        array([ True,  True,  True])
        """
        return (arrival_bits(self.keys, arrival) >> HIGH) < limits(rates)

    def segment(self, arrival: int) -> NDArray[np.int64]:
        """Return the segment of an arrival.

        Parameters
        ----------
        arrival : int
            The number of the arrival, from 0.

        Returns
        -------
        ndarray of int
            The segments, counted from 0, one per replication.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> from lenience.simulation import Mixture
        >>> world = Mixture(shares=[0.5, 0.5], rates=[0.9, 0.6])
        >>> world.open(replication_keys(seed=2, first=0, count=4), horizon=10).segment(0)
        array([1, 1, 0, 0])
        """
        return np.zeros(self.keys.size, dtype=np.int64)

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the current success probabilities and the shares of the segments.

        Returns
        -------
        rates : ndarray
            The success probabilities at the last arrival requested, by replication and segment.
        shares : ndarray
            The share of arrivals in each segment.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> from lenience.simulation import Mixture
        >>> world = Mixture(shares=[0.5, 0.5], rates=[0.9, 0.6])
        >>> rates, shares = world.open(replication_keys(seed=1, first=0, count=1), horizon=10).by_segment()
        >>> rates, shares
        (array([[0.9, 0.6]]), array([0.5, 0.5]))
        """
        raise NotImplementedError

    def label_lag(self, arrival: int) -> NDArray[np.int64] | None:
        """Return after how many arrivals the label of an arrival comes.

        Parameters
        ----------
        arrival : int
            The number of the arrival, from 0.

        Returns
        -------
        ndarray of int or None
            The lags, one per replication, where 1 means before the next arrival; None if no label is ever late.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> from lenience.simulation import Bernoulli
        >>> stream = Bernoulli(0.7).open(replication_keys(seed=1, first=0, count=3), horizon=10)
        >>> stream.label_lag(0) is None  # labels are prompt
        True
        """
        return None


class World(Protocol):
    """The interface of a world. Any object with these two methods is one.

    A world may also have a ``prior``, from which policies start by default. It sets ``drifts = True`` if p changes.
    """

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """Open a stream of individuals.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.
        horizon : int
            The number of arrivals.

        Returns
        -------
        Stream
            The individuals, the same whenever the keys are the same.
        """

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """Return the success probabilities if the world is homogeneous and its labels are prompt.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.

        Returns
        -------
        ndarray or None
            The success probabilities, one per replication, or None if they change or labels are late.
        """


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
    """Draw success probabilities from a belief, by inversion."""
    from scipy.special import betaincinv

    if belief.certain:
        return np.full(chance.size, belief.mean)
    result: NDArray[np.float64] = betaincinv(belief.alpha, belief.beta, np.maximum(chance, 2.0**-60))
    return result
