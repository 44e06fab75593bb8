"""ReplicationBlock: the results of a block of replications, by replication and by checkpoint.

With arrivals i = 0, 1, …, acceptance t_i, outcome y_i, success probability p_i and discount γ:

- ``reward`` Σ t_i (y_i − c), ``discounted`` Σ γ^i t_i (y_i − c);
- ``expected`` Σ γ^i t_i (p_i − c): the same mean as ``discounted``, without the noise of the outcomes;
- ``clairvoyant`` Σ γ^i max(p_i − c, 0): what a policy that knows p earns; ``regret`` is this minus ``expected``;
- ``learning_cost``: the largest loss of the running account Σ_{i<k} γ^i t_i (y_i − c), i.e. how much had to be paid
  before anything came back; ``red_until``: the number of arrivals after which the account is never below zero again
  (the horizon if it ends below zero, 0 if it is never below zero);
- ``stopped``: acceptance is 0 at the final belief and no arrival can change that; ``shut_out``: the share of arrivals
  whose segment is stopped although its p exceeds c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class ReplicationBlock(NamedTuple):
    """Results by replication, then sums and sums of squares over the replications by checkpoint."""

    p: Values
    accepted: Values
    reward: Values
    discounted: Values
    expected: Values
    clairvoyant: Values
    learning_cost: Values
    red_until: Values
    stopped: Values
    shut_out: Values
    acceptance: Values  # share accepted since the last checkpoint
    acceptance_squares: Values
    regret: Values  # undiscounted, from the first arrival to the checkpoint
    regret_squares: Values


COLUMNS = ReplicationBlock._fields[:10]


def along_time(
    accepted_by: NDArray[np.int64], regret_by: Values, checkpoints: NDArray[np.int64]
) -> tuple[Values, Values, Values, Values]:
    """Return the four sums by checkpoint of a block."""
    share = np.diff(accepted_by, axis=1, prepend=0) / np.diff(checkpoints, prepend=0)
    return share.sum(axis=0), (share**2).sum(axis=0), regret_by.sum(axis=0), (regret_by**2).sum(axis=0)


def joined(blocks: list[ReplicationBlock]) -> ReplicationBlock:
    """Join blocks: concatenate the columns and add the sums."""
    columns = [np.concatenate([block[i] for block in blocks]) for i in range(len(COLUMNS))]
    sums = [np.sum([block[i] for block in blocks], axis=0) for i in range(len(COLUMNS), len(ReplicationBlock._fields))]
    return ReplicationBlock(*columns, *sums)


def geometric_sum(discount: float, terms: int) -> float:
    """Return Σ_{i < terms} γ^i.

    >>> geometric_sum(0.5, 3), geometric_sum(1.0, 3)
    (1.75, 3.0)
    """
    if discount == 1.0:
        return float(terms)
    return float(-np.expm1(terms * np.log(discount)) / (1.0 - discount)) if discount > 0 else 1.0
