"""Worlds in which p does not stay what it was: it wanders, jumps at given times, or is drawn anew at random ones."""

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
    """p drifts: each arrival it moves by ``step`` up or down, and is turned back at ``lowest`` and ``highest``.

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
        """A stream of individuals for the replications of these keys."""
        return _Walking(keys, self)

    @property
    def drifts(self) -> bool:
        """Whether p ever moves."""
        return self.step > 0

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Nothing: p drifts."""


class _Walking(Stream):
    def __init__(self, keys: NDArray[np.uint64], world: RandomWalk) -> None:
        super().__init__(keys)
        self._world, self._next = world, 0
        self._now = np.full(keys.size, world.start)

    def rates(self, arrival: int) -> NDArray[np.float64]:
        while self._next <= arrival:
            if self._next > 0:
                up = uniform(self.keys, self._next, "walk") < 0.5
                moved = self._now + np.where(up, self._world.step, -self._world.step)
                self._now = np.clip(moved, self._world.lowest, self._world.highest)
            self._next += 1
        return self._now

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._now.reshape(-1, 1), np.ones(1)


class ChangePoints(msgspec.Struct, frozen=True, tag="change_points", tag_field="type"):
    """p jumps: it is ``rates[0]`` until arrival ``at[0]``, then ``rates[1]``, and so on.

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
        """A stream of individuals for the replications of these keys."""
        return _Jumping(keys, self)

    @property
    def drifts(self) -> bool:
        """Whether p ever jumps."""
        return len(self.at) > 0

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Nothing: p jumps."""


class _Jumping(Stream):
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
    """p changes at random times: before each arrival, with probability ``hazard``, it is drawn anew from a belief.

    >>> Redrawn(prior=Belief(2, 1), hazard=0.001).hazard
    0.001
    """

    prior: Belief
    hazard: float

    def __post_init__(self) -> None:
        check_prior(self.prior)
        msgspec.structs.force_setattr(self, "hazard", real("hazard", self.hazard, least=0, most=1))

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""
        return _Redrawing(keys, self)

    @property
    def drifts(self) -> bool:
        """Whether p is ever drawn anew."""
        return self.hazard > 0

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """The first draw, if there is never another."""
        return draw(self.prior, uniform(keys, 0, "rate")) if self.hazard == 0 else None


class _Redrawing(Stream):
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
