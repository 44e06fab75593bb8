"""What those would earn who are told more than a policy can be: by it one sees what selective labels cost.

- :func:`knowing` whom the default model accepts that was told the outcomes of all rows beforehand.
- :func:`told` whom it accepts if it starts as the policies do and is told the outcome of everyone who comes, the
  rejected included, at once. Nothing need be explored then: it accepts whom it believes above the break-even. A policy
  with the same model that sees only the accepted explores to come near it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.policies.features.baseline_rules import GREEDY
from lenience.simulation.replay_draws import Draw


def knowing(rows: NDArray[np.float64], labels: NDArray[np.float64], cost: float) -> NDArray[np.bool_]:
    """Of each row, whether it is accepted; learnt in an order by chance, for files are sorted and the model learns in
    one pass."""
    order = np.random.default_rng(0).permutation(len(labels))
    mean = BayesianLogistic().fit(rows[order], labels[order]).beliefs(rows)[1]
    return np.asarray(mean > cost)


def told(
    rows: NDArray[np.float64], labels: NDArray[np.float64], cost: float, draws: Sequence[Draw]
) -> NDArray[np.bool_]:
    """Of each run and arrival, whether it is accepted.

    >>> from lenience.simulation.replay_draws import draw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = (rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    >>> runs = [draw(seed, 300, 400, warm=0) for seed in range(5)]
    >>> found = told(X, y, 0.9, runs)  # without a label nobody is believed above 0.9: greedy would never start
    >>> bool(found[:, 0].any()), bool(found[:, -100:].any())
    (False, True)
    """
    from lenience.simulation.replay_engine import run_online

    model = BayesianLogistic.for_cost(cost).prepare(rows)
    design = model.design(rows)
    accepted = np.zeros((len(draws), len(draws[0].order)), dtype=np.bool_)
    unused = np.zeros((2, 2))  # thresholds, which only exploring needs
    for run, chance in enumerate(draws):
        run_online(
            GREEDY, 0.0, design, labels, chance.order, chance.warm, chance.chances, chance.reference[:1],
            model.weights_, model.means_, model.covariances_, cost, np.zeros(len(chance.order)),
            0.0, 1.0, 0.0, 1.0, unused, False, True, accepted[run],
        )  # fmt: skip
    return accepted
