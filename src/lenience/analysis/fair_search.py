"""The search for a fair optimum: shifted costs by column generation, with a proof from both sides.

The model. Segment x is a share q_x of the arrivals and has the own discount γ_x; a_x is at stake. A policy accepts
until it stops after T acceptances (:mod:`lenience.solvers.stopping.stopping_time`). In units of the whole it earns

    U_x = w_x a_x/(1 − γ_x) · (p̂ − c + c M₀ − M₁),     M₀ = E γ_x^T,  M₁ = E γ_x^T p̂_T,     w_x/(1 − γ_x) = q_x/(1 − γ),

and its rate r_x is 1 − M₀ (acceptance) or 1 − M₁/p̂ (opportunity, the same over those who would succeed). A group's
rate is A_g = Σ_x k_gx r_x: the mean over its members, with k_gx ∝ q_x m_xg (or q_x m_xg p̂_x) and m_xg the group's share
of the segment. So the constraint H A + hℓ ≤ b is linear in what the segments' policies do.

Upper bound. For every y ≥ 0 and every policy that keeps the constraint, U ≤ U − yᵀ(H A + hℓ − b). Without the
constraint, the right side is maximal segment by segment, at a shifted cost. With σ_x = −Σ_g (Hᵀy)_g k_gx and
ν = σ_x (1 − γ_x)/(w_x a_x), the reward of an acceptance is y − (c − ν) for acceptance, and y(1 + ν/p̂) − c for
opportunity, which is the cost c/(1 + ν/p̂) at the scale 1 + ν/p̂. The solver encloses these optima. So

    D(y) = Σ_x w_x a_x scale_x V_x(shifted cost) + constants + yᵀb + |hᵀy|

is proved to be at least the optimum. D is convex.

Lower bound. The policies that were met are columns of a linear program: mix those of each segment so that U is largest
and the constraint holds. Its solution is a policy (draw one of the mixture at the start), and its multipliers y are the
next to try. Both bounds meet, because the policies at the best y are optimal for the Lagrangian; where they disagree
with the constraint there is a tie, and the mixture resolves it. The linear program mixes at most as many segments as
limits bind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.analysis.fair_constraints import Limits, Measure
from lenience.core.bounds import Bounds
from lenience.segments.shifted_costs import SegmentProblem, ShiftedCosts, ShiftedPolicy, total

MOST_ROUNDS = 100
NEGLIGIBLE = 1e-12  # a smaller probability in a mixture is left out


class Mixture(NamedTuple):
    """The policies of a segment and their probabilities: one is drawn at the start."""

    policies: tuple[ShiftedPolicy, ...]
    probabilities: tuple[float, ...]

    def mean(self, parts: Sequence[Bounds]) -> Bounds:
        """Return bounds of the mean of a number of the policies."""
        return weighted_sum(self.probabilities, parts)


class FairSolution(NamedTuple):
    """The mixtures of the segments, and proved bounds."""

    mixtures: list[Mixture]
    earned: Bounds  # what the mixtures earn
    most: float  # no policy that keeps the constraint earns more
    multipliers: NDArray[np.float64]  # by group: what a higher rate of this group is worth


class FairSearch:
    """Find fair optima of the same segments, one constraint after the other; policies that were met are kept.

    Parameters
    ----------
    problems : list of SegmentProblem
        The segments.
    mix : ndarray
        The share of each group in each segment, by segment and group.
    tolerance : float
        The precision of the value per arrival, and of the rates.
    """

    def __init__(self, problems: list[SegmentProblem], mix: NDArray[np.float64], tolerance: float) -> None:
        self.problems, self.mix = problems, mix
        self.solver = ShiftedCosts(1e-3 * tolerance)
        self.everyone = np.array([problem.scale / (1.0 - problem.discount) for problem in problems])
        self.gap = tolerance * math.fsum(self.everyone)
        self.columns: list[dict[float, ShiftedPolicy]] = [{} for _ in problems]
        for x, problem in enumerate(problems):
            for cost in (0.0, problem.cost, 1.0):
                self.at_cost(x, cost)

    @property
    def unconstrained(self) -> list[ShiftedPolicy]:
        """The optimal policies without a constraint."""
        return [columns[problem.cost] for columns, problem in zip(self.columns, self.problems, strict=True)]

    def weights(self, measure: Measure) -> NDArray[np.float64]:
        """Return the weight of each segment's rate in that of each group, by segment and group."""
        members = self.mix * np.array([problem.share for problem in self.problems])[:, None]
        if measure == "opportunity":
            members = members * np.array([problem.prior.mean for problem in self.problems])[:, None]
        # A group of whom nobody would succeed has no rate of opportunity: all its weights are 0.
        together = members.sum(axis=0)
        weights: NDArray[np.float64] = members / np.where(together > 0.0, together, 1.0)
        return weights

    def group_rates(self, measure: Measure, mixtures: Sequence[Mixture]) -> list[Bounds]:
        """Return bounds of the rate of each group."""
        rates = [
            mixture.mean([_rate(policy, problem, measure) for policy in mixture.policies])
            for mixture, problem in zip(mixtures, self.problems, strict=True)
        ]
        weights = self.weights(measure)
        return [_within_one(weighted_sum(weights[:, g], rates)) for g in range(self.mix.shape[1])]

    def best_without(self) -> FairSolution:
        """Return the optimum without a constraint."""
        mixtures = [Mixture((policy,), (1.0,)) for policy in self.unconstrained]
        values = [p.value.scaled(s.scale) for p, s in zip(self.unconstrained, self.problems, strict=True)]
        return FairSolution(mixtures, self.earned(mixtures), total(values).upper, np.zeros(self.mix.shape[1]))

    def earned(self, mixtures: Sequence[Mixture]) -> Bounds:
        """Return bounds of what mixtures earn."""
        return total(
            mixture.mean([policy.earns(problem) for policy in mixture.policies])
            for mixture, problem in zip(mixtures, self.problems, strict=True)
        )

    def solve(self, limits: Limits, measure: Measure) -> FairSolution:
        """Return the best mixtures that keep the limits, and a bound for every policy that does."""
        if not limits.bound.size:
            return self.best_without()
        weights = self.weights(measure)
        best = self.best_without().most  # No limit can be worth more than none.
        for _ in range(MOST_ROUNDS):
            mixtures, prices = self._mix(limits, measure, weights)
            subsidies = -(limits.matrix.T @ prices)
            earned = self.earned(mixtures)
            most, new = self._price(limits, prices, subsidies, measure, weights)
            best = min(best, most)
            if best - earned.lower <= self.gap or not new:
                break
        mixtures = [self._tidy(x, mixture, subsidies, measure, weights) for x, mixture in enumerate(mixtures)]
        return FairSolution(mixtures, self.earned(mixtures), best, subsidies)

    def _tidy(
        self, x: int, mixture: Mixture, subsidies: NDArray[np.float64], measure: Measure, weights: NDArray[np.float64]
    ) -> Mixture:
        """Return an equal mixture at the cost of the final subsidies, if the segment's policy there does the same."""
        final = self.at_cost(x, self._shift(x, subsidies, measure, weights)[0])
        if len(mixture.policies) == 1 and final[2:] == mixture.policies[0][2:]:
            return Mixture((final,), (1.0,))
        order = sorted(zip(mixture.policies, mixture.probabilities, strict=True), key=lambda pair: pair[0].cost)
        return Mixture(tuple(policy for policy, _ in order), tuple(chance for _, chance in order))

    def _shift(
        self, x: int, subsidies: NDArray[np.float64], measure: Measure, weights: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Return the shifted cost of a segment, and the scale of its value there; a scale of 0 accepts nobody."""
        problem = self.problems[x]
        each = float(weights[x] @ subsidies / self.everyone[x])  # for each member of the segment
        if measure == "acceptance":
            return problem.cost - each, 1.0
        factor = max(1.0 + (each / problem.prior.mean if problem.prior.mean > 0.0 else 0.0), 0.0)
        return (problem.cost / factor if factor > problem.cost else 1.0), factor

    def at_cost(self, x: int, cost: float) -> ShiftedPolicy:
        """Return a segment's optimal policy at a cost, and keep it as a column."""
        policy = self.solver.policy(self.problems[x], cost)
        self.columns[x].setdefault(min(max(cost, 0.0), 1.0), policy)
        return policy

    def _price(
        self,
        limits: Limits,
        prices: NDArray[np.float64],
        subsidies: NDArray[np.float64],
        measure: Measure,
        weights: NDArray[np.float64],
    ) -> tuple[float, bool]:
        """Return D at these prices, and whether it met a new policy."""
        before = sum(map(len, self.columns))
        parts = []
        for x, problem in enumerate(self.problems):
            cost, factor = self._shift(x, subsidies, measure, weights)
            value = self.at_cost(x, cost).value.scaled(problem.scale * factor)
            # Rounding of the cost and of the scale changes the value by at most as much per arrival.
            slack = 1e-15 * self.everyone[x] * (1.0 + abs(cost) + factor)
            parts.append(Bounds(value.lower - slack, value.upper + slack))
        constant = float(prices @ limits.bound) + abs(float(prices @ limits.level))
        slack = 1e-14 * float(np.abs(prices).sum())
        return total([*parts, Bounds(constant, constant + slack)]).upper, sum(map(len, self.columns)) > before

    def _mix(
        self, limits: Limits, measure: Measure, weights: NDArray[np.float64]
    ) -> tuple[list[Mixture], NDArray[np.float64]]:
        """Return the best mixtures of the policies met so far, and the prices of the limits."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, vstack

        owners = np.repeat(np.arange(len(self.problems)), [len(columns) for columns in self.columns])
        policies = [policy for columns in self.columns for policy in columns.values()]
        own = [self.problems[x] for x in owners]
        size = math.fsum(self.everyone)
        earned = np.array([p.earns(s).midpoint for p, s in zip(policies, own, strict=True)]) / size
        rates = np.array([_rate(p, s, measure).midpoint for p, s in zip(policies, own, strict=True)])
        coupling = np.hstack([limits.matrix @ (weights[owners] * rates[:, None]).T, limits.level[:, None]])
        columns = np.arange(owners.size)
        ones = csr_array((np.ones(owners.size), (owners, columns)), shape=(len(self.problems), owners.size + 1))
        answer = linprog(
            np.append(-earned, 0.0),
            A_ub=vstack([csr_array(coupling)]),
            b_ub=limits.bound,
            A_eq=ones,
            b_eq=np.ones(len(self.problems)),
            bounds=[(0.0, 1.0)] * (owners.size + 1),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if (
            answer.x is None
        ):  # Accepting nobody keeps parity and accepting everyone keeps floors, so there is a solution.
            raise ArithmeticError(f"the linear program of the mixture failed: {answer.message}")
        chosen = answer.x[:-1]
        mixtures = []
        for x in range(len(self.problems)):
            inside = np.flatnonzero((owners == x) & (chosen > NEGLIGIBLE))
            sizes = chosen[inside] / chosen[inside].sum()
            mixtures.append(Mixture(tuple(policies[i] for i in inside), tuple(map(float, sizes))))
        return mixtures, np.maximum(-answer.ineqlin.marginals, 0.0) * size


def weighted_sum(weights: Sequence[float] | NDArray[np.float64], parts: Sequence[Bounds]) -> Bounds:
    """Return bounds of Σ w B for weights that are not negative."""
    return total(part.scaled(float(weight)) for weight, part in zip(weights, parts, strict=True))


def _rate(policy: ShiftedPolicy, problem: SegmentProblem, measure: Measure) -> Bounds:
    return policy.acceptance if measure == "acceptance" else policy.opportunity(problem)


def _within_one(rate: Bounds) -> Bounds:
    """Return bounds of a rate, which is from 0 to 1 whatever rounding says."""
    return Bounds(min(max(rate.lower, 0.0), 1.0), min(max(rate.upper, 0.0), 1.0))
