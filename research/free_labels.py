"""One population with labels that come for free: the exact threshold, and how near the policy with features comes.

    python -m research free-labels [--cost COST] [--steps STEPS]

People like x are a share q of the arrivals, and φ of the arrivals reveal an outcome of theirs whatever is decided.
Then to reject is not to stop: the belief goes on moving, and one may come back. With V the value at a belief (n, s),
p = s/n and E the mean of V after one more outcome, an arrival is one of q, of φ or neither, so that

    accepting:  V (1 − γ(1 − q − φ)) = q (p − c) + (q + φ) γ E
    rejecting:  V (1 − γ(1 − φ))     = φ γ E

and V is the larger. It is computed row by row from a depth at which another outcome hardly matters; the threshold is
the rate at which accepting, p − c + γ(E − V), breaks even. :mod:`lenience.policies.features.effective_discount` has
a formula for it.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Sequence

import numpy as np

from lenience.core.compiled import compiled
from lenience.core.validation import check_cost, real
from lenience.policies.features.effective_discount import left, lenient, own_discount
from lenience.solvers.stopping.threshold_table import threshold_table

COSTS = (0.5, 0.8, 0.95)
DEPTHS = {0.99: 1000, 0.999: 1800}
SHARES = (0.01, 0.03, 0.1, 0.3)
FREE = (0.1, 0.3, 1.0, 3.0)  # φ/q
SIZES = (1.5, 4.0, 12.0, 40.0, 150.0)


@compiled
def gain(cost: float, discount: float, share: float, free: float, n: float, s: float, depth: int) -> float:
    """p − c + γ(E − V) at a belief."""
    values = np.empty(depth + 1)
    for j in range(depth + 1):
        values[j] = share * max((s + j) / (n + depth) - cost, 0.0) / (1.0 - discount)
    result = 0.0
    for row in range(depth - 1, -1, -1):
        for j in range(row + 1):
            p = (s + j) / (n + row)
            after = p * values[j + 1] + (1.0 - p) * values[j]
            accept = (share * (p - cost) + (share + free) * discount * after) / (1.0 - discount * (1.0 - share - free))
            reject = free * discount * after / (1.0 - discount * (1.0 - free))
            values[j] = max(accept, reject)
            result = p - cost + discount * (after - values[j])
    return result


def free_label_threshold(
    cost: float, discount: float, share: float, free: float, n: float, depth: int = 1000, steps: int = 30
) -> float:
    """The success rate above which people like x are accepted, after n observations.

    >>> round(free_label_threshold(0.8, 0.9, 1.0, 0.0, 2.0, depth=300), 6)  # without free labels it is the paper's c_n
    0.625004
    >>> from lenience import Belief, Discounted
    >>> round(Discounted(0.8, 0.9).solve(Belief(2, 1)).threshold(2).midpoint, 6)
    0.625004
    >>> round(free_label_threshold(0.8, 0.9, 0.5, 0.5, 2.0, depth=300), 3)  # and with them one is less lenient
    0.752
    """
    check_cost(cost)
    real("discount", discount, least=0, below=1)
    real("share", share, above=0, most=1)
    real("free", free, least=0, most=1 - share)
    real("n", n, above=0)
    low, high = 0.0, cost
    for _ in range(steps):
        middle = (low + high) / 2.0
        if gain(cost, discount, share, free, n, n * middle, depth) > 0.0:
            high = middle
        else:
            low = middle
    return high


def by_formula(cost: float, discount: float, share: float, free: float, n: float) -> float:
    """The same by the formula of the policy with features."""
    own = own_discount(discount, share, free / (n + 2.0))
    return lenient(cost, float(threshold_table(cost, discount).threshold(n, own)), left(share, free))


def main(arguments: Sequence[str] = ()) -> None:
    """Print how far the leniency by the formula is from the exact one, by φ/q and by n."""
    parser = ArgumentParser("python -m research free-labels", description=__doc__)
    parser.add_argument("--cost", type=float, action="append", help=f"by default each of {COSTS}")
    parser.add_argument("--steps", type=int, default=22, help="of the bisection for each exact threshold")
    given = parser.parse_args(arguments)
    errors = {}
    for cost in given.cost or COSTS:
        for discount, depth in DEPTHS.items():
            for share in SHARES:
                for ratio in FREE:
                    if share * (1.0 + ratio) > 1.0:
                        continue
                    for n in SIZES:
                        setting = (cost, discount, share, ratio * share, n)
                        exact = cost - free_label_threshold(*setting, depth=depth, steps=given.steps)
                        errors[setting] = math.log((cost - by_formula(*setting)) / exact)
    print(f"{len(errors)} problems: the leniency by the formula over the exact one")
    for name, values in (("φ/q", FREE), ("n", SIZES)):
        for value in values:
            result = {setting: setting[3] / setting[2] if name == "φ/q" else setting[4] for setting in errors}
            some = np.array([errors[setting] for setting, its in result.items() if math.isclose(its, value)])
            least, mean, most = (math.exp(x) for x in (some.min(), some.mean(), some.max()))
            print(f"  {name} = {value:<5g} mean {mean:.2f}, from {least:.2f} to {most:.2f}")
    print(f"  root mean square of the logarithm: {math.sqrt(np.mean(np.square(list(errors.values())))):.3f}")
