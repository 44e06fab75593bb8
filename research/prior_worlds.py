"""Is as much explored as should be? Worlds drawn from the default model's own prior, where no data set has a say.

    python -m research prior-worlds [--worlds COUNT] [--features COUNT]

If a world is drawn from the prior, the model is right, and whoever explores best earns most on average. So these worlds
tell how good the exploring is, apart from how well the prior suits the data at hand: every policy has the same model,
and differs in whom it tries. Features are independent normal, a hypothesis is drawn by its weight, coefficients from
its Gaussian, and a policy earns p − c for each it accepts (p, not the outcome: it is as good on average, with less
chance in it). Ours is run with other shares of its leniency as well; and beside all there is the model that sees
everyone's outcome, and one that knows p.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.validation import whole
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.objectives.discounted import Discounted
from lenience.policies.features.baseline_rules import EPSILON, GREEDY, LENIENT, OPTIMISM, THOMPSON, UCB
from lenience.simulation.replay import FULL_INFORMATION, OURS
from lenience.simulation.replay_result import half_width
from lenience.solvers.stopping.threshold_table import threshold_table

KNOWN = "knows p"
RULES: dict[str, tuple[int, float]] = {
    OURS: (LENIENT, 1.0),
    "0.5 of the leniency": (LENIENT, 0.5),
    "0.75 of it": (LENIENT, 0.75),
    "1.25 of it": (LENIENT, 1.25),
    "1.5 of it": (LENIENT, 1.5),
    "greedy": (GREEDY, 0.0),
    "greedy, burn-in 20": (GREEDY, 20.0),
    "ε-greedy 0.1": (EPSILON, 0.1),
    "Thompson": (THOMPSON, 1.0),
    "GLM-UCB": (UCB, 1.0),
    "PLOT": (OPTIMISM, 1.0),
}
SETTINGS = ((0.99, 700, 400), (0.999, 4600, 60))  # discount, arrivals, worlds
COSTS = (0.3, 0.8)
FEATURES = (1, 5, 20)
SEEN = 100  # rows that stand for the population


class DrawnWorld(msgspec.Struct, frozen=True, eq=False):
    """Who comes, with an intercept's 1 in front of the features, the success rate of each, and its outcome."""

    rows: np.ndarray[Any, np.dtype[np.float64]]
    rates: np.ndarray[Any, np.dtype[np.float64]]
    outcomes: np.ndarray[Any, np.dtype[np.float64]]


def draw_world(model: BayesianLogistic, individuals: int, seed: int) -> DrawnWorld:
    """A world from the beliefs of a model.

    >>> model = BayesianLogistic.for_cost(0.7).prepare(np.eye(3))
    >>> world = draw_world(model, 50, seed=1)
    >>> world.rows.shape, bool(((0 < world.rates) & (world.rates < 1)).all())
    ((50, 4), True)
    """
    rng = np.random.default_rng([seed, 6023])
    hypothesis = rng.choice(len(model.weights_), p=model.weights_)
    coefficients = rng.multivariate_normal(model.means_[hypothesis], model.covariances_[hypothesis], method="cholesky")
    features = rng.normal(size=(individuals, len(coefficients) - 1))
    rows = np.column_stack((np.ones(individuals), features))
    rates = 1.0 / (1.0 + np.exp(-rows @ coefficients))
    return DrawnWorld(rows, rates, (rng.random(individuals) < rates).astype(np.float64))


def prior_worlds(
    objective: Discounted, features: int, arrivals: int, worlds: int, rules: dict[str, tuple[int, float]] | None = None
) -> dict[str, NDArray[np.float64]]:
    """What each policy earns in each world.

    >>> result = prior_worlds(Discounted(0.8, 0.9), features=2, arrivals=60, worlds=20)
    >>> float(result["greedy"].max())  # nobody is believed above 0.8 before the first label
    0.0
    >>> bool(result["lenience"].mean() < result["full information"].mean() < result["knows p"].mean())
    True
    """
    from lenience.simulation.replay_engine import run_online

    cost = objective.cost
    count, size = whole("arrivals", arrivals, least=1), whole("worlds", worlds, least=1)
    model = BayesianLogistic.for_cost(cost).prepare(np.zeros((1, whole("features", features, least=1))))
    table = threshold_table(cost, objective.discount)
    several = (RULES if rules is None else rules) | {FULL_INFORMATION: (GREEDY, 0.0)}
    gammas, weights = np.full(count, objective.discount), objective.discount ** np.arange(count)
    order, reference = np.arange(count), np.arange(count, count + SEEN)
    earned = {name: np.empty(size) for name in [*several, KNOWN]}
    accepted = np.empty(count, dtype=np.bool_)
    for i in range(size):
        world = draw_world(model, count + SEEN, i)
        chances = np.random.default_rng([i, 6024]).random(count)
        gains = (world.rates[:count] - cost) * weights
        for name, (rule, parameter) in several.items():
            run_online(
                rule, parameter, world.rows, world.outcomes, order, order[:0], chances, reference, model.weights_,
                model.means_, model.covariances_, cost, gammas, *table[1:], True, name == FULL_INFORMATION, accepted,
            )  # fmt: skip
            earned[name][i] = gains[accepted].sum()
        earned[KNOWN][i] = gains[gains > 0].sum()
    return earned


def report(features: Sequence[int] = FEATURES, most_worlds: int | None = None) -> str:
    """What each earns more than ours, as a table."""
    names = [*RULES, FULL_INFORMATION, KNOWN]
    lines = ["| γ | c | features | " + " | ".join(names) + " |", "|---:|" + "---:|" * (2 + len(names))]
    for discount, arrivals, worlds in SETTINGS:
        for cost in COSTS:
            for size in features:
                result = prior_worlds(
                    Discounted(cost, discount), size, arrivals, worlds if most_worlds is None else most_worlds
                )
                ours = result[OURS]
                more = [f"{(result[n] - ours).mean():+.2f} ± {half_width(result[n] - ours):.2f}" for n in names[1:]]
                lines.append(f"| {discount:g} | {cost:g} | {size} | {ours.mean():.2f} | " + " | ".join(more) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = ArgumentParser("python -m research prior-worlds", description=__doc__)
    parser.add_argument("--worlds", type=int, help="in each setting; by default 400 and, at discount 0.999, 60")
    parser.add_argument("--features", type=int, action="append", help=f"by default each of {FEATURES}")
    given = parser.parse_args(arguments)
    print(report(given.features or FEATURES, given.worlds))
