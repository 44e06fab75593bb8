"""One population with Poisson arrivals and labels that come late by any law: a compiled event simulation.

The model of :mod:`lenience.solvers.delayed.recursion` needs exponential delays. Here they may be fixed, lognormal,
or never end
for some; a label older than ``expire_after`` expires: it no longer counts as pending, though it is still learnt
from should it come. Policies are exposure limits: accept while fewer than m*(n, s) are pending.

What is promised. Every arrival has its own random numbers, a hash of (seed, replication, arrival): the same seed gives
the same result, and all policies and delay laws meet the same individuals at the same times (common random numbers), so
that differences are known far better than values. The success probabilities are stratified: replication i draws from
the i-th of equally likely slices of the prior. An acceptance is credited with its expected reward p − c, discounted to
the time of the decision, rather than with its outcome: the same mean, less noise. Standard errors come from
neighbouring slices, pair by pair, which overstates them a little. A replication ends when money has lost all but
``REST`` of its worth; values are too small in size by at most that share of g E|p − c|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.compiled import compiled
from lenience.core.errors import InputError, refusal
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import real, whole
from lenience.objectives.delayed import Delayed
from lenience.solvers.delayed.start import first_above

REST = 1e-4
MOST_EVENTS = 2e10  # a quarter of an hour
_EXPONENTIAL, _FIXED, _LOGNORMAL = 0, 1, 2


class LimitPolicy(Protocol):
    """A policy that is an exposure limit."""

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """How many may be pending at beliefs (n, s)."""

    @property
    def steady_limit(self) -> int | None:
        """The limit wherever p̂ ≥ c (None: there is none)."""

    def stop_floor(self, n: float) -> float:
        """A rate at or below which nobody is accepted at belief size n (−1 if none is known)."""


class DelayLaw(msgspec.Struct, frozen=True):
    """How long a label takes: a law with a mean, and the share of labels that never come.

    ``spread`` is the standard deviation of the logarithm of a lognormal delay.

    >>> DelayLaw("lognormal", mean=1, spread=1, never=0.1)
    DelayLaw(kind='lognormal', mean=1.0, spread=1.0, never=0.1)
    """

    kind: Literal["exponential", "fixed", "lognormal"]
    mean: float
    spread: float = 1.0
    never: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("exponential", "fixed", "lognormal"):
            raise refusal("kind", self.kind, "exponential, fixed or lognormal")
        msgspec.structs.force_setattr(self, "mean", real("mean", self.mean, above=0))
        msgspec.structs.force_setattr(self, "spread", real("spread", self.spread, least=0))
        msgspec.structs.force_setattr(self, "never", real("never", self.never, least=0, below=1))

    def __str__(self) -> str:
        name = f"{self.kind}, σ = {self.spread:g}" if self.kind == "lognormal" else self.kind
        return f"{name}, {100 * self.never:g} % never" if self.never else name


class SimulatedValue(msgspec.Struct, frozen=True):
    """What a policy earned: the mean over replications and its standard error, and the same of the difference to the
    first policy, replication by replication."""

    policy: str
    mean: float
    error: float
    difference: float
    difference_error: float
    accepted: float
    replications: int


def simulate_delays(
    policies: Mapping[str, LimitPolicy],
    objective: Delayed,
    prior: Belief,
    law: DelayLaw,
    replications: int = 10_000,
    seed: int = 0,
    rate: float | None = None,
    expire_after: float | None = None,
) -> list[SimulatedValue]:
    """What each policy earns from the prior on, before the first arrival, when labels come by ``law``.

    The true success probability is drawn from the prior for each replication, or is ``rate`` in all of them.
    ``expire_after`` is the age at which a pending label expires; by default never.

    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> from lenience.policies.beliefs.pending import Blind
    >>> problem = Delayed(cost=0.5, arrivals=20, discount_rate=0.5, label_delay=0.5)
    >>> greedy = Blind(Greedy(0.5), cost=0.5)
    >>> run = simulate_delays({"greedy": greedy}, problem, Belief(3, 2), DelayLaw("fixed", 0.5), 1000)
    >>> run[0].policy, 4 < run[0].mean < 8
    ('greedy', True)
    """
    check_prior(prior)
    if not policies:
        raise refusal("policies", dict(policies), "at least one policy by name")
    count = whole("replications", replications, least=2)
    first_seed = whole("seed", seed)
    age = math.inf if expire_after is None else real("expire_after", expire_after, above=0)
    years = -math.log(REST) / objective.discount_rate
    arrivals = arrivals_that_count(objective)
    if float(arrivals) * count * len(policies) > MOST_EVENTS:
        raise InputError(
            f"replications must be a number for which the simulation ends within minutes, not {replications!r}: "
            f"each of {len(policies)} policies would see {float(arrivals) * count:.1e} arrivals"
        )
    rates = _rates(prior, count, first_seed) if rate is None else np.full(count, real("rate", rate, least=0, most=1))
    kind = {"exponential": _EXPONENTIAL, "fixed": _FIXED, "lognormal": _LOGNORMAL}[law.kind]

    earned: dict[str, NDArray[np.float64]] = {}
    taken: dict[str, float] = {}
    for name, policy in policies.items():
        first, offsets, limits = limit_table(policy, prior, objective.cost, arrivals)
        steady = UNLIMITED if policy.steady_limit is None else policy.steady_limit
        reward, accepted = _run(
            rates,
            first_seed,
            objective.cost,
            objective.arrivals,
            objective.discount_rate,
            years,
            arrivals,
            kind,
            law.mean,
            law.spread,
            law.never,
            age,
            first,
            offsets,
            limits,
            steady,
        )
        earned[name] = reward
        taken[name] = float(accepted.mean())
    base = next(iter(earned.values()))
    return [
        SimulatedValue(
            policy=name,
            mean=float(reward.mean()),
            error=_error(reward),
            difference=float((reward - base).mean()),
            difference_error=_error(reward - base),
            accepted=taken[name],
            replications=count,
        )
        for name, reward in earned.items()
    ]


def arrivals_that_count(objective: Delayed) -> int:
    """How many arrivals are simulated: all but surely those of the years that count."""
    several = -math.log(REST) / objective.discount_rate * objective.arrivals
    return math.ceil(several + 8 * math.sqrt(several)) + 16


def _rates(prior: Belief, count: int, seed: int) -> NDArray[np.float64]:
    """Success probabilities, one from each of ``count`` equally likely slices of the prior."""
    if prior.certain:
        return np.full(count, prior.mean)
    from scipy.special import betaincinv

    within = np.random.default_rng(seed).random(count)
    rates: NDArray[np.float64] = betaincinv(prior.alpha, prior.beta, (np.arange(count) + within) / count)
    return rates


def _error(values: NDArray[np.float64]) -> float:
    """The standard error of the mean of a stratified sample, from pairs of neighbouring slices."""
    even = values.size // 2 * 2
    apart = values[0:even:2] - values[1:even:2]
    return math.sqrt(float(np.mean(apart**2)) / 2 / values.size)


def limit_table(
    policy: LimitPolicy, prior: Belief, cost: float, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """A policy's limits below the cost, by row: the first state that may be accepted, where the row begins, limits."""
    first = np.zeros(rows + 1, dtype=np.int64)
    offsets = np.zeros(rows + 2, dtype=np.int64)
    parts = []
    for k in range(rows + 1):
        n = prior.n + k
        middle = first_above(cost * (1 - 1e-12), prior.n, prior.s, k)
        start = max(math.floor(policy.stop_floor(n) * n - prior.s + 1e-9) + 1, 0)
        start = min(start, middle)
        first[k] = start
        offsets[k + 1] = offsets[k] + middle - start
        if middle > start:
            parts.append(policy.exposure(n, prior.s + np.arange(start, middle)))
    return first, offsets, np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


