"""Worlds: where individuals come from. The outcome of an individual is fixed before any policy sees it.

A world opens a stream for a number of replications. A stream says, arrival by arrival, with what probability the next
individual succeeds, whether it would, to which segment it belongs and how many arrivals later its label comes. The
outcome reaches a policy's belief only if the policy accepts. A world in which that probability never changes is
*homogeneous*; the runner then takes its compiled road.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.belief import Belief
from lenience.errors import InputError, real, refusal, whole
from lenience.objective.base import check_prior
from lenience.simulate.chance import arrival_bits, limits, uniform
from lenience.simulate.lag import LabelDelay

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
    """A world of individuals."""

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """The success probability by replication, if the world is homogeneous and its labels are prompt."""


class _Fixed(Stream):
    def __init__(self, keys: NDArray[np.uint64], rates: NDArray[np.float64]) -> None:
        super().__init__(keys)
        self._rates = rates

    def rates(self, arrival: int) -> NDArray[np.float64]:
        return self._rates

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._rates.reshape(-1, 1), np.ones(1)


class Bernoulli(msgspec.Struct, frozen=True, tag="bernoulli", tag_field="type"):
    """Everyone succeeds with the same, given probability.

    >>> Bernoulli(p=0.9).fixed_rates(np.arange(2, dtype=np.uint64))
    array([0.9, 0.9])
    """

    p: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "p", real("p", self.p, least=0, most=1))

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""
        return _Fixed(keys, self.fixed_rates(keys))

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """p in every replication."""
        return np.full(keys.size, self.p)


class FromPrior(msgspec.Struct, frozen=True, tag="prior", tag_field="type"):
    """Each replication draws its success probability from a belief: the setting in which the optimum is optimal.

    >>> rates = FromPrior(Belief(2, 1)).fixed_rates(np.arange(1000, dtype=np.uint64))
    >>> bool(abs(rates.mean() - 0.5) < 0.05)
    True
    """

    prior: Belief

    def __post_init__(self) -> None:
        check_prior(self.prior)

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""
        return _Fixed(keys, self.fixed_rates(keys))

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """One draw from the prior for each replication."""
        return draw(self.prior, uniform(keys, 0, "rate"))


class Mixture(msgspec.Struct, frozen=True, tag="segments", tag_field="type"):
    """Several populations at once: each arrival belongs to segment x with probability ``shares[x]``.

    The rates of the segments are given, or drawn from ``prior`` independently.

    >>> Mixture(shares=[3, 1], rates=[0.9, 0.6]).shares
    (0.75, 0.25)
    """

    shares: Sequence[float]
    rates: Sequence[float] | None = None
    prior: Belief | None = None

    def __post_init__(self) -> None:
        shares = [real("shares", share, above=0) for share in self.shares]
        if not shares:
            raise refusal("shares", self.shares, "at least one number above 0")
        msgspec.structs.force_setattr(self, "shares", tuple(share / sum(shares) for share in shares))
        if (self.rates is None) == (self.prior is None):
            raise InputError("segments must be given either rates or a prior, and not both")
        if self.rates is not None:
            rates = tuple(real("rates", rate, least=0, most=1) for rate in self.rates)
            if len(rates) != len(shares):
                raise InputError(f"rates must be as many as shares: {len(shares)}, not {len(rates)}")
            msgspec.structs.force_setattr(self, "rates", rates)

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""
        count = len(self.shares)
        if self.rates is not None:
            rates = np.tile(np.asarray(self.rates, dtype=np.float64), (keys.size, 1))
        else:
            prior = check_prior(self.prior)
            rates = np.stack([draw(prior, uniform(keys, x, "rate")) for x in range(count)], axis=1)
        return _Mixed(keys, np.cumsum(self.shares), rates)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Nothing: the arrivals are not all alike."""


