"""The worked study: four groups × score bands, every model × every rule, against one who knows the truths.

The cells are groups × bands of the FICO tables (:mod:`lenience.data.fico`): shares and true success probabilities are
known, so a rule's value can be measured against the clairvoyant's, Σ_x q_x max(p_x − c, 0)/(1 − γ). A *model* says
what is believed of a cell, a *rule* decides on the belief. Values are simulated with the same individuals for all
(:mod:`research.cells`), and computed exactly where cells are independent and the rule is a threshold (a cell is
then a walk of its own).

Two worlds. In the *prior's* world the truths of each run are drawn from the prior, independently: there the optimum
must be first, for that is what it maximises. In the FICO world the truths are what they are, and how well a rule does
depends first on what is believed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.validation import whole
from lenience.data.fico import Cell, load_fico
from lenience.models.curve import Curve
from lenience.models.own_counts import JEFFREYS, UNIFORM, OwnCounts
from lenience.models.protocol import Model
from lenience.models.shared import Shared
from lenience.objectives.discounted import Discounted
from lenience.solvers.stopping.threshold_table import threshold_table
from research.cells import GRID, CellRuns, ThresholdRule, exact_value, simulate_cells

COSTS = (0.7, 0.8, 0.9)
DISCOUNTS = (0.999, 0.9998, 0.99995)
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2)
QUANTILES = (0.8, 0.9, 0.95, 0.99)
EPSILON_RULES = tuple(f"ε-greedy {epsilon:g}" for epsilon in EPSILONS)
UCB_RULES = tuple(f"Bayes-UCB {quantile:g}" for quantile in QUANTILES)
RULES = ("optimal", "greedy", *EPSILON_RULES, "Thompson", *UCB_RULES, "always")
MODELS = ("independent", "Jeffreys", "shared", "curve", "history", "pooled history")
PAST = 2000  # past arrivals of the history models, of whom those with the top 40% of scores were accepted
PAST_SCORE = 60.0
ROWS = 14.0  # rows of an exact walk, in units of 1/(1 − γ): what is left is below e⁻¹⁴


class Population(msgspec.Struct, frozen=True, eq=False):
    """The cells as arrays."""

    cells: list[Cell]

    @property
    def p(self) -> NDArray[np.float64]:
        """The true success probabilities."""
        return np.array([cell.p for cell in self.cells])

    @property
    def shares(self) -> NDArray[np.float64]:
        """The shares of the arrivals."""
        shares = np.array([cell.share for cell in self.cells])
        total: NDArray[np.float64] = shares / shares.sum()
        return total

    @property
    def groups(self) -> list[str]:
        """The group of each cell."""
        return [cell.group for cell in self.cells]

    def clairvoyant(self, cost: float, discount: float) -> float:
        """What one who knew the truths would earn."""
        return float(self.shares @ np.maximum(self.p - cost, 0.0)) / (1.0 - discount)


class RuleResult(msgspec.Struct, frozen=True):
    """What a rule earned on a model's beliefs, as a share of the clairvoyant's value.

    ``half_width`` is half a 95% interval of the simulated ``share``; ``exact`` is the share computed without
    simulation, where that can be; ``behind`` is how much less than the optimum on the same beliefs, pair by pair,
    with its half interval.
    """

    world: str
    model: str
    rule: str
    cost: float
    discount: float
    runs: int
    share: float
    half_width: float
    exact: float | None
    behind: float
    behind_half_width: float


def fico_world(bands: int = 10) -> Population:
    """Four groups × so many score bands."""
    return Population(load_fico().cells(bands))


def make_rule(name: str, cost: float, discount: float, shares: NDArray[np.float64]) -> ThresholdRule:
    """A rule by its name, as thresholds for each cell."""
    sizes = np.exp(GRID)
    if name == "optimal":
        own = discount * shares / (1.0 - discount + discount * shares)
        table = threshold_table(cost, float(own.max()))
        return ThresholdRule(name, np.stack([table.threshold(sizes, gamma) for gamma in own]))
    flat = np.full((shares.size, sizes.size), cost)
    if name == "greedy":
        return ThresholdRule(name, flat)
    if name == "always":
        return ThresholdRule(name, np.full_like(flat, -1.0))
    if name == "Thompson":
        return ThresholdRule(name, flat, thompson=True)
    kind, _, number = name.partition(" ")
    if kind == "ε-greedy":
        return ThresholdRule(name, flat, explore=float(number))
    if kind == "Bayes-UCB":
        return ThresholdRule(name, np.broadcast_to(ucb_threshold(cost, float(number)), flat.shape))
    raise InputError.unknown_name("rule", name, RULES)


@lru_cache(maxsize=64)
def ucb_threshold(cost: float, quantile: float) -> NDArray[np.float64]:
    """The mean at which the belief's quantile is the cost, by size: Bayes-UCB accepts above it."""
    from scipy.special import betaincc

    sizes = np.exp(GRID)
    low, high = np.zeros_like(sizes), np.ones_like(sizes)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = betaincc(middle * sizes, (1.0 - middle) * sizes, cost) > 1.0 - quantile
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def make_model(name: str, world: Population) -> Model:
    """A model of the cells by its name (the history models start from drawn histories, see :func:`past_counts`)."""
    count = len(world.cells)
    if name == "Jeffreys":
        return OwnCounts(count, JEFFREYS)
    if name in ("independent", "history", "pooled history"):
        return OwnCounts(count, UNIFORM)
    if name == "shared":
        return Shared(count)
    if name == "curve":
        return Curve([cell.score for cell in world.cells], world.groups)
    raise InputError.unknown_name("model", name, MODELS)


