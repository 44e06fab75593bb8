"""Worlds that do not change: one success probability, one drawn from a belief, or one for each segment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.counter_rng import uniform
from lenience.core.errors import InputError
from lenience.core.mixture_belief import FLAT
from lenience.core.validation import listed, real
from lenience.simulation.stream import FixedStream, Stream, draw

ROUNDED = 1e-6  # tolerance for the sum of shares


class _ConstantRate:
    """A world whose success probability is the same for all arrivals of a replication."""

    __slots__ = ()

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
        >>> from lenience.simulation import Bernoulli
        >>> Bernoulli(0.7).open(replication_keys(seed=1, first=0, count=3), horizon=10).rates(0)
        array([0.7, 0.7, 0.7])
        """
        return FixedStream(keys, self.fixed_rates(keys))

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the success probability of each replication."""
        raise NotImplementedError


class Bernoulli(_ConstantRate, msgspec.Struct, frozen=True, tag="bernoulli", tag_field="type"):
    """A world in which everyone succeeds with the same fixed probability.

    Parameters
    ----------
    p : float
        The success probability, from 0 to 1.

    Examples
    --------
    >>> Bernoulli(p=0.9).fixed_rates(np.arange(2, dtype=np.uint64))
    array([0.9, 0.9])
    """

    p: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "p", real("p", self.p, least=0, most=1))

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return p for every replication.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.

        Returns
        -------
        ndarray
            The success probabilities, one per replication.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> Bernoulli(0.7).fixed_rates(replication_keys(seed=1, first=0, count=3))
        array([0.7, 0.7, 0.7])
        """
        return np.full(keys.size, self.p)


class FromPrior(_ConstantRate, msgspec.Struct, frozen=True, omit_defaults=True, tag="prior", tag_field="type"):
    """A world in which each replication draws its success probability from a belief.

    This is the setting in which the optimum is optimal.

    Parameters
    ----------
    prior : Belief
        The belief to draw from. Policies start from it by default.
    doubt : float, optional
        The probability that the belief is wrong. If it is, the success probability is drawn from 0 to 1, each as
        likely as the others. 0 by default.

    Examples
    --------
    >>> rates = FromPrior(Belief(2, 1)).fixed_rates(np.arange(1000, dtype=np.uint64))
    >>> bool(abs(rates.mean() - 0.5) < 0.05)
    True
    """

    prior: Belief
    doubt: float = 0.0

    def __post_init__(self) -> None:
        check_prior(self.prior)
        msgspec.structs.force_setattr(self, "doubt", real("doubt", self.doubt, least=0, below=1))

    def fixed_rates(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Draw a success probability from the prior for each replication.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.

        Returns
        -------
        ndarray
            The success probabilities, one per replication.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> rates = FromPrior(Belief(2, 1)).fixed_rates(replication_keys(seed=1, first=0, count=1000))
        >>> round(float(rates.mean()), 1)
        0.5
        """
        rates = draw(self.prior, uniform(keys, 0, "rate"))
        if self.doubt == 0.0:
            return rates
        wrong = uniform(keys, 0, "doubt") < self.doubt
        return np.where(wrong, draw(FLAT, uniform(keys, 0, "flat")), rates)


class Mixture(msgspec.Struct, frozen=True, tag="segments", tag_field="type"):
    """A world of several segments, each with its own success probability.

    Give either rates or prior. If the shares are given by name, give the rates or priors by the same names.
    Segments are then numbered in the order of the shares.

    Parameters
    ----------
    shares : sequence of float, or mapping of str to float
        The share of arrivals in each segment. Shares add up to 1, or are counts such as 3 and 1.
    rates : sequence of float, or mapping of str to float, optional
        The success probability of each segment.
    prior : Belief, sequence of Belief, or mapping of str to Belief, optional
        The belief from which each replication draws the success probabilities: one for all segments, or one for each.

    Examples
    --------
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
                "must have either rates or a prior, but not both",
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
                    f"must have one rate for each of the {len(shares)} shares, not {len(rates)}",
                    "rates",
                    value=len(rates),
                    code="length_mismatch",
                )
            msgspec.structs.force_setattr(self, "rates", rates)
        elif not isinstance(self.prior, Belief):
            priors = tuple(
                check_prior(prior) for prior in listed("prior", self.prior, "a Belief, or one for each segment")
            )
            if len(priors) != len(shares):
                raise InputError.because(
                    f"must be one Belief, or one for each of the {len(shares)} shares, not {len(priors)}",
                    "prior",
                    value=len(priors),
                    code="length_mismatch",
                )
            msgspec.structs.force_setattr(self, "prior", priors)

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
        >>> world = Mixture(shares={"a": 0.5, "b": 0.5}, rates={"a": 0.9, "b": 0.6})
        >>> stream = world.open(replication_keys(seed=2, first=0, count=4), horizon=10)
        >>> stream.segment(0), stream.rates(0)
        (array([1, 1, 0, 0]), array([0.6, 0.6, 0.9, 0.9]))
        """
        count = len(self.shares)
        if self.rates is not None:
            rates = np.tile(np.asarray(self.rates, dtype=np.float64), (keys.size, 1))
        else:
            priors = self.prior if isinstance(self.prior, tuple) else (self.prior,) * count
            rates = np.stack([draw(prior, uniform(keys, x, "rate")) for x, prior in enumerate(priors)], axis=1)
        return _Mixed(keys, np.cumsum([float(q) for q in self.shares]), rates)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Return nothing, because arrivals of different segments differ.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.
        """


def _in_order(field: str, given: object, names: Sequence[str]) -> object:
    """Return values given by name in the order of the names, and anything else unchanged."""
    if not isinstance(given, Mapping):
        return given
    if set(given) != set(names):
        raise InputError(field, sorted(map(str, given)), f"by the names of the shares: {', '.join(map(str, names))}")
    return tuple(given[name] for name in names)


class _Mixed(Stream):
    """The stream of several segments."""

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