@compiled
def _uniform(seed: np.uint64, index: np.uint64) -> float:
    """A number in (0, 1) that is a hash (splitmix64) of a seed and an index."""
    z = seed + index * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def _push(times: NDArray[np.float64], kinds: NDArray[np.int64], size: int, time: float, kind: int) -> None:
    """Add an event to a heap ordered by time that holds ``size`` events."""
    i = size
    while i > 0:
        parent = (i - 1) // 2
        if times[parent] <= time:
            break
        times[i] = times[parent]
        kinds[i] = kinds[parent]
        i = parent
    times[i] = time
    kinds[i] = kind


@compiled
def _pop(times: NDArray[np.float64], kinds: NDArray[np.int64], size: int) -> None:
    """Remove the earliest of ``size`` events."""
    time = times[size - 1]
    kind = kinds[size - 1]
    last = size - 1
    i = 0
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[i] = times[child]
        kinds[i] = kinds[child]
        i = child
    times[i] = time
    kinds[i] = kind


@compiled
def _run(
    rates: NDArray[np.float64],
    seed: int,
    cost: float,
    arrivals: float,
    discount: float,
    years: float,
    most: int,
    kind: int,
    mean: float,
    spread: float,
    never: float,
    age: float,
    first: NDArray[np.int64],
    offsets: NDArray[np.int64],
    limits: NDArray[np.int64],
    steady: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Simulate all replications; returns the discounted reward and the number accepted of each."""
    reward = np.zeros(rates.size)
    accepted = np.zeros(rates.size, dtype=np.int64)
    # An event: 0, 1: a label, no longer pending; 2, 3: a label that had expired; 4: expired.
    times = np.empty(2 * most + 4)
    kinds = np.empty(2 * most + 4, dtype=np.int64)
    for run in range(rates.size):
        stream = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(run + 1) * np.uint64(0xA0761D6478BD642F)
        p = rates[run]
        size = 0
        k = 0
        j = 0
        pending = 0
        time = 0.0
        arrival = 0
        while True:
            index = np.uint64(5 * arrival)
            arrival += 1
            time -= math.log(_uniform(stream, index)) / arrivals
            if time > years or arrival > most:
                break
            while size > 0 and times[0] <= time:
                event = kinds[0]
                _pop(times, kinds, size)
                size -= 1
                if event < 4:
                    k += 1
                    j += event & 1
                if event < 2 or event == 4:
                    pending -= 1
            row = min(k, first.size - 1)
            if j < first[row]:
                limit = 0
            elif j >= first[row] + offsets[row + 1] - offsets[row]:
                limit = steady
            else:
                limit = limits[offsets[row] + j - first[row]]
            if pending >= limit:
                if size == 0:
                    break  # no label is on its way, so nothing will ever change
                continue
            accepted[run] += 1
            reward[run] += (p - cost) * math.exp(-discount * time)
            pending += 1
            good = 1 if _uniform(stream, index + np.uint64(1)) < p else 0
            u = _uniform(stream, index + np.uint64(2))
            delay = mean
            if kind == 0:
                delay = -mean * math.log(u)
            elif kind == 2:
                normal = math.sqrt(-2.0 * math.log(u)) * math.cos(
                    2.0 * math.pi * _uniform(stream, index + np.uint64(3))
                )
                delay = mean * math.exp(spread * normal - 0.5 * spread * spread)
            if never > 0.0 and _uniform(stream, index + np.uint64(4)) < never:
                delay = math.inf
            if delay <= age:
                if delay < math.inf:
                    _push(times, kinds, size, time + delay, good)
                    size += 1
            else:
                _push(times, kinds, size, time + age, 4)
                size += 1
                if delay < math.inf:
                    _push(times, kinds, size, time + delay, 2 + good)
                    size += 1
    return reward, accepted
