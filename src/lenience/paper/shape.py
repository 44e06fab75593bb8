"""Section 3.1 and Appendix A: Lemma 1, Propositions 2 and 3, and the steps of their proofs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.objectives.discounted import Discounted
from lenience.paper.approximation import approximate
from lenience.paper.claim import CORRECTED, COST, FLAT, Claim, figure_one, verdict


def chords(seed: int) -> Claim:
    """Check Lemma 1 on random convex functions."""
    rng = np.random.default_rng(seed)
    worst = np.inf
    for _ in range(500):
        slopes, knots = rng.normal(size=6), rng.normal(size=6)
        alpha, x = rng.uniform(), rng.normal()
        deltas = np.linspace(0, 4, 41)

        def convex(
            at: NDArray[np.float64], slopes: NDArray[np.float64] = slopes, knots: NDArray[np.float64] = knots
        ) -> NDArray[np.float64]:
            values: NDArray[np.float64] = (slopes * at[:, None] + knots).max(axis=1)
            return values

        chord = alpha * convex(x + (1 - alpha) * deltas) + (1 - alpha) * convex(x - alpha * deltas)
        worst = min(worst, float(np.diff(chord).min()))
    return Claim(
        "3.1, Lemma 1, Appendix A.1",
        "For convex f, αf(x + (1−α)δ) + (1−α)f(x − αδ) does not fall with δ ≥ 0.",
        verdict(worst > -1e-12),
        "500 random convex functions (maxima of six lines), x and α, 41 values of δ each: least increment "
        f"{worst:.1g}.",
    )


def shape(seed: int) -> Claim:
    """Check Proposition 2: the value is convex and does not decrease in the mean."""
    worst_slope, worst_bend, rows = np.inf, np.inf, 0
    for table in figure_one().values():
        for n, values in table.values.items():
            if n >= 2:
                rows += 1
                worst_slope = min(worst_slope, float(np.diff(values).min()) * n)
                worst_bend = min(worst_bend, float(np.diff(values, 2).min()) * n * n)
    # Check real beliefs off the lattice as well, by proved bounds.
    problem = Discounted(COST, 0.95)
    rates = np.linspace(0.5, 0.95, 31)
    for size in (1.5, 7.3):
        values = np.array([problem.enclose(Belief(size, size * rate), 1e-10)[0].midpoint for rate in rates])
        worst_slope = min(worst_slope, float(np.diff(values).min() / 0.015))
        worst_bend = min(worst_bend, float(np.diff(values, 2).min() / 0.015**2))
    return Claim(
        "3.1, Proposition 2",
        "V*(n, p̂) is non-decreasing and convex in p̂ for all n.",
        verdict(worst_slope > -1e-6 and worst_bend > -1e-4),
        f"Over {rows} rows of Figure 1 (c = 0.8, γ = 0.99 and 0.95) and at n = 1.5 and 7.3 (γ = 0.95): least slope "
        f"{worst_slope:.2g}, least second difference quotient "
        f"{worst_bend:.2g} (rounding alone explains −1e-4).",
        "Where one accepts the slope is at least 1; that turns an error in Ṽ into one in the threshold.",
    )


def more_stringent(seed: int) -> Claim:
    """Check Proposition 3: the threshold rises with n."""
    problem = Discounted(COST, 0.99)
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(15):
        n, rate = float(np.exp(rng.uniform(0, 5))), float(rng.uniform(0.5, 0.98))
        here, later = (problem.enclose(Belief(m, m * rate), 1e-10)[0] for m in (n, n + 1))
        wrong += here.upper < later.lower
    policy = problem.solve(FLAT)
    sizes = (1, 2, 5, 10, 30, 100, 300, 1000)
    thresholds = [policy.threshold(n, tolerance=1e-7) for n in sizes]
    rising = all(a.lower <= b.upper for a, b in pairwise(thresholds))
    return Claim(
        "3.1, Proposition 3",
        "V*(n, p̂) is non-increasing in n, so c_n ≤ c_{n+1} ≤ … ≤ c: the policy is more lenient in early stages.",
        verdict(wrong == 0 and rising and thresholds[-1].upper <= COST),
        "At c = 0.8, γ = 0.99 and 15 random real (n, p̂) no enclosure contradicts it; "
        + ", ".join(f"c_{n} = {each.midpoint:.4f}" for n, each in zip(sizes, thresholds, strict=True))
        + ".",
    )


def weights(seed: int) -> Claim:
    """Check the weights of equation (12), which are misprinted."""
    a, p1, p2 = 0.3, 0.4, 0.7
    printed = (a * p1 + (1 - a) * p2) + (1 - a * p1 + (1 - a) * p2)
    right = (a * p1 + (1 - a) * p2) + (1 - a * p1 - (1 - a) * p2)
    return Claim(
        "Appendix A.2, (12)",
        "The inductive step of Proposition 2, by Lemma 1.",
        verdict(abs(right - 1) < 1e-15, CORRECTED),
        f"As printed, the two weights of the convex combination (12) add up to {printed:.2f} at α = 0.3, p₁ = 0.4, "
        "p₂ = 0.7; with 1 − αp₁ − (1 − α)p₂ they add up to 1, as the argument needs.",
    )


def base_case(seed: int) -> Claim:
    """Check the base case of the proof of Proposition 3."""
    worst, sign = 0.0, np.inf
    for size in (10, 100):
        for j in range(size + 1):
            p, discount = j / size, 0.99
            down, up = size * p / (size + 1), (size * p + 1) / (size + 1)
            if not down <= COST < up:
                continue
            direct = (
                (p - COST) * (1 + discount * p / (1 - discount))
                + discount * p * (1 - p) / ((1 - discount) * (size + 1))
                - (p - COST) / (1 - discount)
            )
            formula = discount * (1 - p) / (1 - discount) * (COST - p + p / (size + 1))
            worst, sign = max(worst, abs(direct - formula)), min(sign, formula)
    return Claim(
        "Appendix A.3",
        "The base case of Proposition 3: Ṽ(N, p̂) − Ṽ(N+1, p̂) = γ(1−p̂)/(1−γ) · (c − p̂ + p̂/(N+1)) ≥ 0.",
        verdict(worst < 1e-10 and sign >= -1e-12),
        f"Identity checked on the lattices of N = 10 and 100 at c = 0.8, γ = 0.99: largest difference {worst:.1g}, "
        f"least value {sign:.2g}.",
    )


def monotone_step(seed: int) -> Claim:
    """Check the monotonicity step of the proof of Proposition 2."""
    rng = np.random.default_rng(seed)
    identity, least, reach = 0.0, np.inf, 0.0
    for _ in range(500):
        value = _rising_convex(rng)
        n = float(rng.integers(1, 30))
        p1, p2 = sorted(rng.uniform(size=2))
        up1, down1, up2, down2 = (value(x / (n + 1)) for x in (n * p1 + 1, n * p1, n * p2 + 1, n * p2))
        first, second, third = (p2 - p1) * (up2 - down2), p1 * (up2 + down1 - down2 - up1), down2 - down1
        rise = p2 * up2 + (1 - p2) * down2 - p1 * up1 - (1 - p1) * down1
        identity = max(identity, abs(rise - first - second - third))
        least = min(least, first, second, third)
        # Lemma 1 at α = ½ needs f at x ± δ/2; the second bracket needs it at these four points.
        x, wide, narrow = (n * (p1 + p2) + 1) / (2 * (n + 1)), *half_chords(n, p1, p2)
        points = (n * p2 + 1, n * p1, n * p2, n * p1 + 1)
        meant = (x + wide / 2, x - wide / 2, x + narrow / 2, x - narrow / 2)
        reach = max(reach, *(abs(at - point / (n + 1)) for at, point in zip(meant, points, strict=True)))
    n, p1, p2 = 10, 0.4, 0.7
    x, wide = (n * (p1 + p2) + 1) / (2 * (n + 1)), half_chords(n, p1, p2)[0]
    near = half_chords(n, 0.4, 0.45)[1]
    return Claim(
        "Appendix A.2",
        "V̄(n, p₂) − V̄(n, p₁) is the sum of three brackets, none of them negative: V̄ does not fall in p̂.",
        verdict(identity < 1e-12 and least > -1e-12 and reach < 1e-12, CORRECTED),
        f"500 random rising convex functions in the place of V^N(n+1, ·), n up to 29, any p₁ ≤ p₂: the identity holds "
        f"to within {identity:.1g}, and the least bracket is {least:.2g}. But Lemma 1 with α = ½ asks f at x ± δ/2: at "
        f"n = 10, p₁ = 0.4, p₂ = 0.7 the printed δ₂ = (n(p₂ − p₁) + 1)/(2(n + 1)) reaches {x + wide / 4:.3f}, and the "
        f"second bracket needs {(n * p2 + 1) / (n + 1):.3f}.",
        "The δ needed are twice those printed: δ₁, δ₂ = (n(p₂ − p₁) ∓ 1)/(n + 1), which meet all four points of the "
        f"second bracket to within {reach:.1g}. Where p₂ − p₁ < 1/n, δ₁ is negative ({near:.3f} at n = 10, p₂ − p₁ = "
        "0.05), outside Lemma 1; with α = ½ the chord is symmetric in δ, and |δ₁| ≤ δ₂ saves the step.",
    )


def half_chords(n: float, p1: float, p2: float) -> tuple[float, float]:
    """Return δ₂ and δ₁ of the monotonicity step, as Lemma 1 with α = ½ needs them."""
    return (n * (p2 - p1) + 1) / (n + 1), (n * (p2 - p1) - 1) / (n + 1)


def convex_step(seed: int) -> Claim:
    """Check the convexity step of the proof of Proposition 2."""
    rng = np.random.default_rng(seed + 1)
    least_11, least_chain, shift = np.inf, np.inf, 0.0
    for _ in range(500):
        value = _rising_convex(rng)
        n = float(rng.integers(1, 30))
        p1, p2, a = rng.uniform(0.01, 0.99, size=3)

        def bar(p: float, n: float = n, value: Callable[[float], float] = value) -> float:
            return p * value((n * p + 1) / (n + 1)) + (1 - p) * value(n * p / (n + 1))

        mix = a * p1 + (1 - a) * p2
        left, right = a * bar(p1) + (1 - a) * bar(p2), bar(mix)
        square = (a * p1 * p1 + (1 - a) * p2 * p2) / mix
        spread = (a * (1 - p1) * p1 + (1 - a) * (1 - p2) * p2) / (1 - mix)
        up, down = (n * square + 1) / (n + 1), n * spread / (n + 1)
        middle = mix * value(up) + (1 - mix) * value(down)
        least_11 = min(least_11, left - right)
        least_chain = min(least_chain, left - middle, middle - right)
        shift = max(shift, abs(mix * up + (1 - mix) * down - mix))
    return Claim(
        "Appendix A.2, (11)–(13)",
        "V̄(n, ·) is convex: (11) by way of (12) ≥ (13), two mixtures of V^N(n+1, ·) with the same weights and mean.",
        verdict(least_11 > -1e-12 and least_chain > -1e-12 and shift < 1e-12),
        f"500 random convex functions, n, p₁, p₂ and α: the least excess in (11) is {least_11:.2g}, between the steps "
        f"(with the weights put right) {least_chain:.2g}; the mean of (12) differs from αp₁ + (1 − α)p₂ by at most "
        f"{shift:.1g}.",
    )


def inductive_step(seed: int) -> Claim:
    """Check the inductive step of the proof of Proposition 3."""
    rng = np.random.default_rng(seed)
    wrong, chain = 0, np.inf
    for _ in range(60):
        last, rate, discount = 40, float(rng.uniform()), float(rng.uniform(0.5, 0.97))
        n = int(rng.integers(2, last))
        earlier, here, later = (approximate(m, rate, last, 0.6, discount) for m in (n - 1, n, n + 1))
        wrong += earlier < here - 1e-12 or here < later - 1e-12
        spread = [
            rate * approximate(n + 1, rate + (1 - rate) / m, last, 0.6, discount)
            + (1 - rate) * approximate(n + 1, rate - rate / m, last, 0.6, discount)
            for m in (n, n + 1)
        ]
        chain = min(chain, spread[0] - spread[1])
    return Claim(
        "Appendix A.3",
        "The inductive step of Proposition 3: V^N(n−1, p̂) ≥ V^N(n, p̂), by Lemma 1 with δ = 1/n and 1/(n+1).",
        verdict(wrong == 0 and chain > -1e-12),
        f"60 random n < 40 = N, p̂ and γ at c = 0.6: no V^N(n, p̂) exceeds that of a smaller n, and the step that uses "
        f"the lemma rises by at least {chain:.2g}.",
    )


def _rising_convex(rng: np.random.Generator) -> Callable[[float], float]:
    """Draw a random rising convex function: the maximum of six rising lines."""
    slopes, heights = rng.exponential(size=6), rng.normal(size=6)
    return lambda x: float((slopes * x + heights).max())
