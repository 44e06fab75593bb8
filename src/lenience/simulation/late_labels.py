"""LateLabels: any other world, with labels that come late."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.counter_rng import uniform
from lenience.core.errors import InputError
from lenience.simulation.drifting_worlds import ChangePoints, RandomWalk, Redrawn
from lenience.simulation.label_delay import LabelDelay
from lenience.simulation.stream import Stream
from lenience.simulation.worlds import Bernoulli, FromPrior, Mixture


class LateLabels(msgspec.Struct, frozen=True, tag="late_labels", tag_field="type"):
    """Another world whose labels come late.

    Parameters
    ----------
    world : Bernoulli, FromPrior, Mixture, RandomWalk, ChangePoints or Redrawn
        The world that draws the individuals.
    delay : LabelDelay
        The distribution of the delays, counted in arrivals.

    Examples
    --------
    >>> LateLabels(Bernoulli(0.9), LabelDelay("exponential", mean=20)).delay.mean
    20.0
    """

    world: Bernoulli | FromPrior | Mixture | RandomWalk | ChangePoints | Redrawn
    delay: LabelDelay

    def __post_init__(self) -> None:
        if not isinstance(self.delay, LabelDelay):
            raise InputError("delay", self.delay, "a LabelDelay")

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

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> world = LateLabels(Bernoulli(0.9), LabelDelay("fixed", mean=20))
        >>> world.open(replication_keys(seed=1, first=0, count=2), horizon=100).label_lag(0)
        array([20, 20])
        """
        return _Late(self.world.open(keys, horizon), self.delay, horizon)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """Return the success probabilities of the other world if no label is late.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.

        Returns
        -------
        ndarray or None
            The success probabilities, or None if they change or labels are late.
        """
        return self.world.fixed_rates(keys) if self.delay.kind == "none" else None


class _Late(Stream):
    """The stream of another world, with late labels."""

    def __init__(self, inner: Stream, delay: LabelDelay, horizon: int) -> None:
        super().__init__(inner.keys)
        self.segments = inner.segments
        self._inner, self._delay, self._horizon = inner, delay, horizon

    def rates(self, arrival: int) -> NDArray[np.float64]:
        return self._inner.rates(arrival)

    def outcomes(self, arrival: int, rates: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._inner.outcomes(arrival, rates)

    def segment(self, arrival: int) -> NDArray[np.int64]:
        return self._inner.segment(arrival)

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._inner.by_segment()

    def label_lag(self, arrival: int) -> NDArray[np.int64]:
        chance, missing = uniform(self.keys, arrival, "delay"), uniform(self.keys, arrival, "missing")
        return self._delay.lags(chance, missing, self._horizon)
