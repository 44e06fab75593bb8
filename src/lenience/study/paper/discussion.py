"""Section 4: what the paper discusses, and the next steps it names."""

from __future__ import annotations

import time

import numpy as np

from lenience.belief import Belief
from lenience.data.fico import load_fico
from lenience.model.curve import Curve
from lenience.model.protocol import beliefs
from lenience.objective.discounted import Discounted
from lenience.policy.epsilon_greedy import EpsilonGreedy
from lenience.policy.protocol import Policy
from lenience.policy.thompson import Thompson
from lenience.segments.segment import Segments
from lenience.solver.paper import paper_values
from lenience.study.fairness import cost_of_floor, segment_fates
from lenience.study.paper.claim import COST, FLAT, PRECISE, Claim, N, verdict
from lenience.study.paper.discounted import value_at_prior
from lenience.study.sequence import acceptance_by_arrival


def speed(seed: int) -> Claim:
    paper_values(COST, 0.99, [10], 10)  # compile
    start = time.perf_counter()
    paper_values(COST, 0.99, [10], N)
    full = time.perf_counter() - start
    Discounted(COST, 0.99).solve(FLAT, rows=10)
    start = time.perf_counter()
    Discounted(COST, 0.99).solve(FLAT, rows=N)
    banded = time.perf_counter() - start
    return Claim(
        "4",
        "The full recursion from N = 1000 takes less than a second.",
        verdict(full < 1.0),
        f"Here, now: {1e3 * full:.1f} ms for the plain recursion from both sides; {1e3 * banded:.2f} ms for 1,000 "
        "rows proved "
        "to 1e-9 with the band of states that matter.",
    )


def exploration(seed: int) -> Claim:
    problem = Discounted(COST, 0.99)
    optimum = problem.enclose(FLAT, 1e-9)[0].midpoint
    policies: dict[str, Policy] = {"Thompson": Thompson(COST), "ε = 0.02": EpsilonGreedy(COST, 0.02)}
    values = {name: value_at_prior(policy) for name, policy in policies.items()}
    return Claim(
        "4",
        "Stochastic exploration may take longer to converge, and is not needed.",
        verdict(all(value < optimum for value in values.values())),
        f"Exact values from Beta(1, 1), c = 0.8, γ = 0.99: optimum {optimum:.4f}, "
        + ", ".join(f"{name} {value:.4f}" for name, value in values.items())
        + ".",
    )


def sequence(seed: int) -> Claim:
    policy = Discounted(COST, 0.99).solve(FLAT)
    found = {p: acceptance_by_arrival(policy, 500, p) for p in (0.7, 0.9)}
    average = acceptance_by_arrival(policy, 500)
    falling = all(bool(np.all(np.diff(each.acceptance) <= 1e-12)) for each in (*found.values(), average))
    return Claim(
        "4",
        "“Sequence unfairness”: early arrivals meet a more lenient policy, enjoying the benefit of the doubt.",
        verdict(falling and average.gap > 0, PRECISE),
        "Exact acceptance of the 1st, 10th, 100th and 500th arrival: "
        + "; ".join(
            f"p = {p}: " + ", ".join(f"{each.acceptance[i]:.3f}" for i in (0, 9, 99, 499)) for p, each in found.items()
        )
        + ".",
        "Where p > c the loss to those who come late is what bad luck costs them; where p < c the gift to those "
        "who come "
        "early is what learning costs the lender.",
    )


def confidence(seed: int) -> Claim:
    problem = Discounted(COST, 0.99)
    values = [problem.enclose(Belief(n, 0.75 * n), 1e-9)[0].midpoint for n in (4, 20, 100, 500)]
    falling = values == sorted(values, reverse=True)
    return Claim(
        "4, future work",
        "The sample size n represents a kind of confidence in p̂; a model of confidence could take its place.",
        verdict(falling, PRECISE),
        "At p̂ = 0.75 < c = 0.8 and γ = 0.99 the value is "
        + ", ".join(f"{value:.3f}" for value in values)
        + " for n = 4, 20, 100, 500: the surer one is, the less the doubt is worth.",
        "A predictive mean p̂(x) and variance v(x) give n(x) = p̂(1 − p̂)/v − 1, the size of the beta belief "
        "with these moments.",
    )


def groups(seed: int) -> Claim:
    shares = {"large": 0.95, "small": 0.05}
    cells = Segments.of(shares, Discounted(COST, 0.999), FLAT, {name: name for name in shares})
    policies = cells.solve()
    fates = {fate.name: fate for fate in segment_fates(policies, {"large": 0.9, "small": 0.9}, rows=1500)}
    large, small = fates["large"], fates["small"]
    assert large.shut_out is not None
    assert small.shut_out is not None
    floor = cost_of_floor(policies, {"small": 0.05}, tolerance=1e-5)[0].cost.midpoint
    return Claim(
        "4, and 2, future work",
        "Discrete groups carry the homogeneous policy over directly and let group fairness be studied.",
        verdict(small.shut_out > large.shut_out, PRECISE),
        "Two groups alike in everything (p = 0.9 > c = 0.8, Beta(1, 1)) but size, 95 % and 5 % of the arrivals at "
        f"γ = 0.999: the large one is shut out for good with probability {large.shut_out:.3f}, the small one with "
        f"{small.shut_out:.3f}; exact, at each group's own discount factor.",
        "The smaller group has fewer to repay the cost of learning: the optimum is unfair by size. A floor of 5 % on "
        f"its acceptance, under which it is never shut out for good, costs {floor:.3f} of the whole value, also exact.",
    )


def borrowed(seed: int) -> Claim:
    rng = np.random.default_rng(seed)
    cells = load_fico().cells(10)
    truth, scores = np.array([cell.p for cell in cells]), np.array([cell.score for cell in cells])
    known = scores >= np.quantile(scores, 0.6)  # the past accepted high scores only
    labels = np.where(known, 30.0, 0.0)
    successes = np.where(known, rng.binomial(30, truth), 0.0)
    found = beliefs(Curve(scores.tolist(), [cell.group for cell in cells]), labels, successes)
    pooled = successes.sum() / labels.sum()
    unseen = ~known
    sizes = [belief.n for belief, new in zip(found, unseen, strict=True) if new]
    error = {
        "curve": float(np.abs(np.array([belief.mean for belief in found]) - truth)[unseen].mean()),
        "flat": float(np.abs(0.5 - truth)[unseen].mean()),
        "pooled": float(np.abs(pooled - truth)[unseen].mean()),
    }
    return Claim(
        "4, future work",
        "Where (x, a) has many values, combine Π*(n, p̂) with models of how n and p̂ vary with (x, a).",
        verdict(error["curve"] < min(error["flat"], error["pooled"]), PRECISE),
        f"Four groups × ten score bands with the Federal Reserve's rates, 30 labels in each cell of the upper scores, "
        f"none in the {int(unseen.sum())} others. There a curve in the score errs by {error['curve']:.3f} on "
        f"average and says how sure it is (n from {min(sizes):.1f} to {max(sizes):.1f}); a flat prior errs by "
        f"{error['flat']:.3f}, the pooled rate of the past by {error['pooled']:.3f}.",
        "With features that never repeat, any classifier with a predictive variance takes the curve's place, at a "
        "discount factor of x's own.",
    )
