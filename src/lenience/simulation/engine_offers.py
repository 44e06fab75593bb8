"""Engines for arrivals that bring offers: a compiled one for fixed success rates, and one for every world and policy.

Every arrival draws one of the menus. From a menu the policy makes the best of the offers that it accepts. Rewards are
in money. What a policy is expected to earn is averaged over the menus that an arrival may bring. This has the same mean
as what the drawn menus earn, and less noise. At a state it is α p − β, with α = Σ w π a and β = Σ w π a c over the
menus. Here π is the probability of acceptance, and a and c belong to the offer that is made. A policy that knows p
earns Σ w max(a(p − c), 0) at every arrival.

The compiled engine holds what the policy does for a window of rows of the lattice (n₀ + k, s₀ + j), as
:mod:`lenience.simulation.engine_lattice` does. A policy that looks at pending labels or at the number of arrivals left
runs in the other one, arrival by arrival for all replications at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.counter_rng import ONE, arrival_bits, bits_of, limits, mix, uniform
from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule, looks_at, offer_acceptance_at
from lenience.simulation.block import ReplicationBlock, along_time, geometric_sum
from lenience.simulation.engine_lattice import TINY
from lenience.simulation.stream import Stream
from lenience.solvers.offers.evaluation import best_accepted, menu_choices

MOST_ENTRIES = 4_000_000  # of a window: states times menus
SMALLEST_WINDOW = 256  # rows
PURPOSE = "offer"  # of the random numbers that draw menus
_SHIFT = np.uint64(11)

Rule = OfferRule | Accepts


def run_offers(
    policies: Sequence[Rule],
    stream: Stream,
    rates: NDArray[np.float64] | None,
    priors: Sequence[Belief],
    offers: Offers,
    discount: float,
    horizon: int,
    checkpoints: NDArray[np.int64],
) -> ReplicationBlock:
    """Run policies, one for each segment, on arrivals that bring offers, with the compiled engine if possible."""
    policy = policies[0]
    plain = len(policies) == 1 and getattr(policy, "memory", 1.0) == 1.0
    plain = plain and not looks_at(policy, "pending") and not looks_at(policy, "left")
    if rates is not None and plain and (horizon + 1) * offers.menu_count <= MOST_ENTRIES:
        return run_offer_lattice(policy, stream.keys, rates, priors[0], offers, discount, horizon, checkpoints)
    return run_offer_steps(policies, stream, priors, offers, discount, horizon, checkpoints)


class OfferWindow(NamedTuple):
    """Hold what a policy does at the states that can be met in a window of rows: by state, and by state and menu."""

    offset: NDArray[np.uint64]  # by row: the position of its first state
    slope: NDArray[np.float64]  # by state: α
    level: NDArray[np.float64]  # by state: β
    limit: NDArray[np.uint64]  # by state and menu: the acceptance limit of 32 random bits
    choice: NDArray[np.int32]  # by state and menu: the offer that is made


def offer_window(
    policy: Rule, prior: Belief, offers: Offers, first: int, last: int, low: int, high: int
) -> OfferWindow:
    """Return what a policy does at rows ``first`` to ``last`` − 1, for walks that enter with ``low`` to ``high``."""
    lines = [
        menu_choices(policy, prior.n + k, prior.s + np.arange(low, high + 1.0 + (k - first)), offers)
        for k in range(first, last)
    ]
    chance = np.concatenate([line.chance for line in lines])
    choice = np.concatenate([line.choice for line in lines])
    slope, level = stakes(chance, choice, offers)
    sizes = high - low + 1 + np.arange(last - first)
    offset = (np.cumsum(sizes) - sizes).astype(np.uint64)
    return OfferWindow(offset, slope, level, limits(chance), choice.astype(np.int32))


def stakes(
    chance: NDArray[np.float64], choice: NDArray[np.int64], offers: Offers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return α and β of each belief: an arrival earns α p − β on average."""
    amount, cost, shares = (np.array(column) for column in (offers.amount, offers.cost, offers.share))
    weighted = chance * shares * amount[choice]
    return weighted.sum(axis=1), (weighted * cost[choice]).sum(axis=1)


