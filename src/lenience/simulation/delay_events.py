"""One population with Poisson arrivals and labels that come late by any law: a compiled event simulation.

The model of :mod:`lenience.solvers.delayed.recursion` needs exponential delays. Here delays may also be fixed or
lognormal, and some labels may never come. A label older than ``expire_after`` expires: it no longer counts as pending,
but if it comes later the policy still learns from it. Policies are exposure limits: accept while fewer than m*(n, s)
are pending.

Guarantees. Every arrival has its own random numbers, a hash of (seed, replication, arrival). The same seed gives the
same result, and all policies and delay laws meet the same individuals at the same times (common random numbers), so
differences are much more precise than values. Success probabilities are stratified: replication i draws from the i-th
of equally likely slices of the prior. An acceptance is credited with its expected reward p − c, discounted to the time
of the decision, instead of its outcome: the mean is the same, with less noise. Standard errors come from pairs of
neighbouring slices, which overstates them a little. A replication ends when the discount factor has fallen to ``REST``;
this leaves out at most that share of g E|p − c|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.compiled import compiled
from lenience.core.counter_rng import GOLDEN, MASK, bits_of, unit_of
from lenience.core.errors import InputError, TooLargeError
from lenience.core.lattice import AT_COST
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import real, whole
from lenience.objectives.delayed import Delayed
from lenience.simulation.label_delay import LabelDelay, delay_of
from lenience.solvers.delayed.start import first_above

REST = 1e-4  # discount factor at which a replication ends
MOST_EVENTS = 2e10  # about a quarter of an hour


class LimitPolicy(Protocol):
    """A policy that is an exposure limit."""

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """Return how many labels may be pending at beliefs (n, s)."""

    @property
    def steady_limit(self) -> int | None:
        """The limit wherever p̂ ≥ c; None if there is no limit."""

    def stop_floor(self, n: float) -> float:
        """Return a rate at or below which nobody is accepted at belief size n, or −1 if none is known."""


class SimulatedValue(msgspec.Struct, frozen=True):
    """What a policy earned in a simulation with late labels.

    Parameters
    ----------
    policy : str
        The name of the policy.
    mean : float
        The mean discounted reward over the replications.
    error : float
        The standard error of the mean.
    difference : float
        The mean difference from the first policy, replication by replication.
    difference_error : float
        The standard error of the difference.
    accepted : float
        The mean number accepted.
    replications : int
        The number of replications.
    """

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
    law: LabelDelay,
    replications: int = 10_000,
    seed: int = 0,
    rate: float | None = None,
    expire_after: float | None = None,
) -> list[SimulatedValue]:
    """Simulate what each policy earns when labels come late by any law.

    All policies meet the same individuals. Values are as of the start, before the first arrival.

    Parameters
    ----------
    policies : mapping of str to LimitPolicy
        The policies by name. Differences are computed from the first one.
    objective : Delayed
        The cost, the arrivals per year and the discount rate.
    prior : Belief
        The belief at the start.
    law : LabelDelay
        The distribution of the delays, in years.
    replications : int, optional
        The number of replications, at least 2.
    seed : int, optional
        Seed of the random numbers.
    rate : float, optional
        The true success probability in all replications; by default each draws its own from the prior.
    expire_after : float, optional
        The age in years at which a pending label expires; by default never.

    Returns
    -------
    list of SimulatedValue
        One result per policy.

    Raises
    ------
    InputError
        If an argument is invalid.
    TooLargeError
        If there are too many arrivals to simulate.

    Examples
    --------
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> from lenience.policies.beliefs.pending import Blind
    >>> problem = Delayed(cost=0.5, arrivals=20, discount_rate=0.5, label_delay=0.5)
    >>> greedy = Blind(Greedy(0.5), cost=0.5)
    >>> run = simulate_delays({"greedy": greedy}, problem, Belief(3, 2), LabelDelay("fixed", 0.5), 1000)
    >>> run[0].policy, 4 < run[0].mean < 8
    ('greedy', True)
    """
    check_prior(prior)
    if not policies:
        raise InputError("policies", dict(policies), "at least one policy by name")
    count = whole("replications", replications, least=2)
    first_seed = whole("seed", seed)
    age = math.inf if expire_after is None else real("expire_after", expire_after, above=0)
    years = -math.log(REST) / objective.discount_rate
    arrivals = arrivals_that_count(objective)
    if float(arrivals) * count * len(policies) > MOST_EVENTS:
        raise TooLargeError(
            f"Simulating {replications!r} replications",
            size=float(arrivals) * count * len(policies),
            allowed_size=MOST_EVENTS,
            unit="arrivals",
            field="replications",
            value=replications,
            hint="Use fewer replications or fewer policies.",
        )
    rates = _rates(prior, count, first_seed) if rate is None else np.full(count, real("rate", rate, least=0, most=1))

    keys = _keys(first_seed, count)

    earned: dict[str, NDArray[np.float64]] = {}
    accepted_by: dict[str, float] = {}
    for name, policy in policies.items():
        first, offsets, limits = limit_table(policy, prior, objective.cost, arrivals)
        steady = UNLIMITED if policy.steady_limit is None else policy.steady_limit
        reward, accepted = _run(
            rates,
            keys,
            objective.cost,
            objective.arrivals,
            objective.discount_rate,
            years,
            arrivals,
            *law.for_kernels,
            age,
            first,
            offsets,
            limits,
            steady,
        )
        earned[name] = reward
        accepted_by[name] = float(accepted.mean())
    base = next(iter(earned.values()))
    return [
        SimulatedValue(
            policy=name,
            mean=float(reward.mean()),
            error=_error(reward),
            difference=float((reward - base).mean()),
            difference_error=_error(reward - base),
            accepted=accepted_by[name],
            replications=count,
        )
        for name, reward in earned.items()
    ]


def arrivals_that_count(objective: Delayed) -> int:
    """Return how many arrivals to simulate: with near certainty, all within the years that count."""
    expected = -math.log(REST) / objective.discount_rate * objective.arrivals
    return math.ceil(expected + 8 * math.sqrt(expected)) + 16


def _rates(prior: Belief, count: int, seed: int) -> NDArray[np.float64]:
    """Draw success probabilities, one from each of ``count`` equally likely slices of the prior."""
    if prior.certain:
        return np.full(count, prior.mean)
    from scipy.special import betaincinv

    within = np.random.default_rng(seed).random(count)
    rates: NDArray[np.float64] = betaincinv(prior.alpha, prior.beta, (np.arange(count) + within) / count)
    return rates


def _keys(seed: int, count: int) -> NDArray[np.uint64]:
    """Return the keys of the replications for :mod:`lenience.core.counter_rng`.

    They differ from those of :func:`~lenience.core.counter_rng.replication_keys`, so that published results of a seed
    can be reproduced. The golden ratio is subtracted because draws were once numbered from 1.
    """
    stream = seed * 0xD1342543DE82EF95 & MASK
    runs = np.arange(1, count + 1, dtype=np.uint64)
    return runs * np.uint64(0xA0761D6478BD642F) + np.uint64((stream - GOLDEN) & MASK)


@compiled
def _uniform(key: np.uint64, index: np.uint64) -> float:
    """Return the uniform random number of a key and an index."""
    return unit_of(bits_of(key, index))


def _error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of a stratified sample, from pairs of neighbouring slices."""
    even = values.size // 2 * 2
    differences = values[0:even:2] - values[1:even:2]
    return math.sqrt(float(np.mean(differences**2)) / 2 / values.size)


