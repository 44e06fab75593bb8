"""Sections 1 and 2: the problem, its two utilities, and how it decomposes."""

from __future__ import annotations

import numpy as np

from lenience.analysis.evaluate import evaluate
from lenience.core.bounds import Bounds
from lenience.objectives.discounted import Discounted
from lenience.paper.claim import CONFIDENCE, CORRECTED, COST, FLAT, PRECISE, Claim, verdict
from lenience.policies.beliefs.constant import Constant
from lenience.policies.beliefs.greedy import Greedy
from lenience.policies.beliefs.thompson import Thompson
from lenience.simulation.compare import compare_policies
from lenience.simulation.worlds import Bernoulli, Mixture


def deterministic(seed: int) -> Claim:
    """Check that the greedy policy never starts and never learns."""
    greedy = evaluate(Greedy(COST), Discounted(COST, 0.99), FLAT)
    return Claim(
        "1",
        "An existing deterministic policy may condemn future policies to suboptimality (Kilbertus et al. 2020).",
        verdict(greedy.upper < 1e-9),
        "Greedy from Beta(1, 1) at c = 0.8, γ = 0.99 accepts no one and learns nothing, ever: its value is "
        f"{_plain(greedy)}, though "
        "P(p > c) = 0.2.",
        "The deterministic optimum does learn: it gives the benefit of the doubt where the paper's recursion says so.",
    )


def _plain(bounds: Bounds) -> str:
    """Format the midpoint of bounds, without a negative zero."""
    return f"{bounds.midpoint:.4f}".replace("-0.0000", "0.0000")


def utility(seed: int) -> Claim:
    """Check by simulation that outcomes and their probabilities give the same utility."""
    world = Mixture(shares=[0.6, 0.4], rates=[0.85, 0.7])
    simulation = compare_policies(
        Thompson(COST), world, cost=COST, discount=0.99, horizon=400, replications=2000, seed=seed, optimum=False
    )
    name = simulation.policies[0]
    gap = simulation.values(name, "discounted") - simulation.values(name, "expected")
    half = 3.29 * gap.std(ddof=1) / np.sqrt(gap.size)
    return Claim(
        "2, (1)",
        "Discounted utility is the same with outcomes y and with their conditional probabilities p(y = 1 | x, a).",
        verdict(abs(gap.mean()) <= half),
        f"Two segments (shares 0.6 and 0.4, rates 0.85 and 0.7), c = 0.8, γ = 0.99, Thompson sampling from Beta(1, 1), "
        f"2,000 simulated runs of 400 arrivals: the two sides differ by {gap.mean():.4f} ± {half:.4f} (99.9%).",
        "The simulator reports both; the right-hand side is the less noisy estimate.",
    )


def average_utility(seed: int) -> Claim:
    """Check the average reward of a constant policy by simulation."""
    simulation = compare_policies(
        Constant(0.5), Bernoulli(0.85), cost=COST, horizon=20_000, replications=500, seed=seed, optimum=False
    )
    name = simulation.policies[0]
    per_head = simulation.values(name, "reward") / simulation.horizon
    half = 3.29 * per_head.std(ddof=1) / np.sqrt(per_head.size)
    return Claim(
        "2, (2)",
        "The undiscounted average reward is E[π (p − c)].",
        verdict(abs(per_head.mean() - 0.5 * 0.05) <= half),
        f"π = ½, p = 0.85, c = 0.8 over 20,000 arrivals, 500 times: {per_head.mean():.5f} ± {half:.5f} (99.9%); π "
        "(p − c) = 0.025.",
    )


def decomposition(seed: int) -> Claim:
    """Check that the problem decomposes over segments, each with its own discount factor."""
    shares, discount = (0.7, 0.2, 0.1), 0.98
    world = Mixture(shares=shares, prior=FLAT)
    exact = 0.0
    for q in shares:
        own = discount * q / (1 - discount + discount * q)
        exact += q / (1 - discount + discount * q) * Discounted(0.5, own).enclose(FLAT, 1e-9)[0].midpoint
    naive = Discounted(0.5, discount).solve(FLAT)
    simulation = compare_policies(
        {"one γ for all": [naive] * 3}, world, cost=0.5, discount=discount, horizon=900, replications=2000, seed=seed
    )
    own_value = simulation.estimate("optimum", "expected", CONFIDENCE)
    lost = simulation.behind("one γ for all", CONFIDENCE)
    return Claim(
        "2, and 4",
        "The problem decomposes over values of (x, a): run one optimal homogeneous policy for each, in parallel.",
        verdict(exact in own_value, CORRECTED),
        f"Three segments with shares 0.7, 0.2, 0.1, each Beta(1, 1), at c = 0.5, γ = {discount}: the sum of the "
        "segments' "
        f"own optima is {exact:.4f}; simulated together over 900 arrivals, 2,000 times, they earn {own_value} "
        "(99.9%).",
        "Each segment x with share q needs its own discount factor γ_x = γq/(1 − γ + γq), since its next member comes "
        f"later. Using γ = {discount} for all loses {lost}.",
    )


def rejection_cost(seed: int) -> Claim:
    """Check that a constant reward of rejection only raises the cost."""
    # The plain recursion, where each rejection earns a constant g. A rejection repeats for ever.
    cost, discount, g, last = 0.5, 0.95, 0.15, 600
    stop = g / (1 - discount)
    mean = np.arange(last + 2) / (last + 1)
    value = np.maximum((mean - cost) / (1 - discount), stop)
    for n in range(last, 1, -1):
        p = np.arange(n + 1) / n
        value = np.maximum(p - cost + discount * (p * value[1:] + (1 - p) * value[:-1]), stop)
    shifted = Discounted(cost + g, discount).enclose(FLAT, 1e-10)[0].midpoint + stop
    return Claim(
        "2",
        "A constant reward g of rejection can be set to zero without loss of generality.",
        verdict(abs(value[1] - shifted) < 1e-8, PRECISE),
        f"c = 0.5, γ = 0.95, g = 0.15 from Beta(1, 1): the recursion with g gives {value[1]:.8f}; cost c + g without "
        f"g, plus g/(1 − γ), gives {shifted:.8f}.",
        "t(y − c) + (1 − t)g = t(y − (c + g)) + g: setting g to zero means raising the cost by g.",
    )
