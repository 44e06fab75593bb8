"""What estimated exposure limits earn in a simulation, where the problem is too large for a proof.

    python -m research estimated-limits [--replications 20000] [--write]

An estimated policy states its value with an error. Here the policy is followed event by event: arrivals at rate λ, each
pending label at rate μ. Success probabilities are stratified over the prior. An acceptance counts p − c, discounted to
its time. Two kinds of runs end early, without a noticeable error: if nobody is pending and the limit is 0, nothing more
can happen; and if the success rate is 7 standard deviations above the break-even, everyone is accepted from then on,
which is worth (p − c) λ/r at that time.

The limits of the policy are tabulated at its own belief sizes, on a fine grid of distances from the break-even in
standard deviations. Between sizes the logarithm of the limit is interpolated, as the policy does.

With --write the table is written to research/estimated-limits.md.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience import Belief, Delayed
from lenience.core.compiled import compiled
from lenience.core.counter_rng import bits_of, replication_keys, unit_of
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy

PAGE = Path(__file__).parent / "estimated-limits.md"
START, END = "<!-- results: written by python -m research estimated-limits --write -->", "<!-- end of results -->"
WIDTH, POINTS = 8.0, 1_601  # standard deviations below the break-even, and points of the grid
SURE = 7.0  # standard deviations above the break-even from which everyone is accepted for good
REST = 1e-4  # discount factor at which a run ends
HALF = 1.96  # standard errors in half a 95% interval

PROBLEMS = (
    (Delayed(0.8, 5_000, 0.1, 1.0), Belief(2, 1)),
    (Delayed(0.8, 20_000, 0.1, 1.0), Belief(2, 1)),
    (Delayed(0.8, 20_000, 0.5, 0.25), Belief(2, 1)),
    (Delayed(0.8, 200_000, 0.1, 1.0), Belief(2, 1)),
    (Delayed(0.8, 1_000_000, 0.1, 0.5), Belief(2, 1)),
    (Delayed(0.737, 3_408, 0.1, 523 / 365), Belief(1_300, 940)),
    (Delayed(0.737, 658, 0.1, 1.5), Belief(338, 243)),
    (Delayed(0.9, 50_000, 0.2, 2.0), Belief(40, 34)),
)


class Simulated(NamedTuple):
    """The stated value with its error, the simulated one with its standard error."""

    stated: float
    stated_error: float
    simulated: float
    standard_error: float

    @property
    def agrees(self) -> bool:
        """Whether the stated value, with its error, is within the 95% interval of the simulation."""
        return abs(self.stated - self.simulated) <= self.stated_error + HALF * self.standard_error


def simulate(objective: Delayed, prior: Belief, replications: int, seed: int = 0) -> Simulated:
    """Follow the estimated policy of a problem, and compare what it earns with what it states."""
    from scipy.special import betaincinv

    policy = EstimatedExposurePolicy.solve(objective, prior)
    random = np.random.default_rng(seed)
    slices = (np.arange(replications) + random.random(replications)) / replications
    rates = betaincinv(prior.alpha, prior.beta, slices)
    distances = np.linspace(-WIDTH, 0.0, POINTS)
    deviation = math.sqrt(objective.cost * (1.0 - objective.cost))
    logarithms = np.empty((policy.sizes.size, POINTS))
    for row, n in enumerate(policy.sizes):
        good = np.clip(objective.cost + distances[:-1] * deviation / math.sqrt(n), 0.0, 1.0) * n
        logarithms[row, :-1] = np.log1p(policy.exposure(n, good).astype(np.float64))
        logarithms[row, -1] = 2.0 * logarithms[row, -2] - logarithms[row, -3]
    earned = run(
        rates, replication_keys(seed, 0, replications), prior.n, prior.s, objective.cost, objective.arrivals,
        objective.discount_rate, 1.0 / objective.label_delay, deviation, np.log(policy.sizes), logarithms,
    )  # fmt: skip
    pairs = earned[: replications // 2 * 2].reshape(-1, 2)
    error = math.sqrt(float(np.mean((pairs[:, 0] - pairs[:, 1]) ** 2)) / 2.0 / replications)
    stated = policy.certificate
    return Simulated(stated.estimate, stated.error, float(earned.mean()), error)


@compiled
def run(
    rates: NDArray[np.float64], keys: NDArray[np.uint64], n0: float, s0: float, cost: float, arrivals: float,
    discount: float, resolve: float, deviation: float, log_sizes: NDArray[np.float64],
    logarithms: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Return the discounted reward of each run."""
    rows, points = logarithms.shape
    end = -math.log(REST) / discount
    earned = np.zeros(rates.size)
    for at in range(rates.size):
        p = rates[at]
        n = n0
        s = s0
        pending = 0
        time = 0.0
        row = 0
        draw = np.uint64(0)
        while time < end:
            spread = (s / n - cost) * math.sqrt(n) / deviation
            if spread >= SURE:
                earned[at] += (p - cost) * arrivals / discount * math.exp(-discount * time)
                break
            if spread >= 0.0:
                limit = np.inf
            else:
                position = max((spread + WIDTH) / WIDTH * (points - 1), 0.0)
                left = min(int(position), points - 2)
                part = position - left
                here = (1.0 - part) * logarithms[row, left] + part * logarithms[row, left + 1]
                if row + 1 < rows:
                    after = (1.0 - part) * logarithms[row + 1, left] + part * logarithms[row + 1, left + 1]
                    between = (math.log(n) - log_sizes[row]) / (log_sizes[row + 1] - log_sizes[row])
                    here += min(max(between, 0.0), 1.0) * (after - here)
                limit = math.floor(math.expm1(here) + 0.5)
            # Until the next label the belief stays, and with it the limit.
            while True:
                arriving = arrivals if pending < limit else 0.0
                total = arriving + pending * resolve
                if total == 0.0:
                    time = end
                    break
                time -= math.log(unit_of(bits_of(keys[at], draw))) / total
                draw += np.uint64(2)
                if time >= end:
                    break
                if unit_of(bits_of(keys[at], draw - np.uint64(1))) * total < arriving:
                    earned[at] += (p - cost) * math.exp(-discount * time)
                    pending += 1
                else:
                    pending -= 1
                    n += 1.0
                    if unit_of(bits_of(keys[at], draw)) < p:
                        s += 1.0
                    draw += np.uint64(1)
                    while row + 2 < rows and math.log(n) >= log_sizes[row + 1]:
                        row += 1
                    break
    return earned


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate all problems and print the table."""
    parser = ArgumentParser(
        prog="python -m research estimated-limits", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--replications", type=int, default=20_000)
    parser.add_argument("--write", action="store_true", help="write research/estimated-limits.md")
    options = parser.parse_args(arguments)
    lines = [
        "| break-even | arrivals a year | discount rate | mean delay, years | prior n, s | stated value | simulated | "
        "agrees |",
        "|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for objective, prior in PROBLEMS:
        result = simulate(objective, prior, options.replications)
        lines.append(
            f"| {objective.cost:g} | {objective.arrivals:,.0f} | {objective.discount_rate:g} | "
            f"{objective.label_delay:.3g} | {prior.n:g}, {prior.s:g} | "
            f"{result.stated:,.2f} ± {result.stated_error:.2g} | "
            f"{result.simulated:,.2f} ± {HALF * result.standard_error:.2g} | {'yes' if result.agrees else 'no'} |"
        )
        print(lines[-1], flush=True)
    if options.write:
        head, _, tail = PAGE.read_text(encoding="utf-8").partition(START)
        table = "\n".join(lines)
        PAGE.write_text(f"{head}{START}\n\n{table}\n\n{END}{tail.partition(END)[2]}", encoding="utf-8")
