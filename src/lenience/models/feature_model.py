"""The protocol of feature models: from the labels seen so far, return a belief about anyone.

A belief at features x is the pair (n, p̂) of a Beta distribution. The *likeness* of x and r is the share ρ² of the
uncertainty at r that would disappear if everything at x were known: 1 where x and r always succeed or fail together
(the same cell), 0 where a label at one teaches nothing about the other. A policy needs these two things and nothing
else.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError


@runtime_checkable
class FeatureModel(Protocol):
    """Protocol: labels in, beliefs and likeness out. Call ``prepare`` first, with rows that need no labels."""

    def prepare(self, X: ArrayLike) -> FeatureModel:
        """Forget all labels; take scales and columns from rows without labels.

        Parameters
        ----------
        X : array_like
            Rows of features.

        Returns
        -------
        FeatureModel
            The model itself.
        """

    def learn(self, X: ArrayLike, y: ArrayLike) -> FeatureModel:
        """Learn labels, in addition to those learnt before.

        Parameters
        ----------
        X : array_like
            Rows of features.
        y : array_like
            The outcome of each row, 0 or 1.

        Returns
        -------
        FeatureModel
            The model itself.
        """

    def beliefs(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the belief at each row.

        Parameters
        ----------
        X : array_like
            Rows of features.

        Returns
        -------
        n : ndarray
            Belief size at each row.
        mean : ndarray
            Success probability p̂ at each row.
        """

    def likeness(self, X: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """Return ρ² between each row of X and each row of R.

        Parameters
        ----------
        X : array_like
            Rows of features.
        R : array_like
            Rows to compare with.

        Returns
        -------
        ndarray
            A matrix with one row for each row of X and one column for each row of R.
        """


def checked_outcomes(y: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Return outcomes as an array of 0.0 and 1.0, one per row."""
    given = np.asarray(y)
    if given.dtype == np.float64 and given.shape == (rows,) and bool(((given == 0.0) | (given == 1.0)).all()):
        return given
    try:
        outcomes = given.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("outcomes", given.ravel()[:1].tolist(), "0 or 1 (false or true)") from None
    if outcomes.ndim != 1 or outcomes.shape[0] != rows:
        raise InputError.because(
            f"must be one for each of the {rows} rows, not of shape {outcomes.shape}",
            "outcomes",
            value=outcomes.shape,
            code="length_mismatch",
        )
    wrong = (outcomes != 0.0) & (outcomes != 1.0)
    if wrong.any():
        raise InputError("outcomes", given[wrong][0], "0 or 1 (false or true)")
    return outcomes


def is_missing(cell: object) -> bool:
    """Return whether a cell is empty: None, NaN or pandas' NA (which does not equal itself)."""
    return (
        cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell))
    )
