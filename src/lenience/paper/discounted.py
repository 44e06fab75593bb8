"""Section 3.1: the belief, the recursion, the threshold policy and its stopping set."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lenience.analysis.characteristics import characteristics
from lenience.analysis.evaluate import evaluate
from lenience.core.belief import Belief
from lenience.core.protocols import Policy
from lenience.objectives.discounted import Discounted
from lenience.paper.claim import (
    CONFIDENCE,
    CORRECTED,
    COST,
    DISCOUNTS,
    FLAT,
    PRECISE,
    ROUNDING,
    Claim,
    difference,
    verdict,
)
from lenience.policies.beliefs.constant import Constant
from lenience.policies.beliefs.epsilon_greedy import EpsilonGreedy
from lenience.policies.beliefs.greedy import Greedy
from lenience.policies.beliefs.thompson import Thompson
from lenience.policies.registry import policy_from_json
from lenience.simulation.compare import compare_policies
from lenience.simulation.worlds import FromPrior
from lenience.solvers.stopping.gittins_index import gittins_index


def known_p(seed: int) -> Claim:
    """Check the optimum for a known success probability, equation (3) of the paper.

    Parameters
    ----------
    seed : int
        Not used: this check draws no random numbers. All checks take a seed.

    Returns
    -------
    Claim
        What the paper says, and whether it holds.

    Examples
    --------
    >>> known_p(0).verdict
    'holds'
    """
    worst = 0.0
    for p in (0.5, 0.8, 0.9, 1.0):
        for discount in DISCOUNTS:
            total = sum(discount**i * max(p - COST, 0.0) for i in range(6000))
            worst = max(worst, abs(total - max(p - COST, 0.0) / (1 - discount)))
    return Claim(
        "3.1, (3)",
        "With p known, accept iff p > c; the value is max{p − c, 0}/(1 − γ).",
        verdict(worst < 1e-9),
        f"Summing 6,000 terms for p = 0.5, 0.8, 0.9, 1 at c = 0.8, γ = 0.99 and 0.95 gives the closed form to within "
        f"{worst:.1g}.",
    )


def belief_state(seed: int) -> Claim:
    """Check that the belief stays beta, by Bayes' rule on a grid."""
    grid = np.linspace(0, 1, 200_001)[1:-1]
    prior = Belief(3, 1.5)
    outcomes = [1, 0, 0, 1, 1, 1, 0]
    density = grid ** (prior.alpha - 1) * (1 - grid) ** (prior.beta - 1)
    for y in outcomes:
        density = density * (grid if y else 1 - grid)
    mean = float((density * grid).sum() / density.sum())
    belief = prior.observe([bool(y) for y in outcomes])
    return Claim(
        "3.1, (4)–(5)",
        "The belief stays beta: an outcome moves (n, s) to (n + 1, s + y), a rejection leaves it.",
        verdict(abs(mean - belief.mean) < 1e-6),
        f"Bayes' rule on a grid of 200,000 points from Beta(1.5, 1.5) after 7 outcomes: mean {mean:.8f}; the counts "
        "give "
        f"{belief.mean:.8f}.",
        "n and s need not be whole numbers: Beta(½, ½) is (1, ½).",
    )


def any_policy(seed: int) -> Claim:
    """Check the recursion for the value of any policy, by simulation."""
    policies: list[Policy] = [Thompson(COST), EpsilonGreedy(COST, 0.05), Greedy(COST)]
    prior = Belief(6, 5)
    problem = Discounted(COST, 0.95)
    simulation = compare_policies(
        policies, FromPrior(prior), cost=COST, discount=0.95, horizon=500, replications=8000, seed=seed, optimum=False
    )
    parts, true = [], True
    for name, policy in zip(simulation.policies, policies, strict=True):
        exact = evaluate(policy, problem, prior).midpoint
        simulated = simulation.estimate(name, "expected", CONFIDENCE)
        true = true and exact in simulated
        parts.append(f"{name}: {exact:.4f} (simulated {simulated})")
    return Claim(
        "3.1, (6)",
        "The value of any policy, stochastic too, satisfies V^Π = π/(1−γ+γπ) · (p̂ − c + γ[p̂ V^Π + (1−p̂) V^Π]).",
        verdict(true),
        "Computed by the recursion and by simulating 500 arrivals one by one, 8,000 times, from Beta(5, 1), c = 0.8, "
        "γ = 0.95 (intervals at 99.9%): "
        f"{'; '.join(parts)}.",
        "The recursion runs from both ends, so the value of any policy is known to proved bounds.",
    )


