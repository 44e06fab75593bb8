"""Late labels in another project's world: 4,000 decisions, 20 cells, delays of two kinds.

    python -m research delayed-benchmark [--seeds 300] [--first-seed 0] [--doubt 0.2]

The world and the policy "scheduled information value" are those of github.com/lyjsilence/Delayed-Selective-Label,
written here from their definitions. Each of 4,000 steps brings a member of one of 20 cells of equal share; acceptance
earns y − 0.7. Prior means are .48 to .64 in six cells, .675 ± .007 in eight, .82 to .92 in six, each worth 4
observations. A label comes after exp(N(2, .75²)) steps with probability 1/4 and otherwise after exp(N(5.6, .75²)),
rounded up. In variant *wrong* the eight cells succeed at .8 ± .007, and all others exactly at their prior mean. In
variant *right* every cell's rate is drawn from its prior.

Their policy accepts where

    p̂ + ρ √(p̂(1 − p̂)/(n + 1 + Σ q)) + κ max(√I(ages) − √I(new), 0) > c,

with q the probability that a pending label of its age comes within 50 steps (from 1,000 past delays), and I what a new
label adds to knowledge of p, given which pending labels come within 50 steps: by their ages, or as if all were new.

Ours are the exact limits of ``Delayed(horizon=)`` for each cell: 200 arrivals, exponential delays of the same mean.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.mixture_belief import MixtureBelief
from lenience.solvers.delayed.horizon import NO_LIMIT, means_of, solve_late_horizon

STEPS, CELLS, COST, WORTH = 4_000, 20, 0.7, 4.0
LOW, HIGH = (0.48, 0.52, 0.56, 0.6, 0.62, 0.64), (0.82, 0.84, 0.86, 0.88, 0.9, 0.92)
PRIOR = np.array([*LOW, *np.linspace(0.668, 0.682, 8), *HIGH])
SHIFTED = np.array([*LOW, *np.linspace(0.793, 0.807, 8), *HIGH])
MEAN_DELAY = 271.6  # steps
WINDOW, RHO, KAPPA = 50, 0.245, 600.0  # of their policy
ARRIVALS, SPARE = STEPS // CELLS, 40  # expected of a cell, and how many more the tables allow for

Prior: TypeAlias = Belief | MixtureBelief
Numbers: TypeAlias = NDArray[np.float64]
Steps: TypeAlias = NDArray[np.int64]


def delays(random: np.random.Generator, count: int) -> Steps:
    """Draw delays in steps."""
    centre = np.where(random.random(count) < 0.25, 2.0, 5.6)
    return np.maximum(np.ceil(np.exp(centre + 0.75 * random.standard_normal(count))), 1.0).astype(np.int64)


def world(seed: int, right: bool) -> tuple[Numbers, Steps, Steps, Steps]:
    """Draw the success rates, and for each step its cell, outcome and delay."""
    random = np.random.default_rng(seed)
    rates = random.beta(WORTH * PRIOR, WORTH * (1 - PRIOR)) if right else SHIFTED
    cells = random.integers(0, CELLS, STEPS)
    outcomes = (random.random(STEPS) < rates[cells]).astype(np.int64)
    return rates, cells, outcomes, delays(random, STEPS)


def coming_soon(seed: int) -> Numbers:
    """Estimate from 1,000 past delays the probability that a label of each age comes within the window."""
    past = np.sort(delays(np.random.default_rng(10**6 + seed), 1_000))
    open_at = 1.0 - np.searchsorted(past, np.arange(STEPS + WINDOW), side="right") / past.size
    now, later = open_at[:STEPS], open_at[WINDOW : STEPS + WINDOW]
    return np.where(now > 0.0, np.clip(1.0 - later / np.maximum(now, 1e-300), 0.0, 1.0), 1.0)


@compiled
def information(s: float, f: float, soon: Numbers, fresh: float) -> float:
    """Return what a new label adds, if each of the others comes in time with its own probability."""
    n = s + f
    chance = np.zeros(soon.size + 1)  # of so many labels in time
    chance[0] = 1.0
    for i in range(soon.size):
        for j in range(i + 1, 0, -1):
            chance[j] = chance[j] * (1.0 - soon[i]) + chance[j - 1] * soon[i]
        chance[0] *= 1.0 - soon[i]
    variance = s * f / (n * n * (n + 1.0))
    total = 0.0
    for j in range(soon.size + 1):
        total += chance[j] * variance * n / ((n + j) * (n + j + 1.0))
    return fresh * total


@compiled
def run(
    cells: Steps, outcomes: Steps, due: Steps, prior: Numbers, soon: Numbers, rho: float, kappa: float,
    means: Numbers, limits: NDArray[np.int16], starts: Steps,
) -> Steps:  # fmt: skip
    """Return who is accepted: by limits if there are any, and otherwise by their policy (greedy if ρ = κ = 0)."""
    steps, count = cells.size, prior.size
    s, f = WORTH * prior, WORTH * (1.0 - prior)
    known = np.zeros(count, dtype=np.int64)
    good = np.zeros(count, dtype=np.int64)
    pending = np.zeros((count, steps), dtype=np.int64)
    waiting = np.zeros(count, dtype=np.int64)
    accepted = np.zeros(steps, dtype=np.int64)
    for t in range(steps):
        x = cells[t]
        kept = 0
        for i in range(waiting[x]):
            origin = pending[x, i]
            if origin + due[origin] <= t:
                known[x] += 1
                good[x] += outcomes[origin]
                s[x] += outcomes[origin]
                f[x] += 1 - outcomes[origin]
            else:
                pending[x, kept] = origin
                kept += 1
        waiting[x] = kept
        if limits.shape[0] > 0:
            left = min(max(round((steps - t) / count), 1), ARRIVALS)
            row = known[x] * (known[x] + 1) // 2 + good[x]
            accept = means[x, row] >= COST
            if not accept and known[x] + left <= ARRIVALS + SPARE:
                limit = limits[x, starts[left] + row]
                accept = limit == NO_LIMIT or kept < limit
        else:
            n = s[x] + f[x]
            rate = s[x] / n
            ages = np.empty(kept)
            for i in range(kept):
                ages[i] = soon[t - pending[x, i]]
            score = rate + rho * math.sqrt(rate * (1.0 - rate) / (n + 1.0 + ages.sum()))
            if kappa > 0.0:
                aged = math.sqrt(information(s[x], f[x], ages, soon[0]))
                score += kappa * max(aged - math.sqrt(information(s[x], f[x], np.full(kept, soon[0]), soon[0])), 0.0)
            accept = score > COST
        if accept:
            accepted[t] = 1
            pending[x, kept] = t
            waiting[x] += 1
    return accepted


class Limits:
    """Exact exposure limits of the 20 cells, under priors that depend on the stated mean."""

    def __init__(self, prior_of: Callable[[float], Prior]) -> None:
        solved = [
            solve_late_horizon(prior_of(mean), COST, 1.0, 0.0, CELLS / MEAN_DELAY, ARRIVALS, SPARE) for mean in PRIOR
        ]
        self.limits, self.starts = np.array([one.limits for one in solved]), solved[0].starts
        self.means = np.array([means_of(prior_of(mean), ARRIVALS + SPARE + 60) for mean in PRIOR])

    def accepted(self, seed: int, cells: Steps, outcomes: Steps, due: Steps) -> Steps:
        """Return who is accepted."""
        none = np.zeros(0)
        return run(cells, outcomes, due, PRIOR, none, 0.0, 0.0, self.means, self.limits, self.starts)


class Scored:
    """Their policy, or greedy without both terms."""

    def __init__(self, rho: float, kappa: float) -> None:
        self.rho, self.kappa = rho, kappa

    def accepted(self, seed: int, cells: Steps, outcomes: Steps, due: Steps) -> Steps:
        """Return who is accepted."""
        nothing = (np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int16), np.zeros(0, dtype=np.int64))
        return run(cells, outcomes, due, PRIOR, coming_soon(seed), self.rho, self.kappa, *nothing)


def stated(mean: float) -> Belief:
    """Return the prior as the world states it."""
    return Belief(WORTH, WORTH * mean)


def policies(doubt: float) -> dict[str, Limits | Scored]:
    """Return the policies by name."""
    return {
        "scheduled information value": Scored(RHO, KAPPA),
        "greedy": Scored(0.0, 0.0),
        "limits, stated prior": Limits(stated),
        f"limits, {doubt:.0%} doubt (flat)": Limits(lambda mean: MixtureBelief.doubt(stated(mean), doubt)),
        "limits, prior worth 16": Limits(lambda mean: Belief(16, 16 * mean)),
        "limits, MixtureBelief.stated(mean)": Limits(MixtureBelief.stated),
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Print what each policy earns in both variants, and its distance from theirs on the same seeds."""
    parser = ArgumentParser("python -m research delayed-benchmark", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--doubt", type=float, default=0.2)
    options = parser.parse_args(arguments)
    compared = policies(options.doubt)
    print("Mean of the total over 4,000 decisions ± 95% half-width; difference from their policy on the same seeds")
    for right in (False, True):
        print(f"\n{'right' if right else 'wrong'} priors, {options.seeds} seeds")
        earned = {name: np.zeros(options.seeds) for name in compared}
        for i in range(options.seeds):
            seed = options.first_seed + i
            _, cells, outcomes, due = world(seed, right)
            for name, policy in compared.items():
                earned[name][i] = float(np.sum(policy.accepted(seed, cells, outcomes, due) * (outcomes - COST)))
        theirs = earned["scheduled information value"]
        for name, totals in earned.items():
            half = 1.96 * totals.std(ddof=1) / math.sqrt(options.seeds)
            apart = totals - theirs
            apart_half = 1.96 * apart.std(ddof=1) / math.sqrt(options.seeds)
            print(
                f"  {name:58} {totals.mean():7.1f} ± {half:4.1f}   {apart.mean():+7.1f} ± {apart_half:.1f}", flush=True
            )
