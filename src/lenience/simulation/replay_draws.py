"""Draw: the random numbers of one run of a replay, the same for every policy, and the belief that it starts with."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.models.batch_learning import learn_labels
from lenience.models.bayesian_logistic import BayesianLogistic


class Draw(msgspec.Struct, frozen=True, eq=False):
    """The random numbers of one run.

    Parameters
    ----------
    order : ndarray of int
        The rows that arrive, in order.
    warm : ndarray of int
        The rows whose labels are known at the start.
    reference : ndarray of int
        The rows that represent the population.
    chances : ndarray
        One uniform random number per arrival, for decisions that are random.
    gaps : ndarray
        The time before each arrival, in units of the mean gap.
    delays : ndarray
        The delay of each outcome, in units of the mean delay.
    """

    order: np.ndarray[Any, np.dtype[np.int64]]
    warm: np.ndarray[Any, np.dtype[np.int64]]
    reference: np.ndarray[Any, np.dtype[np.int64]]
    chances: np.ndarray[Any, np.dtype[np.float64]]
    gaps: np.ndarray[Any, np.dtype[np.float64]]
    delays: np.ndarray[Any, np.dtype[np.float64]]


def draw_in_order(seed: int, by_time: NDArray[np.int64], arrivals: int, warm: int, reference: int = 100) -> Draw:
    """Draw a run in which rows arrive in order of time, each at most once.

    ``by_time`` are the rows in order of time. A run takes some of them at random; its earliest are the ``warm`` ones.
    """
    drawn = draw(seed, len(by_time), arrivals, 0, reference)
    rng = np.random.default_rng([seed, 6023])
    taken = by_time[np.sort(rng.permutation(len(by_time))[: arrivals + warm])]
    return msgspec.structs.replace(drawn, warm=taken[:warm], order=taken[warm:])


def draw(seed: int, rows: int, arrivals: int, warm: int, reference: int = 100) -> Draw:
    """Draw the random numbers of a run. Runs that differ only in ``warm`` meet the same arrivals."""
    rng = np.random.default_rng([seed, 6021])
    order = rng.integers(0, rows, arrivals)
    chances = rng.random(arrivals)
    representatives = rng.integers(0, rows, reference)
    late = np.random.default_rng([seed, 6022])
    gaps, delays = late.exponential(size=(2, arrivals))
    return Draw(order, rng.integers(0, rows, warm), representatives, chances, gaps, delays)


def belief_at_start(
    model: BayesianLogistic, design: NDArray[np.float64], labels: NDArray[np.float64], chance: Draw
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights, means and covariances of a model after the labels that are known at the start of a run.

    The model itself does not change.
    """
    belief = model.weights_.copy(), model.means_.copy(), model.covariances_.copy()
    learn_labels(design[chance.warm], labels[chance.warm], np.ones(len(chance.warm)), *belief)
    return belief
