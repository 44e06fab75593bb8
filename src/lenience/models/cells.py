"""Segment counts as a feature model: two rows are the same cell or unrelated.

Each distinct row is a cell with its own Beta belief: the prior plus the labels of the cell. The likeness of two rows is
1 if they are the same cell and 0 otherwise. So q is the cell's share of the arrivals, no label comes for free, and the
policy is the segmented one: for each cell the optimal policy at its own discount γq/(1 − γ + γq). A row that was never
seen is a cell at its prior; this includes unseen categories and missing values. Columns may hold text, because segments
have names: each text is mapped to a number of its own.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.models.feature_estimator import FeatureEstimator, number_in, numbers
from lenience.models.feature_model import is_missing


class Cells(FeatureEstimator):
    """Count labels by distinct row, from one prior for all cells.

    Parameters
    ----------
    prior : Belief, optional
        The belief about a cell without labels. The default is Belief(2, 1).

    Examples
    --------
    >>> model = Cells().prepare([[0.0], [1.0]]).learn([[0.0], [0.0], [1.0]], [1, 0, 1])
    >>> model.beliefs([[0.0], [1.0], [2.0]])
    (array([4., 3., 2.]), array([0.5       , 0.66666667, 0.5       ]))
    >>> named = [["north", 1], ["south", 1]]
    >>> Cells().prepare(named).learn(named, [1, 1]).beliefs([["north", 1], ["west", 1]])[0]
    array([3., 2.])
    """

    _order_matters = False

    def __init__(self, prior: Any = None) -> None:
        self.prior = prior

    def coded(self, X: Any) -> Any:
        """Replace text in rows by numbers, the same number for the same text every time.

        Parameters
        ----------
        X : array_like or DataFrame
            Rows of features.

        Returns
        -------
        array_like or DataFrame
            The rows with numbers only; a frame stays a frame.

        Examples
        --------
        >>> coded = Cells().coded([["north", 1], ["south", 1], ["north", 2]])
        >>> coded[0, 0] == coded[2, 0], coded[0, 0] == coded[1, 0]
        (True, False)
        """
        cells = np.asarray(X)
        if cells.dtype.kind not in "OUST" or cells.ndim != 2:
            return X
        codes = np.array([[_code(cell) for cell in row] for row in np.asarray(X, dtype=object)], dtype=object)
        return type(X)(codes, columns=X.columns, index=X.index) if hasattr(X, "iloc") else codes

    def _numbers(self, X: ArrayLike, *y: ArrayLike, **options: Any) -> Any:
        return numbers(self, self.coded(X), *y, **options)

    def _prepare(self, X: NDArray[np.float64]) -> None:
        self.prior_ = Belief(2, 1) if self.prior is None else check_prior(self.prior)
        self.counts_: dict[bytes, list[float]] = {}

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        for key, outcome, weight in zip(_keys(X), y, weights, strict=True):
            count = self.counts_.setdefault(key, [0.0, 0.0])
            count[0] += weight
            count[1] += weight * outcome

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        counts = np.array([self.counts_.get(key, (0.0, 0.0)) for key in _keys(X)]).reshape(-1, 2)
        n = self.prior_.n + counts[:, 0]
        return n, (self.prior_.s + counts[:, 1]) / n

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        left, right = np.array(_keys(X), dtype=object), np.array(_keys(R), dtype=object)
        same: NDArray[np.bool_] = left[:, None] == right[None, :]
        return same.astype(np.float64)


def _keys(X: NDArray[np.float64]) -> list[bytes]:
    # Adding 0.0 turns −0.0 into 0.0; every NaN becomes the same one.
    clean = np.where(np.isnan(X), np.nan, X + 0.0)
    return [row.tobytes() for row in np.ascontiguousarray(clean)]


def _code(cell: object) -> object:
    """Return a number for a text ("inf" and "nan" are names): 52 bits of its hash, far from any feature."""
    if not isinstance(cell, str):
        return math.nan if is_missing(cell) else cell
    number = number_in(cell)
    if number is not None and math.isfinite(number):
        return number
    bits = int.from_bytes(blake2b(cell.encode(), digest_size=8).digest()) >> 12
    return -math.ldexp(1.0 + bits / 2.0**52, 1000)
