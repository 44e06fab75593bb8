"""Columns that let a linear model bend: the rank of a feature, its square, and whether the value is 0.

A logistic regression in the features alone is a straight line in each of them. Real effects level off, turn around or
jump at 0 (no debt, no earlier loan). For each feature with more than two values there are therefore further columns:

    r(x)            the share of the prepared rows below x (ties count half), between 0 and 1
    (r(x) − ½)²     how far from the middle, on either side
    1[x = 0]        if between 2% and 98% of the prepared rows are 0

Ranks come from the prepared rows, which need no labels. They are stored at up to 200 values of the feature and
interpolated between them. A missing value gets the mean of each column, so it says nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled

MOST_VALUES = 200  # of a feature at which its rank is stored
RARE = 0.02  # a value of 0 that is rarer than this, or more frequent than 1 minus this, has no column


class RankColumns(NamedTuple):
    """Which columns are added to the features.

    ``source`` is the feature of each added column and ``kind`` what it is (0 rank, 1 squared distance from the middle,
    2 zero). ``values`` and ``ranks`` hold the stored values of all features, those of column k from ``start[k]`` to
    ``start[k + 1]``.
    """

    source: NDArray[np.int64]
    kind: NDArray[np.int64]
    start: NDArray[np.int64]
    values: NDArray[np.float64]
    ranks: NDArray[np.float64]

    @property
    def width(self) -> int:
        """The number of added columns."""
        return int(self.source.size)

    def of(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the added columns of rows; missing where the feature is missing.

        >>> columns = find_rank_columns(np.array([[0.0], [0.0], [3.0], [9.0]]), 1)
        >>> columns.of(np.array([[0.0], [9.0], [np.nan]]))
        array([[0.25    , 0.0625  , 1.      ],
               [0.875   , 0.140625, 0.      ],
               [     nan,      nan,      nan]])
        """
        out = np.empty((len(X), self.width))
        _fill(X, *self, out)
        return out


def find_rank_columns(
    X: NDArray[np.float64], features: int, directions: NDArray[np.int64] | None = None
) -> RankColumns:
    """Choose the columns to add for the first ``features`` columns of the prepared rows.

    A feature whose effect has a known direction has no column for zeros, which could jump against it.
    """
    source, kind, start = list[int](), list[int](), [0]
    values, ranks = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    for j in range(features):
        known = X[~np.isnan(X[:, j]), j]
        distinct, counts = np.unique(known, return_counts=True)
        if distinct.size <= 2:
            continue
        middle = (np.cumsum(counts) - 0.5 * counts) / known.size
        if distinct.size > MOST_VALUES:
            chosen = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], MOST_VALUES)))
            distinct, middle = distinct[chosen], middle[chosen]
        zero = (directions is None or not directions[j]) and RARE < np.mean(known == 0.0) < 1.0 - RARE
        for k in range(3 if zero else 2):
            source.append(j)
            kind.append(k)
            values.append(distinct)
            ranks.append(middle)
            start.append(start[-1] + distinct.size)
    return RankColumns(
        np.array(source, dtype=np.int64),
        np.array(kind, dtype=np.int64),
        np.array(start, dtype=np.int64),
        np.concatenate(values) if values else np.empty(0),
        np.concatenate(ranks) if ranks else np.empty(0),
    )


@exactly_compiled
def _fill(
    X: NDArray[np.float64],
    source: NDArray[np.int64],
    kind: NDArray[np.int64],
    start: NDArray[np.int64],
    values: NDArray[np.float64],
    ranks: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for i in range(X.shape[0]):
        for k in range(source.size):
            x = X[i, source[k]]
            if math.isnan(x):
                out[i, k] = x
            elif kind[k] == 2:
                out[i, k] = 1.0 if x == 0.0 else 0.0
            else:
                rank = _rank(x, values, ranks, start[k], start[k + 1])
                out[i, k] = rank if kind[k] == 0 else (rank - 0.5) ** 2


@exactly_compiled
def _rank(x: float, values: NDArray[np.float64], ranks: NDArray[np.float64], first: int, end: int) -> float:
    """Return the rank of x among the stored values, interpolated."""
    if x <= values[first]:
        return float(ranks[first]) if x == values[first] else 0.0
    if x >= values[end - 1]:
        return float(ranks[end - 1]) if x == values[end - 1] else 1.0
    low, high = first, end - 1  # values[low] ≤ x < values[high]
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] <= x:
            low = middle
        else:
            high = middle
    share = (x - values[low]) / (values[high] - values[low])
    return float(ranks[low] + share * (ranks[high] - ranks[low]))
