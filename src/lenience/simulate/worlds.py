"""Worlds that stay as they are: one success probability, one drawn from a belief, or one for each segment."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.belief import Belief
from lenience.errors import InputError, listed, real, refusal
from lenience.objective.base import check_prior
from lenience.simulate.chance import uniform
from lenience.simulate.stream import FixedStream, Stream, draw


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
        return FixedStream(keys, self.fixed_rates(keys))

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
        return FixedStream(keys, self.fixed_rates(keys))

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
        shares = [real("shares", share, above=0) for share in listed("shares", self.shares, "a list of shares")]
        if not shares:
            raise refusal("shares", self.shares, "at least one number above 0")
        msgspec.structs.force_setattr(self, "shares", tuple(share / sum(shares) for share in shares))
        if (self.rates is None) == (self.prior is None):
            raise InputError("segments must be given either rates or a prior, and not both")
        if self.rates is not None:
            rates = tuple(
                real("rates", rate, least=0, most=1) for rate in listed("rates", self.rates, "a list of rates")
            )
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
