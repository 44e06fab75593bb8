"""The general engine: any world and any policy, one arrival at a time for all replications of a block at once.

Each segment has its own belief and policy. If labels come late, beliefs change when the labels come, and policies that
use the number of pending labels receive it. Beliefs may fade (see :mod:`lenience.policies.beliefs.forgetting`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.counter_rng import ONE, arrival_bits, limits
from lenience.core.protocols import Accepts, acceptance_at
from lenience.simulation.block import ReplicationBlock, along_time
from lenience.simulation.stream import Stream


def run_direct(
    policies: Sequence[Accepts],
    stream: Stream,
    priors: Sequence[Belief],
    cost: float,
    discount: float,
    horizon: int,
    checkpoints: NDArray[np.int64],
) -> ReplicationBlock:
    """Run policies, one for each segment, on a stream of individuals, from one prior or one for each segment."""
    count, segments = stream.keys.size, stream.segments
    at = np.arange(count)
    n0, s0 = np.array([prior.n for prior in priors]), np.array([prior.s for prior in priors])
    n, s = np.tile(np.broadcast_to(n0, segments), (count, 1)), np.tile(np.broadcast_to(s0, segments), (count, 1))
    pending = np.zeros((count, segments), dtype=np.int64)
    memories = np.array([getattr(policy, "memory", 1.0) for policy in policies])
    late = stream.label_lag(0) is not None
    due = np.zeros((2, horizon + 2, count, segments) if late else (2, 1, 1, 1), dtype=np.int32)
    accepted, successes, expected, clairvoyant = (np.zeros(count) for _ in range(4))
    account, lowest, red, earned, best = (np.zeros(count) for _ in range(5))
    accepted_by = np.zeros((count, checkpoints.size), dtype=np.int64)
    regret_by = np.zeros((count, checkpoints.size))
    factor, check, asleep = 1.0, 0, False
    stopped = np.zeros((count, segments), dtype=np.bool_)
    for i in range(horizon):
        rates = stream.rates(i)
        gain = rates - cost
        clairvoyant += factor * np.maximum(gain, 0.0)
        best += np.maximum(gain, 0.0)
        if late:
            n += due[0, i]
            s += due[1, i]
            pending -= due[0, i]
        if i == horizon - 1:  # before the last arrival, because a policy may be undefined after the horizon
            for each in range(segments):
                policy = policies[min(each, len(policies) - 1)]
                stopped[:, each] = _stopped(policy, n[:, each], s[:, each], pending[:, each], late)
        if not asleep:
            if i > 0 and np.any(memories < 1.0):
                n = n0 + memories * (n - n0)
                s = s0 + memories * (s - s0)
            x = stream.segment(i)
            limit = _limits(policies, n[at, x], s[at, x], pending[at, x], x)
            takes = (arrival_bits(stream.keys, i) & np.uint64(ONE - 1)) < limit
            good = takes & stream.outcomes(i, rates)
            accepted += takes
            successes += good
            account += factor * (good - cost * takes)
            expected += factor * takes * gain
            earned += takes * gain
            np.minimum(lowest, account, out=lowest)
            if late:
                lag = stream.label_lag(i)
                assert lag is not None
                row = np.minimum(i + lag, horizon + 1)
                np.add.at(due[0], (row, at, x), takes)
                np.add.at(due[1], (row, at, x), good)
                pending[at, x] += takes
            else:
                n[at, x] += takes
                s[at, x] += good
            # With one segment, prompt labels and no forgetting, a belief at which acceptance is 0 is final.
            asleep = segments == 1 and not late and bool(memories[0] == 1.0) and not limit.any()
        red[account < 0.0] = i + 1
        factor *= discount
        if i + 1 == checkpoints[check]:
            accepted_by[:, check] = accepted
            regret_by[:, check] = best - earned
            check += 1
    final, shares = stream.by_segment()
    return ReplicationBlock(
        p=final @ shares,
        accepted=accepted,
        reward=successes - cost * accepted,
        discounted=account,
        expected=expected,
        clairvoyant=clairvoyant,
        learning_cost=-lowest,
        red_until=red,
        stopped=np.asarray(stopped.all(axis=1), dtype=np.float64),
        shut_out=(stopped & (final > cost)) @ shares,
        **dict(zip(ReplicationBlock._fields[10:], along_time(accepted_by, regret_by, checkpoints), strict=True)),
    )


def _limits(
    policies: Sequence[Accepts],
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    pending: NDArray[np.int64],
    x: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """Return the acceptance limits of the arrivals, each by the policy of its segment."""
    if len(policies) == 1:
        return limits(acceptance_at(policies[0], n, s, pending))
    result = np.zeros(n.size, dtype=np.uint64)
    for segment in np.unique(x):
        here = x == segment
        result[here] = limits(acceptance_at(policies[segment], n[here], s[here], pending[here]))
    return result


def _stopped(
    policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64], pending: NDArray[np.int64], late: bool
) -> NDArray[np.bool_]:
    """Return whether the policy can never accept again: it rejects, no label is pending, and it forgets nothing."""
    if getattr(policy, "memory", 1.0) < 1.0:
        return np.zeros(n.size, dtype=np.bool_)
    rejects: NDArray[np.bool_] = acceptance_at(policy, n, s, pending) == 0.0
    return rejects & (pending == 0) if late else rejects
