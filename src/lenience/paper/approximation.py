"""Section 3.1: the approximation V^N, Figure 1, and the error that the paper leaves to future work."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lenience.core.belief import Belief
from lenience.objectives.discounted import Discounted
from lenience.paper.claim import COST, DISCOUNTS, PRECISE, ROUNDING, Claim, N, figure_one, verdict
from lenience.solvers.stopping.paper_values import paper_values


def approximation(seed: int) -> Claim:
    """Check how close V^N is to V*, with a proved error."""
    tables = figure_one()
    parts = [
        f"c = 0.8, γ = {discount}: within {_size(table.error(10))} at n = 10 and {_size(table.error(100))} at n = "
        "100, every "
        f"decision proved optimal for n ≤ {table.proved_through}"
        for discount, table in tables.items()
    ]
    good = all(table.error(100) < 1e-4 for table in tables.values())
    return Claim(
        "3.1, Figure 1, future work",
        "V^N from N = 1000 approximates V*; the error is left to future work.",
        verdict(good, PRECISE),
        "; ".join(parts) + ".",
        "The recursion run from the clairvoyant's value as well encloses V* from both sides: that is the error, "
        "proved.",
    )


def _size(error: float) -> str:
    """Format an error, which is rounding below 1e-13."""
    return "rounding" if error < 1e-13 else f"{error:.1g}"


def figure(seed: int) -> Claim:
    """Check the order of the curves in Figure 1 and how close they are."""
    tables = figure_one()
    close, ordered = [], True
    for table in tables.values():
        rows = [1, 2, 5, 10, 20, 50, 100, N + 1]
        at = np.linspace(0, 1, 2001)
        curves = [np.interp(at, np.arange(n + 1) / n, table.values[n]) for n in rows]
        ordered = ordered and all(bool(np.all(a >= b - ROUNDING)) for a, b in pairwise(curves))
        close.append(float(np.max(curves[-2] - curves[-1])))
    return Claim(
        "3.1, Figure 1",
        "V^N(n, ·) ≥ V^N(n+1, ·); V^N(100, ·) is close to V^N(1001, ·), and differences grow as n falls.",
        verdict(ordered),
        f"The interpolated curves are ordered for both γ. V^N(100, ·) exceeds V^N(1001, ·) by at most {close[0]:.3f} "
        f"(γ = 0.99; the largest value is 20) and {close[1]:.3f} (γ = 0.95; 4).",
    )


def small_n(seed: int) -> Claim:
    """Find the N that proves V*(10, ·) to within 0.001."""
    needed = {}
    for discount in DISCOUNTS:
        last = 20
        while paper_values(COST, discount, [10], last).error(10) > 1e-3:
            last = int(last * 1.1) + 1
        needed[discount] = last
    return Claim(
        "3.1",
        "N does not need to be very large to approximate V*(n, p̂) well.",
        verdict(max(needed.values()) <= N, PRECISE),
        f"To know V*(10, ·) to a proved 0.001, N ≈ {needed[0.99]} is enough at c = 0.8, γ = 0.99 and N ≈ "
        f"{needed[0.95]} at "
        "γ = 0.95.",
        "N grows like 1/(1 − γ): about 14/(1 − γ) rows beyond n prove an error of 1e-9.",
    )


def limit(seed: int) -> Claim:
    """Check that V^N rises to V*."""
    belief, discount = Belief(10, 7.5), 0.95
    true = Discounted(COST, discount).enclose(belief, 1e-11)[0]
    values = [approximate(belief.n, belief.mean, last, COST, discount) for last in (12, 20, 40, 80, 160, 320)]
    rising = all(a <= b + 1e-13 for a, b in pairwise(values))
    return Claim(
        "3.1",
        "V^N → V* as N → ∞, so that what is proved of V^N extends to V*.",
        verdict(rising and abs(values[-1] - true.midpoint) < 1e-6),
        "V^N(10, ¾) at c = 0.8, γ = 0.95 is "
        + ", ".join(f"{value:.6f}" for value in values)
        + f" for N = 12, 20, 40, 80, 160, 320; V* = {true.midpoint:.6f}.",
        "V^N rises to V*: each is a proved lower bound.",
    )


def approximate(n: float, rate: float, last: int, cost: float, discount: float) -> float:
    """Return V^N(n, p̂) at any real p̂, by the plain recursion over the states that can be reached."""
    steps = round(last + 1 - n)
    successes = n * rate + np.arange(steps + 1)
    value = np.maximum(successes / (n + steps) - cost, 0.0) / (1 - discount)
    for k in range(steps - 1, -1, -1):
        p = (n * rate + np.arange(k + 1)) / (n + k)
        value = np.maximum(p - cost + discount * (p * value[1:] + (1 - p) * value[:-1]), 0.0)
    return float(value[0])
