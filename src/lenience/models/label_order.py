"""An order of labels that does not depend on how a file is sorted.

A batch of labels has no order that should matter. But some models learn one label after the other, draw random numbers
for each, or keep only the last ones. They get each batch in a random order that depends only on what the labels are, so
a history that is sorted by outcome gives the same belief as any other order of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 8192  # rows whose products are in memory at the same time
SEED = 20201

Vector = NDArray[np.float64]


def neutral_order(X: Vector, y: Vector, weights: Vector) -> NDArray[np.intp]:
    """Return an order of the labels that depends on what they are, not on the order in which they are given.

    Labels are sorted by a random projection and then shuffled with a fixed seed. So a model that learns one label after
    the other, or draws random numbers for each, sees any history in one and the same random order.

    Parameters
    ----------
    X : ndarray
        Rows of features, in which values may be missing.
    y : ndarray
        Their outcomes.
    weights : ndarray
        Their weights.

    Returns
    -------
    ndarray of int
        Positions of the labels.

    Examples
    --------
    >>> X, y, ones = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 1.0]), np.ones(3)
    >>> backwards = neutral_order(X[::-1], y[::-1], ones)
    >>> np.array_equal(X[neutral_order(X, y, ones)], X[::-1][backwards])
    True
    """
    order = np.argsort(projection(X, y, weights), kind="stable")
    return order[np.random.default_rng(SEED).permutation(len(order))]


def projection(X: Vector, y: Vector, weights: Vector) -> Vector:
    """Return a number for each label: equal labels have equal numbers, others almost surely have different ones.

    Parameters
    ----------
    X : ndarray
        Rows of features, in which values may be missing.
    y : ndarray
        Their outcomes.
    weights : ndarray
        Their weights.

    Returns
    -------
    ndarray
        One number for each label.

    Examples
    --------
    >>> numbers = projection(np.array([[1.0], [1.0], [2.0]]), np.ones(3), np.ones(3))
    >>> bool(numbers[0] == numbers[1] != numbers[2])
    True
    """
    directions = np.random.default_rng(SEED).uniform(1.0, 2.0, size=X.shape[1] + 3)
    out = np.empty(len(X))
    for first in range(0, len(X), ROWS_AT_ONCE):
        rows = X[first : first + ROWS_AT_ONCE]
        missing = np.isnan(rows)
        # A sum along each row, unlike a product of matrices, does not depend on where the row stands.
        out[first : first + ROWS_AT_ONCE] = (np.where(missing, 0.0, rows) * directions[:-3]).sum(axis=1) + (
            missing * directions[:-3]
        ).sum(axis=1) * directions[-3]
    out += directions[-2] * y + directions[-1] * weights
    return out
