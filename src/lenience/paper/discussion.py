"""Section 4: what the paper discusses, and the next steps it names."""

from __future__ import annotations

import time

import numpy as np

from lenience.analysis.acceptance_by_arrival import acceptance_by_arrival
from lenience.analysis.fairness import cost_of_floor, segment_fates
from lenience.core.belief import Belief
from lenience.core.protocols import Policy
from lenience.data.fico import load_fico
from lenience.models.curve import Curve
from lenience.models.protocol import beliefs
from lenience.objectives.discounted import Discounted
from lenience.paper.claim import CONFIDENCE, COST, FLAT, PRECISE, Claim, N, verdict
from lenience.paper.discounted import value_at_prior
from lenience.policies.beliefs.epsilon_greedy import EpsilonGreedy
from lenience.policies.beliefs.thompson import Thompson
from lenience.segments.segments import Segments
from lenience.simulation.result import Estimate
from lenience.solvers.stopping.paper_values import paper_values


def speed(seed: int) -> Claim:
    """Measure how long the full recursion takes."""
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
        f"Here, now, c = 0.8, γ = 0.99: {1e3 * full:.1f} ms for the plain recursion from both sides; "
        f"{1e3 * banded:.2f} ms for 1,000 "
        "rows proved "
        "to 1e-9 with the band of states that matter.",
    )


def exploration(seed: int) -> Claim:
    """Compare the optimum with policies that explore at random."""
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
    """Compute how acceptance falls with the order of arrival."""
    policy = Discounted(COST, 0.99).solve(FLAT)
    by_rate = {p: acceptance_by_arrival(policy, 500, p) for p in (0.7, 0.9)}
    average = acceptance_by_arrival(policy, 500)
    falling = all(bool(np.all(np.diff(each.acceptance) <= 1e-12)) for each in (*by_rate.values(), average))
    return Claim(
        "4",
        "“Sequence unfairness”: early arrivals meet a more lenient policy, enjoying the benefit of the doubt.",
        verdict(falling and average.gap > 0, PRECISE),
        "Exact acceptance of the 1st, 10th, 100th and 500th arrival at c = 0.8, γ = 0.99, from Beta(1, 1): "
        + "; ".join(
            f"p = {p}: " + ", ".join(f"{each.acceptance[i]:.3f}" for i in (0, 9, 99, 499))
            for p, each in by_rate.items()
        )
        + ".",
        "Where p > c the loss to those who come late is what bad luck costs them; where p < c the gift to those "
        "who come "
        "early is what learning costs the lender.",
    )


def confidence(seed: int) -> Claim:
    """Check that the value falls with n where the mean is below the cost."""
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
    """Compare two groups that differ in size alone."""
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
        "Two groups alike in everything (p = 0.9 > c = 0.8, Beta(1, 1)) but size, 95% and 5% of the arrivals at "
        f"γ = 0.999: the large one is shut out for good with probability {large.shut_out:.3f}, the small one with "
        f"{small.shut_out:.3f}; exact, at each group's own discount factor.",
        "The smaller group has fewer to repay the cost of learning: the optimum is unfair by size. A floor of 5% on "
        f"its acceptance, under which it is never shut out for good, costs {floor:.3f} of the whole value, also exact.",
    )


def borrowed(seed: int) -> Claim:
    """Check that a model of the score improves beliefs where there are no labels."""
    rng = np.random.default_rng(seed)
    cells = load_fico().cells(10)
    truth, scores = np.array([cell.p for cell in cells]), np.array([cell.score for cell in cells])
    known = scores >= np.quantile(scores, 0.6)  # in the past only high scores were accepted
    labels = np.where(known, 30.0, 0.0)
    curve = Curve(scores.tolist(), [cell.group for cell in cells])
    # The curve is wrong on a few random pasts, and the claim is about pasts in general: draw many.
    pasts, sizes = 300, []
    error = {name: np.empty(pasts) for name in ("curve", "flat", "pooled")}
    for i in range(pasts):
        successes = np.where(known, rng.binomial(30, truth), 0.0)
        unseen = [belief for belief, seen in zip(beliefs(curve, labels, successes), known, strict=True) if not seen]
        sizes += [belief.n for belief in unseen]
        means = {"curve": [belief.mean for belief in unseen], "flat": 0.5, "pooled": successes.sum() / labels.sum()}
        for name, mean in means.items():
            error[name][i] = np.abs(np.asarray(mean) - truth[~known]).mean()
    better = {name: Estimate.of_mean(error[name] - error["curve"], CONFIDENCE) for name in ("flat", "pooled")}
    lost = {name: int((error[name] < error["curve"]).sum()) for name in better}
    return Claim(
        "4, future work",
        "Where (x, a) has many values, combine Π*(n, p̂) with models of how n and p̂ vary with (x, a).",
        verdict(min(each.lower for each in better.values()) > 0, PRECISE),
        f"Four groups × ten score bands with the Federal Reserve's rates, 30 labels in each cell of the upper scores, "
        f"none in the {int((~known).sum())} others, {pasts} such pasts drawn. In the cells without labels a curve in "
        f"the score errs by {Estimate.of_mean(error['curve'], CONFIDENCE)} on average and says how sure it is (n from "
        f"{min(sizes):.1f} to {max(sizes):.1f}); a flat prior errs by {error['flat'].mean():.3f}, the pooled rate of "
        f"the past by {error['pooled'].mean():.3f}. The curve errs by {better['flat']} less than the flat prior "
        f"(99.9%), though by more on {lost['flat']} of the {pasts} pasts, and by more than the pooled rate on "
        f"{lost['pooled']} of them.",
        "With features that never repeat, any classifier with a predictive variance takes the curve's place, at a "
        "discount factor of x's own.",
    )