class _Mixed(Stream):
    def __init__(self, keys: NDArray[np.uint64], cumulated: NDArray[np.float64], table: NDArray[np.float64]) -> None:
        super().__init__(keys)
        self.segments = table.shape[1]
        self._cumulated, self._table, self._at = cumulated, table, np.arange(keys.size)

    def rates(self, arrival: int) -> NDArray[np.float64]:
        return self._table[self._at, self.segment(arrival)]

    def segment(self, arrival: int) -> NDArray[np.int64]:
        found = np.searchsorted(self._cumulated, uniform(self.keys, arrival, "segment"), side="right")
        return np.minimum(found, self.segments - 1).astype(np.int64)

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._table, np.diff(self._cumulated, prepend=0.0)


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
        rates = tuple(real("rates", rate, least=0, most=1) for rate in self.rates)
        at = tuple(whole("at", arrival, least=1) for arrival in self.at)
        if len(rates) != len(at) + 1:
            raise InputError(f"rates must be one more than the changes: {len(at) + 1}, not {len(rates)}")
        if any(later <= earlier for earlier, later in pairwise(at)):
            raise refusal("at", list(at), "arrivals in increasing order")
        msgspec.structs.force_setattr(self, "rates", rates)
        msgspec.structs.force_setattr(self, "at", at)

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""
        return _Jumping(keys, self)

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


class LateLabels(msgspec.Struct, frozen=True, tag="late_labels", tag_field="type"):
    """Another world whose labels come late: by ``delay``, counted in arrivals.

    >>> LateLabels(Bernoulli(0.9), LabelDelay("exponential", mean=20)).delay.mean
    20.0
    """

    world: Bernoulli | FromPrior | Mixture | RandomWalk | ChangePoints | Redrawn
    delay: LabelDelay

    def __post_init__(self) -> None:
        if not isinstance(self.delay, LabelDelay):
            raise refusal("delay", self.delay, "a LabelDelay")

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """The other world's stream, with late labels."""
        return _Late(self.world.open(keys, horizon), self.delay, horizon)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64] | None:
        """Those of the other world, if no label is late."""
        return self.world.fixed_rates(keys) if self.delay.kind == "none" else None


class _Late(Stream):
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


def draw(belief: Belief, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Success probabilities from a belief, by inversion."""
    from scipy.special import betaincinv

    if belief.certain:
        return np.full(chance.size, belief.mean)
    result: NDArray[np.float64] = betaincinv(belief.alpha, belief.beta, np.maximum(chance, 2.0**-60))
    return result


WORLDS: Mapping[str, str] = {
    "bernoulli": "Bernoulli",
    "change_points": "ChangePoints",
    "late_labels": "LateLabels",
    "prior": "FromPrior",
    "random_walk": "RandomWalk",
    "redrawn": "Redrawn",
    "segments": "Mixture",
}


def world_names() -> list[str]:
    """The names that :func:`world_named` knows.

    >>> world_names()[:3]
    ['bernoulli', 'change-points', 'late-labels']
    """
    return sorted([*(tag.replace("_", "-") for tag in WORLDS), "replay"])


def world_named(name: str, **parameters: Any) -> World:
    """The world of a name with its parameters; a prior is a Belief or a mapping of n and s.

    ``late-labels`` takes the parameters of a LabelDelay as ``delay`` and another world, with its ``name``, as
    ``world``; ``replay`` a ``file`` of past rows and the columns of their outcome and segment.

    >>> world_named("bernoulli", p=0.7)
    Bernoulli(p=0.7)
    >>> world_named("utopia")
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: world must be one of bernoulli, ..., segments, not 'utopia'
    """
    from lenience.policy.registry import named_belief

    tag = name.replace("-", "_") if isinstance(name, str) else name
    if tag != "replay" and tag not in WORLDS:
        raise InputError(f"world must be one of {', '.join(world_names())}, not {name!r}")
    given = dict(parameters)
    if isinstance(given.get("prior"), Mapping):
        given["prior"] = named_belief("prior", given["prior"])
    if isinstance(given.get("delay"), Mapping):
        given["delay"] = _made("delay", LabelDelay, given["delay"])
    if isinstance(given.get("world"), Mapping):
        inner = dict(given["world"])
        given["world"] = world_named(inner.pop("name", None), **inner)
    if tag == "replay":
        from lenience.simulate.replay import Replay

        return _made("replay", Replay.from_file, given)  # type: ignore[no-any-return]
    return _made(name, globals()[WORLDS[tag]], given)  # type: ignore[no-any-return]


def _made(name: str, make: Any, given: Mapping[str, Any]) -> Any:
    import inspect

    known = inspect.signature(make).parameters
    for each in given:
        if each not in known:
            raise InputError(f"the parameters of {name} must be among {', '.join(known)}, not {each!r}")
    missing = [each for each, about in known.items() if about.default is about.empty and each not in given]
    if missing:
        raise InputError(f"{name} must be given its {' and '.join(missing)}")
    return make(**given)