def value_at_prior(policy: Policy) -> float:
    """Return the exact value of a policy from Beta(1, 1) at c = 0.8, γ = 0.99."""
    return _value_once(policy.to_json())


@lru_cache(maxsize=16)
def _value_once(text: str) -> float:
    """Compute the value of a policy once; policies are compared by their JSON text."""
    policy = policy_from_json(text)
    return evaluate(policy, Discounted(COST, 0.99), FLAT, 1e-6).upper


def theorem_one(seed: int) -> Claim:
    """Check Theorem 1: no randomised decision beats the threshold policy."""
    problem = Discounted(COST, 0.99)
    shares = np.linspace(0, 1, 101)
    inside = 0
    for n, s in ((2, 1), (10, 7), (10, 6), (100, 77), (100, 78), (40, 35)):
        go = problem.enclose(Belief(n, s), 1e-9)[1].midpoint
        values = shares / (1 - 0.99 + 0.99 * shares) * go
        inside += int(0 < np.argmax(values) < 100)
    optimum = problem.enclose(FLAT, 1e-9)[0]
    others: list[Policy] = [Greedy(COST), Thompson(COST), EpsilonGreedy(COST, 0.02), Constant(1.0), Constant(0.1)]
    best = max(value_at_prior(other) for other in others)
    return Claim(
        "3.1, (7), Theorem 1",
        "The optimal policy is a threshold policy, Π* = 1(Ṽ > 0): no randomisation is needed.",
        verdict(inside == 0 and best < optimum.lower),
        "At c = 0.8, γ = 0.99 and 6 beliefs on both sides of the threshold, none of 99 probabilities strictly "
        "between 0 and 1 is best. The "
        f"optimum is worth {optimum} from Beta(1, 1); the best of five other policies {best:.4f}.",
        "Where the two-sided enclosure of Ṽ has one sign the decision is proved, rounding included.",
    )


def bellman(seed: int) -> Claim:
    """Check the Bellman equation at random beliefs."""
    problem = Discounted(COST, 0.99)
    worst = 0.0
    rng = np.random.default_rng(seed)
    for _ in range(12):
        n = float(rng.uniform(1, 60))
        s = float(n * rng.uniform(0.5, 0.99))
        here = problem.enclose(Belief(n, s), 1e-10)[0].midpoint
        up = problem.enclose(Belief(n + 1, s + 1), 1e-10)[0].midpoint
        down = problem.enclose(Belief(n + 1, s), 1e-10)[0].midpoint
        p = s / n
        worst = max(worst, abs(here - max(p - COST + 0.99 * (p * up + (1 - p) * down), 0.0)))
    return Claim(
        "3.1, (8)",
        "V* = max{p̂ − c + γ[p̂ V*(n+1, ·) + (1−p̂) V*(n+1, ·)], 0}.",
        verdict(worst < 1e-8),
        "At c = 0.8, γ = 0.99 and 12 random real (n, s), three separate solves each: the equation holds to within "
        f"{worst:.1g}.",
    )


def stopping(seed: int) -> Claim:
    """Check that every stop lies at or below the cost, and how often the policy stops."""
    policy = Discounted(COST, 0.99).solve(FLAT, rows=2000)
    rates = [float(policy.prior.s + least - 1) / (policy.prior.n + k) for k, least in enumerate(policy.accept_from)]
    stopped = characteristics(policy, p=0.7)
    return Claim(
        "3.1",
        "The problem is one of optimal stopping: a rejection freezes the state, with zero reward from then on.",
        verdict(max(rates) <= COST and stopped.stops.upper <= 1.0),
        "On 2,000 rows of the lattice from Beta(1, 1) at c = 0.8, γ = 0.99 every stop lies at p̂ ≤ c. At p = 0.7 "
        "the policy stops with probability "
        f"{stopped.stops.midpoint:.6f} after {stopped.accepted.midpoint:.3f} acceptances on average.",
        f"Bad luck is final, too: at p = 0.9 > c a population is shut out for good with probability "
        f"{_shut_out(0.9):.4f}, exactly computed by a forward recursion.",
    )


def _shut_out(p: float) -> float:
    """Return the probability that the optimum stops for good at p > c."""
    shut_out = characteristics(Discounted(COST, 0.99).solve(FLAT), p=p).shut_out
    assert shut_out is not None
    return shut_out.midpoint


