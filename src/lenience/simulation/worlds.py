"""Worlds that stay as they are: one success probability, one drawn from a belief, or one for each segment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.counter_rng import uniform
from lenience.core.errors import InputError
from lenience.core.validation import listed, real
from lenience.simulation.stream import FixedStream, Stream, draw

ROUNDED = 1e-6  # by which shares may miss 1


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

    The rates of the segments are given, or drawn independently from ``prior``: one belief for all or one a segment.
    Shares add up to 1, or are counts such as 3 and 1. Shares by name take rates or priors by the same names; the
    segments are then numbered in the order of the shares.

    >>> Mixture(shares=[3, 1], rates=[0.9, 0.6]).shares
    (0.75, 0.25)
    >>> Mixture({"new": 1, "known": 3}, prior={"known": Belief(20, 18), "new": Belief(2, 1)}).prior
    (Belief(n=2.0, s=1.0), Belief(n=20.0, s=18.0))
    """

    shares: Sequence[float] | Mapping[str, float]
    rates: Sequence[float] | Mapping[str, float] | None = None
    prior: Belief | Sequence[Belief] | Mapping[str, Belief] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.shares, Mapping):
            names = list(self.shares)
            for field in ("rates", "prior"):
                msgspec.structs.force_setattr(self, field, _in_order(field, getattr(self, field), names))
            msgspec.structs.force_setattr(self, "shares", tuple(self.shares.values()))
        shares = [real("shares", share, above=0) for share in listed("shares", self.shares, "a list of shares")]
        if not shares:
            raise InputError("shares", self.shares, "at least one number above 0")
        total = math.fsum(shares)
        if min(shares) < 1 and abs(total - 1) > ROUNDED:
            raise InputError.because(
                f"must add up to 1, or be counts of at least 1; they add up to {total:.6g}", "shares", value=total
            )
        msgspec.structs.force_setattr(self, "shares", tuple(share / total for share in shares))
        if (self.rates is None) == (self.prior is None):
            raise InputError.because(
                "must have either rates or a prior, and not both",
                ("rates", "prior"),
                label="segments",
                code="conflicting_fields",
            )
        if self.rates is not None:
            rates = tuple(
                real("rates", rate, least=0, most=1) for rate in listed("rates", self.rates, "a list of rates")
            )
            if len(rates) != len(shares):
                raise InputError.because(
                    f"must be as many as shares: {len(shares)}, not {len(rates)}",
                    "rates",
                    value=len(rates),
                    code="length_mismatch",
                )
            msgspec.structs.force_setattr(self, "rates", rates)
        elif not isinstance(self.prior, Belief):
            priors = tuple(check_prior(prior) for prior in listed("prior", self.prior, "a Belief, or one a segment"))
            if len(priors) != len(shares):
                raise InputError.because(
                    f"must be one Belief, or as many as shares: {len(shares)}, not {len(priors)}",
                    "prior",
                    value=len(priors),
                    code="length_mismatch",
                )
            msgspec.structs.force_setattr(self, "prior", priors)

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """A stream of individuals for the replications of these keys."""
        count = len(self.shares)
        if self.rates is not None:
            rates = np.tile(np.asarray(self.rates, dtype=np.float64), (keys.size, 1))
        else:
            priors = self.prior if isinstance(self.prior, tuple) else (self.prior,) * count
            rates = np.stack([draw(prior, uniform(keys, x, "rate")) for x, prior in enumerate(priors)], axis=1)
        return _Mixed(keys, np.cumsum([float(q) for q in self.shares]), rates)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Nothing: the arrivals are not all alike."""


def _in_order(field: str, given: object, names: Sequence[str]) -> object:
    """What is given by name, in the order of the names; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    if set(given) != set(names):
        raise InputError(field, sorted(map(str, given)), f"by the names of the shares: {', '.join(map(str, names))}")
    return tuple(given[name] for name in names)


class _Mixed(Stream):
    def __init__(self, keys: NDArray[np.uint64], cumulated: NDArray[np.float64], table: NDArray[np.float64]) -> None:
        super().__init__(keys)
        self.segments = table.shape[1]
        self._cumulated, self._table, self._at = cumulated, table, np.arange(keys.size)

    def rates(self, arrival: int) -> NDArray[np.float64]:
        return self._table[self._at, self.segment(arrival)]

    def segment(self, arrival: int) -> NDArray[np.int64]:
        result = np.searchsorted(self._cumulated, uniform(self.keys, arrival, "segment"), side="right")
        return np.minimum(result, self.segments - 1).astype(np.int64)

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._table, np.diff(self._cumulated, prepend=0.0)
