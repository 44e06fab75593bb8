"""Section 3.2: reward without discounting."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from lenience.analysis.evaluate import evaluate
from lenience.analysis.regret import regret_table
from lenience.core.belief import Belief
from lenience.core.protocols import Policy
from lenience.objectives.average_reward import AverageReward
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.paper.claim import CORRECTED, COST, FLAT, PRECISE, Claim, verdict
from lenience.policies.beliefs.constant import Constant
from lenience.policies.beliefs.greedy import Greedy
from lenience.policies.beliefs.thompson import Thompson
from lenience.simulation.compare import compare_policies
from lenience.simulation.worlds import Bernoulli


def average(seed: int) -> Claim:
    """Check Theorem 4: which policies maximise the average reward."""
    horizons = [100, 1000, 10_000]
    rows = regret_table(0.5, FLAT, horizons=horizons, schedules=["√H"])
    known = AverageReward(0.5).value(FLAT).midpoint
    per_head = {
        name: [row.value / row.horizon for row in rows if row.policy == name] for name in {r.policy for r in rows}
    }
    explore = per_head["explore √H"]
    always = per_head["always accept"][-1]
    stopping = Discounted(0.5, 0.99).solve(FLAT)
    stops = evaluate(stopping, FiniteHorizon(0.5, horizons[-1]), FLAT).midpoint / horizons[-1]
    return Claim(
        "3.2, (10), Theorem 4",
        "Policies that maximise average reward accept with positive probability in all belief states.",
        verdict(stops < per_head["optimal"][-1] < known and always < known / 2, CORRECTED),
        f"c = 0.5, Beta(1, 1): knowing p is worth {known:.4f} an individual; over 10⁴ the finite-horizon optimum earns "
        f"{per_head['optimal'][-1]:.4f}, a policy with a stopping set (the optimum at γ = 0.99) {stops:.4f}, and "
        "always "
        f"accepting {always:.4f}.",
        "For stationary policies the condition is necessary for learning p. It is not sufficient for the optimum: "
        "always accepting satisfies (10) and earns only p̂ − c. The optimum is reached by a policy that learns p, "
        "accepts a vanishing share where p is below c, and rejects a vanishing share where p is above c. Both shares "
        "must vanish: a policy that accepts with probability ½ where p̂ > c and 1/n below learns p and earns at most "
        "half. "
        f"Exploring √H, then exploiting, tends to the optimum: {', '.join(f'{v:.4f}' for v in explore)} at H = "
        "10², 10³, 10⁴.",
    )


def jensen(seed: int) -> Claim:
    """Check that the average value is convex and does not increase with n."""
    last = 1000
    value = np.maximum(np.arange(last + 2) / (last + 1) - COST, 0.0)
    rows: dict[int, NDArray[np.float64]] = {}
    bend, rise = np.inf, np.inf
    for n in range(last, 1, -1):
        p = np.arange(n + 1) / n
        value = p * value[1:] + (1 - p) * value[:-1]
        rows[n] = value
        bend = min(bend, float(np.diff(value, 2).min()))
        if 2 * n in rows:
            rise = min(rise, float((value - rows[2 * n][::2]).min()))
    exact = AverageReward(COST).value(FLAT).midpoint
    return Claim(
        "3.2, (10), Appendix A.4, (14)",
        "Under π > 0 the average value is V(n, p̂) = p̂ V(n+1, ·) + (1−p̂) V(n+1, ·): convex, and non-increasing in n.",
        verdict(bend > -1e-12 and rise > -1e-12 and abs(value[1] - exact) < 1e-3),
        f"At c = 0.8, from N = 1000 down to n = 2 no row bends the wrong way (least second difference {bend:.1g}), "
        "and no "
        "V(n, p̂) is "
        f"below V(2n, p̂) (least difference {rise:.1g}). V^N(2, ½) = "
        f"{value[1]:.6f}.",
        f"Its limit has a closed form, E[max(p − c, 0)] under the belief: {exact:.6f} here.",
    )


def two_phase(seed: int) -> Claim:
    """Compute the exact regret of exploring first and exploiting afterwards."""
    horizons = [100, 1000, 10_000]
    rows = regret_table(0.5, FLAT, horizons=horizons, schedules=["log²H", "√H", "H^(2/3)", "H/10"])
    by = {name: [row.regret for row in rows if row.policy == name] for name in dict.fromkeys(r.policy for r in rows)}
    best = min((values[-1], name) for name, values in by.items() if name.startswith("explore"))
    vanishing = by["explore √H"][-1] / 10_000 < by["explore √H"][0] / 100
    return Claim(
        "3.2, future work",
        "Explore with N₁ samples, sublinear in N, then exploit: analysis left to future work.",
        verdict(vanishing, PRECISE),
        "Exact regret against knowing p, c = 0.5, Beta(1, 1), at H = 10², 10³, 10⁴: "
        + "; ".join(f"{name} {', '.join(f'{v:.2f}' for v in values)}" for name, values in by.items())
        + ".",
        f"The best schedule of these at H = 10⁴ is “{best[1]}”; the finite-horizon optimum, which needs no "
        "phases, is better.",
    )


def to_go(seed: int) -> Claim:
    """Check the recursion of the average reward to go, by summing over all histories."""
    steps, worst = 6, 0.0
    policies: list[Policy] = [Thompson(0.6), Constant(0.5), Greedy(0.4)]
    for policy in policies:
        worst = max(worst, abs(_by_history(policy, steps) - _by_recursion(policy, FLAT.n, FLAT.s, steps, steps)))
    return Claim(
        "3.2, (9)",
        "The average reward to go, (9), satisfies the recursion that follows it.",
        verdict(worst < 1e-12),
        f"Three policies (Thompson at 0.6, ½ always, greedy at 0.4) from Beta(1, 1) over N = {steps} arrivals at c = "
        f"0.5: summed over all 3^{steps} histories of decisions and "
        f"outcomes, and by the recursion, the values differ by at most {worst:.1g}.",
        "For N → ∞ the recursion no longer determines V: (10) has many solutions, and which one is the value of a "
        "policy depends on what it does in the long run.",
    )


def known_average(seed: int) -> Claim:
    """Check the limit of the optimal average reward as n grows."""
    arrivals, sure = 1000, 1e5
    worst, half = 0.0, 0.0
    for p in (0.5, 0.75, 0.8, 0.85, 0.95):
        belief = Belief(sure, p * sure)
        total, rest = (FiniteHorizon(COST, left).enclose(belief, 1e-9)[0] for left in (arrivals, arrivals // 2))
        worst = max(worst, abs(total.midpoint / arrivals - max(p - COST, 0.0)))
        half = max(half, abs(rest.midpoint / arrivals - max(p - COST, 0.0) / 2))
    unsure = FiniteHorizon(COST, arrivals).enclose(Belief(10, 8.5), 1e-9)[0].midpoint / arrivals
    return Claim(
        "3.2, after (9)",
        "As n grows p̂ tends to p, and the optimal average reward is V_i*(∞, p̂) = max{p̂ − c, 0}.",
        verdict(worst < 1e-4 and half < 1e-4, CORRECTED),
        f"The optimum over N = {arrivals:,} arrivals from a belief of n = 10⁵ observations, divided by N, is within "
        f"{worst:.1g} of max{{p̂ − c, 0}} for p̂ = 0.5, 0.75, 0.8, 0.85, 0.95 and c = 0.8; at n = 10 and p̂ = 0.85 it is "
        f"{unsure:.4f} instead of 0.05, because there is still something to learn.",
        "By (9), whose sum begins at individual i and is divided by N, it is (1 − i/N) max{p̂ − c, 0}: the same for "
        f"every fixed i as N → ∞, but half of it at i = N/2 (here to within {half:.1g}).",
    )


def _by_history(policy: Policy, steps: int) -> float:
    """Sum the average reward over all histories of decisions and outcomes."""
    total = 0.0
    for history in product((None, 0, 1), repeat=steps):
        n, s, chance, reward = FLAT.n, FLAT.s, 1.0, 0.0
        for y in history:
            accept = float(policy.acceptance(n, s))
            if y is None:
                chance *= 1 - accept
            else:
                chance *= accept * (s / n if y else 1 - s / n)
                reward += y - 0.5
                n, s = n + 1, s + y
        total += chance * reward / steps
    return total


def _by_recursion(policy: Policy, n: float, s: float, left: int, steps: int) -> float:
    """Compute the average reward by the paper's recursion."""
    if left == 0:
        return 0.0
    pi, p = float(policy.acceptance(n, s)), s / n
    value = pi * (p - 0.5) / steps + (1 - pi) * _by_recursion(policy, n, s, left - 1, steps)
    if pi > 0:
        value += pi * p * _by_recursion(policy, n + 1, s + 1, left - 1, steps)
        value += pi * (1 - p) * _by_recursion(policy, n + 1, s, left - 1, steps)
    return value


