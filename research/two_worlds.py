"""What no policy can have both of: little lost where accepting pays, and little lost where it does not.

    python -m research two-worlds [--cost COST]

Before the first label a policy knows the break-even c and nothing of the success rate. Let it be one of two: *good*,
whose odds are those of c divided by 0.6, where it is best to accept everyone, or *bad*, divided by 1.7, where it is
best to accept no one (the odds at which the costs of the study's data sets were set, :mod:`research.datasets`).
A policy that sees only the outcomes of the accepted has a regret in each: G, by which it earns less than "always" in
the good world, and B, by which it earns less than nothing in the bad one. For every weight λ

    λ G + (1 − λ) B ≥ least(λ)

whatever the policy, where least(λ) is the smallest mean regret if the world is good with probability λ. That is a
stopping problem with an exact answer: a belief is one number, the odds of the good world, moved by every label; value
is found row by row from a depth on at which the world is taken as known, so that what is found is never too large.
(To wait is of no use: without a label nothing is learnt, and what is still to come is worth less.) All weights together
say how much must be lost in one world by a policy that loses little in the other.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from lenience.core.compiled import compiled
from lenience.core.errors import InputError
from lenience.core.validation import check_cost, real, whole
from lenience.models.gaussian import sigmoid

GOOD, BAD = 0.6, 1.7  # the odds of c by those of the success rate
DEPTH = 1000  # labels after which the world is taken as known
WEIGHTS = tuple(1.0 / (1.0 + math.exp(-0.25 * i)) for i in range(-24, 25))
COSTS = (0.05, 0.22, 0.43, 0.61, 0.82, 0.91, 0.97)
ALLOWED = (0.25, 0.5, 1.0)
WorldName = Literal["good", "bad"]


def rates(cost: float) -> tuple[float, float]:
    """The success rates of the good and the bad world.

    >>> [round(rate, 3) for rate in rates(0.61)]
    [0.723, 0.479]
    """
    odds = check_cost(cost) / (1.0 - cost)
    good, bad = odds / GOOD, odds / BAD
    return good / (1.0 + good), bad / (1.0 + bad)


@lru_cache(maxsize=1024)  # every weight serves for every loss that is allowed
def least_regret(cost: float, discount: float, weight: float, depth: int = DEPTH) -> float:
    """The least that any policy loses on average if the world is good with probability ``weight``.

    >>> round(least_regret(0.61, 0.99, 0.5), 3)
    1.46
    """
    good, bad = rates(cost)
    gamma = real("discount", discount, least=0, below=1)
    chance = real("weight", weight, above=0, below=1)
    value = worth(cost, gamma, good, bad, chance, whole("depth", depth))
    return max(chance * (good - cost) / (1.0 - gamma) - value, 0.0)


def must_lose(cost: float, discount: float, allowed: float, where: WorldName = "good") -> float:
    """The least regret in the other world of a policy whose regret in the world ``where`` is at most ``allowed``.

    >>> round(must_lose(0.61, 0.99, 0.5), 2)  # within 0.5 of what "always" earns in the good world, which is 11.3
    2.46
    >>> round(must_lose(0.61, 0.99, 0.5, where="bad"), 2)
    6.34
    """
    real("allowed", allowed, least=0)
    if where not in ("good", "bad"):
        raise InputError("where", where, "'good' or 'bad'")
    bounds = [0.0]
    for weight in WEIGHTS:
        here = weight if where == "good" else 1.0 - weight
        bounds.append((least_regret(cost, discount, weight) - here * allowed) / (1.0 - here))
    return max(bounds)


@compiled
def worth(cost: float, gamma: float, good: float, bad: float, weight: float, depth: int) -> float:
    """The value of the best policy, at most: after ``depth`` labels as if the world were then known."""
    start = math.log(weight / (1.0 - weight))
    up = math.log(good / bad)
    down = math.log((1.0 - good) / (1.0 - bad))
    values = np.empty(depth + 1)
    for s in range(depth + 1):
        values[s] = sigmoid(start + s * up + (depth - s) * down) * (good - cost) / (1.0 - gamma)
    for n in range(depth - 1, -1, -1):
        for s in range(n + 1):
            p = bad + sigmoid(start + s * up + (n - s) * down) * (good - bad)
            values[s] = max(p - cost + gamma * (p * values[s + 1] + (1.0 - p) * values[s]), 0.0)
    return float(values[0])


def report(costs: Sequence[float] = COSTS) -> str:
    """What must be lost, as a table."""
    lines = [
        "| c | success rate, good and bad | γ | always earns in the good world "
        + "".join(f"| within {allowed:g} of it: lost in the bad " for allowed in ALLOWED)
        + "".join(f"| at most {allowed:g} lost in the bad: lost in the good " for allowed in ALLOWED)
        + "|",
        "|---:|---|---:|" + "---:|" * (1 + 2 * len(ALLOWED)),
    ]
    for discount in (0.99, 0.999):
        for cost in costs:
            good, bad = rates(cost)
            lost = [must_lose(cost, discount, allowed, where) for where in ("good", "bad") for allowed in ALLOWED]
            lines.append(
                f"| {cost:g} | {good:.3f}, {bad:.3f} | {discount:g} | {(good - cost) / (1.0 - discount):.1f} | "
                + " | ".join(f"{each:.2f}" for each in lost) + " |"
            )  # fmt: skip
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = ArgumentParser("python -m research two-worlds", description=__doc__)
    parser.add_argument("--cost", type=float, action="append", help=f"by default each of {COSTS}")
    print(report(parser.parse_args(arguments).cost or COSTS))
