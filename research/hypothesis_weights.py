"""How much features say, data set by data set: where the prior weights of the default model's hypotheses come from.

    python -m research hypothesis-weights [--labels COUNT] [--draws COUNT]

From equal weights, a model that is centred on a data set's own success rate learns labels drawn at random from it; the
weights that its hypotheses then have say which of them foresaw the labels. The mean over the data sets that were there
before (the fresh and the sealed are left out) is what to expect of the next.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lenience.files.table import Table
from lenience.models.bayesian_logistic import FEATURE_VARIANCES, BayesianLogistic, stretch
from research.datasets import DATASETS

LABELS = 200
DRAWS = 10


def weights_after(table: Table, labels: int = LABELS, draws: int = DRAWS) -> NDArray[np.float64]:
    """The hypotheses' weights after so many labels, from equal ones: the mean over several draws of the labels.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> weights_after(Table("noise", X, (rng.random(400) < 0.7).astype(float), ("a", "b"))).argmax()
    np.int64(0)
    """
    rate = float(table.y.mean())
    centres = tuple(math.log(rate / (1.0 - rate)) * stretch(variance) for variance in FEATURE_VARIANCES)
    model = BayesianLogistic(intercept_mean=centres, hypothesis_weights=1.0, bent_variance=())
    result = np.zeros(len(FEATURE_VARIANCES))
    for seed in range(draws):
        taken = np.random.default_rng(seed).permutation(len(table.y))[:labels]
        result += model.prepare(table.X).learn(table.X[taken], table.y[taken]).weights_ / draws
    return result


def main(arguments: Sequence[str] = ()) -> None:
    """Print the weights of every data set that is installed, and their mean."""
    parser = ArgumentParser("python -m research hypothesis-weights", description=__doc__)
    parser.add_argument("--labels", type=int, default=LABELS, help="labels drawn from each data set")
    parser.add_argument("--draws", type=int, default=DRAWS, help="how often they are drawn")
    given = parser.parse_args(arguments)
    before = [data for data in DATASETS if data.part in ("chosen", "held out") and data.available]
    by_data = {data.name: weights_after(data.load(), given.labels, given.draws) for data in before}
    by_data["mean"] = np.mean(list(by_data.values()), axis=0)
    print("variance".ljust(16), *(f"{variance:>6g}" for variance in FEATURE_VARIANCES))
    for name, weights in by_data.items():
        print(name.ljust(16), *(f"{weight:6.2f}" for weight in weights))