def indistinct(seed: int) -> Claim:
    """Check whether the average reward distinguishes policies with constant acceptance."""
    horizon, prior = 400, Belief(10, 8)
    earned = {pi: evaluate(Constant(pi), FiniteHorizon(0.5, horizon), prior).midpoint / horizon for pi in (1.0, 0.5)}
    simulation = compare_policies(
        Constant(0.25), Bernoulli(0.8), cost=0.5, horizon=400, replications=500, seed=seed, optimum=False
    )
    accepted = simulation.values(simulation.policies[0], "accepted") / simulation.horizon
    half = 3.29 * accepted.std(ddof=1) / np.sqrt(accepted.size)
    return Claim(
        "3.2",
        "Theorem 4 does not distinguish Π ≡ 1 from Π ≡ π in (0, 1), which stays in a state for a geometric time.",
        verdict(abs(accepted.mean() - 0.25) <= half and earned[0.5] < earned[1.0], CORRECTED),
        f"π = ¼ accepts {accepted.mean():.4f} ± {half:.4f} of 400 arrivals, 500 times (99.9%), a mean wait of 1/π. "
        "But the objective (2) "
        f"does distinguish: from Beta(8, 2) at c = 0.5 the average reward over {horizon:,} arrivals is "
        f"{earned[1.0]:.4f} for Π ≡ 1 and {earned[0.5]:.4f} for Π ≡ ½.",
        "A fixed π earns π(p̂ − c) an arrival in the long run; only policies that in the end accept all or none by "
        "the sign of p − c earn E max(p − c, 0).",
    )
