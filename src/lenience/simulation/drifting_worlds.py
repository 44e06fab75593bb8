"""Worlds in which p changes: by a random walk, at given times, or at random times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.counter_rng import uniform
from lenience.core.errors import InputError
from lenience.core.validation import listed, real, whole
from lenience.simulation.stream import Stream, draw


class RandomWalk(msgspec.Struct, frozen=True, tag="random_walk", tag_field="type"):
    """A world in which p moves up or down by a fixed step at each arrival.

    Parameters
    ----------
    start : float
        The success probability of the first arrival.
    step : float
        By how much p moves, up or down with equal probability.
    lowest : float, optional
        The lower limit of p.
    highest : float, optional
        The upper limit of p.

    Examples
    --------
    >>> RandomWalk(start=0.7, step=0.001)
    RandomWalk(start=0.7, step=0.001, lowest=0.0, highest=1.0)
    """

    start: float
    step: float
    lowest: float = 0.0
    highest: float = 1.0

    def __post_init__(self) -> None:
        lowest = real("lowest", self.lowest, least=0, most=1)
        highest = real("highest", self.highest, least=lowest, most=1)
        msgspec.structs.force_setattr(self, "start", real("start", self.start, least=lowest, most=highest))
        msgspec.structs.force_setattr(self, "step", real("step", self.step, least=0, most=1))

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
        >>> stream = RandomWalk(start=0.7, step=0.1).open(replication_keys(seed=1, first=0, count=3), horizon=10)
        >>> stream.rates(0), stream.rates(1).round(1)
        (array([0.7, 0.7, 0.7]), array([0.6, 0.8, 0.8]))
        """
        return _Walking(keys, self)

    @property
    def drifts(self) -> bool:
        """Whether p ever moves."""
        return self.step > 0

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Return nothing, because p moves.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.
        """


class _Walking(Stream):
    """The stream of a random walk."""

    def __init__(self, keys: NDArray[np.uint64], world: RandomWalk) -> None:
        super().__init__(keys)
        self._world, self._next = world, 0
        self._now = np.full(keys.size, world.start)

    def rates(self, arrival: int) -> NDArray[np.float64]:
        while self._next <= arrival:
            if self._next > 0:
                up = uniform(self.keys, self._next, "walk") < 0.5
                next_rates = self._now + np.where(up, self._world.step, -self._world.step)
                self._now = np.clip(next_rates, self._world.lowest, self._world.highest)
            self._next += 1
        return self._now

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._now.reshape(-1, 1), np.ones(1)


class ChangePoints(msgspec.Struct, frozen=True, tag="change_points", tag_field="type"):
    """A world in which p jumps at given arrivals.

    Parameters
    ----------
    rates : sequence of float
        The success probabilities, one more than the changes.
    at : sequence of int
        The arrivals at which p changes, in increasing order: p is ``rates[0]`` before arrival ``at[0]``, then
        ``rates[1]``, and so on.

    Examples
    --------
    >>> ChangePoints(rates=[0.6, 0.95], at=[1000])
    ChangePoints(rates=(0.6, 0.95), at=(1000,))
    """

    rates: Sequence[float]
    at: Sequence[int]

    def __post_init__(self) -> None:
        rates = tuple(real("rates", rate, least=0, most=1) for rate in listed("rates", self.rates, "a list of rates"))
        at = tuple(whole("at", arrival, least=1) for arrival in listed("at", self.at, "a list of arrivals"))
        if len(rates) != len(at) + 1:
            raise InputError.because(
                f"must be one more than the changes: {len(at) + 1}, not {len(rates)}",
                "rates",
                value=len(rates),
                allowed=str(len(at) + 1),
                code="length_mismatch",
            )
        if any(later <= earlier for earlier, later in pairwise(at)):
            raise InputError("at", list(at), "arrivals in increasing order")
        msgspec.structs.force_setattr(self, "rates", rates)
        msgspec.structs.force_setattr(self, "at", at)

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
        >>> stream = ChangePoints(rates=[0.6, 0.9], at=[2]).open(replication_keys(seed=1, first=0, count=2), horizon=10)
        >>> [stream.rates(arrival).tolist() for arrival in range(3)]
        [[0.6, 0.6], [0.6, 0.6], [0.9, 0.9]]
        """
        return _Jumping(keys, self)

    @property
    def drifts(self) -> bool:
        """Whether p ever jumps."""
        return len(self.at) > 0

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Return nothing, because p jumps.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.
        """


class _Jumping(Stream):
    """The stream of a world with change points."""

    def __init__(self, keys: NDArray[np.uint64], world: ChangePoints) -> None:
        super().__init__(keys)
        self._world, self._now = world, np.full(keys.size, world.rates[0])

    def rates(self, arrival: int) -> NDArray[np.float64]:
        era = int(np.searchsorted(np.asarray(self._world.at), arrival, side="right"))
        self._now = np.full(self.keys.size, self._world.rates[era])
        return self._now

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._now.reshape(-1, 1), np.ones(1)


class Redrawn(msgspec.Struct, frozen=True, tag="redrawn", tag_field="type"):
    """A world in which p is drawn again from a belief at random times.

    Parameters
    ----------
    prior : Belief
        The belief from which p is drawn. Policies start from it by default.
    hazard : float
        The probability, before each arrival, that p is drawn again.

    Examples
    --------
    >>> Redrawn(prior=Belief(2, 1), hazard=0.001).hazard
    0.001
    """

    prior: Belief
    hazard: float

    def __post_init__(self) -> None:
        check_prior(self.prior)
        msgspec.structs.force_setattr(self, "hazard", real("hazard", self.hazard, least=0, most=1))

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
        >>> keys = replication_keys(seed=1, first=0, count=2)
        >>> stream = Redrawn(prior=Belief(2, 1), hazard=1.0).open(keys, horizon=10)
        >>> bool((stream.rates(0) != stream.rates(1)).all())  # p is drawn again before every arrival
        True
        """
        return _Redrawing(keys, self)

    @property
    def drifts(self) -> bool:
        """Whether p can change."""
        return self.hazard > 0

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """Return the first draw for each replication if p never changes.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.

        Returns
        -------
        ndarray or None
            The success probabilities, or None if p can change.
        """
        return draw(self.prior, uniform(keys, 0, "rate")) if self.hazard == 0 else None


class _Redrawing(Stream):
    """The stream of a world whose p is drawn again."""

    def __init__(self, keys: NDArray[np.uint64], world: Redrawn) -> None:
        super().__init__(keys)
        self._world, self._next = world, 1
        self._now = draw(world.prior, uniform(keys, 0, "rate"))

    def rates(self, arrival: int) -> NDArray[np.float64]:
        while self._next <= arrival:
            moves = np.flatnonzero(uniform(self.keys, self._next, "when") < self._world.hazard)
            if moves.size:
                self._now = self._now.copy()
                self._now[moves] = draw(self._world.prior, uniform(self.keys[moves], self._next, "rate"))
            self._next += 1
        return self._now

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._now.reshape(-1, 1), np.ones(1)