def limit_table(
    policy: LimitPolicy, prior: Belief, cost: float, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Tabulate the limits of a policy below the cost, row by row.

    Returns the first state of each row that may be accepted, where each row begins in the limits, and the limits.
    """
    first = np.zeros(rows + 1, dtype=np.int64)
    offsets = np.zeros(rows + 2, dtype=np.int64)
    parts = []
    for k in range(rows + 1):
        n = prior.n + k
        middle = first_above(cost * (1 - AT_COST), prior.n, prior.s, k)
        start = max(math.floor(policy.stop_floor(n) * n - prior.s + 1e-9) + 1, 0)
        start = min(start, middle)
        first[k] = start
        offsets[k + 1] = offsets[k] + middle - start
        if middle > start:
            parts.append(policy.exposure(n, prior.s + np.arange(start, middle)))
    return first, offsets, np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


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
    keys: NDArray[np.uint64],
    cost: float,
    arrivals: float,
    discount: float,
    years: float,
    most: int,
    kind: int,
    mean: float,
    sigma: float,
    missing: float,
    measured: NDArray[np.float64],
    age: float,
    first: NDArray[np.int64],
    offsets: NDArray[np.int64],
    limits: NDArray[np.int64],
    steady: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Simulate all replications; return the discounted reward and the number accepted of each."""
    reward = np.zeros(rates.size)
    accepted = np.zeros(rates.size, dtype=np.int64)
    # Events: 0 and 1 are a failure and a success of a pending label, 2 and 3 the same of an expired label, 4 an expiry.
    times = np.empty(2 * most + 4)
    kinds = np.empty(2 * most + 4, dtype=np.int64)
    for run in range(rates.size):
        key = keys[run]
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
            time -= math.log(_uniform(key, index)) / arrivals
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
                    break  # no label will come, so nothing can change
                continue
            accepted[run] += 1
            reward[run] += (p - cost) * math.exp(-discount * time)
            pending += 1
            good = 1 if _uniform(key, index + np.uint64(1)) < p else 0
            delay = delay_of(
                kind,
                mean,
                sigma,
                missing,
                measured,
                _uniform(key, index + np.uint64(2)),
                _uniform(key, index + np.uint64(3)),
                _uniform(key, index + np.uint64(4)),
            )
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