def infinite_sample(seed: int) -> Claim:
    """Check the limit of the value as n grows."""
    gaps, shown = [], []
    for n in (10, 100, 1000, 10_000):
        value = Discounted(COST, 0.99).enclose(Belief(n, 0.85 * n), 1e-9)[0]
        gaps.append(value.midpoint - 0.05 / 0.01)
        shown.append(difference(gaps[-1], value.width))
    return Claim(
        "3.1",
        "As n grows, V*(n, p̂) tends to V*(∞, p̂) and the policy to 1(p̂ > c).",
        verdict(gaps == sorted(gaps, reverse=True) and gaps[-1] < 1e-3 and gaps[-1] > -ROUNDING),
        "V*(n, 0.85) − V*(∞, 0.85) at c = 0.8, γ = 0.99 is " + ", ".join(shown) + " for n = 10, 10², 10³, 10⁴.",
        "The threshold approaches c like B/n: n (c − c_n) → B(c, γ), which is 2.618 at c = 0.8, γ = 0.99.",
    )


def bandit(seed: int) -> Claim:
    """Check that comparing the Gittins index with the cost makes the same decisions."""
    discount, disagree, count = 0.95, 0, 0
    for n in (1.0, 2.0, 5.0, 12.5):
        for rate in (0.2, 0.5, 0.7, 0.9):
            belief = Belief(n, n * rate)
            index = gittins_index(belief, discount, tolerance=1e-8)
            for cost in (0.4, 0.6, 0.8):
                if not index.lower <= cost <= index.upper:
                    count += 1
                    disagree += Discounted(cost, discount).solve(belief, rows=1).accepts(belief) != (index.lower > cost)
    flat = gittins_index(FLAT, discount)
    return Claim(
        "3.1, and 1",
        "The problem can be seen as a special kind of two-armed bandit, whose reject arm earns zero.",
        verdict(disagree == 0, PRECISE),
        f"At γ = 0.95, “accept iff the Gittins index exceeds c” and the recursion (8) agree in all {count} of {count} "
        "pairs of 16 beliefs (n = 1, 2, 5, 12.5; p̂ = 0.2, 0.5, 0.7, 0.9) and 3 costs (0.4, 0.6, 0.8). The index of "
        f"Beta(1, 1) is {flat.midpoint:.8f}.",
        "So one number for a belief serves every cost; the index is the c at which Ṽ = 0, and it is enclosed.",
    )


def past_outcomes(seed: int) -> Claim:
    """Check whether counts of past outcomes can serve as the prior."""
    cost, failures = 0.3, 3
    counts, with_prior = Belief(failures, 0), FLAT.observe([False] * failures)
    problem = Discounted(cost, 0.99)
    alone, together = problem.enclose(counts, 1e-9)[0].midpoint, problem.enclose(with_prior, 1e-9)[0].midpoint
    return Claim(
        "3.1",
        "With past data, n₀ can be the number of outcomes observed and s₀ the number of successes.",
        verdict(alone == 0 and together > 0, CORRECTED),
        f"After three failures the counts alone, (3, 0), are certain that p = 0 and worth {alone:.4f} for ever; from "
        f"Beta(1, 1) the belief is (5, 1), worth {together:.4f} at c = 0.3, γ = 0.99.",
        "Counts are to be added to a prior. And they are outcomes of those whom the past accepted: by segment they "
        "inform, pooled over segments they mislead about everyone whom the past rejected.",
    )


def one_step(seed: int) -> Claim:
    """Check the one-step equation before (6), by iterating it."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(100):
        pi, discount, p, c = rng.uniform(0.01, 1), rng.uniform(0.1, 0.97), rng.uniform(), rng.uniform()
        up, down = rng.uniform(0, 5, size=2)
        after = p * up + (1 - p) * down
        value = 0.0
        for _ in range(1200):
            value = pi * (p - c) + discount * (pi * after + (1 - pi) * value)
        worst = max(worst, abs(value - pi / (1 - discount + discount * pi) * (p - c + discount * after)))
    return Claim(
        "3.1, before (6)",
        "V^Π = π(p̂ − c) + γ[πp̂ V^Π(n+1, s+1) + π(1−p̂) V^Π(n+1, s) + (1−π) V^Π], and solving it for V^Π gives (6).",
        verdict(worst < 1e-9),
        f"Iterating the equation to its fixed point for 100 random π, γ, p̂, c and later values gives the closed form "
        f"to within {worst:.1g}.",
    )