def profits_if_known(rates: NDArray[np.float64], offers: Offers) -> NDArray[np.float64]:
    """Return what an arrival earns on average where p is known."""
    starts = np.flatnonzero(np.diff(np.array(offers.menu_of), prepend=-1))
    gains = np.array(offers.amount) * (rates[..., None] - np.array(offers.cost))
    best: NDArray[np.float64] = np.maximum(np.maximum.reduceat(gains, starts, axis=-1), 0.0) @ np.array(offers.share)
    return best


def lowest_cost(offers: Offers) -> float:
    """Return the lowest break-even of the offers that come: above it some offer pays."""
    return float(min(c for c, menu in zip(offers.cost, offers.menu_of, strict=True) if offers.share[menu] > 0.0))


def drawn_menus(keys: NDArray[np.uint64], arrival: int, cumulated: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the menu that an arrival brings in each replication."""
    menus = np.searchsorted(cumulated, uniform(keys, arrival, PURPOSE), side="right")
    return np.minimum(menus, cumulated.size - 1).astype(np.int64)


def run_offer_lattice(
    policy: Rule,
    keys: NDArray[np.uint64],
    rates: NDArray[np.float64],
    prior: Belief,
    offers: Offers,
    discount: float,
    horizon: int,
    checkpoints: NDArray[np.int64],
) -> ReplicationBlock:
    """Run a policy that decides by the belief and the offer, with prompt labels and success rates that never change."""
    count = keys.size
    amount, cost = np.array(offers.amount), np.array(offers.cost)
    cumulated = np.cumsum(np.array(offers.share))
    salt = np.uint64(int.from_bytes(PURPOSE.encode().ljust(8, b"."), "little"))
    menu_keys = mix(keys ^ salt)
    time, accepted, successes, check, red, stopped = (np.zeros(count, dtype=np.uint64) for _ in range(6))
    account, lowest, reward, expected, earned = (np.zeros(count) for _ in range(5))
    factor = np.ones(count)
    accepted_by = np.zeros((count, checkpoints.size), dtype=np.int64)
    earned_by = np.zeros((count, checkpoints.size))
    first = 0
    while first < horizon:
        running = (time < np.uint64(horizon)) & (stopped == 0)
        if not running.any():
            break
        # All that run are at the first row, and each acceptance adds at most one success.
        low, high = int(successes[running].min()), int(successes[running].max())
        rows = max(SMALLEST_WINDOW, high - low)
        while rows > 1 and rows * (high - low + rows / 2) * offers.menu_count > MOST_ENTRIES:
            rows //= 2
        last = min(first + rows, horizon)
        window = offer_window(policy, prior, offers, first, last, low, high)
        _run(
            keys, menu_keys, limits(rates), rates, time, accepted, successes, check, red, stopped,
            factor, account, lowest, reward, expected, earned, accepted_by, earned_by,
            window.offset, window.slope, window.level, window.limit, window.choice, amount, cost, cumulated,
            checkpoints.astype(np.uint64), np.uint64(first), np.uint64(last), np.uint64(low), np.uint64(horizon),
            discount,
        )  # fmt: skip
        first = last
    best = profits_if_known(rates, offers)
    final = stopped > 0
    regret_by = best[:, None] * checkpoints - earned_by
    return ReplicationBlock(
        p=rates,
        accepted=accepted.astype(np.float64),
        reward=reward,
        discounted=account,
        expected=expected,
        clairvoyant=best * geometric_sum(discount, horizon),
        learning_cost=-lowest,
        red_until=red.astype(np.float64),
        stopped=final.astype(np.float64),
        shut_out=(final & (rates > lowest_cost(offers))).astype(np.float64),
        **dict(zip(ReplicationBlock._fields[10:], along_time(accepted_by, regret_by, checkpoints), strict=True)),
    )


@compiled
def _run(
    keys: NDArray[np.uint64],
    menu_keys: NDArray[np.uint64],
    chance: NDArray[np.uint64],
    rates: NDArray[np.float64],
    time: NDArray[np.uint64],
    accepted: NDArray[np.uint64],
    successes: NDArray[np.uint64],
    check: NDArray[np.uint64],
    red: NDArray[np.uint64],
    stopped: NDArray[np.uint64],
    factor: NDArray[np.float64],
    account: NDArray[np.float64],
    lowest: NDArray[np.float64],
    reward: NDArray[np.float64],
    expected: NDArray[np.float64],
    earned: NDArray[np.float64],
    accepted_by: NDArray[np.int64],
    earned_by: NDArray[np.float64],
    offset: NDArray[np.uint64],
    slope: NDArray[np.float64],
    level: NDArray[np.float64],
    limit: NDArray[np.uint64],
    choice: NDArray[np.int32],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    cumulated: NDArray[np.float64],
    checkpoints: NDArray[np.uint64],
    first: np.uint64,
    last: np.uint64,
    low: np.uint64,
    horizon: np.uint64,
    discount: float,
) -> None:
    """Continue every replication until it leaves the window, stops or reaches the horizon."""
    one, half, coin_bits = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    top = cumulated.size - 1
    for r in range(keys.size):
        if stopped[r] > 0:
            continue
        i, k, j, c = time[r], accepted[r], successes[r], check[r]
        w, sum_, least, until = factor[r], account[r], lowest[r], red[r]
        while i < horizon and k < last:
            at = offset[k - first] + (j - low)
            if slope[at] == 0.0:  # no offer is accepted here, and the belief stays as it is
                stopped[r] = 1
                break
            profit = slope[at] * rates[r] - level[at]
            menu = 0
            if top > 0:
                number = float(bits_of(menu_keys[r], i) >> _SHIFT) * 2.0**-53
                high = top
                while menu < high:
                    middle = (menu + high) // 2
                    if cumulated[middle] <= number:
                        menu = middle + 1
                    else:
                        high = middle
            bits = bits_of(keys[r], i)
            i += one
            expected[r] += w * profit
            earned[r] += profit
            if (bits & coin_bits) < limit[at, menu]:
                good = np.uint64((bits >> half) < chance[r])
                offer = choice[at, menu]
                result = amount[offer] * (np.float64(good) - cost[offer])
                k += one
                j += good
                reward[r] += result
                sum_ += w * result
                least = min(least, sum_)
            if sum_ < 0.0:
                until = i
            w = w * discount if w > TINY else 0.0
            if i == checkpoints[c]:
                accepted_by[r, c] = k
                earned_by[r, c] = earned[r]
                c += one
        if stopped[r] > 0:
            if sum_ < 0.0:
                until = horizon
            for later in range(c, checkpoints.size):
                accepted_by[r, later] = k
                earned_by[r, later] = earned[r]
        time[r], accepted[r], successes[r], check[r] = i, k, j, c
        factor[r], account[r], lowest[r], red[r] = w, sum_, least, until


def run_offer_steps(
    policies: Sequence[Rule],
    stream: Stream,
    priors: Sequence[Belief],
    offers: Offers,
    discount: float,
    horizon: int,
    checkpoints: NDArray[np.int64],
) -> ReplicationBlock:
    """Run policies, one for each segment, in any world, one arrival at a time."""
    count, segments = stream.keys.size, stream.segments
    at = np.arange(count)
    n0, s0 = np.array([prior.n for prior in priors]), np.array([prior.s for prior in priors])
    n, s = np.tile(np.broadcast_to(n0, segments), (count, 1)), np.tile(np.broadcast_to(s0, segments), (count, 1))
    pending = np.zeros((count, segments), dtype=np.int64)
    memories = np.array([getattr(policy, "memory", 1.0) for policy in policies])
    late = stream.label_lag(0) is not None
    due = np.zeros((2, horizon + 2, count, segments) if late else (2, 1, 1, 1), dtype=np.int32)
    amount, cost = np.array(offers.amount), np.array(offers.cost)
    cumulated = np.cumsum(np.array(offers.share))
    shares = stream.by_segment()[1]
    accepted, reward, expected, clairvoyant = (np.zeros(count) for _ in range(4))
    account, lowest, red, earned, best = (np.zeros(count) for _ in range(5))
    accepted_by = np.zeros((count, checkpoints.size), dtype=np.int64)
    regret_by = np.zeros((count, checkpoints.size))
    stopped = np.zeros((count, segments), dtype=np.bool_)
    factor, check = 1.0, 0
    for i in range(horizon):
        rates = stream.rates(i)
        known = profits_if_known(rates, offers)
        clairvoyant += factor * known
        best += known
        if late:
            n += due[0, i]
            s += due[1, i]
            pending -= due[0, i]
        if i > 0 and np.any(memories < 1.0):
            n = n0 + memories * (n - n0)
            s = s0 + memories * (s - s0)
        x = stream.segment(i)
        left = np.maximum(np.ceil(shares * (horizon - i)), 1.0).astype(np.int64)
        chance, choice = decide_arrivals(policies, n[at, x], s[at, x], pending[at, x], x, offers, left)
        slope, level = stakes(chance, choice, offers)
        profit = slope * rates - level
        menu = drawn_menus(stream.keys, i, cumulated)
        takes = (arrival_bits(stream.keys, i) & np.uint64(ONE - 1)) < limits(chance[at, menu])
        good = takes & stream.outcomes(i, rates)
        offer = choice[at, menu]
        result = amount[offer] * (good - cost[offer] * takes)
        accepted += takes
        reward += result
        account += factor * result
        expected += factor * profit
        earned += profit
        np.minimum(lowest, account, out=lowest)
        if i == horizon - 1:  # the state before the last arrival, as in the other engines
            for each in range(segments):
                here = np.full(count, each)
                chances, _ = decide_arrivals(policies, n[:, each], s[:, each], pending[:, each], here, offers, left)
                rejects = ~chances[:, np.array(offers.share) > 0.0].any(axis=1)
                stopped[:, each] = rejects & (pending[:, each] == 0) & bool(np.all(memories == 1.0))
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
        reward=reward,
        discounted=account,
        expected=expected,
        clairvoyant=clairvoyant,
        learning_cost=-lowest,
        red_until=red,
        stopped=np.asarray(stopped.all(axis=1), dtype=np.float64),
        shut_out=(stopped & (final > lowest_cost(offers))) @ shares,
        **dict(zip(ReplicationBlock._fields[10:], along_time(accepted_by, regret_by, checkpoints), strict=True)),
    )


def decide_arrivals(
    policies: Sequence[Rule],
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    pending: NDArray[np.int64],
    x: NDArray[np.int64],
    offers: Offers,
    left: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what the policies do: one line for each replication, one column for each menu.

    ``x`` is the segment of each replication and ``left`` the expected number of arrivals left in each segment.
    """
    accepted = np.zeros((n.size, len(offers.amount)))
    for segment in np.unique(x).tolist():
        policy = policies[min(segment, len(policies) - 1)]
        remaining = int(left[min(segment, left.size - 1)])
        here = np.flatnonzero(x == segment)
        labels: Any = getattr(policy, "label_values", None)
        if labels is not None:
            gains = np.array(offers.amount) * ((s[here] / n[here])[:, None] - np.array(offers.cost))
            accepted[here] = gains + labels(n[here], s[here], remaining)[:, None] > 0.0
            continue
        for size in np.unique(n[here]).tolist():
            group = here[n[here] == size]
            accepted[group] = offer_acceptance_at(policy, size, s[group], offers, pending[group], remaining)
    choices = best_accepted(accepted, s / n, offers)
    return choices.chance, choices.choice
