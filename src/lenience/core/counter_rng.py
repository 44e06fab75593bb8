"""Random numbers from counters: those of arrival i in replication r are a function of (seed, r, i) only.

    bits(r, i) = mix(key_r + (i + 1) · φ),  key_r = mix(seed + (r + 1) · ψ),

where mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014), which passes BigCrush on a counter. There is no
generator with a state, so a result depends neither on the number of workers nor on the order of the work, and all
policies meet the same individuals. The high half of bits(r, i) decides the outcome of the arrival if it is accepted.
The low half decides whether a policy that randomises accepts it. So probabilities are rounded to multiples of 2⁻³².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
SILVER = 0xD1B54A32D192ED03
ONE = 1 << 32  # the limit of a probability of 1: every 32-bit number is below it

_GOLDEN = np.uint64(GOLDEN)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64 bits. Different inputs have different outputs."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


def replication_keys(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Return the keys of the replications ``first``, ``first`` + 1, …

    >>> bool(np.all(replication_keys(7, 0, 10)[4:] == replication_keys(7, 4, 6)))
    True
    """
    base = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    ids = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return mix(ids * np.uint64(SILVER) + np.uint64(base))


def arrival_bits(keys: NDArray[np.uint64], arrival: int | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 random bits for each replication. The arrival is the same for all, or one for each."""
    if isinstance(arrival, int):
        return mix(keys + np.uint64((arrival + 1) * GOLDEN & MASK))
    return mix(keys + (arrival + np.uint64(1)) * _GOLDEN)


def uniform(keys: NDArray[np.uint64], arrival: int, purpose: str) -> NDArray[np.float64]:
    """Return random numbers from 0 to below 1, independent for each purpose (its first eight letters)."""
    salt = np.uint64(int.from_bytes(purpose.encode()[:8].ljust(8, b"."), "little"))
    return (arrival_bits(mix(keys ^ salt), arrival) >> _S11).astype(np.float64) * 2.0**-53


def limits(probability: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the limits below which 32 random bits must be. A probability above 0 is never rounded to 0."""
    return np.ceil(np.asarray(probability, dtype=np.float64) * ONE).astype(np.uint64)


mix_in_kernels = compiled(mix)


@compiled
def bits_of(key: np.uint64, arrival: np.uint64) -> np.uint64:
    """Return the bits of :func:`arrival_bits` for one replication, for kernels."""
    return mix_in_kernels(key + (arrival + np.uint64(1)) * _GOLDEN)  # type: ignore[arg-type, return-value]


@compiled
def unit_of(bits: np.uint64) -> float:
    """Return a number strictly between 0 and 1 from the high 53 of 64 random bits, for kernels."""
    return (float(bits >> _S11) + 0.5) * 2.0**-53