def past_counts(
    world: Population, runs: int, pooled: bool, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Priors from a history of the top scores, by run: each cell's own, or pooled over all cells (the trap)."""
    generator = np.random.default_rng([seed, 77])
    accepted = np.array([cell.score >= PAST_SCORE for cell in world.cells])
    came = generator.multinomial(PAST, world.shares, size=runs)
    labels = np.where(accepted, came, 0)
    good = generator.binomial(labels, world.p)
    if pooled:
        labels = np.broadcast_to(labels.sum(axis=1, keepdims=True), labels.shape)
        good = np.broadcast_to(good.sum(axis=1, keepdims=True), good.shape)
    return UNIFORM.n + labels.astype(np.float64), UNIFORM.s + good.astype(np.float64)


def run_rule(
    world: Population, model: str, rule: str, cost: float, discount: float, runs: int, seed: int = 0,
    truths: NDArray[np.float64] | None = None,
) -> CellRuns:  # fmt: skip
    """Simulate one rule on one model's beliefs."""
    made = make_rule(rule, cost, discount, world.shares)
    history = past_counts(world, runs, model == "pooled history", seed) if "history" in model else None
    p = world.p if truths is None else truths
    return simulate_cells(p, world.shares, cost, discount, made, make_model(model, world), runs, seed, history)


def study(
    world: Population,
    costs: Iterable[float] = COSTS,
    discounts: Iterable[float] = DISCOUNTS,
    models: Sequence[str] = MODELS,
    rules: Sequence[str] = RULES,
    runs: int = 200,
    drawn_from_prior: bool = False,
    exact: bool = True,
    progress: Callable[[str], None] | None = None,
) -> list[RuleResult]:
    """Every model × every rule in every setting; with ``drawn_from_prior`` each run has its own truths, from Beta(1,
    1).

    >>> result = study(fico_world(2), [0.8], [0.99], ["independent"], ["optimal", "always"], runs=50)
    >>> [row.rule for row in sorted(result, key=lambda row: -row.share)]
    ['optimal', 'always']
    """
    runs = whole("runs", runs, least=2)
    names = ["optimal", *[rule for rule in rules if rule != "optimal"]]
    truths = np.random.default_rng(5).random((runs, len(world.cells))) if drawn_from_prior else None
    results: list[RuleResult] = []
    for cost in costs:
        for discount in discounts:
            if truths is None:
                best = np.full(runs, world.clairvoyant(cost, discount))
            else:
                best = (np.maximum(truths - cost, 0.0) @ world.shares) / (1.0 - discount)
            for model in models:
                jobs = [(world, model, rule, cost, discount, runs, 0, truths) for rule in names]
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    values = list(pool.map(lambda job: run_rule(*job).value, jobs))
                for rule, value in zip(names, values, strict=True):
                    own = None
                    if exact and truths is None and model in ("independent", "Jeffreys") and rule != "Thompson":
                        own = exact_share(world, rule, cost, discount, JEFFREYS if model == "Jeffreys" else UNIFORM)
                    results.append(_result(drawn_from_prior, model, rule, cost, discount, value, values[0], best, own))
                if progress:
                    top = max(results[-len(names) :], key=lambda row: row.share)
                    first = results[-len(names)]
                    said = f"optimal {first.share:.3f}, best {top.rule} {top.share:.3f}"
                    progress(f"c={cost:g} γ={discount:g} {model}: {said}")
    return results


def _result(
    drawn: bool, model: str, rule: str, cost: float, discount: float, value: NDArray[np.float64],
    optimal: NDArray[np.float64], best: NDArray[np.float64], exact: float | None,
) -> RuleResult:  # fmt: skip
    scale, runs = float(best.mean()), value.size
    gap = (optimal - value) / scale
    return RuleResult(
        world="prior" if drawn else "FICO",
        model=model,
        rule=rule,
        cost=cost,
        discount=discount,
        runs=runs,
        share=float(value.mean()) / scale,
        half_width=_half((value - best + scale) / scale),
        exact=exact,
        behind=float(gap.mean()),
        behind_half_width=_half(gap),
    )


def _half(sample: NDArray[np.float64]) -> float:
    return float(1.96 * sample.std(ddof=1) / math.sqrt(sample.size))


def exact_share(world: Population, rule: str, cost: float, discount: float, prior: Belief) -> float:
    """The share of the clairvoyant's value that a threshold rule earns with independent beliefs, without simulation."""
    shares, p = world.shares, world.p

    def part(x: int) -> float:
        whole_problem = Discounted(cost, discount)
        own = whole_problem.for_share(float(shares[x]))
        least, explore = exact_thresholds(rule, own, prior)
        value, rest, _ = exact_value(float(p[x]), cost, own.discount, prior.n, prior.s, least, explore)
        # What is left after the last row goes on being accepted, or nearly so.
        return whole_problem.weight_of_share(float(shares[x])) * (value + math.copysign(rest, p[x] - cost))

    if rule == "always":
        return float(shares @ (p - cost)) / (1.0 - discount) / world.clairvoyant(cost, discount)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(part, range(shares.size)))
    return math.fsum(parts) / world.clairvoyant(cost, discount)


def exact_thresholds(rule: str, own: Discounted, prior: Belief) -> tuple[NDArray[np.float64], float]:
    """The thresholds of the rows of an exact walk, and the exploration probability below them."""
    rows = math.ceil(ROWS * (1.0 + own.volume))
    sizes = prior.n + np.arange(rows)
    if rule == "optimal":
        accept_from = own.solve(prior, rows=rows, tolerance=1e-8).accept_from
        return (prior.s + accept_from - 0.5) / sizes, 0.0
    made = make_rule(rule, own.cost, own.discount, np.ones(1))
    return np.interp(np.log(sizes), GRID, made.thresholds[0]), made.explore
